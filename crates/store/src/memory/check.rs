//! Contradictions in the memory engine: it derives everything, so little can contradict.

use domain::Receipt;
use domain::verdict::RevisionKind;

use super::model::{Recording, World};
use crate::Damage;

/// Checks everything.
pub(super) fn check(world: &World) -> Vec<Damage> {
    let mut found = Vec::new();
    for (name, project) in &world.projects {
        for (uid, push) in &project.pushes {
            let place = format!("project {name} push {uid}");
            let mut damage = |kind: &'static str, what: String| {
                found.push(Damage { kind, place: place.clone(), what });
            };
            if project.tombstones.contains(uid) {
                damage("tombstone-with-push", "a deleted key still has a push".to_owned());
            }
            let rounds = project.cycles.get(&push.place.cycle);
            if rounds.is_none_or(|rounds| !rounds.contains_key(&push.place.round)) {
                damage("orphan-push", format!("its round {} is missing", push.place.round));
            }
            check_push(push, &mut damage);
        }
    }
    for row in world.forwards.open() {
        let recording = world.recording(&(row.project.clone(), row.push));
        if recording.is_none_or(|recording| recording.revisions.len() < row.revision as usize) {
            let what = format!("its push, as of revision {}, is missing", row.revision);
            found.push(Damage { kind: "orphan-waiting", place: format!("waiting {}", row.id), what });
        }
    }
    for (key, stages) in &world.stages {
        let revisions = world.recording(key).map_or(0, |recording| recording.revisions.len());
        if let Some(what) = stages.contradiction(revisions) {
            found.push(Damage { kind: "stage-differs", place: format!("project {} push {}", key.0, key.1), what });
        }
    }
    found
}

fn check_push(push: &Recording, damage: &mut impl FnMut(&'static str, String)) {
    for (at, revision) in push.revisions.iter().enumerate() {
        let number = revision.known.number;
        if number as usize != at + 1 || (number == 1) != (revision.known.kind == RevisionKind::First) {
            damage("revision-gap", format!("revision {number} stands at place {}", at + 1));
        }
        let outcomes = &revision.push.outcomes;
        let made = outcomes.digests();
        if (made.content, made.outcomes) != (revision.known.content, revision.known.outcomes) {
            damage("digest-differs", format!("the content of revision {number} has another digest"));
        }
        if !outcomes.hashes().is_sorted_by(|a, b| a < b) {
            damage("double-item", format!("items of revision {number} are not strictly rising"));
        }
        match serde_json::from_slice::<Receipt>(&revision.receipt) {
            Err(error) => damage("receipt-unreadable", format!("revision {number}: {error}")),
            Ok(receipt) => {
                if receipt.counts != push.view(at + 1).counts() || receipt.revision != number {
                    damage("receipt-differs", format!("the receipt of revision {number} says otherwise"));
                }
            }
        }
    }
    for (entry, _) in &push.log {
        if entry.revision.is_some_and(|revision| revision == 0 || revision as usize > push.revisions.len()) {
            damage("delivery-without-revision", format!("a delivery names revision {:?}", entry.revision));
        }
    }
}
