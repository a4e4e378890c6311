//! A push that is not handed on whatever the product says: kept like one that the product refused, so that lists, numbers and
//! whoever waits show it. Must not ask the product.

use std::collections::BTreeSet;

use domain::intent::{Intent, IntentEvent, IntentState, RefusedItem};
use domain::{CycleName, ProjectId, PushKey, RoundId};

use super::settle::Hand;
use super::{Forwarded, Forwarder, Halt, Turn, plan};

/// A push that is not handed on as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// Its project with us.
    pub project: ProjectId,
    /// Its cycle with us.
    pub cycle: CycleName,
    /// Its round.
    pub round: RoundId,
    /// The push.
    pub key: PushKey,
    /// As of which revision.
    pub revision: u32,
    /// How many outcomes count of it.
    pub outcomes: u64,
    /// Why, in words.
    pub why: String,
}

impl Forwarder<'_> {
    /// Keeps that nothing of a push goes to the target.
    ///
    /// # Errors
    /// The ledger can't keep it, or another process has the turn.
    pub async fn refuse(&mut self, unfit: Unfit) -> Result<Forwarded, Halt> {
        let turn = self.turn().await?;
        let done = self.refuse_in(turn, unfit).await;
        let ended = self.book.end_turn(self.target, turn).await;
        let done = done?;
        ended?;
        Ok(done)
    }

    async fn refuse_in(&mut self, turn: Turn, unfit: Unfit) -> Result<Forwarded, Halt> {
        let now_ms = self.clock.unix_ms();
        let parts = [unfit.project.to_string(), unfit.key.to_string(), unfit.revision.to_string()];
        let item = format!("all {} outcomes of the push", unfit.outcomes);
        let intent = Intent {
            id: plan::id_of(self.target, "unfit", &parts),
            target: self.target.to_string(),
            project: unfit.project,
            cycle: unfit.cycle,
            round: unfit.round,
            key: unfit.key,
            number: 0,
            cases: u32::try_from(unfit.outcomes).unwrap_or(u32::MAX),
            state: IntentState::Planned,
            sends: 0,
            planned_ms: now_ms,
            changed_ms: now_ms,
            sent_ms: None,
            seen_ms: None,
            cycle_there: None,
            flags: BTreeSet::new(),
            cause: Some(unfit.why.clone()),
            refused: vec![RefusedItem::new(item, unfit.why)],
            body: b"[]".to_vec(),
        };
        let mut forwarded = Forwarded::default();
        for known in self.book.plan(turn, vec![intent]).await? {
            let mut hand = Hand::unread(turn, known);
            if hand.intent.state == IntentState::Planned {
                self.step(&mut hand, IntentEvent::Refused).await?;
            }
            forwarded.intents.push(hand.intent);
        }
        Ok(forwarded)
    }
}
