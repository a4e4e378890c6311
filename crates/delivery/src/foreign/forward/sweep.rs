//! Looks again at what is settled: the one way to see what came after the last reading (windows W1, W2, W4, W10, W11).
//! Must not send or delete anything.

use domain::intent::{Flag, Intent, IntentState};

use super::settle::Hand;
use super::{Forwarded, Forwarder, Halt, Need, Turn};
use crate::foreign::facts::Strategy;

impl Forwarder<'_> {
    /// Two writers at once both find nothing: whoever looks last sees both (R2), and says so.
    pub(super) async fn look_once_more(&mut self, turn: Turn, forwarded: &mut Forwarded) -> Result<(), Halt> {
        if self.strategy == Strategy::Idempotent || forwarded.intents.iter().all(|intent| intent.sends == 0) {
            return Ok(());
        }
        for intent in &mut forwarded.intents {
            *intent = self.look_at(turn, intent.clone()).await?;
        }
        Ok(())
    }

    /// Reads settled intents back: what stands there twice, and what is not there any more, is flagged.
    ///
    /// # Errors
    /// It can't be read.
    pub async fn sweep(&mut self, intents: Vec<Intent>) -> Result<Vec<Intent>, Halt> {
        let turn = self.turn().await?;
        let mut seen = Vec::with_capacity(intents.len());
        let mut done = Ok(());
        for intent in intents {
            match self.look_at(turn, intent).await {
                Ok(intent) => seen.push(intent),
                Err(halt) => {
                    done = Err(halt);
                    break;
                }
            }
        }
        let ended = self.book.end_turn(self.target, turn).await;
        done?;
        ended?;
        Ok(seen)
    }

    async fn look_at(&mut self, turn: Turn, intent: Intent) -> Result<Intent, Halt> {
        if !matches!(intent.state, IntentState::Acked | IntentState::Found | IntentState::Parked) {
            return Ok(intent);
        }
        let mut hand = Hand::of(turn, intent)?;
        let known = hand.intent.flags.clone();
        let needs = self.read(&mut hand).await?;
        // It was there, and nobody sends it again: a person may have had a reason.
        if hand.intent.state != IntentState::Parked && needs.of.contains(&Need::Write) {
            hand.intent.flags.insert(Flag::Vanished);
        }
        if hand.intent.flags != known {
            hand.intent.changed_ms = self.clock.unix_ms();
            self.book.advance(turn, hand.intent.state, &hand.intent).await?;
        }
        Ok(hand.intent)
    }
}
