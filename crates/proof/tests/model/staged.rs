//! The modelled engine's put, commit, cancel and collection. As `server`, it carries out and must not decide by itself.

use domain::staging::{CancelDecision, CommitDecision, Fate, KnownEpoch, PutDecision};
use domain::verdict::RevisionKind;

use crate::actions::Push;
use crate::content::{Content, Tally, Why};
use crate::notes;
use crate::rows::Event;
use crate::server::{Reply, answer, offer, record, refuse, replay};
use crate::state::{Source, State, Wish, chunk_digest, fault};

/// What readers get at: chunks of visible epochs.
fn visible(model: &Push, state: &State) -> Vec<(u8, [u8; crate::state::CHUNKS])> {
    let seen = |epoch: &u8| (model.decisions.sees)(state, *epoch);
    (1..=state.latest()).filter(seen).map(|epoch| (epoch, state.row(epoch).chunks)).collect()
}

/// One chunk.
pub(crate) fn put(model: &Push, state: &mut State, named: u8, chunk: u32, bytes: u8) -> Reply {
    if named > state.latest() {
        return Reply::Gone;
    }
    let epoch = (model.decisions.address)(named, state.latest());
    let row = state.row(epoch);
    let promised = (chunk < model.config.chunks).then(|| chunk_digest(row.wish.content, chunk));
    let known = state.known(epoch, model.config.chunks, false);
    let decision = (model.decisions.put)(&known, chunk, promised, chunk_digest(bytes, chunk));
    notes::put(model, state, &known, (chunk, bytes), decision);
    match decision {
        PutDecision::Store => {
            let before = row.died.then(|| visible(model, state));
            state.row_mut(epoch).chunks[chunk as usize] = bytes + 1;
            if before.is_some_and(|before| before != visible(model, state)) {
                state.faults |= fault::LEAKED;
            }
            Reply::Stored
        }
        PutDecision::Replay => Reply::Stored,
        PutDecision::Mismatch | PutDecision::OutOfRange => Reply::Mismatch,
        PutDecision::Superseded => Reply::Fenced,
        PutDecision::Gone => Reply::Gone,
    }
}

/// A commit: of an epoch, by somebody who asked for this content.
pub(crate) fn commit(
    model: &Push,
    state: &mut State,
    read: Option<&State>,
    (epoch, asked): (u8, u8),
    refused: bool,
) -> Reply {
    if epoch > state.latest() {
        notes::unknown(model, state);
        return Reply::Gone;
    }
    let known = read.unwrap_or(state).known(epoch, model.config.chunks, false);
    let decision = (model.decisions.commit)(&known);
    notes::commit(model, state, &known, &decision);
    match decision {
        CommitDecision::Commit if refused => {
            model.saw_it(Event::C11);
            end_refused(state, epoch, Why::Other)
        }
        CommitDecision::Commit => {
            let died = state.row(epoch).died;
            let before = died.then(|| visible(model, state));
            let reply = link(model, state, read, &known, asked);
            if before.is_some_and(|before| before != visible(model, state)) {
                state.faults |= fault::LEAKED;
            }
            reply
        }
        CommitDecision::Replay { revision } => {
            // A commit does not say who sends it.
            let who = Wish { content: asked, executor: 0, ..state.row(epoch).wish };
            if usize::try_from(revision).is_ok_and(|r| r > state.revisions.len()) {
                return Reply::Gone;
            }
            replay(model, state, who, revision as u8)
        }
        CommitDecision::Refused => {
            state.refused |= 1 << epoch;
            Reply::Refused(Why::Other)
        }
        CommitDecision::Incomplete { .. } => Reply::Incomplete,
        CommitDecision::Superseded => Reply::Fenced,
        CommitDecision::Gone => Reply::Gone,
    }
}

fn end_refused(state: &mut State, epoch: u8, why: Why) -> Reply {
    state.end(epoch, Fate::Refused);
    state.refused |= 1 << epoch;
    Reply::Refused(why)
}

/// The content is decided on once more: what is recorded may have changed since the begin.
fn link(model: &Push, state: &mut State, read: Option<&State>, known: &KnownEpoch, asked: u8) -> Reply {
    let epoch = known.epoch.0 as u8;
    let row = state.row(epoch);
    let (wish, by, contested) = (row.wish, row.sender, row.contested);
    let offer = offer(model, read.unwrap_or(state), wish, by, true, true);
    let content = if model.decisions.slips.trusts_the_begin {
        let kind = if state.revisions.is_empty() { RevisionKind::First } else { RevisionKind::Kept };
        Content::Stage { kind, tally: Tally::default() }
    } else {
        (model.decisions.content)(&offer)
    };
    notes::decided_at_commit(model, content);
    match content {
        Content::Stage { .. } if model.decisions.slips.receipt_later => {
            state.row_mut(epoch).fate = Fate::Committed { revision: u32::from(state.current()) + 1 };
            Reply::Gone
        }
        Content::Stage { kind, tally } => {
            state.contested |= contested;
            let senders = state.row(epoch).executors.clone();
            let revision = record(model, state, Source::Epoch(epoch), (wish, by), kind, tally);
            if model.decisions.slips.applies_twice {
                record(model, state, Source::Epoch(epoch), (wish, by), kind, tally);
            }
            state.row_mut(epoch).fate = Fate::Committed { revision: u32::from(revision) };
            let accepted: Vec<_> = senders.into_iter().filter(|s| (model.decisions.accepts)(state, *s)).collect();
            state.executors.extend(accepted);
            state.executors.sort_unstable();
            state.executors.dedup();
            answer(model, state, asked, revision)
        }
        // Recorded by another way meanwhile: the epoch stands for that revision, and its chunks for nothing.
        Content::Replay { revision, .. } => {
            state.row_mut(epoch).fate = Fate::Committed { revision: u32::from(revision) };
            replay(model, state, Wish { content: asked, executor: 0, ..wish }, revision)
        }
        Content::Refuse { why, contest } => {
            let _ = refuse(model, state, why, contest);
            end_refused(state, epoch, why)
        }
        Content::Undecided => Reply::Incomplete,
    }
}

/// A cancel.
pub(crate) fn cancel(model: &Push, state: &mut State, epoch: u8) -> Reply {
    if epoch > state.latest() {
        return Reply::Gone;
    }
    let known = state.known(epoch, model.config.chunks, false);
    let decision = (model.decisions.cancel)(&known);
    notes::cancel(model, &known, decision);
    match decision {
        CancelDecision::Cancel => {
            state.end(epoch, Fate::Cancelled);
            state.ended |= 1 << epoch;
            Reply::Ended
        }
        CancelDecision::Ended => {
            state.ended |= 1 << epoch;
            Reply::Ended
        }
        CancelDecision::Committed { .. } => Reply::Recorded,
    }
}

/// The collector looks at an epoch: is it idle now, was it idle at the look before?
pub(crate) fn abandon(model: &Push, state: &mut State, epoch: u8, idle: bool, idle_before: bool) {
    let known = state.known(epoch, model.config.chunks, idle);
    let may = (model.decisions.may_abandon)(&known, idle_before);
    notes::abandon(model, state, &known, idle_before, may);
    if may {
        if !(idle && idle_before) {
            state.faults |= fault::SWEPT;
        }
        state.end(epoch, Fate::Abandoned);
    }
}

/// One chunk of an epoch that nobody needs goes; the predicate is the fate and nothing else (G3).
pub(crate) fn sweep(model: &Push, state: &mut State, epoch: u8) {
    let visible = state.is_visible(epoch);
    let made_of = state.made_of(epoch).is_some();
    let row = state.row(epoch);
    let Some(chunk) = row.chunks.iter().position(|chunk| *chunk > 0) else { return };
    if !(model.decisions.may_sweep)(row, made_of) {
        return;
    }
    if visible || row.fate == Fate::Open {
        state.faults |= fault::SWEPT;
    }
    state.row_mut(epoch).chunks[chunk] = 0;
    notes::sweep(model, state, epoch);
}
