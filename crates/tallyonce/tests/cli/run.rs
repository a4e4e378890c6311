//! `run`: the command is run, what it wrote is pushed, and the exit code says the worse of the two.

use proof::spawn::{Finished, Server, github_env};
use serde_json::Value;

use crate::{ALL_PASS, Desk, ONE_FAILS, object, pairs};

/// A folder with a report of each kind to copy from.
pub(crate) fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("src/pass.txt", ALL_PASS);
    desk.file("src/fail.txt", ONE_FAILS);
    desk
}

/// Runs `sh -c SCRIPT` under `run --run 1 --project p` and these flags.
#[track_caller]
pub(crate) fn run(desk: &Desk, code: i32, flags: &[&str], script: &str) -> Finished {
    let head = ["run", "--run", "1", "--project", "p"];
    desk.run(code, &[&head[..], flags, &["--", "sh", "-c", script]].concat())
}

/// The object on the last line of standard output: the command's own output stands before it.
#[track_caller]
pub(crate) fn last(finished: &Finished) -> Value {
    let line = finished.stdout.lines().last();
    serde_json::from_str(line.unwrap_or_else(|| panic!("{finished}"))).unwrap()
}

/// Whether each revision is marked incomplete, from the first on.
fn incomplete(desk: &Desk, store: &str) -> Vec<bool> {
    let store = rusqlite::Connection::open(desk.folder.path().join(store)).unwrap();
    let mut rows = store.prepare("SELECT incomplete FROM revision ORDER BY rowid").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn what_the_command_wrote_is_recorded_once_and_its_code_counts() {
    let desk = desk();
    let store = format!("sqlite:{}", desk.folder.path().join("served.db").display());
    let server = Server::start(&desk.binary, &store, &[], &[] as &[&str]).unwrap();
    for to in ["sqlite:tallyonce.db", &server.url()] {
        let flags = ["--to", to, "--json"];
        let finished = run(&desk, 3, &flags, "echo testing; cp src/fail.txt junit.xml; exit 3");
        assert!(finished.stdout.starts_with("testing\n{"), "{finished}");
        let value = last(&finished);
        assert_eq!(
            (&value["state"], &value["exit"], &value["counts"]["failed"]),
            (&"recorded".into(), &0.into(), &1.into())
        );
        let command = &value["command"];
        assert_eq!((&command["code"], &command["signal"]), (&3.into(), &Value::Null), "{value}");
        assert_eq!((&command["silent_failure"], command["elapsed_ms"].is_u64()), (&false.into(), true));
        let again = last(&run(&desk, 3, &flags, "cp src/fail.txt junit.xml; exit 3"));
        assert_eq!(
            (&again["state"], &again["key"], &again["counts"]),
            (&"replayed".into(), &value["key"], &value["counts"])
        );
    }
}

#[test]
fn the_command_does_not_see_the_token() {
    let desk = desk();
    let script = "cp src/pass.txt junit.xml; echo \"token ${TALLYONCE_TOKEN-none}, project $TALLYONCE_PROJECT\"";
    let arguments = ["run", "--run", "1", "--", "sh", "-c", script];
    let finished = desk.run_in(0, &arguments, &pairs(&[("TALLYONCE_TOKEN", "s3cret"), ("TALLYONCE_PROJECT", "p")]));
    assert!(finished.stdout.starts_with("token none, project p\n"), "{finished}");
}

#[test]
fn a_failure_that_no_report_shows_is_said() {
    let desk = desk();
    let finished = run(&desk, 2, &["--json"], "cp src/pass.txt junit.xml; exit 2");
    let value = last(&finished);
    assert_eq!((&value["state"], &value["command"]["silent_failure"]), (&"recorded".into(), &true.into()));
    assert!(finished.stderr.contains("the command failed (exit 2)"), "{finished}");
    assert!(value["warnings"].to_string().contains("no failed or errored test"), "{value}");
    // A later attempt that ran to its end is whole again.
    let flags = ["--attempt", "2", "--json", "--on-difference", "revise"];
    let value = last(&run(&desk, 1, &flags, "cp src/fail.txt junit.xml; exit 1"));
    assert_eq!((&value["state"], &value["command"]["silent_failure"]), (&"revised".into(), &false.into()));
    assert_eq!(incomplete(&desk, "tallyonce.db"), [true, false]);
}

#[test]
fn a_runner_that_ignores_failures_is_noticed() {
    let desk = desk();
    let finished = run(&desk, 0, &[], "cp src/fail.txt junit.xml");
    assert!(finished.stderr.contains("ended with 0, though"), "{finished}");
    assert_eq!(incomplete(&desk, "tallyonce.db"), [false]);
    assert!(finished.stdout.contains("recorded: run:1"), "{finished}");
    desk.file("src/pass.txt", &ALL_PASS.replace("two", "three"));
    assert!(!run(&desk, 0, &["--round", "b"], "cp src/pass.txt junit.xml").stderr.contains("though"));
}

#[test]
fn whose_code_counts_can_be_chosen() {
    let desk = desk();
    let away = ["--to", "http://127.0.0.1:9", "--deadline", "0s"];
    let fails = "cp src/fail.txt junit.xml; exit 7";
    let passes = "cp src/pass.txt junit.xml";
    for (with, script, code) in [
        ("worst", fails, 7),
        ("worst", passes, 75),
        ("command", fails, 7),
        ("command", passes, 0),
        ("push", fails, 75),
        ("push", passes, 75),
    ] {
        let finished = run(&desk, code, &[&["--exit-with", with, "--json"], &away[..]].concat(), script);
        assert_eq!(last(&finished)["exit"], 75, "the object says what became of the push");
        let said = if code == 75 {
            "exit: 75 (not-confirmed)".to_owned()
        } else {
            format!("exit: {code}, the command's; the push alone: 75")
        };
        assert!(finished.stderr.contains(&said), "{with}: {finished}");
    }
    let recorded = |with: &str, code: i32| {
        let flags = ["--exit-with", with, "--fail-on", "failed", "--run", with];
        desk.run(code, &[&["run", "--project", "q"], &flags[..], &["--", "sh", "-c", fails]].concat());
    };
    recorded("worst", 7);
    recorded("push", 1);
}

#[test]
fn what_is_wrong_is_known_before_the_tests_run() {
    let desk = desk();
    desk.file("text.db", "no database, and longer than the head of one");
    desk.file("taken", "a file");
    let script = "echo ran > ran.txt; cp src/pass.txt junit.xml";
    let command = ["--", "sh", "-c", script];
    let refused = |flags: &[&str], env: &[(String, String)], words: &str| {
        let finished = desk.run_in(2, &[&["run"], flags, &command[..]].concat(), env);
        assert!(finished.stderr.contains(words), "{finished}");
        assert!(!desk.exists("ran.txt"), "{flags:?}: it ran");
        let finished = desk.run_in(2, &[&["run", "--json"], flags, &command[..]].concat(), env);
        assert_eq!(object(&finished)["state"], "usage", "{finished}");
    };
    refused(&[], &[], "--run");
    refused(&[], &github_env(7, 1, "test", "r1"), "dies with the runner");
    refused(&["--run", "1", "--to", "ftp://x"], &[], "ftp");
    refused(&["--run", "1", "--to", "sqlite:text.db"], &[], "is no store");
    refused(&["--run", "1", "--outbox", "taken/box"], &[], "outbox");
    refused(&["--run", "1", "--seal", "gone/s.push"], &[], "sealed");
    refused(&["--run", "1", "--report", "-"], &[], "standard input");
    refused(&["--run", "1", "--token-file", "gone"], &[], "gone");
    refused(&["--run", "1", "--exit-with", "best"], &[], "best");
}

#[test]
fn a_dry_run_runs_nothing() {
    let desk = desk();
    let script = "echo ran > ran.txt";
    let finished = run(&desk, 0, &["--dry-run", "--exit-with", "command", "--report", "out/*.xml"], script);
    for words in
        ["run:1", "sh -c 'echo ran > ran.txt'  (not run)", "out/*.xml", "command  (--exit-with)", "sqlite:tallyonce.db"]
    {
        assert!(finished.stdout.contains(words), "{words}: {finished}");
    }
    assert_eq!(object(&run(&desk, 0, &["--dry-run", "--json"], script))["state"], "dry_run");
    assert!(!desk.exists("ran.txt") && !desk.exists("tallyonce.db") && !desk.exists(".tallyonce"));
}

#[test]
fn a_command_that_can_not_be_started_has_the_shell_s_codes() {
    let desk = desk();
    desk.file("plain.sh", "echo");
    for (command, code) in [("no-such-command-here", 127), ("./gone.sh", 127), ("./plain.sh", 126)] {
        let finished = desk.run(code, &["run", "--run", "1", "--exit-with", "push", "--json", "--", command]);
        let value = object(&finished);
        assert_eq!((&value["exit"], &value["state"]), (&code.into(), &"usage".into()));
        assert!(value.get("command").is_none() && value["key"] == "run:1", "{value}");
        assert!(finished.stderr.contains(command) && finished.stderr.contains("Nothing was sent"), "{finished}");
    }
    assert!(!desk.exists("tallyonce.db"));
    desk.run(2, &["run", "--run", "1", "--"]);
    desk.run(2, &["run", "--run", "1", "sh"]);
}

#[test]
fn without_an_answer_the_push_is_kept_and_delivered_later() {
    let desk = desk();
    let store = format!("sqlite:{}", desk.folder.path().join("served.db").display());
    let mut server = Server::start(&desk.binary, &store, &[], &[] as &[&str]).unwrap();
    let url = server.url();
    server.kill9().unwrap();
    let flags = ["--to", &url, "--deadline", "200ms", "--json"];
    let finished = run(&desk, 1, &flags, "cp src/fail.txt junit.xml; exit 1");
    assert_eq!(last(&finished)["state"], "not_sent");
    assert!(finished.stderr.contains(&format!("`tallyonce flush --to {url}`")), "{finished}");
    server.restart().unwrap();
    assert_eq!(desk.json(0, &["flush", "--to", &url, "--json"])["state"], "recorded");
    let again = last(&run(&desk, 1, &["--to", &url, "--json"], "cp src/fail.txt junit.xml; exit 1"));
    assert_eq!(again["state"], "replayed");
}

#[test]
fn a_job_without_credentials_seals() {
    let desk = desk();
    let finished = run(&desk, 4, &["--seal", "out.push", "--json"], "cp src/fail.txt junit.xml; exit 4");
    let value = last(&finished);
    assert_eq!((&value["state"], &value["command"]["code"]), (&"sealed".into(), &4.into()));
    let flush = ["flush", "out.push", "--project", "p", "--cycle", "local", "--run", "1", "--json"];
    let value = desk.json(0, &flush);
    assert_eq!((&value["state"], &value["counts"]["failed"]), (&"recorded".into(), &1.into()));
}

#[test]
fn the_command_has_our_input_and_every_word_of_its_own() {
    let desk = desk();
    let script = "cat > junit.xml; printf '%s,' \"$0\" \"$@\"; echo";
    let arguments = ["run", "--run", "1", "--json", "--", "sh", "-c", script, "--help", "", "a b", "--"];
    let finished = desk.command(&arguments).input(ONE_FAILS).output().unwrap();
    assert!(finished.stdout.starts_with("--help,,a b,--,\n{"), "{finished}");
    assert_eq!((finished.code, &last(&finished)["counts"]["total"]), (Some(0), &2.into()), "{finished}");
}

#[test]
fn flags_come_from_variables_and_the_file_too() {
    let desk = desk();
    let script = "mkdir -p out; cp src/pass.txt 'out/a,b.xml'; cp src/fail.txt out/c.txt; exit 5";
    let arguments = ["run", "--project", "p", "--json", "--", "sh", "-c", script];
    let env =
        [("TALLYONCE_RUN", "1"), ("TALLYONCE_REPORT", "out/a,b.xml\n\n  out/c.txt\n"), ("TALLYONCE_EXIT_WITH", "push")];
    let value = last(&desk.run_in(0, &arguments, &pairs(&env)));
    assert_eq!(value["report"]["files"], 2, "{value}");
    desk.file("tallyonce.toml", "[push]\npaths = [\"out/c.txt\"]\n");
    let value = last(&desk.run_in(5, &arguments, &pairs(&[("TALLYONCE_RUN", "2")])));
    assert_eq!((&value["report"]["files"], &value["counts"]["failed"]), (&1.into(), &1.into()));
}
