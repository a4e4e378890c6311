//! What one item did: status, duration, message, attempts. Must not know formats, keys or stores.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::external_id::ExternalId;
use crate::item::ItemName;
use crate::limits;

/// The verdict of an outcome, ordered by its code.
///
/// `flaky` is not a status: it is a passed outcome with a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Status {
    /// Carried out, and as expected.
    Passed = 0,
    /// An assertion did not hold.
    Failed = 1,
    /// It could not be carried out, or there is no verdict.
    Errored = 2,
    /// Left out on purpose.
    Skipped = 3,
}

impl Status {
    /// All four, in the order of their codes.
    pub const ALL: [Status; 4] = [Status::Passed, Status::Failed, Status::Errored, Status::Skipped];

    /// The small number under which stores keep it.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Back from [`Status::code`].
    pub fn from_code(code: u8) -> Option<Status> {
        Status::ALL.get(usize::from(code)).copied()
    }

    /// How bad it is, for "the worst counts": errored 3, failed 2, passed 1, skipped 0 (design, section 7).
    pub fn badness(self) -> u8 {
        match self {
            Status::Errored => 3,
            Status::Failed => 2,
            Status::Passed => 1,
            Status::Skipped => 0,
        }
    }

    /// True for `failed` and `errored`.
    pub fn is_bad(self) -> bool {
        matches!(self, Status::Failed | Status::Errored)
    }

    /// The word used in JSON and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Errored => "errored",
            Status::Skipped => "skipped",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Status {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Status::ALL
            .into_iter()
            .find(|s| s.word() == text)
            .ok_or_else(|| format!("unknown status {text:?}; one of passed, failed, errored, skipped"))
    }
}

/// A duration in whole microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationUs(pub u64);

impl DurationUs {
    /// From seconds as reports write them; `None` if negative, not finite or beyond a century.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        const CENTURY_S: f64 = 3.2e9;
        (seconds.is_finite() && (0.0..CENTURY_S).contains(&seconds)).then(|| Self((seconds * 1e6).round() as u64))
    }

    /// Milliseconds, with fraction.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// One execution of an item before its final one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// What it came to.
    pub status: Status,
    /// How long it took, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<DurationUs>,
    /// Message and trace, bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What one item did in one push: the final verdict, and the attempts before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which item.
    pub item: ItemName,
    /// The final verdict.
    pub status: Status,
    /// How long the final attempt took; absent if the report doesn't say or can't be believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<DurationUs>,
    /// Message and trace of the final attempt, bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Earlier attempts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Ids of the item in other systems (`C123`, `KEY-T12`), as the report gives them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_ids: Vec<ExternalId>,
}

impl Outcome {
    /// A passed outcome with a failed or errored attempt.
    pub fn is_flaky(&self) -> bool {
        self.status == Status::Passed && self.attempts.iter().any(|a| a.status.is_bad())
    }

    /// What is left of this outcome once a later one counts: an attempt like any other.
    pub fn as_attempt(&self) -> Attempt {
        Attempt { status: self.status, duration_us: self.duration_us, message: self.message.clone() }
    }

    /// What of it goes on to a target: its message as far as targets take it, and of attempts the verdicts alone.
    pub fn for_forwarding(mut self) -> Self {
        for attempt in &mut self.attempts {
            attempt.message = None;
        }
        self.message = self.message.map(|message| {
            let most = limits::FORWARDED_TEXT_CHARS_MAX;
            if message.len() <= most { message } else { message.trim_start().chars().take(most).collect() }
        });
        self
    }

    /// Adds `earlier` before what is there, within [`limits::ATTEMPTS_MAX`]: first and latest ones are kept.
    pub fn prepend_attempts(&mut self, earlier: impl IntoIterator<Item = Attempt>) {
        let mut all: Vec<Attempt> = earlier.into_iter().collect();
        all.append(&mut self.attempts);
        if all.len() > limits::ATTEMPTS_MAX {
            let head = limits::ATTEMPTS_MAX / 2;
            let tail_from = all.len() - (limits::ATTEMPTS_MAX - head);
            all.drain(head..tail_from);
        }
        self.attempts = all;
    }
}

/// How many items ended how. `flaky` is a subset of `passed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All items: passed + failed + errored + skipped.
    pub total: u64,
    /// Items that passed, flaky ones among them.
    pub passed: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items that errored.
    pub errored: u64,
    /// Items that were skipped.
    pub skipped: u64,
    /// Passed items with a failed or errored attempt.
    pub flaky: u64,
}

impl Counts {
    /// Counts one more item.
    pub fn add(&mut self, status: Status, flaky: bool) {
        self.total += 1;
        match status {
            Status::Passed => self.passed += 1,
            Status::Failed => self.failed += 1,
            Status::Errored => self.errored += 1,
            Status::Skipped => self.skipped += 1,
        }
        if flaky {
            self.flaky += 1;
        }
    }

    /// True if any item failed or errored.
    pub fn any_bad(&self) -> bool {
        self.failed + self.errored > 0
    }
}

impl<'a> FromIterator<&'a Outcome> for Counts {
    fn from_iter<I: IntoIterator<Item = &'a Outcome>>(outcomes: I) -> Self {
        let mut counts = Counts::default();
        for outcome in outcomes {
            counts.add(outcome.status, outcome.is_flaky());
        }
        counts
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.total += other.total;
        self.passed += other.passed;
        self.failed += other.failed;
        self.errored += other.errored;
        self.skipped += other.skipped;
        self.flaky += other.flaky;
    }
}
