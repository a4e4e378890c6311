//! The reader from outside: real files with counted values, own files per dialect, bad input of every kind, and
//! properties over generated input.

mod corpus;

use std::path::PathBuf;

use reports::{Collected, Collector, Event, ReadOptions, Reader, ReportError};

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

/// All events of one file, and how it ended.
pub(crate) fn events(name: &str, bytes: &[u8]) -> (Vec<Event>, Option<ReportError>) {
    let mut reader: Box<dyn Reader + '_> = match reports::open(name, bytes, &ReadOptions::standard()) {
        Ok(reader) => reader,
        Err(e) => return (Vec::new(), Some(e)),
    };
    let mut events = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, None),
            Err(e) => return (events, Some(e)),
        }
    }
}
