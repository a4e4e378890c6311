//! Testmo: the adapter against the stub.

use std::sync::Arc;

use delivery::foreign::{Adapter, CaseChoice, Closing, CycleId, CycleWanted, Kind, RowId};
use domain::Status;
use proof::stubs::{Fault, Plan, Quirks, Select, Stamp, Stub, Testmo};
use serde_json::json;

use crate::given::{class, item, opened, settings, wanted};
use crate::keyed::{case, case_of, choose, many, of, outcome, under_each_fault};

fn target(stub: &Stub<Testmo>) -> Arc<dyn Adapter> {
    opened(settings(Kind::Testmo, stub, json!({ "source": "e2e" }))).unwrap()
}

async fn start() -> (Stub<Testmo>, Arc<dyn Adapter>, CycleId) {
    let stub = Stub::start(Testmo::default()).unwrap();
    let target = target(&stub);
    let cycle = target.create_cycle(&wanted("1")).await.unwrap();
    (stub, target, cycle)
}

#[tokio::test]
async fn items_are_their_own_cases_under_a_key() {
    let (_stub, target, _) = start().await;
    assert_eq!(case(&*target, &item("adds"), &["C1"], None).await, Some(case_of("adds")));
    assert_eq!(case(&*target, &item("adds"), &[], Some("cart1")).await.as_deref(), Some("cart1"));
    let choice = choose(&*target, &item("adds"), &[], Some("Cart-1")).await;
    assert!(matches!(&choice, CaseChoice::Unmatched { why } if why.contains("Cart-1")), "{choice:?}");
}

#[tokio::test]
async fn a_run_is_found_by_its_tag_among_others_and_over_pages() {
    let (stub, target, made) = start().await;
    let tag = wanted("1").tag();
    for n in 0..205 {
        stub.vendor().add_run(Stamp::default(), &format!("again {n}"), &["nightly", &tag]);
        stub.vendor().add_run(Stamp::default(), "other", &["nightly"]);
    }
    let found = target.find_cycles(&wanted("1")).await.unwrap();
    assert_eq!((found.len(), &found[0].id), (206, &made), "oldest first");
    assert!(target.find_cycles(&wanted("2")).await.unwrap().is_empty());
    stub.set_plan(Plan::on(Select::reads(), Fault::PageSkips));
    assert_eq!(class(&target.find_cycles(&wanted("1")).await.unwrap_err()), "unknown");
    stub.set_plan(Plan::pass());
    target.close_cycle(&made, Closing::Complete).await.unwrap();
    let given = CycleWanted { given: Some(made.clone()), ..wanted("9") };
    assert!(target.find_cycles(&given).await.unwrap()[0].closed);
    assert_eq!(class(&target.write(&made, &many(1)).await.unwrap_err()), "refused");
}

#[tokio::test]
async fn nothing_is_listed_and_nothing_can_be_mended() {
    let (_stub, target, cycle) = start().await;
    let (row, entry) = (RowId::new("1"), of("adds", Status::Passed));
    let troubles = [
        target.rows(&cycle, &[]).await.unwrap_err(),
        target.amend(&cycle, &row, &entry).await.unwrap_err(),
        target.delete(&cycle, &row).await.unwrap_err(),
        target.delete_cycle(&cycle).await.unwrap_err(),
    ];
    for trouble in troubles {
        assert_eq!(class(&trouble), "refused", "{trouble}");
    }
}

#[tokio::test]
async fn a_batch_is_counted_by_its_own_threads_alone() {
    let (stub, target, cycle) = start().await;
    let (mine, other) = (many(250), [of("x", Status::Failed), of("y", Status::Skipped)]);
    assert_eq!(target.count(&cycle, &mine).await.unwrap(), Some(0));
    assert_eq!(outcome(&target.write(&cycle, &mine).await), "written");
    assert_eq!(outcome(&target.write(&cycle, &other).await), "written");
    assert_eq!(target.count(&cycle, &mine).await.unwrap(), Some(250));
    assert_eq!(target.count(&cycle, &other).await.unwrap(), Some(2));
    assert_eq!(target.count(&cycle, &mine[..1]).await.unwrap(), Some(0), "another batch");
    let run = cycle.as_str().parse().unwrap();
    assert_eq!(stub.vendor().threads(run), [true, true]);
    // The product appends: whoever sends it again has it twice, and the count says so.
    target.write(&cycle, &other).await.unwrap();
    assert_eq!(target.count(&cycle, &other).await.unwrap(), Some(4));
    assert_eq!(stub.doubled().len(), 2);
    stub.vendor().shows_fields = false;
    assert_eq!(class(&target.count(&cycle, &mine).await.unwrap_err()), "refused", "never a count of nothing");
}

#[tokio::test]
async fn the_count_tells_what_became_of_a_write_without_an_answer() {
    let faults = [
        ("append_tests", Fault::ResponseDropped, 3),
        ("append_tests", Fault::RequestDropped, 0),
        ("append_tests", Fault::AppliedInPart { first: 2 }, 2),
        ("create_thread", Fault::ResponseDropped, 0),
    ];
    for (call, fault, count) in faults {
        let (stub, target, cycle) = start().await;
        stub.set_plan(Plan::on(Select::writes().what(call).nth(1), fault.clone()));
        assert_eq!(outcome(&target.write(&cycle, &many(3)).await), "unknown", "{call} {fault:?}");
        assert_eq!(target.count(&cycle, &many(3)).await.unwrap(), Some(count), "{call} {fault:?}");
    }
}

#[tokio::test]
async fn every_answer_has_its_class() {
    under_each_fault("append_tests", start, |door| door.ledger().count() == 1).await;
    under_each_fault("create_thread", start, |door| door.ledger().count() == 1 || has_thread(door)).await;
}

/// Whether a thread was made, tests or not.
fn has_thread(door: &proof::stubs::Door) -> bool {
    door.log().iter().any(|event| event.kind.what() == "create_thread" && event.applied == Some(201))
}

#[tokio::test]
async fn a_thread_that_stays_open_takes_nothing_from_what_is_recorded() {
    let (stub, target, cycle) = start().await;
    stub.set_plan(Plan::on(Select::writes().what("complete_thread"), Fault::RequestDropped));
    assert_eq!(outcome(&target.write(&cycle, &many(2)).await), "written");
    assert_eq!((stub.ledger().count(), target.count(&cycle, &many(2)).await.unwrap()), (2, Some(2)));
}

#[tokio::test]
async fn a_bad_test_refuses_its_batch_and_says_why() {
    let (stub, target, cycle) = start().await;
    let mut batch = many(2);
    batch[1].case = delivery::foreign::CaseId::new("NO-KEY");
    let trouble = target.write(&cycle, &batch).await.unwrap_err();
    assert_eq!(class(&trouble), "refused");
    assert!(trouble.to_string().contains("tests.1.key"), "{trouble}");
    assert_eq!(stub.ledger().count(), 0);
    assert_eq!(class(&target.write(&CycleId::new("999"), &batch[..1]).await.unwrap_err()), "gone");
}

#[tokio::test]
async fn an_abandoned_run_says_so() {
    let (stub, target, cycle) = start().await;
    stub.set_quirks(Quirks { extra_members: true, ..Quirks::default() });
    target.close_cycle(&cycle, Closing::Abandoned).await.unwrap();
    let fields = stub.vendor().fields(cycle.as_str().parse().unwrap()).to_string();
    assert!(fields.contains("abandoned") && fields.contains(&wanted("1").tag()), "{fields}");
    let given = CycleWanted { given: Some(cycle), ..wanted("1") };
    assert!(target.find_cycles(&given).await.unwrap()[0].closed);
}

#[tokio::test]
async fn what_people_see_of_a_test_is_all_there() {
    let (stub, target, cycle) = start().await;
    let entry = of("adds", Status::Failed);
    target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap();
    let ledger = stub.ledger();
    let row = &ledger.rows(entry.case.as_str())[0];
    assert_eq!(row.status, "failed");
    assert!(row.marker.contains(&entry.marker.to_string()) && row.marker.contains("\"was\" 2"), "{row:?}");
}
