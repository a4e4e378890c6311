//! Azure Test Plans: the adapter against the stub, in both modes.

use std::sync::Arc;

use delivery::foreign::{Adapter, CaseChoice, CaseId, Closing, CycleId, CycleWanted, Kind, RowId, Strategy};
use domain::Status;
use domain::marker::Found;
use proof::stubs::azure::Point;
use proof::stubs::{Azure, Damage, Fault, Plan, Quirks, Select, Stub};
use serde_json::{Value, json};

use crate::given::{class, entry, item, opened, settings, wanted};
use crate::keyed::{case, case_of, choose, many, of, outcome, say, under_each_fault};

fn target(stub: &Stub<Azure>, own: Value) -> Arc<dyn Adapter> {
    let mut settings = settings(Kind::Azure, stub, own);
    "demo".clone_into(&mut settings.project);
    opened(settings).unwrap()
}

async fn start() -> (Stub<Azure>, Arc<dyn Adapter>, CycleId) {
    let stub = Stub::start(Azure::default()).unwrap();
    let target = target(&stub, json!({}));
    let cycle = target.create_cycle(&wanted("1")).await.unwrap();
    (stub, target, cycle)
}

fn point(suite: u64, case: u64, title: &str, configuration: u64) -> Point {
    Point { plan: 3, suite, case, title: title.to_owned(), configuration }
}

/// A run of a plan with three cases, the third of them under two configurations.
async fn start_plan(own: Value) -> (Stub<Azure>, Arc<dyn Adapter>, CycleId) {
    let stub = Stub::start(Azure::default()).unwrap();
    for (suite, case, title, configuration) in
        [(7, 12, "adds", 1), (7, 13, "pays", 1), (7, 14, "twice", 1), (7, 14, "twice", 2), (8, 15, "elsewhere", 1)]
    {
        stub.vendor().add_point(point(suite, case, title, configuration));
    }
    let target = target(&stub, own);
    let cycle = target.create_cycle(&wanted("1")).await.unwrap();
    (stub, target, cycle)
}

#[tokio::test]
async fn a_run_is_found_by_its_name_within_the_last_weeks() {
    let (stub, target, made) = start().await;
    let again = target.create_cycle(&wanted("1")).await.unwrap();
    target.create_cycle(&wanted("2")).await.unwrap();
    let found = target.find_cycles(&wanted("1")).await.unwrap();
    let ids: Vec<&CycleId> = found.iter().map(|found| &found.id).collect();
    assert_eq!(ids, [&made, &again], "oldest first");
    // Changed twenty days ago by their clock, and a little ahead of ours.
    let day_ms = 24 * 60 * 60 * 1000;
    for skew_ms in [-20 * day_ms, day_ms / 2] {
        stub.set_quirks(Quirks { skew_ms, ..Quirks::default() });
        let round = format!("skewed {skew_ms}");
        let made = target.create_cycle(&wanted(&round)).await.unwrap();
        assert_eq!(target.find_cycles(&wanted(&round)).await.unwrap()[0].id, made);
    }
    target.close_cycle(&made, Closing::Complete).await.unwrap();
    target.close_cycle(&again, Closing::Abandoned).await.unwrap();
    let found = target.find_cycles(&wanted("1")).await.unwrap();
    assert_eq!(found.iter().map(|found| found.closed).collect::<Vec<_>>(), [false, true]);
    let given = CycleWanted { given: Some(made.clone()), ..wanted("3") };
    assert_eq!(target.find_cycles(&given).await.unwrap()[0].id, made);
    target.delete_cycle(&made).await.unwrap();
    target.delete_cycle(&made).await.unwrap();
    assert_eq!(class(&target.find_cycles(&given).await.unwrap_err()), "gone");
}

#[tokio::test]
async fn a_page_that_is_shorter_than_was_asked_for_is_not_the_last_one() {
    let (stub, target, cycle) = start().await;
    let entries = many(7);
    target.write(&cycle, &entries).await.unwrap();
    for page_max in [2, 7, 1000] {
        stub.vendor().page_max = page_max;
        say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    }
    let (stub, target, _) = start_plan(json!({ "plan": 3, "suite": 7, "configuration": 1 })).await;
    stub.vendor().page_max = 2;
    assert_eq!(case(&*target, &item("TC14 x"), &[], None).await.as_deref(), Some("14"));
}

#[tokio::test]
async fn more_runs_than_a_page_are_all_found() {
    let (_stub, target, _) = start().await;
    for _ in 0..120 {
        target.create_cycle(&wanted("1")).await.unwrap();
    }
    assert_eq!(target.find_cycles(&wanted("1")).await.unwrap().len(), 121);
}

#[tokio::test]
async fn results_are_appended_each_under_an_id_of_ours() {
    let (stub, target, cycle) = start().await;
    let entries = many(3);
    let written = target.write(&cycle, &entries).await.unwrap();
    assert_eq!(written.rows, [100_000, 100_001, 100_002].map(|id| Some(RowId::new(id.to_string()))));
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    let ids: Vec<String> =
        stub.vendor().results.iter().map(|row| row.data.text("automatedTestId").unwrap().to_owned()).collect();
    assert_eq!(ids, entries.iter().map(delivery::foreign::Entry::uuid).collect::<Vec<_>>());
    target.write(&cycle, &entries[..1]).await.unwrap();
    assert_eq!(stub.doubled().len(), 1, "the product appends");
    assert_eq!(target.facts().default_strategy(), Strategy::Reconcile);
    assert_eq!(case(&*target, &item("adds"), &["C1"], None).await, Some(case_of("adds")));
}

#[tokio::test]
async fn rows_come_back_over_pages_and_a_list_that_moved_is_known() {
    let (stub, target, cycle) = start().await;
    let entries = many(1500);
    for batch in entries.chunks(1000) {
        target.write(&cycle, batch).await.unwrap();
    }
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    for (fault, whole) in [(Fault::PageSkips, false), (Fault::PageRepeats, true)] {
        stub.set_plan(Plan::on(Select::reads().what("results"), fault));
        match target.rows(&cycle, &[]).await {
            Ok(rows) => {
                assert!(whole);
                say(&rows, &entries);
            }
            Err(trouble) => assert_eq!((class(&trouble).as_str(), whole), ("unknown", false)),
        }
    }
}

#[tokio::test]
async fn every_answer_has_its_class() {
    under_each_fault("results", start, |door| door.ledger().count() == 1).await;
}

#[tokio::test]
async fn a_page_to_sign_in_is_a_refusal() {
    let (stub, target, cycle) = start().await;
    stub.vendor().token = "another".to_owned();
    assert_eq!(class(&target.rows(&cycle, &[]).await.unwrap_err()), "denied");
    assert_eq!(class(&target.write(&cycle, &many(1)).await.unwrap_err()), "denied");
    stub.set_plan(Plan::on(Select::any(), Fault::Page { status: 203, applied: false }));
    assert_eq!(class(&target.rows(&cycle, &[]).await.unwrap_err()), "denied");
}

#[tokio::test]
async fn a_bad_result_refuses_its_batch_and_a_result_is_changed_but_never_deleted() {
    let (stub, target, cycle) = start().await;
    let mut other = settings(Kind::Azure, &stub, json!({}));
    other.project = "demo".to_owned();
    other.statuses.insert(Status::Failed, "Broken".to_owned());
    let bad = opened(other).unwrap();
    let trouble = bad.write(&cycle, &[of("a", Status::Passed), of("b", Status::Failed)]).await.unwrap_err();
    assert_eq!((class(&trouble).as_str(), stub.ledger().count()), ("refused", 0), "{trouble}");
    target.write(&cycle, &[of("a", Status::Passed)]).await.unwrap();
    let changed = of("a", Status::Skipped);
    let row = target.rows(&cycle, &[]).await.unwrap().remove(0).id;
    target.amend(&cycle, &row, &changed).await.unwrap();
    say(&target.rows(&cycle, &[]).await.unwrap(), std::slice::from_ref(&changed));
    assert_eq!(class(&target.delete(&cycle, &row).await.unwrap_err()), "refused");
    assert_eq!(class(&target.amend(&cycle, &RowId::new("5"), &changed).await.unwrap_err()), "gone");
    assert_eq!(class(&target.write(&CycleId::new("9"), &[changed]).await.unwrap_err()), "gone");
}

#[tokio::test]
async fn a_marker_that_was_cut_is_seen_as_such() {
    let (stub, target, cycle) = start().await;
    stub.set_quirks(Quirks { damage: vec![Damage::CutTo(70)], ..Quirks::default() });
    let entry = of("adds", Status::Failed);
    target.write(&cycle, std::slice::from_ref(&entry)).await.unwrap();
    let rows = target.rows(&cycle, &[]).await.unwrap();
    assert_eq!((&rows[0].case, rows[0].marker), (&entry.case, Found::Mangled));
}

#[tokio::test]
async fn a_run_of_a_plan_has_the_points_of_its_suite() {
    let (_stub, target, cycle) = start_plan(json!({ "plan": 3, "suite": 7, "configuration": 1 })).await;
    let cases = [12, 14, 15].map(|case: u64| CaseId::new(case.to_string()));
    let bad = target.add_cases(&cycle, &cases).await.unwrap();
    assert_eq!(bad.iter().map(|(case, _)| case).collect::<Vec<_>>(), [&cases[2]]);
    assert!(target.rows(&cycle, &[]).await.unwrap().is_empty(), "no verdict yet");
    assert_eq!(target.facts().default_strategy(), Strategy::Replace);
    let adds = item("adds");
    assert_eq!(case(&*target, &adds, &[], None).await.as_deref(), Some("12"), "by its title");
    assert_eq!(case(&*target, &item("TC13 x"), &[], None).await.as_deref(), Some("13"));
    assert_eq!(case(&*target, &adds, &["13"], None).await.as_deref(), Some("13"));
    assert_eq!(case(&*target, &adds, &[], Some("TC14")).await.as_deref(), Some("14"));
    assert_eq!(
        case(&*target, &adds, &["requirement:13", "99"], None).await.as_deref(),
        Some("12"),
        "still by its title"
    );
    let (cases, left_out) = choose(&*target, &adds, &["13", "TC14", "TC15"], None).await.into_parts();
    assert_eq!(cases.iter().map(|case| case.id.as_str()).collect::<Vec<_>>(), ["13", "14"]);
    assert!(left_out.len() == 1 && left_out[0].contains("15"), "{left_out:?}");
    for (name, mapped, why) in [("nobody", None, "title"), ("adds", Some("15"), "no point")] {
        let choice = choose(&*target, &item(name), &[], mapped).await;
        assert!(matches!(&choice, CaseChoice::Unmatched { why: said } if said.contains(why)), "{choice:?}");
    }
}

#[tokio::test]
async fn in_a_plan_a_repeat_replaces_and_a_case_of_two_points_is_left_alone() {
    let (stub, target, cycle) = start_plan(json!({ "plan": 3, "suite": 7 })).await;
    for shows_cases in [true, false] {
        stub.vendor().shows_cases = shows_cases;
        let cycle = if shows_cases { cycle.clone() } else { target.create_cycle(&wanted("2")).await.unwrap() };
        for status in [Status::Failed, Status::Passed] {
            let batch = [entry(12, status), entry(14, status), entry(13, status)];
            let written = target.write(&cycle, &batch).await.unwrap();
            assert_eq!(written.refused.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1]);
            assert!(written.refused[0].1.contains("2 results"), "{written:?}");
            let kept = [batch[0].clone(), batch[2].clone()];
            say(&target.rows(&cycle, &[]).await.unwrap(), &kept);
        }
    }
    assert!(stub.doubled().is_empty());
    let none = target.write(&cycle, &[entry(99, Status::Passed)]).await;
    assert_eq!(outcome(&none), "refused");
}

#[tokio::test]
async fn in_a_plan_every_answer_has_its_class() {
    for (fault, wanted, applied) in crate::given::faults_of_a_write() {
        let (stub, target, cycle) = start_plan(json!({ "plan": 3, "suite": 7 })).await;
        stub.set_plan(Plan::on(Select::writes().what("results").nth(1), fault.clone()));
        let written = target.write(&cycle, &[entry(12, Status::Failed)]).await;
        assert_eq!(outcome(&written), wanted, "{fault:?}: {written:?}");
        assert_eq!(stub.ledger().count() == 1, applied, "{fault:?}");
    }
}

#[test]
fn half_a_plan_is_not_opened() {
    let stub = Stub::start(Azure::default()).unwrap();
    for (own, missing) in
        [(json!({ "plan": 3 }), "suite"), (json!({ "suite": 7 }), "plan"), (json!({ "configuration": 1 }), "plan")]
    {
        let error = opened(settings(Kind::Azure, &stub, own)).unwrap_err().to_string();
        assert!(error.starts_with(missing), "{error}");
    }
}
