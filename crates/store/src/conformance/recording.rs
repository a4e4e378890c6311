//! First deliveries and repeats.

use std::sync::Arc;

use domain::protocol::{DifferenceClass, Doubt};
use domain::receipt::ReceiptResult;
use domain::{Attempt, DurationUs, ExternalId, Outcome, Outcomes, Status};

use super::Make;
use super::build::{after, cycle, item, outcomes, page, push, query, receipt, shop, sound, words};
use crate::{Now, Recorded, RecordedAt};

pub async fn a_first_push_is_recorded_with_its_receipt(make: Make<'_>) {
    let store = make();
    let push = push("a+ b- c! d~ e*").attempt(1).executor("runner");
    let answer = push.accepted(&store).await;
    assert!(!answer.replayed);
    assert_eq!((answer.revision, answer.current_revision, answer.class), (1, 1, None));
    let receipt = receipt(&answer);
    assert_eq!(receipt.result, ReceiptResult::Recorded);
    assert_eq!(receipt.counts, push.0.outcomes.counts());
    assert_eq!((receipt.counts.total, receipt.counts.passed, receipt.counts.flaky), (5, 2, 1));
    assert_eq!(receipt.push, push.id());
    assert_eq!(receipt.content, push.0.content.content);
    assert_eq!(words(&store).await, "a+ b- c! d~ e*");
    sound(&store).await;
}

pub async fn a_repeat_gets_the_same_bytes(make: Make<'_>) {
    let store = make();
    let push = push("a+ b-");
    let first = push.accepted(&store).await;
    let again = push.accepted(&store).await;
    assert_eq!(first.receipt, again.receipt);
    assert!(again.replayed);
    assert_eq!(again.class, Some(DifferenceClass::None));
    let round = &cycle(&store).await.rounds[0];
    assert_eq!((round.counts.total, round.repeats, round.pushes[0].deliveries), (2, 1, 2));
    let stored = store.receipt(&shop(), push.id(), None).await.expect("works").expect("exists");
    assert_eq!(stored, (first.receipt, 1));
    sound(&store).await;
}

/// No clock decides: not after the seconds that a lock would hold, nor after the days that others keep a key.
pub async fn a_repeat_is_known_however_late_it_comes(make: Make<'_>) {
    let store = make();
    let push = push("a+ b-");
    let first = push.accepted(&store).await;
    let much_later = Now { at: RecordedAt("2031-02-03T04:05:06Z".to_owned()), ms: after(0).ms + 160_000_000_000 };
    for now in [after(4_999), after(5_001), after(86_400_001), much_later, after(0)] {
        let Ok(Recorded::Accepted(again)) = store.record(Arc::new(push.0.clone()), now).await else {
            panic!("not taken")
        };
        assert!(again.replayed);
        assert_eq!((again.revision, again.receipt), (1, first.receipt.clone()));
    }
    let round = &cycle(&store).await.rounds[0];
    assert_eq!((round.counts.total, round.repeats, round.pushes.len()), (2, 5, 1));
    sound(&store).await;
}

pub async fn an_empty_push_is_recorded(make: Make<'_>) {
    let store = make();
    let answer = push("").accepted(&store).await;
    assert_eq!(answer.current_counts.total, 0);
    assert!(push("").accepted(&store).await.replayed);
    assert_eq!(cycle(&store).await.rounds[0].pushes.len(), 1);
    sound(&store).await;
}

/// S31: the reader of reports changed, the bytes did not.
pub async fn equal_body_bytes_are_the_same_content(make: Make<'_>) {
    let store = make();
    let first = push("a+ b-").body("<xml/>").accepted(&store).await;
    let read_otherwise = push("a+ b- c+").body("<xml/>").accepted(&store).await;
    assert!(read_otherwise.replayed);
    assert_eq!(read_otherwise.receipt, first.receipt);
    assert_eq!(words(&store).await, "a+ b-");
    sound(&store).await;
}

pub async fn a_cosmetic_difference_is_a_replay(make: Make<'_>) {
    let store = make();
    let first = push("a+ b-").accepted(&store).await;
    let mut list = outcomes("a+ b-").as_slice().to_vec();
    list[0].duration_us = Some(DurationUs(77));
    let slower = push("").holds(Outcomes::from_unordered(list).expect("one an item"));
    let again = slower.accepted(&store).await;
    assert_eq!((again.replayed, again.class), (true, Some(DifferenceClass::Cosmetic)));
    assert_eq!(again.receipt, first.receipt);
    sound(&store).await;
}

pub async fn other_files_and_an_unknown_executor_are_doubts(make: Make<'_>) {
    let store = make();
    push("a+").executor("one").accepted(&store).await;
    let mut other = push("a+").executor("two");
    other.0.files = vec!["other.xml".to_owned()];
    let answer = other.accepted(&store).await;
    assert_eq!(answer.doubts, [Doubt::OtherExecutorUnknownAttempt, Doubt::OtherFiles]);
}

pub async fn everything_of_an_outcome_comes_back(make: Make<'_>) {
    let store = make();
    let large = "x".repeat(5000);
    let attempt = |message: Option<&str>| Attempt {
        status: Status::Errored,
        duration_us: Some(DurationUs(12)),
        message: message.map(str::to_owned),
    };
    let full = Outcome {
        item: item("full"),
        status: Status::Passed,
        duration_us: Some(DurationUs(1_234_567)),
        message: Some(large.clone()),
        attempts: vec![attempt(None), attempt(Some("short")), attempt(Some(&large))],
        external_ids: ["C1", "requirement:KEY-T2"].map(|id| ExternalId::from(id.to_owned())).to_vec(),
    };
    let bare = Outcome {
        item: item("bare"),
        status: Status::Skipped,
        duration_us: None,
        message: Some(String::new()),
        attempts: Vec::new(),
        external_ids: Vec::new(),
    };
    let both = Outcomes::from_unordered(vec![full.clone(), bare.clone()]).expect("one an item");
    push("").holds(both).accepted(&store).await;
    let items = page(&store, &query()).await.items;
    for (found, given) in items.iter().zip([&bare, &full]) {
        assert_eq!(found.item, given.item);
        assert_eq!(found.message, given.message);
        assert_eq!(found.attempts, given.attempts);
        assert_eq!(found.external_ids, given.external_ids);
        assert_eq!(found.duration_ms, given.duration_us.map(DurationUs::as_ms));
    }
    assert!(items[1].flaky);
    sound(&store).await;
}

pub async fn the_log_holds_every_delivery(make: Make<'_>) {
    let store = make();
    let first = push("a+").attempt(1).executor("one").incarnation(7);
    first.accepted(&store).await;
    first.accepted(&store).await;
    push("a-").attempt(2).executor("two").accepted(&store).await;
    push("a-").attempt(2).executor("three").refused(&store).await;
    let report = store.push(&shop(), first.id()).await.expect("works").expect("exists");
    let log: Vec<_> = report.log.iter().map(|entry| (entry.result.as_str(), entry.revision)).collect();
    assert_eq!(log, [("recorded", Some(1)), ("replayed", Some(1)), ("revised", Some(2)), ("key-collision", None)]);
    assert_eq!(report.log[0].incarnation, first.0.sender.incarnation);
    assert_eq!(report.summary.deliveries, 3);
    assert_eq!(report.revisions.len(), 2);
    sound(&store).await;
}

pub async fn two_projects_share_nothing(make: Make<'_>) {
    let store = make();
    let ours = push("a+ b-").body("same");
    let theirs = push("a+ b-").body("same").project("other");
    ours.accepted(&store).await;
    let first = theirs.accepted(&store).await;
    assert!(!first.replayed, "a key never reaches across projects");
    assert_ne!(ours.id(), theirs.id());
    let foreign = store.push(&shop(), theirs.id()).await.expect("works");
    assert!(foreign.is_err());
    let other = theirs.0.place.project.clone();
    let dropped = store.drop_round(&other, &theirs.0.place.cycle, "1").await.expect("works");
    assert_eq!(dropped, Ok(1));
    assert_eq!(words(&store).await, "a+ b-");
    assert!(ours.accepted(&store).await.replayed);
    let arc: &Arc<dyn crate::Store> = &store;
    sound(arc).await;
}
