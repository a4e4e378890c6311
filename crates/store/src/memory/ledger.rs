//! The ledger of the memory engine, compared row by row. Must not know what an intent writes.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::forwarding::{Lease, TargetPlace, due_sweep};
use domain::intent::{Intent, IntentId, IntentState};
use domain::listing::IntentReport;
use domain::marker::WriteId;

use super::MemoryStore;
use crate::ledger::all_for;
use crate::{Advanced, DueSweep, IntentQuery, Ledger, StoreError};

/// Everything that forwarders keep.
#[derive(Default)]
pub(super) struct Kept {
    /// The highest turn of each target, and who has it.
    pub(super) leases: BTreeMap<String, Lease>,
    /// In the order of coming.
    intents: Vec<Intent>,
    /// Where each of them is.
    places: BTreeMap<IntentId, usize>,
    /// Of each of them, when its state changed last, and how often it was swept since.
    sweeps: BTreeMap<IntentId, (u64, u32)>,
    cycles: BTreeMap<(String, WriteId), String>,
    /// Which place each target's ledger stands for.
    pub(super) places_there: BTreeMap<String, TargetPlace>,
}

impl Kept {
    pub(super) fn counts(&self, target: &str, turn: u64) -> bool {
        self.leases.get(target).is_some_and(|lease| lease.turn == turn)
    }

    fn plan(&mut self, intent: Intent) -> Intent {
        let place = *self.places.entry(intent.id).or_insert(self.intents.len());
        if place == self.intents.len() {
            self.sweeps.insert(intent.id, (intent.changed_ms, 0));
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
        if intent.state != from {
            self.sweeps.insert(intent.id, (intent.changed_ms, 0));
        }
        let Intent { id, target, project, cycle, round, key, number, cases, body, .. } = kept.clone();
        *kept = Intent { id, target, project, cycle, round, key, number, cases, body, ..intent };
        Advanced::Done
    }

    pub(super) fn due_sweeps(&self, target: &str, now_ms: u64, without: &[String], limit: usize) -> Vec<DueSweep> {
        let due = |intent: &Intent| {
            let may_have_come = intent.state != IntentState::Rejected || intent.sends > 1;
            let cycle = intent.cycle_there.as_deref().unwrap_or_default();
            if !may_have_come || without.iter().any(|other| other == cycle) {
                return None;
            }
            let (settled_ms, swept) = *self.sweeps.get(&intent.id)?;
            let number = due_sweep(settled_ms, swept, now_ms)?;
            Some((settled_ms, DueSweep { id: intent.id, cycle_there: intent.cycle_there.clone(), number }))
        };
        let states = vec![IntentState::Acked, IntentState::Found, IntentState::Parked, IntentState::Rejected];
        let query = IntentQuery { target: Some(target.to_owned()), states, ..IntentQuery::default() };
        let mut found: Vec<(u64, DueSweep)> = self.wanted(&query).filter_map(due).collect();
        found.sort_by_key(|(settled_ms, _)| *settled_ms);
        found.into_iter().map(|(_, due)| due).take(limit).collect()
    }

    pub(super) fn swept(&mut self, target: &str, ids: &[IntentId], number: u32) {
        let of_target = |id: &&IntentId| self.places.get(id).is_some_and(|at| self.intents[*at].target == target);
        for id in ids.iter().filter(of_target) {
            if let Some((_, swept)) = self.sweeps.get_mut(id) {
                *swept = number;
            }
        }
    }

    /// All of them, in the order of coming.
    pub(super) fn all(&self) -> &[Intent] {
        &self.intents
    }

    fn intents(&self, query: &IntentQuery) -> Vec<Intent> {
        let mut found: Vec<Intent> = self.wanted(query).cloned().collect();
        found.sort_by_key(|intent| (intent.planned_ms, intent.number));
        found.truncate(query.limit.unwrap_or(usize::MAX));
        found
    }

    pub(super) fn reports(&self, query: &IntentQuery) -> Vec<IntentReport> {
        self.intents(query).into_iter().map(IntentReport::from).collect()
    }

    /// Those that a query wants, but for its limit, in the order of coming.
    fn wanted<'a>(&'a self, query: &'a IntentQuery) -> impl Iterator<Item = &'a Intent> {
        self.intents.iter().filter(|intent| {
            query.target.as_ref().is_none_or(|target| *target == intent.target)
                && (query.ids.is_empty() || query.ids.contains(&intent.id))
                && query.in_doubt.is_none_or(|in_doubt| in_doubt == intent.is_in_doubt())
                && (query.states.is_empty() || query.states.contains(&intent.state))
                && query.project.as_ref().is_none_or(|project| *project == intent.project)
                && query.cycle.as_ref().is_none_or(|cycle| *cycle == intent.cycle)
                && query.key.as_ref().is_none_or(|key| *key == intent.key)
                && query.cycle_there.as_ref().is_none_or(|cycle| intent.cycle_there.as_ref() == Some(cycle))
                && query.changed_before_ms.is_none_or(|ms| intent.changed_ms < ms)
        })
    }
}

#[async_trait]
impl Ledger for MemoryStore {
    async fn next_turn(&self, target: &str) -> Result<u64, StoreError> {
        let mut world = self.world();
        let lease = world.ledger.leases.entry(target.to_owned()).or_default();
        *lease = Lease { turn: lease.turn + 1, held: None };
        Ok(lease.turn)
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

    async fn intent_reports(&self, query: IntentQuery) -> Result<Vec<IntentReport>, StoreError> {
        Ok(self.world().ledger.reports(&query))
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
