//! Zephyr Scale Cloud: a cycle is a test cycle that holds its tag in the description; a row is a test execution, one
//! more with each `POST` (facts/targets.md, section 5).
//! Written from the vendor's pages and from clients, and tested against a stub only. Must not know strategies.

use std::collections::BTreeMap;

use async_trait::async_trait;
use domain::Status;
use domain::marker::Marker;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::OpenError;
use super::jira::{self, CaseRules, Cases, Page, Titles, Words};
use crate::classify::Answer;
use crate::foreign::adapter::{Adapter, Closing, Namesake, Written};
use crate::foreign::caller::{Call, Caller};
use crate::foreign::entry::{CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::mapping::{IdShape, ids_in};
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::is_tagged;
use crate::foreign::trouble::Trouble;

pub(crate) const FACTS: Facts = Facts {
    kind: Kind::ZephyrCloud,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: false,
    marker: MarkerFacts { level: MarkerLevel::M3, field: "comment of the execution", chars_max: 8000, editable: true },
    bulk: Bulk { items_max: 1, atomic: true },
    // By its id at once; how far lists lag is not published.
    visible: Visible::Later(5_000),
    repair: Repair { delete: false, amend: true, delete_cycle: false },
    // Not published.
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Reconcile],
    races: &[Race::R1, Race::R2, Race::R3, Race::R7],
};

/// The most rows of one page (source: the vendor's API description).
const PAGE_MAX: u64 = 1000;
const SHAPE: IdShape = IdShape::Dashed("T");

/// A project of Zephyr Scale Cloud.
#[derive(Debug)]
pub(crate) struct ZephyrCloud {
    caller: Caller,
    base: &'static str,
    rules: CaseRules,
    words: Words,
    folder: Option<u64>,
    /// Lists name statuses and cases by number; both are looked up again when one is met that is not known.
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    statuses: BTreeMap<u64, String>,
    cases: BTreeMap<u64, CaseId>,
}

/// With the settings' token. The address may end in `/v2`, as the vendor writes it, or not.
///
/// Key of its own: `folder`, the number of the folder that cycles are made in.
pub(crate) fn open(mut settings: TargetSettings, caller: Caller) -> Result<ZephyrCloud, OpenError> {
    let token = settings.token.as_ref().ok_or(OpenError::Credential("token"))?;
    let caller = caller.bearer(token)?;
    let words = Words::new(&settings, usual_word, "Not Executed");
    let folder = settings.options.number("folder")?;
    settings.options.finish()?;
    let base = if settings.url.to_string().ends_with("/v2") { "" } else { "/v2" };
    let rules = CaseRules { shape: SHAPE, project: settings.project, create: settings.create_cases };
    Ok(ZephyrCloud { caller, base, rules, words, folder, names: Mutex::default() })
}

/// There is none for an error; what was skipped was not executed.
fn usual_word(status: Status) -> &'static str {
    match status {
        Status::Passed => "Pass",
        Status::Failed | Status::Errored => "Fail",
        Status::Skipped => "Not Executed",
    }
}

/// `{errorCode, message}`, or of the gate in front `{message}` or `{error}`.
fn words(answer: &Answer) -> Option<String> {
    jira::member(answer, "message").or_else(|| jira::member(answer, "error"))
}

#[derive(Debug, Deserialize)]
struct Listing<T> {
    total: u64,
    values: Vec<T>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CursorPage<T> {
    values: Vec<T>,
    next_start_at_id: Option<u64>,
}

/// A case, a cycle, or what is answered when one is made.
#[derive(Debug, Deserialize)]
struct Named {
    id: u64,
    key: String,
    #[serde(default)]
    name: String,
    description: Option<String>,
}

#[derive(Debug, Deserialize)]
struct StatusNamed {
    id: u64,
    name: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Link {
    id: u64,
    #[serde(default, rename = "self")]
    address: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Execution {
    id: u64,
    test_case: Link,
    test_execution_status: Link,
    comment: Option<String>,
    actual_end_date: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Made {
    id: u64,
}

impl ZephyrCloud {
    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Trouble> {
        jira::parsed(&self.caller.call(Call::get(format!("{}{path}", self.base)), words).await?)
    }

    /// A listing of the project, whole. `query` goes on after the project.
    async fn listing<T, K>(&self, what: &str, query: &str, id: impl Fn(&T) -> K) -> Result<Vec<T>, Trouble>
    where
        T: DeserializeOwned,
        K: Ord,
    {
        let fetch = |from: jira::From| {
            let start = from.row;
            let project = jira::encoded(&self.rules.project);
            let path = format!("/{what}?projectKey={project}{query}&maxResults={PAGE_MAX}&startAt={start}");
            async move {
                let page: Listing<T> = self.get(&path).await?;
                Ok(Page { total: Some(page.total), rows: page.values })
            }
        };
        jira::whole(id, fetch).await
    }

    /// By cursor, which rows that come meanwhile don't shift.
    async fn by_cursor(&self, query: &str) -> Result<Vec<Execution>, Trouble> {
        let (mut rows, mut start): (Vec<Execution>, u64) = (Vec::new(), 0);
        loop {
            let project = jira::encoded(&self.rules.project);
            let path =
                format!("/testexecutions/nextgen?projectKey={project}{query}&limit={PAGE_MAX}&startAtId={start}");
            let page: CursorPage<Execution> = self.get(&path).await?;
            rows.extend(page.values);
            // A page may be empty and not the last: the cursor says.
            match page.next_start_at_id {
                Some(next) if next > start => start = next,
                _ => break,
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        rows.retain(|row| seen.insert(row.id));
        Ok(rows)
    }

    async fn executions(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Execution>, Trouble> {
        let one =
            if let [case] = cases { format!("&testCase={}", jira::encoded(case.as_str())) } else { String::new() };
        let query = format!("&testCycle={}{one}", jira::encoded(cycle.as_str()));
        match self.by_cursor(&query).await {
            // Not every region has the cursor. If it is the cycle that is gone, the other listing says so too.
            Err(Trouble::Gone(_)) => self.listing("testexecutions", &query, |row: &Execution| row.id).await,
            rows => rows,
        }
    }

    async fn learn_statuses(&self, names: &mut Names) -> Result<(), Trouble> {
        let query = "&statusType=TEST_EXECUTION";
        let statuses = self.listing("statuses", query, |status: &StatusNamed| status.id).await?;
        names.statuses = statuses.into_iter().map(|status| (status.id, status.name)).collect();
        Ok(())
    }

    async fn learn_cases(&self, names: &mut Names) -> Result<(), Trouble> {
        let cases = self.listing("testcases", "", |case: &Named| case.id).await?;
        names.cases = cases.into_iter().map(|case| (case.id, CaseId::new(case.key))).collect();
        Ok(())
    }

    async fn row(&self, execution: Execution, names: &mut Names) -> Result<Row, Trouble> {
        // The link to a case holds its key on most hosts, which saves the listing of all cases.
        let linked = execution.test_case.address.as_deref().and_then(|link| ids_in(link, SHAPE).into_iter().next());
        let case = if let Some(key) = linked {
            CaseId::new(key)
        } else {
            if !names.cases.contains_key(&execution.test_case.id) {
                self.learn_cases(names).await?;
            }
            // A case that no list shows any more is still told apart from all others.
            let known = names.cases.get(&execution.test_case.id).cloned();
            known.unwrap_or_else(|| CaseId::new(execution.test_case.id.to_string()))
        };
        let status = execution.test_execution_status.id;
        if !names.statuses.contains_key(&status) {
            self.learn_statuses(names).await?;
        }
        let word = names.statuses.get(&status).cloned().unwrap_or_else(|| format!("status {status}"));
        let comment = plain(&execution.comment.unwrap_or_default());
        let marker = Marker::find(&comment);
        Ok(Row {
            id: RowId::new(execution.id.to_string()),
            case,
            status: self.words.read(&word, &marker),
            marker,
            at_ms: execution.actual_end_date.as_deref().and_then(jira::at_ms),
            text: jira::without_marker(&comment, &marker),
        })
    }

    fn texts(&self, entry: &Entry) -> Value {
        let mut texts = json!({
            "statusName": self.words.word(entry.status), "comment": html(&entry.comment()),
            "actualEndDate": jira::time(entry.at_ms),
        });
        if let Some(duration) = entry.duration_us {
            texts["executionTime"] = json!(duration.0 / 1000);
        }
        texts
    }

    async fn write_one(&self, cycle: &CycleId, entry: &Entry) -> Result<RowId, Trouble> {
        let mut body = self.texts(entry);
        body["projectKey"] = json!(self.rules.project);
        body["testCaseKey"] = json!(entry.case);
        body["testCycleKey"] = json!(cycle);
        match self.caller.call(Call::post(format!("{}/testexecutions", self.base), &body), words).await {
            Ok(answer) => Ok(RowId::new(jira::parsed::<Made>(&answer)?.id.to_string())),
            // The case or the cycle: 404 is said of both, and 400 too.
            Err(Trouble::Gone(what) | Trouble::Refused(what)) => Err(match self.cycle(cycle).await {
                Err(Trouble::Gone(_)) => Trouble::Gone(what),
                _ => Trouble::Refused(what),
            }),
            Err(trouble) => Err(trouble),
        }
    }

    async fn cycle(&self, cycle: &CycleId) -> Result<Named, Trouble> {
        self.get(&format!("/testcycles/{}", jira::encoded(cycle.as_str()))).await
    }
}

/// Comments are shown as HTML.
fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\n', "<br>")
}

/// Back from [`html`].
fn plain(text: &str) -> String {
    text.replace("<br>", "\n").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[async_trait]
impl Cases for ZephyrCloud {
    async fn titles(&self) -> Result<Titles, Trouble> {
        let mut titles = Titles::default();
        for case in self.listing("testcases", "", |case: &Named| case.id).await? {
            titles.add(&case.name, CaseId::new(case.key));
        }
        Ok(titles)
    }

    async fn create_case(&self, title: &str) -> Result<CaseId, Trouble> {
        let body = json!({ "projectKey": self.rules.project, "name": title });
        let answer = self.caller.call(Call::post(format!("{}/testcases", self.base), &body), words).await?;
        Ok(CaseId::new(jira::parsed::<Named>(&answer)?.key))
    }
}

/// Executions are taken whatever the status of the cycle.
fn namesake(cycle: Named) -> Namesake {
    let tagged = cycle.description.as_deref().is_some_and(is_tagged);
    let found = CycleFound { id: CycleId::new(cycle.key), name: cycle.name, closed: false };
    Namesake { found, made_ms: None, tagged }
}

#[async_trait]
impl Adapter for ZephyrCloud {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        self.rules.choose(self, wanted).await
    }

    /// There is no search: all cycles of the project are listed.
    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let mut found: Vec<Named> = if let Some(given) = &wanted.given {
            jira::there(self.cycle(given).await)?.into_iter().collect()
        } else {
            let (mut all, tag) = (self.listing("testcycles", "", |cycle: &Named| cycle.id).await?, wanted.tag());
            all.retain(|cycle| cycle.description.as_ref().is_some_and(|text| text.contains(&tag)));
            all
        };
        found.sort_by_key(|cycle| cycle.id);
        Ok(found.into_iter().map(|cycle| namesake(cycle).found).collect())
    }

    async fn namesakes(&self, name: &str) -> Result<Option<Vec<Namesake>>, Trouble> {
        let all = self.listing("testcycles", "", |cycle: &Named| cycle.id).await?.into_iter();
        Ok(Some(all.filter(|cycle| cycle.name == name).map(namesake).collect()))
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let lines: Vec<String> = wanted.link.iter().cloned().chain([wanted.tag()]).collect();
        let mut body = json!({
            "projectKey": self.rules.project, "name": jira::cut(&wanted.name, jira::TITLE_CHARS_MAX),
            "description": html(&lines.join("\n\n")),
        });
        if let Some(folder) = self.folder {
            body["folderId"] = json!(folder);
        }
        let answer = self.caller.call(Call::post(format!("{}/testcycles", self.base), &body), words).await?;
        Ok(CycleId::new(jira::parsed::<Named>(&answer)?.key))
    }

    /// A case is in a cycle once it has an execution there.
    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let executions = self.executions(cycle, cases).await?;
        let mut names = self.names.lock().await;
        let mut rows = Vec::with_capacity(executions.len());
        for execution in executions {
            rows.push(self.row(execution, &mut names).await?);
        }
        Ok(jira::chosen(rows.into_iter(), cases))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let mut written = Written::default();
        for (place, entry) in batch.iter().enumerate() {
            match self.write_one(cycle, entry).await {
                Ok(row) => written.rows.push(Some(row)),
                Err(Trouble::Refused(what)) if batch.len() > 1 => {
                    written.rows.push(None);
                    written.refused.push((place, what));
                }
                // Some are written already.
                Err(trouble) if place > 0 => return Err(Trouble::Unknown(trouble.to_string())),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(written)
    }

    async fn amend(&self, _cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let path = format!("{}/testexecutions/{}", self.base, jira::encoded(row.as_str()));
        self.caller.call(Call::put(path, &self.texts(entry)), words).await.map(drop)
    }

    async fn delete(&self, _cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        Err(Trouble::Refused(format!("Zephyr has no call that deletes an execution; {row} has to be deleted by hand")))
    }

    async fn close_cycle(&self, _cycle: &CycleId, _why: Closing) -> Result<(), Trouble> {
        Ok(())
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        Err(Trouble::Refused(format!("Zephyr has no call that deletes a cycle; {cycle} has to be deleted by hand")))
    }
}
