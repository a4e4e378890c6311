//! A row as evidence: where it stands, all that it says, which of two is the older one, and whether they say the same.
//! Must not judge.

use std::cmp::Reverse;

use domain::Ordinal;
use domain::marker::{ContentTag, Found, Marker, WriteId};
use serde::{Serialize, Serializer};

use crate::foreign::entry::{CaseId, CycleId, Row, RowId, RowStatus};

/// A row that was read in a cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// Its cycle.
    pub cycle: CycleId,
    /// Its id.
    pub row: RowId,
    /// Its case.
    pub case: CaseId,
    /// Its verdict; in JSON our word for it, or the product's.
    #[serde(serialize_with = "status_word")]
    pub status: RowStatus,
    /// Whose write it is; in JSON the marker, `mangled` or null.
    #[serde(serialize_with = "marker_word")]
    pub marker: Found,
    /// When it was recorded as the product says, milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// All that people see of it beside its verdict.
    pub text: String,
}

/// A place in the order of rows that say the same: the newest attempt first, then the oldest row. It is made of what a
/// product never changes of a row, so that everybody who compares two rows finds the same one to be the first.
pub type Rank<'a> = (Reverse<Option<Ordinal>>, u64, Natural<'a>);

/// An id in the order in which numbers count: `R9` before `R10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Natural<'a> {
    head: &'a str,
    digits: usize,
    number: &'a str,
    whole: &'a str,
}

impl<'a> Natural<'a> {
    /// Of an id's text.
    pub fn of(whole: &'a str) -> Self {
        let head = whole.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = whole[head.len()..].trim_start_matches('0');
        Self { head, digits: number.len(), number, whole }
    }
}

impl Seen {
    /// A row of this cycle.
    pub fn of(cycle: &CycleId, row: Row) -> Self {
        let Row { id, case, status, marker, at_ms, text } = row;
        Self { cycle: cycle.clone(), row: id, case, status, marker, at_ms, text }
    }

    /// Its whole marker.
    pub fn whole(&self) -> Option<Marker> {
        match self.marker {
            Found::Whole(marker) => Some(marker),
            Found::Nothing | Found::Mangled => None,
        }
    }

    /// Which attempt wrote it, as far as its marker says.
    pub fn ordinal(&self) -> Option<Ordinal> {
        self.whole().and_then(|marker| marker.ordinal)
    }

    /// What one delivery repeats: write and content, whichever attempt it was.
    pub fn said(&self) -> Option<(WriteId, ContentTag)> {
        self.whole().map(|marker| (marker.write, marker.content))
    }

    /// When it was recorded, then by id: rows without a time come last.
    pub fn age(&self) -> (u64, Natural<'_>) {
        (self.at_ms.unwrap_or(u64::MAX), Natural::of(self.row.as_str()))
    }

    /// Which of several equal rows is kept: the one whose rank is the lowest.
    pub fn rank(&self) -> Rank<'_> {
        let (at_ms, id) = self.age();
        (Reverse(self.ordinal()), at_ms, id)
    }

    /// True if people see the same in both, in the same cycle, and both come from the same write, or from nobody's.
    pub fn says_the_same_as(&self, other: &Seen) -> bool {
        self.cycle == other.cycle
            && self.case == other.case
            && self.status == other.status
            && self.text == other.text
            && self.marker != Found::Mangled
            && other.marker != Found::Mangled
            && self.said() == other.said()
    }

    /// True if it was marked, in a product that deletes nothing, as a repeat of that one.
    pub fn is_a_marked_repeat_of(&self, kept: &Seen) -> bool {
        kept.cycle == self.cycle
            && self.whole().is_some_and(|marker| marker.write == repeat_of(&self.cycle, &kept.row, &self.row))
    }

    /// When it was recorded, RFC 3339 in UTC.
    pub fn at(&self) -> Option<String> {
        self.at_ms.map(utc)
    }
}

/// The write id of a row that is no outcome of its own any more: it says which row it repeats.
pub(in crate::foreign) fn repeat_of(cycle: &CycleId, kept: &RowId, row: &RowId) -> WriteId {
    let mut hasher = blake3::Hasher::new_derive_key("tallyonce 2026 repeat");
    for part in [cycle.as_str(), kept.as_str(), row.as_str()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    WriteId(u128::from_be_bytes(bytes))
}

/// Milliseconds since 1970 as RFC 3339.
pub(in crate::foreign) fn utc(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    format!("{time:.3}")
}

/// Our word for a verdict, or the product's.
pub(super) fn word(status: &RowStatus) -> &str {
    match status {
        RowStatus::Is(status) => status.word(),
        RowStatus::Open => "open",
        RowStatus::Other(word) => word,
    }
}

pub(super) fn marker_text(marker: Found) -> Option<String> {
    match marker {
        Found::Whole(marker) => Some(marker.to_string()),
        Found::Mangled => Some("mangled".to_owned()),
        Found::Nothing => None,
    }
}

fn status_word<S: Serializer>(status: &RowStatus, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(word(status))
}

fn marker_word<S: Serializer>(marker: &Found, serializer: S) -> Result<S::Ok, S::Error> {
    marker_text(*marker).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_like_numbers() {
        let mut ids = ["R10", "R9", "9", "10", "a1f", "R009", "b"];
        ids.sort_by_key(|id| Natural::of(id));
        assert_eq!(ids, ["9", "10", "R009", "R9", "R10", "a1f", "b"]);
    }
}
