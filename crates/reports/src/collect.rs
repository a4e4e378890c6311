//! The files of one push, read into outcomes: each item once, whatever the order in which files were added.
//! Must not know formats; `merge` decides what a repeat is.

use std::io::Read;

use domain::{DurationUs, ItemHash, Outcome, ReportSummary};

use crate::ReadOptions;
use crate::error::{Damage, ReportError, Warning};
use crate::event::{Event, Note, Place, RawOutcome, Repeats, Sign};
use crate::formats;
use crate::merge::{self, Units};

/// Reads report files one after the other.
#[derive(Debug)]
pub struct Collector {
    options: ReadOptions,
    files: Vec<FileRead>,
    held: usize,
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
}

/// One file, read.
#[derive(Debug)]
pub(crate) struct FileRead {
    pub(crate) name: String,
    pub(crate) entries: Vec<Entry>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) damage: Option<Damage>,
    pub(crate) units: Units,
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

impl Collector {
    /// Holding nothing yet.
    pub fn new(options: ReadOptions) -> Self {
        Self { options, files: Vec::new(), held: 0 }
    }

    /// Reads one file; gzip and zstd are undone. `name` (the path as typed, with `/`) is for messages, for the order of
    /// files, and tells retries that a build tool keeps in files of their own.
    ///
    /// After an error nothing of this file is held, and other files can still be added.
    pub fn add<R: Read>(&mut self, name: &str, input: R) -> Result<(), ReportError> {
        let mut file = FileRead {
            name: name.to_owned(),
            entries: Vec::new(),
            warnings: Vec::new(),
            damage: None,
            units: Units::default(),
        };
        match self.read(&mut file, input) {
            Err(ReportError::Damaged { file: name, line, column, what, outcomes_before }) if self.options.partial => {
                file.damage = Some(Damage { file: name, line, column, what, outcomes_before });
            }
            Err(e) => return Err(e),
            Ok(()) => {}
        }
        self.held += file.entries.len();
        self.files.push(file);
        Ok(())
    }

    fn read<R: Read>(&self, file: &mut FileRead, input: R) -> Result<(), ReportError> {
        let mut reader = formats::open(&file.name, input, &self.options)?;
        let mut decimals = Decimals::default();
        let result = loop {
            match reader.next() {
                Ok(Some(Event::Outcome(raw))) => {
                    if self.held + file.entries.len() >= self.options.outcomes_max {
                        let limit = self.options.outcomes_max;
                        return Err(ReportError::OutcomesLimit { file: file.name.clone(), limit });
                    }
                    decimals.see(file.entries.len(), &raw);
                    let entry = Entry::from(raw);
                    file.units.see(&entry);
                    file.entries.push(entry);
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

    /// Folds what was read.
    pub fn finish(self) -> Collected {
        merge::merge(self.files)
    }
}

impl From<RawOutcome<'_>> for Entry {
    fn from(raw: RawOutcome<'_>) -> Self {
        let (repeats, place, has_verdict, cut) = (raw.repeats, raw.place, raw.has_verdict, raw.cut);
        let outcome = raw.into_outcome();
        Self { hash: outcome.item.hash(), outcome, repeats, place, has_verdict, cut }
    }
}

/// Durations that may be read in two ways, until the file shows how it writes decimals.
#[derive(Debug, Default)]
struct Decimals {
    point: bool,
    comma: bool,
    doubtful: Vec<(usize, DurationUs, u64)>,
}

impl Decimals {
    fn see(&mut self, index: usize, raw: &RawOutcome<'_>) {
        if let Some(other) = raw.duration_with_comma_us {
            self.doubtful.push((index, other, raw.place.line));
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
        let Some((_, _, line)) = self.doubtful.first().copied() else { return };
        if self.comma != self.point {
            if self.comma {
                for (index, other, _) in self.doubtful {
                    file.entries[index].outcome.duration_us = Some(other);
                }
            }
            return;
        }
        let text = "times like 1,234 may mean thousands or decimals; they were read as thousands".to_owned();
        file.warnings.push(Warning { file: file.name.clone(), line: Some(line), text });
    }
}
