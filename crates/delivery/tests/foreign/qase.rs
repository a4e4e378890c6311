//! Qase: the adapter against the stub.

use std::sync::Arc;

use delivery::foreign::audit::{AuditOptions, CycleRows, FoundBy, judge};
use delivery::foreign::{Adapter, CaseChoice, Closing, CycleId, CycleWanted, Kind, OpenError, RowStatus, VerdictRule};
use domain::Status;
use domain::marker::Found;
use proof::stubs::{Admin, Damage, Fault, JobFate, Lag, Plan, Qase, Quirks, Select, Stamp, Stub, Vendor};
use serde_json::{Value, json};

use crate::given::{class, entry, item, opened, settings, wanted};
use crate::keyed::{case, case_of, choose, many, of, say, under_each_fault};

fn target(stub: &Stub<Qase>) -> Arc<dyn Adapter> {
    let mut settings = settings(Kind::Qase, stub, json!({}));
    "DEMO".clone_into(&mut settings.project);
    opened(settings).unwrap()
}

async fn start() -> (Stub<Qase>, Arc<dyn Adapter>, CycleId) {
    let stub = Stub::start(Qase::default()).unwrap();
    let target = target(&stub);
    let cycle = target.create_cycle(&wanted("1")).await.unwrap();
    (stub, target, cycle)
}

#[tokio::test]
async fn a_case_is_named_by_the_mapping_a_property_or_the_name_or_is_the_item_itself() {
    let (_stub, target, _) = start().await;
    let adds = item("adds");
    assert_eq!(case(&*target, &adds, &[], Some("DEMO-9")).await.as_deref(), Some("9"));
    assert_eq!(case(&*target, &adds, &["X-1", "12"], None).await.as_deref(), Some("12"));
    for name in ["[Q-7] adds", "adds DEMO-7", "adds (Qase ID: 7)"] {
        assert_eq!(case(&*target, &item(name), &[], None).await.as_deref(), Some("7"), "{name}");
    }
    for name in ["adds", "7", "OTHER-7 adds"] {
        assert_eq!(case(&*target, &item(name), &[], None).await, Some(case_of(name)), "{name}");
    }
    for (name, ids) in
        [("[Q-7] [DEMO-8]", &[][..]), ("adds (Qase ID: 7,8)", &[]), ("adds", &["7", "Q-8", "requirement:9"])]
    {
        let (cases, _) = choose(&*target, &item(name), ids, None).await.into_parts();
        let cases: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(cases, ["7", "8"], "{name}");
    }
    assert_eq!(case(&*target, &adds, &["requirement:12", "requirement:DEMO-12"], None).await, Some(case_of("adds")));
    let choice = choose(&*target, &adds, &[], Some("nonsense")).await;
    assert!(matches!(&choice, CaseChoice::Unmatched { why } if why.contains("nonsense")), "{choice:?}");
}

#[tokio::test]
async fn a_run_is_found_by_its_tag_among_others_and_over_pages() {
    let stub = Stub::start(Qase::default()).unwrap();
    let target = target(&stub);
    let tag = wanted("1").tag();
    for n in 0..120 {
        stub.vendor().add_run(proof::stubs::Stamp::default(), &format!("other {n}"));
        if n == 3 {
            stub.vendor().add_run(proof::stubs::Stamp::default(), &format!("by hand {tag}"));
        }
    }
    let long = CycleWanted { name: "x".repeat(400), ..wanted("1") };
    let made = target.create_cycle(&long).await.unwrap();
    let found = target.find_cycles(&wanted("1")).await.unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[1].id, made, "oldest first");
    assert!(found[1].name.ends_with(&tag) && !found[1].closed);
    assert!(target.find_cycles(&wanted("2")).await.unwrap().is_empty());
    target.close_cycle(&made, Closing::Complete).await.unwrap();
    let given = CycleWanted { given: Some(made.clone()), ..wanted("2") };
    let found = target.find_cycles(&given).await.unwrap();
    assert_eq!((&found[0].id, found[0].closed), (&made, true));
    target.delete_cycle(&made).await.unwrap();
    target.delete_cycle(&made).await.unwrap();
    assert_eq!(class(&target.find_cycles(&given).await.unwrap_err()), "gone");
}

#[tokio::test]
async fn what_is_sent_twice_stands_once_and_comes_back_over_pages() {
    let (stub, target, cycle) = start().await;
    let mut entries = many(149);
    entries.push(entry(12, Status::Errored));
    for _ in 0..2 {
        let written = target.write(&cycle, &entries).await.unwrap();
        assert_eq!((written.rows, written.refused), (vec![None; 150], Vec::new()));
    }
    assert_eq!((stub.ledger().count(), stub.doubled().len()), (150, 0));
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    let some = [entries[3].case.clone(), entries[149].case.clone()];
    assert_eq!(target.rows(&cycle, &some).await.unwrap().len(), 2);
    // Another content of the same write is another result.
    target.write(&cycle, &[of("t0", Status::Failed)]).await.unwrap();
    assert_eq!(stub.doubled().into_iter().collect::<Vec<_>>(), [(case_of("t0"), 1)]);
}

#[tokio::test]
async fn a_list_that_changes_while_it_is_read_is_never_taken_for_whole() {
    let (stub, target, cycle) = start().await;
    let entries = many(150);
    target.write(&cycle, &entries).await.unwrap();
    stub.set_plan(Plan::on(Select::reads().what("result"), Fault::PageSkips));
    assert_eq!(class(&target.rows(&cycle, &[]).await.unwrap_err()), "unknown");
    stub.set_plan(Plan::on(Select::reads().what("result"), Fault::PageRepeats));
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    // Newest first: a row more pushes the others down.
    stub.set_plan(Plan::pass());
    let run = cycle.as_str().parse().unwrap();
    stub.before(Select::reads().what("result").nth(2), move |vendor, at| {
        vendor.foreign_result(at, run, 5, "passed");
    });
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
}

#[tokio::test]
async fn what_is_queued_is_seen_later_or_never() {
    let (stub, target, cycle) = start().await;
    stub.set_quirks(Quirks { lag: Lag::Reads(2), ..Quirks::default() });
    target.write(&cycle, &many(1)).await.unwrap();
    // It leaves the queue before the first of these readings.
    for seen in [0, 0, 0, 1] {
        assert_eq!(target.rows(&cycle, &[]).await.unwrap().len(), seen);
    }
    stub.set_quirks(Quirks { job: JobFate::Fails, ..Quirks::default() });
    target.write(&cycle, &[of("lost", Status::Passed)]).await.unwrap();
    assert_eq!(stub.lost([case_of("lost")]), [case_of("lost")]);
}

#[tokio::test]
async fn every_answer_has_its_class() {
    under_each_fault("add_results", start, |door| door.ledger().count() == 1).await;
}

#[tokio::test]
async fn a_bad_result_refuses_its_batch_and_says_why() {
    let (stub, target, cycle) = start().await;
    let mut batch = many(3);
    batch[1].title.clear();
    let trouble = target.write(&cycle, &batch).await.unwrap_err();
    assert_eq!(class(&trouble), "refused");
    assert!(trouble.to_string().contains("results.1.title"), "{trouble}");
    assert_eq!(stub.ledger().count(), 0);
    assert_eq!(class(&target.write(&CycleId::new("999"), &many(1)).await.unwrap_err()), "gone");
    stub.admin(&Admin::CloseCycle(cycle.as_str().to_owned()));
    assert_eq!(class(&target.write(&cycle, &many(1)).await.unwrap_err()), "refused");
}

#[tokio::test]
async fn one_result_is_changed_and_deleted_by_its_hash() {
    let (stub, target, cycle) = start().await;
    target.write(&cycle, &many(2)).await.unwrap();
    let rows = target.rows(&cycle, &[many(1)[0].case.clone()]).await.unwrap();
    let changed = of("t0", Status::Failed);
    target.amend(&cycle, &rows[0].id, &changed).await.unwrap();
    say(&target.rows(&cycle, std::slice::from_ref(&changed.case)).await.unwrap(), &[changed]);
    target.delete(&cycle, &rows[0].id).await.unwrap();
    target.delete(&cycle, &rows[0].id).await.unwrap();
    assert_eq!(stub.ledger().count(), 1);
}

#[tokio::test]
async fn rows_of_others_and_rows_with_a_mangled_marker_are_told_apart() {
    let (stub, target, cycle) = start().await;
    let run = cycle.as_str().parse().unwrap();
    stub.vendor().foreign_result(proof::stubs::Stamp::default(), run, 5, "blocked");
    let rows = target.rows(&cycle, &[]).await.unwrap();
    assert_eq!((rows[0].case.as_str(), rows[0].marker), ("5", Found::Nothing));
    assert_eq!(rows[0].status, RowStatus::Other("blocked".to_owned()));
    let whole = of("adds", Status::Failed);
    let cut = Damage::CutTo(90);
    stub.set_quirks(Quirks { damage: vec![cut], ..Quirks::default() });
    target.write(&cycle, std::slice::from_ref(&whole)).await.unwrap();
    let rows = target.rows(&cycle, std::slice::from_ref(&whole.case)).await.unwrap();
    let told: Vec<_> = rows.iter().map(|row| (&row.case, row.marker)).collect();
    assert_eq!(told, [(&whole.case, Found::Mangled)]);
}

#[tokio::test]
async fn unknown_members_change_nothing_and_a_wrong_token_is_denied() {
    let (stub, target, cycle) = start().await;
    stub.set_quirks(Quirks { extra_members: true, damage: vec![Damage::LinesCrlf], ..Quirks::default() });
    let entries = many(2);
    target.write(&cycle, &entries).await.unwrap();
    say(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    stub.vendor().token = "another".to_owned();
    assert_eq!(class(&target.rows(&cycle, &[]).await.unwrap_err()), "denied");
    assert!(stub.vendor().rate().is_some());
}

#[test]
fn a_target_without_a_token_or_with_an_unknown_key_is_not_opened() {
    let stub = Stub::start(Qase::default()).unwrap();
    let open = |own: Value, token: bool| {
        let mut settings = settings(Kind::Qase, &stub, own);
        settings.token = settings.token.filter(|_| token);
        opened(settings).unwrap_err()
    };
    assert!(matches!(open(json!({}), false), OpenError::Credential(_)));
    assert!(open(json!({ "siute": 3 }), true).to_string().contains("siute"));
}

#[tokio::test]
async fn results_that_name_no_case_are_no_repeats_of_each_other() {
    let (stub, target, cycle) = start().await;
    let run = cycle.as_str().parse().unwrap();
    for (second, case) in [(0, 0), (1, 0), (0, 12), (1, 12)] {
        let at = Stamp { unix_ms: 1_790_000_000_000 + second * 1000, ..Stamp::default() };
        stub.vendor().foreign_result(at, run, case, "passed");
    }
    let rows = target.rows(&cycle, &[]).await.unwrap();
    let cycle = target.find_cycles(&wanted("1")).await.unwrap().remove(0);
    let read = CycleRows { cycle, by: FoundBy::Tag, rows, made_ms: None };
    let judged = judge(vec![read], None, AuditOptions::new(VerdictRule::Appends)).unwrap();
    let doubled: Vec<String> =
        judged.lines().into_iter().map(|line| format!("{} {}", line.finding, line.case)).collect();
    assert_eq!(doubled, ["likely-doubled 12", "likely-doubled 12"]);
}

#[tokio::test]
async fn where_it_failed_is_a_part_of_what_a_result_says() {
    let (stub, target, cycle) = start().await;
    let row = stub.vendor().foreign_result(Stamp::default(), cycle.as_str().parse().unwrap(), 12, "failed");
    stub.vendor().results.change(row, Stamp::default(), |outcome| outcome.stacktrace = Some("at line 7".to_owned()));
    assert_eq!(target.rows(&cycle, &[]).await.unwrap()[0].text, "at line 7");
}
