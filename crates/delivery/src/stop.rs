//! The wish to stop, seen by every wait and every send at once. Must not know signals: the program sets it.

use std::sync::Arc;

use tokio::sync::watch;

/// A flag that is raised once (SIGINT, SIGTERM) and never lowered. Clones share it.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// A flag that is not raised yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }

    /// Raises the flag; everything that waits for it wakes up.
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// True once the flag is raised.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Ends as soon as the flag is raised.
    pub async fn requested(&self) {
        let mut seen = self.0.subscribe();
        // The sender lives in `self`, so the channel cannot close while this waits.
        let _ = seen.wait_for(|raised| *raised).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
