//! Xray Cloud: a cycle is a Test Execution, found by a Jira label; a case is a Test; a row is a Test Run, one for each
//! Test in an execution, which an import with the execution's key replaces (facts/targets.md, section 4).
//! Written from the vendor's pages, and tested against a stub only. Must not know strategies.

mod session;

use async_trait::async_trait;
use domain::Status;
use domain::marker::Marker;
use serde::Deserialize;
use serde_json::{Value, json};

use super::OpenError;
use super::jira::{self, CaseRules, Cases, Page, Titles, Words};
use crate::foreign::adapter::{Adapter, Closing, Written};
use crate::foreign::caller::{Call, Caller, Nature};
use crate::foreign::entry::{CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Rate, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::mapping::IdShape;
use crate::foreign::settings::TargetSettings;
use crate::foreign::trouble::Trouble;
use session::Session;

pub(crate) const FACTS: Facts = Facts {
    kind: Kind::XrayCloud,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Replaces,
    side_rows: &["evidence"],
    cycle_unique: false,
    marker: MarkerFacts { level: MarkerLevel::M3, field: "comment of the test run", chars_max: 8000, editable: true },
    // No cap is published; as many as one page of GraphQL, so that what was written is read back in one call.
    bulk: Bulk { items_max: 100, atomic: false },
    visible: Visible::AtOnce,
    repair: Repair { delete: true, amend: true, delete_cycle: true },
    // The smaller of the two documented rates.
    rate: Some(Rate { calls: 300, per_ms: 300_000 }),
    quiet_ms: 120_000,
    strategies: &[Strategy::Replace, Strategy::Reconcile],
    races: &[Race::R3, Race::R4, Race::R7, Race::R9],
};

/// The most rows of one page (source: the GraphQL reference).
const PAGE_MAX: u64 = 100;
const SHAPE: IdShape = IdShape::Dashed("");
const EXECUTIONS: &str = "query Executions($jql: String!, $limit: Int!, $start: Int!) { \
    getTestExecutions(jql: $jql, limit: $limit, start: $start) { \
    total start limit results { issueId jira(fields: [\"key\", \"summary\", \"labels\"]) } } }";
const CREATE_EXECUTION: &str = "mutation Create($jira: JSON!) { createTestExecution(testIssueIds: [], jira: $jira) { \
    testExecution { issueId jira(fields: [\"key\"]) } warnings } }";
const DELETE_EXECUTION: &str = "mutation Delete($id: String!) { deleteTestExecution(issueId: $id) }";
const TESTS: &str = "query Tests($jql: String!, $limit: Int!, $start: Int!) { \
    getTests(jql: $jql, limit: $limit, start: $start) { \
    total start limit results { issueId unstructured jira(fields: [\"key\", \"summary\"]) } } }";
const CREATE_TEST: &str = "mutation CreateTest($definition: String!, $jira: JSON!) { \
    createTest(testType: { name: \"Generic\" }, unstructured: $definition, jira: $jira) { \
    test { issueId jira(fields: [\"key\"]) } warnings } }";
const RUNS: &str = "query Runs($executions: [String], $limit: Int!, $start: Int!) { \
    getTestRuns(testExecIssueIds: $executions, limit: $limit, start: $start) { \
    total start limit results { id status { name } comment finishedOn lastModified defects evidence { filename } \
    test { issueId jira(fields: [\"key\"]) } } } }";
// The comment last: what holds the marker of a write holds all of that write.
const AMEND: &str = "mutation Amend($id: String!, $status: String!, $comment: String, $began: String, $ended: String) { \
    status: updateTestRunStatus(id: $id, status: $status) \
    texts: updateTestRun(id: $id, comment: $comment, startedOn: $began, finishedOn: $ended) { warnings } }";
const RESET: &str = "mutation Reset($id: String!) { resetTestRun(id: $id) }";

/// A tenant of Xray Cloud.
#[derive(Debug)]
pub(crate) struct XrayCloud {
    session: Session,
    rules: CaseRules,
    words: Words,
}

/// With the settings' user as the client's id, and their token as its secret.
pub(crate) fn open(settings: TargetSettings, caller: Caller) -> Result<XrayCloud, OpenError> {
    let words = Words::new(&settings, usual_word, "TO DO");
    let client_id = settings.user.ok_or(OpenError::Credential("user (the client id)"))?;
    let client_secret = settings.token.ok_or(OpenError::Credential("token (the client secret)"))?;
    settings.options.finish()?;
    let rules = CaseRules { shape: SHAPE, project: settings.project, create: settings.create_cases };
    Ok(XrayCloud { session: Session::new(caller, client_id, client_secret), rules, words })
}

/// There is none for an error; what was skipped is left as not done, as the vendor's own import of reports does.
fn usual_word(status: Status) -> &'static str {
    match status {
        Status::Passed => "PASSED",
        Status::Failed | Status::Errored => "FAILED",
        Status::Skipped => "TO DO",
    }
}

/// An execution is called by its key in imports and by its issue's number in GraphQL, and looking one up from the other
/// goes through an index that lags (R7): an id of ours holds both, `SHOP-90/10090`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Execution {
    key: String,
    issue: String,
}

impl Execution {
    fn parse(id: &CycleId) -> Option<Self> {
        let (key, issue) = id.as_str().split_once('/')?;
        Some(Self { key: key.to_owned(), issue: issue.to_owned() })
    }

    fn id(&self) -> CycleId {
        CycleId::new(format!("{}/{}", self.key, self.issue))
    }
}

#[derive(Debug, Deserialize)]
struct Issue {
    #[serde(rename = "issueId")]
    id: String,
    jira: Fields,
    /// The definition of a generic test: an import of reports keeps `class.name` there.
    unstructured: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Fields {
    key: String,
    #[serde(default)]
    summary: String,
    #[serde(default)]
    labels: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    id: String,
    status: StatusName,
    comment: Option<String>,
    finished_on: Option<String>,
    last_modified: Option<String>,
    #[serde(default)]
    defects: Option<Vec<String>>,
    #[serde(default)]
    evidence: Option<Vec<Evidence>>,
    test: Issue,
}

#[derive(Debug, Deserialize)]
struct StatusName {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Evidence {
    filename: String,
}

#[derive(Debug, Deserialize)]
struct Connection<T> {
    total: u64,
    results: Vec<T>,
}

/// What an import answers: where it was written to.
#[derive(Debug, Deserialize)]
struct Imported {
    key: String,
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Trouble> {
    serde_json::from_value(value).map_err(|e| Trouble::Unknown(format!("an answer without what was asked for: {e}")))
}

impl XrayCloud {
    async fn listing<T>(&self, query: &str, name: &str, what: &Value, from: jira::From) -> Result<Page<T>, Trouble>
    where
        T: serde::de::DeserializeOwned,
    {
        let mut variables = what.clone();
        variables["limit"] = json!(PAGE_MAX);
        variables["start"] = json!(from.row);
        let answer = self.session.graphql(Nature::Reads, query, &variables, name).await?;
        let page: Connection<T> = typed(answer)?;
        Ok(Page { total: Some(page.total), rows: page.results })
    }

    async fn executions(&self, jql: String) -> Result<Vec<Issue>, Trouble> {
        let what = json!({ "jql": jql });
        let mut found = jira::whole(
            |issue: &Issue| issue.id.clone(),
            |from| self.listing(EXECUTIONS, "getTestExecutions", &what, from),
        )
        .await?;
        found.sort_by_key(|issue| issue.id.parse::<u64>().unwrap_or(u64::MAX));
        Ok(found)
    }

    /// JQL takes the key of an issue that is not there for an error.
    async fn by_key(&self, key: &str) -> Result<Option<Issue>, Trouble> {
        match self.executions(format!("key = {}", jira::quoted(key))).await {
            Ok(found) => Ok(found.into_iter().find(|issue| issue.jira.key == key)),
            Err(Trouble::Refused(_)) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Both names of an execution. A bare key, as people give it, is looked up.
    async fn execution(&self, cycle: &CycleId) -> Result<Execution, Trouble> {
        if let Some(execution) = Execution::parse(cycle) {
            return Ok(execution);
        }
        let found = self.by_key(cycle.as_str()).await?;
        let found = found.ok_or_else(|| Trouble::Gone(format!("there is no test execution {cycle}")))?;
        Ok(Execution { key: found.jira.key, issue: found.id })
    }

    async fn runs(&self, execution: &Execution) -> Result<Vec<Run>, Trouble> {
        let what = json!({ "executions": [execution.issue] });
        jira::whole(|run: &Run| run.id.clone(), |from| self.listing(RUNS, "getTestRuns", &what, from)).await
    }

    fn row(&self, run: Run) -> Row {
        let comment = run.comment.unwrap_or_default();
        let marker = Marker::find(&comment);
        let evidence = run.evidence.unwrap_or_default().into_iter().map(|evidence| evidence.filename);
        let beside = run.defects.unwrap_or_default().into_iter().chain(evidence);
        let text = [jira::without_marker(&comment, &marker)].into_iter().chain(beside).collect::<Vec<_>>().join("\n");
        Row {
            id: RowId::new(run.id),
            case: CaseId::new(run.test.jira.key),
            status: self.words.read(&run.status.name, &marker),
            marker,
            at_ms: run.last_modified.or(run.finished_on).as_deref().and_then(jira::at_ms),
            text,
        }
    }

    fn test(&self, entry: &Entry) -> Value {
        json!({
            "testKey": entry.case, "status": self.words.word(entry.status), "comment": entry.comment(),
            "start": jira::time(jira::began_ms(entry)), "finish": jira::time(entry.at_ms),
        })
    }

    /// What became of a change of one run: a refusal may mean that the run is there no more.
    async fn of_run(&self, cycle: &CycleId, row: &RowId, ended: Result<Value, Trouble>) -> Result<(), Trouble> {
        let Err(Trouble::Refused(what)) = ended else { return ended.map(drop) };
        let runs = match self.execution(cycle).await {
            Ok(execution) => self.runs(&execution).await,
            Err(trouble) => Err(trouble),
        };
        match runs {
            Ok(runs) if runs.iter().all(|run| run.id != row.as_str()) => Err(Trouble::Gone(what)),
            _ => Err(Trouble::Refused(what)),
        }
    }

    /// A refusal may be of the entries, or of the execution that is there no more.
    async fn refusal(&self, execution: &Execution, what: String) -> Trouble {
        match self.by_key(&execution.key).await {
            Ok(None) => Trouble::Gone(what),
            _ => Trouble::Refused(what),
        }
    }
}

#[async_trait]
impl Cases for XrayCloud {
    async fn titles(&self) -> Result<Titles, Trouble> {
        let what = json!({ "jql": format!("project = {}", jira::quoted(&self.rules.project)) });
        let id = |issue: &Issue| issue.id.clone();
        let tests = jira::whole(id, |from| self.listing::<Issue>(TESTS, "getTests", &what, from)).await?;
        let mut titles = Titles::default();
        for test in tests {
            let definition = test.unstructured.filter(|text| !text.is_empty() && *text != test.jira.summary);
            for title in [Some(test.jira.summary), definition].into_iter().flatten() {
                titles.add(&title, CaseId::new(test.jira.key.clone()));
            }
        }
        Ok(titles)
    }

    async fn create_case(&self, title: &str) -> Result<CaseId, Trouble> {
        let jira = json!({ "fields": { "project": { "key": self.rules.project }, "summary": title } });
        let variables = json!({ "definition": title, "jira": jira });
        let answer = self.session.graphql(Nature::Writes, CREATE_TEST, &variables, "createTest").await?;
        let test: Issue = typed(answer.get("test").cloned().unwrap_or_default())?;
        Ok(CaseId::new(test.jira.key))
    }
}

#[async_trait]
impl Adapter for XrayCloud {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn held_back_ms(&self, calls: usize) -> u64 {
        self.session.held_back_ms(calls)
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        self.rules.choose(self, wanted).await
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let tag = wanted.tag();
        let found: Vec<Issue> = if let Some(given) = &wanted.given {
            let key = Execution::parse(given).map_or_else(|| given.to_string(), |execution| execution.key);
            self.by_key(&key).await?.into_iter().collect()
        } else {
            let (project, tag) = (jira::quoted(&self.rules.project), jira::quoted(&tag));
            self.executions(format!("project = {project} AND labels = {tag}")).await?
        };
        let ours = found.into_iter().filter(|issue| wanted.given.is_some() || issue.jira.labels.contains(&tag));
        Ok(ours
            .map(|issue| CycleFound {
                id: Execution { key: issue.jira.key, issue: issue.id }.id(),
                name: issue.jira.summary,
                closed: false,
            })
            .collect())
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let summary = jira::cut(&wanted.name, jira::TITLE_CHARS_MAX);
        let project = json!({ "key": self.rules.project });
        let jira = json!({ "fields": { "project": project, "summary": summary, "labels": [wanted.tag()] } });
        let variables = json!({ "jira": jira });
        let name = "createTestExecution";
        let answer = self.session.graphql(Nature::Writes, CREATE_EXECUTION, &variables, name).await?;
        let made: Issue = typed(answer.get("testExecution").cloned().unwrap_or_default())?;
        Ok(Execution { key: made.jira.key, issue: made.id }.id())
    }

    /// An import adds the tests that it names.
    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let execution = self.execution(cycle).await?;
        let runs = match self.runs(&execution).await {
            Err(Trouble::Refused(what)) => return Err(self.refusal(&execution, what).await),
            runs => runs?,
        };
        let rows = runs.into_iter().map(|run| self.row(run));
        Ok(jira::chosen(rows, cases))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let execution = self.execution(cycle).await.map_err(jira::unsent)?;
        let tests: Vec<Value> = batch.iter().map(|entry| self.test(entry)).collect();
        let body = json!({ "testExecutionKey": execution.key, "tests": tests });
        let answer = match self.session.call(Call::post("/api/v2/import/execution", &body)).await {
            Err(Trouble::Refused(what)) => return Err(self.refusal(&execution, what).await),
            answer => answer?,
        };
        let imported: Imported = jira::parsed(&answer)?;
        if imported.key != execution.key {
            let (asked, made) = (execution.key, imported.key);
            return Err(Trouble::Unknown(format!("written into {made}, though {asked} was asked for")));
        }
        Ok(Written { rows: vec![None; batch.len()], refused: jira::import_errors(&answer, batch)?, job: None })
    }

    async fn amend(&self, cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let variables = json!({
            "id": row, "status": self.words.word(entry.status), "comment": entry.comment(),
            "began": jira::time(jira::began_ms(entry)), "ended": jira::time(entry.at_ms),
        });
        self.of_run(cycle, row, self.session.graphql(Nature::Writes, AMEND, &variables, "texts").await).await
    }

    /// The run stays in its execution, as one that was never carried out.
    async fn delete(&self, cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        let ended = self.session.graphql(Nature::Writes, RESET, &json!({ "id": row }), "resetTestRun").await;
        jira::there(self.of_run(cycle, row, ended).await).map(drop)
    }

    /// There is no such thing: workflows of issues differ from project to project.
    async fn close_cycle(&self, _cycle: &CycleId, _why: Closing) -> Result<(), Trouble> {
        Ok(())
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        let execution = match self.execution(cycle).await {
            Err(Trouble::Gone(_)) => return Ok(()),
            execution => execution?,
        };
        let variables = json!({ "id": execution.issue });
        let name = "deleteTestExecution";
        match self.session.graphql(Nature::Writes, DELETE_EXECUTION, &variables, name).await {
            Err(Trouble::Refused(what)) => {
                jira::there(Err(self.refusal(&execution, what).await)).map(|_: Option<()>| ())
            }
            ended => ended.map(drop),
        }
    }
}
