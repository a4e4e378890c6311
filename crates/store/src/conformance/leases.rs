//! Who works at a target: one holder, until its lease ends; and nobody else's write is kept.

use std::sync::Arc;

use domain::intent::IntentState;

use super::Make;
use super::build::forwards::{all, forwarded, lease, next, to_there};
use super::build::{AT_MS, intent, push, sound, write};
use crate::{Advanced, Store};

async fn keeps(store: &Arc<dyn Store>, turn: u64, until_ms: u64) -> bool {
    store.keep_lease("there", turn, until_ms).await.expect("works")
}

pub async fn a_second_holder_waits_until_the_lease_ends(make: Make<'_>) {
    let store = make();
    let first = lease(&store, "one", AT_MS).await.expect("free");
    assert_eq!(lease(&store, "two", AT_MS + 59_999).await, None);
    // Another target is another's.
    assert_eq!(store.take_lease("elsewhere", "two", AT_MS, AT_MS + 1).await.expect("works"), Some(1));
    // Kept for longer than it was taken for.
    assert!(keeps(&store, first, AT_MS + 90_000).await);
    assert_eq!(lease(&store, "two", AT_MS + 89_999).await, None);
    let second = lease(&store, "two", AT_MS + 90_000).await.expect("expired");
    assert!(second > first);
    assert!(!keeps(&store, first, AT_MS + 200_000).await);
    store.end_lease("there", first).await.expect("works");
    assert_eq!(lease(&store, "one", AT_MS + 90_001).await, None);
    // Given back, it is free at once, and can't be kept any more.
    store.end_lease("there", second).await.expect("works");
    assert!(!keeps(&store, second, AT_MS + 200_000).await);
    let third = lease(&store, "one", AT_MS + 90_002).await.expect("free");
    assert!(third > second);
    // The same holder again has forgotten its turn.
    let fourth = lease(&store, "one", AT_MS + 90_003).await.expect("its own");
    assert!(fourth > third && !keeps(&store, third, AT_MS + 200_000).await);
    sound(&store).await;
}

pub async fn a_clock_that_went_back_holds_nobody_up_for_longer_than_a_lease(make: Make<'_>) {
    let store = make();
    let first = lease(&store, "one", AT_MS + 86_400_000).await.expect("free");
    assert_eq!(lease(&store, "two", AT_MS).await, None);
    assert_eq!(lease(&store, "two", AT_MS + 59_999).await, None);
    assert!(lease(&store, "two", AT_MS + 60_000).await.expect("expired") > first);
}

pub async fn a_turn_taken_without_a_lease_ends_it(make: Make<'_>) {
    let store = make();
    let first = lease(&store, "one", AT_MS).await.expect("free");
    let second = store.next_turn("there").await.expect("works");
    assert!(second > first && !keeps(&store, first, AT_MS + 60_000).await);
    assert!(lease(&store, "two", AT_MS + 1).await.expect("free") > second);
}

pub async fn an_overtaken_holder_writes_nothing(make: Make<'_>) {
    let store = make();
    to_there(&store);
    push("a+").accepted(&store).await;
    let old = lease(&store, "one", AT_MS).await.expect("free");
    store.plan_intents("there", old, vec![intent(0)]).await.expect("works").expect("not fenced");
    let waiting = next(&store, AT_MS).await.expect("waits");
    let before = all(&store).await;
    let new = lease(&store, "two", AT_MS + 60_000).await.expect("expired");
    for fenced in [0, old, new + 1] {
        assert!(!store.put_off(fenced, &waiting, AT_MS, "late").await.expect("works"));
        assert!(!store.end_waiting(fenced, &waiting, forwarded(1)).await.expect("works"));
        assert!(!store.swept("there", fenced, vec![intent(0).id], 2).await.expect("works"));
        assert!(!keeps(&store, fenced, AT_MS + 200_000).await);
        store.end_lease("there", fenced).await.expect("works");
        assert_eq!(store.plan_intents("there", fenced, vec![intent(1)]).await.expect("works"), None);
        let step = store.advance_intent(fenced, IntentState::Planned, intent(0)).await.expect("works");
        assert_eq!(step, Advanced::Fenced);
        assert!(!store.keep_cycle_there("there", fenced, write(), None).await.expect("works"));
    }
    assert_eq!(all(&store).await, before);
    assert_eq!(lease(&store, "one", AT_MS + 60_001).await, None);
    assert!(store.end_waiting(new, &waiting, forwarded(1)).await.expect("works"));
    assert_eq!(next(&store, AT_MS).await, None);
}

pub async fn of_many_at_once_one_holds_a_target(make: Make<'_>) {
    let store = make();
    for round in 1..=4_u64 {
        let tasks: Vec<_> = (0..16)
            .map(|holder| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { lease(&store, &format!("{holder}"), AT_MS + round * 60_000).await })
            })
            .collect();
        let mut turns = Vec::new();
        for task in tasks {
            turns.extend(task.await.expect("no panic"));
        }
        assert_eq!(turns, [round]);
    }
}
