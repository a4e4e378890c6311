//! What the decision function gets to know of a key, read in the writer's transaction. Must not decide.

use domain::protocol::{Known, Recorded};
use domain::verdict::View;
use domain::{Executor, ItemHash, Ordinal, Push};
use rusqlite::{OptionalExtension, params};

use super::content::{Snap, blob, fold};
use super::rows::{self, PushRow, RevisionRow};
use crate::{StoreError, codec};

/// A recorded push with its revisions.
pub(super) struct KnownPush {
    pub(super) row: PushRow,
    pub(super) revisions: Vec<RevisionRow>,
    pub(super) known: Known,
}

/// What is recorded under a key.
pub(super) fn known(snap: &Snap<'_>, row: PushRow, body: Option<domain::Digest>) -> Result<KnownPush, StoreError> {
    let revisions = rows::revisions(snap, row.project, row.id)?;
    let same_body = match body {
        None => None,
        Some(body) => snap
            .prepare_cached(
                "SELECT revision FROM delivery WHERE project = ?1 AND push = ?2 AND body = ?3 AND revision IS NOT NULL
                 ORDER BY id DESC LIMIT 1",
            )?
            .query_row(params![row.project, row.id, body.0], |found| found.get(0))
            .optional()?,
    };
    let known = Known {
        place: row.place.clone(),
        commit: row.commit.clone(),
        contested: row.contested,
        executors: executors(snap, row.project, row.id)?,
        revisions: revisions.iter().map(|r| r.known.clone()).collect(),
        same_body,
    };
    Ok(KnownPush { row, revisions, known })
}

fn executors(snap: &Snap<'_>, project: i64, push: i64) -> Result<Vec<(Option<Ordinal>, Executor)>, StoreError> {
    let mut statement =
        snap.prepare_cached("SELECT ordinal, executor FROM executor WHERE project = ?1 AND push = ?2 ORDER BY id")?;
    let mut rows = statement.query(params![project, push])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (ordinal, executor): (String, String) = (row.get(0)?, row.get(1)?);
        found.push((rows::ordinal_of(Some(&ordinal))?, rows::parsed(&executor)?));
    }
    Ok(found)
}

/// The look-ups of a decision.
pub(super) struct Lookups<'a, 'c> {
    pub(super) snap: &'a Snap<'c>,
    pub(super) push: &'a Push,
    /// The project and the round, where they exist.
    pub(super) project: Option<i64>,
    pub(super) round: Option<i64>,
    pub(super) known: Option<&'a KnownPush>,
}

impl Recorded for Lookups<'_, '_> {
    type Error = StoreError;

    fn view(&mut self) -> Result<View, StoreError> {
        let Some(known) = self.known else { return Ok(View::default()) };
        fold(self.snap, known.row.project, known.row.id, &known.revisions)
    }

    fn known_in_job(&mut self, offered: &[ItemHash]) -> Result<usize, StoreError> {
        let (Some(project), Some(round)) = (self.project, self.round) else { return Ok(0) };
        let job = self.push.place.job.as_ref().map_or("", |job| job.as_str());
        let mut statement = self.snap.prepare_cached(
            "SELECT hashes, bits, bucket FROM itemset WHERE id IN (
               SELECT b.itemset FROM push p JOIN block b ON b.project = p.project AND b.push = p.id
               WHERE p.project = ?1 AND p.round = ?2 AND p.job = ?3)",
        )?;
        let mut rows = statement.query(params![project, round, job])?;
        let mut held = vec![false; offered.len()];
        while let Some(row) = rows.next()? {
            let set = blob(row, 0)?;
            let (bits, bucket): (u8, u32) = (row.get(1)?, row.get(2)?);
            let from = offered.partition_point(|hash| codec::bucket_of(*hash, bits) < bucket);
            let part = offered[from..].iter().take_while(|hash| codec::bucket_of(**hash, bits) == bucket);
            for (at, hash) in part.enumerate() {
                held[from + at] = held[from + at] || codec::find_hash(set, *hash).is_some();
            }
        }
        Ok(held.into_iter().filter(|held| *held).count())
    }

    fn shard_total(&mut self) -> Result<Option<u32>, StoreError> {
        let (Some(project), Some(round)) = (self.project, self.round) else { return Ok(None) };
        let job = self.push.place.job.as_ref().map_or("", |job| job.as_str());
        let variant = rows::variant_text(&self.push.place.variant)?;
        Ok(self
            .snap
            .prepare_cached(
                "SELECT shard_total FROM push WHERE project = ?1 AND round = ?2 AND job = ?3 AND variant = ?4
                 AND shard_total IS NOT NULL LIMIT 1",
            )?
            .query_row(params![project, round, job, variant], |row| row.get(0))
            .optional()?)
    }
}
