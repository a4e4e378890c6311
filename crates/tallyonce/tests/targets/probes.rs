//! `tallyonce probe` on real servers: it finds what was measured of them by hand, and leaves what it says it leaves.

use proof::rigs::{Rig, Vendor};
use proof::stubs::{Live, Stub};
use serde_json::{Value, json};

use crate::live::Started;
use crate::site::{Folder, config};

/// A product, and the folder of somebody who probes it.
fn probed(started: Started) -> (Value, Folder, Stub<Live>, Started) {
    let (live, table) = started.plan();
    let stub = Stub::start(live).unwrap();
    let mut folder = Folder::new(&config(&stub, started.kind(), started.rig.product(), &table));
    started.rig.password().clone_into(&mut folder.token);
    let numbers = started.numbers();
    let probe = ["probe", "there", "--json", "--case", &numbers[0], "--case", &numbers[1]];
    let done = folder.run(&probe).env("TALLYONCE_TIMEOUT", "30s").output().unwrap();
    assert_eq!(done.code, Some(0), "{done}");
    let object: Value = serde_json::from_str(done.stdout.trim()).unwrap();
    assert_eq!(object["contradicts"], json!([]), "{object:#}");
    let kept = std::fs::read_to_string(folder.path(".tallyonce/probe-there.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap()["measured"], object["measured"]);
    (object, folder, stub, started)
}

/// The members of one measurement, so many of them.
fn shows(object: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&object[name], value, "{name}: {object:#}");
    }
}

/// What both do: a repeat, another outcome and the same id with another payload leave one row, the last one; the marker comes
/// back; a second run of one name is made, and neither is deleted.
fn replaces(object: &Value, stub: &Stub<Live>) {
    let measured = &object["measured"];
    for repeat in ["twice", "other_content", "same_id"] {
        shows(
            &measured[repeat],
            &json!({
                "answer": "taken", "rows_before": 1, "rows_after": 1, "show_second": 1, "show_before": 0,
            }),
        );
    }
    shows(&measured["lag"], &json!({"ms": 0, "after_job": false}));
    shows(&measured["at_once"], &json!({"writers": 10, "rows": 1}));
    shows(&measured["twin"], &json!({"made": true}));
    shows(
        &object["says"],
        &json!({
            "verdict": "replaces", "visible_ms": 0, "marker": true, "atomic": false, "amend": true, "cycle_unique": false,
        }),
    );
    assert_eq!(object["allows"], json!(["replace", "reconcile", "container"]), "{object:#}");
    // It tidies up as far as it can, and says what is left: that and no more is there.
    let left = object["left"].as_array().unwrap();
    let runs = stub.vendor().runs().unwrap();
    assert_eq!(left.len(), runs.len(), "{object:#}");
    for run in runs {
        assert!(
            left.iter().any(|left| left
                .as_str()
                .unwrap()
                .starts_with(&format!("cycle {run}, ended, and not deleted, with what the probe wrote"))),
            "{object:#}"
        );
    }
}

#[test]
fn a_probe_of_a_live_kiwi_finds_what_it_is_known_for() {
    // Adding looks first and inserts then, without a lock between: how wide that gap is must not be left to the machine.
    let Some(started) = Started::of(Rig::kiwi_that_adds_slowly()) else { return };
    let (object, folder, stub, started) = probed(started);
    replaces(&object, &stub);
    let measured = &object["measured"];
    let added = &measured["added"];
    assert_eq!((&added["writers"], &added["taken"]), (&json!(10), &json!(10)), "{added}");
    assert!(added["places"].as_u64().unwrap() > 1, "{added}");
    let notes = object["notes"].to_string();
    assert!(notes.contains("writers that add a case at once"), "{notes}");
    shows(
        &measured["delete"],
        &json!({"is": "refused", "words": "this version of Kiwi TCMS has no TestExecution.remove"}),
    );
    shows(&measured["amend"], &json!({"is": "done"}));
    // What was confirmed is used without a warning from then on.
    folder.write("report.xml", &crate::site::report(&started.names[..1], &[]));
    let (pushed, _) = folder.push(&["--strict"]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    assert!(!pushed.stderr.contains("no probe has confirmed"), "{pushed}");
}

#[test]
fn a_probe_of_a_live_nitrate_finds_what_it_is_known_for() {
    let Some(started) = Started::new(Vendor::Nitrate) else { return };
    let (object, _folder, stub, _started) = probed(started);
    replaces(&object, &stub);
    let measured = &object["measured"];
    // Of several that add a case at once one succeeds; the others are refused, and find the row.
    assert_eq!((&measured["added"]["writers"], &measured["added"]["places"]), (&json!(10), &json!(1)), "{measured:#}");
    shows(&measured["delete"], &json!({"is": "done"}));
    shows(&measured["amend"], &json!({"is": "done"}));
}
