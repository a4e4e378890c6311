//! A product that counts and lists nothing: what an audit can say of it, and what it says that it can't.

use proof::stubs::testmo::Test;
use proof::stubs::{Repeat, Rule, Stamp, Stub, Testmo};
use serde_json::{Value, json};

use crate::site::{CASES, Folder, config, report};

fn site() -> (Stub<Testmo>, Folder) {
    let stub = Stub::start(Testmo::default()).unwrap();
    let folder = Folder::new(&config(&stub, "testmo", "1", ""));
    let names: Vec<String> = (0..CASES).map(|n| format!("adds {n}")).collect();
    folder.write("report.xml", &report(&names, &[2]));
    (stub, folder)
}

fn audited(folder: &Folder) -> (Option<i32>, Value) {
    let finished = folder.run(&["audit", "there", "--cycle", "main", "--json"]).output().unwrap();
    let object = serde_json::from_str(finished.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {finished}"));
    (finished.code, object)
}

#[test]
fn counts_are_held_against_the_ledger() {
    let (stub, folder) = site();
    let (pushed, object) = folder.push(&[]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let run: u64 = object["forward"]["cycle"].as_str().unwrap().parse().unwrap();
    let (code, clean) = audited(&folder);
    assert_eq!(code, Some(0), "{clean:#}");
    assert_eq!(clean["audits"][0]["counts"]["rows"], CASES);
    assert!(clean["audits"][0]["unseen"][0].as_str().unwrap().contains("lists no outcomes"), "{clean:#}");
    let text = folder.run(&["audit", "there", "--cycle", "main"]).output().unwrap();
    assert!(text.stdout.contains("not to be seen here"), "{text}");
    let csv = folder.run(&["audit", "there", "--cycle", "main", "--format", "csv"]).output().unwrap();
    assert!(csv.stderr.contains("not to be seen here") && csv.stdout.lines().count() == 1, "{csv}");

    // What the thread of ours holds is stored once more: too many.
    let ours: Vec<Test> = stub.vendor().tests.iter().map(|row| row.data.clone()).collect();
    stub.vendor().tests.push(Stamp::default(), ours[0].clone());
    let (code, many) = audited(&folder);
    assert_eq!(code, Some(1), "{many:#}");
    let finding = &many["audits"][0]["findings"][0];
    assert_eq!(finding["finding"], "count-differs");
    let text = folder.run(&["audit", "there", "--cycle", "main"]).output().unwrap();
    assert!(text.stdout.contains(&format!("\n  cycle {run} ")), "{text}");
    assert_eq!(
        (&finding["confirmed"], &finding["counted"], &finding["total"]),
        (&json!(CASES), &Value::Null, &json!(CASES + 1))
    );
    // Nothing there can be mended by a call, and it isn't said that nothing is wrong.
    let repair = folder.run(&["repair", "there", "--cycle", "main", "--apply"]).output().unwrap();
    assert_eq!(repair.code, Some(1), "{repair}");
    assert!(repair.stdout.contains("left to a person"), "{repair}");
    assert!(repair.stdout.contains(&format!("\n  cycle {run} ")), "{repair}");

    // One of ours is gone: too few.
    stub.vendor().tests.retain(|row| row.data.key != ours[0].key);
    let (code, few) = audited(&folder);
    assert_eq!(code, Some(1), "{few:#}");
    assert_eq!(few["audits"][0]["findings"][0]["total"], CASES - 1);

    // All of ours, and one of somebody else's in a thread of their own.
    let mut vendor = stub.vendor();
    vendor.tests.push(Stamp::default(), ours[0].clone());
    vendor.tests.push(Stamp::default(), Test { thread: 7777, run, key: "foreign".to_owned(), ..ours[0].clone() });
    vendor.add_thread(run, 7777);
    drop(vendor);
    let (code, foreign) = audited(&folder);
    assert_eq!(code, Some(1), "{foreign:#}");
    let finding = &foreign["audits"][0]["findings"][0];
    assert_eq!((&finding["counted"], &finding["total"]), (&json!(CASES), &json!(CASES + 1)), "{foreign:#}");
}

#[test]
fn a_probe_measures_by_counts() {
    for (rule, lies) in [(Rule::honest(Repeat::Append), false), (Rule::lying(Repeat::Append, Repeat::Collapse), true)] {
        let (stub, folder) = site();
        stub.vendor().tests.rule = rule;
        let probed = folder.run(&["probe", "there", "--json"]).output().unwrap();
        assert_eq!(probed.code, Some(i32::from(lies)), "{probed}");
        let object: Value = serde_json::from_str(probed.stdout.trim()).unwrap();
        let measured = &object["measured"];
        assert_eq!(measured["counted"], true, "{object:#}");
        let rows =
            |what: &str| (measured["twice"][what].as_u64().unwrap(), measured["other_content"][what].as_u64().unwrap());
        let grown = if lies { ((1, 1), (1, 1)) } else { ((1, 2), (2, 3)) };
        assert_eq!((rows("rows_before"), rows("rows_after")), grown, "{object:#}");
        assert_eq!(object["says"]["verdict"].as_str(), (!lies).then_some("appends"), "{object:#}");
        assert_eq!(measured["more"]["ended"]["answer"], "refused", "{object:#}");
    }
}

#[test]
fn without_a_ledger_a_count_says_nothing_and_that_is_said() {
    let (_stub, folder) = site();
    let (pushed, object) = folder.push(&[]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let run = object["forward"]["cycle"].as_str().unwrap();
    std::fs::remove_dir_all(folder.path(".tallyonce")).unwrap();
    let audited = folder.run(&["audit", "there", "--cycle", run]).output().unwrap();
    assert_eq!(audited.code, Some(4), "{audited}");
    assert!(audited.stderr.contains(&format!("holds {CASES} outcomes; the product lists none")), "{audited}");
}
