//! The ledger of the memory engine, compared row by row. Must not know what an intent writes.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::intent::{Intent, IntentId, IntentState};
use domain::marker::WriteId;

use super::MemoryStore;
use crate::ledger::all_for;
use crate::{Advanced, IntentQuery, Ledger, StoreError};

/// Everything that forwarders keep.
#[derive(Default)]
pub(super) struct Kept {
    /// The highest turn of each target.
    turns: BTreeMap<String, u64>,
    /// In the order of coming.
    intents: Vec<Intent>,
    /// Where each of them is.
    places: BTreeMap<IntentId, usize>,
    cycles: BTreeMap<(String, WriteId), String>,
}

impl Kept {
    fn counts(&self, target: &str, turn: u64) -> bool {
        self.turns.get(target) == Some(&turn)
    }

    fn plan(&mut self, intent: Intent) -> Intent {
        let place = *self.places.entry(intent.id).or_insert(self.intents.len());
        if place == self.intents.len() {
            self.intents.push(intent);
        }
        self.intents[place].clone()
    }

    fn advance(&mut self, turn: u64, from: IntentState, intent: Intent) -> Advanced {
        if !self.counts(&intent.target, turn) {
            return Advanced::Fenced;
        }
        let place = self.places.get(&intent.id).copied();
        let kept = place.and_then(|place| self.intents.get_mut(place)).filter(|kept| kept.target == intent.target);
        let Some(kept) = kept else { return Advanced::Unplanned };
        if kept.state != from {
            return Advanced::Elsewhere(kept.state);
        }
        let Intent { state, sends, changed_ms, sent_ms, cycle_there, flags, cause, refused, .. } = intent;
        *kept = Intent { state, sends, changed_ms, sent_ms, cycle_there, flags, cause, refused, ..kept.clone() };
        Advanced::Done
    }

    fn intents(&self, query: &IntentQuery) -> Vec<Intent> {
        let wanted = |intent: &&Intent| {
            query.target.as_ref().is_none_or(|target| *target == intent.target)
                && (query.states.is_empty() || query.states.contains(&intent.state))
                && query.project.as_ref().is_none_or(|project| *project == intent.project)
                && query.cycle.as_ref().is_none_or(|cycle| *cycle == intent.cycle)
                && query.changed_before_ms.is_none_or(|ms| intent.changed_ms < ms)
        };
        let mut found: Vec<Intent> = self.intents.iter().filter(wanted).cloned().collect();
        found.sort_by_key(|intent| (intent.planned_ms, intent.number));
        found.truncate(query.limit.unwrap_or(usize::MAX));
        found
    }
}

#[async_trait]
impl Ledger for MemoryStore {
    async fn next_turn(&self, target: &str) -> Result<u64, StoreError> {
        let mut world = self.world();
        let turn = world.ledger.turns.entry(target.to_owned()).or_default();
        *turn += 1;
        Ok(*turn)
    }

    async fn plan_intents(
        &self,
        target: &str,
        turn: u64,
        intents: Vec<Intent>,
    ) -> Result<Option<Vec<Intent>>, StoreError> {
        all_for(target, &intents)?;
        let ledger = &mut self.world().ledger;
        if !ledger.counts(target, turn) {
            return Ok(None);
        }
        Ok(Some(intents.into_iter().map(|intent| ledger.plan(intent)).collect()))
    }

    async fn intents(&self, query: IntentQuery) -> Result<Vec<Intent>, StoreError> {
        Ok(self.world().ledger.intents(&query))
    }

    async fn advance_intent(&self, turn: u64, from: IntentState, intent: Intent) -> Result<Advanced, StoreError> {
        Ok(self.world().ledger.advance(turn, from, intent))
    }

    async fn cycle_there(&self, target: &str, id: WriteId) -> Result<Option<String>, StoreError> {
        Ok(self.world().ledger.cycles.get(&(target.to_owned(), id)).cloned())
    }

    async fn keep_cycle_there(
        &self,
        target: &str,
        turn: u64,
        id: WriteId,
        cycle: Option<String>,
    ) -> Result<bool, StoreError> {
        let ledger = &mut self.world().ledger;
        if !ledger.counts(target, turn) {
            return Ok(false);
        }
        let at = (target.to_owned(), id);
        match cycle {
            Some(cycle) => ledger.cycles.insert(at, cycle),
            None => ledger.cycles.remove(&at),
        };
        Ok(true)
    }
}
