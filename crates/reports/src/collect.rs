//! The files of one push, read into outcomes: each item once, whatever the order in which files were added.
//! Must not know formats; `merge` decides what a repeat is, `spill` where entries are kept that are too many for memory.

use std::collections::VecDeque;
use std::io::Read;

use domain::{DurationUs, ItemHash, Outcome, ReportSummary};

use crate::ReadOptions;
use crate::attachments::{Attachment, HELD_MAX, OfFile};
use crate::error::{Damage, ReportError, Warning};
use crate::event::{Event, Note, Place, RawOutcome, Repeats, Sign};
use crate::formats;
use crate::merge::{self, Units};
use crate::spill::{Spill, SpillingCollector, Spool};

/// Reads report files one after the other, and holds what they say in memory.
#[derive(Debug)]
pub struct Collector {
    files: Files,
}

/// What the files came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// One outcome per item, attempts folded; in the order of files by name, then of documents.
    pub outcomes: Vec<Outcome>,
    /// The hash of each outcome's item.
    pub hashes: Vec<ItemHash>,
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

impl Collector {
    /// Holding nothing yet.
    pub fn new(options: ReadOptions) -> Self {
        Self { files: Files::new(options) }
    }

    /// One that holds little in memory, and the rest in a temporary file.
    pub fn spilling(options: ReadOptions, spill: Spill) -> SpillingCollector {
        SpillingCollector::new(options, spill)
    }

    /// Reads one file; gzip and zstd are undone. `name` (the path as typed, with `/`) is for messages, for the order of
    /// files, and tells retries that a build tool keeps in files of their own.
    ///
    /// After an error nothing of this file is held, and other files can still be added.
    pub fn add<R: Read>(&mut self, name: &str, input: R) -> Result<(), ReportError> {
        self.files.add(name, input, None)
    }

    /// Folds what was read.
    pub fn finish(self) -> Collected {
        merge::merge(self.files.read)
    }
}

/// The files read so far.
#[derive(Debug)]
pub(crate) struct Files {
    options: ReadOptions,
    pub(crate) read: Vec<FileRead>,
    /// Test elements in them.
    elements: usize,
    /// Paths of attachments in them.
    paths: usize,
    next_id: u32,
}

/// One file, read.
#[derive(Debug)]
pub(crate) struct FileRead {
    /// Its number; that of a file which could not be read is never given again.
    pub(crate) id: u32,
    pub(crate) name: String,
    /// Those that are in memory: the later ones.
    pub(crate) entries: Vec<Entry>,
    /// How many stand before them, spilled.
    pub(crate) spilled: u32,
    /// True if the doubtful durations have decimal commas.
    pub(crate) comma: bool,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) damage: Option<Box<Damage>>,
    pub(crate) units: Units,
    /// In memory also of elements that are spilled.
    pub(crate) attachments: OfFile,
    /// How many more paths it names than there was room for.
    pub(crate) left_out: u64,
}

/// One test element, kept until all files are there.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) outcome: Outcome,
    pub(crate) hash: ItemHash,
    pub(crate) repeats: Repeats,
    pub(crate) place: Place,
    pub(crate) has_verdict: bool,
    pub(crate) cut: u32,
}

impl Files {
    pub(crate) fn new(options: ReadOptions) -> Self {
        Self { options, read: Vec::new(), elements: 0, paths: 0, next_id: 0 }
    }

    /// Reads one file; `spool` takes entries that are too many.
    pub(crate) fn add<R: Read>(&mut self, name: &str, input: R, spool: Option<&mut Spool>) -> Result<(), ReportError> {
        let mut file = FileRead::new(self.next_id, name);
        self.next_id += 1;
        match self.read_into(&mut file, input, spool) {
            Err(ReportError::Damaged { file: name, line, column, what, outcomes_before }) if self.options.partial => {
                file.damage = Some(Box::new(Damage { file: name, line, column, what, outcomes_before }));
            }
            Err(e) => return Err(e),
            Ok(()) => {}
        }
        self.elements += file.elements();
        file.units.end();
        if file.entries.is_empty() {
            file.entries = Vec::new();
        }
        self.read.push(file);
        Ok(())
    }

    fn read_into<R: Read>(
        &mut self,
        file: &mut FileRead,
        input: R,
        mut spool: Option<&mut Spool>,
    ) -> Result<(), ReportError> {
        let mut reader = formats::open(&file.name, input, &self.options)?;
        let mut decimals = Decimals::default();
        let result = loop {
            match reader.next() {
                Ok(Some(Event::Outcome(raw))) => {
                    if self.elements + file.elements() >= self.options.outcomes_max {
                        let limit = self.options.outcomes_max;
                        return Err(ReportError::OutcomesLimit { file: file.name.clone(), limit });
                    }
                    decimals.see(file.elements() as u32, &raw);
                    file.take(raw, &mut self.paths);
                    if let Some(spool) = spool.as_deref_mut() {
                        spool.took(&mut self.read, file, &mut decimals.doubtful)?;
                    }
                }
                Ok(Some(Event::Note(Note::Warning { line, text }))) => {
                    file.warnings.push(Warning { file: file.name.clone(), line, text });
                }
                Ok(Some(Event::Note(Note::Decimal(sign)))) => decimals.prove(sign),
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        decimals.settle(file);
        result
    }
}

impl FileRead {
    fn new(id: u32, name: &str) -> Self {
        Self {
            id,
            name: name.to_owned(),
            entries: Vec::new(),
            spilled: 0,
            comma: false,
            warnings: Vec::new(),
            damage: None,
            units: Units::default(),
            attachments: OfFile::new(),
            left_out: 0,
        }
    }

    /// Test elements, in memory or not.
    fn elements(&self) -> usize {
        self.spilled as usize + self.entries.len()
    }

    /// `held`: paths of attachments of all files so far.
    fn take(&mut self, mut raw: RawOutcome<'_>, held: &mut usize) {
        let mut paths = std::mem::take(&mut raw.attachments);
        let room = HELD_MAX.saturating_sub(*held);
        self.left_out += paths.len().saturating_sub(room) as u64;
        paths.truncate(room);
        *held += paths.len();
        if !paths.is_empty() {
            let number = self.elements() as u32;
            self.attachments.insert(number, paths);
        }
        let entry = Entry::from(raw);
        self.units.see(&entry);
        self.entries.push(entry);
    }
}

impl From<RawOutcome<'_>> for Entry {
    fn from(raw: RawOutcome<'_>) -> Self {
        let (repeats, place, has_verdict, cut) = (raw.repeats, raw.place, raw.has_verdict, raw.cut);
        let outcome = raw.into_outcome();
        Self { hash: outcome.item.hash(), outcome, repeats, place, has_verdict, cut }
    }
}

/// By their numbers, entries in memory whose duration may be read in another way.
pub(crate) type Doubtful = VecDeque<(u32, DurationUs)>;

/// Durations that may be read in two ways, until the file shows how it writes decimals.
#[derive(Debug, Default)]
struct Decimals {
    point: bool,
    comma: bool,
    /// The line of the first doubtful one.
    line: Option<u64>,
    doubtful: Doubtful,
}

impl Decimals {
    fn see(&mut self, number: u32, raw: &RawOutcome<'_>) {
        if let Some(other) = raw.duration_with_comma_us {
            self.line.get_or_insert(raw.place.line);
            self.doubtful.push_back((number, other));
        }
    }

    fn prove(&mut self, sign: Sign) {
        match sign {
            Sign::Point => self.point = true,
            Sign::Comma => self.comma = true,
        }
    }

    /// One sure decimal comma decides the doubtful ones; a sure point makes them thousands; neither: thousands, said.
    fn settle(self, file: &mut FileRead) {
        let Some(line) = self.line else { return };
        if self.comma != self.point {
            file.comma = self.comma;
            if self.comma {
                for (number, other) in self.doubtful {
                    file.entries[(number - file.spilled) as usize].outcome.duration_us = Some(other);
                }
            }
            return;
        }
        let text = "times like 1,234 may mean thousands or decimals; they were read as thousands".to_owned();
        file.warnings.push(Warning { file: file.name.clone(), line: Some(line), text });
    }
}

#[cfg(test)]
mod tests {
    use domain::limits::ATTACHMENTS_MAX;

    use super::*;

    #[test]
    fn paths_of_all_files_together_are_held_up_to_a_bound() {
        let marks = "[[ATTACHMENT|a.png]]\n".repeat(ATTACHMENTS_MAX + 9);
        let outputs = format!("<system-out>{marks}</system-out>");
        let case = |name| format!("<testcase name='{name}'>{outputs}{outputs}</testcase>");
        let report = format!("<testsuite>{}{}</testsuite>", case("a"), case("b"));
        let mut files = Files::new(ReadOptions { attachments: true, ..ReadOptions::standard() });
        for name in ["a.xml", "b.xml", "c.xml"] {
            files.add(name, report.as_bytes(), None).unwrap();
        }
        let held: usize = files.read.iter().flat_map(|file| file.attachments.values()).map(Vec::len).sum();
        let left_out: u64 = files.read.iter().map(|file| file.left_out).sum();
        assert_eq!((held, left_out), (HELD_MAX, (6 * (ATTACHMENTS_MAX + 1) - HELD_MAX) as u64));
        // That some are left out is said though all that are held may be of few items.
        let collected = crate::merge::merge(files.read);
        assert!(collected.warnings.iter().any(|warning| warning.text.contains("more than 10000")));
    }
}
