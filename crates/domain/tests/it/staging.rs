//! Rows of `facts/idempotency.md` 3.5 that one decision settles; interleavings are the model checker's.

use std::collections::BTreeSet;

use domain::protocol::{FieldDifference, Refusal};
use domain::staging::*;
use domain::{Digest, Executor, Ordinal, Sender};

fn manifest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn offer(content: &str, ordinal: Option<u64>) -> Begin {
    let sender = Sender { ordinal: ordinal.map(Ordinal), ..Sender::default() };
    Begin { manifest: manifest(content), content: manifest(content), sender, fields: Vec::new() }
}

fn open(content: &str, ordinal: Option<u64>, present: &[u32]) -> KnownEpoch {
    KnownEpoch {
        epoch: Epoch(1),
        fate: Fate::Open,
        manifest: manifest(content),
        content: manifest(content),
        chunks: 3,
        present: present.iter().copied().collect::<BTreeSet<_>>(),
        ordinal: ordinal.map(Ordinal),
        executors: Vec::new(),
        contested: false,
        idle: false,
    }
}

fn takes_over() -> BeginDecision {
    BeginDecision::Open { epoch: Epoch(2), supersedes: Some(Epoch(1)) }
}

#[test]
fn b1_nothing_there_opens_the_first_epoch() {
    assert_eq!(begin(&offer("M", None), None, None), BeginDecision::Open { epoch: Epoch(1), supersedes: None });
}

#[test]
fn b2_b3_b8_the_same_manifest_resumes_and_lists_what_is_missing() {
    let decision = begin(&offer("M", Some(1)), Some(&open("M", None, &[1])), None);
    let expected = BeginDecision::Resume { epoch: Epoch(1), ordinal: Some(Ordinal(1)), missing: vec![0, 2] };
    assert_eq!(decision, expected);
}

#[test]
fn b4_another_manifest_without_ordinals_waits_while_the_epoch_is_active() {
    assert_eq!(
        begin(&offer("N", None), Some(&open("M", None, &[])), None),
        BeginDecision::InProgress { epoch: Epoch(1) }
    );
    assert_eq!(
        begin(&offer("N", Some(1)), Some(&open("M", Some(1), &[])), None),
        BeginDecision::InProgress { epoch: Epoch(1) }
    );
}

#[test]
fn b5_b6_a_higher_ordinal_takes_over_at_once() {
    assert_eq!(begin(&offer("N", Some(2)), Some(&open("M", Some(1), &[0])), None), takes_over());
}

#[test]
fn b7_an_equal_or_unknown_or_lower_ordinal_takes_over_once_the_epoch_is_idle() {
    for (mine, theirs) in [(None, None), (Some(1), Some(1)), (None, Some(1)), (Some(1), None), (Some(1), Some(2))] {
        let idle = KnownEpoch { idle: true, ..open("M", theirs, &[]) };
        assert_eq!(begin(&offer("N", mine), Some(&idle), None), takes_over());
    }
}

#[test]
fn b9_a_client_bound_to_a_dead_epoch_never_opens_another() {
    for fate in [Fate::Superseded, Fate::Abandoned, Fate::Cancelled, Fate::Refused] {
        let decision = begin(&offer("N", Some(9)), Some(&open("M", None, &[])), Some((Epoch(1), fate)));
        assert_eq!(decision, BeginDecision::Superseded { bound: Epoch(1) });
    }
}

#[test]
fn b10_a_lower_ordinal_is_stale_while_the_epoch_is_active() {
    assert_eq!(
        begin(&offer("N", Some(1)), Some(&open("M", Some(2), &[])), None),
        BeginDecision::Stale { epoch: Epoch(1) }
    );
}

#[test]
fn b12_a_client_bound_to_a_committed_epoch_gets_its_receipt() {
    let bound = Some((Epoch(1), Fate::Committed { revision: 1 }));
    assert_eq!(begin(&offer("M", None), Some(&open("N", None, &[])), bound), BeginDecision::Replay { revision: 1 });
}

#[test]
fn after_an_ended_epoch_the_next_one_opens() {
    for fate in [Fate::Abandoned, Fate::Cancelled, Fate::Refused, Fate::Committed { revision: 1 }] {
        let ended = KnownEpoch { fate, ..open("M", None, &[]) };
        let expected = BeginDecision::Open { epoch: Epoch(2), supersedes: None };
        assert_eq!(begin(&offer("N", None), Some(&ended), None), expected);
    }
}

#[test]
fn p1_to_p11_chunks() {
    let (right, wrong) = (manifest("bytes"), manifest("others"));
    let with = |fate, present: &[u32]| KnownEpoch { fate, ..open("M", None, present) };
    let committed = Fate::Committed { revision: 1 };
    let table = [
        ("P1", with(Fate::Open, &[]), 0, right, PutDecision::Store),
        ("P2", with(Fate::Open, &[0]), 0, right, PutDecision::Replay),
        ("P5", with(Fate::Open, &[]), 0, wrong, PutDecision::Mismatch),
        ("P6", with(Fate::Superseded, &[]), 0, right, PutDecision::Superseded),
        ("P8", with(committed, &[0, 1, 2]), 0, right, PutDecision::Replay),
        ("P9", with(committed, &[0, 1, 2]), 0, wrong, PutDecision::Mismatch),
        ("P10", with(Fate::Abandoned, &[]), 0, right, PutDecision::Gone),
        ("P11", with(Fate::Open, &[]), 3, right, PutDecision::OutOfRange),
    ];
    for (row, epoch, chunk, offered, expected) in table {
        assert_eq!(put(&epoch, chunk, Some(right), offered), expected, "{row}");
    }
}

#[test]
fn c1_to_c7_commits() {
    let with = |fate, present: &[u32]| KnownEpoch { fate, ..open("M", None, present) };
    assert_eq!(commit(&with(Fate::Open, &[0, 1, 2])), CommitDecision::Commit, "C1");
    assert_eq!(commit(&with(Fate::Open, &[1])), CommitDecision::Incomplete { missing: vec![0, 2] }, "C2");
    assert_eq!(commit(&with(Fate::Open, &[0, 2])), CommitDecision::Incomplete { missing: vec![1] }, "C2");
    assert_eq!(commit(&with(Fate::Committed { revision: 2 }, &[])), CommitDecision::Replay { revision: 2 }, "C3, C4");
    assert_eq!(commit(&with(Fate::Superseded, &[0, 1, 2])), CommitDecision::Superseded, "C5, C6");
    assert_eq!(commit(&with(Fate::Abandoned, &[0, 1, 2])), CommitDecision::Gone, "C7");
    assert_eq!(commit(&with(Fate::Refused, &[0, 1, 2])), CommitDecision::Refused, "C11a");
}

#[test]
fn n1_n2_cancels() {
    let with = |fate| KnownEpoch { fate, ..open("M", None, &[]) };
    assert_eq!(cancel(&with(Fate::Open)), CancelDecision::Cancel);
    assert_eq!(cancel(&with(Fate::Cancelled)), CancelDecision::Ended);
    assert_eq!(cancel(&with(Fate::Committed { revision: 1 })), CancelDecision::Committed { revision: 1 });
}

#[test]
fn g1_g4_only_an_epoch_seen_idle_twice_is_collected() {
    let idle = KnownEpoch { idle: true, ..open("M", None, &[]) };
    assert!(may_abandon(&idle, true));
    assert!(!may_abandon(&idle, false), "the clock may have jumped");
    assert!(!may_abandon(&KnownEpoch { fate: Fate::Committed { revision: 1 }, ..idle }, true));
}

fn executed_by(name: &str, offer: &Begin) -> Begin {
    let executor = Some(Executor::parse(name).unwrap());
    Begin { sender: Sender { executor, ..offer.sender.clone() }, ..offer.clone() }
}

/// Situation S3 in the staged form.
#[test]
fn a_second_leg_at_the_same_attempt_collides_even_with_the_same_manifest() {
    let a = (Some(Ordinal(1)), Executor::parse("a").unwrap());
    let staging = KnownEpoch { executors: vec![a.clone()], ..open("M", Some(1), &[]) };
    for content in ["M", "N"] {
        let second = begin(&executed_by("b", &offer(content, Some(1))), Some(&staging), None);
        assert!(matches!(second, BeginDecision::Collides(_)), "{second:?}");
    }
    let own = begin(&executed_by("a", &offer("M", Some(1))), Some(&staging), None);
    assert!(matches!(own, BeginDecision::Resume { .. }), "{own:?}");
    let contested = KnownEpoch { contested: true, ..staging };
    let later = begin(&executed_by("b", &offer("N", Some(2))), Some(&contested), None);
    assert!(matches!(later, BeginDecision::Collides(_)), "{later:?}");
}

#[test]
fn b11_another_place_under_a_key_that_is_staged_is_refused() {
    let fields = vec![FieldDifference { field: "round".into(), recorded: "run:1".into(), offered: "run:2".into() }];
    let elsewhere = Begin { fields: fields.clone(), ..offer("M", Some(2)) };
    let refused = BeginDecision::Reused(Refusal::KeyReused(fields));
    assert_eq!(begin(&elsewhere, Some(&open("M", Some(1), &[0])), None), refused);
    assert_eq!(one_shot(&elsewhere, Some(&open("M", Some(1), &[0])), None), OneShotDecision::Wait(refused));
    let ended = KnownEpoch { fate: Fate::Abandoned, ..open("M", Some(1), &[]) };
    let anew = BeginDecision::Open { epoch: Epoch(2), supersedes: None };
    assert_eq!(begin(&elsewhere, Some(&ended), None), anew, "what ended claims nothing");
}

#[test]
fn o1_o2_a_push_in_one_request_is_a_begin_its_puts_and_its_commit() {
    let known = open("M", Some(1), &[0]);
    let end = |content: &str, ordinal, known: &KnownEpoch| one_shot(&offer(content, ordinal), Some(known), None);
    let record = |ending| OneShotDecision::Record { ends: Some((Epoch(1), ending)) };
    assert_eq!(one_shot(&offer("M", None), None, None), OneShotDecision::Record { ends: None });
    let cut_otherwise = KnownEpoch { manifest: manifest("cut in other places"), ..known.clone() };
    assert_eq!(end("M", Some(1), &cut_otherwise), record(Ending::Committed));
    assert_eq!(end("N", Some(2), &known), record(Ending::Superseded));
    // The same content of an earlier attempt waits for the later one, which ranks higher, unless that is gone.
    let later = KnownEpoch { ordinal: Some(Ordinal(3)), ..known.clone() };
    assert_eq!(end("M", Some(2), &later), OneShotDecision::Wait(BeginDecision::Stale { epoch: Epoch(1) }));
    assert_eq!(end("M", Some(2), &KnownEpoch { idle: true, ..later.clone() }), record(Ending::Superseded));
    assert_eq!(end("M", Some(3), &later), record(Ending::Committed));
    assert_eq!(end("M", None, &later), OneShotDecision::Wait(BeginDecision::InProgress { epoch: Epoch(1) }));
    assert_eq!(end("N", Some(1), &known), OneShotDecision::Wait(BeginDecision::InProgress { epoch: Epoch(1) }));
    assert_eq!(end("N", Some(0), &known), OneShotDecision::Wait(BeginDecision::Stale { epoch: Epoch(1) }));
}
