//! Chunks of staged pushes: rows P of the table of interleavings (`facts/idempotency.md`, 3.5).

use domain::limits::EPOCH_IDLE_MS;
use domain::{Digest, Outcomes};

use super::Make;
use super::build::{Cut, after, forty, main_cycle, now, push, readings, shop, sound, words};
use crate::{Cancelled, Committed, Put, Store};

fn stored(replayed: bool) -> Put {
    Put::Stored { replayed }
}

async fn present(store: &std::sync::Arc<dyn Store>, cut: &Cut) -> Option<u32> {
    cut.staging(store, now()).await.map(|report| report.present)
}

pub async fn p1_p2_p3_chunks_come_in_any_order_and_again(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).cut(2);
    cut.begun(&store).await;
    for (at, chunk) in [2, 0, 3, 1].into_iter().enumerate() {
        assert_eq!(cut.put(&store, 1, chunk).await, stored(false));
        assert_eq!(cut.put(&store, 1, chunk).await, stored(true));
        assert_eq!(present(&store, &cut).await, Some(at as u32 + 1));
    }
    assert!(!cut.committed(&store, 1).await.replayed);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn p4_p5_bytes_that_were_not_promised_are_refused(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).cut(2);
    cut.begun(&store).await;
    let mut flipped = cut.clone();
    flipped.chunks[1].digest = Digest::of(b"other bytes");
    let mut mixed_up = cut.clone();
    mixed_up.chunks[1] = crate::Chunk { number: 1, ..cut.chunks[2].clone() };
    for wrong in [flipped, mixed_up] {
        assert_eq!(wrong.put(&store, 1, 1).await, Put::Mismatch);
    }
    assert_eq!(present(&store, &cut).await, Some(0));
    cut.put_all(&store, 1).await;
    assert!(!cut.committed(&store, 1).await.replayed);
    sound(&store).await;
}

/// The bytes are those that the manifest names, but the manifest names wrong ones.
pub async fn a_chunk_of_other_items_or_of_another_number_is_not_taken(make: Make<'_>) {
    let store = make();
    let mut cut = push(&forty('+')).cut(2);
    let (two, whole) = (cut.chunks[2].outcomes.clone(), cut.chunks[1].outcomes.clone());
    cut.chunks[1].outcomes = two;
    cut.manifest.chunks[1].outcomes = cut.chunks[1].outcomes.len() as u32;
    cut.begun(&store).await;
    assert!(matches!(cut.put(&store, 1, 1).await, Put::NotAsPromised { .. }), "items of another chunk");
    let rest = whole.as_slice()[1..].to_vec();
    cut.chunks[1].outcomes = Outcomes::from_unordered(rest).expect("one outcome an item");
    cut.manifest.chunks[1].outcomes = whole.len() as u32;
    let mut short = cut;
    short.manifest.key = push("").key("short").0.key;
    short.begun(&store).await;
    assert!(matches!(short.put(&store, 1, 1).await, Put::NotAsPromised { .. }), "one outcome less");
    assert_eq!(present(&store, &short).await, Some(0));
    sound(&store).await;
}

pub async fn p6_p7_a_put_into_a_superseded_epoch_is_refused(make: Make<'_>) {
    let store = make();
    let first = push(&forty('-')).attempt(1).incarnation(1).cut(2);
    let second = push(&forty('+')).attempt(2).incarnation(2).cut(2);
    first.begun(&store).await;
    assert_eq!(first.put(&store, 1, 0).await, stored(false));
    second.begun(&store).await;
    for chunk in [0, 1] {
        assert_eq!(first.put(&store, 1, chunk).await, Put::Superseded);
    }
    assert_eq!(present(&store, &second).await, Some(0), "no chunk of the old epoch counts for the new");
    second.put_all(&store, 2).await;
    second.committed(&store, 2).await;
    assert_eq!(words(&store).await, forty('+').trim());
    assert_eq!(first.put(&store, 1, 1).await, Put::Superseded);
    sound(&store).await;
}

pub async fn p8_p9_a_late_put_into_a_committed_epoch_changes_nothing(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).cut(2);
    cut.delivered(&store).await;
    let before = readings(&store, &[cut.manifest.push()], &["t001"]).await;
    assert_eq!(cut.put(&store, 1, 3).await, stored(true));
    let mut other = cut.clone();
    other.chunks[3].digest = Digest::of(b"other bytes");
    assert_eq!(other.put(&store, 1, 3).await, Put::Mismatch);
    assert_eq!(readings(&store, &[cut.manifest.push()], &["t001"]).await, before);
    sound(&store).await;
}

pub async fn p10_a_put_into_an_ended_epoch_is_gone(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).cut(1);
    cut.begun(&store).await;
    cut.put(&store, 1, 0).await;
    assert_eq!(cut.cancel(&store, 1).await, Cancelled::Ended);
    for chunk in [0, 1] {
        assert_eq!(cut.put(&store, 1, chunk).await, Put::Gone);
    }
    assert_eq!(cut.commit(&store, 1).await, Committed::Gone);
    sound(&store).await;
}

pub async fn p11_a_number_that_the_manifest_does_not_have_is_refused(make: Make<'_>) {
    let store = make();
    let mut cut = push(&forty('+')).cut(2);
    cut.begun(&store).await;
    for number in [4, 5, u32::MAX] {
        cut.chunks[0].number = number;
        assert_eq!(cut.put(&store, 1, 0).await, Put::OutOfRange { chunks: 4 });
    }
    assert_eq!(present(&store, &cut).await, Some(0));
    sound(&store).await;
}

pub async fn p14_chunks_that_are_never_committed_never_show(make: Make<'_>) {
    let store = make();
    push("a+ b-").run("1").keyed().accepted(&store).await;
    let cut = push(&forty('!')).run("1").job("e2e").keyed().cut(2);
    let pushes = [cut.manifest.push()];
    let before = readings(&store, &pushes, &["a", "t001"]).await;
    cut.begun(&store).await;
    for chunk in 0..4 {
        cut.put(&store, 1, chunk).await;
        assert_eq!(readings(&store, &pushes, &["a", "t001"]).await, before);
    }
    cut.begin(&store, after(EPOCH_IDLE_MS * 100)).await;
    assert_eq!(readings(&store, &pushes, &["a", "t001"]).await, before);
    // Unless somebody commits: then it shows whole.
    cut.committed(&store, 1).await;
    assert_eq!(words(&store).await, format!("a+ b- {}", forty('!').trim()));
    sound(&store).await;
}

pub async fn what_was_never_begun_is_unknown(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).cut(1);
    assert_eq!(cut.put(&store, 1, 0).await, Put::Unknown);
    assert_eq!(cut.commit(&store, 1).await, Committed::Unknown);
    assert_eq!(cut.cancel(&store, 1).await, Cancelled::Unknown);
    cut.begun(&store).await;
    for epoch in [0, 2, u64::MAX] {
        assert_eq!(cut.put(&store, epoch, 0).await, Put::Unknown, "epoch {epoch}");
        assert_eq!(cut.commit(&store, epoch).await, Committed::Unknown, "epoch {epoch}");
        assert_eq!(cut.cancel(&store, epoch).await, Cancelled::Unknown, "epoch {epoch}");
    }
    // What was recorded in one request has no epoch.
    let whole = push("a+").key("whole");
    whole.accepted(&store).await;
    assert_eq!(whole.cut(0).commit(&store, 1).await, Committed::Unknown);
    sound(&store).await;
}

/// C12 for a staged push: its round is deleted under it.
pub async fn c12_a_dropped_round_takes_what_is_staged_for_it(make: Make<'_>) {
    let store = make();
    push("a+").run("1").job("whole").keyed().accepted(&store).await;
    let over = push(&forty('+')).run("1").job("over").keyed();
    over.clone().attempt(1).cut(1).delivered(&store).await;
    let overlay = over.clone().holds(super::build::outcomes(&forty('-'))).attempt(2).incarnation(2).cut(1);
    let only_staged = push(&forty('+')).run("1").job("staged").keyed().cut(1);
    let elsewhere = push(&forty('+')).run("2").keyed().cut(1);
    for (cut, epoch) in [(&overlay, 2), (&only_staged, 1), (&elsewhere, 1)] {
        cut.begun(&store).await;
        cut.put_all(&store, epoch).await;
    }
    let dropped = store.drop_round(&shop(), &main_cycle(), "1").await.expect("works");
    assert_eq!(dropped, Ok(2), "that were recorded");
    for (cut, epoch) in [(&overlay, 2), (&only_staged, 1)] {
        assert_eq!(cut.put(&store, epoch, 0).await, Put::Gone);
        assert_eq!(cut.commit(&store, epoch).await, Committed::Gone);
        assert_eq!(cut.refused(&store).await, domain::protocol::Refusal::Tombstoned);
        assert_eq!(cut.cancel(&store, epoch).await, Cancelled::Ended);
        assert_eq!(cut.staging(&store, now()).await, None);
    }
    assert_eq!(over.refused(&store).await, domain::protocol::Refusal::Tombstoned);
    assert!(store.cycles(&shop()).await.expect("works").expect("the project stays").is_empty());
    elsewhere.committed(&store, 1).await;
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}
