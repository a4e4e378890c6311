//! Commits of staged pushes in the memory engine: the chunks are joined into one push, which then goes the way of a push
//! in one request. Must not decide.

use std::sync::Arc;

use domain::protocol::DifferenceClass;
use domain::staging::{CommitDecision, Fate};
use domain::{Epoch, Outcomes, Push, staging};

use super::begin::announced;
use super::{Stage, accept_senders, end, known};
use crate::memory::carry::{broken, carry_out, replay};
use crate::memory::model::{Key, World};
use crate::memory::record::decided_whole;
use crate::{Committed, EpochOf, Now, Recorded, StoreError};

/// Makes an epoch visible, or says why not.
pub(in crate::memory) fn commit(world: &mut World, of: &EpochOf, now: &Now) -> Result<Committed, StoreError> {
    let key = (of.project.clone(), of.push);
    if world.is_tombstoned(&key) {
        return Ok(Committed::Gone);
    }
    let Some(known) = known(world, &key, of.epoch, now) else { return Ok(Committed::Unknown) };
    match staging::commit(&known) {
        CommitDecision::Commit => link(world, &key, of.epoch, now),
        CommitDecision::Replay { revision } => repeat(world, &key, of.epoch, (revision, now)),
        CommitDecision::Incomplete { missing } => Ok(Committed::Incomplete { missing }),
        CommitDecision::Superseded => Ok(Committed::Superseded { recorded: world.stored(&key) }),
        CommitDecision::Refused => {
            let refused = stage(world, &key, of.epoch)?.refused.clone();
            Ok(refused.unwrap_or(Committed::Gone))
        }
        CommitDecision::Gone => Ok(Committed::Gone),
    }
}

fn stage<'a>(world: &'a World, key: &Key, epoch: Epoch) -> Result<&'a Stage, StoreError> {
    world.stages.get(key).and_then(|stages| stages.get(epoch)).ok_or_else(|| broken("an epoch is missing"))
}

/// Records what an epoch holds.
fn link(world: &mut World, key: &Key, epoch: Epoch, now: &Now) -> Result<Committed, StoreError> {
    let push = match joined(stage(world, key, epoch)?) {
        Ok(push) => Arc::new(push),
        Err(what) => return Ok(refuse(world, key, epoch, Committed::NotAsPromised { what })),
    };
    let decision = decided_whole(world, key, &push);
    match carry_out(world, &push, now, decision)? {
        Recorded::Accepted(answer) => {
            accept_senders(world, key, epoch);
            end(world, key, epoch, Fate::Committed { revision: answer.revision });
            Ok(Committed::Accepted(answer))
        }
        Recorded::Refused(refused) => Ok(refuse(world, key, epoch, Committed::Refused(refused))),
        Recorded::Fenced(_) => Err(broken("a commit was fenced")),
    }
}

/// The push that the chunks make, if it is the one that was promised.
fn joined(stage: &Stage) -> Result<Push, String> {
    let manifest = &stage.manifest;
    let chunks = stage.chunks.values().flat_map(|chunk| chunk.outcomes.as_slice()).cloned();
    let outcomes = Outcomes::from_unordered(chunks.collect()).map_err(|doubled| doubled.to_string())?;
    if (outcomes.counts(), outcomes.len() as u64) != (manifest.counts, manifest.outcomes) {
        return Err("the outcomes of the chunks count otherwise than the manifest says".to_owned());
    }
    let digests = outcomes.digests();
    if (digests.content, digests.outcomes) != (manifest.content.content, manifest.content.outcomes) {
        return Err("the chunks together have other digests than the manifest says".to_owned());
    }
    Ok(announced(manifest, stage.sender(), outcomes))
}

/// Nothing of the epoch becomes visible, and every copy of its commit is answered the same.
fn refuse(world: &mut World, key: &Key, epoch: Epoch, answer: Committed) -> Committed {
    end(world, key, epoch, Fate::Refused);
    if let Some(stage) = world.stages.get_mut(key).and_then(|stages| stages.get_mut(epoch)) {
        stage.refused = Some(answer.clone());
    }
    answer
}

/// The answer to a commit of an epoch that is visible already.
fn repeat(world: &mut World, key: &Key, epoch: Epoch, (revision, now): (u32, &Now)) -> Result<Committed, StoreError> {
    let stage = stage(world, key, epoch)?;
    let push = announced(&stage.manifest, stage.sender(), Outcomes::default());
    let known = world.recording(key).and_then(|recording| recording.revisions.get(revision as usize - 1));
    let same = known.is_some_and(|of| of.known.content == push.content.content);
    // Another content was committed as a replay: it says the same but for times and texts.
    let class = if same { DifferenceClass::None } else { DifferenceClass::Cosmetic };
    replay(world, &push, &now.at, (revision, class, Vec::new())).map(Committed::Accepted)
}
