//! A push packed for the way: everything but its outcomes as a header, the outcomes as a compressed body.
//! Must not hold credentials, and must not know where the bytes are kept or sent.

mod body;
pub(crate) mod files;
mod sealed;

use std::sync::Arc;

use bytes::Bytes;
use domain::key::PushKey;
use domain::outcome::Counts;
use domain::push::{ContentId, DoubledItem, OnDifference, Origin, Place, Push, Sender};
use domain::{Digest, Outcomes, ReportSummary};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::destination::Destination;

pub use sealed::SealedError;

/// A push that cannot be packed.
#[derive(Debug, Error)]
pub enum PackError {
    /// More outcomes than one push may hold.
    #[error("the push holds {outcomes} outcomes; at most {} are allowed", domain::limits::OUTCOMES_MAX)]
    TooManyOutcomes {
        /// How many it holds.
        outcomes: usize,
    },
    /// A compressor or encoder failed; only memory can be the cause.
    #[error("the push cannot be packed: {0}")]
    Encode(#[from] std::io::Error),
}

/// A parcel whose body is not what its header says.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// Not zstd, not JSON, or not a push.
    #[error("the body cannot be read: {0}")]
    Unreadable(String),
    /// The body inflates beyond its bound.
    #[error("the body inflates to more than {limit} bytes")]
    TooLarge {
        /// The bound in bytes.
        limit: u64,
    },
    /// One item twice.
    #[error(transparent)]
    Doubled(#[from] DoubledItem),
    /// The outcomes are not those that the header was made for.
    #[error("the body's {what} is not what the header says: {found} for {expected}")]
    Mismatch {
        /// What differs.
        what: &'static str,
        /// What the header says.
        expected: String,
        /// What the body holds.
        found: String,
    },
}

/// Everything of a [`Push`] but its outcomes, and where it goes. No credentials: these belong to who sends it.
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
    /// The digest of the raw report's bytes, where the push was made of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_body: Option<Digest>,
    /// How many outcomes the body holds.
    pub outcomes: u64,
    /// How they count.
    pub counts: Counts,
    /// What the report files held.
    pub report: ReportSummary,
    /// The files that they were read from.
    pub files: Vec<String>,
    /// True if a damaged report was packed as far as it was readable.
    pub incomplete: bool,
    /// When it was packed (RFC 3339, UTC). Decides nothing.
    pub created_at: String,
}

impl Header {
    /// The format that this version writes.
    pub const VERSION: u32 = 1;

    fn of(push: &Push, destination: String, created_at: String) -> Self {
        Self {
            version: Self::VERSION,
            destination,
            key: push.key.clone(),
            place: push.place.clone(),
            origin: push.origin.clone(),
            sender: push.sender.clone(),
            on_difference: push.on_difference,
            outside_ci: push.outside_ci,
            expect: push.expect,
            content: push.content.content,
            raw_body: push.content.body,
            outcomes: push.outcomes.len() as u64,
            counts: push.outcomes.counts(),
            report: push.report,
            files: push.files.clone(),
            incomplete: push.incomplete,
            created_at,
        }
    }
}

/// True if a push with this header was packed for this destination. A header for any destination belongs to none:
/// who sends it must say so on purpose ([`Parcel::addressed_to`]), so that an entry never chooses where credentials go.
pub fn belongs_to(header: &Header, destination: &Destination) -> bool {
    header.destination == destination.to_string()
}

/// A push packed for the way.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// Everything but the outcomes.
    pub header: Header,
    /// The zstd-compressed JSON of [`domain::wire::PushBody`], as it is sent.
    pub body: Bytes,
    push: Option<Arc<Push>>,
}

impl Parcel {
    /// Packs a push for one destination. `created_at` is RFC 3339.
    pub fn pack(push: Arc<Push>, destination: &Destination, created_at: String) -> Result<Self, PackError> {
        Self::pack_text(push, destination.to_string(), created_at)
    }

    /// Packs a push for whatever destination a trusted job will flush it to (`push --seal`).
    pub fn pack_for_any(push: Arc<Push>, created_at: String) -> Result<Self, PackError> {
        Self::pack_text(push, String::new(), created_at)
    }

    fn pack_text(push: Arc<Push>, destination: String, created_at: String) -> Result<Self, PackError> {
        if push.too_many_outcomes() {
            return Err(PackError::TooManyOutcomes { outcomes: push.outcomes.len() });
        }
        let body = body::compress(&push)?;
        Ok(Self { header: Header::of(&push, destination, created_at), body, push: Some(push) })
    }

    /// The same parcel for another destination.
    pub fn addressed_to(&self, destination: &Destination) -> Self {
        let header = Header { destination: destination.to_string(), ..self.header.clone() };
        Self { header, body: self.body.clone(), push: self.push.clone() }
    }

    /// The push: the one that was just packed, else decoded from the body within bounds and checked against the header.
    pub fn push(&self) -> Result<Arc<Push>, UnpackError> {
        match &self.push {
            Some(push) => Ok(Arc::clone(push)),
            None => unpack(&self.header, &self.body).map(Arc::new),
        }
    }
}

fn unpack(header: &Header, compressed: &[u8]) -> Result<Push, UnpackError> {
    let body = body::inflate(compressed)?;
    same("number of outcomes", &header.outcomes, &(body.outcomes.len() as u64))?;
    let outcomes = Outcomes::from_unordered(body.outcomes)?;
    same("content digest", &header.content, &outcomes.content_digest())?;
    same("counts", &header.counts, &outcomes.counts())?;
    same("list of files", &header.files, &body.files)?;
    same("report summary", &Some(header.report), &body.report)?;
    same("incomplete mark", &header.incomplete, &body.incomplete)?;
    let content = ContentId { content: header.content, outcomes: outcomes.outcome_digest(), body: header.raw_body };
    Ok(Push {
        key: header.key.clone(),
        place: header.place.clone(),
        origin: header.origin.clone(),
        sender: header.sender.clone(),
        on_difference: header.on_difference,
        outside_ci: header.outside_ci,
        expect: header.expect,
        files: body.files,
        report: header.report,
        incomplete: header.incomplete,
        outcomes,
        content,
    })
}

fn same<T: PartialEq + std::fmt::Debug>(what: &'static str, expected: &T, found: &T) -> Result<(), UnpackError> {
    if expected == found {
        return Ok(());
    }
    let shown = |value: &T| format!("{value:?}").chars().take(200).collect();
    Err(UnpackError::Mismatch { what, expected: shown(expected), found: shown(found) })
}
