//! The tables, by version: forward only, run under the write lock, and a newer schema is refused.
//! Must not know what the rows mean beyond their columns.

use rusqlite::{Connection, OptionalExtension};

use super::connect::begin_immediate;
use crate::StoreError;

/// Every schema, oldest first; the version is its place, from 1. A published one never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("0001_first.sql"),
    include_str!("0002_staging.sql"),
    include_str!("0003_forward.sql"),
    include_str!("0004_waiting.sql"),
    include_str!("0005_seen.sql"),
    include_str!("0006_place.sql"),
    include_str!("0007_plain.sql"),
];

/// The newest schema that this program knows.
pub(crate) const KNOWN: u32 = MIGRATIONS.len() as u32;

/// Brings the store to the newest schema. Several processes may do so at once.
pub(super) fn migrate(connection: &Connection) -> Result<(), StoreError> {
    match version(connection)? {
        KNOWN => return Ok(()),
        found if found > KNOWN => return Err(StoreError::NewerSchema { found, known: KNOWN }),
        _ => {}
    }
    begin_immediate(connection)?;
    let done = step(connection);
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = connection.execute_batch(end);
    done?;
    Ok(ended?)
}

fn step(connection: &Connection) -> Result<(), StoreError> {
    let found = version(connection)?;
    if found > KNOWN {
        return Err(StoreError::NewerSchema { found, known: KNOWN });
    }
    for (at, sql) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        connection.execute_batch(sql)?;
        connection.execute("INSERT INTO schema_version(version) VALUES (?1)", [at as u32 + 1])?;
    }
    Ok(())
}

fn version(connection: &Connection) -> Result<u32, StoreError> {
    let table: Option<i64> = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'", [], |row| row.get(0))
        .optional()?;
    if table.is_none() {
        return Ok(0);
    }
    Ok(connection.query_row("SELECT coalesce(max(version), 0) FROM schema_version", [], |row| row.get(0))?)
}
