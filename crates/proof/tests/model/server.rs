//! The modelled engine: one request, one transaction. It asks the decision functions and carries out what they say.
//! Must not decide by itself.

use domain::staging::{Begin, BeginDecision, Ending, Epoch, Fate, OneShotDecision};
use domain::verdict::RevisionKind;

use crate::actions::Push;
use crate::content::{self, Content, Offer, Past, Tally, Why};
use crate::decisions::{Bound, Choice};
use crate::properties::reference;
use crate::rows::Event;
use crate::state::{
    self, EpochRow, NOBODY, Receipt, Request, Revision, Source, State, Wish, fault, manifest_digest, ordinal,
};
use crate::{notes, people, staged};

/// What a runner hears, as far as it decides on what it does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Staging {
        epoch: u8,
    },
    Recorded,
    Refused(Why),
    /// Another delivery is staging.
    Wait,
    /// A newer epoch has begun: this client is an old one.
    Fenced,
    /// A chunk is there.
    Stored,
    /// Bytes or number are not the manifest's.
    Mismatch,
    Incomplete,
    /// The epoch ended without a commit, or is unknown: begin again.
    Gone,
    /// A cancel is done.
    Ended,
    /// A read.
    Seen,
}

/// Handles a request; `None` past the bound on epochs. `read` is what a mutant read earlier.
pub(crate) fn deliver(
    model: &Push,
    state: &mut State,
    read: Option<&State>,
    request: Request,
    choice: Choice,
) -> Option<Reply> {
    Some(match request {
        Request::Begin { at } => begin(model, state, read, usize::from(at), choice.0)?,
        Request::OneShot { at } => one_shot(model, state, usize::from(at), choice.0)?,
        Request::Put { epoch, chunk, bytes } => staged::put(model, state, epoch, chunk, bytes),
        Request::Commit { epoch, asked } => staged::commit(model, state, read, (epoch, asked), choice.0),
        Request::Cancel { epoch } => staged::cancel(model, state, epoch),
        Request::Attach { at } => people::attach(model, state, usize::from(at)),
        Request::AttachElsewhere => people::attach_elsewhere(model, state),
        Request::Promote { of, expected } => people::promote(model, state, of, expected),
    })
}

/// What the revisions are to a decision.
pub(crate) fn past(state: &State) -> Vec<Past> {
    let past = |(at, r): (usize, &Revision)| Past {
        number: at as u8 + 1,
        kind: r.kind,
        content: r.content,
        place: r.place,
        ordinal: r.ordinal,
        by: r.by,
    };
    state.revisions.iter().enumerate().map(past).collect()
}

/// What a delivery offers, beside all that is known.
pub(crate) fn offer(model: &Push, state: &State, wish: Wish, by: u8, items: bool, late: bool) -> Offer {
    let mut revisions = past(state);
    (model.decisions.remembers)(&mut revisions, late);
    Offer {
        wish,
        incarnation: by,
        policy: model.config.policy,
        items,
        tombstoned: (model.decisions.tombstoned)(state.deleted),
        contested: state.contested,
        executors: state.executors.clone(),
        neighbour: state.neighbour.is_some(),
        revisions,
    }
}

/// Answers "recorded" with a stored receipt.
pub(crate) fn answer(model: &Push, state: &mut State, asked: u8, revision: u8) -> Reply {
    let Some(receipt) = (model.decisions.receipt)(&state.revisions, revision) else { return Reply::Gone };
    let Some(row) = state.revisions.get(usize::from(revision) - 1) else { return Reply::Gone };
    if receipt != row.promised {
        state.faults |= fault::RECEIPT;
    }
    if content::says_the_same(row.content, asked) {
        state.recorded |= 1 << (asked * 8 + revision - 1);
    } else if !reference::counts_as(&past(state), asked) {
        // Not that content, and not what counted just now either.
        state.faults |= fault::SUPPRESSED;
    }
    Reply::Recorded
}

/// A delivery that found its content recorded.
pub(crate) fn replay(model: &Push, state: &mut State, who: Wish, revision: u8) -> Reply {
    accept(state, who);
    let slips = model.decisions.slips;
    if slips.counts_first {
        state.tally.total += content::items(who.content).len() as u8;
    }
    let row = &mut state.revisions[usize::from(revision) - 1];
    row.heard = row.heard.max(who.ordinal);
    if who.ordinal > row.ordinal && !slips.confirms_nothing {
        model.saw_it(Event::Confirmed);
        row.ordinal = who.ordinal;
        if slips.confirms_in_receipt {
            row.receipt.ordinal = who.ordinal;
        }
    }
    recount(model, state);
    answer(model, state, who.content, revision)
}

fn accept(state: &mut State, who: Wish) {
    let pair = (who.ordinal, who.executor);
    if who.executor > 0 && !state.executors.contains(&pair) {
        state.executors.push(pair);
        state.executors.sort_unstable();
    }
}

/// A delivery that is refused for its content.
pub(crate) fn refuse(model: &Push, state: &mut State, why: Why, contest: bool) -> Reply {
    state.contested |= contest && !model.decisions.slips.contests_nothing;
    Reply::Refused(why)
}

/// Makes a content visible.
pub(crate) fn record(
    model: &Push,
    state: &mut State,
    source: Source,
    who: (Wish, u8),
    kind: RevisionKind,
    tally: Tally,
) -> u8 {
    let (wish, by) = who;
    let number = state.current() + 1;
    let receipt = Receipt { revision: number, content: wish.content, ordinal: wish.ordinal };
    let Wish { content, ordinal, place, .. } = wish;
    if kind == RevisionKind::Revised && ordinal > 0 && state.revisions.iter().any(|r| r.heard > ordinal) {
        state.faults |= fault::OVERRULED;
    }
    let heard = ordinal;
    state.revisions.push(Revision { source, kind, content, place, ordinal, heard, by, receipt, promised: receipt });
    if !model.decisions.slips.links_nothing {
        state.linked |= 1 << number;
    }
    if by != NOBODY {
        accept(state, wish);
    }
    state.tally = tally;
    recount(model, state);
    notes::recorded(model, state);
    number
}

/// Counts the round anew, and holds both counts against a recount by other means.
pub(crate) fn recount(model: &Push, state: &mut State) {
    let past = past(state);
    state.round = content::round(&past, state.neighbour);
    if model.decisions.slips.forgets_overlaps && state.neighbour.is_some() {
        state.round.total = state.tally.total + content::NEIGHBOUR.len() as u8;
    }
    if !reference::agrees(&past, state.neighbour, state.tally, state.round) {
        state.faults |= fault::COUNTS;
    }
}

fn bound(state: &State, at: usize) -> Bound {
    let epoch = state.bound[at];
    (epoch > 0 && epoch <= state.latest()).then(|| (Epoch(u64::from(epoch)), state.row(epoch).fate))
}

/// An open epoch claims its place; one that has ended claims nothing.
fn asked(state: &State, wish: Wish, at: usize) -> Begin {
    let sender = domain::Sender {
        ordinal: ordinal(wish.ordinal),
        executor: state::executor(wish.executor),
        incarnation: Some(domain::Incarnation(at as u128 + 1)),
        ..domain::Sender::default()
    };
    let staged = state.open().map(|epoch| state.row(epoch).wish.place);
    let fields = staged.map(|staged| content::differing_fields(wish, staged)).unwrap_or_default();
    Begin { manifest: manifest_digest(wish), content: content::digest(wish.content), sender, fields }
}

fn begin(model: &Push, state: &mut State, read: Option<&State>, at: usize, idle: bool) -> Option<Reply> {
    let wish = state.wishes[at]?;
    let seen = read.unwrap_or(state);
    let offer = offer(model, seen, wish, at as u8, model.config.vectors, idle);
    let content = (model.decisions.content)(&offer);
    notes::content(model, state, at, content);
    match content {
        Content::Replay { revision, .. } => return Some(replay(model, state, wish, revision)),
        Content::Refuse { why, contest } => return Some(refuse(model, state, why, contest)),
        Content::Stage { .. } | Content::Undecided => {}
    }
    let latest = (seen.latest() > 0).then(|| seen.known(seen.latest(), model.config.chunks, idle));
    let decision = (model.decisions.begin)(&asked(seen, wish, at), latest.as_ref(), bound(seen, at));
    notes::begin(model, state, at, &decision);
    carry_out(model, state, at, wish, decision)
}

fn carry_out(model: &Push, state: &mut State, at: usize, wish: Wish, decision: BeginDecision) -> Option<Reply> {
    let pair = (wish.ordinal, wish.executor);
    Some(match decision {
        BeginDecision::Open { supersedes, .. } => {
            let epoch = state.latest() + 1;
            if epoch > model.epochs {
                return None;
            }
            if let Some(old) = supersedes {
                state.end(old.0 as u8, Fate::Superseded);
            }
            state.epochs.push(EpochRow {
                fate: Fate::Open,
                wish,
                sender: at as u8,
                chunks: [0; state::CHUNKS],
                executors: if wish.executor > 0 { vec![pair] } else { Vec::new() },
                contested: false,
                died: false,
            });
            bind(state, at, epoch);
            Reply::Staging { epoch }
        }
        BeginDecision::Resume { epoch, ordinal, .. } => {
            let row = state.row_mut(epoch.0 as u8);
            let raised = ordinal.map_or(0, |o| o.0 as u8);
            if raised != row.wish.ordinal {
                // The epoch is that sender's now: an ordinal with another's executor would be nobody.
                (row.wish.ordinal, row.wish.executor, row.sender) = (raised, wish.executor, at as u8);
            }
            if wish.executor > 0 && !row.executors.contains(&pair) {
                row.executors.push(pair);
                row.executors.sort_unstable();
            }
            bind(state, at, epoch.0 as u8);
            Reply::Staging { epoch: epoch.0 as u8 }
        }
        BeginDecision::Replay { revision } => answer(model, state, wish.content, revision as u8),
        BeginDecision::InProgress { .. } | BeginDecision::Stale { .. } => Reply::Wait,
        BeginDecision::Superseded { .. } => Reply::Fenced,
        BeginDecision::Reused(refusal) => Reply::Refused(content::why(&refusal)),
        BeginDecision::Collides(refusal) => {
            let latest = state.latest();
            state.row_mut(latest).contested |= !model.decisions.slips.contests_nothing;
            Reply::Refused(content::why(&refusal))
        }
    })
}

fn bind(state: &mut State, at: usize, epoch: u8) {
    state.bound[at] = epoch;
    state.told[at] |= 1 << epoch;
}

fn one_shot(model: &Push, state: &mut State, at: usize, idle: bool) -> Option<Reply> {
    let wish = state.wishes[at]?;
    let offer = offer(model, state, wish, at as u8, true, idle);
    let content = (model.decisions.content)(&offer);
    notes::content(model, state, at, content);
    let (kind, tally) = match content {
        Content::Replay { revision, .. } => {
            model.saw_it(Event::O1Recorded);
            return Some(replay(model, state, wish, revision));
        }
        Content::Refuse { why, contest } => return Some(refuse(model, state, why, contest)),
        Content::Stage { kind, tally } => (kind, tally),
        Content::Undecided => return None,
    };
    let latest = (state.latest() > 0).then(|| state.known(state.latest(), model.config.chunks, idle));
    let decision = (model.decisions.one_shot)(&asked(state, wish, at), latest.as_ref(), bound(state, at));
    notes::one_shot(model, state, &decision);
    match decision {
        OneShotDecision::Record { ends } => {
            let mut contested = false;
            if let Some((epoch, ending)) = ends {
                let epoch = epoch.0 as u8;
                let revision = u32::from(state.current()) + 1;
                match ending {
                    Ending::Superseded => state.end(epoch, Fate::Superseded),
                    Ending::Committed => {
                        let row = state.row_mut(epoch);
                        row.fate = Fate::Committed { revision };
                        contested = row.contested;
                    }
                }
            }
            state.contested |= contested;
            let revision = record(model, state, Source::OneShot, (wish, at as u8), kind, tally);
            Some(answer(model, state, wish.content, revision))
        }
        OneShotDecision::Wait(decision) => carry_out(model, state, at, wish, decision),
    }
}
