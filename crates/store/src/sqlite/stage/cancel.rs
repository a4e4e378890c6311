//! Cancels, and the state of what is staged. Must not decide.

use domain::staging::{self, CancelDecision, Fate};
use domain::{Incarnation, ProjectId, PushId};
use rusqlite::{Connection, params};

use super::super::connect::broken;
use super::super::points::{Op, Tx};
use super::super::rows as tables;
use super::{rows, write};
use crate::{Cancelled, EpochOf, Now, StagingReport, StoreError, Stored};

/// Runs one cancel.
pub(in crate::sqlite) fn cancel(connection: &Connection, of: &EpochOf, now: &Now) -> Result<Cancelled, StoreError> {
    let tx = Tx::of(connection, Op::CANCEL);
    let Some(project) = tables::project_id(&tx, of.project.as_str())? else { return Ok(Cancelled::Unknown) };
    if tables::is_tombstoned(&tx, project, of.push)? {
        return Ok(Cancelled::Ended);
    }
    let Some(stage) = rows::of_epoch(&tx, project, of.push, of.epoch)? else { return Ok(Cancelled::Unknown) };
    match staging::cancel(&rows::known(&tx, &stage, now.ms)?) {
        CancelDecision::Cancel => {
            write::end(tx, stage.id, Fate::Cancelled)?;
            Ok(Cancelled::Ended)
        }
        CancelDecision::Ended => Ok(Cancelled::Ended),
        CancelDecision::Committed { revision } => {
            let push = tables::push_by_uid(&tx, project, of.push)?;
            let receipt = push.map(|push| tables::receipt(&tx, project, push.id, revision)).transpose()?.flatten();
            let receipt = receipt.ok_or_else(|| broken("a committed epoch without its receipt"))?;
            Ok(Cancelled::Committed(Stored { revision, receipt }))
        }
    }
}

/// What is staged under a key.
pub(in crate::sqlite) fn report(
    connection: &Connection,
    project: &ProjectId,
    push: PushId,
    now: &Now,
) -> Result<Option<StagingReport>, StoreError> {
    let Some(project) = tables::project_id(connection, project.as_str())? else { return Ok(None) };
    let Some(stage) = rows::latest(connection, project, push)?.filter(|stage| stage.fate == Fate::Open) else {
        return Ok(None);
    };
    let mut present =
        connection.prepare_cached("SELECT count(*) FROM stage_chunk WHERE project = ?1 AND stage = ?2")?;
    let mut incarnations: Vec<Incarnation> = Vec::new();
    for incarnation in rows::senders(connection, &stage)?.into_iter().filter_map(|sender| sender.incarnation) {
        if !incarnations.contains(&incarnation) {
            incarnations.push(incarnation);
        }
    }
    Ok(Some(StagingReport {
        epoch: stage.epoch,
        chunks: stage.chunks(),
        present: present.query_row(params![project, stage.id], |row| row.get(0))?,
        idle_ms: stage.idle_ms(now.ms),
        incarnations,
    }))
}
