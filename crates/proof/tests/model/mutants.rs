//! Faults put in the place of decision functions: each has to be noticed, or the model proves nothing.
//! Where a fault costs only work, never truth, a row of 3.5 that is no longer reached gives it away.

use std::collections::BTreeSet;

use domain::Digest;
use domain::staging::{self, Begin, BeginDecision, CancelDecision, CommitDecision, Fate, KnownEpoch, PutDecision};
use domain::verdict::RevisionKind;
use stateright::{Checker, Model};

use crate::actions::{Config, Push};
use crate::content::{self, Content, Offer};
use crate::server::{Bound, Decisions, PRODUCTION};
use crate::{AGAIN, OVERLAYS, SMALL};

fn as_open(epoch: &KnownEpoch) -> KnownEpoch {
    KnownEpoch { fate: Fate::Open, ..epoch.clone() }
}

fn two_open(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    match staging::begin(offer, latest, bound) {
        BeginDecision::Open { epoch, .. } => BeginDecision::Open { epoch, supersedes: None },
        other => other,
    }
}

fn supersedes_committed(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    match staging::begin(offer, latest, bound) {
        BeginDecision::Open { epoch, .. } => BeginDecision::Open { epoch, supersedes: latest.map(|l| l.epoch) },
        other => other,
    }
}

fn resumes_any_manifest(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    let same = latest.map(|latest| KnownEpoch { manifest: offer.manifest, ..latest.clone() });
    staging::begin(offer, same.as_ref(), bound)
}

fn forgets_bindings(offer: &Begin, latest: Option<&KnownEpoch>, _: Bound) -> BeginDecision {
    staging::begin(offer, latest, None)
}

fn lower_takes_over(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    match staging::begin(offer, latest, bound) {
        BeginDecision::Stale { epoch } => BeginDecision::Open { epoch: epoch.next(), supersedes: Some(epoch) },
        other => other,
    }
}

fn nobody_waits(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    let idle = latest.map(|latest| KnownEpoch { idle: true, ..latest.clone() });
    staging::begin(offer, idle.as_ref(), bound)
}

fn content_is_always_new(offer: &Offer) -> Content {
    match content::production(offer) {
        Content::Stage(kind) => Content::Stage(kind),
        Content::Replay(_) | Content::Differs => Content::Stage(RevisionKind::Kept),
    }
}

fn any_bytes(epoch: &KnownEpoch, chunk: u32, promised: Option<Digest>, _: Digest) -> PutDecision {
    staging::put(epoch, chunk, promised, promised.unwrap_or(Digest([0; 32])))
}

fn put_into_the_dead(epoch: &KnownEpoch, chunk: u32, promised: Option<Digest>, offered: Digest) -> PutDecision {
    match staging::put(epoch, chunk, promised, offered) {
        PutDecision::Superseded | PutDecision::Gone => PutDecision::Store,
        other => other,
    }
}

fn delayed_success(epoch: &KnownEpoch) -> CommitDecision {
    match staging::commit(epoch) {
        CommitDecision::Superseded => CommitDecision::Replay { revision: 1 },
        other => other,
    }
}

fn commit_without_check(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Superseded => staging::commit(&as_open(epoch)),
        _ => staging::commit(epoch),
    }
}

fn commit_short_of_one(epoch: &KnownEpoch) -> CommitDecision {
    match staging::commit(epoch) {
        CommitDecision::Incomplete { missing } if missing.len() == 1 => CommitDecision::Commit,
        other => other,
    }
}

fn refusal_not_final(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Refused => staging::commit(&as_open(epoch)),
        _ => staging::commit(epoch),
    }
}

fn cancel_not_final(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Cancelled => staging::commit(&as_open(epoch)),
        _ => staging::commit(epoch),
    }
}

fn commits_the_abandoned(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Abandoned => staging::commit(&as_open(epoch)),
        _ => staging::commit(epoch),
    }
}

fn commits_twice(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Committed { .. } => CommitDecision::Commit,
        _ => staging::commit(epoch),
    }
}

fn cancels_the_committed(epoch: &KnownEpoch) -> CancelDecision {
    match staging::cancel(epoch) {
        CancelDecision::Committed { .. } => CancelDecision::Cancel,
        other => other,
    }
}

fn denies_the_committed(epoch: &KnownEpoch) -> CancelDecision {
    match staging::cancel(epoch) {
        CancelDecision::Committed { .. } => CancelDecision::Ended,
        other => other,
    }
}

fn abandons_the_committed(epoch: &KnownEpoch, idle_before: bool) -> bool {
    staging::may_abandon(&as_open(epoch), idle_before) && matches!(epoch.fate, Fate::Open | Fate::Committed { .. })
}

/// A fault, where it is looked for, and what has to notice it: the start of a property's or of a lost row's name.
struct Mutant(&'static str, Config, Decisions, &'static str);

#[rustfmt::skip]
fn mutants() -> Vec<Mutant> {
    let p = PRODUCTION;
    vec![
        Mutant("two open epochs", SMALL, Decisions { begin: two_open, ..p }, "S5"),
        Mutant("put lands in the current epoch", SMALL, Decisions { address: |_, newest| newest, put: any_bytes, ..p }, "S2"),
        Mutant("put takes any bytes", SMALL, Decisions { put: any_bytes, ..p }, "S2"),
        Mutant("delayed commit answers success after another commit", SMALL, Decisions { commit: delayed_success, ..p }, "S3"),
        Mutant("commit without epoch check", SMALL, Decisions { commit: commit_without_check, ..p }, "S5"),
        Mutant("commit with n-1 chunks", SMALL, Decisions { commit: commit_short_of_one, ..p }, "S2"),
        Mutant("refusal not final", SMALL, Decisions { commit: refusal_not_final, ..p }, "S15"),
        Mutant("cancel not final", SMALL, Decisions { commit: cancel_not_final, ..p }, "S15"),
        Mutant("begin after commit opens a new epoch", SMALL, Decisions { content: content_is_always_new, begin: forgets_bindings, ..p }, "S1"),
        Mutant("GC abandons a committed epoch", SMALL, Decisions { may_abandon: abandons_the_committed, ..p }, "S12"),
        Mutant("an abandoned epoch commits", SMALL, Decisions { commit: commits_the_abandoned, ..p }, "S5"),
        Mutant("a commit again commits again", SMALL, Decisions { commit: commits_twice, ..p }, "S1"),
        Mutant("cancel takes a committed epoch", SMALL, Decisions { cancel: cancels_the_committed, ..p }, "S15"),
        Mutant("cancel says ended of a committed epoch", SMALL, Decisions { cancel: denies_the_committed, ..p }, "S15"),
        Mutant("resume with any manifest", SMALL, Decisions { begin: resumes_any_manifest, ..p }, "S3"),
        Mutant("an overlay supersedes the committed epoch", OVERLAYS, Decisions { begin: supersedes_committed, ..p }, "S5"),
        Mutant("a replay's receipt is made anew", OVERLAYS, Decisions { receipt: |stored, _| stored.last().cloned(), ..p }, "S7"),
        // Work, not truth.
        Mutant("bindings forgotten", SMALL, Decisions { begin: forgets_bindings, ..p }, "B9"),
        Mutant("put into a dead epoch", SMALL, Decisions { put: put_into_the_dead, ..p }, "P6"),
        Mutant("a lower ordinal takes over", AGAIN, Decisions { begin: lower_takes_over, ..p }, "B10"),
        Mutant("an active epoch is taken over", SMALL, Decisions { begin: nobody_waits, ..p }, "B4"),
    ]
}

fn rows_of(config: &Config) -> BTreeSet<&'static str> {
    Push::new(config.clone(), PRODUCTION).checker().spawn_bfs().join().model().rows()
}

#[test]
fn every_mutant_is_noticed() {
    let mut survivors = Vec::new();
    for Mutant(name, config, decisions, expected) in mutants() {
        // To the end: what fails should be known in full, and a row is lost only if no state reaches it.
        let push = Push::new(config.clone(), decisions);
        let checker = push.checker().spawn_bfs().join();
        let discoveries = checker.discoveries();
        let mut noticed: BTreeSet<&str> = discoveries.keys().copied().filter(|name| name.starts_with('S')).collect();
        if noticed.is_empty() {
            noticed = rows_of(&config).difference(&checker.model().rows()).copied().collect();
        }
        println!("{name}: {} states, killed by {noticed:?}", checker.unique_state_count());
        if !noticed.iter().any(|by| by.split(' ').next() == Some(expected)) {
            survivors.push(name);
        }
    }
    assert!(survivors.is_empty(), "not noticed by what should: {survivors:?}");
}
