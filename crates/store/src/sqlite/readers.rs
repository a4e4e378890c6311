//! Connections for readings: a few, kept for reuse; each reading is one snapshot on a thread that may block.
//! Must not know what is read.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::connect;
use super::content::Snap;
use crate::StoreError;

/// Readings at once: more would only wait for the same disk and cores.
const READERS_MAX: usize = 8;

/// The pool.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::new(Vec::new()), permits: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// Runs `work` over one snapshot.
    pub(super) async fn read<T, F>(self: &Arc<Self>, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Snap<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        let ended = |_| StoreError::NotWritten { what: "the store is closed".to_owned() };
        fail::fail_point!("store:read:wait");
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(ended)?;
        let pool = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            // A reading whose asker has gone still runs, and holds its place for as long.
            let _place = permit;
            pool.snapshot(work)
        });
        let done = done.await;
        done.unwrap_or_else(|error| Err(StoreError::Broken { what: format!("a reading ended early: {error}") }))
    }

    fn snapshot<T>(&self, work: impl FnOnce(&Snap<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = idle.map_or_else(|| connect::reader(&self.path), Ok)?;
        fail::fail_point!("store:read:begin");
        connection.execute_batch("BEGIN")?;
        let result = work(&Snap::over(&connection));
        // A connection that cannot end its snapshot is closed with it.
        if connection.execute_batch("ROLLBACK").is_ok() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn a_reading_that_nobody_waits_for_holds_its_place_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let _writer = connect::writer(&path).unwrap();
        let readers = Arc::new(Readers::new(path));
        let (end, ended) = mpsc::channel::<()>();
        let mut reading = Box::pin(readers.read(move |_| {
            let _ = ended.recv();
            Ok(())
        }));
        assert!(reading.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(reading);
        assert_eq!(readers.permits.available_permits(), READERS_MAX - 1);
        end.send(()).unwrap();
        let all = readers.permits.acquire_many(READERS_MAX as u32).await;
        assert!(all.is_ok());
    }
}
