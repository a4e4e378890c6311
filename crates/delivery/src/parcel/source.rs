//! Where outcomes come from when a push is packed, and how they are cut into chunks. Must not know bodies or files.

use std::iter::{Peekable, Zip};
use std::vec::IntoIter;

use domain::content::chunk_of;
use domain::{ItemHash, Outcome, Outcomes};

use super::PackError;

/// Outcomes of one part, so that a copy of it is small.
const PART_OUTCOMES: usize = 4096;
/// What an outcome takes as text beside its names and messages, in bytes.
pub const TEXT_MORE_BYTES: u64 = 64;
/// What an attempt takes beside its message, at least.
const ATTEMPT_BYTES: u64 = 3;

/// Outcomes that are more than should be in memory at once.
pub trait Source: Sync {
    /// How many there are.
    fn outcomes(&self) -> u64;

    /// A number of bytes that they surely don't pass as text, if that is known without looking: spares a walk.
    fn text_bytes_max(&self) -> Option<u64> {
        None
    }

    /// All of them, if they are in memory anyway.
    fn held(&self) -> Option<&Outcomes> {
        None
    }

    /// All of them in parts, in the order of their items' hashes: parts rise and don't overlap. May be asked for more
    /// than once.
    fn parts(&self) -> Box<dyn Iterator<Item = Result<Outcomes, PackError>> + '_>;
}

impl Source for Outcomes {
    fn outcomes(&self) -> u64 {
        self.len() as u64
    }

    fn held(&self) -> Option<&Outcomes> {
        Some(self)
    }

    fn parts(&self) -> Box<dyn Iterator<Item = Result<Outcomes, PackError>> + '_> {
        let parts = self.hashes().chunks(PART_OUTCOMES).zip(self.as_slice().chunks(PART_OUTCOMES));
        Box::new(parts.map(|(hashes, outcomes)| Ok(Outcomes::from_hashed(hashes.to_vec(), outcomes.to_vec())?)))
    }
}

/// About how many bytes the outcomes are as text: a function of the content alone, for the number of chunks.
pub(super) fn text_bytes(source: &dyn Source) -> Result<u64, PackError> {
    let mut bytes = 0;
    for part in source.parts() {
        bytes += part?.as_slice().iter().map(text_of).sum::<u64>();
    }
    Ok(bytes)
}

fn text_of(outcome: &Outcome) -> u64 {
    let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() as u64);
    let attempts: u64 = outcome.attempts.iter().map(|attempt| ATTEMPT_BYTES + length(&attempt.message)).sum();
    let ids: u64 = outcome.external_ids.iter().map(|id| id.text_bytes() as u64).sum();
    outcome.item.encoded().len() as u64 + TEXT_MORE_BYTES + length(&outcome.message) + attempts + ids
}

/// Cuts a source into 2^`bits` chunks; those without outcomes come too.
pub(super) struct Cut<'a> {
    parts: Box<dyn Iterator<Item = Result<Outcomes, PackError>> + 'a>,
    bits: u8,
    next: u32,
    /// Outcomes that were read and are not in a chunk yet.
    waiting: Peekable<Zip<IntoIter<ItemHash>, IntoIter<Outcome>>>,
    last: Option<ItemHash>,
}

impl<'a> Cut<'a> {
    pub(super) fn new(source: &'a dyn Source, bits: u8) -> Self {
        let waiting = Vec::new().into_iter().zip(Vec::new()).peekable();
        Self { parts: source.parts(), bits, next: 0, waiting, last: None }
    }

    /// The next chunk in order.
    fn chunk(&mut self) -> Result<Outcomes, PackError> {
        let (mut hashes, mut outcomes) = (Vec::new(), Vec::new());
        loop {
            while let Some((hash, outcome)) = self.waiting.next_if(|(hash, _)| chunk_of(*hash, self.bits) == self.next)
            {
                if self.last.is_some_and(|last| last >= hash) {
                    return Err(PackError::Order);
                }
                self.last = Some(hash);
                hashes.push(hash);
                outcomes.push(outcome);
            }
            if let Some((hash, _)) = self.waiting.peek() {
                if chunk_of(*hash, self.bits) < self.next {
                    return Err(PackError::Order);
                }
                break;
            }
            match self.parts.next() {
                Some(part) => {
                    let (hashes, outcomes) = part?.into_parts();
                    self.waiting = hashes.into_iter().zip(outcomes).peekable();
                }
                None => break,
            }
        }
        Ok(Outcomes::from_hashed(hashes, outcomes)?)
    }
}

impl Iterator for Cut<'_> {
    type Item = Result<Outcomes, PackError>;

    fn next(&mut self) -> Option<Self::Item> {
        if u64::from(self.next) >= 1 << self.bits {
            return None;
        }
        let chunk = self.chunk();
        self.next += 1;
        Some(chunk)
    }
}
