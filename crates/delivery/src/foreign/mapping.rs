//! From items to cases: ids in names and properties, and several items of one case as one entry.
//! Must not know products: an adapter says how its ids look.

use std::collections::BTreeMap;

use domain::marker::{ContentTag, Marker, WriteId};
use domain::{DurationUs, ItemHash, Ordinal, Outcome, ProjectId, PushKey, Status, limits};

use super::entry::{Case, CaseId, CaseWanted, Entry};

/// Most characters of an entry's message.
pub(super) const MESSAGE_CHARS_MAX: usize = limits::FORWARDED_TEXT_CHARS_MAX;

/// How a product's ids of cases look in names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdShape {
    /// Letters and a number: `C123`.
    Prefixed(&'static str),
    /// A project's key, a dash, letters (often none) and a number: `SHOP-12`, `SHOP-T12`.
    Dashed(&'static str),
}

/// The cases that an item names by itself, each once: the mapping file first, then its properties, then its name.
pub fn named(wanted: &CaseWanted<'_>, letters: &'static str) -> Vec<CaseId> {
    if let Some(mapped) = wanted.mapped {
        return vec![mapped.clone()];
    }
    let given = each_once(wanted.given().flat_map(|text| ids_in(text, IdShape::Prefixed(letters))));
    let ids = if given.is_empty() { each_once(ids_in_name(wanted.item.name(), letters)) } else { given };
    ids.into_iter().map(CaseId::new).collect()
}

/// In their order.
pub(crate) fn each_once<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// The ids of letters and a number in a name, where reporters put them: at its beginning, in brackets, behind `@`, and
/// behind `_` at its end. Elsewhere a word that looks so is one of the language: "reads the C4 chart".
fn ids_in_name(name: &str, letters: &'static str) -> Vec<String> {
    let shape = IdShape::Prefixed(letters);
    let is_word = |c: char| c.is_alphanumeric();
    // `test_adds_C12[one]`, `adds_C12()`: parameters stand behind the name.
    let head =
        name.char_indices().find(|(at, c)| *at > 0 && matches!(c, '[' | '(')).map_or(name, |(at, _)| &name[..at]);
    let from_end: usize =
        head.trim_end().rsplit('_').take_while(|word| is_id(word, shape)).map(|word| word.len() + 1).sum();
    let tail = head.trim_end().len().saturating_sub(from_end);
    let (mut ids, mut leads, mut in_brackets) = (Vec::new(), true, false);
    let mut from = 0;
    for word in name.split(|c: char| !is_word(c)) {
        let (before, to) = (name[..from].chars().next_back(), from + word.len());
        in_brackets = match before {
            Some('[') => name[from..].split(']').next().is_some_and(|inner| is_list(inner, shape)),
            Some(']') => false,
            _ => in_brackets,
        };
        let id = is_id(word, shape);
        leads &= id || word.is_empty();
        let ends = from > tail && to <= head.len() && from_end > 0;
        if id && (leads || in_brackets || before == Some('@') || ends) {
            ids.push(word.to_owned());
        }
        from = to + name[to..].chars().next().map_or(0, char::len_utf8);
    }
    ids
}

/// Nothing but ids and what parts them.
fn is_list(text: &str, shape: IdShape) -> bool {
    text.split([',', ';', ' ']).filter(|word| !word.is_empty()).all(|word| is_id(word, shape))
}

/// The ids in a text, in their order: whole words only, so that `AC12` and `C12b` hold none of `C…`.
pub fn ids_in(text: &str, shape: IdShape) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    // `[C12]_adds` and `C12-adds` are written too: a word may end at a dash or a low line.
    let candidates = words.flat_map(|word| match shape {
        IdShape::Prefixed(_) => word.split(['-', '_']).map(str::to_owned).collect::<Vec<_>>(),
        IdShape::Dashed(_) => dashed_words(word),
    });
    candidates.filter(|word| is_id(word, shape)).collect()
}

/// `SHOP-12_adds` and `@SHOP-12`: the longest beginnings of a word that could be a dashed id.
fn dashed_words(word: &str) -> Vec<String> {
    let Some((key, rest)) = word.split_once('-') else { return Vec::new() };
    let number: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    vec![format!("{key}-{number}")]
}

/// True if a text is an id and nothing else.
pub(crate) fn is_id(word: &str, shape: IdShape) -> bool {
    let number = match shape {
        IdShape::Prefixed(prefix) => word.strip_prefix(prefix),
        IdShape::Dashed(letters) => word.split_once('-').and_then(|(key, rest)| {
            let proper = key.starts_with(|c: char| c.is_ascii_uppercase())
                && key.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            rest.strip_prefix(letters).filter(|_| proper)
        }),
    };
    number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The numbers behind `PREFIX-` in a text, where both together stand alone: `TC-12`, `[TC-12]`, `TC-12_adds`.
pub(crate) fn numbers_after(prefix: &str, text: &str) -> Vec<u64> {
    let head = format!("{prefix}-");
    let numbers = text.match_indices(&head).filter_map(|(at, _)| {
        if text[..at].ends_with(char::is_alphanumeric) {
            return None;
        }
        let rest = &text[at + head.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if rest[digits..].starts_with(char::is_alphanumeric) {
            return None;
        }
        rest[..digits].parse().ok()
    });
    each_once(numbers)
}

/// The first of [`numbers_after`].
pub(crate) fn number_after(prefix: &str, text: &str) -> Option<u64> {
    numbers_after(prefix, text).into_iter().next()
}

/// The numbers that an item names by itself, in its properties or else in its name.
pub(crate) fn numbers_of(wanted: &CaseWanted<'_>, prefix: &str) -> Vec<u64> {
    let given = each_once(wanted.given().flat_map(|text| numbers_after(prefix, text)));
    if given.is_empty() { numbers_after(prefix, wanted.item.name()) } else { given }
}

/// What [`fold`] needs of the push.
#[derive(Debug, Clone, Copy)]
pub struct Fold<'a> {
    /// The project.
    pub project: &'a ProjectId,
    /// The push.
    pub key: &'a PushKey,
    /// The attempt, if known.
    pub ordinal: Option<Ordinal>,
    /// When it was recorded, milliseconds since 1970.
    pub at_ms: u64,
}

/// One entry a case, by case: several items of one case count once, with the worst verdict, and all of them are named.
pub fn fold(push: Fold<'_>, outcomes: Vec<(Outcome, Case)>) -> Vec<Entry> {
    let mut by_case: BTreeMap<CaseId, (Case, Vec<Outcome>)> = BTreeMap::new();
    for (outcome, case) in outcomes {
        by_case.entry(case.id.clone()).or_insert_with(|| (case, Vec::new())).1.push(outcome);
    }
    by_case.into_values().map(|(case, outcomes)| entry(push, case, outcomes)).collect()
}

fn entry(push: Fold<'_>, case: Case, mut outcomes: Vec<Outcome>) -> Entry {
    // Not in the order of the report: it may differ from delivery to delivery.
    outcomes.sort_by_cached_key(|outcome| outcome.item.encoded().to_vec());
    let status = outcomes.iter().map(|outcome| outcome.status).max_by_key(|status| status.badness());
    let verdicts = |outcome: &Outcome| {
        outcome.attempts.iter().map(|attempt| attempt.status).chain([outcome.status]).collect::<Vec<_>>()
    };
    let said: Vec<(ItemHash, Vec<Status>)> =
        outcomes.iter().map(|outcome| (outcome.item.hash(), verdicts(outcome))).collect();
    let durations = outcomes.iter().filter_map(|outcome| outcome.duration_us).map(|duration| duration.0);
    let duration_us = durations.reduce(u64::saturating_add).map(DurationUs);
    let marker = Marker {
        write: WriteId::of(push.project, push.key, case.id.as_str()),
        content: ContentTag::of_items(&said),
        ordinal: push.ordinal,
    };
    Entry {
        case: case.id,
        title: case.title,
        status: status.unwrap_or(Status::Errored),
        duration_us,
        message: message(&outcomes),
        at_ms: push.at_ms,
        items: outcomes.into_iter().map(|outcome| outcome.item).collect(),
        marker,
    }
}

fn message(outcomes: &[Outcome]) -> Option<String> {
    let text = match outcomes {
        [one] => one.message.clone().unwrap_or_default(),
        several => several.iter().map(line).collect::<Vec<_>>().join("\n"),
    };
    let text: String = text.trim().chars().take(MESSAGE_CHARS_MAX).collect();
    (!text.is_empty()).then_some(text)
}

fn line(outcome: &Outcome) -> String {
    match &outcome.message {
        Some(message) => format!("{}: {}: {message}", outcome.item, outcome.status),
        None => format!("{}: {}", outcome.item, outcome.status),
    }
}

#[cfg(test)]
mod tests {
    use domain::{ExternalId, ItemName};

    use super::*;

    #[test]
    fn ids_are_whole_words() {
        let c = IdShape::Prefixed("C");
        assert_eq!(ids_in("C12 adds [C13] and C14_more", c), ["C12", "C13", "C14"]);
        assert_eq!(ids_in("AC12 C12b c12 C C-1", c), Vec::<String>::new());
        assert_eq!(ids_in("@SHOP-12 SHOP-13_adds (A_B1-7)", IdShape::Dashed("")), ["SHOP-12", "SHOP-13", "A_B1-7"]);
        assert_eq!(ids_in("shop-12 SHOP-T12 UTF-8x 1A-2", IdShape::Dashed("")), Vec::<String>::new());
        assert_eq!(ids_in("[P-T5] P-5", IdShape::Dashed("T")), ["P-T5"]);
    }

    #[test]
    fn ids_in_names_stand_where_reporters_put_them() {
        let ids = |name: &str| ids_in_name(name, "C");
        for name in
            ["C12 adds", "C12_adds", "C12-adds", "adds [C12]", "[C12] adds", "adds @C12", "test_adds_C12", "C12"]
        {
            assert_eq!(ids(name), ["C12"], "{name}");
        }
        for name in ["test_adds_C12[one]", "adds_C12()", "adds_C12(String a, int b)", "é_C12", "[é] x_y_C12"] {
            assert_eq!(ids(name), ["C12"], "{name}");
        }
        for name in ["[C1] [C2] both", "[C1, C2] both", "C1 C2 both", "C1_C2_both", "both_C1_C2", "both @C1 @C2"] {
            assert_eq!(ids(name), ["C1", "C2"], "{name}");
        }
        for name in
            ["reads the C4 chart", "reads C4", "a[C4 chart]", "C4b", "AC4", "test[C4-x]", "test_C4_chart", "c4", ""]
        {
            assert_eq!(ids(name), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn only_what_a_property_for_cases_says_is_meant() {
        let item = ItemName::new(None::<&str>, None, "[C1] adds [C2]");
        let of = |ids: &[&str]| {
            let ids: Vec<ExternalId> = ids.iter().map(|id| ExternalId::from((*id).to_owned())).collect();
            let named = named(&CaseWanted { item: &item, external_ids: &ids, mapped: None }, "C");
            named.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of(&["name:C1", "name:C2", "requirement:C9"]), ["C1", "C2"]);
        assert_eq!(of(&["C8, C7", "C8", "name:C1"]), ["C8", "C7"]);
        let mapped = CaseId::new("C3");
        assert_eq!(
            named(&CaseWanted { item: &item, external_ids: &[], mapped: Some(&mapped) }, "C"),
            std::slice::from_ref(&mapped)
        );
    }

    #[test]
    fn numbers_are_found_behind_their_prefix_alone() {
        for text in ["TC-12", "adds [TC-12]", "test_TC-12_adds", "TC-x TC-12, TC-13"] {
            assert_eq!(number_after("TC", text), Some(12), "{text}");
        }
        assert_eq!(numbers_after("TC", "TC-12, TC-13 [TC-12] ATC-9"), [12, 13]);
        for text in ["ATC-12", "TC-12b", "TC12", "TC-", "tc-12", "TC-99999999999999999999"] {
            assert_eq!(number_after("TC", text), None, "{text}");
        }
    }

    fn outcome(name: &str, status: Status) -> Outcome {
        serde_json::from_value(serde_json::json!({
            "item": {"name": name}, "status": status.word(), "duration_us": 5, "message": "m"
        }))
        .unwrap()
    }

    #[test]
    fn several_items_of_a_case_count_once_as_the_worst_in_any_order() {
        let (project, key) = (ProjectId::parse("shop").unwrap(), PushKey::parse("run:1").unwrap());
        let push = Fold { project: &project, key: &key, ordinal: None, at_ms: 1 };
        let case = || Case { id: CaseId::new("C1"), title: "adds".to_owned() };
        let (a, b) = (outcome("a", Status::Passed), outcome("b", Status::Failed));
        let one = fold(push, vec![(a.clone(), case()), (b.clone(), case())]);
        let two = fold(push, vec![(b, case()), (a, case())]);
        assert_eq!(one, two);
        assert_eq!(one.len(), 1);
        assert_eq!((one[0].status, one[0].duration_us), (Status::Failed, Some(DurationUs(10))));
        assert_eq!(one[0].message.as_deref(), Some("a: passed: m\nb: failed: m"));
        assert_eq!(one[0].items, [ItemName::new(None::<&str>, None, "a"), ItemName::new(None::<&str>, None, "b")]);
    }

    #[test]
    fn a_case_whose_verdict_changed_is_another_content() {
        let (project, key) = (ProjectId::parse("shop").unwrap(), PushKey::parse("run:1").unwrap());
        let push = Fold { project: &project, key: &key, ordinal: None, at_ms: 1 };
        let tag = |outcomes: Vec<Outcome>| {
            let case = || Case { id: CaseId::new("C1"), title: "adds".to_owned() };
            let entries = fold(push, outcomes.into_iter().map(|outcome| (outcome, case())).collect());
            (entries[0].marker.content, entries[0].status)
        };
        let failed = tag(vec![outcome("a", Status::Failed), outcome("b", Status::Passed)]);
        let mut retried = outcome("a", Status::Passed);
        retried.attempts.push(outcome("a", Status::Failed).as_attempt());
        let passed = tag(vec![retried]);
        assert_eq!((failed.1, passed.1), (Status::Failed, Status::Passed));
        assert_ne!(failed.0, passed.0);
    }
}
