//! Commits of staged pushes: rows C, V and X of the table of interleavings (`facts/idempotency.md`, 3.5).

use domain::limits::EPOCH_IDLE_MS;
use domain::protocol::{DifferenceClass, Refusal};
use domain::{Digest, Epoch, ExternalId, OnDifference, Outcomes};

use super::Make;
use super::build::{
    Build, after, cycle, forty, log, now, numbered, outcomes, page, push, query, readings, receipt, sound, words,
};
use crate::{Begun, Committed, Fence, Put, Refused, Stored};

pub async fn c1_c2_c3_a_commit_needs_all_chunks_and_may_be_repeated(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).attempt(1).executor("one").incarnation(1).cut(2);
    cut.begun(&store).await;
    cut.put(&store, 1, 2).await;
    assert_eq!(cut.commit(&store, 1).await, Committed::Incomplete { missing: vec![0, 1, 3] });
    assert!(store.projects().await.expect("works").is_empty());
    cut.put(&store, 1, 0).await;
    cut.put(&store, 1, 1).await;
    assert_eq!(cut.commit(&store, 1).await, Committed::Incomplete { missing: vec![3] });
    cut.put_all(&store, 1).await;
    let first = cut.committed(&store, 1).await;
    assert_eq!((first.replayed, first.revision, first.current_revision, first.class), (false, 1, 1, None));
    assert_eq!(first.current_counts.passed, 40);
    for repeats in 1..3 {
        let again = cut.committed(&store, 1).await;
        assert_eq!((again.replayed, again.class), (true, Some(DifferenceClass::None)));
        assert_eq!(again.receipt, first.receipt);
        assert_eq!(cycle(&store).await.rounds[0].repeats, repeats);
    }
    assert_eq!(log(&store, cut.manifest.push()).await, ["recorded", "replayed", "replayed"]);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn an_empty_push_is_staged(make: Make<'_>) {
    let store = make();
    let answer = push("").cut(0).delivered(&store).await;
    assert_eq!((answer.replayed, answer.current_counts.total), (false, 0));
    assert!(push("").accepted(&store).await.replayed);
    sound(&store).await;
}

pub async fn c6_x6_a_delayed_commit_of_a_superseded_epoch_never_answers_success(make: Make<'_>) {
    let store = make();
    let paused = push(&forty('-')).incarnation(1).cut(1);
    paused.begun(&store).await;
    // Nothing but the commit is missing.
    paused.put_all(&store, 1).await;
    // An hour passes.
    let other = push(&forty('+')).incarnation(2).cut(2);
    let Begun::Staging(staging) = other.begin(&store, after(3_600_000)).await else { panic!("not taken over") };
    assert_eq!(staging.epoch, Epoch(2));
    assert_eq!(paused.put(&store, 1, 1).await, Put::Superseded);
    assert_eq!(paused.commit(&store, 1).await, Committed::Superseded { recorded: None });
    other.put_all(&store, 2).await;
    let answer = other.committed(&store, 2).await;
    let recorded = Some(Stored { revision: 1, receipt: answer.receipt });
    let before = readings(&store, &[paused.manifest.push()], &["t001"]).await;
    assert_eq!(paused.put(&store, 1, 1).await, Put::Superseded);
    assert_eq!(paused.commit(&store, 1).await, Committed::Superseded { recorded: recorded.clone() });
    assert_eq!(paused.fenced(&store).await, Fence::Superseded { epoch: Epoch(1), recorded });
    assert_eq!(readings(&store, &[paused.manifest.push()], &["t001"]).await, before);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn c10_x2_another_content_after_a_commit_is_laid_over_it(make: Make<'_>) {
    let store = make();
    push(&forty('-')).executor("one").incarnation(1).cut(1).delivered(&store).await;
    let second = push(&forty('+')).executor("two").incarnation(2).on(OnDifference::Revise).cut(2).blind();
    let staging = second.begun(&store).await;
    assert_eq!(staging.epoch, Epoch(2));
    second.put_all(&store, 2).await;
    assert_eq!(words(&store).await, forty('-').trim(), "until the commit");
    let answer = second.committed(&store, 2).await;
    assert_eq!((answer.revision, answer.class), (2, Some(DifferenceClass::Semantic)));
    assert_eq!(words(&store).await, forty('*').trim());
    assert_eq!(log(&store, second.manifest.push()).await, ["recorded", "revised"]);
    sound(&store).await;
}

/// A refused commit, and every copy of it, stays refused.
pub async fn c11a_other_work_is_refused_at_commit_and_stays_refused(make: Make<'_>) {
    let store = make();
    push(&forty('+')).attempt(1).cut(1).delivered(&store).await;
    let other = push(&numbered(50..90, '+')).attempt(2).incarnation(2).cut(2).blind();
    assert_eq!(other.begun(&store).await.difference, None);
    other.put_all(&store, 2).await;
    let refused = other.commit(&store, 2).await;
    let Committed::Refused(Refused { refusal, offered_samples, recorded_samples }) = &refused else {
        panic!("not refused: {refused:?}")
    };
    assert!(matches!(refusal, Refusal::CollidingItems { offered: 40, recorded: 40, known: 0, .. }), "{refusal:?}");
    assert!(offered_samples.iter().all(|item| item.name() >= "t050") && !offered_samples.is_empty());
    assert!(recorded_samples.iter().all(|item| item.name() < "t040") && !recorded_samples.is_empty());
    let before = readings(&store, &[other.manifest.push()], &["t001", "t051"]).await;
    for _ in 0..2 {
        assert_eq!(other.commit(&store, 2).await, refused);
        assert_eq!(other.put(&store, 2, 0).await, Put::Gone);
    }
    assert!(matches!(other.fenced(&store).await, Fence::Superseded { epoch: Epoch(2), recorded: Some(_) }));
    assert_eq!(readings(&store, &[other.manifest.push()], &["t001", "t051"]).await, before);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn other_work_is_refused_at_begin_if_the_manifest_names_items(make: Make<'_>) {
    let store = make();
    push(&forty('+')).attempt(1).cut(1).delivered(&store).await;
    let other = push(&numbered(50..90, '+')).attempt(2).incarnation(2).cut(2);
    let Begun::Refused(Refused { refusal, recorded_samples, .. }) = other.begin(&store, now()).await else {
        panic!("not refused")
    };
    assert!(matches!(refusal, Refusal::CollidingItems { offered: 40, recorded: 40, known: 0, .. }), "{refusal:?}");
    assert!(recorded_samples.iter().all(|item| item.name() < "t040") && !recorded_samples.is_empty());
    assert_eq!(other.staging(&store, now()).await, None);
    assert_eq!(log(&store, other.manifest.push()).await, ["recorded", "key-collision"]);
    sound(&store).await;
}

/// What the manifest says of its items decides nothing: the commit looks at the outcomes.
pub async fn a_lying_item_vector_decides_nothing(make: Make<'_>) {
    let store = make();
    push(&forty('+')).attempt(1).cut(1).delivered(&store).await;
    let mut other = push(&numbered(50..90, '-')).attempt(2).incarnation(2).cut(2);
    other.manifest.items = push(&forty('-')).cut(0).manifest.items;
    assert_eq!(other.begun(&store).await.difference, Some(DifferenceClass::Semantic));
    other.put_all(&store, 2).await;
    let refused = other.commit(&store, 2).await;
    assert!(
        matches!(&refused, Committed::Refused(refused) if matches!(refused.refusal, Refusal::CollidingItems { .. })),
        "{refused:?}"
    );
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

/// `fail`, said at the begin or at the commit.
pub async fn a_difference_under_fail_is_refused(make: Make<'_>) {
    let store = make();
    push(&forty('+')).cut(1).delivered(&store).await;
    let other = push(&forty('-')).incarnation(2).on(OnDifference::Fail);
    assert!(matches!(other.cut(1).refused(&store).await, Refusal::Differs(summary) if summary.changed == 40));
    let blind = other.cut(2).blind();
    blind.begun(&store).await;
    blind.put_all(&store, 2).await;
    let refused = blind.commit(&store, 2).await;
    assert!(matches!(&refused, Committed::Refused(refused) if matches!(refused.refusal, Refusal::Differs(_))));
    assert_eq!(blind.commit(&store, 2).await, refused);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

/// The chunks are those that the manifest names, and together they are something else.
pub async fn chunks_that_do_not_make_the_content_kill_the_epoch(make: Make<'_>) {
    let store = make();
    let honest = push(&forty('+')).incarnation(1).cut(2);
    let lies: [fn(&mut domain::Manifest); 3] = [
        |manifest| manifest.content.content = Digest::of(b"another content"),
        |manifest| manifest.content.outcomes = Digest::of(b"other verdicts"),
        |manifest| (manifest.counts.passed, manifest.counts.failed) = (39, 1),
    ];
    for (at, lie) in (0_u32..).zip(lies) {
        let epoch = u64::from(at) + 1;
        let mut lying = push(&forty('+')).incarnation(u128::from(at) + 10).cut(2);
        lie(&mut lying.manifest);
        assert_eq!(lying.begun(&store).await.epoch, Epoch(epoch));
        lying.put_all(&store, epoch).await;
        assert!(matches!(lying.commit(&store, epoch).await, Committed::NotAsPromised { .. }), "lie {at}");
        let again = lying.commit(&store, epoch).await;
        assert!(matches!(again, Committed::NotAsPromised { .. } | Committed::Gone), "lie {at}: {again:?}");
        assert_eq!(lying.put(&store, epoch, 0).await, Put::Gone);
        assert!(matches!(lying.fenced(&store).await, Fence::Superseded { .. }));
        assert!(store.projects().await.expect("works").is_empty());
        sound(&store).await;
    }
    assert!(!honest.delivered(&store).await.replayed, "the key is free");
    sound(&store).await;
}

/// Neither content nor verdicts are those of any revision, but together the revisions say the same.
pub async fn what_counts_already_is_replayed_at_begin_and_at_commit(make: Make<'_>) {
    let store = make();
    let all = numbered(0..10, '-') + &numbered(10..40, '+');
    push(&all).attempt(1).cut(2).delivered(&store).await;
    let revised = push(&numbered(0..10, '+')).attempt(2).cut(0).delivered(&store).await;
    let same = numbered(0..10, '*') + &numbered(10..40, '+');
    let begun = push(&same).attempt(3).incarnation(3).cut(1).replayed(&store).await;
    assert_eq!((begun.revision, begun.class), (2, Some(DifferenceClass::Cosmetic)));
    assert_eq!(begun.receipt, revised.receipt);
    let blind = push(&same).attempt(3).incarnation(4).cut(2).blind();
    blind.begun(&store).await;
    blind.put_all(&store, 3).await;
    for _ in 0..2 {
        let answer = blind.committed(&store, 3).await;
        assert_eq!((answer.replayed, answer.revision, answer.class), (true, 2, Some(DifferenceClass::Cosmetic)));
        assert_eq!(answer.receipt, revised.receipt);
    }
    assert_eq!(blind.put(&store, 3, 0).await, Put::Stored { replayed: true });
    assert_eq!(words(&store).await, same.trim());
    sound(&store).await;
}

pub async fn v4_an_overlay_that_is_given_up_leaves_what_counts(make: Make<'_>) {
    let store = make();
    let first = push(&forty('-')).attempt(1).cut(1).delivered(&store).await;
    let second = push(&forty('+')).attempt(2).incarnation(2).cut(2);
    second.begun(&store).await;
    second.put(&store, 2, 1).await;
    assert_eq!(words(&store).await, forty('-').trim());
    second.cancel(&store, 2).await;
    assert_eq!(words(&store).await, forty('-').trim());
    let replay = push(&forty('-')).attempt(1).accepted(&store).await;
    assert_eq!((replay.receipt, replay.current_revision), (first.receipt, 1));
    sound(&store).await;
}

pub async fn v5_a_delayed_commit_gets_its_own_receipt_after_a_later_revision(make: Make<'_>) {
    let store = make();
    let first = push(&forty('-')).attempt(1).incarnation(1).cut(1);
    let one = first.delivered(&store).await;
    let second = push(&forty('+')).attempt(2).incarnation(2).cut(2);
    let two = second.delivered(&store).await;
    let late = first.committed(&store, 1).await;
    assert_eq!((late.revision, late.current_revision, late.replayed), (1, 2, true));
    assert_eq!(late.receipt, one.receipt);
    assert_eq!(second.committed(&store, 2).await.receipt, two.receipt);
    assert_eq!(receipt(&two).counts.flaky, 40);
    assert_eq!(words(&store).await, forty('*').trim());
    sound(&store).await;
}

pub async fn x1_x5_the_dead_winner_loses_nobody_s_report(make: Make<'_>) {
    let store = make();
    let a = |incarnation: u128| push(&forty('+')).incarnation(incarnation).cut(2);
    let b = push(&forty('-')).incarnation(2).cut(1);
    a(1).begun(&store).await;
    a(1).put(&store, 1, 0).await;
    assert_eq!(b.fenced(&store).await, Fence::InProgress { epoch: Epoch(1) });
    // The delayed copy of that begin comes when A is idle, and B is long gone.
    assert!(matches!(b.begin(&store, after(EPOCH_IDLE_MS)).await, Begun::Staging(_)));
    assert_eq!(a(1).put(&store, 1, 1).await, Put::Superseded);
    assert!(matches!(a(3).begin(&store, after(EPOCH_IDLE_MS + 1)).await, Begun::Fenced(Fence::InProgress { .. })));
    let Begun::Staging(staging) = a(3).begin(&store, after(2 * EPOCH_IDLE_MS)).await else { panic!("not taken over") };
    assert_eq!((staging.epoch, staging.missing.len()), (Epoch(3), 4));
    a(3).put_all(&store, 3).await;
    assert!(!a(3).committed(&store, 3).await.replayed);
    assert_eq!(b.commit(&store, 2).await, a(1).commit(&store, 1).await, "both were superseded");
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

pub async fn x3_two_clients_with_the_same_bytes_share_an_epoch(make: Make<'_>) {
    let store = make();
    let [a, b] = [1, 2].map(|incarnation| push(&forty('+')).incarnation(incarnation).cut(2));
    assert!(!a.begun(&store).await.resumed);
    assert!(b.begun(&store).await.resumed);
    for (cut, chunk, replayed) in [(&a, 0, false), (&b, 0, true), (&b, 3, false), (&a, 1, false), (&a, 3, true)] {
        assert_eq!(cut.put(&store, 1, chunk).await, Put::Stored { replayed });
    }
    assert_eq!(a.commit(&store, 1).await, Committed::Incomplete { missing: vec![2] });
    b.put(&store, 1, 2).await;
    let (first, second) = (b.committed(&store, 1).await, a.committed(&store, 1).await);
    assert_eq!((first.replayed, second.replayed), (false, true));
    assert_eq!(first.receipt, second.receipt);
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

/// R2: a test moved from shard 1 to shard 3, both staged at once; counted once at every moment.
pub async fn r2_overlaps_of_staged_pushes_count_once_at_every_moment(make: Make<'_>) {
    let store = make();
    let shard = |shard: &str, words: &str| push(words).run("1").shard(shard).keyed().attempt(1);
    let (one, three) = (numbered(0..30, '+') + &numbered(30..40, '-'), numbered(30..70, '+'));
    let cuts = [shard("1/3", &one).cut(2), shard("3/3", &three).cut(1)];
    for cut in &cuts {
        cut.begun(&store).await;
        cut.put_all(&store, 1).await;
    }
    cuts[0].committed(&store, 1).await;
    let at = |total: u64, overlaps: u64| (total, overlaps);
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!((round.counts.total, round.overlaps), at(40, 0));
    cuts[1].committed(&store, 1).await;
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!((round.counts.total, round.overlaps, round.counts.failed), (70, 10, 10));
    // A staged re-run of shard 3 at a higher attempt: until its commit nothing moves, then the overlap is its.
    let mut rerun = shard("3/3", &numbered(30..70, '~')).attempt(2).incarnation(2).cut(2);
    rerun = rerun.blind();
    rerun.begun(&store).await;
    rerun.put_all(&store, 2).await;
    assert_eq!(cycle(&store).await.rounds.remove(0).counts, round.counts);
    rerun.committed(&store, 2).await;
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!((round.counts.total, round.overlaps, round.counts.skipped), (70, 10, 40));
    assert_eq!(page(&store, &query()).await.items.iter().filter(|item| item.pushes == 2).count(), 10);
    sound(&store).await;
}

/// Everything of an outcome, through chunks.
pub async fn everything_of_a_staged_outcome_comes_back(make: Make<'_>) {
    let store = make();
    let mut list = outcomes(&forty('*')).as_slice().to_vec();
    for (at, outcome) in list.iter_mut().enumerate() {
        outcome.message = Some(format!("message {at} {}", "x".repeat(at * 500)));
        outcome.external_ids = vec![ExternalId::from(format!("C{at}"))];
    }
    let content = Outcomes::from_unordered(list.clone()).expect("one outcome an item");
    let build: Build = push("").holds(content);
    build.cut(2).delivered(&store).await;
    let items = page(&store, &query()).await.items;
    assert_eq!(items.len(), list.len());
    for item in items {
        let outcome = list.iter().find(|outcome| outcome.item == item.item).expect("the item was pushed");
        assert_eq!((&item.message, &item.attempts), (&outcome.message, &outcome.attempts));
        assert_eq!((item.status, &item.external_ids), (outcome.status, &outcome.external_ids));
    }
    sound(&store).await;
}
