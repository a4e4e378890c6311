//! Statements that write rows of epochs. Must not decide what to write.

use domain::staging::Fate;
use domain::{Epoch, Manifest, Sender};
use rusqlite::params;

use super::super::points::Tx;
use super::super::rows::{incarnation_bytes, ordinal_text, scope_code, to_json};
use super::super::write;
use super::rows::{KeptManifest, pack_promises};
use crate::{Now, StoreError};

/// Opens an epoch, with a number for its blocks; gives its id.
pub(super) fn open(tx: Tx<'_>, project: i64, manifest: &Manifest, epoch: Epoch, now: &Now) -> Result<i64, StoreError> {
    let blockset = write::blockset(tx, project)?;
    let kept = KeptManifest {
        place: manifest.place.clone(),
        origin: manifest.origin.clone(),
        on_difference: manifest.on_difference,
        outside_ci: manifest.outside_ci,
        expect: manifest.expect,
        files: manifest.files.clone(),
        report: manifest.report,
        incomplete: manifest.incomplete,
        counts: manifest.counts,
        content: manifest.content.content,
        outcomes: manifest.content.outcomes,
    };
    let sql =
        "INSERT INTO stage(project, uid, key, epoch, fate, cycle, round, manifest_digest, content, n, bits, blockset,
                 began_at, touched_ms, manifest, promises)
               VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    tx.step("insert-stage", sql)?.run(params![
        project,
        manifest.push().0,
        manifest.key.as_str(),
        epoch.0 as i64,
        manifest.place.cycle.as_str(),
        manifest.place.round.as_str(),
        manifest.digest().0,
        manifest.content.content.0,
        manifest.outcomes as i64,
        manifest.bits,
        blockset,
        now.at.0,
        now.ms as i64,
        to_json(&kept)?,
        pack_promises(&manifest.chunks),
    ])?;
    Ok(tx.last_insert_rowid())
}

/// Notes who began or resumed an epoch, each once.
pub(super) fn sender(tx: Tx<'_>, (project, stage): (i64, i64), uid: [u8; 16], of: &Sender) -> Result<(), StoreError> {
    let sql = "INSERT INTO stage_sender(project, uid, stage, ordinal, ordinal_scope, executor, incarnation)
               SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (SELECT 1 FROM stage_sender
                 WHERE project = ?1 AND stage = ?3 AND ordinal IS ?4 AND ordinal_scope = ?5 AND executor IS ?6
                   AND incarnation IS ?7)";
    tx.step("insert-sender", sql)?.run(params![
        project,
        uid,
        stage,
        ordinal_text(of.ordinal),
        scope_code(of.ordinal_scope),
        of.executor.as_ref().map(domain::Executor::as_str),
        incarnation_bytes(of.incarnation),
    ])?;
    Ok(())
}

/// Something came for the epoch.
pub(super) fn touch(tx: Tx<'_>, stage: i64, now_ms: u64) -> Result<(), StoreError> {
    let sql = "UPDATE stage SET touched_ms = ?2, idle_seen_ms = NULL WHERE id = ?1";
    tx.step("touch-stage", sql)?.run(params![stage, now_ms as i64])?;
    Ok(())
}

/// A second leg was refused beside the epoch.
pub(super) fn contest(tx: Tx<'_>, stage: i64) -> Result<(), StoreError> {
    tx.step("contest-stage", "UPDATE stage SET contested = 1 WHERE id = ?1 AND contested = 0")?.run([stage])?;
    Ok(())
}

/// An epoch ends.
pub(super) fn end(tx: Tx<'_>, stage: i64, fate: Fate) -> Result<(), StoreError> {
    let (code, revision) = match fate {
        Fate::Open => (0, None),
        Fate::Superseded => (1, None),
        Fate::Abandoned => (2, None),
        Fate::Cancelled => (3, None),
        Fate::Refused => (4, None),
        Fate::Committed { revision } => (5, Some(revision)),
    };
    let sql = "UPDATE stage SET fate = ?2, revision = ?3 WHERE id = ?1";
    tx.step("end-stage", sql)?.run(params![stage, code, revision])?;
    Ok(())
}
