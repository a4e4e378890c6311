//! What happened in a world, as lines with virtual times, and one hash over all of them: the same seed gives the same
//! hash. Must not decide anything.

use std::fmt::{self, Write as _};

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

/// The lines of one world, or only their hash.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    steps: u64,
    line: String,
    kept: Option<Vec<String>>,
}

impl Trace {
    /// An empty one; `keep` to have the lines too.
    pub(crate) fn new(keep: bool) -> Self {
        Self { hash: FNV_OFFSET, steps: 0, line: String::new(), kept: keep.then(Vec::new) }
    }

    /// One more line.
    pub(crate) fn add(&mut self, at_ms: u64, words: fmt::Arguments<'_>) {
        self.steps += 1;
        self.line.clear();
        let _ = write!(self.line, "{at_ms:>10} ms  {words}");
        for byte in self.line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        if let Some(kept) = &mut self.kept {
            kept.push(self.line.clone());
        }
    }

    /// Over all lines.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// How many lines there were.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// The lines, if they were kept.
    pub(crate) fn take(&mut self) -> Vec<String> {
        self.kept.take().unwrap_or_default()
    }
}
