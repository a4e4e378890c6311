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

/// One case, added to an empty cycle by several writers at once, and then one outcome of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// How many writers.
    pub writers: usize,
    /// How many of them were told that all is well.
    pub taken: usize,
    /// Places, or rows, that the case has then; 1 is as it should be.
    pub places: usize,
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
    /// True if the first one is listed by now; null in probes that are older than this question.
    #[serde(default)]
    pub listed: Option<bool>,
}

/// A batch of a size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Larger {
    /// How many entries it had.
    pub items: usize,
    /// What it was answered.
    pub answer: Answer,
    /// In the product's words.
    pub words: Option<String>,
    /// How many of them are there; null where a place is written over.
    pub stored: Option<usize>,
}

/// A write whose connection was cut on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutWrite {
    /// So long after it began, in milliseconds.
    pub after_ms: u64,
    /// True if its answer was there already.
    pub answered: bool,
    /// When it could be read, in milliseconds from the cut; null if it never could.
    pub applied_ms: Option<u64>,
}

/// What becomes of requests whose client goes away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// How long a write takes that isn't cut, in milliseconds.
    pub took_ms: u64,
    /// Those that were.
    pub writes: Vec<CutWrite>,
    /// How long they were looked for, in milliseconds.
    pub watched_ms: u64,
}

/// A write where it is not expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    /// What it was answered.
    pub answer: Answer,
    /// In the product's words.
    pub words: Option<String>,
    /// Whether it is there; null if that can't be read.
    pub stored: Option<bool>,
}

/// Listings that were read while another writer wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhileWriting {
    /// Rows before: only more than one page of them says much.
    pub rows_before: usize,
    /// Rows that were written meanwhile.
    pub written: usize,
    /// Listings that were read.
    pub listings: usize,
    /// Listings that failed, or gave up because the list moved.
    pub given_up: usize,
    /// Rows of before that a listing left out.
    pub skipped: usize,
    /// Rows that a listing had twice.
    pub repeated: usize,
}

/// What answers said of a rate limit. It was not exceeded on purpose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateSeen {
    /// Headers that speak of it, each with its last value.
    pub headers: BTreeMap<String, String>,
    /// How often an answer was 429.
    pub refusals: u64,
}

/// A text as long as the configuration says that the service takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Longest {
    /// Characters that were sent, the marker among them.
    pub chars: usize,
    /// What it was answered.
    pub answer: Answer,
    /// The marker.
    pub marker: MarkerCame,
    /// The end of the text came back.
    pub end: bool,
}

/// What only some accounts and products let one measure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct More {
    /// Batches of the stated size, and larger ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub larger: Vec<Larger>,
    /// The longest text that is ever sent, where only the configuration says how long that may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Longest>,
    /// Requests whose connection was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// For a case that was not added to the cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_added: Option<Landed>,
    /// The first entry again, in another cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Landed>,
    /// Into a cycle that was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Landed>,
    /// Deleting a cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_cycle: Option<Deed>,
    /// Into a cycle that was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Landed>,
    /// Listings under a writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub while_writing: Option<WhileWriting>,
    /// The rate limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSeen>,
    /// Why the rest of it is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_off: Option<String>,
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
    /// A case added by several writers at once; null if there was no cycle to try it in.
    #[serde(default)]
    pub added: Option<Added>,
    /// True if the product only counts: rows are counts then, and texts could not be seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// The rest. A file of an earlier version has none of it.
    #[serde(default)]
    pub more: More,
}
