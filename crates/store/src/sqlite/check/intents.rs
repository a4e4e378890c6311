//! Intents, and what waits: every one can be read. A forwarder that can't read one can't tell what may stand elsewhere, or
//! leaves out what is to be there.

use super::super::content::Snap;
use super::super::{ledger, waiting};
use super::Report;
use crate::StoreError;

/// Reads every intent.
pub(super) fn check(snap: &Snap<'_>, report: &mut Report) -> Result<(), StoreError> {
    for id in ids(snap, "SELECT id FROM intent ORDER BY id")? {
        readable(ledger::by_row(snap, id), ("intent-broken", format!("intent {id}")), report)?;
    }
    Ok(())
}

/// Reads everything that waits or has waited.
pub(super) fn waiting(snap: &Snap<'_>, report: &mut Report) -> Result<(), StoreError> {
    for id in ids(snap, "SELECT id FROM waiting ORDER BY id")? {
        readable(waiting::by_row(snap, id), ("waiting-broken", format!("waiting {id}")), report)?;
    }
    Ok(())
}

fn ids(snap: &Snap<'_>, sql: &str) -> Result<Vec<i64>, StoreError> {
    let mut rows = snap.prepare(sql)?;
    Ok(rows.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

fn readable<T>(
    read: Result<T, StoreError>,
    (kind, place): (&'static str, String),
    report: &mut Report,
) -> Result<(), StoreError> {
    match read {
        Ok(_) => Ok(()),
        Err(StoreError::Broken { what }) => {
            report.add(kind, place, what);
            Ok(())
        }
        Err(error) => Err(error),
    }
}
