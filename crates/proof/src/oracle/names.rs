//! Item sets: hashes in order, the names that belong to them, and that both agree with each other and their bucket.
//! Must not know blocks, tables or what counts.

use anyhow::{Context as _, ensure};

use super::bytes::{Bytes, unframe};
use super::junit::item_text;

/// The first 16 bytes of BLAKE3 over an item's encoded name.
pub(super) type Hash = [u8; 16];

/// The items of one bucket.
pub(super) struct ItemSet {
    /// How many leading bits of a hash tell the bucket.
    pub(super) bits: u8,
    /// Which bucket it is.
    pub(super) bucket: u32,
    /// Hash and text of each item, in the order of the hashes; may hold an item twice, which is for the caller to judge.
    pub(super) items: Vec<(Hash, String)>,
}

/// What a row of `itemset` holds.
pub(super) struct SetRow {
    pub(super) bits: u8,
    pub(super) bucket: u32,
    pub(super) n: u64,
    pub(super) digest: Vec<u8>,
    pub(super) hashes: Vec<u8>,
}

/// Reads a set and its names.
///
/// # Errors
/// The bytes contradict the layout or each other.
pub(super) fn item_set(row: &SetRow, names: &[u8]) -> anyhow::Result<ItemSet> {
    let (hashes, odd) = row.hashes.as_chunks::<16>();
    ensure!(odd.is_empty(), "{} bytes of hashes are no whole number of hashes", row.hashes.len());
    ensure!(hashes.len() as u64 == row.n && row.n > 0, "n is {}, hashes are {}", row.n, hashes.len());
    ensure!(hashes.is_sorted(), "the hashes do not rise");
    ensure!(row.digest == digest(row), "the set's digest is not that of its hashes");
    let names = unframe(names).context("names")?;
    let mut names = Bytes::new(&names);
    let mut items = Vec::new();
    for hash in hashes {
        ensure!(bucket_of(hash, row.bits) == row.bucket, "{} is not of bucket {}", hex(hash), row.bucket);
        let length = names.varint()?;
        let encoded = names.take(length)?;
        let text = name(encoded).with_context(|| format!("the name of {}", hex(hash)))?;
        let whole = blake3::hash(encoded);
        ensure!(whole.as_bytes()[..16] == hash[..], "{text} does not have the hash {}", hex(hash));
        items.push((*hash, text));
    }
    names.end().context("names")?;
    Ok(ItemSet { bits: row.bits, bucket: row.bucket, items })
}

fn digest(row: &SetRow) -> Vec<u8> {
    let mut bytes = b"tallyonce set 1".to_vec();
    bytes.push(row.bits);
    bytes.extend_from_slice(&row.bucket.to_le_bytes());
    bytes.extend_from_slice(&row.hashes);
    blake3::hash(&bytes).as_bytes()[..16].to_vec()
}

/// The first `bits` bits of the hash, as a number.
fn bucket_of(hash: &Hash, bits: u8) -> u32 {
    hash.iter()
        .flat_map(|byte| (0..8).rev().map(move |place| (byte >> place) & 1))
        .take(usize::from(bits))
        .fold(0, |number, bit| (number << 1) | u32::from(bit))
}

/// The smallest k with n <= 4096 * 2^k.
pub(super) fn bits_for(n: u64) -> u8 {
    let mut bits = 0;
    let mut room = 4096;
    while room < n {
        room *= 2;
        bits += 1;
    }
    bits
}

/// The text of an encoded name: each suite, the name, the class (each a length and UTF-8), how many suites, ordinal.
fn name(encoded: &[u8]) -> anyhow::Result<String> {
    let tail = encoded.len().checked_sub(8).context("a name without an end")?;
    let mut numbers = Bytes::new(&encoded[tail..]);
    let (suites, ordinal) = (numbers.u32()?, numbers.u32()?);
    let mut parts = Bytes::new(&encoded[..tail]);
    let mut path = Vec::new();
    for _ in 0..suites {
        path.push(part(&mut parts)?);
    }
    let own = part(&mut parts)?;
    let class = Some(part(&mut parts)?).filter(|class| !class.is_empty());
    parts.end()?;
    let text = item_text(&path, class, own);
    Ok(if ordinal == 0 { text } else { format!("{text} #{}", u64::from(ordinal) + 1) })
}

fn part<'a>(parts: &mut Bytes<'a>) -> anyhow::Result<&'a str> {
    let length = parts.u32()?;
    parts.text(u64::from(length))
}

/// Digits for people.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}
