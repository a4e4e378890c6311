//! The embedded store as a target: the same door, receipt and words, without a socket.

use std::sync::Arc;

use delivery::{Clock, Destination, Parcel, SystemClock, Target as _};
use domain::push::ContentId;
use domain::{Delivery, OnDifference, Origin, Outcome, Outcomes, Place, ProblemCode, Push, ReportSummary, Sender};
use server::LocalTarget;

use crate::served::{Fault, Faulty, memory};

pub(crate) fn push(status: domain::Status) -> Arc<Push> {
    let item = domain::ItemName::new(["shop"], Some("cart"), "adds");
    let outcome = Outcome { item, status, duration_us: None, message: None, attempts: vec![], external_ids: vec![] };
    let outcomes = Outcomes::from_unordered(vec![outcome]).unwrap();
    let content = ContentId { content: outcomes.content_digest(), outcomes: outcomes.outcome_digest(), body: None };
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

fn parcel(destination: &Destination, push: Arc<Push>) -> Parcel {
    Parcel::pack(push, destination, SystemClock::new().utc_rfc3339()).unwrap()
}

fn over(store: Arc<dyn store::Store>) -> LocalTarget {
    let destination = Destination::parse("sqlite:t.db").unwrap();
    LocalTarget::over(destination, store, Arc::new(SystemClock::new()))
}

#[tokio::test]
async fn the_same_door_without_a_socket() {
    let target = over(memory());
    let parcel = parcel(target.destination(), push(domain::Status::Passed));
    let Delivery::Recorded(first) = target.deliver(&parcel).await else { panic!("not recorded") };
    assert!(!first.replayed);
    let Delivery::Recorded(second) = target.deliver(&parcel).await else { panic!("not recorded") };
    assert!(second.replayed);
    assert_eq!(first.receipt_bytes, second.receipt_bytes);
    assert_eq!(second.current_counts.total, 1);
}

#[tokio::test]
async fn a_difference_outside_ci_is_rejected_with_the_same_words() {
    let target = over(memory());
    let first = parcel(target.destination(), push(domain::Status::Passed));
    assert!(matches!(target.deliver(&first).await, Delivery::Recorded(_)));
    let second = parcel(target.destination(), push(domain::Status::Failed));
    let Delivery::Rejected(problem) = target.deliver(&second).await else { panic!("not rejected") };
    assert_eq!(problem.code, ProblemCode::Differs);
    assert!(problem.detail.contains("--on-difference"));
}

#[tokio::test]
async fn each_failure_is_one_of_the_truths() {
    let target = over(Faulty::new(&[Fault::NotWritten]));
    let parcel = parcel(target.destination(), push(domain::Status::Passed));
    assert!(matches!(target.deliver(&parcel).await, Delivery::NotSent(_)));
    assert!(matches!(target.deliver(&parcel).await, Delivery::Recorded(_)));
    let target = over(Faulty::new(&[Fault::UnknownAfter, Fault::UnknownBefore, Fault::Broken]));
    assert!(matches!(target.deliver(&parcel).await, Delivery::PossiblyWritten(_)));
    assert!(matches!(target.deliver(&parcel).await, Delivery::PossiblyWritten(_)));
    assert!(matches!(target.deliver(&parcel).await, Delivery::Recorded(handed) if handed.replayed));
}

#[tokio::test]
async fn a_second_run_that_writes_nothing_is_no_word_on_the_first() {
    let target = over(Faulty::new(&[Fault::UnknownAfter, Fault::NotWritten]));
    let parcel = parcel(target.destination(), push(domain::Status::Passed));
    assert!(matches!(target.deliver(&parcel).await, Delivery::PossiblyWritten(_)));
    assert!(matches!(target.deliver(&parcel).await, Delivery::Recorded(handed) if handed.replayed));
}

#[tokio::test]
async fn a_file_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let target = LocalTarget::open(&path).unwrap();
    let parcel = parcel(target.destination(), push(domain::Status::Passed));
    let Delivery::Recorded(first) = target.deliver(&parcel).await else { panic!("not recorded") };
    drop(target);
    let target = LocalTarget::open(&path).unwrap();
    let Delivery::Recorded(second) = target.deliver(&parcel).await else { panic!("not recorded") };
    assert_eq!((first.receipt_bytes, second.replayed), (second.receipt_bytes, true));
}
