//! Deliveries that are refused for good, and what that leaves.

use domain::listing::PushState;
use domain::protocol::Refusal;
use domain::{ItemName, OnDifference};

use super::Make;
use super::build::{cycle, push, shop, sound, words};
use crate::{Absent, Recorded, Refused};

pub async fn a_key_in_another_place_is_refused(make: Make<'_>) {
    let store = make();
    push("a+").shard("1/2").accepted(&store).await;
    let elsewhere = [
        push("a+").shard("2/2"),
        push("a+").shard("1/2").run("2"),
        push("a+").shard("1/2").cycle("pr-1"),
        push("a+").shard("1/2").job("e2e"),
        push("a+").shard("1/2").variant("os=linux"),
    ];
    for (build, field) in elsewhere.iter().zip(["shard", "round", "cycle", "job", "variant"]) {
        let Refusal::KeyReused(fields) = build.refused(&store).await else { panic!("not key-reused") };
        assert!(fields.iter().any(|f| f.field == field), "{fields:?}");
    }
    assert_eq!(words(&store).await, "a+");
    sound(&store).await;
}

/// S16.
pub async fn another_commit_is_refused_where_both_say(make: Make<'_>) {
    let store = make();
    push("a+").commit("c0ffee").accepted(&store).await;
    assert!(push("a+").accepted(&store).await.replayed);
    assert!(matches!(push("a+").commit("decade").refused(&store).await, Refusal::KeyReused(_)));
    sound(&store).await;
}

/// S2, S3.
pub async fn a_second_leg_is_refused_and_the_key_contested(make: Make<'_>) {
    let store = make();
    let leg = |executor: &str, attempt: u64| push("a+ b+").executor(executor).attempt(attempt);
    leg("linux", 1).accepted(&store).await;
    let Refusal::CollidingExecutor { recorded, ordinal } = leg("mac", 1).refused(&store).await else {
        panic!("not a collision")
    };
    assert_eq!((recorded.len(), ordinal.map(|o| o.0)), (1, Some(1)));
    assert!(matches!(leg("mac", 2).refused(&store).await, Refusal::CollidingExecutor { ordinal: None, .. }));
    assert!(leg("linux", 1).accepted(&store).await.replayed, "who is recorded may still repeat");
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].state, PushState::Contested);
    sound(&store).await;
}

pub async fn other_work_under_a_key_is_refused_with_samples(make: Make<'_>) {
    let store = make();
    push("a+ b+ c+").attempt(1).accepted(&store).await;
    let Recorded::Refused(refused) = push("x+ y+ a+").attempt(2).to(&store).await else { panic!("accepted") };
    let Refused { refusal, mut offered_samples, mut recorded_samples } = refused;
    offered_samples.sort();
    assert_eq!(offered_samples.iter().map(ItemName::name).collect::<Vec<_>>(), ["x", "y"]);
    assert!(matches!(refusal, Refusal::CollidingItems { offered: 3, recorded: 3, known: 1, .. }), "{refusal:?}");
    recorded_samples.sort();
    assert_eq!(recorded_samples.iter().map(ItemName::name).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].state, PushState::Recorded);
    sound(&store).await;
}

pub async fn another_shard_total_is_refused(make: Make<'_>) {
    let store = make();
    push("a+").shard("1/3").keyed().accepted(&store).await;
    let other = push("b+").shard("2/4").keyed();
    assert_eq!(other.refused(&store).await, Refusal::ShardPlanChanged { known: 3, offered: 4 });
    push("b+").shard("2/4").variant("os=mac").keyed().accepted(&store).await;
    push("b+").shard("2/4").job("e2e").keyed().accepted(&store).await;
    push("b+").shard("2/4").run("2").keyed().accepted(&store).await;
    push("b+").shard("2/3").keyed().accepted(&store).await;
    sound(&store).await;
}

pub async fn a_refused_first_delivery_leaves_no_trace(make: Make<'_>) {
    let store = make();
    push("a+").shard("1/3").keyed().accepted(&store).await;
    let refused = push("b+").shard("2/4").keyed();
    refused.refused(&store).await;
    let found = store.push(&shop(), refused.id()).await.expect("works");
    assert_eq!(found.err(), Some(Absent::Push));
    // The key is free: the plan put right, it is a first delivery.
    let mended = push("b+").shard("2/3").key(refused.0.key.as_str());
    assert!(!mended.accepted(&store).await.replayed);
    let report = store.push(&shop(), refused.id()).await.expect("works").expect("exists");
    assert_eq!(report.log.len(), 1);
    sound(&store).await;
}

/// S23.
pub async fn outside_ci_a_difference_is_refused(make: Make<'_>) {
    let store = make();
    let local = |words: &str| {
        let mut build = push(words);
        build.0.outside_ci = true;
        build
    };
    local("a- b+").accepted(&store).await;
    let Refusal::Differs(summary) = local("a+ b+").refused(&store).await else { panic!("not differs") };
    assert_eq!((summary.changed, summary.added, summary.not_offered), (1, 0, 0));
    assert_eq!(words(&store).await, "a- b+");
    let wanted = local("a+ b+").on(OnDifference::Revise).accepted(&store).await;
    assert_eq!(wanted.revision, 2);
    assert_eq!(words(&store).await, "a* b+");
    sound(&store).await;
}
