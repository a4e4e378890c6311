//! A push in one request beside what is staged under its key: rows O of the table of interleavings.

use domain::Epoch;
use domain::limits::EPOCH_IDLE_MS;
use domain::protocol::{DifferenceClass, Refusal};

use super::Make;
use super::build::{accepted, after, cycle, forty, log, now, push, sound, words};
use crate::{Begun, Cancelled, Committed, Fence, Put, Recorded, Stored};

pub async fn o1_beside_an_epoch_of_other_content(make: Make<'_>) {
    let store = make();
    let staged = push(&forty('-')).attempt(2).incarnation(1).cut(2);
    staged.begun(&store).await;
    staged.put(&store, 1, 0).await;
    let whole = |n: Option<u64>, incarnation: u128| {
        let mut build = push(&forty('+')).incarnation(incarnation);
        build.0.sender.ordinal = n.map(domain::Ordinal);
        build
    };
    let in_progress = Recorded::Fenced(Fence::InProgress { epoch: Epoch(1) });
    assert_eq!(whole(None, 2).to(&store).await, in_progress);
    assert_eq!(whole(Some(2), 3).to(&store).await, in_progress);
    assert_eq!(whole(Some(1), 4).to(&store).await, Recorded::Fenced(Fence::Stale { epoch: Epoch(1) }));
    assert!(store.projects().await.expect("works").is_empty());
    let answer = whole(Some(3), 5).accepted(&store).await;
    assert!(!answer.replayed);
    assert_eq!(staged.put(&store, 1, 1).await, Put::Superseded);
    let recorded = Some(Stored { revision: 1, receipt: answer.receipt });
    assert_eq!(staged.commit(&store, 1).await, Committed::Superseded { recorded });
    assert_eq!(staged.staging(&store, now()).await, None);
    assert_eq!(words(&store).await, forty('+').trim());
    // Whose epoch was superseded and delivers whole now, is a delayed message.
    let late = push(&forty('-')).attempt(4).incarnation(1).to(&store).await;
    assert!(matches!(late, Recorded::Fenced(Fence::Superseded { epoch: Epoch(1), recorded: Some(_) })), "{late:?}");
    sound(&store).await;
}

pub async fn o1_takes_an_idle_epoch_over(make: Make<'_>) {
    let store = make();
    let staged = push(&forty('-')).incarnation(1).cut(2);
    staged.begun(&store).await;
    staged.put_all(&store, 1).await;
    let whole = push(&forty('+')).incarnation(2);
    assert!(matches!(whole.at(&store, after(EPOCH_IDLE_MS - 1)).await, Recorded::Fenced(_)));
    assert!(!accepted(whole.at(&store, after(EPOCH_IDLE_MS)).await).replayed);
    assert!(matches!(staged.commit(&store, 1).await, Committed::Superseded { recorded: Some(_) }));
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn o1_after_a_staged_commit_it_is_a_replay_or_an_overlay(make: Make<'_>) {
    let store = make();
    let first = push(&forty('-')).attempt(1).incarnation(1).cut(2).delivered(&store).await;
    let replay = push(&forty('-')).attempt(1).accepted(&store).await;
    assert_eq!((replay.replayed, replay.receipt), (true, first.receipt));
    assert_eq!(push(&forty('+')).attempt(2).incarnation(2).accepted(&store).await.revision, 2);
    assert_eq!(words(&store).await, forty('*').trim());
    sound(&store).await;
}

pub async fn o2_of_the_same_content_it_commits_the_epoch(make: Make<'_>) {
    let store = make();
    let staged = push(&forty('+')).attempt(1).executor("one").incarnation(1).cut(2);
    staged.begun(&store).await;
    staged.put(&store, 1, 2).await;
    let whole = push(&forty('+')).attempt(1).executor("one").incarnation(2).accepted(&store).await;
    assert!(!whole.replayed);
    assert_eq!(staged.put(&store, 1, 0).await, Put::Stored { replayed: true });
    let commit = staged.committed(&store, 1).await;
    assert_eq!((commit.replayed, commit.class), (true, Some(DifferenceClass::None)));
    assert_eq!(commit.receipt, whole.receipt);
    assert!(matches!(staged.cancel(&store, 1).await, Cancelled::Committed(stored) if stored.receipt == whole.receipt));
    assert!(matches!(staged.begin(&store, now()).await, Begun::Replayed(answer) if answer.receipt == whole.receipt));
    assert_eq!(log(&store, staged.manifest.push()).await, ["recorded", "replayed", "replayed"]);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

/// Whoever staged what is committed now is accepted, as by a commit of its own.
pub async fn o2_accepts_who_staged_it(make: Make<'_>) {
    let store = make();
    let leg = |n: u64, executor: &str| push(&forty('+')).attempt(n).executor(executor);
    leg(1, "one").incarnation(1).cut(2).begun(&store).await;
    assert!(!leg(2, "two").incarnation(2).accepted(&store).await.replayed);
    // Before it comes again: a repeat would make it known.
    assert!(matches!(leg(1, "other").refused(&store).await, Refusal::CollidingExecutor { .. }));
    for (n, executor) in [(1, "one"), (2, "two")] {
        assert!(leg(n, executor).accepted(&store).await.replayed);
    }
    sound(&store).await;
}

/// An overlay that is staged and delivered whole as well.
pub async fn o2_over_a_recorded_push(make: Make<'_>) {
    let store = make();
    push(&forty('-')).attempt(1).cut(2).delivered(&store).await;
    let staged = push(&forty('+')).attempt(2).incarnation(1).cut(1);
    staged.begun(&store).await;
    staged.put_all(&store, 2).await;
    let whole = push(&forty('+')).attempt(2).incarnation(2).accepted(&store).await;
    assert_eq!((whole.revision, whole.replayed), (2, false));
    let commit = staged.committed(&store, 2).await;
    assert_eq!((commit.revision, commit.replayed), (2, true));
    assert_eq!(commit.receipt, whole.receipt);
    assert_eq!(cycle(&store).await.rounds[0].counts.flaky, 40);
    sound(&store).await;
}

/// A repeat of what is recorded, or what is refused anyway, is answered whatever is staged.
pub async fn what_is_staged_does_not_hold_up_a_repeat(make: Make<'_>) {
    let store = make();
    let first = push(&forty('-')).attempt(1).executor("one").accepted(&store).await;
    let staged = push(&forty('+')).attempt(2).executor("two").incarnation(2).cut(2);
    staged.begun(&store).await;
    assert_eq!(push(&forty('-')).attempt(1).executor("one").accepted(&store).await.receipt, first.receipt);
    assert_eq!(push(&forty('-')).attempt(1).cut(1).replayed(&store).await.receipt, first.receipt);
    assert!(matches!(push("a+").run("2").refused(&store).await, Refusal::KeyReused(_)));
    staged.put_all(&store, 1).await;
    assert_eq!(staged.committed(&store, 1).await.revision, 2);
    sound(&store).await;
}

/// S3: the second leg comes whole.
pub async fn s3_a_whole_second_leg_is_refused_while_the_first_is_staged(make: Make<'_>) {
    let store = make();
    let leg = |executor: &str| push(&forty('+')).executor(executor).attempt(1);
    let staged = leg("linux").incarnation(1).cut(2);
    staged.begun(&store).await;
    let refusal = leg("mac").refused(&store).await;
    assert!(matches!(refusal, Refusal::CollidingExecutor { ordinal: Some(_), .. }), "{refusal:?}");
    let refusal = leg("mac").attempt(2).refused(&store).await;
    assert!(matches!(refusal, Refusal::CollidingExecutor { ordinal: None, .. }), "{refusal:?}");
    assert!(store.projects().await.expect("works").is_empty());
    // The first leg, whole as well: its epoch ends with it, and the key stays contested.
    assert!(!leg("linux").incarnation(2).accepted(&store).await.replayed);
    assert!(matches!(leg("mac").attempt(3).refused(&store).await, Refusal::CollidingExecutor { ordinal: None, .. }));
    assert!(staged.committed(&store, 1).await.replayed);
    sound(&store).await;
}

/// B11 and O2: equal outcomes are not enough, what is staged belongs to its place.
pub async fn b11_a_key_that_is_staged_for_another_place_is_refused(make: Make<'_>) {
    let store = make();
    let staged = push(&forty('+')).run("1").incarnation(1).cut(2);
    staged.begun(&store).await;
    let elsewhere = push(&forty('+')).run("2").incarnation(2);
    for refusal in [elsewhere.refused(&store).await, elsewhere.cut(2).refused(&store).await] {
        assert!(matches!(&refusal, Refusal::KeyReused(fields) if fields[0].field == "round"), "{refusal:?}");
    }
    let commits = [push(&forty('+')).run("1").commit("aaaa").cut(1), push(&forty('+')).run("1").commit("bbbb").cut(1)];
    assert!(
        matches!(commits[1].begin(&store, now()).await, Begun::Fenced(Fence::InProgress { .. })),
        "one commit is unknown"
    );
    staged.put_all(&store, 1).await;
    assert_eq!(staged.committed(&store, 1).await.revision, 1);
    assert!(matches!(elsewhere.refused(&store).await, Refusal::KeyReused(_)), "as it is once it is recorded");
    sound(&store).await;
}

/// S3, staged: the second leg stays refused also after the first has begun anew.
pub async fn s3_a_contested_key_stays_contested_when_its_epoch_is_superseded(make: Make<'_>) {
    let store = make();
    let leg = |executor: &str, attempt, mark| push(&forty(mark)).attempt(attempt).executor(executor);
    leg("a", 1, '+').incarnation(1).cut(2).begun(&store).await;
    assert!(matches!(leg("b", 1, '+').incarnation(2).cut(2).refused(&store).await, Refusal::CollidingExecutor { .. }));
    let again = leg("a", 2, '-').incarnation(3).cut(2);
    assert_eq!(again.begun(&store).await.epoch, Epoch(2));
    assert!(matches!(leg("b", 3, '+').incarnation(4).cut(2).refused(&store).await, Refusal::CollidingExecutor { .. }));
    again.put_all(&store, 2).await;
    again.committed(&store, 2).await;
    assert!(matches!(leg("b", 3, '+').incarnation(5).refused(&store).await, Refusal::CollidingExecutor { .. }));
    sound(&store).await;
}

/// The model found this: whoever staged at a lower attempt was accepted beside another leg recorded at it meanwhile.
pub async fn a_leg_that_only_staged_is_not_accepted_beside_one_that_delivered(make: Make<'_>) {
    let store = make();
    let leg = |executor: &str, attempt, mark| push(&forty(mark)).attempt(attempt).executor(executor);
    let first = leg("a", 2, '+').incarnation(1).accepted(&store).await;
    leg("b", 1, '-').incarnation(2).cut(2).blind().begun(&store).await;
    let overlay = leg("a", 3, '-').incarnation(3).cut(2).blind();
    overlay.begun(&store).await;
    let late = leg("a", 1, '+').incarnation(1).accepted(&store).await;
    assert_eq!((late.replayed, late.receipt), (true, first.receipt));
    overlay.put_all(&store, 1).await;
    assert_eq!(overlay.committed(&store, 1).await.revision, 2);
    let refused = leg("b", 1, '-').incarnation(4).refused(&store).await;
    assert!(matches!(refused, Refusal::CollidingExecutor { .. }), "{refused:?}");
    sound(&store).await;
}
