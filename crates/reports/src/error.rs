//! What can be wrong with a report file: each error names the file, the place, what was found, what was readable
//! before it and what to do. Must not know what a caller does with it.

use std::{fmt, io};

/// Why a report file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The operating system, or whatever the bytes come from, failed.
    #[error("{file}: can't be read: {source}")]
    Io {
        /// The file.
        file: String,
        /// What it said.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{file}: is empty; the test runner wrote no report: look for why it stopped")]
    Empty {
        /// The file.
        file: String,
    },
    /// It is something else.
    #[error("{file}: is no test report: {found}; check the path or pattern")]
    NotAReport {
        /// The file.
        file: String,
        /// What it is, or how it begins.
        found: String,
    },
    /// A format that is known by name but not read.
    #[error(
        "{file}: this is {format}, which this version doesn't read yet; convert it, or let the runner write JUnit XML"
    )]
    UnsupportedFormat {
        /// The file.
        file: String,
        /// The format's name.
        format: String,
    },
    /// It is broken. Nothing of it is used, unless the reader was told to keep what was readable (`partial`).
    #[error("{file}:{line}:{column}: {what}; {} before it; repair the report, or take only what was readable with --partial", readable(*.outcomes_before))]
    Damaged {
        /// The file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// Column in bytes, from 1.
        column: u64,
        /// What is wrong there.
        what: String,
        /// Whole outcomes before it.
        outcomes_before: u64,
    },
    /// It inflates beyond the bound.
    #[error(
        "{file}: inflates to more than {limit} bytes, or too steeply to be an honest report; send it uncompressed or in parts"
    )]
    TooLarge {
        /// The file.
        file: String,
        /// The bound, in bytes.
        limit: u64,
    },
    /// It needs entities that its own DTD declares: an expansion bomb, or a file that reads other files.
    #[error("{file}:{line}: {what}; entities declared in a report are never expanded: remove the DOCTYPE")]
    Dtd {
        /// The file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// Which one.
        what: String,
    },
    /// More test elements than one push may hold.
    #[error("{file}: with this file there are more than {limit} outcomes; push it in shards")]
    OutcomesLimit {
        /// The file.
        file: String,
        /// The bound.
        limit: usize,
    },
    /// Compressed, and broken from its beginning.
    #[error("{file}: can't be inflated: {what}; write it again, or send it uncompressed")]
    BadCompression {
        /// The file.
        file: String,
        /// What the decompressor said.
        what: String,
    },
    /// The folder for what memory can't hold failed. No report is at fault.
    #[error("{}", spill_failed(folder, source))]
    Spill {
        /// The folder.
        folder: String,
        /// What the operating system said.
        source: io::Error,
    },
}

impl ReportError {
    /// The file that the error is about, or the folder.
    pub fn file(&self) -> &str {
        match self {
            Self::Io { file, .. }
            | Self::Empty { file }
            | Self::NotAReport { file, .. }
            | Self::UnsupportedFormat { file, .. }
            | Self::Damaged { file, .. }
            | Self::TooLarge { file, .. }
            | Self::Dtd { file, .. }
            | Self::OutcomesLimit { file, .. }
            | Self::BadCompression { file, .. }
            | Self::Spill { folder: file, .. } => file,
        }
    }
}

fn spill_failed(folder: &str, source: &io::Error) -> String {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    let what = match source.kind() {
        StorageFull | QuotaExceeded => format!("is full ({source})"),
        io::ErrorKind::InvalidData => format!("can't be relied on: {source}"),
        _ => format!("can't be used: {source}"),
    };
    format!(
        "the temporary folder {folder} {what}; nothing was sent: make room there, or set TMPDIR to a folder with more room"
    )
}

/// "12 outcomes were readable".
fn readable(outcomes: u64) -> String {
    match outcomes {
        0 => "no outcome was readable".to_owned(),
        1 => "1 outcome was readable".to_owned(),
        n => format!("{n} outcomes were readable"),
    }
}

/// Something odd in a file that did not keep it from being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub file: String,
    /// Line, from 1, of the first place.
    pub line: Option<u64>,
    /// What, and what was made of it.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}

/// Damage in a file of which the readable part was kept: it must not pass for a whole report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column in bytes, from 1.
    pub column: u64,
    /// What is wrong there.
    pub what: String,
    /// Whole outcomes before it; these were kept.
    pub outcomes_before: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, what, outcomes_before } = self;
        write!(f, "{file}:{line}:{column}: {what}; {} before it and kept: incomplete", readable(*outcomes_before))
    }
}
