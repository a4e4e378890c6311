//! Single faults in real processes, enumerated and not sampled: every point that a push passes in client, server and
//! store, and the 330 of the facts. `TALLYONCE_ENUMERATE=all` runs every pass of every point in both ways to go on, in
//! every flow; without it those of the table, and every point at its first pass. Needs a program built with the points.

mod case;
mod cells;
mod points;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use proof::history::Tally;

use case::{Again, Case, Done, Fault, MESSAGES, run, trace};
use points::{ELSEWHERE, Hit, Passed, in_the_sources};

use crate::bench::Flow;

/// Worlds at a time: processes wait for each other and for the disk more than they reckon.
const WORLDS: usize = 6;
/// How often a case is tried whose point was not passed: puts of one push may share a transaction.
const TRIES: u32 = 4;

fn everything() -> bool {
    std::env::var_os("TALLYONCE_ENUMERATE").is_some_and(|word| word == "all")
}

/// Points at which a process can die, but which cannot fail by themselves.
fn only_kills(point: &str) -> bool {
    let of_transaction = ["store:txn:begin", "store:txn:commit-before", "store:txn:commit-after"];
    !point.starts_with("store:")
        || of_transaction.contains(&point)
        || point.starts_with("store:queue:")
        || point.starts_with("store:read:")
}

/// A case, another pass of the same point where this one may not be reached every time.
fn attempt(case: &Case) -> Result<Done, String> {
    let mut case = case.clone();
    let mut last = run(&case)?;
    for _ in 1..TRIES {
        if last.fired {
            break;
        }
        match &mut case.fault {
            Fault::Server(hit) | Fault::Client(hit) | Fault::Database(hit) | Fault::Runner(hit) => {
                hit.nth = hit.nth.saturating_sub(1).max(1);
            }
            Fault::Message(..) => {}
        }
        last = run(&case)?;
    }
    Ok(last)
}

#[derive(Default)]
struct Sum {
    tally: Tally,
    fired: BTreeMap<&'static str, u64>,
    ends: BTreeMap<String, u64>,
    silent: Vec<String>,
    wrong: Vec<String>,
}

fn kind(fault: &Fault) -> &'static str {
    match fault {
        Fault::Server(_) => "server killed",
        Fault::Client(_) => "client killed",
        Fault::Database(_) => "statement failed",
        Fault::Runner(_) => "client killed, server held",
        Fault::Message(..) => "message",
    }
}

fn run_all(cases: &BTreeSet<Case>) -> Sum {
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(Sum::default()));
    let cases: Vec<&Case> = cases.iter().collect();
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let done = std::panic::catch_unwind(|| attempt(case)).unwrap_or_else(|panic| {
                        let text = panic.downcast_ref::<String>().cloned();
                        Err(text.unwrap_or_else(|| "a panic without words".to_owned()))
                    });
                    let mut sum = sum.lock().unwrap();
                    match done {
                        Ok(done) => {
                            sum.tally += &done.tally;
                            *sum.ends.entry(format!("{}: {}", kind(&case.fault), done.ended)).or_default() += 1;
                            if done.fired {
                                *sum.fired.entry(kind(&case.fault)).or_default() += 1;
                            } else {
                                sum.silent.push(format!("{case:?}"));
                            }
                        }
                        Err(words) => sum.wrong.push(format!("{case:?}\n  {words}")),
                    }
                }
            });
        }
    });
    sum.into_inner().unwrap()
}

#[track_caller]
fn report(title: &str, cases: usize, sum: &Sum) {
    println!("{title}: {cases} cases in real processes; {}", sum.tally);
    for (kind, count) in &sum.fired {
        println!("  {kind:<28} {count:>6}");
    }
    for (end, count) in &sum.ends {
        println!("  ended {end:<60} {count:>6}");
    }
    println!("  not reached in {TRIES} tries: {} {:#?}", sum.silent.len(), sum.silent);
    assert!(sum.wrong.is_empty(), "{} of {cases} went wrong:\n{}", sum.wrong.len(), sum.wrong.join("\n"));
    // Those of a transaction that others shared, and no more.
    assert!(sum.silent.len() * 50 <= cases, "{} of {cases} faults never happened", sum.silent.len());
}

fn points() -> Vec<String> {
    in_the_sources().into_iter().collect()
}

#[test]
fn the_330_single_faults_of_a_staged_push() {
    let (server, _) = trace(Flow::Staged, &points());
    let cells = cells::all(&server);
    println!("{}", cells::table(&cells));
    assert_eq!(cells.len(), 330);
    let cases: BTreeSet<Case> = cells.iter().map(|cell| cell.case.clone()).collect();
    assert!(cells.iter().all(|cell| cell.same.is_none() || cases.contains(&cell.case)), "a cell without a case");
    let own = cells.iter().filter(|cell| cell.same.is_none()).count();
    assert_eq!(own, cases.len(), "{:?}", cells.iter().map(|cell| &cell.name).collect::<Vec<_>>());
    let sum = run_all(&cases);
    report("the 330", cases.len(), &sum);
}

/// The cases of a flow beyond those of the table.
fn of_flow(flow: Flow, server: &Passed, client: &Passed) -> BTreeSet<Case> {
    let mut faults: Vec<(Fault, u32)> = Vec::new();
    let fails = |hit: &Hit| !only_kills(&hit.point);
    for hit in server.hits() {
        let nth = hit.nth;
        faults.extend(fails(&hit).then(|| (Fault::Database(hit.clone()), nth)));
        // A runner that dies meanwhile is in the table; of other flows only all of everything.
        faults.extend(everything().then(|| (Fault::Runner(hit.clone()), nth)));
        faults.push((Fault::Server(hit), nth));
    }
    for hit in client.hits() {
        let nth = hit.nth;
        faults.extend(fails(&hit).then(|| (Fault::Database(hit.clone()), nth)));
        faults.push((Fault::Client(hit), nth));
    }
    let writes = client.counts().get("client:answer:read").copied().unwrap_or(0);
    if everything() && !flow.embedded() {
        let broken = |nth| MESSAGES.iter().map(move |(name, _)| (Fault::Message(nth, name), nth));
        faults.extend((1..=writes.max(1)).flat_map(broken));
    }
    let mut cases = BTreeSet::new();
    for (at, (fault, nth)) in faults.into_iter().enumerate() {
        let ways = [Again::SameSpool, Again::Reexecuted];
        if everything() {
            cases.extend(ways.map(|again| Case { flow, fault: fault.clone(), again }));
        } else if nth == 1 {
            cases.insert(Case { flow, fault, again: ways[at % 2] });
        }
    }
    cases
}

#[test]
fn every_point_that_a_push_passes() {
    let points = points();
    let mut cases = BTreeSet::new();
    let (mut passed, mut hits) = (BTreeSet::new(), 0);
    for flow in Flow::ALL {
        let (server, client) = trace(flow, &points);
        hits += server.hits().len() + client.hits().len();
        let own: BTreeSet<String> = server.0.iter().chain(&client.0).cloned().collect();
        // In short, a flow's points that another flow has passed already are not killed again.
        let fresh = |case: &Case| everything() || point_of(&case.fault).is_none_or(|point| !passed.contains(point));
        cases.extend(of_flow(flow, &server, &client).into_iter().filter(|case| flow.embedded() || fresh(case)));
        passed.extend(own);
    }
    let missed: Vec<&String> = points.iter().filter(|point| !passed.contains(*point)).collect();
    let unexplained: Vec<_> = missed
        .iter()
        .filter(|point| !ELSEWHERE.iter().any(|(start, _)| point.starts_with(start)) && !without_body(point))
        .collect();
    println!(
        "{} points in the sources, {} passed by pushes ({hits} passes), {} elsewhere",
        points.len(),
        passed.len(),
        missed.len()
    );
    assert!(unexplained.is_empty(), "points that no flow passes: {unexplained:?}");
    let sum = run_all(&cases);
    report("every point", cases.len(), &sum);
}

fn point_of(fault: &Fault) -> Option<&String> {
    match fault {
        Fault::Server(hit) | Fault::Client(hit) | Fault::Database(hit) | Fault::Runner(hit) => Some(&hit.point),
        Fault::Message(..) => None,
    }
}

/// Steps that only requests with a body have.
fn without_body(point: &str) -> bool {
    let steps = ["k1", "received", "placed", "decoded", "held"];
    point.strip_prefix("server:commit:").is_some_and(|step| steps.contains(&step))
}
