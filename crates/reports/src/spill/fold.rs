//! Folds spilled entries: one pass over all heads finds the items that are there more than once, a second pass over the
//! partitions that hold such items folds those. Must not know what a repeat is; `merge` does.

use std::collections::{HashMap, hash_map};

use domain::{Counts, ItemHash, Outcome, ReportSummary, Status};

use super::known::KnownFiles;
use super::partition::{PARTITIONS, Partitions};
use super::parts::Spilled;
use super::record::{self, Head};
use super::window::{LENGTH_BYTES, Window};
use super::{Gathered, Gathering};
use crate::attachments::Found;
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
    let mut fold = Fold::new(KnownFiles::new(&files, &dropped), &mut files);
    for partition in 0..PARTITIONS {
        fold.partition(&mut partitions, partition)?;
    }
    partitions.end_of_outcomes()?;
    let (mut told, mut found) = (Told::default(), Found::default());
    for (item, file, paths) in fold.given {
        found.give(item, &files[file].name, paths);
    }
    for (index, file) in files.into_iter().enumerate() {
        found.left_out(file.left_out);
        told.tell(file, dropped.remove(&index), fold.weak.remove(&index));
    }
    let (summary, mut told) = told.finish(fold.summary);
    let attachments = found.finish(&mut told.warnings);
    Ok(Gathering {
        outcomes: Gathered::Spilled(Spilled::new(partitions, fold.known, fold.counts, fold.text_bytes)),
        summary,
        warnings: told.warnings,
        damage: told.damage,
        files: told.files,
        attachments,
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
    /// Of one partition only: elements that name files.
    naming: Vec<Head>,
    /// Files that elements name, by the number of the report and of the element in it, until their item is known.
    named: HashMap<(u32, u32), Vec<String>>,
    /// Those whose item is known, with the place of their report.
    given: Vec<(ItemHash, usize, Vec<String>)>,
}

impl Fold {
    fn new(known: KnownFiles, files: &mut [FileRead]) -> Self {
        let of_file = |file: &mut FileRead| (file.id, std::mem::take(&mut file.attachments));
        let named = files.iter_mut().map(of_file);
        let named = named.flat_map(|(id, all)| all.into_iter().map(move |(number, paths)| ((id, number), paths)));
        Self {
            known,
            weak: HashMap::new(),
            summary: ReportSummary::default(),
            counts: Counts::default(),
            text_bytes: 0,
            window: Window::default(),
            seen: HashMap::default(),
            runs: Vec::new(),
            naming: Vec::new(),
            named: named.collect(),
            given: Vec::new(),
        }
    }

    fn partition(&mut self, partitions: &mut Partitions, partition: usize) -> Result<(), ReportError> {
        self.window.clear();
        let entries = self.see(partitions, partition)?;
        self.give_single();
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
                if !self.named.is_empty() && self.named.contains_key(&(head.file, head.number)) {
                    self.naming.push(head);
                }
            }
            at = end;
        }
        Ok(entries)
    }

    /// What is named belongs to this item.
    fn give(&mut self, head: Head, item: ItemHash) {
        if !self.named.is_empty()
            && let Some(paths) = self.named.remove(&(head.file, head.number))
        {
            self.given.push((item, self.known.place(head.file), paths));
        }
    }

    /// Of items that are there once.
    fn give_single(&mut self) {
        for head in std::mem::take(&mut self.naming) {
            if self.seen.get(&head.hash).is_some_and(|seen| seen.entries == 1) {
                self.give(head, head.hash);
            }
        }
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
                let (source, comma) = (known.source, known.comma);
                let entry = record::entry(bytes, comma).map_err(|_| scratch.changed())?;
                if !repeated {
                    self.keep(partitions, head.hash, &entry.outcome)?;
                    continue;
                }
                let before = match latest.entry(head.hash) {
                    hash_map::Entry::Vacant(vacant) => {
                        vacant.insert((Held::first(source, &entry), entry.outcome));
                        self.give(head, head.hash);
                        continue;
                    }
                    hash_map::Entry::Occupied(occupied) => occupied.into_mut(),
                };
                let weak = self.weak.entry(source.file).or_default();
                let own = before.0.fold(&mut before.1, source, head.number, entry, weak);
                let item = own.as_ref().unwrap_or(&before.1).item.hash();
                match own {
                    Some(namesake) => {
                        let done = std::mem::replace(&mut before.1, namesake);
                        self.keep(partitions, done.item.hash(), &done)?;
                    }
                    None => self.summary.repeats += 1,
                }
                self.give(head, item);
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
