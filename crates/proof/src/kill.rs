//! Where processes are killed on purpose, what must hold there, and a table of what was seen.
//! Must not know how a binary registers its points.

use std::collections::BTreeMap;
use std::fmt;

use crate::rng::Rng;
use crate::spawn::Finished;

/// The variable that arms a kill point in a binary built with `failpoints`.
pub const KILL_AT: &str = "TALLYONCE_KILL_AT";

/// Which process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// `serve`.
    Server,
    /// `push` and its kin.
    Client,
}

/// What the store must hold after a kill, before anybody delivers again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Nothing of the push.
    No,
    /// Nothing or all of it; never a part.
    NoOrAll,
    /// All of it.
    All,
}

/// A step of one write at which a process can die (`facts/idempotency.md`, 3.5b). Whatever the row says, the same
/// push delivered again must leave all of it, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrashPoint {
    /// The name that `TALLYONCE_KILL_AT` takes.
    pub name: &'static str,
    /// Who dies.
    pub victim: Victim,
    /// The step.
    pub at: &'static str,
    /// What must be true of the store then.
    pub written: Written,
}

/// The numbered crash points of one operation, in the order of its steps.
pub const CRASH_POINTS: [CrashPoint; 12] = [
    point("k0", Victim::Server, "before the head is parsed", Written::No),
    point("k1", Victim::Server, "the body is half read", Written::No),
    point("k2", Victim::Server, "the body is decoded and its digest checked, no transaction yet", Written::No),
    point("k3", Victim::Server, "in the transaction, the key row is inserted, nothing else", Written::No),
    point("k4", Victim::Server, "all rows are written, COMMIT is not sent", Written::No),
    point("k5", Victim::Server, "COMMIT is sent, its answer is not there", Written::NoOrAll),
    point("k6", Victim::Server, "COMMIT is applied, the answer is not written", Written::All),
    point("k7", Victim::Server, "half the answer is written", Written::All),
    point("k8", Victim::Client, "the answer is sent, the client has not read it", Written::All),
    point("k9", Victim::Client, "the answer is read, the outbox entry still there", Written::All),
    point("k10", Victim::Client, "the outbox entry is half written", Written::No),
    point("client:said", Victim::Client, "it is said what became of it, the outbox entry still there", Written::All),
];

const fn point(name: &'static str, victim: Victim, at: &'static str, written: Written) -> CrashPoint {
    CrashPoint { name, victim, at, written }
}

/// The variable that kills a process the `nth` time it passes a point.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KillPoint {
    /// The point's name.
    pub point: String,
    /// From 1.
    pub nth: u32,
}

impl KillPoint {
    /// The first time.
    pub fn first(point: &str) -> Self {
        Self { point: point.to_owned(), nth: 1 }
    }

    /// One of `points`, and one of its first `passes` times, by seed. `None` without points.
    pub fn random(seed: u64, points: &[&str], passes: u32) -> Option<Self> {
        let mut rng = Rng::new(seed);
        let point = points.get(rng.below(points.len() as u64) as usize)?;
        Some(Self { point: (*point).to_owned(), nth: rng.below(u64::from(passes)) as u32 + 1 })
    }

    /// The variable and its value.
    pub fn env(&self) -> (String, String) {
        (KILL_AT.to_owned(), self.to_string())
    }
}

impl fmt::Display for KillPoint {
    /// `point`, or `point:nth` from the second time on.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nth > 1 { write!(f, "{}:{}", self.point, self.nth) } else { f.write_str(&self.point) }
    }
}

/// The variable that kills a process at `point`, given as `name` or `name:nth`.
pub fn kill_at(point: &str) -> (String, String) {
    (KILL_AT.to_owned(), point.to_owned())
}

/// The variable that kills nowhere; for a restart.
pub fn kill_nowhere() -> (String, String) {
    kill_at("")
}

/// How a process ended, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// We killed it because its time was over.
    TimedOut,
}

impl From<&Finished> for End {
    fn from(finished: &Finished) -> Self {
        match (finished.timed_out, finished.code) {
            (true, _) => End::TimedOut,
            (false, Some(code)) => End::Exit(code),
            (false, None) => End::Signal(finished.signal.unwrap_or(0)),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exit(code) => write!(f, "exit {code}"),
            End::Signal(9) => f.write_str("killed"),
            End::Signal(signal) => write!(f, "signal {signal}"),
            End::TimedOut => f.write_str("time-out"),
        }
    }
}

/// Counts of (point, end, state afterwards). Printed as a table; histograms of split runs add up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram(BTreeMap<(String, End, String), u64>);

impl Histogram {
    /// Nothing counted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one case: where it was killed (or which fault it met), how it ended, what was found afterwards.
    pub fn add(&mut self, point: &str, end: impl Into<End>, after: &str) {
        *self.0.entry((point.to_owned(), end.into(), after.to_owned())).or_default() += 1;
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Self) {
        for (case, count) in &other.0 {
            *self.0.entry(case.clone()).or_default() += count;
        }
    }

    /// All cases.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The cases of one point, whatever became of them.
    pub fn of(&self, point: &str) -> u64 {
        self.0.iter().filter(|((at, ..), _)| at == point).map(|(_, count)| count).sum()
    }

    /// The cases that ended so.
    pub fn ended(&self, end: End) -> u64 {
        self.0.iter().filter(|((_, at, _), _)| *at == end).map(|(_, count)| count).sum()
    }

    /// How often this state was found afterwards.
    pub fn after(&self, state: &str) -> u64 {
        self.0.iter().filter(|((.., after), _)| after == state).map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wide = self.0.keys().map(|(point, ..)| point.chars().count()).max().unwrap_or(0).max(5);
        writeln!(f, "{:<wide$}  {:<10}  {:>6}  after", "point", "end", "cases")?;
        for ((point, end, after), count) in &self.0 {
            writeln!(f, "{point:<wide$}  {:<10}  {count:>6}  {after}", end.to_string())?;
        }
        write!(f, "{:<wide$}  {:<10}  {:>6}", "all", "", self.total())
    }
}
