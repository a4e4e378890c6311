//! Items that more than one push holds.

use domain::{OnDifference, Status};

use super::Make;
use super::build::{cycle, page, push, query, receipt, shop, sound, words};

pub async fn s21_an_overlap_counts_once_and_worst(make: Make<'_>) {
    let store = make();
    push("a+ b- c~ d+").job("test-linux").attempt(1).keyed().accepted(&store).await;
    push("a- b! c+ e+").job("test-mac").attempt(1).keyed().accepted(&store).await;
    assert_eq!(words(&store).await, "a- b! c+ d+ e+");
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!((round.counts.total, round.overlaps), (5, 3));
    let items = page(&store, &query()).await.items;
    assert_eq!(items.iter().map(|item| item.pushes).collect::<Vec<_>>(), [2, 2, 2, 1, 1]);
    sound(&store).await;
}

pub async fn a_higher_attempt_wins_an_overlap(make: Make<'_>) {
    let store = make();
    push("a+ b+").job("one").attempt(2).keyed().accepted(&store).await;
    push("a- b-").job("two").attempt(1).keyed().accepted(&store).await;
    assert_eq!(words(&store).await, "a+ b+");
    // A revised verdict goes before one that is not.
    push("a! b-").job("two").attempt(1).incarnation(9).on(OnDifference::Revise).keyed().accepted(&store).await;
    assert_eq!(words(&store).await, "a! b-");
    sound(&store).await;
}

/// S1, S13.
pub async fn variants_are_counted_apart(make: Make<'_>) {
    let store = make();
    push("a+ b+").variant("os=linux").keyed().accepted(&store).await;
    push("a- b+").variant("os=mac").keyed().accepted(&store).await;
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!((round.counts.total, round.counts.failed, round.overlaps), (4, 1, 0));
    assert_eq!(round.shards.len(), 2);
    sound(&store).await;
}

pub async fn s10_items_that_moved_between_shards_count_once(make: Make<'_>) {
    let store = make();
    push("a- b+ c+").shard("1/2").keyed().accepted(&store).await;
    push("d- e+ f+").shard("2/2").keyed().accepted(&store).await;
    // "Rerun failed tests" puts both onto the second node.
    let moved = push("a+ d+").shard("2/2").keyed();
    moved.accepted(&store).await;
    assert_eq!(cycle(&store).await.rounds[0].counts.total, 6);
    moved.clone().on(OnDifference::Revise).incarnation(5).accepted(&store).await;
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!(round.counts.total, 6);
    sound(&store).await;
}

pub async fn differences_are_listed_item_by_item(make: Make<'_>) {
    let store = make();
    let first = push("a- b+ x+").attempt(1);
    first.accepted(&store).await;
    let answer = push("a+ b+ c-").attempt(2).accepted(&store).await;
    let report = store.difference(&shop(), first.id(), 2).await.expect("works").expect("exists");
    let mut items: Vec<_> = report.items.iter().map(|d| (d.item.name().to_owned(), d.recorded, d.offered)).collect();
    items.sort_by(|a, b| a.0.cmp(&b.0));
    let (passed, failed) = (Some(Status::Passed), Some(Status::Failed));
    assert_eq!(
        items,
        [("a".to_owned(), failed, passed), ("c".to_owned(), None, failed), ("x".to_owned(), passed, None)]
    );
    let listed = receipt(&answer).difference.expect("a difference").items;
    assert_eq!(listed.len(), 2, "a receipt lists changed and added items");
    let of_first = store.difference(&shop(), first.id(), 1).await.expect("works").expect("exists");
    assert!(of_first.items.is_empty());
    let none = store.difference(&shop(), first.id(), 3).await.expect("works");
    assert_eq!(none.err(), Some(crate::Absent::Revision(3)));
    sound(&store).await;
}
