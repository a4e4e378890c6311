//! Both engines side by side: the same sequence of deliveries, promotions and decisions gives the same answers and
//! readings, byte for byte.

use std::sync::Arc;

use domain::listing::{ItemQuery, ItemSort};
use domain::round::RoundChoice;
use domain::{OnDifference, OrdinalScope, PushKey, Status};
use proptest::prelude::*;
use store::conformance::build::{self, Build, main_cycle, shop};
use store::{MemoryStore, Promotion, RecordedAt, RoundAction, Store};

#[derive(Debug, Clone)]
enum Step {
    Deliver(Box<domain::Push>),
    Again(usize),
    Promote { push: usize, key: u8, revision: Option<u32>, exact: bool },
    Round { run: u8, action: RoundAction },
    Drop { run: u8 },
}

fn words() -> impl Strategy<Value = String> {
    prop::collection::btree_map(0..8_u8, "[-+!~*]", 0..7)
        .prop_map(|map| map.into_iter().map(|(name, mark)| format!("t{name}{mark} ")).collect::<Vec<_>>().concat())
}

fn policy() -> impl Strategy<Value = OnDifference> {
    prop::sample::select(vec![OnDifference::Auto, OnDifference::Revise, OnDifference::Keep, OnDifference::Fail])
}

prop_compose! {
    fn deliver()(
        words in words(),
        (run, job, shard, variant) in (1..4_u8, 0..2_u8, 0..3_u8, 0..2_u8),
        (attempt, executor, incarnation) in (prop::option::of(1..4_u64), prop::option::of(0..2_u8), prop::option::of(0..4_u128)),
        (key_scope, policy, outside, body) in (prop::bool::weighted(0.2), policy(), prop::bool::weighted(0.1), prop::option::of(0..3_u8)),
        (workflow, counter, expect) in (prop::option::weighted(0.3, 0..2_u8), any::<bool>(), prop::option::weighted(0.1, 1..4_u32)),
    ) -> Step {
        let mut build: Build = build::push(&words).run(&run.to_string()).job(&format!("job{job}"));
        if shard > 0 {
            build = build.shard(&format!("{shard}/2"));
        }
        if variant > 0 {
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
        push.content.body = body.map(|b| domain::Digest::of(&[b, run, job, shard]));
        push.origin.workflow = workflow.map(|w| domain::WorkflowName::parse(&format!("flow{w}")).unwrap());
        push.origin.run_counter = counter.then(|| 10 - u64::from(run));
        Step::Deliver(Box::new(build.0))
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => deliver(),
        4 => any::<usize>().prop_map(Step::Again),
        3 => (any::<usize>(), 0..6_u8, prop::option::of(0..5_u32), any::<bool>())
            .prop_map(|(push, key, revision, exact)| Step::Promote { push, key, revision, exact }),
        1 => (1..4_u8, prop::sample::select(vec![RoundAction::Close, RoundAction::Pin, RoundAction::Unpin]))
            .prop_map(|(run, action)| Step::Round { run, action }),
        1 => (1..4_u8).prop_map(|run| Step::Drop { run }),
    ]
}

async fn carry_out(store: &Arc<dyn Store>, step: &Step, at: usize, made: &[Box<domain::Push>]) -> String {
    let at = RecordedAt(format!("2026-01-01T00:00:{at:02}Z"));
    let nth = |n: &usize| made.get(n % made.len().max(1));
    match step {
        Step::Deliver(push) => format!("{:?}", store.record(Arc::new((**push).clone()), at).await.unwrap()),
        Step::Again(n) => match nth(n) {
            Some(push) => format!("{:?}", store.record(Arc::new((**push).clone()), at).await.unwrap()),
            None => String::new(),
        },
        Step::Promote { push, key, revision, exact } => {
            let Some(push) = nth(push) else { return String::new() };
            let promotion = Promotion {
                project: shop(),
                push: domain::PushId::of(&shop(), &push.key),
                key: PushKey::parse(&format!("promotion-{key}")).unwrap(),
                revision: *revision,
                exact: *exact,
                if_match: None,
            };
            format!("{:?}", store.promote(promotion, at).await.unwrap())
        }
        Step::Round { run, action } => {
            format!("{:?}", store.set_round(&shop(), &main_cycle(), &run.to_string(), *action).await.unwrap())
        }
        Step::Drop { run } => {
            format!("{:?}", store.drop_round(&shop(), &main_cycle(), &run.to_string()).await.unwrap())
        }
    }
}

/// Everything that can be read.
async fn readings(store: &Arc<dyn Store>, made: &[Box<domain::Push>]) -> Vec<String> {
    let (project, cycle) = (shop(), main_cycle());
    let mut all = vec![
        format!("{:?}", store.projects().await.unwrap()),
        format!("{:?}", store.cycles(&project).await.unwrap()),
        format!("{:?}", store.not_seen_since(&project, &cycle).await.unwrap()),
        format!("{:?}", store.check().await.unwrap()),
    ];
    for choice in [RoundChoice::All, RoundChoice::Authoritative, RoundChoice::Latest, RoundChoice::Named("2".into())] {
        all.push(format!("{:?}", store.cycle(&project, &cycle, &choice).await.unwrap()));
        for sort in [ItemSort::Name, ItemSort::Duration, ItemSort::Status] {
            let query = ItemQuery { sort, limit: Some(3), ..build::query() };
            let page = store.items(&project, &cycle, &choice, &query).await.unwrap();
            let cursor = page.as_ref().ok().and_then(|page| page.next.clone());
            all.push(format!("{page:?}"));
            let query = ItemQuery { cursor, status: Some(Status::Failed), limit: None, ..query };
            all.push(format!("{:?}", store.items(&project, &cycle, &choice, &query).await.unwrap()));
        }
    }
    for name in 0..8 {
        let hash = build::item(&format!("t{name}")).hash();
        for cycle in [None, Some(&cycle)] {
            all.push(format!("{:?}", store.item_history(&project, cycle, hash).await.unwrap()));
        }
    }
    for push in made {
        let id = domain::PushId::of(&project, &push.key);
        all.push(format!("{:?}", store.push(&project, id).await.unwrap()));
        for revision in 0..5 {
            all.push(format!("{:?}", store.receipt(&project, id, Some(revision)).await.unwrap()));
            all.push(format!("{:?}", store.difference(&project, id, revision).await.unwrap()));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn both_engines_say_the_same(steps in prop::collection::vec(step(), 1..20)) {
        let folder = tempfile::tempdir().unwrap();
        let file = store::open(&format!("sqlite:{}", folder.path().join("t.db").display())).unwrap();
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut made = Vec::new();
            for (at, step) in steps.iter().enumerate() {
                let ours = carry_out(&file, step, at, &made).await;
                let naive = carry_out(&memory, step, at, &made).await;
                prop_assert_eq!(ours, naive, "step {} {:?}", at, step);
                if let Step::Deliver(push) = step {
                    made.push(push.clone());
                }
            }
            let (ours, naive) = (readings(&file, &made).await, readings(&memory, &made).await);
            for (ours, naive) in ours.iter().zip(&naive) {
                prop_assert_eq!(ours, naive);
            }
            Ok(())
        })?;
    }
}
