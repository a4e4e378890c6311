//! Short hands for intents.

use std::collections::BTreeSet;

use domain::intent::{Intent, IntentId, IntentState};
use domain::marker::WriteId;
use domain::{PushKey, RoundId};

use super::{AT_MS, main_cycle, shop};

/// Intent `number` of push `k` for target `there`, planned now.
pub fn intent(number: u32) -> Intent {
    Intent {
        id: IntentId(0xa11 << 64 | u128::from(number)),
        target: "there".to_owned(),
        project: shop(),
        cycle: main_cycle(),
        round: RoundId::parse("run:1").expect("a round"),
        key: PushKey::parse("k").expect("a key"),
        number,
        cases: 2,
        state: IntentState::Planned,
        sends: 0,
        planned_ms: AT_MS,
        changed_ms: AT_MS,
        sent_ms: None,
        seen_ms: None,
        cycle_there: None,
        flags: BTreeSet::new(),
        cause: None,
        refused: Vec::new(),
        body: format!("body {number}").into_bytes(),
    }
}

/// What round `run:1` is found again by.
pub fn write() -> WriteId {
    WriteId::of_cycle(&shop(), "main", "run:1")
}
