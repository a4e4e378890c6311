//! Audit: what stands in a cycle more than once, what is missing there, and what nobody knows there, with the evidence.
//! Repeats of one delivery are told from real re-executions (design, section 9). Must not write anything there.
//!
//! Read [`Finding`] first, then `judge` (the pure core), then [`Audit::of`] (what is read for it).

mod judge;
mod ledger;
mod likely;
mod line;
mod seen;

use domain::PushKey;
use domain::intent::{Intent, IntentId};
use domain::marker::Marker;
use serde::Serialize;
use thiserror::Error;

use super::adapter::Adapter;
use super::entry::{CaseId, CycleFound, CycleId, CycleWanted, Row};
use super::facts::VerdictRule;
use super::patience::{GaveUp, Patience};

pub use judge::judge;
pub use line::Line;
pub use seen::{Natural, Rank, Seen};

pub(in crate::foreign) use seen::{repeat_of, utc};

/// Rows of other clients that are so close in time may be a repeat, in milliseconds.
pub const WINDOW_MS: u64 = 600_000;

/// How rows are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditOptions {
    /// How far apart equal rows without a marker may be and still be taken for a repeat, in milliseconds.
    pub window_ms: u64,
    /// What a second write for a case does there: where it replaces, an older outcome isn't missed.
    pub verdict: VerdictRule,
}

impl AuditOptions {
    /// The usual window.
    pub fn new(verdict: VerdictRule) -> Self {
        Self { window_ms: WINDOW_MS, verdict }
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
            Finding::Missing { .. } => "missing",
            Finding::Orphan { .. } => "orphan",
            Finding::MarkerMangled { .. } => "marker-mangled",
        }
    }

    /// True if counts over the cycle may be wrong because of it.
    pub fn is_wrong(&self) -> bool {
        !matches!(self, Finding::ReExecuted { .. })
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
}

impl Audit {
    /// Reads the cycle and judges it. With the intents of the round, also what is missing and what nobody knows.
    ///
    /// If the configuration names a cycle, that one is read, and those that carry the round's tag beside it, and those that
    /// the intents were written into.
    ///
    /// # Errors
    /// Something can't be read; there is no cycle.
    pub async fn of(
        adapter: &dyn Adapter,
        wanted: &CycleWanted,
        ledger: Option<&[Intent]>,
        options: AuditOptions,
        patience: &mut Patience<'_>,
    ) -> Result<Audit, AuditError> {
        let mut found: Vec<(CycleFound, FoundBy)> = Vec::new();
        if wanted.given.is_some() {
            let given = patience.reading(|| adapter.find_cycles(wanted)).await?;
            found.extend(given.into_iter().map(|cycle| (cycle, FoundBy::Configuration)));
        }
        let tag_alone = CycleWanted { given: None, ..wanted.clone() };
        for cycle in patience.reading(|| adapter.find_cycles(&tag_alone)).await? {
            match found.iter_mut().find(|(known, _)| known.id == cycle.id) {
                Some((_, by)) => *by = FoundBy::Tag,
                None => found.push((cycle, FoundBy::Tag)),
            }
        }
        for id in ledger.into_iter().flatten().filter_map(|intent| intent.cycle_there.as_deref()).map(CycleId::new) {
            if found.iter().any(|(known, _)| known.id == id) {
                continue;
            }
            let there = CycleWanted { given: Some(id), ..wanted.clone() };
            match patience.reading(|| adapter.find_cycles(&there)).await {
                Ok(cycles) => found.extend(cycles.into_iter().map(|cycle| (cycle, FoundBy::Ledger))),
                // It is not there any more, and all that is confirmed of it is missing.
                Err(GaveUp::Refused(_)) => {}
                Err(gave_up) => return Err(gave_up.into()),
            }
        }
        if found.is_empty() {
            return Err(AuditError::NoCycle { name: wanted.name.clone(), tag: wanted.tag() });
        }
        let mut cycles = Vec::with_capacity(found.len());
        for (cycle, by) in found {
            let rows = patience.reading(|| adapter.rows(&cycle.id, &[])).await?;
            cycles.push(CycleRows { cycle, by, rows });
        }
        judge(cycles, ledger, options)
    }

    /// True if nothing is wrong: re-executions are none of it.
    pub fn is_clean(&self) -> bool {
        !self.findings.iter().any(Finding::is_wrong)
    }
}
