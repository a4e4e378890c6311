//! What is there against what is to be there: a pure function, the same for every product and every strategy that reads.
//! Must not call anybody.

use std::collections::BTreeMap;

use domain::intent::Flag;
use domain::marker::{ContentTag, Found, Marker};
use domain::{Ordinal, Status};

use crate::foreign::audit::repeat_of;
use crate::foreign::entry::{CaseId, CycleId, Entry, Row, RowStatus};
use crate::foreign::facts::VerdictRule;

/// What is to be done for one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It is there as it should be.
    Nothing,
    /// It is to be written.
    Write,
    /// It must not be: a newer attempt is there, or nobody can tell whether it is.
    Leave(Flag),
    /// It was refused, and isn't missed.
    Refused,
    /// It was there, or taken, before the push came again for something else: a person may have taken it away.
    Missed,
}

/// The needs of a batch, and what people have to know of what was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// One for each entry, in order.
    pub of: Vec<Need>,
    /// What was seen.
    pub flags: Vec<Flag>,
    /// When the oldest of those that are there was recorded as the product says, milliseconds since 1970.
    pub oldest_ms: Option<u64>,
}

impl Needs {
    /// Places of the entries that are to be written.
    pub fn to_write(&self) -> Vec<usize> {
        let places = self.of.iter().enumerate().filter(|(_, need)| **need == Need::Write);
        places.map(|(at, _)| at).collect()
    }

    /// True if nothing is to be written, and nothing is doubtful.
    pub fn are_met(&self) -> bool {
        let met = |need| matches!(need, Need::Nothing | Need::Refused | Need::Missed | Need::Leave(Flag::Stale));
        self.of.iter().copied().all(met)
    }

    /// True if nobody can tell of some entry whether it is there.
    pub fn are_doubtful(&self) -> bool {
        self.of.iter().any(|need| matches!(need, Need::Leave(flag) if *flag != Flag::Stale))
    }

    /// Where the product tells a repeat by its id, a marker that was changed is no reason to send nothing.
    pub(super) fn trust_ids(&mut self) {
        for need in self.of.iter_mut().filter(|need| **need == Need::Leave(Flag::MarkerMangled)) {
            *need = Need::Write;
        }
    }

    /// True if some entry is there.
    pub fn show_any(&self) -> bool {
        self.of.contains(&Need::Nothing)
    }

    /// True if some entry is there, and another one is missing.
    pub fn show_a_part(&self) -> bool {
        self.show_any() && self.of.contains(&Need::Write)
    }
}

/// What one reading showed, by case. Places without a verdict are left out.
#[derive(Debug, Clone, Default)]
pub(super) struct Picture(BTreeMap<CaseId, Vec<Row>>);

impl Picture {
    pub(super) fn of(rows: impl IntoIterator<Item = Row>) -> Self {
        let mut by_case: BTreeMap<CaseId, Vec<Row>> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| row.status != RowStatus::Open) {
            by_case.entry(row.case.clone()).or_default().push(row);
        }
        Self(by_case)
    }

    pub(super) fn rows(&self, case: &CaseId) -> &[Row] {
        self.0.get(case).map_or(&[][..], Vec::as_slice)
    }

    /// Without rows that a repair marked as repeats of others that are there: they are no outcomes any more.
    pub(super) fn without_repeats(mut self, cycle: &CycleId) -> Self {
        for rows in self.0.values_mut().filter(|rows| rows.len() > 1) {
            let repeats: Vec<bool> = rows.iter().map(|row| is_repeat(cycle, row, rows)).collect();
            let mut repeats = repeats.into_iter();
            rows.retain(|_| repeats.next() == Some(false));
        }
        self
    }

    /// True if a row of ours is there that nobody knows, and none that a repair has marked.
    pub(super) fn has_orphans(&self, cycle: &CycleId, knows: impl Fn(Marker) -> bool) -> bool {
        let strange = |row: &Row| whole(row).is_some_and(|marker| !knows(marker));
        self.0.values().any(|rows| rows.iter().any(|row| strange(row) && !is_repeat(cycle, row, rows)))
    }

    /// Markers of ours that came back whole.
    pub(super) fn markers(&self) -> impl Iterator<Item = Marker> + '_ {
        self.0.values().flatten().filter_map(whole)
    }

    pub(super) fn needs(&self, entries: &[Entry], verdict: VerdictRule) -> Needs {
        let mut needs = Needs::default();
        for entry in entries {
            let need = need(entry, self.rows(&entry.case), verdict, &mut needs);
            needs.of.push(need);
        }
        needs.flags.sort_unstable();
        needs.flags.dedup();
        needs
    }
}

/// The marker of a row, if it came back whole.
pub(super) fn whole(row: &Row) -> Option<Marker> {
    match row.marker {
        Found::Whole(marker) => Some(marker),
        Found::Nothing | Found::Mangled => None,
    }
}

/// True if a repair marked it as the repeat of a row that is there: such a marker names both, and no attempt.
fn is_repeat(cycle: &CycleId, row: &Row, rows: &[Row]) -> bool {
    whole(row).filter(|marker| marker.ordinal.is_none()).is_some_and(|marker| {
        rows.iter().any(|kept| kept.id != row.id && marker.write == repeat_of(cycle, &kept.id, &row.id))
    })
}

/// Holds entries against all rows of their cases.
///
/// A row of the same write with the same content is the entry: by whatever attempt, a repeat of equal outcomes is no other
/// outcome. Of a write's rows the newest attempt counts, and, where attempts have no numbers, the newest row.
pub fn needs(entries: &[Entry], rows: &[Row], verdict: VerdictRule) -> Needs {
    Picture::of(rows.iter().cloned()).needs(entries, verdict)
}

fn need(entry: &Entry, rows: &[Row], verdict: VerdictRule, seen: &mut Needs) -> Need {
    let mut own: Vec<&Row> = rows.iter().filter(|row| row.is_of(entry.marker.write)).collect();
    if verdict == VerdictRule::Replaces && rows.len() > 1 && own.len() < rows.len() {
        seen.flags.push(Flag::RowsAmbiguous);
    }
    // A marker that was changed may be ours: it may be there twice already.
    if rows.iter().any(|row| row.marker == Found::Mangled) {
        seen.flags.push(Flag::MarkerMangled);
    }
    // By attempt, then by age; rows without a time stay as the product listed them.
    own.sort_by_key(|row| (attempt(row), row.at_ms));
    // Whichever attempt says it: an outcome that comes back after another one has that one between.
    if own.windows(2).any(|pair| content(pair[0]) == content(pair[1])) {
        seen.flags.push(Flag::DuplicateDetected);
    }
    let newest = own.last().copied();
    if verdict == VerdictRule::Appends && newest.is_some_and(|newest| own.iter().any(|row| overtakes(row, newest))) {
        seen.flags.push(Flag::Overtaken);
    }
    match newest.and_then(|row| Some((row, whole(row)?))) {
        Some((row, marker)) if marker.content == entry.marker.content => {
            seen.oldest_ms = seen.oldest_ms.into_iter().chain(row.at_ms).min();
            // Where verdict and marker are two writes, an older one can change the verdict under a newer marker.
            if verdict != VerdictRule::Appends && contradicts(&row.status, entry.status) {
                seen.flags.push(Flag::Overtaken);
            }
            Need::Nothing
        }
        // Which of a numbered attempt and one without a number is the newer, nobody can tell.
        Some((_, marker)) if marker.ordinal > entry.marker.ordinal => {
            let flag = if entry.marker.ordinal.is_some() { Flag::Stale } else { Flag::Overtaken };
            seen.flags.push(flag);
            Need::Leave(flag)
        }
        // Sending again could double it.
        _ if rows.iter().any(|row| row.marker == Found::Mangled && !is_older(row, newest)) => {
            Need::Leave(Flag::MarkerMangled)
        }
        _ => Need::Write,
    }
}

/// True if a row surely doesn't say what was written. Products know fewer verdicts than we do, so only that counts.
fn contradicts(shown: &RowStatus, said: Status) -> bool {
    let RowStatus::Is(shown) = *shown else { return false };
    let is_bad = |status| matches!(status, Status::Failed | Status::Errored);
    (shown == Status::Passed && is_bad(said)) || (is_bad(shown) && said == Status::Passed)
}

fn content(row: &Row) -> Option<ContentTag> {
    whole(row).map(|marker| marker.content)
}

fn attempt(row: &Row) -> Option<Ordinal> {
    whole(row).and_then(|marker| marker.ordinal)
}

/// True if a row is surely older than another.
fn is_older(row: &Row, than: Option<&Row>) -> bool {
    let times = row.at_ms.zip(than.and_then(|than| than.at_ms));
    times.is_some_and(|(row, than)| row < than)
}

/// True if the row of an older attempt came after the newest attempt's, and says something else: a product that shows the
/// newest row shows that one.
fn overtakes(row: &Row, newest: &Row) -> bool {
    let differs = content(row) != content(newest);
    differs && attempt(row) < attempt(newest) && is_older(newest, Some(row))
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
        under(VerdictRule::Appends, entry, rows)
    }

    fn under(verdict: VerdictRule, entry: &Entry, rows: &[Row]) -> (Need, Vec<Flag>) {
        let needs = needs(std::slice::from_ref(entry), rows, verdict);
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
        assert_eq!(one(&passed, std::slice::from_ref(&mangled)).0, Need::Leave(Flag::MarkerMangled));
        let beside = [twice[0].clone(), mangled];
        assert_eq!(one(&passed, &beside), (Need::Nothing, vec![Flag::MarkerMangled]), "it may be there twice");
        let needs = needs(&[passed], &twice, VerdictRule::Appends);
        assert!(needs.are_met() && !needs.are_doubtful());
        assert_eq!(needs.oldest_ms, Some(9), "the one that counts");
    }

    #[test]
    fn a_row_that_a_repair_has_marked_is_no_orphan_and_stands_beside_nothing() {
        let (cycle, passed) = (CycleId::new("R1"), entry(Status::Passed, Some(1)));
        let kept = row("a", Status::Passed, Found::Whole(passed.marker), 1);
        let repeat = |of: &str| Marker {
            write: repeat_of(&cycle, &RowId::new(of), &RowId::new("b")),
            ordinal: None,
            ..passed.marker
        };
        for (of, orphan) in [("a", false), ("gone", true)] {
            let marked = row("b", Status::Passed, Found::Whole(repeat(of)), 2);
            let picture = Picture::of([kept.clone(), marked]);
            assert_eq!(picture.has_orphans(&cycle, |marker| marker == passed.marker), orphan, "{of}");
            assert_eq!(picture.without_repeats(&cycle).rows(&passed.case).len(), if orphan { 2 } else { 1 });
        }
        let strange = Picture::of([row("b", Status::Passed, Found::Whole(marker(2, Status::Passed, None)), 2)]);
        assert!(strange.has_orphans(&cycle, |_| false) && !strange.has_orphans(&cycle, |_| true));
    }

    #[test]
    fn where_one_row_is_to_count_others_beside_it_are_said() {
        let passed = entry(Status::Passed, None);
        let own = row("a", Status::Passed, Found::Whole(passed.marker), 1);
        let person = |id| row(id, Status::Passed, Found::Nothing, 1);
        let ambiguous = vec![Flag::RowsAmbiguous];
        for (rows, replaced) in [
            (vec![person("b")], (Need::Write, vec![])),
            (vec![person("b"), person("c")], (Need::Write, ambiguous.clone())),
            (vec![own.clone(), person("b")], (Need::Nothing, ambiguous)),
            (vec![own.clone()], (Need::Nothing, vec![])),
            (vec![own.clone(), own], (Need::Nothing, vec![Flag::DuplicateDetected])),
        ] {
            assert_eq!(under(VerdictRule::Replaces, &passed, &rows), replaced, "{rows:?}");
            let appended = under(VerdictRule::Appends, &passed, &rows).1;
            assert!(!appended.contains(&Flag::RowsAmbiguous), "a history is no ambiguity");
        }
    }
}
