//! What is staged in the memory engine, beside everything that readers see. Must not decide: `domain::staging` does.

mod begin;
mod commit;
mod put;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::protocol::{self, FieldDifference, Offer};
use domain::staging::{Begin, Ending, Fate, KnownEpoch, OneShotDecision};
use domain::{Digest, Epoch, Executor, Incarnation, Manifest, Ordinal, Push, Sender, staging};

use super::model::{Key, World};
use crate::{Chunk, Committed, Now};

pub(super) use begin::{begin, held};
pub(super) use commit::commit;
pub(super) use put::{cancel, collect, put, report};

/// Everything that is or was staged of one push.
#[derive(Default)]
pub(super) struct Stages {
    /// All epochs, from 1; only the last can be open.
    epochs: Vec<Stage>,
    /// The epoch that first admitted each incarnation.
    bound: BTreeMap<u128, Epoch>,
}

/// One epoch.
pub(super) struct Stage {
    /// The one that opened it.
    pub(super) manifest: Arc<Manifest>,
    digest: Digest,
    fate: Fate,
    /// Chunks that are there, while it is open.
    chunks: BTreeMap<u32, Arc<Chunk>>,
    /// Who began or resumed it, each once, in the order of coming.
    senders: Vec<Sender>,
    contested: bool,
    touched_ms: u64,
    /// When a collection first saw it idle.
    idle_seen_ms: Option<u64>,
    /// What every commit of it is answered, once one was refused.
    refused: Option<Committed>,
}

impl Stages {
    /// The newest epoch.
    pub(super) fn latest(&self) -> Option<&Stage> {
        self.epochs.last()
    }

    fn get(&self, epoch: Epoch) -> Option<&Stage> {
        self.epochs.get(usize::try_from(epoch.0.checked_sub(1)?).ok()?)
    }

    fn get_mut(&mut self, epoch: Epoch) -> Option<&mut Stage> {
        self.epochs.get_mut(usize::try_from(epoch.0.checked_sub(1)?).ok()?)
    }

    /// What is wrong with it, given how many revisions the push has.
    pub(super) fn contradiction(&self, revisions: usize) -> Option<String> {
        let (last, before) = self.epochs.split_last()?;
        if before.iter().any(|stage| stage.fate == Fate::Open) {
            return Some("an epoch is open before the last".to_owned());
        }
        let no_revision = |stage: &Stage| matches!(stage.fate, Fate::Committed { revision } if revision == 0 || revision as usize > revisions);
        let at = self.epochs.iter().position(no_revision);
        let kept = before.iter().chain([last]).any(|stage| stage.fate != Fate::Open && !stage.chunks.is_empty());
        at.map(|at| format!("epoch {} is committed as a revision that is not there", at + 1))
            .or_else(|| kept.then(|| "an epoch that ended keeps chunks".to_owned()))
    }
}

impl Stage {
    /// As the decisions look at it.
    fn known(&self, epoch: Epoch, now: &Now, idle_ms: u64) -> KnownEpoch {
        KnownEpoch {
            epoch,
            fate: self.fate,
            manifest: self.digest,
            content: self.manifest.content.content,
            chunks: self.manifest.chunks.len() as u32,
            present: self.chunks.keys().copied().collect(),
            ordinal: self.ordinal(),
            executors: self.executors(),
            contested: self.contested,
            idle: self.idle_for(now) >= idle_ms,
        }
    }

    /// For how long nothing came. A clock that goes back says nothing of it.
    fn idle_for(&self, now: &Now) -> u64 {
        now.ms.saturating_sub(self.touched_ms)
    }

    fn ordinal(&self) -> Option<Ordinal> {
        self.senders.iter().filter_map(|sender| sender.ordinal).max()
    }

    fn executors(&self) -> Vec<(Option<Ordinal>, Executor)> {
        let mut pairs = Vec::new();
        for sender in &self.senders {
            let pair = sender.executor.clone().map(|executor| (sender.ordinal, executor));
            pairs.extend(pair.filter(|pair| !pairs.contains(pair)));
        }
        pairs
    }

    /// Who stands for it in the log and in its revision: of those at its highest attempt the first.
    fn sender(&self) -> Sender {
        let ordinal = self.ordinal();
        self.senders.iter().find(|sender| sender.ordinal == ordinal).cloned().unwrap_or_default()
    }

    fn touch(&mut self, now: &Now) {
        self.touched_ms = now.ms;
        self.idle_seen_ms = None;
    }

    /// Its fate is final, so its chunks are needed no more.
    fn end(&mut self, fate: Fate) {
        self.fate = fate;
        self.chunks.clear();
    }
}

/// One epoch of a push as the decisions look at it.
fn known(world: &World, key: &Key, epoch: Epoch, now: &Now) -> Option<KnownEpoch> {
    let stage = world.stages.get(key)?.get(epoch)?;
    Some(KnownEpoch { idle: staging::is_idle(stage.idle_for(now)), ..stage.known(epoch, now, u64::MAX) })
}

/// The newest epoch of a push, and the one that a client is bound to.
fn beside(
    world: &World,
    key: &Key,
    incarnation: Option<Incarnation>,
    now: &Now,
) -> (Option<KnownEpoch>, Option<(Epoch, Fate)>) {
    let Some(stages) = world.stages.get(key) else { return (None, None) };
    let latest = known(world, key, Epoch(stages.epochs.len() as u64), now);
    let bound = incarnation.and_then(|i| stages.bound.get(&i.0)).copied();
    (latest, bound.and_then(|epoch| Some((epoch, stages.get(epoch)?.fate))))
}

/// Ends an epoch.
fn end(world: &mut World, key: &Key, epoch: Epoch, fate: Fate) {
    if let Some(stage) = world.stages.get_mut(key).and_then(|stages| stages.get_mut(epoch)) {
        stage.end(fate);
        world.open.remove(key);
    }
}

/// Makes who staged an epoch known as accepted under its key.
fn accept_senders(world: &mut World, key: &Key, epoch: Epoch) {
    let Some(stage) = world.stages.get(key).and_then(|stages| stages.get(epoch)) else { return };
    let (senders, contested) = (stage.senders.clone(), stage.contested);
    if let Some(recording) = world.recording_mut(key) {
        recording.contested |= contested;
        for sender in &senders {
            if protocol::may_accept(sender, recording.executors(), recording.contested) {
                recording.accept(sender);
            }
        }
    }
}

/// Asks what a push in one request comes to beside what is staged.
pub(super) fn one_shot(world: &World, key: &Key, push: &Push, now: &Now) -> OneShotDecision {
    let (latest, bound) = beside(world, key, push.sender.incarnation, now);
    let content = push.content.content;
    // It has no manifest of its own; that of no manifest is equal to it.
    let fields = differing_fields(world, key, &push.offer());
    let offer = Begin { manifest: content, content, sender: push.sender.clone(), fields };
    staging::one_shot(&offer, latest.as_ref(), bound)
}

/// The fields in which an offer's place differs from that of the open epoch; one that has ended claims nothing.
fn differing_fields(world: &World, key: &Key, offer: &Offer<'_>) -> Vec<FieldDifference> {
    let open = world.stages.get(key).and_then(|stages| stages.epochs.last()).filter(|stage| stage.fate == Fate::Open);
    let Some(Stage { manifest, .. }) = open else { return Vec::new() };
    protocol::differing_fields(offer, &manifest.place, manifest.origin.commit.as_ref())
}

/// A push in one request was recorded as `revision`, and ends an epoch.
pub(super) fn ended_by(world: &mut World, key: &Key, (epoch, ending): (Epoch, Ending), revision: u32) {
    match ending {
        Ending::Committed => {
            accept_senders(world, key, epoch);
            end(world, key, epoch, Fate::Committed { revision });
        }
        Ending::Superseded => end(world, key, epoch, Fate::Superseded),
    }
}
