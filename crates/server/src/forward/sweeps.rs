//! What is settled is read back by itself, an hour and a day after it was sent, so that what came or went since is seen
//! (`domain::forwarding`). Must not send anything, nor decide what is due.

use std::collections::BTreeMap;

use delivery::foreign::{BookError, Halt};
use domain::intent::IntentId;
use store::{DueSweep, IntentQuery, StoreError};

use super::ForwardTerms;
use super::worker::{Broken, Did, Session, Worker, forwarder, watching};

/// An hour is not an hour and a second: only every so many looks of the worker are for sweeps too.
const LOOKS_BETWEEN: u64 = 30;
/// Intents that are read back at a time.
const AT_ONCE: usize = 500;

/// A cycle that refuses to be read so often in a row is held for read back: with the usual waits that is half a day, and the
/// next sweep looks again. What is not answered at all is never given up.
const REFUSALS_MAX: u32 = 24;

/// What a worker remembers of sweeps; a restart tries at once.
#[derive(Debug, Default)]
pub(super) struct Sweeping {
    /// Nothing is read back before.
    not_before_ms: u64,
    /// Cycles in a row that weren't answered.
    failed: u32,
    /// Cycles there that could not be read: they come after all others.
    unread: BTreeMap<String, Unread>,
}

/// A cycle there that could not be read.
#[derive(Debug, Clone, Copy, Default)]
struct Unread {
    /// When it is asked for again.
    again_ms: u64,
    /// How often it could not be read in a row.
    tries: u32,
    /// How often of these it was refused.
    refusals: u32,
}

impl Sweeping {
    /// Cycles that are not asked for yet.
    fn put_off_at(&self, now_ms: u64) -> Vec<String> {
        self.unread.iter().filter(|(_, unread)| unread.again_ms > now_ms).map(|(cycle, _)| cycle.clone()).collect()
    }

    /// The target answers.
    fn answered(&mut self, cycle: &str) {
        self.failed = 0;
        self.unread.remove(cycle);
    }

    /// Nothing is asked for a while, the longer the more often in a row.
    fn rests(&mut self, now_ms: u64, terms: ForwardTerms) {
        self.not_before_ms = now_ms.saturating_add(terms.backoff_ms(self.failed));
        self.failed = self.failed.saturating_add(1);
    }

    /// A cycle wasn't answered, or whoever asks may not read it: perhaps that is so of all, so all of them rest; it rests longer,
    /// so that another one comes first.
    fn silent(&mut self, cycle: String, now_ms: u64, terms: ForwardTerms) {
        self.rests(now_ms, terms);
        let after_ms = self.not_before_ms;
        self.put_off(cycle, after_ms, terms);
    }

    /// A cycle refuses to be read, and the target answers. True if it has done so often enough.
    fn refused(&mut self, cycle: String, now_ms: u64, terms: ForwardTerms) -> bool {
        self.failed = 0;
        let unread = self.put_off(cycle, now_ms, terms);
        unread.refusals += 1;
        unread.refusals >= REFUSALS_MAX
    }

    fn put_off(&mut self, cycle: String, after_ms: u64, terms: ForwardTerms) -> &mut Unread {
        // What was deleted or read by another server meanwhile is not asked for any more.
        self.unread.retain(|_, unread| unread.again_ms.saturating_add(2 * terms.backoff_max_ms) > after_ms);
        let unread = self.unread.entry(cycle).or_default();
        unread.again_ms = after_ms.saturating_add(terms.backoff_ms(unread.tries));
        unread.tries = unread.tries.saturating_add(1);
        unread
    }
}

impl Worker {
    /// True if something is due and may be readable.
    pub(super) async fn has_sweeps(&mut self, now_ms: u64) -> Result<bool, Broken> {
        if now_ms < self.sweeping.not_before_ms {
            return Ok(false);
        }
        let has_sweeps = match self.due(now_ms).await {
            // What waits goes on all the same.
            Err(damage @ StoreError::Broken { .. }) => {
                tracing::error!(target = self.name(), %damage, "what is to be read back can't be listed; it is tried again");
                self.sweeping.rests(now_ms, self.terms);
                return Ok(false);
            }
            due => !due?.is_empty(),
        };
        if !has_sweeps {
            self.sweeping.not_before_ms = now_ms.saturating_add(self.terms.look_ms.saturating_mul(LOOKS_BETWEEN));
        }
        Ok(has_sweeps)
    }

    /// What is due of one cycle there and one sweep; nothing if nothing is.
    async fn due(&self, now_ms: u64) -> Result<Vec<DueSweep>, Broken> {
        // The store leaves out what is put off: however much is due of that, it hides nothing else.
        let mut due = self.store.due_sweeps(self.name(), now_ms, &self.sweeping.put_off_at(now_ms), AT_ONCE).await?;
        if let Some(first) = due.first() {
            let (cycle, number) = (first.cycle_there.clone(), first.number);
            due.retain(|one| one.cycle_there == cycle && one.number == number);
        }
        Ok(due)
    }

    /// Reads back what is due of one cycle there.
    pub(super) async fn sweep(&mut self, session: &Session) -> Result<Did, Broken> {
        let due = self.due(self.clock.unix_ms()).await?;
        let Some(first) = due.first() else { return Ok(Did::Nothing) };
        let (number, cycle) = (first.number, first.cycle_there.clone().unwrap_or_default());
        let ids: Vec<IntentId> = due.iter().map(|due| due.id).collect();
        let intents = match self.store.intents(IntentQuery { ids: ids.clone(), ..IntentQuery::default() }).await {
            // What can't be read of one cycle hides no other.
            Err(damage @ StoreError::Broken { .. }) => {
                let halt = Halt::Book(BookError::Broken(damage.to_string()));
                return self.unread(session, halt, cycle, (ids, number)).await;
            }
            intents => intents?,
        };
        let mut settled = 0;
        let swept = {
            let Self { app, target, clock, random, terms, .. } = self;
            let mut watch = watching(app, target.settings.name.as_str(), &mut settled);
            let mut forwarder = forwarder(target, session, &**clock, random, &mut watch, *terms);
            Box::pin(forwarder.sweep(intents)).await
        };
        let halt = match swept {
            Ok(seen) => {
                let flagged = seen.iter().filter(|intent| intent.flags.iter().any(|flag| flag.is_wrong())).count();
                tracing::info!(target = self.name(), cycle, seen = seen.len(), flagged, number, "read back");
                self.sweeping.answered(&cycle);
                let kept = self.store.swept(self.name(), session.turn.0, ids, number).await?;
                return Ok(if kept { Did::Further } else { Did::Leave });
            }
            Err(halt) => halt,
        };
        self.unread(session, halt, cycle, (ids, number)).await
    }

    /// A cycle could not be read back: whatever it was, the others go on.
    async fn unread(
        &mut self,
        session: &Session,
        halt: Halt,
        cycle: String,
        (ids, number): (Vec<IntentId>, u32),
    ) -> Result<Did, Broken> {
        let (now_ms, terms) = (self.clock.unix_ms(), self.terms);
        let target = self.target.settings.name.as_str();
        match halt {
            Halt::Stopped(_) | Halt::Book(BookError::Fenced) => return Ok(Did::Leave),
            Halt::Denied(cause) => {
                // A right may be missing for this one alone.
                tracing::warn!(target, cycle, cause, "not read back; it is tried again, after others");
                self.sweeping.silent(cycle, now_ms, terms);
            }
            Halt::Refused(cause) | Halt::Gone(cause) if self.sweeping.refused(cycle.clone(), now_ms, terms) => {
                tracing::error!(
                    target,
                    cycle,
                    cause,
                    number,
                    "it can't be read back, and isn't before it is due again: `tallyonce audit` looks"
                );
                self.sweeping.answered(&cycle);
                let kept = self.store.swept(target, session.turn.0, ids, number).await?;
                return Ok(if kept { Did::Further } else { Did::Leave });
            }
            Halt::Refused(cause) | Halt::Gone(cause) => {
                tracing::warn!(target, cycle, cause, "it can't be read back; it is tried again, after others");
            }
            halt => {
                tracing::warn!(target, cycle, cause = %halt, "not read back; it is tried again, after others");
                self.sweeping.silent(cycle, now_ms, terms);
            }
        }
        Ok(Did::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_read(sweeping: &Sweeping, cycle: &str, now_ms: u64) -> bool {
        !sweeping.put_off_at(now_ms).iter().any(|other| other == cycle)
    }

    #[test]
    fn a_cycle_that_is_not_answered_comes_after_every_other_one() {
        let (mut sweeping, terms) = (Sweeping::default(), ForwardTerms::default());
        for cycle in ["17", "18", "19"] {
            sweeping.silent(cycle.to_owned(), 0, terms);
            let now_ms = sweeping.not_before_ms;
            assert!(!may_read(&sweeping, cycle, now_ms) && may_read(&sweeping, "20", now_ms), "{cycle}");
        }
        assert_eq!(sweeping.not_before_ms, 4 * 60_000, "nobody answers, so it is asked less and less often");
        sweeping.answered("18");
        assert!(may_read(&sweeping, "18", 0) && !may_read(&sweeping, "17", 0));
        sweeping.silent("20".to_owned(), 0, terms);
        assert_eq!(sweeping.not_before_ms, 60_000, "one that answered begins it anew");
    }

    #[test]
    fn a_cycle_that_refuses_is_asked_for_half_a_day_and_no_other_one_waits_for_it() {
        let (mut sweeping, terms) = (Sweeping::default(), ForwardTerms::default());
        let mut now_ms = 0;
        for refusals in 1..=REFUSALS_MAX {
            assert!(may_read(&sweeping, "17", now_ms));
            let enough = sweeping.refused("17".to_owned(), now_ms, terms);
            assert_eq!((enough, sweeping.not_before_ms), (refusals == REFUSALS_MAX, 0));
            assert!(!may_read(&sweeping, "17", now_ms) && may_read(&sweeping, "18", now_ms));
            now_ms = sweeping.unread["17"].again_ms;
        }
        assert!((9..12).contains(&(now_ms / 3_600_000)), "{now_ms}");
        // What nobody asks for any more is forgotten.
        sweeping.silent("18".to_owned(), now_ms + 2 * terms.backoff_max_ms, terms);
        assert_eq!(sweeping.unread.keys().collect::<Vec<_>>(), ["18"]);
    }
}
