//! Finds reports that are there twice: the same file under two names, an aggregate beside the files it was made from.
//! Must not know what is made of the repeats of single items.

use std::collections::{HashMap, HashSet};

use crate::collect::{Entry, FileRead};
use crate::event::Repeats;

/// Fingerprints that are sorted at once when those are looked for that occur twice.
const SORTED_AT_ONCE: usize = 1 << 18;

/// The documents of a file that hold tests: the units in which a report is found twice.
#[derive(Debug, Default)]
pub(crate) struct Units(Vec<Unit>);

/// One document of one file.
#[derive(Debug)]
struct Unit {
    document: u32,
    /// Two equal documents of one file may be two programs.
    programs: bool,
    /// Numbers of its suites; only while the file is read.
    suites: Vec<u32>,
    /// Their fingerprints: cases, verdicts, times and stamp.
    prints: Vec<u128>,
}

impl Units {
    /// Takes in the next test element of the file.
    pub(crate) fn see(&mut self, entry: &Entry) {
        let (document, suite) = (entry.place.document, entry.place.suite);
        if self.0.last().is_none_or(|unit| unit.document != document) {
            self.close();
            let programs = entry.repeats == Repeats::Programs;
            self.0.push(Unit { document, programs, suites: Vec::new(), prints: Vec::new() });
        }
        let Some(unit) = self.0.last_mut() else { return };
        // Usually the last one; nested suites may come back to one further up.
        let at = match unit.suites.last() {
            Some(number) if *number == suite => unit.suites.len() - 1,
            _ => unit.suites.binary_search(&suite).unwrap_or_else(|at| {
                unit.suites.insert(at, suite);
                unit.prints.insert(at, u128::from(entry.place.stamp));
                at
            }),
        };
        let print = &mut unit.prints[at];
        *print = mixed(*print, entry);
    }

    /// The last document is read: gives back what only reading needs.
    pub(crate) fn close(&mut self) {
        if let Some(unit) = self.0.last_mut() {
            unit.suites = Vec::new();
            unit.prints.shrink_to_fit();
        }
    }

    /// The file is read: there will be no more documents.
    pub(crate) fn end(&mut self) {
        self.close();
        self.0.shrink_to_fit();
    }

    /// How many documents hold tests.
    pub(super) fn documents(&self) -> usize {
        self.0.len()
    }

    /// The fingerprints of all suites: something that orders files of one name by content.
    pub(super) fn prints(&self) -> impl Iterator<Item = &u128> {
        self.0.iter().flat_map(|unit| &unit.prints)
    }
}

/// The fingerprint with one more case; item hashes are random already, so mixing in order is enough.
fn mixed(print: u128, entry: &Entry) -> u128 {
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    let outcome = &entry.outcome;
    let duration = outcome.duration_us.map_or(u128::MAX, |us| u128::from(us.0));
    let detail = (u128::from(outcome.status.code()) << 120) ^ (duration << 8) ^ outcome.attempts.len() as u128;
    let step = (print.rotate_left(29) ^ u128::from_be_bytes(entry.hash.0)).wrapping_mul(ODD);
    (step.rotate_left(41) ^ detail).wrapping_mul(ODD)
}

/// The documents of one file that are in others, or further up in it, already.
#[derive(Debug)]
pub(crate) struct Dropped {
    /// Their numbers, rising.
    documents: Vec<u32>,
    /// What to say about the first of them.
    text: String,
}

impl Dropped {
    /// True if this document is one of them.
    pub(crate) fn holds(&self, document: u32) -> bool {
        self.documents.binary_search(&document).is_ok()
    }

    /// Never 0.
    pub(super) fn len(&self) -> usize {
        self.documents.len()
    }

    /// What to say about the first of them.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Their numbers, rising, for whoever needs nothing else.
    pub(crate) fn documents(&self) -> &[u32] {
        &self.documents
    }

    fn add(&mut self, document: u32, text: impl FnOnce() -> String) {
        let at = self.documents.partition_point(|there| *there < document);
        self.documents.insert(at, document);
        if at == 0 {
            self.text = text();
        }
    }
}

/// What is in the others already, by the places of files.
pub(crate) fn dropped(files: &[FileRead]) -> HashMap<usize, Dropped> {
    let twice = twice(files);
    let mut dropped: HashMap<usize, Dropped> = HashMap::new();
    if twice.is_empty() {
        return dropped;
    }
    // A document with a suite that is nowhere else stays, but may be the one in which others are found.
    let mut all: Vec<(usize, &Unit)> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let some = file.units.0.iter().filter(|unit| unit.prints.iter().any(|print| twice.contains(print)));
        all.extend(some.map(|unit| (index, unit)));
    }
    // The largest first, so that an aggregate is kept and its parts are found in it.
    all.sort_by_key(|(index, unit)| (std::cmp::Reverse(unit.prints.len()), *index, unit.document));
    let mut seen: HashMap<u128, usize> = HashMap::new();
    for (index, unit) in all {
        let holders: Option<Vec<usize>> = unit.prints.iter().map(|print| seen.get(print).copied()).collect();
        match holders.filter(|holders| !(unit.programs && holders.contains(&index))) {
            Some(holders) => dropped
                .entry(index)
                .or_insert_with(|| Dropped { documents: Vec::new(), text: String::new() })
                .add(unit.document, || said(files, index, unit, holders)),
            None => {
                for print in unit.prints.iter().filter(|print| twice.contains(print)) {
                    seen.entry(*print).or_insert(index);
                }
            }
        }
    }
    dropped
}

/// The fingerprints that occur more than once. Nearly always there is none, and a table of all would be large.
fn twice(files: &[FileRead]) -> HashSet<u128> {
    let all = || files.iter().flat_map(|file| file.units.prints().copied());
    let passes = all().count() / SORTED_AT_ONCE + 1;
    let mut twice = HashSet::new();
    let mut some: Vec<u128> = Vec::new();
    for pass in 0..passes {
        some.clear();
        some.extend(all().filter(|print| *print as usize % passes == pass));
        some.sort_unstable();
        twice.extend(some.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
    }
    twice
}

fn said(files: &[FileRead], index: usize, unit: &Unit, mut holders: Vec<usize>) -> String {
    holders.sort_unstable();
    holders.dedup();
    if holders == [index] {
        return format!("document {} repeats what stands before it in the file; counted once", unit.document + 1);
    }
    let mut names: Vec<&str> = holders.iter().map(|file| files[*file].name.as_str()).collect();
    names.dedup();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the same report is in {}{more}; counted once", names.join(", "))
}
