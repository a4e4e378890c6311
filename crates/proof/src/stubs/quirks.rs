//! Standing ways of a vendor, as data: lists that lag, texts that change, clocks that differ, limits. Must not know
//! which vendor has them.

use serde_json::{Value, json};

use crate::stubs::fault::JobFate;
use crate::stubs::message::Answer;
use crate::stubs::vendor::Stamp;

/// How a vendor behaves at all times. The default is a vendor at its best.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quirks {
    /// How far lists lag behind writes.
    pub lag: Lag,
    /// How far the vendor's clock is ahead of the true one.
    pub skew_ms: i64,
    /// What happens to texts that are stored, in this order.
    pub damage: Vec<Damage>,
    /// Whether each JSON object in an answer has a member that nobody knows.
    pub extra_members: bool,
    /// Whether the rate of requests is limited.
    pub limit: Limit,
    /// What becomes of jobs that no [`Fault::Job`](crate::stubs::Fault::Job) decides.
    pub job: JobFate,
}

/// How far lists lag behind writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lag {
    /// Not at all: the vendor reads its own writes.
    #[default]
    None,
    /// So many milliseconds, by the vendor's clock.
    Ms(u64),
    /// The first so many reads after a write don't show it. Every read counts, whatever it lists.
    Reads(u64),
}

impl Lag {
    pub(super) fn shows(self, written: Stamp, now: Stamp) -> bool {
        match self {
            Lag::None => true,
            Lag::Ms(ms) => now.unix_ms >= written.unix_ms.saturating_add_unsigned(ms),
            Lag::Reads(reads) => now.reads > written.reads.saturating_add(reads),
        }
    }
}

/// What a vendor does to a text that it stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// Only so many characters are kept.
    CutTo(usize),
    /// `& < > " '` are written as HTML entities.
    HtmlEscaped,
    /// White space at both ends goes.
    Trimmed,
    /// Line ends become `\r\n`.
    LinesCrlf,
    /// Line ends become `\n`.
    LinesLf,
}

impl Damage {
    pub(super) fn applied(self, text: &str) -> String {
        match self {
            Damage::CutTo(count) => text.chars().take(count).collect(),
            Damage::Trimmed => text.trim().to_owned(),
            Damage::LinesLf => text.replace("\r\n", "\n"),
            Damage::LinesCrlf => text.replace("\r\n", "\n").replace('\n', "\r\n"),
            Damage::HtmlEscaped => text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
                .replace('\'', "&#39;"),
        }
    }
}

/// So many requests in so much time, counted in windows that begin with the first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many are let through in a window.
    pub requests: u32,
    /// How long a window is, by the vendor's clock.
    pub per_ms: u64,
    /// Whether the refusal says when the window ends (`Retry-After` in seconds).
    pub tells: bool,
}

/// Whether the rate of requests is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Limit {
    /// Not at all: for tests about something else.
    #[default]
    Off,
    /// As the vendor documents it ([`Vendor::rate`](crate::stubs::Vendor::rate)).
    AsDocumented,
    /// As given.
    Rate(Rate),
}

/// The window that is open.
#[derive(Debug, Default)]
pub(super) struct Window {
    began_ms: i64,
    count: u32,
}

impl Window {
    /// `None` if the request is let through, else after how many seconds the window ends.
    pub(super) fn refuses(&mut self, rate: Rate, now_ms: i64) -> Option<u64> {
        let end = self.began_ms.saturating_add_unsigned(rate.per_ms);
        if self.count == 0 || now_ms >= end || now_ms < self.began_ms {
            *self = Self { began_ms: now_ms, count: 0 };
        }
        if self.count < rate.requests {
            self.count += 1;
            return None;
        }
        Some(u64::try_from(end - now_ms).unwrap_or(0).div_ceil(1000))
    }
}

/// The same answer with an unknown member in each object, if it is JSON.
pub(super) fn with_extra_members(mut answer: Answer) -> Answer {
    if let Ok(mut value) = serde_json::from_slice(&answer.body) {
        add_member(&mut value);
        answer.body = value.to_string().into_bytes();
    }
    answer
}

fn add_member(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(add_member),
        Value::Object(members) => {
            members.values_mut().for_each(add_member);
            members.insert("zz_new_member".to_owned(), json!({ "added": ["in", 1, null] }));
        }
        _ => {}
    }
}
