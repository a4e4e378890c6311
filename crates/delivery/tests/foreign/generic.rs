//! A service that only the configuration describes: the adapter against the stub.

use std::sync::Arc;

use delivery::foreign::{Adapter, CaseChoice, CaseWanted, CycleId, Kind, Race, RowStatus, TargetSettings};
use domain::Status;
use domain::marker::Found;
use proof::stubs::generic::Service;
use proof::stubs::{Admin, Fault, Plan, Select, Stamp, Stub, Vendor};
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

#[tokio::test]
async fn all_pages_are_read_whichever_way_the_list_goes_on() {
    let path = "/api/runs/{cycle}/results";
    let ways = [
        ("offset", json!({"path": format!("{path}?offset={{offset}}&limit=10"), "next": "offset"}), true),
        (
            "total",
            json!({"path": format!("{path}?offset={{offset}}&limit=10"), "next": "offset", "total-at": "/total"}),
            true,
        ),
        (
            "page",
            json!({"path": format!("{path}?page={{page}}&limit=10"), "next": "page", "total-at": "/total"}),
            false,
        ),
        (
            "cursor",
            json!({"path": format!("{path}?after={{cursor}}&limit=10"), "next": "cursor", "cursor-at": "/next", "total-at": "/total"}),
            false,
        ),
        (
            "link",
            json!({"path": format!("{path}?limit=10"), "next": "link", "total-at": "/total", "next-at": "/link"}),
            false,
        ),
        (
            "ending pages",
            json!({"path": format!("{path}?page={{page}}&limit=10"), "next": "page", "first-page": 0, "total-at": "/total"}),
            false,
        ),
    ];
    for (name, keys, offset) in ways {
        let stub = stub();
        stub.vendor().first_page = keys.get("first-page").and_then(Value::as_u64).unwrap_or(1);
        stub.vendor().pages_end = name == "ending pages";
        for n in 0..45 {
            stub.vendor().foreign(Stamp::default(), "7", &format!("case {n}"));
        }
        let mut own = described();
        own["read"].as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        own["read"]["missing-is-empty"] = json!(false);
        let target = target(&stub, own);
        target.write(&CycleId::new("7"), &[entry("first", Status::Passed)]).await.unwrap();
        // Three more while it is read: newest first, so that every later page moves.
        stub.before(Select::reads().nth(2), |service, at| {
            for n in 0..3 {
                service.foreign(at, "7", &format!("late {n}"));
            }
        });
        let check = async |what: &str| {
            let rows = target.rows(&CycleId::new("7"), &[]).await.unwrap();
            let old = rows.iter().filter(|row| !row.case.as_str().starts_with("late"));
            let cases: std::collections::BTreeSet<_> = old.clone().map(|row| row.case.clone()).collect();
            assert_eq!((old.count(), cases.len()), (46, 46), "{name}: {what}");
        };
        check("rows added").await;
        for fault in [Fault::PageRepeats, Fault::PageSkips] {
            stub.set_plan(Plan::on(Select::reads().nth(2), fault.clone()));
            if offset {
                check(&format!("{fault:?}")).await;
            } else {
                // Nothing but the count shows that a row slipped between two pages.
                let trouble = target.rows(&CycleId::new("7"), &[]).await.unwrap_err();
                assert_eq!(class(&trouble), "unknown", "{name}, {fault:?}: {trouble}");
            }
        }
    }
}

#[tokio::test]
async fn a_list_that_is_not_whole_is_never_taken_for_one() {
    let stub = stub();
    for n in 0..45 {
        stub.vendor().foreign(Stamp::default(), "7", &format!("case {n}"));
    }
    let read = |keys: Value| {
        let mut own = described();
        let table = own["read"].as_object_mut().unwrap();
        table.extend(keys.as_object().unwrap().clone());
        own
    };
    let path = "/api/runs/{cycle}/results?limit=10";
    let cases = [
        (json!({"path": path, "next": "none", "total-at": "/total"}), "46 rows"),
        (json!({"path": format!("{path}&pgae={{page}}"), "next": "page"}), "same as the one before"),
        (json!({"items-at": "/rows"}), "no array at \"/rows\""),
        (json!({"row-at": "/uid"}), "no id at \"/uid\""),
        (json!({"case-at": "/test"}), "no case at \"/test\""),
    ];
    for (keys, words) in cases {
        let target = target(&stub, read(keys));
        target.write(&CycleId::new("7"), &[entry("first", Status::Passed)]).await.unwrap();
        let trouble = target.rows(&CycleId::new("7"), &[]).await.unwrap_err();
        assert!(class(&trouble) == "unknown" && trouble.to_string().contains(words), "{trouble}");
    }
    // What isn't there is nothing only if the configuration says so, and the service itself.
    let strict = target(&stub, with(described(), "/read/missing-is-empty", json!(false)));
    assert_eq!(class(&strict.rows(&CycleId::new("8"), &[]).await.unwrap_err()), "gone");
    stub.set_plan(Plan::on(Select::reads(), Fault::Page { status: 404, applied: false }));
    let lenient = target(&stub, described());
    assert_eq!(class(&lenient.rows(&CycleId::new("8"), &[]).await.unwrap_err()), "unknown");
}

#[tokio::test]
async fn a_link_leads_nowhere_but_to_the_service_itself() {
    let stub = stub();
    let own = with(described(), "/read/path", json!("/api/runs/{cycle}/results?limit=10"));
    let own = with(with(own, "/read/next", json!("link")), "/read/next-at", json!("/results/0/note"));
    let target = target(&stub, own);
    for (away, words) in
        [("https://evil.example/x", "not under"), ("//evil.example/x", "not under"), ("/x", "later page")]
    {
        let mut one = entry("a", Status::Passed);
        one.message = None;
        target.write(&run(), &[one]).await.unwrap();
        // The note is where the next page is said to be.
        let amend = json!({ "status": "OK", "note": away });
        let reached = opened(of(
            &stub,
            with(
                described(),
                "/amend",
                json!({
                    "path": "/api/results/{row}", "body": amend.to_string(),
                }),
            ),
        ));
        let rows = opened(of(&stub, described())).unwrap().rows(&run(), &[]).await.unwrap();
        reached.unwrap().amend(&run(), &rows.last().unwrap().id, &entry("a", Status::Passed)).await.unwrap();
        let trouble = target.rows(&run(), &[]).await.unwrap_err();
        assert!(class(&trouble) == "unknown" && trouble.to_string().contains(words), "{trouble}");
    }
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
async fn the_token_goes_where_the_configuration_says() {
    let stub = stub();
    let target = target(&stub, with(described(), "/auth", json!("X-Api-Key: {token}")));
    target.write(&run(), &[entry("a", Status::Passed)]).await.unwrap();
    assert_eq!(stub.log()[0].request.header("authorization"), None);
}
