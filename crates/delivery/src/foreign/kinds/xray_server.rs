//! Xray for Jira Server and Data Center: a cycle is a Test Execution, made and found by Jira's own calls (a label); a row
//! is a Test Run, which an import with the execution's key replaces (facts/targets.md, section 4).
//! Written from the vendor's pages, and tested against a stub only. Must not know strategies.

use async_trait::async_trait;
use domain::Status;
use domain::marker::Marker;
use serde::Deserialize;
use serde_json::{Value, json};

use super::OpenError;
use super::jira::{self, CaseRules, Cases, Page, Titles, Words};
use crate::classify::Answer;
use crate::foreign::adapter::{Adapter, Closing, Written};
use crate::foreign::caller::{Call, Caller};
use crate::foreign::entry::{CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::mapping::IdShape;
use crate::foreign::settings::TargetSettings;
use crate::foreign::trouble::Trouble;

pub(crate) const FACTS: Facts = Facts {
    kind: Kind::XrayServer,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Replaces,
    side_rows: &["evidence"],
    cycle_unique: false,
    marker: MarkerFacts { level: MarkerLevel::M3, field: "comment of the test run", chars_max: 8000, editable: true },
    // No cap is published.
    bulk: Bulk { items_max: 100, atomic: false },
    visible: Visible::AtOnce,
    repair: Repair { delete: false, amend: true, delete_cycle: true },
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Replace, Strategy::Reconcile],
    races: &[Race::R3, Race::R4, Race::R7, Race::R9],
};

/// Issues of a page of a search.
const ISSUES_PAGE: u64 = 100;
const SHAPE: IdShape = IdShape::Dashed("");

/// Xray in one Jira.
#[derive(Debug)]
pub(crate) struct XrayServer {
    caller: Caller,
    rules: CaseRules,
    words: Words,
    execution_type: String,
    test_type: String,
}

/// With a personal token, or a user and a password.
///
/// Keys of its own: `execution_type` and `test_type`, the names of the issue types where Jira has others.
pub(crate) fn open(mut settings: TargetSettings, caller: Caller) -> Result<XrayServer, OpenError> {
    let caller = jira::authorised(caller, &settings)?;
    let words = Words::new(&settings, usual_word, "TODO");
    let execution_type = settings.options.text("execution-type")?.unwrap_or_else(|| "Test Execution".to_owned());
    let test_type = settings.options.text("test-type")?.unwrap_or_else(|| "Test".to_owned());
    settings.options.finish()?;
    let rules = CaseRules { shape: SHAPE, project: settings.project, create: settings.create_cases };
    Ok(XrayServer { caller, rules, words, execution_type, test_type })
}

/// There is none for an error; what was skipped is left as not done.
fn usual_word(status: Status) -> &'static str {
    match status {
        Status::Passed => "PASS",
        Status::Failed | Status::Errored => "FAIL",
        Status::Skipped => "TODO",
    }
}

/// Jira's errors, or Xray's.
fn words(answer: &Answer) -> Option<String> {
    jira::words(answer).or_else(|| jira::member(answer, "error"))
}

#[derive(Debug, Deserialize)]
struct Search {
    total: u64,
    issues: Vec<Issue>,
}

#[derive(Debug, Deserialize)]
struct Issue {
    id: String,
    key: String,
    fields: Fields,
}

#[derive(Debug, Deserialize)]
struct Fields {
    #[serde(default)]
    summary: String,
    #[serde(default)]
    labels: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Made {
    key: String,
}

/// A run as the listing of an execution shows it, or one by itself. Versions differ in what the listing holds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    id: u64,
    /// In a listing.
    key: Option<String>,
    /// In a run by itself.
    test_key: Option<String>,
    status: String,
    comment: Option<String>,
    finished_on: Option<String>,
    finished_on_iso: Option<String>,
    #[serde(default)]
    defects: Vec<Defect>,
    #[serde(default)]
    evidences: Vec<Evidence>,
}

#[derive(Debug, Deserialize)]
struct Defect {
    key: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evidence {
    #[serde(default)]
    file_name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Imported {
    test_exec_issue: Made,
}

impl Run {
    fn test(&self) -> Option<&String> {
        self.key.as_ref().or(self.test_key.as_ref())
    }
}

impl XrayServer {
    async fn get(&self, path: String) -> Result<Answer, Trouble> {
        self.caller.call(Call::get(path), words).await
    }

    async fn search(&self, jql: &str) -> Result<Vec<Issue>, Trouble> {
        let fetch = |from: jira::From| {
            let start = from.row;
            let jql = jira::encoded(jql);
            let path =
                format!("/rest/api/2/search?jql={jql}&startAt={start}&maxResults={ISSUES_PAGE}&fields=summary,labels");
            async move {
                let page: Search = jira::parsed(&self.get(path).await?)?;
                Ok(Page { total: Some(page.total), rows: page.issues })
            }
        };
        let mut found = jira::whole(|issue: &Issue| issue.id.clone(), fetch).await?;
        found.sort_by_key(|issue| issue.id.parse::<u64>().unwrap_or(u64::MAX));
        Ok(found)
    }

    /// Not by a search: an issue by its key is read without the index.
    async fn issue(&self, key: &str) -> Result<Issue, Trouble> {
        let path = format!("/rest/api/2/issue/{}?fields=summary,labels", jira::encoded(key));
        jira::parsed(&self.get(path).await?)
    }

    async fn create_issue(&self, fields: Value) -> Result<String, Trouble> {
        let answer = self.caller.call(Call::post("/rest/api/2/issue", &json!({ "fields": fields })), words).await?;
        Ok(jira::parsed::<Made>(&answer)?.key)
    }

    /// Pages are numbered, and hold as much as an administrator has set: a larger limit would be refused.
    async fn listed(&self, cycle: &CycleId) -> Result<Vec<Run>, Trouble> {
        let fetch = |from: jira::From| {
            let (key, page) = (jira::encoded(cycle.as_str()), from.page);
            let path = format!("/rest/raven/1.0/api/testexec/{key}/test?detailed=true&page={page}");
            async move { Ok(Page { total: None, rows: jira::parsed(&self.get(path).await?)? }) }
        };
        jira::whole(|run: &Run| run.id, fetch).await
    }

    /// The run by itself, where the listing leaves out what is needed of it.
    async fn whole(&self, run: Run) -> Result<Run, Trouble> {
        let verdict = run.status != self.words.open();
        if run.test().is_some() && (run.comment.is_some() || !verdict) {
            return Ok(run);
        }
        jira::parsed(&self.get(format!("/rest/raven/latest/api/testrun/{}", run.id)).await?)
    }

    fn row(&self, run: Run) -> Result<Row, Trouble> {
        let key = run.test().cloned();
        let key = key.ok_or_else(|| Trouble::Unknown(format!("test run {} doesn't say of which test", run.id)))?;
        let comment = run.comment.unwrap_or_default();
        let marker = Marker::find(&comment);
        let beside = run.defects.into_iter().map(|defect| defect.key);
        let beside = beside.chain(run.evidences.into_iter().map(|evidence| evidence.file_name));
        let text = [jira::without_marker(&comment, &marker)].into_iter().chain(beside).collect::<Vec<_>>().join("\n");
        Ok(Row {
            id: RowId::new(run.id.to_string()),
            case: CaseId::new(key),
            status: self.words.read(&run.status, &marker),
            marker,
            at_ms: run.finished_on_iso.or(run.finished_on).as_deref().and_then(jira::at_ms),
            text,
        })
    }

    fn texts(&self, entry: &Entry) -> Value {
        json!({ "status": self.words.word(entry.status), "comment": entry.comment() })
    }

    fn test(&self, entry: &Entry) -> Value {
        let mut test = self.texts(entry);
        test["testKey"] = json!(entry.case);
        test["start"] = json!(jira::time(jira::began_ms(entry)));
        test["finish"] = json!(jira::time(entry.at_ms));
        test
    }
}

#[async_trait]
impl Cases for XrayServer {
    async fn titles(&self) -> Result<Titles, Trouble> {
        let (project, kind) = (jira::quoted(&self.rules.project), jira::quoted(&self.test_type));
        let mut titles = Titles::default();
        for test in self.search(&format!("project = {project} AND issuetype = {kind}")).await? {
            titles.add(&test.fields.summary, CaseId::new(test.key));
        }
        Ok(titles)
    }

    async fn create_case(&self, title: &str) -> Result<CaseId, Trouble> {
        let (project, kind) = (json!({ "key": self.rules.project }), json!({ "name": self.test_type }));
        let fields = json!({ "project": project, "issuetype": kind, "summary": title });
        self.create_issue(fields).await.map(CaseId::new)
    }
}

#[async_trait]
impl Adapter for XrayServer {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        self.rules.choose(self, wanted).await
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let tag = wanted.tag();
        let found = if let Some(given) = &wanted.given {
            jira::there(self.issue(given.as_str()).await)?.into_iter().collect()
        } else {
            let (project, kind) = (jira::quoted(&self.rules.project), jira::quoted(&self.execution_type));
            let label = jira::quoted(&tag);
            self.search(&format!("project = {project} AND issuetype = {kind} AND labels = {label}")).await?
        };
        let ours = found.into_iter().filter(|issue| wanted.given.is_some() || issue.fields.labels.contains(&tag));
        let cycle = |issue: Issue| CycleFound {
            id: CycleId::new(issue.key),
            name: issue.fields.summary,
            // Workflows of issues differ from project to project; a refused write says it.
            closed: false,
        };
        Ok(ours.map(cycle).collect())
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let (project, kind) = (json!({ "key": self.rules.project }), json!({ "name": self.execution_type }));
        let summary = jira::cut(&wanted.name, jira::TITLE_CHARS_MAX);
        let mut fields = json!({ "project": project, "issuetype": kind, "summary": summary, "labels": [wanted.tag()] });
        if let Some(link) = &wanted.link {
            fields["description"] = json!(link);
        }
        self.create_issue(fields).await.map(CycleId::new)
    }

    /// An import adds the tests that it names.
    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let mut rows = Vec::new();
        for run in self.listed(cycle).await? {
            let other = |key: &String| !cases.is_empty() && !cases.iter().any(|case| case.as_str() == key);
            if !run.test().is_some_and(other) {
                rows.push(self.row(self.whole(run).await?)?);
            }
        }
        Ok(jira::chosen(rows.into_iter(), cases))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let tests: Vec<Value> = batch.iter().map(|entry| self.test(entry)).collect();
        let body = json!({ "testExecutionKey": cycle, "tests": tests });
        let answer = match self.caller.call(Call::post("/rest/raven/1.0/import/execution", &body), words).await {
            // A refusal may be of the entries, or of the execution that is there no more.
            Err(Trouble::Refused(what)) => {
                return Err(match self.issue(cycle.as_str()).await {
                    Err(Trouble::Gone(_)) => Trouble::Gone(what),
                    _ => Trouble::Refused(what),
                });
            }
            answer => answer?,
        };
        let made = jira::parsed::<Imported>(&answer)?.test_exec_issue.key;
        if made != cycle.as_str() {
            return Err(Trouble::Unknown(format!("written into {made}, though {cycle} was asked for")));
        }
        Ok(Written { rows: vec![None; batch.len()], refused: jira::import_errors(&answer, batch)?, job: None })
    }

    async fn amend(&self, _cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let path = format!("/rest/raven/latest/api/testrun/{}", jira::encoded(row.as_str()));
        self.caller.call(Call::put(path, &self.texts(entry)), words).await.map(drop)
    }

    async fn delete(&self, _cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        Err(Trouble::Refused(format!(
            "Xray can't take back a verdict by a call; test run {row} has to be reset by hand"
        )))
    }

    async fn close_cycle(&self, _cycle: &CycleId, _why: Closing) -> Result<(), Trouble> {
        Ok(())
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        let path = format!("/rest/api/2/issue/{}", jira::encoded(cycle.as_str()));
        match self.caller.call(Call::delete(path), words).await {
            Err(Trouble::Gone(_)) => Ok(()),
            ended => ended.map(drop),
        }
    }
}
