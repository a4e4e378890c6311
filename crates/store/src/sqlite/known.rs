//! What the decision functions get to know of a key, read in the transaction that carries the decision out. Large
//! contents are compared part by part. Must not decide.

use domain::compare::{Comparison, Listed};
use domain::manifest::ItemVector;
use domain::protocol::{Known, Recorded};
use domain::verdict::Light;
use domain::{Executor, ItemHash, Ordinal, Outcomes, Place, limits};
use rusqlite::{Connection, OptionalExtension, params};

use super::content::{Lies, Snap, blob, content, fold};
use super::delivered::Delivered;
use super::parts::{COUNTED_ITEMS, Part};
use super::rows::{self, PushRow, RevisionRow};
use crate::{StoreError, codec};

/// A recorded push with its revisions.
pub(super) struct KnownPush {
    pub(super) row: PushRow,
    pub(super) revisions: Vec<RevisionRow>,
    pub(super) known: Known,
}

/// The round of a delivery as the store has it.
#[derive(Clone, Copy)]
pub(super) struct RoundOf {
    pub(super) id: i64,
    pub(super) closed: bool,
}

/// Where a delivery meets what is there.
pub(super) struct Standing {
    pub(super) project: Option<i64>,
    pub(super) round: Option<RoundOf>,
    pub(super) known: Option<KnownPush>,
    pub(super) tombstoned: bool,
}

impl Standing {
    pub(super) fn of(snap: &Snap<'_>, of: &Delivered<'_>) -> Result<Self, StoreError> {
        let Some(project) = rows::project_id(snap, of.place.project.as_str())? else {
            return Ok(Self { project: None, round: None, known: None, tombstoned: false });
        };
        let row = rows::push_by_uid(snap, project, of.uid())?;
        Ok(Self {
            project: Some(project),
            round: round(snap, project, of.place)?,
            known: row.map(|row| known(snap, row, of.content.body)).transpose()?,
            tombstoned: rows::is_tombstoned(snap, project, of.uid())?,
        })
    }
}

fn round(snap: &Snap<'_>, project: i64, place: &Place) -> Result<Option<RoundOf>, StoreError> {
    let sql = "SELECT r.id, r.closed FROM round r JOIN cycle c ON c.id = r.cycle
               WHERE c.project = ?1 AND c.name = ?2 AND r.project = ?1 AND r.round = ?3";
    let values = params![project, place.cycle.as_str(), place.round.as_str()];
    let row = |row: &rusqlite::Row<'_>| Ok(RoundOf { id: row.get(0)?, closed: row.get(1)? });
    Ok(snap.prepare_cached(sql)?.query_row(values, row).optional()?)
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

/// Ordinal and executor of every accepted delivery.
pub(super) fn executors(
    connection: &Connection,
    project: i64,
    push: i64,
) -> Result<Vec<(Option<Ordinal>, Executor)>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT ordinal, executor FROM executor WHERE project = ?1 AND push = ?2 ORDER BY id")?;
    let mut rows = statement.query(params![project, push])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (ordinal, executor): (String, String) = (row.get(0)?, row.get(1)?);
        found.push((rows::ordinal_of(Some(&ordinal))?, rows::parsed(&executor)?));
    }
    Ok(found)
}

/// The offered items, as far as they are there.
pub(super) enum Offered<'a> {
    /// Still to come.
    ToCome,
    /// Items and verdicts of a manifest.
    Items(&'a ItemVector),
    /// All of them; verdicts are made of them where they are needed, as a repeat needs none.
    Whole(&'a Outcomes),
    /// Staged: where they lie, how many they are, and how they compare if that is known.
    Staged { lies: Lies, n: u64, comparison: Option<Box<Comparison>> },
}

impl Offered<'_> {
    fn n(&self) -> u64 {
        match self {
            Offered::ToCome => 0,
            Offered::Items(items) => items.hashes.len() as u64,
            Offered::Whole(outcomes) => outcomes.len() as u64,
            Offered::Staged { n, .. } => *n,
        }
    }

    /// Gives the items of a part.
    fn part<T>(
        &self,
        snap: &Snap<'_>,
        part: Part,
        then: impl FnOnce(&[ItemHash], &[Light]) -> T,
    ) -> Result<T, StoreError> {
        match self {
            Offered::ToCome => Ok(then(&[], &[])),
            Offered::Items(ItemVector { hashes, lights }) => {
                let range = part.range(hashes);
                Ok(then(&hashes[range.clone()], &lights[range]))
            }
            Offered::Whole(outcomes) => {
                let range = part.range(outcomes.hashes());
                let lights: Vec<Light> = outcomes.as_slice()[range.clone()].iter().map(Light::of).collect();
                Ok(then(&outcomes.hashes()[range], &lights))
            }
            Offered::Staged { lies, .. } => {
                let content = content(snap, *lies, part)?;
                Ok(then(&content.hashes, &content.lights))
            }
        }
    }

    fn parts(&self, known: Option<&KnownPush>) -> impl Iterator<Item = Part> + use<> {
        Part::of(self.n().max(known.map_or(0, |known| known.row.counts.total)), COUNTED_ITEMS)
    }
}

/// The first items that the offered content says otherwise than what counts, or adds.
pub(super) fn listed(snap: &Snap<'_>, known: &KnownPush, offered: &Offered<'_>) -> Result<Vec<Listed>, StoreError> {
    let mut found: Vec<Listed> = Vec::new();
    for part in offered.parts(Some(known)) {
        let before = fold(snap, known.row.project, &known.revisions, part)?;
        found.extend(offered.part(snap, part, |hashes, lights| domain::compare::listed(&before, hashes, lights))?);
        if found.len() >= limits::DIFFERENCE_ITEMS_MAX {
            break;
        }
    }
    found.truncate(limits::DIFFERENCE_ITEMS_MAX);
    Ok(found)
}

/// The look-ups of a decision.
pub(super) struct Lookups<'a, 'c> {
    pub(super) snap: &'a Snap<'c>,
    pub(super) place: &'a Place,
    pub(super) standing: &'a Standing,
    pub(super) offered: &'a Offered<'a>,
}

impl Lookups<'_, '_> {
    /// Project, round and job, where there are any.
    fn job(&self) -> Option<(i64, i64, &str)> {
        let job = self.place.job.as_ref().map_or("", |job| job.as_str());
        self.standing.project.zip(self.standing.round).map(|(project, round)| (project, round.id, job))
    }

    /// Which of these items of a part any push of the job holds.
    fn known_in_part(&self, part: Part, offered: &[ItemHash]) -> Result<u64, StoreError> {
        let Some((project, round, job)) = self.job() else { return Ok(0) };
        let mut statement = self.snap.prepare_cached(
            "SELECT hashes, bits, bucket FROM itemset WHERE id IN (
               SELECT b.itemset FROM push p
               JOIN revision r ON r.project = p.project AND r.push = p.id AND r.kind <> 3
               JOIN block b ON b.project = r.project AND b.blockset = r.blockset
               WHERE p.project = ?1 AND p.round = ?2 AND p.job = ?3 AND CASE WHEN r.bits >= ?4
                 THEN b.bucket >> (r.bits - ?4) = ?5 ELSE b.bucket = ?5 >> (?4 - r.bits) END)",
        )?;
        let mut rows = statement.query(params![project, round, job, part.bits(), part.number()])?;
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
        Ok(held.into_iter().filter(|held| *held).count() as u64)
    }
}

impl Recorded for Lookups<'_, '_> {
    type Error = StoreError;

    fn compare(&mut self) -> Result<Option<Comparison>, StoreError> {
        let known = self.standing.known.as_ref();
        match self.offered {
            Offered::ToCome => return Ok(None),
            Offered::Staged { comparison: Some(comparison), .. } => return Ok(Some((**comparison).clone())),
            Offered::Items(_) | Offered::Whole(_) | Offered::Staged { .. } => {}
        }
        let mut sum = Comparison::default();
        for part in self.offered.parts(known) {
            let before = known.map(|k| fold(self.snap, k.row.project, &k.revisions, part)).transpose()?;
            let before = before.unwrap_or_default();
            sum += self.offered.part(self.snap, part, |hashes, lights| Comparison::of(&before, hashes, lights))?;
        }
        Ok(Some(sum))
    }

    fn known_in_job(&mut self) -> Result<u64, StoreError> {
        let mut known = 0;
        for part in self.offered.parts(None) {
            known += self.offered.part(self.snap, part, |hashes, _| self.known_in_part(part, hashes))??;
        }
        Ok(known)
    }

    fn shard_total(&mut self) -> Result<Option<u32>, StoreError> {
        let Some((project, round, job)) = self.job() else { return Ok(None) };
        let variant = rows::variant_text(&self.place.variant)?;
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
