//! Begins of staged pushes: rows B, H and R of the table of interleavings (`facts/idempotency.md`, 3.5).

use domain::limits::EPOCH_IDLE_MS;
use domain::protocol::{DifferenceClass, Refusal};
use domain::{Epoch, Incarnation};

use super::Make;
use super::build::{AT_MS, accepted, after, forty, log, main_cycle, now, push, readings, shop, sound, words};
use crate::{Begun, Fence, Now, Put, Recorded, Staging, Stored};

pub async fn b1_a_begin_opens_the_first_epoch_and_shows_nothing(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).incarnation(7).cut(2);
    let before = readings(&store, &[cut.manifest.push()], &["t001"]).await;
    let missing = vec![0, 1, 2, 3];
    let expected = Staging { epoch: Epoch(1), resumed: false, chunks: 4, missing, difference: None, recorded: None };
    assert_eq!(cut.begun(&store).await, expected);
    let report = cut.staging(&store, after(5)).await.expect("it is staging");
    assert_eq!((report.epoch, report.chunks, report.present, report.idle_ms), (Epoch(1), 4, 0, 5));
    assert_eq!(report.incarnations, [Incarnation(7)]);
    assert_eq!(readings(&store, &[cut.manifest.push()], &["t001"]).await, before);
    assert!(store.projects().await.expect("works").is_empty(), "a project that is only staged is not there");
    sound(&store).await;
}

pub async fn b2_b8_the_same_manifest_resumes_and_only_what_is_missing_is_put(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).attempt(1).executor("one").incarnation(1).cut(2);
    cut.begun(&store).await;
    let again = cut.begun(&store).await;
    assert_eq!((again.epoch, again.resumed, again.missing.len()), (Epoch(1), true, 4));
    for chunk in [3, 1] {
        assert_eq!(cut.put(&store, 1, chunk).await, Put::Stored { replayed: false });
    }
    // The same spool, read by another process.
    let restarted = push(&forty('+')).attempt(1).executor("one").incarnation(2).cut(2);
    let resumed = restarted.begun(&store).await;
    assert_eq!((resumed.epoch, resumed.resumed, resumed.missing), (Epoch(1), true, vec![0, 2]));
    let report = cut.staging(&store, now()).await.expect("it is staging");
    assert_eq!((report.present, report.incarnations), (2, vec![Incarnation(1), Incarnation(2)]));
    for chunk in [0, 2] {
        assert_eq!(restarted.put(&store, 1, chunk).await, Put::Stored { replayed: false });
    }
    assert!(!restarted.committed(&store, 1).await.replayed);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn b4_another_manifest_waits_while_the_epoch_is_active(make: Make<'_>) {
    let store = make();
    push(&forty('+')).incarnation(1).cut(1).begun(&store).await;
    let unknown = push(&forty('-')).incarnation(2).cut(1);
    assert_eq!(unknown.fenced(&store).await, Fence::InProgress { epoch: Epoch(1) });
    // Cut elsewhere, the same content is another manifest.
    let cut_elsewhere = push(&forty('+')).incarnation(3).cut(2);
    assert_eq!(cut_elsewhere.fenced(&store).await, Fence::InProgress { epoch: Epoch(1) });
    // And a known attempt beside an unknown one tells nothing.
    let known = push(&forty('-')).attempt(1).incarnation(4).cut(1);
    assert_eq!(known.fenced(&store).await, Fence::InProgress { epoch: Epoch(1) });
    sound(&store).await;
}

pub async fn b5_b6_b10_the_higher_attempt_wins_whatever_the_order(make: Make<'_>) {
    for first in [1, 2] {
        let store = make();
        let key = format!("k{first}");
        let attempt = |n: u64| {
            let words = if n == 1 { forty('-') } else { forty('+') };
            push(&words).key(&key).attempt(n).executor(&format!("e{n}")).incarnation(n.into()).cut(1)
        };
        let staging = attempt(first).begun(&store).await;
        assert_eq!(staging.epoch, Epoch(1));
        if first == 1 {
            attempt(1).put_all(&store, 1).await;
            let afresh = attempt(2).begun(&store).await;
            assert_eq!((afresh.epoch, afresh.resumed, afresh.missing), (Epoch(2), false, vec![0, 1]));
            assert_eq!(attempt(1).put(&store, 1, 0).await, Put::Superseded);
            assert_eq!(attempt(1).fenced(&store).await, Fence::Superseded { epoch: Epoch(1), recorded: None });
        } else {
            assert_eq!(attempt(1).fenced(&store).await, Fence::Stale { epoch: Epoch(1) });
        }
        sound(&store).await;
    }
}

/// By milliseconds that come in; a clock that goes back says nothing.
pub async fn b7_an_idle_epoch_is_taken_over(make: Make<'_>) {
    let store = make();
    let first = push(&forty('+')).attempt(2).incarnation(1).cut(1);
    first.begun(&store).await;
    let lower = push(&forty('-')).attempt(1).incarnation(2).cut(1);
    let early = |ms: u64| lower.begin(&store, after(ms));
    assert!(matches!(early(EPOCH_IDLE_MS - 1).await, Begun::Fenced(Fence::Stale { .. })));
    assert_eq!(first.put_at(&store, (1, 0), after(1000)).await, Put::Stored { replayed: false });
    assert!(matches!(early(EPOCH_IDLE_MS).await, Begun::Fenced(Fence::Stale { .. })), "a put is activity");
    let back = Now { ms: AT_MS - 10 * EPOCH_IDLE_MS, ..now() };
    assert!(matches!(lower.begin(&store, back).await, Begun::Fenced(Fence::Stale { .. })));
    let Begun::Staging(staging) = early(EPOCH_IDLE_MS + 1000).await else { panic!("not taken over") };
    assert_eq!((staging.epoch, staging.resumed), (Epoch(2), false));
    assert_eq!(first.put(&store, 1, 1).await, Put::Superseded);
    sound(&store).await;
}

pub async fn b9_a_delayed_begin_of_a_fenced_client_opens_nothing(make: Make<'_>) {
    let store = make();
    let first = push(&forty('-')).attempt(1).incarnation(1).cut(1);
    let second = push(&forty('+')).attempt(2).incarnation(2).cut(1);
    first.begun(&store).await;
    second.begun(&store).await;
    let superseded = Fence::Superseded { epoch: Epoch(1), recorded: None };
    for ms in [0, 10 * EPOCH_IDLE_MS] {
        assert_eq!(first.begin(&store, after(ms)).await, Begun::Fenced(superseded.clone()));
    }
    assert_eq!(second.staging(&store, now()).await.expect("it is staging").epoch, Epoch(2));
    second.put_all(&store, 2).await;
    let answer = second.committed(&store, 2).await;
    let recorded = Some(Stored { revision: 1, receipt: answer.receipt });
    assert_eq!(first.fenced(&store).await, Fence::Superseded { epoch: Epoch(1), recorded });
    sound(&store).await;
}

pub async fn b11_a_key_of_another_place_is_refused(make: Make<'_>) {
    let store = make();
    push(&forty('+')).cut(1).delivered(&store).await;
    for other in [push("a+").run("2"), push("a+").cycle("pr-1"), push("a+").job("e2e"), push("a+").variant("os=mac")] {
        assert!(matches!(other.cut(0).refused(&store).await, Refusal::KeyReused(fields) if !fields.is_empty()));
        assert_eq!(other.cut(0).staging(&store, now()).await, None);
    }
    sound(&store).await;
}

pub async fn b12_b13_a_recorded_content_is_replayed_however_it_is_cut(make: Make<'_>) {
    let store = make();
    let build = push(&forty('+')).attempt(1).executor("one").incarnation(1);
    let first = build.cut(2).delivered(&store).await;
    for bits in [2, 1, 0] {
        for cut in [build.cut(bits), build.clone().incarnation(9).cut(bits).blind()] {
            let replay = cut.replayed(&store).await;
            assert_eq!((replay.class, replay.revision), (Some(DifferenceClass::None), 1));
            assert_eq!(replay.receipt, first.receipt);
        }
    }
    // Other times: the same items and verdicts.
    let mut slower = build.clone().incarnation(10).0;
    let longer = slower.outcomes.as_slice().iter().cloned().map(|mut outcome| {
        outcome.duration_us = None;
        outcome
    });
    let longer = domain::Outcomes::from_unordered(longer.collect()).expect("one outcome an item");
    slower = super::build::Build(slower).holds(longer).0;
    let replay = super::build::Build(slower).cut(2).blind().replayed(&store).await;
    assert_eq!((replay.class, replay.receipt), (Some(DifferenceClass::Cosmetic), first.receipt));
    assert_eq!(log(&store, build.id()).await.len(), 8);
    sound(&store).await;
}

pub async fn b14_other_outcomes_are_staged_and_what_is_recorded_is_said(make: Make<'_>) {
    let store = make();
    let first = push(&forty('+')).attempt(1).cut(1).delivered(&store).await;
    let recorded = Some(Stored { revision: 1, receipt: first.receipt });
    let second = push(&forty('-')).attempt(2).incarnation(2).cut(2);
    let staging = second.begun(&store).await;
    assert_eq!((staging.difference, &staging.recorded), (Some(DifferenceClass::Semantic), &recorded));
    let third = push(&(forty('-') + "more+")).attempt(3).incarnation(3).cut(1);
    let staging = third.begun(&store).await;
    assert_eq!((staging.difference, &staging.recorded), (Some(DifferenceClass::Structural), &recorded));
    let blind = push(&forty('~')).attempt(4).incarnation(4).cut(1).blind();
    let staging = blind.begun(&store).await;
    assert_eq!((staging.difference, &staging.recorded), (None, &recorded));
    assert_eq!(words(&store).await, forty('+').trim(), "nothing of it shows");
    sound(&store).await;
}

pub async fn b15_a_tombstone_answers_a_begin(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).cut(1);
    cut.delivered(&store).await;
    store.drop_round(&shop(), &main_cycle(), "1").await.expect("works").expect("the round exists");
    assert_eq!(cut.refused(&store).await, Refusal::Tombstoned);
    assert_eq!(push("a+").attempt(9).incarnation(9).cut(0).blind().refused(&store).await, Refusal::Tombstoned);
    sound(&store).await;
}

/// A client whose epoch is visible gets its receipt, whatever it wants to stage now: one incarnation, one wish.
pub async fn an_incarnation_is_bound_to_one_epoch(make: Make<'_>) {
    let store = make();
    let first = push(&forty('-')).attempt(1).incarnation(1).cut(1).delivered(&store).await;
    let other = push(&forty('+')).attempt(2).incarnation(1).cut(1);
    let replay = other.replayed(&store).await;
    assert_eq!((replay.receipt, replay.class), (first.receipt.clone(), Some(DifferenceClass::Semantic)), "it is said");
    let whole = accepted(push(&forty('+')).attempt(2).incarnation(1).to(&store).await);
    assert_eq!((whole.receipt, whole.replayed), (first.receipt, true));
    assert_eq!(words(&store).await, forty('-').trim());
    // A new process is a new wish.
    assert_eq!(push(&forty('+')).attempt(2).incarnation(2).cut(1).delivered(&store).await.revision, 2);
    sound(&store).await;
}

pub async fn r1_another_shard_total_is_refused_at_begin(make: Make<'_>) {
    let store = make();
    push(&forty('+')).shard("1/4").keyed().cut(1).delivered(&store).await;
    let other = push("a+").shard("2/5").keyed().cut(0);
    assert_eq!(other.refused(&store).await, Refusal::ShardPlanChanged { known: 4, offered: 5 });
    assert_eq!(other.staging(&store, now()).await, None);
    assert!(push("a+").shard("2/4").keyed().cut(0).begun(&store).await.recorded.is_none());
    sound(&store).await;
}

/// The plan is known once it is recorded: of two that are staged at once, the second to commit is refused.
pub async fn r1_another_shard_total_is_refused_at_commit(make: Make<'_>) {
    let store = make();
    let (four, five) = (push(&forty('+')).shard("1/4").keyed().cut(1), push("a+").shard("2/5").keyed().cut(0));
    for cut in [&four, &five] {
        cut.begun(&store).await;
        cut.put_all(&store, 1).await;
    }
    four.committed(&store, 1).await;
    let refused = five.commit(&store, 1).await;
    let plan = Refusal::ShardPlanChanged { known: 4, offered: 5 };
    assert!(matches!(&refused, crate::Committed::Refused(refused) if refused.refusal == plan), "{refused:?}");
    assert_eq!(five.commit(&store, 1).await, refused);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn h1_staging_ends_in_a_receipt(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).incarnation(1).cut(1);
    assert_eq!(cut.staging(&store, now()).await, None);
    cut.begun(&store).await;
    cut.put(&store, 1, 1).await;
    assert_eq!(cut.staging(&store, now()).await.map(|report| report.present), Some(1));
    cut.put_all(&store, 1).await;
    let answer = cut.committed(&store, 1).await;
    assert_eq!(cut.staging(&store, now()).await, None);
    let found = store.receipt(&shop(), cut.manifest.push(), None).await.expect("works");
    assert_eq!(found, Ok((answer.receipt, 1)));
    sound(&store).await;
}

pub async fn h2_another_project_stages_under_its_own_key(make: Make<'_>) {
    let store = make();
    let ours = push(&forty('+')).cut(1);
    ours.begun(&store).await;
    let theirs = push(&forty('-')).project("other").cut(1);
    assert_eq!(theirs.staging(&store, now()).await, None);
    assert_eq!(theirs.put(&store, 1, 0).await, Put::Unknown, "an epoch is one project's");
    assert_eq!(theirs.begun(&store).await.epoch, Epoch(1));
    theirs.put_all(&store, 1).await;
    theirs.committed(&store, 1).await;
    assert_eq!(ours.staging(&store, now()).await.map(|report| report.present), Some(0));
    assert!(matches!(push(&forty('+')).to(&store).await, Recorded::Accepted(answer) if !answer.replayed));
    sound(&store).await;
}
