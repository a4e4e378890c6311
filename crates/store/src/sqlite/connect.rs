//! Opening connections, with the settings that durability needs read back, and errors typed by what they mean for the
//! data. Must not know tables.

use std::path::Path;
use std::time::Duration;

use domain::mutant;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::StoreError;
use crate::codec::Damaged;

/// How long a connection waits for another process: long, as waiting is right and giving up only makes work.
const BUSY_TIMEOUT: Duration = Duration::from_mins(2);
/// Switching to WAL is the one step for which the engine doesn't wait by itself.
const WAL_TRIES: u32 = 2400;
const WAL_PAUSE: Duration = Duration::from_millis(50);

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let what = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Broken { what },
            Some(_) => StoreError::NotWritten { what },
            None => StoreError::Broken { what },
        }
    }
}

impl From<Damaged> for StoreError {
    fn from(damaged: Damaged) -> Self {
        StoreError::Broken { what: damaged.to_string() }
    }
}

/// Something in the store that contradicts itself.
pub(super) fn broken(what: impl Into<String>) -> StoreError {
    StoreError::Broken { what: what.into() }
}

/// The same error for every waiting job of a group.
pub(super) fn copy(error: &StoreError) -> StoreError {
    match error {
        StoreError::NotWritten { what } => StoreError::NotWritten { what: what.clone() },
        StoreError::PossiblyWritten { what } => StoreError::PossiblyWritten { what: what.clone() },
        other => StoreError::Broken { what: other.to_string() },
    }
}

/// A connection that may write.
pub(super) fn writer(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags)?;
    // Only a file without pages takes it; every other one has its size already.
    connection.pragma_update(None, "page_size", 4096)?;
    write_ahead(&connection)?;
    set(&connection)?;
    connection.pragma_update(None, "cache_size", -32 * 1024)?;
    connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
    Ok(connection)
}

/// A connection for snapshots.
pub(super) fn reader(path: &Path) -> Result<Connection, StoreError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    set(&connection)?;
    connection.pragma_update(None, "cache_size", -8 * 1024)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

/// What every connection has to have, and is asked whether it has.
fn set(connection: &Connection) -> Result<(), StoreError> {
    let (word, number) = if mutant!(M28) { ("NORMAL", 1) } else { ("FULL", 2) };
    connection.pragma_update(None, "synchronous", word)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if synchronous == number && journal == "wal" {
        return Ok(());
    }
    Err(StoreError::NotWritten {
        what: format!(
            "SQLite says synchronous={synchronous} and journal_mode={journal} where FULL (2) and wal were asked for: \
             an acknowledged push might not survive a power cut on this file system"
        ),
    })
}

fn write_ahead(connection: &Connection) -> Result<(), StoreError> {
    for _ in 0..WAL_TRIES {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Ok(_) => return Ok(()),
            Err(error) if is_busy(&error) => std::thread::sleep(WAL_PAUSE),
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::NotWritten { what: "another process holds the store file locked".to_owned() })
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Begins a transaction that will write: the lock is taken now, so that nothing fails half-way for want of it.
pub(super) fn begin_immediate(connection: &Connection) -> Result<(), StoreError> {
    Ok(connection.execute_batch("BEGIN IMMEDIATE")?)
}

/// What a failed COMMIT means. A full disk or a busy file stop it before its last frame is written; after any other
/// error of the disk, the frames may be found by a later recovery.
pub(super) fn commit_error(error: &rusqlite::Error) -> StoreError {
    let what = error.to_string();
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::ReadOnly
            | ErrorCode::ConstraintViolation,
        ) => StoreError::NotWritten { what },
        _ => StoreError::PossiblyWritten { what },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without it a power cut takes back what was acknowledged, and no test on a machine that stays up would notice.
    #[test]
    fn every_commit_waits_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let connection = writer(&path).unwrap();
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(number("synchronous"), 2);
        let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(journal, "wal");
    }
}
