//! What waits to be forwarded, in the memory engine: every question walks all of it. Must not know what is forwarded.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::forwarding::{ForwardRule, Held, Lease, Taking, targets};
use domain::intent::{Flag, IntentId, IntentState};
use domain::{Place, ProjectId, PushId, PushKey};

use super::MemoryStore;
use super::items::outcomes;
use super::model::{Key, World};
use super::read::recording;
use crate::{
    Absent, DueSweep, Ended, ForwardTotals, Forwards, ForwardsOf, Found, PushLoad, StoreError, Waiting, WaitingQuery,
};

/// Rules, and all that waits or has waited.
#[derive(Default)]
pub(super) struct Kept {
    rules: Vec<ForwardRule>,
    /// In the order of coming.
    rows: Vec<Waiting>,
}

impl Kept {
    /// What counts of a push has changed: it waits for every target that a rule sends it to.
    pub(super) fn wait(&mut self, (place, key): (&Place, &PushKey), revision: u32, since_ms: u64) {
        for target in targets(&self.rules, place) {
            self.rows.push(Waiting {
                id: self.rows.len() as u64 + 1,
                target: target.to_owned(),
                project: place.project.clone(),
                cycle: place.cycle.clone(),
                round: place.round.clone(),
                push: PushId::of(&place.project, key),
                key: key.clone(),
                revision,
                since_ms,
                due_ms: 0,
                tries: 0,
                cause: None,
                ended: None,
            });
        }
    }

    /// The push is deleted.
    pub(super) fn drop_push(&mut self, (project, push): &Key) {
        for row in self.rows.iter_mut().filter(|row| row.project == *project && row.push == *push) {
            row.ended.get_or_insert_with(Ended::dropped);
        }
    }

    /// All that waits.
    pub(super) fn open(&self) -> impl Iterator<Item = &Waiting> {
        self.rows.iter().filter(|row| row.ended.is_none())
    }

    fn end(&mut self, waiting: &Waiting, ended: &Ended) {
        let same = |row: &&mut Waiting| {
            row.target == waiting.target && row.project == waiting.project && row.push == waiting.push
        };
        for row in self.rows.iter_mut().filter(same) {
            if row.revision <= ended.revision || row.id == waiting.id {
                row.ended.get_or_insert_with(|| ended.clone());
            }
        }
    }

    fn wanted(&self, query: &WaitingQuery) -> Vec<Waiting> {
        let wanted = |row: &&Waiting| {
            (query.ended || row.ended.is_none())
                && query.target.as_ref().is_none_or(|target| *target == row.target)
                && query.project.as_ref().is_none_or(|project| *project == row.project)
                && query.cycle.as_ref().is_none_or(|cycle| *cycle == row.cycle)
                && query.push.is_none_or(|push| push == row.push)
        };
        self.rows.iter().filter(wanted).take(query.limit.unwrap_or(usize::MAX)).cloned().collect()
    }
}

fn push_load(world: &World, project: &ProjectId, push: PushId) -> Result<PushLoad, Absent> {
    let of = recording(world, project, push)?;
    let place = &of.place;
    let rounds = world.projects.get(project).and_then(|project| project.cycles.get(&place.cycle));
    Ok(PushLoad {
        key: of.key.clone(),
        place: place.clone(),
        revision: of.revisions.len() as u32,
        ordinal: of.known(None).counting().and_then(|revision| revision.sender.ordinal),
        run_url: rounds.and_then(|rounds| rounds.get(&place.round)).and_then(|round| round.run_url.clone()),
        outcomes: outcomes(of).into_iter().map(domain::Outcome::for_forwarding).collect(),
    })
}

fn forwards_of(world: &World, project: &ProjectId, push: PushId) -> Result<ForwardsOf, Absent> {
    let query =
        WaitingQuery { project: Some(project.clone()), push: Some(push), ended: true, ..WaitingQuery::default() };
    let waiting = world.forwards.wanted(&query);
    let key = match recording(world, project, push) {
        Ok(recording) => recording.key.clone(),
        Err(absent) => waiting.first().map(|row| row.key.clone()).ok_or(absent)?,
    };
    let of_push = crate::IntentQuery { project: Some(project.clone()), ..crate::IntentQuery::default() };
    let mut intents = world.ledger.reports(&of_push);
    intents.retain(|intent| intent.key == key);
    Ok(ForwardsOf { key, waiting, intents })
}

fn totals(world: &World) -> BTreeMap<String, ForwardTotals> {
    let mut all: BTreeMap<String, ForwardTotals> = BTreeMap::new();
    let older = |oldest: &mut Option<u64>, ms: u64| *oldest = Some(oldest.map_or(ms, |oldest| oldest.min(ms)));
    for row in world.forwards.open() {
        let of = all.entry(row.target.clone()).or_default();
        of.waiting += 1;
        older(&mut of.oldest_ms, row.since_ms);
    }
    for intent in world.ledger.all() {
        let of = all.entry(intent.target.clone()).or_default();
        if intent.state != IntentState::Parked || intent.is_in_doubt() {
            *of.states.entry(intent.state).or_default() += 1;
        }
        for flag in Flag::said(intent.flags.iter()) {
            *of.flags.entry(flag).or_default() += 1;
        }
        if !intent.state.is_settled() {
            older(&mut of.oldest_ms, intent.planned_ms);
        }
    }
    all
}

#[async_trait]
impl Forwards for MemoryStore {
    fn set_forward_rules(&self, rules: Vec<ForwardRule>) {
        self.world().forwards.rules = rules;
    }

    async fn take_lease(
        &self,
        target: &str,
        holder: &str,
        now_ms: u64,
        until_ms: u64,
    ) -> Result<Option<u64>, StoreError> {
        let mut world = self.world();
        let lease = world.ledger.leases.entry(target.to_owned()).or_default();
        match lease.take(holder, now_ms, until_ms) {
            Taking::Granted(taken) => {
                *lease = taken;
                Ok(Some(lease.turn))
            }
            Taking::Shortened(shorter) => {
                *lease = shorter;
                Ok(None)
            }
            Taking::Refused => Ok(None),
        }
    }

    async fn keep_lease(&self, target: &str, turn: u64, until_ms: u64) -> Result<bool, StoreError> {
        let mut world = self.world();
        let lease = world.ledger.leases.get_mut(target).filter(|lease| lease.turn == turn);
        let held = lease.and_then(|lease| lease.held.as_mut());
        Ok(held.map(|held: &mut Held| held.until_ms = until_ms).is_some())
    }

    async fn end_lease(&self, target: &str, turn: u64) -> Result<(), StoreError> {
        let mut world = self.world();
        if let Some(lease) = world.ledger.leases.get_mut(target).filter(|lease: &&mut Lease| lease.turn == turn) {
            lease.held = None;
        }
        Ok(())
    }

    async fn next_waiting(&self, target: &str, now_ms: u64) -> Result<Option<Waiting>, StoreError> {
        Ok(self.world().forwards.open().find(|row| row.target == target && row.due_ms <= now_ms).cloned())
    }

    async fn put_off(&self, turn: u64, waiting: &Waiting, due_ms: u64, cause: &str) -> Result<bool, StoreError> {
        let mut world = self.world();
        if !world.ledger.counts(&waiting.target, turn) {
            return Ok(false);
        }
        let rows = &mut world.forwards.rows;
        if let Some(row) = rows.iter_mut().find(|row| row.id == waiting.id && row.ended.is_none()) {
            row.due_ms = due_ms;
            row.tries += 1;
            row.cause = Some(cause.to_owned());
        }
        Ok(true)
    }

    async fn end_waiting(&self, turn: u64, waiting: &Waiting, ended: Ended) -> Result<bool, StoreError> {
        let mut world = self.world();
        let counts = world.ledger.counts(&waiting.target, turn);
        if counts {
            world.forwards.end(waiting, &ended);
        }
        Ok(counts)
    }

    async fn waiting(&self, query: WaitingQuery) -> Result<Vec<Waiting>, StoreError> {
        Ok(self.world().forwards.wanted(&query))
    }

    async fn push_load(&self, project: &ProjectId, push: PushId) -> Found<PushLoad> {
        Ok(push_load(&self.world(), project, push))
    }

    async fn due_sweeps(
        &self,
        target: &str,
        now_ms: u64,
        without: &[String],
        limit: usize,
    ) -> Result<Vec<DueSweep>, StoreError> {
        Ok(self.world().ledger.due_sweeps(target, now_ms, without, limit))
    }

    async fn swept(&self, target: &str, turn: u64, ids: Vec<IntentId>, number: u32) -> Result<bool, StoreError> {
        let mut world = self.world();
        let counts = world.ledger.counts(target, turn);
        if counts {
            world.ledger.swept(target, &ids, number);
        }
        Ok(counts)
    }

    async fn forwards_of(&self, project: &ProjectId, push: PushId) -> Found<ForwardsOf> {
        Ok(forwards_of(&self.world(), project, push))
    }

    async fn forward_totals(&self) -> Result<BTreeMap<String, ForwardTotals>, StoreError> {
        Ok(totals(&self.world()))
    }
}
