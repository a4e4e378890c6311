//! A walk over everything that writes into a store, each step tried again until it does.

use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use crate::{forwards, ledger};
use domain::{Executor, OnDifference, Outcomes, PushId, PushKey};
use store::conformance::build::{self, Build, Cut, after, forty, main_cycle, now, push, readings, shop};
use store::{Chunk, IntentQuery, Lifetime, Now, Promotion, RoundAction, Store, StoreError, Waiting, WaitingQuery};

/// Somebody who asks until there is an answer.
pub(crate) struct Client {
    store: Arc<dyn Store>,
    /// Every answer.
    pub(crate) said: Vec<String>,
    /// How often there was none.
    pub(crate) failures: usize,
}

impl Client {
    pub(crate) fn open(path: &Path) -> Self {
        let store = store::open(&format!("sqlite:{}", path.display())).unwrap();
        store.set_forward_rules(forwards::rules());
        Self { store, said: Vec::new(), failures: 0 }
    }

    async fn asks<T: Debug, F: Future<Output = Result<T, StoreError>>>(&mut self, ask: impl Fn(Arc<dyn Store>) -> F) {
        for _ in 0..3 {
            match ask(Arc::clone(&self.store)).await {
                Ok(answer) => return self.said.push(format!("{answer:?}")),
                Err(StoreError::NotWritten { .. }) => self.failures += 1,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("no answer in three tries");
    }

    async fn record(&mut self, build: &Build) {
        let push = Arc::new(build.0.clone());
        self.asks(|store| {
            let push = Arc::clone(&push);
            async move { store.record(push, now()).await }
        })
        .await;
    }

    async fn begin_at(&mut self, cut: &Cut, now: Now) {
        let manifest = Arc::new(cut.manifest.clone());
        self.asks(|store| {
            let (manifest, now) = (Arc::clone(&manifest), now.clone());
            async move { store.begin(manifest, now).await }
        })
        .await;
    }

    async fn begin(&mut self, cut: &Cut) {
        self.begin_at(cut, now()).await;
    }

    async fn put(&mut self, cut: &Cut, epoch: u64) {
        for chunk in &cut.chunks {
            let chunk = Arc::new(Chunk { of: cut.epoch(epoch), ..chunk.clone() });
            self.asks(|store| {
                let chunk = Arc::clone(&chunk);
                async move { store.put(chunk, now()).await }
            })
            .await;
        }
    }

    async fn commit(&mut self, cut: &Cut, epoch: u64) {
        let of = cut.epoch(epoch);
        self.asks(|store| {
            let of = of.clone();
            async move { store.commit(of, now()).await }
        })
        .await;
    }

    async fn deliver(&mut self, cut: &Cut, epoch: u64) {
        self.begin(cut).await;
        self.put(cut, epoch).await;
        self.commit(cut, epoch).await;
    }

    async fn cancel(&mut self, cut: &Cut, epoch: u64) {
        let of = cut.epoch(epoch);
        self.asks(|store| {
            let of = of.clone();
            async move { store.cancel(of, now()).await }
        })
        .await;
    }

    async fn collect(&mut self, ms: u64) {
        let lifetime = Lifetime { idle_ms: 1000, second_look_ms: 1000, blocks_max: 1 };
        for _ in 0..24 {
            self.asks(|store| async move { store.collect(lifetime, after(ms)).await }).await;
        }
    }

    async fn round(&mut self, action: RoundAction) {
        self.asks(|store| async move { store.set_round(&shop(), &main_cycle(), "1", action).await }).await;
    }

    async fn drop_round(&mut self, run: &str) {
        self.asks(|store| async move { store.drop_round(&shop(), &main_cycle(), run).await }).await;
    }

    /// Everything, once.
    pub(crate) async fn walk(&mut self, path: &Path) {
        self.one_shots().await;
        self.staged().await;
        self.ends().await;
        self.people().await;
        self.forward().await;
        self.mend(path).await;
        let pushes = [PushId::of(&shop(), &PushKey::parse("k").unwrap())];
        self.said.extend(readings(&self.store, &pushes, &["t001", "a"]).await);
        build::sound(&self.store).await;
    }

    async fn one_shots(&mut self) {
        let first = long("a- b* c!").attempt(1).executor("one");
        self.record(&first).await;
        self.record(&first.clone().attempt(2)).await;
        self.record(&push("a+ b+ c+").attempt(3).executor("two")).await;
        self.record(&push("a+ b+ c+").attempt(3).executor("other")).await;
    }

    /// Staged pushes that become visible, and what they meet.
    async fn staged(&mut self) {
        // Of a project that nobody knows.
        let staged = long(&forty('-')).project("else").cycle("new").attempt(1).executor("one").incarnation(1).cut(1);
        self.begin(&staged).await;
        let mut second_leg = staged.clone();
        second_leg.manifest.sender.executor = Some(Executor::parse("other").unwrap());
        second_leg.manifest.sender.incarnation = None;
        self.begin(&second_leg).await;
        self.begin(&staged).await;
        self.put(&staged, 1).await;
        self.put(&staged, 1).await;
        self.commit(&staged, 1).await;
        self.commit(&staged, 1).await;
        // Over what is recorded: an overlay, which is confirmed by a later attempt and refused to another leg.
        let rerun = push(&forty('+')).project("else").cycle("new").attempt(2).executor("one").cut(1);
        self.deliver(&rerun, 2).await;
        let mut later = rerun.clone();
        later.manifest.sender.ordinal = Some(domain::Ordinal(3));
        self.begin(&later).await;
        later.manifest.sender.executor = Some(Executor::parse("other").unwrap());
        self.begin(&later).await;
        // What a person promoted meanwhile comes by a commit: a replay, by a later attempt.
        let same = |mark| push(&forty(mark)).key("same").attempt(1).executor("one");
        self.record(&same('+').incarnation(1)).await;
        self.record(&same('-').incarnation(2)).await;
        let again = same('-').attempt(2).incarnation(3).cut(1);
        self.begin(&again).await;
        self.put(&again, 1).await;
        self.promote("same", 2, true).await;
        self.commit(&again, 1).await;
        let mut leg = again.clone();
        leg.manifest.sender.executor = Some(Executor::parse("other").unwrap());
        self.begin(&leg).await;
        // A second leg of what was recorded meanwhile.
        let legs = push(&forty('-')).key("legs").attempt(1).executor("one");
        let other = legs.clone().executor("other").cut(1);
        self.begin(&other).await;
        self.put(&other, 1).await;
        // It came by another process, which knows nothing of the epoch.
        let mine = legs.clone().executor("other").incarnation(5);
        self.record(&mine).await;
        self.record(&legs).await;
    }

    /// Staged pushes that don't become visible.
    async fn ends(&mut self) {
        // Refused at the commit.
        let recorded = push(&forty('+')).key("refused").attempt(1);
        let differs = push(&forty('-')).key("refused").attempt(1).on(OnDifference::Fail).cut(1).blind();
        self.record(&recorded).await;
        self.deliver(&differs, 1).await;
        self.commit(&differs, 1).await;
        // A second leg at the commit.
        let leg = push(&forty('+')).key("leg").run("9").attempt(1).executor("one");
        let mut other = push(&forty('-')).key("leg").run("9").attempt(2).executor("one").cut(1).blind();
        self.begin(&other).await;
        self.put(&other, 1).await;
        self.record(&leg.clone().attempt(3)).await;
        self.begin(&other).await;
        self.commit(&other, 1).await;
        other = push(&forty('-')).key("leg").run("9").attempt(4).executor("one").cut(1).blind();
        self.begin(&other).await;
        // Superseded, cancelled, and ended by a push in one request.
        let old = long(&forty('~')).key("ends").attempt(1).executor("one").cut(1);
        self.begin(&old).await;
        self.put(&old, 1).await;
        let new = push(&forty('-')).key("ends").attempt(2).executor("one").cut(1);
        self.begin(&new).await;
        self.cancel(&new, 2).await;
        let third = push(&forty('*')).key("ends").attempt(3).executor("one").cut(1);
        self.begin(&third).await;
        self.record(&push(&forty('*')).key("ends").attempt(3).executor("other")).await;
        self.record(&push(&forty('!')).key("ends").attempt(4).executor("one")).await;
        // Idle for too long; and of a round that is dropped.
        // Nobody else has its items.
        let idle = push("idle-1+ idle-2-").key("idle").cut(0);
        self.begin(&idle).await;
        self.put(&idle, 1).await;
        let gone = push(&forty('+')).key("gone").run("2").cut(1);
        self.record(&long("only- here+").key("there").run("2").executor("one")).await;
        self.deliver(&push(&forty('!')).key("there-too").run("2").cut(1), 1).await;
        self.begin(&gone).await;
        self.put(&gone, 1).await;
        self.drop_round("2").await;
        self.collect(5000).await;
        self.collect(10_000).await;
    }

    async fn promote(&mut self, key: &str, revision: u32, exact: bool) {
        let promotion = Promotion {
            project: shop(),
            push: PushId::of(&shop(), &PushKey::parse(key).unwrap()),
            key: PushKey::parse(&format!("promote-{key}")).unwrap(),
            revision: Some(revision),
            exact,
            if_match: None,
        };
        self.asks(|store| {
            let promotion = promotion.clone();
            async move { store.promote(promotion, now()).await }
        })
        .await;
    }

    async fn people(&mut self) {
        self.promote("k", 1, false).await;
        self.round(RoundAction::Pin).await;
        self.round(RoundAction::Unpin).await;
        self.round(RoundAction::Close).await;
        // The only round of its cycle.
        self.record(&push("alone+").cycle("alone").key("alone")).await;
        let alone = domain::CycleName::parse("alone").unwrap();
        self.asks(|store| {
            let alone = alone.clone();
            async move { store.drop_round(&shop(), &alone, "1").await }
        })
        .await;
    }

    /// What a forwarder keeps: planned, sent, given up; a cycle kept and forgotten. And what waits, until it ends.
    async fn forward(&mut self) {
        for step in ledger::STEPS {
            self.asks(|store| step.take(store)).await;
        }
        for step in forwards::STEPS {
            self.asks(|store| step.take(store)).await;
        }
        let all = WaitingQuery { ended: true, ..WaitingQuery::default() };
        self.asks(|store| store_waiting(store, all.clone())).await;
        self.asks(|store| async move { store.intents(IntentQuery::default()).await }).await;
    }

    async fn mend(&mut self, path: &Path) {
        let connection = rusqlite::Connection::open(path).unwrap();
        connection
            .execute_batch(
                "UPDATE push SET counts = zeroblob(48) WHERE id = 1; UPDATE revision SET counts = zeroblob(48) WHERE id = 1;
                 UPDATE itemset SET n = n + 1 WHERE id = 1; UPDATE block SET n = n + 1 WHERE id = 1;",
            )
            .unwrap();
        self.asks(|store| async move { store.repair().await }).await;
        // It says what it mended itself, and lengths are mended before counts.
        self.said.pop();
    }
}

async fn store_waiting(store: Arc<dyn Store>, query: WaitingQuery) -> Result<Vec<Waiting>, StoreError> {
    store.waiting(query).await
}

/// The first item has a text that lies in a row of its own.
fn long(words: &str) -> Build {
    let mut list = build::outcomes(words).as_slice().to_vec();
    list[0].message = Some(format!("{} long", list[0].item).repeat(500));
    push("").holds(Outcomes::from_unordered(list).unwrap())
}
