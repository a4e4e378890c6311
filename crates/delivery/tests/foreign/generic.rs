//! A service that only the configuration describes: the adapter against the stub.

use std::sync::Arc;

use delivery::foreign::{
    Adapter, CaseChoice, CaseWanted, CycleId, KeyOnWrite, Kind, Listing, MarkerLevel, Race, RowStatus, Strategy,
    TargetSettings, Visible,
};
use domain::Status;
use domain::marker::Found;
use proof::stubs::generic::{Same, Service};
use proof::stubs::{Admin, Damage, Fault, Lag, Plan, Quirks, Repeat, Rule, Select, Stub, Vendor};
use serde_json::{Value, json};

use crate::given::{class, entry, faults_of_a_write, next_write, opened, opened_for, settings, settled, wanted};

pub(crate) fn stub() -> Stub<Service> {
    Stub::start(Service::appending()).unwrap()
}

/// What the guide shows for a service that only appends.
pub(crate) fn described() -> Value {
    json!({
        "write": {
            "method": "POST",
            "path": "/api/runs/{cycle}/results",
            "body": r#"{"case": {case}, "status": {status}, "ms": {duration_ms}, "note": {comment}}"#,
            "id-at": "/id",
        },
        "read": {
            "path": "/api/runs/{cycle}/results?offset={offset}&limit=100",
            "items-at": "/results", "row-at": "/id", "case-at": "/case", "status-at": "/status", "marker-at": "/note",
            "time-at": "/at", "next": "offset", "missing-is-empty": true,
        },
        "errors": { "message-at": "/error" },
    })
}

/// The same with a change at a JSON pointer; `null` takes the member away.
pub(crate) fn with(mut own: Value, pointer: &str, value: Value) -> Value {
    let (table, key) = pointer.rsplit_once('/').unwrap();
    let table = own.pointer_mut(table).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        table.remove(key);
    } else {
        table.insert(key.to_owned(), value);
    }
    own
}

pub(crate) fn of(stub: &Stub<Service>, own: Value) -> TargetSettings {
    let mut settings = settings(Kind::Generic, stub, own);
    let words = [(Status::Passed, "OK"), (Status::Failed, "KO"), (Status::Errored, "ERR"), (Status::Skipped, "SKIP")];
    settings.statuses = words.map(|(status, word)| (status, word.to_owned())).into();
    settings
}

pub(crate) fn target(stub: &Stub<Service>, own: Value) -> Arc<dyn Adapter> {
    opened(of(stub, own)).unwrap()
}

pub(crate) fn run() -> CycleId {
    CycleId::new(wanted("round 1").tag())
}

#[tokio::test]
async fn a_small_service_is_reached_by_configuration_alone() {
    let stub = stub();
    let target = target(&stub, described());
    let found = target.find_cycles(&wanted("round 1")).await.unwrap();
    assert_eq!(found.iter().map(|cycle| cycle.id.clone()).collect::<Vec<_>>(), [run()], "the tag is the id");
    assert_eq!(target.rows(&run(), &[]).await, Ok(vec![]), "nothing was written yet");
    let all = Status::ALL.map(|status| entry(status.word(), status));
    for entry in &all {
        let written = target.write(&run(), std::slice::from_ref(entry)).await.unwrap();
        let rows = target.rows(&run(), std::slice::from_ref(&entry.case)).await.unwrap();
        assert_eq!(rows.iter().map(|row| Some(row.id.clone())).collect::<Vec<_>>(), written.rows);
        assert_eq!(rows[0].marker, Found::Whole(entry.marker));
        assert_eq!(rows[0].status, RowStatus::Is(entry.status));
        assert_eq!(rows[0].text, "expected <1> & \"was\" 2");
        assert!(rows[0].at_ms > Some(1_700_000_000_000), "{rows:?}");
    }
    target.write(&run(), &all[..1]).await.unwrap();
    let again = target.rows(&run(), &[all[0].case.clone()]).await.unwrap();
    assert_eq!(again.iter().filter(|row| row.is_of(all[0].marker.write)).count(), 2, "a repeat stands beside it");
    assert_eq!(again.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["1", "5"], "oldest first");
    assert_eq!(class(&target.write(&run(), &all).await.unwrap_err()), "too large");
}

#[tokio::test]
async fn cases_are_named_after_their_items_or_mapped() {
    let stub = stub();
    let name = domain::ItemName::new(["s"], Some("C"), "adds");
    let wanted = [CaseWanted { item: &name, external_ids: &[], mapped: None }];
    let id = |choices: Vec<CaseChoice>| match choices.into_iter().next() {
        Some(CaseChoice::Known(case)) => case.id.to_string(),
        other => format!("{other:?}"),
    };
    let named = |case: Value| with(described(), "/case", case);
    assert_eq!(id(target(&stub, described()).cases(&wanted).await.unwrap()), "s > C > adds");
    let hash = id(target(&stub, named(json!("hash"))).cases(&wanted).await.unwrap());
    assert_eq!(hash, format!("item{}", name.hash()));
    assert!(id(target(&stub, named(json!("mapping"))).cases(&wanted).await.unwrap()).starts_with("Some(Unmatched"));
}

/// The same service where runs are made first.
pub(crate) fn with_runs() -> Value {
    let own = with(
        described(),
        "/find-cycle",
        json!({
            "path": "/api/runs?offset={offset}&limit=10", "items-at": "/runs", "next": "offset",
            "id-at": "/id", "name-at": "/name", "tag-at": "/label", "closed-at": "/closed",
        }),
    );
    let own = with(
        own,
        "/create-cycle",
        json!({
            "path": "/api/runs", "body": r#"{"name": "{project}: {name}", "label": "round {tag}"}"#, "id-at": "/id",
        }),
    );
    with(own, "/delete-cycle", json!({ "path": "/api/runs/{cycle}" }))
}

#[tokio::test]
async fn cycles_are_found_by_their_tag_oldest_first() {
    let stub = stub();
    stub.vendor().runs_first = true;
    let target = target(&stub, with_runs());
    assert_eq!(target.find_cycles(&wanted("round 1")).await, Ok(vec![]));
    let first = target.create_cycle(&wanted("round 1")).await.unwrap();
    for n in 2..30 {
        target.create_cycle(&wanted(&format!("round {n}"))).await.unwrap();
    }
    let second = target.create_cycle(&wanted("round 1")).await.unwrap();
    assert!(stub.vendor().admin(&Admin::CloseCycle(first.to_string())));
    let found = target.find_cycles(&wanted("round 1")).await.unwrap();
    let shown: Vec<_> = found.iter().map(|cycle| (&cycle.id, cycle.name.as_str(), cycle.closed)).collect();
    assert_eq!(shown, [(&first, "1: main, round 1", true), (&second, "1: main, round 1", false)]);
    target.delete_cycle(&second).await.unwrap();
    target.delete_cycle(&second).await.unwrap();
    assert_eq!(target.find_cycles(&wanted("round 1")).await.unwrap().len(), 1);
    assert!(target.facts().races.contains(&Race::R3) && target.facts().repair.delete_cycle);
}

#[tokio::test]
async fn a_cycle_at_an_address_of_its_own_is_there_or_not() {
    let stub = stub();
    let own = with(with_runs(), "/find-cycle", json!({ "path": "/api/runs/{tag}", "name-at": "/name" }));
    let target = target(&stub, with(own, "/create-cycle/id-at", Value::Null));
    assert_eq!(target.find_cycles(&wanted("round 1")).await, Ok(vec![]));
    target.write(&run(), &[entry("a", Status::Passed)]).await.unwrap();
    assert_eq!(target.find_cycles(&wanted("round 1")).await.unwrap()[0].id, run());
    stub.set_plan(Plan::on(Select::reads(), Fault::Page { status: 404, applied: false }));
    assert_eq!(class(&target.find_cycles(&wanted("round 2")).await.unwrap_err()), "unknown", "a proxy's page");
}

pub(crate) fn in_batches() -> Value {
    let write = json!({
        "path": "/api/runs/{cycle}/bulk", "batch": 20, "body": r#"{"results": {entries}}"#,
        "body-item": r#"{"case": {case}, "status": {status}, "ms": {duration_ms}, "note": {comment}}"#,
        "rows-at": "/results", "id-at": "/id", "error-at": "/error",
    });
    with(described(), "/write", write)
}

#[tokio::test]
async fn of_a_batch_only_what_is_bad_is_refused() {
    let stub = stub();
    let mut settings = of(&stub, in_batches());
    settings.statuses.insert(Status::Errored, "BAD".to_owned());
    let target = opened(settings).unwrap();
    let batch = [entry("a", Status::Passed), entry("b", Status::Errored), entry("c", Status::Failed)];
    let written = target.write(&run(), &batch).await.unwrap();
    assert_eq!(written.refused.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1]);
    assert!(written.refused[0].1.contains("not known"), "{written:?}");
    let rows = target.rows(&run(), &[]).await.unwrap();
    let ids = |case: &str| rows.iter().find(|row| row.case.as_str() == case).map(|row| row.id.clone());
    assert_eq!(written.rows, [ids("a"), None, ids("c")]);
    let facts = target.facts();
    assert_eq!((facts.bulk.items_max, facts.bulk.atomic), (20, false));
    assert!(facts.races.contains(&Race::R9));
    // Carried out in part, with an answer that says nothing.
    stub.set_plan(next_write(Fault::AppliedInPart { first: 1 }));
    let more = [entry("d", Status::Passed), entry("e", Status::Passed)];
    assert_eq!(class(&target.write(&run(), &more).await.unwrap_err()), "unknown");
}

#[tokio::test]
async fn an_element_that_is_no_object_is_the_id_of_its_row() {
    let stub = stub();
    stub.vendor().bare_ids = true;
    let own = with(with(in_batches(), "/write/id-at", Value::Null), "/write/error-at", Value::Null);
    let target = target(&stub, own);
    let batch = [entry("a", Status::Passed), entry("b", Status::Failed)];
    let written = target.write(&run(), &batch).await.unwrap();
    let rows = target.rows(&run(), &[]).await.unwrap();
    assert_eq!(written.rows, rows.iter().map(|row| Some(row.id.clone())).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_name_is_cut_to_what_the_service_takes() {
    let stub = stub();
    stub.vendor().runs_first = true;
    let target = target(&stub, with(with_runs(), "/name-max", json!(4)));
    target.create_cycle(&wanted("round 1")).await.unwrap();
    assert_eq!(target.find_cycles(&wanted("round 1")).await.unwrap()[0].name, "1: main");
}

#[tokio::test]
async fn every_answer_is_sorted_by_whether_it_may_be_written() {
    for (own, several) in [(described(), false), (in_batches(), true)] {
        let mut faults = faults_of_a_write();
        faults.push((Fault::Page { status: 404, applied: false }, "unknown", false));
        for (fault, expected, there) in faults {
            let stub = stub();
            let target = target(&stub, own.clone());
            let writer = opened_for(&fault, of(&stub, own.clone()));
            stub.set_plan(next_write(fault.clone()));
            let trouble = writer.write(&run(), &[entry("a", Status::Passed)]).await.unwrap_err();
            settled(&stub, there);
            assert_eq!(class(&trouble), expected, "{several}, {fault:?}: {trouble}");
            assert_eq!(!target.rows(&run(), &[]).await.unwrap().is_empty(), there, "{several}, {fault:?}");
        }
    }
}

#[tokio::test]
async fn the_services_own_words_tell_what_a_status_does_not() {
    let stub = stub();
    let own = with(described(), "/errors", json!({ "message-at": "/error", "gone": "is closed" }));
    let target = target(&stub, own);
    let one = [entry("a", Status::Passed)];
    target.write(&run(), &one).await.unwrap();
    assert!(stub.vendor().admin(&Admin::CloseCycle(run().to_string())));
    assert_eq!(class(&target.write(&run(), &one).await.unwrap_err()), "gone");
    let mut bad = of(&stub, described());
    bad.statuses.insert(Status::Passed, "GREEN".to_owned());
    let trouble = opened(bad).unwrap().write(&CycleId::new("other"), &one).await.unwrap_err();
    assert!(class(&trouble) == "refused" && trouble.to_string().contains("not known"), "{trouble}");
    // A service that says "there already" with another status than 409.
    let words = with(described(), "/errors", json!({ "exists": "not known" }));
    let mut said = of(&stub, words);
    said.statuses.insert(Status::Passed, "GREEN".to_owned());
    let trouble = opened(said).unwrap().write(&CycleId::new("other"), &one).await.unwrap_err();
    assert_eq!(class(&trouble), "exists");
}

#[tokio::test]
async fn an_id_of_ours_makes_a_repeat_harmless() {
    let by_header = with(described(), "/write/headers", json!({ "Idempotency-Key": "\"{id}\"" }));
    let body = r#"{"uid": {id}, "case": {case}, "status": {status}, "note": {message}}"#;
    let by_body = with(described(), "/write/body", json!(body));
    for own in [by_header, by_body] {
        for (repeat, same_id) in [(Repeat::Collapse, "collapses"), (Repeat::Refuse, "refuses")] {
            let stub = Stub::start(Service::new(Rule::honest(repeat), Same::Uid)).unwrap();
            let mut settings = of(&stub, with(own.clone(), "/same-id", json!(same_id)));
            settings.strategy = Some(Strategy::Idempotent);
            let target = opened(settings).unwrap();
            let first = target.write(&run(), &[entry("a", Status::Passed)]).await.unwrap();
            match target.write(&run(), &[entry("a", Status::Passed)]).await {
                Ok(again) => assert_eq!((again, repeat), (first, Repeat::Collapse)),
                Err(trouble) => assert_eq!((class(&trouble).as_str(), repeat), ("exists", Repeat::Refuse)),
            }
            assert_eq!(stub.ledger().count(), 1);
            let facts = target.facts();
            let key = if repeat == Repeat::Collapse { KeyOnWrite::Collapses } else { KeyOnWrite::Refuses };
            assert_eq!((facts.key_on_write, facts.marker.level), (key, MarkerLevel::M1));
            assert_eq!((facts.default_strategy(), facts.races), (Strategy::Idempotent, &[][..]));
        }
    }
}

#[tokio::test]
async fn a_service_that_lists_nothing_is_only_written_to_if_that_is_said() {
    let stub = stub();
    let unread = with(described(), "/read", Value::Null);
    let error = opened(of(&stub, unread.clone())).map(drop).unwrap_err().to_string();
    assert!(error.contains("at-most-once"), "{error}");
    let mut settings = of(&stub, unread);
    settings.strategy = Some(Strategy::AtMostOnce);
    let target = opened(settings).unwrap();
    let facts = target.facts();
    assert_eq!((facts.default_strategy(), facts.marker.level), (Strategy::AtMostOnce, MarkerLevel::M6));
    assert_eq!(target.listing(), Listing::Nothing);
    target.write(&run(), &[entry("a", Status::Passed)]).await.unwrap();
    assert_eq!(class(&target.rows(&run(), &[]).await.unwrap_err()), "refused");
}

#[tokio::test]
async fn a_service_that_replaces_says_so_and_rows_are_mended() {
    let stub = Stub::start(Service::new(Rule::honest(Repeat::Replace), Same::Case)).unwrap();
    let own = with(described(), "/repeat", json!("replaces"));
    let own = with(
        own,
        "/amend",
        json!({
            "path": "/api/results/{row}", "body": r#"{"status": {status}, "note": {comment}}"#,
        }),
    );
    let target = target(&stub, with(own, "/delete", json!({ "path": "/api/results/{row}" })));
    assert_eq!(target.facts().default_strategy(), Strategy::Replace);
    for status in [Status::Failed, Status::Passed] {
        target.write(&run(), &[entry("a", status)]).await.unwrap();
    }
    let rows = target.rows(&run(), &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| &row.status).collect::<Vec<_>>(), [&RowStatus::Is(Status::Passed)]);
    target.amend(&run(), &rows[0].id, &entry("a", Status::Skipped)).await.unwrap();
    let amended = target.rows(&run(), &[]).await.unwrap();
    assert_eq!(amended[0].status, RowStatus::Is(Status::Skipped));
    assert_eq!(amended[0].marker, Found::Whole(entry("a", Status::Skipped).marker));
    target.delete(&run(), &rows[0].id).await.unwrap();
    target.delete(&run(), &rows[0].id).await.unwrap();
    assert_eq!(stub.ledger().count(), 0);
}

#[tokio::test]
async fn a_list_that_lags_and_a_note_that_is_cut_are_what_the_configuration_says() {
    let stub = stub();
    stub.set_quirks(Quirks { lag: Lag::Reads(1), damage: vec![Damage::CutTo(80)], ..Quirks::default() });
    let own = with(with(described(), "/lag-ms", json!(5000)), "/comment-max", json!(80));
    let target = target(&stub, own);
    assert_eq!(target.facts().visible, Visible::Later(5000));
    let mut long = entry("a", Status::Failed);
    long.message = Some("é".repeat(500));
    target.write(&run(), std::slice::from_ref(&long)).await.unwrap();
    assert_eq!(target.rows(&run(), &[]).await.unwrap().len(), 0, "not yet");
    let rows = target.rows(&run(), &[]).await.unwrap();
    assert_eq!(rows[0].marker, Found::Whole(long.marker));
}

#[tokio::test]
async fn the_token_goes_where_the_configuration_says() {
    let stub = stub();
    let target = target(&stub, with(described(), "/auth", json!("X-Api-Key: {token}")));
    target.write(&run(), &[entry("a", Status::Passed)]).await.unwrap();
    assert_eq!(stub.log()[0].request.header("authorization"), None);
}

#[tokio::test]
async fn what_was_known_again_once_may_be_taken_away() {
    let stub = stub();
    let target = target(&stub, with(described(), "/delete", json!({ "path": "/api/results/{row}" })));
    target.write(&run(), &[entry("a", Status::Passed)]).await.unwrap();
    let rows = target.rows(&run(), &[]).await.unwrap();
    target.delete(&run(), &rows[0].id).await.unwrap();
    assert_eq!(target.rows(&run(), &[]).await.unwrap(), []);
    // What it confirms afterwards is looked for by those who sent it.
    target.write(&run(), &[entry("b", Status::Passed)]).await.unwrap();
    assert_eq!(target.rows(&run(), &[]).await.unwrap().len(), 1);
}
