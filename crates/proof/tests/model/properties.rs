//! The safety properties of `facts/idempotency.md` 3.6 that the staged push has to keep in every state.
//! They read the state alone, and must not call the functions under test.

use domain::staging::Fate;
use stateright::Property;

use crate::actions::Push;
use crate::state::{Answer, Receipt, State};

/// All of them.
pub(crate) fn safety() -> Vec<Property<Push>> {
    vec![
        Property::<Push>::always("S1 no duplicate", no_duplicate),
        Property::<Push>::always("S2 no partial", no_partial),
        Property::<Push>::always("S3 no suppression", |_, state| no_suppression(state)),
        Property::<Push>::always("S5 fates are final, one epoch is open", |_, state| fates_are_final(state)),
        Property::<Push>::always("S6 a dead epoch changes nothing", |_, state| !state.leaked),
        Property::<Push>::always("S7 receipts are constant", |_, state| receipts_are_constant(state)),
        Property::<Push>::always("S12 live rows are not swept", |_, state| !state.swept_live),
        Property::<Push>::always("S15 no phantom", |_, state| no_phantom(state)),
    ]
}

/// One first content; under `fail` nothing but that; no wish recorded twice; and no content twice, unless it was plainly
/// executed again: at a higher known ordinal, which revises ([`domain::protocol`]).
fn no_duplicate(model: &Push, state: &State) -> bool {
    let again = |at: usize, one: &Receipt| {
        let mut earlier = state.receipts[..at].iter().filter(|earlier| earlier.manifest == one.manifest);
        earlier.all(|earlier| one.revised && one.ordinal > earlier.ordinal)
    };
    let recorded_once = |told: &u8| state.links.iter().filter(|link| told & 1 << link.epoch != 0).count() <= 1;
    state.receipts.iter().filter(|receipt| receipt.first).count() <= 1
        && !(model.config.fail && state.links.len() > 1)
        && state.told.iter().all(recorded_once)
        && state.receipts.iter().enumerate().all(|(at, one)| again(at, one))
}

/// All chunks of a linked epoch are there, with its own bytes.
fn no_partial(model: &Push, state: &State) -> bool {
    state.links.iter().all(|link| {
        let row = state.row(link.epoch);
        (0..model.config.chunks).all(|chunk| row.chunks.get(&chunk) == Some(&row.manifest))
    })
}

/// Whoever was told "recorded" finds just its content linked, as that revision.
fn no_suppression(state: &State) -> bool {
    state.answers.iter().all(|answer| match answer {
        Answer::Recorded { asked, revision, .. } => {
            state.links.iter().any(|link| link.revision == *revision && state.row(link.epoch).manifest == *asked)
        }
        Answer::Refused { .. } | Answer::Ended { .. } => true,
    })
}

/// A dead epoch stays dead and unlinked, a linked one is committed, and only the newest may be open.
fn fates_are_final(state: &State) -> bool {
    (1..=state.latest()).all(|epoch| {
        let row = state.row(epoch);
        let dead = !matches!(row.fate, Fate::Open | Fate::Committed { .. });
        let linked = state.linked(epoch);
        row.died == dead
            && linked == matches!(row.fate, Fate::Committed { .. })
            && (row.fate != Fate::Open || epoch == state.latest())
    })
}

/// Every copy of a revision's receipt is the stored one.
fn receipts_are_constant(state: &State) -> bool {
    state.answers.iter().all(|answer| match answer {
        Answer::Recorded { revision, receipt, .. } => {
            let same_number = state.links.iter().filter(|link| link.revision == *revision).count();
            same_number == 1 && state.receipts.get(*revision as usize - 1) == Some(receipt)
        }
        Answer::Refused { .. } | Answer::Ended { .. } => true,
    })
}

/// What was said to be refused or cancelled never becomes visible.
fn no_phantom(state: &State) -> bool {
    state.answers.iter().all(|answer| match answer {
        Answer::Refused { epoch } | Answer::Ended { epoch } => !state.linked(*epoch),
        Answer::Recorded { .. } => true,
    })
}
