//! Collects more than memory holds: entries go to a temporary file, parted by the first bits of their item's hash, and
//! are folded part by part. Must not know formats, or what a repeat is: `merge` folds, in memory as here.

use std::io::Read;
use std::path::PathBuf;

use domain::{ItemHash, Outcome, ReportSummary};

use crate::ReadOptions;
use crate::attachments::Attachment;
use crate::collect::{Doubtful, FileRead, Files};
use crate::error::{Damage, ReportError, Warning};
use crate::merge;

mod fold;
mod known;
mod partition;
mod parts;
mod record;
mod scratch;
#[cfg(test)]
mod tests;
mod window;

pub use parts::{Part, Parts, Spilled};

use partition::Partitions;

/// Where entries go that are too many for memory.
#[derive(Debug, Clone)]
pub struct Spill {
    /// A roomy folder for temporary files: it takes about half the size of the reports. What is written there has no name
    /// and is gone with the process.
    pub folder: PathBuf,
    /// About how many bytes of entries may be held in memory.
    pub memory_bytes: usize,
}

/// Entries of the file being read for which there is room without asking for it anew, once all are spilled.
const ENTRIES_ROOM: usize = 4;

/// Reads report files one after the other, in bounded memory: what grows with the reports is only a few bytes for each
/// suite and some hundred for each file. The result is that of [`crate::Collector`].
#[derive(Debug)]
pub struct SpillingCollector {
    files: Files,
    spool: Spool,
}

/// What the files came to, wherever it is.
#[derive(Debug)]
pub struct Gathering {
    /// One outcome per item, attempts folded.
    pub outcomes: Gathered,
    /// Test elements as the files hold them; of a report found twice, one copy.
    pub summary: ReportSummary,
    /// What was odd, by file.
    pub warnings: Vec<Warning>,
    /// What was damaged; empty unless `partial`.
    pub damage: Vec<Damage>,
    /// The files that count, sorted; not those found to be the same report as another.
    pub files: Vec<String>,
    /// What they name beside items, if that was looked for.
    pub attachments: Vec<Attachment>,
}

/// Outcomes, wherever they are.
#[derive(Debug)]
pub enum Gathered {
    /// In memory: it never took more than was allowed.
    Held {
        /// The hash of each outcome's item.
        hashes: Vec<ItemHash>,
        /// In the order of files by name, then of documents.
        outcomes: Vec<Outcome>,
    },
    /// In a temporary file.
    Spilled(Spilled),
}

impl SpillingCollector {
    pub(crate) fn new(options: ReadOptions, spill: Spill) -> Self {
        Self { files: Files::new(options), spool: Spool::new(spill) }
    }

    /// As [`crate::Collector::add`]: after an error, be it of the temporary folder, nothing of this file is held, and
    /// other files can still be added.
    pub fn add<R: Read>(&mut self, name: &str, input: R) -> Result<(), ReportError> {
        let held_before = self.spool.held_bytes;
        let result = self.files.add(name, input, Some(&mut self.spool));
        if result.is_err() {
            self.spool.held_bytes = held_before;
        }
        result
    }

    /// Folds what was read.
    pub fn gather(mut self) -> Result<Gathering, ReportError> {
        let mut files = self.files.read;
        if self.spool.partitions.is_some() {
            self.spool.spill_earlier(&mut files)?;
        }
        if let Some(partitions) = self.spool.partitions {
            return fold::gather(files, partitions);
        }
        let merged = merge::merge(files);
        Ok(Gathering {
            outcomes: Gathered::Held { hashes: merged.hashes, outcomes: merged.outcomes },
            summary: merged.summary,
            warnings: merged.warnings,
            damage: merged.damage,
            files: merged.files,
            attachments: merged.attachments,
        })
    }
}

/// Decides when entries leave memory.
#[derive(Debug)]
pub(crate) struct Spool {
    spill: Spill,
    held_bytes: usize,
    partitions: Option<Partitions>,
    /// True once the files that were read before are spilled.
    earlier_spilled: bool,
}

impl Spool {
    fn new(spill: Spill) -> Self {
        Self { spill, held_bytes: 0, partitions: None, earlier_spilled: false }
    }

    /// `file` has one more entry. From the moment in which they are too many, none stays in memory.
    pub(crate) fn took(
        &mut self,
        earlier: &mut [FileRead],
        file: &mut FileRead,
        doubtful: &mut Doubtful,
    ) -> Result<(), ReportError> {
        if self.partitions.is_none() {
            self.held_bytes += file.entries.last().map_or(0, record::held_bytes);
            // The rest is for the buffers, which fill while the entries are still there.
            if self.held_bytes <= self.spill.memory_bytes / 4 * 3 {
                return Ok(());
            }
            self.partitions = Some(Partitions::new(&self.spill.folder, self.spill.memory_bytes / 4)?);
        }
        self.spill_earlier(earlier)?;
        match &mut self.partitions {
            Some(partitions) => spill(partitions, file, doubtful),
            None => Ok(()),
        }
    }

    fn spill_earlier(&mut self, earlier: &mut [FileRead]) -> Result<(), ReportError> {
        let Some(partitions) = self.partitions.as_mut().filter(|_| !self.earlier_spilled) else { return Ok(()) };
        for file in earlier {
            spill(partitions, file, &mut Doubtful::new())?;
            file.entries = Vec::new();
        }
        self.earlier_spilled = true;
        Ok(())
    }
}

/// Moves a file's entries out of memory. After an error those that are not moved are still held.
fn spill(partitions: &mut Partitions, file: &mut FileRead, doubtful: &mut Doubtful) -> Result<(), ReportError> {
    let mut moved = 0;
    let result = file.entries.iter().try_for_each(|entry| {
        let number = file.spilled + moved;
        let other = doubtful.front().filter(|(other, _)| *other == number).map(|(_, other)| *other);
        partitions.put_entry(entry, other, file.id, number)?;
        if other.is_some() {
            doubtful.pop_front();
        }
        moved += 1;
        Ok(())
    });
    file.spilled += moved;
    file.entries.drain(..moved as usize);
    // The room of those that were held is needed elsewhere.
    file.entries.shrink_to(ENTRIES_ROOM);
    result
}
