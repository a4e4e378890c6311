//! What the products that live in Jira have in common: ids and titles of cases, words for statuses, texts that hold a
//! marker, times, and listings by offset. Must not know which of them asks, nor any address.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use async_trait::async_trait;
use domain::marker::{ContentTag, Found};
use domain::{Cause, ItemName, Status};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::OpenError;
use crate::classify::Answer;
use crate::foreign::caller::Caller;
use crate::foreign::entry::{Case, CaseChoice, CaseId, CaseWanted, Entry, Row, RowStatus};
use crate::foreign::mapping::{IdShape, ids_in};
use crate::foreign::settings::TargetSettings;
use crate::foreign::trouble::{Trouble, in_words};

/// Most characters of a summary or a name (Jira's own limit; Zephyr's pages state the same).
pub(super) const TITLE_CHARS_MAX: usize = 255;
/// How often a listing is read before it is given up: it changes while it is read.
const READINGS_MAX: u32 = 3;

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

/// One page of a listing by offset.
pub(super) struct Page<T> {
    /// How many rows there are in all, where the answer says so.
    pub(super) total: Option<u64>,
    /// The rows of this page.
    pub(super) rows: Vec<T>,
}

/// A whole listing, each row once. Pages shift when rows come and go while they are read: a reading that saw fewer
/// different rows than the product counts is done again.
pub(super) async fn by_offset<T, K, F>(id: impl Fn(&T) -> K, fetch: impl Fn(u64) -> F) -> Result<Vec<T>, Trouble>
where
    K: Ord,
    F: Future<Output = Result<Page<T>, Trouble>>,
{
    for _ in 0..READINGS_MAX {
        let (mut seen, mut rows, mut start) = (BTreeSet::new(), Vec::new(), 0_u64);
        let total = loop {
            let page = fetch(start).await?;
            start += page.rows.len() as u64;
            let ended = page.rows.is_empty() || page.total.is_some_and(|total| start >= total);
            rows.extend(page.rows.into_iter().filter(|row| seen.insert(id(row))));
            if ended {
                break page.total;
            }
        };
        if total.is_none_or(|total| rows.len() as u64 >= total) {
            return Ok(rows);
        }
    }
    Err(Trouble::Unknown(format!("a listing changed in each of {READINGS_MAX} readings, so that none was complete")))
}

/// The cases of a project by their titles.
#[derive(Debug, Clone, Default)]
pub(super) struct Titles(BTreeMap<String, Vec<CaseId>>);

impl Titles {
    /// One more case.
    pub(super) fn add(&mut self, title: &str, case: CaseId) {
        self.0.entry(title.trim().to_owned()).or_default().push(case);
    }

    fn of(&self, title: &str) -> Option<(&str, &[CaseId])> {
        self.0.get_key_value(title).map(|(title, cases)| (title.as_str(), cases.as_slice()))
    }

    /// By the item as people read it, by `class.name`, and, if no other item is called so, by its name alone.
    fn find(&self, item: &ItemName, name_is_single: bool) -> Option<(&str, &[CaseId])> {
        let dotted = item.class().map(|class| format!("{class}.{}", item.name()));
        let name = name_is_single.then(|| item.name().to_owned());
        let mut texts = [Some(title_of(item)), dotted, name].into_iter().flatten();
        texts.find_map(|text| self.of(cut(&text, TITLE_CHARS_MAX).trim()))
    }
}

/// What a case that is made for an item is called.
fn title_of(item: &ItemName) -> String {
    cut(&item.to_string(), TITLE_CHARS_MAX).trim().to_owned()
}

/// Where cases are listed and made.
#[async_trait]
pub(super) trait Cases: Sync {
    /// All cases of the project.
    async fn titles(&self) -> Result<Titles, Trouble>;

    /// Makes one more.
    async fn create_case(&self, title: &str) -> Result<CaseId, Trouble>;
}

/// How cases are chosen.
#[derive(Debug, Clone)]
pub(super) struct CaseRules {
    /// How ids look.
    pub(super) shape: IdShape,
    /// The project's key. Names are full of what only looks like an id (`UTF-8`, `SHA-256`): an id in a name counts
    /// if it is of this project; those in properties and in the mapping file are meant, and may be of another.
    pub(super) project: String,
    /// Whether cases are made.
    pub(super) create: bool,
}

impl CaseRules {
    fn named(&self, wanted: &CaseWanted<'_>) -> Option<CaseId> {
        if let Some(mapped) = wanted.mapped {
            return Some(mapped.clone());
        }
        let given = wanted.external_ids.iter().flat_map(|text| ids_in(text, self.shape)).next();
        let own = |id: &String| id.rsplit_once('-').is_some_and(|(project, _)| project == self.project);
        given.or_else(|| ids_in(wanted.item.name(), self.shape).into_iter().find(own)).map(CaseId::new)
    }

    /// The case of each item. Lists the project's cases at most once, and only if some item names none by itself.
    pub(super) async fn choose(
        &self,
        cases: &impl Cases,
        wanted: &[CaseWanted<'_>],
    ) -> Result<Vec<CaseChoice>, Trouble> {
        let named: Vec<Option<CaseId>> = wanted.iter().map(|wanted| self.named(wanted)).collect();
        if named.iter().all(Option::is_some) {
            let known = |(id, wanted): (Option<CaseId>, &CaseWanted<'_>)| {
                id.map(|id| CaseChoice::Known(Case { id, title: title_of(wanted.item) }))
            };
            return Ok(named.into_iter().zip(wanted).filter_map(known).collect());
        }
        let mut titles = cases.titles().await?;
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for wanted in wanted {
            *names.entry(wanted.item.name()).or_default() += 1;
        }
        let mut choices = Vec::with_capacity(wanted.len());
        for (named, wanted) in named.into_iter().zip(wanted) {
            let title = title_of(wanted.item);
            let single = names.get(wanted.item.name()) == Some(&1);
            choices.push(match (named, titles.find(wanted.item, single)) {
                (Some(id), _) => CaseChoice::Known(Case { id, title }),
                (None, Some((title, [id]))) => CaseChoice::Known(Case { id: id.clone(), title: title.to_owned() }),
                (None, Some((title, several))) => CaseChoice::Unmatched {
                    why: format!("{} cases of {} are called {title:?}", several.len(), self.project),
                },
                (None, None) if self.create => {
                    let id = cases.create_case(&title).await?;
                    titles.add(&title, id.clone());
                    CaseChoice::Known(Case { id, title })
                }
                (None, None) => CaseChoice::Unmatched { why: self.why(&title) },
            });
        }
        Ok(choices)
    }

    fn why(&self, title: &str) -> String {
        let (IdShape::Prefixed(letters) | IdShape::Dashed(letters)) = self.shape;
        let project = &self.project;
        format!(
            "no id such as {project}-{letters}12 in its properties or name, and no case of {project} called {title:?}"
        )
    }
}

#[cfg(test)]
mod tests {
    use domain::marker::{Marker, WriteId};
    use domain::{Ordinal, ProjectId, PushKey};

    use super::*;

    fn rules() -> CaseRules {
        CaseRules { shape: IdShape::Dashed(""), project: "SHOP".to_owned(), create: false }
    }

    #[test]
    fn only_ids_of_the_project_count_in_names() {
        let named = |name: &str, external: &[String]| {
            let item = ItemName::new(None::<&str>, None, name);
            rules().named(&CaseWanted { item: &item, external_ids: external, mapped: None })
        };
        assert_eq!(named("reads UTF-8 [SHOP-12]", &[]), Some(CaseId::new("SHOP-12")));
        assert_eq!(named("reads UTF-8", &[]), None);
        assert_eq!(named("SHOP-12", &["LIB-3".to_owned()]), Some(CaseId::new("LIB-3")));
    }

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

    #[tokio::test]
    async fn a_listing_that_shifts_is_read_again_until_it_is_whole() {
        let shifted = std::sync::atomic::AtomicBool::new(true);
        let rows = by_offset(
            |row: &u64| *row,
            |start| {
                // The first reading's second page begins one row too late.
                let late = start > 0 && shifted.swap(false, std::sync::atomic::Ordering::Relaxed);
                let from = start + u64::from(late);
                async move { Ok(Page { total: Some(5), rows: (from..(from + 2).min(5)).collect() }) }
            },
        );
        assert_eq!(rows.await.unwrap(), [0, 1, 2, 3, 4]);
        let never = by_offset(
            |row: &u64| *row,
            |start| async move { Ok(Page { total: Some(3), rows: (start == 0).then_some(7).into_iter().collect() }) },
        );
        assert!(matches!(never.await, Err(Trouble::Unknown(_))));
    }
}
