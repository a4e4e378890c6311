//! A server that hands on by itself what it records: the built program on both sides, a stub of the product behind it.

use std::time::Duration;

use proof::spawn::{Binary, Finished, Run, Server};
use proof::stubs::{Fault, Plan, ReportPortal, RetryAfter, Select, Stub, TestRail};
use serde_json::{Value, json};

use crate::products::{ALL, OUTCOMES};
use crate::site::{CASES, Folder, TIMEOUT, config, rail, report};

/// What is added to a folder's configuration so that a server forwards to its target.
pub(crate) const RULE: &str = "[forward.there]\nprojects = [\"shop\"]\ncycles = [\"main\", \"release-*\"]\n";

/// A server that forwards, and the folder that its configuration is in.
struct Site {
    stub: Stub<TestRail>,
    folder: Folder,
    names: Vec<String>,
    server: Server,
}

impl Site {
    fn start() -> Self {
        let (stub, folder, names) = rail();
        let server = serve(&folder, RULE);
        Self { stub, folder, names, server }
    }

    /// Pushes the report to the server and waits for its targets.
    fn push(&self, more: &[&str]) -> (Finished, Value) {
        push(&self.folder, &self.server, more)
    }

    fn breaks(&self) {
        self.stub.set_plan(Plan::on(Select::any(), Fault::RequestDropped));
    }
}

/// As [`pushing`], to its end.
fn push(folder: &Folder, server: &Server, more: &[&str]) -> (Finished, Value) {
    let finished = pushing(folder, server, more).output().unwrap();
    let json = serde_json::from_str(finished.stdout.trim()).unwrap_or(Value::Null);
    (finished, json)
}

/// The push of the folder's report to the server, which waits for its targets.
fn pushing(folder: &Folder, server: &Server, more: &[&str]) -> Run {
    let url = server.url();
    let args = ["push", "--json", "report.xml", "--to", &url, "--project", "shop", "--run", "7", "--wait-forward"];
    let cycle: &[&str] = if more.contains(&"--cycle") { &[] } else { &["--cycle", "main"] };
    folder.run(&[&args[..], cycle, more].concat())
}

/// Starts `serve` with the folder's configuration and a rule.
pub(crate) fn serve(folder: &Folder, rule: &str) -> Server {
    let store = format!("sqlite:{}", folder.path("served.db").display());
    let config = folder.path("tallyonce.toml");
    let targets = std::fs::read_to_string(&config).unwrap();
    folder.write("tallyonce.toml", &format!("{targets}{rule}[serve]\nstore = \"{store}\"\n"));
    let env = [("TARGET_TOKEN", "key"), ("TALLYONCE_TIMEOUT", TIMEOUT)];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let binary = Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap();
    Server::start(&binary, &store, &env, &["--config".to_owned(), config.display().to_string()]).unwrap()
}

#[test]
fn a_push_to_the_server_waits_until_it_is_there_once() {
    let site = Site::start();
    let (pushed, object) = site.push(&[]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let forward = &object["forwards"][0];
    assert_eq!((&forward["target"], &forward["kind"]), (&json!("there"), &json!("testrail")), "{object:#}");
    assert_eq!((&forward["state"], &forward["states"]), (&json!("acked"), &json!({"acked": CASES})), "{object:#}");
    assert_eq!(site.stub.ledger().count(), CASES);
    let requests = site.stub.log().len();
    let (again, object) = site.push(&[]);
    assert_eq!((again.code, &object["state"]), (Some(0), &json!("replayed")), "{again}");
    assert_eq!(object["forwards"][0], *forward, "{object:#}");
    assert_eq!((site.stub.ledger().count(), site.stub.log().len()), (CASES, requests), "nothing new");

    // The server's own configuration, and its API, say the same.
    let here = site.folder.run(&["forwards", "--json"]).output().unwrap();
    let url = site.server.url();
    let there = site.folder.run(&["forwards", "--json", "--to", &url, "--project", "shop"]).output().unwrap();
    assert_eq!((here.code, there.code), (Some(0), Some(0)), "{here}{there}");
    let of = |finished: &Finished| serde_json::from_str::<Value>(&finished.stdout).unwrap();
    assert_eq!(of(&here), of(&there));
    assert_eq!(of(&here)["states"], json!({"acked": 1}), "{here}");
    let text = site.folder.run(&["forwards", "--to", &url, "--project", "shop"]).output().unwrap();
    assert!(text.stdout.contains("acked") && text.stdout.ends_with("1 acked\n"), "{text}");
    let swept = site.folder.run(&["forwards", "--sweep"]).output().unwrap();
    assert_eq!(swept.code, Some(0), "{swept}");
}

#[test]
fn a_product_that_is_away_is_seven_at_the_deadline_and_there_later_by_itself() {
    let site = Site::start();
    site.breaks();
    let (pushed, object) = site.push(&["--deadline", "3s"]);
    assert_eq!((pushed.code, &object["state"]), (Some(7), &json!("recorded")), "{pushed}");
    assert_eq!(object["forwards"][0]["state"], "planned", "{object:#}");
    assert!(pushed.stderr.contains("there: not known to be there yet (planned)"), "{pushed}");
    let listed = site.folder.run(&["forwards"]).output().unwrap();
    assert!(listed.stdout.contains("planned") && listed.stdout.contains("revision 1"), "{listed}");
    assert_eq!(site.stub.ledger().count(), 0);
    site.stub.set_plan(Plan::pass());
    let (pushed, object) = site.push(&["--deadline", "80s"]);
    assert_eq!((pushed.code, &object["state"]), (Some(0), &json!("replayed")), "{pushed}");
    assert_eq!(site.stub.ledger().count(), CASES);
    assert!(site.stub.doubled().is_empty());
}

#[test]
fn an_item_without_a_case_is_six() {
    let site = Site::start();
    let mut names = site.names.clone();
    names.push("nobody knows it".to_owned());
    site.folder.write("report.xml", &report(&names, &[]));
    let (pushed, object) = site.push(&[]);
    assert_eq!(pushed.code, Some(6), "{pushed}");
    assert_eq!(object["forwards"][0]["refused"].as_array().unwrap().len(), 1, "{object:#}");
    assert!(pushed.stderr.contains("there refused"), "{pushed}");
    assert_eq!(site.stub.ledger().count(), CASES);
}

#[test]
fn what_waits_goes_on_after_a_restart() {
    let mut site = Site::start();
    site.breaks();
    let (pushed, _) = site.push(&["--deadline", "1s"]);
    assert_eq!(pushed.code, Some(7), "{pushed}");
    let stopped = site.server.stop(Duration::from_secs(30)).unwrap();
    assert_eq!(stopped.code, Some(0), "{stopped}");
    site.stub.set_plan(Plan::pass());
    site.server.restart().unwrap();
    let (pushed, _) = site.push(&["--deadline", "80s"]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    assert_eq!(site.stub.ledger().count(), CASES);
}

#[test]
fn an_outbox_is_flushed_to_the_server_and_waits_too() {
    let site = Site::start();
    let url = site.server.url();
    let args = ["push", "report.xml", "--project", "shop", "--cycle", "main", "--run", "9", "--seal", "a.sealed"];
    assert_eq!(site.folder.run(&args).output().unwrap().code, Some(0));
    let args = ["flush", "a.sealed", "--project", "shop", "--cycle", "main", "--run", "9", "--to", &url, "--json"];
    let flushed = site.folder.run(&[&args[..], &["--wait-forward"]].concat()).output().unwrap();
    assert_eq!(flushed.code, Some(0), "{flushed}");
    let object: Value = serde_json::from_str(flushed.stdout.trim()).unwrap();
    assert_eq!(object["forwards"][0]["state"], "acked", "{object:#}");
    assert_eq!(site.stub.ledger().count(), CASES);
}

#[test]
fn what_goes_nowhere_is_said_and_is_no_failure() {
    let site = Site::start();
    let (pushed, object) = site.push(&["--cycle", "dev"]);
    assert_eq!((pushed.code, &object["forwards"]), (Some(0), &json!([])), "{pushed}");
    assert!(pushed.stderr.contains("the server hands this push on to no target"), "{pushed}");
    assert_eq!(site.stub.ledger().count(), 0);
}

#[test]
fn a_wish_to_stop_is_heard_before_the_product_answers() {
    let site = Site::start();
    site.breaks();
    // Long enough for the server to hold an answer back for half a minute.
    let push = pushing(&site.folder, &site.server, &["--deadline", "80s"]).env("TALLYONCE_TIMEOUT", "60s");
    let running = push.start().unwrap();
    assert!(site.stub.wait_for(Duration::from_secs(30), |log| !log.is_empty()).is_some());
    running.interrupt();
    let stopped = running.wait(Duration::from_secs(10)).unwrap();
    assert_eq!((stopped.code, stopped.timed_out), (Some(7), false), "{stopped}");
    let object: Value = serde_json::from_str(stopped.stdout.trim()).unwrap();
    assert_eq!(object["state"], "recorded", "{stopped}");
}

const CLOSE: [&str; 9] = ["close", "--to", "there", "--round", "7", "--project", "shop", "--cycle", "main"];

#[test]
fn a_round_isn_t_ended_while_pushes_wait_at_the_server() {
    let site = Site::start();
    assert_eq!(site.push(&["--job", "a"]).0.code, Some(0));
    site.breaks();
    let (waits, _) = site.push(&["--job", "b", "--deadline", "1s"]);
    assert_eq!(waits.code, Some(7), "{waits}");
    site.stub.set_plan(Plan::on(Select::writes(), Fault::RequestDropped));
    let open = site.folder.run(&CLOSE).output().unwrap();
    assert_eq!(open.code, Some(75), "{open}");
    assert!(open.stderr.contains("push run:7:job:b waits to be forwarded"), "{open}");
    assert!(!open.stderr.contains("flush") && open.stderr.contains("The server goes on by itself"), "{open}");
    site.stub.set_plan(Plan::pass());
    assert_eq!(site.push(&["--job", "b", "--deadline", "80s"]).0.code, Some(0));
    let closed = site.folder.run(&CLOSE).output().unwrap();
    assert_eq!(closed.code, Some(0), "{closed}");
}

#[test]
fn a_server_finishes_a_launch_after_each_push_too() {
    let stub = Stub::start(ReportPortal::default()).unwrap();
    let folder = Folder::new(&config(&stub, "reportportal", "demo", ""));
    let names = |head: &str| (0..CASES).map(|n| format!("{head} {n}")).collect::<Vec<_>>();
    folder.write("report.xml", &report(&names("adds"), &[]));
    let server = serve(&folder, "[forward.there]\n");
    let refused = Fault::Refused { status: 403, retry_after: RetryAfter::Missing };
    stub.set_plan(Plan::on(Select::writes().what("finish_launch"), refused));
    let (first, object) = push(&folder, &server, &["--job", "a"]);
    assert_eq!(first.code, Some(0), "the push is there all the same: {first}");
    let launch = object["forwards"][0]["cycle_there"].as_str().unwrap();
    assert_eq!(stub.vendor().status(launch), Some("IN_PROGRESS"));
    let log = server.log();
    assert!(log.contains("still in progress"), "{log}");
    stub.set_plan(Plan::pass());
    folder.write("report.xml", &report(&names("pays"), &[1]));
    let (second, _) = push(&folder, &server, &["--job", "b"]);
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!((stub.ledger().count(), stub.vendor().status(launch)), (2 * CASES, Some("FAILED")));
}

#[test]
fn nobody_pushes_past_the_server() {
    let site = Site::start();
    let (pushed, _) = site.folder.push(&[]);
    assert_eq!(pushed.code, Some(2), "{pushed}");
    assert!(pushed.stderr.contains("forward.there says that a server hands on to there"), "{pushed}");
}

#[test]
fn a_server_says_what_is_wrong_with_a_rule_and_what_nobody_has_probed() {
    let kiwi = ALL.iter().find(|product| product.name == "Kiwi TCMS").unwrap().stub_with(OUTCOMES).unwrap();
    let folder = kiwi.machine("replace");
    let server = serve(&folder, "[forward.there]\n");
    let log = server.log();
    assert!(log.contains("warning: there: ") && log.contains("probe"), "{log}");
    drop(server);
    folder.write("tallyonce.toml", "[forward.rail]\n");
    let started = folder.run(&["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
    assert_eq!(started.code, Some(2), "{started}");
    assert!(started.stderr.contains("tallyonce.toml: forward.rail: there is no [target.rail]"), "{started}");
}
