//! The history checker notices each crime, and calls each way in which a report may end by its name.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proof::history::{Class, Crime, Ended, History, Invocation, Items, Tables, Tally, check};
use proof::oracle::{Fate, How, Stored};

fn items(verdicts: &str) -> Items {
    let status = |letter| match letter {
        'p' => "passed",
        'f' => "failed",
        _ => "skipped",
    };
    verdicts.chars().enumerate().map(|(n, letter)| (format!("case {n}"), status(letter).to_owned())).collect()
}

fn said(exit: i32, state: &str) -> Ended {
    Ended::Said { exit, state: state.to_owned(), difference: false }
}

fn ran(report: usize, ended: Ended) -> Invocation {
    Invocation { report, ended, faulted: false, kept: false }
}

/// One report, recorded in one epoch after a process that was killed.
fn good() -> (History, Tables) {
    let mut history = History::default();
    let report = history.offer(1, items("pfs"));
    history.invocations.push(Invocation { report, ended: Ended::Silent, faulted: true, kept: true });
    history.invocations.push(ran(report, said(0, "recorded")));
    let tables = Tables {
        revisions: vec![Stored { revision: 1, how: How::First, items: items("pfs") }],
        visible: items("pfs"),
        listed: 3,
        epochs: vec![(1, Fate::Committed(1))],
        doubles: Vec::new(),
    };
    (history, tables)
}

/// The same, and then other outcomes by a higher attempt.
fn revised() -> (History, Tables) {
    let (mut history, mut tables) = good();
    let other = history.offer(2, items("ppp"));
    history.invocations.push(ran(other, said(0, "revised")));
    tables.revisions.push(Stored { revision: 2, how: How::Revised, items: items("ppp") });
    tables.epochs.push((2, Fate::Committed(2)));
    tables.visible = items("ppp");
    (history, tables)
}

#[track_caller]
fn ends(history: &History, tables: &Tables, classes: &[Class]) {
    let tally = check(history, tables).unwrap();
    assert_eq!(tally.total(), classes.len() as u64);
    for class in classes {
        assert_eq!(tally.of(*class), classes.iter().filter(|other| *other == class).count() as u64, "{tally}");
    }
}

#[track_caller]
fn fails(history: &History, tables: &Tables, crime: Crime) {
    let findings = check(history, tables).unwrap_err();
    assert!(findings.iter().any(|finding| finding.crime == crime), "{findings:?}");
}

#[test]
fn reports_end_in_one_of_five_ways() {
    let (history, tables) = good();
    ends(&history, &tables, &[Class::Recorded]);
    let (history, tables) = revised();
    ends(&history, &tables, &[Class::Recorded, Class::Revised]);

    let (mut history, mut tables) = good();
    let other = history.offer(1, items("ppp"));
    let kept = Ended::Said { exit: 0, state: "replayed".into(), difference: true };
    history.invocations.push(ran(other, kept));
    tables.revisions.push(Stored { revision: 2, how: How::Kept, items: items("ppp") });
    ends(&history, &tables, &[Class::Recorded, Class::DifferingAndSaid]);

    let (mut history, tables) = good();
    let other = history.offer(1, items("ppp"));
    history.invocations.push(ran(other, said(5, "differs")));
    ends(&history, &tables, &[Class::Recorded, Class::RefusedAndSaid]);

    let (mut history, tables) = good();
    let other = history.offer(1, items("ppp"));
    history.invocations.push(Invocation { report: other, ended: Ended::Silent, faulted: true, kept: false });
    ends(&history, &tables, &[Class::Recorded, Class::UnknownAndSaid]);
    let mut sum = Tally::default();
    sum += &check(&history, &tables).unwrap();
    assert_eq!((sum.total(), sum.of(Class::UnknownAndSaid)), (2, 1));
}

#[test]
fn what_is_suppressed_is_noticed() {
    let (history, mut tables) = good();
    (tables.revisions, tables.visible, tables.listed) = (Vec::new(), Items::new(), 0);
    fails(&history, &tables, Crime::Suppressed);
    // Others count, and nobody said so.
    let (mut history, mut tables) = good();
    let other = history.offer(1, items("ppp"));
    history.invocations.push(ran(other, said(0, "replayed")));
    fails(&history, &tables, Crime::Suppressed);
    tables.revisions.push(Stored { revision: 2, how: How::Kept, items: items("ppp") });
    fails(&history, &tables, Crime::Suppressed);
}

#[test]
fn what_is_doubled_is_noticed() {
    let (history, mut tables) = good();
    tables.listed = 6;
    fails(&history, &tables, Crime::Doubled);
    let (history, mut tables) = good();
    tables.doubles.push("key k is there 2 times in project 1".to_owned());
    fails(&history, &tables, Crime::Doubled);
    let (history, mut tables) = good();
    tables.revisions.push(Stored { revision: 2, how: How::Revised, items: items("pfs") });
    fails(&history, &tables, Crime::Doubled);
}

#[test]
fn what_is_lost_is_noticed() {
    let (history, mut tables) = revised();
    tables.visible = items("pfs");
    fails(&history, &tables, Crime::Lost);
    // Unknown, and not kept for a flush.
    let (mut history, tables) = good();
    let ended = said(75, "possibly_written");
    history.invocations.insert(0, Invocation { report: 0, ended, faulted: true, kept: false });
    fails(&history, &tables, Crime::Lost);
}

#[test]
fn half_a_report_and_one_that_nobody_offered_are_noticed() {
    let (history, mut tables) = good();
    tables.revisions[0].items.remove("case 2");
    (tables.visible, tables.listed) = (tables.revisions[0].items.clone(), 2);
    fails(&history, &tables, Crime::Half);
    let (history, mut tables) = good();
    tables.visible.clear();
    tables.listed = 0;
    fails(&history, &tables, Crime::Half);
    let (history, mut tables) = good();
    tables.revisions[0].items = items("ppp");
    fails(&history, &tables, Crime::Phantom);
    // Refused, and there all the same.
    let (mut history, tables) = revised();
    history.invocations.last_mut().unwrap().ended = said(4, "rejected");
    fails(&history, &tables, Crime::Phantom);
}

#[test]
fn what_no_fault_explains_is_noticed() {
    let (mut history, tables) = good();
    history.invocations[0].faulted = false;
    fails(&history, &tables, Crime::Unexplained);
    // Kept, and nobody flushed it.
    let (mut history, tables) = good();
    history.invocations.truncate(1);
    fails(&history, &tables, Crime::Unexplained);
    let (mut history, tables) = good();
    history.invocations.push(Invocation { report: 0, ended: said(75, "not_sent"), faulted: true, kept: true });
    fails(&history, &tables, Crime::Unexplained);
    let (mut history, tables) = good();
    history.invocations[1].ended = said(3, "unreadable");
    fails(&history, &tables, Crime::Unexplained);
}

#[test]
fn epochs_that_cannot_be_are_noticed() {
    for epochs in [
        vec![(1, Fate::Open)],
        vec![(2, Fate::Committed(1))],
        vec![(1, Fate::Superseded), (1, Fate::Committed(1))],
        vec![(1, Fate::Committed(2))],
    ] {
        let (history, mut tables) = good();
        tables.epochs = epochs;
        fails(&history, &tables, Crime::Epochs);
    }
}
