//! Intents: every one can be read. A forwarder that can't read one can't tell what may stand elsewhere.

use super::super::content::Snap;
use super::super::ledger;
use super::Report;
use crate::StoreError;

/// Reads every intent.
pub(super) fn check(snap: &Snap<'_>, report: &mut Report) -> Result<(), StoreError> {
    let mut rows = snap.prepare("SELECT id FROM intent ORDER BY id")?;
    let ids: Vec<i64> = rows.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in ids {
        match ledger::by_row(snap, id) {
            Ok(_) => {}
            Err(StoreError::Broken { what }) => report.add("intent-broken", format!("intent {id}"), what),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
