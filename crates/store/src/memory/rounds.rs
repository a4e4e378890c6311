//! What people do to rounds in the memory engine: close, pin, drop. Must not count.

use std::collections::BTreeSet;

use domain::listing::CycleReport;
use domain::round::{RoundChoice, named};
use domain::{CycleName, ProjectId, PushId, RoundId};

use super::model::{Key, World};
use super::read::{cycle, project};
use crate::{Absent, RoundAction};

pub(super) fn set_round(
    world: &mut World,
    name: &ProjectId,
    cycle_name: &CycleName,
    round: &str,
    action: RoundAction,
) -> Result<CycleReport, Absent> {
    let (facts, _) = project(world, name)?.facts(cycle_name)?;
    let at = named(&facts, round).map_err(Absent::Round)?;
    let (id, workflow) = (facts[at].round.clone(), facts[at].workflow.clone());
    let cycles = world.projects.get_mut(name).map(|p| &mut p.cycles);
    let rounds = cycles.and_then(|c| c.get_mut(cycle_name)).ok_or_else(|| Absent::Cycle(cycle_name.clone()))?;
    for (of, round) in rounds.iter_mut() {
        match action {
            RoundAction::Close if *of == id => round.closed = true,
            RoundAction::Unpin if *of == id => round.pinned = false,
            RoundAction::Pin if round.workflow == workflow => round.pinned = *of == id,
            _ => {}
        }
    }
    cycle(world, name, cycle_name, &RoundChoice::Named(id.to_string()))
}

/// Deletes a round with its pushes, also those that are only staged, and leaves a tombstone for every key. Gives the
/// number of those that were recorded.
pub(super) fn drop_round(world: &mut World, name: &ProjectId, cycle: &CycleName, round: &str) -> Result<u64, Absent> {
    let (facts, _) = project(world, name)?.facts(cycle)?;
    let id = facts[named(&facts, round).map_err(Absent::Round)?].round.clone();
    let mut dropped = staged_in(world, name, cycle, &id);
    let mut recorded = 0;
    let Some(project) = world.projects.get_mut(name) else { return Ok(0) };
    if let Some(rounds) = project.cycles.get_mut(cycle) {
        let pushes = rounds.remove(&id).map(|round| round.pushes).unwrap_or_default();
        recorded = pushes.len() as u64;
        dropped.extend(pushes);
        if rounds.is_empty() {
            project.cycles.remove(cycle);
        }
    }
    for push in &dropped {
        let recording = project.pushes.remove(push);
        let promotions = recording.iter().flat_map(|r| &r.revisions).filter_map(|r| r.promotion.as_ref());
        for (key, _) in promotions {
            project.promotions.remove(key);
        }
        project.tombstones.insert(*push);
    }
    for push in &dropped {
        let key = (name.clone(), *push);
        world.forwards.drop_push(&key);
        world.stages.remove(&key);
        world.open.remove(&key);
    }
    Ok(recorded)
}

/// Pushes that are being staged for a round.
fn staged_in(world: &World, name: &ProjectId, cycle: &CycleName, round: &RoundId) -> BTreeSet<PushId> {
    let first: Key = (name.clone(), PushId([0; 16]));
    let of_project = world.open.range(first..).take_while(|(project, _)| project == name);
    let here = |key: &&Key| {
        let latest = world.stages.get(*key).and_then(|stages| stages.latest());
        latest.is_some_and(|stage| stage.manifest.place.cycle == *cycle && stage.manifest.place.round == *round)
    };
    of_project.filter(here).map(|(_, push)| *push).collect()
}
