//! Records, parted by the first bits of their item's hash: each partition has a stream of entries as they were read and
//! one of outcomes that are folded already. Must not know how entries are folded.

use std::path::Path;

use domain::{DurationUs, ItemHash, Outcome};

use super::record;
use super::scratch::Scratch;
use crate::collect::Entry;
use crate::error::ReportError;

/// Partitions, by the first ten bits.
pub(super) const PARTITIONS: usize = 1 << PARTITION_BITS;
const PARTITION_BITS: u32 = 10;

/// The buffer of one stream, in bytes: more than this makes writing no faster.
const BUFFER_BYTES_MAX: usize = 32 * 1024;

/// Where an item belongs. Partitions rise as hashes do.
pub(super) fn partition_of(hash: ItemHash) -> usize {
    usize::from(u16::from_be_bytes([hash.0[0], hash.0[1]]) >> (u16::BITS - PARTITION_BITS))
}

/// The temporary file, parted.
#[derive(Debug)]
pub(super) struct Partitions {
    scratch: Scratch,
    entries: Vec<Stream>,
    outcomes: Vec<Stream>,
    buffer_bytes: usize,
    /// The record that is being written, so that no allocation is made for each.
    record: Vec<u8>,
}

impl Partitions {
    /// Nothing in them yet; all buffers together take `buffers_bytes` at most.
    pub(super) fn new(folder: &Path, buffers_bytes: usize) -> Result<Self, ReportError> {
        let streams = || std::iter::repeat_with(Stream::default).take(PARTITIONS).collect();
        Ok(Self {
            scratch: Scratch::new(folder)?,
            entries: streams(),
            outcomes: streams(),
            buffer_bytes: (buffers_bytes / PARTITIONS).min(BUFFER_BYTES_MAX),
            record: Vec::new(),
        })
    }

    /// Keeps an entry; `other` is its duration if its file has decimal commas.
    pub(super) fn put_entry(
        &mut self,
        entry: &Entry,
        other: Option<DurationUs>,
        file: u32,
        number: u32,
    ) -> Result<(), ReportError> {
        record::write_entry(&mut self.record, entry, other, file, number);
        self.entries[partition_of(entry.hash)].put(&mut self.scratch, &self.record, self.buffer_bytes)
    }

    /// Keeps a folded outcome; says how long its record is.
    pub(super) fn put_outcome(&mut self, hash: ItemHash, outcome: &Outcome) -> Result<usize, ReportError> {
        record::write_outcome(&mut self.record, hash, outcome);
        self.outcomes[partition_of(hash)].put(&mut self.scratch, &self.record, self.buffer_bytes)?;
        Ok(self.record.len())
    }

    /// There will be no more entries.
    pub(super) fn end_of_entries(&mut self) -> Result<(), ReportError> {
        self.entries.iter_mut().try_for_each(|stream| stream.end(&mut self.scratch))
    }

    /// There will be no more folded outcomes.
    pub(super) fn end_of_outcomes(&mut self) -> Result<(), ReportError> {
        self.outcomes.iter_mut().try_for_each(|stream| stream.end(&mut self.scratch))
    }

    /// All outcomes of this partition's entries are among the folded ones.
    pub(super) fn forget_entries(&mut self, partition: usize) {
        self.entries[partition] = Stream::default();
    }

    pub(super) fn entries(&self, partition: usize) -> &Stream {
        &self.entries[partition]
    }

    pub(super) fn outcomes(&self, partition: usize) -> &Stream {
        &self.outcomes[partition]
    }

    pub(super) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    #[cfg(test)]
    pub(super) fn scratch_mut(&mut self) -> &mut Scratch {
        &mut self.scratch
    }
}

/// Records one behind the other, in pieces of the temporary file.
#[derive(Debug, Default)]
pub(super) struct Stream {
    buffer: Vec<u8>,
    segments: Vec<Segment>,
    /// Bytes in the segments.
    written: u64,
}

/// A piece that is written.
#[derive(Debug)]
struct Segment {
    /// Where in the stream it begins.
    start: u64,
    /// Where in the file.
    offset: u64,
}

impl Stream {
    /// Bytes of all records; the buffer must have been written.
    pub(super) fn len(&self) -> u64 {
        self.written
    }

    fn put(&mut self, scratch: &mut Scratch, record: &[u8], buffer_bytes: usize) -> Result<(), ReportError> {
        if self.buffer.len() + record.len() > buffer_bytes {
            self.write_buffer(scratch)?;
            if record.len() > buffer_bytes {
                return self.write(scratch, record);
            }
        }
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(buffer_bytes);
        }
        self.buffer.extend_from_slice(record);
        Ok(())
    }

    fn end(&mut self, scratch: &mut Scratch) -> Result<(), ReportError> {
        self.write_buffer(scratch)?;
        self.buffer = Vec::new();
        self.segments.shrink_to_fit();
        Ok(())
    }

    /// After an error the buffer is as it was.
    fn write_buffer(&mut self, scratch: &mut Scratch) -> Result<(), ReportError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.write(scratch, &buffer);
        if result.is_ok() {
            buffer.clear();
        }
        self.buffer = buffer;
        result
    }

    fn write(&mut self, scratch: &mut Scratch, bytes: &[u8]) -> Result<(), ReportError> {
        let offset = scratch.append(bytes)?;
        self.segments.push(Segment { start: self.written, offset });
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Fills `bytes` from `at`, which lies in the stream with all of them.
    pub(super) fn read(&self, scratch: &Scratch, at: u64, bytes: &mut [u8]) -> Result<(), ReportError> {
        let mut at = at;
        let mut rest = bytes;
        let first = self.segments.partition_point(|segment| segment.start <= at).saturating_sub(1);
        for (index, segment) in self.segments.iter().enumerate().skip(first) {
            let end = self.segments.get(index + 1).map_or(self.written, |next| next.start);
            let count = rest.len().min((end - at) as usize);
            let (now, later) = rest.split_at_mut(count);
            scratch.read(segment.offset + (at - segment.start), now)?;
            (at, rest) = (end, later);
            if rest.is_empty() {
                break;
            }
        }
        Ok(())
    }
}
