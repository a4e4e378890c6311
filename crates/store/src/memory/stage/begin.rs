//! Begins of staged pushes in the memory engine. Must not decide.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::protocol::{Decision, DifferenceClass};
use domain::push::ContentId;
use domain::staging::{Begin, BeginDecision, Fate};
use domain::{Epoch, Manifest, Outcomes, Push, Sender, staging};

use super::{Stage, beside, differing_fields, end};
use crate::memory::carry::{broken, carry_out, key_of, refuse, replay};
use crate::memory::model::{Key, World};
use crate::memory::record::decided;
use crate::{Begun, Fence, Now, Recorded, RecordedAt, Staging, StoreError};

/// The push that a manifest announces, with the outcomes that are there of it.
pub(super) fn announced(manifest: &Manifest, sender: Sender, outcomes: Outcomes) -> Push {
    Push {
        key: manifest.key.clone(),
        place: manifest.place.clone(),
        origin: manifest.origin.clone(),
        sender,
        on_difference: manifest.on_difference,
        outside_ci: manifest.outside_ci,
        expect: manifest.expect,
        files: manifest.files.clone(),
        report: manifest.report,
        incomplete: manifest.incomplete,
        outcomes,
        // No body came whole.
        content: ContentId { body: None, ..manifest.content },
    }
}

/// Begins or resumes.
pub(in crate::memory) fn begin(world: &mut World, manifest: &Arc<Manifest>, now: &Now) -> Result<Begun, StoreError> {
    let push = Arc::new(announced(manifest, manifest.sender.clone(), Outcomes::default()));
    let key = key_of(&push);
    let items = manifest.items.as_ref().map(|items| (items.hashes.as_slice(), items.lights.as_slice()));
    let difference = match decided(world, &key, &manifest.offer(), items) {
        Decision::Overlay { difference, .. } => Some(difference.class),
        Decision::Record | Decision::Undecided => None,
        settled => return carry_out(world, &push, now, settled).map(begun),
    };
    let offer = Begin {
        manifest: manifest.digest(),
        content: manifest.content.content,
        sender: manifest.sender.clone(),
        fields: differing_fields(world, &key, &manifest.offer()),
    };
    let (latest, bound) = beside(world, &key, manifest.sender.incarnation, now);
    let (epoch, resumed) = match staging::begin(&offer, latest.as_ref(), bound) {
        BeginDecision::Open { epoch, supersedes } => {
            if let Some(old) = supersedes {
                end(world, &key, old, Fate::Superseded);
            }
            open(world, &key, manifest, &offer);
            // Legs that share the key are no fewer because one of them begins anew.
            contest(world, &key, supersedes.is_some() && latest.is_some_and(|latest| latest.contested));
            (epoch, false)
        }
        BeginDecision::Resume { epoch, .. } => (epoch, true),
        other => return held(world, &push, &now.at, other).map(begun),
    };
    Ok(Begun::Staging(admit(world, &key, &offer.sender, (epoch, resumed, difference), now)?))
}

fn begun(recorded: Recorded) -> Begun {
    match recorded {
        Recorded::Accepted(answer) => Begun::Replayed(answer),
        Recorded::Refused(refused) => Begun::Refused(refused),
        Recorded::Fenced(fence) => Begun::Fenced(fence),
    }
}

fn open(world: &mut World, key: &Key, manifest: &Arc<Manifest>, offer: &Begin) {
    let stage = Stage {
        manifest: Arc::clone(manifest),
        digest: offer.manifest,
        fate: Fate::Open,
        chunks: BTreeMap::new(),
        senders: Vec::new(),
        contested: false,
        touched_ms: 0,
        idle_seen_ms: None,
        refused: None,
    };
    world.stages.entry(key.clone()).or_default().epochs.push(stage);
    world.open.insert(key.clone());
}

/// Two legs share the key, as far as anybody knows.
fn contest(world: &mut World, key: &Key, contested: bool) {
    if let Some(stage) = world.stages.get_mut(key).and_then(|stages| stages.epochs.last_mut()) {
        stage.contested |= contested;
    }
}

/// Lets a client stage in an open epoch.
fn admit(
    world: &mut World,
    key: &Key,
    sender: &Sender,
    (epoch, resumed, difference): (Epoch, bool, Option<DifferenceClass>),
    now: &Now,
) -> Result<Staging, StoreError> {
    let recorded = world.stored(key);
    let stages = world.stages.get_mut(key).ok_or_else(|| broken("nothing is staged"))?;
    if let Some(incarnation) = sender.incarnation {
        stages.bound.entry(incarnation.0).or_insert(epoch);
    }
    let stage = stages.get_mut(epoch).ok_or_else(|| broken("an epoch is missing"))?;
    if !stage.senders.contains(sender) {
        stage.senders.push(sender.clone());
    }
    stage.touch(now);
    let known = stage.known(epoch, now, u64::MAX);
    Ok(Staging { epoch, resumed, chunks: known.chunks, missing: known.missing(), difference, recorded })
}

/// What a delivery comes to that may not stage or record beside what is staged.
pub(in crate::memory) fn held(
    world: &mut World,
    push: &Push,
    at: &RecordedAt,
    decision: BeginDecision,
) -> Result<Recorded, StoreError> {
    let key = key_of(push);
    match decision {
        BeginDecision::InProgress { epoch } => Ok(Recorded::Fenced(Fence::InProgress { epoch })),
        BeginDecision::Stale { epoch } => Ok(Recorded::Fenced(Fence::Stale { epoch })),
        BeginDecision::Superseded { bound } => {
            Ok(Recorded::Fenced(Fence::Superseded { epoch: bound, recorded: world.stored(&key) }))
        }
        BeginDecision::Collides(refusal) => {
            contest(world, &key, true);
            Ok(Recorded::Refused(refuse(world, push, at, (refusal, false))))
        }
        BeginDecision::Reused(refusal) => Ok(Recorded::Refused(refuse(world, push, at, (refusal, false)))),
        BeginDecision::Replay { revision } => {
            let known = world.recording(&key).and_then(|r| r.revisions.get(revision as usize - 1)).map(|r| &r.known);
            let class = known.map_or(DifferenceClass::Structural, |known| known.class_of(&push.content));
            replay(world, push, at, (revision, class, Vec::new())).map(Recorded::Accepted)
        }
        BeginDecision::Open { .. } | BeginDecision::Resume { .. } => Err(broken("an admitted delivery was held")),
    }
}
