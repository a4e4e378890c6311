//! Blocks of a content, made outside the writer. Must not know tables or what is recorded.

use std::collections::BTreeMap;
use std::ops::Range;

use domain::{Digest, Outcomes};

use crate::codec::{self, Packer};

/// A content as its rows will hold it.
pub(super) struct Prepared {
    pub(super) bits: u8,
    pub(super) blocks: Vec<PreparedBlock>,
    /// Large texts by digest, as frames.
    pub(super) large: BTreeMap<Digest, Vec<u8>>,
}

/// One bucket of a content.
pub(super) struct PreparedBlock {
    pub(super) bucket: u32,
    pub(super) range: Range<usize>,
    pub(super) digest: [u8; 16],
    pub(super) hashes: Vec<u8>,
    /// Names, if the set was not known when this was made.
    pub(super) names: Option<Vec<u8>>,
    pub(super) codes: Vec<u8>,
    pub(super) times: Vec<u8>,
    pub(super) texts: Option<Vec<u8>>,
    /// Large texts that it refers to.
    pub(super) large: Vec<Digest>,
}

/// Makes the blocks of some outcomes, cut by `bits` bits. `known` says whether a set is recorded already, so that its
/// names need not be packed; it may be wrong.
pub(super) fn prepare(content: &Outcomes, bits: u8, mut known: impl FnMut(&[u8; 16]) -> bool) -> Prepared {
    let mut packer = Packer::new();
    let (hashes, outcomes) = (content.hashes(), content.as_slice());
    let mut large = BTreeMap::new();
    let blocks = codec::buckets(hashes, bits)
        .into_iter()
        .map(|(bucket, range)| {
            let part = &outcomes[range.clone()];
            let hashes = codec::pack_hashes(&hashes[range.clone()]);
            let digest = codec::set_digest(bits, bucket, &hashes);
            let (codes, any_text) = codec::pack_codes(part, &mut packer);
            let times = codec::pack_times(part, &mut packer);
            let texts = any_text.then(|| codec::pack_texts(part, &mut packer));
            let mut refers = Vec::new();
            if any_text {
                for text in codec::large_texts(part) {
                    let digest = Digest::of(text.as_bytes());
                    large.entry(digest).or_insert_with(|| packer.frame(text.as_bytes()));
                    refers.push(digest);
                }
            }
            let names = (!known(&digest)).then(|| codec::pack_names(part, &mut packer));
            PreparedBlock { bucket, range, digest, hashes, names, codes, times, texts, large: refers }
        })
        .collect();
    Prepared { bits, blocks, large }
}
