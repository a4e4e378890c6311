//! Ends of staged pushes without a commit: rows N and G of the table of interleavings (`facts/idempotency.md`, 3.5).

use std::sync::Arc;

use domain::Epoch;

use super::Make;
use super::build::{AT_MS, Cut, after, forty, now, numbered, push, readings, sound, words};
use crate::{Begun, Cancelled, Collected, Committed, Fence, Lifetime, Now, Put, Store, Stored};

/// A second; seen twice a tenth of it apart; one block a call.
const LIFETIME: Lifetime = Lifetime { idle_ms: 1000, second_look_ms: 100, blocks_max: 1 };

/// Collects until there is no more; gives how many epochs were given up.
async fn collect(store: &Arc<dyn Store>, now: Now) -> u64 {
    let mut abandoned = 0;
    for _ in 0..1000 {
        let collected: Collected = store.collect(LIFETIME, now.clone()).await.expect("the store works");
        assert!(collected.blocks <= LIFETIME.blocks_max as u64, "a short transaction a call");
        abandoned += collected.abandoned;
        if !collected.more {
            return abandoned;
        }
    }
    panic!("a collection without end")
}

/// Has an epoch given up.
async fn abandon(store: &Arc<dyn Store>) {
    assert_eq!(collect(store, after(1000)).await, 0);
    assert_eq!(collect(store, after(1100)).await, 1);
}

pub async fn n1_a_commit_after_a_cancel_and_a_cancel_after_a_commit(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('-')).incarnation(1).cut(2);
    cut.begun(&store).await;
    cut.put_all(&store, 1).await;
    assert_eq!(cut.cancel(&store, 1).await, Cancelled::Ended);
    assert_eq!(cut.commit(&store, 1).await, Committed::Gone);
    assert!(store.projects().await.expect("works").is_empty());
    assert_eq!(cut.fenced(&store).await, Fence::Superseded { epoch: Epoch(1), recorded: None });
    let next = push(&forty('+')).incarnation(2).cut(2);
    let staging = next.begun(&store).await;
    assert_eq!((staging.epoch, staging.missing.len()), (Epoch(2), 4));
    next.put_all(&store, 2).await;
    let answer = next.committed(&store, 2).await;
    let recorded = Stored { revision: 1, receipt: answer.receipt };
    for _ in 0..2 {
        assert_eq!(next.cancel(&store, 2).await, Cancelled::Committed(recorded.clone()));
    }
    assert_eq!(cut.commit(&store, 1).await, Committed::Gone, "a cancel is final");
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn n2_a_cancel_may_be_repeated(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('-')).incarnation(1).cut(2);
    cut.begun(&store).await;
    cut.put(&store, 1, 0).await;
    for _ in 0..3 {
        assert_eq!(cut.cancel(&store, 1).await, Cancelled::Ended);
        assert_eq!(cut.staging(&store, now()).await, None);
    }
    // Of an epoch that others ended, too.
    push(&forty('-')).attempt(1).incarnation(2).cut(2).begun(&store).await;
    push(&forty('+')).attempt(2).incarnation(3).cut(2).begun(&store).await;
    assert_eq!(cut.cancel(&store, 2).await, Cancelled::Ended);
    assert_eq!(cut.staging(&store, now()).await.map(|report| report.epoch), Some(Epoch(3)));
    sound(&store).await;
}

pub async fn g1_p15_what_is_idle_for_a_lifetime_is_given_up(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).incarnation(1).cut(2);
    cut.begun(&store).await;
    cut.put(&store, 1, 0).await;
    assert_eq!(collect(&store, after(999)).await, 0);
    assert_eq!(collect(&store, after(1000)).await, 0, "seen once");
    assert_eq!(collect(&store, after(1099)).await, 0, "too soon after");
    assert_eq!(cut.staging(&store, after(1099)).await.map(|report| report.present), Some(1));
    assert_eq!(collect(&store, after(1100)).await, 1);
    assert_eq!(collect(&store, after(9000)).await, 0, "once");
    assert_eq!(cut.staging(&store, after(1100)).await, None);
    for chunk in [0, 1] {
        assert_eq!(cut.put(&store, 1, chunk).await, Put::Gone);
    }
    assert_eq!(cut.commit(&store, 1).await, Committed::Gone);
    assert_eq!(cut.cancel(&store, 1).await, Cancelled::Ended);
    assert_eq!(cut.fenced(&store).await, Fence::Superseded { epoch: Epoch(1), recorded: None });
    assert!(store.projects().await.expect("works").is_empty());
    // A new wish stages all of it again.
    let again = push(&forty('+')).incarnation(2).cut(2);
    assert_eq!(again.begun(&store).await.missing.len(), 4);
    again.put_all(&store, 2).await;
    assert!(!again.committed(&store, 2).await.replayed);
    assert_eq!(cut.commit(&store, 1).await, Committed::Gone);
    sound(&store).await;
}

pub async fn g1_a_begin_or_put_is_activity(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).incarnation(1).cut(2);
    cut.begun(&store).await;
    assert_eq!(collect(&store, after(1000)).await, 0);
    cut.put_at(&store, (1, 0), after(1050)).await;
    assert_eq!(collect(&store, after(1100)).await, 0);
    assert_eq!(collect(&store, after(2050)).await, 0, "a first sight again");
    assert!(matches!(cut.begin(&store, after(2100)).await, Begun::Staging(_)));
    assert_eq!(collect(&store, after(2200)).await, 0);
    assert_eq!(collect(&store, after(3100)).await, 0, "a first sight again");
    assert_eq!(collect(&store, after(3200)).await, 1);
    sound(&store).await;
}

/// Step by step, with a fresh look after each: rows of dead epochs go, nothing that shows moves.
pub async fn g2_g3_dead_epochs_are_swept_and_nothing_visible_moves(make: Make<'_>) {
    let store = make();
    let shared = push(&forty('+')).run("2").keyed();
    shared.accepted(&store).await;
    // Superseded, cancelled, refused for what it promised, replayed, and given up; the second revision is visible.
    let attempt = |n: u64, mark: char| push(&forty(mark)).run("1").keyed().attempt(n).incarnation(n.into()).cut(2);
    let stage = async |cut: &Cut| {
        let epoch = cut.begun(&store).await.epoch.0;
        cut.put_all(&store, epoch).await;
        epoch
    };
    stage(&attempt(1, '~')).await;
    attempt(2, '-').delivered(&store).await;
    let cancelled = attempt(3, '+');
    let epoch = stage(&cancelled).await;
    cancelled.cancel(&store, epoch).await;
    let mut lying = attempt(4, '!');
    lying.manifest.content.content = domain::Digest::of(b"another");
    let epoch = stage(&lying).await;
    assert!(matches!(lying.commit(&store, epoch).await, Committed::NotAsPromised { .. }));
    attempt(5, '+').delivered(&store).await;
    let same = attempt(6, '*').blind();
    let epoch = stage(&same).await;
    assert!(same.committed(&store, epoch).await.replayed);
    stage(&attempt(7, '~')).await;
    let (push, items) = (same.manifest.push(), ["t001", "t039"]);
    let before = readings(&store, &[push, shared.id()], &items).await;
    let mut abandoned = 0;
    for step in 0..40 {
        let collected = store.collect(LIFETIME, after(1000 + 100 * step)).await.expect("the store works");
        abandoned += collected.abandoned;
        assert_eq!(readings(&store, &[push, shared.id()], &items).await, before, "step {step}");
    }
    assert_eq!(abandoned, 1);
    assert!(!store.collect(LIFETIME, after(100_000)).await.expect("the store works").more);
    // Fates are remembered.
    assert!(matches!(same.commit(&store, 1).await, Committed::Superseded { recorded: Some(_) }));
    assert_eq!(same.committed(&store, 2).await.revision, 1);
    assert_eq!(same.commit(&store, 3).await, Committed::Gone);
    assert!(matches!(same.commit(&store, 4).await, Committed::NotAsPromised { .. } | Committed::Gone));
    assert_eq!(same.committed(&store, 5).await.revision, 2);
    assert_eq!(same.committed(&store, 6).await.revision, 2);
    assert_eq!(same.commit(&store, 7).await, Committed::Gone);
    sound(&store).await;
}

/// What is open is never swept, whatever else dies.
pub async fn an_open_epoch_keeps_its_chunks(make: Make<'_>) {
    let store = make();
    let old = push(&forty('-')).attempt(1).incarnation(1).cut(2);
    old.begun(&store).await;
    old.put_all(&store, 1).await;
    let new = push(&forty('-')).attempt(2).incarnation(2).cut(1);
    new.begun(&store).await;
    new.put(&store, 2, 1).await;
    assert_eq!(collect(&store, after(10)).await, 0);
    assert_eq!(new.begun(&store).await.missing, [0]);
    new.put(&store, 2, 0).await;
    assert_eq!(collect(&store, after(20)).await, 0);
    new.committed(&store, 2).await;
    assert_eq!(collect(&store, after(30)).await, 0);
    assert_eq!(words(&store).await, forty('-').trim());
    sound(&store).await;
}

pub async fn g4_a_clock_that_jumps_ahead_is_seen_once(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).incarnation(1).cut(1);
    cut.begun(&store).await;
    let year = 365 * 24 * 3_600_000;
    assert_eq!(collect(&store, after(year)).await, 0);
    assert_eq!(collect(&store, after(10)).await, 0, "it came back");
    assert_eq!(cut.put_at(&store, (1, 0), after(20)).await, Put::Stored { replayed: false });
    assert_eq!(collect(&store, after(year)).await, 0, "a put since: a first sight again");
    cut.put_all(&store, 1).await;
    assert!(!cut.committed(&store, 1).await.replayed);
    sound(&store).await;
}

pub async fn g5_a_clock_that_goes_back_gives_nothing_up(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).incarnation(1).cut(1);
    cut.begun(&store).await;
    for ms in [AT_MS - 5000, AT_MS - 4000, 0] {
        assert_eq!(collect(&store, Now { ms, ..now() }).await, 0);
        let report = cut.staging(&store, Now { ms, ..now() }).await.expect("it is staging");
        assert_eq!(report.idle_ms, 0);
    }
    abandon(&store).await;
    sound(&store).await;
}

/// C7, one after the other: the commit is first, or the collection.
pub async fn c7_collection_and_commit(make: Make<'_>) {
    let store = make();
    let first = push(&forty('+')).key("first").cut(1);
    first.begun(&store).await;
    first.put_all(&store, 1).await;
    assert_eq!(collect(&store, after(1000)).await, 0);
    let answer = first.committed(&store, 1).await;
    assert_eq!(collect(&store, after(1100)).await, 0, "it is visible");
    assert_eq!(first.committed(&store, 1).await.receipt, answer.receipt);
    let second = push(&numbered(0..40, '-')).key("second").cut(1);
    second.begun(&store).await;
    second.put_all(&store, 1).await;
    abandon(&store).await;
    assert_eq!(second.commit(&store, 1).await, Committed::Gone);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}
