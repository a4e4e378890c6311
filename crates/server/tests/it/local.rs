//! The embedded store as a target: the same door, receipt and words, without a socket.

use std::sync::Arc;

use delivery::staged::{Begun, Stage as _};
use delivery::{Clock, Destination, Form, Handed, Parcel, Scratch, SystemClock, Target, Try};
use domain::{Delivery, OnDifference, Origin, Outcome, Outcomes, Place, ProblemCode, Push, ReportSummary, Sender};
use server::LocalTarget;

use crate::served::{Fault, Faulty, memory};

pub(crate) fn push(status: domain::Status) -> Arc<Push> {
    let item = domain::ItemName::new(["shop"], Some("cart"), "adds");
    let outcome = Outcome { item, status, duration_us: None, message: None, attempts: vec![], external_ids: vec![] };
    let outcomes = Outcomes::from_unordered(vec![outcome]).unwrap();
    let content = outcomes.digests().id();
    Arc::new(Push {
        key: "run:1".parse().unwrap(),
        place: Place {
            project: "shop".parse().unwrap(),
            cycle: "local".parse().unwrap(),
            round: "run:1".parse().unwrap(),
            run: "1".parse().unwrap(),
            label: None,
            job: None,
            shard: None,
            variant: domain::Variant::default(),
        },
        origin: Origin::default(),
        sender: Sender::default(),
        on_difference: OnDifference::Auto,
        outside_ci: true,
        expect: None,
        files: Vec::new(),
        report: ReportSummary::default(),
        incomplete: false,
        outcomes,
        content,
    })
}

/// One try, with a minute for it.
pub(crate) async fn deliver(target: &impl Target, parcel: &Parcel) -> Delivery<Handed> {
    let clock = SystemClock::new();
    target.deliver(parcel, &Try::new(&clock, 60_000)).await
}

fn parcel(destination: &Destination, push: &Push) -> Parcel {
    Parcel::pack(push, destination, SystemClock::new().utc_rfc3339()).unwrap()
}

fn over(store: Arc<dyn store::Store>) -> LocalTarget {
    let destination = Destination::parse("sqlite:t.db").unwrap();
    LocalTarget::over(destination, store, Arc::new(SystemClock::new()))
}

#[tokio::test]
async fn the_same_door_without_a_socket() {
    let target = over(memory());
    let parcel = parcel(target.destination(), &push(domain::Status::Passed));
    let Delivery::Recorded(first) = deliver(&target, &parcel).await else { panic!("not recorded") };
    assert!(!first.replayed);
    let Delivery::Recorded(second) = deliver(&target, &parcel).await else { panic!("not recorded") };
    assert!(second.replayed);
    assert_eq!(first.receipt_bytes, second.receipt_bytes);
    assert_eq!(second.current_counts.total, 1);
}

#[tokio::test]
async fn a_difference_outside_ci_is_rejected_with_the_same_words() {
    let target = over(memory());
    let first = parcel(target.destination(), &push(domain::Status::Passed));
    assert!(matches!(deliver(&target, &first).await, Delivery::Recorded(_)));
    let second = parcel(target.destination(), &push(domain::Status::Failed));
    let Delivery::Rejected(problem) = deliver(&target, &second).await else { panic!("not rejected") };
    assert_eq!(problem.code, ProblemCode::Differs);
    assert!(problem.detail.contains("--on-difference"));
}

#[tokio::test]
async fn each_failure_is_one_of_the_truths() {
    let target = over(Faulty::new(&[Fault::NotWritten]));
    let parcel = parcel(target.destination(), &push(domain::Status::Passed));
    assert!(matches!(deliver(&target, &parcel).await, Delivery::NotSent(_)));
    assert!(matches!(deliver(&target, &parcel).await, Delivery::Recorded(_)));
    let target = over(Faulty::new(&[Fault::UnknownAfter, Fault::UnknownBefore, Fault::Broken]));
    assert!(matches!(deliver(&target, &parcel).await, Delivery::PossiblyWritten(_)));
    assert!(matches!(deliver(&target, &parcel).await, Delivery::PossiblyWritten(_)));
    assert!(matches!(deliver(&target, &parcel).await, Delivery::Recorded(handed) if handed.replayed));
}

#[tokio::test]
async fn a_second_run_that_writes_nothing_is_no_word_on_the_first() {
    let target = over(Faulty::new(&[Fault::UnknownAfter, Fault::NotWritten]));
    let parcel = parcel(target.destination(), &push(domain::Status::Passed));
    assert!(matches!(deliver(&target, &parcel).await, Delivery::PossiblyWritten(_)));
    assert!(matches!(deliver(&target, &parcel).await, Delivery::Recorded(handed) if handed.replayed));
}

#[tokio::test]
async fn a_file_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let target = LocalTarget::open(&path).unwrap();
    let parcel = parcel(target.destination(), &push(domain::Status::Passed));
    let Delivery::Recorded(first) = deliver(&target, &parcel).await else { panic!("not recorded") };
    drop(target);
    let target = LocalTarget::open(&path).unwrap();
    let Delivery::Recorded(second) = deliver(&target, &parcel).await else { panic!("not recorded") };
    assert_eq!((first.receipt_bytes, second.replayed), (second.receipt_bytes, true));
}

/// A push of so many outcomes.
fn large(number: usize) -> Push {
    let outcome = |n: usize| Outcome {
        item: domain::ItemName::new(["shop"], Some("cart"), &format!("case {n}")),
        status: domain::Status::ALL[n % 4],
        duration_us: None,
        message: None,
        attempts: vec![],
        external_ids: vec![],
    };
    let outcomes = Outcomes::from_unordered((0..number).map(outcome).collect()).unwrap();
    let content = outcomes.digests().id();
    Push { outcomes, content, ..(*push(domain::Status::Passed)).clone() }
}

/// In this many chunks, or more.
fn chunked(destination: &Destination, push: &Push, chunks: usize) -> Parcel {
    let mut parcel = parcel(destination, push);
    while parcel.header.chunks.len() < chunks {
        parcel = parcel.smaller(Scratch::Memory).unwrap().unwrap();
    }
    assert!(matches!(parcel.header.form, Form::Chunks { .. }));
    parcel
}

fn receipt_without_time(handed: &Handed) -> domain::Receipt {
    domain::Receipt { recorded_at: String::new(), ..handed.receipt.clone() }
}

#[tokio::test]
async fn in_chunks_it_is_the_same_push() {
    let folder = tempfile::tempdir().unwrap();
    let push = large(500);
    let target = LocalTarget::open(&folder.path().join("staged.db")).unwrap();
    let staged = chunked(target.destination(), &push, 8);
    let Delivery::Recorded(first) = deliver(&target, &staged).await else { panic!("not recorded") };
    assert!(!first.replayed);
    assert_eq!(first.current_counts, push.outcomes.counts());
    let Delivery::Recorded(again) = deliver(&target, &staged).await else { panic!("not recorded") };
    assert_eq!((again.replayed, &again.receipt_bytes), (true, &first.receipt_bytes));
    // In another cut, and whole: the content decides, not how it came.
    for other in [chunked(target.destination(), &push, 16), parcel(target.destination(), &push)] {
        let Delivery::Recorded(again) = deliver(&target, &other).await else { panic!("not recorded") };
        assert_eq!((again.replayed, &again.receipt_bytes), (true, &first.receipt_bytes));
    }
    target.tidy().await;
    // The same receipt as of a push in one piece.
    let target = LocalTarget::open(&folder.path().join("whole.db")).unwrap();
    let whole = parcel(target.destination(), &push);
    let Delivery::Recorded(whole) = deliver(&target, &whole).await else { panic!("not recorded") };
    assert_eq!(receipt_without_time(&whole), receipt_without_time(&first));
}

#[tokio::test]
async fn staging_of_another_process_over_the_file_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let (mine, other) = (LocalTarget::open(&path).unwrap(), LocalTarget::open(&path).unwrap());
    let staged = chunked(mine.destination(), &large(100), 4);
    let begun = other.begin(&chunked(mine.destination(), &large(99), 4), true).await.unwrap();
    assert!(matches!(begun, Begun::Staging { resumed: false, .. }));
    // Other content under the same key: fenced off, and nothing of it is recorded.
    let clock = SystemClock::new();
    let Delivery::NotSent(cause) = mine.deliver(&staged, &Try::new(&clock, 300)).await else { panic!("not fenced") };
    assert!(cause.retry_after_ms.is_some(), "{}", cause.what);
    // A whole push is fenced too.
    let whole = parcel(mine.destination(), &large(100));
    assert!(matches!(mine.deliver(&whole, &Try::new(&clock, 0)).await, Delivery::NotSent(_)));
    // It commits meanwhile; then ours finds other outcomes recorded, as any later push would.
    let whole = parcel(mine.destination(), &large(99));
    assert!(matches!(deliver(&other, &whole).await, Delivery::Recorded(_)));
    let Delivery::Rejected(problem) = deliver(&mine, &staged).await else { panic!("not rejected") };
    assert_eq!(problem.code, ProblemCode::Differs);
}

#[tokio::test]
async fn what_is_staged_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let target = LocalTarget::open(&folder.path().join("t.db")).unwrap();
    let staged = chunked(target.destination(), &large(100), 4);
    let Ok(Begun::Staging { at, .. }) = target.begin(&staged, true).await else { panic!("not begun") };
    target.put(&staged, at, 2).await.unwrap();
    let clock = SystemClock::new();
    let attempt = Try::new(&clock, 60_000);
    assert!(matches!(target.deliver(&staged, &attempt).await, Delivery::Recorded(_)));
    let seen = attempt.staged();
    assert_eq!((seen.chunks, seen.there, seen.sent, seen.resumed), (4, 4, 3, true));
}
