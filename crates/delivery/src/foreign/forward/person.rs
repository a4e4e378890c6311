//! What a person says of an intent: look again, or leave it. Must not look or send by itself.

use domain::intent::{Flag, Intent, IntentEvent, IntentState};

use super::settle::Hand;
use super::{BookError, Forwarder, Halt, Turn};
use crate::foreign::facts::Strategy;

impl Forwarder<'_> {
    /// Takes a parked intent up again: what is there is read back, and what is surely missing is sent, by the next
    /// [`Forwarder::resume`] or push. Its sends are counted anew, those of containers aside.
    ///
    /// # Errors
    /// It isn't parked, or the ledger can't be written.
    pub async fn take_up(&mut self, intent: Intent) -> Result<Intent, Halt> {
        let turn = self.turn().await?;
        let done = self.take_up_in(turn, intent).await;
        let ended = self.book.end_turn(self.target, turn).await;
        let done = done?;
        ended?;
        Ok(done)
    }

    async fn take_up_in(&mut self, turn: Turn, intent: Intent) -> Result<Intent, Halt> {
        let mut hand = Hand::of(turn, self.now(intent).await?)?;
        hand.intent.flags.remove(&Flag::GivenUp);
        hand.intent.cause = Some("taken up again by a person".to_owned());
        // Those of a container are its number: what was given up before stays so.
        if self.strategy != Strategy::Container {
            hand.intent.sends = hand.intent.sends.min(1);
        }
        self.step(&mut hand, IntentEvent::Resumed).await?;
        Ok(hand.intent)
    }

    /// A person has looked, and says why it stays as it is: nothing asks for a look any more. Nothing is sent for it. What
    /// is still open ends here: nobody works at it while the turn is this process's.
    ///
    /// # Errors
    /// Nothing of it is there, so there is nothing to leave; or the ledger can't be written.
    pub async fn leave(&mut self, intent: Intent, why: &str) -> Result<Intent, Halt> {
        let turn = self.turn().await?;
        let done = self.leave_in(turn, intent, why).await;
        let ended = self.book.end_turn(self.target, turn).await;
        let done = done?;
        ended?;
        Ok(done)
    }

    async fn leave_in(&mut self, turn: Turn, intent: Intent, why: &str) -> Result<Intent, Halt> {
        let mut hand = Hand::unread(turn, self.now(intent).await?);
        if hand.intent.state == IntentState::Rejected {
            return Err(BookError::Elsewhere(hand.intent.state).into());
        }
        hand.intent.flags.insert(Flag::GivenUp);
        hand.intent.cause = Some(why.to_owned());
        if hand.intent.state.is_settled() {
            hand.intent.changed_ms = self.clock.unix_ms();
            self.book.advance(turn, hand.intent.state, &hand.intent).await?;
        } else {
            self.step(&mut hand, IntentEvent::GivenUp).await?;
        }
        Ok(hand.intent)
    }

    /// What a person has seen may have gone on until it was our turn.
    async fn now(&mut self, intent: Intent) -> Result<Intent, Halt> {
        let id = intent.id;
        let kept = self.as_kept(vec![intent]).await?.pop();
        kept.ok_or_else(|| BookError::Broken(format!("it has no intent {id}")).into())
    }
}
