//! Allure `TestOps`: the adapter against the stub.

use std::sync::Arc;

use delivery::foreign::{Adapter, Closing, CycleId, CycleWanted, Kind, RowId};
use domain::Status;
use proof::stubs::{Allure, Fault, JobFate, Lag, Plan, Quirks, Select, Stamp, Stub};
use serde_json::json;

use crate::given::{class, item, opened, settings, wanted};
use crate::keyed::{case, case_of, many, of, outcome, say, under_each_fault};

async fn start() -> (Stub<Allure>, Arc<dyn Adapter>, CycleId) {
    let stub = Stub::start(Allure::default()).unwrap();
    let target = opened(settings(Kind::Allure, &stub, json!({}))).unwrap();
    let cycle = target.create_cycle(&wanted("1")).await.unwrap();
    (stub, target, cycle)
}

fn logins(stub: &Stub<Allure>) -> usize {
    stub.log().iter().filter(|event| event.kind.what() == "auth").count()
}

#[tokio::test]
async fn a_launch_is_found_by_its_tag() {
    let (stub, target, made) = start().await;
    let tag = wanted("1").tag();
    for _ in 0..105 {
        stub.vendor().add_launch(Stamp::default(), "again", &[&tag]);
        stub.vendor().add_launch(Stamp::default(), "other", &["nightly"]);
    }
    let found = target.find_cycles(&wanted("1")).await.unwrap();
    assert_eq!((found.len(), &found[0].id, found[0].closed), (106, &made, false));
    target.close_cycle(&made, Closing::Complete).await.unwrap();
    let given = CycleWanted { given: Some(made.clone()), ..wanted("2") };
    assert!(target.find_cycles(&given).await.unwrap()[0].closed);
    assert_eq!(class(&target.write(&made, &many(1)).await.unwrap_err()), "refused");
    target.delete_cycle(&made).await.unwrap();
    target.delete_cycle(&made).await.unwrap();
    assert_eq!(class(&target.write(&made, &many(1)).await.unwrap_err()), "gone");
    assert_eq!(logins(&stub), 1, "one login is enough");
}

#[tokio::test]
async fn results_are_appended_and_come_back_over_pages_once_they_are_processed() {
    let (stub, target, cycle) = start().await;
    let entries = many(150);
    stub.set_quirks(Quirks { lag: Lag::Reads(1), ..Quirks::default() });
    for batch in entries.chunks(100) {
        let written = target.write(&cycle, batch).await.unwrap();
        assert!(written.rows.iter().all(Option::is_some), "{written:?}");
    }
    // Each batch leaves the queue before the next request, and is shown one reading later.
    for seen in [0, 100, 150] {
        assert_eq!(target.rows(&cycle, &[]).await.unwrap().len(), seen);
    }
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    stub.set_plan(Plan::on(Select::reads().what("results"), Fault::PageSkips));
    assert_eq!(class(&target.rows(&cycle, &[]).await.unwrap_err()), "unknown");
    stub.set_plan(Plan::pass());
    target.write(&cycle, &entries[..1]).await.unwrap();
    assert_eq!(stub.doubled().len(), 1, "the product appends, and shows a retry");
    stub.set_quirks(Quirks { job: JobFate::Fails, ..Quirks::default() });
    target.write(&cycle, &[of("lost", Status::Passed)]).await.unwrap();
    assert_eq!(stub.lost([case_of("lost")]).len(), 1, "what is accepted may never be processed");
}

#[tokio::test]
async fn every_answer_has_its_class() {
    under_each_fault("upload", start, |door| door.ledger().count() == 1).await;
}

#[tokio::test]
async fn a_worn_out_login_is_renewed_for_readings_and_refuses_writes() {
    let (stub, target, cycle) = start().await;
    stub.vendor().expire();
    assert!(target.rows(&cycle, &[]).await.unwrap().is_empty());
    assert_eq!(logins(&stub), 2);
    stub.vendor().expire();
    assert_eq!(outcome(&target.write(&cycle, &many(1)).await), "denied");
    assert_eq!(stub.ledger().count(), 0);
    assert_eq!(outcome(&target.write(&cycle, &many(1)).await), "written", "the next call logs in again");
    stub.vendor().token = "another".to_owned();
    stub.vendor().expire();
    assert_eq!(class(&target.rows(&cycle, &[]).await.unwrap_err()), "denied");
}

#[tokio::test]
async fn items_are_their_own_cases_and_results_are_not_mended() {
    let (stub, target, cycle) = start().await;
    assert_eq!(case(&*target, &item("adds"), &["C1"], None).await, Some(case_of("adds")));
    let (row, entry) = (RowId::new("1"), of("adds", Status::Errored));
    assert_eq!(class(&target.amend(&cycle, &row, &entry).await.unwrap_err()), "refused");
    assert_eq!(class(&target.delete(&cycle, &row).await.unwrap_err()), "refused");
    stub.set_quirks(Quirks { extra_members: true, ..Quirks::default() });
    target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap();
    say(&target.rows(&cycle, &[]).await.unwrap(), &[entry]);
    let mut bad = many(2);
    bad[1].title.clear();
    assert_eq!(class(&target.write(&cycle, &bad).await.unwrap_err()), "refused");
}
