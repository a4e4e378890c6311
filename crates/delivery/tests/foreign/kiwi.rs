//! Kiwi TCMS: the adapter against the stub, for what the real server can't be made to do.

use std::sync::Arc;

use delivery::foreign::{Adapter, CaseId, CaseWanted, CycleId, Entry, Kind, RowStatus, Trouble};
use domain::Status;
use domain::marker::{ContentTag, Found};
use proof::stubs::kiwi::Options;
use proof::stubs::{Admin, Damage, Fault, Kiwi, Plan, Quirks, RetryAfter, Select, Stamp, Stub};
use serde_json::{Value, json};

use crate::given::{class, entry, faults_of_a_write, item, opened, settings, wanted};

fn own() -> Value {
    json!({"plan": "Automated", "version": "1.0"})
}

fn target(stub: &Stub<Kiwi>) -> Arc<dyn Adapter> {
    let mut settings = settings(Kind::Kiwi, stub, own());
    "Shop".clone_into(&mut settings.project);
    opened(settings).unwrap()
}

/// A run of so many cases, and an entry for each.
fn run_of(count: usize) -> (Stub<Kiwi>, CycleId, Vec<Entry>) {
    let mut vendor = Kiwi::new(Options::default());
    let cases: Vec<u64> = (0..count).map(|n| vendor.add_case(&format!("case {n}"), true)).collect();
    let run = vendor.add_run("r", &cases);
    let entries = cases.into_iter().map(|case| entry(case, Status::Failed)).collect();
    (Stub::start(vendor).unwrap(), CycleId::new(run.to_string()), entries)
}

fn turned(entry: &Entry) -> Entry {
    let mut turned = Entry { status: Status::Passed, ..entry.clone() };
    turned.marker.content = ContentTag::of(&[Status::Passed]);
    turned
}

/// How often each kind of side row hangs on the only row of an item.
fn sides(stub: &Stub<Kiwi>, item: &str) -> (usize, usize) {
    let ledger = stub.ledger();
    let [row] = ledger.rows(item) else { panic!("{ledger:?}") };
    let count = |kind: &str| row.side.iter().filter(|side| side.starts_with(kind)).count();
    (count("link "), count("comment "))
}

#[test]
fn what_it_needs_is_said() {
    let stub = Stub::start(Kiwi::new(Options::default())).unwrap();
    let said = |own: Value| opened(settings(Kind::Kiwi, &stub, own)).unwrap_err().to_string();
    assert!(said(json!({})).starts_with("plan is missing"));
    assert!(said(json!({"plan": 1, "marker-base": "ftp://x"})).starts_with("marker-base can't be used"));
    assert!(said(json!({"plan": 1, "marker-base": format!("https://{}", "x".repeat(200))})).contains("characters"));
    assert!(said(json!({"plan": 1, "bild": "x"})).contains("unknown key bild"));
    let mut nobody = settings(Kind::Kiwi, &stub, own());
    nobody.user = None;
    assert!(opened(nobody).unwrap_err().to_string().starts_with("user is missing"));
}

#[tokio::test]
async fn every_fault_of_a_write_is_told_apart_and_a_repeat_doubles_nothing() {
    for (fault, expected, applied) in faults_of_a_write() {
        let (stub, run, entries) = run_of(3);
        let target = target(&stub);
        // The session and the statuses are known before: the first write is that of the verdicts.
        target.rows(&run, &[]).await.unwrap();
        stub.set_plan(Plan::on(Select::writes().nth(1), fault.clone()));
        let trouble = target.write(&run, &entries).await.unwrap_err();
        let said = class(&trouble);
        assert_eq!(said, expected, "{fault:?}: {trouble}");
        assert_eq!(stub.ledger().count(), if applied { 3 } else { 0 }, "{fault:?}");
        let rows = target.rows(&run, &[]).await.unwrap();
        assert!(rows.iter().all(|row| row.marker == Found::Nothing), "the link comes last: {rows:?}");
        stub.set_plan(Plan::default());
        for _ in 0..2 {
            assert_eq!(target.write(&run, &entries).await.unwrap().refused, []);
        }
        let rows = target.rows(&run, &[]).await.unwrap();
        for (row, entry) in rows.iter().zip(&entries) {
            assert_eq!((row.marker, &row.status), (Found::Whole(entry.marker), &RowStatus::Is(Status::Failed)));
        }
        assert_eq!((stub.ledger().count(), stub.doubled().len()), (3, 0), "{fault:?}");
        assert!((0..3).all(|n| sides(&stub, &format!("case {n}")) == (1, 1)), "{fault:?}");
    }
}

#[tokio::test]
async fn a_fault_behind_the_verdict_is_unknown_and_a_repeat_adds_what_is_missing() {
    for step in ["TestExecution.add_comment", "TestExecution.add_link"] {
        let refused = |status| Fault::Refused { status, retry_after: RetryAfter::Missing };
        for fault in [refused(429), refused(500), Fault::ResponseDropped, Fault::RequestDropped] {
            let (stub, run, entries) = run_of(2);
            let target = target(&stub);
            stub.set_plan(Plan::on(Select::writes().what(step).nth(1), fault.clone()));
            let trouble = target.write(&run, &entries).await.unwrap_err();
            assert_eq!(class(&trouble), "unknown", "{step} {fault:?}");
            stub.set_plan(Plan::default());
            assert_eq!(target.write(&run, &entries).await.unwrap().refused, []);
            assert!((0..2).all(|n| sides(&stub, &format!("case {n}")) == (1, 1)), "{step} {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_batch_that_is_carried_out_in_part_is_finished() {
    let (stub, run, entries) = run_of(4);
    let target = target(&stub);
    stub.set_plan(Plan::on(Select::writes().nth(1), Fault::AppliedInPart { first: 2 }));
    assert_eq!(class(&target.write(&run, &entries).await.unwrap_err()), "unknown");
    assert_eq!(stub.ledger().count(), 2);
    stub.set_plan(Plan::default());
    target.write(&run, &entries).await.unwrap();
    assert_eq!((stub.ledger().count(), stub.doubled().len()), (4, 0));
}

#[tokio::test]
async fn a_batch_takes_few_calls() {
    let (stub, run, entries) = run_of(50);
    let target = target(&stub);
    target.write(&run, &entries).await.unwrap();
    let names: Vec<String> = stub.log().iter().map(|event| event.kind.what().to_owned()).collect();
    let expected = [
        "auth",
        "TestExecutionStatus.filter",
        "TestRun.filter",
        "TestExecution.update",
        "TestExecution.get_comments",
        "TestExecution.add_comment",
        "TestExecution.add_link",
    ];
    assert_eq!(names, expected);
    let before = stub.log().len();
    assert_eq!(target.rows(&run, &[]).await.unwrap().len(), 50);
    assert_eq!(stub.log().len(), before + 1);
}

#[tokio::test]
async fn a_session_that_ends_is_renewed_for_reading_and_denies_a_write() {
    let (stub, run, entries) = run_of(1);
    let target = target(&stub);
    target.rows(&run, &[]).await.unwrap();
    stub.vendor().sessions.clear();
    assert_eq!(target.write(&run, &entries).await.unwrap().refused, [], "it reads first");
    stub.before(Select::writes().nth(1), |kiwi: &mut Kiwi, _: Stamp| kiwi.sessions.clear());
    let trouble = target.write(&run, &[turned(&entries[0])]).await.unwrap_err();
    assert!(matches!(trouble, Trouble::Denied(_)), "{trouble}");
    assert_eq!(target.write(&run, &[turned(&entries[0])]).await.unwrap().refused, []);
}

#[tokio::test]
async fn administrators_may_rename_and_delete_statuses() {
    let (stub, run, entries) = run_of(2);
    let target = target(&stub);
    target.write(&run, &entries[..1]).await.unwrap();
    assert!(stub.admin(&Admin::RenameStatus { from: "FAILED".to_owned(), to: "RED".to_owned() }));
    assert_eq!(target.write(&run, &entries[1..]).await.unwrap().refused, [], "the number stays");
    assert!(stub.admin(&Admin::DeleteStatus("PASSED".to_owned())));
    for _ in 0..2 {
        // Refused by the product; then the statuses are asked for again.
        let written = target.write(&run, &[turned(&entries[0])]).await.unwrap();
        assert_eq!(written.refused.len(), 1, "{written:?}");
    }
    let mut settings = settings(Kind::Kiwi, &stub, own());
    settings.statuses.insert(Status::Failed, "red".to_owned());
    let rows = opened(settings).unwrap().rows(&run, &[]).await.unwrap();
    assert!(rows.iter().all(|row| row.status == RowStatus::Is(Status::Failed)), "{rows:?}");
}

#[tokio::test]
async fn what_is_gone_is_said() {
    let (stub, run, entries) = run_of(2);
    let target = target(&stub);
    assert!(stub.admin(&Admin::RemoveItem { cycle: run.to_string(), item: "case 0".to_owned() }));
    let written = target.write(&run, &entries).await.unwrap();
    assert_eq!(written.refused.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0]);
    assert!(stub.admin(&Admin::DeleteCycle(run.to_string())));
    assert!(matches!(target.rows(&run, &[]).await, Err(Trouble::Gone(_))));
    assert!(matches!(target.write(&run, &entries).await, Err(Trouble::Gone(_))));
    assert!(matches!(target.add_cases(&run, &[entries[0].case.clone()]).await, Err(Trouble::Gone(_))));
}

#[tokio::test]
async fn two_places_for_one_case_get_one_verdict_and_people_see_both() {
    let (stub, run, entries) = run_of(1);
    let case: u64 = entries[0].case.as_str().parse().unwrap();
    let added = Stamp { unix_ms: 1_790_000_000_000, ..Stamp::default() };
    stub.vendor().execute(run.as_str().parse().unwrap(), case, added);
    let target = target(&stub);
    assert_eq!(target.add_cases(&run, &[entries[0].case.clone()]).await.unwrap(), []);
    for _ in 0..2 {
        target.write(&run, &entries).await.unwrap();
    }
    assert_eq!(stub.ledger().count(), 1);
    let rows = target.rows(&run, &[]).await.unwrap();
    let statuses: Vec<_> = rows.iter().map(|row| row.status.clone()).collect();
    assert_eq!(statuses, [RowStatus::Is(Status::Failed), RowStatus::Open]);
    // No report has dated it, so it is as old as its place.
    assert_eq!(rows[1].at_ms, Some(1_790_000_000_000));
}

/// The check and the insert of two writers cross; both end on the same row.
#[tokio::test(flavor = "multi_thread")]
async fn writers_that_add_at_once_share_the_oldest_place() {
    let mut vendor = Kiwi::new(Options::default());
    let case = vendor.add_case("case 0", true);
    let run = CycleId::new(vendor.add_run("r", &[]).to_string());
    let stub = Stub::start(vendor).unwrap();
    stub.meet("TestRun.add_case", 2);
    let entry = entry(case, Status::Passed);
    let writer = || async {
        let target = target(&stub);
        assert_eq!(target.add_cases(&run, std::slice::from_ref(&entry.case)).await.unwrap(), []);
        target
    };
    let (one, two) = tokio::join!(writer(), writer());
    one.write(&run, std::slice::from_ref(&entry)).await.unwrap();
    two.write(&run, std::slice::from_ref(&entry)).await.unwrap();
    assert_eq!(one.rows(&run, &[]).await.unwrap().len(), 2, "the double is there, and shown");
    assert_eq!((stub.ledger().count(), sides(&stub, "case 0")), (1, (1, 1)));
}

#[tokio::test]
async fn a_marker_that_was_cut_is_mangled_and_a_case_that_cannot_be_run_is_said() {
    let (stub, run, entries) = run_of(1);
    stub.set_quirks(Quirks { damage: vec![Damage::CutTo(50)], extra_members: true, ..Quirks::default() });
    let target = target(&stub);
    target.write(&run, &entries).await.unwrap();
    assert_eq!(target.rows(&run, &[]).await.unwrap()[0].marker, Found::Mangled);
    let proposed = stub.vendor().add_case("proposed", false);
    let refused = target.add_cases(&run, &[CaseId::new(proposed.to_string())]).await.unwrap();
    assert!(refused[0].1.contains("not confirmed"), "{refused:?}");
}

#[tokio::test]
async fn a_run_that_was_never_tagged_is_found_by_its_notes() {
    let stub = Stub::start(Kiwi::new(Options::default())).unwrap();
    let target = target(&stub);
    let lost = Select::writes().what("TestRun.add_tag").nth(1);
    stub.set_plan(Plan::on(lost, Fault::RequestDropped));
    assert_eq!(class(&target.create_cycle(&wanted("r")).await.unwrap_err()), "unknown");
    let found = target.find_cycles(&wanted("r")).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(stub.vendor().tags(found[0].id.as_str().parse().unwrap()).len(), 0);
}

#[tokio::test]
async fn a_case_whose_answer_is_lost_is_not_made_twice() {
    let stub = Stub::start(Kiwi::new(Options::default())).unwrap();
    let mut settings = settings(Kind::Kiwi, &stub, own());
    settings.create_cases = true;
    "Shop".clone_into(&mut settings.project);
    let target = opened(settings).unwrap();
    let items = [item("a <1>"), item("b")];
    let wanted: Vec<_> = items.iter().map(|item| CaseWanted { item, external_ids: &[], mapped: None }).collect();
    stub.set_plan(Plan::on(Select::writes().what("TestCase.create").nth(1), Fault::ResponseDropped));
    assert_eq!(class(&target.cases(&wanted).await.unwrap_err()), "unknown");
    target.cases(&wanted).await.unwrap();
    let made = stub.log().iter().filter(|event| event.kind.what() == "TestCase.create").count();
    assert_eq!(made, 1);
}

#[tokio::test]
async fn newer_versions_delete_rows_and_runs() {
    let (_, _, entries) = run_of(2);
    let mut vendor = Kiwi::new(Options { removes: true, ..Options::default() });
    let cases: Vec<u64> = (0..2).map(|n| vendor.add_case(&format!("case {n}"), true)).collect();
    let run = CycleId::new(vendor.add_run("r", &cases).to_string());
    let stub = Stub::start(vendor).unwrap();
    let target = target(&stub);
    target.write(&run, &entries).await.unwrap();
    let rows = target.rows(&run, &[]).await.unwrap();
    for _ in 0..2 {
        target.delete(&run, &rows[0].id).await.unwrap();
    }
    assert_eq!(target.rows(&run, &[]).await.unwrap(), rows[1..]);
    target.delete_cycle(&run).await.unwrap();
    assert_eq!(stub.ledger().count(), 0);
}
