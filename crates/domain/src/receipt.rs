//! The stored result of a push. Its bytes are made once, kept, and answered to every repeat.
//! Must not hold anything that a later reading would change.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::{CycleName, JobName, ProjectId, RoundId, ShardRef, Variant};
use crate::item::{ItemHash, ItemName};
use crate::key::PushKey;
use crate::outcome::{Counts, Status};
use crate::protocol::DifferenceClass;
use crate::push::PushId;
use crate::summary::ReportSummary;

/// What a revision did, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiptResult {
    /// The first content under the key.
    Recorded,
    /// Its verdicts count from now on.
    Revised,
    /// Kept beside what counts; only new items count.
    Kept,
    /// A person decided that this revision's verdicts count.
    Promoted,
}

/// The result of one accepted content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The format of this document.
    pub receipt: u32,
    /// What the revision did.
    pub result: ReceiptResult,
    /// The tenant.
    pub project: ProjectId,
    /// The cycle.
    pub cycle: CycleName,
    /// The round.
    pub round: RoundId,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobName>,
    /// The shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardRef>,
    /// The configuration.
    #[serde(default, skip_serializing_if = "Variant::is_empty")]
    pub variant: Variant,
    /// The key.
    pub key: PushKey,
    /// The push in URLs.
    pub push: PushId,
    /// The revision, from 1.
    pub revision: u32,
    /// When it was recorded, by the recorder's clock (RFC 3339). Decides nothing.
    pub recorded_at: String,
    /// The push's items as they counted after this revision.
    pub counts: Counts,
    /// What the reports of this content held.
    pub report: ReportSummary,
    /// True if there may be more outcomes than these: a damaged report was recorded as far as it was readable, or the
    /// command that wrote the reports was cut short.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// True if the round was closed before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// The digest of the content.
    pub content: Digest,
    /// How this content differs from what counted before; absent for a first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}

/// How two contents differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// How far apart.
    pub class: DifferenceClass,
    /// Items in both with another status.
    pub changed: u64,
    /// Items only in the offered content.
    pub added: u64,
    /// Items only in what counted before.
    pub not_offered: u64,
    /// The first of the changed and added items; all are at `/differences/{revision}`.
    pub items: Vec<ItemDifference>,
}

/// One item that two contents say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemDifference {
    /// Its hash.
    pub hash: ItemHashText,
    /// Its name.
    pub item: ItemName,
    /// What counted before; absent for an added item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Status>,
    /// What was offered; absent for an item that was not offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Status>,
}

/// An item hash as text in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ItemHashText(pub ItemHash);

impl TryFrom<String> for ItemHashText {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        ItemHash::parse(&text).map(Self).ok_or_else(|| format!("{text:?} is not an item hash of 32 hexadecimal digits"))
    }
}

impl From<ItemHashText> for String {
    fn from(hash: ItemHashText) -> String {
        hash.0.to_string()
    }
}

impl Receipt {
    /// The format that this version writes.
    pub const FORMAT: u32 = 1;

    /// The entity tag of a receipt's bytes: `"r<revision>-<digest prefix>"`.
    pub fn etag(revision: u32, bytes: &[u8]) -> String {
        let digest = Digest::of(bytes).to_string();
        format!("\"r{revision}-{}\"", &digest[..16])
    }
}
