//! `TestRail`: the adapter against the stub.

use std::sync::Arc;

use delivery::foreign::{
    Adapter, CaseChoice, CaseId, CaseWanted, Closing, CycleId, CycleWanted, Kind, Row, RowId, RowStatus, Trouble,
};
use domain::Status;
use domain::marker::Found;
use proof::stubs::testrail::Options;
use proof::stubs::{Admin, Fault, Quirks, RetryAfter, Select, Stamp, Stub, TestRail, Vendor};
use serde_json::{Value, json};

use crate::given::{class, entry, faults_of_a_write, item, next_write, opened, opened_for, settings, settled, wanted};

fn stub() -> Stub<TestRail> {
    Stub::start(TestRail::new(Options::default())).unwrap()
}

fn target(stub: &Stub<TestRail>, own: Value) -> Arc<dyn Adapter> {
    opened(settings(Kind::Testrail, stub, own)).unwrap()
}

/// A run of so many cases: its id and theirs.
fn run_of(stub: &Stub<TestRail>, count: usize) -> (CycleId, Vec<u64>) {
    let mut vendor = stub.vendor();
    let cases: Vec<u64> = (0..count).map(|n| vendor.add_case(&format!("case {n}"), None)).collect();
    (CycleId::new(vendor.add_run("r", &cases).to_string()), cases)
}

fn known(choice: &CaseChoice) -> Option<&str> {
    if let CaseChoice::Known(case) = choice { Some(case.id.as_str()) } else { None }
}

async fn choose(target: &dyn Adapter, names: &[&str]) -> Vec<CaseChoice> {
    let items: Vec<_> = names.iter().map(|name| item(name)).collect();
    let wanted: Vec<_> = items.iter().map(|item| CaseWanted { item, external_ids: &[], mapped: None }).collect();
    target.cases(&wanted).await.unwrap()
}

#[tokio::test]
async fn cases_are_found_by_id_property_mapping_automation_id_and_title() {
    let stub = stub();
    let (a, b) = {
        let mut vendor = stub.vendor();
        vendor.add_case("twice", None);
        vendor.add_case("twice", None);
        (vendor.add_case("by automation", Some("shop.Cart.adds")), vendor.add_case("pays by card", None))
    };
    let target = target(&stub, json!({}));
    let names = [item("adds [C7]"), item("x"), item("y"), item("pays by card"), item("twice"), item("nobody")];
    let class = domain::ItemName::new(None::<&str>, Some("shop.Cart"), "adds");
    let (ids, mapped) = (["C8".to_owned().into()], CaseId::new("C9"));
    let mut wanted: Vec<_> = names.iter().map(|item| CaseWanted { item, external_ids: &[], mapped: None }).collect();
    wanted[1].external_ids = &ids;
    wanted[2].mapped = Some(&mapped);
    wanted.push(CaseWanted { item: &class, external_ids: &[], mapped: None });
    let choices = target.cases(&wanted).await.unwrap();
    let ids: Vec<_> = choices.iter().map(known).collect();
    let (a, b) = (a.to_string(), b.to_string());
    assert_eq!(ids, [Some("7"), Some("8"), Some("9"), Some(b.as_str()), None, None, Some(a.as_str())]);
    let CaseChoice::Unmatched { why } = &choices[4] else { panic!("{choices:?}") };
    assert!(why.contains("several cases"), "{why}");
    assert_eq!(stub.log().len(), 1, "cases are listed once, whatever the number of items");
}

#[tokio::test]
async fn every_case_that_an_item_names_gets_its_outcome() {
    let stub = stub();
    let target = target(&stub, json!({}));
    let both = item("[C1] [C2] both");
    let by_name = CaseWanted { item: &both, external_ids: &[], mapped: None };
    let ids = ["C3, C4", "requirement:C9", "name:C1", "C3"].map(|id| id.to_owned().into());
    let by_property = CaseWanted { external_ids: &ids, ..by_name };
    let choices = target.cases(&[by_name, by_property]).await.unwrap();
    for (choice, expected) in choices.into_iter().zip([["1", "2"], ["3", "4"]]) {
        let (cases, left_out) = choice.into_parts();
        let cases: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!((cases, left_out), (expected.to_vec(), vec![]));
    }
}

#[tokio::test]
async fn of_a_case_that_was_made_twice_the_oldest_counts() {
    let stub = stub();
    let first = stub.vendor().add_case("twice", None).to_string();
    stub.vendor().add_case("twice", None);
    let mut settings = settings(Kind::Testrail, &stub, json!({ "section": "S2" }));
    settings.create_cases = true;
    let target = opened(settings).unwrap();
    let choices = choose(&*target, &["twice"]).await;
    assert_eq!(known(&choices[0]), Some(first.as_str()), "{choices:?}");
}

#[tokio::test]
async fn a_case_is_made_once_and_found_again() {
    let stub = stub();
    stub.vendor().add_case("other", None);
    let section = "S2";
    let mut settings = settings(Kind::Testrail, &stub, json!({ "section": section }));
    settings.create_cases = true;
    let target = opened(settings.clone()).unwrap();
    let first = choose(&*target, &["new one", "new one"]).await;
    let again = choose(&*opened(settings).unwrap(), &["new one"]).await;
    assert!(known(&first[0]).is_some(), "{first:?}");
    assert_eq!([known(&first[0]), known(&first[1])], [known(&again[0]); 2]);
    assert_eq!(stub.log().iter().filter(|event| event.kind.what() == "add_case").count(), 1);
}

#[tokio::test]
async fn a_cycle_is_found_by_its_tag_alone_oldest_first() {
    let stub = stub();
    stub.vendor().add_run("main, round 1", &[]);
    let target = target(&stub, json!({}));
    assert_eq!(target.find_cycles(&wanted("round 1")).await, Ok(vec![]), "a name is nobody's");
    let first = target.create_cycle(&wanted("round 1")).await.unwrap();
    let other = target.create_cycle(&wanted("round 2")).await.unwrap();
    let second = target.create_cycle(&wanted("round 1")).await.unwrap();
    let found = target.find_cycles(&wanted("round 1")).await.unwrap();
    assert_eq!(found.iter().map(|cycle| &cycle.id).collect::<Vec<_>>(), [&first, &second]);
    assert_eq!(found[0].name, "main, round 1");
    assert!(!found[0].closed && first != other);
    target.close_cycle(&first, Closing::Complete).await.unwrap();
    target.close_cycle(&first, Closing::Complete).await.unwrap();
    target.close_cycle(&second, Closing::Abandoned).await.unwrap();
    let found = target.find_cycles(&wanted("round 1")).await.unwrap();
    assert!(found.iter().all(|cycle| cycle.closed), "{found:?}");
    assert!(found[1].name.starts_with("[abandoned] "), "{found:?}");
}

#[tokio::test]
async fn a_given_run_is_used_as_it_is() {
    let stub = stub();
    let (run, _) = run_of(&stub, 1);
    let target = target(&stub, json!({}));
    let given = |id: &str| CycleWanted { given: Some(CycleId::new(id)), ..wanted("round 1") };
    let found = target.find_cycles(&given(&format!("R{run}"))).await.unwrap();
    assert_eq!((found[0].id.clone(), found[0].name.as_str()), (run, "r"));
    assert_eq!(class(&target.find_cycles(&given("4711")).await.unwrap_err()), "gone");
}

#[tokio::test]
async fn tags_are_found_among_more_runs_than_a_page_holds_in_both_shapes() {
    for bare_lists in [false, true] {
        let stub = stub();
        stub.vendor().options.bare_lists = bare_lists;
        let target = target(&stub, json!({ "look-back-days": 7 }));
        let ours = target.create_cycle(&wanted("round 1")).await.unwrap();
        for n in 0..600 {
            stub.vendor().add_run(&format!("run {n}"), &[]);
        }
        // The others are as old as time, and were looked past.
        let found = target.find_cycles(&wanted("round 1")).await.unwrap();
        assert_eq!(found.iter().map(|cycle| &cycle.id).collect::<Vec<_>>(), [&ours]);
        let all = opened(settings(Kind::Testrail, &stub, json!({}))).unwrap();
        assert_eq!(all.find_cycles(&wanted("round 1")).await.unwrap(), found);
    }
}

#[tokio::test]
async fn cases_join_a_run_without_driving_others_out() {
    let stub = stub();
    let (run, cases) = run_of(&stub, 1);
    let late = stub.vendor().add_case("late", None);
    let target = target(&stub, json!({}));
    target.write(&run, &[entry(cases[0], Status::Passed)]).await.unwrap();
    let refused = target.add_cases(&run, &[CaseId::new(late.to_string()), CaseId::new("4711")]).await.unwrap();
    assert_eq!(refused.iter().map(|(case, _)| case.as_str()).collect::<Vec<_>>(), ["4711"]);
    target.write(&run, &[entry(late, Status::Failed)]).await.unwrap();
    assert_eq!(stub.ledger().count(), 2, "what was there before is there still");
    // Once they are in it, nothing is written.
    let writes = || stub.log().iter().filter(|event| event.kind.what() == "update_run").count();
    let before = writes();
    assert_eq!(target.add_cases(&run, &[CaseId::new(late.to_string())]).await, Ok(vec![]));
    assert_eq!(writes(), before);
}

#[tokio::test]
async fn a_selection_that_another_writer_takes_back_is_noticed() {
    let stub = stub();
    let (run, _) = run_of(&stub, 1);
    let late = stub.vendor().add_case("late", None);
    let act = Admin::RemoveItem { cycle: run.to_string(), item: format!("C{late}") };
    stub.before(Select::reads().what("get_tests").nth(2), move |vendor, _| assert!(vendor.admin(&act)));
    let target = target(&stub, json!({}));
    let trouble = target.add_cases(&run, &[CaseId::new(late.to_string())]).await.unwrap_err();
    // Ours was answered: nothing is on its way any more, and the next look may come at once.
    assert_eq!(class(&trouble), "not sent", "{trouble}");
}

#[tokio::test]
async fn a_run_of_all_cases_is_not_changed() {
    let stub = stub();
    let case = stub.vendor().add_case("there", None);
    let target = target(&stub, json!({ "include-all": true }));
    let run = target.create_cycle(&wanted("round 1")).await.unwrap();
    let refused = target.add_cases(&run, &[CaseId::new(case.to_string()), CaseId::new("4711")]).await.unwrap();
    assert_eq!(refused.iter().map(|(case, _)| case.as_str()).collect::<Vec<_>>(), ["4711"]);
    assert!(stub.log().iter().all(|event| event.kind.what() != "update_run"));
}

#[tokio::test]
async fn what_is_written_comes_back_with_its_marker_and_a_repeat_stands_beside_it() {
    for (own, field) in [(json!({}), "comment"), (json!({ "marker-field": "custom_rec_key" }), "custom_rec_key")] {
        let stub = stub();
        stub.vendor().options.result_fields.insert("custom_rec_key".to_owned());
        stub.vendor().options.marker_field = field.to_owned();
        stub.set_quirks(Quirks { extra_members: true, ..Quirks::default() });
        let (run, cases) = run_of(&stub, 4);
        let target = target(&stub, own);
        let batch: Vec<_> = cases.iter().zip(Status::ALL).map(|(case, status)| entry(case, status)).collect();
        let written = target.write(&run, &batch).await.unwrap();
        let rows = target.rows(&run, &[]).await.unwrap();
        assert_eq!(rows.len(), 4);
        for (sent, id) in batch.iter().zip(&written.rows) {
            let row = rows.iter().find(|row| Some(&row.id) == id.as_ref()).unwrap();
            assert_eq!((&row.case, row.marker), (&sent.case, Found::Whole(sent.marker)), "{row:?}");
            assert_eq!(row.text, "expected <1> & \"was\" 2\n1m 30s");
            // The product has one status for both.
            let read = if sent.status == Status::Errored { Status::Failed } else { sent.status };
            assert_eq!(row.status, RowStatus::Is(read));
        }
        target.write(&run, &batch[..1]).await.unwrap();
        let again = target.rows(&run, &[batch[0].case.clone()]).await.unwrap();
        assert_eq!(again.len(), 2);
        assert!(again.iter().all(|row| row.is_of(batch[0].marker.write)));
        assert_eq!(Some(&again[0].id), written.rows[0].as_ref(), "oldest first, also within a second");
    }
}

#[tokio::test]
async fn all_rows_are_read_whatever_the_pages_do_meanwhile() {
    for bare_lists in [false, true] {
        let stub = stub();
        stub.vendor().options.bare_lists = bare_lists;
        let (run, cases) = run_of(&stub, 3);
        let number: u64 = run.as_str().parse().unwrap();
        let add = |vendor: &mut TestRail, n: i64| {
            let at = Stamp { unix_ms: 1_790_000_000_000 + n * 1000, ..Stamp::default() };
            vendor.foreign_result(at, number, cases[0], 1, "by hand").unwrap();
        };
        for n in 0..700 {
            add(&mut stub.vendor(), n);
        }
        let case = cases[0];
        stub.before(Select::reads().what("get_results_for_run").nth(2), move |vendor, _| {
            for n in 700..703 {
                let at = Stamp { unix_ms: 1_790_000_000_000 + n * 1000, ..Stamp::default() };
                vendor.foreign_result(at, number, case, 1, "meanwhile").unwrap();
            }
        });
        let target = target(&stub, json!({}));
        let check = |rows: Vec<Row>, what: &str| {
            let old = rows.iter().filter(|row| row.text == "by hand").map(|row| &row.id);
            let distinct: std::collections::BTreeSet<_> = old.clone().collect();
            assert_eq!((old.count(), distinct.len()), (700, 700), "{what}");
        };
        check(target.rows(&run, &[]).await.unwrap(), "rows added");
        for fault in [Fault::PageSkips, Fault::PageRepeats] {
            let what = format!("{fault:?}");
            let select = Select::reads().what("get_results_for_run").nth(2);
            stub.set_plan(proof::stubs::Plan::on(select, fault));
            check(target.rows(&run, &[]).await.unwrap(), &what);
        }
    }
}

#[tokio::test]
async fn one_bad_result_refuses_the_batch_and_nothing_is_stored() {
    let stub = stub();
    let (run, cases) = run_of(&stub, 1);
    let target = target(&stub, json!({}));
    let batch = [entry(cases[0], Status::Passed), entry(4711, Status::Passed)];
    let trouble = target.write(&run, &batch).await.unwrap_err();
    assert_eq!(class(&trouble), "refused", "{trouble}");
    assert!(trouble.to_string().contains("4711"), "{trouble}");
    assert_eq!(stub.ledger().count(), 0);
}

#[tokio::test]
async fn a_run_that_is_completed_or_deleted_is_gone() {
    let stub = stub();
    let (run, cases) = run_of(&stub, 1);
    let target = target(&stub, json!({}));
    let batch = [entry(cases[0], Status::Passed)];
    target.close_cycle(&run, Closing::Complete).await.unwrap();
    assert_eq!(class(&target.write(&run, &batch).await.unwrap_err()), "gone");
    assert_eq!(class(&target.add_cases(&run, &[CaseId::new("4711")]).await.unwrap_err()), "gone");
    target.delete_cycle(&run).await.unwrap();
    target.delete_cycle(&run).await.unwrap();
    assert_eq!(class(&target.write(&run, &batch).await.unwrap_err()), "gone");
}

#[tokio::test]
async fn every_answer_is_sorted_by_whether_it_may_be_written() {
    let mut faults = faults_of_a_write();
    // The product's own use of 409 is maintenance; of anybody else it says nothing.
    faults.push((Fault::Refused { status: 409, retry_after: RetryAfter::Missing }, "wait 120", false));
    faults.push((Fault::Page { status: 409, applied: true }, "unknown", true));
    faults.push((Fault::AppliedInPart { first: 1 }, "unknown", true));
    for (fault, expected, there) in faults {
        let stub = stub();
        let (run, cases) = run_of(&stub, 1);
        let target = target(&stub, json!({}));
        let writer = opened_for(&fault, settings(Kind::Testrail, &stub, json!({})));
        stub.set_plan(next_write(fault.clone()));
        let trouble = writer.write(&run, &[entry(cases[0], Status::Passed)]).await.unwrap_err();
        settled(&stub, there);
        assert_eq!(class(&trouble), expected, "{fault:?}: {trouble}");
        let written = target.rows(&run, &[]).await.unwrap();
        assert_eq!(!written.is_empty(), there, "{fault:?}");
        assert!(trouble.had_no_effect() || class(&trouble) == "unknown");
    }
}

#[tokio::test]
async fn a_row_is_amended_where_the_site_allows_it_and_never_deleted() {
    let stub = stub();
    let (run, cases) = run_of(&stub, 1);
    let target = target(&stub, json!({}));
    let written = target.write(&run, &[entry(cases[0], Status::Failed)]).await.unwrap();
    let row = written.rows[0].clone().unwrap();
    let now = entry(cases[0], Status::Passed);
    target.amend(&run, &row, &now).await.unwrap();
    let rows = target.rows(&run, &[]).await.unwrap();
    assert_eq!((rows.len(), &rows[0].status), (1, &RowStatus::Is(Status::Passed)));
    assert_eq!(rows[0].marker, Found::Whole(now.marker));
    assert_eq!(class(&target.amend(&run, &RowId::new("4711"), &now).await.unwrap_err()), "refused");
    stub.vendor().options.edit_results = false;
    assert_eq!(class(&target.amend(&run, &row, &now).await.unwrap_err()), "denied");
    assert_eq!(class(&target.delete(&run, &row).await.unwrap_err()), "refused");
}

#[tokio::test]
async fn statuses_can_be_named_and_a_name_that_is_gone_is_said() {
    let stub = stub();
    let (run, cases) = run_of(&stub, 1);
    let mut settings = settings(Kind::Testrail, &stub, json!({}));
    settings.statuses.insert(Status::Errored, "Blocked".to_owned());
    let target = opened(settings.clone()).unwrap();
    target.write(&run, &[entry(cases[0], Status::Errored)]).await.unwrap();
    assert_eq!(stub.ledger().items().values().next().unwrap()[0].status, "2");
    assert_eq!(target.rows(&run, &[]).await.unwrap()[0].status, RowStatus::Is(Status::Errored));
    assert!(stub.vendor().admin(&Admin::RenameStatus { from: "blocked".to_owned(), to: "stuck".to_owned() }));
    let trouble = opened(settings.clone()).unwrap().rows(&run, &[]).await.unwrap_err();
    assert!(matches!(&trouble, Trouble::Refused(what) if what.contains("stuck")), "{trouble}");
    settings.statuses.insert(Status::Errored, "untested".to_owned());
    assert!(opened(settings).unwrap().rows(&run, &[]).await.is_err(), "it can't be written");
}

#[tokio::test]
async fn what_is_missing_or_wrong_in_the_configuration_is_named() {
    let stub = stub();
    let error = |change: &dyn Fn(&mut delivery::foreign::TargetSettings), own: Value| {
        let mut settings = settings(Kind::Testrail, &stub, own);
        change(&mut settings);
        opened(settings).map(drop).unwrap_err().to_string()
    };
    let nothing = |_: &mut delivery::foreign::TargetSettings| {};
    assert!(error(&|s| s.project = "shop".to_owned(), json!({})).starts_with("project can't be used"));
    assert!(error(&|s| s.token = None, json!({})).starts_with("token"));
    assert!(error(&|s| s.create_cases = true, json!({})).starts_with("section is missing"));
    assert!(error(&nothing, json!({ "marker-field": "title" })).contains("custom_"));
    assert!(error(&nothing, json!({ "suite": "master" })).starts_with("suite can't be used"));
    assert!(error(&nothing, json!({ "siute": 3 })).starts_with("unknown key siute"));
}
