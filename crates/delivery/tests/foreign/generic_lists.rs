//! A service that only the configuration describes: its lists, page by page, whole or not at all.

use delivery::foreign::CycleId;
use domain::Status;
use proof::stubs::{Fault, Plan, Select, Stamp};
use serde_json::{Value, json};

use crate::generic::{described, of, run, stub, target, with};
use crate::given::{class, entry, opened};

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
        (json!({"path": path, "next": "none", "total-at": "/total"}), "unknown", "46 rows"),
        (json!({"path": format!("{path}&pgae={{page}}"), "next": "page"}), "unknown", "same as the one before"),
        // Asking again doesn't mend a key.
        (json!({"items-at": "/rows"}), "refused", "read.items-at = \"/rows\" leads to no array"),
        (json!({"items-at": "/rows"}), "refused", "there is /link, /next, /results, /total"),
        (json!({"total-at": "/sum"}), "refused", "read.total-at = \"/sum\" leads to no number"),
        (json!({"row-at": "/uid"}), "refused", "read.row-at = \"/uid\" leads to no id"),
        (json!({"case-at": "/test"}), "refused", "read.case-at = \"/test\" leads to no case"),
        // What was confirmed can't be known again: sending what seems to be missing would double it.
        (json!({"marker-at": "/comment"}), "refused", "none with a marker of ours"),
        (json!({"status-at": "/verdict"}), "refused", "no row with a verdict"),
    ];
    for (keys, kind, words) in cases {
        let target = target(&stub, read(keys));
        target.write(&CycleId::new("7"), &[entry("first", Status::Passed)]).await.unwrap();
        let trouble = target.rows(&CycleId::new("7"), &[]).await.unwrap_err();
        assert!(class(&trouble) == kind && trouble.to_string().contains(words), "{trouble}");
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
