//! Readings of one push: report, receipts, differences.

use domain::listing::{DeliveryReport, DifferenceReport, PushReport, RevisionReport};
use domain::receipt::{ItemDifference, ItemHashText};
use domain::verdict::{Change, RevisionKind};
use domain::{ProjectId, PushId, Receipt};
use rusqlite::{Connection, params};

use super::connect::broken;
use super::content::{Snap, content, fold, names_of};
use super::cycle::summary;
use super::facts::{Missing, project};
use super::parts::{COUNTED_ITEMS, Part};
use super::resolve::LoadedPush;
use super::rows::{self, RevisionRow};
use crate::receipts::result_of;
use crate::{Absent, StoreError};

/// A push with its revisions.
pub(super) fn load(connection: &Connection, name: &ProjectId, uid: PushId) -> Result<LoadedPush, Missing> {
    let project = project(connection, name)?;
    let row = rows::push_by_uid(connection, project, uid)?.ok_or(Absent::Push)?;
    let revisions = rows::revisions(connection, project, row.id)?;
    Ok(LoadedPush { row, revisions })
}

/// A push with its revisions and deliveries.
pub(super) fn report(connection: &Connection, name: &ProjectId, uid: PushId) -> Result<PushReport, Missing> {
    let push = load(connection, name, uid)?;
    let revisions = push.revisions.iter().map(|r| revision(connection, &push, r)).collect::<Result<_, _>>()?;
    Ok(PushReport {
        summary: summary(&push),
        project: push.row.place.project.clone(),
        cycle: push.row.place.cycle.clone(),
        round: push.row.place.round.clone(),
        commit: push.row.commit.clone(),
        revisions,
        log: log(connection, &push)?,
        forwards: Vec::new(),
    })
}

fn revision(connection: &Connection, push: &LoadedPush, row: &RevisionRow) -> Result<RevisionReport, StoreError> {
    let receipt = stored(connection, push, row.number())?;
    Ok(RevisionReport {
        revision: row.number(),
        result: result_of(row.known.kind),
        of: if let RevisionKind::Promoted { of, .. } = row.known.kind { Some(of) } else { None },
        ordinal: row.known.sender.ordinal,
        recorded_at: row.recorded_at.clone(),
        counts: row.counts,
        content: row.known.content,
        files: row.known.files.clone(),
        etag: Receipt::etag(row.number(), &receipt),
    })
}

fn stored(connection: &Connection, push: &LoadedPush, revision: u32) -> Result<Vec<u8>, StoreError> {
    rows::receipt(connection, push.row.project, push.row.id, revision)?
        .ok_or_else(|| broken(format!("push {} has no revision {revision}", push.row.id)))
}

fn log(connection: &Connection, push: &LoadedPush) -> Result<Vec<DeliveryReport>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT at, result, revision, ordinal, executor, incarnation FROM delivery
         WHERE project = ?1 AND push = ?2 ORDER BY id",
    )?;
    let mut rows = statement.query(params![push.row.project, push.row.id])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(DeliveryReport {
            at: row.get(0)?,
            result: row.get(1)?,
            revision: row.get(2)?,
            ordinal: rows::ordinal_of(row.get::<_, Option<String>>(3)?.as_deref())?,
            executor: rows::parsed_opt(row.get::<_, Option<String>>(4)?.as_deref())?,
            incarnation: rows::incarnation_of(row.get(5)?),
        });
    }
    Ok(found)
}

/// A stored receipt: the newest, or that of one revision.
pub(super) fn receipt(
    connection: &Connection,
    name: &ProjectId,
    uid: PushId,
    revision: Option<u32>,
) -> Result<(Vec<u8>, u32), Missing> {
    let push = load(connection, name, uid)?;
    let number = revision.unwrap_or(push.row.revision);
    let bytes = rows::receipt(connection, push.row.project, push.row.id, number)?.ok_or(Absent::Revision(number))?;
    Ok((bytes, number))
}

/// How a revision differs from what counted before it; a first one from nothing.
pub(super) fn difference(
    snap: &Snap<'_>,
    name: &ProjectId,
    uid: PushId,
    revision: u32,
) -> Result<DifferenceReport, Missing> {
    let push = load(snap, name, uid)?;
    let at = (revision as usize).checked_sub(1).filter(|at| *at < push.revisions.len());
    let at = at.ok_or(Absent::Revision(revision))?;
    let items = if at > 0 { changes(snap, &push, at)? } else { Vec::new() };
    Ok(DifferenceReport { key: push.row.key, revision, items })
}

/// What the revision at this place says otherwise than those before it, part by part.
fn changes(snap: &Snap<'_>, push: &LoadedPush, at: usize) -> Result<Vec<ItemDifference>, StoreError> {
    let (project, revision) = (push.row.project, &push.revisions[at]);
    let n = push.revisions[..=at].iter().map(|r| r.counts.total).max().unwrap_or(0);
    let mut changes = Vec::new();
    for part in Part::of(n, COUNTED_ITEMS) {
        let before = fold(snap, project, &push.revisions[..at], part)?;
        let offered = content(snap, revision.lies(project), part)?;
        before.changes(&offered.hashes, &offered.lights, |hash, change| changes.push((hash, change)));
    }
    let hashes: Vec<_> = changes.iter().map(|(hash, _)| *hash).collect();
    let names = names_of(snap, project, &push.revisions, &hashes)?;
    let mut items = Vec::with_capacity(changes.len());
    for ((hash, change), name) in changes.into_iter().zip(names) {
        let (recorded, offered) = match change {
            Change::Changed { from, to } => (Some(from), Some(to)),
            Change::Added(to) => (None, Some(to)),
            Change::NotOffered(from) => (Some(from), None),
        };
        let item = name.ok_or_else(|| broken(format!("item {hash} has no name")))?;
        items.push(ItemDifference { hash: ItemHashText(hash), item, recorded, offered });
    }
    Ok(items)
}
