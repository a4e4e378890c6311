//! Which rows of 3.5 a step is. Reads a decision and the state before it; must not change or decide anything.

use domain::protocol::DifferenceClass;
use domain::staging::{
    BeginDecision, CancelDecision, CommitDecision, Ending, Fate, KnownEpoch, OneShotDecision, PutDecision,
};
use domain::verdict::RevisionKind;

use crate::actions::Push;
use crate::content::{Content, Why};
use crate::rows::Event;
use crate::server::Reply;
use crate::state::{DAMAGED, Request, SLOTS, State};

fn is_again(model: &Push, at: usize) -> bool {
    !at.is_multiple_of(model.config.generations)
}

fn latest_committed(state: &State) -> bool {
    state.epochs.last().is_some_and(|row| matches!(row.fate, Fate::Committed { .. }))
}

/// What a begin or a push in one request comes to, as far as its content goes.
pub(crate) fn content(model: &Push, state: &State, at: usize, content: Content) {
    let Some(wish) = state.wishes[at] else { return };
    let differs = |event| {
        model.saw_it(event);
        if latest_committed(state) {
            model.saw_it(Event::C5Commit);
        }
        if is_again(model, at) && state.revisions.iter().any(|revision| usize::from(revision.by) + 1 == at) {
            model.saw_it(Event::C10);
        }
    };
    match content {
        Content::Replay { revision, class } => {
            let row = state.revisions.get(usize::from(revision) - 1);
            let cut_otherwise = row.is_some_and(|row| class == DifferenceClass::None && row.content != wish.content);
            model.saw_it(match class {
                DifferenceClass::Cosmetic => Event::B13Cosmetic,
                _ if cut_otherwise => Event::B13Cuts,
                _ => Event::B12,
            });
        }
        Content::Refuse { why, .. } => match why {
            Why::KeyReused => model.saw_it(Event::B11),
            Why::ShardPlan => model.saw_it(Event::R1),
            Why::Differs => differs(Event::B14),
            Why::OtherExecutor if state.contested => model.saw_it(Event::LegsContested),
            Why::OtherExecutor => model.saw_it(Event::LegsRecorded),
            Why::Tombstoned => [Event::B15, Event::C12Begin].into_iter().for_each(|event| model.saw_it(event)),
            Why::OtherWork | Why::Other => {}
        },
        Content::Undecided => model.saw_it(Event::Undecided),
        Content::Stage { kind: RevisionKind::First, .. } => {}
        Content::Stage { .. } => differs(Event::B14Overlay),
    }
}

/// A begin whose content has to be staged.
pub(crate) fn begin(model: &Push, state: &State, at: usize, decision: &BeginDecision) {
    match decision {
        BeginDecision::Open { supersedes: None, .. } if state.latest() == 0 => model.saw_it(Event::B1),
        BeginDecision::Open { supersedes: Some(old), .. } => supersedes(model, state, at, old.0 as u8),
        BeginDecision::Resume { epoch, missing, .. } => {
            let all = model.config.chunks as usize;
            if state.bound[at] == epoch.0 as u8 {
                model.saw_it(Event::B2);
                model.saw_it(Event::B19);
            } else {
                model.saw_it(Event::B3);
            }
            model.saw_it(match missing.len() {
                0 => Event::B8All,
                some if some == all => Event::B8None,
                _ => Event::B8Some,
            });
        }
        BeginDecision::InProgress { .. } => model.saw_it(Event::B4),
        BeginDecision::Stale { epoch } => model.saw_it(if epoch.0 == 1 { Event::B5Low } else { Event::B10 }),
        BeginDecision::Superseded { bound } if state.row(bound.0 as u8).fate == Fate::Superseded => {
            model.saw_it(Event::B9);
        }
        BeginDecision::Reused(_) => model.saw_it(Event::B11Staged),
        BeginDecision::Collides(_) => {
            let contested = state.epochs.last().is_some_and(|row| row.contested);
            model.saw_it(if contested { Event::LegsContested } else { Event::LegsOpen });
        }
        _ => {}
    }
}

fn supersedes(model: &Push, state: &State, at: usize, old: u8) {
    let Some(wish) = state.wishes[at] else { return };
    let row = state.row(old);
    let higher = wish.ordinal > row.wish.ordinal && row.wish.ordinal > 0;
    model.saw_it(match (higher, is_again(model, at)) {
        (true, true) => Event::B6,
        (true, false) => Event::B5High,
        (false, _) => Event::B7,
    });
    let successor = at + 1;
    if !higher && successor < SLOTS && is_again(model, successor) && state.wishes[successor].is_some() {
        model.saw_it(Event::X5);
    }
    if !row.is_empty() {
        model.saw_it(Event::P7Put);
    }
    if old > 1 && state.row(old - 1).fate == Fate::Superseded {
        model.saw_it(Event::TwoSupersessions);
    }
}

/// A push in one request that is to be recorded.
pub(crate) fn one_shot(model: &Push, state: &State, decision: &OneShotDecision) {
    match decision {
        OneShotDecision::Record { ends: Some((_, Ending::Committed)) } => model.saw_it(Event::O2),
        OneShotDecision::Record { ends: None } if state.revisions.is_empty() => model.saw_it(Event::O1Absent),
        OneShotDecision::Record { .. } => {}
        OneShotDecision::Wait(BeginDecision::Collides(_)) => model.saw_it(Event::LegsOpen),
        OneShotDecision::Wait(_) => model.saw_it(Event::O1Wait),
    }
}

/// A put of some content's bytes.
pub(crate) fn put(model: &Push, state: &State, known: &KnownEpoch, body: (u32, u8), decision: PutDecision) {
    let (chunk, bytes) = body;
    let row = state.row(known.epoch.0 as u8);
    let committed = matches!(row.fate, Fate::Committed { .. });
    match decision {
        PutDecision::Store => model.saw_it(if known.missing().first() == Some(&chunk) { Event::P1 } else { Event::P3 }),
        PutDecision::Replay => model.saw_it(if committed { Event::P8 } else { Event::P2 }),
        PutDecision::Mismatch if bytes == DAMAGED => model.saw_it(Event::P4),
        PutDecision::Mismatch => model.saw_it(if committed { Event::P9 } else { Event::P5 }),
        PutDecision::Superseded => {
            model.saw_it(Event::P6);
            if row.chunk(chunk).is_none() {
                model.saw_it(Event::P7Begin);
            }
            if (known.epoch.0 as u8 + 1..=state.latest()).any(|later| state.is_visible(later)) {
                model.saw_it(Event::X6);
            }
        }
        PutDecision::Gone if row.fate == Fate::Abandoned => {
            model.saw_it(if row.is_empty() { Event::P15 } else { Event::P10 });
        }
        PutDecision::Gone => {}
        PutDecision::OutOfRange => model.saw_it(Event::P11),
    }
}

/// A commit.
pub(crate) fn commit(model: &Push, state: &State, known: &KnownEpoch, decision: &CommitDecision) {
    let epoch = known.epoch.0 as u8;
    let whole = known.missing().is_empty();
    match decision {
        CommitDecision::Commit => {
            model.saw_it(Event::C1);
            let came_back = |first: usize| state.bound[first] == 1 && state.bound[first + 1] == 3;
            let generations = model.config.generations;
            if generations > 1
                && epoch == 3
                && [1, 2].iter().all(|old| state.row(*old).fate == Fate::Superseded)
                && state.row(1).wish.content == state.row(3).wish.content
                && [0, generations].into_iter().any(came_back)
            {
                model.saw_it(Event::X1);
            }
        }
        CommitDecision::Replay { revision } => {
            model.saw_it(Event::C3);
            if state.bound_to(epoch).count() > 1 {
                model.saw_it(Event::C4);
            }
            let of = |runner: usize| state.bound_to(epoch).any(|at| at / model.config.generations == runner);
            if of(0) && of(1) {
                model.saw_it(Event::X3);
            }
            if *revision < u32::from(state.current()) {
                model.saw_it(Event::V5);
            }
        }
        CommitDecision::Incomplete { .. } => model.saw_it(Event::C2),
        CommitDecision::Superseded => {
            if whole {
                model.saw_it(Event::C5Begin);
            }
            if (epoch + 1..=state.latest()).any(|later| state.is_visible(later)) {
                model.saw_it(Event::C6);
            }
        }
        CommitDecision::Refused => model.saw_it(Event::C11a),
        CommitDecision::Gone if whole && known.fate == Fate::Abandoned => model.saw_it(Event::C7Gc),
        CommitDecision::Gone if known.fate == Fate::Cancelled => model.saw_it(Event::N1Cancel),
        CommitDecision::Gone => {}
    }
}

/// What the content of a whole epoch came to at its commit.
pub(crate) fn decided_at_commit(model: &Push, content: Content) {
    if let Content::Refuse { why: Why::OtherWork, .. } = content {
        model.saw_it(Event::OtherWork);
    }
}

/// A commit of an epoch that is not there.
pub(crate) fn unknown(model: &Push, state: &State) {
    if state.deleted {
        model.saw_it(Event::C12Commit);
    }
}

/// A revision was recorded.
pub(crate) fn recorded(model: &Push, state: &State) {
    let has_two = |content| crate::content::items(content).iter().any(|(name, _)| *name == "two");
    if state.neighbour.is_some() && state.revisions.iter().any(|revision| has_two(revision.content)) {
        model.saw_it(Event::R2);
    }
}

/// A cancel.
pub(crate) fn cancel(model: &Push, known: &KnownEpoch, decision: CancelDecision) {
    match decision {
        CancelDecision::Ended if known.fate == Fate::Cancelled => model.saw_it(Event::N2),
        CancelDecision::Ended | CancelDecision::Cancel => {}
        CancelDecision::Committed { .. } => model.saw_it(Event::N1Commit),
    }
}

/// A look of the collector.
pub(crate) fn abandon(model: &Push, state: &State, known: &KnownEpoch, idle_before: bool, may: bool) {
    let some = !known.present.is_empty() && !known.missing().is_empty();
    match known.fate {
        Fate::Open if may => {
            model.saw_it(Event::G1);
            if some && state.revisions.is_empty() {
                model.saw_it(Event::P14);
            }
            if !state.revisions.is_empty() {
                model.saw_it(Event::V4);
            }
        }
        Fate::Open if known.idle && !idle_before => model.saw_it(Event::G4),
        Fate::Open if !known.idle => model.saw_it(Event::G5),
        Fate::Committed { .. } if !may => model.saw_it(Event::C7Commit),
        _ => {}
    }
}

/// A chunk of an epoch was deleted.
pub(crate) fn sweep(model: &Push, state: &State, epoch: u8) {
    if !state.row(epoch).is_empty() {
        model.saw_it(Event::G2);
    }
    if state.linked != 0 {
        model.saw_it(Event::G3);
    }
}

/// A read.
pub(crate) fn attach(model: &Push, state: &State, at: usize, seen: u8) {
    let before = state.saw[at];
    if before % 2 == 1 && seen / 2 > before / 2 {
        model.saw_it(Event::H1);
    }
    let bound = state.bound[at];
    let fenced = bound > 0 && bound <= state.latest() && state.row(bound).fate == Fate::Superseded;
    let mine = state.wishes[at].map(|wish| wish.content);
    if fenced && state.revisions.iter().any(|revision| Some(revision.content) != mine) {
        model.saw_it(Event::X2);
    }
}

/// A request that was taken in is dropped before its COMMIT.
pub(crate) fn aborted(model: &Push, state: &State, request: Request) {
    let open = |epoch: u8| epoch <= state.latest() && state.row(epoch).fate == Fate::Open;
    match request {
        Request::Begin { .. } if state.latest() == 0 => model.saw_it(Event::B16),
        Request::Put { epoch, chunk, .. } if open(epoch) && state.row(epoch).chunk(chunk).is_none() => {
            model.saw_it(Event::P12);
            model.saw_it(Event::P13Before);
        }
        Request::Commit { epoch, .. } if open(epoch) => model.saw_it(Event::C8Before),
        _ => {}
    }
}

/// A request that was taken in is applied, and nobody reads the answer.
pub(crate) fn resolved(model: &Push, before: &State, after: &State, request: Request, reply: Reply) {
    match (request, reply) {
        (Request::Begin { .. }, Reply::Staging { .. }) if after.latest() > before.latest() => model.saw_it(Event::B17),
        (Request::Begin { at }, Reply::Staging { epoch }) if before.bound[usize::from(at)] == epoch => {
            model.saw_it(Event::B18);
        }
        (Request::Put { .. }, Reply::Stored) if after.epochs != before.epochs => model.saw_it(Event::P13After),
        (Request::Commit { .. }, Reply::Recorded) if after.current() > before.current() => {
            model.saw_it(Event::C8After);
        }
        (Request::Commit { .. }, Reply::Recorded) => {
            model.saw_it(Event::C9);
            model.saw_it(Event::ZombieCommit);
        }
        _ => {}
    }
}
