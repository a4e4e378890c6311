//! The rest of the modelled engine: readers, promotions, another shard of the round, deletion.
//! Must not decide by itself.

use domain::verdict::RevisionKind;
use domain::{ProjectId, PushId, PushKey};

use crate::actions::Push;
use crate::content::{self, Tally};
use crate::notes;
use crate::rows::Event;
use crate::server::{Reply, answer, offer, past, record, recount};
use crate::state::{NOBODY, Source, State, Wish, fault};

/// A read. Nobody may take its receipt for an answer to an own begin or commit.
pub(crate) fn attach(model: &Push, state: &mut State, at: usize) -> Reply {
    let (revision, open) = (model.decisions.attach)(state);
    let seen = revision * 2 + u8::from(open.is_some());
    let before = state.saw[at];
    notes::attach(model, state, at, seen);
    if revision < before / 2 {
        state.faults |= fault::BACKWARDS;
    }
    state.saw[at] = seen;
    Reply::Seen
}

/// A read under another project: the production identity of a push names another one.
pub(crate) fn attach_elsewhere(model: &Push, _: &State) -> Reply {
    let id = |project: &str| {
        PushId::of(&ProjectId::parse(project).expect("a project"), &PushKey::parse("K").expect("a key"))
    };
    if id("shop") == id("bank") {
        return Reply::Seen;
    }
    model.saw_it(Event::H2);
    Reply::Gone
}

/// A person's decision, under a key of its own: what is asked for.
pub(crate) fn promote(model: &Push, state: &mut State, of: u8, expected: u8) -> Reply {
    let source = Source::Promotion { of, expected };
    if state.revisions.iter().any(|revision| revision.source == source) {
        model.saw_it(Event::V2);
        return Reply::Recorded;
    }
    let Some(row) = state.revisions.get(usize::from(of) - 1).filter(|row| !content::is_promotion(row.source)) else {
        return Reply::Gone;
    };
    let (content, place) = (row.content, row.place);
    if (model.decisions.newest)(state.current(), expected) != expected {
        let raced = state.revisions[usize::from(expected)..].iter().any(|later| content::is_promotion(later.source));
        if raced {
            model.saw_it(Event::V3);
        }
        return Reply::Wait;
    }
    let kind = RevisionKind::Promoted { of: u32::from(of), exact: false };
    let revisions = past(state);
    let tally = content::promoted(&revisions, kind, content, state.current() + 1);
    let nobody = Wish { content, ordinal: 0, executor: 0, place };
    let ordinal = content::promotion_ordinal(&offer(model, state, nobody, NOBODY, false, false));
    model.saw_it(Event::V1);
    if state.open().is_some() {
        model.saw_it(Event::PromotedWhileStaging);
    }
    let revision = record(model, state, source, (Wish { ordinal, ..nobody }, NOBODY), kind, tally);
    answer(model, state, content, revision)
}

/// Another shard of the round is pushed, whole.
pub(crate) fn neighbour(model: &Push, state: &mut State, ordinal: u8) {
    state.neighbour = Some(ordinal);
    recount(model, state);
}

/// The round is deleted, with all that is recorded and staged; a tombstone stays.
pub(crate) fn delete(state: &mut State) {
    state.deleted = true;
    state.epochs.clear();
    state.revisions.clear();
    state.linked = 0;
    state.executors.clear();
    state.contested = false;
    state.neighbour = None;
    state.tally = Tally::default();
    state.round = Tally::default();
    // What was promised held until now.
    (state.recorded, state.refused, state.ended) = (0, 0, 0);
    state.saw = [0; crate::state::SLOTS];
    state.bound = [0; crate::state::SLOTS];
}
