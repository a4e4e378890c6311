//! A server on a free port over a fresh store, and pushes to send to it.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use domain::forwarding::{ForwardRule, TargetPlace};
use domain::intent::{Intent, IntentId, IntentState};
use domain::listing::{
    CycleReport, CycleSummary, DifferenceReport, HistoryEntry, IntentReport, ItemPage, ItemQuery, PushReport,
    UnseenItem,
};
use domain::marker::WriteId;
use domain::round::RoundChoice;
use domain::{CycleName, ItemHash, Manifest, ProjectId, Push, PushId};
use server::{BodyLimits, ForwardTerms, ServeConfig, ServeError, serve};
use store::{
    Advanced, Begun, Bound, Cancelled, Chunk, Collected, Committed, Damage, DueSweep, Ended, EpochOf, ForwardTotals,
    Forwards, ForwardsOf, Found, IntentQuery, Ledger, Lifetime, Now, Places, Promoted, Promotion, PushLoad, Put,
    Recorded, RoundAction, StagingReport, Store, StoreError, Waiting, WaitingQuery,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http::{Answer, Request};

/// A report of three tests.
pub(crate) const JUNIT: &str = r#"<testsuite name="shop">
  <testcase classname="cart" name="adds" time="0.5"/>
  <testcase classname="cart" name="removes" time="0.25"><failure message="1 != 2">trace</failure></testcase>
  <testcase classname="cart" name="clears"><skipped/></testcase>
</testsuite>"#;

/// The same tests, and all passed.
pub(crate) fn all_passed() -> String {
    JUNIT.replace(r#"<failure message="1 != 2">trace</failure>"#, "")
}

/// A running server.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<dyn Store>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ServeError>>,
}

impl Served {
    pub(crate) async fn start(store: Arc<dyn Store>, limits: BodyLimits) -> Self {
        let (ready, address) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = ServeConfig {
            listen,
            store: Arc::clone(&store),
            open: false,
            limits,
            forwards: Vec::new(),
            forward_terms: ForwardTerms::default(),
        };
        let task =
            tokio::spawn(serve(config, move |address| ready.send(address).expect("somebody waits"), async move {
                drop(stopped.await);
            }));
        Self { address: address.await.expect("the server starts"), store, stop, task }
    }

    pub(crate) async fn send(&self, request: Request) -> Answer {
        request.send(self.address).await
    }

    pub(crate) async fn get(&self, path: impl Into<String>) -> Answer {
        self.send(Request::get(path)).await
    }

    /// Stops, and waits until all is finished.
    pub(crate) async fn stop(self) {
        let Self { stop, task, .. } = self;
        let _ = stop.send(());
        task.await.unwrap().unwrap();
    }
}

/// A fresh memory store.
pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(store::MemoryStore::new())
}

/// A server over a fresh memory store with the standard limits.
pub(crate) async fn standard() -> Served {
    Served::start(memory(), BodyLimits::default()).await
}

/// Runs a test over every engine.
pub(crate) async fn on_every_engine(test: impl AsyncFn(Served)) {
    test(standard().await).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    test(Served::start(store::open(&url).unwrap(), BodyLimits::default()).await).await;
}

/// A push of `body` as curl sends it, with more parameters (`&job=…`).
pub(crate) fn push(key: &str, more: &str, body: impl Into<Vec<u8>>) -> Request {
    Request::post(format!("/api/v1/projects/shop/pushes?cycle=main&run=42{more}"), body)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Idempotency-Key", key)
}

/// What a [`Faulty`] store does to the next writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Fails before it.
    NotWritten,
    /// Fails before it, and nobody knows.
    UnknownBefore,
    /// Fails after it, and nobody knows.
    UnknownAfter,
    /// Contradicts itself.
    Broken,
    /// Crashes.
    Panic,
}

/// A store with faults to come.
pub(crate) struct Faulty {
    inner: Arc<dyn Store>,
    faults: Mutex<VecDeque<Fault>>,
}

impl Faulty {
    pub(crate) fn new(faults: &[Fault]) -> Arc<Self> {
        Arc::new(Self { inner: memory(), faults: Mutex::new(faults.iter().copied().collect()) })
    }

    /// Faults from now on.
    pub(crate) fn next(&self, faults: &[Fault]) {
        self.faults.lock().unwrap().extend(faults);
    }

    async fn meet<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let what = "on purpose".to_owned();
        let fault = self.faults.lock().unwrap().pop_front();
        match fault {
            Some(Fault::NotWritten) => Err(StoreError::NotWritten { what }),
            Some(Fault::UnknownBefore) => Err(StoreError::PossiblyWritten { what }),
            Some(Fault::UnknownAfter) => {
                work.await?;
                Err(StoreError::PossiblyWritten { what })
            }
            Some(Fault::Broken) => Err(StoreError::Broken { what }),
            Some(Fault::Panic) => panic!("secret words"),
            None => work.await,
        }
    }
}

#[async_trait]
impl Places for Faulty {
    async fn place(&self, target: &str) -> Result<Option<TargetPlace>, StoreError> {
        self.inner.place(target).await
    }

    async fn bind_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<Bound, StoreError> {
        self.meet(self.inner.bind_place(target, turn, place)).await
    }

    async fn move_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<bool, StoreError> {
        self.meet(self.inner.move_place(target, turn, place)).await
    }
}

#[async_trait]
impl Ledger for Faulty {
    async fn next_turn(&self, target: &str) -> Result<u64, StoreError> {
        self.meet(self.inner.next_turn(target)).await
    }

    async fn plan_intents(
        &self,
        target: &str,
        turn: u64,
        intents: Vec<Intent>,
    ) -> Result<Option<Vec<Intent>>, StoreError> {
        self.meet(self.inner.plan_intents(target, turn, intents)).await
    }

    async fn intents(&self, query: IntentQuery) -> Result<Vec<Intent>, StoreError> {
        self.inner.intents(query).await
    }

    async fn intent_reports(&self, query: IntentQuery) -> Result<Vec<IntentReport>, StoreError> {
        self.inner.intent_reports(query).await
    }

    async fn advance_intent(&self, turn: u64, from: IntentState, intent: Intent) -> Result<Advanced, StoreError> {
        self.meet(self.inner.advance_intent(turn, from, intent)).await
    }

    async fn cycle_there(&self, target: &str, id: WriteId) -> Result<Option<String>, StoreError> {
        self.inner.cycle_there(target, id).await
    }

    async fn keep_cycle_there(
        &self,
        target: &str,
        turn: u64,
        id: WriteId,
        cycle: Option<String>,
    ) -> Result<bool, StoreError> {
        self.meet(self.inner.keep_cycle_there(target, turn, id, cycle)).await
    }
}

#[async_trait]
impl Forwards for Faulty {
    fn set_forward_rules(&self, rules: Vec<ForwardRule>) {
        self.inner.set_forward_rules(rules);
    }

    async fn take_lease(
        &self,
        target: &str,
        holder: &str,
        now_ms: u64,
        until_ms: u64,
    ) -> Result<Option<u64>, StoreError> {
        self.meet(self.inner.take_lease(target, holder, now_ms, until_ms)).await
    }

    async fn keep_lease(&self, target: &str, turn: u64, until_ms: u64) -> Result<bool, StoreError> {
        self.meet(self.inner.keep_lease(target, turn, until_ms)).await
    }

    async fn end_lease(&self, target: &str, turn: u64) -> Result<(), StoreError> {
        self.meet(self.inner.end_lease(target, turn)).await
    }

    async fn next_waiting(&self, target: &str, now_ms: u64) -> Result<Option<Waiting>, StoreError> {
        self.inner.next_waiting(target, now_ms).await
    }

    async fn put_off(&self, turn: u64, waiting: &Waiting, due_ms: u64, cause: &str) -> Result<bool, StoreError> {
        self.meet(self.inner.put_off(turn, waiting, due_ms, cause)).await
    }

    async fn end_waiting(&self, turn: u64, waiting: &Waiting, ended: Ended) -> Result<bool, StoreError> {
        self.meet(self.inner.end_waiting(turn, waiting, ended)).await
    }

    async fn waiting(&self, query: WaitingQuery) -> Result<Vec<Waiting>, StoreError> {
        self.inner.waiting(query).await
    }

    async fn push_load(&self, project: &ProjectId, push: PushId) -> Found<PushLoad> {
        self.inner.push_load(project, push).await
    }

    async fn due_sweeps(
        &self,
        target: &str,
        now_ms: u64,
        without: &[String],
        limit: usize,
    ) -> Result<Vec<DueSweep>, StoreError> {
        self.inner.due_sweeps(target, now_ms, without, limit).await
    }

    async fn swept(&self, target: &str, turn: u64, ids: Vec<IntentId>, number: u32) -> Result<bool, StoreError> {
        self.meet(self.inner.swept(target, turn, ids, number)).await
    }

    async fn forwards_of(&self, project: &ProjectId, push: PushId) -> Found<ForwardsOf> {
        self.inner.forwards_of(project, push).await
    }

    async fn forward_totals(&self) -> Result<BTreeMap<String, ForwardTotals>, StoreError> {
        self.inner.forward_totals().await
    }
}

#[async_trait]
impl Store for Faulty {
    async fn record(&self, push: Arc<Push>, now: Now) -> Result<Recorded, StoreError> {
        self.meet(self.inner.record(push, now)).await
    }

    async fn begin(&self, manifest: Arc<Manifest>, now: Now) -> Result<Begun, StoreError> {
        self.meet(self.inner.begin(manifest, now)).await
    }

    async fn put(&self, chunk: Arc<Chunk>, now: Now) -> Result<Put, StoreError> {
        self.meet(self.inner.put(chunk, now)).await
    }

    async fn commit(&self, epoch: EpochOf, now: Now) -> Result<Committed, StoreError> {
        self.meet(self.inner.commit(epoch, now)).await
    }

    async fn cancel(&self, epoch: EpochOf, now: Now) -> Result<Cancelled, StoreError> {
        self.meet(self.inner.cancel(epoch, now)).await
    }

    async fn staging(&self, project: &ProjectId, push: PushId, now: Now) -> Result<Option<StagingReport>, StoreError> {
        self.inner.staging(project, push, now).await
    }

    async fn collect(&self, lifetime: Lifetime, now: Now) -> Result<Collected, StoreError> {
        self.inner.collect(lifetime, now).await
    }

    async fn promote(&self, promotion: Promotion, now: Now) -> Result<Promoted, StoreError> {
        self.inner.promote(promotion, now).await
    }

    async fn set_round(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
        action: RoundAction,
    ) -> Found<CycleReport> {
        self.inner.set_round(project, cycle, round, action).await
    }

    async fn drop_round(&self, project: &ProjectId, cycle: &CycleName, round: &str) -> Found<u64> {
        self.inner.drop_round(project, cycle, round).await
    }

    async fn projects(&self) -> Result<Vec<ProjectId>, StoreError> {
        self.inner.projects().await
    }

    async fn cycles(&self, project: &ProjectId) -> Found<Vec<CycleSummary>> {
        self.inner.cycles(project).await
    }

    async fn cycle(&self, project: &ProjectId, cycle: &CycleName, rounds: &RoundChoice) -> Found<CycleReport> {
        self.inner.cycle(project, cycle, rounds).await
    }

    async fn items(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        rounds: &RoundChoice,
        query: &ItemQuery,
    ) -> Found<ItemPage> {
        self.inner.items(project, cycle, rounds, query).await
    }

    async fn not_seen_since(&self, project: &ProjectId, cycle: &CycleName) -> Found<Vec<UnseenItem>> {
        self.inner.not_seen_since(project, cycle).await
    }

    async fn item_history(
        &self,
        project: &ProjectId,
        cycle: Option<&CycleName>,
        item: ItemHash,
    ) -> Found<Vec<HistoryEntry>> {
        self.inner.item_history(project, cycle, item).await
    }

    async fn push(&self, project: &ProjectId, push: PushId) -> Found<PushReport> {
        self.inner.push(project, push).await
    }

    async fn receipt(&self, project: &ProjectId, push: PushId, revision: Option<u32>) -> Found<(Vec<u8>, u32)> {
        self.inner.receipt(project, push, revision).await
    }

    async fn difference(&self, project: &ProjectId, push: PushId, revision: u32) -> Found<DifferenceReport> {
        self.inner.difference(project, push, revision).await
    }

    async fn check(&self) -> Result<Vec<Damage>, StoreError> {
        self.inner.check().await
    }

    async fn repair(&self) -> Result<Vec<Damage>, StoreError> {
        self.inner.repair().await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let broken = self.faults.lock().unwrap().contains(&Fault::NotWritten);
        if broken { Err(StoreError::NotWritten { what: "on purpose".to_owned() }) } else { self.inner.ready().await }
    }
}
