//! What settled is due an hour and a day after its last change of state; and forwarding in numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::intent::{Flag, Intent, IntentId, IntentState};

use super::Make;
use super::build::forwards::{forwarded, lease, next, rule};
use super::build::{AT_MS, after, intent, push, sound};
use crate::{Advanced, DueSweep, ForwardTotals, Store};

const HOUR: u64 = 3_600_000;

/// Which intents are due at a time, and how many sweeps they have had then.
async fn due(store: &Arc<dyn Store>, now_ms: u64) -> Vec<(u32, u32)> {
    let due = store.due_sweeps("there", now_ms, &[], 100).await.expect("works");
    let name = |id: IntentId| (0..9).find(|number| intent(*number).id == id).expect("a known one");
    due.into_iter().map(|DueSweep { id, number, .. }| (name(id), number)).collect()
}

async fn swept(store: &Arc<dyn Store>, turn: u64, numbers: &[u32], number: u32) {
    let ids = numbers.iter().map(|number| intent(*number).id).collect();
    assert!(store.swept("there", turn, ids, number).await.expect("works"));
}

async fn advance(store: &Arc<dyn Store>, turn: u64, from: IntentState, step: Intent) {
    let advanced = store.advance_intent(turn, from, step).await.expect("works");
    assert_eq!(advanced, Advanced::Done);
}

pub async fn what_settled_is_due_after_an_hour_and_after_a_day(make: Make<'_>) {
    let store = make();
    let turn = lease(&store, "one", AT_MS).await.expect("free");
    let planned: Vec<Intent> = (0..9).map(intent).collect();
    store.plan_intents("there", turn, planned).await.expect("works").expect("not fenced");
    // Later ones settle earlier.
    let at = |number: u32| AT_MS + 100 - u64::from(number);
    for (number, state) in (0..).zip(IntentState::ALL) {
        let cycle_there = (number == 8).then(|| "7".to_owned());
        let step = Intent { state, changed_ms: at(number), cycle_there, ..intent(number) };
        advance(&store, turn, IntentState::Planned, step).await;
    }
    assert_eq!(due(&store, at(8) + HOUR - 1).await, []);
    assert_eq!(due(&store, at(8) + HOUR).await, [(8, 1)]);
    // Parked, found, acked: those that settled first come first.
    assert_eq!(due(&store, at(2) + HOUR).await, [(8, 1), (6, 1), (2, 1)]);
    let two = store.due_sweeps("there", at(2) + HOUR, &[], 2).await.expect("works");
    let (parked, found) = (intent(8).id, intent(6).id);
    let expected = [
        DueSweep { id: parked, cycle_there: Some("7".to_owned()), number: 1 },
        DueSweep { id: found, cycle_there: None, number: 1 },
    ];
    assert_eq!(two, expected);
    assert_eq!(store.due_sweeps("elsewhere", u64::MAX, &[], 9).await.expect("works"), []);
    swept(&store, turn, &[8, 6], 1).await;
    assert_eq!(due(&store, at(2) + HOUR).await, [(2, 1)]);
    assert_eq!(due(&store, at(6) + 24 * HOUR - 1).await, [(8, 2), (2, 1)]);
    // One that is late stands for both.
    assert_eq!(due(&store, at(2) + 30 * HOUR).await, [(8, 2), (6, 2), (2, 2)]);
    swept(&store, turn, &[8, 6, 2], 2).await;
    assert_eq!(due(&store, u64::MAX >> 1).await, []);
    sound(&store).await;
}

/// Of a cycle that is left out nothing is due, however much of it is; and an earlier send of what was refused may come late.
pub async fn what_is_left_out_hides_nothing_and_what_was_refused_late_is_due(make: Make<'_>) {
    let store = make();
    let turn = lease(&store, "one", AT_MS).await.expect("free");
    let planned: Vec<Intent> = (0..6).map(intent).collect();
    store.plan_intents("there", turn, planned).await.expect("works").expect("not fenced");
    // Three of one cycle come first, one of none, and two that were refused: at once, and after a silence.
    for (number, cycle, state, sends) in [
        (0, Some("7"), IntentState::Acked, 1),
        (1, Some("7"), IntentState::Parked, 1),
        (2, Some("7"), IntentState::Rejected, 2),
        (3, None, IntentState::Found, 0),
        (4, Some("8"), IntentState::Rejected, 1),
        (5, Some("8"), IntentState::Rejected, 2),
    ] {
        let changed_ms = AT_MS + u64::from(number);
        let step = Intent { state, sends, changed_ms, cycle_there: cycle.map(str::to_owned), ..intent(number) };
        advance(&store, turn, IntentState::Planned, step).await;
    }
    let now_ms = AT_MS + 9 + HOUR;
    assert_eq!(due(&store, now_ms).await, [(0, 1), (1, 1), (2, 1), (3, 1), (5, 1)]);
    let without = |cycles: &'static [&str], limit| {
        let (store, cycles) = (Arc::clone(&store), cycles.iter().map(|&cycle| cycle.to_owned()).collect::<Vec<_>>());
        async move {
            let due = store.due_sweeps("there", now_ms, &cycles, limit).await.expect("works");
            let of = |id: IntentId| (0..6).find(|number| intent(*number).id == id).expect("a known one");
            due.into_iter().map(|due| of(due.id)).collect::<Vec<u32>>()
        }
    };
    assert_eq!(without(&["7"], 1).await, [3]);
    assert_eq!(without(&["7"], 9).await, [3, 5]);
    assert_eq!(without(&["7", "8", "it's \"9\""], 9).await, [3]);
    assert_eq!(without(&["8", ""], 9).await, [0, 1, 2]);
    swept(&store, turn, &[2], 2).await;
    assert_eq!(without(&["8"], 9).await, [0, 1, 3]);
    sound(&store).await;
}

/// A flag is no change of state; a person who resumes what is parked makes one.
pub async fn a_change_of_state_is_swept_anew(make: Make<'_>) {
    let store = make();
    let turn = lease(&store, "one", AT_MS).await.expect("free");
    store.plan_intents("there", turn, vec![intent(0)]).await.expect("works").expect("not fenced");
    let parked = Intent { state: IntentState::Parked, changed_ms: AT_MS + 1, ..intent(0) };
    advance(&store, turn, IntentState::Planned, parked.clone()).await;
    swept(&store, turn, &[0], 1).await;
    let flagged = Intent { flags: [Flag::Vanished].into(), changed_ms: AT_MS + 5 * HOUR, ..parked };
    advance(&store, turn, IntentState::Parked, flagged.clone()).await;
    assert_eq!(due(&store, AT_MS + 24 * HOUR).await, []);
    assert_eq!(due(&store, AT_MS + 1 + 24 * HOUR).await, [(0, 2)]);
    let resumed = Intent { state: IntentState::Unknown, ..flagged.clone() };
    advance(&store, turn, IntentState::Parked, resumed).await;
    assert_eq!(due(&store, AT_MS + 30 * HOUR).await, []);
    let found = Intent { state: IntentState::Found, changed_ms: AT_MS + 40 * HOUR, ..flagged };
    advance(&store, turn, IntentState::Unknown, found).await;
    assert_eq!(due(&store, AT_MS + 41 * HOUR - 1).await, []);
    assert_eq!(due(&store, AT_MS + 41 * HOUR).await, [(0, 1)]);
    // An intent of another target is not meant.
    let turn = store.take_lease("elsewhere", "one", AT_MS, AT_MS + 1).await.expect("works").expect("free");
    assert!(store.swept("elsewhere", turn, vec![intent(0).id], 2).await.expect("works"));
    assert_eq!(due(&store, AT_MS + 41 * HOUR).await, [(0, 1)]);
}

pub async fn forwarding_is_told_in_numbers(make: Make<'_>) {
    let store = make();
    assert_eq!(store.forward_totals().await.expect("works"), BTreeMap::new());
    store.set_forward_rules(vec![rule("there", &[], &["main"]), rule("second", &[], &[])]);
    for (key, ms) in [("a", 50), ("b", 60)] {
        assert!(matches!(push("a+").key(key).at(&store, after(ms)).await, crate::Recorded::Accepted(_)));
    }
    let turn = lease(&store, "one", AT_MS).await.expect("free");
    assert!(store.end_waiting(turn, &next(&store, AT_MS).await.expect("waits"), forwarded(1)).await.expect("works"));
    let settled = Intent { state: IntentState::Acked, planned_ms: AT_MS - 9, ..intent(0) };
    let flagged = |number, flags: &[Flag]| Intent { flags: flags.iter().copied().collect(), ..intent(number) };
    let planned = vec![
        settled,
        Intent { planned_ms: AT_MS + 55, ..flagged(1, &[Flag::Stale, Flag::Vanished]) },
        Intent { planned_ms: AT_MS + 55, state: IntentState::Parked, ..flagged(2, &[Flag::Stale]) },
        Intent { planned_ms: AT_MS + 55, ..flagged(3, &[Flag::Stale]) },
        // A person has looked at these.
        Intent { state: IntentState::Parked, ..flagged(4, &[Flag::GivenUp, Flag::Vanished]) },
        Intent { state: IntentState::Acked, ..flagged(5, &[Flag::DuplicateDetected, Flag::GivenUp]) },
    ];
    store.plan_intents("there", turn, planned).await.expect("works").expect("not fenced");
    let there = ForwardTotals {
        states: [(IntentState::Acked, 2), (IntentState::Planned, 2), (IntentState::Parked, 1)].into(),
        flags: [(Flag::Stale, 3), (Flag::Vanished, 1), (Flag::GivenUp, 2)].into(),
        waiting: 1,
        oldest_ms: Some(AT_MS + 55),
    };
    let looked_at = Intent { state: IntentState::Parked, target: "second".to_owned(), ..flagged(6, &[Flag::GivenUp]) };
    let other = store.take_lease("second", "one", AT_MS, AT_MS + 1).await.expect("works").expect("free");
    store.plan_intents("second", other, vec![looked_at]).await.expect("works").expect("not fenced");
    let second = ForwardTotals {
        flags: [(Flag::GivenUp, 1)].into(),
        waiting: 2,
        oldest_ms: Some(AT_MS + 50),
        ..ForwardTotals::default()
    };
    let expected = BTreeMap::from([("there".to_owned(), there), ("second".to_owned(), second)]);
    assert_eq!(store.forward_totals().await.expect("works"), expected);
}
