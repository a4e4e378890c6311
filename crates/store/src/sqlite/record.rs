//! One delivery in one request, in the writer's transaction: read what is known, let the domain decide, carry the
//! decision out. Must not decide.

use std::sync::Arc;

use domain::forwarding::ForwardRule;
use domain::protocol::{Decision, DifferenceClass, decide};
use domain::{ItemHash, ItemName, Outcomes, Push, mutant};
use rusqlite::Connection;

use super::accept::{self, Blocks, Linked};
use super::connect::broken;
use super::content::Snap;
use super::delivered::Delivered;
use super::known::{Lookups, Offered, Standing, listed};
use super::mutants;
use super::points::{Op, Tx};
use super::prepare::Prepared;
use super::stage::{self, Gate};
use super::waiting::Forward;
use crate::receipts::named;
use crate::{Answer, Now, Recorded, StoreError};

/// What came of running a delivery.
pub(super) enum Step {
    /// It is carried out.
    Done(Recorded),
    /// It is to be recorded, and its blocks are not made yet. Nothing is written.
    NeedsBlocks,
}

/// A delivery on its way through the writer.
pub(super) struct Delivery {
    pub(super) push: Arc<Push>,
    pub(super) now: Now,
    pub(super) prepared: Option<Arc<Prepared>>,
    pub(super) rules: Arc<Vec<ForwardRule>>,
}

/// Runs one delivery.
pub(super) fn record(connection: &Connection, delivery: &Delivery) -> Result<Step, StoreError> {
    let (tx, snap) = (Tx::of(connection, Op::RECORD), Snap::over(connection));
    let push = &*delivery.push;
    let forward = Forward { rules: &delivery.rules, now_ms: delivery.now.ms };
    let of = Delivered::of(push, &delivery.now.at, forward);
    let mut standing = Standing::of(&snap, &of)?;
    if (mutant!(M1) || mutant!(M3) || mutant!(M12) || mutant!(M30))
        && mutants::forgets(connection, &of, delivery, standing.known.as_ref())?
    {
        standing.known = None;
    }
    if mutant!(M14)
        && let Some(known) = &standing.known
    {
        mutants::count(tx, known, push.outcomes.counts())?;
    }
    let offered = Offered::Whole(&push.outcomes);
    let known = standing.known.as_ref();
    let mut lookups = Lookups { snap: &snap, place: of.place, standing: &standing, offered: &offered };
    let refused = |refusal, contest| {
        let names = |hashes: &[ItemHash]| Ok(hashes.iter().filter_map(|hash| name(&push.outcomes, *hash)).collect());
        accept::refuse((tx, &snap), &of, (standing.project, known), (refusal, contest), names).map(Recorded::Refused)
    };
    let decision = match (decide(&of.offer(), known.map(|k| &k.known), standing.tombstoned, &mut lookups)?, known) {
        (Decision::Replay { revision, class, doubts }, Some(known)) => {
            let answer = accept::replay(tx, &of, known, revision, (class, doubts))?;
            return Ok(Step::Done(Recorded::Accepted(answer)));
        }
        (Decision::Refuse { refusal, contest }, _) => return refused(refusal, contest).map(Step::Done),
        (decision, _) => decision,
    };
    let recorded = match stage::one_shot(tx, &of, &standing, delivery.now.ms)? {
        Gate::Open(ends) => {
            let Some(prepared) = &delivery.prepared else { return Ok(Step::NeedsBlocks) };
            let answer = write((tx, &snap), (push, prepared), &of, (&standing, &offered), decision)?;
            if let Some((epoch, ending)) = ends {
                stage::end(tx, &epoch, ending, answer.revision)?;
            }
            Recorded::Accepted(answer)
        }
        Gate::Fenced(fence) => Recorded::Fenced(fence),
        Gate::Refused(refusal) => refused(refusal, false)?,
        Gate::Replay(revision) => {
            Recorded::Accepted(accept::repeat(tx, &of, known, (revision, DifferenceClass::Structural))?)
        }
    };
    Ok(Step::Done(recorded))
}

/// Writes the content that the domain lets in.
fn write(
    (tx, snap): (Tx<'_>, &Snap<'_>),
    (push, prepared): (&Push, &Prepared),
    of: &Delivered<'_>,
    (standing, offered): (&Standing, &Offered<'_>),
    decision: Decision,
) -> Result<Answer, StoreError> {
    let content = Linked { blocks: Blocks::Made(&push.outcomes, prepared), counts: push.outcomes.counts() };
    match (decision, &standing.known) {
        (Decision::Record, _) => accept::first(tx, of, (standing.project, standing.round), &content),
        (Decision::Overlay { kind, difference, counts }, Some(known)) => {
            let listed = listed(snap, known, offered)?;
            let items = named(listed, |hash| {
                name(&push.outcomes, hash).ok_or_else(|| broken("an offered item without a name"))
            })?;
            accept::overlay(tx, of, known, (kind, difference, counts, items), &content)
        }
        _ => Err(broken("a decision on a push that is not recorded")),
    }
}

/// The name of an item of these outcomes.
pub(super) fn name(outcomes: &Outcomes, hash: ItemHash) -> Option<ItemName> {
    let at = outcomes.hashes().binary_search(&hash).ok()?;
    outcomes.as_slice().get(at).map(|outcome| outcome.item.clone())
}
