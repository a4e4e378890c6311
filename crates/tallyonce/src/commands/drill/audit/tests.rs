//! The audit is alive: a clean drill has no finding, and each thing that can be wrong is named as what it is.

use super::super::observed::Round;
use super::*;

const ROUND: &str = "run:drill-1-00001";
const KEY: &str = "run:drill-1-00001:job:unit-1";

fn confirmed(attempt: usize, state: &str, difference: bool) -> Telling {
    Telling { attempt, said: Said::Confirmed { state: state.to_owned(), total: Some(2), difference } }
}

/// One push of two items, recorded by a client that was told so.
fn expected() -> Expected {
    Expected {
        key: KEY.to_owned(),
        round: ROUND.to_owned(),
        items: [("a".to_owned(), Status::Passed), ("b".to_owned(), Status::Failed)].into(),
        flaky: Some(BTreeSet::new()),
        attempts: 1,
        tellings: vec![Telling { attempt: 1, said: Said::Open }, confirmed(1, "recorded", false)],
        kept: 0,
        accepted: Some(1..=3),
    }
}

fn item(name: &str, status: Status) -> ItemSeen {
    ItemSeen { item: name.to_owned(), status, flaky: false, key: KEY.to_owned(), pushes: 1 }
}

fn observed() -> Observed {
    let push = PushSeen { total: 2, revision: 1, deliveries: 2, contested: false };
    let items = vec![item("a", Status::Passed), item("b", Status::Failed)];
    let round = Round { total: 2, repeats: 1, pushes: [(KEY.to_owned(), push)].into(), items };
    let place = |name: &str| (ROUND.to_owned(), KEY.to_owned(), name.to_owned());
    let rows = [(place("a"), Some(Status::Passed)), (place("b"), Some(Status::Failed))];
    let tables = Tables { items: Some(rows.into()), ..Tables::default() };
    Observed { rounds: [(ROUND.to_owned(), round)].into(), tables: Some(tables) }
}

/// The kinds that are found, each once, after both sides were changed. The tables are left out: they have tests of
/// their own.
fn found(change: impl FnOnce(&mut Expected, &mut Observed)) -> Vec<Fault> {
    let (mut expected, mut observed) = (expected(), Observed { tables: None, ..observed() });
    change(&mut expected, &mut observed);
    let kinds: BTreeSet<Fault> = audit(&[expected], &observed).findings.iter().map(|finding| finding.fault).collect();
    kinds.into_iter().collect()
}

fn round(observed: &mut Observed) -> &mut Round {
    observed.rounds.get_mut(ROUND).unwrap()
}

fn row(observed: &mut Observed) -> &mut PushSeen {
    round(observed).pushes.get_mut(KEY).unwrap()
}

#[test]
fn a_clean_drill_has_no_finding() {
    let verdict = audit(&[expected()], &observed());
    assert_eq!(verdict, Verdict { recorded: 1, outcomes: 2, replayed: 1, revised: 0, findings: Vec::new() });
}

#[test]
fn what_counts_more_than_once_is_doubled() {
    assert_eq!(found(|_, o| round(o).items.push(item("a", Status::Passed))), [Fault::Doubled]);
    assert_eq!(found(|_, o| round(o).items[0].pushes = 2), [Fault::Doubled]);
    assert_eq!(found(|_, o| row(o).total = 3), [Fault::Doubled]);
    assert_eq!(found(|_, o| round(o).total = 4), [Fault::Doubled]);
}

#[test]
fn the_same_under_another_key_or_round_is_doubled() {
    let other_key = found(|_, o| {
        let push = row(o).clone();
        round(o).pushes.insert(format!("{KEY}x"), push);
        round(o).items.iter_mut().for_each(|item| item.pushes = 2);
    });
    assert_eq!(other_key, [Fault::Doubled, Fault::Unexplained]);
    let other_round = found(|_, o| {
        let copy = round(o).clone();
        o.rounds.insert("run:other".to_owned(), copy);
    });
    assert_eq!(other_round, [Fault::Doubled, Fault::Unexplained]);
}

#[test]
fn what_was_confirmed_and_is_not_there_is_lost() {
    assert_eq!(found(|_, o| o.rounds.clear()), [Fault::Lost]);
    assert_eq!(found(|_, o| drop(round(o).items.pop())), [Fault::Lost]);
    assert_eq!(found(|_, o| row(o).total = 1), [Fault::Lost]);
}

#[test]
fn what_was_never_confirmed_and_is_not_there_is_unexplained() {
    let never = |e: &mut Expected, o: &mut Observed| {
        e.tellings.truncate(1);
        o.rounds.clear();
    };
    assert_eq!(found(never), [Fault::Unexplained]);
}

#[test]
fn other_outcomes_behind_a_success_are_suppressed() {
    let swap = |o: &mut Observed| round(o).items[1].status = Status::Passed;
    assert_eq!(found(|_, o| swap(o)), [Fault::Suppressed]);
    let replayed = |difference| {
        move |e: &mut Expected, o: &mut Observed| {
            e.tellings = vec![confirmed(1, "replayed", difference)];
            swap(o);
        }
    };
    assert_eq!(found(replayed(false)), [Fault::Suppressed]);
    // It was said, but nobody pushed anything else.
    assert_eq!(found(replayed(true)), [Fault::Unexplained]);
    let told_less = |e: &mut Expected, _: &mut Observed| {
        e.tellings = vec![Telling {
            attempt: 1,
            said: Said::Confirmed { state: "replayed".to_owned(), total: Some(1), difference: false },
        }];
    };
    assert_eq!(found(told_less), [Fault::Suppressed]);
}

#[test]
fn a_re_execution_that_leaves_no_trace_is_suppressed() {
    let again = |e: &mut Expected, o: &mut Observed| {
        e.items.insert("b".to_owned(), Status::Passed);
        e.flaky = Some(["b".to_owned()].into());
        e.attempts = 2;
        e.tellings.push(confirmed(2, "replayed", false));
        row(o).revision = 1;
    };
    assert_eq!(found(again), [Fault::Suppressed, Fault::Unexplained]);
    let counted = |e: &mut Expected, o: &mut Observed| {
        again(e, o);
        row(o).revision = 2;
        (round(o).items[1].status, round(o).items[1].flaky) = (Status::Passed, true);
    };
    assert_eq!(found(counted), []);
}

#[test]
fn whatever_else_does_not_fit_is_unexplained() {
    type Change = fn(&mut Expected, &mut Observed);
    let changes: [(&str, Change); 9] = [
        ("an odd end", |e, _| e.tellings.push(Telling { attempt: 1, said: Said::Odd("exit 101".to_owned()) })),
        ("never confirmed", |e, _| e.tellings.truncate(1)),
        ("still kept", |e, _| e.kept = 1),
        ("a revision too many", |_, o| row(o).revision = 2),
        ("contested", |_, o| row(o).contested = true),
        ("too many deliveries", |_, o| row(o).deliveries = 4),
        ("too few deliveries", |_, o| row(o).deliveries = 0),
        ("another key", |_, o| round(o).items[0].key = "run:x".to_owned()),
        ("flaky", |_, o| round(o).items[0].flaky = true),
    ];
    for (name, change) in changes {
        assert_eq!(found(change), [Fault::Unexplained], "{name}");
    }
    assert_eq!(found(|_, o| round(o).items.push(item("c", Status::Passed))), [Fault::Unexplained]);
    assert_eq!(found(|_, o| round(o).total = 1), [Fault::Unexplained]);
}

#[test]
fn the_tables_are_a_second_opinion() {
    let with = |change: fn(&mut Tables)| {
        let mut observed = observed();
        change(observed.tables.as_mut().unwrap());
        let findings = audit(&[expected()], &observed).findings;
        findings.into_iter().map(|finding| finding.fault).collect::<Vec<_>>()
    };
    assert_eq!(with(|t| t.doubles.push("key k is there 2 times".to_owned())), [Fault::Doubled]);
    assert_eq!(with(|t| t.damage.push("counts-differ".to_owned())), [Fault::Unexplained]);
    assert_eq!(with(|t| drop(t.items.as_mut().unwrap().pop_first())), [Fault::Unexplained]);
    assert_eq!(
        with(|t| t.items.iter_mut().flatten().for_each(|(_, s)| *s = Some(Status::Errored))),
        [Fault::Unexplained; 2]
    );
}
