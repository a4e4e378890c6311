//! Xray for Jira Server and Data Center.

use std::sync::Arc;

use delivery::Secret;
use delivery::foreign::{Adapter, CaseId, Kind, Trouble};
use domain::Status;
use proof::stubs::{Fault, Lag, Plan, Quirks, Select, Stub, XrayServer};
use serde_json::json;

use crate::jira::{Rig, adapter, class, common, entry, settings, wanted};

fn start(vendor: XrayServer) -> Rig<XrayServer> {
    let mut vendor = vendor;
    let titles = ["pays", "shop.Cart > adds", "three", "four", "five"];
    let cases = titles.map(|title| CaseId::new(vendor.site.add_test(title))).to_vec();
    let stub = Stub::start(vendor).unwrap();
    let adapter = adapter(settings(Kind::XrayServer, &stub.url(), json!({})));
    Rig { stub, adapter, cases, write: "import", nobody: "SHOP-999" }
}

fn rig() -> Rig<XrayServer> {
    start(XrayServer::default())
}

fn making(rig: &Rig<XrayServer>) -> Arc<dyn Adapter> {
    let mut settings = settings(Kind::XrayServer, &rig.stub.url(), json!({}));
    settings.create_cases = true;
    adapter(settings)
}

common!(rig, making, 401 => "denied", 404 => "gone");

#[tokio::test]
async fn a_name_and_a_password_do_as_well() {
    let rig = rig();
    let cycle = rig.cycle().await;
    let mut settings = settings(Kind::XrayServer, &rig.stub.url(), json!({ "execution-type": "Test Execution" }));
    settings.user = Some("bot".to_owned());
    let named = adapter(settings.clone());
    assert_eq!(named.rows(&cycle, &[]).await.unwrap(), []);
    settings.token = Some(Secret::new("wrong"));
    // Jira shows a page of HTML then.
    assert_eq!(class(&adapter(settings).rows(&cycle, &[]).await.map(drop)), "denied");
}

#[tokio::test]
async fn one_bad_test_is_refused_alone() {
    let rig = rig();
    let cycle = rig.cycle().await;
    let mut batch = rig.entries();
    batch.insert(1, entry(&CaseId::new("SHOP-999"), Status::Passed));
    let written = rig.adapter.write(&cycle, &batch).await.unwrap();
    assert_eq!(written.refused.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1]);
    assert!(written.refused[0].1.contains("SHOP-999 not found"), "{written:?}");
    assert_eq!(rig.stub.ledger().count(), 5);
    rig.stub.vendor().partial = false;
    assert!(matches!(rig.adapter.write(&cycle, &batch).await, Err(Trouble::Refused(_))));
}

#[tokio::test]
async fn runs_are_read_over_all_pages() {
    let rig = start(XrayServer { page_max: 2, ..XrayServer::default() });
    let cycle = rig.cycle().await;
    rig.write_all(&cycle, &rig.entries()).await;
    rig.stub.set_plan(Plan::on(Select::reads().what("tests").nth(2), Fault::PageRepeats));
    assert_eq!(rig.adapter.rows(&cycle, &[]).await.unwrap().len(), 5, "each once");
}

#[tokio::test]
async fn what_a_listing_leaves_out_is_read_run_by_run() {
    let rig = start(XrayServer { terse: true, ..XrayServer::default() });
    let (cycle, entries) = (rig.cycle().await, rig.entries());
    rig.write_all(&cycle, &entries).await;
    let rows = rig.adapter.rows(&cycle, &[]).await.unwrap();
    assert_eq!(rows.len(), 5);
    assert!(entries.iter().all(|entry| rows.iter().any(|row| row.is_of(entry.marker.write))));
}

#[tokio::test]
async fn a_given_execution_is_read_past_the_index() {
    let rig = rig();
    rig.stub.set_quirks(Quirks { lag: Lag::Reads(9), ..Quirks::default() });
    let cycle = rig.cycle().await;
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap(), [], "race R7");
    let given = delivery::foreign::CycleWanted { given: Some(cycle.clone()), ..wanted("7") };
    assert_eq!(rig.adapter.find_cycles(&given).await.unwrap()[0].id, cycle);
}
