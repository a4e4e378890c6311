//! What stands on a parcel: everything of a push but its outcomes, and where its chunks lie. No credentials: these belong
//! to who sends it. Must not know how bodies are kept.

use domain::key::PushKey;
use domain::outcome::Counts;
use domain::push::{ContentId, OnDifference, Origin, Place, Push, Sender};
use domain::{Digest, ReportSummary};
use serde::{Deserialize, Serialize};

use crate::destination::Destination;

/// Everything of a push but its outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
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
    /// True if no CI platform was detected.
    pub outside_ci: bool,
    /// How many pushes this job makes.
    pub expect: Option<u32>,
    /// The files that the outcomes were read from.
    pub files: Vec<String>,
    /// What they held.
    pub report: ReportSummary,
    /// True if there may be more outcomes than these, such as of a damaged report.
    pub incomplete: bool,
    /// The digest of the raw report's bytes, where the push was made of one.
    pub raw_body: Option<Digest>,
}

impl Label {
    /// Of a push.
    pub fn of(push: &Push) -> Self {
        Self {
            key: push.key.clone(),
            place: push.place.clone(),
            origin: push.origin.clone(),
            sender: push.sender.clone(),
            on_difference: push.on_difference,
            outside_ci: push.outside_ci,
            expect: push.expect,
            files: push.files.clone(),
            report: push.report,
            incomplete: push.incomplete,
            raw_body: push.content.body,
        }
    }
}

/// How the outcomes are packed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// As one body that holds all of the push: sent in one request.
    #[default]
    Whole,
    /// As 2^`bits` chunks: staged.
    Chunks {
        /// An item's chunk is the number in this many leading bits of its hash.
        bits: u8,
    },
}

/// One body: where it lies behind the first, and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyPlace {
    /// Its first byte, counted from that of the first body.
    pub at: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of it, as it travels.
    pub sha256: Digest,
    /// How many outcomes it holds.
    pub outcomes: u32,
}

/// Everything of a [`Push`] but its outcomes, where it goes, and how it is packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The format: [`Header::VERSION`].
    pub version: u32,
    /// The canonical text of the [`Destination`]; empty in a sealed file for any destination.
    pub destination: String,
    /// What names the write.
    pub key: PushKey,
    /// Where it belongs.
    pub place: Place,
    /// What the round came from.
    pub origin: Origin,
    /// Who delivers: of the process that packed it, whoever sends it later.
    pub sender: Sender,
    /// What to do if other outcomes are recorded under the key.
    pub on_difference: OnDifference,
    /// True if no CI platform was detected.
    pub outside_ci: bool,
    /// How many pushes this job makes.
    pub expect: Option<u32>,
    /// The digest of all that is recorded.
    pub content: Digest,
    /// The digest of items and statuses.
    #[serde(default = "none")]
    pub outcome_digest: Digest,
    /// The digest of the raw report's bytes, where the push was made of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_body: Option<Digest>,
    /// How many outcomes all bodies hold.
    pub outcomes: u64,
    /// How they count.
    pub counts: Counts,
    /// What the report files held.
    pub report: ReportSummary,
    /// The files that they were read from.
    pub files: Vec<String>,
    /// True if there may be more outcomes than these, such as of a damaged report.
    pub incomplete: bool,
    /// When it was packed (RFC 3339, UTC). Decides nothing.
    pub created_at: String,
    /// How the outcomes are packed.
    #[serde(default)]
    pub form: Form,
    /// The bodies, by number.
    #[serde(default)]
    pub chunks: Vec<BodyPlace>,
    /// Items and verdicts of the whole, if they fit into a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<BodyPlace>,
}

/// A digest that files of the first format don't have; it is made anew when they are read.
fn none() -> Digest {
    Digest([0; 32])
}

impl Header {
    /// The format that this version writes.
    pub const VERSION: u32 = 2;

    /// With nothing packed yet.
    pub(super) fn new(label: Label, destination: String, created_at: String) -> Self {
        let Label { key, place, origin, sender, on_difference, outside_ci, expect, files, report, .. } = label;
        Self {
            version: Self::VERSION,
            destination,
            key,
            place,
            origin,
            sender,
            on_difference,
            outside_ci,
            expect,
            content: none(),
            outcome_digest: none(),
            raw_body: label.raw_body,
            outcomes: 0,
            counts: Counts::default(),
            report,
            files,
            incomplete: label.incomplete,
            created_at,
            form: Form::Whole,
            chunks: Vec::new(),
            items: None,
        }
    }

    /// Everything of it but what the outcomes make.
    pub fn label(&self) -> Label {
        Label {
            key: self.key.clone(),
            place: self.place.clone(),
            origin: self.origin.clone(),
            sender: self.sender.clone(),
            on_difference: self.on_difference,
            outside_ci: self.outside_ci,
            expect: self.expect,
            files: self.files.clone(),
            report: self.report,
            incomplete: self.incomplete,
            raw_body: self.raw_body,
        }
    }

    /// What tells the content from another.
    pub fn content_id(&self) -> ContentId {
        ContentId { content: self.content, outcomes: self.outcome_digest, body: self.raw_body }
    }

    /// Size of all bodies in bytes.
    pub fn body_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.bytes).sum()
    }

    /// One behind the last byte of all bodies.
    pub(super) fn bodies_end(&self) -> Option<u64> {
        let places = self.chunks.iter().chain(&self.items);
        places.map(|place| place.at.checked_add(place.bytes)).try_fold(0, |end, next| next.map(|next| end.max(next)))
    }
}

/// True if a push with this header was packed for this destination. A header for any destination belongs to none:
/// who sends it must say so on purpose ([`super::Parcel::addressed_to`]), so that an entry never chooses where
/// credentials go.
pub fn belongs_to(header: &Header, destination: &Destination) -> bool {
    header.destination == destination.to_string()
}
