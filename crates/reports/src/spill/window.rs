//! A view into one stream of records, through which streams of any length are read in bounded memory.
//! Must not know what is in a record beyond its length.

use super::partition::Stream;
use super::scratch::Scratch;
use crate::error::ReportError;

/// Bytes of a stream that are read at once; a stream up to this length is read whole.
const WINDOW_BYTES: u64 = 2 * 1024 * 1024;

/// Bytes in front of a record that give its length, which does not count them.
pub(super) const LENGTH_BYTES: usize = 4;

/// Some bytes of one stream.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    start: u64,
}

impl Window {
    /// Forgets what it holds: the next record is of another stream.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// The record at `at`, without its length; `until` is where reading on in order will end.
    pub(super) fn record(
        &mut self,
        scratch: &Scratch,
        stream: &Stream,
        at: u64,
        until: u64,
    ) -> Result<&[u8], ReportError> {
        let until = until.min(stream.len());
        self.hold(scratch, stream, at, LENGTH_BYTES as u64, until)?;
        let from = (at - self.start) as usize;
        let length = self.bytes[from..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four));
        self.hold(scratch, stream, at, LENGTH_BYTES as u64 + u64::from(length), until)?;
        let from = (at - self.start) as usize + LENGTH_BYTES;
        Ok(&self.bytes[from..from + length as usize])
    }

    /// Sees to it that `count` bytes from `at` are there.
    fn hold(&mut self, scratch: &Scratch, stream: &Stream, at: u64, count: u64, until: u64) -> Result<(), ReportError> {
        if at >= self.start && at + count <= self.start + self.bytes.len() as u64 {
            return Ok(());
        }
        let (start, end) = if stream.len() <= WINDOW_BYTES {
            (0, stream.len())
        } else {
            (at, until.min(at + WINDOW_BYTES).max(at + count))
        };
        if at + count > stream.len() {
            return Err(scratch.changed());
        }
        self.clear();
        // Never more room than is used: a large record must not stay as room for good.
        self.bytes.shrink_to(WINDOW_BYTES as usize);
        self.bytes.resize((end - start) as usize, 0);
        self.start = start;
        stream.read(scratch, start, &mut self.bytes)
    }
}
