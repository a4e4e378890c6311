//! Every JUnit file of the corpus against its independently counted values.

use std::collections::BTreeMap;
use std::path::Path;

use domain::Counts;
use reports::{Collected, Event, ReportError};

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

/// Files whose items are not the manifest's distinct (suite path, classname, name), with how many there are and why.
const ITEMS: [(&str, usize, &str); 10] = [
    ("mocha--enricomi--1.xml", 109, "equal titles, no mark of a rerun: numbered"),
    ("generic--enricomi--2.xml", 4, "no names at all: numbered"),
    ("surefire--dorny--1.xml", 808, "data-driven methods of one name: numbered"),
    ("jest-junit--dorny--1.xml", 4239, "equal titles: numbered"),
    ("generic--jenkins-junit--2.xml", 2, "the same test twice, no mark of a rerun: numbered"),
    ("phpunit--jenkins-xunit--1.xml", 22, "the attribute `class` tells them apart"),
    ("pytest-merged--ibutsu--1.xml", 162, "three environments told apart by suite properties only: numbered"),
    ("jest-junit--generated--1.xml", 13, "equal titles: numbered"),
    ("playwright-retries--generated--1.xml", 20, "the project, in the host name, tells them apart"),
    ("truncated-in-tag--derived--1.xml", 361, "as surefire--dorny--1: numbered"),
];

/// Seconds that we read and the manifest's counter does not.
const SECONDS: [(&str, f64, &str); 1] =
    [("nan-inf-times--derived--1.xml", 12.0, "`12s`: unit suffixes are read, catalogue entry 9")];

#[test]
fn every_report_of_the_corpus_is_counted_as_it_was_counted_independently() {
    let Some(corpus) = shared_corpus() else { return };
    let rows = rows(&corpus);
    assert!(rows.len() >= 90);
    for row in rows {
        let name = row.path.trim_start_matches("junit/");
        let bytes = std::fs::read(corpus.join(&row.path)).unwrap();
        if row.state.starts_with("HOSTILE") {
            assert!(matches!(collect(&[(name, &bytes)], true), Err(ReportError::Dtd { .. })), "{name}");
            continue;
        }
        let read = collect(&[(name, &bytes)], true).unwrap();
        // One report written twice into one file is counted once.
        let times = if name.starts_with("concatenated--") { 2 } else { 1 };
        let s = read.summary;
        let got = [s.outcomes, s.passed, s.failed, s.errored, s.skipped].map(|n| n * times);
        assert_eq!(got, [row.tests, row.passed, row.failed, row.errored, row.skipped], "{name}");
        let items = ITEMS.iter().find(|(n, ..)| *n == name).map_or(row.distinct, |(_, items, _)| *items);
        assert_eq!(read.outcomes.len(), items, "{name}");
        judge_elements(name, &bytes, &row);
        let cut = row.state == "MALFORMED:truncated-or-broken" || row.state == "MALFORMED:stdout-inside-start-tag";
        assert_eq!(read.damage.len(), usize::from(cut), "{name}: {:?}", read.damage);
        if let Some(damage) = read.damage.first() {
            assert!(row.error.contains(&format!("line {},", damage.line)), "{name}: {damage}; {}", row.error);
            assert!(collect(&[(name, &bytes)], false).is_err(), "{name}: not without being told to");
        } else if row.state.starts_with("MALFORMED") && !row.state.contains("documents") && !name.starts_with("boost") {
            assert!(!read.warnings.is_empty(), "{name}: odd, and nothing was said");
        }
        if row.tests == 0 && !cut {
            assert!(read.warnings.iter().any(|w| w.text.contains("no test")), "{name}");
        }
    }
}

fn judge_elements(name: &str, bytes: &[u8], row: &Row) {
    let (mut us, mut flaky, mut reruns) = (0, 0, 0);
    events(name, bytes, |event| {
        if let Event::Outcome(raw) = event {
            us += raw.duration_us.map_or(0, |us| us.0);
            reruns += raw.attempts.len();
            flaky += u64::from(raw.clone().into_outcome().is_flaky());
        }
    });
    let seconds = us as f64 / 1e6;
    let more = SECONDS.iter().find(|(n, ..)| *n == name).map_or(0.0, |(_, seconds, _)| *seconds);
    assert!((seconds - row.seconds - more).abs() < 0.001, "{name}: {seconds} s, {} s", row.seconds);
    assert_eq!((flaky, reruns), (row.flaky, row.reruns), "{name}");
}

/// Reads some of the corpus's JUnit files as one push.
fn together(corpus: &Path, names: &[&str]) -> Collected {
    let bytes: Vec<Vec<u8>> = names.iter().map(|n| std::fs::read(corpus.join("junit").join(n)).unwrap()).collect();
    let files: Vec<(&str, &[u8])> = names.iter().copied().zip(bytes.iter().map(Vec::as_slice)).collect();
    collect(&files, false).unwrap()
}

#[test]
fn groups_that_hold_one_report_twice_are_counted_once() {
    let Some(corpus) = shared_corpus() else { return };
    let aggregate = ["ant--jenkins-junit--1.xml", "ant--jenkins-junit--2.xml", "ant--jenkins-junit--3.xml"];
    let read = together(&corpus, &aggregate);
    assert_eq!((read.summary.outcomes, read.outcomes.len(), &read.files[..]), (3, 3, &[aggregate[0].to_owned()][..]));
    assert_eq!(read.warnings.len(), 2);
    assert_eq!(together(&corpus, &aggregate[1..]).outcomes, read.outcomes, "the parts name the same items");
    let twin = together(&corpus, &["nose--jenkins-junit--1.xml", "nose--jenkins-junit--2.xml"]);
    assert_eq!((twin.summary.outcomes, twin.outcomes.len(), twin.warnings.len()), (1, 1, 1));
    assert!(twin.warnings[0].to_string().contains("nose--jenkins-junit--1.xml"), "both names: {}", twin.warnings[0]);
}

#[test]
fn the_last_attempt_of_pytest_reruns_is_the_truth() {
    let Some(corpus) = shared_corpus() else { return };
    let read = together(&corpus, &["pytest-reruns--generated--1.xml"]);
    let counts: Counts = read.outcomes.iter().collect();
    let want = Counts { total: 26, passed: 14, failed: 4, errored: 4, skipped: 4, flaky: 1 };
    assert_eq!(counts, want);
    let plain = together(&corpus, &["pytest-xunit1--generated--1.xml"]);
    let names = |read: &Collected| {
        let mut items: Vec<_> = read.outcomes.iter().map(|o| o.item.clone()).collect();
        items.sort();
        items
    };
    assert_eq!(names(&plain), names(&read), "the same suite has the same items, with reruns or without");
}
