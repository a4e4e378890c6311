//! The fault matrix: every product, every strategy, every fault. Nothing stands there twice and nothing is lost, or the program
//! says so. Must not know what goes wrong in a push.
//!
//! `TALLYONCE_TARGET_PUSHES=N` makes N pushes of each with a product's default strategy, and `TALLYONCE_TARGET_OTHERS=N` with its
//! other ones; each further push breaks another call of the push.
//! `TALLYONCE_TARGET_ONLY=NAME` keeps to products whose name or way of testing holds that. `TALLYONCE_TARGET_LOG=FILE` appends a
//! line of JSON for each push. `TALLYONCE_WRITE_TABLE=1` writes the tables in `docs/targets` anew.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::Mutex;

use delivery::{Clock as _, SystemClock};
use serde_json::json;

use crate::beside;
use crate::live::Rigs;
use crate::matrix::{Case, Mode};
use crate::products::{ALL, Start};
use crate::verdict::{self, Seen, Tally};

/// How many pushes of each product, strategy and fault.
const PUSHES: usize = 5;
/// How many run at once against stubs: they mostly wait.
const AT_ONCE: usize = 40;
/// How many run at once against each real server, which has one core at most.
const AT_ONCE_LIVE: usize = 4;

/// A variable for those who run this by hand.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).and_then(|value| value.into_string().ok())
}

/// What every push is about, with its place in the table.
fn cases(rigs: &Rigs) -> Vec<((usize, usize, Mode), Case)> {
    let only = variable("TALLYONCE_TARGET_ONLY").unwrap_or_default();
    let number = |name, else_| variable(name).map_or(else_, |n| n.parse().expect("a number of pushes"));
    let usual = number("TALLYONCE_TARGET_PUSHES", PUSHES);
    let others = number("TALLYONCE_TARGET_OTHERS", PUSHES);
    let mut cases = Vec::new();
    for (place, product) in ALL.iter().enumerate() {
        let absent = matches!(product.start, Start::Live(vendor) if rigs.get(vendor).is_none());
        if absent || !format!("{} {}", product.name, product.tested).contains(&only) {
            continue;
        }
        for (at, strategy) in product.strategies.iter().enumerate() {
            let pushes = if at == 0 { usual } else { others };
            for mode in Mode::ALL {
                let count = if mode == Mode::Nothing { pushes.min(1) } else { pushes };
                let case = |push| ((place, at, mode), Case { product, strategy, mode, push });
                cases.extend((0..count).map(case));
            }
        }
    }
    // Those that wait longest for what they wrote to be shown go first.
    cases.sort_by_key(|(_, case)| std::cmp::Reverse(case.product.shown_after));
    cases
}

type Outcome = Result<Seen, String>;

/// Runs all of them, so many at once.
fn run_all(cases: &[((usize, usize, Mode), Case)], rigs: &Rigs) -> Vec<Outcome> {
    let log = variable("TALLYONCE_TARGET_LOG").map(|path| {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        Mutex::new(file.unwrap_or_else(|error| panic!("{path}: {error}")))
    });
    let (clock, done) = (SystemClock::new(), Mutex::<BTreeMap<usize, Outcome>>::default());
    // Each real server has a queue of its own, all stubs have one together.
    let mut queues: BTreeMap<&str, (usize, Vec<usize>)> = BTreeMap::new();
    for (at, (_, case)) in cases.iter().enumerate() {
        let (name, many) = if case.is_live() { (case.product.name, AT_ONCE_LIVE) } else { ("", AT_ONCE) };
        queues.entry(name).or_insert((many, Vec::new())).1.push(at);
    }
    std::thread::scope(|scope| {
        for (many, queue) in queues.into_values() {
            let next = std::sync::Arc::new(Mutex::new(queue.into_iter()));
            for _ in 0..many {
                let (next, done, log, clock) = (next.clone(), &done, log.as_ref(), &clock);
                scope.spawn(move || {
                    loop {
                        let Some(at) = next.lock().unwrap().next() else { return };
                        let began_ms = clock.now_ms();
                        let seen = cases[at].1.run(rigs);
                        note(log, &cases[at].1, &seen, clock.now_ms() - began_ms);
                        done.lock().unwrap().insert(at, seen);
                    }
                });
            }
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

/// Appends what came of a push to the log.
fn note(log: Option<&Mutex<File>>, case: &Case, seen: &Outcome, ms: u64) {
    let Some(log) = log else { return };
    let rows = seen.as_ref().map(|seen| seen.rows(case.strategy)).unwrap_or_default();
    let rows: BTreeMap<&str, Vec<String>> = rows
        .into_iter()
        .map(|(item, rows)| (item, rows.iter().map(|row| format!("{}: {}", row.id, row.status)).collect()))
        .collect();
    let said = match seen {
        Ok(seen) => seen.said.to_string(),
        Err(why) => why.clone(),
    };
    let line = json!({
        "target": case.product.name, "tested": case.product.tested, "strategy": case.strategy,
        "mode": case.mode.words(), "push": case.push + 1, "ms": ms,
        "ended": seen.is_ok(), "rows": rows, "said": said,
    });
    writeln!(log.lock().unwrap(), "{line}").unwrap();
}

#[test]
fn every_fault_at_every_product_leaves_each_outcome_once_or_is_named() {
    let vendors = ALL.iter().filter_map(|product| match product.start {
        Start::Live(vendor) => Some(vendor),
        Start::Stub(_) => None,
    });
    let rigs = Rigs::start(&vendors.collect::<Vec<_>>());
    let cases = cases(&rigs);
    let seen = run_all(&cases, &rigs);
    let mut clean: BTreeMap<(usize, usize), &Seen> = BTreeMap::new();
    for (((place, strategy, mode), case), seen) in cases.iter().zip(&seen) {
        if *mode == Mode::Nothing {
            let seen = seen.as_ref().unwrap_or_else(|why| panic!("{}: {why}", case.title()));
            clean.insert((*place, *strategy), seen);
        }
    }
    let (mut tallies, mut wrong) = (BTreeMap::<_, Tally>::new(), Vec::new());
    for ((row, case), seen) in cases.iter().zip(&seen) {
        let judged = seen.as_ref().map_err(String::clone);
        match judged.and_then(|seen| verdict::judge(case.strategy, seen, clean[&(row.0, row.1)])) {
            Ok(tally) => tallies.entry(*row).or_default().add(tally),
            Err(why) => wrong.push(format!("{}: {why}", case.title())),
        }
    }
    let table = verdict::table(&tallies);
    println!("{table}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    if variable("TALLYONCE_WRITE_TABLE").is_some() {
        verdict::write("faults.md", "matrix", &table);
        verdict::write("peers.md", "beside", &beside::table(&tallies));
    }
}
