//! `ReportPortal`: the adapter against the stub.

use std::sync::Arc;

use delivery::foreign::{Adapter, Closing, CycleId, CycleWanted, Entry, Kind, RowId, RowStatus};
use domain::Status;
use domain::marker::uuid_within;
use proof::stubs::{Fault, Plan, Quirks, ReportPortal, Select, Stamp, Stub};
use serde_json::json;

use crate::given::{class, faults_of_a_write, item, next_write, opened, settings, wanted};
use crate::keyed::{case, case_of, many, of, outcome, say, under_each_fault};

fn target(stub: &Stub<ReportPortal>) -> Arc<dyn Adapter> {
    let mut settings = settings(Kind::Reportportal, stub, json!({}));
    "demo".clone_into(&mut settings.project);
    opened(settings).unwrap()
}

async fn start() -> (Stub<ReportPortal>, Arc<dyn Adapter>, CycleId) {
    let stub = Stub::start(ReportPortal::default()).unwrap();
    let target = target(&stub);
    let cycle = target.create_cycle(&wanted("1")).await.unwrap();
    (stub, target, cycle)
}

/// How many items there are, verdict or not.
fn started(stub: &Stub<ReportPortal>) -> usize {
    stub.vendor().items.iter().count()
}

#[tokio::test]
async fn a_launch_is_made_once_whoever_makes_it() {
    let (stub, target, cycle) = start().await;
    assert_eq!(class(&target.create_cycle(&wanted("1")).await.unwrap_err()), "exists");
    let found = target.find_cycles(&wanted("1")).await.unwrap();
    assert_eq!((found.len(), &found[0].id, found[0].closed), (1, &cycle, false));
    assert!(target.find_cycles(&wanted("2")).await.unwrap().is_empty());
    stub.set_plan(next_write(Fault::ResponseDropped));
    assert_eq!(class(&target.create_cycle(&wanted("2")).await.unwrap_err()), "unknown");
    assert_eq!(target.find_cycles(&wanted("2")).await.unwrap().len(), 1, "the lost answer's launch is found");
    let given = CycleWanted { given: Some(cycle.clone()), ..wanted("3") };
    assert_eq!(target.find_cycles(&given).await.unwrap()[0].id, cycle);
}

#[tokio::test]
async fn an_item_that_the_end_of_its_launch_interrupted_gets_its_verdict() {
    let (stub, target, cycle) = start().await;
    let entry = of("adds", Status::Failed);
    stub.set_plan(Plan::on(Select::writes().what("start_item").nth(1), Fault::ResponseDropped));
    assert_eq!(class(&target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap_err()), "unknown");
    // Another job of the round ends the launch meanwhile.
    target.close_cycle(&cycle, Closing::Complete).await.unwrap();
    assert_eq!(stub.vendor().status(cycle.as_str()), Some("PASSED"));
    target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap();
    let rows = target.rows(&cycle, &[]).await.unwrap();
    assert_eq!((rows.len(), &rows[0].status), (1, &RowStatus::Is(Status::Failed)));
    assert_eq!(stub.vendor().status(cycle.as_str()), Some("FAILED"), "the launch follows");
}

#[tokio::test]
async fn a_project_that_is_not_there_is_no_absent_launch() {
    let stub = Stub::start(ReportPortal::default()).unwrap();
    let target = target(&stub);
    stub.set_plan(Plan::on(Select::reads(), Fault::Page { status: 404, applied: false }));
    assert_eq!(class(&target.find_cycles(&wanted("1")).await.unwrap_err()), "unknown");
}

#[tokio::test]
async fn items_are_their_own_cases() {
    let (_stub, target, _) = start().await;
    assert_eq!(case(&*target, &item("adds"), &["C12"], None).await, Some(case_of("adds")));
    assert_eq!(case(&*target, &item("adds"), &[], Some("pkg.adds")).await.as_deref(), Some("pkg.adds"));
}

#[tokio::test]
async fn a_repeat_is_refused_and_says_that_it_is_there() {
    let (stub, target, cycle) = start().await;
    let entry = of("adds", Status::Failed);
    let written = target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap();
    assert_eq!(written.rows, [Some(RowId::new(uuid_within(cycle.as_str(), &entry.uuid())))]);
    assert_eq!(class(&target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap_err()), "exists");
    assert_eq!((started(&stub), stub.doubled().len()), (1, 0));
    say(&target.rows(&cycle, &[]).await.unwrap(), &[entry]);
}

#[tokio::test]
async fn an_item_that_was_only_started_is_finished_by_the_repeat() {
    for fault in [Fault::ResponseDropped, Fault::ErrorAfterWrite(500), Fault::RequestDropped] {
        for call in ["start_item", "finish_item"] {
            let (stub, target, cycle) = start().await;
            let entry = of("adds", Status::Failed);
            stub.set_plan(Plan::on(Select::writes().what(call).nth(1), fault.clone()));
            let first = target.write(&cycle, std::slice::from_ref(&entry)).await;
            assert_eq!(outcome(&first), "unknown", "{call} {fault:?}");
            let again = outcome(&target.write(&cycle, std::slice::from_ref(&entry)).await);
            let ended = call == "finish_item" && fault != Fault::RequestDropped;
            assert_eq!(again, if ended { "exists" } else { "written" }, "{call} {fault:?}");
            assert_eq!(started(&stub), 1);
            say(&target.rows(&cycle, &[]).await.unwrap(), &[entry]);
        }
    }
}

#[tokio::test]
async fn an_item_that_the_server_ended_gets_its_verdict_from_the_repeat() {
    let (stub, target, cycle) = start().await;
    let entry = of("adds", Status::Failed);
    stub.set_plan(Plan::on(Select::writes().what("finish_item").nth(1), Fault::RequestDropped));
    target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap_err();
    target.close_cycle(&cycle, Closing::Complete).await.unwrap();
    assert_eq!(stub.vendor().items.iter().next().unwrap().data.status, "INTERRUPTED");
    assert!(target.rows(&cycle, &[]).await.unwrap().is_empty(), "no verdict, so nothing is there");
    target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap();
    assert_eq!(started(&stub), 1);
    say(&target.rows(&cycle, &[]).await.unwrap(), &[entry]);
}

#[tokio::test]
async fn an_item_that_says_otherwise_is_left_to_a_person() {
    let (stub, target, cycle) = start().await;
    let entry = of("adds", Status::Failed);
    let row = target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap().rows.remove(0).unwrap();
    let changed = Entry { status: Status::Passed, ..entry.clone() };
    target.amend(&cycle, &row, &changed).await.unwrap();
    let again = target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap();
    assert!(again.refused.len() == 1 && again.refused[0].1.contains("says passed"), "{again:?}");
    assert_eq!(started(&stub), 1);
}

#[tokio::test]
async fn one_outcome_goes_into_several_launches_and_projects() {
    let (stub, target, first) = start().await;
    let second = target.create_cycle(&wanted("2")).await.unwrap();
    let entry = of("adds", Status::Failed);
    for cycle in [&first, &second] {
        target.write(cycle, std::slice::from_ref(&entry)).await.unwrap();
        say(&target.rows(cycle, &[]).await.unwrap(), std::slice::from_ref(&entry));
    }
    assert_eq!(started(&stub), 2);
    // The stub has one project; what differs by it is the launch's UUID.
    let mut settings = settings(Kind::Reportportal, &stub, json!({}));
    "other".clone_into(&mut settings.project);
    stub.vendor().project = "other".to_owned();
    assert_ne!(opened(settings).unwrap().create_cycle(&wanted("1")).await.unwrap(), first);
}

#[tokio::test]
async fn every_answer_has_its_class() {
    // What was started has no verdict yet, so the ledger shows nothing of it.
    under_each_fault("finish_item", start, |door| door.ledger().count() == 1).await;
    for (fault, wanted, applied) in faults_of_a_write() {
        let (stub, target, cycle) = start().await;
        stub.set_plan(Plan::on(Select::writes().what("start_item").nth(1), fault.clone()));
        let written = target.write(&cycle, &[of("adds", Status::Failed)]).await;
        assert_eq!(outcome(&written), wanted, "{fault:?}: {written:?}");
        assert_eq!(started(&stub) == 1, applied, "{fault:?}");
    }
}

#[tokio::test]
async fn rows_come_back_over_pages_and_leave_out_what_has_no_verdict() {
    let (stub, target, cycle) = start().await;
    let entries = many(301);
    for entry in &entries {
        target.write(&cycle, std::slice::from_ref(entry)).await.unwrap();
    }
    stub.set_plan(Plan::on(Select::writes().what("finish_item"), Fault::RequestDropped));
    target.write(&cycle, &[of("open", Status::Passed)]).await.unwrap_err();
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    assert_eq!(target.rows(&cycle, std::slice::from_ref(&entries[7].case)).await.unwrap().len(), 1);
    stub.set_plan(Plan::on(Select::reads().what("item"), Fault::PageSkips));
    assert_eq!(class(&target.rows(&cycle, &[]).await.unwrap_err()), "unknown");
}

#[tokio::test]
async fn no_item_begins_before_its_launch_and_a_skipped_one_waits_for_nobody() {
    let (stub, target, cycle) = start().await;
    // Recorded long before the launch was made.
    let mut old = of("old", Status::Skipped);
    old.at_ms = 1_000_000_000_000;
    assert_eq!(outcome(&target.write(&cycle, &[old]).await), "written");
    assert_eq!(stub.vendor().items.iter().next().unwrap().data.issue, None);
}

#[tokio::test]
async fn an_item_is_changed_and_deleted_by_its_uuid() {
    let (stub, target, cycle) = start().await;
    let written = target.write(&cycle, &[of("adds", Status::Passed)]).await.unwrap();
    let row = written.rows[0].clone().unwrap();
    let changed = of("adds", Status::Failed);
    target.amend(&cycle, &row, &changed).await.unwrap();
    say(&target.rows(&cycle, &[]).await.unwrap(), &[changed]);
    assert_eq!(class(&target.delete(&cycle, &row).await.unwrap_err()), "refused", "the launch is in progress");
    target.close_cycle(&cycle, Closing::Complete).await.unwrap();
    target.close_cycle(&cycle, Closing::Complete).await.unwrap();
    target.delete(&cycle, &row).await.unwrap();
    target.delete(&cycle, &row).await.unwrap();
    assert_eq!(started(&stub), 0);
}

#[tokio::test]
async fn a_finished_launch_takes_items_and_one_in_progress_can_be_deleted() {
    let (stub, target, cycle) = start().await;
    target.close_cycle(&cycle, Closing::Complete).await.unwrap();
    let entry = of("late", Status::Errored);
    target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap();
    // The product has one word for both.
    let rows = target.rows(&cycle, &[]).await.unwrap();
    assert_eq!(rows[0].status, RowStatus::Is(Status::Failed));
    let open = target.create_cycle(&wanted("2")).await.unwrap();
    for cycle in [&cycle, &open, &open] {
        target.delete_cycle(cycle).await.unwrap();
    }
    assert!(stub.vendor().launch_statuses().is_empty());
    assert_eq!(class(&target.write(&open, &[entry]).await.unwrap_err()), "gone");
}

#[tokio::test]
async fn unknown_members_change_nothing() {
    let (stub, target, cycle) = start().await;
    stub.set_quirks(Quirks { extra_members: true, ..Quirks::default() });
    let entries = many(2);
    for entry in &entries {
        target.write(&cycle, std::slice::from_ref(entry)).await.unwrap();
    }
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
}

#[tokio::test]
async fn what_people_triaged_says_something_else() {
    let (stub, target, cycle) = start().await;
    let entries = [of("adds", Status::Failed), of("pays", Status::Failed)];
    for entry in &entries {
        target.write(&cycle, std::slice::from_ref(entry)).await.unwrap();
    }
    let items: Vec<u64> = stub.vendor().items.iter().map(|row| row.id).collect();
    stub.vendor().items.change(items[1], Stamp::default(), |item| {
        (item.issue, item.remark) = (Some("pb001".to_owned()), Some("SHOP-7".to_owned()));
    });
    let mut texts: Vec<String> = target.rows(&cycle, &[]).await.unwrap().into_iter().map(|row| row.text).collect();
    texts.sort();
    let said = entries[0].message.clone().unwrap();
    assert_eq!(texts, [said.clone(), format!("{said}\ndefect: pb001\nSHOP-7")]);
}
