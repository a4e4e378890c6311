//! Cycles that a vendor's own client has doubled through the fault proxy: found by `audit`, mended by `repair`, clean
//! afterwards, and every item keeps its outcome. Skipped, and said so, where the clients can't be had.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proof::clients;
use proof::rigs::Rig;
use proof::spawn::Finished;
use proof::stubs::live::World;
use proof::stubs::testrail::Options;
use proof::stubs::{Fault, Ledger, Live, Plan, RecordedRow, Select, Stub, TestRail};
use serde_json::Value;

use crate::live::Started;
use crate::site::{Folder, config, report};

fn rigs() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("rigs")
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(finished.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

/// Runs clients at once, each to its end. Gives their exit codes, and shows what they said if one fails.
fn run(commands: Vec<Command>) -> Vec<Option<i32>> {
    let running = commands.into_iter().map(|mut command| {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    });
    let ended = running.collect::<Vec<_>>().into_iter().map(|child| child.wait_with_output().unwrap());
    let code = |done: std::process::Output| {
        let said = [done.stdout, done.stderr].concat();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
        done.status.code()
    };
    ended.map(code).collect()
}

/// What is to be seen of a cycle with so many rows too many, before and after they are mended. Every item keeps a row with
/// its verdict, and what was touched is in the record first.
fn found_and_mended(folder: &Folder, cycle: &str, extra: usize, ledger: impl Fn() -> Ledger) {
    let before = ledger();
    let found = folder.run(&["audit", "there", "--cycle", cycle, "--json"]).output().unwrap();
    assert_eq!(found.code, Some(1), "{found}");
    let object = json(&found);
    assert_eq!(object["audits"][0]["counts"]["likely_doubled_rows"], extra, "{found}");
    let findings = object["audits"][0]["findings"].as_array().unwrap();
    let evident = |finding: &&Value| finding["finding"] == "likely-doubled" && finding["apart_ms"].is_u64();
    assert_eq!(findings.iter().filter(evident).count(), before.doubled().len(), "{object:#}");
    let plan = folder.run(&["repair", "there", "--cycle", cycle, "--likely"]).output().unwrap();
    assert_eq!(plan.code, Some(1), "{plan}");
    assert_eq!(ledger(), before, "a plan touches nothing");
    let mended = folder.run(&["repair", "there", "--cycle", cycle, "--likely", "--apply", "--json"]).output().unwrap();
    assert_eq!(mended.code, Some(0), "{mended}");
    let record = std::fs::read_to_string(folder.path(".tallyonce/repaired-there.jsonl")).unwrap();
    let lines: Vec<Value> = record.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Which of them stays goes by their times: of two writers at once the later row may have the earlier outcome.
    let repeats = |row: &RecordedRow, of: &RecordedRow| {
        let both = |line: &&Value| line["row"]["row"] == row.id.as_str() && line["kept"] == of.id.as_str();
        lines.iter().any(|line| both(&line))
    };
    let one_stays = |item: &str, rows: &[RecordedRow]| {
        let others_repeat = |one: &&RecordedRow| rows.iter().all(|row| row.id == one.id || repeats(row, one));
        let mut staying = rows.iter().filter(others_repeat);
        match (staying.next(), staying.next()) {
            (Some(one), None) => one.clone(),
            _ => panic!("{item}: not one row of {rows:?} stays: {record}"),
        }
    };
    let clean = folder.run(&["audit", "there", "--cycle", cycle]).output().unwrap();
    assert_eq!(clean.code, Some(0), "{clean}");
    let after = ledger();
    for (item, rows) in before.items() {
        let stays = one_stays(item, rows);
        let there = after.rows(item).iter().find(|row| row.id == stays.id);
        assert_eq!(there.map(|row| &row.status), Some(&stays.status), "{item} has lost its outcome");
    }
    let again = folder.run(&["repair", "there", "--cycle", cycle, "--likely", "--apply"]).output().unwrap();
    assert_eq!(again.code, Some(0), "{again}");
}

/// `TestRail`'s own client sends a batch again whose answer was lost, and says that all is well.
#[test]
fn what_trcli_has_doubled_is_found_and_mended() {
    let Some(bin) = clients::python(&rigs(), "testrail", &["trcli==1.15.3", "testrail-api==1.14.0"]).unwrap() else {
        return;
    };
    for fault in [Fault::ResponseDropped, Fault::Page { status: 504, applied: true }] {
        let mut vendor = TestRail::new(Options { rate: None, ..Options::default() });
        let names: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
        for name in &names {
            vendor.add_case(name, Some(&format!("c.{name}")));
        }
        let stub = Stub::start(vendor).unwrap();
        let folder = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\n"));
        folder.write("report.xml", &format!("<testsuites>{}</testsuites>", report(&names, &[3, 60])));
        stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases").nth(1), fault));
        let (url, home) = (stub.url(), folder.path(""));
        let login = ["-y", "-h", &url, "--project", "acme", "-u", "bot@example.com", "-k", "key"];
        let upload = ["parse_junit", "--title", "nightly", "-f", "report.xml"];
        run(vec![clients::command(&bin.join("trcli"), &[&login[..], &upload].concat(), &home)]);
        let ledger = stub.ledger();
        let extra = ledger.count() - names.len();
        assert_eq!(extra, 50, "one batch: {:?}", ledger.doubled());
        let run = ledger.rows("c.t0")[0].cycle.clone();
        found_and_mended(&folder, &run, extra, || stub.ledger());
        assert_eq!(stub.ledger().count(), names.len() + extra, "TestRail deletes no result: repeats are marked");
    }
}

/// Two jobs that Kiwi's own reporter lets write into one run: adding a case looks first and inserts then.
#[test]
fn what_kiwis_reporter_has_doubled_is_found_and_mended() {
    let Some(started) = Started::of(Rig::kiwi_that_adds_slowly()) else { return };
    let packages = ["kiwitcms-junit.xml-plugin==15.0", "tcms-api==15.0"];
    let Some(bin) = clients::python(&rigs(), "kiwi-junit", &packages).unwrap() else { return };
    let names: Vec<String> = (0..6).map(|n| format!("doubles {n}")).collect();
    let world = World::of(&started.rig).unwrap();
    world.add_cases(&names.iter().map(|name| format!("c.{name}")).collect::<Vec<_>>()).unwrap();
    for stamp in [r#" timestamp="2026-11-30T12:00:00""#, ""] {
        doubled_at_once(&bin, &started, &world, &names, stamp);
    }
}

/// With the suite's time in the report, or without any.
fn doubled_at_once(bin: &Path, started: &Started, world: &World<'_>, names: &[String], stamp: &str) {
    let (plan, live, table) = started.named_plan();
    let stub = Stub::start(live).unwrap();
    let cycle = world.add_run(&plan, "by Kiwi's reporter").unwrap().to_string();
    let mut folder = Folder::new(&config(&stub, "kiwi", started.rig.product(), &table));
    started.rig.password().clone_into(&mut folder.token);
    let suite = report(names, &[3]).replacen("<testsuite", &format!("<testsuite{stamp}"), 1);
    folder.write("report.xml", &format!("<testsuites>{suite}</testsuites>"));
    // Each pair of requests for one case goes on together.
    let meet = Fault::Meet { point: "add".to_owned(), size: 2 };
    stub.set_plan(Plan::on(Select::writes().what("TestRun.add_case"), meet));
    run([(); 2].map(|()| reporter(bin, started, &stub, &folder, &cycle)).into());
    let extra = stub.vendor().recorded().unwrap().count() - names.len();
    assert!(extra > 0, "both reporters came to the same executions");
    found_and_mended(&folder, &cycle, extra, || stub.vendor().recorded().unwrap());
    let after = stub.vendor().recorded().unwrap();
    assert_eq!(after.count(), names.len() + extra, "12.4 deletes no execution: repeats are marked");
}

/// A reporter that writes into a run that is there.
fn reporter(bin: &Path, started: &Started, stub: &Stub<Live>, folder: &Folder, run: &str) -> Command {
    let rig = &started.rig;
    let (url, user, password) = (stub.url(), rig.user(), rig.password());
    folder.write(".tcms.conf", &format!("[tcms]\nurl = {url}/xml-rpc/\nusername = {user}\npassword = {password}\n"));
    let mut command = clients::command(&bin.join("tcms-junit.xml-plugin"), &["report.xml"], &folder.path(""));
    command.env("TCMS_PRODUCT", rig.product()).env("TCMS_PRODUCT_VERSION", rig.version());
    command.env("TCMS_BUILD", rig.build()).env("TCMS_RUN_ID", run);
    command
}
