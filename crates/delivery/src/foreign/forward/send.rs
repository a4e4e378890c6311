//! Sends the entries of one intent: halves what is refused until one bad entry stands alone, and looks after jobs.
//! Must not find out what a silence means: that is `settle`'s.

use domain::intent::RefusedItem;
use domain::marker::Marker;
use domain::mutant;

use super::plan::refused;
use super::settle::Hand;
use super::{Forwarder, Halt, Need};
use crate::backoff::Backoff;
use crate::foreign::adapter::{JobEnd, Listing, Written};
use crate::foreign::entry::{CaseId, Entry, JobId};
use crate::foreign::facts::{KeyOnWrite, Strategy, VerdictRule};
use crate::foreign::trouble::Trouble;

/// What sending came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sent {
    /// All that was not refused is taken.
    Taken(Taken),
    /// Of what is not taken, nothing had an effect. The deadline came, or somebody wants to stop.
    NotAll(Halt),
    /// Some of it may be written.
    Unknown(String),
    /// The product won't have it, whoever's outcome it is.
    Denied(Halt),
}

/// What the answers to a send said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// What the product said it has already, by our id.
    pub(super) existed: Vec<Marker>,
    /// True if some entry was taken without naming the row that it became.
    pub(super) unnamed: bool,
}

/// So many calls in a row without an answer, and what became of them is found out first.
const SILENT_CALLS_MAX: u32 = 2;

/// A send under way.
struct Sending {
    /// What is still to be sent, the next call's entries last.
    open: Vec<Vec<Entry>>,
    backoff: Backoff,
    begun_ms: u64,
    calls: u32,
    /// Why the last calls had no answer.
    silences: Vec<String>,
    silent_in_a_row: u32,
    /// True if an answer took some of it.
    some: bool,
    taken: Taken,
}

impl Sending {
    /// The first half is taken from the end next: order is kept.
    fn halve(&mut self, mut batch: Vec<Entry>) {
        let second = batch.split_off(batch.len() / 2);
        self.open.extend([second, batch].into_iter().filter(|half| !half.is_empty()));
    }

    fn silent(&mut self, what: String) {
        self.silences.push(what);
        self.silent_in_a_row += 1;
    }

    fn ended(self) -> Sent {
        match self.silences.into_iter().next() {
            Some(what) => Sent::Unknown(what),
            None => Sent::Taken(self.taken),
        }
    }
}

impl Forwarder<'_> {
    /// Sends entries in calls of at most so many each, or as many calls as it takes. When the last one left, or was given up
    /// without an answer, is kept in the intent: the quiet time is counted from there.
    ///
    /// # Errors
    /// The ledger can't keep it.
    pub(super) async fn send(
        &mut self,
        hand: &mut Hand,
        entries: &[Entry],
        piece: usize,
        out: &mut Vec<RefusedItem>,
    ) -> Result<Sent, Halt> {
        let mut open: Vec<Vec<Entry>> = entries.chunks(piece.max(1)).map(<[Entry]>::to_vec).collect();
        open.reverse();
        let mut sending = Sending {
            open,
            backoff: self.backoff(),
            begun_ms: self.clock.now_ms(),
            calls: 0,
            silences: Vec::new(),
            silent_in_a_row: 0,
            some: false,
            taken: Taken::default(),
        };
        while sending.silent_in_a_row < SILENT_CALLS_MAX {
            let Some(batch) = sending.open.pop() else { break };
            self.note_call(hand, &mut sending).await?;
            let trouble = match self.adapter.write(&hand.cycle, &batch).await {
                Ok(written) => self.note_written(hand, &mut sending, &batch, written, out).await,
                Err(trouble) => Some(trouble),
            };
            let ended = match trouble {
                Some(trouble) => self.after_trouble(hand, &mut sending, batch, trouble, out).await,
                None => None,
            };
            if let Some(ended) = ended {
                // What had no answer before is not forgotten for what was refused after it.
                return Ok(if sending.silences.is_empty() { ended } else { sending.ended() });
            }
        }
        Ok(sending.ended())
    }

    /// A call is about to leave. The first of an intent was kept with its state.
    async fn note_call(&mut self, hand: &mut Hand, sending: &mut Sending) -> Result<(), Halt> {
        sending.calls += 1;
        if sending.calls > 1 {
            hand.intent.sent_ms = Some(self.clock.unix_ms());
            self.book.advance(hand.turn, hand.intent.state, &hand.intent).await?;
        }
        Ok(())
    }

    /// An answer that took a batch; trouble, if its job came to no good end.
    async fn note_written(
        &mut self,
        hand: &mut Hand,
        sending: &mut Sending,
        batch: &[Entry],
        written: Written,
        out: &mut Vec<RefusedItem>,
    ) -> Option<Trouble> {
        let refused_at: Vec<usize> = written.refused.iter().map(|(at, _)| *at).collect();
        for (at, why) in written.refused {
            out.extend(batch.get(at).into_iter().flat_map(|entry| refused(entry, &why)));
        }
        let is_named = |at: usize| refused_at.contains(&at) || written.rows.get(at).is_some_and(Option::is_some);
        sending.taken.unnamed |= !(0..batch.len()).all(is_named);
        (sending.some, sending.silent_in_a_row) = (true, 0);
        let unclear = self.look_after(&written.job?).await?;
        hand.intent.sent_ms = Some(self.clock.unix_ms());
        Some(Trouble::Unknown(unclear))
    }

    /// What follows from a call that wasn't taken. `Some`: the send ends with it.
    async fn after_trouble(
        &mut self,
        hand: &mut Hand,
        sending: &mut Sending,
        batch: Vec<Entry>,
        trouble: Trouble,
        out: &mut Vec<RefusedItem>,
    ) -> Option<Sent> {
        // Nobody can read what was taken before, and the rest is not sent any more.
        let half_sent = sending.some && self.strategy == Strategy::AtMostOnce;
        let ends = |what: String, sent: Sent| {
            Some(if half_sent { Sent::Unknown(format!("a part of it was taken before: {what}")) } else { sent })
        };
        match trouble {
            Trouble::Unknown(what) => self.fell_silent(hand, sending, what),
            Trouble::Exists(why) if mutant!(M37) => {
                out.extend(batch.iter().flat_map(|entry| refused(entry, &why)));
            }
            // It is ours if the id is: nobody else makes that one.
            Trouble::Exists(_) if self.is_keyed() && batch.len() == 1 => sending.taken.existed.push(batch[0].marker),
            Trouble::Exists(what) if !self.is_keyed() => self.fell_silent(hand, sending, what),
            Trouble::Refused(why) | Trouble::TooLarge(why) if batch.len() == 1 => {
                out.extend(refused(&batch[0], &why));
                sending.silent_in_a_row = 0;
            }
            // Refused before anything was looked at.
            Trouble::TooLarge(_) | Trouble::Exists(_) => sending.halve(batch),
            Trouble::Refused(why) => match self.not_taken(hand, batch).await {
                Ok(rest) => sending.halve(rest),
                Err(unread) => {
                    return Some(Sent::Unknown(format!("{why}; what of it was taken is not known: {unread}")));
                }
            },
            Trouble::Denied(what) => return ends(what.clone(), Sent::Denied(Halt::Denied(what))),
            Trouble::Gone(what) => return ends(what.clone(), Sent::Denied(Halt::Gone(what))),
            again @ (Trouble::NotSent(_) | Trouble::Wait { .. }) => {
                let waited = self.before_next(&mut sending.backoff, sending.begun_ms, &again).await;
                if let Err(halt) = waited {
                    return ends(halt.to_string(), Sent::NotAll(halt));
                }
                sending.open.push(batch);
            }
        }
        None
    }

    fn fell_silent(&self, hand: &mut Hand, sending: &mut Sending, what: String) {
        sending.silent(what);
        hand.intent.sent_ms = Some(self.clock.unix_ms());
    }

    /// What of a refused batch is still to be sent. A product that carries out a call in parts may have kept what stood
    /// before the bad entry: where a repeat would double that, it is read first.
    ///
    /// # Errors
    /// In words: it can't be read.
    async fn not_taken(&mut self, hand: &Hand, batch: Vec<Entry>) -> Result<Vec<Entry>, String> {
        let facts = self.adapter.facts();
        // A container is counted before it counts.
        let harmless = self.is_keyed() || facts.verdict != VerdictRule::Appends || self.strategy == Strategy::Container;
        if facts.bulk.atomic || harmless {
            return Ok(batch);
        }
        if self.adapter.listing() == Listing::Nothing {
            return Err("nothing can be read there".to_owned());
        }
        if let Some(lag_ms) = self.lag_ms() {
            let waited = self.pause(lag_ms, "refused; waiting until what was taken of it can be read").await;
            waited.map_err(|halt| halt.to_string())?;
        }
        let cases: Vec<CaseId> = batch.iter().map(|entry| entry.case.clone()).collect();
        let picture = self.rows(&hand.cycle, &cases).await.map_err(|halt| halt.to_string())?;
        let needs = picture.needs(&batch, facts.verdict);
        Ok(batch.into_iter().zip(needs.of).filter(|(_, need)| *need == Need::Write).map(|(entry, _)| entry).collect())
    }

    pub(super) fn is_keyed(&self) -> bool {
        self.adapter.facts().key_on_write != KeyOnWrite::None
    }

    /// Waits for a job's end. `None` if it did everything.
    async fn look_after(&mut self, job: &JobId) -> Option<String> {
        let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
        loop {
            let open = match self.adapter.poll(job).await {
                Ok(JobEnd::Done) => return None,
                Ok(JobEnd::Failed(why)) => return Some(format!("job {job} failed after it was accepted: {why}")),
                Ok(JobEnd::Gone) => return Some(format!("job {job} is not known any more")),
                Ok(JobEnd::Open) => Trouble::Unknown(format!("job {job} has not ended")),
                Err(trouble) => trouble,
            };
            if let Err(halt) = self.before_next(&mut backoff, begun_ms, &open).await {
                return Some(halt.to_string());
            }
        }
    }
}
