//! The JSON that a client sends as the body of a one-shot push. Versioned; unknown fields are refused, so that a typing
//! error never loses data. Must not know HTTP: place, sender and key travel in the query and in headers.

mod staged;

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::limits;
use crate::outcome::Outcome;
use crate::summary::ReportSummary;

pub use staged::{
    CANCELLED, CancelAnswer, ChunkAnswer, ChunkBody, MANIFEST_MEDIA_TYPE, ManifestBody, StagingAnswer, StoredReceipt,
};

/// Media type of [`PushBody`], and of chunks.
pub const PUSH_MEDIA_TYPE: &str = "application/vnd.tallyonce.push+json";

/// The body of a one-shot push.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushBody {
    /// The version of this format: 1.
    pub tallyonce: u32,
    /// The files that the outcomes were read from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What the files held; absent if the sender read no report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportSummary>,
    /// True if there may be more outcomes than these, such as of a damaged report.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The outcomes, one per item; at most [`limits::OUTCOMES_MAX`].
    #[serde(deserialize_with = "bounded::<{ limits::OUTCOMES_MAX }, _, _>")]
    pub outcomes: Vec<Outcome>,
}

/// A list of at most `MAX`: the bound holds while it is read, since a small body can hold a great many.
fn bounded<'de, const MAX: usize, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Bounded<const MAX: usize, T>(PhantomData<T>);

    impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for Bounded<MAX, T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(value) = from.next_element()? {
                if list.len() == MAX {
                    return Err(serde::de::Error::invalid_length(MAX + 1, &self));
                }
                list.push(value);
            }
            Ok(list)
        }
    }

    from.deserialize_seq(Bounded::<MAX, T>(PhantomData))
}

impl PushBody {
    /// The version that this program writes.
    pub const VERSION: u32 = 1;
}

/// As [`PushBody`], borrowed, for writing without a copy.
#[derive(Debug, Serialize)]
pub struct PushBodyRef<'a> {
    /// The version of this format.
    pub tallyonce: u32,
    /// The files that the outcomes were read from.
    pub files: &'a [String],
    /// What the files held.
    pub report: ReportSummary,
    /// True if there may be more outcomes than these, such as of a damaged report.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The outcomes.
    pub outcomes: &'a [Outcome],
}

/// Names of the query parameters and headers of a push, in one list for both ends.
pub mod names {
    /// The cycle.
    pub const CYCLE: &str = "cycle";
    /// The bare run value; required.
    pub const RUN: &str = "run";
    /// The label of a deliberate re-execution.
    pub const ROUND: &str = "round";
    /// The full round id; made from run and label if absent.
    pub const ROUND_ID: &str = "round-id";
    /// The job.
    pub const JOB: &str = "job";
    /// The shard, `I` or `I/N`.
    pub const SHARD: &str = "shard";
    /// The variant, `name=value`; may be repeated.
    pub const VARIANT: &str = "variant";
    /// The attempt number, if not in a header.
    pub const ATTEMPT: &str = "attempt";
    /// `round` or `key`: what the attempt number may be compared with.
    pub const ATTEMPT_SCOPE: &str = "attempt-scope";
    /// The policy for other outcomes under a known key.
    pub const ON_DIFFERENCE: &str = "on-difference";
    /// `true` if no CI platform was detected.
    pub const OUTSIDE_CI: &str = "outside-ci";
    /// How many pushes this job makes.
    pub const EXPECT: &str = "expect";
    /// The commit.
    pub const COMMIT: &str = "commit";
    /// The workflow.
    pub const WORKFLOW: &str = "workflow";
    /// The platform's counter of runs.
    pub const RUN_COUNTER: &str = "run-counter";
    /// Where people find the run.
    pub const RUN_URL: &str = "run-url";
    /// `true` to record a damaged raw report as far as it is readable.
    pub const PARTIAL: &str = "partial";

    /// The idempotency key.
    pub const H_KEY: &str = "idempotency-key";
    /// The ordinal.
    pub const H_ATTEMPT: &str = "push-attempt";
    /// The executor, percent-encoded.
    pub const H_EXECUTOR: &str = "push-executor";
    /// The incarnation.
    pub const H_INCARNATION: &str = "push-incarnation";
    /// In answers: the epoch of a staged push, its fencing token.
    pub const H_EPOCH: &str = "push-epoch";
    /// In answers: the bounds of a staged push, as a structured-field dictionary.
    pub const H_LIMIT: &str = "push-limit";
    /// In answers: this body was produced earlier.
    pub const H_REPLAYED: &str = "idempotent-replayed";
    /// In answers: how the offered content differs.
    pub const H_DIFFERENCE: &str = "push-difference";
    /// In answers: the newest revision.
    pub const H_CURRENT_REVISION: &str = "push-current-revision";
    /// In answers: the push's counts as they are now, as a structured-field dictionary.
    pub const H_CURRENT_COUNTS: &str = "push-current-counts";
    /// In answers: what the sender should hear, as a structured-field list of strings.
    pub const H_WARNINGS: &str = "push-warnings";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Three(#[serde(deserialize_with = "bounded::<3, _, _>")] Vec<u8>);

    #[test]
    fn a_list_ends_at_its_bound() {
        assert_eq!(serde_json::from_str::<Three>("[1,2,3]").unwrap().0, [1, 2, 3]);
        let error = serde_json::from_str::<Three>("[1,2,3,4]").err().unwrap().to_string();
        assert!(error.contains("a list of at most 3"), "{error}");
    }
}
