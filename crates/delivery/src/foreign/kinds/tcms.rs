//! What Kiwi TCMS and its ancestor Nitrate have in common: how cases are named, and which statuses there are.
//! Must not know how either is called.

use std::collections::BTreeMap;

use domain::{ItemName, Status};

use crate::foreign::entry::{Case, CaseChoice, CaseId, CaseWanted, RowStatus};
use crate::foreign::mapping::{number_after, numbers_of};
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::cut;

/// How people write the number of a case.
const PREFIX: &str = "TC";
/// Most characters of a case's summary.
const SUMMARY_CHARS_MAX: usize = 255;
/// How many cases are looked for in one call: each is a variable of a query, and databases bound those.
pub(super) const LOOK_UP_MAX: usize = 200;

/// What a case is looked for by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum By {
    /// Its number.
    Number(u64),
    /// Its summary.
    Summary(String),
    /// The mapping file says something that is no number of a case.
    Nothing(String),
}

impl By {
    /// The mapping file first, then the properties, then the name, then the summary that the item would have.
    pub(super) fn of(wanted: &CaseWanted<'_>) -> Vec<Self> {
        if let Some(mapped) = wanted.mapped {
            let text = mapped.as_str().trim();
            return vec![match text.parse().ok().or_else(|| number_after(PREFIX, text)) {
                Some(number) => By::Number(number),
                None => By::Nothing(format!("{text:?} in the mapping file is no case: a number or TC-12 is expected")),
            }];
        }
        let numbers = numbers_of(wanted, PREFIX);
        if numbers.is_empty() {
            return vec![By::Summary(summary(wanted.item))];
        }
        numbers.into_iter().map(By::Number).collect()
    }
}

/// The summary that the product's own reporters give a case: class and name, cut.
fn summary(item: &ItemName) -> String {
    let whole = match item.class() {
        Some(class) => format!("{class}.{}", item.name()),
        None => item.name().to_owned(),
    };
    // The product trims what it stores; untrimmed it would not be found again.
    cut(whole.trim(), SUMMARY_CHARS_MAX).trim().to_owned()
}

/// The cases that were found.
#[derive(Debug, Default)]
pub(super) struct Known {
    by_number: BTreeMap<u64, String>,
    by_summary: BTreeMap<String, u64>,
}

impl Known {
    /// One more. Of several with one summary the oldest counts, whoever asks and whenever.
    pub(super) fn add(&mut self, number: u64, summary: &str) {
        // Kiwi escapes what it sends.
        let plain = quick_xml::escape::unescape(summary).map_or_else(|_| summary.to_owned(), Into::into);
        self.by_number.insert(number, plain.clone());
        for text in [summary, &plain] {
            let oldest = self.by_summary.entry(text.to_owned()).or_insert(number);
            *oldest = number.min(*oldest);
        }
    }

    /// True if there is a case of that number.
    pub(super) fn has(&self, number: u64) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Summaries that no case has, each once.
    pub(super) fn missing(&self, wanted: &[By]) -> Vec<String> {
        let mut missing: Vec<String> = wanted
            .iter()
            .filter_map(|by| if let By::Summary(summary) = by { Some(summary) } else { None })
            .filter(|summary| !summary.is_empty() && !self.by_summary.contains_key(*summary))
            .cloned()
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// The cases, or why there are none.
    pub(super) fn choices(&self, by: &[By], product: &str, refused: &BTreeMap<String, String>) -> CaseChoice {
        CaseChoice::of(by.iter().map(|by| self.choice(by, product, refused)))
    }

    /// The case, or why there is none.
    fn choice(&self, by: &By, product: &str, refused: &BTreeMap<String, String>) -> CaseChoice {
        let (number, why) = match by {
            By::Number(number) => {
                (self.by_number.get_key_value(number).map(|(n, _)| *n), format!("{product} has no case TC-{number}"))
            }
            By::Summary(summary) => {
                let why = match refused.get(summary) {
                    Some(why) => format!("a case {summary:?} could not be made: {why}"),
                    None => format!("{product} has no case with the summary {summary:?}"),
                };
                (self.by_summary.get(summary).copied(), why)
            }
            By::Nothing(why) => (None, why.clone()),
        };
        match number.and_then(|number| Some((number, self.by_number.get(&number)?))) {
            Some((number, title)) => {
                CaseChoice::Known(Case { id: CaseId::new(number.to_string()), title: title.clone() })
            }
            None => CaseChoice::Unmatched { why },
        }
    }
}

/// What is looked for, in bounded pieces.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LookUp<'a> {
    /// Cases of these numbers.
    Numbers(Vec<u64>),
    /// Cases of these summaries.
    Summaries(Vec<&'a str>),
}

/// All that has to be looked up for these.
pub(super) fn look_ups(wanted: &[By]) -> Vec<LookUp<'_>> {
    let (mut numbers, mut summaries) = (Vec::new(), Vec::new());
    for by in wanted {
        match by {
            By::Number(number) => numbers.push(*number),
            By::Summary(summary) => summaries.push(summary.as_str()),
            By::Nothing(_) => {}
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    summaries.sort_unstable();
    summaries.dedup();
    let numbers = numbers.chunks(LOOK_UP_MAX).map(|piece| LookUp::Numbers(piece.to_vec()));
    numbers.chain(summaries.chunks(LOOK_UP_MAX).map(|piece| LookUp::Summaries(piece.to_vec()))).collect()
}

/// The statuses of the product, which administrators may rename and add to.
#[derive(Debug, Clone, Default)]
pub(super) struct Statuses {
    ours: BTreeMap<Status, Result<u64, String>>,
    all: BTreeMap<u64, (String, bool)>,
}

impl Statuses {
    /// From number, name and whether the status is a verdict.
    pub(super) fn new(settings: &TargetSettings, all: impl IntoIterator<Item = (u64, String, bool)>) -> Self {
        let all: BTreeMap<u64, (String, bool)> =
            all.into_iter().map(|(number, name, verdict)| (number, (name, verdict))).collect();
        let number_of = |status: Status| {
            let word = settings.status(status).unwrap_or(usual(status));
            let found = all.iter().find(|(_, (name, _))| name.eq_ignore_ascii_case(word));
            let found = found.map(|(number, _)| *number);
            let found = found.or_else(|| word.parse().ok().filter(|number| all.contains_key(number)));
            found.ok_or_else(|| {
                let names: Vec<&str> = all.values().map(|(name, _)| name.as_str()).collect();
                format!("there is no status {word:?} for {}; there are {}", status.word(), names.join(", "))
            })
        };
        Self { ours: Status::ALL.into_iter().map(|status| (status, number_of(status))).collect(), all }
    }

    /// The product's number for a status of ours.
    pub(super) fn number(&self, status: Status) -> Result<u64, String> {
        self.ours.get(&status).cloned().unwrap_or_else(|| Err("the statuses are not known".to_owned()))
    }

    /// What a number means.
    pub(super) fn meaning(&self, number: u64) -> RowStatus {
        let ours = self.ours.iter().find(|(_, theirs)| **theirs == Ok(number));
        match (ours, self.all.get(&number)) {
            (Some((status, _)), _) => RowStatus::Is(*status),
            (None, Some((_, false))) => RowStatus::Open,
            (None, Some((name, true))) => RowStatus::Other(name.clone()),
            (None, None) => RowStatus::Other(number.to_string()),
        }
    }
}

/// What the product's own reporters use.
fn usual(status: Status) -> &'static str {
    match status {
        Status::Passed => "PASSED",
        Status::Failed => "FAILED",
        Status::Errored => "ERROR",
        Status::Skipped => "WAIVED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_several_cases_counts_in_whatever_order_they_come() {
        for order in [[7, 3], [3, 7]] {
            let mut known = Known::default();
            for number in order {
                known.add(number, "a &lt;b&gt;");
            }
            let choice = known.choice(&By::Summary("a <b>".to_owned()), "Shop", &BTreeMap::new());
            let CaseChoice::Known(case) = choice else { panic!("{choice:?}") };
            assert_eq!(case.id.as_str(), "3");
        }
    }

    #[test]
    fn summaries_fit_the_product() {
        let item = ItemName::new(["suite"], Some("pkg.Class"), &"ä".repeat(300));
        let summary = summary(&item);
        assert_eq!(summary.chars().count(), SUMMARY_CHARS_MAX);
        assert!(summary.starts_with("pkg.Class.ää"));
    }

    #[test]
    fn look_ups_are_bounded_and_name_each_once() {
        let wanted: Vec<By> = (0..450).map(|n| By::Number(n % 401)).chain([By::Nothing(String::new())]).collect();
        let sizes = look_ups(&wanted)
            .iter()
            .map(|piece| if let LookUp::Numbers(n) = piece { n.len() } else { 0 })
            .collect::<Vec<_>>();
        assert_eq!(sizes, [200, 200, 1]);
    }
}
