//! Everyday situations in CI and what the rules must yield, named after the rows of the collected list. Those in which
//! contents meet run in two forms: each push in one request, and staged, each cut at other places than the one before.

mod evicted;
mod inputs;
mod legs;
mod platforms;
mod rounds;

use std::cell::Cell;

use proof::spawn::{Finished, Run, Server, github_env};
use serde_json::Value;

use crate::world::{Outcome, World, junit_of, outcome};

/// Into how many chunks the pushes of a situation are cut, in turn; 1 is one request.
type Cuts = &'static [u64];

const WHOLE: Cuts = &[1];
const STAGED: [Cuts; 3] = [&[4, 2], &[1, 4], &[2, 1]];
/// Chunks are not cut smaller than this.
const LEAF: u64 = 16;

type Variables = Vec<(String, String)>;

/// The situation with each push in one request.
fn whole(situation: fn(&mut Ci)) {
    play(WHOLE, situation);
}

/// The situation with staged pushes, and with staged ones that meet others.
fn staged(situation: fn(&mut Ci)) {
    for cuts in STAGED {
        println!("chunks of the pushes in turn: {cuts:?}");
        play(cuts, situation);
    }
}

fn play(cuts: Cuts, situation: fn(&mut Ci)) {
    let mut ci = Ci::new(cuts);
    situation(&mut ci);
    ci.ends();
}

/// A world with a server, pushed to as from CI, each time from a machine of its own.
struct Ci {
    world: World,
    server: Server,
    cuts: Cuts,
    machines: Cell<usize>,
}

/// A push, ready to run.
struct Machine {
    folder: String,
    run: Run,
    chunks: u64,
}

impl Machine {
    /// What it came to. It was cut as it was told to be.
    #[track_caller]
    fn ended(&self, finished: Finished) -> Outcome {
        let outcome = outcome(finished);
        let chunks = &outcome.json["delivery"]["chunks"];
        assert_eq!(*chunks, self.chunks, "{:#}\n{}", outcome.json, outcome.stderr);
        outcome
    }
}

impl Ci {
    fn new(cuts: Cuts) -> Self {
        let world = World::new();
        let server = world.serve();
        Self { world, server, cuts, machines: Cell::new(0) }
    }

    /// The store is sound, and no item is in it twice.
    fn ends(self) {
        let Self { world, server, .. } = self;
        drop(server);
        world.check_store();
        let oracle = proof::oracle::Oracle::open(&world.path("tallyonce.db")).unwrap();
        assert_eq!(oracle.doubles().unwrap(), Vec::<String>::new());
    }

    fn machine(&self, env: &[(String, String)], report: &str, more: &[&str]) -> Machine {
        let nth = self.machines.replace(self.machines.get() + 1);
        let folder = format!("machine-{nth}");
        self.world.report(&format!("{folder}/junit.xml"), report);
        let items = report.matches("<testcase").count() as u64;
        let chunks = self.cuts[nth % self.cuts.len()].min(items.div_ceil(LEAF).max(1).next_power_of_two());
        let url = self.server.url();
        let arguments = ["push", "--json", "junit.xml", "--project", "shop", "--cycle", "main", "--to", &url];
        let mut run = self.world.run(&arguments).args(more).envs(env.iter().cloned());
        if chunks > 1 {
            run = run.arg("--chunk-outcomes").arg(items.div_ceil(chunks).to_string());
        }
        Machine { run: run.folder(self.world.path(&folder)), folder, chunks }
    }

    #[track_caller]
    fn push_from(&self, env: &[(String, String)], report: &str, more: &[&str]) -> Outcome {
        let machine = self.machine(env, report, more);
        machine.ended(machine.run.output().unwrap())
    }

    #[track_caller]
    fn push(&self, run: u64, attempt: u32, report: &str, more: &[&str]) -> Outcome {
        self.push_by(run, attempt, "test", &format!("runner-{attempt}"), report, more)
    }

    #[track_caller]
    fn push_by(&self, run: u64, attempt: u32, job: &str, runner: &str, report: &str, more: &[&str]) -> Outcome {
        self.push_from(&github_env(run, attempt, job, runner), report, more)
    }

    fn show(&self, more: &[&str]) -> Value {
        self.world.show(&[&["--cycle", "main", "--from", &self.server.url()], more].concat())
    }

    fn headline(&self) -> [u64; 5] {
        numbers(&self.show(&[])["headline"])
    }

    /// The one round, or the first.
    fn round(&self) -> Value {
        self.show(&["--round", "all"])["rounds"][0].clone()
    }

    fn words(&self) -> String {
        let url = self.server.url();
        let arguments = ["show", "--project", "shop", "--cycle", "main", "--from", &url, "--round", "all"];
        self.world.run(&arguments).output().unwrap().expect_code(0).unwrap().stdout
    }

    /// True if nothing at all is shown of the project.
    fn shows_nothing(&self) -> bool {
        let url = self.server.url();
        let show = ["show", "--project", "shop", "--cycle", "main", "--from", &url, "--round", "all"];
        self.world.run(&show).output().unwrap().code == Some(4)
    }

    fn item(&self, name: &str) -> Value {
        let shown = self.show(&["--items", "--round", "latest"]);
        shown["items"].as_array().unwrap().iter().find(|i| i["item"]["name"] == name).unwrap().clone()
    }
}

/// Two pushes at once.
fn race(machines: [Machine; 2]) -> [Outcome; 2] {
    let running = machines.map(|machine| (machine.run.start().unwrap(), machine));
    running.map(|(running, machine)| machine.ended(running.wait(crate::world::PATIENCE).unwrap()))
}

/// total, passed, failed, errored, flaky
fn numbers(counts: &Value) -> [u64; 5] {
    ["total", "passed", "failed", "errored", "flaky"].map(|word| counts[word].as_u64().unwrap())
}

/// Tests `test 0`, `test 1`, …, the last `bad` of which failed.
fn tests(suite: &str, many: usize, bad: usize) -> String {
    part(suite, 0..many, many - bad)
}

/// Of those, these numbers; they failed from `bad` on.
fn part(suite: &str, numbers: std::ops::Range<usize>, bad: usize) -> String {
    junit_of(suite, numbers.map(|n| (format!("test {n}"), if n >= bad { 'f' } else { 'p' })))
}

fn fifty(bad: usize) -> String {
    tests("suite", 50, bad)
}

#[test]
fn s5_failed_jobs_run_again_and_pass() {
    whole(failed_jobs_run_again);
}

#[test]
fn s5_staged_failed_jobs_run_again_and_pass() {
    staged(failed_jobs_run_again);
}

fn failed_jobs_run_again(ci: &mut Ci) {
    ci.push(1, 1, &fifty(3), &[]).expect(0, "recorded");
    assert_eq!(ci.headline(), [50, 47, 3, 0, 0]);
    let second = ci.push(1, 2, &fifty(0), &[]).expect(0, "revised");
    assert_eq!(numbers(&second.json["counts"]), [50, 50, 0, 0, 3]);
    assert_eq!(
        (&second.json["difference"]["class"], &second.json["difference"]["changed"]),
        (&"semantic".into(), &3.into())
    );
    assert_eq!(ci.headline(), [50, 50, 0, 0, 3]);
    let item = ci.item("test 49");
    assert_eq!((&item["flaky"], &item["attempts"][0]["status"]), (&true.into(), &"failed".into()));
    ci.push(1, 2, &fifty(0), &[]).expect(0, "replayed");
    assert_eq!(ci.headline(), [50, 50, 0, 0, 3]);
}

#[test]
fn s6_only_the_failed_tests_run_again() {
    whole(failed_tests_run_again);
}

#[test]
fn s6_staged_only_the_failed_tests_run_again() {
    staged(failed_tests_run_again);
}

fn failed_tests_run_again(ci: &mut Ci) {
    ci.push(1, 1, &fifty(20), &[]).expect(0, "recorded");
    let second = ci.push(1, 2, &part("suite", 30..50, 50), &[]).expect(0, "revised");
    assert_eq!(second.json["difference"]["not_offered"], 30);
    assert_eq!(ci.headline(), [50, 50, 0, 0, 20]);
    let three = ci.push(1, 3, &part("suite", 47..50, 47), &[]).expect(0, "revised");
    assert_eq!(three.json["difference"]["not_offered"], 47);
    assert_eq!(ci.headline(), [50, 47, 3, 0, 17]);
}

#[test]
fn s7_the_first_attempt_comes_late() {
    whole(the_first_attempt_comes_late);
}

#[test]
fn s7_staged_the_first_attempt_comes_late() {
    staged(the_first_attempt_comes_late);
}

fn the_first_attempt_comes_late(ci: &mut Ci) {
    ci.push(1, 2, &fifty(0), &[]).expect(0, "recorded");
    let late = ci.push(1, 1, &fifty(3), &[]).expect(0, "replayed");
    assert_eq!(
        (&late.json["difference"]["class"], &late.json["difference"]["changed"]),
        (&"semantic".into(), &3.into())
    );
    assert_eq!(ci.headline(), [50, 50, 0, 0, 0]);
    ci.push(1, 1, &fifty(3), &[]).expect(0, "replayed");
    assert_eq!(ci.headline(), [50, 50, 0, 0, 0]);
    // One whose answer was lost comes once more after the second: nothing is new in it.
    for (attempt, bad, state) in [(1, 3, "recorded"), (2, 0, "revised"), (1, 3, "replayed")] {
        ci.push(2, attempt, &fifty(bad), &[]).expect(0, state);
    }
    assert_eq!(ci.headline(), [50, 50, 0, 0, 3]);
    let latest = ci.show(&["--round", "latest"]);
    assert_eq!(latest["rounds"][0]["pushes"][0]["revision"], 2);
}

#[test]
fn s8_a_cut_first_attempt_is_completed_by_the_second() {
    whole(a_cut_attempt_is_completed);
}

#[test]
fn s8_staged_a_cut_first_attempt_is_completed_by_the_second() {
    staged(a_cut_attempt_is_completed);
}

fn a_cut_attempt_is_completed(ci: &mut Ci) {
    let all = tests("suite", 500, 0);
    let at = all.match_indices("<testcase").nth(200).unwrap().0;
    let cut = ci.push(1, 1, &all[..at], &["--partial"]).expect(0, "recorded");
    assert_eq!((cut.total(), &cut.json["report"]["damaged"]), (200, &1.into()));
    let second = ci.push(1, 2, &all, &[]).expect(0, "revised");
    assert_eq!(second.json["difference"]["added"], 300);
    assert_eq!(ci.headline(), [500, 500, 0, 0, 0]);
}

#[test]
fn s9_fail_pass_fail() {
    whole(fail_pass_fail);
}

#[test]
fn s9_staged_fail_pass_fail() {
    staged(fail_pass_fail);
}

fn fail_pass_fail(ci: &mut Ci) {
    for (attempt, bad) in [(1, 40), (2, 0), (3, 40)] {
        let state = if attempt == 1 { "recorded" } else { "revised" };
        ci.push(1, attempt, &tests("suite", 40, bad), &[]).expect(0, state);
    }
    assert_eq!(ci.headline(), [40, 0, 40, 0, 0]);
    let item = ci.item("test 0");
    let before: Vec<&str> =
        item["attempts"].as_array().unwrap().iter().map(|a| a["status"].as_str().unwrap()).collect();
    assert_eq!((before, &item["status"]), (vec!["failed", "passed"], &"failed".into()));
}

#[test]
fn s11_a_node_gets_no_test_after_a_new_split() {
    whole(a_node_gets_no_test);
}

#[test]
fn s11_staged_a_node_gets_no_test_after_a_new_split() {
    staged(a_node_gets_no_test);
}

fn a_node_gets_no_test(ci: &mut Ci) {
    let node = ["--shard", "1/2"];
    ci.push(1, 1, &tests("suite", 40, 4), &node).expect(0, "recorded");
    let empty = "<testsuites><testsuite name=\"suite\"/></testsuites>";
    let second = ci.push(1, 2, empty, &[&node[..], &["--allow-empty"]].concat());
    assert_eq!((second.code, second.total()), (0, 40), "{:#}", second.json);
    // What is left after the empty one takes a later attempt as before.
    let third = ci.push(1, 3, &tests("suite", 40, 0), &node).expect(0, "revised");
    assert_eq!(numbers(&third.json["counts"]), [40, 40, 0, 0, 4]);
}

#[test]
fn a_person_promotes_what_was_kept() {
    whole(a_person_promotes);
}

#[test]
fn a_person_promotes_what_was_staged_and_kept() {
    staged(a_person_promotes);
}

fn a_person_promotes(ci: &mut Ci) {
    ci.push(1, 2, &fifty(0), &[]).expect(0, "recorded");
    let kept = ci.push(1, 1, &fifty(3), &[]).expect(0, "replayed");
    let url = ci.server.url();
    let promote = |more: &[&str]| {
        let all = [&["promote", kept.json["key"].as_str().unwrap(), "--to", &url, "--project", "shop"], more].concat();
        let _ = ci.world.run(&all).output().unwrap().expect_code(0).unwrap();
    };
    promote(&[]);
    assert_eq!(ci.headline(), [50, 47, 3, 0, 0]);
    promote(&["--revision", "1", "--exact"]);
    assert_eq!(ci.headline(), [50, 50, 0, 0, 0]);
    ci.push(1, 3, &fifty(1), &[]).expect(0, "revised");
    assert_eq!(ci.headline(), [50, 49, 1, 0, 0]);
}

#[test]
fn keep_and_fail_do_as_they_say() {
    whole(keep_and_fail);
}

#[test]
fn keep_and_fail_do_as_they_say_of_staged_pushes() {
    staged(keep_and_fail);
}

fn keep_and_fail(ci: &mut Ci) {
    ci.push(1, 1, &fifty(3), &[]).expect(0, "recorded");
    ci.push(1, 2, &fifty(0), &["--on-difference", "fail"]).expect(5, "differs");
    assert_eq!(ci.headline(), [50, 47, 3, 0, 0]);
    ci.push(1, 2, &fifty(0), &["--on-difference", "keep"]).expect(0, "replayed");
    assert_eq!(ci.headline(), [50, 47, 3, 0, 0]);
}
