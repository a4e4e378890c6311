//! Repeats of clients that leave no marker: equal rows within a short time, and whole batches that stand there again.
//! Must not call any of it certain.

use std::collections::{BTreeMap, BTreeSet};

use domain::marker::Found;

use super::{Batch, Finding, Seen};
use crate::foreign::entry::{CaseId, CycleId, RowId};

/// A run of fewer cases than this that stands there again is no batch.
const BATCH_CASES_MIN: usize = 2;

/// Rows of a case without a marker, as groups of equal rows within the window, each oldest first. Any other row between
/// two of them says that the case was carried out again. Rows whose case the product doesn't say are each alone: equal
/// ones may be of different tests.
pub(super) fn repeats(rows: &[Seen], window_ms: u64) -> Vec<Vec<&Seen>> {
    let mut cycles: BTreeMap<&CycleId, Vec<&Seen>> = BTreeMap::new();
    for row in rows {
        cycles.entry(&row.cycle).or_default().push(row);
    }
    let mut groups: Vec<Vec<&Seen>> = Vec::new();
    for mut rows in cycles.into_values() {
        rows.sort_by(|a, b| a.age().cmp(&b.age()));
        let mut open = false;
        for row in rows {
            if row.marker != Found::Nothing {
                open = false;
                continue;
            }
            match groups.last_mut() {
                Some(group) if open && is_repeat(group[0], row, window_ms) => group.push(row),
                _ => groups.push(vec![row]),
            }
            open = true;
        }
    }
    groups
}

fn is_repeat(first: &Seen, row: &Seen, window_ms: u64) -> bool {
    let close = first.at_ms.zip(row.at_ms).is_some_and(|(first, again)| again.saturating_sub(first) <= window_ms);
    close && !first.case.is_unknown() && first.says_the_same_as(row)
}

/// Which likely repeats are parts of whole batches.
pub(super) struct Batches {
    pub(super) window_ms: u64,
    /// By the repeating row.
    of: BTreeMap<(CycleId, RowId), Batch>,
}

impl Batches {
    /// Looks for runs of rows that stand there again in the same order.
    pub(super) fn of<'a>(cases: impl Iterator<Item = &'a [Seen]> + Clone, window_ms: u64) -> Self {
        let mut place: BTreeMap<(&CycleId, &RowId), usize> = BTreeMap::new();
        let mut unmarked: Vec<&Seen> = cases.clone().flatten().filter(|row| row.marker == Found::Nothing).collect();
        unmarked.sort_by(|a, b| (&a.cycle, a.age()).cmp(&(&b.cycle, b.age())));
        for (at, row) in unmarked.iter().enumerate() {
            place.insert((&row.cycle, &row.row), at);
        }
        let at = |row: &Seen| place.get(&(&row.cycle, &row.row)).copied().unwrap_or_default();
        // Each repeat with the row before it that it repeats, by place.
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for rows in cases {
            for group in repeats(rows, window_ms) {
                pairs.extend(group.windows(2).map(|pair| (at(pair[1]), at(pair[0]))));
            }
        }
        pairs.sort_unstable();
        let mut of = BTreeMap::new();
        for run in pairs.chunk_by(|a, b| b.0 == a.0 + 1 && b.1 == a.1 + 1) {
            let repeated: Vec<&Seen> = run.iter().map(|(again, _)| unmarked[*again]).collect();
            let cases = repeated.iter().map(|row| &row.case).collect::<BTreeSet<_>>().len();
            let Some(again_at_ms) = repeated.first().and_then(|row| row.at_ms) else { continue };
            if cases >= BATCH_CASES_MIN {
                let batch = Batch { cases, again_at_ms };
                of.extend(repeated.into_iter().map(|row| ((row.cycle.clone(), row.row.clone()), batch)));
            }
        }
        Self { window_ms, of }
    }

    /// A group of equal rows as a finding, if it has more than one.
    pub(super) fn finding(&self, case: &CaseId, rows: &[&Seen]) -> Option<Finding> {
        let (first, last) = (rows.first()?, rows.last()?);
        if rows.len() < 2 {
            return None;
        }
        let batches: Option<Vec<Batch>> =
            rows[1..].iter().map(|row| self.of.get(&(row.cycle.clone(), row.row.clone())).copied()).collect();
        Some(Finding::LikelyDoubled {
            case: case.clone(),
            rows: rows.iter().map(|row| (*row).clone()).collect(),
            apart_ms: last.at_ms.unwrap_or_default().saturating_sub(first.at_ms.unwrap_or_default()),
            batch: batches.and_then(|batches| batches.first().copied()),
        })
    }
}
