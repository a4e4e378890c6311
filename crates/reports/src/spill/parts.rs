//! Spilled outcomes, handed out in rising order of their items' hashes. Must not know how they were folded.

use domain::{Counts, ItemHash, Outcome};

use super::known::KnownFiles;
use super::partition::{PARTITIONS, Partitions, Stream};
use super::record::{self, FOLDED};
use super::window::{LENGTH_BYTES, Window};
use crate::error::ReportError;

/// Outcomes in one part: some mebibytes of memory.
const PART_OUTCOMES_MAX: usize = 16 * 1024;
/// Bytes of records in one part; a single larger one is a part of its own.
const PART_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Outcomes in a temporary file, which is gone with this.
#[derive(Debug)]
pub struct Spilled {
    partitions: Partitions,
    known: KnownFiles,
    counts: Counts,
    text_bytes: u64,
}

/// Some outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The hash of each outcome's item, rising.
    pub hashes: Vec<ItemHash>,
    /// One outcome per item.
    pub outcomes: Vec<Outcome>,
}

impl Spilled {
    pub(super) fn new(partitions: Partitions, known: KnownFiles, counts: Counts, text_bytes: u64) -> Self {
        Self { partitions, known, counts, text_bytes }
    }

    #[cfg(test)]
    pub(super) fn scratch_mut(&mut self) -> &mut super::scratch::Scratch {
        self.partitions.scratch_mut()
    }

    /// Outcomes in all parts.
    pub fn len(&self) -> u64 {
        self.counts.total
    }

    /// True without any outcome.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the items ended.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// About how many bytes the outcomes are as text (JSON), for whoever cuts them into chunks.
    pub fn encoded_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// All outcomes, in parts that rise and don't overlap; none is empty, and after an error there are no more. May be
    /// asked for any number of times: each walk reads the temporary file anew.
    pub fn parts(&self) -> Parts<'_> {
        let (entries, outcomes) = (Window::default(), Window::default());
        Parts { spilled: self, next_partition: 0, marks: Vec::new(), at: 0, entries, outcomes }
    }
}

/// A walk over all parts.
#[derive(Debug)]
pub struct Parts<'a> {
    spilled: &'a Spilled,
    next_partition: usize,
    /// The records of the partition before the next, in order.
    marks: Vec<Mark>,
    /// How many of them are handed out.
    at: usize,
    entries: Window,
    outcomes: Window,
}

/// Where a record is. Ordered by hash: as a number, which compares faster than bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    hash: (u64, u64),
    start: u64,
    length: u32,
    folded: bool,
}

impl Iterator for Parts<'_> {
    type Item = Result<Part, ReportError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at == self.marks.len() {
            if self.next_partition == PARTITIONS {
                return None;
            }
            if let Err(e) = self.enter(self.next_partition) {
                return Some(self.fail(e));
            }
            self.next_partition += 1;
        }
        Some(self.part().or_else(|e| self.fail(e)))
    }
}

impl Parts<'_> {
    fn fail(&mut self, error: ReportError) -> Result<Part, ReportError> {
        self.next_partition = PARTITIONS;
        self.at = self.marks.len();
        Err(error)
    }

    /// Finds the records of one partition.
    fn enter(&mut self, partition: usize) -> Result<(), ReportError> {
        let partitions = &self.spilled.partitions;
        self.entries.clear();
        self.outcomes.clear();
        self.marks.clear();
        self.at = 0;
        self.mark(partitions.entries(partition), false)?;
        self.mark(partitions.outcomes(partition), true)?;
        self.marks.sort_unstable();
        // An item that is there in several entries has been folded, and is among the folded ones.
        let mut kept = 0;
        let mut at = 0;
        while at < self.marks.len() {
            let mark = self.marks[at];
            let same = self.marks[at..].iter().take_while(|other| other.hash == mark.hash).count();
            if same == 1 || mark.folded {
                self.marks[kept] = mark;
                kept += 1;
            } else if let Some(folded) = self.marks[at..at + same].iter().find(|other| other.folded) {
                self.marks[kept] = *folded;
                kept += 1;
            }
            at += same;
        }
        self.marks.truncate(kept);
        Ok(())
    }

    fn mark(&mut self, stream: &Stream, folded: bool) -> Result<(), ReportError> {
        let Spilled { partitions, known, .. } = self.spilled;
        let window = if folded { &mut self.outcomes } else { &mut self.entries };
        let mut at = 0;
        while at < stream.len() {
            let bytes = window.record(partitions.scratch(), stream, at, u64::MAX)?;
            let length = (LENGTH_BYTES + bytes.len()) as u32;
            let head = record::head(bytes).map_err(|_| partitions.scratch().changed())?;
            if head.file == FOLDED || known.counts(head).is_some() {
                let number = u128::from_be_bytes(head.hash.0);
                let hash = ((number >> 64) as u64, number as u64);
                self.marks.push(Mark { hash, start: at, length, folded });
            }
            at += u64::from(length);
        }
        Ok(())
    }

    /// The next outcomes of the partition.
    fn part(&mut self) -> Result<Part, ReportError> {
        let Spilled { partitions, known, .. } = self.spilled;
        let mut bytes = 0;
        let within = |mark: &&Mark| {
            bytes += u64::from(mark.length);
            bytes <= PART_BYTES_MAX
        };
        let count = self.marks[self.at..].iter().take(PART_OUTCOMES_MAX).take_while(within).count().max(1);
        let marks = &self.marks[self.at..self.at + count];
        let mut part = Part { hashes: Vec::with_capacity(count), outcomes: Vec::with_capacity(count) };
        for mark in marks {
            let partition = self.next_partition - 1;
            let (stream, window) = if mark.folded {
                (partitions.outcomes(partition), &mut self.outcomes)
            } else {
                (partitions.entries(partition), &mut self.entries)
            };
            let until = mark.start + u64::from(mark.length);
            let bytes = window.record(partitions.scratch(), stream, mark.start, until)?;
            let outcome = record::head(bytes).and_then(|head| record::outcome(bytes, head, known.comma(head)));
            part.hashes.push(ItemHash((u128::from(mark.hash.0) << 64 | u128::from(mark.hash.1)).to_be_bytes()));
            part.outcomes.push(outcome.map_err(|_| partitions.scratch().changed())?);
        }
        self.at += count;
        Ok(part)
    }
}
