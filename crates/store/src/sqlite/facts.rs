//! Cycles and rounds as the domain judges them. Must not know items.

use std::collections::BTreeMap;

use domain::round::{JobFacts, RoundChoice, RoundFacts, Standing, VariantFacts, choose, named, standings};
use domain::{CycleName, ProjectId};
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{parsed, parsed_opt, variant_of};
use crate::{Absent, Found, StoreError};

/// Why a reading has no answer: there is none, or the store failed.
pub(super) enum Missing {
    Absent(Absent),
    Store(StoreError),
}

impl<E: Into<StoreError>> From<E> for Missing {
    fn from(error: E) -> Self {
        Missing::Store(error.into())
    }
}

impl From<Absent> for Missing {
    fn from(absent: Absent) -> Self {
        Missing::Absent(absent)
    }
}

/// The answer in the shape that the trait gives it.
pub(super) fn found<T>(result: Result<T, Missing>) -> Found<T> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Missing::Absent(absent)) => Ok(Err(absent)),
        Err(Missing::Store(error)) => Err(error),
    }
}

/// One round as its row has it.
pub(super) struct RoundRow {
    pub(super) id: i64,
    pub(super) version: i64,
    pub(super) run_url: Option<String>,
    pub(super) recorded_at: String,
}

/// A cycle with its rounds, in the order of recording.
pub(super) struct Scope {
    pub(super) project: i64,
    pub(super) cycle: i64,
    pub(super) rows: Vec<RoundRow>,
    pub(super) facts: Vec<RoundFacts>,
    pub(super) standings: Vec<Standing>,
}

impl Scope {
    /// Places of the chosen rounds, in listing order.
    pub(super) fn choose(&self, choice: &RoundChoice) -> Result<Vec<usize>, Missing> {
        choose(&self.facts, &self.standings, choice).map_err(|e| Missing::Absent(Absent::Round(e)))
    }

    /// The place of one round.
    pub(super) fn named(&self, name: &str) -> Result<usize, Missing> {
        named(&self.facts, name).map_err(|e| Missing::Absent(Absent::Round(e)))
    }

    /// Places of the authoritative rounds.
    pub(super) fn authoritative(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|at| self.standings[*at].authoritative).collect()
    }
}

/// The id of a project, or that there is none: one that is only staged for isn't there.
pub(super) fn project(connection: &Connection, name: &ProjectId) -> Result<i64, Missing> {
    let mut statement = connection.prepare_cached("SELECT id FROM project WHERE name = ?1 AND recorded = 1")?;
    let id = statement.query_row([name.as_str()], |row| row.get(0)).optional()?;
    id.ok_or_else(|| Absent::Project(name.clone()).into())
}

/// A cycle with its rounds.
pub(super) fn scope(connection: &Connection, project_name: &ProjectId, cycle: &CycleName) -> Result<Scope, Missing> {
    let project = project(connection, project_name)?;
    let id: Option<i64> = connection
        .prepare_cached("SELECT id FROM cycle WHERE project = ?1 AND name = ?2")?
        .query_row(params![project, cycle.as_str()], |row| row.get(0))
        .optional()?;
    let id = id.ok_or_else(|| Absent::Cycle(cycle.clone()))?;
    Ok(scope_of(connection, project, id)?)
}

/// The rounds of a cycle.
pub(super) fn scope_of(connection: &Connection, project: i64, cycle: i64) -> Result<Scope, StoreError> {
    let mut jobs = jobs(connection, project, cycle)?;
    let mut statement = connection.prepare_cached(
        "SELECT id, version, run_url, recorded_at, round, run, workflow, run_counter, closed, pinned
         FROM round WHERE project = ?1 AND cycle = ?2 ORDER BY id",
    )?;
    let mut rows = statement.query(params![project, cycle])?;
    let (mut found, mut facts) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        found.push(RoundRow { id, version: row.get(1)?, run_url: row.get(2)?, recorded_at: row.get(3)? });
        facts.push(RoundFacts {
            round: parsed(&row.get::<_, String>(4)?)?,
            run: parsed(&row.get::<_, String>(5)?)?,
            workflow: parsed_opt(row.get::<_, Option<String>>(6)?.as_deref())?,
            run_counter: row.get::<_, Option<i64>>(7)?.map(|n| n as u64),
            first_recorded: id as u64,
            closed: row.get(8)?,
            pinned: row.get(9)?,
            jobs: jobs.remove(&id).unwrap_or_default(),
        });
    }
    let standings = standings(&facts);
    Ok(Scope { project, cycle, rows: found, facts, standings })
}

type Seen = (Option<u32>, Option<u32>, Vec<u32>);

/// Jobs of every round of a cycle: what was seen of them, by job and variant.
fn jobs(connection: &Connection, project: i64, cycle: i64) -> Result<BTreeMap<i64, Vec<JobFacts>>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT p.round, p.job, p.variant, p.shard, p.shard_total, p.expect FROM push p
         WHERE p.project = ?1 AND p.round IN (SELECT id FROM round WHERE project = ?1 AND cycle = ?2)",
    )?;
    let mut rows = statement.query(params![project, cycle])?;
    let mut seen: BTreeMap<(i64, String), BTreeMap<String, Seen>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let of_job = seen.entry((row.get(0)?, row.get(1)?)).or_default();
        let (total, expect, shards) = of_job.entry(row.get(2)?).or_default();
        *total = (*total).max(row.get(4)?);
        *expect = (*expect).max(row.get(5)?);
        shards.push(row.get::<_, Option<u32>>(3)?.unwrap_or(0));
    }
    let mut found: BTreeMap<i64, Vec<JobFacts>> = BTreeMap::new();
    for ((round, job), variants) in seen {
        let mut facts = JobFacts { job: parsed_opt(Some(&job))?, expect: None, variants: Vec::new() };
        for (variant, (total, expect, mut seen)) in variants {
            seen.sort_unstable();
            seen.dedup();
            facts.expect = facts.expect.max(expect);
            facts.variants.push(VariantFacts { variant: variant_of(&variant)?, total, seen });
        }
        facts.variants.sort_by(|a, b| a.variant.cmp(&b.variant));
        found.entry(round).or_default().push(facts);
    }
    for facts in found.values_mut() {
        facts.sort_by(|a, b| a.job.cmp(&b.job));
    }
    Ok(found)
}
