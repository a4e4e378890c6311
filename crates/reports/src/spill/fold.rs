//! Folds spilled entries: one pass over all heads finds the items that are there more than once, a second pass over the
//! partitions that hold such items folds those. Must not know what a repeat is; `merge` does.

use std::collections::{HashMap, hash_map};

use domain::{Counts, ItemHash, Outcome, ReportSummary, Status};

use super::known::KnownFiles;
use super::partition::{PARTITIONS, Partitions};
use super::parts::Spilled;
use super::record;
use super::window::{LENGTH_BYTES, Window};
use super::{Gathered, Gathering};
use crate::collect::FileRead;
use crate::error::ReportError;
use crate::merge::{self, Held, Told, Uniform, Weak};

/// What an outcome as text has beside what is in its record, in bytes.
const TEXT_MORE_BYTES: u64 = 24;

/// All outcomes of `files`, whose entries are in `partitions`.
pub(super) fn gather(mut files: Vec<FileRead>, mut partitions: Partitions) -> Result<Gathering, ReportError> {
    partitions.end_of_entries()?;
    merge::order(&mut files);
    let mut dropped = merge::dropped(&files);
    let mut fold = Fold::new(KnownFiles::new(&files, &dropped));
    for partition in 0..PARTITIONS {
        fold.partition(&mut partitions, partition)?;
    }
    partitions.end_of_outcomes()?;
    let mut told = Told::default();
    for (index, file) in files.into_iter().enumerate() {
        told.tell(file, dropped.remove(&index), fold.weak.remove(&index));
    }
    let (summary, told) = told.finish(fold.summary);
    Ok(Gathering {
        outcomes: Gathered::Spilled(Spilled::new(partitions, fold.known, fold.counts, fold.text_bytes)),
        summary,
        warnings: told.warnings,
        damage: told.damage,
        files: told.files,
    })
}

/// What the pass over the heads sees of one item.
#[derive(Debug, Clone, Copy)]
struct Seen {
    entries: u32,
    status: Status,
    flaky: bool,
    record_bytes: u32,
}

/// Entries of one file, one behind the other.
#[derive(Debug, Clone, Copy)]
struct Run {
    file: u32,
    start: u64,
    end: u64,
}

#[derive(Debug)]
struct Fold {
    known: KnownFiles,
    weak: HashMap<usize, Weak>,
    summary: ReportSummary,
    counts: Counts,
    text_bytes: u64,
    window: Window,
    /// Of one partition only.
    seen: HashMap<ItemHash, Seen, Uniform>,
    /// Of one partition only.
    runs: Vec<Run>,
}

impl Fold {
    fn new(known: KnownFiles) -> Self {
        Self {
            known,
            weak: HashMap::new(),
            summary: ReportSummary::default(),
            counts: Counts::default(),
            text_bytes: 0,
            window: Window::default(),
            seen: HashMap::default(),
            runs: Vec::new(),
        }
    }

    fn partition(&mut self, partitions: &mut Partitions, partition: usize) -> Result<(), ReportError> {
        self.window.clear();
        let entries = self.see(partitions, partition)?;
        let repeated: u64 =
            self.seen.values().filter(|seen| seen.entries > 1).map(|seen| u64::from(seen.entries)).sum();
        if repeated == 0 {
            self.count_single();
            return Ok(());
        }
        // Entries that are repeats are read at every walk and not used then. Where they are many, all are written anew.
        let rewrite = repeated * 4 >= entries;
        if !rewrite {
            self.count_single();
        }
        self.fold_repeated(partitions, partition, rewrite)?;
        if rewrite {
            partitions.forget_entries(partition);
        }
        Ok(())
    }

    /// The pass over the heads; gives the number of entries that count.
    fn see(&mut self, partitions: &Partitions, partition: usize) -> Result<u64, ReportError> {
        let (scratch, stream) = (partitions.scratch(), partitions.entries(partition));
        self.seen.clear();
        self.runs.clear();
        let mut at = 0;
        let mut entries = 0;
        while at < stream.len() {
            let bytes = self.window.record(scratch, stream, at, u64::MAX)?;
            let end = at + (LENGTH_BYTES + bytes.len()) as u64;
            let head = record::head(bytes).map_err(|_| scratch.changed())?;
            match self.runs.last_mut() {
                Some(run) if self.known.in_order || run.file == head.file => run.end = end,
                _ => self.runs.push(Run { file: head.file, start: at, end }),
            }
            if self.known.counts(head).is_some() {
                let status = head.status();
                self.summary.add(status);
                self.summary.cut += u64::from(head.cut);
                entries += 1;
                let record_bytes = (LENGTH_BYTES + bytes.len()) as u32;
                let first = Seen { entries: 0, status, flaky: head.is_flaky(), record_bytes };
                self.seen.entry(head.hash).or_insert(first).entries += 1;
            }
            at = end;
        }
        Ok(entries)
    }

    /// Items that are there once are what their entry is.
    fn count_single(&mut self) {
        for seen in self.seen.values().filter(|seen| seen.entries == 1) {
            self.counts.add(seen.status, seen.flaky);
            self.text_bytes += u64::from(seen.record_bytes) + TEXT_MORE_BYTES;
        }
    }

    /// Folds the entries of items that are there more than once, in the order of files, and keeps what they come to.
    /// With `all` those that are there once are kept as well.
    fn fold_repeated(&mut self, partitions: &mut Partitions, partition: usize, all: bool) -> Result<(), ReportError> {
        let mut latest: HashMap<ItemHash, (Held, Outcome), Uniform> = HashMap::default();
        let mut runs = std::mem::take(&mut self.runs);
        runs.sort_by_key(|run| self.known.place(run.file));
        for run in &runs {
            let mut at = run.start;
            while at < run.end {
                let (scratch, stream) = (partitions.scratch(), partitions.entries(partition));
                let bytes = self.window.record(scratch, stream, at, run.end)?;
                at += (LENGTH_BYTES + bytes.len()) as u64;
                let head = record::head(bytes).map_err(|_| scratch.changed())?;
                let Some(known) = self.known.counts(head) else { continue };
                let repeated = self.seen.get(&head.hash).is_some_and(|seen| seen.entries > 1);
                if !repeated && !all {
                    continue;
                }
                let entry = record::entry(bytes, known.comma).map_err(|_| scratch.changed())?;
                if !repeated {
                    self.keep(partitions, head.hash, &entry.outcome)?;
                    continue;
                }
                let source = known.source;
                let before = match latest.entry(head.hash) {
                    hash_map::Entry::Vacant(vacant) => {
                        vacant.insert((Held::first(source, &entry), entry.outcome));
                        continue;
                    }
                    hash_map::Entry::Occupied(occupied) => occupied.into_mut(),
                };
                let weak = self.weak.entry(source.file).or_default();
                match before.0.fold(&mut before.1, source, head.number, entry, weak) {
                    Some(namesake) => {
                        let done = std::mem::replace(&mut before.1, namesake);
                        self.keep(partitions, done.item.hash(), &done)?;
                    }
                    None => self.summary.repeats += 1,
                }
            }
        }
        self.runs = runs;
        latest.into_values().try_for_each(|(_, outcome)| self.keep(partitions, outcome.item.hash(), &outcome))
    }

    /// Nothing changes this outcome any more.
    fn keep(&mut self, partitions: &mut Partitions, hash: ItemHash, outcome: &Outcome) -> Result<(), ReportError> {
        self.counts.add(outcome.status, outcome.is_flaky());
        self.text_bytes += partitions.put_outcome(hash, outcome)? as u64 + TEXT_MORE_BYTES;
        Ok(())
    }
}
