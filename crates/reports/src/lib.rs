//! Bytes of any report format into outcomes and notes of damage, in bounded memory.
//!
//! Two ways in: [`Collector`] reads the files of one push into outcomes, each item once; [`open`] gives the events of
//! one file, for whoever counts without holding everything. Must not know keys, stores, the network or CI.

#![expect(clippy::doc_markdown, reason = "JUnit, NUnit and the like are names of tools, not code")]

mod attachments;
mod collect;
mod decode;
mod detect;
mod error;
mod event;
mod external_id;
mod formats;
mod merge;
mod seconds;
mod source;
mod spill;
mod text;
mod xml;

pub use attachments::Attachment;
pub use collect::{Collected, Collector};
pub use error::{Damage, ReportError, Warning};
pub use event::{Event, Note, Place, RawOutcome, Reader, Repeats, Sign};
pub use formats::{Format, open};
pub use spill::{Gathered, Gathering, Part, Parts, Spill, Spilled, SpillingCollector};

/// How reports are read. No `Default`: whoever reads decides what becomes of damage.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The format, instead of recognising it by content.
    pub format: Option<Format>,
    /// Keep what is readable of damaged files, marked as damage, instead of refusing them.
    pub partial: bool,
    /// Bytes that one *compressed* file may inflate to; plain files are bounded by whoever sends them.
    pub inflated_bytes_max: u64,
    /// Test elements over all files.
    pub outcomes_max: usize,
    /// Whether files that are named beside items are looked for. Captured output is then looked through, else passed over.
    pub attachments: bool,
}

impl ReadOptions {
    /// As [`ReadOptions::standard`], with the bounds of a staged push: for [`Collector::spilling`].
    pub fn staged() -> Self {
        let inflated_bytes_max = domain::limits::STAGED_INFLATED_BYTES_MAX;
        Self { outcomes_max: domain::limits::STAGED_OUTCOMES_MAX, inflated_bytes_max, ..Self::standard() }
    }

    /// Any format, damage refused, the bounds of [`domain::limits`].
    pub fn standard() -> Self {
        Self {
            format: None,
            partial: false,
            inflated_bytes_max: domain::limits::INFLATED_BYTES_MAX,
            outcomes_max: domain::limits::OUTCOMES_MAX,
            attachments: false,
        }
    }
}
