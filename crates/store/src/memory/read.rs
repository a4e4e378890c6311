//! Readings of the memory engine but items. Must not look at what is staged.

use std::collections::BTreeMap;

use domain::listing::{
    CycleReport, CycleSummary, DifferenceReport, PushReport, PushState, PushSummary, RevisionReport, RoundReport,
    ShardReport, UnseenItem,
};
use domain::receipt::{ItemDifference, ItemHashText};
use domain::round::{RoundChoice, RoundFacts, Standing, choose, listing_order};
use domain::verdict::{Change, RevisionKind};
use domain::{Counts, CycleName, ItemHash, ProjectId, PushId, RoundId, Variant};

use super::carry::name_of;
use super::items::union;
use super::model::{Project, Recording, World, count};
use crate::Absent;
use crate::receipts::result_of;

pub(super) fn project<'a>(world: &'a World, name: &ProjectId) -> Result<&'a Project, Absent> {
    world.projects.get(name).ok_or_else(|| Absent::Project(name.clone()))
}

pub(super) fn cycles(world: &World, name: &ProjectId) -> Result<Vec<CycleSummary>, Absent> {
    let project = project(world, name)?;
    let summary = |(cycle, rounds): (&CycleName, &BTreeMap<RoundId, super::model::Round>)| {
        let latest = rounds.values().max_by_key(|round| round.number)?;
        Some(CycleSummary {
            cycle: cycle.clone(),
            rounds: rounds.len() as u64,
            latest_recorded_at: latest.recorded_at.0.clone(),
        })
    };
    Ok(project.cycles.iter().filter_map(summary).collect())
}

pub(super) fn cycle(
    world: &World,
    name: &ProjectId,
    cycle: &CycleName,
    choice: &RoundChoice,
) -> Result<CycleReport, Absent> {
    let project = project(world, name)?;
    let (facts, standings) = project.facts(cycle)?;
    let chosen = choose(&facts, &standings, choice).map_err(Absent::Round)?;
    let rounds = chosen.iter().map(|at| round(project, cycle, &facts[*at], &standings[*at])).collect();
    let headline = headline(project, cycle)?;
    let not_seen_since = unseen(project, cycle)?.len() as u64;
    Ok(CycleReport { project: name.clone(), cycle: cycle.clone(), headline, rounds, items: None, not_seen_since })
}

fn headline(project: &Project, cycle: &CycleName) -> Result<Counts, Absent> {
    let (facts, standings) = project.facts(cycle)?;
    let places: Vec<usize> = (0..facts.len()).filter(|at| standings[*at].authoritative).collect();
    Ok(count(&union(project, cycle, &facts, &places)).0)
}

fn round(project: &Project, cycle: &CycleName, facts: &RoundFacts, standing: &Standing) -> RoundReport {
    let pushes = project.pushes_of(cycle, &facts.round);
    let (counts, overlaps) = count(&project.table(cycle, &facts.round));
    let round = project.cycles.get(cycle).and_then(|rounds| rounds.get(&facts.round));
    let mut shards = Vec::new();
    for job in &facts.jobs {
        for variant in &job.variants {
            let seen = variant.seen.len() as u32;
            let (job, variant, total) = (job.job.clone(), variant.variant.clone(), variant.total);
            shards.push(ShardReport { job, variant, seen, total });
        }
    }
    let mut commits: Vec<_> = pushes.iter().filter_map(|push| push.commit.clone()).collect();
    commits.sort();
    commits.dedup();
    let replays = |push: &&Recording| push.log.iter().filter(|(entry, _)| entry.result == "replayed").count() as u64;
    RoundReport {
        round: facts.round.clone(),
        run: facts.run.clone(),
        workflow: facts.workflow.clone(),
        run_counter: facts.run_counter,
        run_url: round.and_then(|round| round.run_url.clone()),
        commit: if commits.len() == 1 { commits.pop() } else { None },
        authoritative: standing.authoritative,
        complete: standing.complete,
        closed: facts.closed,
        pinned: facts.pinned,
        missing: standing.missing.clone(),
        counts,
        shards,
        repeats: pushes.iter().map(replays).sum(),
        pushes: pushes.iter().map(|push| summary(push)).collect(),
        overlaps,
        recorded_at: round.map(|round| round.recorded_at.0.clone()).unwrap_or_default(),
    }
}

fn summary(push: &Recording) -> PushSummary {
    let last = push.revisions.last().map(|r| r.known.kind);
    let state = if push.contested {
        PushState::Contested
    } else if last == Some(RevisionKind::Kept) {
        PushState::Kept
    } else if push.revisions.len() > 1 {
        PushState::Revised
    } else {
        PushState::Recorded
    };
    let accepted = push.log.iter().filter(|(entry, _)| entry.revision.is_some() && entry.result != "promoted");
    PushSummary {
        key: push.key.clone(),
        push: PushId::of(&push.place.project, &push.key),
        state,
        job: push.place.job.clone(),
        shard: push.place.shard,
        variant: push.place.variant.clone(),
        revision: push.revisions.len() as u32,
        deliveries: accepted.count() as u64,
        counts: push.counts(),
        late: push.late,
    }
}

/// The last round that held an item, and a push of it.
type Unseen<'a> = BTreeMap<(ItemHash, Variant), (RoundId, &'a Recording)>;

/// Items of rounds before their workflow's authoritative one that the headline doesn't hold, with the last such round.
fn unseen<'a>(project: &'a Project, cycle: &CycleName) -> Result<Unseen<'a>, Absent> {
    let (facts, standings) = project.facts(cycle)?;
    let authoritative: Vec<usize> = (0..facts.len()).filter(|at| standings[*at].authoritative).collect();
    let headline = union(project, cycle, &facts, &authoritative);
    let mut found = BTreeMap::new();
    for at in listing_order(&facts) {
        let of_workflow: Vec<RoundFacts> =
            facts.iter().filter(|other| other.workflow == facts[at].workflow).cloned().collect();
        let order: Vec<&RoundId> = listing_order(&of_workflow).into_iter().map(|m| &of_workflow[m].round).collect();
        let place = |round: &RoundId| order.iter().position(|id| *id == round);
        let counts = authoritative.iter().find(|a| facts[**a].workflow == facts[at].workflow);
        if counts.is_none_or(|a| place(&facts[at].round) >= place(&facts[*a].round)) {
            continue;
        }
        for (item, winner) in project.table(cycle, &facts[at].round) {
            if !headline.contains_key(&item) {
                found.insert(item, (facts[at].round.clone(), winner.push));
            }
        }
    }
    Ok(found)
}

pub(super) fn not_seen_since(world: &World, name: &ProjectId, cycle: &CycleName) -> Result<Vec<UnseenItem>, Absent> {
    let project = project(world, name)?;
    let mut found: Vec<UnseenItem> = unseen(project, cycle)?
        .into_iter()
        .filter_map(|((hash, variant), (last_seen, push))| {
            name_of(push, hash).map(|item| UnseenItem { hash: ItemHashText(hash), item, variant, last_seen })
        })
        .collect();
    found.sort_by_key(|unseen| (unseen.item.clone(), unseen.hash.0, unseen.variant.clone()));
    Ok(found)
}

pub(super) fn recording<'a>(world: &'a World, name: &ProjectId, push: PushId) -> Result<&'a Recording, Absent> {
    project(world, name)?.pushes.get(&push).ok_or(Absent::Push)
}

pub(super) fn push(world: &World, name: &ProjectId, push: PushId) -> Result<PushReport, Absent> {
    let recording = recording(world, name, push)?;
    let revision = |revision: &super::model::Revision| RevisionReport {
        revision: revision.known.number,
        result: result_of(revision.known.kind),
        of: if let RevisionKind::Promoted { of, .. } = revision.known.kind { Some(of) } else { None },
        ordinal: revision.known.sender.ordinal,
        recorded_at: revision.at.0.clone(),
        counts: revision.push.outcomes.counts(),
        content: revision.known.content,
        files: revision.known.files.clone(),
        etag: revision.etag(),
    };
    Ok(PushReport {
        summary: summary(recording),
        project: name.clone(),
        cycle: recording.place.cycle.clone(),
        round: recording.place.round.clone(),
        commit: recording.commit.clone(),
        revisions: recording.revisions.iter().map(revision).collect(),
        log: recording.log.iter().map(|(entry, _)| entry.clone()).collect(),
        forwards: Vec::new(),
    })
}

pub(super) fn receipt(
    world: &World,
    name: &ProjectId,
    push: PushId,
    revision: Option<u32>,
) -> Result<(Vec<u8>, u32), Absent> {
    let recording = recording(world, name, push)?;
    let number = revision.unwrap_or(recording.revisions.len() as u32);
    let found = recording.revisions.iter().find(|r| r.known.number == number).ok_or(Absent::Revision(number))?;
    Ok((found.receipt.clone(), number))
}

pub(super) fn difference(
    world: &World,
    name: &ProjectId,
    push: PushId,
    revision: u32,
) -> Result<DifferenceReport, Absent> {
    let recording = recording(world, name, push)?;
    let at = recording.revisions.iter().position(|r| r.known.number == revision).ok_or(Absent::Revision(revision))?;
    let mut items = Vec::new();
    if at > 0 {
        let of = &recording.revisions[at];
        recording.view(at).changes(of.push.outcomes.hashes(), &of.lights(), |hash, change| {
            let (recorded, offered) = match change {
                Change::Changed { from, to } => (Some(from), Some(to)),
                Change::Added(to) => (None, Some(to)),
                Change::NotOffered(from) => (Some(from), None),
            };
            if let Some(item) = name_of(recording, hash) {
                items.push(ItemDifference { hash: ItemHashText(hash), item, recorded, offered });
            }
        });
    }
    Ok(DifferenceReport { key: recording.key.clone(), revision, items })
}
