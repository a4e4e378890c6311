//! S33: two attempts stage under one key, and what each has put lies side by side. The processes are stopped at points of
//! their own, so that it is the same in every run. Needs a program built with the points (`cargo xtask test` does).

use std::path::{Path, PathBuf};
use std::time::Duration;

use proof::spawn::{Running, github_env};

use super::{Ci, Cuts, Machine, tests};
use crate::world::{Outcome, PATIENCE};

/// The first attempt is cut into eight chunks, the second into four.
const CUTS: Cuts = &[8, 4];
const MANY: usize = 200;
/// Two chunks of it are there.
const BETWEEN_CHUNKS: &str = "client:put:done@2";
/// All of them are there.
const BEFORE_COMMIT: &str = "client:commit:send";

/// Points that tell that the server has answered.
const BEGIN_ANSWERED: &str = "client:begin:done";
const COMMIT_ANSWERED: &str = "client:commit:done";

/// An attempt that has stopped at a point.
struct Stopped {
    machine: Machine,
    running: Running,
    gate: PathBuf,
}

impl Stopped {
    fn goes_on(&self) {
        std::fs::remove_file(&self.gate).unwrap();
    }

    fn ended(self) -> Outcome {
        self.machine.ended(self.running.wait(PATIENCE).unwrap())
    }
}

fn attempt(ci: &Ci, number: u32) -> Machine {
    // All of it fails in the first attempt, and nothing in the second: a mixture would show.
    let report = tests("suite", MANY, if number == 1 { MANY } else { 0 });
    ci.machine(&github_env(1, number, "test", &format!("runner-{number}")), &report, &[])
}

/// A file that appears once the attempt comes to a point, and the variable for it.
fn trace(ci: &Ci, number: u32, point: &str) -> (PathBuf, String) {
    let file = ci.world.path(&format!("trace-{number}"));
    let variable = format!("{}={point}", file.display());
    (file, variable)
}

/// Waits until there is something in a file.
fn wait_for(file: &Path, running: &Running) {
    while !std::fs::metadata(file).is_ok_and(|file| file.len() > 0) {
        assert!(!running.ended(Duration::from_millis(10)), "it ended too early: {}", running.stderr());
    }
}

fn stopped(ci: &Ci, number: u32, point: &str) -> Stopped {
    stopped_of(ci, number, point, attempt(ci, number))
}

fn stopped_of(ci: &Ci, number: u32, point: &str, machine: Machine) -> Stopped {
    let gate = ci.world.path(&format!("gate-{number}"));
    let hold = format!("{point}={}", gate.display());
    let running = machine.run.clone().env("TALLYONCE_HOLD_AT", hold).start().unwrap();
    while !gate.exists() {
        assert!(!running.ended(Duration::from_millis(10)), "it ended and did not come to {point}");
    }
    Stopped { machine, running, gate }
}

#[track_caller]
fn second_counts(ci: &Ci) {
    let many = MANY as u64;
    assert_eq!(ci.headline(), [many, many, 0, 0, 0]);
}

#[track_caller]
fn is_kept(first: Outcome) {
    let first = first.expect(0, "replayed");
    assert_eq!(first.json["difference"]["class"], "semantic", "{:#}", first.json);
    assert_eq!(first.json["difference"]["changed"], MANY);
}

#[test]
fn s33_the_first_runner_is_evicted_between_its_chunks() {
    let ci = Ci::new(CUTS);
    let first = stopped(&ci, 1, BETWEEN_CHUNKS);
    let second = stopped(&ci, 2, BETWEEN_CHUNKS);
    assert!(ci.shows_nothing(), "chunks of two epochs are there, and nothing is recorded");
    first.running.kill9();
    assert!(first.running.wait(PATIENCE).unwrap().was_killed());
    assert!(ci.shows_nothing());
    second.goes_on();
    let recorded = second.ended().expect(0, "recorded");
    assert_eq!(
        (&recorded.json["delivery"]["chunks_sent"], &recorded.json["delivery"]["resumed"]),
        (&4.into(), &false.into())
    );
    second_counts(&ci);
    // What the first runner left is delivered after all.
    let url = ci.server.url();
    let flush = ci.world.run(&["flush", "--json", "--to", &url]).folder(ci.world.path(&first.machine.folder));
    is_kept(first.machine.ended(flush.output().unwrap()));
    second_counts(&ci);
    ci.ends();
}

#[test]
fn s33_the_first_runner_goes_on_between_its_chunks() {
    let ci = Ci::new(CUTS);
    let first = stopped(&ci, 1, BETWEEN_CHUNKS);
    let second = stopped(&ci, 2, BETWEEN_CHUNKS);
    // It is fenced off at its next chunk, and waits for the other.
    first.goes_on();
    assert!(ci.shows_nothing());
    second.goes_on();
    second.ended().expect(0, "recorded");
    is_kept(first.ended());
    second_counts(&ci);
    ci.ends();
}

#[test]
fn s33_the_first_runner_goes_on_with_its_commit() {
    let ci = Ci::new(CUTS);
    let first = stopped(&ci, 1, BEFORE_COMMIT);
    assert!(ci.shows_nothing());
    let second = attempt(&ci, 2);
    second.ended(second.run.output().unwrap()).expect(0, "recorded");
    second_counts(&ci);
    first.goes_on();
    is_kept(first.ended());
    second_counts(&ci);
    ci.ends();
}

#[test]
fn s33_the_first_runner_commits_what_the_second_has_fenced_off() {
    let ci = Ci::new(CUTS);
    let (answered, variable) = trace(&ci, 1, COMMIT_ANSWERED);
    let mut machine = attempt(&ci, 1);
    machine.run = machine.run.env("TALLYONCE_TRACE_AT", variable);
    let first = stopped_of(&ci, 1, BEFORE_COMMIT, machine);
    let second = stopped(&ci, 2, BETWEEN_CHUNKS);
    first.goes_on();
    wait_for(&answered, &first.running);
    assert!(ci.shows_nothing(), "all of the first is there, and the second has taken its place");
    second.goes_on();
    second.ended().expect(0, "recorded");
    is_kept(first.ended());
    second_counts(&ci);
    ci.ends();
}

#[test]
fn s33_the_first_runner_comes_while_the_second_stands_before_its_commit() {
    // The machines come in the other order, and so do the cuts.
    let ci = Ci::new(&[4, 8]);
    let second = stopped(&ci, 2, BEFORE_COMMIT);
    let (answered, variable) = trace(&ci, 1, BEGIN_ANSWERED);
    let first = attempt(&ci, 1);
    let running = first.run.clone().env("TALLYONCE_TRACE_AT", variable).start().unwrap();
    // It has to wait, and takes nothing over.
    wait_for(&answered, &running);
    assert!(ci.shows_nothing());
    second.goes_on();
    second.ended().expect(0, "recorded");
    is_kept(first.ended(running.wait(PATIENCE).unwrap()));
    second_counts(&ci);
    ci.ends();
}
