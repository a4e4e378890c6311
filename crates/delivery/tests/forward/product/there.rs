//! What stands in the product, as a check counts it and as people change it. Must not know the calls.

use std::collections::BTreeSet;

use delivery::Clock as _;
use delivery::foreign::{CaseId, Closing, CycleId};
use domain::marker::Marker;

use super::{Product, Stored};

impl Product {
    /// Rows of all cycles: case and marker.
    pub(crate) fn recorded(&self) -> Vec<(CaseId, Marker)> {
        self.due();
        let state = self.state.lock().unwrap();
        state.rows.values().flatten().map(|row| (row.entry.case.clone(), row.entry.marker)).collect()
    }

    /// Rows of the containers that count.
    pub(crate) fn published(&self) -> (usize, Vec<(CaseId, Marker)>) {
        self.due();
        let state = self.state.lock().unwrap();
        let complete: Vec<&CycleId> =
            state.closed.iter().filter(|(_, why)| **why == Closing::Complete).map(|(cycle, _)| cycle).collect();
        let rows = complete.iter().filter_map(|cycle| state.rows.get(*cycle)).flatten();
        (complete.len(), rows.map(|row| (row.entry.case.clone(), row.entry.marker)).collect())
    }

    /// Time goes by.
    pub(crate) async fn takes(&self, ms: u64) {
        if ms > 0 {
            self.world.sleep(ms).await;
        }
    }

    pub(crate) fn cycles(&self) -> usize {
        self.state.lock().unwrap().cycles.len()
    }

    pub(crate) fn forget_rows(&self) {
        self.state.lock().unwrap().rows.clear();
    }

    /// Lets one request go that is held.
    pub(crate) fn release(&self) {
        self.gate.add_permits(1);
    }

    /// Somebody deletes the rows of a case; gives them.
    pub(crate) fn take_away(&self, case: &str) -> Vec<(CycleId, Stored)> {
        let mut gone = Vec::new();
        for (cycle, rows) in &mut self.state.lock().unwrap().rows {
            let (taken, kept) = std::mem::take(rows).into_iter().partition(|row| row.entry.case.as_str() == case);
            *rows = kept;
            gone.extend(taken.into_iter().map(|row: Stored| (cycle.clone(), row)));
        }
        gone
    }

    /// Rows that come from elsewhere: a backup, a copy, another writer.
    pub(crate) fn put(&self, rows: impl IntoIterator<Item = (CycleId, Stored)>) {
        let mut state = self.state.lock().unwrap();
        for (cycle, row) in rows {
            state.next += 1;
            let id = state.next;
            state.rows.entry(cycle).or_default().push(Stored { id, ..row });
        }
    }

    /// Every row, with its cycle.
    pub(crate) fn rows_there(&self) -> Vec<(CycleId, Stored)> {
        self.due();
        let state = self.state.lock().unwrap();
        state.rows.iter().flat_map(|(cycle, rows)| rows.iter().map(|row| (cycle.clone(), row.clone()))).collect()
    }

    /// Makes its lists forget the duplicates.
    pub(crate) fn repair(&self) {
        for rows in self.state.lock().unwrap().rows.values_mut() {
            let mut seen = BTreeSet::new();
            rows.retain(|row| seen.insert((row.entry.marker, row.mangled)));
        }
    }
}
