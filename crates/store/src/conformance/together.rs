//! Deliveries at the same time.

use std::sync::Arc;

use super::Make;
use super::build::{Build, accepted, cycle, numbered, page, push, query, sound};
use crate::{Recorded, Store};

/// Delivers all of them at once.
async fn all(store: &Arc<dyn Store>, pushes: Vec<Build>) -> Vec<Recorded> {
    let tasks: Vec<_> = pushes
        .into_iter()
        .map(|push| {
            let store = Arc::clone(store);
            tokio::spawn(async move { push.to(&store).await })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.expect("no panic"));
    }
    answers
}

pub async fn one_push_a_hundred_times_is_recorded_once(make: Make<'_>) {
    let store = make();
    let one = push(&numbered(0..40, '+')).attempt(1).executor("runner");
    let answers = all(&store, vec![one; 100]).await;
    let accepted: Vec<_> = answers.into_iter().map(accepted).collect();
    assert_eq!(accepted.iter().filter(|answer| !answer.replayed).count(), 1);
    assert!(accepted.iter().all(|answer| answer.receipt == accepted[0].receipt));
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!((round.counts.total, round.repeats), (40, 99));
    sound(&store).await;
}

pub async fn two_legs_at_once_are_one_recorded_and_one_refused(make: Make<'_>) {
    let store = make();
    let legs = vec![push("a+ b+").attempt(1).executor("linux"), push("a+ b+").attempt(1).executor("mac")];
    let answers = all(&store, legs).await;
    assert_eq!(answers.iter().filter(|answer| matches!(answer, Recorded::Accepted(_))).count(), 1);
    assert_eq!(cycle(&store).await.rounds[0].counts.total, 2);
    sound(&store).await;
}

pub async fn many_pushes_at_once_all_count(make: Make<'_>) {
    let store = make();
    let shards: Vec<Build> = (1..=24)
        .map(|shard: u32| push(&numbered(shard * 10..shard * 10 + 10, '+')).shard(&format!("{shard}/24")).keyed())
        .collect();
    let twice: Vec<Build> = shards.iter().chain(&shards).cloned().collect();
    all(&store, twice).await;
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!((round.counts.total, round.overlaps, round.repeats), (240, 0, 24));
    assert!(round.complete);
    sound(&store).await;
}

pub async fn s26_one_report_in_two_projects(make: Make<'_>) {
    let store = make();
    let answers = all(&store, vec![push("a+ b+"), push("a+ b+").project("other")]).await;
    for answer in answers {
        assert!(matches!(answer, Recorded::Accepted(answer) if !answer.replayed));
    }
    assert_eq!(page(&store, &query()).await.total, 2);
    sound(&store).await;
}
