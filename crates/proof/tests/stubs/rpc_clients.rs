//! `tcms-api` (XML-RPC, as the reporters of Kiwi TCMS use it) and the Python client of `TestLink` against the stubs.

use std::fs;

use proof::stubs::{Fault, Kiwi, Plan, Select, Stub, TestLink, kiwi, testlink};

use crate::clients::{Said, python, run};

/// Runs a script with these packages; `None` if they cannot be had here.
fn scripted(name: &str, package: &str, script: &str, arguments: &[&str]) -> anyhow::Result<Option<Said>> {
    let Some(bin) = python(name, &[package])? else { return Ok(None) };
    let home = tempfile::tempdir()?;
    fs::write(home.path().join("calls.py"), script)?;
    let arguments = [&["calls.py"], arguments].concat();
    run(&bin.join("python"), &arguments, home.path()).map(Some)
}

/// What a reporter of Kiwi does with a report, step by step; the plan is given, the run is made.
const KIWI: &str = r#"
import os, sys
from unittest.mock import patch
from tcms_api import TCMS, plugin_helpers
url, plan = sys.argv[1:]
connected = TCMS(url + "/xml-rpc/", "bot@example.com", "key")
os.environ.update(TCMS_PLAN_ID=plan, TCMS_PRODUCT_VERSION="1.0", TCMS_BUILD="b1", TCMS_PRODUCT="Shop")
with patch.object(plugin_helpers, "TCMS", lambda: connected):
    backend = plugin_helpers.Backend(prefix="[rig]")
    backend.configure()
for number in range(3):
    case, _ = backend.test_case_get_or_create(f"pkg.Class.t{number}")
    again, made = backend.test_case_get_or_create(f"pkg.Class.t{number}")
    assert again["id"] == case["id"] and not made
    backend.add_test_case_to_plan(case["id"], backend.plan_id)
    backend.add_test_case_to_plan(case["id"], backend.plan_id)
    for execution in backend.add_test_case_to_run(case["id"], backend.run_id):
        status = backend.get_status_id("FAILED" if number == 2 else "PASSED")
        for _ in range(2):
            backend.update_test_execution(execution["id"], status, "red <&>" if number == 2 else None)
backend.finish_test_run()
rpc = connected.exec
execution = rpc.TestExecution.filter({"run": backend.run_id, "status__name": "FAILED"})[0]["id"]
for _ in range(2):
    link = rpc.TestExecution.add_link({"execution_id": execution, "name": "rec", "url": "https://rec.example/w/K1"})
assert len(rpc.TestExecution.get_links({"execution__run": backend.run_id, "name": "rec"})) == 2
rpc.TestExecution.remove_link({"pk": link["id"]})
assert [c["comment"] for c in rpc.TestExecution.get_comments(execution)][:1] == ["red <&>"]
rpc.TestRun.add_tag(backend.run_id, "nightly")
assert len(rpc.TestRun.filter({"tag__name": "nightly"})) == 1
try:
    rpc.Build.create({"name": "b1", "version": rpc.Version.filter({"value": "1.0"})[0]["id"]})
    raise SystemExit("a second build of one name")
except Exception as refused:
    assert "already exists" in str(refused), refused
"#;

#[test]
fn tcms_api_reports_into_kiwi() -> anyhow::Result<()> {
    let mut vendor = Kiwi::new(kiwi::Options::default());
    let plan = vendor.add_plan("nightly");
    let stub = Stub::start(vendor)?;
    let (url, number) = (stub.url(), plan.to_string());
    let Some(said) = scripted("kiwi", "tcms-api==15.0", KIWI, &[&url, &number])? else { return Ok(()) };
    assert_eq!(said.code, Some(0), "{}", said.text);
    let ledger = stub.ledger();
    assert_eq!((ledger.count(), ledger.doubled().len(), stub.vendor().cases_of_plan(plan)), (3, 0, 3));
    let [row] = ledger.rows("pkg.Class.t2") else { panic!("{ledger:?}") };
    assert_eq!((row.status.as_str(), row.marker.as_str()), ("5", "https://rec.example/w/K1"));
    let count = |kind: &str| row.side.iter().filter(|side| side.starts_with(kind)).count();
    assert_eq!((count("link"), count("comment")), (1, 2), "verdicts are replaced, comments appended: {row:?}");
    let refused: Vec<_> = stub.log().into_iter().filter(|event| event.status() != Some(200)).collect();
    assert!(refused.is_empty(), "the stub does not know everything: {refused:?}");
    Ok(())
}

const TESTLINK: &str = r#"
import sys
from testlink import TestlinkAPIClient
from testlink.testlinkerrors import TLResponseError
tl = TestlinkAPIClient(sys.argv[1] + "/lib/api/xmlrpc/v1/xmlrpc.php", "key")
assert tl.checkDevKey() is True and tl.sayHello() == "Hello!"
project = tl.getTestProjectByName("Shop")
plan = tl.getTestPlanByName("Shop", "Automated")[0]["id"]
assert tl.getBuildsForTestPlan(plan) == []
assert tl.getTestCasesForTestPlan(plan) == []
made = tl.createTestCase("adds", "2", project["id"], "bot@example.com", "summary")[0]
case = project["prefix"] + "-" + str(made["additionalInfo"]["external_id"])
tl.addTestCaseToTestPlan(project["id"], plan, case, 1)
listed = tl.getTestCasesForTestPlan(plan)
assert [row["full_external_id"] for rows in listed.values() for row in rows] == [case], listed
build = tl.createBuild(plan, "b1", "notes")[0]["id"]
again = tl.createBuild(plan, "b1", "notes")
assert again["status"] is False and again["id"] == build, again
assert tl.getExecutionSet(plan, testcaseexternalid=case, buildid=build)[0]["id"] == -1
one = tl.reportTCResult(None, plan, None, "p", "rec K1", testcaseexternalid=case, buildid=build)[0]
guessed = tl.reportTCResult(None, plan, None, "f", "rec K2", testcaseexternalid=case)[0]
over = tl.reportTCResult(None, plan, None, "b", "rec K3", testcaseexternalid=case, buildid=build, overwrite=True)[0]
assert over["id"] == guessed["id"] != one["id"], (one, guessed, over)
rows = tl.getExecutionSet(plan, testcaseexternalid=case, buildid=build)
assert {row["notes"]: row["status"] for row in rows.values()} == {"rec K1": "p", "rec K3": "b"}, rows
assert tl.getLastExecutionResult(plan, None, testcaseexternalid=case)[0]["notes"] == "rec K3"
tl.deleteExecution(one["id"])
for wrong in (dict(testcaseexternalid="P-99", buildid=build), dict(testcaseexternalid=case, guess=False)):
    try:
        tl.reportTCResult(None, plan, None, "p", "", **wrong)
        raise SystemExit(f"taken: {wrong}")
    except TLResponseError as refused:
        assert refused.code in (5040, 4020), refused
"#;

#[test]
fn the_python_client_reports_into_testlink() -> anyhow::Result<()> {
    let stub = Stub::start(TestLink::new(testlink::Options::default()))?;
    let package = "TestLink-API-Python-client==0.8.1";
    let Some(said) = scripted("testlink", package, TESTLINK, &[&stub.url()])? else { return Ok(()) };
    assert_eq!(said.code, Some(0), "{}", said.text);
    let ledger = stub.ledger();
    let rows: Vec<(&str, &str)> =
        ledger.rows("P-1").iter().map(|row| (row.marker.as_str(), row.status.as_str())).collect();
    assert_eq!((ledger.count(), rows), (1, vec![("rec K3", "b")]));
    Ok(())
}

/// What Tallyonce is about: the answer is lost, and whoever repeats the call has a second execution.
#[test]
fn testlink_doubles_the_result_whose_answer_is_lost() -> anyhow::Result<()> {
    let script = r#"
import sys
from testlink import TestlinkAPIClient
from testlink.testlinkerrors import TLConnectionError
tl = TestlinkAPIClient(sys.argv[1] + "/lib/api/xmlrpc/v1/xmlrpc.php", "key")
report = lambda: tl.reportTCResult(None, "3", None, "p", "rec", testcaseexternalid="P-1", buildid="11")
try:
    report()
except (TLConnectionError, OSError):
    report()
"#;
    let mut vendor = TestLink::new(testlink::Options::default());
    vendor.add_case("adds", true);
    vendor.add_build("b");
    let stub = Stub::start(vendor)?;
    stub.set_plan(Plan::on(Select::writes().nth(1), Fault::Page { status: 502, applied: true }));
    let package = "TestLink-API-Python-client==0.8.1";
    let Some(said) = scripted("testlink", package, script, &[&stub.url()])? else { return Ok(()) };
    assert_eq!((said.code, stub.doubled().get("P-1")), (Some(0), Some(&1)), "{}", said.text);
    Ok(())
}
