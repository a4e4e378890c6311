//! The safety properties of `facts/idempotency.md` 3.6 that the push has to keep in every state.
//! They read the state alone, and must not call the functions under test; faults that only a step shows are bits in it.

use domain::OnDifference;
use domain::staging::Fate;
use domain::verdict::RevisionKind;
use stateright::Property;

use crate::actions::Push;
use crate::content;
use crate::state::{Revision, Source, State, fault};

/// All of them.
pub(crate) fn safety() -> Vec<Property<Push>> {
    fn without(state: &State, fault: u8) -> bool {
        state.faults & fault == 0
    }
    vec![
        Property::<Push>::always("S1 no duplicate", no_duplicate),
        Property::<Push>::always("S2 no partial", no_partial),
        Property::<Push>::always("S3 no suppression", |_, state| no_suppression(state)),
        Property::<Push>::always("S4 no loss", |_, state| no_loss(state)),
        Property::<Push>::always("S5 fates are final, one epoch is open", |_, state| fates_are_final(state)),
        Property::<Push>::always("S6 a dead epoch changes nothing", |_, state| without(state, fault::LEAKED)),
        Property::<Push>::always("S7 receipts are constant", |_, state| without(state, fault::RECEIPT)),
        Property::<Push>::always("S8 the place of a key is constant", |_, state| place_is_constant(state)),
        Property::<Push>::always("S9 a tombstone creates nothing", |_, state| tombstone_creates_nothing(state)),
        Property::<Push>::always("S10 one revision for a committed epoch", |_, state| one_revision(state)),
        Property::<Push>::always("S11 counts add up", |_, state| without(state, fault::COUNTS)),
        Property::<Push>::always("S12 live rows are not swept", |_, state| without(state, fault::SWEPT)),
        Property::<Push>::always("S13 a content is kept once", content_once),
        Property::<Push>::always("S14 no reader goes back", |_, state| without(state, fault::BACKWARDS)),
        Property::<Push>::always("S15 no phantom", |_, state| no_phantom(state)),
        Property::<Push>::always("attempts never fall", |_, state| without(state, fault::OVERRULED)),
        Property::<Push>::always("legs never mix", |_, state| legs_never_mix(state)),
    ]
}

fn contents(state: &State) -> impl Iterator<Item = &Revision> {
    state.revisions.iter().filter(|revision| !content::is_promotion(revision.source))
}

/// One first content; under `fail` nothing but that; and no wish recorded twice.
fn no_duplicate(model: &Push, state: &State) -> bool {
    let once = |at: &usize| contents(state).filter(|revision| usize::from(revision.by) == *at).count() <= 1;
    contents(state).filter(|revision| revision.kind == RevisionKind::First).count() <= 1
        && !(model.config.policy == OnDifference::Fail && contents(state).count() > 1)
        && (0..state.wishes.len()).all(|at| once(&at))
}

/// All chunks of an epoch that readers see are there, with its own bytes.
fn no_partial(model: &Push, state: &State) -> bool {
    (1..=state.latest()).filter(|epoch| state.is_visible(*epoch)).all(|epoch| {
        let row = state.row(epoch);
        (0..model.config.chunks).all(|chunk| row.chunk(chunk) == Some(row.wish.content))
    })
}

/// What was promised: content asked for, and revision.
fn promises(state: &State) -> impl Iterator<Item = (u8, u8)> {
    let promised = state.recorded;
    (0..48_u8).filter(move |bit| promised & 1 << bit != 0).map(|bit| (bit / 8, bit % 8 + 1))
}

/// Whoever was told "recorded" finds just its content, as that revision.
fn no_suppression(state: &State) -> bool {
    promises(state).all(|(asked, revision)| {
        let row = state.revisions.get(usize::from(revision) - 1);
        row.is_some_and(|row| content::says_the_same(row.content, asked))
    }) && state.faults & fault::SUPPRESSED == 0
}

/// And readers see it, until it is deleted; so they do all that is registered.
fn no_loss(state: &State) -> bool {
    promises(state).all(|(_, revision)| state.is_linked(revision))
        && (1..=state.current()).all(|revision| state.is_linked(revision))
}

/// A dead epoch stays dead and unseen, a committed one stands for a revision of its content, only the newest is open.
fn fates_are_final(state: &State) -> bool {
    (1..=state.latest()).all(|epoch| {
        let row = state.row(epoch);
        let made_of = state.made_of(epoch);
        let committed = match row.fate {
            Fate::Committed { revision } => Some(revision),
            _ => None,
        };
        row.died == !matches!(row.fate, Fate::Open | Fate::Committed { .. })
            && made_of.is_none_or(|revision| committed == Some(u32::from(revision)))
            && (row.fate != Fate::Open || epoch == state.latest())
    })
}

/// A committed epoch stands for just one revision that exists, and no other epoch is named by one: the form that S10
/// takes where what subscribers look up is the revision's own row.
fn one_revision(state: &State) -> bool {
    (1..=state.latest()).all(|epoch| {
        let named = state.revisions.iter().filter(|revision| revision.source == Source::Epoch(epoch)).count();
        match state.row(epoch).fate {
            Fate::Committed { revision } => named <= 1 && revision >= 1 && revision <= u32::from(state.current()),
            _ => named == 0,
        }
    })
}

fn place_is_constant(state: &State) -> bool {
    state.revisions.windows(2).all(|pair| pair[0].place == pair[1].place)
}

fn tombstone_creates_nothing(state: &State) -> bool {
    !state.deleted || state.epochs.is_empty() && state.revisions.is_empty()
}

/// No content comes twice, unless it was plainly executed again: at a higher known ordinal, which revises, or by another
/// incarnation under an explicit `revise` ([`domain::protocol`]).
fn content_once(model: &Push, state: &State) -> bool {
    let again = |at: usize, one: &Revision| {
        let same = |earlier: &&Revision| {
            !content::is_promotion(earlier.source) && content::digest(earlier.content) == content::digest(one.content)
        };
        state.revisions[..at].iter().filter(same).all(|earlier| {
            let explicit = model.config.policy == OnDifference::Revise && one.by != earlier.by;
            one.kind == RevisionKind::Revised && (one.receipt.ordinal > earlier.receipt.ordinal || explicit)
        })
    };
    let mut all = state.revisions.iter().enumerate();
    all.all(|(at, one)| content::is_promotion(one.source) || again(at, one))
}

/// What was said to be refused or cancelled never becomes visible.
fn no_phantom(state: &State) -> bool {
    (1..=state.latest()).all(|epoch| (state.refused | state.ended) & 1 << epoch == 0 || !state.is_visible(epoch))
}

/// Situation S3: no two executors at one known attempt are ever accepted under one key.
fn legs_never_mix(state: &State) -> bool {
    let mut pairs = state.executors.windows(2);
    pairs.all(|pair| pair[0].0 == 0 || pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1)
}

/// Counting by other means than the product's: item by item, as the design says it.
pub(crate) mod reference {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use domain::Status;
    use domain::verdict::RevisionKind;

    use crate::content::{NEIGHBOUR, Past, Round, Tally, items};

    #[derive(Debug, Clone, Copy)]
    struct Item {
        name: &'static str,
        status: Status,
        bad_before: bool,
        /// The revision whose content says so.
        content_of: u8,
        /// The revision since which it counts.
        since: u8,
    }

    fn bad(status: Status) -> bool {
        status != Status::Passed
    }

    fn fold(past: &[Past]) -> Vec<Item> {
        let mut all: Vec<Item> = Vec::new();
        for revision in past {
            let content_of = match revision.kind {
                RevisionKind::Promoted { of, .. } => of as u8,
                _ => revision.number,
            };
            for (name, status) in items(revision.content) {
                let new = Item { name, status: *status, bad_before: false, content_of, since: revision.number };
                let Some(old) = all.iter_mut().find(|item| item.name == *name) else {
                    all.push(new);
                    continue;
                };
                if revision.kind == RevisionKind::Kept {
                    continue;
                }
                let again = content_of != old.content_of;
                *old = Item { bad_before: old.bad_before || again && bad(old.status), ..new };
            }
        }
        all
    }

    fn tally(counted: &[(Status, bool)]) -> Tally {
        let count = |hit: &dyn Fn(&(Status, bool)) -> bool| counted.iter().filter(|item| hit(item)).count() as u8;
        Tally {
            total: counted.len() as u8,
            bad: count(&|(status, _)| bad(*status)),
            flaky: count(&|(status, before)| !bad(*status) && *before),
        }
    }

    /// Two claims on one item: the elevated one, else that of the higher known attempt, else the worse.
    fn beside(past: &[Past], mine: Item, theirs: Status, attempt: u8) -> (Status, bool) {
        let from = &past[usize::from(mine.since) - 1];
        let elevated = matches!(from.kind, RevisionKind::Revised | RevisionKind::Promoted { .. });
        let known = from.ordinal > 0 && attempt > 0;
        let i_win = elevated || known && from.ordinal > attempt;
        let they_win = !elevated && known && attempt > from.ordinal;
        let worst = |status| match status {
            Status::Passed => 0,
            Status::Errored => 2,
            _ => 1,
        };
        if they_win || !i_win && worst(theirs) > worst(mine.status) {
            (theirs, false)
        } else {
            (mine.status, mine.bad_before)
        }
    }

    fn both(past: &[Past], neighbour: Option<u8>) -> (Tally, Tally) {
        let items = fold(past);
        let push: Vec<_> = items.iter().map(|item| (item.status, item.bad_before)).collect();
        let others = if neighbour.is_some() { NEIGHBOUR } else { &[] };
        let mut round = Vec::new();
        for item in &items {
            let theirs = others.iter().find(|(name, _)| *name == item.name);
            let settled = theirs.map(|(_, status)| beside(past, *item, *status, neighbour.unwrap_or_default()));
            round.push(settled.unwrap_or((item.status, item.bad_before)));
        }
        let only_theirs = others.iter().filter(|(name, _)| items.iter().all(|item| item.name != *name));
        round.extend(only_theirs.map(|(_, status)| (*status, false)));
        (tally(&push), tally(&round))
    }

    thread_local! {
        static COUNTED: RefCell<HashMap<Round, (Tally, Tally)>> = RefCell::new(HashMap::new());
    }

    /// True if push and round count so.
    pub(crate) fn agrees(past: &[Past], neighbour: Option<u8>, push: Tally, round: Tally) -> bool {
        let key = (past.to_vec(), neighbour);
        let expected = COUNTED.with_borrow_mut(|counted| *counted.entry(key).or_insert_with(|| both(past, neighbour)));
        expected == (push, round)
    }

    /// True if what counts is just this content.
    pub(crate) fn counts_as(past: &[Past], content: u8) -> bool {
        let counted = fold(past);
        let same = |item: &Item| !item.bad_before && items(content).contains(&(item.name, item.status));
        counted.len() == items(content).len() && counted.iter().all(same)
    }
}
