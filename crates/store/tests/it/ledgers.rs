//! The ledgers of both engines side by side: the same steps get the same answers and leave the same.

use std::sync::Arc;

use domain::intent::{Flag, Intent, IntentState, RefusedItem};
use domain::marker::WriteId;
use proptest::prelude::*;
use proptest::sample::select;
use store::conformance::build::intent;
use store::{IntentQuery, MemoryStore, Store};

/// One call; turns are counted back from the newest.
#[derive(Debug, Clone)]
enum Step {
    Turn(&'static str),
    Plan { target: &'static str, back: u64, intents: Vec<Intent> },
    Advance { back: u64, from: IntentState, intent: Box<Intent> },
    KeepCycle { target: &'static str, back: u64, id: u128, cycle: Option<String> },
    Ask(IntentQuery),
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
        (state, sends, changed, sent) in (prop_oneof![2 => Just(IntentState::Planned), 1 => state()], 0_u32..3, 0_u64..9, any::<Option<u8>>()),
        (cycle_there, flag, cause, refused) in (any::<Option<String>>(), select(Flag::ALL.to_vec()), any::<Option<String>>(), any::<Option<(String, String)>>()),
    ) -> Intent {
        let mut kept = intent(number);
        // Ids are over targets.
        kept.id.0 ^= u128::from(target == "there") << 100;
        let refused = refused.into_iter().map(|(item, why)| RefusedItem { item, why }).collect();
        Intent {
            target: target.to_owned(), state, sends, planned_ms: planned, changed_ms: changed, sent_ms: sent.map(u64::from),
            cycle_there, flags: [flag].into(), cause, refused, ..kept
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let query =
        (prop::option::of(target()), prop::collection::vec(state(), 0..4), any::<Option<u8>>(), any::<Option<u8>>());
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
        2 => query.prop_map(|(target, states, before, limit)| Step::Ask(IntentQuery {
            target: target.map(str::to_owned),
            states,
            changed_before_ms: before.map(u64::from),
            limit: limit.map(usize::from),
            ..IntentQuery::default()
        })),
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
            Step::Ask(query) => format!("{:?}", self.store.intents(query).await.unwrap()),
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
            let walk = |store| Walk { store, turns: [0; 2] };
            let (mut file, mut memory) = (walk(file), walk(Arc::new(MemoryStore::new())));
            // Without a turn nothing is kept.
            for step in [Step::Turn("there"), Step::Turn("elsewhere")].into_iter().chain(steps) {
                let (ours, naive) = (file.step(step.clone()).await, memory.step(step.clone()).await);
                prop_assert_eq!(ours, naive, "{:?}", step);
            }
            let last = Step::Ask(IntentQuery::default());
            prop_assert_eq!(file.step(last.clone()).await, memory.step(last).await);
            prop_assert_eq!(file.store.check().await.unwrap(), []);
            Ok(())
        })?;
    }
}
