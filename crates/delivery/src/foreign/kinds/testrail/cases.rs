//! Cases: named by the report, matched as the vendor's own client does it, or made. Must not know runs.

use std::collections::BTreeMap;

use domain::ItemName;
use serde_json::json;

use super::wire::{CaseField, CaseOf, path};
use super::{TestRail, id};
use crate::foreign::caller::Call;
use crate::foreign::entry::{Case, CaseChoice, CaseId, CaseWanted};
use crate::foreign::mapping::named;
use crate::foreign::text::cut;
use crate::foreign::trouble::{Trouble, before_writing};

/// Most characters of a case's title.
const TITLE_CHARS_MAX: usize = 250;
/// The fields that the vendor's own client matches, best first.
const AUTOMATION_FIELDS: [&str; 2] = ["custom_automation_id", "custom_case_automation_id"];

/// The cases of the project by what can lead to them.
struct Repository {
    by_automation_id: BTreeMap<String, u64>,
    by_title: BTreeMap<String, Vec<u64>>,
    titles: BTreeMap<u64, String>,
    sections: BTreeMap<u64, u64>,
}

impl TestRail {
    pub(super) async fn choose_cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        let by_id: Vec<Vec<CaseId>> = wanted.iter().map(|one| named(one, "C")).collect();
        let all_named = by_id.iter().all(|ids| !ids.is_empty());
        let mut repository =
            if all_named { None } else { Some(Repository::of(self.case_list().await.map_err(before_writing)?)) };
        let mut choices = Vec::with_capacity(wanted.len());
        for (one, by_id) in wanted.iter().zip(by_id) {
            choices.push(match &mut repository {
                Some(repository) if by_id.is_empty() => self.matched_or_made(one.item, repository).await?,
                repository => CaseChoice::of(by_id.iter().map(|id| of_id(id, one.item, repository.as_ref()))),
            });
        }
        Ok(choices)
    }

    /// Every case of the project, or of the suite.
    pub(super) async fn case_list(&self) -> Result<Vec<CaseOf>, Trouble> {
        let suite = self.suite.map(|suite| format!("&suite_id={suite}")).unwrap_or_default();
        self.api.list(&format!("get_cases/{}{suite}", self.project), "cases").await
    }

    async fn matched_or_made(&self, item: &ItemName, cases: &mut Repository) -> Result<CaseChoice, Trouble> {
        let choice = cases.choose(item, self.section);
        let (CaseChoice::Unmatched { .. }, Some(section), false) = (&choice, self.section, cases.is_ambiguous(item))
        else {
            return Ok(choice);
        };
        let mut body = json!({ "title": title(item) });
        let fields: Vec<CaseField> = self.api.whole("get_case_fields").await.map_err(before_writing)?;
        if let Some(field) = AUTOMATION_FIELDS.iter().find(|name| fields.iter().any(|one| one.system_name == **name)) {
            body[*field] = json!(automation_id(item));
        }
        let made: CaseOf = self.api.parsed(Call::post(path(&format!("add_case/{section}")), &body)).await?;
        let case = Case { id: CaseId::new(made.id.to_string()), title: made.title.clone() };
        cases.add(made);
        Ok(CaseChoice::Known(case))
    }
}

const NO_MATCH: &str =
    "no C123 in its name, properties or the mapping file, and no case has its automation id or title";

impl Repository {
    fn of(mut cases: Vec<CaseOf>) -> Self {
        let (by_automation_id, by_title) = (BTreeMap::new(), BTreeMap::new());
        let mut repository = Self { by_automation_id, by_title, titles: BTreeMap::new(), sections: BTreeMap::new() };
        // The oldest of several with one automation id is it: two writers may have made it at the same time.
        cases.sort_by_key(|case| case.id);
        for case in cases {
            repository.add(case);
        }
        repository
    }

    fn add(&mut self, case: CaseOf) {
        if let Some(automation) = case.automation_id() {
            self.by_automation_id.entry(automation.to_owned()).or_insert(case.id);
        }
        self.by_title.entry(case.title.trim().to_owned()).or_default().push(case.id);
        self.sections.extend(case.section_id.map(|section| (case.id, section)));
        self.titles.insert(case.id, case.title);
    }

    /// The oldest case of the section in which cases are made that has the title of one that is made: two writers, or a
    /// late request, may have made it twice.
    fn made(&self, item: &ItemName, section: u64) -> Option<u64> {
        let titled = self.by_title.get(&title(item))?;
        titled.iter().copied().filter(|case| self.sections.get(case) == Some(&section)).min()
    }

    fn choose(&self, item: &ItemName, section: Option<u64>) -> CaseChoice {
        if let Some(case) = self.by_automation_id.get(&automation_id(item)) {
            return self.known(*case);
        }
        match self.titled(item) {
            [] => CaseChoice::Unmatched { why: NO_MATCH.to_owned() },
            [case] => self.known(*case),
            _ => match section.and_then(|section| self.made(item, section)) {
                Some(case) => self.known(case),
                None => {
                    CaseChoice::Unmatched { why: "several cases have its title, and none its automation id".to_owned() }
                }
            },
        }
    }

    /// By the whole name as people read it, or by the test's own.
    fn titled(&self, item: &ItemName) -> &[u64] {
        let titles = [title(item), item.name().trim().to_owned()];
        titles.iter().find_map(|title| self.by_title.get(title)).map_or(&[], Vec::as_slice)
    }

    /// True if one more case of its title would only make it worse.
    fn is_ambiguous(&self, item: &ItemName) -> bool {
        self.titled(item).len() > 1
    }

    fn known(&self, case: u64) -> CaseChoice {
        let title = self.titles.get(&case).cloned().unwrap_or_default();
        CaseChoice::Known(Case { id: CaseId::new(case.to_string()), title })
    }
}

/// A case that the report names. Whether it is there, the run says.
fn of_id(given: &CaseId, item: &ItemName, cases: Option<&Repository>) -> CaseChoice {
    match id("case", given.as_str()) {
        Ok(case) => {
            let title = cases.and_then(|cases| cases.titles.get(&case)).cloned();
            let title = title.unwrap_or_else(|| item.to_string());
            CaseChoice::Known(Case { id: CaseId::new(case.to_string()), title })
        }
        Err(trouble) => CaseChoice::Unmatched { why: trouble.to_string() },
    }
}

/// What the vendor's own client compares: class and name with a dot between them.
fn automation_id(item: &ItemName) -> String {
    match item.class() {
        Some(class) => format!("{class}.{}", item.name()),
        None => item.name().to_owned(),
    }
}

fn title(item: &ItemName) -> String {
    cut(&item.to_string(), TITLE_CHARS_MAX).trim().to_owned()
}
