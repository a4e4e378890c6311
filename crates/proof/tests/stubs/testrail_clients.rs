//! `trcli` and `testrail-api` against the `TestRail` stub.

use std::fmt::Write as _;
use std::fs;

use proof::stubs::testrail::Options;
use proof::stubs::{Fault, Plan, Select, Stub, TestRail};

use crate::clients::{Said, python, run};

/// So many cases, all known to the stub by their automation ids.
fn stub(cases: usize) -> anyhow::Result<(Stub<TestRail>, Vec<u64>)> {
    let mut vendor = TestRail::new(Options::default());
    let cases = (0..cases).map(|n| vendor.add_case(&format!("t{n}"), Some(&format!("pkg.Class.t{n}")))).collect();
    Ok((Stub::start(vendor)?, cases))
}

fn items(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("pkg.Class.t{n}")).collect()
}

/// Uploads a report of so many tests, each seventh failed; `None` if there is no client here.
fn trcli(stub: &Stub<TestRail>, tests: usize, more: &[&str]) -> anyhow::Result<Option<Said>> {
    let Some(bin) = python("testrail", &["trcli==1.15.3", "testrail-api==1.14.0"])? else { return Ok(None) };
    let home = tempfile::tempdir()?;
    let mut report = format!("<testsuites><testsuite name=\"s\" tests=\"{tests}\">\n");
    for n in 0..tests {
        let failed = if n % 7 == 6 { "<failure message=\"red\">trace &amp; more</failure>" } else { "" };
        writeln!(report, "<testcase classname=\"pkg.Class\" name=\"t{n}\" time=\"1.5\">{failed}</testcase>")?;
    }
    report += "</testsuite></testsuites>\n";
    fs::write(home.path().join("junit.xml"), report)?;
    let url = stub.url();
    let login = ["-y", "-h", url.as_str(), "--project", "acme", "-u", "bot@example.com", "-k", "key"];
    let upload = ["parse_junit", "--title", "nightly", "-f", "junit.xml"];
    let arguments = [&login[..], &upload[..], more].concat();
    run(&bin.join("trcli"), &arguments, home.path()).map(Some)
}

#[test]
fn trcli_makes_a_run_of_its_own() -> anyhow::Result<()> {
    let (stub, _) = stub(120)?;
    let Some(said) = trcli(&stub, 120, &[])? else { return Ok(()) };
    assert_eq!(said.code, Some(0), "{}", said.text);
    let ledger = stub.ledger();
    assert_eq!((ledger.count(), ledger.doubled().len()), (120, 0), "{}", said.text);
    assert!(stub.lost(items(120)).is_empty());
    assert_eq!(ledger.rows("pkg.Class.t6")[0].status, "5");
    assert!(ledger.rows("pkg.Class.t6")[0].marker.contains("trace & more"));
    assert_eq!(ledger.rows("pkg.Class.t7")[0].status, "1");
    let log = stub.log();
    let batches = log.iter().filter(|event| event.kind.what() == "add_results_for_cases").count();
    assert_eq!((batches, log.iter().filter(|event| event.kind.what() == "add_run").count()), (3, 1));
    let refused: Vec<_> = log.iter().filter(|event| event.status() != Some(200)).collect();
    assert!(refused.is_empty(), "the stub does not know everything: {refused:?}");
    Ok(())
}

#[test]
fn trcli_adds_to_a_given_run() -> anyhow::Result<()> {
    let (stub, cases) = stub(3)?;
    let run = stub.vendor().add_run("given", &cases[..2]);
    let Some(said) = trcli(&stub, 3, &["--run-id", &run.to_string()])? else { return Ok(()) };
    assert_eq!(said.code, Some(0), "{}", said.text);
    let ledger = stub.ledger();
    assert_eq!((ledger.count(), ledger.doubled().len(), stub.lost(items(3))), (3, 0, Vec::new()), "{}", said.text);
    assert!(ledger.items().values().flatten().all(|row| row.cycle == run.to_string()));
    assert_eq!(stub.vendor().tests(run).len(), 3, "it has given the run the cases that were missing");
    Ok(())
}

#[test]
fn trcli_makes_the_cases_that_are_missing() -> anyhow::Result<()> {
    let (stub, _) = stub(0)?;
    let Some(said) = trcli(&stub, 3, &[])? else { return Ok(()) };
    assert_eq!(said.code, Some(0), "{}", said.text);
    assert_eq!((stub.ledger().count(), stub.lost(items(3))), (3, Vec::new()), "{}", said.text);
    Ok(())
}

/// What Tallyonce is about, seen at the vendor's own client: an answer is lost, it sends the batch again, and says
/// that all is well.
#[test]
fn trcli_doubles_the_batch_whose_answer_is_lost() -> anyhow::Result<()> {
    for fault in [Fault::ResponseDropped, Fault::Page { status: 504, applied: true }] {
        let (stub, _) = stub(120)?;
        stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases").nth(1), fault.clone()));
        let Some(said) = trcli(&stub, 120, &[])? else { return Ok(()) };
        assert_eq!(said.code, Some(0), "{}", said.text);
        assert!(stub.lost(items(120)).is_empty(), "{fault:?}");
        let doubled = stub.doubled();
        let batch = stub.log().iter().find(|event| !event.faults.is_empty()).unwrap().request.json();
        assert_eq!(doubled.values().sum::<usize>(), batch["results"].as_array().unwrap().len(), "{fault:?}");
    }
    Ok(())
}

#[test]
fn trcli_loses_nothing_and_doubles_nothing_where_nothing_was_applied() -> anyhow::Result<()> {
    let (stub, _) = stub(60)?;
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases").nth(1), Fault::RequestDropped));
    let Some(said) = trcli(&stub, 60, &[])? else { return Ok(()) };
    assert_eq!((said.code, stub.ledger().count(), stub.doubled().len()), (Some(0), 60, 0), "{}", said.text);
    Ok(())
}

/// The calls that `trcli` does not make.
const SCRIPT: &str = r#"
import sys, warnings
warnings.simplefilter("ignore")
from testrail_api import StatusCodeError, TestRailAPI
api = TestRailAPI(sys.argv[1], "bot@example.com", "key")
run = api.runs.add_run(project_id=1, name="r", include_all=True)["id"]
tests = api.tests.get_tests(run)["tests"]
assert [t["status_id"] for t in tests] == [3, 3, 3], tests
one = api.results.add_result(tests[0]["id"], status_id=1, comment="rec K1", version="v1", elapsed="3s")
two = api.results.add_result_for_case(run, tests[0]["case_id"], status_id=5, comment="rec K2")
many = api.results.add_results(run, [{"test_id": t["id"], "status_id": 4} for t in tests[1:]])
assert [r["test_id"] for r in many] == [t["id"] for t in tests[1:]], many
with open("shot.txt", "w") as f:
    f.write("x" * 70000)
api.attachments.add_attachment_to_result(one["id"], "shot.txt")
attached = api.attachments.get_attachments_for_test(tests[0]["id"])
assert [a["name"] for a in attached["attachments"]] == ["shot.txt"], attached
page = api.results.get_results(tests[0]["id"])
assert [r["comment"] for r in page["results"]] == ["rec K2", "rec K1"], page
assert api.results.get_results_for_case(run, tests[0]["case_id"], limit=1)["size"] == 1
assert api.results.get_results_for_run(run, created_after=one["created_on"] - 1)["size"] == 4
assert api.results.get_results_for_run(run, created_after=one["created_on"] + 3600)["size"] == 0
assert api.results.get_results_for_run(run, status_id=[1, 5])["size"] == 2
assert api.results.edit_result(two["id"], comment="mended")["comment"] == "mended"
assert [s["name"] for s in api.statuses.get_statuses()][:2] == ["passed", "blocked"]
assert api.users.get_users() and api.priorities.get_priorities() and api.templates.get_templates(1)
counts = api.runs.get_run(run)
assert (counts["failed_count"], counts["retest_count"], counts["untested_count"]) == (1, 2, 0), counts
api.runs.update_run(run, case_ids=[tests[0]["case_id"]], include_all=False)
assert [r["comment"] for r in api.results.get_results_for_run(run)["results"]] == ["mended", "rec K1"]
api.runs.close_run(run)
assert api.runs.get_runs(1, is_completed=True)["size"] == 1
try:
    api.results.add_result(tests[0]["id"], status_id=1)
    raise SystemExit("written into a completed run")
except StatusCodeError as refused:
    assert "403" in str(refused), refused
api.runs.delete_run(run)
assert api.runs.get_runs(1)["size"] == 0
"#;

#[test]
fn testrail_api_makes_the_other_calls() -> anyhow::Result<()> {
    let Some(bin) = python("testrail", &["trcli==1.15.3", "testrail-api==1.14.0"])? else { return Ok(()) };
    let (stub, _) = stub(3)?;
    let home = tempfile::tempdir()?;
    fs::write(home.path().join("calls.py"), SCRIPT)?;
    let said = run(&bin.join("python"), &["calls.py", &stub.url()], home.path())?;
    assert_eq!(said.code, Some(0), "{}", said.text);
    let log = stub.log();
    let attachment = log.iter().find(|event| event.kind.what() == "add_attachment_to_result").unwrap();
    assert_eq!(attachment.request.parts[0].body.len(), 70_000);
    Ok(())
}
