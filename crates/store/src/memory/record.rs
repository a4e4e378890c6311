//! Deliveries in the memory engine: what is known is looked up, `domain` is asked, and `carry` does it.

use std::convert::Infallible;
use std::sync::Arc;

use domain::protocol::{Decision, Offer, Recorded as Lookup, decide};
use domain::staging::OneShotDecision;
use domain::verdict::Light;
use domain::{Comparison, ItemHash, Place, Push};

use super::carry::{Content, carry_out, key_of};
use super::model::{Key, Project, Recording, World};
use super::stage;
use crate::{Now, Recorded, StoreError};

/// Items offered and their verdicts.
pub(super) type Items<'a> = (&'a [ItemHash], &'a [Light]);

struct Lookups<'a> {
    project: Option<&'a Project>,
    recording: Option<&'a Recording>,
    place: &'a Place,
    /// `None` while they are still to come.
    offered: Option<Items<'a>>,
}

impl Lookups<'_> {
    fn in_round(&self) -> Vec<&Recording> {
        self.project.map(|p| p.pushes_of(&self.place.cycle, &self.place.round)).unwrap_or_default()
    }
}

impl Lookup for Lookups<'_> {
    type Error = Infallible;

    fn compare(&mut self) -> Result<Option<Comparison>, Infallible> {
        let before = self.recording.map(Recording::current).unwrap_or_default();
        Ok(self.offered.map(|(hashes, lights)| Comparison::of(&before, hashes, lights)))
    }

    fn known_in_job(&mut self) -> Result<u64, Infallible> {
        let pushes: Vec<&Recording> = self.in_round().into_iter().filter(|p| p.place.job == self.place.job).collect();
        let holds = |push: &Recording, item: &ItemHash| {
            push.revisions.iter().any(|r| r.push.outcomes.hashes().binary_search(item).is_ok())
        };
        let offered = self.offered.map(|(hashes, _)| hashes).unwrap_or_default();
        Ok(offered.iter().filter(|item| pushes.iter().any(|push| holds(push, item))).count() as u64)
    }

    fn shard_total(&mut self) -> Result<Option<u32>, Infallible> {
        let place = self.place;
        let same = |push: &&Recording| push.place.job == place.job && push.place.variant == place.variant;
        Ok(self.in_round().into_iter().filter(same).find_map(|push| push.place.shard.and_then(domain::ShardRef::total)))
    }
}

/// Asks what a delivery comes to.
pub(super) fn decided(world: &World, key: &Key, offer: &Offer<'_>, offered: Option<Items<'_>>) -> Decision {
    let project = world.projects.get(&key.0);
    let recording = world.recording(key);
    let known = recording.map(|r| r.known(offer.content.body));
    let mut lookups = Lookups { project, recording, place: offer.place, offered };
    let Ok(decision) = decide(offer, known.as_ref(), world.is_tombstoned(key), &mut lookups);
    decision
}

/// As [`decided`], with all outcomes at hand.
pub(super) fn decided_whole(world: &World, key: &Key, push: &Push) -> Decision {
    let content = Content::of(push);
    decided(world, key, &push.offer(), Some((content.hashes, &content.lights)))
}

/// Runs one push in one request.
pub(super) fn record(world: &mut World, push: &Arc<Push>, now: &Now) -> Result<Recorded, StoreError> {
    let key = key_of(push);
    let decision = decided_whole(world, &key, push);
    if !matches!(decision, Decision::Record | Decision::Overlay { .. }) {
        return carry_out(world, push, now, decision);
    }
    match stage::one_shot(world, &key, push, now) {
        OneShotDecision::Record { ends } => {
            let recorded = carry_out(world, push, now, decision)?;
            if let (Some((epoch, ending)), Recorded::Accepted(answer)) = (ends, &recorded) {
                stage::ended_by(world, &key, (epoch, ending), answer.revision);
            }
            Ok(recorded)
        }
        OneShotDecision::Wait(wait) => stage::held(world, push, &now.at, wait),
    }
}
