//! Xray Cloud.

use std::sync::Arc;

use delivery::Secret;
use delivery::foreign::{Adapter, CaseId, Kind, OpenError, Trouble};
use domain::Status;
use proof::stubs::{Fault, Lag, Plan, Quirks, Select, Stub, XrayCloud};
use serde_json::json;

use crate::jira::{Rig, adapter, class, common, entry, settings, wanted};

fn target(url: &str, create_cases: bool) -> delivery::foreign::TargetSettings {
    let mut settings = settings(Kind::XrayCloud, url, json!({}));
    settings.user = Some("id".to_owned());
    settings.token = Some(Secret::new("secret"));
    settings.create_cases = create_cases;
    settings
}

fn rig() -> Rig<XrayCloud> {
    let mut vendor = XrayCloud::default();
    let titles = ["pays", "shop.Cart > adds", "three", "four", "five"];
    let cases = titles.map(|title| CaseId::new(vendor.site.add_test(title))).to_vec();
    let stub = Stub::start(vendor).unwrap();
    let adapter = adapter(target(&stub.url(), false));
    Rig { stub, adapter, cases, write: "import", nobody: "SHOP-999" }
}

fn making(rig: &Rig<XrayCloud>) -> Arc<dyn Adapter> {
    adapter(target(&rig.stub.url(), true))
}

common!(rig, making, 401 => "wait 1000", 404 => "gone");

#[tokio::test]
async fn a_token_whose_day_is_over_is_renewed() {
    let rig = rig();
    let cycle = rig.cycle().await;
    rig.stub.vendor().expire();
    assert_eq!(rig.adapter.rows(&cycle, &[]).await.unwrap(), [], "a reading is done again with a new one");
    rig.stub.vendor().expire();
    let ended = rig.adapter.write(&cycle, &rig.entries()[..1]).await.map(drop);
    assert_eq!(class(&ended), "wait 1000", "a write was refused, and isn't repeated by the adapter");
    assert_eq!(rig.stub.ledger().count(), 0);
    rig.write_all(&cycle, &rig.entries()).await;
    assert_eq!(rig.stub.ledger().count(), 5);
}

#[tokio::test]
async fn a_wrong_secret_is_denied_and_shown_nowhere() {
    let rig = rig();
    let mut settings = target(&rig.stub.url(), false);
    settings.token = Some(Secret::new("another-secret"));
    let adapter = adapter(settings);
    let ended = adapter.rows(&rig.cycle().await, &[]).await.map(drop);
    assert_eq!(class(&ended), "denied");
    assert!(!format!("{ended:?}{adapter:?}").contains("another-secret"));
    let ended = adapter.write(&rig.cycle().await, &rig.entries()[..1]).await.map(drop);
    assert_eq!(class(&ended), "denied");
}

#[tokio::test]
async fn a_login_without_an_answer_leaves_a_write_unsent() {
    let rig = rig();
    let cycle = rig.cycle().await;
    let fresh = adapter(target(&rig.stub.url(), false));
    rig.stub.set_plan(Plan::on(Select::any().what("auth"), Fault::ResponseDropped));
    let ended = fresh.write(&cycle, &rig.entries()[..1]).await.map(drop);
    assert_eq!(class(&ended), "not sent", "{ended:?}");
    assert_eq!(rig.stub.ledger().count(), 0);
}

#[test]
fn both_credentials_are_needed() {
    let http = delivery::HttpSettings::new("test");
    let mut settings = target("http://xray.example", false);
    let _ = adapter(settings.clone());
    settings.user = None;
    let clock = Arc::new(delivery::SystemClock::new());
    assert!(matches!(delivery::foreign::open(settings, &http, clock), Err(OpenError::Credential(_))));
}

#[tokio::test]
async fn runs_are_read_over_all_pages_though_pages_shift() {
    let rig = rig();
    let cycle = rig.cycle().await;
    let key = cycle.as_str().split('/').next().unwrap().to_owned();
    let cases: Vec<CaseId> = {
        let site = &mut rig.stub.vendor().site;
        (0..250).map(|n| CaseId::new(site.add_test(&format!("test {n}")))).collect()
    };
    let entries: Vec<_> = cases.iter().map(|case| entry(case, Status::Passed)).collect();
    rig.write_all(&cycle, &entries).await;
    let runs = Select::reads().what("getTestRuns");
    rig.stub.set_plan(Plan::on(runs.clone().nth(2), Fault::PageSkips).and(runs.clone().nth(6), Fault::PageRepeats));
    let rows = rig.adapter.rows(&cycle, &[]).await.unwrap();
    assert_eq!(rows.len(), 250);
    // A place for a verdict that somebody else has added is no verdict.
    rig.stub.vendor().site.add_run(proof::stubs::Stamp::default(), &key, rig.cases[0].as_str());
    assert_eq!(rig.adapter.rows(&cycle, &[]).await.unwrap().len(), 250);
    rig.stub.set_plan(Plan::on(runs, Fault::PageSkips));
    assert!(matches!(rig.adapter.rows(&cycle, &[]).await, Err(Trouble::Unknown(_))), "never a part for the whole");
}

#[tokio::test]
async fn an_execution_is_written_to_before_searches_know_it() {
    let rig = rig();
    rig.stub.set_quirks(Quirks { lag: Lag::Reads(2), ..Quirks::default() });
    let cycle = rig.cycle().await;
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap(), [], "race R7");
    rig.write_all(&cycle, &rig.entries()).await;
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap(), []);
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap()[0].id, cycle);
    assert_eq!(rig.adapter.rows(&cycle, &[]).await.unwrap().len(), 5);
}

#[tokio::test]
async fn one_bad_test_refuses_an_import_as_a_whole() {
    let rig = rig();
    let cycle = rig.cycle().await;
    let mut batch = rig.entries();
    batch.push(entry(&CaseId::new("SHOP-999"), Status::Passed));
    let ended = rig.adapter.write(&cycle, &batch).await;
    assert!(matches!(&ended, Err(Trouble::Refused(what)) if what.contains("SHOP-999")), "{ended:?}");
    assert_eq!(rig.stub.ledger().count(), 0);
}

#[tokio::test]
async fn a_word_that_is_no_status_is_an_error_within_a_success() {
    let rig = rig();
    let mut settings = target(&rig.stub.url(), false);
    settings.statuses.insert(Status::Failed, "BROKEN".to_owned());
    let (adapter, cycle) = (adapter(settings), rig.cycle().await);
    rig.write_all(&cycle, &rig.entries()).await;
    let row = rig.adapter.rows(&cycle, &rig.cases[..1]).await.unwrap().remove(0);
    let ended = adapter.amend(&cycle, &row.id, &entry(&rig.cases[0], Status::Failed)).await;
    // The comment was changed though the status was not: it is read back, and not taken for a refusal.
    assert_eq!(class(&ended), "unknown", "{ended:?}");
}
