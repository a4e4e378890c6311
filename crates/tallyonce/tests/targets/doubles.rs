//! Doubles that somebody else left: found, shown, mended, and clean afterwards; and products that do otherwise than is known.

use std::time::Duration;

use proof::stubs::testrail::Options;
use proof::stubs::{Fault, Plan, Repeat, Rule, Select, Stamp, Stub, TestRail, When};
use serde_json::Value;

use crate::site::{Folder, config, rail, report};

fn json(finished: &proof::spawn::Finished) -> Value {
    serde_json::from_str(finished.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

#[test]
fn a_batch_that_another_client_sent_twice_is_found_and_marked() {
    let (stub, folder, names) = rail();
    let run = {
        let mut vendor = stub.vendor();
        let cases: Vec<u64> = names.iter().map(|name| name[1..name.find(' ').unwrap()].parse().unwrap()).collect();
        let run = vendor.add_run("by another client", &cases);
        for second in 0..2 {
            for (at, case) in cases.iter().enumerate() {
                let unix_ms = 1_790_000_000_000 + second * 5000 + at as i64;
                vendor.foreign_result(Stamp { unix_ms, ..Stamp::default() }, run, *case, 1, "it is green").unwrap();
            }
        }
        run.to_string()
    };
    let found = folder.run(&["audit", "there", "--cycle", &run, "--json"]).output().unwrap();
    assert_eq!(found.code, Some(1), "{found}");
    assert_eq!(json(&found)["audits"][0]["counts"]["likely_doubled_rows"], names.len(), "{found}");
    // Nothing is touched without being asked for.
    let plan = folder.run(&["repair", "there", "--cycle", &run, "--json"]).output().unwrap();
    assert_eq!(json(&plan)["applied"], false);
    let before = stub.ledger().count();
    let mended = folder.run(&["repair", "there", "--cycle", &run, "--likely", "--apply", "--json"]).output().unwrap();
    assert_eq!(mended.code, Some(0), "{mended}");
    assert_eq!(stub.ledger().count(), before, "TestRail deletes no result: repeats are marked");
    let record = std::fs::read_to_string(folder.path(".tallyonce/repaired-there.jsonl")).unwrap();
    assert_eq!(record.lines().count(), names.len());
    let clean = folder.run(&["audit", "there", "--cycle", &run]).output().unwrap();
    assert_eq!(clean.code, Some(0), "{clean}");
    // Nothing is left: no row is touched, and no file is said to hold any.
    let other = folder.path("other.jsonl");
    let record = ["--record", other.to_str().unwrap()];
    let args = ["repair", "there", "--cycle", &run, "--likely", "--apply"];
    let again = folder.run(&[&args[..], &record].concat()).output().unwrap();
    assert_eq!(again.code, Some(0), "{again}");
    assert!(!other.exists() && !again.stdout.contains("recorded"), "{again}");
    let again = folder.run(&[&args[..], &record, &["--json"]].concat()).output().unwrap();
    assert_eq!((&json(&again)["record"], &json(&again)["applied"]), (&Value::Null, &true.into()), "{again}");
}

#[test]
fn a_run_that_another_client_made_twice_is_likely_to_be_one() {
    let (stub, folder, names) = rail();
    let runs: Vec<u64> = {
        let mut vendor = stub.vendor();
        let cases: Vec<u64> = names.iter().map(|name| name[1..name.find(' ').unwrap()].parse().unwrap()).collect();
        let mut made = |second: i64| {
            let run = vendor.add_run("nightly", &cases);
            for case in &cases {
                let unix_ms = 1_790_000_000_000 + second * 5000;
                vendor.foreign_result(Stamp { unix_ms, ..Stamp::default() }, run, *case, 1, "it is green").unwrap();
            }
            run
        };
        vec![made(0), made(1)]
    };
    let found = folder.run(&["audit", "there", "--cycle", &runs[0].to_string(), "--json"]).output().unwrap();
    assert_eq!(found.code, Some(1), "{found}");
    let finding = &json(&found)["audits"][0]["findings"][0];
    assert_eq!(finding["finding"], "likely-duplicate-cycles", "{found}");
    assert_eq!(
        (&finding["cases_shared"], &finding["cases_equal"]),
        (&names.len().into(), &names.len().into()),
        "{found}"
    );
    assert_eq!(finding["cycles"].as_array().unwrap().len(), 2, "{found}");
    // People are told which, by an audit and by a repair.
    for command in ["audit", "repair"] {
        let text = folder.run(&[command, "there", "--cycle", &runs[0].to_string()]).output().unwrap();
        let (_, named) = text.stdout.split_once(" share").or(text.stdout.split_once("cycles of one name")).unwrap();
        assert!(runs.iter().all(|run| named.contains(&format!("  cycle {run} "))), "{text}");
        assert!(named.contains("\"nightly\""), "{text}");
    }
}

#[test]
fn a_probe_sees_what_a_cut_request_leaves() {
    let mut vendor = TestRail::new(Options { rate: None, ..Options::default() });
    let cases = [vendor.add_case("first", None), vendor.add_case("second", None)].map(|case| case.to_string());
    let stub = Stub::start(vendor).unwrap();
    // Each answer comes so long after its write that a cut can only come between the two.
    let slow = Fault::Stall { hold: When::After(Duration::from_millis(300)), then_answer: true };
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases"), slow));
    let folder = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\n"));
    let probe = ["probe", "there", "--json", "--case", &cases[0], "--case", &cases[1]];
    let probed = folder.run(&probe).env("TALLYONCE_TIMEOUT", "5s").output().unwrap();
    assert_eq!(probed.code, Some(0), "{probed}");
    let more = &json(&probed)["measured"]["more"];
    let writes = more["cut"]["writes"].as_array().unwrap();
    assert_eq!(writes.len(), 3, "{more:#}");
    assert!(writes.iter().all(|write| write["answered"] == false && write["applied_ms"].is_u64()), "{more:#}");
    assert_eq!((&more["ended"]["answer"], &more["ended"]["stored"]), (&"refused".into(), &false.into()), "{more:#}");
    assert_eq!(more["while_writing"]["skipped"], 0, "{more:#}");
    assert!(json(&probed)["notes"].to_string().contains("carried out all the same"), "{probed}");
}

#[test]
fn a_probe_measures_and_finds_a_lie() {
    for (rule, lies) in [(Rule::honest(Repeat::Append), false), (Rule::honest(Repeat::Replace), true)] {
        let mut vendor = TestRail::new(Options { rate: None, ..Options::default() });
        let cases = [vendor.add_case("first", None), vendor.add_case("second", None)].map(|case| case.to_string());
        vendor.results.rule = rule;
        let stub = Stub::start(vendor).unwrap();
        let folder = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\n"));
        let probe = ["probe", "there", "--json", "--case", &cases[0], "--case", &cases[1]];
        let probed = folder.run(&probe).output().unwrap();
        assert_eq!(probed.code, Some(i32::from(lies)), "{probed}");
        assert_eq!(json(&probed)["contradicts"].as_array().unwrap().is_empty(), !lies, "{probed}");
        assert!(folder.path(".tallyonce/probe-there.json").exists());
        // What the probe found decides what may be promised.
        folder.write("report.xml", &report(&[format!("C{} adds", cases[0])], &[]));
        let (pushed, _) = folder.push(&[]);
        assert_eq!(pushed.code, Some(if lies { 2 } else { 0 }), "{pushed}");
        assert_eq!(pushed.stderr.contains("contradicts what is known of the product"), lies, "{pushed}");
    }
}
