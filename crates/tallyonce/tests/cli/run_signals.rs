//! Signals while `run` runs: the command gets them, once, and what it wrote is pushed all the same.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use proof::spawn::Running;
use serde_json::Value;

use crate::run::{desk, last};
use crate::{Desk, PATIENCE};

/// Starts `sh -c SCRIPT`, and waits until it says "ready".
fn started(desk: &Desk, flags: &[&str], script: &str) -> Running {
    let head = ["run", "--run", "1", "--project", "p", "--json"];
    let running = desk.command(&[&head[..], flags, &["--", "sh", "-c", script]].concat()).start().unwrap();
    running.find_in_stdout(PATIENCE, |text| text.contains("ready\n").then_some(())).unwrap();
    running
}

/// A command that writes its report when it is asked to end, and ends with 9.
const GRACEFUL: &str = "trap 'cp src/pass.txt junit.xml; exit 9' TERM INT HUP QUIT; echo ready; \
    while :; do sleep 0.05; done";

#[test]
fn the_command_is_asked_too_and_its_report_is_pushed() {
    for name in ["SIGTERM", "SIGINT"] {
        let desk = desk();
        let running = started(&desk, &[], GRACEFUL);
        if name == "SIGINT" {
            running.interrupt();
        } else {
            running.terminate();
        }
        let finished = running.wait(PATIENCE).unwrap();
        assert_eq!((finished.code, finished.timed_out), (Some(9), false), "{finished}");
        assert!(finished.stderr.contains(&format!("{name} is passed on")), "{finished}");
        let value = last(&finished);
        assert_eq!((&value["state"], &value["counts"]["total"]), (&"recorded".into(), &2.into()), "{finished}");
        // It was cut short, whatever its reports say.
        assert!(value["warnings"].to_string().contains(&format!("ended by {name}")), "{value}");
        let store = rusqlite::Connection::open(desk.folder.path().join("tallyonce.db")).unwrap();
        assert!(store.query_row("SELECT incomplete FROM revision", [], |row| row.get::<_, bool>(0)).unwrap());
    }
}

#[test]
fn a_command_that_a_signal_ends_has_the_shell_s_code() {
    let desk = desk();
    let script = "cp src/fail.txt junit.xml; kill -KILL $$";
    let finished = desk.run(137, &["run", "--run", "1", "--json", "--", "sh", "-c", script]);
    let value = last(&finished);
    let command = &value["command"];
    assert_eq!((&command["code"], &command["signal"], &value["state"]), (&Value::Null, &9.into(), &"recorded".into()));
    assert!(finished.stderr.contains("the command ended with SIGKILL"), "{finished}");
}

#[test]
fn a_command_may_go_on_after_a_signal() {
    let desk = desk();
    let script =
        "trap 'touch asked' TERM; echo ready; while [ ! -e asked ]; do sleep 0.05; done; cp src/pass.txt junit.xml";
    let running = started(&desk, &[], script);
    running.terminate();
    let finished = running.wait(PATIENCE).unwrap();
    assert_eq!(finished.code, Some(0), "{finished}");
    assert_eq!(last(&finished)["warnings"].as_array().unwrap().len(), 0, "{finished}");
}

#[test]
fn a_signal_while_pushing_keeps_the_push() {
    let desk = desk();
    // Listens and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let running = started(&desk, &["--to", &url, "-v"], "echo ready; cp src/pass.txt junit.xml");
    running.find_in_stderr(PATIENCE, |text| text.contains("sending").then_some(())).unwrap();
    running.terminate();
    let finished = running.wait(Duration::from_secs(30)).unwrap();
    assert_eq!((finished.code, finished.timed_out), (Some(75), false), "{finished}");
    assert_eq!(last(&finished)["state"], "possibly_written");
    assert!(finished.stderr.contains("interrupted"), "{finished}");
    let entries = std::fs::read_dir(desk.folder.path().join(".tallyonce/outbox")).unwrap();
    assert_eq!(entries.filter_map(Result::ok).filter(|e| e.file_name() != ".lock").count(), 1);
}

#[test]
fn a_signal_that_is_ignored_stays_ignored_in_the_command() {
    if !cfg!(target_os = "linux") {
        eprintln!("which signals a process ignores is read on Linux only: left out");
        return;
    }
    let desk = desk();
    let inner = "cp src/pass.txt junit.xml; grep SigIgn /proc/self/status";
    let tallyonce = desk.binary.path().display();
    let outer = format!("trap '' HUP; exec {tallyonce} run --run 1 -- sh -c '{inner}'");
    let shell = proof::spawn::Binary::at("/bin/sh").unwrap();
    let run = proof::spawn::Run::new(&shell).args(["-c", &outer]).folder(desk.folder.path());
    let finished = run.output().unwrap();
    let mask = finished.stdout.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    // SIGHUP is 1 and ignored, SIGTERM is 15 and not.
    assert_eq!((mask & 1, mask >> 14 & 1), (1, 0), "{finished}");
}

/// In a terminal of its own, made by `script`, Ctrl-C goes to the whole process group.
#[test]
fn ctrl_c_reaches_the_command_once() {
    let desk = desk();
    let tallyonce = desk.binary.path().display();
    let command = format!("exec {tallyonce} run --run 1 --json -v -- sh -c \"{GRACEFUL}\" 2> said.txt > out.txt");
    // The options of util-linux; other systems' differ.
    let spawned = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .current_dir(desk.folder.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut terminal) = spawned else {
        eprintln!("there is no `script` to make a terminal: left out");
        return;
    };
    let mut keyboard = terminal.stdin.take().unwrap();
    let read = |name: &str| std::fs::read_to_string(desk.folder.path().join(name)).unwrap_or_default();
    let mut turns = 0;
    while !read("out.txt").contains("ready") {
        turns += 1;
        if terminal.try_wait().unwrap().is_some() || turns > 2400 {
            eprintln!("this `script` makes no terminal: left out");
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    keyboard.write_all(b"\x03").unwrap();
    let status = terminal.wait().unwrap();
    assert_eq!(status.code(), Some(9), "{}", read("said.txt"));
    assert!(read("said.txt").contains("SIGINT came from the terminal"), "{}", read("said.txt"));
    assert!(!read("said.txt").contains("passed on"), "{}", read("said.txt"));
    assert!(read("out.txt").contains("\"state\":\"recorded\""), "{}", read("out.txt"));
}
