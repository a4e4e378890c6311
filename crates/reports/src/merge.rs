//! What it means that an item is named more than once in the files of one push: the same report found twice, attempts,
//! phases, or items that can't be told apart (the rule set at the end of `facts/formats.md`, section 7).
//! Must not know formats: dialects have said what a repeat of theirs means ([`crate::Repeats`]).

use std::collections::{HashMap, hash_map};
use std::hash::{BuildHasher, Hasher};

use domain::{ItemHash, Outcome, ReportSummary};

use crate::attachments::Found;
use crate::collect::{Collected, Entry, FileRead};
use crate::error::{Damage, Warning};

mod fold;
mod twins;
mod weak;

pub(crate) use fold::{Held, Source};
pub(crate) use twins::{Dropped, Units, dropped};
pub(crate) use weak::Weak;

/// Folds all files into outcomes. The result depends on the files' names and contents, never on their order.
pub(crate) fn merge(mut files: Vec<FileRead>) -> Collected {
    order(&mut files);
    let mut dropped = dropped(&files);
    let elements = files.iter().map(|file| file.entries.len()).sum();
    let mut fold = Fold::with_room(elements);
    let (mut told, mut found) = (Told::default(), Found::default());
    for (index, mut file) in files.into_iter().enumerate() {
        let dropped = dropped.remove(&index);
        let source = Source { file: index, is_attempt: is_attempt_file(&file.name) };
        let mut weak = Weak::default();
        for (seq, entry) in std::mem::take(&mut file.entries).into_iter().enumerate() {
            if dropped.as_ref().is_none_or(|dropped| !dropped.holds(entry.place.document)) {
                let item = fold.take(source, seq as u32, entry, &mut weak);
                if let Some(paths) = file.attachments.remove(&(seq as u32)) {
                    found.give(item, &file.name, paths);
                }
            }
        }
        found.left_out(file.left_out);
        told.tell(file, dropped, Some(weak));
    }
    let (summary, mut told) = told.finish(fold.summary);
    let attachments = found.finish(&mut told.warnings);
    Collected {
        outcomes: fold.outcomes,
        hashes: fold.hashes,
        summary,
        warnings: told.warnings,
        damage: told.damage,
        files: told.files,
        attachments,
    }
}

/// Brings the files into the order in which they are folded.
pub(crate) fn order(files: &mut [FileRead]) {
    // By number in the end, as they came: sorting in place takes no memory.
    files.sort_unstable_by(|a, b| {
        let attempts_first = is_attempt_file(&b.name).cmp(&is_attempt_file(&a.name));
        let by_name = attempts_first.then_with(|| a.name.cmp(&b.name));
        by_name.then_with(|| a.units.prints().cmp(b.units.prints())).then_with(|| a.id.cmp(&b.id))
    });
}

/// Bazel keeps earlier attempts of a target beside the last one: `test_attempts/attempt_1.xml`.
pub(crate) fn is_attempt_file(name: &str) -> bool {
    let mut parts = name.rsplit('/');
    let file = parts.next().unwrap_or_default();
    file.starts_with("attempt_") && parts.next() == Some("test_attempts")
}

/// What there is to say about files, beside their outcomes.
#[derive(Debug, Default)]
pub(crate) struct Told {
    read: u64,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) damage: Vec<Damage>,
    /// The files that count.
    pub(crate) files: Vec<String>,
}

impl Told {
    /// Adds the next file, in order.
    pub(crate) fn tell(&mut self, mut file: FileRead, dropped: Option<Dropped>, weak: Option<Weak>) {
        self.read += 1;
        self.warnings.append(&mut file.warnings);
        let all_dropped = dropped.as_ref().is_some_and(|dropped| dropped.len() == file.units.documents());
        if let Some(dropped) = dropped {
            let more = match dropped.len() - 1 {
                0 => String::new(),
                n => format!(" (and {n} documents more of this file)"),
            };
            let text = format!("{}{more}", dropped.text());
            self.warnings.push(Warning { file: file.name.clone(), line: None, text });
        }
        self.damage.extend(file.damage.map(|damage| *damage));
        self.warnings.extend(weak.and_then(|weak| weak.warning(&file.name)));
        if !all_dropped {
            self.files.push(file.name);
        }
    }

    /// All files are told.
    pub(crate) fn finish(mut self, summary: ReportSummary) -> (ReportSummary, Self) {
        // Only those in folders of attempts stand elsewhere than by name.
        self.files.sort_unstable();
        self.files.dedup();
        (ReportSummary { files: self.read, damaged: self.damage.len() as u64, ..summary }, self)
    }
}

/// Item hashes are uniform already: their first eight bytes are the table's hash.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Uniform;

/// The hasher that takes them.
#[derive(Debug, Default)]
pub(crate) struct First8(u64);

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

#[derive(Debug)]
struct Fold {
    outcomes: Vec<Outcome>,
    hashes: Vec<ItemHash>,
    /// Where in `held` an item is: a small table, as most look-ups miss the cache. Outcomes are bounded far below 2^32.
    slots: HashMap<ItemHash, u32, Uniform>,
    /// Of each name what is known, and where its latest outcome is.
    held: Vec<(Held, u32)>,
    summary: ReportSummary,
}

impl Fold {
    fn with_room(elements: usize) -> Self {
        Self {
            outcomes: Vec::with_capacity(elements),
            hashes: Vec::with_capacity(elements),
            slots: HashMap::with_capacity_and_hasher(elements, Uniform),
            held: Vec::with_capacity(elements),
            summary: ReportSummary::default(),
        }
    }

    /// Gives the item that the entry belongs to.
    fn take(&mut self, source: Source, seq: u32, entry: Entry, weak: &mut Weak) -> ItemHash {
        self.summary.add(entry.outcome.status);
        self.summary.cut += u64::from(entry.cut);
        let next = self.outcomes.len() as u32;
        match self.slots.entry(entry.hash) {
            hash_map::Entry::Vacant(vacant) => {
                vacant.insert(self.held.len() as u32);
                self.held.push((Held::first(source, &entry), next));
                self.hashes.push(entry.hash);
                self.outcomes.push(entry.outcome);
                entry.hash
            }
            hash_map::Entry::Occupied(occupied) => {
                let (held, latest) = &mut self.held[*occupied.get() as usize];
                match held.fold(&mut self.outcomes[*latest as usize], source, seq, entry, weak) {
                    Some(namesake) => {
                        *latest = next;
                        self.hashes.push(namesake.item.hash());
                        self.outcomes.push(namesake);
                    }
                    None => self.summary.repeats += 1,
                }
                self.hashes[*latest as usize]
            }
        }
    }
}
