//! One item named once more: an attempt, a part of the same attempt, or another item of the same name.
//! Must not know where entries are kept meanwhile, in memory or in a file.

use domain::{ExternalId, Outcome, Status};

use super::Weak;
use crate::collect::Entry;
use crate::event::Repeats;
use crate::text::{Bounded, Oddities};

/// The file that an entry comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    /// Its place in the order of files.
    pub(crate) file: usize,
    /// True for a file that holds an earlier attempt only.
    pub(crate) is_attempt: bool,
}

/// What is known of the latest outcome of a name, beside the outcome itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    source: Source,
    suite: u32,
    has_verdict: bool,
    /// Items that bear this name so far.
    namesakes: u32,
}

impl Held {
    /// Of the first entry of a name.
    pub(crate) fn first(source: Source, entry: &Entry) -> Self {
        Self { source, suite: entry.place.suite, has_verdict: entry.has_verdict, namesakes: 1 }
    }

    /// Folds one more entry of this name into `earlier`, the latest outcome of it. Gives the entry's outcome back, with
    /// its number, if it is an item of its own: that one is the latest from now on, and nothing changes `earlier` any more.
    pub(crate) fn fold(
        &mut self,
        earlier: &mut Outcome,
        source: Source,
        seq: u32,
        entry: Entry,
        weak: &mut Weak,
    ) -> Option<Outcome> {
        let fresh = Held { namesakes: self.namesakes, ..Held::first(source, &entry) };
        match what(*self, earlier.status, source, &entry) {
            Repeat::Attempt { failed } => {
                become_attempt(earlier, entry.outcome, failed);
                *self = fresh;
                None
            }
            Repeat::Part => {
                absorb(earlier, entry.outcome);
                self.has_verdict |= entry.has_verdict;
                None
            }
            Repeat::Namesake => {
                weak.see(seq, &entry, earlier.status);
                let mut outcome = entry.outcome;
                outcome.item = outcome.item.with_ordinal(self.namesakes);
                *self = Held { namesakes: self.namesakes + 1, ..fresh };
                Some(outcome)
            }
        }
    }
}

/// What a repeat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// The earlier one was an attempt; `failed` although it looks passed.
    Attempt { failed: bool },
    /// Part of the same attempt: the worst counts.
    Part,
    /// Another item that the report can't tell apart.
    Namesake,
}

fn what(held: Held, earlier: Status, source: Source, entry: &Entry) -> Repeat {
    let same_suite = held.source.file == source.file && held.suite == entry.place.suite;
    let after_bad = if earlier.is_bad() { Repeat::Attempt { failed: false } } else { Repeat::Namesake };
    if held.source.is_attempt {
        return Repeat::Attempt { failed: false };
    }
    match entry.repeats {
        Repeats::Ordinals | Repeats::Programs => Repeat::Namesake,
        Repeats::Worst if held.source.file == source.file => Repeat::Part,
        Repeats::Attempts if same_suite => Repeat::Attempt { failed: false },
        Repeats::Pytest if same_suite && held.has_verdict && earlier.is_bad() => Repeat::Part,
        Repeats::Pytest if same_suite => Repeat::Attempt { failed: !held.has_verdict },
        // In another suite or file it may be another environment: only a retry of what failed is surely an attempt.
        Repeats::AttemptsAfterBad | Repeats::Worst | Repeats::Attempts | Repeats::Pytest => after_bad,
    }
}

/// `later` counts from now on, and what was there is an attempt of it.
fn become_attempt(outcome: &mut Outcome, mut later: Outcome, failed: bool) {
    let mut attempt = outcome.as_attempt();
    if failed {
        attempt.status = Status::Failed;
    }
    let mut attempts = std::mem::take(&mut outcome.attempts);
    attempts.push(attempt);
    later.prepend_attempts(attempts);
    merge_ids(&mut later.external_ids, &outcome.external_ids);
    // The item stays: it may have got an ordinal that the later element can't know.
    std::mem::swap(&mut later.item, &mut outcome.item);
    *outcome = later;
}

/// `other` is a part of the same attempt: the worst status, both messages, the time of both.
fn absorb(outcome: &mut Outcome, other: Outcome) {
    if other.status.badness() > outcome.status.badness() {
        outcome.status = other.status;
    }
    outcome.duration_us = match (outcome.duration_us, other.duration_us) {
        (Some(a), Some(b)) => Some(domain::DurationUs(a.0.saturating_add(b.0))),
        (a, b) => a.or(b),
    };
    outcome.message = match (outcome.message.take(), other.message) {
        (Some(a), Some(b)) => {
            let mut both = Bounded::default();
            both.push(a.as_bytes());
            both.push(b"\n\n");
            both.push(b.as_bytes());
            Some(both.finish(&mut Oddities::default()).0)
        }
        (a, b) => a.or(b),
    };
    let attempts = std::mem::take(&mut outcome.attempts);
    outcome.attempts = other.attempts;
    outcome.prepend_attempts(attempts);
    merge_ids(&mut outcome.external_ids, &other.external_ids);
}

fn merge_ids(into: &mut Vec<ExternalId>, other: &[ExternalId]) {
    for id in other {
        if into.len() < domain::limits::EXTERNAL_IDS_MAX && !into.contains(id) {
            into.push(id.clone());
        }
    }
}
