//! Parts of the order of hashes, so that large contents are read part by part. Must not know tables.

use std::ops::Range;

use domain::ItemHash;

use crate::codec::bucket_of;

/// Items of one part that is counted: some tens of bytes each, so that a part stays below some ten mebibytes.
pub(super) const COUNTED_ITEMS: u64 = 1 << 19;
/// Outcomes of one part that is read whole, with names and texts.
pub(super) const WHOLE_OUTCOMES: u64 = 1 << 14;

/// All hashes that begin with the `bits` bits of `number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    bits: u8,
    number: u32,
}

impl Part {
    /// Every hash.
    pub(super) const ALL: Self = Self { bits: 0, number: 0 };

    /// The part of one chunk of 2^`bits`.
    pub(super) fn chunk(number: u32, bits: u8) -> Self {
        Self { bits, number }
    }

    /// As few bits as cut `n` items, which spread evenly, into parts of `most` on average.
    pub(super) fn bits_for(n: u64, most: u64) -> u8 {
        (0..31).find(|bits| n <= most << bits).unwrap_or(31)
    }

    /// All parts of so many bits, in order.
    pub(super) fn all(bits: u8) -> impl Iterator<Item = Self> {
        (0..1_u32 << bits).map(move |number| Self { bits, number })
    }

    /// The parts, in order, of `most` items on average for `n` items.
    pub(super) fn of(n: u64, most: u64) -> impl Iterator<Item = Self> {
        Self::all(Self::bits_for(n, most))
    }

    pub(super) fn bits(self) -> u8 {
        self.bits
    }

    pub(super) fn number(self) -> u32 {
        self.number
    }

    /// First and last bucket, of a content cut by `bits` bits, that can hold hashes of the part.
    pub(super) fn buckets(self, bits: u8) -> (u32, u32) {
        if self.bits == 0 {
            return (0, u32::MAX);
        }
        match bits.checked_sub(self.bits) {
            Some(more) => {
                let first = u64::from(self.number) << more;
                (first as u32, (first + (1_u64 << more) - 1) as u32)
            }
            None => (self.number >> (self.bits - bits), self.number >> (self.bits - bits)),
        }
    }

    /// Where the part lies in rising hashes.
    pub(super) fn range(self, hashes: &[ItemHash]) -> Range<usize> {
        let start = hashes.partition_point(|hash| bucket_of(*hash, self.bits) < self.number);
        let length = hashes[start..].partition_point(|hash| bucket_of(*hash, self.bits) == self.number);
        start..start + length
    }

    pub(super) fn holds(self, hash: ItemHash) -> bool {
        bucket_of(hash, self.bits) == self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_is_in_one_part_and_its_bucket_is_among_those_of_the_part() {
        let mut hashes: Vec<ItemHash> = (0..500_u32)
            .map(|n| {
                let mut hash = [0; 16];
                hash.copy_from_slice(&blake3::hash(&n.to_le_bytes()).as_bytes()[..16]);
                ItemHash(hash)
            })
            .collect();
        hashes.sort_unstable();
        for bits in 0..6 {
            let mut at = 0;
            for part in Part::all(bits) {
                let range = part.range(&hashes);
                assert_eq!(range.start, at);
                at = range.end;
                for hash in &hashes[range] {
                    assert!(part.holds(*hash));
                    for cut in 0..8 {
                        let (first, last) = part.buckets(cut);
                        assert!((first..=last).contains(&bucket_of(*hash, cut)));
                    }
                }
            }
            assert_eq!(at, hashes.len());
        }
    }

    #[test]
    fn a_few_items_are_one_part() {
        assert_eq!(Part::of(COUNTED_ITEMS, COUNTED_ITEMS).collect::<Vec<_>>(), [Part::ALL]);
        assert_eq!(Part::bits_for(5_000_000, COUNTED_ITEMS), 4);
    }
}
