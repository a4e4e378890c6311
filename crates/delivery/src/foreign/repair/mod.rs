//! Repair: takes away what an audit found to stand there twice, or marks it as a repeat where nothing can be taken away.
//! Must not touch re-executions, what people edited, or the one row that stays.
//!
//! What is guaranteed when repairs run at once, or lists lag: of equal rows the one of the lowest [`super::audit::Rank`] is
//! never removed by anybody, since a row is only removed while an equal one of a lower rank is read. The order is made of
//! attempt, recorded time and id, which a product doesn't change. People who delete rows by hand at the same moment are
//! not covered: that is why every row is kept in a record before it is removed.
//!
//! Read `plan` first (a pure function), then `apply`.

mod apply;
mod plan;

use domain::Status;
use domain::marker::Marker;
use serde::Serialize;

use super::audit::{CycleSeen, Finding, Seen};
use super::entry::{CaseId, RowId};

pub use apply::{Applied, Becoming, Done, Halted, Removed, apply};
pub use plan::plan;

/// What may be mended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RepairOptions {
    /// Also rows that are only likely to be repeats.
    pub likely: bool,
}

/// How sure it is that a row is a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sure {
    /// It carries the marker of the one that stays.
    Certain,
    /// It says the same, and carries no marker.
    Likely,
}

/// How a row is mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum How {
    /// It is deleted.
    Delete,
    /// It keeps its verdict, and is marked as a repeat: its text says so, and its marker counts for nothing any more.
    MarkAsRepeat {
        /// The verdict that it keeps.
        status: Status,
        /// What people will read there.
        message: String,
        /// Its new marker.
        marker: Marker,
    },
}

/// One row that is to be mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mend {
    /// How sure it is.
    pub sure: Sure,
    /// The row that stays.
    pub kept: Seen,
    /// The row that does not.
    pub row: Seen,
    /// How.
    #[serde(flatten)]
    pub how: How,
}

/// One row that stands there twice and can't be mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotPossible {
    /// How sure it is that it is a repeat.
    pub sure: Sure,
    /// The row that it repeats.
    pub of: RowId,
    /// The row.
    pub row: Seen,
    /// Why, in words.
    pub why: String,
}

/// What repeats, and no repair touches: whole cycles, and outcomes that nobody can list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ByHand {
    /// How sure it is.
    pub sure: Sure,
    /// What it is, in words.
    pub what: String,
    /// The cycles that it is about.
    pub cycles: Vec<CycleSeen>,
}

/// What a repair would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Rows to mend, by case.
    pub mends: Vec<Mend>,
    /// Rows that stay though they repeat another one.
    pub not_possible: Vec<NotPossible>,
    /// Cases with likely repeats that are left alone unless they are asked for.
    pub only_likely: Vec<CaseId>,
    /// What is left to a person.
    pub by_hand: Vec<ByHand>,
}

impl Plan {
    /// True if there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.mends.is_empty()
    }

    fn by_hand(&mut self, sure: Sure, finding: &Finding, cycles: Vec<CycleSeen>) {
        self.by_hand.push(ByHand { sure, what: finding.evidence(), cycles });
    }
}
