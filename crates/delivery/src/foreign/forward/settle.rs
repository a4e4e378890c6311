//! Intents to their end: sent, confirmed or found, or given up with a name (`domain::intent`). Every step is kept before what
//! it allows is done. Those that don't meet on a case go together, so that readings and waits come once. Must not know products.

use std::collections::BTreeSet;

use domain::intent::{Flag, Intent, IntentEvent, IntentState, RefusedItem};

use super::decide::{Needs, Picture};
use super::known::Memory;
use super::reading::set;
use super::send::{Sent, Taken};
use super::{BookError, Forwarder, Halt, Need, Step, Turn};
use crate::foreign::adapter::Listing;
use crate::foreign::entry::{CycleId, Entry};
use crate::foreign::facts::{Strategy, Visible};

/// An intent that was sent so often and is still not known to be there is given to a person.
const SENDS_MAX: u32 = 8;
/// So long after it was planned, what may be repeated is sent on all the same, in milliseconds.
const PATIENT_MS: u64 = 15 * 60 * 1000;
/// What is sent is sent on a picture that is no older, in milliseconds: what others write meanwhile isn't in it (R2, R4).
const PICTURE_MS: u64 = 2000;
/// Or than so many times as long as reading it took: a cycle that is long to read is not read for most of the time.
const READINGS: u64 = 3;
/// So many sends in a row without an answer, and what became of them is found out before anything else is sent.
const SILENCES_MAX: u32 = 2;
/// How often what was accepted is looked for before it is taken for what had no answer.
const LOOKS_MAX: u32 = 4;
/// No call lasts longer, in milliseconds: some are made of hundreds of requests.
const CALL_MS_MAX: u64 = 15 * 60 * 1000;
pub(super) const DOUBTFUL: &str = "what is there can't be told from what is to be";

/// An intent in hand.
pub(super) struct Hand {
    pub(super) turn: Turn,
    pub(super) cycle: CycleId,
    pub(super) intent: Intent,
    pub(super) entries: Vec<Entry>,
    pub(super) contradictions: u32,
    pub(super) looks: u32,
    /// True if of some entry nobody can tell whether it is there: it is left out of a send.
    doubtful: bool,
    /// True if it is looked at by a sweep.
    pub(super) swept: bool,
    /// How often this process has sent it.
    tries: u32,
}

impl Hand {
    /// An intent as the ledger has it.
    pub(super) fn of(turn: Turn, intent: Intent) -> Result<Self, BookError> {
        let entries: Vec<Entry> = serde_json::from_slice(&intent.body)
            .map_err(|error| BookError::Broken(format!("intent {} can't be read: {error}", intent.id)))?;
        Ok(Self { entries, ..Self::unread(turn, intent) })
    }

    /// The same, where it doesn't matter what it means to write: also one that can't be read ends.
    pub(super) fn unread(turn: Turn, intent: Intent) -> Self {
        let cycle = CycleId::new(intent.cycle_there.clone().unwrap_or_default());
        let (entries, contradictions, looks) = (Vec::new(), 0, 0);
        Self { turn, cycle, intent, entries, contradictions, looks, doubtful: false, swept: false, tries: 0 }
    }

    /// Takes down what was refused, each item of each case once.
    pub(super) fn refuse(&mut self, out: Vec<RefusedItem>) {
        for refused in out {
            let same = |known: &&mut RefusedItem| known.item == refused.item && known.case == refused.case;
            match self.intent.refused.iter_mut().find(same) {
                Some(known) if known.again => *known = refused,
                Some(_) => {}
                None => self.intent.refused.push(refused),
            }
        }
    }

    /// True if all items of an entry are refused.
    pub(super) fn is_refused(&self, entry: &Entry) -> bool {
        entry.is_refused_in(&self.intent)
    }

    /// Leaves out what was refused, and, where a push came again for what was refused of it, everything else: it was there
    /// once, and isn't sent again by itself.
    pub(super) fn leave_out(&self, needs: &mut Needs) {
        let offered =
            |entry: &Entry| self.intent.refused.iter().any(|refused| refused.again && entry.is_named_by(refused));
        let once_more = !self.intent.state.is_settled() && self.intent.refused.iter().any(|refused| refused.again);
        for (need, entry) in needs.of.iter_mut().zip(&self.entries).filter(|(need, _)| **need == Need::Write) {
            if self.is_refused(entry) {
                *need = Need::Refused;
            } else if once_more && !offered(entry) {
                *need = Need::Missed;
            }
        }
    }

    /// True if an answer took it, and nothing is in doubt but whether it is shown.
    pub(super) fn is_accepted(&self) -> bool {
        self.intent.flags.contains(&Flag::AcceptedNotConfirmed) && self.looks < LOOKS_MAX
    }

    /// True if it was sent, and no answer came.
    fn is_silent(&self) -> bool {
        self.intent.state == IntentState::Unknown && !self.is_accepted()
    }

    pub(super) fn why(&self) -> String {
        self.intent.cause.clone().unwrap_or_else(|| "no answer".to_owned())
    }
}

/// Those of some intents that are in one of these states.
pub(super) fn those_in<'h>(hands: &'h mut [Hand], states: &[IntentState]) -> Vec<&'h mut Hand> {
    hands.iter_mut().filter(|hand| states.contains(&hand.intent.state)).collect()
}

impl Forwarder<'_> {
    /// Brings intents to their end, in their order wherever it matters: those that say something of one case, and those of
    /// different cycles, one after the other.
    pub(super) async fn settle(&mut self, turn: Turn, intents: Vec<Intent>) -> Result<Vec<Intent>, Halt> {
        let mut groups: Vec<Vec<Hand>> = Vec::new();
        let mut cases = BTreeSet::new();
        for intent in intents {
            let hand = Hand::of(turn, intent)?;
            let meets = hand.entries.iter().any(|entry| cases.contains(&entry.case));
            let goes_with = groups.last().and_then(|group| group.last()).is_some_and(|last| last.cycle == hand.cycle);
            if meets || !goes_with {
                cases.clear();
                groups.push(Vec::new());
            }
            cases.extend(hand.entries.iter().map(|entry| entry.case.clone()));
            if let Some(group) = groups.last_mut() {
                group.push(hand);
            }
        }
        let mut ended = Vec::new();
        for mut group in groups {
            self.settle_together(&mut group).await?;
            ended.extend(group.into_iter().map(|hand| hand.intent));
        }
        Ok(ended)
    }

    async fn settle_together(&mut self, hands: &mut [Hand]) -> Result<(), Halt> {
        // One series of waits for all that is silent: a product that is away isn't asked faster for having more to take.
        let mut tries = (self.backoff(), self.clock.now_ms());
        while hands.iter().any(|hand| !hand.intent.state.is_settled()) {
            // Of a process that is gone.
            for hand in those_in(hands, &[IntentState::Sending]) {
                self.found_sending(hand).await?;
            }
            self.send_what_is_missing(hands).await?;
            self.after_quiet(hands).await?;
            self.read_back(hands, &mut tries).await?;
        }
        Ok(())
    }

    /// Keeps what has happened.
    pub(super) async fn step(&mut self, hand: &mut Hand, event: IntentEvent) -> Result<(), Halt> {
        let from = hand.intent.state;
        let state = from.after(event).ok_or(BookError::Elsewhere(from))?;
        hand.intent.state = state;
        if state.is_settled() && state != IntentState::Parked {
            // It is there, or was refused once more.
            hand.intent.refused.retain(|refused| !refused.again);
        }
        hand.intent.changed_ms = self.clock.unix_ms();
        self.book.advance(hand.turn, from, &hand.intent).await?;
        (self.progress)(Step::Intent { number: hand.intent.number, state });
        Ok(())
    }

    /// Nobody heard when its last call ended: it may have been until now, but no longer than a call can last.
    pub(super) async fn found_sending(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        let now_ms = self.clock.unix_ms();
        let left_ms = hand.intent.sent_ms.unwrap_or(now_ms);
        hand.intent.sent_ms = Some(left_ms.saturating_add(CALL_MS_MAX).min(now_ms));
        self.step(hand, IntentEvent::Found).await
    }

    /// Sends until all is sent, or silence says to look first.
    async fn send_what_is_missing(&mut self, hands: &mut [Hand]) -> Result<(), Halt> {
        let (mut silences, mut memory) = (0, Memory::default());
        loop {
            let mut open = those_in(hands, &[IntentState::Planned, IntentState::Absent]);
            if self.adapter.listing() == Listing::Case {
                open.truncate(1);
            }
            if open.is_empty() || silences >= SILENCES_MAX {
                return Ok(());
            }
            let begun_ms = self.clock.now_ms();
            let picture = match self.strategy {
                // The product itself knows what is there, but for what another attempt has said by another id.
                Strategy::Idempotent if !self.is_readable() => self.confirmed_before(&mut memory, &open).await?,
                Strategy::AtMostOnce => self.sent_before(&mut memory, &open).await?,
                _ => self.picture(&open).await?,
            };
            let read_ms = self.clock.now_ms();
            let old_ms = PICTURE_MS.max(read_ms.saturating_sub(begun_ms).saturating_mul(READINGS));
            for hand in open {
                self.send_one(hand, &picture, &mut memory).await?;
                silences = if hand.is_silent() { silences + 1 } else { 0 };
                if silences >= SILENCES_MAX || self.clock.now_ms().saturating_sub(read_ms) >= old_ms {
                    break;
                }
            }
        }
    }

    async fn send_one(&mut self, hand: &mut Hand, picture: &Picture, memory: &mut Memory) -> Result<(), Halt> {
        if hand.intent.sends >= SENDS_MAX && !self.is_patient(hand) {
            return self.step(hand, IntentEvent::GivenUp).await;
        }
        let mut needs = self.needs_of(hand, picture);
        hand.leave_out(&mut needs);
        if self.strategy == Strategy::Idempotent {
            needs.trust_ids();
        }
        self.leave_what_is_known_newer(memory, hand, &mut needs).await?;
        if self.is_strange(memory, hand, &needs).await? {
            return self.step(hand, IntentEvent::GivenUp).await;
        }
        let mut to_send: Vec<Entry> = needs.to_write().into_iter().map(|at| hand.entries[at].clone()).collect();
        if to_send.is_empty() && needs.are_doubtful() {
            hand.intent.cause = Some(DOUBTFUL.to_owned());
            return self.step(hand, IntentEvent::GivenUp).await;
        }
        if to_send.is_empty() {
            let event = self.event_of_all_there(hand, memory).await?;
            return self.step(hand, event).await;
        }
        hand.doubtful = needs.are_doubtful();
        self.note_what_is_replaced(hand, picture, &to_send);
        (hand.intent.sends, hand.tries) = (hand.intent.sends + 1, hand.tries + 1);
        hand.intent.sent_ms = Some(self.clock.unix_ms());
        self.step(hand, IntentEvent::Sent).await?;
        // One entry that silences the product must not keep the others from it: smaller calls each time, from the other end.
        let piece = to_send.len().div_ceil(1 << (hand.intent.sends - 1).min(16));
        if hand.intent.sends > 2 && hand.intent.sends.is_multiple_of(2) {
            to_send.reverse();
        }
        let mut out = Vec::new();
        let sent = self.send(hand, &to_send, piece, &mut out).await?;
        hand.refuse(out);
        match sent {
            Sent::Taken(taken) => {
                self.note_existed(hand, &taken.existed).await?;
                self.taken(hand, &taken).await
            }
            Sent::Unknown(what) => {
                hand.intent.cause = Some(what);
                hand.looks = LOOKS_MAX;
                self.step(hand, IntentEvent::Silence).await
            }
            Sent::NotAll(halt) | Sent::Denied(halt) => {
                hand.intent.cause = Some(halt.to_string());
                self.step(hand, IntentEvent::NoEffect).await?;
                Err(halt)
            }
        }
    }

    /// True if it may be sent beyond what is usual: where the product tells a repeat by its id, that is harmless, and a
    /// product that is away for some minutes is nothing that a person has to look at.
    fn is_patient(&self, hand: &Hand) -> bool {
        let age_ms = self.clock.unix_ms().saturating_sub(hand.intent.planned_ms);
        self.strategy == Strategy::Idempotent && (age_ms < PATIENT_MS || hand.tries < SENDS_MAX)
    }

    /// Where nothing can be read, what was sent is all that can be known: no flag of an intent follows from it but its own.
    fn needs_of(&self, hand: &mut Hand, picture: &Picture) -> Needs {
        match self.strategy {
            Strategy::AtMostOnce => set(&mut hand.intent, Flag::AtMostOnce, true),
            Strategy::Idempotent if !self.is_readable() => {}
            _ => return self.judge(hand, picture),
        }
        picture.needs(&hand.entries, self.adapter.facts().verdict)
    }

    /// The product said yes: that is enough where it means that it is written.
    async fn taken(&mut self, hand: &mut Hand, taken: &Taken) -> Result<(), Halt> {
        hand.intent.cause = None;
        if hand.entries.iter().all(|entry| hand.is_refused(entry)) {
            hand.intent.cause = hand.intent.refused.first().map(|refused| refused.why.clone());
            return self.step(hand, IntentEvent::Refused).await;
        }
        if hand.doubtful {
            // The rest is there, and a person has to look at these.
            hand.intent.cause = Some(DOUBTFUL.to_owned());
            return self.step(hand, IntentEvent::GivenUp).await;
        }
        if self.lag_ms().is_none() || (self.strategy == Strategy::Idempotent && !self.is_readable()) {
            // With what was there before, the rest makes it whole.
            hand.intent.flags.remove(&Flag::Partial);
            return self.step(hand, IntentEvent::Confirmed).await;
        }
        // Accepted is not recorded: only what is seen is, or what the answer names a row for. That is never sent again.
        hand.looks = 0;
        hand.intent.flags.insert(Flag::AcceptedNotConfirmed);
        hand.intent.cause = Some("accepted, and not read back yet".to_owned());
        let event = if taken.unnamed { IntentEvent::Accepted } else { IntentEvent::Confirmed };
        self.step(hand, event).await
    }

    /// True if rows can be read there, with what they say of us.
    pub(super) fn is_readable(&self) -> bool {
        matches!(self.adapter.listing(), Listing::Cycle | Listing::Case)
    }

    /// How long it usually takes until a write is shown, where it isn't at once.
    pub(super) fn lag_ms(&self) -> Option<u64> {
        match self.adapter.facts().visible {
            Visible::Later(ms) => Some(ms),
            Visible::AtOnce | Visible::AfterJob => None,
        }
    }

    /// What was accepted is waited for until it is usually shown. What had no answer, longer: a product still works on a
    /// request whose client went away, and nothing is read before that is over.
    pub(super) async fn after_quiet(&mut self, hands: &mut [Hand]) -> Result<(), Halt> {
        let mut waiting = those_in(hands, &[IntentState::Unknown]);
        if self.strategy == Strategy::AtMostOnce {
            for hand in waiting {
                hand.intent.flags.insert(Flag::AtMostOnce);
                self.step(hand, IntentEvent::GivenUp).await?;
            }
            return Ok(());
        }
        // These first: theirs is the shorter wait.
        let accepted = waiting.iter().any(|hand| hand.is_accepted());
        waiting.retain(|hand| hand.is_accepted() == accepted);
        let due_ms = waiting.iter().map(|hand| self.due_ms(hand)).max().unwrap_or(0);
        let left_ms = due_ms.saturating_sub(self.clock.unix_ms());
        if let Some(first) = waiting.first().filter(|_| left_ms > 0) {
            let why = if accepted {
                "accepted; waiting until it can be read".to_owned()
            } else {
                format!("possibly written ({}): read back after a quiet time", first.why())
            };
            self.pause(left_ms, &why).await?;
        }
        for hand in waiting {
            self.step(hand, IntentEvent::ReadsBack).await?;
        }
        Ok(())
    }

    /// When it may be read back, milliseconds since 1970.
    fn due_ms(&self, hand: &Hand) -> u64 {
        if hand.is_accepted() {
            return hand.intent.changed_ms.saturating_add(self.lag_ms().unwrap_or(0) << hand.looks);
        }
        match self.strategy {
            Strategy::Idempotent => 0,
            _ => hand.intent.sent_ms.unwrap_or(0).saturating_add(self.quiet_ms),
        }
    }
}
