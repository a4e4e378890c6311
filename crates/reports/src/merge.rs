//! What it means that an item is named more than once in the files of one push: the same report found twice, attempts,
//! phases, or items that can't be told apart (the rule set at the end of `facts/formats.md`, section 7).
//! Must not know formats: dialects have said what a repeat of theirs means ([`Repeats`]).

use std::collections::{BTreeSet, HashMap, hash_map};
use std::hash::{BuildHasher, Hasher};

use domain::{ItemHash, Outcome, ReportSummary, Status};

use crate::collect::{Collected, Entry, FileRead};
use crate::error::Warning;
use crate::event::Repeats;
use crate::text::{Bounded, Oddities};

mod twins;

pub(crate) use twins::Units;

/// Folds all files into outcomes. The result depends on the files' names and contents, never on their order.
pub(crate) fn merge(mut files: Vec<FileRead>) -> Collected {
    files.sort_by_cached_key(|file| (!is_attempt_file(&file.name), file.name.clone(), file.units.order()));
    let dropped = twins::dropped(&files);
    let elements = files.iter().map(|file| file.entries.len()).sum();
    let mut fold = Fold {
        outcomes: Vec::with_capacity(elements),
        hashes: Vec::with_capacity(elements),
        slots: HashMap::with_capacity_and_hasher(elements, Uniform),
        held: Vec::with_capacity(elements),
        summary: ReportSummary::default(),
    };
    let mut names = BTreeSet::new();
    let mut warnings = Vec::new();
    let mut damage = Vec::new();
    fold.summary.files = files.len() as u64;
    for (index, mut file) in files.into_iter().enumerate() {
        let documents: Vec<u32> = file.units.documents().collect();
        let gone = |document: u32| dropped.contains_key(&(index, document));
        if documents.is_empty() || !documents.iter().all(|d| gone(*d)) {
            names.insert(file.name.clone());
        }
        warnings.append(&mut file.warnings);
        let repeated = documents.iter().filter_map(|document| dropped.get(&(index, *document)));
        let count = repeated.clone().count();
        if let Some(text) = repeated.clone().next() {
            let more =
                if count > 1 { format!(" (and {} documents more of this file)", count - 1) } else { String::new() };
            warnings.push(Warning { file: file.name.clone(), line: None, text: format!("{text}{more}") });
        }
        fold.summary.damaged += u64::from(file.damage.is_some());
        damage.extend(file.damage.take());
        let mut weak = Weak::default();
        let source = Source { file: index, is_attempt: is_attempt_file(&file.name) };
        for entry in file.entries {
            if !gone(entry.place.document) {
                fold.take(source, entry, &mut weak);
            }
        }
        warnings.extend(weak.warning(file.name));
    }
    Collected {
        outcomes: fold.outcomes,
        hashes: fold.hashes,
        summary: fold.summary,
        warnings,
        damage,
        files: names.into_iter().collect(),
    }
}

/// Bazel keeps earlier attempts of a target beside the last one: `test_attempts/attempt_1.xml`.
fn is_attempt_file(name: &str) -> bool {
    let mut parts = name.rsplit('/');
    let file = parts.next().unwrap_or_default();
    file.starts_with("attempt_") && parts.next() == Some("test_attempts")
}

/// The file that an entry comes from.
#[derive(Debug, Clone, Copy)]
struct Source {
    file: usize,
    is_attempt: bool,
}

/// Item hashes are uniform already: their first eight bytes are the table's hash.
#[derive(Debug, Clone, Copy, Default)]
struct Uniform;

#[derive(Debug, Default)]
struct First8(u64);

impl BuildHasher for Uniform {
    type Hasher = First8;
    fn build_hasher(&self) -> First8 {
        First8::default()
    }
}

impl Hasher for First8 {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What is held of an item: its latest outcome and where that came from.
#[derive(Debug, Clone, Copy)]
struct Held {
    outcome: usize,
    source: Source,
    suite: u32,
    has_verdict: bool,
    /// Items that bear this name so far.
    namesakes: u32,
}

/// What a repeat is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// The earlier one was an attempt; `failed` although it looks passed.
    Attempt { failed: bool },
    /// Part of the same attempt: the worst counts.
    Part,
    /// Another item that the report can't tell apart.
    Namesake,
}

#[derive(Debug)]
struct Fold {
    outcomes: Vec<Outcome>,
    hashes: Vec<ItemHash>,
    /// Where in `held` an item is: a small table, as most look-ups miss the cache. Outcomes are bounded far below 2^32.
    slots: HashMap<ItemHash, u32, Uniform>,
    held: Vec<Held>,
    summary: ReportSummary,
}

impl Fold {
    fn take(&mut self, source: Source, entry: Entry, weak: &mut Weak) {
        self.summary.add(entry.outcome.status);
        self.summary.cut += u64::from(entry.cut);
        let fresh = Held {
            outcome: self.outcomes.len(),
            source,
            suite: entry.place.suite,
            has_verdict: entry.has_verdict,
            namesakes: 1,
        };
        let slot = match self.slots.entry(entry.hash) {
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(self.held.len() as u32);
                self.held.push(fresh);
                self.outcomes.push(entry.outcome);
                self.hashes.push(entry.hash);
                return;
            }
            hash_map::Entry::Occupied(occupied) => *occupied.get() as usize,
        };
        let held = &mut self.held[slot];
        let earlier = &mut self.outcomes[held.outcome];
        match what(*held, earlier.status, source, &entry) {
            Repeat::Attempt { failed } => {
                become_attempt(earlier, entry.outcome, failed);
                self.summary.repeats += 1;
                *held = Held { outcome: held.outcome, namesakes: held.namesakes, ..fresh };
            }
            Repeat::Part => {
                absorb(earlier, entry.outcome);
                self.summary.repeats += 1;
                held.has_verdict |= entry.has_verdict;
            }
            Repeat::Namesake => {
                weak.see(&entry, earlier.status);
                let mut outcome = entry.outcome;
                outcome.item = outcome.item.with_ordinal(held.namesakes);
                *held = Held { namesakes: held.namesakes + 1, ..fresh };
                self.hashes.push(outcome.item.hash());
                self.outcomes.push(outcome);
            }
        }
    }
}

fn what(held: Held, earlier: Status, source: Source, entry: &Entry) -> Repeat {
    let same_suite = held.source.file == source.file && held.suite == entry.place.suite;
    let after_bad = if earlier.is_bad() { Repeat::Attempt { failed: false } } else { Repeat::Namesake };
    if held.source.is_attempt {
        return Repeat::Attempt { failed: false };
    }
    match entry.repeats {
        Repeats::Ordinals | Repeats::Programs => Repeat::Namesake,
        Repeats::Worst if held.source.file == source.file => Repeat::Part,
        Repeats::Attempts if same_suite => Repeat::Attempt { failed: false },
        Repeats::Pytest if same_suite && held.has_verdict && earlier.is_bad() => Repeat::Part,
        Repeats::Pytest if same_suite => Repeat::Attempt { failed: !held.has_verdict },
        // In another suite or file it may be another environment: only a retry of what failed is surely an attempt.
        Repeats::AttemptsAfterBad | Repeats::Worst | Repeats::Attempts | Repeats::Pytest => after_bad,
    }
}

/// `later` counts from now on, and what was there is an attempt of it.
fn become_attempt(outcome: &mut Outcome, mut later: Outcome, failed: bool) {
    let mut attempt = outcome.as_attempt();
    if failed {
        attempt.status = Status::Failed;
    }
    let mut attempts = std::mem::take(&mut outcome.attempts);
    attempts.push(attempt);
    later.prepend_attempts(attempts);
    merge_ids(&mut later.external_ids, &outcome.external_ids);
    // The item stays: it may have got an ordinal that the later element can't know.
    std::mem::swap(&mut later.item, &mut outcome.item);
    *outcome = later;
}

/// `other` is a part of the same attempt: the worst status, both messages, the time of both.
fn absorb(outcome: &mut Outcome, other: Outcome) {
    if other.status.badness() > outcome.status.badness() {
        outcome.status = other.status;
    }
    outcome.duration_us = match (outcome.duration_us, other.duration_us) {
        (Some(a), Some(b)) => Some(domain::DurationUs(a.0.saturating_add(b.0))),
        (a, b) => a.or(b),
    };
    outcome.message = match (outcome.message.take(), other.message) {
        (Some(a), Some(b)) => {
            let mut both = Bounded::default();
            both.push(a.as_bytes());
            both.push(b"\n\n");
            both.push(b.as_bytes());
            Some(both.finish(&mut Oddities::default()).0)
        }
        (a, b) => a.or(b),
    };
    let attempts = std::mem::take(&mut outcome.attempts);
    outcome.attempts = other.attempts;
    outcome.prepend_attempts(attempts);
    merge_ids(&mut outcome.external_ids, &other.external_ids);
}

fn merge_ids(into: &mut Vec<String>, other: &[String]) {
    for id in other {
        if into.len() < domain::limits::EXTERNAL_IDS_MAX && !into.contains(id) {
            into.push(id.clone());
        }
    }
}

/// Items of one file that are known by their order only.
#[derive(Debug, Default)]
struct Weak {
    count: u64,
    first: Option<(u64, String)>,
    mixed: bool,
}

impl Weak {
    fn see(&mut self, entry: &Entry, earlier: Status) {
        self.count += 1;
        self.mixed |= earlier.is_bad() != entry.outcome.status.is_bad();
        self.first.get_or_insert_with(|| (entry.place.line, entry.outcome.item.to_string()));
    }

    fn warning(self, file: String) -> Option<Warning> {
        let (line, item) = self.first?;
        let n = self.count;
        let mixed =
            if self.mixed { "; some of one name went well and others not, without a mark of a rerun" } else { "" };
        let tests = if n == 1 { "1 test bears".to_owned() } else { format!("{n} tests bear") };
        let text = format!(
            "{tests} the name of an earlier one and got a number, which holds only while their order does (first: {item}){mixed}"
        );
        Some(Warning { file, line: Some(line), text })
    }
}
