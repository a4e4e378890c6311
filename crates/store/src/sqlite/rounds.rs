//! What people do to rounds: close, pin, drop. In the writer's transaction.

use domain::{CycleName, ProjectId};
use rusqlite::{Connection, params};

use super::facts::{Missing, scope};
use super::points::{Op, Tx};
use super::{rows, stage, waiting};
use crate::{RoundAction, StoreError};

/// Closes, pins or unpins a round; gives its full id.
pub(super) fn set(
    connection: &Connection,
    (project, cycle): (&ProjectId, &CycleName),
    name: &str,
    action: RoundAction,
) -> Result<String, Missing> {
    let tx = Tx::of(connection, Op::SET_ROUND);
    let scope = scope(&tx, project, cycle)?;
    let at = scope.named(name)?;
    let id = scope.rows[at].id;
    let mut pin = tx.step("pin-round", "UPDATE round SET pinned = ?2 WHERE id = ?1")?;
    match action {
        RoundAction::Close => {
            tx.step("close-round", "UPDATE round SET closed = 1 WHERE id = ?1")?.run([id])?;
        }
        RoundAction::Unpin => {
            pin.run(params![id, false])?;
        }
        RoundAction::Pin => {
            // One pin in a workflow: the latest wish is the one that holds.
            for other in (0..scope.rows.len()).filter(|o| scope.facts[*o].workflow == scope.facts[at].workflow) {
                let other = scope.rows[other].id;
                pin.run(params![other, other == id])?;
            }
        }
    }
    Ok(scope.facts[at].round.to_string())
}

/// Deletes a round with its pushes, leaves tombstones, and removes sets and texts that nothing refers to any more.
pub(super) fn drop_round(
    connection: &Connection,
    (project, cycle): (&ProjectId, &CycleName),
    name: &str,
) -> Result<u64, Missing> {
    let tx = Tx::of(connection, Op::DROP_ROUND);
    let scope = scope(&tx, project, cycle)?;
    let at = scope.named(name)?;
    let round = scope.rows[at].id;
    let pushes = rows::pushes(&tx, "p.project = ?1 AND p.round = ?2", [scope.project, round])?;
    for push in &pushes {
        drop_push(tx, push)?;
    }
    stage::give_up(tx, scope.project, cycle.as_str(), scope.facts[at].round.as_str())?;
    tx.step("delete-round", "DELETE FROM round WHERE id = ?1")?.run([round])?;
    if scope.rows.len() == 1 {
        tx.step("delete-cycle", "DELETE FROM cycle WHERE id = ?1")?.run([scope.cycle])?;
    }
    Ok(pushes.len() as u64)
}

fn drop_push(tx: Tx<'_>, push: &rows::PushRow) -> Result<(), StoreError> {
    for revision in rows::revisions(&tx, push.project, push.id)?.iter().filter(|r| !r.is_promotion()) {
        stage::drop_blocks(tx, (push.project, revision.blockset), usize::MAX)?;
        tx.step("delete-blockset", "DELETE FROM blockset WHERE id = ?1")?.run([revision.blockset])?;
    }
    stage::drop_of(tx, push.project, push.uid)?;
    waiting::drop_push(tx, &push.place.project, push.uid)?;
    let of_push = params![push.project, push.id];
    tx.step("delete-revisions", "DELETE FROM revision WHERE project = ?1 AND push = ?2")?.run(of_push)?;
    tx.step("delete-executors", "DELETE FROM executor WHERE project = ?1 AND push = ?2")?.run(of_push)?;
    tx.step("delete-deliveries", "DELETE FROM delivery WHERE project = ?1 AND push = ?2")?.run(of_push)?;
    tx.step("delete-push", "DELETE FROM push WHERE id = ?1")?.run([push.id])?;
    let sql = "INSERT OR IGNORE INTO tombstone(project, uid, key) VALUES (?1, ?2, ?3)";
    tx.step("insert-tombstone", sql)?.run(params![push.project, push.uid.0, push.key.as_str()])?;
    Ok(())
}

/// Deletes the texts of a block, and large ones that no other block refers to.
pub(super) fn drop_texts(tx: Tx<'_>, project: i64, block: i64) -> Result<(), StoreError> {
    tx.step("delete-texts", "DELETE FROM blocktext WHERE id = ?1")?.run([block])?;
    let mut statement = tx.prepare_cached("SELECT digest FROM bigtext_use WHERE block = ?1")?;
    let digests: Vec<Vec<u8>> = statement.query_map([block], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if digests.is_empty() {
        return Ok(());
    }
    tx.step("delete-large-text-uses", "DELETE FROM bigtext_use WHERE block = ?1")?.run([block])?;
    let mut unused = tx.step(
        "delete-large-text",
        "DELETE FROM bigtext WHERE project = ?1 AND digest = ?2
         AND NOT EXISTS (SELECT 1 FROM bigtext_use WHERE project = ?1 AND digest = ?2)",
    )?;
    for digest in digests {
        unused.run(params![project, digest])?;
    }
    Ok(())
}

/// Deletes a set that no block refers to.
pub(super) fn drop_set(tx: Tx<'_>, project: i64, set: i64) -> Result<(), StoreError> {
    let mut used = tx.prepare_cached("SELECT 1 FROM block WHERE project = ?1 AND itemset = ?2")?;
    if !used.exists(params![project, set])? {
        tx.step("delete-names", "DELETE FROM setnames WHERE id = ?1")?.run([set])?;
        tx.step("delete-itemset", "DELETE FROM itemset WHERE id = ?1")?.run([set])?;
    }
    Ok(())
}
