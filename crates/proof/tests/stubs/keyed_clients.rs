//! The clients of Qase, `ReportPortal`, Azure and Testmo against the stubs of these.

use std::fs;
use std::path::Path;

use proof::stubs::azure::Point;
use proof::stubs::{Azure, Event, Qase, ReportPortal, Stub, Testmo, Vendor};
use serde_json::{Value, json};

use crate::clients::{Said, node, python, run};

/// Runs a script of the rigs against a stub, and reads what it prints last; `None` if there is no client here.
fn drive<V: Vendor>(stub: &Stub<V>, script: &str, name: &str, packages: &[&str]) -> anyhow::Result<Option<Value>> {
    let Some(bin) = python(name, packages)? else { return Ok(None) };
    let home = tempfile::tempdir()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rigs/clients").join(script);
    let Said { code, text } = run(&bin.join("python"), &[&script.to_string_lossy(), &stub.url()], home.path())?;
    assert_eq!(code, Some(0), "{text}\n{:#}", stub.traffic());
    let last = text.lines().rev().find(|line| line.starts_with('{')).unwrap_or_default();
    Ok(Some(serde_json::from_str(last)?))
}

/// Calls that the stub refused although the client did nothing wrong.
fn refused(log: &[Event]) -> Vec<&Event> {
    log.iter().filter(|event| event.status().is_none_or(|status| status >= 400)).collect()
}

#[test]
fn qase_clients_write_by_one_api_and_read_by_the_other() -> anyhow::Result<()> {
    let stub = Stub::start(Qase::default())?;
    let packages = ["qase-api-client==2.0.14", "qase-api-v2-client==2.0.8"];
    let Some(said) = drive(&stub, "drive_qase.py", "qase", &packages)? else { return Ok(()) };
    let run = said["run"].clone();
    assert_eq!(said["found"], json!([run]));
    // Three with ids, sent twice; one without, sent twice.
    assert_eq!(said["listed"], json!([5, 5, 5]));
    assert_eq!(said["comments"], json!(["m a", "m b", "m c", "m d", "m d"]));
    assert_eq!((&said["refused"], &said["complete"]), (&json!(400), &json!("complete")));
    let ledger = stub.ledger();
    assert_eq!(ledger.doubled().into_iter().collect::<Vec<_>>(), [("d".to_owned(), 1)]);
    assert_eq!((ledger.rows("a").len(), ledger.rows("b").len(), ledger.rows("9").len()), (1, 0, 1));
    assert_eq!((ledger.rows("9")[0].status.as_str(), ledger.rows("9")[0].marker.as_str()), ("failed", "changed"));
    assert_eq!(refused(&stub.log()).len(), 1, "the one that was meant to be");
    Ok(())
}

#[test]
fn reportportal_client_reports_by_the_queue() -> anyhow::Result<()> {
    let stub = Stub::start(ReportPortal::default())?;
    let packages = ["reportportal-client==5.7.0"];
    let Some(said) = drive(&stub, "drive_reportportal.py", "reportportal", &packages)? else { return Ok(()) };
    assert_eq!(said["info"], json!([said["launch"], "nightly"]));
    assert_eq!(said["same"], json!(true), "the queue takes a repeat for the first");
    assert!(said["number"].is_u64(), "{said}");
    let ledger = stub.ledger();
    assert!(ledger.doubled().is_empty(), "{ledger:?}");
    assert_eq!(ledger.rows("pkg::adds")[0].status, "FAILED");
    assert_eq!(ledger.rows("pkg::pays")[0].status, "SKIPPED");
    assert_eq!(stub.vendor().parked().len(), 1, "the second start of the same UUID");
    assert_eq!(stub.vendor().launch_statuses(), ["FAILED"]);
    assert!(refused(&stub.log()).is_empty(), "{:#}", stub.traffic());
    Ok(())
}

#[test]
fn azure_client_appends_without_a_plan_and_replaces_with_one() -> anyhow::Result<()> {
    let stub = Stub::start(Azure::default())?;
    let point =
        stub.vendor().add_point(Point { plan: 3, suite: 7, case: 12, title: "adds".to_owned(), configuration: 1 });
    let packages = ["azure-devops==7.1.0b4", "setuptools"];
    let Some(said) = drive(&stub, "drive_azure.py", "azure", &packages)? else { return Ok(()) };
    assert_eq!(said["added"], json!([100_000, 100_001]));
    assert_eq!(
        said["listed"],
        json!([[100_000, "Passed", "by a client"], [100_001, "Passed", "changed"], [100_002, "Passed", "by a client"]])
    );
    assert_eq!((&said["found"], &said["state"]), (&json!([said["run"]]), &json!("Completed")));
    assert_eq!(said["born"], json!([[100_000, point.to_string(), "12", "Unspecified"]]));
    let ledger = stub.ledger();
    assert_eq!(ledger.doubled().into_iter().collect::<Vec<_>>(), [("a".to_owned(), 1)]);
    assert_eq!((ledger.rows("12").len(), ledger.rows("12")[0].status.as_str()), (1, "Passed"));
    assert!(refused(&stub.log()).is_empty(), "{:#}", stub.traffic());
    Ok(())
}

#[test]
fn testmo_cli_submits_in_threads_of_250() -> anyhow::Result<()> {
    let stub = Stub::start(Testmo::default())?;
    let Some(folder) = node("testmo", &["@testmo/testmo-cli@1.4.5"])? else { return Ok(()) };
    let home = tempfile::tempdir()?;
    let tests: String = (0..300).map(|n| test(n) + "\n").collect();
    fs::write(
        home.path().join("junit.xml"),
        format!("<testsuites><testsuite name=\"s\">{tests}</testsuite></testsuites>"),
    )?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rigs/clients/drive_testmo.js");
    let (script, folder, url) = (script.to_string_lossy(), folder.to_string_lossy(), stub.url());
    let submit =
        ["automation:run:submit", "--instance", &url, "--project-id", "1", "--name", "nightly", "--source", "e2e"];
    let more = ["--tags", "tlyabc", "--results", "junit.xml"];
    let arguments = [&[script.as_ref(), folder.as_ref()][..], &submit[..], &more[..]].concat();
    for _ in 0..2 {
        let said = run(Path::new("node"), &arguments, home.path())?;
        assert_eq!(said.code, Some(0), "{}", said.text);
    }
    let ledger = stub.ledger();
    assert_eq!(
        (ledger.count(), ledger.items().len(), ledger.doubled().len()),
        (600, 300, 0),
        "a run of its own each time"
    );
    let log = stub.log();
    let count = |what: &str| log.iter().filter(|event| event.kind.what() == what).count();
    assert_eq!(
        [count("create_run"), count("create_thread"), count("append_tests"), count("complete_thread")],
        [2, 2, 4, 0]
    );
    assert_eq!(stub.vendor().threads(7), [false], "it ends the run alone");
    assert!(refused(&log).is_empty(), "{:#}", stub.traffic());
    Ok(())
}

fn test(number: usize) -> String {
    let inner = if number == 7 { "<failure message=\"red\">trace</failure>" } else { "" };
    format!("<testcase classname=\"pkg.Class\" name=\"t{number}\" time=\"1.5\">{inner}</testcase>")
}
