//! The ledgers of both engines side by side, and what waits in them: the same steps get the same answers and leave the
//! same.

use std::sync::Arc;

use domain::intent::{Flag, Intent, IntentState, RefusedItem};
use domain::marker::WriteId;
use domain::{OnDifference, PushKey};
use proptest::prelude::*;
use proptest::sample::select;
use store::conformance::build::forwards::{forwarded, rule};
use store::conformance::build::{intent, main_cycle, now, push, shop};
use store::{Begun, IntentQuery, MemoryStore, Promotion, Store, WaitingQuery};

/// One call; turns are counted back from the newest.
#[derive(Debug, Clone)]
enum Step {
    Turn(&'static str),
    Plan { target: &'static str, back: u64, intents: Vec<Intent> },
    Advance { back: u64, from: IntentState, intent: Box<Intent> },
    KeepCycle { target: &'static str, back: u64, id: u128, cycle: Option<String> },
    Ask(IntentQuery),
    Lease { target: &'static str, holder: &'static str, now: u64, long: u64 },
    KeepLease { target: &'static str, back: u64, until: u64 },
    EndLease { target: &'static str, back: u64 },
    Record { key: &'static str, run: &'static str, words: &'static str, attempt: u64, staged: bool },
    Promote { key: &'static str, revision: u32 },
    DropRound(&'static str),
    PutOff { target: &'static str, back: u64, now: u64, due: u64 },
    End { target: &'static str, back: u64, now: u64, revision: u32 },
    Sweep { target: &'static str, back: u64, now: u64 },
    Look(&'static str),
}

fn target() -> impl Strategy<Value = &'static str> {
    select(vec!["there", "elsewhere"])
}

fn state() -> impl Strategy<Value = IntentState> {
    select(IntentState::ALL.to_vec())
}

fn back() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(0_u64), 1 => Just(1_u64)]
}

prop_compose! {
    fn any_intent()(
        (number, target, planned) in (0_u32..6, target(), 0_u64..4),
        (state, sends, changed, sent, seen) in (prop_oneof![2 => Just(IntentState::Planned), 1 => state()], 0_u32..3, 0_u64..9, any::<Option<u8>>(), any::<Option<u8>>()),
        (cycle_there, flags, cause, refused) in (any::<Option<String>>(), prop::collection::vec(select(Flag::ALL.to_vec()), 0..3), any::<Option<String>>(), any::<Option<(String, String)>>()),
    ) -> Intent {
        let mut kept = intent(number);
        // Ids are over targets.
        kept.id.0 ^= u128::from(target == "there") << 100;
        let refused = refused.into_iter().map(|(item, why)| RefusedItem::new(item, why)).collect();
        Intent {
            target: target.to_owned(), state, sends, planned_ms: planned, changed_ms: changed, sent_ms: sent.map(u64::from),
            seen_ms: seen.map(u64::from), cycle_there, flags: flags.into_iter().collect(), cause, refused, ..kept
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let query = (
        prop::option::of(target()),
        prop::collection::vec(state(), 0..4),
        any::<Option<u8>>(),
        any::<Option<u8>>(),
        any::<Option<bool>>(),
    );
    prop_oneof![
        1 => target().prop_map(Step::Turn),
        3 => (target(), back(), prop::collection::vec(any_intent(), 0..4)).prop_map(|(target, back, mut intents)| {
            intents.retain(|intent| intent.target == target);
            Step::Plan { target, back, intents }
        }),
        6 => (back(), prop_oneof![2 => Just(IntentState::Planned), 1 => state()], any_intent())
            .prop_map(|(back, from, intent)| Step::Advance { back, from, intent: Box::new(intent) }),
        1 => (target(), back(), 0_u128..3, any::<Option<String>>())
            .prop_map(|(target, back, id, cycle)| Step::KeepCycle { target, back, id, cycle }),
        7 => waiting(),
        2 => query.prop_map(|(target, states, before, limit, in_doubt)| Step::Ask(IntentQuery {
            in_doubt,
            target: target.map(str::to_owned),
            states,
            changed_before_ms: before.map(u64::from),
            limit: limit.map(usize::from),
            ..IntentQuery::default()
        })),
    ]
}

fn key() -> impl Strategy<Value = &'static str> {
    select(vec!["k", "l"])
}

fn waiting() -> impl Strategy<Value = Step> {
    let words = select(vec!["a- b+", "a+ b+", "a- b- c+"]);
    let run = || select(vec!["1", "2"]);
    prop_oneof![
        2 => (target(), select(vec!["one", "two"]), 0_u64..200, 1_u64..100)
            .prop_map(|(target, holder, now, long)| Step::Lease { target, holder, now, long }),
        1 => (target(), back(), 0_u64..200).prop_map(|(target, back, until)| Step::KeepLease { target, back, until }),
        1 => (target(), back()).prop_map(|(target, back)| Step::EndLease { target, back }),
        6 => (key(), run(), words, 1_u64..4, any::<bool>())
            .prop_map(|(key, run, words, attempt, staged)| Step::Record { key, run, words, attempt, staged }),
        1 => (key(), 1_u32..4).prop_map(|(key, revision)| Step::Promote { key, revision }),
        1 => run().prop_map(Step::DropRound),
        2 => (target(), back(), 0_u64..9, 0_u64..9)
            .prop_map(|(target, back, now, due)| Step::PutOff { target, back, now, due }),
        2 => (target(), back(), 0_u64..9, 0_u32..4)
            .prop_map(|(target, back, now, revision)| Step::End { target, back, now, revision }),
        2 => (target(), back(), select(vec![0, 3_600_004, 86_400_004]))
            .prop_map(|(target, back, now)| Step::Sweep { target, back, now }),
        3 => key().prop_map(Step::Look),
    ]
}

/// One engine on its way.
struct Walk {
    store: Arc<dyn Store>,
    turns: [u64; 2],
}

impl Walk {
    fn turn(&self, target: &str, back: u64) -> u64 {
        self.turns[usize::from(target == "there")].saturating_sub(back)
    }

    async fn step(&mut self, step: Step) -> String {
        match step {
            Step::Turn(target) => {
                let turn = self.store.next_turn(target).await.unwrap();
                self.turns[usize::from(target == "there")] = turn;
                turn.to_string()
            }
            Step::Plan { target, back, intents } => {
                let turn = self.turn(target, back);
                format!("{:?}", self.store.plan_intents(target, turn, intents).await.unwrap())
            }
            Step::Advance { back, from, intent } => {
                let turn = self.turn(&intent.target, back);
                format!("{:?}", self.store.advance_intent(turn, from, *intent).await.unwrap())
            }
            Step::KeepCycle { target, back, id, cycle } => {
                let (turn, id) = (self.turn(target, back), WriteId(id));
                let kept = self.store.keep_cycle_there(target, turn, id, cycle).await.unwrap();
                format!("{kept} {:?}", self.store.cycle_there(target, id).await.unwrap())
            }
            Step::Ask(query) => {
                let listed = self.store.intent_reports(query.clone()).await.unwrap();
                format!("{listed:?} {:?}", self.store.intents(query).await.unwrap())
            }
            other => self.waiting(other).await,
        }
    }

    async fn waiting(&mut self, step: Step) -> String {
        let store = &self.store;
        match step {
            Step::Lease { target, holder, now, long } => {
                let turn = store.take_lease(target, holder, now, now + long).await.unwrap();
                self.turns[usize::from(target == "there")] = turn.unwrap_or(self.turn(target, 0));
                format!("{turn:?}")
            }
            Step::KeepLease { target, back, until } => {
                store.keep_lease(target, self.turn(target, back), until).await.unwrap().to_string()
            }
            Step::EndLease { target, back } => {
                format!("{:?}", store.end_lease(target, self.turn(target, back)).await.unwrap())
            }
            Step::Record { key, run, words, attempt, staged } => {
                let of = push(words).key(key).run(run).attempt(attempt).on(OnDifference::Auto);
                if !staged {
                    return format!("{:?}", of.to(store).await);
                }
                let cut = of.cut(0);
                match cut.begin(store, now()).await {
                    Begun::Staging(staging) => {
                        cut.put_all(store, staging.epoch.0).await;
                        format!("{:?}", cut.commit(store, staging.epoch.0).await)
                    }
                    other => format!("{other:?}"),
                }
            }
            Step::Promote { key, revision } => {
                let promotion = Promotion {
                    project: shop(),
                    push: push("").key(key).id(),
                    key: PushKey::parse(&format!("p-{key}-{revision}")).unwrap(),
                    revision: Some(revision),
                    exact: revision == 2,
                    if_match: None,
                };
                format!("{:?}", store.promote(promotion, now()).await.unwrap())
            }
            Step::DropRound(run) => format!("{:?}", store.drop_round(&shop(), &main_cycle(), run).await.unwrap()),
            Step::PutOff { target, back, now, due } => {
                let Some(next) = store.next_waiting(target, now).await.unwrap() else { return String::new() };
                let done = store.put_off(self.turn(target, back), &next, due, "no answer").await.unwrap();
                format!("{next:?} {done}")
            }
            Step::End { target, back, now, revision } => {
                let Some(next) = store.next_waiting(target, now).await.unwrap() else { return String::new() };
                let ended = store.end_waiting(self.turn(target, back), &next, forwarded(revision)).await.unwrap();
                format!("{next:?} {ended}")
            }
            Step::Sweep { target, back, now } => {
                let due = store.due_sweeps(target, now, &[], 2).await.unwrap();
                let number = due.iter().map(|due| due.number).min().unwrap_or(1);
                let ids = due.iter().map(|due| due.id).collect();
                format!("{due:?} {}", store.swept(target, self.turn(target, back), ids, number).await.unwrap())
            }
            Step::Look(key) => {
                let id = push("").key(key).id();
                let all = WaitingQuery { ended: true, ..WaitingQuery::default() };
                format!(
                    "{:?} {:?} {:?} {:?}",
                    store.waiting(all).await.unwrap(),
                    store.forwards_of(&shop(), id).await.unwrap(),
                    store.push_load(&shop(), id).await.unwrap(),
                    store.forward_totals().await.unwrap()
                )
            }
            _ => unreachable!(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn both_ledgers_say_the_same(steps in prop::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let file = store::open(&format!("sqlite:{}", folder.path().join("t.db").display())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let walk = |store: Arc<dyn Store>| {
                store.set_forward_rules(vec![rule("there", &[], &[]), rule("elsewhere", &["shop"], &["m*"])]);
                Walk { store, turns: [0; 2] }
            };
            let (mut file, mut memory) = (walk(file), walk(Arc::new(MemoryStore::new())));
            // Without a turn nothing is kept.
            for step in [Step::Turn("there"), Step::Turn("elsewhere")].into_iter().chain(steps) {
                let (ours, naive) = (file.step(step.clone()).await, memory.step(step.clone()).await);
                prop_assert_eq!(ours, naive, "{:?}", step);
            }
            for last in [Step::Ask(IntentQuery::default()), Step::Look("k"), Step::Look("l")] {
                prop_assert_eq!(file.step(last.clone()).await, memory.step(last).await);
            }
            prop_assert_eq!(file.store.check().await.unwrap(), []);
            Ok(())
        })?;
    }
}
