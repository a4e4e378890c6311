//! One delivery in one request, in the writer's transaction: read what is known, let the domain decide, carry the
//! decision out. Must not decide.

use std::sync::Arc;

use domain::protocol::{Decision, decide};
use domain::verdict::Light;
use domain::{ItemHash, ItemName, Outcomes, Push};
use rusqlite::Connection;

use super::accept::{self, Blocks, Linked};
use super::connect::broken;
use super::content::Snap;
use super::delivered::Delivered;
use super::known::{Lookups, Offered, Standing, listed};
use super::points::{Op, Tx};
use super::prepare::Prepared;
use super::stage;
use crate::receipts::named;
use crate::{Now, Recorded, StoreError};

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
}

/// Runs one delivery.
pub(super) fn record(connection: &Connection, delivery: &Delivery) -> Result<Step, StoreError> {
    let (tx, snap) = (Tx::of(connection, Op::RECORD), Snap::over(connection));
    let push = &*delivery.push;
    let of = Delivered::of(push, &delivery.now.at);
    let standing = Standing::of(&snap, &of)?;
    let lights: Vec<Light> = push.outcomes.as_slice().iter().map(Light::of).collect();
    let offered = Offered::Here { hashes: push.outcomes.hashes(), lights: &lights };
    let known = standing.known.as_ref().map(|known| &known.known);
    let mut lookups = Lookups { snap: &snap, place: of.place, standing: &standing, offered: &offered };
    let decision = decide(&of.offer(), known, standing.tombstoned, &mut lookups)?;
    let names = |hashes: &[ItemHash]| Ok(names(&push.outcomes, hashes));
    let refused = |refusal, contest| {
        let of_key = (standing.project, standing.known.as_ref());
        accept::refuse((tx, &snap), &of, of_key, (refusal, contest), names).map(|r| Step::Done(Recorded::Refused(r)))
    };
    match (decision, &standing.known) {
        (Decision::Replay { revision, class, doubts }, Some(known)) => {
            let answer = accept::replay(tx, &of, known, revision, (Some(class), doubts))?;
            Ok(Step::Done(Recorded::Accepted(answer)))
        }
        (Decision::Refuse { refusal, contest }, _) => refused(refusal, contest),
        (decision @ (Decision::Record | Decision::Overlay { .. }), _) => {
            let Some(prepared) = &delivery.prepared else { return Ok(Step::NeedsBlocks) };
            let gate = match stage::one_shot(tx, &of, &standing, delivery.now.ms)? {
                stage::Gate::Open(gate) => gate,
                stage::Gate::Fenced(fence) => return Ok(Step::Done(Recorded::Fenced(fence))),
                stage::Gate::Refused(refusal) => return refused(refusal, false),
                stage::Gate::Replay(revision) => {
                    let known = standing.known.as_ref().ok_or_else(|| broken("a committed epoch without its push"))?;
                    let answer = accept::replay(tx, &of, known, revision, (None, Vec::new()))?;
                    return Ok(Step::Done(Recorded::Accepted(answer)));
                }
            };
            let blocks = Blocks::Made(&push.outcomes, prepared);
            let content = Linked { blocks, counts: push.outcomes.counts(), senders: &[] };
            let answer = match (decision, &standing.known) {
                (Decision::Overlay { kind, difference, counts }, Some(known)) => {
                    let listed = listed(&snap, known, &offered)?;
                    let items = named(listed, |hash| name(&push.outcomes, hash).ok_or_else(|| broken("no name")))?;
                    accept::overlay(tx, &of, known, (kind, difference, counts, items), &content)?
                }
                _ => accept::first(tx, &of, (standing.project, standing.round), false, &content)?,
            };
            stage::end(tx, gate, answer.revision)?;
            Ok(Step::Done(Recorded::Accepted(answer)))
        }
        _ => Err(broken("a decision on a push that is not recorded")),
    }
}

/// The name of an item of these outcomes.
pub(super) fn name(outcomes: &Outcomes, hash: ItemHash) -> Option<ItemName> {
    let at = outcomes.hashes().binary_search(&hash).ok()?;
    outcomes.as_slice().get(at).map(|outcome| outcome.item.clone())
}

fn names(outcomes: &Outcomes, hashes: &[ItemHash]) -> Vec<ItemName> {
    hashes.iter().filter_map(|hash| name(outcomes, *hash)).collect()
}
