//! How many calls a push takes at each product, and how long. What is asked of a product must not grow with the outcomes
//! where one answer tells all of them.
//!
//! `TALLYONCE_CALLS=N` makes it N outcomes; `TALLYONCE_CALLS_OF=PATH` lets another build push; `TALLYONCE_TARGET_ONLY=NAME` keeps
//! to products whose name holds that.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proof::stubs::Kind;

use crate::products::{ALL, Product};

/// Enough for several calls of every product.
const OUTCOMES: usize = 120;
/// A build that waits for each outcome alone is to be measured too.
const PATIENCE: Duration = Duration::from_hours(2);

#[derive(Debug)]
struct Calls {
    reads: usize,
    writes: usize,
    seconds: f64,
}

/// One push to a product that has nothing yet.
#[expect(clippy::disallowed_methods, reason = "how long a process takes is measured")]
fn push(product: &Product, outcomes: usize) -> Option<Calls> {
    let site = product.stub_with(outcomes)?;
    let (machine, program) =
        (site.machine(product.strategies[0]), std::env::var_os("TALLYONCE_CALLS_OF").map(PathBuf::from));
    let program = program.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_tallyonce")));
    let args = ["push", "report.xml", "--to", "there", "--project", "shop", "--cycle", "main", "--run", "7"];
    let (begun, run) =
        (Instant::now(), machine.run_by(&program, &args).arg("--deadline").arg("2h").env("TALLYONCE_TIMEOUT", "30s"));
    let pushed = run.timeout(PATIENCE).output().unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(pushed.code, Some(0), "{}: {pushed}", product.name);
    assert_eq!(site.door().ledger().count(), outcomes, "{}", product.name);
    let log = site.door().log();
    let writes = log.iter().filter(|event| matches!(event.kind, Kind::Write(_))).count();
    Some(Calls { reads: log.len() - writes, writes, seconds })
}

#[test]
fn readings_do_not_grow_with_the_outcomes() {
    let outcomes = std::env::var_os("TALLYONCE_CALLS").and_then(|n| n.to_str()?.parse().ok()).unwrap_or(OUTCOMES);
    let only = std::env::var_os("TALLYONCE_TARGET_ONLY").unwrap_or_default();
    let mut table = format!("| target | reads for {outcomes} | writes | seconds |\n|---|---|---|---|\n");
    let mut many = Vec::new();
    let all = ALL.iter().filter(|product| product.name.contains(&*only.to_string_lossy()));
    std::thread::scope(|scope| {
        let pushes: Vec<_> = all.map(|product| (product, scope.spawn(|| push(product, outcomes)))).collect();
        for (product, push) in pushes {
            let Some(Calls { reads, writes, seconds }) = push.join().unwrap() else { continue };
            writeln!(table, "| {} | {reads} | {writes} | {seconds:.1} |", product.name).unwrap();
            if reads > product.reads_max(outcomes) {
                many.push(format!("{}: {reads}", product.name));
            }
        }
    });
    println!("{table}");
    assert!(
        many.is_empty() || std::env::var_os("TALLYONCE_CALLS_OF").is_some(),
        "too many readings: {many:?}\n{table}"
    );
}
