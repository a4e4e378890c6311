//! Rounds, cycles and projects: what is a round of its own, which one counts, and what is listed beside it.

use proof::spawn::github_env;

use super::{Ci, Variables, numbers, staged, tests, whole};
use crate::world::{World, junit, junit_named, junit_of};

/// On GitHub, with one variable as given.
fn github_with(run: u64, name: &str, value: &str) -> Variables {
    let mut env = github_env(run, 1, "test", "runner");
    env.retain(|(variable, _)| variable != name);
    env.push((name.to_owned(), value.to_owned()));
    env
}

#[test]
fn s22_a_nightly_run_twice_on_one_commit() {
    whole(|ci| {
        for run in [1, 2] {
            let env = github_with(run, "GITHUB_SHA", "5b1c6e9f0d2a4738b5c6d7e8f9a0b1c2d3e4f506");
            ci.push_from(&env, &junit("pp"), &[]).expect(0, "recorded");
        }
        assert_eq!(ci.show(&["--round", "all"])["rounds"].as_array().unwrap().len(), 2);
        assert_eq!(ci.headline()[0], 2);
    });
}

#[test]
fn s23_a_developer_pushes_twice_with_one_run_after_a_fix() {
    whole(the_same_run_after_a_fix);
}

#[test]
fn s23_staged_a_developer_pushes_twice_with_one_run_after_a_fix() {
    staged(the_same_run_after_a_fix);
}

fn the_same_run_after_a_fix(ci: &mut Ci) {
    let (before, after) = (tests("suite", 40, 1), tests("suite", 40, 0));
    ci.push_from(&[], &before, &["--run", "r1"]).expect(0, "recorded");
    let second = ci.push_from(&[], &after, &["--run", "r1"]).expect(5, "differs");
    assert!(second.stderr.contains("--run") && second.stderr.contains("--on-difference"), "{}", second.stderr);
    assert_eq!(second.json["difference"]["changed"], 1);
    assert_eq!(ci.headline(), [40, 39, 1, 0, 0], "nothing was stored");
    ci.push_from(&[], &after, &["--run", "r1", "--on-difference", "revise"]).expect(0, "revised");
    assert_eq!(ci.headline(), [40, 40, 0, 0, 1]);
    ci.push_from(&[], &before, &["--run", "r2"]).expect(0, "recorded");
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
    whole(|ci| {
        for shard in 1..=7 {
            let report = junit_named(&format!("part {shard}"), "test", "p");
            ci.push_by(1, 1, "e2e", &format!("r{shard}"), &report, &["--shard", &format!("{shard}/8")])
                .expect(0, "recorded");
        }
        let url = ci.server.url();
        let wait = ["wait", "--round", "1", "--project", "shop", "--cycle", "main", "--to", &url, "--deadline", "1s"];
        assert_eq!(ci.world.run(&wait).output().unwrap().code, Some(75), "not complete in time");
        assert_eq!(ci.headline()[0], 0, "an incomplete round is no headline");
        let close = ["close", "--round", "1", "--project", "shop", "--cycle", "main", "--to", &url];
        let _ = ci.world.run(&close).output().unwrap().expect_code(0).unwrap();
        assert_eq!(ci.headline()[0], 7);
        let _ = ci.world.run(&wait).output().unwrap().expect_code(0).unwrap();
        let late = ci.push_by(1, 1, "e2e", "r8", &junit_named("part 8", "test", "p"), &["--shard", "8/8"]);
        late.expect(0, "recorded");
        let round = ci.round();
        assert_eq!(numbers(&round["counts"])[0], 8, "closing refuses nothing");
        assert_eq!(round["pushes"].as_array().unwrap().iter().filter(|p| p["late"] == true).count(), 1);
    });
}

#[test]
fn s28_two_workflows_make_one_headline() {
    whole(|ci| {
        for (run, workflow, suite) in [(1, "unit.yml", "unit"), (2, "e2e.yml", "e2e")] {
            let file = format!("acme/shop/.github/workflows/{workflow}@refs/heads/main");
            let env = github_with(run, "GITHUB_WORKFLOW_REF", &file);
            ci.push_from(&env, &junit_named(suite, "test", "ppp"), &[]).expect(0, "recorded");
        }
        let shown = ci.show(&[]);
        assert_eq!(shown["rounds"].as_array().unwrap().iter().filter(|r| r["authoritative"] == true).count(), 2);
        assert_eq!(numbers(&shown["headline"])[0], 6);
    });
}

#[test]
fn s29_yesterdays_outbox_is_flushed_today() {
    whole(an_outbox_is_flushed_later);
}

#[test]
fn s29_staged_yesterdays_outbox_is_flushed_today() {
    staged(an_outbox_is_flushed_later);
}

fn an_outbox_is_flushed_later(ci: &mut Ci) {
    let numbered = |run: u64, number: &str| github_with(run, "GITHUB_RUN_NUMBER", number);
    ci.server.kill9().unwrap();
    let yesterday = ci.machine(&numbered(100, "11"), &tests("suite", 40, 40), &["--deadline", "0s"]);
    let kept = yesterday.ended(yesterday.run.output().unwrap());
    assert_eq!(kept.code, 75, "{:#}", kept.json);
    ci.server.restart().unwrap();
    ci.push_from(&numbered(200, "12"), &tests("suite", 40, 0), &[]).expect(0, "recorded");
    let url = ci.server.url();
    let flush = ci.world.run(&["flush", "--json", "--to", &url]).folder(ci.world.path(&yesterday.folder));
    yesterday.ended(flush.output().unwrap()).expect(0, "recorded");
    assert_eq!(ci.headline(), [40, 40, 0, 0, 0]);
    let rounds = ci.show(&["--round", "all"]);
    let runs: Vec<&str> = rounds["rounds"].as_array().unwrap().iter().map(|r| r["run"].as_str().unwrap()).collect();
    assert_eq!(runs, ["100", "200"], "in its place in order");
}

#[test]
fn s30_a_renamed_test_is_not_counted_twice() {
    whole(|ci| {
        for (run, name) in [(1, "old name"), (2, "new name")] {
            let report = junit_of("suite", [(name.to_owned(), 'p'), ("stays".to_owned(), 'p')]);
            ci.push(run, 1, &report, &[]).expect(0, "recorded");
        }
        assert_eq!(ci.headline()[0], 2);
        assert_eq!(ci.show(&[])["not_seen_since"], 1);
    });
}
