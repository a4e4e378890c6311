//! The JSON of a staged push: the manifest, a chunk, and what the server answers to them. Must not know HTTP.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::PushBody;
use crate::digest::Digest;
use crate::limits;
use crate::outcome::{Counts, Outcome};
use crate::protocol::DifferenceClass;
use crate::push::PushId;
use crate::staging::Epoch;
use crate::summary::ReportSummary;

/// Media type of [`ManifestBody`].
pub const MANIFEST_MEDIA_TYPE: &str = "application/vnd.tallyonce.manifest+json";
/// The state that a cancelled epoch is in.
pub const CANCELLED: &str = "cancelled";

/// The body of a begin. Key, place, sender and policy travel as with a one-shot push.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestBody {
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
    /// How the outcomes of all chunks count; `total` is their number.
    pub counts: Counts,
    /// Content digest of the whole ([`crate::content::Digests`]).
    pub content: Digest,
    /// Outcome digest of the whole.
    pub outcomes: Digest,
    /// An item's chunk is the number in this many leading bits of its hash.
    pub bits: u8,
    /// SHA-256 of each chunk's body as it travels, in hexadecimal digits, and its number of outcomes; 2^`bits` of them.
    pub chunks: Vec<(Digest, u32)>,
    /// Items and verdicts of the whole, if they fit: base64 of zstd of all 16-byte item hashes, rising, then one byte an
    /// item (status in bits 0 and 1: passed, failed, errored, skipped; bit 2: an earlier attempt failed or errored).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<String>,
}

/// The body of a chunk: outcomes alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkBody {
    /// The version of this format: that of [`PushBody`].
    pub tallyonce: u32,
    /// The outcomes of the chunk, sorted by item hash.
    #[serde(deserialize_with = "super::bounded::<{ limits::OUTCOMES_MAX }, _, _>")]
    pub outcomes: Vec<Outcome>,
}

impl ManifestBody {
    /// The version that this program writes.
    pub const VERSION: u32 = 1;
}

impl ChunkBody {
    /// The version that this program writes.
    pub const VERSION: u32 = PushBody::VERSION;
}

/// A receipt that is recorded, inside another document: byte for byte as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredReceipt {
    /// Its revision.
    pub revision: u32,
    /// Its entity tag.
    pub etag: String,
    /// The receipt.
    pub receipt: Box<RawValue>,
}

impl PartialEq for StoredReceipt {
    fn eq(&self, other: &Self) -> bool {
        self.receipt.get() == other.receipt.get() && self.revision == other.revision && self.etag == other.etag
    }
}

/// The answer to a begin that has something to stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StagingAnswer {
    /// The push in URLs.
    pub push: PushId,
    /// The epoch to put into and to commit.
    pub epoch: Epoch,
    /// True if an earlier begin opened it.
    pub resumed: bool,
    /// How many chunks there are.
    pub chunks: u32,
    /// Chunks that are not there, as ranges with both ends included.
    pub missing: Vec<[u32; 2]>,
    /// How the offered content differs from what counts, where the manifest says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<DifferenceClass>,
    /// What is recorded under the key already: a commit lays this content over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<StoredReceipt>,
}

/// The answer to a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkAnswer {
    /// Its number.
    pub chunk: u32,
    /// How many outcomes it holds.
    pub outcomes: u32,
}

/// The answer to a cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelAnswer {
    /// The epoch that has ended: nothing of it is visible or will be.
    pub epoch: Epoch,
    /// [`CANCELLED`].
    pub state: String,
}
