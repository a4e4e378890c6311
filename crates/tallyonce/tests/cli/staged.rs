//! Reports too large for one request: cut, staged, resumed, cut smaller, sealed, raced; embedded and against a server.

use std::time::Duration;

use proof::oracle::JunitSpec;
use proof::proxy::{Event, Fault, FaultProxy, Plan};
use proof::spawn::Server;
use serde_json::Value;

use crate::{Desk, PATIENCE, object};

/// More than one request holds.
const MANY: usize = 66_000;
/// Into how many chunks they are cut.
const CHUNKS: u64 = 8;

/// A desk with a large report.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("big.xml", &JunitSpec::new(1, MANY, 30).xml());
    desk
}

fn server_with(desk: &Desk, arguments: &[&str]) -> Server {
    let store = format!("sqlite:{}", desk.folder.path().join("served.db").display());
    Server::start(&desk.binary, &store, &[], arguments).unwrap()
}

fn push<'a>(to: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["push", "big.xml", "--run", "1", "--project", "p", "--to", to, "--json"], more].concat()
}

/// Chunks, those that were sent, and whether an earlier begin was gone on with.
fn chunks(object: &Value) -> (u64, u64, bool) {
    let delivery = &object["delivery"];
    let number = |name: &str| delivery[name].as_u64().unwrap();
    (number("chunks"), number("chunks_sent"), delivery["resumed"].as_bool().unwrap())
}

#[track_caller]
fn is_clean(desk: &Desk, store: &str) {
    let store = format!("sqlite:{}", desk.folder.path().join(store).display());
    assert_eq!(desk.json(0, &["check-store", "--store", &store, "--json"])["clean"], true);
}

/// Paths of the puts that arrived.
fn puts(log: &[Event]) -> Vec<&str> {
    log.iter().filter(|event| event.method == "PUT").map(|event| event.path.as_str()).collect()
}

/// Paths of those that the server took.
fn taken(log: &[Event]) -> Vec<&str> {
    let taken = log.iter().filter(|event| event.method == "PUT" && event.upstream_status == Some(201));
    taken.map(|event| event.path.as_str()).collect()
}

/// The delivery after `before` sent what was missing, and nothing that was there.
#[track_caller]
fn went_on(before: &[Event], after: &[Event], object: &Value) {
    let (there, sent) = (taken(before), puts(&after[before.len()..]));
    assert_eq!(chunks(object), (CHUNKS, sent.len() as u64, true), "{object}");
    assert!(!sent.is_empty() && sent.len() <= CHUNKS as usize - there.len(), "{sent:?} after {there:?}");
    assert!(sent.iter().all(|path| !there.contains(path)), "{sent:?} after {there:?}");
}

fn staged_once(desk: &Desk, to: &str) {
    let dry = desk.run(0, &["push", "big.xml", "--run", "1", "--project", "p", "--to", to, "--dry-run"]);
    assert!(dry.stdout.contains("chunks         8\n"), "{dry}");
    let finished = desk.run(0, &push(to, &[]));
    let first = object(&finished);
    assert_eq!((&first["state"], &first["counts"]["total"]), (&"recorded".into(), &MANY.into()));
    assert_eq!(chunks(&first), (CHUNKS, CHUNKS, false));
    assert!(finished.stderr.contains("8 of 8 chunks are there"), "{finished}");
    // What is recorded needs no chunk.
    let second = desk.json(0, &push(to, &[]));
    assert_eq!((&second["state"], chunks(&second).1), (&"replayed".into(), 0));
    for field in ["key", "push", "revision", "counts", "report"] {
        assert_eq!(first[field], second[field], "{field}");
    }
    let shown = desk.json(0, &["show", "--project", "p", "--from", to, "--format", "json"]);
    assert_eq!((&shown["headline"]["total"], &shown["headline"]["failed"]), (&MANY.into(), &30.into()));
}

#[test]
fn a_large_report_is_staged_into_an_embedded_store() {
    let desk = desk();
    staged_once(&desk, "sqlite:tallyonce.db");
    is_clean(&desk, "tallyonce.db");
}

#[test]
fn a_large_report_is_staged_on_a_server() {
    let desk = desk();
    let server = server_with(&desk, &[]);
    staged_once(&desk, &server.url());
    is_clean(&desk, "served.db");
}

#[test]
fn a_small_report_is_one_part() {
    let desk = Desk::with_report();
    let pushed = desk.json(0, &["push", "r.xml", "--run", "1", "--json"]);
    assert_eq!(chunks(&pushed), (1, 1, false));
}

#[test]
fn a_small_report_is_staged_where_its_sender_wants_it_and_its_entry_keeps_the_cut() {
    let desk = Desk::new();
    desk.file("big.xml", &JunitSpec::new(1, 60, 3).xml());
    let server = server_with(&desk, &[]);
    let proxy = FaultProxy::start_blocking(server.addr(), Plan::first(9, Fault::RequestDropped).only_path("/commit"));
    let proxy = proxy.unwrap();
    let url = proxy.url();
    let dry = ["push", "big.xml", "--run", "1", "--to", &url, "--chunk-outcomes", "16", "--dry-run"];
    let dry = desk.run(0, &dry);
    assert!(dry.stdout.contains("chunk-outcomes 16  (--chunk-outcomes)\nchunks         4\n"), "{dry}");
    let kept = desk.json(75, &push(&url, &["--chunk-outcomes", "16", "--deadline", "0s"]));
    assert_eq!(chunks(&kept), (4, 4, false));
    proxy.set_plan(Plan::pass());
    let flushed = desk.json(0, &["flush", "--to", &url, "--json"]);
    assert_eq!((&flushed["state"], chunks(&flushed)), (&"recorded".into(), (4, 0, true)));
    for wrong in ["0", "65537"] {
        let refused = desk.run(2, &push(&url, &["--chunk-outcomes", wrong]));
        assert!(refused.stderr.contains("from 1 to 65536"), "{refused}");
    }
}

#[test]
fn after_a_kill_only_what_is_missing_is_sent() {
    let desk = desk();
    let server = server_with(&desk, &[]);
    // Some chunks are taken; then no answer comes any more.
    let silence = Some(Fault::Stall { hold: Duration::from_hours(1), then_answer: false });
    let plan = [vec![None; 3], vec![silence; 5]].concat();
    let proxy = FaultProxy::start_blocking(server.addr(), Plan::list(plan).only_method("PUT")).unwrap();
    let url = proxy.url();
    let running = desk.command(&push(&url, &[])).start().unwrap();
    proxy.wait_for(PATIENCE, |log| taken(log).len() >= 5).unwrap();
    running.kill9();
    running.wait(PATIENCE).unwrap();
    let before = proxy.log();
    proxy.set_plan(Plan::pass());
    let flushed = desk.json(0, &["flush", "--to", &url, "--json"]);
    assert_eq!((&flushed["state"], &flushed["counts"]["total"]), (&"recorded".into(), &MANY.into()));
    went_on(&before, &proxy.log(), &flushed);
    is_clean(&desk, "served.db");
}

#[test]
fn without_time_it_is_left_and_the_same_push_goes_on_with_it() {
    let desk = desk();
    let server = server_with(&desk, &[]);
    let plan = [vec![None; 2], vec![Some(Fault::RequestDropped); 6]].concat();
    let proxy = FaultProxy::start_blocking(server.addr(), Plan::list(plan).only_method("PUT")).unwrap();
    let url = proxy.url();
    let kept = desk.json(75, &push(&url, &["--deadline", "0s"]));
    // No commit was sent: nothing can be written.
    assert_eq!(kept["state"], "not_sent");
    let before = proxy.log();
    proxy.set_plan(Plan::pass());
    // Another process, and so another incarnation: the manifest is the same.
    let again = desk.json(0, &push(&url, &[]));
    assert_eq!(again["state"], "recorded");
    went_on(&before, &proxy.log(), &again);
}

#[test]
fn a_server_that_takes_only_small_bodies_gets_small_chunks() {
    let desk = desk();
    desk.file("small.toml", "[serve]\nbody-bytes-max = 60000\n");
    let config = desk.folder.path().join("small.toml");
    let server = server_with(&desk, &["--config", config.to_str().unwrap()]);
    let finished = desk.run(0, &push(&server.url(), &[]));
    let pushed = object(&finished);
    assert_eq!((&pushed["state"], &pushed["counts"]["total"]), (&"recorded".into(), &MANY.into()));
    assert!(chunks(&pushed).0 > CHUNKS, "{pushed}");
    assert!(finished.stderr.contains("cut into"), "{finished}");
    // So does a push that would be one request anywhere else.
    desk.file("other.xml", &JunitSpec::new(2, 8_000, 0).xml());
    let url = server.url();
    let pushed = desk.json(0, &["push", "other.xml", "--run", "2", "--project", "p", "--to", &url, "--json"]);
    assert!(chunks(&pushed).0 > 1, "{pushed}");
    assert_eq!((&pushed["state"], &pushed["counts"]["total"]), (&"recorded".into(), &8_000.into()));
    is_clean(&desk, "served.db");
}

#[test]
fn the_cut_that_a_receiver_wants_outlives_a_kill() {
    let desk = desk();
    desk.file("small.toml", "[serve]\nbody-bytes-max = 60000\n");
    let config = desk.folder.path().join("small.toml");
    let server = server_with(&desk, &["--config", config.to_str().unwrap()]);
    let proxy = FaultProxy::start_blocking(server.addr(), Plan::pass()).unwrap();
    let url = proxy.url();
    // The first commit of all is the one of the smaller cut. It never arrives, and then the client dies.
    proxy.set_plan(Plan::first(u32::MAX, Fault::RequestDropped).only_path("/commit"));
    let running = desk.command(&push(&url, &[])).start().unwrap();
    let commits = |log: &[Event]| log.iter().any(|event| event.path.ends_with("/commit"));
    proxy.wait_for(PATIENCE, commits).unwrap();
    running.kill9();
    running.wait(PATIENCE).unwrap();
    proxy.set_plan(Plan::pass());
    let flushed = desk.json(0, &["flush", "--to", &url, "--json"]);
    let (cut, sent, resumed) = chunks(&flushed);
    assert!(cut > CHUNKS, "{flushed}");
    assert_eq!((&flushed["state"], sent, resumed), (&"recorded".into(), 0, true));
}

#[test]
fn a_large_sealed_push_is_flushed_in_chunks() {
    let desk = desk();
    let sealed = desk.json(0, &["push", "big.xml", "--run", "42", "--project", "p", "--seal", "out.push", "--json"]);
    assert_eq!((&sealed["state"], chunks(&sealed).0), (&"sealed".into(), CHUNKS));
    let server = server_with(&desk, &[]);
    let url = server.url();
    let claims = ["--project", "p", "--cycle", "local", "--run", "42"];
    let flush = [&["flush", "out.push", "--to", &url, "--json"], &claims[..]].concat();
    let flushed = desk.json(0, &flush);
    assert_eq!((&flushed["state"], &flushed["key"]), (&"recorded".into(), &sealed["key"]));
    assert_eq!(chunks(&flushed), (CHUNKS, CHUNKS, false));
    assert_eq!(desk.json(0, &flush)["state"], "replayed");
    assert!(desk.exists("out.push"), "the file is the caller's");
    // Damage in the middle of it is found before anything is sent.
    let path = desk.folder.path().join("out.push");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(desk.json(3, &flush)["state"], "unreadable");
}

#[test]
fn two_that_race_are_both_recorded_one_over_the_other() {
    let (one, other) = (desk(), Desk::new());
    let again = JunitSpec { verdicts: 9, ..JunitSpec::new(1, MANY, 30) };
    other.file("big.xml", &again.xml());
    let server = server_with(&one, &[]);
    let url = server.url();
    let arguments = push(&url, &["--on-difference", "revise"]);
    let first = one.command(&arguments).start().unwrap();
    let second = other.command(&arguments).start().unwrap();
    let ended = [first, second].map(|running| running.wait(PATIENCE).unwrap());
    let mut states = Vec::new();
    for finished in &ended {
        assert_eq!(finished.code, Some(0), "{finished}");
        states.push(object(finished)["state"].as_str().unwrap().to_owned());
    }
    states.sort();
    assert_eq!(states, ["recorded", "revised"]);
    let shown = one.json(0, &["show", "--project", "p", "--from", &url, "--format", "json"]);
    assert_eq!(shown["headline"]["total"], MANY);
    is_clean(&one, "served.db");
}
