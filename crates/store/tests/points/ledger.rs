//! What a forwarder keeps, step by step.

use std::sync::Arc;

use domain::forwarding::TargetPlace;
use domain::intent::{Intent, IntentState};
use store::conformance::build::{self, intent, write};
use store::{Store, StoreError};

/// One call, by the forwarder that has the first turn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Turn,
    Plan(&'static [u32]),
    Advance(u32, IntentState, IntentState),
    KeepCycle(Option<&'static str>),
    Bind(&'static str),
    Move(&'static str),
}

/// Everything that writes into a ledger, at least once; more than one row where a call writes more.
pub(crate) const STEPS: [Step; 11] = [
    Step::Turn,
    Step::Bind("a"),
    Step::Plan(&[0, 1, 2]),
    Step::KeepCycle(Some("7")),
    Step::Advance(1, IntentState::Planned, IntentState::Sending),
    Step::Advance(1, IntentState::Sending, IntentState::Acked),
    Step::KeepCycle(Some("8")),
    Step::Plan(&[2, 3, 4]),
    Step::KeepCycle(None),
    Step::Move("b"),
    Step::Bind("a"),
];

impl Step {
    pub(crate) async fn take(self, store: Arc<dyn Store>) -> Result<String, StoreError> {
        Ok(match self {
            Step::Turn => format!("{:?}", store.next_turn("there").await?),
            Step::Plan(numbers) => {
                let intents = numbers.iter().copied().map(intent).collect();
                format!("{:?}", store.plan_intents("there", 1, intents).await?)
            }
            Step::Advance(number, from, state) => {
                let step = Intent { state, sends: 1, changed_ms: build::AT_MS + 1, ..intent(number) };
                format!("{:?}", store.advance_intent(1, from, step).await?)
            }
            Step::KeepCycle(cycle) => {
                let cycle = cycle.map(str::to_owned);
                format!("{:?}", store.keep_cycle_there("there", 1, write(), cycle).await?)
            }
            Step::Bind(place) => format!("{:?}", store.bind_place("there", 1, TargetPlace::new(place)).await?),
            Step::Move(place) => format!("{:?}", store.move_place("there", 1, TargetPlace::new(place)).await?),
        })
    }
}
