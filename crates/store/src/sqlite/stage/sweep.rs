//! Deleting what epochs leave behind: blocks of those that ended without becoming visible, and all rows of a push that is
//! deleted. Must not touch an open epoch, nor blocks that a revision names.

use std::collections::BTreeSet;

use domain::{PushId, staging};
use rusqlite::params;

use super::super::points::Tx;
use super::super::rounds::{drop_set, drop_texts};
use super::rows::{self, StageRow};
use super::write;
use crate::StoreError;

/// Deletes at most `max` blocks under a number, with their texts, and sets that nothing refers to any more; gives how
/// many it deleted.
pub(in crate::sqlite) fn drop_blocks(
    tx: Tx<'_>,
    (project, blockset): (i64, i64),
    max: usize,
) -> Result<usize, StoreError> {
    let mut statement = tx.prepare_cached(
        "SELECT id, itemset FROM block WHERE project = ?1 AND blockset = ?2 ORDER BY bucket LIMIT ?3",
    )?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found: Vec<(i64, i64)> =
        statement.query_map(params![project, blockset, max], row)?.collect::<Result<_, _>>()?;
    let mut block = tx.step("delete-block", "DELETE FROM block WHERE id = ?1")?;
    let mut sets = BTreeSet::new();
    for (id, set) in &found {
        drop_texts(tx, project, *id)?;
        block.run([id])?;
        sets.insert(*set);
    }
    for set in sets {
        drop_set(tx, project, set)?;
    }
    Ok(found.len())
}

/// Deletes what a dead epoch holds: at most `max` blocks, and the rest of it once there are none. Gives how many blocks
/// it deleted, and whether that was all.
pub(super) fn sweep(tx: Tx<'_>, stage: &StageRow, max: usize) -> Result<(usize, bool), StoreError> {
    let deleted = drop_blocks(tx, (stage.project, stage.blockset), max)?;
    if deleted == max {
        return Ok((deleted, false));
    }
    drop_rest(tx, stage)?;
    tx.step("sweep-stage", "UPDATE stage SET blocks = 1 WHERE id = ?1")?.run([stage.id])?;
    if super::super::rows::is_tombstoned(&tx, stage.project, stage.uid)? {
        // No push lives that a late message could ask for: the tombstone answers.
        drop_rows(tx, stage)?;
    }
    Ok((deleted, true))
}

fn drop_rest(tx: Tx<'_>, stage: &StageRow) -> Result<(), StoreError> {
    let sql = "DELETE FROM stage_chunk WHERE project = ?1 AND stage = ?2";
    tx.step("delete-chunks", sql)?.run(params![stage.project, stage.id])?;
    tx.step("delete-stage-blockset", "DELETE FROM blockset WHERE id = ?1")?.run([stage.blockset])?;
    Ok(())
}

fn drop_rows(tx: Tx<'_>, stage: &StageRow) -> Result<(), StoreError> {
    let sql = "DELETE FROM stage_sender WHERE project = ?1 AND stage = ?2";
    tx.step("delete-senders", sql)?.run(params![stage.project, stage.id])?;
    tx.step("delete-stage", "DELETE FROM stage WHERE id = ?1")?.run([stage.id])?;
    Ok(())
}

/// Deletes all epochs of a push that is deleted; the blocks of its revisions go with those.
pub(in crate::sqlite) fn drop_of(tx: Tx<'_>, project: i64, uid: PushId) -> Result<(), StoreError> {
    for stage in rows::all(&tx, "project = ?1 AND uid = ?2 ORDER BY epoch", params![project, uid.0])? {
        if stage.has_blocks {
            drop_blocks(tx, (project, stage.blockset), usize::MAX)?;
        }
        drop_rest(tx, &stage)?;
        drop_rows(tx, &stage)?;
    }
    Ok(())
}

/// Gives up the open epochs of a round that is deleted; their keys are tombstoned.
pub(in crate::sqlite) fn give_up(tx: Tx<'_>, project: i64, cycle: &str, round: &str) -> Result<(), StoreError> {
    let condition = "project = ?1 AND cycle = ?2 AND round = ?3 AND fate = 0 ORDER BY id";
    for stage in rows::all(&tx, condition, params![project, cycle, round])? {
        write::end(tx, stage.id, staging::Fate::Abandoned)?;
        let sql =
            "INSERT OR IGNORE INTO tombstone(project, uid, key) SELECT project, uid, key FROM stage WHERE id = ?1";
        tx.step("tombstone-stage", sql)?.run([stage.id])?;
    }
    Ok(())
}
