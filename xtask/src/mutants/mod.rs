//! `cargo xtask mutants [mN …]`: switches each fault of `domain::mutants` on, one at a time, in the very build that the
//! tests run in, and lets the checks that are named for it notice it. One that nobody notices fails the command.
//! Must not know what a fault does.

mod exam;
mod table;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail, ensure};
use domain::mutants::Mutant;

use crate::built::Built;
use crate::say;
use exam::{Verdict, examine};
use table::{Check, Fate, Suite, fate};

/// What came of one mutant.
struct Row {
    mutant: Mutant,
    result: Result<Vec<Verdict>>,
}

impl Row {
    /// True if the fault was noticed by all that are to notice it.
    fn is_killed(&self) -> bool {
        self.result.as_ref().is_ok_and(|verdicts| !verdicts.is_empty() && verdicts.iter().all(|verdict| verdict.killed))
    }

    fn in_words(&self) -> String {
        let verdicts = match &self.result {
            Ok(verdicts) => verdicts,
            Err(error) => return format!("NOT EXAMINED: {error:#}"),
        };
        let of = |killed: bool| verdicts.iter().filter(move |verdict| verdict.killed == killed);
        let list = |killed| of(killed).map(|verdict| verdict.check.to_string()).collect::<Vec<_>>().join(", ");
        match (of(true).count(), of(false).count()) {
            (_, 0) => format!("killed by {}", list(true)),
            (0, _) => format!("SURVIVES {}", list(false)),
            _ => format!("killed by {}, but SURVIVES {}", list(true), list(false)),
        }
    }
}

/// Runs the command; `names` chooses some.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let chosen = chosen(names)?;
    let built = Built::make()?;
    let checks = |mutant: &Mutant| match fate(*mutant) {
        Fate::Killed(checks) => checks,
        Fate::Waits(_) => &[],
    };
    let killable: Vec<Mutant> = chosen.iter().copied().filter(|mutant| !checks(mutant).is_empty()).collect();
    let all: Vec<Check> = killable.iter().flat_map(checks).copied().collect();
    say(&format!("xtask: {} checks without a fault", all.len()));
    sound(&built, &all)?;
    let rows = in_parallel(&killable, |mutant| Row {
        mutant,
        result: by_suite(checks(&mutant)).into_iter().try_fold(Vec::new(), |mut verdicts, (suite, tests)| {
            verdicts.extend(examine(&built, suite, &tests, Some(mutant))?);
            Ok(verdicts)
        }),
    });
    report(&chosen, &rows)
}

fn chosen(names: &[String]) -> Result<Vec<Mutant>> {
    if names.is_empty() {
        return Ok(Mutant::ALL.to_vec());
    }
    names.iter().map(|name| Mutant::parse(name).with_context(|| format!("there is no mutant {name:?}"))).collect()
}

fn by_suite(checks: &[Check]) -> BTreeMap<Suite, Vec<Check>> {
    let mut suites: BTreeMap<Suite, Vec<Check>> = BTreeMap::new();
    for check in checks {
        let tests = suites.entry(check.suite).or_default();
        if !tests.contains(check) {
            tests.push(*check);
        }
    }
    suites
}

/// A check that fails anyway shows nothing.
fn sound(built: &Built, checks: &[Check]) -> Result<()> {
    let suites: Vec<(Suite, Vec<Check>)> = by_suite(checks).into_iter().collect();
    for verdicts in in_parallel(&suites, |(suite, tests)| examine(built, suite, &tests, None)) {
        let failed: Vec<String> = verdicts?.into_iter().filter(|v| v.killed).map(|v| v.check.to_string()).collect();
        ensure!(failed.is_empty(), "fails without any fault: {}", failed.join(", "));
    }
    Ok(())
}

/// Results in the order of the jobs, made by as many threads as there are cores.
fn in_parallel<J: Clone + Sync, R: Send>(jobs: &[J], work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((at, job)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, jobs.get(at)?)))
                {
                    let result = work(job.clone());
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// A table of all that were chosen; fails if a check that is to notice one doesn't.
fn report(chosen: &[Mutant], rows: &[Row]) -> Result<()> {
    for mutant in chosen {
        let row = rows.iter().find(|row| row.mutant == *mutant);
        let end = match fate(*mutant) {
            Fate::Waits(part) => format!("waits for {part}"),
            Fate::Killed(_) => row.map_or_else(|| "SURVIVES: no check is named".to_owned(), Row::in_words),
        };
        say(&format!("mutant {} | {} | {end}", mutant.name(), mutant.what()));
    }
    let waits = |mutant: &&Mutant| matches!(fate(**mutant), Fate::Waits(_));
    let waiting = chosen.iter().filter(waits).count();
    let killed: Vec<Mutant> = rows.iter().filter(|row| row.is_killed()).map(|row| row.mutant).collect();
    let left = chosen.iter().filter(|mutant| !waits(mutant) && !killed.contains(mutant));
    let left: Vec<String> = left.map(|mutant| mutant.name()).collect();
    say(&format!("mutants: {} killed, {waiting} wait for later parts, {} left", killed.len(), left.len()));
    if left.is_empty() { Ok(()) } else { bail!("not noticed as they should be: {}", left.join(", ")) }
}
