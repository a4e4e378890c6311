//! Zephyr Scale for Jira Server and Data Center.

use std::sync::Arc;

use delivery::foreign::{Adapter, CaseId, Closing, Kind, Trouble};
use domain::Status;
use domain::marker::ContentTag;
use proof::stubs::zephyr_server::{Outcome, Outside};
use proof::stubs::{Fault, Plan, Select, Stamp, Stub, ZephyrServer};
use serde_json::json;

use crate::jira::{Rig, adapter, class, common, entry, settings, wanted};

fn start(mut vendor: ZephyrServer) -> Rig<ZephyrServer> {
    let titles = ["pays", "shop.Cart > adds", "three", "four", "five"];
    let cases = titles.map(|title| CaseId::new(vendor.add_case(title))).to_vec();
    let stub = Stub::start(vendor).unwrap();
    let adapter = adapter(settings(Kind::ZephyrServer, &stub.url(), json!({})));
    Rig { stub, adapter, cases, write: "testresults", nobody: "SHOP-T999" }
}

fn rig() -> Rig<ZephyrServer> {
    start(ZephyrServer::default())
}

fn making(rig: &Rig<ZephyrServer>) -> Arc<dyn Adapter> {
    let mut settings = settings(Kind::ZephyrServer, &rig.stub.url(), json!({}));
    settings.create_cases = true;
    adapter(settings)
}

common!(rig, making, 401 => "denied", 404 => "refused");

#[tokio::test]
async fn a_refused_array_is_a_refusal_only_if_none_of_it_was_kept() {
    for (atomic, taken_for) in [(true, "refused"), (false, "unknown")] {
        let rig = start(ZephyrServer { atomic, ..ZephyrServer::default() });
        let cycle = rig.cycle().await;
        let mut batch = rig.entries();
        batch.push(entry(&CaseId::new("SHOP-T999"), Status::Passed));
        let ended = rig.adapter.write(&cycle, &batch).await.map(drop);
        assert_eq!(class(&ended), taken_for, "{ended:?}");
        assert_eq!(rig.stub.ledger().count(), if atomic { 0 } else { 5 });
    }
}

#[tokio::test]
async fn a_case_that_is_not_in_the_run_is_refused_by_some_builds() {
    for status in [400, 404] {
        let rig = start(ZephyrServer { outside: Outside::Refused(status), ..ZephyrServer::default() });
        let cycle = rig.cycle().await;
        let ended = rig.adapter.write(&cycle, &rig.entries()[..1]).await.map(drop);
        assert_eq!(class(&ended), "refused", "{status}: {ended:?}");
    }
}

#[tokio::test]
async fn results_are_read_whole_from_old_builds_and_new_ones() {
    for paged in [true, false] {
        let rig = start(ZephyrServer { paged, letter: if paged { 'R' } else { 'C' }, ..ZephyrServer::default() });
        let cycle = rig.cycle().await;
        for _ in 0..450 {
            let (run, case) = (cycle.to_string(), rig.cases[0].to_string());
            let row = Outcome { run, case, status: "Fail".to_owned(), ..Outcome::default() };
            rig.stub.vendor().results.push(Stamp::default(), row);
        }
        let pages = Select::reads().what("testresults").path("startAt=200");
        rig.stub.set_plan(Plan::on(pages.first(1), Fault::PageSkips));
        assert_eq!(rig.adapter.rows(&cycle, &[]).await.unwrap().len(), 450, "paged: {paged}");
    }
}

#[tokio::test]
async fn only_the_newest_result_is_changed() {
    let rig = rig();
    let cycle = rig.cycle().await;
    let mut later = entry(&rig.cases[0], Status::Failed);
    later.marker.content = ContentTag::of(&[Status::Failed, Status::Failed]);
    let first =
        rig.adapter.write(&cycle, &[entry(&rig.cases[0], Status::Passed)]).await.unwrap().rows.remove(0).unwrap();
    rig.adapter.write(&cycle, &[later.clone()]).await.unwrap();
    let before = rig.stub.ledger();
    let ended = rig.adapter.amend(&cycle, &first, &later).await;
    assert!(matches!(ended, Err(Trouble::Refused(_))), "{ended:?}");
    assert_eq!(rig.stub.ledger(), before);
}

#[tokio::test]
async fn runs_are_kept_in_a_folder_and_found_there() {
    let rig = rig();
    let make = |folder: &str| adapter(settings(Kind::ZephyrServer, &rig.stub.url(), json!({ "folder": folder })));
    let nightly = make("/Nightly");
    let outside = rig.cycle().await;
    let inside = nightly.create_cycle(&wanted("7")).await.unwrap();
    let found = nightly.find_cycles(&wanted("7")).await.unwrap();
    assert_eq!(found.iter().map(|cycle| &cycle.id).collect::<Vec<_>>(), [&inside]);
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap().len(), 2);
    let ended = make("/Nowhere").create_cycle(&wanted("7")).await.map(drop);
    assert_eq!(class(&ended), "refused");
    rig.adapter.close_cycle(&outside, Closing::Complete).await.unwrap();
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap().len(), 2);
    rig.adapter.close_cycle(&outside, Closing::Abandoned).await.unwrap();
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap()[0].id, inside);
}
