//! What readers get to see: cycles, rounds, pushes and items, in the JSON that API, command line and pages share.
//! Plain data, made by an engine from one snapshot. Must not be read back by anything that decides.

mod forwards;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::external_id::ExternalId;
use crate::id::{
    Commit, CycleName, Executor, Incarnation, JobName, Ordinal, ProjectId, RoundId, RunId, ShardRef, Variant,
    WorkflowName,
};
use crate::item::ItemName;
use crate::key::PushKey;
use crate::outcome::{Attempt, Counts, Status};
use crate::push::PushId;
use crate::receipt::{ItemDifference, ItemHashText, ReceiptResult};

pub use forwards::{ForwardReport, ForwardsReport, IntentReport, PushForwards, WaitingReport};

/// One cycle with its headline and the rounds asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CycleReport {
    /// The tenant.
    pub project: ProjectId,
    /// The cycle.
    pub cycle: CycleName,
    /// The union of the workflows' authoritative rounds, each item once.
    pub headline: Counts,
    /// The rounds asked for, latest last.
    pub rounds: Vec<RoundReport>,
    /// Items of the rounds asked for, where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<ItemReport>>,
    /// How many items of earlier rounds are absent from the headline: not seen since, and not counted.
    pub not_seen_since: u64,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// Its id.
    pub round: RoundId,
    /// The bare run value.
    pub run: RunId,
    /// The pipeline definition.
    pub workflow: Option<WorkflowName>,
    /// The platform's counter of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_counter: Option<u64>,
    /// Where people find the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_url: Option<String>,
    /// The commit under test, where all pushes agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// True if the headline counts it.
    pub authoritative: bool,
    /// True if nothing is missing, or somebody closed it.
    pub complete: bool,
    /// True if somebody closed it.
    pub closed: bool,
    /// True while somebody has pinned it.
    pub pinned: bool,
    /// What is missing, in words.
    pub missing: Vec<String>,
    /// Its items, each once.
    pub counts: Counts,
    /// Shards by job and variant.
    pub shards: Vec<ShardReport>,
    /// Its pushes.
    pub pushes: Vec<PushSummary>,
    /// Items that came in more than one push: counted once.
    pub overlaps: u64,
    /// Deliveries that were answered from a receipt.
    pub repeats: u64,
    /// When its first push was recorded (RFC 3339).
    pub recorded_at: String,
}

/// The shards of one job and variant that were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardReport {
    /// The job.
    pub job: Option<JobName>,
    /// The configuration.
    pub variant: Variant,
    /// How many shards were seen.
    pub seen: u32,
    /// How many there are, if known.
    pub total: Option<u32>,
}

/// What became of a push, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PushState {
    /// Recorded once, and nothing else offered.
    Recorded,
    /// A revision or promotion changed what counts.
    Revised,
    /// Another content is kept beside it and waits for a decision.
    Kept,
    /// A second leg was refused under its key.
    Contested,
}

/// One push in a round's list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PushSummary {
    /// The key.
    pub key: PushKey,
    /// Its id in URLs.
    pub push: PushId,
    /// What became of it.
    pub state: PushState,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobName>,
    /// The shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardRef>,
    /// The configuration.
    #[serde(default, skip_serializing_if = "Variant::is_empty")]
    pub variant: Variant,
    /// The latest revision.
    pub revision: u32,
    /// Deliveries that were accepted.
    pub deliveries: u64,
    /// Its items as they count.
    pub counts: Counts,
    /// True if it came after the round was closed.
    pub late: bool,
}

/// One item as it counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemReport {
    /// Its hash.
    pub hash: ItemHashText,
    /// Its name.
    pub item: ItemName,
    /// The configuration.
    #[serde(default)]
    pub variant: Variant,
    /// What counts.
    pub status: Status,
    /// Passed after a failed attempt.
    pub flaky: bool,
    /// How long the final attempt took, in milliseconds.
    pub duration_ms: Option<f64>,
    /// Message of the final attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Earlier attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Ids in other systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_ids: Vec<ExternalId>,
    /// The round that says so.
    pub round: RoundId,
    /// The push that says so.
    pub key: PushKey,
    /// Pushes of the round that hold this item and variant; more than one is an overlap.
    pub pushes: u32,
}

/// What an items listing asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemQuery {
    /// Only items with this verdict.
    pub status: Option<Status>,
    /// Only flaky items.
    pub flaky: bool,
    /// Only items whose name holds this text, whatever the case.
    pub search: Option<String>,
    /// Order.
    pub sort: ItemSort,
    /// Where to go on: what the page before gave as `next`.
    pub cursor: Option<String>,
    /// Items a page; at most [`crate::limits::PAGE_ITEMS_MAX`] over HTTP. `None`: all.
    pub limit: Option<usize>,
}

/// The order of an items listing. Ties go by hash, so that pages never overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ItemSort {
    /// By name.
    #[default]
    Name,
    /// Longest first.
    Duration,
    /// Worst first.
    Status,
}

/// One page of items.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ItemPage {
    /// The items.
    pub items: Vec<ItemReport>,
    /// What to give as cursor for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many items the query matches on all pages.
    pub total: u64,
}

/// An item of earlier rounds that the headline doesn't hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnseenItem {
    /// Its hash.
    pub hash: ItemHashText,
    /// Its name.
    pub item: ItemName,
    /// The configuration.
    pub variant: Variant,
    /// The last round that held it.
    pub last_seen: RoundId,
}

/// What an item did in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The cycle.
    pub cycle: CycleName,
    /// The item there.
    #[serde(flatten)]
    pub outcome: ItemReport,
}

/// One cycle in a project's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleSummary {
    /// The cycle.
    pub cycle: CycleName,
    /// How many rounds it holds.
    pub rounds: u64,
    /// When its latest round was first recorded (RFC 3339).
    pub latest_recorded_at: String,
}

/// A push with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PushReport {
    /// As in a round's list.
    #[serde(flatten)]
    pub summary: PushSummary,
    /// The tenant.
    pub project: ProjectId,
    /// The cycle.
    pub cycle: CycleName,
    /// The round.
    pub round: RoundId,
    /// The commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// Every accepted content and promotion.
    pub revisions: Vec<RevisionReport>,
    /// Every delivery, oldest first, refused ones among them.
    pub log: Vec<DeliveryReport>,
    /// What became of it at the targets that the server hands it on to; a store by itself gives none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<ForwardReport>,
}

/// One revision of a push.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevisionReport {
    /// From 1.
    pub revision: u32,
    /// What it did.
    pub result: ReceiptResult,
    /// The revision that a promotion took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// The attempt number: the highest that came to this content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<Ordinal>,
    /// When (RFC 3339).
    pub recorded_at: String,
    /// Items of this content by themselves.
    pub counts: Counts,
    /// The digest of the content.
    pub content: Digest,
    /// The files it was read from.
    pub files: Vec<String>,
    /// The receipt's entity tag.
    pub etag: String,
}

/// One delivery in a push's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryReport {
    /// When (RFC 3339).
    pub at: String,
    /// `recorded`, `replayed`, `revised`, `kept`, `promoted`, or the code of the refusal.
    pub result: String,
    /// The revision that answered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// The attempt number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<Ordinal>,
    /// Who delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// Which client process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
}

/// How one revision differs from what counted before it, item by item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceReport {
    /// The push.
    pub key: PushKey,
    /// The revision.
    pub revision: u32,
    /// Every changed, added and not offered item.
    pub items: Vec<ItemDifference>,
}
