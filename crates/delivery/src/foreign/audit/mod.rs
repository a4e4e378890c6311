//! Audit: what stands in a cycle more than once, what is missing there, and what nobody knows there, with the evidence.
//! Repeats of one delivery are told from real re-executions (design, section 9). Must not write anything there.
//!
//! Read [`Finding`] first, then `judge` (the pure core), then `read` (what is read for it).

mod counted;
mod judge;
mod ledger;
mod likely;
mod line;
mod namesakes;
mod read;
mod seen;

use domain::PushKey;
use domain::intent::IntentId;
use domain::marker::Marker;
use serde::Serialize;
use thiserror::Error;

use super::entry::{CaseId, CycleFound, CycleId, Row};
use super::facts::VerdictRule;
use super::patience::GaveUp;

pub use judge::judge;
pub use line::Line;
pub use seen::{Natural, Rank, Seen};

pub(in crate::foreign) use seen::{repeat_of, utc};

/// Rows of other clients that are so close in time may be a repeat, in milliseconds.
pub const WINDOW_MS: u64 = 600_000;

/// How rows are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditOptions {
    /// How far apart equal rows without a marker, or cycles of one name without a tag, may be and still be taken for a
    /// repeat, in milliseconds.
    pub window_ms: u64,
    /// What a second write for a case does there: where it replaces, an older outcome isn't missed.
    pub verdict: VerdictRule,
    /// True if nobody but this ledger's forwarder writes there for us: then what it doesn't know is wrong. Jobs that push
    /// side by side have a ledger each, and what one doesn't know may be another one's.
    pub sole: bool,
}

impl AuditOptions {
    /// The usual window, of the only ledger.
    pub fn new(verdict: VerdictRule) -> Self {
        Self { window_ms: WINDOW_MS, verdict, sole: true }
    }
}

/// How a cycle was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// It carries the tag of the round.
    Tag,
    /// The configuration names it.
    Configuration,
    /// An intent of the ledger was written into it: one of several containers of the round.
    Ledger,
    /// It has the name of one of the others, and no tag of ours.
    Name,
}

/// A cycle and all that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleRows {
    /// The cycle.
    pub cycle: CycleFound,
    /// How it was found.
    pub by: FoundBy,
    /// Its rows.
    pub rows: Vec<Row>,
    /// When it was made as the product says, milliseconds since 1970.
    pub made_ms: Option<u64>,
}

/// A cycle as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CycleSeen {
    /// Its id.
    pub cycle: CycleId,
    /// What people read.
    pub name: String,
    /// True if nothing can be written there any more.
    pub closed: bool,
    /// How many rows it holds.
    pub rows: usize,
    /// When it was made, or its first row recorded, milliseconds since 1970; where nothing tells, it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<u64>,
}

impl CycleSeen {
    /// When it was made or its first row recorded, RFC 3339 in UTC; empty where nothing tells.
    pub fn at(&self) -> String {
        self.at_ms.map(utc).unwrap_or_default()
    }
}

/// What several cycles share though only one should have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shared {
    /// The tag of the round.
    Tag,
    /// The name.
    Name,
}

/// A whole run of cases that stands there again in the same order: a batch that was sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// How many cases it has.
    pub cases: usize,
    /// When the first row of the repeat was recorded, milliseconds since 1970.
    pub again_at_ms: u64,
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// One delivery stands there more than once: the same write with the same content. Certain.
    Doubled {
        /// The case.
        case: CaseId,
        /// The rows, the one to keep first.
        rows: Vec<Seen>,
    },
    /// Other clients' rows of one case say the same within a short time. A re-execution with equal times and texts looks
    /// no different, so this is never certain.
    LikelyDoubled {
        /// The case.
        case: CaseId,
        /// The rows, oldest first.
        rows: Vec<Seen>,
        /// From the first to the last, in milliseconds.
        apart_ms: u64,
        /// The batch that they are a part of, if all of them are: then it is hard to explain otherwise.
        batch: Option<Batch>,
    },
    /// Several outcomes of one case that say different things, or come from different writes. Listed, and nothing wrong.
    ReExecuted {
        /// The case.
        case: CaseId,
        /// One row of each outcome, oldest first.
        rows: Vec<Seen>,
    },
    /// More than one cycle for what should be one.
    DuplicateCycles {
        /// What they share.
        shared: Shared,
        /// The cycles, oldest first.
        cycles: Vec<CycleSeen>,
    },
    /// Cycles of one name that were made within a short time, without a tag: a client that made one, heard nothing, and
    /// made another one. Two pipelines that name their cycles alike look no different, so this is never certain.
    LikelyDuplicateCycles {
        /// The cycles, oldest first.
        cycles: Vec<CycleSeen>,
        /// From the first to the last, in milliseconds.
        apart_ms: u64,
        /// Cases that have rows in more than one of them.
        cases_shared: usize,
        /// Those of them whose rows say the same in each.
        cases_equal: usize,
    },
    /// The product counts outcomes and lists none, and counts others than the ledger knows of.
    CountDiffers {
        /// The cycle.
        cycle: CycleId,
        /// How many outcomes of ours are confirmed there.
        confirmed: u64,
        /// How many more may be there or not.
        uncertain: u64,
        /// How many outcomes of ours it counts; null if what counts them is there in part, or holds something else too.
        counted: Option<u64>,
        /// How many outcomes it counts in all, whoever wrote them.
        total: u64,
    },
    /// The ledger has it confirmed, and it is not there.
    Missing {
        /// The case.
        case: CaseId,
        /// How people know it.
        title: String,
        /// What should be there.
        marker: Marker,
        /// Whose confirmation it is.
        intent: IntentId,
        /// The push.
        key: PushKey,
        /// When it was sent last, milliseconds since 1970.
        sent_ms: Option<u64>,
        /// A row of the case has a changed marker: it may be that one.
        mangled_there: bool,
    },
    /// A row with a marker of ours that no intent of the ledger knows.
    Orphan {
        /// The row.
        row: Seen,
        /// Other ledgers forward there too, so it may be known to one of those: listed, and nothing wrong.
        perhaps_anothers: bool,
    },
    /// A row whose marker was changed by the product or a person: nobody can tell which write it is.
    MarkerMangled {
        /// The row.
        row: Seen,
    },
}

impl Finding {
    /// The word in JSON and tables.
    pub fn word(&self) -> &'static str {
        match self {
            Finding::Doubled { .. } => "doubled",
            Finding::LikelyDoubled { .. } => "likely-doubled",
            Finding::ReExecuted { .. } => "re-executed",
            Finding::DuplicateCycles { .. } => "duplicate-cycles",
            Finding::LikelyDuplicateCycles { .. } => "likely-duplicate-cycles",
            Finding::CountDiffers { .. } => "count-differs",
            Finding::Missing { .. } => "missing",
            Finding::Orphan { .. } => "orphan",
            Finding::MarkerMangled { .. } => "marker-mangled",
        }
    }

    /// True if counts over the cycle may be wrong because of it.
    pub fn is_wrong(&self) -> bool {
        !matches!(self, Finding::ReExecuted { .. } | Finding::Orphan { perhaps_anothers: true, .. })
    }
}

/// How much was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Cycles that were read.
    pub cycles: usize,
    /// Cases with at least one row.
    pub cases: usize,
    /// Rows with a verdict.
    pub rows: usize,
    /// Rows beyond the first of each delivery.
    pub doubled_rows: usize,
    /// Rows beyond the first of each likely repeat.
    pub likely_doubled_rows: usize,
    /// Rows that a repair marked as repeats, in products that delete nothing.
    pub marked_repeats: usize,
    /// Cases with more than one outcome of their own.
    pub re_executed_cases: usize,
    /// Outcomes that are confirmed and not there.
    pub missing: usize,
    /// Rows that no intent knows.
    pub orphans: usize,
    /// Rows with a changed marker.
    pub mangled: usize,
}

/// Why there is no audit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuditError {
    /// The repository can't be read.
    #[error("{0}")]
    Unread(#[from] GaveUp),
    /// No cycle carries the round's tag, and none is known otherwise.
    #[error("there is no cycle {name:?} with the tag {tag} there")]
    NoCycle {
        /// The name that it would have.
        name: String,
        /// The tag.
        tag: String,
    },
    /// It was asked for by the product's own id, and is not there.
    #[error("there is no cycle {cycle} there: {why}")]
    NotThere {
        /// The id.
        cycle: CycleId,
        /// What the product says, in words.
        why: String,
    },
    /// The product only counts, and no ledger says how many there should be.
    #[error(
        "cycle {cycle} holds {total} outcomes; the product lists none, and nothing was pushed to it from here: there is nothing to hold the count against"
    )]
    NothingToCompare {
        /// The cycle.
        cycle: CycleId,
        /// How many it counts.
        total: u64,
    },
    /// An intent of the ledger can't be read.
    #[error("intent {intent} of the ledger can't be read: {why}")]
    Ledger {
        /// The intent.
        intent: IntentId,
        /// Why.
        why: String,
    },
}

/// What stands in a round's cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// What was read.
    pub cycles: Vec<CycleSeen>,
    /// How much was found.
    pub counts: Counts,
    /// What was found, by case; what is about whole cycles first.
    pub findings: Vec<Finding>,
    /// What this product lets nobody see, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// Cycles that the ledger knows of and that are not there any more: all that is confirmed of them is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<CycleId>,
}

impl Audit {
    /// True if nothing is wrong: re-executions are none of it, nor what another job's ledger may know.
    pub fn is_clean(&self) -> bool {
        !self.findings.iter().any(Finding::is_wrong)
    }
}
