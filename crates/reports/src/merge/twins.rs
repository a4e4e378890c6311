//! Finds reports that are there twice: the same file under two names, an aggregate beside the files it was made from.
//! Must not know what is made of the repeats of single items.

use std::collections::{BTreeMap, HashMap};

use crate::collect::{Entry, FileRead};
use crate::event::Repeats;

/// One document of one file: the unit in which a report is found twice.
#[derive(Debug)]
pub(super) struct Unit {
    file: usize,
    document: u32,
    /// Fingerprints of its suites: cases, verdicts, times and stamp.
    pub(super) suites: Vec<u128>,
    /// Two equal documents of one file may be two programs.
    programs: bool,
}

/// The documents of a file that hold tests.
pub(super) fn units(index: usize, file: &FileRead) -> Vec<Unit> {
    let mut units: BTreeMap<u32, (BTreeMap<u32, u128>, bool)> = BTreeMap::new();
    for entry in &file.entries {
        let (suites, programs) = units.entry(entry.place.document).or_default();
        *programs |= entry.repeats == Repeats::Programs;
        let print = suites.entry(entry.place.suite).or_insert(u128::from(entry.place.stamp));
        *print = mixed(*print, entry);
    }
    let unit = |(document, (suites, programs)): (u32, (BTreeMap<u32, u128>, bool))| Unit {
        file: index,
        document,
        suites: suites.into_values().collect(),
        programs,
    };
    units.into_iter().map(unit).collect()
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
    let mut all: Vec<Unit> = files.iter().enumerate().flat_map(|(i, file)| units(i, file)).collect();
    // The largest first, so that an aggregate is kept and its parts are found in it.
    all.sort_by_key(|unit| (std::cmp::Reverse(unit.suites.len()), unit.file, unit.document));
    let mut seen: HashMap<u128, (usize, u32)> = HashMap::new();
    let mut dropped = HashMap::new();
    for unit in &all {
        let holders: Option<Vec<(usize, u32)>> = unit.suites.iter().map(|print| seen.get(print).copied()).collect();
        let holders = holders.filter(|holders| !(unit.programs && holders.iter().any(|(file, _)| *file == unit.file)));
        match holders {
            Some(holders) => {
                dropped.insert((unit.file, unit.document), said(files, unit, holders));
            }
            None => {
                for print in &unit.suites {
                    seen.entry(*print).or_insert((unit.file, unit.document));
                }
            }
        }
    }
    dropped
}

fn said(files: &[FileRead], unit: &Unit, mut holders: Vec<(usize, u32)>) -> String {
    holders.sort_unstable();
    holders.dedup();
    if holders.iter().all(|(file, _)| *file == unit.file) {
        return format!("document {} repeats what stands before it in the file; counted once", unit.document + 1);
    }
    let mut names: Vec<&str> = holders.iter().map(|(file, _)| files[*file].name.as_str()).collect();
    names.dedup();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("the same report is in {}{more}; counted once", names.join(", "))
}
