//! The ledger of forwarders: what is planned, who may go on, and from where.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::CycleName;
use domain::intent::{Flag, Intent, IntentId, IntentState, RefusedItem};
use domain::listing::IntentReport;
use domain::marker::WriteId;

use super::Make;
use super::build::{AT_MS, intent, main_cycle, push, shop, sound, write};
use crate::{Advanced, IntentQuery, Store, StoreError};

async fn turn(store: &Arc<dyn Store>) -> u64 {
    store.next_turn("there").await.expect("works")
}

/// Plans them for target `there`, and the turn has to count.
async fn plan(store: &Arc<dyn Store>, turn: u64, intents: Vec<Intent>) -> Vec<Intent> {
    store.plan_intents("there", turn, intents).await.expect("works").expect("not fenced")
}

async fn advance(store: &Arc<dyn Store>, turn: u64, from: IntentState, intent: &Intent) -> Advanced {
    store.advance_intent(turn, from, intent.clone()).await.expect("works")
}

async fn all(store: &Arc<dyn Store>) -> Vec<Intent> {
    store.intents(IntentQuery::default()).await.expect("works")
}

/// Numbers of the intents that a query finds.
async fn numbers(store: &Arc<dyn Store>, query: IntentQuery) -> Vec<u32> {
    store.intents(query).await.expect("works").into_iter().map(|intent| intent.number).collect()
}

fn sending(number: u32) -> Intent {
    Intent { state: IntentState::Sending, sends: 1, sent_ms: Some(AT_MS + 5), ..intent(number) }
}

pub async fn everything_of_an_intent_comes_back(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    let full = Intent {
        id: IntentId(u128::MAX - 1),
        sends: 3,
        sent_ms: Some(AT_MS + 7),
        seen_ms: Some(AT_MS + 8),
        cycle_there: Some("Zyklus \"ü\"".to_owned()),
        flags: Flag::ALL.into_iter().collect(),
        cause: Some("it broke\nover 'two' lines".to_owned()),
        refused: vec![RefusedItem::new("suite › a", "no case \\ there")],
        body: (0..=255).collect(),
        ..intent(9)
    };
    let mut planned = vec![full];
    for (number, state) in (0..).zip(IntentState::ALL) {
        planned.push(Intent { state, ..intent(number) });
    }
    plan(&store, turn, planned.clone()).await;
    planned.rotate_left(1);
    assert_eq!(all(&store).await, planned);
    sound(&store).await;
}

pub async fn planning_again_finds_what_is_kept(make: Make<'_>) {
    let store = make();
    let first = turn(&store).await;
    assert_eq!(plan(&store, first, vec![intent(0), intent(1)]).await, [intent(0), intent(1)]);
    assert_eq!(advance(&store, first, IntentState::Planned, &sending(1)).await, Advanced::Done);
    // Another process, later, plans the same and one more; and one of them twice.
    let second = turn(&store).await;
    let later = |number| Intent { planned_ms: AT_MS + 999, body: b"other".to_vec(), ..intent(number) };
    let again = vec![later(2), later(1), later(0), Intent { cases: 7, ..later(2) }];
    assert_eq!(plan(&store, second, again).await, [later(2), sending(1), intent(0), later(2)]);
    assert_eq!(all(&store).await, [intent(0), sending(1), later(2)]);
    assert_eq!(plan(&store, second, vec![]).await, []);
}

pub async fn intents_of_another_target_are_not_planned(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    let stray = Intent { target: "elsewhere".to_owned(), ..intent(1) };
    let refused = store.plan_intents("there", turn, vec![intent(0), stray]).await;
    assert!(matches!(refused, Err(StoreError::NotWritten { .. })), "{refused:?}");
    assert_eq!(all(&store).await, []);
}

pub async fn an_overtaken_turn_keeps_nothing(make: Make<'_>) {
    let store = make();
    let old = turn(&store).await;
    plan(&store, old, vec![intent(0)]).await;
    assert!(store.keep_cycle_there("there", old, write(), Some("7".to_owned())).await.expect("works"));
    let new = turn(&store).await;
    assert!(new > old);
    // One that was never given out does not count either.
    for fenced in [0, old, new + 1] {
        assert_eq!(store.plan_intents("there", fenced, vec![intent(1)]).await.expect("works"), None);
        assert_eq!(store.plan_intents("there", fenced, vec![]).await.expect("works"), None);
        assert_eq!(advance(&store, fenced, IntentState::Planned, &sending(0)).await, Advanced::Fenced);
        for cycle in [None, Some("8".to_owned())] {
            assert!(!store.keep_cycle_there("there", fenced, write(), cycle).await.expect("works"));
        }
    }
    assert_eq!(all(&store).await, [intent(0)]);
    assert_eq!(store.cycle_there("there", write()).await.expect("works").as_deref(), Some("7"));
    assert_eq!(advance(&store, new, IntentState::Planned, &sending(0)).await, Advanced::Done);
}

pub async fn turns_of_targets_are_apart(make: Make<'_>) {
    let store = make();
    // Nobody has taken a turn at either.
    assert_eq!(store.plan_intents("there", 0, vec![intent(0)]).await.expect("works"), None);
    assert_eq!(store.plan_intents("there", 1, vec![intent(0)]).await.expect("works"), None);
    assert_eq!(turn(&store).await, 1);
    for expected in 1..4 {
        assert_eq!(store.next_turn("elsewhere").await.expect("works"), expected);
    }
    plan(&store, 1, vec![intent(0)]).await;
    let elsewhere = Intent { target: "elsewhere".to_owned(), ..intent(1) };
    assert_eq!(store.plan_intents("elsewhere", 1, vec![elsewhere.clone()]).await.expect("works"), None);
    assert!(store.plan_intents("elsewhere", 3, vec![elsewhere]).await.expect("works").is_some());
    assert!(store.keep_cycle_there("elsewhere", 3, write(), Some("9".to_owned())).await.expect("works"));
    assert_eq!(store.cycle_there("there", write()).await.expect("works"), None);
}

pub async fn a_step_is_kept_from_the_kept_state_alone(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    assert_eq!(advance(&store, turn, IntentState::Planned, &sending(0)).await, Advanced::Unplanned);
    plan(&store, turn, vec![intent(0)]).await;
    for other in IntentState::ALL.into_iter().filter(|state| *state != IntentState::Planned) {
        let kept = Advanced::Elsewhere(IntentState::Planned);
        assert_eq!(advance(&store, turn, other, &sending(0)).await, kept, "from {other}");
    }
    assert_eq!(all(&store).await, [intent(0)]);
    assert_eq!(advance(&store, turn, IntentState::Planned, &sending(0)).await, Advanced::Done);
    // The same step again has happened already.
    let again = Intent { sends: 2, ..sending(0) };
    let kept = Advanced::Elsewhere(IntentState::Sending);
    assert_eq!(advance(&store, turn, IntentState::Planned, &again).await, kept);
    assert_eq!(all(&store).await, [sending(0)]);
    // Another target's turn says nothing of it.
    let elsewhere = store.next_turn("elsewhere").await.expect("works");
    let stray = Intent { target: "elsewhere".to_owned(), ..sending(0) };
    assert_eq!(advance(&store, elsewhere, IntentState::Sending, &stray).await, Advanced::Unplanned);
}

pub async fn a_step_leaves_what_was_planned(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    plan(&store, turn, vec![intent(0), intent(1)]).await;
    let step = Intent {
        state: IntentState::Parked,
        sends: 4,
        planned_ms: AT_MS + 7,
        changed_ms: AT_MS + 9,
        sent_ms: Some(AT_MS + 8),
        seen_ms: Some(AT_MS + 9),
        cycle_there: Some("12".to_owned()),
        flags: BTreeSet::from([Flag::Partial, Flag::AtMostOnce]),
        cause: Some("no answer".to_owned()),
        refused: vec![RefusedItem::new("a", "no such case")],
        ..intent(0)
    };
    let otherwise = Intent { number: 5, cases: 9, body: b"other".to_vec(), ..step.clone() };
    assert_eq!(advance(&store, turn, IntentState::Planned, &otherwise).await, Advanced::Done);
    assert_eq!(all(&store).await, [intent(1), step.clone()], "by when it was planned last");
    // What is not so any more goes.
    let cleared = Intent { state: IntentState::Unknown, ..intent(0) };
    assert_eq!(advance(&store, turn, IntentState::Parked, &cleared).await, Advanced::Done);
    assert_eq!(all(&store).await, [cleared, intent(1)]);
    sound(&store).await;
}

pub async fn intents_come_oldest_first(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    let at = |id: u128, planned_ms, number| Intent { id: IntentId(id), planned_ms, number, ..intent(0) };
    // Ids fall, so that an order by them would show.
    let (late, second, first, tied) = (at(9, 50, 0), at(8, 20, 1), at(7, 20, 0), at(6, 20, 1));
    plan(&store, turn, vec![late.clone(), second.clone(), first.clone()]).await;
    plan(&store, turn, vec![tied.clone()]).await;
    let step = Intent { state: IntentState::Sending, changed_ms: 99, ..first.clone() };
    assert_eq!(advance(&store, turn, IntentState::Planned, &step).await, Advanced::Done);
    assert_eq!(all(&store).await, [step, second, tied, late]);
    for limit in 0..6 {
        let query = IntentQuery { limit: Some(limit), ..IntentQuery::default() };
        assert_eq!(numbers(&store, query).await, [0, 1, 1, 0][..limit.min(4)]);
    }
}

pub async fn intents_are_found_by_what_they_are(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    let cycle = CycleName::parse("pr-17").expect("a cycle");
    let other = domain::ProjectId::parse("other").expect("a project");
    let key = |text| domain::PushKey::parse(text).expect("a key");
    let mine = vec![
        intent(0),
        Intent { state: IntentState::Acked, changed_ms: AT_MS + 10, cycle_there: Some("7".to_owned()), ..intent(1) },
        Intent { state: IntentState::Unknown, changed_ms: AT_MS + 20, cycle: cycle.clone(), ..intent(2) },
        Intent { state: IntentState::Parked, project: other.clone(), key: key("other"), ..intent(3) },
    ];
    plan(&store, turn, mine).await;
    let elsewhere = Intent { target: "elsewhere".to_owned(), cycle_there: Some("7".to_owned()), ..intent(4) };
    let second = store.next_turn("elsewhere").await.expect("works");
    store.plan_intents("elsewhere", second, vec![elsewhere]).await.expect("works").expect("not fenced");
    let base = IntentQuery::default;
    let states = |states: &[IntentState]| IntentQuery { states: states.to_vec(), ..base() };
    let there = Some("there".to_owned());
    let cases = [
        (base(), vec![0, 1, 2, 3, 4]),
        (IntentQuery { ids: vec![intent(3).id, intent(9).id, intent(1).id], ..base() }, vec![1, 3]),
        (IntentQuery { ids: vec![intent(3).id], target: Some("elsewhere".to_owned()), ..base() }, vec![]),
        (IntentQuery { target: there.clone(), ..base() }, vec![0, 1, 2, 3]),
        (IntentQuery { target: Some("nowhere".to_owned()), ..base() }, vec![]),
        (states(&[IntentState::Planned]), vec![0, 4]),
        (states(&[IntentState::Parked, IntentState::Acked, IntentState::Acked]), vec![1, 3]),
        (IntentQuery { target: there.clone(), ..states(&[IntentState::Planned, IntentState::Unknown]) }, vec![0, 2]),
        (IntentQuery { project: Some(shop()), ..base() }, vec![0, 1, 2, 4]),
        (IntentQuery { project: Some(other), ..base() }, vec![3]),
        (IntentQuery { cycle: Some(cycle), ..base() }, vec![2]),
        (IntentQuery { project: Some(shop()), cycle: Some(main_cycle()), ..base() }, vec![0, 1, 4]),
        (IntentQuery { key: Some(key("k")), ..base() }, vec![0, 1, 2, 4]),
        (IntentQuery { project: Some(shop()), key: Some(key("other")), ..base() }, vec![]),
        (IntentQuery { cycle_there: Some("7".to_owned()), ..base() }, vec![1, 4]),
        (IntentQuery { target: there.clone(), cycle_there: Some("7".to_owned()), ..base() }, vec![1]),
        (IntentQuery { changed_before_ms: Some(AT_MS + 10), ..base() }, vec![0, 3, 4]),
        (IntentQuery { changed_before_ms: Some(AT_MS + 11), target: there, limit: Some(2), ..base() }, vec![0, 1]),
        (IntentQuery { changed_before_ms: Some(0), ..base() }, vec![]),
    ];
    for (query, expected) in cases {
        assert_eq!(numbers(&store, query.clone()).await, expected, "{query:?}");
    }
}

/// In doubt is what may be written, and what a flag says is wrong; not once a person has looked.
pub async fn what_is_in_doubt_is_found_apart_from_the_rest(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    let with = |number, state, flags: &[Flag]| Intent {
        state,
        flags: flags.iter().copied().collect(),
        refused: vec![RefusedItem::new("a", "no such case")],
        ..intent(number)
    };
    let states = (0..).zip(IntentState::ALL).flat_map(|(number, state)| {
        [with(number, state, &[]), with(number + 10, state, &[Flag::GivenUp, Flag::Vanished])]
    });
    let flags = (20..).zip(Flag::ALL).map(|(number, flag)| with(number, IntentState::Acked, &[Flag::Stale, flag]));
    let planned: Vec<Intent> = states.chain(flags).collect();
    plan(&store, turn, planned.clone()).await;
    for in_doubt in [true, false] {
        let mut expected: Vec<Intent> =
            planned.iter().filter(|intent| intent.is_in_doubt() == in_doubt).cloned().collect();
        expected.sort_by_key(|intent| intent.number);
        assert!(expected.len() > 10, "{}", expected.len());
        let query = IntentQuery { in_doubt: Some(in_doubt), ..IntentQuery::default() };
        assert_eq!(store.intents(query.clone()).await.expect("works"), expected);
        // Who only lists is told the same.
        let listed: Vec<IntentReport> = expected.into_iter().map(IntentReport::from).collect();
        assert_eq!(store.intent_reports(query).await.expect("works"), listed);
    }
}

pub async fn a_cycle_there_is_kept_and_forgotten(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    let other = WriteId(write().0 ^ 1);
    for cycle in [None, Some("7"), Some("8 \"ü\""), None, Some("9")] {
        let kept = store.keep_cycle_there("there", turn, write(), cycle.map(str::to_owned)).await;
        assert!(kept.expect("works"));
        assert_eq!(store.cycle_there("there", write()).await.expect("works").as_deref(), cycle);
        assert_eq!(store.cycle_there("there", other).await.expect("works"), None);
    }
    assert!(store.keep_cycle_there("there", turn, other, None).await.expect("works"));
    assert_eq!(store.cycle_there("there", write()).await.expect("works").as_deref(), Some("9"));
}

/// Whoever sends is one: the others hear that it is on its way.
pub async fn of_many_at_once_one_takes_a_step(make: Make<'_>) {
    let store = make();
    let turn = turn(&store).await;
    for number in 0..8 {
        plan(&store, turn, vec![intent(number)]).await;
        let tasks: Vec<_> = (1..=8)
            .map(|sends| {
                let (store, step) = (Arc::clone(&store), Intent { sends, ..sending(number) });
                tokio::spawn(async move { (sends, advance(&store, turn, IntentState::Planned, &step).await) })
            })
            .collect();
        let mut done = Vec::new();
        for task in tasks {
            match task.await.expect("no panic") {
                (sends, Advanced::Done) => done.push(sends),
                (_, other) => assert_eq!(other, Advanced::Elsewhere(IntentState::Sending)),
            }
        }
        assert_eq!(done.len(), 1, "{done:?}");
        assert_eq!(all(&store).await[number as usize].sends, done[0]);
    }
}

pub async fn turns_taken_at_once_are_all_different(make: Make<'_>) {
    let store = make();
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { turn(&store).await })
        })
        .collect();
    let mut turns = BTreeSet::new();
    for task in tasks {
        turns.insert(task.await.expect("no panic"));
    }
    assert_eq!(turns, (1..=32).collect());
}

/// What it tells of stands elsewhere, and stays there.
pub async fn a_dropped_round_leaves_what_was_forwarded(make: Make<'_>) {
    let store = make();
    push("a+ b-").run("1").keyed().accepted(&store).await;
    let turn = turn(&store).await;
    plan(&store, turn, vec![intent(0)]).await;
    store.keep_cycle_there("there", turn, write(), Some("7".to_owned())).await.expect("works");
    assert_eq!(store.drop_round(&shop(), &main_cycle(), "1").await.expect("works"), Ok(1));
    assert_eq!(all(&store).await, [intent(0)]);
    assert_eq!(store.cycle_there("there", write()).await.expect("works").as_deref(), Some("7"));
    assert_eq!(advance(&store, turn, IntentState::Planned, &sending(0)).await, Advanced::Done);
    sound(&store).await;
}
