//! What is kept when nobody answers, and how it is delivered later: with the same key, to the same place, once.

use std::time::Duration;

use proof::spawn::Server;
use serde_json::Value;

use crate::{Desk, object};

fn server(desk: &Desk) -> Server {
    let store = format!("sqlite:{}", desk.folder.path().join("served.db").display());
    Server::start(&desk.binary, &store, &[], &[] as &[&str]).unwrap()
}

#[test]
fn a_dead_server_keeps_the_push_and_flush_delivers_it() {
    let desk = Desk::with_report();
    let mut server = server(&desk);
    let url = server.url();
    server.kill9().unwrap();
    let push = ["push", "r.xml", "--run", "1", "--project", "p", "--to", &url, "--deadline", "200ms", "--json"];
    let kept = desk.run(75, &push);
    let first = object(&kept);
    assert_eq!(first["state"], "not_sent");
    assert!(kept.stderr.contains("tallyonce flush"), "{kept}");
    server.restart().unwrap();
    // Another destination gets nothing of it.
    let finished = desk.run(4, &["flush", "--to", "sqlite:other.db", "--json"]);
    assert_eq!(object(&finished)["state"], "rejected");
    assert!(finished.stderr.contains("left alone") && !desk.exists("other.db"), "{finished}");
    let delivered = desk.json(0, &["flush", "--to", &url, "--json"]);
    assert_eq!((&delivered["state"], &delivered["key"]), (&"recorded".into(), &first["key"]));
    let finished = desk.run(0, &["flush", "--to", &url, "--json"]);
    assert_eq!(finished.stdout, "");
    assert_eq!(desk.json(0, &push)["state"], "replayed");
}

#[test]
fn an_older_entry_of_the_key_goes_first() {
    let desk = Desk::with_report();
    let mut server = server(&desk);
    let url = server.url();
    server.kill9().unwrap();
    let push = ["push", "r.xml", "--run", "1", "--project", "p", "--to", &url, "--json"];
    desk.run(75, &[&push[..], &["--deadline", "200ms"]].concat());
    server.restart().unwrap();
    desk.file("r.xml", crate::ALL_PASS);
    let second = desk.json(0, &[&push[..], &["--on-difference", "revise"]].concat());
    assert_eq!((&second["state"], &second["counts"]["flaky"]), (&"revised".into(), &1.into()));
}

#[test]
fn a_sealed_push_claims_no_more_than_it_may() {
    let desk = Desk::with_report();
    let sealed = desk.json(0, &["push", "r.xml", "--run", "42", "--project", "p", "--seal", "out.push", "--json"]);
    assert_eq!((&sealed["state"], &sealed["url"]), (&"sealed".into(), &Value::Null));
    assert!(desk.exists("out.push") && !desk.exists("tallyonce.db"));
    let flush = |code: i32, project: &str, cycle: &str, run: &str| {
        let claims = ["--project", project, "--cycle", cycle, "--run", run];
        desk.json(code, &[&["flush", "out.push", "--json"], &claims[..]].concat())
    };
    for (project, cycle, run) in [("q", "local", "42"), ("p", "main", "42"), ("p", "local", "43")] {
        assert_eq!(flush(4, project, cycle, run)["state"], "rejected");
    }
    assert!(!desk.exists("tallyonce.db"));
    let delivered = flush(0, "p", "local", "42");
    assert_eq!((&delivered["state"], &delivered["key"]), (&"recorded".into(), &sealed["key"]));
    assert_eq!(flush(0, "p", "local", "42")["state"], "replayed");
    desk.file("torn.push", "tallyonce parcel 1\n");
    let torn = ["flush", "torn.push", "--project", "p", "--cycle", "local", "--run", "42", "--json"];
    assert_eq!(desk.json(3, &torn)["state"], "unreadable");
}

#[test]
fn an_outbox_may_be_believed_no_more_than_a_sealed_file() {
    let desk = Desk::with_report();
    let mut server = server(&desk);
    let url = server.url();
    server.kill9().unwrap();
    for run in ["1", "2"] {
        desk.run(75, &["push", "r.xml", "--project", "p", "--to", &url, "--deadline", "0s", "--run", run]);
    }
    server.restart().unwrap();
    let flush = ["flush", "--to", &url, "--bound"];
    let unsaid = desk.run(2, &flush);
    assert!(unsaid.stderr.contains("--bound needs --project, --cycle and --run"), "{unsaid}");
    let bound = [&flush[..], &["--project", "p", "--cycle", "local", "--run", "2", "--json"]].concat();
    let finished = desk.run(4, &bound);
    assert!(finished.stderr.contains("run: it claims \"1\", allowed is \"2\""), "{finished}");
    let states: Vec<Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = states.iter().map(|o| (o["state"].as_str().unwrap(), o["key"].as_str().unwrap())).collect();
    assert_eq!(told, [("rejected", "run:1"), ("recorded", "run:2")]);
    // What was refused is left alone.
    assert_eq!(desk.json(0, &["flush", "--to", &url, "--json"])["key"], "run:1");
}

#[test]
fn a_signal_stops_at_once_and_keeps_the_push() {
    let desk = Desk::with_report();
    // Listens and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let running =
        desk.command(&["push", "r.xml", "--run", "1", "--project", "p", "--to", &url, "--json", "-v"]).start().unwrap();
    running.find_in_stderr(Duration::from_mins(1), |text| text.contains("sending").then_some(())).unwrap();
    running.interrupt();
    let finished = running.wait(Duration::from_secs(20)).unwrap();
    assert_eq!((finished.code, finished.timed_out), (Some(75), false), "{finished}");
    assert_eq!(object(&finished)["state"], "possibly_written");
    assert!(finished.stderr.contains("interrupted"), "{finished}");
    let entries = std::fs::read_dir(desk.folder.path().join(".tallyonce/outbox")).unwrap();
    assert_eq!(entries.filter_map(Result::ok).filter(|e| e.file_name() != ".lock").count(), 1);
}

#[test]
fn behind_an_unconfirmed_entry_the_later_ones_of_its_key_wait() {
    let desk = Desk::with_report();
    let mut server = server(&desk);
    let url = server.url();
    server.kill9().unwrap();
    let push = ["push", "r.xml", "--project", "p", "--to", &url, "--deadline", "0s", "--run"];
    desk.run(75, &[&push[..], &["1"]].concat());
    desk.file("r.xml", crate::ALL_PASS);
    desk.run(75, &[&push[..], &["1"]].concat());
    desk.run(75, &[&push[..], &["2"]].concat());
    let finished = desk.run(75, &["flush", "--to", &url, "--deadline", "0s", "--json"]);
    let objects: Vec<Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let tries: Vec<u64> = objects.iter().map(|object| object["delivery"]["attempts"].as_u64().unwrap()).collect();
    assert_eq!(tries, [1, 0, 1], "{finished}");
    assert!(finished.stderr.contains("goes first"), "{finished}");
    server.restart().unwrap();
    // In their order now: the first is recorded, the second differs, the third is another run's.
    let finished = desk.run(5, &["flush", "--to", &url, "--json"]);
    let objects: Vec<Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let states: Vec<&str> = objects.iter().map(|object| object["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["recorded", "differs", "recorded"], "{finished}");
    assert!(finished.stderr.contains("stays in the outbox"), "{finished}");
}

#[test]
fn a_push_waits_for_another_process_that_delivers_an_earlier_one() {
    let desk = Desk::with_report();
    let server = server(&desk);
    let url = server.url();
    server.process().unwrap().pause();
    let push = ["push", "r.xml", "--run", "1", "--project", "p", "--to", &url, "--json", "-v"];
    let first = desk.command(&push).start().unwrap();
    first.find_in_stderr(crate::PATIENCE, |text| text.contains("sending").then_some(())).unwrap();
    desk.file("r.xml", crate::ALL_PASS);
    let second = desk.command(&push).start().unwrap();
    second.find_in_stderr(crate::PATIENCE, |text| text.contains("waiting for it").then_some(())).unwrap();
    server.process().unwrap().resume();
    let (first, second) = (first.wait(crate::PATIENCE).unwrap(), second.wait(crate::PATIENCE).unwrap());
    assert_eq!((first.code, &object(&first)["state"]), (Some(0), &"recorded".into()), "{first}");
    assert_eq!((second.code, &object(&second)["state"]), (Some(5), &"differs".into()), "{second}");
}

#[test]
fn a_damaged_entry_is_said_and_the_others_are_delivered() {
    let desk = Desk::with_report();
    let push = ["push", "r.xml", "--run", "1", "--project", "p", "--to", "http://127.0.0.1:9", "--deadline", "0s"];
    desk.run(75, &push);
    let torn = "tallyonce parcel 1\n";
    desk.file(".tallyonce/outbox/00000009-0000000000000000-0000000000000000.push", torn);
    let finished = desk.run(75, &["flush", "--to", "http://127.0.0.1:9", "--deadline", "0s", "--json"]);
    let states: Vec<String> =
        finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["state"].to_string()).collect();
    assert_eq!(states, ["\"unreadable\"", "\"not_sent\""], "{finished}");
}

#[test]
fn serve_ends_when_it_is_told() {
    let desk = Desk::with_report();
    let mut server = server(&desk);
    let finished = server.stop(Duration::from_secs(30)).unwrap();
    assert_eq!((finished.code, finished.timed_out), (Some(0), false), "{finished}");
}
