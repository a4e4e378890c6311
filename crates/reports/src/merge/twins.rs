//! Finds reports that are there twice: the same file under two names, an aggregate beside the files it was made from.
//! Must not know what is made of the repeats of single items.

use std::collections::HashMap;

use crate::collect::{Entry, FileRead};
use crate::event::Repeats;

/// The documents of a file that hold tests: the units in which a report is found twice.
#[derive(Debug, Default)]
pub(crate) struct Units(Vec<Unit>);

/// One document of one file.
#[derive(Debug)]
struct Unit {
    document: u32,
    /// Numbers of its suites, and their fingerprints: cases, verdicts, times and stamp.
    suites: Vec<(u32, u128)>,
    /// Two equal documents of one file may be two programs.
    programs: bool,
}

impl Units {
    /// Takes in the next test element of the file.
    pub(crate) fn see(&mut self, entry: &Entry) {
        let (document, suite) = (entry.place.document, entry.place.suite);
        if self.0.last().is_none_or(|unit| unit.document != document) {
            self.0.push(Unit { document, suites: Vec::new(), programs: entry.repeats == Repeats::Programs });
        }
        let Some(unit) = self.0.last_mut() else { return };
        // Usually the last one; nested suites may come back to one further up.
        let at = match unit.suites.last() {
            Some((number, _)) if *number == suite => unit.suites.len() - 1,
            _ => unit.suites.binary_search_by_key(&suite, |(number, _)| *number).unwrap_or_else(|at| {
                unit.suites.insert(at, (suite, u128::from(entry.place.stamp)));
                at
            }),
        };
        let print = &mut unit.suites[at].1;
        *print = mixed(*print, entry);
    }

    /// The numbers of the documents.
    pub(super) fn documents(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|unit| unit.document)
    }

    /// Something that orders files of one name by content.
    pub(super) fn order(&self) -> Vec<u128> {
        self.0.iter().flat_map(|unit| unit.suites.iter().map(|(_, print)| *print)).collect()
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

/// The documents (file, number) that are in the others already, and what to say about each.
pub(super) fn dropped(files: &[FileRead]) -> HashMap<(usize, u32), String> {
    let mut all: Vec<(usize, &Unit)> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        all.extend(file.units.0.iter().map(|unit| (index, unit)));
    }
    // The largest first, so that an aggregate is kept and its parts are found in it.
    all.sort_by_key(|(index, unit)| (std::cmp::Reverse(unit.suites.len()), *index, unit.document));
    let mut seen: HashMap<u128, usize> = HashMap::new();
    let mut dropped = HashMap::new();
    for (index, unit) in all {
        let holders: Option<Vec<usize>> = unit.suites.iter().map(|(_, print)| seen.get(print).copied()).collect();
        match holders.filter(|holders| !(unit.programs && holders.contains(&index))) {
            Some(holders) => {
                dropped.insert((index, unit.document), said(files, index, unit, holders));
            }
            None => {
                for (_, print) in &unit.suites {
                    seen.entry(*print).or_insert(index);
                }
            }
        }
    }
    dropped
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
