//! Rows B: begins.

use proof::oracle::{Fate, JunitSpec};
use proof::proxy::Fault;

use super::{Rows, done};

#[test]
fn b1_p1_p3_c1_a_begin_its_puts_and_its_commit() {
    let rows = Rows::new();
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    assert_eq!(rows.writes(), ["begin 201", "put 201", "put 201", "put 201", "put 201", "commit 201"]);
    assert_eq!(rows.fates(), [Fate::Committed(1)]);
    rows.counts(1);
}

#[test]
fn b2_the_answer_to_a_begin_is_lost_and_the_same_epoch_goes_on() {
    let rows = Rows::nth(1, Fault::ResponseDropped);
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    assert_eq!(rows.writes()[..2], ["begin 201", "begin 200"]);
    assert_eq!((rows.count("put"), rows.fates()), (4, vec![Fate::Committed(1)]));
    rows.counts(1);
}

#[test]
fn b3_a_begin_comes_twice_at_once() {
    let rows = Rows::nth(1, Fault::DuplicateDelivery { concurrent: true });
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    let mut begins = rows.writes()[..2].to_vec();
    begins.sort();
    assert_eq!((begins, rows.fates()), (vec!["begin 200".into(), "begin 201".into()], vec![Fate::Committed(1)]));
    rows.counts(1);
}

#[test]
fn b4_h1_another_begin_of_the_same_attempt_waits_for_the_first() {
    let rows = Rows::new();
    let (first, held) = rows.held(1, 1, "client:begin:read");
    let other = rows.push_of(1, &Rows::spec(2), &["--chunk-outcomes", "16", "--cycle", "main", "--outbox", "other"]);
    let second = other.start().unwrap();
    let fenced = |log: &[proof::proxy::Event]| log.iter().any(|event| event.upstream_status == Some(409));
    rows.proxy.wait_for(super::PATIENCE, fenced).unwrap();
    std::fs::remove_file(held).unwrap();
    crate::world::outcome(first.wait(super::PATIENCE).unwrap()).expect(0, "recorded");
    let second = crate::world::outcome(second.wait(super::PATIENCE).unwrap());
    assert_eq!((second.code, &second.json["difference"]["class"]), (0, &"semantic".into()), "{:#}", second.json);
    rows.counts(1);
}

#[test]
fn b6_b5_tests_that_ran_again_supersede_what_a_dead_attempt_staged() {
    let rows = Rows::new();
    rows.killed(1, 1, "client:put:done@2");
    rows.nothing_counts();
    done(&rows.push(2, 2, &[])).expect(0, "recorded");
    assert_eq!(rows.fates(), [Fate::Superseded, Fate::Committed(1)]);
    rows.counts(2);
    // The first runner's outbox is flushed after all: its outcomes are kept beside, and it is said.
    let flushed = rows.flush(1);
    assert_eq!((flushed.code, &flushed.json["difference"]["class"]), (0, &"semantic".into()), "{:#}", flushed.json);
    rows.counts(2);
}

#[test]
fn b8_the_same_spool_restarts_and_only_missing_chunks_travel() {
    let rows = Rows::new();
    rows.killed(1, 1, "client:put:done@2");
    let there = rows.oracle().staged_chunks("shop", &rows.key()).unwrap() as usize;
    let sent = rows.count("put");
    assert!((2..4).contains(&there) || there == 4, "{there} chunks are there");
    let flushed = rows.flush(1).expect(0, "recorded");
    assert_eq!(flushed.json["delivery"]["resumed"], true);
    assert_eq!(rows.count("put") - sent, 4 - there, "{:?}", rows.writes());
    assert_eq!(rows.fates(), [Fate::Committed(1)]);
    rows.counts(1);
}

#[test]
fn b9_b10_a_delayed_begin_of_a_lower_attempt_changes_nothing() {
    let rows = Rows::nth(1, Fault::DeliveredLate);
    done(&rows.push(1, 1, &["--deadline", "0s"])).expect(75, "not_sent");
    done(&rows.push(2, 2, &[])).expect(0, "recorded");
    assert_eq!(rows.count("begin 409"), 1, "{:?}", rows.writes());
    assert_eq!(rows.fates(), [Fate::Committed(1)]);
    rows.counts(2);
}

#[test]
fn b11_a_key_is_not_used_for_another_cycle() {
    let rows = Rows::new();
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    let other = rows.push_of(2, &Rows::spec(2), &["--chunk-outcomes", "16", "--cycle", "other"]);
    let refused = done(&other);
    assert_eq!(refused.code, 5, "{:#}", refused.json);
    assert_eq!(rows.count("begin 422"), 1, "{:?}", rows.writes());
    rows.counts(1);
}

#[test]
fn b12_what_is_recorded_needs_no_chunk() {
    let rows = Rows::new();
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    let again = done(&rows.push(1, 1, &[])).expect(0, "replayed");
    assert_eq!(again.json["delivery"]["chunks_sent"], 0);
    assert_eq!(rows.fates(), [Fate::Committed(1)]);
    rows.counts(1);
}

#[test]
fn b13_other_times_are_cosmetic() {
    let rows = Rows::new();
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    let later = JunitSpec { times: 99, ..Rows::spec(1) };
    let again = done(&rows.push_of(1, &later, &["--chunk-outcomes", "16", "--cycle", "main"])).expect(0, "replayed");
    assert_eq!(again.json["difference"]["class"], "cosmetic", "{:#}", again.json);
    rows.counts(1);
}

#[test]
fn b14_other_outcomes_of_the_same_attempt_are_kept_and_said() {
    let rows = Rows::new();
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    let other = done(&rows.push(1, 2, &[]));
    assert_eq!((other.code, &other.json["difference"]["class"]), (0, &"semantic".into()), "{:#}", other.json);
    let again = done(&rows.push(1, 2, &[])).expect(0, "replayed");
    assert!(again.json["warnings"].to_string().contains("other outcomes are recorded"), "{:#}", again.json);
    // S13: once, however often it was offered.
    assert_eq!(rows.oracle().contents("shop", &rows.key()).unwrap().len(), 2);
    rows.counts(1);
}

#[test]
fn b19_a_gateway_says_502_after_the_begin_was_written() {
    let rows = Rows::nth(1, Fault::BadGateway502 { forwarded: true });
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    assert_eq!(rows.writes()[..2], ["begin 201", "begin 200"]);
    rows.counts(1);
}
