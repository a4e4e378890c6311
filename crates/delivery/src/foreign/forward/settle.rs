//! One intent to its end: sent, confirmed or found, or given up with a name (`domain::intent`). Every step is kept before what
//! it allows is done. Must not know products.

use domain::intent::{Flag, Intent, IntentEvent, IntentState, RefusedItem};

use super::decide::{Needs, needs};
use super::plan::refused;
use super::send::Sent;
use super::{BookError, Forwarder, Halt, Step, Turn};
use crate::foreign::entry::{CaseId, CycleId, Entry};
use crate::foreign::facts::{Strategy, Visible};

/// An intent that was sent so often and is still not known to be there is given to a person.
const SENDS_MAX: u32 = 8;
/// Between two readings at least, in milliseconds.
const BETWEEN_READS_MS: u64 = 1000;
/// How many readings may contradict each other.
const CONTRADICTIONS_MAX: u32 = 6;

/// An intent in hand.
pub(super) struct Hand {
    pub(super) turn: Turn,
    cycle: CycleId,
    pub(super) intent: Intent,
    pub(super) entries: Vec<Entry>,
    contradictions: u32,
}

impl Hand {
    /// An intent as the ledger has it.
    pub(super) fn of(turn: Turn, intent: Intent) -> Result<Self, BookError> {
        let entries: Vec<Entry> = serde_json::from_slice(&intent.body)
            .map_err(|error| BookError::Broken(format!("intent {} can't be read: {error}", intent.id)))?;
        let cycle = CycleId::new(intent.cycle_there.clone().unwrap_or_default());
        Ok(Self { turn, cycle, intent, entries, contradictions: 0 })
    }

    /// Takes down what was refused, each item once.
    pub(super) fn refuse(&mut self, out: Vec<RefusedItem>) {
        for refused in out {
            if !self.intent.refused.iter().any(|known| known.item == refused.item) {
                self.intent.refused.push(refused);
            }
        }
    }

    /// True if all items of an entry are refused.
    pub(super) fn is_refused(&self, entry: &Entry) -> bool {
        let is_out = |item: &RefusedItem| self.intent.refused.iter().any(|refused| refused.item == item.item);
        !entry.items.is_empty() && refused(entry, "").iter().all(is_out)
    }

    fn cases(&self) -> Vec<CaseId> {
        self.entries.iter().map(|entry| entry.case.clone()).collect()
    }
}

impl Forwarder<'_> {
    /// Brings an intent to its end.
    pub(super) async fn settle(&mut self, turn: Turn, intent: Intent) -> Result<Intent, Halt> {
        let mut hand = Hand::of(turn, intent)?;
        while !hand.intent.state.is_settled() {
            match hand.intent.state {
                IntentState::Planned | IntentState::Absent => self.send_what_is_missing(&mut hand).await?,
                // Of a process that is gone.
                IntentState::Sending => self.step(&mut hand, IntentEvent::Found).await?,
                IntentState::Unknown => self.after_quiet(&mut hand).await?,
                IntentState::Reconciling => self.read_back(&mut hand).await?,
                IntentState::Acked | IntentState::Rejected | IntentState::Found | IntentState::Parked => {}
            }
        }
        Ok(hand.intent)
    }

    /// Keeps what has happened.
    pub(super) async fn step(&mut self, hand: &mut Hand, event: IntentEvent) -> Result<(), Halt> {
        let from = hand.intent.state;
        let state = from.after(event).ok_or(BookError::Elsewhere(from))?;
        hand.intent.state = state;
        hand.intent.changed_ms = self.clock.unix_ms();
        self.book.advance(hand.turn, from, &hand.intent).await?;
        (self.progress)(Step::Intent { number: hand.intent.number, state });
        Ok(())
    }

    async fn send_what_is_missing(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        if hand.intent.sends >= SENDS_MAX {
            return self.step(hand, IntentEvent::GivenUp).await;
        }
        let to_send = match self.strategy {
            // The product itself knows what is there.
            Strategy::Idempotent => hand.entries.clone(),
            _ => {
                let needs = self.read(hand).await?;
                if needs.are_doubtful() {
                    hand.intent.cause = Some("what is there can't be told from what is to be".to_owned());
                    return self.step(hand, IntentEvent::GivenUp).await;
                }
                needs.to_write().into_iter().map(|at| hand.entries[at].clone()).collect()
            }
        };
        if to_send.is_empty() {
            return self.step(hand, IntentEvent::Seen).await;
        }
        hand.intent.sends += 1;
        hand.intent.sent_ms = Some(self.clock.unix_ms());
        self.step(hand, IntentEvent::Sent).await?;
        let mut out = Vec::new();
        let sent = self.send(&hand.cycle.clone(), &to_send, &mut out).await;
        hand.refuse(out);
        match sent {
            Sent::Taken => self.taken(hand).await,
            Sent::Unknown(what) => {
                hand.intent.cause = Some(what);
                self.step(hand, IntentEvent::Silence).await
            }
            Sent::NotAll(halt) | Sent::Denied(halt) => {
                hand.intent.cause = Some(halt.to_string());
                self.step(hand, IntentEvent::NoEffect).await?;
                Err(halt)
            }
        }
    }

    /// The product said yes: that is enough where it means that it is written.
    async fn taken(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        let gone: usize = hand.intent.refused.len();
        let items: usize = hand.entries.iter().map(|entry| entry.items.len()).sum();
        if gone >= items && items > 0 {
            hand.intent.cause = hand.intent.refused.first().map(|refused| refused.why.clone());
            return self.step(hand, IntentEvent::Refused).await;
        }
        let Visible::Later(lag_ms) = self.adapter.facts().visible else {
            hand.intent.cause = None;
            return self.step(hand, IntentEvent::Confirmed).await;
        };
        // Accepted is not recorded: only what is seen is.
        for round in 0..4_u32 {
            self.pause(lag_ms << round, "accepted; waiting until it can be read").await?;
            if self.read(hand).await?.are_met() {
                hand.intent.flags.remove(&Flag::AcceptedNotConfirmed);
                hand.intent.cause = None;
                return self.step(hand, IntentEvent::Confirmed).await;
            }
            hand.intent.flags.insert(Flag::AcceptedNotConfirmed);
        }
        hand.intent.cause = Some("accepted, and not seen since".to_owned());
        self.step(hand, IntentEvent::Silence).await
    }

    /// A product still works on a request whose client went away: nothing is read before that is over.
    pub(super) async fn after_quiet(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        if self.strategy != Strategy::Idempotent {
            let since_ms = self.clock.unix_ms().saturating_sub(hand.intent.sent_ms.unwrap_or(0));
            let left_ms = self.quiet_ms.saturating_sub(since_ms);
            if left_ms > 0 {
                let why = hand.intent.cause.clone().unwrap_or_else(|| "no answer".to_owned());
                self.pause(left_ms, &format!("possibly written ({why}): read back after a quiet time")).await?;
            }
        }
        self.step(hand, IntentEvent::ReadsBack).await
    }

    /// Two readings, apart in time, that agree.
    async fn read_back(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        if self.strategy == Strategy::Idempotent {
            // Sending it again is reading it back: the product tells a repeat by its id.
            let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
            let why = hand.intent.cause.clone().unwrap_or_else(|| "no answer".to_owned());
            let trouble = crate::foreign::trouble::Trouble::Unknown(why);
            self.before_next(&mut backoff, begun_ms, &trouble).await?;
            return self.step(hand, IntentEvent::Missing).await;
        }
        let first = self.read(hand).await?;
        if first.are_met() {
            return self.step(hand, IntentEvent::Seen).await;
        }
        self.pause(self.between_reads_ms(), "read back: not all is there; once more").await?;
        let second = self.read(hand).await?;
        if second.are_doubtful() {
            hand.intent.cause = Some("what is there can't be told from what is to be".to_owned());
            self.step(hand, IntentEvent::GivenUp).await
        } else if second.are_met() {
            self.step(hand, IntentEvent::Seen).await
        } else if first.of == second.of {
            self.step(hand, IntentEvent::Missing).await
        } else if hand.contradictions >= CONTRADICTIONS_MAX {
            hand.intent.cause = Some("readings contradict each other".to_owned());
            self.step(hand, IntentEvent::GivenUp).await
        } else {
            hand.contradictions += 1;
            self.step(hand, IntentEvent::Silence).await
        }
    }

    fn between_reads_ms(&self) -> u64 {
        match self.adapter.facts().visible {
            // Three times what is usual (`facts/idempotency.md`, W2).
            Visible::Later(ms) => BETWEEN_READS_MS.max(ms.saturating_mul(3)),
            Visible::AtOnce | Visible::AfterJob => BETWEEN_READS_MS,
        }
    }

    /// What is there of an intent; what was refused of it is not missed.
    pub(super) async fn read(&mut self, hand: &mut Hand) -> Result<Needs, Halt> {
        let (adapter, cycle, cases) = (self.adapter, hand.cycle.clone(), hand.cases());
        let rows = self.asking(|| adapter.rows(&cycle, &cases)).await?;
        let mut needs = needs(&hand.entries, &rows);
        for (entry, need) in hand.entries.iter().zip(&mut needs.of) {
            if *need == super::Need::Write && hand.is_refused(entry) {
                *need = super::Need::Nothing;
            }
            if let super::Need::Leave(flag) = need {
                hand.intent.flags.insert(*flag);
            }
        }
        hand.intent.flags.extend(needs.flags.iter().copied());
        Ok(needs)
    }
}
