//! What a staged push is going to be: everything of it but the outcomes, and what its chunks will hold.
//! Must not know how it travels; whether its chunks keep the promise is checked when they arrive.

use thiserror::Error;

use crate::content::leaf_bits;
use crate::digest::Digest;
use crate::item::ItemHash;
use crate::key::PushKey;
use crate::limits;
use crate::outcome::Counts;
use crate::protocol::Offer;
use crate::push::{ContentId, OnDifference, Origin, Place, PushId, Sender};
use crate::summary::ReportSummary;
use crate::verdict::Light;

/// What one chunk will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPromise {
    /// SHA-256 of its body as it travels (its `Content-Digest`).
    pub digest: Digest,
    /// How many outcomes it holds; it may hold none.
    pub outcomes: u32,
}

/// Items and verdicts of a whole content, so that a difference is judged before anything is uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemVector {
    /// Item hashes, rising, each once.
    pub hashes: Vec<ItemHash>,
    /// Verdicts in the same order.
    pub lights: Vec<Light>,
}

/// A staged push before its outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
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
    /// The files it was read from.
    pub files: Vec<String>,
    /// What the files held.
    pub report: ReportSummary,
    /// True if there may be more outcomes than these.
    pub incomplete: bool,
    /// How many outcomes all chunks hold.
    pub outcomes: u64,
    /// How they count.
    pub counts: Counts,
    /// What tells this content from another.
    pub content: ContentId,
    /// The chunk of an item is the number in this many leading bits of its hash: there are 2^`bits` chunks.
    pub bits: u8,
    /// The chunks, by number.
    pub chunks: Vec<ChunkPromise>,
    /// Items and verdicts, if they fit.
    pub items: Option<ItemVector>,
}

/// A manifest that contradicts itself or passes a bound.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// More outcomes than a staged push may hold.
    #[error("{0} outcomes; a staged push may hold {max}", max = limits::STAGED_OUTCOMES_MAX)]
    Outcomes(u64),
    /// Not 2^bits chunks, or too many.
    #[error("{chunks} chunks with {bits} bits; it must be 2^bits of them, at most {max}", max = limits::CHUNKS_MAX)]
    Chunks {
        /// How many are named.
        chunks: usize,
        /// The bits.
        bits: u8,
    },
    /// Chunks smaller than the leaves of the content's digest.
    #[error("{bits} bits cut {outcomes} outcomes too small; at most {max} bits", max = leaf_bits(*outcomes))]
    TooSmall {
        /// The bits.
        bits: u8,
        /// How many outcomes there are.
        outcomes: u64,
    },
    /// Numbers that should be equal.
    #[error("{what} say {found} outcomes, the manifest says {outcomes}")]
    Sum {
        /// What was added up.
        what: &'static str,
        /// Its sum.
        found: u64,
        /// What it should be.
        outcomes: u64,
    },
    /// Items that don't rise.
    #[error("the items are not in rising order, each once")]
    Order,
}

impl Manifest {
    /// Holds the manifest against itself and against the bounds.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), ManifestError> {
        let outcomes = self.outcomes;
        if outcomes > limits::STAGED_OUTCOMES_MAX as u64 {
            return Err(ManifestError::Outcomes(outcomes));
        }
        let chunks = self.chunks.len();
        if chunks > limits::CHUNKS_MAX || Some(chunks) != 1_usize.checked_shl(u32::from(self.bits)) {
            return Err(ManifestError::Chunks { chunks, bits: self.bits });
        }
        if self.bits > leaf_bits(outcomes) {
            return Err(ManifestError::TooSmall { bits: self.bits, outcomes });
        }
        let counted = self.counts.passed + self.counts.failed + self.counts.errored + self.counts.skipped;
        let sums = [
            ("the chunks", self.chunks.iter().map(|chunk| u64::from(chunk.outcomes)).sum()),
            ("the counts", self.counts.total),
            ("the counts by status", counted),
            ("the items", self.items.as_ref().map_or(outcomes, |items| items.hashes.len() as u64)),
            ("the verdicts", self.items.as_ref().map_or(outcomes, |items| items.lights.len() as u64)),
        ];
        if let Some((what, found)) = sums.into_iter().find(|(_, sum)| *sum != outcomes) {
            return Err(ManifestError::Sum { what, found, outcomes });
        }
        let rises = |items: &ItemVector| items.hashes.windows(2).all(|pair| pair[0] < pair[1]);
        if self.items.as_ref().is_none_or(rises) { Ok(()) } else { Err(ManifestError::Order) }
    }

    /// The digest of what is going to be recorded and of how it is cut: equal ones resume each other. Who delivers, why
    /// and with which policy is no part of it.
    pub fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key("tallyonce 2026-11 manifest");
        let mut text = |part: &str| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        };
        let place = &self.place;
        text(self.key.as_str());
        text(place.project.as_str());
        text(place.cycle.as_str());
        text(place.round.as_str());
        text(place.job.as_ref().map_or("", |job| job.as_str()));
        text(&place.shard.map(|shard| shard.to_string()).unwrap_or_default());
        text(&place.variant.to_string());
        text(&self.files.len().to_string());
        self.files.iter().for_each(|file| text(file));
        hasher.update(&[self.bits, u8::from(self.incomplete)]);
        hasher.update(&self.content.content.0).update(&self.content.outcomes.0);
        for chunk in &self.chunks {
            hasher.update(&chunk.digest.0).update(&chunk.outcomes.to_le_bytes());
        }
        hasher.finalize().into()
    }

    /// The push that it is a manifest of.
    pub fn push(&self) -> PushId {
        PushId::of(&self.place.project, &self.key)
    }

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
}

/// Into how many chunks a content is cut, as bits: a function of the content alone, so that the same content is always
/// cut in the same places. `text_bytes` is its size before it is compressed; `chunk_outcomes` is how many outcomes a chunk
/// may hold on average ([`limits::CHUNK_OUTCOMES`] unless its sender wants less); `halvings` is how often a receiver said
/// that a chunk is too large.
pub fn chunk_bits(outcomes: u64, text_bytes: u64, chunk_outcomes: u64, halvings: u8) -> u8 {
    let most = limits::CHUNKS_MAX.trailing_zeros() as u8;
    let enough = |bits: &u8| outcomes <= chunk_outcomes << bits && text_bytes <= limits::CHUNK_TEXT_BYTES << bits;
    let bits = (0..most).find(enough).unwrap_or(most);
    bits.saturating_add(halvings).min(most).min(leaf_bits(outcomes))
}

/// Numbers of chunks as ranges, both ends included: `[[0, 2], [7, 7]]`.
pub fn ranges(chunks: &[u32]) -> Vec<[u32; 2]> {
    let mut ranges: Vec<[u32; 2]> = Vec::new();
    for chunk in chunks {
        match ranges.last_mut() {
            Some([_, last]) if last.checked_add(1) == Some(*chunk) => *last = *chunk,
            _ => ranges.push([*chunk, *chunk]),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_few_for_small_contents_and_bounded_for_large_ones() {
        let usual = limits::CHUNK_OUTCOMES;
        assert_eq!(chunk_bits(0, 0, usual, 0), 0);
        assert_eq!(chunk_bits(16_384, 1000, usual, 0), 0);
        assert_eq!(chunk_bits(16_385, 1000, usual, 0), 1);
        assert_eq!(chunk_bits(5_000_000, 800_000_000, usual, 0), 9);
        assert_eq!(chunk_bits(50_000_000, 8_000_000_000, usual, 0), 10);
        assert_eq!(chunk_bits(100, 1 << 30, usual, 0), 3, "no smaller than the leaves of the digest");
        assert_eq!(chunk_bits(100_000, 1000, usual, 2), 5);
        assert_eq!(chunk_bits(64, 1000, 16, 0), 2, "smaller ones on demand");
        assert_eq!(chunk_bits(5_000_000, 1000, 1, 0), 10);
    }

    #[test]
    fn ranges_join_neighbours() {
        assert_eq!(ranges(&[0, 1, 2, 7, 9, 10]), [[0, 2], [7, 7], [9, 10]]);
        assert_eq!(ranges(&[]), [[0_u32; 2]; 0]);
    }
}
