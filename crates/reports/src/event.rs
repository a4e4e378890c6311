//! What readers hand on, one test element at a time: the seam between formats and whoever counts or collects.
//! Must not know any format, or how repeats are folded.

use domain::{Attempt, DurationUs, ExternalId, ItemName, Outcome, Status};

use crate::error::ReportError;
pub use crate::seconds::Sign;

/// A report being read: test elements and notes in document order, in bounded memory.
pub trait Reader {
    /// The next event; none at the end. After an error, no more events come: all whole test elements before damage have
    /// been handed out by then.
    ///
    /// An event borrows from the reader: names are handed out without being copied, so that counting costs no memory.
    fn next(&mut self) -> Result<Option<Event<'_>>, ReportError>;
}

/// One thing found in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A test element.
    Outcome(RawOutcome<'a>),
    /// Anything else worth knowing.
    Note(Note),
}

/// One test element as the file holds it, before it is known whether another one is about the same item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawOutcome<'a> {
    /// The suites that identify the item, outermost first, as written.
    pub suite: &'a [String],
    /// The class or file, if the report gives one.
    pub class: Option<&'a str>,
    /// The test's own name.
    pub name: &'a str,
    /// The verdict of this element.
    pub status: Status,
    /// How long it took, if that can be believed.
    pub duration_us: Option<DurationUs>,
    /// What the duration is if the file turns out to write decimal commas; set only when that is in doubt.
    pub duration_with_comma_us: Option<DurationUs>,
    /// Message and trace, bounded.
    pub message: Option<String>,
    /// Attempts that the element itself lists, oldest first.
    pub attempts: Vec<Attempt>,
    /// Ids of the item in other systems.
    pub external_ids: Vec<ExternalId>,
    /// Files that it names, if they are looked for.
    pub attachments: Vec<String>,
    /// How another element of the same item is to be understood.
    pub repeats: Repeats,
    /// Where it stands.
    pub place: Place,
    /// False if nothing in the element said so and it passed for want of a failure.
    pub has_verdict: bool,
    /// Texts in it that were cut to their bound.
    pub cut: u32,
}

impl RawOutcome<'_> {
    /// Who it is about, normalised.
    pub fn item(&self) -> ItemName {
        ItemName::new(self.suite, self.class, self.name)
    }

    /// As an outcome of its own; whether another element is about the same item is for others to find out.
    pub fn into_outcome(self) -> Outcome {
        Outcome {
            item: self.item(),
            status: self.status,
            duration_us: self.duration_us,
            message: self.message,
            attempts: self.attempts,
            external_ids: self.external_ids,
        }
    }
}

/// Where in its file a test element stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Number of the document in the file, from 0: reports are found one behind the other.
    pub document: u32,
    /// Number of the suite element in the file, from 1; 0 outside of any.
    pub suite: u32,
    /// A hash of that suite's time stamp as written, 0 without one; only for telling equal suites apart.
    pub stamp: u64,
    /// Line, from 1.
    pub line: u64,
}

/// What it means in this dialect when one report names an item more than once (`facts/formats.md`, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// Nothing is known: distinct items that the report can't tell apart, numbered in document order.
    Ordinals,
    /// Attempts: the last one counts.
    Attempts,
    /// Attempts where the earlier one went wrong (a retry of what failed), else like [`Repeats::Ordinals`].
    AttemptsAfterBad,
    /// pytest's own: failed attempts look passed, and an element after a failed one is a later phase of the same attempt.
    Pytest,
    /// Parts of one item (subtests, stress iterations): the worst counts.
    Worst,
    /// Executions of different programs that the report does not name: as [`Repeats::Ordinals`], and two equal
    /// documents in one file are two programs, not one report twice.
    Programs,
}

/// Something about the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Odd, but readable.
    Warning {
        /// Line, from 1, of the first place.
        line: Option<u64>,
        /// What, and what was made of it.
        text: String,
    },
    /// A time that proves how this file writes its decimal sign.
    Decimal(Sign),
}
