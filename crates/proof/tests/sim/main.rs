//! Client, server and store in one process under a seeded network, clock and crash schedule: the production loop of
//! deliveries with its outbox, the production router, the memory engine. One seed is one world and one trace.
//!
//! `TALLYONCE_SIM_PUSHES=N` runs until faults have hit N pushes, `TALLYONCE_SIM_FROM=SEED` begins elsewhere,
//! `TALLYONCE_SIM_SEED=SEED` with the test `replay` prints one world. Must not judge by the code that it judges.

#![allow(clippy::disallowed_methods, reason = "how long a run takes is printed; how large it is, is asked for outside")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests may panic and print"
)]

mod checker;
mod content;
mod faults;
mod history;
mod mix;
mod network;
mod pairs;
mod people;
mod process;
mod readers;
mod sabotage;
mod scenario;
mod server;
mod sim;
mod store;
mod trace;
mod world;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use mix::Mix;
use pairs::Next;
use proof::rng::Rng;
use tempfile::TempDir;
use world::{Outcome, Setting, of_seed, run};

/// A world is a million small pieces.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Pushes that faults hit, in every submission.
const PUSHES: u64 = 200_000;
/// Every so manieth world runs twice.
const TWICE_EVERY: u64 = 64;

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Outboxes lie in memory where the machine has such a folder: what is proved here is the order of steps, not a disk.
fn scratch() -> TempDir {
    let memory = PathBuf::from("/dev/shm");
    let at = if memory.is_dir() { memory } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("tallyonce-sim-").tempdir_in(at).expect("a folder for outboxes")
}

fn failed(seed: u64, outcome: &Outcome) -> String {
    format!(
        "seed {seed}:\n  {}\nreplay: TALLYONCE_SIM_SEED={seed} cargo test -p tallyonce-proof --test sim -- replay --nocapture\n",
        outcome.violations.join("\n  ")
    )
}

/// Runs worlds from a seed on, until enough pushes were hit, and gives the mix and what failed.
fn many(from: u64, pushes: u64) -> (Mix, Vec<String>) {
    let (next, hit, stop) = (AtomicU64::new(from), AtomicU64::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let work = || {
        let scratch = scratch();
        let (mut mix, mut failures) = (Mix::default(), Vec::new());
        while hit.load(Ordering::Relaxed) < pushes && !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let outcome = run(of_seed(seed), &scratch.path().join("world"), false);
            let before = mix.faulted;
            mix.add(&outcome);
            hit.fetch_add(mix.faulted - before, Ordering::Relaxed);
            let again = seed % TWICE_EVERY == 0
                && run(of_seed(seed), &scratch.path().join("world"), false).hash != outcome.hash;
            if again {
                failures.push(format!("seed {seed} has another trace the second time"));
            }
            if !outcome.violations.is_empty() {
                failures.push(failed(seed, &outcome));
            }
            if failures.len() > 20 {
                stop.store(true, Ordering::Relaxed);
            }
        }
        (mix, failures)
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = (Mix::default(), Vec::new());
        for thread in running {
            let (mix, failures) = thread.join().expect("a thread of the simulation");
            all.0.join(&mix);
            all.1.extend(failures);
        }
        all
    })
}

#[test]
fn pushes_under_faults_are_recorded_once() {
    let (pushes, from) = (asked("TALLYONCE_SIM_PUSHES").unwrap_or(PUSHES), asked("TALLYONCE_SIM_FROM").unwrap_or(1));
    let started = Instant::now();
    let (mix, failures) = many(from, pushes);
    println!("{mix}seeds {from} to {}, {:.1} s", from + mix.worlds - 1, started.elapsed().as_secs_f64());
    assert!(failures.is_empty(), "{} worlds failed\n{}", failures.len(), failures.join("\n"));
    println!("0 lost, 0 duplicated, 0 half-visible, 0 suppressed, 0 unexplained in {} faulted pushes", mix.faulted);
    // In a few worlds chance has no time to be fair.
    if pushes >= 20_000 {
        assert!(mix.too_small().is_empty(), "too little of: {}", mix.too_small().join(", "));
    }
}

#[test]
fn replay() {
    let Some(seed) = asked("TALLYONCE_SIM_SEED") else { return };
    let scratch = scratch();
    let outcome = run(of_seed(seed), &scratch.path().join("world"), true);
    println!("{}", outcome.trace.join("\n"));
    println!("trace {:016x}", outcome.hash);
    assert!(outcome.violations.is_empty(), "{}", failed(seed, &outcome));
}

/// A checker that never fails proves nothing: each kind of damage must be noticed, in every world that it is done to.
#[test]
fn damage_on_purpose_is_noticed() {
    let scratch = scratch();
    for (sabotage, word) in sabotage::ALL {
        let mut noticed = 0;
        for seed in 1..=40 {
            let setting = Setting { sabotage: Some(sabotage), ..of_seed(seed) };
            let outcome = run(setting, &scratch.path().join("world"), false);
            let done = !outcome.violations.is_empty();
            let named = outcome.violations.iter().any(|violation| violation.contains(word));
            assert_eq!(done, named, "seed {seed}, {sabotage:?}: {:?}", outcome.violations);
            noticed += u32::from(named);
        }
        println!("{sabotage:?}: noticed in {noticed} of 40 worlds");
        assert!(noticed >= 20, "{sabotage:?} is noticed in {noticed} of 40 worlds");
    }
}

/// Runs some of a numbered set of cases on all threads.
fn all_of(numbers: &[u64], case: impl Fn(u64, &std::path::Path) -> Outcome + Sync) -> (u64, Vec<String>) {
    let (next, fired) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let scratch = scratch();
        let mut failures = Vec::new();
        while let Some(number) = numbers.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            let outcome = case(*number, &scratch.path().join("world"));
            fired.fetch_add(u64::from(outcome.left == 0), Ordering::Relaxed);
            if !outcome.violations.is_empty() {
                failures.push(format!("case {number}:\n  {}", outcome.violations.join("\n  ")));
            }
        }
        failures
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let failures = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("a thread of the simulation")).collect()
    });
    (fired.into_inner(), failures)
}

#[test]
fn every_single_fault_is_survived() {
    let singles = pairs::singles();
    let numbers: Vec<u64> = (0..2 * singles.len() as u64).collect();
    let (fired, failures) = all_of(&numbers, |number, folder| {
        let next = if number.is_multiple_of(2) { Next::SameSpool } else { Next::ExecutedAgain };
        pairs::run_faults(&[singles[number as usize / 2]], next, number, folder, false)
    });
    println!("{} single faults, {fired} of them happened to the end", numbers.len());
    assert!(failures.is_empty(), "{} failed\n{}", failures.len(), failures.join("\n"));
}

/// A tenth of them by seed, all with `TALLYONCE_SIM_PAIRS=1`; one with its trace with `TALLYONCE_SIM_PAIR=NUMBER`.
#[test]
fn every_ordered_pair_of_faults_is_survived() {
    let run_pair = |number: u64, folder: &std::path::Path, keep: bool| {
        let (first, second, next) = pairs::pair(number);
        pairs::run_faults(&[first, second], next, number, folder, keep)
    };
    if let Some(number) = asked("TALLYONCE_SIM_PAIR") {
        let outcome = run_pair(number, &scratch().path().join("world"), true);
        println!("{:?}\n{}", pairs::pair(number), outcome.trace.join("\n"));
        assert!(outcome.violations.is_empty(), "{}", outcome.violations.join("\n"));
        return;
    }
    let every = if asked("TALLYONCE_SIM_PAIRS").is_some() { 1 } else { 10 };
    let mut rng = Rng::new(1);
    let numbers: Vec<u64> = (0..pairs::pairs()).filter(|_| every == 1 || rng.below(every) == 0).collect();
    let (fired, failures) = all_of(&numbers, |number, folder| run_pair(number, folder, false));
    println!("{} of {} ordered pairs, {fired} of which happened to the end", numbers.len(), pairs::pairs());
    assert!(
        failures.is_empty(),
        "{} failed; one with its trace: TALLYONCE_SIM_PAIR=NUMBER cargo test -p tallyonce-proof --test sim -- pair --nocapture\n{}",
        failures.len(),
        failures.join("\n")
    );
}
