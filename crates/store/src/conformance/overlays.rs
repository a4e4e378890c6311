//! Other outcomes under a known key: what counts, what is kept, what is shown. Named after `situations.md`.

use domain::listing::PushState;
use domain::protocol::{DifferenceClass, Refusal};
use domain::receipt::ReceiptResult;
use domain::{OnDifference, Status};

use super::Make;
use super::build::{cycle, numbered, page, push, query, receipt, sound, words};

fn fifty(failed: u32, mark: char) -> String {
    numbered(0..failed, mark) + &numbered(failed..50, '+')
}

pub async fn s5_a_full_rerun_revises(make: Make<'_>) {
    let store = make();
    push(&fifty(3, '-')).attempt(1).executor("one").accepted(&store).await;
    let answer = push(&fifty(0, '+')).attempt(2).executor("two").accepted(&store).await;
    assert_eq!((answer.replayed, answer.revision), (false, 2));
    let receipt = receipt(&answer);
    assert_eq!(receipt.result, ReceiptResult::Revised);
    assert_eq!((receipt.counts.total, receipt.counts.flaky, receipt.counts.failed), (50, 3, 0));
    let difference = receipt.difference.expect("a difference");
    assert_eq!((difference.class, difference.changed, difference.items.len()), (DifferenceClass::Semantic, 3, 3));
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].state, PushState::Revised);
    let items = page(&store, &query()).await.items;
    assert_eq!(items[0].attempts.len(), 1);
    assert_eq!(items[0].attempts[0].status, Status::Failed);
    sound(&store).await;
}

pub async fn s6_a_rerun_of_the_failed_tests_revises(make: Make<'_>) {
    let store = make();
    push(&fifty(3, '-')).attempt(1).accepted(&store).await;
    let answer = push(&numbered(0..3, '+')).attempt(2).accepted(&store).await;
    let receipt = receipt(&answer);
    assert_eq!((receipt.counts.total, receipt.counts.flaky), (50, 3));
    assert_eq!(receipt.difference.expect("a difference").not_offered, 47);
    sound(&store).await;
}

pub async fn s7_a_late_first_attempt_changes_nothing(make: Make<'_>) {
    let store = make();
    push(&fifty(0, '+')).attempt(2).accepted(&store).await;
    let before = cycle(&store).await.headline;
    let late = push(&fifty(3, '-')).attempt(1).accepted(&store).await;
    assert_eq!(receipt(&late).result, ReceiptResult::Kept);
    assert_eq!(cycle(&store).await.headline, before);
    // The order of attempt 1 and 2 the other way round, and attempt 1's outbox again: a replay.
    let again = push(&fifty(3, '-')).attempt(1).accepted(&store).await;
    assert!(again.replayed);
    assert_eq!(cycle(&store).await.headline, before);
    sound(&store).await;
}

/// Attempt 2 waits in its outbox while attempt 3 comes to the same as attempt 1.
pub async fn an_overtaken_attempt_changes_nothing(make: Make<'_>) {
    let store = make();
    push("a- b+").attempt(1).accepted(&store).await;
    assert!(push("a- b+").attempt(3).accepted(&store).await.replayed);
    let late = push("a+ b+").attempt(2).accepted(&store).await;
    assert_eq!(receipt(&late).result, ReceiptResult::Kept);
    assert_eq!(words(&store).await, "a- b+");
    sound(&store).await;
}

/// A replay of a later attempt counts in an overlap as that attempt, also where the round was counted before.
pub async fn a_replayed_attempt_wins_an_overlap(make: Make<'_>) {
    let store = make();
    push("a-").attempt(1).key("one").accepted(&store).await;
    push("a+").attempt(2).key("two").accepted(&store).await;
    assert_eq!(cycle(&store).await.headline.failed, 0);
    assert!(push("a-").attempt(3).key("one").accepted(&store).await.replayed);
    assert_eq!((words(&store).await.as_str(), cycle(&store).await.headline.failed), ("a-", 1));
    sound(&store).await;
}

pub async fn s8_a_longer_second_attempt_counts(make: Make<'_>) {
    let store = make();
    push(&numbered(0..20, '+')).attempt(1).accepted(&store).await;
    let answer = push(&numbered(0..50, '+')).attempt(2).accepted(&store).await;
    assert_eq!(answer.current_counts.total, 50);
    assert_eq!(answer.class, Some(DifferenceClass::Structural));
    sound(&store).await;
}

pub async fn s9_fail_pass_fail_shows_three_attempts(make: Make<'_>) {
    let store = make();
    for (attempt, outcome) in [(1, "a-"), (2, "a+"), (3, "a-")] {
        push(outcome).attempt(attempt).accepted(&store).await;
    }
    let item = page(&store, &query()).await.items.remove(0);
    assert_eq!((item.status, item.flaky), (Status::Failed, false));
    let earlier: Vec<Status> = item.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(earlier, [Status::Failed, Status::Passed]);
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].revision, 3);
    sound(&store).await;
}

pub async fn s25_two_reports_under_one_key_collide(make: Make<'_>) {
    let store = make();
    push("u1+ u2+ u3+").attempt(1).executor("one").accepted(&store).await;
    let e2e = push("e1+ e2+ e3+").attempt(1).executor("one");
    assert!(matches!(e2e.refused(&store).await, Refusal::CollidingItems { known: 0, .. }));
    sound(&store).await;
}

pub async fn keep_adds_only_new_items(make: Make<'_>) {
    let store = make();
    push("a- b+").accepted(&store).await;
    let kept = push("a+ b+ c+").on(OnDifference::Keep).accepted(&store).await;
    assert_eq!(receipt(&kept).result, ReceiptResult::Kept);
    assert_eq!(words(&store).await, "a- b+ c+");
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].state, PushState::Kept);
    assert!(page(&store, &query()).await.items[0].attempts.is_empty(), "a kept verdict is no attempt");
    sound(&store).await;
}

pub async fn fail_stores_nothing(make: Make<'_>) {
    let store = make();
    let first = push("a- b+");
    first.accepted(&store).await;
    assert!(matches!(push("a+ b+").on(OnDifference::Fail).refused(&store).await, Refusal::Differs(_)));
    assert_eq!(words(&store).await, "a- b+");
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].revision, 1);
    sound(&store).await;
}

/// S14: no attempt number, and the tests differ.
pub async fn auto_keeps_without_a_higher_attempt(make: Make<'_>) {
    let store = make();
    push("a- b+").incarnation(1).accepted(&store).await;
    push("a+ b+").incarnation(2).accepted(&store).await;
    assert_eq!(words(&store).await, "a- b+");
    let wish = push("a+ b- c+").incarnation(3).on(OnDifference::Revise).accepted(&store).await;
    assert_eq!(receipt(&wish).result, ReceiptResult::Revised);
    assert_eq!(words(&store).await, "a* b- c+");
    sound(&store).await;
}
