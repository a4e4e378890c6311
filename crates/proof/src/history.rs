//! Judges the history of one key: what runners offered, how each of their processes ended, and what the tables hold in
//! the end. Every offered report has to end in one of five ways, and everything else is a failure with a name.
//! Must not know how faults were injected, and trusts no word of the program about the tables.

mod rules;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use crate::oracle::{Fate, Oracle, Stored};

/// Item text to status.
pub type Items = BTreeMap<String, String>;

/// How one process ended that delivered a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By itself: exit code, and its word for what became of the push.
    Said {
        /// The exit code.
        exit: i32,
        /// `state` of `--json`.
        state: String,
        /// It said that other outcomes are recorded: a difference beyond times and texts, or a warning of it.
        difference: bool,
    },
    /// Killed: it said nothing.
    Silent,
}

/// One process that delivered a report, in the order of their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// Which of the history's reports.
    pub report: usize,
    /// How it ended.
    pub ended: Ended,
    /// A fault was injected while it ran: only then may its end be unknown.
    pub faulted: bool,
    /// Whether the outbox still holds the report after it.
    pub kept: bool,
}

/// A report and the attempt under which it was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Orders it among the others.
    pub attempt: u64,
    /// What its files hold.
    pub items: Items,
}

/// All that was done under one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// What was offered.
    pub reports: Vec<Offered>,
    /// Who offered it.
    pub invocations: Vec<Invocation>,
}

impl History {
    /// One more report; gives its number.
    pub fn offer(&mut self, attempt: u64, items: Items) -> usize {
        self.reports.push(Offered { attempt, items });
        self.reports.len() - 1
    }
}

/// What the tables hold under one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tables {
    /// Its revisions.
    pub revisions: Vec<Stored>,
    /// What counts.
    pub visible: Items,
    /// How often something is listed that counts; more than `visible` holds if it counts twice.
    pub listed: usize,
    /// Its epochs.
    pub epochs: Vec<(u32, Fate)>,
    /// Words of the independent reader for everything that is there twice or in pieces, of the whole store.
    pub doubles: Vec<String>,
}

impl Tables {
    /// Reads them. `round` as pushes name it.
    ///
    /// # Errors
    /// The bytes contradict the layout or each other: half of something is there.
    pub fn read(oracle: &Oracle, project: &str, cycle: &str, round: &str, key: &str) -> anyhow::Result<Self> {
        let rows: Vec<_> = oracle.outcomes(project, cycle, round)?.into_iter().filter(|row| row.key == key).collect();
        Ok(Self {
            revisions: oracle.contents(project, key)?,
            listed: rows.len(),
            visible: rows.into_iter().map(|row| (row.item, row.status)).collect(),
            epochs: oracle.epochs(project, key)?,
            doubles: oracle.doubles()?,
        })
    }
}

/// How a report may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Its content is a revision, and its runner was told so.
    Recorded,
    /// Its content is laid over, or kept beside, an earlier one, and its runner was told so.
    Revised,
    /// Another content counts, and its runner was told so.
    DifferingAndSaid,
    /// Refused, its runner was told so, and nothing of it is there.
    RefusedAndSaid,
    /// No process of it lived to a verdict, which a fault explains; whatever is there of it is whole.
    UnknownAndSaid,
}

/// What no history may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Crime {
    /// Told success, and its records are neither there nor said to differ.
    Suppressed,
    /// Something counts, or lies there, twice.
    Doubled,
    /// What a runner was told is recorded isn't there, or doesn't count although it is the newest.
    Lost,
    /// A part of a report is there.
    Half,
    /// Something is there that nobody offered, or that its runner was told is refused.
    Phantom,
    /// An end that no injected fault explains, or a verdict that never comes though the report was kept.
    Unexplained,
    /// Epochs that can't be.
    Epochs,
}

/// A finding, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which kind.
    pub crime: Crime,
    /// What was found.
    pub words: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.crime, self.words)
    }
}

/// Reports by how they ended; those of several histories add up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<Class, u64>);

impl Tally {
    /// Reports that ended so.
    pub fn of(&self, class: Class) -> u64 {
        self.0.get(&class).copied().unwrap_or(0)
    }

    /// All reports.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    fn count(&mut self, class: Class) {
        *self.0.entry(class).or_default() += 1;
    }
}

impl AddAssign<&Self> for Tally {
    fn add_assign(&mut self, other: &Self) {
        for (class, count) in &other.0 {
            *self.0.entry(*class).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    /// A history that is no finding has none suppressed: that zero is what the line is for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} reports: {} recorded, {} revised, {} differing and said, {} refused and said, {} unknown and said; \
             0 suppressed",
            self.total(),
            self.of(Class::Recorded),
            self.of(Class::Revised),
            self.of(Class::DifferingAndSaid),
            self.of(Class::RefusedAndSaid),
            self.of(Class::UnknownAndSaid)
        )
    }
}

/// Holds a finished history (everything kept was flushed) against the tables.
///
/// # Errors
/// All that is wrong with it.
pub fn check(history: &History, tables: &Tables) -> Result<Tally, Vec<Finding>> {
    let mut findings = rules::tables(history, tables);
    let mut tally = Tally::default();
    for report in 0..history.reports.len() {
        match rules::classify(history, tables, report) {
            Ok(class) => tally.count(class),
            Err(finding) => findings.push(finding),
        }
    }
    findings.extend(rules::newest(history, tables));
    if findings.is_empty() { Ok(tally) } else { Err(findings) }
}
