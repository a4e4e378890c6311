//! How outcomes lie in bytes: item sets, names, verdicts, durations, texts. Must not know tables or transactions.
//!
//! A stranger can write a reader from this text alone; `proof` holds one.
//!
//! **Numbers.** `u32` is little endian in four bytes. A *varint* is LEB128: seven bits a byte, lowest first, the top bit
//! set on every byte but the last.
//!
//! **Frame.** Every compressed section is a frame: one byte *method* (0 stored, 1 zstd), `u32` length of the plain bytes,
//! then the plain bytes (0) or one zstd frame of them (1). An empty section is a stored frame of length 0.
//!
//! **Content.** One content of a push is its outcomes, sorted by item hash, each item once. It is cut into *buckets*: with
//! n outcomes, its own bits are the smallest k with n <= 4096 * 2^k; `bits` are these, or, if it came in 2^c chunks and c is
//! more, c, so that a chunk is whole buckets. The bucket of an item is the first `bits` bits of its 16-byte hash (big
//! endian; bucket 0 if `bits` is 0). Buckets without outcomes are not kept. A bucket of a content is a *block*, and points
//! to the *item set* that says which items it holds. The blocks of one content lie under one number (`blockset`); a
//! revision names it, and readers come to blocks from a revision only.
//!
//! **Item set.** `itemset.hashes`: the 16-byte hashes, rising, without anything between them. `itemset.digest`: the first
//! 16 bytes of BLAKE3 over `tallyonce set 1`, one byte `bits`, `u32` bucket, and `hashes`. Its names (`setnames.names`)
//! are a frame of, for each item in the order of the hashes: varint length, then `ItemName::encode` of that length: for
//! each suite, then the name, then the class (empty: none) `u32` length and UTF-8; then `u32` number of suites, `u32`
//! ordinal.
//!
//! **Block.** All of it in the order of the set's hashes, n items.
//! - `block.codes`: a frame of n bytes, one an item: status in bits 0 and 1 (0 passed, 1 failed, 2 errored, 3 skipped),
//!   bit 2 set if an attempt before the final one failed or errored, bit 3 set if the item has an entry in the texts.
//! - `block.times`: a frame of one byte w (0 to 8), then w planes of n bytes: plane p holds byte p (lowest first) of each
//!   item's value. The value is the duration of the final attempt in microseconds, plus 1; 0 is "not known". (So a
//!   duration of 2^64 - 1 is not known either, as in the content digest.)
//! - `blocktext.body` (no row if no item has bit 3): a frame of the entries of the items with bit 3, in order. An entry is
//!   a byte of flags (1: has a message, 2: has attempts, 4: has external ids), then what the flags say, in that order:
//!   a *text*; varint number of attempts, oldest first, each a byte of status, a varint duration (as in times: plus 1, 0
//!   not known) and an *optional text*; varint number of external ids, each varint length and UTF-8.
//! - *Text*: varint v. If v is even, UTF-8 of v / 2 bytes follows. If it is odd, the text is large, v / 2 bytes long, and
//!   its BLAKE3 digest (32 bytes) follows. Texts of 2048 bytes and more are large.
//!   *Optional text*: a byte 0 (none) or 1 and a text.
//!
//! **Large text.** `bigtext.body`: a frame of the UTF-8; its key is the BLAKE3 digest of the UTF-8 within its project.

mod block;
mod cursor;
mod frame;
mod names;
mod text;

#[cfg(test)]
mod tests;

use domain::ItemHash;

pub(crate) use block::{HAS_TEXT, light_of, pack_codes, pack_times, unpack_times, value_of};
pub(crate) use frame::{Packer, Unpacker};
pub(crate) use names::{each_name, pack_names};
pub(crate) use text::{Texts, large_texts, pack_texts, unpack_texts};

/// Outcomes of one bucket on average, at most.
pub(crate) const BUCKET_ITEMS: usize = 4096;
/// A text from this length on lies in a row of its own.
pub(crate) const LARGE_TEXT_BYTES: usize = 2048;

/// Bytes that are not what this module writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("damaged bytes: {0}")]
pub(crate) struct Damaged(pub(crate) &'static str);

/// How many leading bits of a hash number the buckets of a content of `n` outcomes.
pub(crate) fn bits_for(n: usize) -> u8 {
    (0..32).find(|bits| n <= BUCKET_ITEMS << bits).unwrap_or(32)
}

/// The bucket of an item.
pub(crate) fn bucket_of(hash: ItemHash, bits: u8) -> u32 {
    let [a, b, c, d, ..] = hash.0;
    if bits == 0 { 0 } else { u32::from_be_bytes([a, b, c, d]) >> (32 - u32::from(bits.min(32))) }
}

/// The buckets of rising hashes: number and range, only those that hold any.
pub(crate) fn buckets(hashes: &[ItemHash], bits: u8) -> Vec<(u32, std::ops::Range<usize>)> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < hashes.len() {
        let bucket = bucket_of(hashes[start], bits);
        let end = start + hashes[start..].partition_point(|hash| bucket_of(*hash, bits) == bucket);
        found.push((bucket, start..end));
        start = end;
    }
    found
}

/// The hashes of a set as they are kept.
pub(crate) fn pack_hashes(hashes: &[ItemHash]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(hashes.len() * 16);
    for hash in hashes {
        bytes.extend_from_slice(&hash.0);
    }
    bytes
}

/// Back from [`pack_hashes`], added to `into`.
pub(crate) fn unpack_hashes(bytes: &[u8], into: &mut Vec<ItemHash>) -> Result<(), Damaged> {
    let (chunks, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(Damaged("hashes of a set are no multiple of 16 bytes"));
    }
    into.extend(chunks.iter().map(|chunk| ItemHash(*chunk)));
    Ok(())
}

/// The place of an item in the bytes of a set.
pub(crate) fn find_hash(bytes: &[u8], hash: ItemHash) -> Option<usize> {
    bytes.as_chunks::<16>().0.binary_search(&hash.0).ok()
}

/// What names a set within its project.
pub(crate) fn set_digest(bits: u8, bucket: u32, hashes: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"tallyonce set 1");
    hasher.update(&[bits]);
    hasher.update(&bucket.to_le_bytes());
    hasher.update(hashes);
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}
