//! What this engine does wrongly under a mutant (`domain::mutants`): what it forgets, and where it commits too early.
//! Called only behind a switch that is `false`, at compile time, in every build but that for proving.

use domain::{Counts, Digest, PushId, mutant};
use rusqlite::{Connection, OptionalExtension, params};

use super::delivered::Delivered;
use super::known::KnownPush;
use super::points::Tx;
use super::record::Delivery;
use super::rows::pack_counts;
use crate::StoreError;

/// How long a lease holds, in milliseconds.
const LEASE_MS: u64 = 5_000;

/// Whether the engine has forgotten that this key is recorded.
pub(super) fn forgets(
    connection: &Connection,
    of: &Delivered<'_>,
    by: &Delivery,
    known: Option<&KnownPush>,
) -> Result<bool, StoreError> {
    if mutant!(M3) || mutant!(M30) {
        // In memory: as long as this connection.
        connection.execute_batch("CREATE TEMP TABLE IF NOT EXISTS seen(uid BLOB PRIMARY KEY, until INTEGER)")?;
        let until = "SELECT until FROM seen WHERE uid = ?1";
        let until: Option<i64> = connection.query_row(until, [of.uid().0], |row| row.get(0)).optional()?;
        let end = if mutant!(M3) { (by.now.ms + LEASE_MS) as i64 } else { i64::MAX };
        let seen = until.is_some_and(|until| (by.now.ms as i64) < until);
        // Without blocks it is not carried out yet.
        if !seen && by.prepared.is_some() {
            connection.execute("INSERT OR REPLACE INTO seen(uid, until) VALUES (?1, ?2)", params![of.uid().0, end])?;
        }
        return Ok(!seen);
    }
    let Some(known) = known else { return Ok(false) };
    let day = |time: &str| time.get(..10).map(str::to_owned);
    Ok(if mutant!(M12) {
        known.revisions.iter().all(|revision| day(&revision.recorded_at) != day(&of.at.0))
    } else {
        // Blocks are made only if a snapshot before the transaction did not know the key.
        let equal = known.known.revisions.iter().any(|revision| revision.content == of.content.content);
        mutant!(M1) && by.prepared.is_some() && equal
    })
}

/// A place for a key that is recorded again, as if the table did not hold keys apart.
pub(super) fn beside(tx: Tx<'_>, project: i64, mut uid: PushId) -> Result<PushId, StoreError> {
    let mut taken = tx.prepare_cached("SELECT 1 FROM push WHERE project = ?1 AND uid = ?2")?;
    while taken.exists(params![project, uid.0])? {
        uid = mixed(uid, b"again");
    }
    Ok(uid)
}

/// The id of a push that somebody's name is part of.
pub(super) fn mixed(uid: PushId, with: &[u8]) -> PushId {
    let mut mixed = [0; 16];
    mixed.copy_from_slice(&Digest::of(&[&uid.0, with].concat()).0[..16]);
    PushId(mixed)
}

/// Commits what was written so far, and goes on in a transaction of its own.
pub(super) fn commit_early(connection: &Connection) -> Result<(), StoreError> {
    Ok(connection.execute_batch("COMMIT; BEGIN IMMEDIATE; SAVEPOINT job")?)
}

/// Writes a receipt to its revision, which is there already.
pub(super) fn receipt(
    tx: Tx<'_>,
    (project, push, revision): (i64, i64, u32),
    receipt: &[u8],
) -> Result<(), StoreError> {
    let sql = "UPDATE revision SET receipt = ?4 WHERE project = ?1 AND push = ?2 AND revision = ?3";
    tx.step("insert-revision", sql)?.run(params![project, push, revision, receipt])?;
    Ok(())
}

/// Raises the counts of a push before anybody has looked whether it is a repeat.
pub(super) fn count(tx: Tx<'_>, known: &KnownPush, mut offered: Counts) -> Result<(), StoreError> {
    offered += known.row.counts;
    let sql = "UPDATE push SET counts = ?2 WHERE id = ?1";
    tx.step("overlay-push", sql)?.run(params![known.row.id, pack_counts(&offered)])?;
    Ok(())
}
