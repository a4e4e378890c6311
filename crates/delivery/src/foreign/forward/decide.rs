//! What is there against what is to be there: a pure function, the same for every product and every strategy that reads.
//! Must not call anybody.

use std::collections::BTreeMap;

use domain::intent::Flag;
use domain::marker::Found;

use crate::foreign::entry::{CaseId, Entry, Row, RowStatus};

/// What is to be done for one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It is there as it should be.
    Nothing,
    /// It is to be written.
    Write,
    /// It must not be: a newer attempt is there, or nobody can tell whether it is.
    Leave(Flag),
}

/// The needs of a batch, and what people have to know of what was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// One for each entry, in order.
    pub of: Vec<Need>,
    /// What was seen.
    pub flags: Vec<Flag>,
}

impl Needs {
    /// Places of the entries that are to be written.
    pub fn to_write(&self) -> Vec<usize> {
        self.places(|need| need == Need::Write)
    }

    /// True if nothing is to be written, and nothing is doubtful.
    pub fn are_met(&self) -> bool {
        self.of.iter().all(|need| matches!(need, Need::Nothing | Need::Leave(Flag::Stale)))
    }

    /// True if nobody can tell of some entry whether it is there.
    pub fn are_doubtful(&self) -> bool {
        self.of.iter().any(|need| matches!(need, Need::Leave(flag) if *flag != Flag::Stale))
    }

    fn places(&self, wanted: impl Fn(Need) -> bool) -> Vec<usize> {
        self.of.iter().enumerate().filter(|(_, need)| wanted(**need)).map(|(at, _)| at).collect()
    }
}

/// Holds entries against all rows of their cases.
///
/// A row of the same write with the same content is the entry: by whatever attempt, a repeat of equal outcomes is no other
/// outcome. Of a write's rows the newest attempt counts, and, where attempts have no numbers, the newest row.
pub fn needs(entries: &[Entry], rows: &[Row]) -> Needs {
    let mut by_case: BTreeMap<&CaseId, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.status != RowStatus::Open) {
        by_case.entry(&row.case).or_default().push(row);
    }
    let mut needs = Needs::default();
    for entry in entries {
        let rows = by_case.get(&entry.case).map_or(&[][..], Vec::as_slice);
        let need = need(entry, rows, &mut needs.flags);
        needs.of.push(need);
    }
    needs.flags.sort_unstable();
    needs.flags.dedup();
    needs
}

fn need(entry: &Entry, rows: &[&Row], flags: &mut Vec<Flag>) -> Need {
    let mut own: Vec<&Row> = rows.iter().filter(|row| row.is_of(entry.marker.write)).copied().collect();
    if own.is_empty() {
        // A marker that was changed may be ours: sending again could double it.
        let mangled = rows.iter().any(|row| row.marker == Found::Mangled);
        return if mangled { Need::Leave(Flag::MarkerMangled) } else { Need::Write };
    }
    // By attempt, then by age; rows without a time stay as the product listed them.
    own.sort_by_key(|row| (ordinal(row), row.at_ms));
    let doubled = own.windows(2).any(|pair| pair[0].marker == pair[1].marker);
    if doubled {
        flags.push(Flag::DuplicateDetected);
    }
    let newest = own.last().map(|row| row.marker);
    match newest {
        Some(Found::Whole(marker)) if marker.content == entry.marker.content => Need::Nothing,
        Some(Found::Whole(marker)) if marker.ordinal > entry.marker.ordinal => {
            flags.push(Flag::Stale);
            Need::Leave(Flag::Stale)
        }
        _ => Need::Write,
    }
}

fn ordinal(row: &Row) -> Option<domain::Ordinal> {
    match row.marker {
        Found::Whole(marker) => marker.ordinal,
        Found::Nothing | Found::Mangled => None,
    }
}

#[cfg(test)]
mod tests {
    use domain::marker::{ContentTag, Marker, WriteId};
    use domain::{Ordinal, Status};

    use super::*;
    use crate::foreign::entry::RowId;

    fn marker(case: u128, status: Status, ordinal: Option<u64>) -> Marker {
        Marker { write: WriteId(case), content: ContentTag::of(&[status]), ordinal: ordinal.map(Ordinal) }
    }

    fn entry(status: Status, ordinal: Option<u64>) -> Entry {
        Entry {
            case: CaseId::new("1"),
            title: "adds".to_owned(),
            status,
            duration_us: None,
            message: None,
            at_ms: 0,
            items: Vec::new(),
            marker: marker(1, status, ordinal),
        }
    }

    fn row(id: &str, status: Status, marker: Found, at_ms: u64) -> Row {
        Row {
            id: RowId::new(id),
            case: CaseId::new("1"),
            status: RowStatus::Is(status),
            marker,
            at_ms: Some(at_ms),
            text: String::new(),
        }
    }

    fn one(entry: &Entry, rows: &[Row]) -> (Need, Vec<Flag>) {
        let needs = needs(std::slice::from_ref(entry), rows);
        (needs.of[0], needs.flags)
    }

    #[test]
    fn an_absent_entry_is_written_and_a_present_one_is_not() {
        let passed = entry(Status::Passed, Some(1));
        assert_eq!(one(&passed, &[]), (Need::Write, vec![]));
        let there = row("a", Status::Passed, Found::Whole(passed.marker), 1);
        assert_eq!(one(&passed, std::slice::from_ref(&there)), (Need::Nothing, vec![]));
        // The same outcome of a later attempt is no other outcome.
        assert_eq!(one(&entry(Status::Passed, Some(2)), std::slice::from_ref(&there)).0, Need::Nothing);
        // Somebody else's outcome is none of ours; a place for one is no outcome.
        let other = row("b", Status::Passed, Found::Whole(marker(2, Status::Passed, None)), 1);
        let person = row("c", Status::Passed, Found::Nothing, 1);
        let open = Row { status: RowStatus::Open, ..there };
        assert_eq!(one(&passed, &[other, person, open]), (Need::Write, vec![]));
    }

    #[test]
    fn an_older_attempt_never_follows_a_newer_one() {
        let (old, new) = (entry(Status::Failed, Some(1)), entry(Status::Passed, Some(2)));
        let there = row("a", Status::Passed, Found::Whole(new.marker), 1);
        assert_eq!(one(&old, &[there]), (Need::Leave(Flag::Stale), vec![Flag::Stale]));
        let there = row("a", Status::Failed, Found::Whole(old.marker), 1);
        assert_eq!(one(&new, &[there]), (Need::Write, vec![]));
    }

    #[test]
    fn an_outcome_that_comes_back_is_written_again() {
        let rows = [
            row("a", Status::Failed, Found::Whole(marker(1, Status::Failed, Some(1))), 1),
            row("b", Status::Passed, Found::Whole(marker(1, Status::Passed, Some(2))), 2),
        ];
        assert_eq!(one(&entry(Status::Failed, Some(3)), &rows).0, Need::Write);
        assert_eq!(one(&entry(Status::Passed, Some(3)), &rows).0, Need::Nothing);
    }

    #[test]
    fn doubles_are_said_and_a_changed_marker_stops_everything() {
        let passed = entry(Status::Passed, None);
        let twice = [
            row("a", Status::Passed, Found::Whole(passed.marker), 1),
            row("b", Status::Passed, Found::Whole(passed.marker), 9),
        ];
        assert_eq!(one(&passed, &twice), (Need::Nothing, vec![Flag::DuplicateDetected]));
        let mangled = row("a", Status::Passed, Found::Mangled, 1);
        assert_eq!(one(&passed, &[mangled]).0, Need::Leave(Flag::MarkerMangled));
        let needs = needs(&[passed], &twice);
        assert!(needs.are_met() && !needs.are_doubtful());
    }
}
