//! What a push says again though the ledger has it as settled: what was refused before, and an outcome that comes back after
//! another one of the same push took its place. Must not send.

use domain::intent::{Flag, Intent, IntentEvent, IntentState};

use super::known::Memory;
use super::settle::Hand;
use super::{Forwarder, Halt, Turn};
use crate::foreign::facts::Strategy;

impl Forwarder<'_> {
    /// Takes up what is to be looked at again. What a person has left stays.
    pub(super) async fn taken_up(&mut self, turn: Turn, planned: Vec<Intent>) -> Result<Vec<Intent>, Halt> {
        let (mut taken_up, mut memory) = (Vec::with_capacity(planned.len()), Memory::default());
        for intent in planned {
            let ended = intent.state.is_settled() && intent.state != IntentState::Parked;
            if !ended || intent.flags.contains(&Flag::GivenUp) {
                taken_up.push(intent);
                continue;
            }
            let mut hand = Hand::of(turn, intent)?;
            if self.was_followed(&mut memory, &hand).await? {
                self.comes_back(&mut hand).await?;
            } else if !hand.intent.refused.is_empty() {
                self.once_more(&mut hand).await?;
            }
            taken_up.push(hand.intent);
        }
        Ok(taken_up)
    }

    /// What was refused when the push came before: what was wrong there may be mended. What was sent once only, and can't be
    /// read, is left alone.
    async fn once_more(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        if self.strategy == Strategy::AtMostOnce {
            return Ok(());
        }
        // These, and nothing else of it: what was seen there once, a person may have taken away.
        hand.intent.refused.iter_mut().for_each(|refused| refused.again = true);
        hand.intent.sends = hand.intent.sends.min(1);
        self.step(hand, IntentEvent::PushedAgain).await
    }

    /// True if another outcome of the same push was planned after some of it, and no newer attempt said so.
    async fn was_followed(&mut self, memory: &mut Memory, hand: &Hand) -> Result<bool, Halt> {
        if !matches!(hand.intent.state, IntentState::Acked | IntentState::Found) {
            return Ok(false);
        }
        let known = self.known(memory, &hand.intent).await?;
        Ok(hand.entries.iter().any(|entry| known.has_followed(entry, hand)))
    }

    /// It is the newest outcome again: as if it were planned now. What stands there already is not sent.
    async fn comes_back(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        hand.intent.planned_ms = self.clock.unix_ms();
        hand.intent.sends = hand.intent.sends.min(1);
        hand.intent.flags.remove(&Flag::Stale);
        self.step(hand, IntentEvent::PushedAgain).await?;
        if self.strategy == Strategy::Idempotent && !self.is_readable() {
            // The same id once more: the product would take it for the repeat of the first.
            hand.intent.flags.insert(Flag::Overtaken);
            hand.intent.cause =
                Some("it comes back after another outcome, under an id that is there already".to_owned());
            self.step(hand, IntentEvent::GivenUp).await?;
        }
        Ok(())
    }
}
