//! The modelled engine: one request, one transaction. It asks the decision functions and carries out what they say.
//! Must not decide by itself; the functions come as pointers, so that a mutant can take the place of any.

use std::collections::BTreeMap;

use domain::Digest;
use domain::staging::{
    self, Begin, BeginDecision, CancelDecision, CommitDecision, Epoch, Fate, KnownEpoch, PutDecision,
};
use domain::verdict::RevisionKind;

use crate::actions::Push;
use crate::content::{self, Content, Offer};
use crate::rows::Row;
use crate::state::{
    Answer, EpochRow, GENERATIONS, Link, Receipt, Request, State, chunk_digest, manifest_digest, ordinal,
};

/// What the server does not know: on a begin, whether the open epoch is idle; on a commit, whether it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice(pub(crate) bool);

/// The epoch that an incarnation is bound to, and what became of it.
pub(crate) type Bound = Option<(Epoch, Fate)>;

/// What an engine asks.
#[derive(Clone, Copy)]
pub(crate) struct Decisions {
    pub(crate) content: fn(&Offer) -> Content,
    pub(crate) begin: fn(&Begin, Option<&KnownEpoch>, Bound) -> BeginDecision,
    /// The epoch that a put is for: the named one of the named and the newest.
    pub(crate) address: fn(u8, u8) -> u8,
    pub(crate) put: fn(&KnownEpoch, u32, Option<Digest>, Digest) -> PutDecision,
    pub(crate) commit: fn(&KnownEpoch) -> CommitDecision,
    pub(crate) cancel: fn(&KnownEpoch) -> CancelDecision,
    pub(crate) may_abandon: fn(&KnownEpoch, bool) -> bool,
    /// The receipt of a revision, of all that are stored.
    pub(crate) receipt: fn(&[Receipt], u32) -> Option<Receipt>,
}

/// Those of the product.
pub(crate) const PRODUCTION: Decisions = Decisions {
    content: content::production,
    begin: staging::begin,
    address: |named, _| named,
    put: staging::put,
    commit: staging::commit,
    cancel: staging::cancel,
    may_abandon: staging::may_abandon,
    receipt: |stored, revision| stored.get(revision.checked_sub(1)? as usize).cloned(),
};

/// Handles a request; `None` past the bound on epochs.
pub(crate) fn deliver(model: &Push, state: &mut State, request: Request, choice: Choice) -> Option<()> {
    match request {
        Request::Begin { wish } => begin(model, state, usize::from(wish), choice.0)?,
        Request::Put { epoch, chunk, bytes } => put(model, state, epoch, chunk, bytes),
        Request::Commit { epoch, asked } => commit(model, state, epoch, asked, choice.0),
        Request::Cancel { epoch } => cancel(model, state, epoch),
        Request::Attach { wish } => attach(model, state, usize::from(wish)),
    }
    Some(())
}

fn recorded(model: &Push, state: &mut State, asked: u8, revision: u32) {
    if let Some(receipt) = (model.decisions.receipt)(&state.receipts, revision) {
        state.answers.insert(Answer::Recorded { asked, revision, receipt });
    }
}

fn begin(model: &Push, state: &mut State, at: usize, idle: bool) -> Option<()> {
    let wish = state.wishes[at]?;
    let config = &model.config;
    let offer = Offer { wish, incarnation: at as u8, fail: config.fail, receipts: state.receipts.clone() };
    let latest = state.latest();
    let committed = latest > 0 && matches!(state.row(latest).fate, Fate::Committed { .. });
    let kind = match (model.decisions.content)(&offer) {
        Content::Replay(revision) => {
            model.row(Row::B12);
            recorded(model, state, wish.manifest, revision);
            return Some(());
        }
        Content::Differs => {
            model.row(Row::B14);
            if committed {
                model.row(Row::C5Commit);
            }
            return Some(());
        }
        Content::Stage(kind) => kind,
    };
    let known = (latest > 0).then(|| state.known(latest, config.chunks, idle));
    let bound = (state.bound[at] > 0).then(|| (Epoch(u64::from(state.bound[at])), state.row(state.bound[at]).fate));
    let asked = Begin { manifest: manifest_digest(wish.manifest), ordinal: ordinal(wish.ordinal) };
    let decision = (model.decisions.begin)(&asked, known.as_ref(), bound);
    begin_rows(model, state, at, &decision);
    match decision {
        BeginDecision::Open { epoch, supersedes } => {
            if epoch.0 > u64::from(config.epochs) {
                return None;
            }
            if let Some(old) = supersedes {
                state.end(old.0 as u8, Fate::Superseded);
            }
            if committed && kind != RevisionKind::First {
                model.row(Row::B14Overlay);
                model.row(Row::C5Commit);
            }
            let chunks = BTreeMap::new();
            let (manifest, ordinal) = (wish.manifest, wish.ordinal);
            state.epochs.push(EpochRow { fate: Fate::Open, manifest, ordinal, kind, chunks, died: false });
            bind(state, at, epoch);
        }
        BeginDecision::Resume { epoch, ordinal, .. } => {
            let row = state.row_mut(epoch.0 as u8);
            row.ordinal = ordinal.map_or(0, |o| o.0 as u8);
            row.kind = kind;
            bind(state, at, epoch);
        }
        BeginDecision::Replay { revision } => recorded(model, state, wish.manifest, revision),
        BeginDecision::InProgress { .. } | BeginDecision::Stale { .. } | BeginDecision::Superseded { .. } => {}
    }
    Some(())
}

fn bind(state: &mut State, at: usize, epoch: Epoch) {
    state.bound[at] = epoch.0 as u8;
    state.told[at] |= 1 << epoch.0;
}

fn begin_rows(model: &Push, state: &State, at: usize, decision: &BeginDecision) {
    let Some(wish) = state.wishes[at] else { return };
    match decision {
        BeginDecision::Open { supersedes: None, .. } if state.latest() == 0 => model.row(Row::B1),
        BeginDecision::Open { supersedes: Some(old), .. } => {
            let row = state.row(old.0 as u8);
            let higher = wish.ordinal > row.ordinal && row.ordinal > 0;
            let again = !at.is_multiple_of(GENERATIONS);
            let which = match (higher, again) {
                (true, true) => Row::B6,
                (true, false) => Row::B5High,
                (false, _) => Row::B7,
            };
            model.row(which);
            if !higher && state.is_old(at) {
                model.row(Row::X5);
            }
            if !row.chunks.is_empty() {
                model.row(Row::P7Put);
            }
            if old.0 > 1 && state.row(old.0 as u8 - 1).fate == Fate::Superseded {
                model.row(Row::TwoSupersessions);
            }
        }
        BeginDecision::Resume { epoch, missing, .. } => {
            let all = model.config.chunks as usize;
            model.row(if state.bound[at] == epoch.0 as u8 { Row::B2 } else { Row::B3 });
            model.row(match missing.len() {
                0 => Row::B8All,
                some if some == all => Row::B8None,
                _ => Row::B8Some,
            });
        }
        BeginDecision::InProgress { .. } => model.row(Row::B4),
        BeginDecision::Stale { epoch } => model.row(if epoch.0 == 1 { Row::B5Low } else { Row::B10 }),
        BeginDecision::Superseded { bound } if state.row(bound.0 as u8).fate == Fate::Superseded => model.row(Row::B9),
        _ => {}
    }
}

fn put(model: &Push, state: &mut State, named: u8, chunk: u32, bytes: u8) {
    let epoch = (model.decisions.address)(named, state.latest());
    let row = state.row(epoch);
    let promised = (chunk < model.config.chunks).then(|| chunk_digest(row.manifest, chunk));
    let known = state.known(epoch, model.config.chunks, false);
    let decision = (model.decisions.put)(&known, chunk, promised, chunk_digest(bytes, chunk));
    let committed = matches!(row.fate, Fate::Committed { .. });
    match decision {
        PutDecision::Store => {
            model.row(if known.missing().first() == Some(&chunk) { Row::P1 } else { Row::P3 });
            let (died, before) = (row.died, state.visible());
            state.row_mut(epoch).chunks.insert(chunk, bytes);
            state.leaked |= died && before != state.visible();
        }
        PutDecision::Replay => model.row(if committed { Row::P8 } else { Row::P2 }),
        PutDecision::Mismatch => model.row(if committed { Row::P9 } else { Row::P5 }),
        PutDecision::Superseded => {
            model.row(Row::P6);
            if !row.chunks.contains_key(&chunk) {
                model.row(Row::P7Begin);
            }
        }
        PutDecision::Gone if row.fate == Fate::Abandoned => model.row(Row::P10),
        PutDecision::Gone | PutDecision::OutOfRange => {}
    }
}

fn commit(model: &Push, state: &mut State, epoch: u8, asked: u8, refuse: bool) {
    let known = state.known(epoch, model.config.chunks, false);
    let decision = (model.decisions.commit)(&known);
    commit_rows(model, state, &known, &decision);
    match decision {
        CommitDecision::Commit if refuse => {
            state.end(epoch, Fate::Refused);
            state.answers.insert(Answer::Refused { epoch });
        }
        CommitDecision::Commit => {
            let (died, before) = (state.row(epoch).died, state.visible());
            let revision = state.receipts.len() as u32 + 1;
            let wish = state.bound_to(epoch).next().unwrap_or_default() as u8;
            let row = state.row_mut(epoch);
            row.fate = Fate::Committed { revision };
            let (first, revised) = (row.kind == RevisionKind::First, row.kind == RevisionKind::Revised);
            let receipt = Receipt { epoch, manifest: row.manifest, ordinal: row.ordinal, wish, revised, first };
            state.receipts.push(receipt);
            state.links.push(Link { epoch, revision });
            state.leaked |= died && before != state.visible();
            recorded(model, state, asked, revision);
        }
        CommitDecision::Replay { revision } => recorded(model, state, asked, revision),
        CommitDecision::Refused => {
            state.answers.insert(Answer::Refused { epoch });
        }
        CommitDecision::Incomplete { .. } | CommitDecision::Superseded | CommitDecision::Gone => {}
    }
}

fn commit_rows(model: &Push, state: &State, known: &KnownEpoch, decision: &CommitDecision) {
    let epoch = known.epoch.0 as u8;
    let whole = known.missing().is_empty();
    match decision {
        CommitDecision::Commit => {
            model.row(Row::C1);
            let came_back = |first: usize| state.bound[first] == 1 && state.bound[first + 1] == 3;
            if epoch == 3
                && [1, 2].iter().all(|old| state.row(*old).fate == Fate::Superseded)
                && state.row(1).manifest == state.row(3).manifest
                && [0, GENERATIONS].into_iter().any(came_back)
            {
                model.row(Row::X1);
            }
        }
        CommitDecision::Replay { .. } => {
            model.row(Row::C3);
            if state.bound_to(epoch).count() > 1 {
                model.row(Row::C4);
            }
            if state.shared(epoch) {
                model.row(Row::X3);
            }
        }
        CommitDecision::Incomplete { .. } => model.row(Row::C2),
        CommitDecision::Superseded => {
            if whole {
                model.row(Row::C5Begin);
            }
            if state.links.iter().any(|link| link.epoch > epoch) {
                model.row(Row::C6);
            }
        }
        CommitDecision::Refused => model.row(Row::C11a),
        CommitDecision::Gone if whole && known.fate == Fate::Abandoned => model.row(Row::C7Gc),
        CommitDecision::Gone if known.fate == Fate::Cancelled => model.row(Row::N1Cancel),
        CommitDecision::Gone => {}
    }
    if known.fate == Fate::Refused {
        model.row(Row::C11);
    }
}

fn cancel(model: &Push, state: &mut State, epoch: u8) {
    let known = state.known(epoch, model.config.chunks, false);
    match (model.decisions.cancel)(&known) {
        CancelDecision::Cancel => {
            state.end(epoch, Fate::Cancelled);
            state.answers.insert(Answer::Ended { epoch });
        }
        CancelDecision::Ended => {
            if known.fate == Fate::Cancelled {
                model.row(Row::N2);
            }
            state.answers.insert(Answer::Ended { epoch });
        }
        CancelDecision::Committed { .. } => model.row(Row::N1Commit),
    }
}

/// A read: it changes nothing, and nobody may take its receipt for an answer to an own begin or commit.
fn attach(model: &Push, state: &State, at: usize) {
    let fenced = state.bound[at] > 0 && state.row(state.bound[at]).fate == Fate::Superseded;
    let rival = |link: &Link| Some(state.row(link.epoch).manifest) != state.wishes[at].map(|wish| wish.manifest);
    if fenced && state.links.iter().any(rival) {
        model.row(Row::X2);
    }
}

/// The collector looks at an epoch that was idle twice.
pub(crate) fn abandon(model: &Push, state: &mut State, epoch: u8) {
    let known = state.known(epoch, model.config.chunks, true);
    if (model.decisions.may_abandon)(&known, true) {
        model.row(Row::G1);
        state.end(epoch, Fate::Abandoned);
    } else if matches!(known.fate, Fate::Committed { .. }) {
        model.row(Row::C7Commit);
    }
}

/// Rows of dead epochs go; the predicate is the fate and nothing else (G3).
pub(crate) fn sweep(model: &Push, state: &mut State, epoch: u8) {
    let linked = state.linked(epoch);
    let others = state.links.iter().any(|link| link.epoch != epoch);
    let row = state.row_mut(epoch);
    if matches!(row.fate, Fate::Open | Fate::Committed { .. }) || row.chunks.is_empty() {
        return;
    }
    row.chunks.clear();
    state.swept_live |= linked;
    if others {
        model.row(Row::G3);
    }
}
