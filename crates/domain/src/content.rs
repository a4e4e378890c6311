//! Digests of a content that come out the same whether it travels whole or in chunks, wherever it is cut.
//! Must not know transports or stores.
//!
//! Outcomes stand in the order of their item hashes, which spread evenly. With n outcomes, `leaf_bits(n)` leading bits of
//! the hash cut that order into *leaves* of about sixteen. A leaf's digest is BLAKE3 over what its outcomes say; above
//! the leaves stands a binary tree over the bits, an empty side being zero. A chunk is all outcomes below one node of that
//! tree, so its digest is checked when it arrives, and the digest of the whole is made of the chunks' digests alone.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::item::ItemHash;
use crate::outcome::{Attempt, Outcome};
use crate::push::{ContentId, Outcomes};

/// Outcomes of a leaf on average, at most.
const LEAF_OUTCOMES: u64 = 16;
/// Of a side of the tree without outcomes.
const EMPTY: Digest = Digest([0; 32]);
/// Tells a node from a leaf, whose bytes begin with an item hash.
const NODE: &[u8] = b"tallyonce content node 1";

/// Content and outcome digest of some outcomes: of a chunk, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digests {
    /// Of everything that is recorded: outcomes with times, texts and attempts.
    pub content: Digest,
    /// Of item, status and flaky.
    pub outcomes: Digest,
}

impl Digests {
    /// Of the outcomes of chunk `chunk` of 2^`bits` in a content of `total` outcomes. All hashes must begin with the bits
    /// of the chunk's number, and `bits` must not pass [`leaf_bits`].
    pub fn of_chunk(part: &Outcomes, total: u64, bits: u8) -> Self {
        let mut walk = Walk { outcomes: part.as_slice(), leaf_bits: leaf_bits(total), buffer: Vec::new() };
        walk.node(part.hashes(), 0, bits)
    }

    /// Of a whole content, out of those of its 2^k chunks in order.
    pub fn of_chunks(mut chunks: Vec<Digests>) -> Self {
        while chunks.len() > 1 {
            chunks = chunks.chunks(2).map(|pair| Digests::node(pair[0], *pair.last().unwrap_or(&pair[0]))).collect();
        }
        chunks.first().copied().unwrap_or(Digests { content: EMPTY, outcomes: EMPTY })
    }

    fn node(left: Self, right: Self) -> Self {
        Self { content: node(left.content, right.content), outcomes: node(left.outcomes, right.outcomes) }
    }

    /// As the identity of a content that did not come as one raw report.
    pub fn id(self) -> ContentId {
        ContentId { content: self.content, outcomes: self.outcomes, body: None }
    }
}

impl Outcomes {
    /// The digests of these outcomes as a whole content.
    pub fn digests(&self) -> Digests {
        Digests::of_chunk(self, self.len() as u64, 0)
    }
}

/// How many leading bits of an item hash number the leaves of a content of `total` outcomes: chunks can't be smaller.
pub fn leaf_bits(total: u64) -> u8 {
    (0..32).find(|bits| total <= LEAF_OUTCOMES << bits).unwrap_or(32)
}

/// The number of the chunk, of 2^`bits`, that an item falls into, whatever the order of files and tests.
pub fn chunk_of(hash: ItemHash, bits: u8) -> u32 {
    let [a, b, c, d, ..] = hash.0;
    if bits == 0 { 0 } else { u32::from_be_bytes([a, b, c, d]) >> (32 - u32::from(bits.min(32))) }
}

fn node(left: Digest, right: Digest) -> Digest {
    if left == EMPTY && right == EMPTY {
        return EMPTY;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(NODE).update(&left.0).update(&right.0);
    hasher.finalize().into()
}

struct Walk<'a> {
    /// All outcomes of the part.
    outcomes: &'a [Outcome],
    leaf_bits: u8,
    buffer: Vec<u8>,
}

impl Walk<'_> {
    /// The node over `hashes`, which begin at outcome `at` and share their first `depth` bits.
    fn node(&mut self, hashes: &[ItemHash], at: usize, depth: u8) -> Digests {
        if hashes.is_empty() {
            // An empty content as a whole is one empty leaf.
            return if depth == 0 { self.leaf(hashes, at) } else { Digests { content: EMPTY, outcomes: EMPTY } };
        }
        if depth >= self.leaf_bits {
            return self.leaf(hashes, at);
        }
        let middle = hashes.partition_point(|hash| !bit(*hash, depth));
        let left = self.node(&hashes[..middle], at, depth + 1);
        let right = self.node(&hashes[middle..], at + middle, depth + 1);
        Digests::node(left, right)
    }

    fn leaf(&mut self, hashes: &[ItemHash], at: usize) -> Digests {
        let outcomes = &self.outcomes[at..at + hashes.len()];
        self.buffer.clear();
        for (hash, outcome) in hashes.iter().zip(outcomes) {
            self.buffer.extend_from_slice(&hash.0);
            encode(outcome, &mut self.buffer);
        }
        let content = Digest::of(&self.buffer);
        self.buffer.clear();
        for (hash, outcome) in hashes.iter().zip(outcomes) {
            self.buffer.extend_from_slice(&hash.0);
            self.buffer.push(outcome.status.code() | u8::from(outcome.is_flaky()) << 2);
        }
        Digests { content, outcomes: Digest::of(&self.buffer) }
    }
}

fn bit(hash: ItemHash, at: u8) -> bool {
    hash.0[usize::from(at / 8)] & (0x80 >> (at % 8)) != 0
}

fn encode(outcome: &Outcome, into: &mut Vec<u8>) {
    encode_attempt(outcome.status.code(), outcome.duration_us.map(|d| d.0), outcome.message.as_deref(), into);
    into.extend_from_slice(&(outcome.attempts.len() as u32).to_le_bytes());
    for Attempt { status, duration_us, message } in &outcome.attempts {
        encode_attempt(status.code(), duration_us.map(|d| d.0), message.as_deref(), into);
    }
    into.extend_from_slice(&(outcome.external_ids.len() as u32).to_le_bytes());
    for id in &outcome.external_ids {
        encode_text(Some(&id.to_string()), into);
    }
}

fn encode_attempt(status: u8, duration_us: Option<u64>, message: Option<&str>, into: &mut Vec<u8>) {
    into.push(status);
    into.extend_from_slice(&duration_us.unwrap_or(u64::MAX).to_le_bytes());
    encode_text(message, into);
}

/// Length before content, and an absent text unlike an empty one.
fn encode_text(text: Option<&str>, into: &mut Vec<u8>) {
    into.extend_from_slice(&text.map_or(u32::MAX, |t| t.len() as u32).to_le_bytes());
    into.extend_from_slice(text.unwrap_or("").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DurationUs, ExternalId, ItemName, Status};
    use proptest::prelude::*;

    fn outcome(n: u32, status: Status, message: Option<&str>) -> Outcome {
        Outcome {
            item: ItemName::new(["suite"], None, &format!("item {n}")),
            status,
            duration_us: Some(DurationUs(u64::from(n))),
            message: message.map(str::to_owned),
            attempts: Vec::new(),
            external_ids: Vec::new(),
        }
    }

    fn content(n: u32) -> Vec<Outcome> {
        (0..n).map(|n| outcome(n, Status::ALL[n as usize % 4], (n % 3 == 0).then_some("text"))).collect()
    }

    fn cut(outcomes: &[Outcome], bits: u8) -> Vec<Outcomes> {
        let in_chunk = |chunk: u32| outcomes.iter().filter(move |o| chunk_of(o.item.hash(), bits) == chunk).cloned();
        (0..1 << bits).map(|chunk| Outcomes::from_unordered(in_chunk(chunk).collect()).unwrap()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_digest_is_the_same_however_it_is_cut(n in 0..600_u32, bits in 0..8_u8) {
            let outcomes = content(n);
            let whole = Outcomes::from_unordered(outcomes.clone()).unwrap().digests();
            let bits = bits.min(leaf_bits(u64::from(n)));
            let chunks = cut(&outcomes, bits).iter().map(|part| Digests::of_chunk(part, u64::from(n), bits)).collect();
            prop_assert_eq!(Digests::of_chunks(chunks), whole);
        }

        #[test]
        fn any_change_is_seen(n in 1..200_u32, at in any::<prop::sample::Index>(), what in 0..5) {
            let outcomes = content(n);
            let mut other = outcomes.clone();
            let changed = &mut other[at.index(n as usize)];
            match what {
                0 => changed.status = if changed.status == Status::Passed { Status::Failed } else { Status::Passed },
                1 => changed.duration_us = None,
                2 => changed.message = Some("other".into()),
                3 => changed.external_ids.push(ExternalId::from("C1".to_owned())),
                _ => changed.attempts.push(Attempt { status: Status::Skipped, duration_us: None, message: None }),
            }
            let (a, b) = (Outcomes::from_unordered(outcomes).unwrap(), Outcomes::from_unordered(other).unwrap());
            prop_assert_ne!(a.digests().content, b.digests().content);
            prop_assert_eq!(a.digests().outcomes == b.digests().outcomes, what != 0);
        }
    }

    #[test]
    fn a_missing_outcome_is_seen() {
        let all = content(100);
        let whole = Outcomes::from_unordered(all.clone()).unwrap().digests();
        assert_ne!(Outcomes::from_unordered(all[1..].to_vec()).unwrap().digests(), whole);
    }
}
