//! The main job, end to end, embedded and against a server: the same words and numbers both ways.

use proof::spawn::{Server, github_env};

use crate::{ALL_PASS, Desk, ONE_FAILS, object};

/// Runs the same steps on an embedded store and against a server.
fn both_ways(steps: impl Fn(&Desk, &str)) {
    let embedded = Desk::with_report();
    steps(&embedded, "sqlite:tallyonce.db");
    let remote = Desk::with_report();
    let store = format!("sqlite:{}", remote.folder.path().join("served.db").display());
    let server = Server::start(&remote.binary, &store, &[], &[] as &[&str]).unwrap();
    steps(&remote, &server.url());
}

#[test]
fn recorded_once_and_replayed() {
    both_ways(|desk, to| {
        let push = ["push", "r.xml", "--run", "1", "--project", "p", "--to", to, "--json"];
        let first = desk.json(0, &push);
        let second = desk.json(0, &push);
        assert_eq!((&first["state"], &second["state"]), (&"recorded".into(), &"replayed".into()));
        for field in ["key", "push", "revision", "counts", "url", "report"] {
            assert_eq!(first[field], second[field], "{field}");
        }
        assert_eq!(first["url"].is_null(), to.starts_with("sqlite:"));
        let shown = desk.json(0, &["show", "--project", "p", "--from", to, "--format", "json", "--items"]);
        assert_eq!(shown["headline"]["total"], 2);
        assert_eq!(shown["items"].as_array().unwrap().len(), 2);
        assert_eq!(shown["rounds"][0]["pushes"][0]["deliveries"], 2);
        assert_eq!(shown["rounds"][0]["repeats"], 1);
        let entries = std::fs::read_dir(desk.folder.path().join(".tallyonce/outbox")).unwrap();
        assert!(entries.filter_map(Result::ok).all(|e| e.file_name() == ".lock"), "the outbox is empty again");
    });
}

#[test]
fn other_outcomes_outside_ci_differ() {
    both_ways(|desk, to| {
        let push = ["push", "r.xml", "--run", "1", "--project", "p", "--to", to, "--json"];
        desk.json(0, &push);
        desk.file("r.xml", ALL_PASS);
        let finished = desk.run(5, &push);
        let value = object(&finished);
        assert_eq!((&value["state"], &value["difference"]["changed"]), (&"differs".into(), &1.into()));
        assert!(finished.stderr.contains("--on-difference"), "{finished}");
        let kept = desk.json(0, &[&push[..], &["--on-difference", "keep"]].concat());
        assert_eq!((&kept["state"], &kept["counts"]["failed"]), (&"replayed".into(), &1.into()));
        let key = kept["key"].as_str().unwrap();
        let promoted = desk.run(0, &["promote", key, "--to", to, "--project", "p"]);
        assert!(promoted.stdout.contains("2 passed"), "{promoted}");
        let again = desk.run(0, &["promote", key, "--to", to, "--project", "p"]);
        assert!(again.stdout.contains("promoted before"), "{again}");
        let shown = desk.run(0, &["show", "--revisions", key, "--from", to, "--project", "p"]);
        assert!(shown.stdout.contains("kept") && shown.stdout.contains("promoted of 2"), "{shown}");
    });
}

#[test]
fn a_re_run_revises_and_a_late_first_attempt_does_not() {
    both_ways(|desk, to| {
        let push = ["push", "r.xml", "--to", to, "--json"];
        let attempt = |n| github_env(7, n, "test", &format!("runner-{n}"));
        desk.run_in(0, &push, &attempt(1));
        desk.file("r.xml", ALL_PASS);
        let value = object(&desk.run_in(0, &push, &attempt(2)));
        assert_eq!((&value["state"], &value["counts"]["flaky"]), (&"revised".into(), &1.into()));
        assert_eq!(value["difference"]["class"], "semantic");
        assert_eq!((&value["project"], &value["cycle"]), (&"shop".into(), &"main".into()));
        desk.file("r.xml", ONE_FAILS);
        let late = object(&desk.run_in(0, &push, &attempt(1)));
        assert_eq!((&late["state"], &late["counts"]["passed"]), (&"replayed".into(), &2.into()));
    });
}

#[test]
fn two_legs_of_a_matrix_collide() {
    both_ways(|desk, to| {
        let push = ["push", "r.xml", "--to", to, "--json"];
        desk.run_in(0, &push, &github_env(7, 1, "test", "linux"));
        let finished = desk.run_in(5, &push, &github_env(7, 1, "test", "mac"));
        let value = object(&finished);
        assert_eq!((&value["state"], &value["code"]), (&"collision".into(), &"key-collision".into()));
        assert!(finished.stderr.contains("--shard"), "{finished}");
    });
}

#[test]
fn failed_tests_fail_the_command_only_when_told() {
    let desk = Desk::with_report();
    let value = desk.json(1, &["push", "r.xml", "--run", "1", "--fail-on", "failed", "--json"]);
    assert_eq!((&value["state"], &value["exit"]), (&"recorded".into(), &1.into()));
    desk.file("ok.xml", ALL_PASS);
    desk.run(0, &["push", "ok.xml", "--run", "2", "--fail-on", "failed"]);
}

#[test]
fn standard_input_patterns_and_folders() {
    let desk = Desk::new();
    desk.file("reports/deep/a.xml", ONE_FAILS);
    desk.file("reports/notes.xml", "<notes/>");
    let piped = desk.command(&["push", "-", "--run", "1", "--json"]).input(ONE_FAILS).output().unwrap();
    assert_eq!(object(&piped)["counts"]["total"], 2, "{piped}");
    let finished = desk.run(0, &["push", "reports", "--run", "2", "--json"]);
    assert_eq!(object(&finished)["report"]["files"], 1);
    assert!(finished.stderr.contains("notes.xml"), "{finished}");
    assert_eq!(desk.json(0, &["push", "reports/**/a.xml", "--run", "3", "--json"])["counts"]["total"], 2);
    // What the program itself writes is never taken for a report.
    desk.run(0, &["push", "**/a*", "tallyonce.db*", "--run", "4"]);
}
