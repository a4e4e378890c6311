//! Test cases of a `TestLink` plan: by external id, or by name; made and put into the plan where that is wanted.
//! Must not know builds.

use std::collections::{BTreeMap, BTreeSet};

use domain::ItemName;
use serde_json::{Value, json};

use super::super::xmlrpc::text;
use super::{Place, TestLink, elements, first, is_true, number};
use crate::foreign::entry::{Case, CaseChoice, CaseId, CaseWanted};
use crate::foreign::mapping::{number_after, numbers_of};
use crate::foreign::text::cut;
use crate::foreign::trouble::{Trouble, before_writing};

/// Most characters of a test case's name.
const NAME_CHARS_MAX: usize = 100;
/// Execution type: automated.
const AUTOMATED: u32 = 2;

/// A case of the plan.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    /// The external id, prefix and number.
    pub(super) id: String,
    name: String,
}

impl TestLink {
    /// Every case of the plan, each once, by number.
    pub(super) async fn planned(&self, place: &Place) -> Result<Vec<Planned>, Trouble> {
        let args = json!({"testplanid": place.plan, "details": "simple"});
        let said = self.rpc.read("tl.getTestCasesForTestPlan", args).await?;
        let mut found = BTreeMap::new();
        collect(&said, 0, &mut found);
        let mut found: Vec<Planned> = found.into_iter().map(|(id, name)| Planned { id, name }).collect();
        found.sort_by_key(|case| number_after(&place.prefix, &case.id));
        Ok(found)
    }

    pub(super) async fn choose_cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        let place = self.place().await?;
        let planned = self.planned(place).await?;
        let mut by_name = BTreeMap::<&str, Vec<&Planned>>::new();
        for case in &planned {
            by_name.entry(&case.name).or_default().push(case);
        }
        let mut made = BTreeMap::new();
        let mut choices = Vec::new();
        for wanted in wanted {
            let known = |id: String| {
                let title = planned.iter().find(|case| case.id == id).map(|case| case.name.clone());
                let title = title.unwrap_or_else(|| wanted.item.name().to_owned());
                CaseChoice::Known(Case { id: CaseId::new(id), title })
            };
            let choice = match named(wanted, &place.prefix) {
                Ok(ids) if ids.is_empty() => self.by_name(place, wanted.item, &by_name, &mut made).await?,
                Ok(ids) => CaseChoice::of(ids.into_iter().map(known)),
                Err(why) => CaseChoice::Unmatched { why },
            };
            choices.push(choice);
        }
        Ok(choices)
    }

    /// By class and name, or by the name alone, where that means one case of the plan.
    async fn by_name(
        &self,
        place: &Place,
        item: &ItemName,
        by_name: &BTreeMap<&str, Vec<&Planned>>,
        made: &mut BTreeMap<String, CaseChoice>,
    ) -> Result<CaseChoice, Trouble> {
        let full = full_name(item);
        for name in [full.as_str(), item.name()] {
            match by_name.get(name).map(Vec::as_slice) {
                Some([case]) => {
                    let (id, title) = (CaseId::new(case.id.clone()), case.name.clone());
                    return Ok(CaseChoice::Known(Case { id, title }));
                }
                Some(several) => {
                    let ids: Vec<&str> = several.iter().map(|case| case.id.as_str()).collect();
                    let why = format!("{name:?} is the name of several cases: {}", ids.join(", "));
                    return Ok(CaseChoice::Unmatched { why });
                }
                None => {}
            }
        }
        if self.suite.is_none() {
            let why =
                format!("test plan {:?} has no case {full:?}, and the name holds no {}-1", self.plan, place.prefix);
            return Ok(CaseChoice::Unmatched { why });
        }
        if let Some(choice) = made.get(&full) {
            return Ok(choice.clone());
        }
        let choice = self.create_case(place, &full).await?;
        made.insert(full, choice.clone());
        Ok(choice)
    }

    /// Makes a case in the suite. One of that name that is there already is taken: an earlier call may have made it and
    /// not put it into the plan.
    async fn create_case(&self, place: &Place, name: &str) -> Result<CaseChoice, Trouble> {
        let Some(suite) = &self.suite else {
            return Ok(CaseChoice::Unmatched { why: "cases are not made".to_owned() });
        };
        let in_suite = json!({"testsuiteid": suite.number, "deep": false, "details": "full"});
        let there = self.rpc.read("tl.getTestCasesForTestSuite", in_suite).await.map_err(before_writing)?;
        if let Some(case) = elements(&there).find(|case| text(&case["name"]) == name) {
            let id = external_id(&place.prefix, &text(&case["external_id"]));
            return Ok(CaseChoice::Known(Case { id: CaseId::new(id), title: name.to_owned() }));
        }
        let args = json!({
            "testprojectid": place.project, "testsuiteid": suite.number, "testcasename": name,
            "summary": "Made for an automated test.", "steps": [], "authorlogin": suite.author,
            "executiontype": AUTOMATED, "checkduplicatedname": 1, "actiononduplicatedname": "block",
        });
        let said = match self.rpc.write("tl.createTestCase", args).await {
            Ok(said) => said,
            Err(Trouble::Refused(why)) => {
                return Ok(CaseChoice::Unmatched { why: format!("a case {name:?} could not be made: {why}") });
            }
            Err(other) => return Err(other),
        };
        let row = first(&said).filter(|row| is_true(&row["status"]));
        let made = row.map(|row| text(&row["additionalInfo"]["external_id"])).filter(|number| !number.is_empty());
        match made {
            Some(number) => {
                let id = external_id(&place.prefix, &number);
                Ok(CaseChoice::Known(Case { id: CaseId::new(id), title: name.to_owned() }))
            }
            None => Err(Trouble::Unknown(format!("tl.createTestCase was answered by {said}"))),
        }
    }

    /// Puts cases into the plan that are not in it, in their newest version.
    pub(super) async fn add_to_plan(&self, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        let place = self.place().await.map_err(before_writing)?;
        let planned = self.planned(place).await.map_err(before_writing)?;
        let planned: BTreeSet<&str> = planned.iter().map(|case| case.id.as_str()).collect();
        let missing: BTreeSet<&CaseId> = cases.iter().filter(|case| !planned.contains(case.as_str())).collect();
        let mut refused = Vec::new();
        for case in missing {
            match self.add_one(place, case).await {
                Ok(()) | Err(Trouble::Exists(_)) => {}
                Err(Trouble::Refused(why)) => refused.push((case.clone(), why)),
                Err(other) => return Err(other),
            }
        }
        Ok(refused)
    }

    async fn add_one(&self, place: &Place, case: &CaseId) -> Result<(), Trouble> {
        let found = self.rpc.read("tl.getTestCase", json!({"testcaseexternalid": case.as_str()})).await?;
        let version = first(&found).and_then(|row| number(row, "version")).unwrap_or(1);
        let mut args = json!({
            "testprojectid": place.project, "testplanid": place.plan, "testcaseexternalid": case.as_str(),
            "version": version,
        });
        if let Some(platform) = place.platform {
            args["platformid"] = json!(platform);
        }
        self.rpc.write("tl.addTestCaseToTestPlan", args).await.map(|_| ())
    }
}

/// The cases that an item names by itself; `Err` if the mapping file says something that is none.
fn named(wanted: &CaseWanted<'_>, prefix: &str) -> Result<Vec<String>, String> {
    let id = |number: u64| format!("{prefix}-{number}");
    if let Some(mapped) = wanted.mapped {
        let text = mapped.as_str();
        let found = number_after(prefix, text).or_else(|| text.trim().parse().ok());
        let found = found.ok_or_else(|| format!("{text:?} in the mapping file is no case {prefix}-1"))?;
        return Ok(vec![id(found)]);
    }
    Ok(numbers_of(wanted, prefix).into_iter().map(id).collect())
}

fn full_name(item: &ItemName) -> String {
    let whole = match item.class() {
        Some(class) => format!("{class}.{}", item.name()),
        None => item.name().to_owned(),
    };
    cut(whole.trim(), NAME_CHARS_MAX).trim().to_owned()
}

/// Some calls give the number alone, some the whole.
fn external_id(prefix: &str, text: &str) -> String {
    if text.starts_with(&format!("{prefix}-")) { text.to_owned() } else { format!("{prefix}-{text}") }
}

/// Cases by external id, from a map by case, of which each may be a list or a map by platform again.
fn collect(value: &Value, depth: usize, found: &mut BTreeMap<String, String>) {
    let id = text(&value["full_external_id"]);
    if !id.is_empty() {
        let name = ["tcase_name", "name"].iter().map(|name| text(&value[*name])).find(|name| !name.is_empty());
        found.insert(id, name.unwrap_or_default());
    } else if depth < 3 {
        elements(value).for_each(|inner| collect(inner, depth + 1, found));
    }
}
