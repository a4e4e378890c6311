//! Items that are known by their order only: counted by file, for one warning each.
//! Must not know when an entry is such an item; `fold` says so.

use domain::Status;

use crate::collect::Entry;
use crate::error::Warning;

/// Items of one file that are known by their order only.
#[derive(Debug, Default)]
pub(crate) struct Weak {
    count: u64,
    /// The first in the file: its number there, its line and its name.
    first: Option<(u32, u64, String)>,
    mixed: bool,
}

impl Weak {
    /// One more, in any order.
    pub(super) fn see(&mut self, seq: u32, entry: &Entry, earlier: Status) {
        self.count += 1;
        self.mixed |= earlier.is_bad() != entry.outcome.status.is_bad();
        if self.first.as_ref().is_none_or(|(first, ..)| seq < *first) {
            self.first = Some((seq, entry.place.line, entry.outcome.item.to_string()));
        }
    }

    pub(super) fn warning(self, file: &str) -> Option<Warning> {
        let (_, line, item) = self.first?;
        let n = self.count;
        let mixed =
            if self.mixed { "; some of one name went well and others not, without a mark of a rerun" } else { "" };
        let tests = if n == 1 { "1 test bears".to_owned() } else { format!("{n} tests bear") };
        let text = format!(
            "{tests} the name of an earlier one and got a number, which holds only while their order does (first: {item}){mixed}"
        );
        Some(Warning { file: file.to_owned(), line: Some(line), text })
    }
}
