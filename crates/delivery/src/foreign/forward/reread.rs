//! Finding out what became of what was sent: one reading of what was accepted, two of what had no answer, or the product's own
//! word on our id. Must not send.

use domain::intent::{IntentEvent, IntentState};
use domain::mutant;

use super::decide::{Needs, Picture};
use super::settle::{DOUBTFUL, Hand, those_in};
use super::{Forwarder, Halt};
use crate::backoff::Backoff;
use crate::foreign::facts::Strategy;
use crate::foreign::trouble::Trouble;

/// Between two readings at least, in milliseconds.
const BETWEEN_READS_MS: u64 = 1000;
/// How many readings may contradict each other.
const CONTRADICTIONS_MAX: u32 = 6;

impl Forwarder<'_> {
    pub(super) async fn read_back(&mut self, hands: &mut [Hand], tries: &mut (Backoff, u64)) -> Result<(), Halt> {
        let (accepted, silent): (Vec<_>, Vec<_>) =
            those_in(hands, &[IntentState::Reconciling]).into_iter().partition(|hand| hand.is_accepted());
        self.look_for(accepted).await?;
        if self.strategy == Strategy::Idempotent {
            self.ask_again(silent, tries).await
        } else {
            self.read_twice(silent).await
        }
    }

    /// One reading of all that was accepted.
    async fn look_for(&mut self, hands: Vec<&mut Hand>) -> Result<(), Halt> {
        if hands.is_empty() {
            return Ok(());
        }
        let picture = self.picture(&hands).await?;
        for hand in hands {
            let needs = self.judge(hand, &picture);
            hand.looks += 1;
            let event = if needs.are_met() {
                hand.intent.cause = None;
                IntentEvent::Seen
            } else if needs.are_doubtful() && needs.to_write().is_empty() {
                hand.intent.cause = Some(DOUBTFUL.to_owned());
                IntentEvent::GivenUp
            } else {
                hand.intent.cause = Some("accepted, and not seen since".to_owned());
                IntentEvent::Silence
            };
            self.step(hand, event).await?;
        }
        Ok(())
    }

    /// Sending it again is reading it back, where the product tells a repeat by its id.
    async fn ask_again(&mut self, hands: Vec<&mut Hand>, tries: &mut (Backoff, u64)) -> Result<(), Halt> {
        let Some(first) = hands.first() else { return Ok(()) };
        let trouble = Trouble::Unknown(first.why());
        self.before_next(&mut tries.0, tries.1, &trouble).await?;
        for hand in hands {
            self.step(hand, IntentEvent::Missing).await?;
        }
        Ok(())
    }

    /// Two readings, apart in time, that agree.
    async fn read_twice(&mut self, hands: Vec<&mut Hand>) -> Result<(), Halt> {
        if hands.is_empty() {
            return Ok(());
        }
        let picture = self.picture(&hands).await?;
        let mut missed = Vec::new();
        for hand in hands {
            let needs = self.judge(hand, &picture);
            if needs.are_met() {
                self.step(hand, IntentEvent::Seen).await?;
            } else if mutant!(M36) {
                self.step(hand, IntentEvent::Missing).await?;
            } else {
                missed.push((hand, needs));
            }
        }
        if missed.is_empty() {
            return Ok(());
        }
        self.pause(self.between_reads_ms(), "read back: not all is there; once more").await?;
        let (hands, firsts): (Vec<_>, Vec<_>) = missed.into_iter().unzip();
        let picture = self.picture(&hands).await?;
        for (hand, first) in hands.into_iter().zip(firsts) {
            let event = self.second(hand, &first, &picture);
            self.step(hand, event).await?;
        }
        Ok(())
    }

    fn second(&self, hand: &mut Hand, first: &Needs, picture: &Picture) -> IntentEvent {
        let second = self.judge(hand, picture);
        if second.are_doubtful() && second.to_write().is_empty() {
            hand.intent.cause = Some(DOUBTFUL.to_owned());
            IntentEvent::GivenUp
        } else if second.are_met() {
            IntentEvent::Seen
        } else if first.of == second.of {
            IntentEvent::Missing
        } else if hand.contradictions >= CONTRADICTIONS_MAX {
            hand.intent.cause = Some("readings contradict each other".to_owned());
            IntentEvent::GivenUp
        } else {
            hand.contradictions += 1;
            IntentEvent::Silence
        }
    }

    pub(super) fn between_reads_ms(&self) -> u64 {
        // Three times what is usual (`facts/idempotency.md`, W2).
        self.lag_ms().map_or(BETWEEN_READS_MS, |ms| BETWEEN_READS_MS.max(ms.saturating_mul(3)))
    }
}
