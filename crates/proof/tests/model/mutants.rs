//! Faults put in the place of decision functions or into the modelled engine: each has to be noticed, or the model proves
//! nothing. Where a fault costs only work, never truth, liveness or a row of 3.5 that is no longer reached gives it away.

use std::collections::BTreeSet;

use domain::OnDifference;
use domain::mutants::Mutant as Known;
use domain::staging::{Fate, OneShotDecision};
use stateright::{Checker, HasDiscoveries, Model};

use crate::actions::Push;
use crate::config::{
    AGAIN, AGAIN_OVERLAYS, ATTEMPTS, CONTENTS, Config, LEGS, OVERLAYS, PLACES, PROMOTIONS, READERS, ROUND, SMALL,
    ZOMBIES,
};
use crate::decisions::{Decisions, PRODUCTION, Slips};
use crate::faults::*;
use crate::properties;
use crate::rows::Event;
use crate::{liveness, rows};

/// A fault in words, where it is looked for, and what has to notice it: a safety property (S), the liveness of 3.6 (L, or
/// `idle`: a live owner keeps its epoch), or a row that is not reached any more.
struct Mutant(&'static str, Config, Decisions, &'static str);

const P: Decisions = PRODUCTION;
const NO: Slips = P.slips;
const ONE_CHUNK: Config = Config { name: "one chunk", chunks: 1, ..SMALL };
const LATE: Config = Config { name: "late", cancels: false, refusals: false, damage: false, ..ZOMBIES };

fn slip(slips: Slips) -> Decisions {
    Decisions { slips, ..P }
}

/// Those of `facts/idempotency.md` 5.3 that a model of the protocol can see.
#[rustfmt::skip]
fn listed() -> Vec<Mutant> {
    vec![
        Mutant("m1", LATE, slip(Slips { reads_early: true, ..NO }), "S5"),
        Mutant("m2", ONE_CHUNK, Decisions { begin: never_released, may_abandon: |_, _| false, ..P }, "L2"),
        Mutant("m4", SMALL, Decisions { begin: nobody_waits, ..P }, "idle"),
        Mutant("m9", SMALL, Decisions { content: content_is_never_new, ..P }, "S3"),
        Mutant("m10", PLACES, Decisions { content: any_place, ..P }, "S8"),
        Mutant("m11", LATE, slip(Slips { stores_failures: true, ..NO }), "P12"),
        Mutant("m12", ONE_CHUNK, Decisions { remembers: |past, late| if late { past.clear() }, ..P }, "S1"),
        Mutant("m13", Config { ordinals: &[0], ..AGAIN_OVERLAYS }, Decisions { remembers: |past, _| drop(past.drain(..past.len().saturating_sub(1))), ..P }, "S13"),
        Mutant("m14", OVERLAYS, slip(Slips { counts_first: true, ..NO }), "S11"),
        Mutant("m15", SMALL, slip(Slips { links_nothing: true, ..NO }), "S4"),
        Mutant("m16", SMALL, slip(Slips { receipt_later: true, ..NO }), "S10"),
        Mutant("m17", SMALL, Decisions { commit: commit_without_check, ..P }, "S5"),
        Mutant("m18", SMALL, Decisions { commit: commit_short_of_one, ..P }, "S2"),
        Mutant("m19", SMALL, Decisions { commit: forgets_the_receipt, ..P }, "C3"),
        Mutant("m20", SMALL, Decisions { commit: delayed_success, ..P }, "S3"),
        Mutant("m21", SMALL, Decisions { put: put_into_the_dead, sees: |state, epoch| state.is_visible(epoch) || state.row(epoch).died, ..P }, "S6"),
        Mutant("m22", SMALL, Decisions { may_abandon: believes_the_clock, ..P }, "S12"),
        Mutant("m23", SMALL, Decisions { may_sweep: |row, _| !matches!(row.fate, Fate::Committed { .. }), ..P }, "S12"),
        Mutant("m24", LATE, slip(Slips { answers_early: true, ..NO }), "S4"),
        Mutant("m27", READERS, Decisions { attach: |state| (state.current().saturating_sub(u8::from(state.open().is_some())), state.open()), ..P }, "S14"),
        Mutant("m31", ONE_CHUNK, Decisions { begin: the_dead_block, ..P }, "L2"),
        Mutant("m32", SMALL, slip(Slips { applies_twice: true, ..NO }), "S1"),
        Mutant("m33", SMALL, Decisions { begin: resume_raises, ..P }, "B2"),
        Mutant("m34", ONE_CHUNK, Decisions { begin: nobody_waits, ..P }, "L3"),
        Mutant("m35", SMALL, Decisions { content: a_key_for_each_attempt, ..P }, "S1"),
        Mutant("m38", Config { contents: &[0], ..LATE }, slip(Slips { reads_early: true, ..NO }), "S1"),
        Mutant("m40", SMALL, Decisions { content: drops_the_difference, ..P }, "S3"),
        Mutant("m41", SMALL, Decisions { commit: refusal_not_final, ..P }, "S15"),
    ]
}

/// Ours.
#[rustfmt::skip]
fn ours() -> Vec<Mutant> {
    let undecided = Config { policy: OnDifference::Fail, ..CONTENTS };
    vec![
        Mutant("two open epochs", SMALL, Decisions { begin: two_open, ..P }, "S5"),
        Mutant("put lands in the current epoch", SMALL, Decisions { address: |_, newest| newest, put: any_bytes, ..P }, "S2"),
        Mutant("put takes any bytes", SMALL, Decisions { put: any_bytes, ..P }, "S2"),
        Mutant("cancel not final", SMALL, Decisions { commit: cancel_not_final, ..P }, "S15"),
        Mutant("begin after commit opens a new epoch", SMALL, Decisions { content: content_is_always_new, begin: forgets_bindings, ..P }, "S1"),
        Mutant("collection abandons a committed epoch", SMALL, Decisions { may_abandon: abandons_the_committed, ..P }, "S5"),
        Mutant("collection takes the chunks of a revision", SMALL, Decisions { may_sweep: |row, _| row.fate != Fate::Open, ..P }, "S12"),
        Mutant("an abandoned epoch commits", SMALL, Decisions { commit: commits_the_abandoned, ..P }, "S5"),
        Mutant("a commit again commits again", SMALL, Decisions { commit: commits_twice, content: content_is_always_new, ..P }, "S1"),
        Mutant("cancel takes a committed epoch", SMALL, Decisions { cancel: cancels_the_committed, ..P }, "S15"),
        Mutant("cancel says ended of a committed epoch", SMALL, Decisions { cancel: denies_the_committed, ..P }, "S15"),
        Mutant("resume with any manifest", SMALL, Decisions { begin: resumes_any_manifest, ..P }, "S3"),
        Mutant("an overlay supersedes the committed epoch", OVERLAYS, Decisions { begin: supersedes_committed, ..P }, "S5"),
        Mutant("a replay's receipt is made anew", OVERLAYS, Decisions { receipt: |stored, _| stored.last().map(|r| r.receipt), ..P }, "S7"),
        Mutant("a confirmed attempt is written into the receipt", OVERLAYS, slip(Slips { confirms_in_receipt: true, ..NO }), "S7"),
        Mutant("a tombstone is forgotten", PLACES, Decisions { tombstoned: |_| false, ..P }, "S9"),
        Mutant("the commit does not look at the content again", undecided, slip(Slips { trusts_the_begin: true, ..NO }), "S1"),
        Mutant("a round is the sum of its pushes", ROUND, slip(Slips { forgets_overlaps: true, ..NO }), "S11"),
        Mutant("executors are not looked at while staging", LEGS, Decisions { begin: any_executor, accepts: |_, _| true, ..P }, "legs never mix"),
        Mutant("a later attempt that came to the same is not stored", ATTEMPTS, slip(Slips { confirms_nothing: true, ..NO }), "attempts never fall"),
        // Work, not truth.
        Mutant("a contested key is forgotten", LEGS, slip(Slips { contests_nothing: true, ..NO }), "contested"),
        Mutant("a promotion is held against nothing", PROMOTIONS, Decisions { newest: |_, expected| expected, ..P }, "V3"),
        Mutant("one request passes by what is staged", LEGS, Decisions { one_shot: |_, _, _| OneShotDecision::Record { ends: None }, ..P }, "O2"),
        Mutant("bindings forgotten", SMALL, Decisions { begin: forgets_bindings, ..P }, "B9"),
        Mutant("put into a dead epoch", SMALL, Decisions { put: put_into_the_dead, ..P }, "P6"),
        Mutant("a lower ordinal takes over", Config { ordinals: &[1, 2], ..AGAIN }, Decisions { begin: lower_takes_over, ..P }, "B10"),
        Mutant("an active epoch is taken over", SMALL, Decisions { begin: nobody_waits, ..P }, "B4"),
    ]
}

/// The number and what it is, as a row of a table.
fn name(of: &'static str) -> (&'static str, &'static str) {
    Known::parse(of).map_or(("m--", of), |known| (of, known.what()))
}

fn events(config: &Config, decisions: Decisions) -> (BTreeSet<Event>, usize) {
    let checker = Push::new(config.clone(), decisions).checker().spawn_bfs().join();
    (checker.model().events(), checker.unique_state_count())
}

/// What noticed the fault, if it is what should, and after how many states.
fn noticed(Mutant(_, config, decisions, expected): &Mutant) -> (bool, usize) {
    let property = properties::safety()
        .into_iter()
        .map(|property| property.name)
        .find(|name| name == expected || name.split(' ').next() == Some(expected));
    if let Some(property) = property {
        let push = Push::new(config.clone(), *decisions);
        let found = HasDiscoveries::AnyOf(BTreeSet::from([property]));
        let checker = push.checker().finish_when(found).spawn_bfs().join();
        return (checker.discoveries().contains_key(property), checker.unique_state_count());
    }
    if expected.starts_with('L') || *expected == "idle" {
        return match liveness::check(config, *decisions, *expected == "idle") {
            Ok(walked) => (false, walked.states),
            Err(failure) => (failure.property == *expected, failure.walked.states),
        };
    }
    // A row is lost only if no state reaches it.
    let (sound, _) = events(config, PRODUCTION);
    let (faulty, states) = events(config, *decisions);
    let lost =
        rows::missing(expected, &faulty).into_iter().any(|words| !rows::missing(expected, &sound).contains(&words));
    (lost, states)
}

#[test]
fn every_mutant_is_noticed() {
    let mut survivors = Vec::new();
    for mutant in listed().into_iter().chain(ours()) {
        let ((number, what), (killed, states)) = (name(mutant.0), noticed(&mutant));
        let end = if killed { format!("killed by {}", mutant.3) } else { format!("SURVIVES {}", mutant.3) };
        println!("mutant {number} | {what} | {end} | states {states}");
        if !killed {
            survivors.push((number, what));
        }
    }
    assert!(survivors.is_empty(), "not noticed by what should: {survivors:?}");
}

#[test]
fn numbers_are_those_of_the_list() {
    for Mutant(number, ..) in listed() {
        assert!(Known::parse(number).is_some(), "{number}");
    }
}
