//! The reader from outside: real files with counted values, own files per dialect, bad input of every kind, and
//! properties over generated input.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests and their helpers may do both")]
#![expect(clippy::doc_markdown, reason = "JUnit is a name")]

mod attachments;
mod bad;
mod corpus;
mod dialects;
mod examples;
mod properties;
mod spill;

use std::path::PathBuf;

use reports::{Collected, Collector, Event, ReadOptions, ReportError};

/// The research corpus, which is beside the repository in some work places only.
pub(crate) fn shared_corpus() -> Option<PathBuf> {
    let corpus = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus"));
    if corpus.join("MANIFEST.tsv").exists() {
        return Some(corpus);
    }
    println!("skipped: no ../shared");
    None
}

/// Reads files given by name and content.
pub(crate) fn collect(files: &[(&str, &[u8])], partial: bool) -> Result<Collected, ReportError> {
    let mut collector = Collector::new(ReadOptions { partial, ..ReadOptions::standard() });
    for (name, bytes) in files {
        collector.add(name, *bytes)?;
    }
    Ok(collector.finish())
}

/// Shows `see` every event of one file; how many outcomes there were, and how it ended.
pub(crate) fn events(name: &str, bytes: &[u8], mut see: impl FnMut(&Event<'_>)) -> (usize, Option<ReportError>) {
    let mut reader = match reports::open(name, bytes, &ReadOptions::standard()) {
        Ok(reader) => reader,
        Err(e) => return (0, Some(e)),
    };
    let mut outcomes = 0;
    loop {
        match reader.next() {
            Ok(Some(event)) => {
                outcomes += usize::from(matches!(event, Event::Outcome(_)));
                see(&event);
            }
            Ok(None) => return (outcomes, None),
            Err(e) => return (outcomes, Some(e)),
        }
    }
}
