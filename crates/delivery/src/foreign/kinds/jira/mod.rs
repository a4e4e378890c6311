//! What the products that live in Jira have in common: cases, listings, words for statuses, texts that hold a marker,
//! and times. Must not know which of them asks, nor any address.

mod cases;
mod listing;

use std::collections::BTreeSet;

use domain::marker::{ContentTag, Found};
use domain::{Cause, Status};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::OpenError;
use crate::classify::Answer;
use crate::foreign::caller::Caller;
use crate::foreign::entry::{CaseId, Entry, Row, RowStatus};
use crate::foreign::settings::TargetSettings;
use crate::foreign::trouble::{Trouble, in_words};
pub(super) use cases::{CaseRules, Cases, Titles};
pub(super) use listing::{From, Page, whole};

/// Most characters of a summary or a name (Jira's own limit; Zephyr's pages state the same).
pub(super) const TITLE_CHARS_MAX: usize = 255;

/// With what the settings give: name and password, or a personal token alone.
pub(super) fn authorised(caller: Caller, settings: &TargetSettings) -> Result<Caller, OpenError> {
    let token = settings.token.as_ref().ok_or(OpenError::Credential("token"))?;
    Ok(match &settings.user {
        Some(user) => caller.basic(user, token)?,
        None => caller.bearer(token)?,
    })
}

/// What Jira and what is built into it say of an error: `errorMessages`, and `errors` by field.
pub(super) fn words(answer: &Answer) -> Option<String> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let general = body.get("errorMessages").and_then(Value::as_array).into_iter().flatten();
    let general = general.filter_map(Value::as_str).map(str::to_owned);
    let fields = body.get("errors").and_then(Value::as_object).into_iter().flatten();
    let fields = fields.filter_map(|(field, text)| Some(format!("{field}: {}", text.as_str()?)));
    let all: Vec<String> = general.chain(fields).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// A member of an error that is a text.
pub(super) fn member(answer: &Answer, name: &str) -> Option<String> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    body.get(name)?.as_str().map(str::to_owned)
}

/// The JSON of a success in the form that is expected.
pub(super) fn parsed<T: DeserializeOwned>(answer: &Answer) -> Result<T, Trouble> {
    serde_json::from_slice(&answer.body).map_err(|_| Trouble::Unknown(in_words(answer)))
}

/// A text as a value in a query or a segment of a path.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// A text as JQL (and Zephyr's search) quotes it.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The first so many characters.
pub(super) fn cut(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(at, _)| &text[..at])
}

/// What people see of a text that holds a marker.
pub(super) fn without_marker(text: &str, marker: &Found) -> String {
    match marker {
        Found::Whole(marker) => text.replace(&marker.to_string(), "").trim().to_owned(),
        Found::Nothing | Found::Mangled => text.trim().to_owned(),
    }
}

/// A time as all of them take it: ISO 8601 in UTC, whole seconds.
pub(super) fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Back from a product's time; `None` for what only people can read ("Friday 10:13 AM").
pub(super) fn at_ms(text: &str) -> Option<u64> {
    let time = text.parse::<Timestamp>().ok().or_else(|| Timestamp::strptime("%Y-%m-%dT%H:%M:%S%.f%z", text).ok())?;
    u64::try_from(time.as_millisecond()).ok()
}

/// When an entry began, as far as its duration tells.
pub(super) fn began_ms(entry: &Entry) -> u64 {
    entry.at_ms.saturating_sub(entry.duration_us.map_or(0, |duration| duration.0 / 1000))
}

/// The product's words for our statuses.
#[derive(Debug, Clone)]
pub(super) struct Words {
    of: [(Status, String); 4],
    open: &'static str,
}

impl Words {
    /// The usual ones, where the settings say no other. `open`: the word for "nothing yet".
    pub(super) fn new(settings: &TargetSettings, usual: impl Fn(Status) -> &'static str, open: &'static str) -> Self {
        let of = Status::ALL.map(|status| (status, settings.status(status).unwrap_or(usual(status)).to_owned()));
        Self { of, open }
    }

    /// The word to write.
    pub(super) fn word(&self, status: Status) -> &str {
        self.of.iter().find(|(other, _)| *other == status).map_or(self.open, |(_, word)| word)
    }

    /// The word for "nothing yet".
    pub(super) fn open(&self) -> &str {
        self.open
    }

    /// What a word that was read means. Several statuses may share a word (no product has `errored`): what the marker
    /// says of the content tells them apart. A row of ours is never open: `skipped` is often written as "nothing yet".
    pub(super) fn read(&self, word: &str, marker: &Found) -> RowStatus {
        let whole = if let Found::Whole(marker) = marker { Some(marker) } else { None };
        if word == self.open && whole.is_none() {
            return RowStatus::Open;
        }
        let meant: Vec<Status> = self.of.iter().filter(|(_, other)| other == word).map(|(status, _)| *status).collect();
        let told = meant.iter().find(|status| whole.is_some_and(|m| m.content == ContentTag::of(&[**status])));
        match told.or(meant.first()) {
            Some(status) => RowStatus::Is(*status),
            None if word == self.open => RowStatus::Open,
            None => RowStatus::Other(word.to_owned()),
        }
    }
}

/// `None` for what is not there.
pub(super) fn there<T>(read: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Trouble::Gone(_)) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

/// A reading before a write failed: nothing of the write has left.
pub(super) fn unsent(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Unknown(what) => Trouble::NotSent(Cause::new(what)),
        trouble => trouble,
    }
}

/// The rows of these cases (of all, if none is named) that hold a verdict.
pub(super) fn chosen(rows: impl Iterator<Item = Row>, cases: &[CaseId]) -> Vec<Row> {
    let cases: BTreeSet<&CaseId> = cases.iter().collect();
    rows.filter(|row| row.status != RowStatus::Open && (cases.is_empty() || cases.contains(&row.case))).collect()
}

/// Tests that an import of Xray's refused within a success: `testIssues.error`. Pages differ in what an element of it
/// looks like; one that can't be told to belong to an entry leaves the whole import in doubt.
pub(super) fn import_errors(answer: &Answer, batch: &[Entry]) -> Result<Vec<(usize, String)>, Trouble> {
    let body: Value = parsed(answer)?;
    let errors = body.pointer("/testIssues/error").and_then(Value::as_array).into_iter().flatten();
    let place = |error: &Value| {
        let key = ["testKey", "key"].iter().find_map(|name| error.get(name)?.as_str());
        let number = error.get("elementNumber").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let by_key = key.and_then(|key| batch.iter().position(|entry| entry.case.as_str() == key));
        by_key.or(number.filter(|number| *number < batch.len()))
    };
    let told = |error: &Value| match place(error) {
        Some(place) => Ok((place, error.to_string())),
        None => Err(Trouble::Unknown(format!("the import was carried out in part: {error}"))),
    };
    errors.map(told).collect()
}

#[cfg(test)]
mod tests {
    use domain::marker::{Marker, WriteId};
    use domain::{Ordinal, ProjectId, PushKey};

    use super::*;

    #[test]
    fn times_come_back_and_words_for_people_do_not() {
        assert_eq!(time(1_790_000_000_123), "2026-09-21T14:13:20Z");
        assert_eq!(at_ms("2026-09-21T14:13:20Z"), Some(1_790_000_000_000));
        assert_eq!(at_ms("2026-09-21T16:13:20+02:00"), Some(1_790_000_000_000));
        assert_eq!(at_ms("2026-09-21T16:13:20.000+0200"), Some(1_790_000_000_000));
        assert_eq!(at_ms("Friday 10:13 AM"), None);
    }

    #[test]
    fn a_marker_tells_statuses_of_one_word_apart() {
        let of = [(Status::Passed, "P"), (Status::Failed, "F"), (Status::Errored, "F"), (Status::Skipped, "T")];
        let words = Words { of: of.map(|(status, word)| (status, word.to_owned())), open: "T" };
        let (project, key) = (ProjectId::parse("shop").unwrap(), PushKey::parse("run:1").unwrap());
        let found = |status: Status| {
            Found::Whole(Marker {
                write: WriteId::of(&project, &key, "C1"),
                content: ContentTag::of(&[status]),
                ordinal: Some(Ordinal(1)),
            })
        };
        for status in Status::ALL {
            assert_eq!(words.read(words.word(status), &found(status)), RowStatus::Is(status));
        }
        assert_eq!(words.read("F", &Found::Nothing), RowStatus::Is(Status::Failed));
        assert_eq!(words.read("T", &Found::Nothing), RowStatus::Open);
        assert_eq!(words.read("X", &Found::Nothing), RowStatus::Other("X".to_owned()));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("äöü", 2), "äö");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
