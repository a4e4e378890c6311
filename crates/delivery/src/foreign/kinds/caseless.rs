//! What adapters share whose products need no cases: the item is its own case, and says so beside the marker where a
//! listing doesn't tell. Must not know any of these products.

use std::collections::BTreeSet;

use domain::marker::{Found, Marker};
use domain::{DurationUs, Status};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use crate::classify::Answer;
use crate::foreign::entry::{Case, CaseId, CaseWanted, Entry, Row, RowStatus};
use crate::foreign::trouble::{Trouble, json};

/// What stays as it is in a segment of a path and in a value of a query (RFC 3986, unreserved).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as a segment of a path or a value of a query.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// The item as its own case, unless the mapping file names one: `item` and 32 hexadecimal digits, the same for ever.
pub(super) fn itself(wanted: &CaseWanted<'_>) -> Case {
    let id = wanted.mapped.cloned().unwrap_or_else(|| CaseId::new(format!("item{}", wanted.item.hash())));
    Case { id, title: wanted.item.to_string() }
}

/// The beginning of a text: at most so many characters.
pub(super) fn shortened(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(end, _)| &text[..end])
}

/// A name that holds the tag, whole, at its end.
pub(super) fn tagged(name: &str, tag: &str, chars_max: usize) -> String {
    let room = chars_max.saturating_sub(tag.chars().count() + 1);
    format!("{} {tag}", shortened(name, room).trim_end())
}

/// A comment for people whose last line is the case and the marker; the message is cut first.
pub(super) fn comment(entry: &Entry, chars_max: usize) -> String {
    let tail = format!("{} {}", entry.case, entry.marker);
    let room = chars_max.saturating_sub(tail.chars().count() + 2);
    match entry.message.as_deref().map(|message| shortened(message.trim_end(), room)) {
        Some(message) if !message.is_empty() => format!("{message}\n\n{tail}"),
        _ => tail,
    }
}

/// What a comment of ours says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// The case, if its line is whole.
    pub(super) case: Option<CaseId>,
    /// The marker.
    pub(super) marker: Found,
    /// The rest.
    pub(super) text: String,
}

/// What a line ends with in texts that a product keeps as HTML.
const BREAKS: [&str; 5] = ["<br>", "<br/>", "<br />", "<p>", "</p>"];

/// Reads what [`comment`] wrote, whatever stands around it. The case is told even by a line whose marker was mangled.
pub(super) fn said(comment: &str) -> Said {
    // Some products keep texts as HTML.
    let comment = &BREAKS.iter().fold(comment.to_owned(), |text, tag| text.replace(tag, "\n"));
    let marker = Marker::find(comment);
    let ours = |line: &str| match marker {
        Found::Nothing => false,
        Found::Mangled => Marker::find(line) == Found::Mangled,
        Found::Whole(_) => matches!(Marker::find(line), Found::Whole(_)),
    };
    let line = comment.lines().rev().find(|line| ours(line));
    let case = line.and_then(|line| line.trim().rsplit_once(' ')).map(|(case, _)| CaseId::new(case.trim()));
    let others: Vec<&str> = comment.lines().filter(|other| !ours(other)).collect();
    Said { case, marker, text: others.join("\n").trim().to_owned() }
}

/// A status of ours for a word of the product's; `open` are the words for "nothing yet".
pub(super) fn row_status(word: &str, ours: impl Fn(Status) -> String, open: &[&str]) -> RowStatus {
    if open.iter().any(|open| word.eq_ignore_ascii_case(open)) {
        return RowStatus::Open;
    }
    let found = Status::ALL.into_iter().find(|status| ours(*status).eq_ignore_ascii_case(word));
    found.map_or_else(|| RowStatus::Other(word.to_owned()), RowStatus::Is)
}

/// The rows that [`crate::foreign::Adapter::rows`] gives: those with a verdict, of these cases. A row whose marker was
/// mangled may be of any case, and stays.
pub(super) fn of_cases(rows: Vec<Row>, cases: &[CaseId]) -> Vec<Row> {
    let cases: BTreeSet<&CaseId> = cases.iter().collect();
    let wanted = |row: &Row| cases.is_empty() || cases.contains(&row.case) || row.marker == Found::Mangled;
    rows.into_iter().filter(|row| row.status != RowStatus::Open && wanted(row)).collect()
}

/// The members of a list that comes in pages, each once: pages overlap or part when the list changes meanwhile.
#[derive(Debug)]
pub(super) struct Gathered<T> {
    members: Vec<T>,
    seen: BTreeSet<String>,
    shown: usize,
    said: Option<u64>,
}

impl<T> Gathered<T> {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { members: Vec::new(), seen: BTreeSet::new(), shown: 0, said: None }
    }

    /// How many were shown so far, repeated ones too.
    pub(super) fn shown(&self) -> usize {
        self.shown
    }

    /// Takes the next page; `said` is how many there are in all, `id` tells them apart.
    pub(super) fn add(&mut self, page: Vec<T>, said: u64, id: impl Fn(&T) -> String) {
        self.said.get_or_insert(said);
        self.shown += page.len();
        for member in page {
            if self.seen.insert(id(&member)) {
                self.members.push(member);
            }
        }
    }

    /// All of them.
    ///
    /// # Errors
    /// The list showed fewer than it said at its beginning, so it changed while it was read.
    pub(super) fn whole(self, what: &str) -> Result<Vec<T>, Trouble> {
        let (seen, said) = (self.members.len(), self.said.unwrap_or(0));
        if (seen as u64) < said {
            return Err(Trouble::Unknown(format!("{what} changed while they were read: {seen} of {said} were shown")));
        }
        Ok(self.members)
    }
}

/// The body of a success in the form that is expected.
pub(super) fn of_form<T: DeserializeOwned>(answer: &Answer) -> Result<T, Trouble> {
    serde_json::from_value(json(answer)?).map_err(|e| {
        Trouble::Unknown(format!("status {} from {} lacks what is needed: {e}", answer.status, answer.url))
    })
}

/// What was to be deleted and is not there is deleted.
pub(super) fn absent(done: Result<(), Trouble>) -> Result<(), Trouble> {
    match done {
        Err(Trouble::Gone(_)) => Ok(()),
        done => done,
    }
}

/// Milliseconds since 1970 as RFC 3339 in UTC.
pub(super) fn rfc3339(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

/// Milliseconds since 1970 of an RFC 3339 text.
pub(super) fn unix_ms(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<Timestamp>().ok()?.as_millisecond()).ok()
}

/// How long it took, in milliseconds; an outcome that took less than one took one.
pub(super) fn duration_ms(entry: &Entry) -> Option<u64> {
    entry.duration_us.map(|DurationUs(us)| us.div_ceil(1000))
}

/// When it began and ended, in milliseconds since 1970.
pub(super) fn span_ms(entry: &Entry) -> (u64, u64) {
    (entry.at_ms.saturating_sub(duration_ms(entry).unwrap_or(0)), entry.at_ms)
}

#[cfg(test)]
mod tests {
    use domain::marker::{ContentTag, WriteId};
    use domain::{ItemName, Ordinal};

    use super::*;

    fn entry(message: &str) -> Entry {
        let marker =
            Marker { write: WriteId(7), content: ContentTag::of(&[Status::Failed]), ordinal: Some(Ordinal(2)) };
        Entry {
            case: CaseId::new("item0f"),
            title: "adds".to_owned(),
            status: Status::Failed,
            duration_us: Some(DurationUs(1)),
            message: Some(message.to_owned()),
            at_ms: 1_790_000_000_000,
            items: vec![ItemName::new(None::<&str>, None, "adds")],
            marker,
        }
    }

    #[test]
    fn a_comment_says_its_case_and_its_marker_however_it_comes_back() {
        let entry = entry("expected 1\nwas 2");
        let sent = comment(&entry, 1000);
        for kept in [
            sent.clone(),
            sent.replace('\n', "\r\n"),
            format!("  {sent}\n"),
            format!("{sent}\nseen by Ann"),
            sent.replace('\n', "<br>"),
        ] {
            let said = said(&kept);
            assert_eq!((said.case, said.marker), (Some(entry.case.clone()), Found::Whole(entry.marker)), "{kept}");
            assert!(said.text.contains("expected 1") && !said.text.contains("tly"), "{}", said.text);
        }
        let cut = &sent[..sent.len() - 5];
        assert_eq!((said(cut).case, said(cut).marker), (Some(entry.case.clone()), Found::Mangled));
    }

    #[test]
    fn the_message_is_cut_and_never_the_marker() {
        let long = entry(&"é".repeat(5000));
        let sent = comment(&long, 200);
        assert_eq!(sent.chars().count(), 200);
        assert_eq!(said(&sent).marker, Found::Whole(long.marker));
        assert_eq!(tagged(&"é".repeat(300), "tlyx", 255).chars().count(), 255);
        assert!(tagged(&"é".repeat(300), "tlyx", 255).ends_with(" tlyx"));
    }

    #[test]
    fn times_come_back() {
        assert_eq!(rfc3339(1_790_000_000_001), "2026-09-21T14:13:20.001Z");
        assert_eq!(unix_ms("2026-09-21T14:13:20.001Z"), Some(1_790_000_000_001));
        assert_eq!(unix_ms("2026-09-21T16:13:20+02:00"), Some(1_790_000_000_000));
        assert_eq!(span_ms(&entry("")), (1_789_999_999_999, 1_790_000_000_000));
    }
}
