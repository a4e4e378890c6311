//! Readings of cycles: headline, rounds, pushes in numbers. Must not read names or texts.

use domain::listing::{CycleReport, CycleSummary, PushState, PushSummary, RoundReport, ShardReport};
use domain::round::RoundChoice;
use domain::verdict::RevisionKind;
use domain::{CycleName, ProjectId};
use rusqlite::Connection;

use super::cache::Caches;
use super::content::Snap;
use super::facts::{Missing, Scope, project, scope};
use super::resolve::{self, LoadedPush, Totals, pushes_of};
use super::rows::parsed;
use super::unseen;
use crate::StoreError;

/// Projects by name.
pub(super) fn projects(connection: &Connection) -> Result<Vec<ProjectId>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT name FROM project WHERE recorded = 1 ORDER BY name")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(parsed(&row.get::<_, String>(0)?)?);
    }
    Ok(found)
}

/// Cycles of a project, by name.
pub(super) fn cycles(connection: &Connection, name: &ProjectId) -> Result<Vec<CycleSummary>, Missing> {
    let project = project(connection, name)?;
    let mut statement = connection.prepare_cached(
        "SELECT c.name, count(r.id), r.recorded_at, max(r.id) -- with max(), SQLite takes the others from that row
         FROM cycle c JOIN round r ON r.project = c.project AND r.cycle = c.id
         WHERE c.project = ?1 GROUP BY c.id ORDER BY c.name",
    )?;
    let mut rows = statement.query([project])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(CycleSummary {
            cycle: parsed(&row.get::<_, String>(0)?)?,
            rounds: u64::from(row.get::<_, u32>(1)?),
            latest_recorded_at: row.get(2)?,
        });
    }
    Ok(found)
}

/// A cycle with the chosen rounds.
pub(super) fn cycle(
    snap: &Snap<'_>,
    caches: &Caches,
    (project, name): (&ProjectId, &CycleName),
    choice: &RoundChoice,
) -> Result<CycleReport, Missing> {
    let scope = scope(snap, project, name)?;
    let chosen = scope.choose(choice)?;
    let headline = totals(snap, caches, &scope, &scope.authoritative())?.counts;
    let rounds = chosen.into_iter().map(|at| round(snap, caches, &scope, at)).collect::<Result<_, StoreError>>()?;
    let not_seen_since = unseen::unseen(snap, caches, &scope)?.len() as u64;
    Ok(CycleReport { project: project.clone(), cycle: name.clone(), headline, rounds, items: None, not_seen_since })
}

/// What these rounds come to, counted once for each state that they are in.
fn totals(snap: &Snap<'_>, caches: &Caches, scope: &Scope, places: &[usize]) -> Result<Totals, StoreError> {
    let key: Vec<(i64, i64)> = places.iter().map(|at| (scope.rows[*at].id, scope.rows[*at].version)).collect();
    if let Some(known) = caches.totals.get(&key) {
        return Ok(known);
    }
    let counted = resolve::totals(snap, scope, places)?;
    caches.totals.put(key, counted);
    Ok(counted)
}

fn round(snap: &Snap<'_>, caches: &Caches, scope: &Scope, at: usize) -> Result<RoundReport, StoreError> {
    let (row, facts, standing) = (&scope.rows[at], &scope.facts[at], &scope.standings[at]);
    let totals = totals(snap, caches, scope, &[at])?;
    let pushes = pushes_of(snap, scope.project, row.id)?;
    let mut commits: Vec<_> = pushes.iter().filter_map(|p| p.row.commit.clone()).collect();
    commits.sort();
    commits.dedup();
    let shards = facts.jobs.iter().flat_map(|job| {
        job.variants.iter().map(|variant| ShardReport {
            job: job.job.clone(),
            variant: variant.variant.clone(),
            seen: variant.seen.len() as u32,
            total: variant.total,
        })
    });
    Ok(RoundReport {
        round: facts.round.clone(),
        run: facts.run.clone(),
        workflow: facts.workflow.clone(),
        run_counter: facts.run_counter,
        run_url: row.run_url.clone(),
        commit: if commits.len() == 1 { commits.pop() } else { None },
        authoritative: standing.authoritative,
        complete: standing.complete,
        closed: facts.closed,
        pinned: facts.pinned,
        missing: standing.missing.clone(),
        counts: totals.counts,
        shards: shards.collect(),
        repeats: pushes.iter().map(|p| p.row.replays).sum(),
        pushes: pushes.iter().map(summary).collect(),
        overlaps: totals.overlaps,
        recorded_at: row.recorded_at.clone(),
    })
}

/// A push in a round's list.
pub(super) fn summary(push: &LoadedPush) -> PushSummary {
    let row = &push.row;
    let state = match push.revisions.last().map(|r| r.known.kind) {
        _ if row.contested => PushState::Contested,
        Some(RevisionKind::Kept) => PushState::Kept,
        Some(RevisionKind::Revised | RevisionKind::Promoted { .. }) => PushState::Revised,
        Some(RevisionKind::First) | None => PushState::Recorded,
    };
    PushSummary {
        key: row.key.clone(),
        push: row.uid,
        state,
        job: row.place.job.clone(),
        shard: row.place.shard,
        variant: row.place.variant.clone(),
        revision: row.revision,
        deliveries: row.deliveries,
        counts: row.counts,
        late: row.late,
    }
}
