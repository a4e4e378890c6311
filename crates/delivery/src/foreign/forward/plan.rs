//! From a load to intents: cases, entries, and pieces as large as one call takes. The same load always becomes the same
//! intents. Must not send an outcome.

use std::collections::BTreeSet;

use domain::intent::{Intent, IntentId, IntentState, RefusedItem};

use super::{Forwarder, Halt, Load};
use crate::clock::Clock;
use crate::foreign::entry::{CaseId, CaseWanted, CycleId, Entry};
use crate::foreign::mapping::{Fold, fold};
use crate::foreign::settings::TargetName;

impl Forwarder<'_> {
    /// The entries of a load; items without a case go to `unmatched`.
    pub(super) async fn entries(&mut self, load: &Load, unmatched: &mut Vec<RefusedItem>) -> Result<Vec<Entry>, Halt> {
        let (adapter, mapping) = (self.adapter, self.mapping);
        let wanted: Vec<CaseWanted<'_>> = load
            .outcomes
            .iter()
            .map(|outcome| CaseWanted {
                item: &outcome.item,
                external_ids: &outcome.external_ids,
                mapped: mapping.get(&outcome.item.to_string()),
            })
            .collect();
        let choices = self.making(|| adapter.cases(&wanted)).await?;
        let mut pairs = Vec::new();
        for (outcome, choice) in load.outcomes.iter().zip(choices) {
            let (cases, left_out) = choice.into_parts();
            pairs.extend(cases.into_iter().map(|case| (outcome.clone(), case)));
            let refused = |why| RefusedItem::new(outcome.item.to_string(), why);
            unmatched.extend(left_out.into_iter().map(refused));
        }
        let push = Fold { project: &load.project, key: &load.key, ordinal: load.ordinal, at_ms: load.at_ms };
        Ok(fold(push, pairs))
    }

    /// Those whose cases can be written in the cycle; the others' items go to `unmatched`.
    pub(super) async fn writable(
        &mut self,
        cycle: &CycleId,
        entries: Vec<Entry>,
        unmatched: &mut Vec<RefusedItem>,
    ) -> Result<Vec<Entry>, Halt> {
        let adapter = self.adapter;
        let cases: Vec<CaseId> = entries.iter().map(|entry| entry.case.clone()).collect();
        let left_out = self.making(|| adapter.add_cases(cycle, &cases)).await?;
        Ok(without(entries, &left_out, unmatched))
    }
}

/// Entries without the cases that can't be written.
fn without(entries: Vec<Entry>, left_out: &[(CaseId, String)], unmatched: &mut Vec<RefusedItem>) -> Vec<Entry> {
    let out: BTreeSet<&CaseId> = left_out.iter().map(|(case, _)| case).collect();
    let (kept, gone): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| !out.contains(&entry.case));
    for entry in gone {
        let why = left_out.iter().find(|(case, _)| *case == entry.case).map_or("", |(_, why)| why);
        unmatched.extend(refused(&entry, why));
    }
    kept
}

/// Every item of an entry, refused for one reason.
pub(super) fn refused(entry: &Entry, why: &str) -> Vec<RefusedItem> {
    entry.items.iter().map(|item| RefusedItem::for_case(item.to_string(), entry.case.as_str(), why)).collect()
}

/// Intents of at most so many entries each, in the order of their cases.
pub(super) fn intents(
    target: &TargetName,
    load: &Load,
    cycle: &CycleId,
    entries: &[Entry],
    items_max: usize,
    clock: &dyn Clock,
) -> Vec<Intent> {
    let now_ms = clock.unix_ms();
    let pieces = entries.chunks(items_max.max(1)).enumerate();
    pieces
        .map(|(number, entries)| Intent {
            id: id(target, cycle, entries),
            target: target.to_string(),
            project: load.project.clone(),
            cycle: load.cycle.clone(),
            round: load.round.clone(),
            key: load.key.clone(),
            number: number as u32,
            cases: entries.len() as u32,
            state: IntentState::Planned,
            sends: 0,
            planned_ms: now_ms,
            changed_ms: now_ms,
            sent_ms: None,
            seen_ms: None,
            cycle_there: Some(cycle.to_string()),
            flags: BTreeSet::new(),
            cause: None,
            refused: Vec::new(),
            // Our own types have string keys only, so this cannot fail.
            body: serde_json::to_vec(entries).unwrap_or_default(),
        })
        .collect()
}

/// Over all that is to be written, and not over times and texts: planning a repeat finds what was planned before.
pub(super) fn id(target: &TargetName, cycle: &CycleId, entries: &[Entry]) -> IntentId {
    let markers: Vec<String> = entries.iter().map(|entry| entry.marker.to_string()).collect();
    id_of(target, cycle.as_str(), &markers)
}

pub(super) fn id_of(target: &TargetName, place: &str, parts: &[String]) -> IntentId {
    let mut hasher = blake3::Hasher::new_derive_key("tallyonce 2026 intent");
    for part in [target.as_str(), place].into_iter().chain(parts.iter().map(String::as_str)) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    IntentId(u128::from_be_bytes(bytes))
}
