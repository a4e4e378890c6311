//! The acceptance probe: belief about a product replaced by measurement, in a scratch cycle that is removed at the end
//! (`facts/targets.md`, section 34). Must not write into any other cycle.
//!
//! Not measured: how long an id is remembered, as that takes days, and what happens beyond the rate limit, as that would hit
//! whoever else uses the account; what answers announce of it is taken down ([`Heard`](super::Heard)).
//!
//! Read `measured` first (what is noted), then `steps` and `beyond` (how), then `says` (what follows from it).

mod beyond;
mod call;
mod counted;
mod leave;
mod measured;
mod places;
mod says;
mod scratch;
mod steps;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::adapter::Adapter;
use super::audit::utc;
use super::entry::{Case, CaseId};
use super::facts::{Facts, Kind, Strategy};
use super::patience::{GaveUp, Patience};

pub use leave::{CallsDigest, Leave, Subject, leave, outweighs};
pub use measured::{
    Added, Answer, AtOnce, BadItem, Cut, CutWrite, Deed, Lag, Landed, Larger, Longest, MarkerCame, Measured, More,
    RateSeen, Repeat, Text, Twin, WhileWriting,
};
pub use says::{Says, contradictions, notes};

/// The form of the file that holds a probe.
const FORMAT: u32 = 1;

/// How a product is probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOptions {
    /// How many writers send the same entry at once.
    pub writers: usize,
    /// How long a write is looked for, in milliseconds.
    pub visible_max_ms: u64,
    /// A case that does not exist; one is made up if none is named.
    pub absent: Option<CaseId>,
    /// How long a request that was cut off is looked for, in milliseconds.
    pub late_max_ms: u64,
    /// Whether batches of the stated size, and larger ones, are written: up to thousands of outcomes.
    pub larger: bool,
    /// How long this target waits before a request without an answer is read back, in milliseconds; absent: as long as is
    /// usual with the product.
    pub quiet_ms: Option<u64>,
    /// Which target this is, as the result says it.
    pub of: Option<Subject>,
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            writers: 10,
            visible_max_ms: 60_000,
            absent: None,
            late_max_ms: 300_000,
            larger: false,
            quiet_ms: None,
            of: None,
        }
    }
}

/// What a probe came to, as it is kept with the target's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// The form of this record.
    pub format: u32,
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// The product.
    pub kind: Kind,
    /// Which target it is of: it says nothing of another one. Null in probes that are older than this question.
    #[serde(default)]
    pub of: Option<Subject>,
    /// What was seen.
    pub measured: Measured,
    /// What follows from it, in the words of the facts.
    pub says: Says,
    /// Where that contradicts what the adapter believes, so that nothing may be promised.
    pub contradicts: Vec<String>,
    /// Other differences, none of which can double or lose an outcome.
    pub notes: Vec<String>,
    /// The strategies that what was seen supports.
    pub allows: Vec<Strategy>,
    /// What is left of the probe in the product.
    pub left: Vec<String>,
}

impl Probed {
    /// True if what was seen supports the strategy, and contradicts nothing.
    pub fn allows(&self, strategy: Strategy) -> bool {
        self.contradicts.is_empty() && self.allows.contains(&strategy)
    }

    /// The one way back in from a file.
    ///
    /// # Errors
    /// In words for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let again = "run `tallyonce probe` again";
        let probed: Self = serde_json::from_str(text).map_err(|error| format!("not a probe: {error}; {again}"))?;
        if probed.format == FORMAT {
            Ok(probed)
        } else {
            Err(format!("a probe of form {}, and this version reads form {FORMAT}; {again}", probed.format))
        }
    }
}

/// Why there is no probe.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProbeError {
    /// Two cases are needed.
    #[error("a probe writes outcomes for two cases, and {0} was given: name two that exist, as ids of the product")]
    TooFewCases(usize),
    /// What it writes would not stay in its own cycle.
    #[error("a probe can't keep to a cycle of its own: {0}")]
    NoScratch(String),
    /// It ended before its end.
    #[error("{why}{}", left_in_words(.left))]
    Ended {
        /// Why.
        why: GaveUp,
        /// What is left of it in the product.
        left: Vec<String>,
    },
}

fn left_in_words(left: &[String]) -> String {
    if left.is_empty() { String::new() } else { format!("; left there: {}", left.join("; ")) }
}

/// Probes a product with the first two of these cases.
///
/// # Errors
/// It can't be measured. What was made for it is removed all the same, as far as the product allows.
pub async fn probe(
    adapter: &dyn Adapter,
    cases: &[Case],
    options: &ProbeOptions,
    patience: &mut Patience<'_>,
) -> Result<Probed, ProbeError> {
    let [first, second, ..] = cases else { return Err(ProbeError::TooFewCases(cases.len())) };
    adapter.keeps_to_its_cycle().map_err(ProbeError::NoScratch)?;
    let at = utc(patience.clock.unix_ms());
    let quiet_ms = options.quiet_ms.unwrap_or(adapter.facts().quiet_ms);
    let mut scratch = scratch::Scratch::new(adapter, quiet_ms, &at, patience);
    let measured = steps::measure(&mut scratch, [first, second], options, patience).await;
    let left = scratch.remove(patience.clock).await;
    let measured = measured.map_err(|why| ProbeError::Ended { why, left: left.clone() })?;
    let facts = &Facts { quiet_ms, ..*adapter.facts() };
    let says = Says::of(&measured);
    Ok(Probed {
        format: FORMAT,
        at,
        kind: facts.kind,
        of: options.of.clone(),
        contradicts: contradictions(&measured, facts),
        notes: notes(&measured, facts),
        allows: says::allows(&measured, facts),
        says,
        measured,
        left,
    })
}
