//! What reading report files came to, counted as the files hold it. Must not know formats.

use serde::{Deserialize, Serialize};

use crate::outcome::Status;

/// Test elements as the files hold them, before repeats are folded into items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportSummary {
    /// Files read, those recognised as the same report twice among them.
    pub files: u64,
    /// Test elements: passed + failed + errored + skipped. Of a report found twice, one copy.
    pub outcomes: u64,
    /// Elements that passed.
    pub passed: u64,
    /// Elements that failed.
    pub failed: u64,
    /// Elements that errored.
    pub errored: u64,
    /// Elements that were skipped.
    pub skipped: u64,
    /// Elements that were folded into another element's item (attempts, phases).
    pub repeats: u64,
    /// Files that are damaged: what was readable before the damage is in the other figures.
    pub damaged: u64,
    /// Texts that were cut to their bound.
    pub cut: u64,
}

impl ReportSummary {
    /// Counts one more test element.
    pub fn add(&mut self, status: Status) {
        self.outcomes += 1;
        match status {
            Status::Passed => self.passed += 1,
            Status::Failed => self.failed += 1,
            Status::Errored => self.errored += 1,
            Status::Skipped => self.skipped += 1,
        }
    }
}
