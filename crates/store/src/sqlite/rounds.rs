//! What people do to rounds: close, pin, drop. In the writer's transaction.

use std::collections::BTreeSet;

use domain::{CycleName, ProjectId};
use rusqlite::{Connection, params};

use super::facts::{Missing, scope};
use super::rows;
use crate::{RoundAction, StoreError};

/// Closes, pins or unpins a round; gives its full id.
pub(super) fn set(
    connection: &Connection,
    (project, cycle): (&ProjectId, &CycleName),
    name: &str,
    action: RoundAction,
) -> Result<String, Missing> {
    let scope = scope(connection, project, cycle)?;
    let at = scope.named(name)?;
    let id = scope.rows[at].id;
    match action {
        RoundAction::Close => connection.execute("UPDATE round SET closed = 1 WHERE id = ?1", [id])?,
        RoundAction::Unpin => connection.execute("UPDATE round SET pinned = 0 WHERE id = ?1", [id])?,
        RoundAction::Pin => {
            // One pin in a workflow: the latest wish is the one that holds.
            for other in (0..scope.rows.len()).filter(|o| scope.facts[*o].workflow == scope.facts[at].workflow) {
                let pinned = scope.rows[other].id == id;
                connection
                    .execute("UPDATE round SET pinned = ?2 WHERE id = ?1", params![scope.rows[other].id, pinned])?;
            }
            1
        }
    };
    Ok(scope.facts[at].round.to_string())
}

/// Deletes a round with its pushes, leaves tombstones, and removes sets and texts that nothing refers to any more.
pub(super) fn drop_round(
    connection: &Connection,
    (project, cycle): (&ProjectId, &CycleName),
    name: &str,
) -> Result<u64, Missing> {
    let scope = scope(connection, project, cycle)?;
    let round = scope.rows[scope.named(name)?].id;
    let pushes = rows::pushes(connection, "p.project = ?1 AND p.round = ?2", [scope.project, round])?;
    let mut sets = BTreeSet::new();
    for push in &pushes {
        drop_push(connection, push, &mut sets)?;
    }
    for set in sets {
        drop_set(connection, scope.project, set)?;
    }
    connection.execute("DELETE FROM round WHERE id = ?1", [round])?;
    if scope.rows.len() == 1 {
        connection.execute("DELETE FROM cycle WHERE id = ?1", [scope.cycle])?;
    }
    Ok(pushes.len() as u64)
}

fn drop_push(connection: &Connection, push: &rows::PushRow, sets: &mut BTreeSet<i64>) -> Result<(), StoreError> {
    let of_push = params![push.project, push.id];
    let mut statement = connection.prepare_cached("SELECT id, itemset FROM block WHERE project = ?1 AND push = ?2")?;
    let mut rows = statement.query(of_push)?;
    let mut blocks = Vec::new();
    while let Some(row) = rows.next()? {
        blocks.push(row.get::<_, i64>(0)?);
        sets.insert(row.get(1)?);
    }
    for block in blocks {
        drop_texts(connection, push.project, block)?;
    }
    for table in ["block", "revision", "executor", "delivery"] {
        let sql = format!("DELETE FROM {table} WHERE project = ?1 AND push = ?2");
        connection.prepare_cached(&sql)?.execute(of_push)?;
    }
    connection.prepare_cached("DELETE FROM push WHERE id = ?1")?.execute([push.id])?;
    connection
        .prepare_cached("INSERT OR IGNORE INTO tombstone(project, uid, key) VALUES (?1, ?2, ?3)")?
        .execute(params![push.project, push.uid.0, push.key.as_str()])?;
    Ok(())
}

fn drop_texts(connection: &Connection, project: i64, block: i64) -> Result<(), StoreError> {
    connection.prepare_cached("DELETE FROM blocktext WHERE id = ?1")?.execute([block])?;
    let mut statement = connection.prepare_cached("SELECT digest FROM bigtext_use WHERE block = ?1")?;
    let digests: Vec<Vec<u8>> = statement.query_map([block], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if digests.is_empty() {
        return Ok(());
    }
    connection.prepare_cached("DELETE FROM bigtext_use WHERE block = ?1")?.execute([block])?;
    let mut unused = connection.prepare_cached(
        "DELETE FROM bigtext WHERE project = ?1 AND digest = ?2
         AND NOT EXISTS (SELECT 1 FROM bigtext_use WHERE project = ?1 AND digest = ?2)",
    )?;
    for digest in digests {
        unused.execute(params![project, digest])?;
    }
    Ok(())
}

fn drop_set(connection: &Connection, project: i64, set: i64) -> Result<(), StoreError> {
    let mut used = connection.prepare_cached("SELECT 1 FROM block WHERE project = ?1 AND itemset = ?2")?;
    if !used.exists(params![project, set])? {
        connection.prepare_cached("DELETE FROM setnames WHERE id = ?1")?.execute([set])?;
        connection.prepare_cached("DELETE FROM itemset WHERE id = ?1")?.execute([set])?;
    }
    Ok(())
}
