//! Both engines side by side: the same sequence of deliveries, whole and staged, promotions, decisions and collections
//! gives the same answers and readings, byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::limits::EPOCH_IDLE_MS;
use domain::{Digest, Manifest, OnDifference, OrdinalScope, PushId, PushKey};
use proptest::prelude::*;
use store::conformance::build::{self, Build, Cut, main_cycle, readings, shop};
use store::{Begun, Chunk, Committed, Lifetime, MemoryStore, Now, Promotion, Put, RecordedAt, RoundAction, Store};

/// A push that the sequence knows, and how it is cut.
#[derive(Clone)]
struct Made {
    push: domain::Push,
    bits: u8,
    blind: bool,
    lie: Option<Lie>,
}

/// What a manifest says wrongly.
#[derive(Debug, Clone, Copy)]
enum Lie {
    Content,
    Verdicts,
    Counts,
    Items,
}

impl std::fmt::Debug for Made {
    /// In two lines: a failing sequence is to be read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (push, lie) = (&self.push, self.lie);
        let items: Vec<String> =
            push.outcomes.as_slice().iter().map(|o| format!("{}{}", o.item.name(), &o.status.word()[..1])).collect();
        write!(f, "{} {:?} {:?} body {:?}, ", push.key, push.sender, push.on_difference, push.content.body)?;
        write!(f, "outside {} bits {} blind {} {lie:?}: {}", push.outside_ci, self.bits, self.blind, items.join(" "))
    }
}

impl Made {
    fn cut(&self) -> Cut {
        let most = domain::content::leaf_bits(self.push.outcomes.len() as u64);
        let mut cut = Build(self.push.clone()).cut(self.bits.min(most));
        if let Some(lie) = self.lie {
            lie.put_into(&mut cut.manifest);
        }
        if self.blind { cut.blind() } else { cut }
    }
}

impl Lie {
    fn put_into(self, manifest: &mut Manifest) {
        match self {
            Lie::Content => manifest.content.content = Digest::of(b"another content"),
            Lie::Verdicts => manifest.content.outcomes = Digest::of(b"other verdicts"),
            Lie::Counts => {
                std::mem::swap(&mut manifest.counts.passed, &mut manifest.counts.failed);
            }
            Lie::Items => {
                for light in manifest.items.iter_mut().flat_map(|items| &mut items.lights) {
                    light.bad_before = !light.bad_before;
                }
            }
        }
    }
}

/// What is done with one of the pushes made so far, by its place among them.
#[derive(Debug, Clone)]
enum Staged {
    Whole,
    Begin,
    Put {
        chunk: usize,
        back: u64,
        wrong: bool,
    },
    PutAll {
        back: u64,
    },
    Commit {
        back: u64,
    },
    Cancel {
        back: u64,
    },
    Report,
    /// Everything at once.
    Deliver,
}

#[derive(Debug, Clone)]
enum Step {
    Make(Box<Made>, Staged),
    Again(usize, Staged),
    Promote { push: usize, key: u8, revision: Option<u32>, exact: bool },
    Round { run: u8, action: RoundAction },
    Drop { run: u8 },
    Pass { ms: u64 },
    Collect,
}

/// Every name stands for five items, so that most contents can be cut.
fn words() -> impl Strategy<Value = String> {
    prop::collection::btree_map(0..8_u8, "[-+!~*]", 0..7).prop_map(|map| {
        let five =
            |(name, mark): (u8, String)| ["", "b", "c", "d", "e"].map(|item| format!("t{name}{item}{mark} ")).concat();
        map.into_iter().map(five).collect::<Vec<_>>().concat()
    })
}

fn policy() -> impl Strategy<Value = OnDifference> {
    prop::sample::select(vec![OnDifference::Auto, OnDifference::Revise, OnDifference::Keep, OnDifference::Fail])
}

prop_compose! {
    fn push()(
        words in words(),
        (run, job, shard, variant) in (1..3_u8, 0..2_u8, prop::option::weighted(0.3, 1..3_u8), prop::bool::weighted(0.2)),
        (attempt, executor, incarnation) in (prop::option::of(1..4_u64), prop::option::of(0..2_u8), prop::option::of(0..8_u128)),
        (key_scope, policy, outside, body) in (prop::bool::weighted(0.2), policy(), prop::bool::weighted(0.1), prop::option::weighted(0.2, 0..3_u8)),
        (workflow, counter, expect) in (prop::option::weighted(0.3, 0..2_u8), any::<bool>(), prop::option::weighted(0.1, 1..4_u32)),
    ) -> domain::Push {
        let mut build: Build = build::push(&words).run(&run.to_string()).job(&format!("job{job}"));
        if let Some(shard) = shard {
            build = build.shard(&format!("{shard}/2"));
        }
        if variant {
            build = build.variant("os=mac");
        }
        build = build.keyed().on(policy);
        let push = &mut build.0;
        push.sender.ordinal = attempt.map(domain::Ordinal);
        push.sender.ordinal_scope = if key_scope { OrdinalScope::Key } else { OrdinalScope::Round };
        push.sender.executor = executor.map(|e| domain::Executor::parse(&format!("runner{e}")).unwrap());
        push.sender.incarnation = incarnation.map(domain::Incarnation);
        push.outside_ci = outside;
        push.expect = expect;
        push.content.body = body.map(|b| Digest::of(&[b, run, job]));
        push.origin.workflow = workflow.map(|w| domain::WorkflowName::parse(&format!("flow{w}")).unwrap());
        push.origin.run_counter = counter.then(|| 10 - u64::from(run));
        build.0
    }
}

fn made() -> impl Strategy<Value = Box<Made>> {
    let lie = prop::sample::select(vec![Lie::Content, Lie::Verdicts, Lie::Counts, Lie::Items]);
    (push(), 0..3_u8, any::<bool>(), prop::option::weighted(0.1, lie))
        .prop_map(|(push, bits, blind, lie)| Box::new(Made { push, bits, blind, lie }))
}

fn staged() -> impl Strategy<Value = Staged> {
    let back = || prop::sample::select(vec![0, 0, 0, 0, 1, 2]);
    prop_oneof![
        4 => Just(Staged::Whole),
        5 => Just(Staged::Begin),
        3 => (0..4_usize, back(), prop::bool::weighted(0.1))
            .prop_map(|(chunk, back, wrong)| Staged::Put { chunk, back, wrong }),
        6 => back().prop_map(|back| Staged::PutAll { back }),
        8 => back().prop_map(|back| Staged::Commit { back }),
        1 => back().prop_map(|back| Staged::Cancel { back }),
        2 => Just(Staged::Report),
        2 => Just(Staged::Deliver),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let begin = prop_oneof![4 => Just(Staged::Whole), 5 => Just(Staged::Begin), 3 => Just(Staged::Deliver)];
    let pass = prop::sample::select(vec![1, EPOCH_IDLE_MS - 1, EPOCH_IDLE_MS, 100_000]);
    prop_oneof![
        12 => (made(), begin).prop_map(|(made, then)| Step::Make(made, then)),
        18 => (any::<usize>(), staged()).prop_map(|(push, then)| Step::Again(push, then)),
        3 => (any::<usize>(), 0..6_u8, prop::option::of(0..5_u32), any::<bool>())
            .prop_map(|(push, key, revision, exact)| Step::Promote { push, key, revision, exact }),
        1 => (1..3_u8, prop::sample::select(vec![RoundAction::Close, RoundAction::Pin, RoundAction::Unpin]))
            .prop_map(|(run, action)| Step::Round { run, action }),
        1 => (1..3_u8).prop_map(|run| Step::Drop { run }),
        2 => pass.prop_map(|ms| Step::Pass { ms }),
        2 => Just(Step::Collect),
    ]
}

/// One store on its way through a sequence.
struct Walk {
    store: Arc<dyn Store>,
    made: Vec<Made>,
    now: Now,
    /// The newest epoch that a begin gave, by key.
    epochs: BTreeMap<String, u64>,
}

impl Walk {
    fn new(store: Arc<dyn Store>) -> Self {
        let now = Now { at: RecordedAt(String::new()), ms: 1_000_000 };
        Self { store, made: Vec::new(), now, epochs: BTreeMap::new() }
    }

    /// Takes a step; gives the answer as text.
    async fn step(&mut self, step: &Step, at: usize) -> String {
        self.now.at = RecordedAt(format!("2026-01-01T00:00:{at:02}Z"));
        let nth = |n: &usize| self.made.get(n % self.made.len().max(1)).cloned();
        match step {
            Step::Make(made, then) => {
                self.made.push((**made).clone());
                self.staged(made, then).await
            }
            Step::Again(n, then) => match nth(n) {
                Some(made) => self.staged(&made, then).await,
                None => String::new(),
            },
            Step::Promote { push, key, revision, exact } => {
                let Some(made) = nth(push) else { return String::new() };
                let promotion = Promotion {
                    project: shop(),
                    push: PushId::of(&shop(), &made.push.key),
                    key: PushKey::parse(&format!("promotion-{key}")).unwrap(),
                    revision: *revision,
                    exact: *exact,
                    if_match: None,
                };
                format!("{:?}", self.store.promote(promotion, self.now.clone()).await.unwrap())
            }
            Step::Round { run, action } => {
                format!("{:?}", self.store.set_round(&shop(), &main_cycle(), &run.to_string(), *action).await.unwrap())
            }
            Step::Drop { run } => {
                format!("{:?}", self.store.drop_round(&shop(), &main_cycle(), &run.to_string()).await.unwrap())
            }
            Step::Pass { ms } => {
                self.now.ms += ms;
                String::new()
            }
            Step::Collect => self.collect().await,
        }
    }

    /// What is given up is the same; how much is deleted in one call is the engine's.
    async fn collect(&self) -> String {
        let lifetime = Lifetime { idle_ms: 90_000, second_look_ms: 20_000, blocks_max: 4 };
        let mut abandoned = 0;
        loop {
            let collected = self.store.collect(lifetime, self.now.clone()).await.unwrap();
            abandoned += collected.abandoned;
            if !collected.more {
                return format!("{abandoned} given up");
            }
        }
    }

    async fn staged(&mut self, made: &Made, then: &Staged) -> String {
        let (cut, now) = (made.cut(), self.now.clone());
        let newest = self.epochs.get(made.push.key.as_str()).copied().unwrap_or(1);
        match then {
            Staged::Whole => format!("{:?}", self.store.record(Arc::new(made.push.clone()), now).await.unwrap()),
            Staged::Begin => self.begin(&cut).await,
            Staged::Put { chunk, back, wrong } => self.put(&cut, (newest.saturating_sub(*back), *chunk), *wrong).await,
            Staged::PutAll { back } => self.put_all(&cut, newest.saturating_sub(*back)).await,
            Staged::Commit { back } => self.commit(&cut, newest.saturating_sub(*back)).await,
            Staged::Cancel { back } => {
                let epoch = cut.epoch(newest.saturating_sub(*back));
                format!("{:?}", self.store.cancel(epoch, now).await.unwrap())
            }
            Staged::Report => format!("{:?}", cut.staging(&self.store, now).await),
            Staged::Deliver => {
                let begun = self.begin(&cut).await;
                let newest = self.epochs.get(made.push.key.as_str()).copied().unwrap_or(1);
                let put = self.put_all(&cut, newest).await;
                [begun, put, self.commit(&cut, newest).await].join("\n")
            }
        }
    }

    async fn begin(&mut self, cut: &Cut) -> String {
        let begun = cut.begin(&self.store, self.now.clone()).await;
        if let Begun::Staging(staging) = &begun {
            self.epochs.insert(cut.manifest.key.as_str().to_owned(), staging.epoch.0);
        }
        format!("{begun:?}")
    }

    async fn put(&self, cut: &Cut, (epoch, chunk): (u64, usize), wrong: bool) -> String {
        let Some(of) = cut.chunks.get(chunk % (cut.chunks.len() + 1)).or(cut.chunks.first()) else {
            return String::new();
        };
        let mut sent = Chunk { of: cut.epoch(epoch), number: chunk as u32, ..of.clone() };
        if wrong {
            sent.digest = Digest::of(b"other bytes");
        }
        let put = self.store.put(Arc::new(sent), self.now.clone()).await.unwrap();
        // Words are the engine's.
        if matches!(put, Put::NotAsPromised { .. }) { "not as promised".to_owned() } else { format!("{put:?}") }
    }

    async fn put_all(&self, cut: &Cut, epoch: u64) -> String {
        let mut all = String::new();
        for chunk in 0..cut.chunks.len() {
            all += &self.put(cut, (epoch, chunk), false).await;
        }
        all
    }

    async fn commit(&self, cut: &Cut, epoch: u64) -> String {
        let committed = self.store.commit(cut.epoch(epoch), self.now.clone()).await.unwrap();
        let words = matches!(committed, Committed::NotAsPromised { .. });
        if words { "not as promised".to_owned() } else { format!("{committed:?}") }
    }

    async fn readings(&self) -> Vec<String> {
        let pushes: Vec<PushId> = self.made.iter().map(|made| PushId::of(&shop(), &made.push.key)).collect();
        readings(&self.store, &pushes, &["t0", "t1", "t2b", "t3c", "t4d", "t5e", "t6", "t7"]).await
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn both_engines_say_the_same(steps in prop::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let file = store::open(&format!("sqlite:{}", folder.path().join("t.db").display())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut file, mut memory) = (Walk::new(file), Walk::new(Arc::new(MemoryStore::new())));
            for (at, step) in steps.iter().enumerate() {
                let (ours, naive) = (file.step(step, at).await, memory.step(step, at).await);
                prop_assert_eq!(ours, naive, "step {} {:?}", at, step);
            }
            let (ours, naive) = (file.readings().await, memory.readings().await);
            for (ours, naive) in ours.iter().zip(&naive) {
                prop_assert_eq!(ours, naive);
            }
            Ok(())
        })?;
    }
}
