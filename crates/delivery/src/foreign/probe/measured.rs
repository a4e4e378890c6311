//! What a probe notes: answers and rows as they were seen. Must not conclude anything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a write was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Taken.
    Taken,
    /// Taken but for the entries that it names.
    TakenInPart,
    /// It says that it is there already.
    Exists,
    /// Refused.
    Refused,
    /// Taken, and then the job failed.
    JobFailed,
    /// No answer that says what happened.
    Unknown,
}

impl Answer {
    /// True if the product took responsibility.
    pub fn is_taken(self) -> bool {
        matches!(self, Answer::Taken | Answer::TakenInPart)
    }

    /// True if it says that nothing was done.
    pub fn is_refused(self) -> bool {
        matches!(self, Answer::Exists | Answer::Refused)
    }
}

/// When a write could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// True if the product goes on with a job after its answer; the time counts from the job's end then.
    pub after_job: bool,
    /// Milliseconds until it showed, 0 if at once; null if it never did.
    pub ms: Option<u64>,
    /// How long it was looked for.
    pub within_ms: u64,
}

/// A second write for a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// What it was answered.
    pub answer: Answer,
    /// In the product's words.
    pub words: Option<String>,
    /// Rows of the case before.
    pub rows_before: usize,
    /// Rows of the case after.
    pub rows_after: usize,
    /// How many of them show what the second write said.
    pub show_second: usize,
    /// How many of them still show what stood there before.
    pub show_before: usize,
}

/// One entry, written by several writers at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtOnce {
    /// How many writers.
    pub writers: usize,
    /// What they were answered.
    pub answers: BTreeMap<Answer, usize>,
    /// Rows that it made.
    pub rows: usize,
}

/// How a marker came back from a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkerCame {
    /// As it was written.
    Whole,
    /// Changed.
    Mangled,
    /// Not at all.
    Lost,
}

/// A text of every awkward kind, with a marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Characters that were sent, without the marker.
    pub chars: usize,
    /// The marker.
    pub marker: MarkerCame,
    /// `<`, `>`, `&` and quotes came back as they were.
    pub markup: bool,
    /// Line breaks came back.
    pub line_breaks: bool,
    /// Letters beyond ASCII came back.
    pub beyond_ascii: bool,
    /// Its end came back.
    pub end: bool,
}

/// A batch with one entry for a case that doesn't exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadItem {
    /// What it was answered.
    pub answer: Answer,
    /// In the product's words.
    pub words: Option<String>,
    /// How many good entries it had.
    pub good: usize,
    /// How many of them are there.
    pub stored: usize,
    /// True if there is a row for the case that doesn't exist.
    pub bad_stored: bool,
}

/// Changing or deleting one row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Deed {
    /// It works.
    Done,
    /// It is answered well, and nothing changes.
    NoEffect,
    /// It is refused.
    Refused {
        /// In the product's words.
        words: String,
    },
    /// There was nothing to try it on.
    NotTried,
}

/// A second cycle of the same name and tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Twin {
    /// True if there are two then.
    pub made: bool,
    /// In the product's words, if it refused.
    pub words: Option<String>,
}

/// All that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// When a write shows.
    pub lag: Lag,
    /// The marker of a plain text.
    pub marker: MarkerCame,
    /// The same entry twice, one after the other.
    pub twice: Repeat,
    /// Another content for the same case, under another id.
    pub other_content: Repeat,
    /// Another content under the same id.
    pub same_id: Repeat,
    /// The same entry by several writers at once.
    pub at_once: AtOnce,
    /// A text of every awkward kind; null if the product refused it.
    pub text: Option<Text>,
    /// A batch with one bad entry; null if a batch takes too few.
    pub bad_item: Option<BadItem>,
    /// Changing a row.
    pub amend: Deed,
    /// Deleting a row.
    pub delete: Deed,
    /// A second cycle of the same name.
    pub twin: Twin,
}
