//! Zephyr Scale Cloud.

use std::sync::Arc;

use delivery::foreign::{Adapter, CaseId, Kind, RowStatus};
use domain::Status;
use proof::stubs::zephyr_cloud::Execution;
use proof::stubs::{Admin, Fault, Plan, Select, Stamp, Stub, ZephyrCloud};
use serde_json::json;

use crate::jira::{Rig, adapter, common, entry, settings, wanted};

fn start(mut vendor: ZephyrCloud) -> Rig<ZephyrCloud> {
    let titles = ["pays", "shop.Cart > adds", "three", "four", "five"];
    let cases = titles.map(|title| CaseId::new(vendor.add_case(title))).to_vec();
    let stub = Stub::start(vendor).unwrap();
    // As the vendor writes the address.
    let adapter = adapter(settings(Kind::ZephyrCloud, &format!("{}/v2", stub.url()), json!({})));
    Rig { stub, adapter, cases, write: "testexecutions", nobody: "SHOP-T999" }
}

fn rig() -> Rig<ZephyrCloud> {
    start(ZephyrCloud::default())
}

fn making(rig: &Rig<ZephyrCloud>) -> Arc<dyn Adapter> {
    let mut settings = settings(Kind::ZephyrCloud, &rig.stub.url(), json!({}));
    settings.create_cases = true;
    adapter(settings)
}

common!(rig, making, 401 => "denied", 404 => "refused");

#[tokio::test]
async fn executions_are_read_over_all_pages_by_either_listing() {
    for cursor in [true, false] {
        let rig = start(ZephyrCloud { cursor, keyed_links: false, ..ZephyrCloud::default() });
        let cycle = rig.cycle().await;
        {
            let vendor = &mut rig.stub.vendor();
            let (case, cycle) = (vendor.cases[0].id, vendor.cycles[0].id);
            for _ in 0..1100 {
                let status = vendor.statuses[3].0;
                let row = Execution { case, cycle, status, ..Execution::default() };
                vendor.executions.push(Stamp::default(), row);
            }
        }
        // One more row comes between two pages, and a page of the other listing begins too late.
        let listing = Select::reads().what(if cursor { "nextgen" } else { "testexecutions" });
        rig.stub.set_plan(Plan::on(listing.clone().nth(2), Fault::PageSkips));
        rig.stub.before(listing.nth(2), |vendor, now| {
            let (case, cycle, status) = (vendor.cases[1].id, vendor.cycles[0].id, vendor.statuses[2].0);
            vendor.executions.push(now, Execution { case, cycle, status, ..Execution::default() });
        });
        let rows = rig.adapter.rows(&cycle, &[]).await.unwrap();
        assert_eq!(rows.len(), 1101, "cursor: {cursor}");
        assert!(rows.iter().all(|row| row.status == RowStatus::Is(Status::Failed) || row.case == rig.cases[1]));
    }
}

#[tokio::test]
async fn a_status_that_is_renamed_is_seen_under_its_new_name() {
    let rig = rig();
    let cycle = rig.cycle().await;
    rig.write_all(&cycle, &rig.entries()[..1]).await;
    assert!(rig.stub.admin(&Admin::RenameStatus { from: "Pass".to_owned(), to: "Passed".to_owned() }));
    let rows = rig.adapter.rows(&cycle, &[]).await.unwrap();
    assert_eq!(rows[0].status, RowStatus::Other("Passed".to_owned()));
    let mut settings = settings(Kind::ZephyrCloud, &rig.stub.url(), json!({}));
    settings.statuses.insert(Status::Passed, "Passed".to_owned());
    assert_eq!(adapter(settings).rows(&cycle, &[]).await.unwrap()[0].status, RowStatus::Is(Status::Passed));
    let ended = rig.adapter.write(&cycle, &rig.entries()[..1]).await;
    assert!(matches!(&ended, Err(delivery::foreign::Trouble::Refused(what)) if what.contains("Pass")), "{ended:?}");
}

#[tokio::test]
async fn what_else_stands_in_an_execution_is_left_alone_by_a_change() {
    let rig = rig();
    let cycle = rig.cycle().await;
    rig.write_all(&cycle, &rig.entries()[..1]).await;
    let id = {
        let vendor = &mut rig.stub.vendor();
        let id = vendor.executions.iter().next().unwrap().id;
        let assign = |row: &mut Execution| drop(row.fields.insert("assignedToId".to_owned(), json!("ann")));
        vendor.executions.change(id, Stamp::default(), assign);
        id
    };
    let row = rig.adapter.rows(&cycle, &[]).await.unwrap().remove(0);
    rig.adapter.amend(&cycle, &row.id, &entry(&rig.cases[0], Status::Failed)).await.unwrap();
    assert_eq!(rig.stub.vendor().executions.get(id).unwrap().data.fields["assignedToId"], json!("ann"));
}

#[tokio::test]
async fn an_empty_page_is_not_the_last_one_while_the_cursor_grows() {
    let rig = rig();
    let cycle = rig.cycle().await;
    rig.write_all(&cycle, &rig.entries()[..1]).await;
    rig.stub.vendor().empty_first_page = true;
    assert_eq!(rig.adapter.rows(&cycle, &[]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_cycle_is_made_in_the_folder_of_the_settings() {
    let rig = rig();
    let adapter = adapter(settings(Kind::ZephyrCloud, &rig.stub.url(), json!({ "folder": 17 })));
    adapter.create_cycle(&wanted("7")).await.unwrap();
    let body = rig.stub.log().pop().unwrap().request.json();
    assert_eq!(body["folderId"], json!(17));
}
