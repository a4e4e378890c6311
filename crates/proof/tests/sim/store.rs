//! The store as a server reaches it: the memory engine behind awaits, so that operations interleave and can be cut
//! there, and with the failures of a database: refused, busy, unknown, or applied when nobody waits any more.
//! Must not decide: what is written is the engine's.

mod places;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use domain::forwarding::ForwardRule;
use domain::intent::{Intent, IntentId, IntentState};
use domain::listing::{
    CycleReport, CycleSummary, DifferenceReport, HistoryEntry, IntentReport, ItemPage, ItemQuery, PushReport,
    UnseenItem,
};
use domain::marker::WriteId;
use domain::round::RoundChoice;
use domain::{CycleName, ItemHash, Manifest, ProjectId, Push, PushId};
use futures_util::future::BoxFuture;
use store::{
    Advanced, Begun, Cancelled, Chunk, Collected, Committed, Damage, DueSweep, Ended, EpochOf, ForwardTotals, Forwards,
    ForwardsOf, Found, IntentQuery, Ledger, Lifetime, MemoryStore, Now, Promoted, Promotion, PushLoad, Put, Recorded,
    RoundAction, StagingReport, Store, StoreError, Waiting, WaitingQuery,
};

use crate::faults::{Class, Kind, OnStore, Point};
use crate::sim::{Sim, note, sleep};

/// How long a busy store is waited for, in milliseconds.
const BUSY_MS: u64 = 5_000;

/// The store of one server process.
pub(crate) struct SimStore {
    sim: Arc<Sim>,
    /// Which server it belongs to: a dead one writes nothing.
    generation: u64,
}

impl OnStore {
    /// As what it is counted.
    pub(crate) fn class(self) -> Class {
        match self {
            OnStore::NotWritten => Class::StoreNotWritten,
            OnStore::Busy => Class::StoreBusy,
            OnStore::WrittenUnknown | OnStore::LostUnknown => Class::StoreUnknown,
            OnStore::Zombie { .. } => Class::StoreZombie,
        }
    }
}

type Apply<T> = Box<dyn FnOnce(Arc<MemoryStore>) -> BoxFuture<'static, Result<T, StoreError>> + Send>;

fn unknown<T>() -> Result<T, StoreError> {
    Err(StoreError::PossiblyWritten { what: "the connection was lost in the commit".to_owned() })
}

impl SimStore {
    pub(crate) fn new(sim: Arc<Sim>, generation: u64) -> Self {
        Self { sim, generation }
    }

    /// A moment in which others get their turn, or in which the process may be gone.
    async fn pause(&self) {
        match self.sim.below(8) {
            0..4 => {}
            4..6 => tokio::task::yield_now().await,
            6 => sleep(self.sim.below(20)).await,
            _ => sleep(self.sim.below(400)).await,
        }
        if self.sim.generation() != Some(self.generation) {
            // This process has died.
            std::future::pending::<()>().await;
        }
    }

    /// One writing operation.
    async fn write<T: Send + 'static>(
        &self,
        push: Option<PushId>,
        kind: Kind,
        apply: Apply<T>,
    ) -> Result<T, StoreError> {
        self.pause().await;
        let (id, fault) = push.map_or((None, None), |push| self.sim.operation(push, kind));
        for point in [Point::K2, Point::K3, Point::K4] {
            self.sim.reach(id, point).await;
        }
        match fault {
            Some(OnStore::NotWritten) => {
                return Err(StoreError::NotWritten { what: "the connection was lost before the commit".to_owned() });
            }
            Some(OnStore::Busy) => {
                sleep(BUSY_MS).await;
                return Err(StoreError::NotWritten { what: "the store is busy".to_owned() });
            }
            Some(OnStore::LostUnknown) => return unknown(),
            Some(OnStore::Zombie { ms }) => {
                self.detach(id, ms, apply);
                return unknown();
            }
            Some(OnStore::WrittenUnknown) | None => {}
        }
        if self.sim.dies_at(id, Point::K5) {
            // The commit has been sent: it is applied later, or never.
            if self.sim.below(2) == 0 {
                self.detach(id, self.sim.below(40_000), apply);
            }
            self.sim.reach(id, Point::K5).await;
            return std::future::pending().await;
        }
        self.sim.reach(id, Point::K5).await;
        let result = apply(Arc::clone(&self.sim.durable)).await;
        self.sim.reach(id, Point::K6).await;
        self.pause().await;
        if fault == Some(OnStore::WrittenUnknown) {
            return unknown();
        }
        result
    }

    /// Applied when whoever asked for it is long gone.
    fn detach<T: Send + 'static>(&self, id: Option<u64>, ms: u64, apply: Apply<T>) {
        let sim = Arc::clone(&self.sim);
        tokio::spawn(async move {
            sleep(ms).await;
            let written = apply(Arc::clone(&sim.durable)).await.is_ok();
            note!(sim, "  #{id:?} is applied by a zombie: {written}");
        });
    }

    async fn read<T>(&self, reading: impl Future<Output = T>) -> T {
        self.pause().await;
        reading.await
    }

    fn durable(&self) -> &MemoryStore {
        &self.sim.durable
    }
}

#[async_trait]
impl Ledger for SimStore {
    async fn next_turn(&self, target: &str) -> Result<u64, StoreError> {
        let target = target.to_owned();
        let apply: Apply<_> = Box::new(move |store| Box::pin(async move { store.next_turn(&target).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn plan_intents(
        &self,
        target: &str,
        turn: u64,
        intents: Vec<Intent>,
    ) -> Result<Option<Vec<Intent>>, StoreError> {
        let target = target.to_owned();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.plan_intents(&target, turn, intents).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn intents(&self, query: IntentQuery) -> Result<Vec<Intent>, StoreError> {
        self.read(self.durable().intents(query)).await
    }

    async fn intent_reports(&self, query: IntentQuery) -> Result<Vec<IntentReport>, StoreError> {
        self.read(self.durable().intent_reports(query)).await
    }

    async fn advance_intent(&self, turn: u64, from: IntentState, intent: Intent) -> Result<Advanced, StoreError> {
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.advance_intent(turn, from, intent).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn cycle_there(&self, target: &str, id: WriteId) -> Result<Option<String>, StoreError> {
        self.read(self.durable().cycle_there(target, id)).await
    }

    async fn keep_cycle_there(
        &self,
        target: &str,
        turn: u64,
        id: WriteId,
        cycle: Option<String>,
    ) -> Result<bool, StoreError> {
        let target = target.to_owned();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.keep_cycle_there(&target, turn, id, cycle).await }));
        self.write(None, Kind::Other, apply).await
    }
}

#[async_trait]
impl Forwards for SimStore {
    fn set_forward_rules(&self, rules: Vec<ForwardRule>) {
        self.durable().set_forward_rules(rules);
    }

    async fn take_lease(
        &self,
        target: &str,
        holder: &str,
        now_ms: u64,
        until_ms: u64,
    ) -> Result<Option<u64>, StoreError> {
        let target = target.to_owned();
        let holder = holder.to_owned();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.take_lease(&target, &holder, now_ms, until_ms).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn keep_lease(&self, target: &str, turn: u64, until_ms: u64) -> Result<bool, StoreError> {
        let target = target.to_owned();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.keep_lease(&target, turn, until_ms).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn end_lease(&self, target: &str, turn: u64) -> Result<(), StoreError> {
        let target = target.to_owned();
        let apply: Apply<_> = Box::new(move |store| Box::pin(async move { store.end_lease(&target, turn).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn next_waiting(&self, target: &str, now_ms: u64) -> Result<Option<Waiting>, StoreError> {
        self.read(self.durable().next_waiting(target, now_ms)).await
    }

    async fn put_off(&self, turn: u64, waiting: &Waiting, due_ms: u64, cause: &str) -> Result<bool, StoreError> {
        let waiting = waiting.clone();
        let cause = cause.to_owned();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.put_off(turn, &waiting, due_ms, &cause).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn end_waiting(&self, turn: u64, waiting: &Waiting, ended: Ended) -> Result<bool, StoreError> {
        let waiting = waiting.clone();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.end_waiting(turn, &waiting, ended).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn waiting(&self, query: WaitingQuery) -> Result<Vec<Waiting>, StoreError> {
        self.read(self.durable().waiting(query)).await
    }

    async fn push_load(&self, project: &ProjectId, push: PushId) -> Found<PushLoad> {
        self.read(self.durable().push_load(project, push)).await
    }

    async fn due_sweeps(
        &self,
        target: &str,
        now_ms: u64,
        without: &[String],
        limit: usize,
    ) -> Result<Vec<DueSweep>, StoreError> {
        self.read(self.durable().due_sweeps(target, now_ms, without, limit)).await
    }

    async fn swept(&self, target: &str, turn: u64, ids: Vec<IntentId>, number: u32) -> Result<bool, StoreError> {
        let target = target.to_owned();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.swept(&target, turn, ids, number).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn forwards_of(&self, project: &ProjectId, push: PushId) -> Found<ForwardsOf> {
        self.read(self.durable().forwards_of(project, push)).await
    }

    async fn forward_totals(&self) -> Result<BTreeMap<String, ForwardTotals>, StoreError> {
        self.read(self.durable().forward_totals()).await
    }
}

#[async_trait]
impl Store for SimStore {
    async fn record(&self, push: Arc<Push>, now: Now) -> Result<Recorded, StoreError> {
        let id = PushId::of(&push.place.project, &push.key);
        let apply: Apply<_> = Box::new(|store| Box::pin(async move { store.record(push, now).await }));
        self.write(Some(id), Kind::OneShot, apply).await
    }

    async fn begin(&self, manifest: Arc<Manifest>, now: Now) -> Result<Begun, StoreError> {
        let id = manifest.push();
        let apply: Apply<_> = Box::new(|store| Box::pin(async move { store.begin(manifest, now).await }));
        self.write(Some(id), Kind::Begin, apply).await
    }

    async fn put(&self, chunk: Arc<Chunk>, now: Now) -> Result<Put, StoreError> {
        let (id, kind) = (chunk.of.push, Kind::Put(chunk.number));
        let apply: Apply<_> = Box::new(|store| Box::pin(async move { store.put(chunk, now).await }));
        self.write(Some(id), kind, apply).await
    }

    async fn commit(&self, epoch: EpochOf, now: Now) -> Result<Committed, StoreError> {
        let id = epoch.push;
        let apply: Apply<_> = Box::new(|store| Box::pin(async move { store.commit(epoch, now).await }));
        self.write(Some(id), Kind::Commit, apply).await
    }

    async fn cancel(&self, epoch: EpochOf, now: Now) -> Result<Cancelled, StoreError> {
        let id = epoch.push;
        let apply: Apply<_> = Box::new(|store| Box::pin(async move { store.cancel(epoch, now).await }));
        self.write(Some(id), Kind::Cancel, apply).await
    }

    async fn staging(&self, project: &ProjectId, push: PushId, now: Now) -> Result<Option<StagingReport>, StoreError> {
        self.read(self.durable().staging(project, push, now)).await
    }

    async fn collect(&self, lifetime: Lifetime, now: Now) -> Result<Collected, StoreError> {
        let apply: Apply<_> = Box::new(move |store| Box::pin(async move { store.collect(lifetime, now).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn promote(&self, promotion: Promotion, now: Now) -> Result<Promoted, StoreError> {
        let apply: Apply<_> = Box::new(|store| Box::pin(async move { store.promote(promotion, now).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn set_round(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
        action: RoundAction,
    ) -> Found<CycleReport> {
        self.read(self.durable().set_round(project, cycle, round, action)).await
    }

    async fn drop_round(&self, project: &ProjectId, cycle: &CycleName, round: &str) -> Found<u64> {
        self.read(self.durable().drop_round(project, cycle, round)).await
    }

    async fn projects(&self) -> Result<Vec<ProjectId>, StoreError> {
        self.read(self.durable().projects()).await
    }

    async fn cycles(&self, project: &ProjectId) -> Found<Vec<CycleSummary>> {
        self.read(self.durable().cycles(project)).await
    }

    async fn cycle(&self, project: &ProjectId, cycle: &CycleName, rounds: &RoundChoice) -> Found<CycleReport> {
        self.read(self.durable().cycle(project, cycle, rounds)).await
    }

    async fn items(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        rounds: &RoundChoice,
        query: &ItemQuery,
    ) -> Found<ItemPage> {
        self.read(self.durable().items(project, cycle, rounds, query)).await
    }

    async fn not_seen_since(&self, project: &ProjectId, cycle: &CycleName) -> Found<Vec<UnseenItem>> {
        self.read(self.durable().not_seen_since(project, cycle)).await
    }

    async fn item_history(
        &self,
        project: &ProjectId,
        cycle: Option<&CycleName>,
        item: ItemHash,
    ) -> Found<Vec<HistoryEntry>> {
        self.read(self.durable().item_history(project, cycle, item)).await
    }

    async fn push(&self, project: &ProjectId, push: PushId) -> Found<PushReport> {
        self.read(self.durable().push(project, push)).await
    }

    async fn receipt(&self, project: &ProjectId, push: PushId, revision: Option<u32>) -> Found<(Vec<u8>, u32)> {
        self.read(self.durable().receipt(project, push, revision)).await
    }

    async fn difference(&self, project: &ProjectId, push: PushId, revision: u32) -> Found<DifferenceReport> {
        self.read(self.durable().difference(project, push, revision)).await
    }

    async fn check(&self) -> Result<Vec<Damage>, StoreError> {
        self.read(self.durable().check()).await
    }

    async fn repair(&self) -> Result<Vec<Damage>, StoreError> {
        self.read(self.durable().repair()).await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.read(self.durable().ready()).await
    }
}
