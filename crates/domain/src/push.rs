//! One write: all outcomes of one job, shard and variant of one round, under one key.
//! Must not know how it travels or where it is kept.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::digest::Digest;
use crate::id::{
    Commit, CycleName, Executor, Incarnation, JobName, Ordinal, ProjectId, RoundId, RoundLabel, RunId, ShardRef,
    Variant, WorkflowName,
};
use crate::item::{ItemHash, ItemName};
use crate::key::PushKey;
use crate::limits;
use crate::outcome::{Counts, Outcome};
use crate::protocol::Offer;
use crate::summary::ReportSummary;

/// Where a push belongs. All of it but the project must stay the same under one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The tenant.
    pub project: ProjectId,
    /// The cycle that the round is in.
    pub cycle: CycleName,
    /// The round.
    pub round: RoundId,
    /// The platform's run value, without scope.
    pub run: RunId,
    /// The label of a deliberate re-execution in one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<RoundLabel>,
    /// The job, without partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobName>,
    /// The shard of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardRef>,
    /// The configuration.
    #[serde(default, skip_serializing_if = "Variant::is_empty")]
    pub variant: Variant,
}

/// What the round came from. Never part of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The commit under test; another one under the same key is refused where both say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// The pipeline definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowName>,
    /// The platform's counter of runs of this workflow: orders rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_counter: Option<u64>,
    /// Where people find the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_url: Option<String>,
}

/// Between which deliveries an ordinal may be compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrdinalScope {
    /// It counts attempts of the round (GitHub): comparable between all pushes of a round.
    #[default]
    Round,
    /// It only rises on a retry of the same job (GitLab's job id): comparable under one key.
    Key,
}

/// Who delivers. Never part of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// The attempt number that the platform gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<Ordinal>,
    /// What the ordinal may be compared with.
    #[serde(default)]
    pub ordinal_scope: OrdinalScope,
    /// The platform's identity of this execution of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// A random number per client process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
}

/// What to do when other outcomes come under a known key (`--on-difference`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnDifference {
    /// Revise if the ordinal is known and higher than that of the counting revision; else keep, or, outside CI, fail.
    #[default]
    Auto,
    /// The offered verdict counts, with the earlier as an attempt.
    Revise,
    /// The recorded verdict counts; the offered one is kept, and doesn't count until promoted.
    Keep,
    /// Nothing is stored.
    Fail,
}

impl OnDifference {
    /// The word used on the command line and in queries.
    pub fn word(self) -> &'static str {
        match self {
            OnDifference::Auto => "auto",
            OnDifference::Revise => "revise",
            OnDifference::Keep => "keep",
            OnDifference::Fail => "fail",
        }
    }
}

impl fmt::Display for OnDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl std::str::FromStr for OnDifference {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Auto, Self::Revise, Self::Keep, Self::Fail]
            .into_iter()
            .find(|policy| policy.word() == text)
            .ok_or_else(|| format!("on-difference {text:?} is none of auto, revise, keep, fail"))
    }
}

/// Two outcomes of one item in one push: a push holds one per item.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("item {item} has more than one outcome in this push; earlier executions belong into its attempts")]
pub struct DoubledItem {
    /// The item.
    pub item: ItemName,
}

/// Outcomes in canonical order: sorted by item hash, one per item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcomes {
    hashes: Vec<ItemHash>,
    outcomes: Vec<Outcome>,
}

impl Outcomes {
    /// Sorts; refuses an item that comes twice.
    pub fn from_unordered(outcomes: Vec<Outcome>) -> Result<Self, DoubledItem> {
        let hashes = outcomes.iter().map(|outcome| outcome.item.hash()).collect();
        Self::from_hashed(hashes, outcomes)
    }

    /// As [`Outcomes::from_unordered`], for whoever has the items' hashes already, in the same order.
    pub fn from_hashed(hashes: Vec<ItemHash>, mut outcomes: Vec<Outcome>) -> Result<Self, DoubledItem> {
        debug_assert!(hashes.iter().eq(outcomes.iter().map(|outcome| outcome.item.hash()).collect::<Vec<_>>().iter()));
        if hashes.windows(2).all(|pair| pair[0] < pair[1]) {
            return Ok(Self { hashes, outcomes });
        }
        // Numbers sort faster than arrays of bytes, and in the same order.
        let numbered = hashes.iter().enumerate().map(|(at, hash)| (u128::from_be_bytes(hash.0), at as u32));
        let mut order: Vec<(u128, u32)> = numbered.collect();
        order.sort_unstable();
        if let Some(pair) = order.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(DoubledItem { item: outcomes[pair[1].1 as usize].item.clone() });
        }
        // In place: a second copy of a large report's outcomes would be most of the memory used.
        // Cycle by cycle, each outcome moves once.
        let mut from: Vec<u32> = order.iter().map(|(_, at)| *at).collect();
        for start in 0..from.len() {
            let mut to = start;
            loop {
                let next = std::mem::replace(&mut from[to], to as u32) as usize;
                if next == start || next == to {
                    break;
                }
                outcomes.swap(to, next);
                to = next;
            }
        }
        Ok(Self { hashes: order.into_iter().map(|(key, _)| ItemHash(key.to_be_bytes())).collect(), outcomes })
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// True without any item.
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// Item hashes, rising.
    pub fn hashes(&self) -> &[ItemHash] {
        &self.hashes
    }

    /// Outcomes in the order of [`Outcomes::hashes`].
    pub fn as_slice(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Hash and outcome together.
    pub fn iter(&self) -> impl Iterator<Item = (ItemHash, &Outcome)> {
        self.hashes.iter().copied().zip(&self.outcomes)
    }

    /// Hashes and outcomes, to be moved elsewhere.
    pub fn into_parts(self) -> (Vec<ItemHash>, Vec<Outcome>) {
        (self.hashes, self.outcomes)
    }

    /// How they count by themselves.
    pub fn counts(&self) -> Counts {
        self.outcomes.iter().collect()
    }
}

/// What tells one content from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentId {
    /// Of everything that is recorded.
    pub content: Digest,
    /// Of item, status and flaky.
    pub outcomes: Digest,
    /// Of the bytes that were sent, where they were a raw report: equal bytes are always the same content.
    pub body: Option<Digest>,
}

/// All outcomes of one job, shard and variant of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// What names the write.
    pub key: PushKey,
    /// Where it belongs.
    pub place: Place,
    /// What the round came from.
    pub origin: Origin,
    /// Who delivers.
    pub sender: Sender,
    /// What to do if other outcomes are recorded under the key.
    pub on_difference: OnDifference,
    /// True if no CI platform was detected: `auto` then fails rather than keeps.
    pub outside_ci: bool,
    /// How many pushes this job makes over all shards and variants (`--expect`).
    pub expect: Option<u32>,
    /// The files it was read from.
    pub files: Vec<String>,
    /// What the files held.
    pub report: ReportSummary,
    /// True if there may be more outcomes than these: a damaged report was pushed as far as it was readable (`--partial`),
    /// or the command that wrote the reports (`run`) didn't run to its end as they show it.
    pub incomplete: bool,
    /// The outcomes.
    pub outcomes: Outcomes,
    /// What tells this content from another.
    pub content: ContentId,
}

impl Push {
    /// What the decision on it looks at.
    pub fn offer(&self) -> Offer<'_> {
        Offer {
            place: &self.place,
            commit: self.origin.commit.as_ref(),
            sender: &self.sender,
            on_difference: self.on_difference,
            outside_ci: self.outside_ci,
            files: &self.files,
            content: self.content,
        }
    }

    /// True if a bound of [`limits`] is passed.
    pub fn too_many_outcomes(&self) -> bool {
        self.outcomes.len() > limits::OUTCOMES_MAX
    }
}

/// The identity of a push in URLs: 128 bits over project and key, the same in every engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PushId(pub [u8; 16]);

impl PushId {
    /// The id of the push with this key in this project.
    pub fn of(project: &ProjectId, key: &PushKey) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(project.as_str().len() as u32).to_le_bytes());
        hasher.update(project.as_str().as_bytes());
        hasher.update(key.as_str().as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(id)
    }

    /// Back from 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        ItemHash::parse(text).map(|hash| Self(hash.0))
    }
}

impl fmt::Display for PushId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ItemHash(self.0), f)
    }
}

impl fmt::Debug for PushId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for PushId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not a push id of 32 hexadecimal digits"))
    }
}

impl From<PushId> for String {
    fn from(id: PushId) -> String {
        id.to_string()
    }
}
