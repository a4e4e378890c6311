//! Chunks, cancels and collection in the memory engine. Must not decide.

use std::sync::Arc;

use domain::content::chunk_of;
use domain::manifest::ChunkPromise;
use domain::staging::{CancelDecision, Fate, PutDecision};
use domain::{Manifest, staging};

use super::{end, known};
use crate::memory::model::{Key, World};
use crate::{Cancelled, Chunk, Collected, EpochOf, Lifetime, Now, Put, StagingReport, Stored};

/// Stages one chunk.
pub(in crate::memory) fn put(world: &mut World, chunk: &Arc<Chunk>, now: &Now) -> Put {
    let EpochOf { project, push, epoch } = &chunk.of;
    let key = (project.clone(), *push);
    if world.is_tombstoned(&key) {
        return Put::Gone;
    }
    let Some(known) = known(world, &key, *epoch, now) else { return Put::Unknown };
    let Some(stage) = world.stages.get_mut(&key).and_then(|stages| stages.get_mut(*epoch)) else {
        return Put::Unknown;
    };
    let promise = stage.manifest.chunks.get(chunk.number as usize).copied();
    match staging::put(&known, chunk.number, promise.map(|promise| promise.digest), chunk.digest) {
        PutDecision::Store => {
            if let Some(what) = broken_promise(&stage.manifest, promise, chunk) {
                return Put::NotAsPromised { what };
            }
            stage.chunks.insert(chunk.number, Arc::clone(chunk));
            stage.touch(now);
            Put::Stored { replayed: false }
        }
        PutDecision::Replay => {
            stage.touch(now);
            Put::Stored { replayed: true }
        }
        PutDecision::Mismatch => Put::Mismatch,
        PutDecision::OutOfRange => Put::OutOfRange { chunks: known.chunks },
        PutDecision::Superseded => Put::Superseded,
        PutDecision::Gone => Put::Gone,
    }
}

fn broken_promise(manifest: &Manifest, promise: Option<ChunkPromise>, chunk: &Chunk) -> Option<String> {
    let (number, found) = (chunk.number, chunk.outcomes.len());
    let promised = promise.map_or(0, |promise| promise.outcomes);
    if found != promised as usize {
        return Some(format!("chunk {number} holds {found} outcomes; the manifest says {promised}"));
    }
    let stray = chunk.outcomes.hashes().iter().find(|hash| chunk_of(**hash, manifest.bits) != number)?;
    Some(format!("item {stray} belongs into chunk {}, not {number}", chunk_of(*stray, manifest.bits)))
}

/// Ends an epoch without a commit.
pub(in crate::memory) fn cancel(world: &mut World, of: &EpochOf, now: &Now) -> Cancelled {
    let key = (of.project.clone(), of.push);
    if world.is_tombstoned(&key) {
        return Cancelled::Ended;
    }
    let Some(known) = known(world, &key, of.epoch, now) else { return Cancelled::Unknown };
    match staging::cancel(&known) {
        CancelDecision::Cancel => {
            end(world, &key, of.epoch, Fate::Cancelled);
            Cancelled::Ended
        }
        CancelDecision::Ended => Cancelled::Ended,
        CancelDecision::Committed { revision } => {
            let receipt = world.recording(&key).and_then(|recording| recording.revisions.get(revision as usize - 1));
            receipt
                .map_or(Cancelled::Unknown, |of| Cancelled::Committed(Stored { revision, receipt: of.receipt.clone() }))
        }
    }
}

/// What is staged of a push right now.
pub(in crate::memory) fn report(world: &World, key: &Key, now: &Now) -> Option<StagingReport> {
    let stages = world.stages.get(key)?;
    let stage = stages.latest().filter(|stage| stage.fate == Fate::Open)?;
    let mut incarnations = Vec::new();
    for incarnation in stage.senders.iter().filter_map(|sender| sender.incarnation) {
        if !incarnations.contains(&incarnation) {
            incarnations.push(incarnation);
        }
    }
    Some(StagingReport {
        epoch: domain::Epoch(stages.epochs.len() as u64),
        chunks: stage.manifest.chunks.len() as u32,
        present: stage.chunks.len() as u32,
        idle_ms: stage.idle_for(now),
        incarnations,
    })
}

/// Gives up what was seen idle twice. There are no rows to delete: an epoch drops its chunks as it ends.
pub(in crate::memory) fn collect(world: &mut World, lifetime: Lifetime, now: &Now) -> Collected {
    let mut given_up: Vec<Key> = Vec::new();
    for key in &world.open {
        let Some(stages) = world.stages.get_mut(key) else { continue };
        let epoch = domain::Epoch(stages.epochs.len() as u64);
        let Some(stage) = stages.get_mut(epoch) else { continue };
        let known = stage.known(epoch, now, lifetime.idle_ms);
        let seen = stage.idle_seen_ms;
        let idle_before = seen.is_some_and(|seen| now.ms.saturating_sub(seen) >= lifetime.second_look_ms);
        if staging::may_abandon(&known, idle_before) {
            given_up.push(key.clone());
        } else if known.idle && seen.is_none() {
            stage.idle_seen_ms = Some(now.ms);
        }
    }
    for key in &given_up {
        let epoch = world.stages.get(key).map_or(0, |stages| stages.epochs.len() as u64);
        end(world, key, domain::Epoch(epoch), Fate::Abandoned);
    }
    Collected { abandoned: given_up.len() as u64, ..Collected::default() }
}
