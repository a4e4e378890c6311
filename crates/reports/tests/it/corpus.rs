//! Every JUnit file of the corpus against its independently counted values.

use std::collections::BTreeMap;
use std::path::Path;

use domain::Counts;
use reports::Event;

use crate::{collect, events, shared_corpus};

/// One line of the manifest.
struct Row {
    path: String,
    state: String,
    tests: u64,
    passed: u64,
    failed: u64,
    errored: u64,
    skipped: u64,
    flaky: u64,
    reruns: usize,
    distinct: usize,
    seconds: f64,
    error: String,
}

fn rows(corpus: &Path) -> Vec<Row> {
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).unwrap();
    let mut lines = manifest.lines().filter(|l| !l.starts_with('#'));
    let header: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let rows = lines.map(|line| {
        let fields: BTreeMap<&str, &str> = header.iter().copied().zip(line.split('\t')).collect();
        let number = |name: &str| fields[name].parse().unwrap_or(0);
        Row {
            path: fields["path"].to_owned(),
            state: fields["state"].to_owned(),
            tests: number("tests"),
            passed: number("passed"),
            failed: number("failed"),
            errored: number("errored"),
            skipped: number("skipped"),
            flaky: number("flaky"),
            reruns: number("reruns") as usize,
            distinct: number("distinct") as usize,
            seconds: fields["duration_s"].parse().unwrap_or(0.0),
            error: fields["error"].to_owned(),
        }
    });
    rows.filter(|row| row.path.starts_with("junit/")).collect()
}

#[test]
fn dump() {
    let Some(corpus) = shared_corpus() else { return };
    for row in rows(&corpus) {
        let bytes = std::fs::read(corpus.join(&row.path)).unwrap();
        let (events, error) = events(&row.path, &bytes);
        let seconds: f64 = events
            .iter()
            .map(|e| match e {
                Event::Outcome(raw) => raw.outcome.duration_us.map_or(0.0, |us| us.as_ms() / 1000.0),
                Event::Note(_) => 0.0,
            })
            .sum();
        match collect(&[(&row.path, &bytes)], true) {
            Ok(c) => {
                let s = c.summary;
                let counts: Counts = c.outcomes.iter().collect();
                let got = (s.outcomes, s.passed, s.failed, s.errored, s.skipped);
                let want = (row.tests, row.passed, row.failed, row.errored, row.skipped);
                if got != want
                    || (seconds - row.seconds).abs() > 0.001
                    || c.outcomes.len() != row.distinct
                    || counts.flaky != row.flaky
                {
                    println!(
                        "{} {}: got {got:?} {seconds:.3} items {} flaky {} want {want:?} {} {} {} repeats {}",
                        row.path,
                        row.state,
                        c.outcomes.len(),
                        counts.flaky,
                        row.seconds,
                        row.distinct,
                        row.flaky,
                        s.repeats
                    );
                }
                for w in &c.warnings {
                    println!("   W {w}");
                }
                for w in &c.damage {
                    println!("   D {w}");
                }
            }
            Err(e) => println!("{} {}: ERR {e}", row.path, row.state),
        }
        if let Some(e) = error {
            println!("   E {e}  [{}]", row.error);
        }
    }
}
