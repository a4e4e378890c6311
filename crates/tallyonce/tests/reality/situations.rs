//! Everyday situations in CI and what the rules must yield, named after the rows of the collected list.

use proof::spawn::{Server, github_env, gitlab_env};
use serde_json::Value;

use crate::world::{Outcome, World, junit, junit_named, junit_of};

/// A world with a server, pushed to as from GitHub.
struct Github {
    world: World,
    server: Server,
}

impl Github {
    fn new() -> Self {
        let world = World::new();
        let server = world.serve();
        Self { world, server }
    }

    fn push(&self, run: u64, attempt: u32, report: &str, more: &[&str]) -> Outcome {
        self.push_by(run, attempt, "test", &format!("runner-{attempt}"), report, more)
    }

    fn push_by(&self, run: u64, attempt: u32, job: &str, runner: &str, report: &str, more: &[&str]) -> Outcome {
        self.world.report("junit.xml", report);
        let url = self.server.url();
        let arguments = [&["junit.xml", "--project", "shop", "--cycle", "main", "--to", &url], more].concat();
        self.world.push(&arguments, &github_env(run, attempt, job, runner))
    }

    fn show(&self, more: &[&str]) -> Value {
        self.world.show(&[&["--cycle", "main", "--from", &self.server.url()], more].concat())
    }

    #[track_caller]
    fn headline(&self) -> [u64; 5] {
        numbers(&self.show(&[])["headline"])
    }

    fn item(&self, name: &str) -> Value {
        let shown = self.show(&["--items", "--round", "latest"]);
        shown["items"].as_array().unwrap().iter().find(|i| i["item"]["name"] == name).unwrap().clone()
    }
}

/// total, passed, failed, errored, flaky
fn numbers(counts: &Value) -> [u64; 5] {
    ["total", "passed", "failed", "errored", "flaky"].map(|word| counts[word].as_u64().unwrap())
}

fn fifty(bad: usize) -> String {
    junit_of("suite", (0..50).map(|n| (format!("test {n}"), if n >= 50 - bad { 'f' } else { 'p' })))
}

#[test]
fn s1_a_matrix_with_index_and_values_passed() {
    let github = Github::new();
    let mut keys = Vec::new();
    for os in ["linux", "mac"] {
        for shard in ["1/2", "2/2"] {
            let complete = github.show_complete();
            assert!(!complete, "complete only with all four");
            let variant = format!("os={os}");
            let report = junit_named(&format!("part {shard}"), "test", "pp");
            let more = ["--shard", shard, "--variant", &variant, "--expect", "4"];
            let outcome = github.push_by(1, 1, "e2e", &format!("{os}-{shard}"), &report, &more).expect(0, "recorded");
            keys.push(outcome.json["key"].clone());
        }
    }
    assert!(github.show_complete());
    keys.dedup();
    assert_eq!(keys.len(), 4);
    let round = &github.show(&[])["rounds"][0];
    assert_eq!((&round["overlaps"], numbers(&round["counts"])[0]), (&0.into(), 8));
}

impl Github {
    fn show_complete(&self) -> bool {
        let url = self.server.url();
        let arguments =
            ["show", "--project", "shop", "--format", "json", "--cycle", "main", "--from", &url, "--round", "latest"];
        let finished = self.world.run(&arguments).output().unwrap();
        let shown: Value = serde_json::from_str(&finished.stdout).unwrap_or(Value::Null);
        shown["rounds"][0]["complete"] == true
    }
}

#[test]
fn s2_a_matrix_with_nothing_passed_and_other_items() {
    let github = Github::new();
    github.push_by(1, 1, "test", "linux", &junit_named("a", "unit", "pppp"), &[]).expect(0, "recorded");
    let second = github.push_by(1, 1, "test", "mac", &junit_named("b", "e2e", "pppp"), &[]).expect(5, "collision");
    assert_eq!(second.json["code"], "key-collision");
    let rerun = github.push_by(1, 2, "test", "mac-2", &junit_named("b", "e2e", "pppp"), &[]);
    rerun.expect(5, "collision");
    assert_eq!(github.headline()[0], 4);
}

#[test]
fn s3_a_matrix_with_nothing_passed_and_equal_green_items() {
    let github = Github::new();
    github.push_by(1, 1, "test", "linux", &junit("pppp"), &[]).expect(0, "recorded");
    github.push_by(1, 1, "test", "mac", &junit("pppp"), &[]).expect(5, "collision");
    github.push_by(1, 2, "test", "mac-2", &junit("pppp"), &[]).expect(5, "collision");
    github.push_by(1, 1, "test", "linux", &junit("pppp"), &[]).expect(0, "replayed");
}

#[test]
fn s4_a_reusable_workflow_called_twice() {
    let github = Github::new();
    github.push_by(1, 1, "test", "call-1", &junit("pp"), &[]).expect(0, "recorded");
    let second = github.push_by(1, 1, "test", "call-2", &junit("pp"), &[]).expect(5, "collision");
    assert!(second.stderr.contains("--job"), "the words name the cure: {}", second.stderr);
}

#[test]
fn s5_failed_jobs_run_again_and_pass() {
    let github = Github::new();
    github.push(1, 1, &fifty(3), &[]).expect(0, "recorded");
    assert_eq!(github.headline(), [50, 47, 3, 0, 0]);
    let second = github.push(1, 2, &fifty(0), &[]).expect(0, "revised");
    assert_eq!(numbers(&second.json["counts"]), [50, 50, 0, 0, 3]);
    assert_eq!(
        (&second.json["difference"]["class"], &second.json["difference"]["changed"]),
        (&"semantic".into(), &3.into())
    );
    assert_eq!(github.headline(), [50, 50, 0, 0, 3]);
    let item = github.item("test 49");
    assert_eq!((&item["flaky"], &item["attempts"][0]["status"]), (&true.into(), &"failed".into()));
    github.push(1, 2, &fifty(0), &[]).expect(0, "replayed");
}

#[test]
fn s6_only_the_three_failed_tests_run_again() {
    let github = Github::new();
    github.push(1, 1, &fifty(3), &[]).expect(0, "recorded");
    let three = junit_of("suite", (47..50).map(|n| (format!("test {n}"), 'p')));
    let second = github.push(1, 2, &three, &[]).expect(0, "revised");
    assert_eq!(second.json["difference"]["not_offered"], 47);
    assert_eq!(github.headline(), [50, 50, 0, 0, 3]);
}

#[test]
fn s7_the_first_attempt_comes_late() {
    let github = Github::new();
    github.push(1, 2, &fifty(0), &[]).expect(0, "recorded");
    let late = github.push(1, 1, &fifty(3), &[]).expect(0, "replayed");
    assert_eq!(late.json["difference"]["class"], "semantic");
    assert_eq!(github.headline(), [50, 50, 0, 0, 0]);
    github.push(1, 1, &fifty(3), &[]).expect(0, "replayed");
}

#[test]
fn s8_a_cut_first_attempt_is_completed_by_the_second() {
    let github = Github::new();
    let whole = junit_of("suite", (0..500).map(|n| (format!("test {n}"), 'p')));
    let at = whole.match_indices("<testcase").nth(200).unwrap().0;
    let cut = github.push(1, 1, &whole[..at], &["--partial"]).expect(0, "recorded");
    assert_eq!((cut.total(), &cut.json["report"]["damaged"]), (200, &1.into()));
    github.push(1, 2, &whole, &[]).expect(0, "revised");
    assert_eq!(github.headline(), [500, 500, 0, 0, 0]);
}

#[test]
fn s9_fail_pass_fail() {
    let github = Github::new();
    for (attempt, verdict) in [(1, "f"), (2, "p"), (3, "f")] {
        let state = if attempt == 1 { "recorded" } else { "revised" };
        github.push(1, attempt, &junit(verdict), &[]).expect(0, state);
    }
    assert_eq!(github.headline(), [1, 0, 1, 0, 0]);
    let item = github.item("test 0");
    let before: Vec<&str> =
        item["attempts"].as_array().unwrap().iter().map(|a| a["status"].as_str().unwrap()).collect();
    assert_eq!((before, &item["status"]), (vec!["failed", "passed"], &"failed".into()));
}

#[test]
fn s11_a_node_gets_no_test_after_a_new_split() {
    let github = Github::new();
    github.push(1, 1, &junit("ppp"), &["--shard", "1/2"]).expect(0, "recorded");
    let empty = "<testsuites><testsuite name=\"suite\"/></testsuites>";
    let second = github.push(1, 2, empty, &["--shard", "1/2", "--allow-empty"]);
    assert_eq!(second.code, 0, "{:#}", second.json);
    assert_eq!(second.total(), 3);
}

fn gitlab(github: &Github, job_id: u64, name: &str, node: Option<(u32, u32)>, report: &str) -> Outcome {
    github.world.report("junit.xml", report);
    let url = github.server.url();
    let arguments = ["junit.xml", "--project", "shop", "--cycle", "main", "--to", &url];
    github.world.push(&arguments, &gitlab_env(77, job_id, name, node))
}

#[test]
fn s12_a_gitlab_job_is_retried() {
    let here = Github::new();
    for shard in 1..=3 {
        let report = junit_named(&format!("part {shard}"), "test", if shard == 2 { "pf" } else { "pp" });
        gitlab(&here, 100 + u64::from(shard), &format!("rspec {shard}/3"), Some((shard, 3)), &report)
            .expect(0, "recorded");
    }
    let retried =
        gitlab(&here, 110, "rspec 2/3", Some((2, 3)), &junit_named("part 2", "test", "pp")).expect(0, "revised");
    assert_eq!((&retried.json["job"], &retried.json["shard"]), (&"rspec".into(), &"2/3".into()));
    let round = &here.show(&[])["rounds"][0];
    assert_eq!((&round["complete"], numbers(&round["counts"])), (&true.into(), [6, 6, 0, 0, 1]));
}

#[test]
fn s13_a_gitlab_matrix_is_one_job_of_two_variants() {
    let here = Github::new();
    gitlab(&here, 101, "rspec: [ruby3, pg]", Some((1, 2)), &junit("pp")).expect(0, "recorded");
    gitlab(&here, 102, "rspec: [ruby3, mysql]", Some((2, 2)), &junit("pp")).expect(0, "recorded");
    let round = &here.show(&["--round", "latest"])["rounds"][0];
    assert_eq!((&round["overlaps"], numbers(&round["counts"])[0]), (&0.into(), 4));
    assert!(round["shards"].as_array().unwrap().iter().all(|s| s["job"] == "rspec"));
}

#[test]
fn s21_two_jobs_push_the_same_items_without_variant() {
    let github = Github::new();
    github.push_by(1, 1, "test-linux", "linux", &junit("ppp"), &[]).expect(0, "recorded");
    github.push_by(1, 1, "test-mac", "mac", &junit("pfp"), &[]).expect(0, "recorded");
    let round = &github.show(&[])["rounds"][0];
    assert_eq!((&round["overlaps"], numbers(&round["counts"])), (&3.into(), [3, 2, 1, 0, 0]));
    let url = github.server.url();
    let words = github.world.run(&["show", "--project", "shop", "--cycle", "main", "--from", &url]).output().unwrap();
    assert!(words.stdout.contains("--variant") || words.stderr.contains("--variant"), "{}", words.stdout);
}

#[test]
fn s22_a_nightly_run_twice_on_one_commit() {
    let github = Github::new();
    github.push(1, 1, &junit("pp"), &[]).expect(0, "recorded");
    github.push(2, 1, &junit("pp"), &[]).expect(0, "recorded");
    assert_eq!(github.show(&["--round", "all"])["rounds"].as_array().unwrap().len(), 2);
    assert_eq!(github.headline()[0], 2);
}

#[test]
fn s23_a_developer_pushes_twice_with_one_run_after_a_fix() {
    let world = World::new();
    world.report("junit.xml", &junit("pf"));
    world.push_local("r1", &["junit.xml"]).expect(0, "recorded");
    world.report("junit.xml", &junit("pp"));
    let second = world.push_local("r1", &["junit.xml"]).expect(5, "differs");
    assert!(second.stderr.contains("--run") && second.stderr.contains("--on-difference"), "{}", second.stderr);
    assert_eq!(second.json["difference"]["changed"], 1);
    assert_eq!(world.show(&[])["headline"]["failed"], 1, "nothing was stored");
    world.push_local("r1", &["junit.xml", "--on-difference", "revise"]).expect(0, "revised");
}

#[test]
fn s25_unit_and_e2e_in_two_steps_under_one_key() {
    let github = Github::new();
    github.push(1, 1, &junit_named("unit", "adds", "pppp"), &[]).expect(0, "recorded");
    let second = github.push(1, 1, &junit_named("e2e", "buys", "pppp"), &[]).expect(5, "collision");
    assert_eq!(second.json["code"], "key-collision");
    assert!(second.stderr.contains("--job"), "{}", second.stderr);
    github.push(1, 1, &junit_named("e2e", "buys", "pppp"), &["--job", "test-e2e"]).expect(0, "recorded");
}

#[test]
fn s26_one_report_to_two_projects() {
    let world = World::new();
    world.report("junit.xml", &junit("pp"));
    let push =
        |project: &str| world.push(&["junit.xml", "--run", "r1", "--project", project], &[]).expect(0, "recorded");
    let (shop, bank) = (push("shop"), push("bank"));
    assert_eq!(shop.json["key"], bank.json["key"]);
    assert_ne!(shop.json["push"], bank.json["push"]);
}

#[test]
fn s27_a_cancelled_pipeline_counts_only_once_closed() {
    let github = Github::new();
    for shard in 1..=7 {
        let report = junit_named(&format!("part {shard}"), "test", "p");
        github
            .push_by(1, 1, "e2e", &format!("r{shard}"), &report, &["--shard", &format!("{shard}/8")])
            .expect(0, "recorded");
    }
    let url = github.server.url();
    let wait = ["wait", "--round", "1", "--project", "shop", "--cycle", "main", "--to", &url, "--deadline", "1s"];
    assert_eq!(github.world.run(&wait).output().unwrap().code, Some(75), "not complete in time");
    assert_eq!(github.headline()[0], 0, "an incomplete round is no headline");
    let close = ["close", "--round", "1", "--project", "shop", "--cycle", "main", "--to", &url];
    let _ = github.world.run(&close).output().unwrap().expect_code(0).unwrap();
    assert_eq!(github.headline()[0], 7);
    let _ = github.world.run(&wait).output().unwrap().expect_code(0).unwrap();
    let late = github.push_by(1, 1, "e2e", "r8", &junit_named("part 8", "test", "p"), &["--shard", "8/8"]);
    late.expect(0, "recorded");
    let round = &github.show(&[])["rounds"][0];
    assert_eq!(numbers(&round["counts"])[0], 8, "closing refuses nothing");
    assert_eq!(round["pushes"].as_array().unwrap().iter().filter(|p| p["late"] == true).count(), 1);
}

#[test]
fn s28_two_workflows_make_one_headline() {
    let github = Github::new();
    for (run, workflow, suite) in [(1, "unit.yml", "unit"), (2, "e2e.yml", "e2e")] {
        github.world.report("junit.xml", &junit_named(suite, "test", "ppp"));
        let mut env = github_env(run, 1, "test", "runner");
        env.retain(|(name, _)| name != "GITHUB_WORKFLOW_REF");
        env.push(("GITHUB_WORKFLOW_REF".into(), format!("acme/shop/.github/workflows/{workflow}@refs/heads/main")));
        let url = github.server.url();
        github
            .world
            .push(&["junit.xml", "--project", "shop", "--cycle", "main", "--to", &url], &env)
            .expect(0, "recorded");
    }
    let shown = github.show(&[]);
    assert_eq!(shown["rounds"].as_array().unwrap().iter().filter(|r| r["authoritative"] == true).count(), 2);
    assert_eq!(numbers(&shown["headline"])[0], 6);
}

#[test]
fn s29_yesterdays_outbox_is_flushed_today() {
    let github = Github::new();
    let numbered = |run: u64, number: &str, report: &str| {
        github.world.report("junit.xml", report);
        let mut env = github_env(run, 1, "test", "runner");
        env.retain(|(name, _)| name != "GITHUB_RUN_NUMBER");
        env.push(("GITHUB_RUN_NUMBER".into(), number.into()));
        let url = github.server.url();
        github.world.push(&["junit.xml", "--project", "shop", "--cycle", "main", "--to", &url], &env)
    };
    numbered(200, "12", &junit("ppp")).expect(0, "recorded");
    numbered(100, "11", &junit("fff")).expect(0, "recorded");
    assert_eq!(github.headline(), [3, 3, 0, 0, 0]);
    let rounds = github.show(&["--round", "all"]);
    let runs: Vec<&str> = rounds["rounds"].as_array().unwrap().iter().map(|r| r["run"].as_str().unwrap()).collect();
    assert_eq!(runs, ["100", "200"], "in its place in order");
}

#[test]
fn s30_a_renamed_test_is_not_counted_twice() {
    let github = Github::new();
    github
        .push(1, 1, &junit_of("suite", [("old name".to_owned(), 'p'), ("stays".to_owned(), 'p')]), &[])
        .expect(0, "recorded");
    github
        .push(2, 1, &junit_of("suite", [("new name".to_owned(), 'p'), ("stays".to_owned(), 'p')]), &[])
        .expect(0, "recorded");
    assert_eq!(github.headline()[0], 2);
    assert_eq!(github.show(&[])["not_seen_since"], 1);
}

#[test]
fn s31_the_same_raw_bytes_are_the_same_content() {
    let github = Github::new();
    let post = || {
        let curl = std::process::Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--fail-with-body",
                "--include",
                "-H",
                "Idempotency-Key: raw-1",
                "--data-binary",
            ])
            .arg(junit("pfp"))
            .arg(format!("{}/api/v1/projects/shop/pushes?cycle=main&run=9", github.server.url()))
            .output()
            .unwrap();
        String::from_utf8(curl.stdout).unwrap()
    };
    assert!(!post().to_lowercase().contains("idempotent-replayed"));
    let again = post().to_lowercase();
    assert!(again.contains("idempotent-replayed: true") && again.contains("push-difference: none"), "{again}");
}

#[test]
fn s32_the_later_gitlab_job_wins_whatever_arrives_last() {
    let here = Github::new();
    gitlab(&here, 201, "rspec", None, &junit("pp")).expect(0, "recorded");
    gitlab(&here, 200, "rspec", None, &junit("ff")).expect(0, "replayed");
    assert_eq!(here.headline(), [2, 2, 0, 0, 0]);
}

#[test]
fn s34_the_merged_report_beside_its_parts() {
    let world = World::new();
    let part = |n: u32| {
        format!(
            "<testsuite name=\"part.Class{n}\" tests=\"2\"><testcase classname=\"part.Class{n}\" name=\"a\" time=\"0.1\"/><testcase classname=\"part.Class{n}\" name=\"b\" time=\"0.2\"/></testsuite>"
        )
    };
    world.report("reports/TEST-1.xml", &part(1));
    world.report("reports/TEST-2.xml", &part(2));
    world.report("reports/all.xml", &format!("<testsuites>{}{}</testsuites>", part(1), part(2)));
    let outcome = world.push_local("r1", &["reports/*.xml"]).expect(0, "recorded");
    assert_eq!(outcome.total(), 4);
    let warnings = outcome.json["warnings"].to_string();
    assert!(warnings.contains("all.xml") && warnings.contains("TEST-1.xml"), "both names: {warnings}");
}

#[test]
fn s35_ci_without_a_destination() {
    let world = World::new();
    world.report("junit.xml", &junit("pp"));
    let outcome = world.push(&["junit.xml"], &github_env(1, 1, "test", "runner")).expect(2, "usage");
    assert!(outcome.stderr.contains("--to"), "{}", outcome.stderr);
    assert!(!world.path("tallyonce.db").exists());
}

#[test]
fn a_person_promotes_what_was_kept() {
    let github = Github::new();
    github.push(1, 2, &fifty(0), &[]).expect(0, "recorded");
    let kept = github.push(1, 1, &fifty(3), &[]).expect(0, "replayed");
    let url = github.server.url();
    let promote = |more: &[&str]| {
        let all = [&["promote", kept.json["key"].as_str().unwrap(), "--to", &url, "--project", "shop"], more].concat();
        let _ = github.world.run(&all).output().unwrap().expect_code(0).unwrap();
    };
    promote(&[]);
    assert_eq!(github.headline(), [50, 47, 3, 0, 0]);
    promote(&["--revision", "1", "--exact"]);
    assert_eq!(github.headline(), [50, 50, 0, 0, 0]);
    github.push(1, 3, &fifty(1), &[]).expect(0, "revised");
    assert_eq!(github.headline(), [50, 49, 1, 0, 0]);
}

#[test]
fn keep_and_fail_do_as_they_say() {
    let github = Github::new();
    github.push(1, 1, &junit("pf"), &[]).expect(0, "recorded");
    github.push(1, 2, &junit("pp"), &["--on-difference", "fail"]).expect(5, "differs");
    assert_eq!(github.headline(), [2, 1, 1, 0, 0]);
    github.push(1, 2, &junit("pp"), &["--on-difference", "keep"]).expect(0, "replayed");
    assert_eq!(github.headline(), [2, 1, 1, 0, 0]);
}
