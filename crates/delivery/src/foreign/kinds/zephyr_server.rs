//! Zephyr Scale for Jira Server and Data Center: a cycle is a test run that holds its tag in its name; a row is a test
//! result, one more with each `POST` (facts/targets.md, section 6).
//! Written from the vendor's page and from clients, and tested against a stub only. Must not know strategies.

use async_trait::async_trait;
use domain::Status;
use domain::marker::{Found, Marker};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::OpenError;
use super::jira::{self, CaseRules, Cases, Page, Titles, Words};
use crate::classify::Answer;
use crate::foreign::adapter::{Adapter, Closing, Namesake, Written};
use crate::foreign::attachment::{File, Listed, post_file};
use crate::foreign::caller::{Call, Caller};
use crate::foreign::entry::{CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::mapping::IdShape;
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::is_tagged;
use crate::foreign::trouble::{Trouble, in_words, json as json_of};

pub(crate) const FACTS: Facts = Facts {
    kind: Kind::ZephyrServer,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    // A second run of the same name is taken.
    cycle_unique: false,
    marker: MarkerFacts { level: MarkerLevel::M3, field: "comment of the result", chars_max: 8000, editable: true },
    // No cap is published, nor whether the array is carried out as a whole.
    bulk: Bulk { items_max: 100, atomic: false },
    visible: Visible::AtOnce,
    repair: Repair { delete: false, amend: true, delete_cycle: true },
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Reconcile, Strategy::Container],
    races: &[Race::R1, Race::R2, Race::R3, Race::R4, Race::R9],
};

const API: &str = "/rest/atm/1.0";
const PAGE_MAX: u64 = 200;
const SHAPE: IdShape = IdShape::Dashed("T");

/// Zephyr Scale in one Jira.
#[derive(Debug)]
pub(crate) struct ZephyrServer {
    caller: Caller,
    rules: CaseRules,
    words: Words,
    folder: Option<String>,
}

/// With a personal token, or a user and a password.
///
/// Key of its own: `folder`, such as `/Nightly`: it must be there, runs are made in it, and only it is listed to find
/// them again.
pub(crate) fn open(mut settings: TargetSettings, caller: Caller) -> Result<ZephyrServer, OpenError> {
    let caller = jira::authorised(caller, &settings)?;
    let words = Words::new(&settings, usual_word, "Not Executed");
    let folder = settings.options.text("folder")?;
    settings.options.finish()?;
    let rules = CaseRules { shape: SHAPE, project: settings.project, create: settings.create_cases };
    Ok(ZephyrServer { caller, rules, words, folder })
}

/// Case-sensitive. There is none for an error; what was skipped was not executed.
fn usual_word(status: Status) -> &'static str {
    match status {
        Status::Passed => "Pass",
        Status::Failed | Status::Errored => "Fail",
        Status::Skipped => "Not Executed",
    }
}

/// A case or a run: found, or just made.
#[derive(Debug, Deserialize)]
struct Named {
    key: String,
    #[serde(default)]
    name: String,
}

/// Some builds answer with the rows alone, some with an envelope.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Listing<T> {
    Bare(Vec<T>),
    Enveloped { total: Option<u64>, values: Vec<T> },
}

impl<T> Listing<T> {
    fn page(self) -> Page<T> {
        match self {
            Listing::Bare(rows) => Page { total: None, rows },
            Listing::Enveloped { total, values } => Page { total, rows: values },
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestResult {
    id: u64,
    test_case_key: String,
    status: String,
    comment: Option<String>,
    execution_date: Option<String>,
    actual_end_date: Option<String>,
}

/// A file of a result.
#[derive(Debug, Deserialize)]
struct Attached {
    #[serde(alias = "fileName", alias = "name")]
    filename: Option<String>,
}

/// Ids come as numbers, or each within an object.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum MadeId {
    Bare(u64),
    Within { id: u64 },
}

impl MadeId {
    fn row(&self) -> RowId {
        let (MadeId::Bare(id) | MadeId::Within { id }) = self;
        RowId::new(id.to_string())
    }
}

impl ZephyrServer {
    /// Every run of the project, or of the folder that is named.
    async fn runs(&self) -> Result<Vec<Named>, Trouble> {
        let folder = self.folder.iter().map(|folder| format!(" AND folder = {}", jira::quoted(folder)));
        let query = self.project_query() + &folder.collect::<String>();
        self.search("testrun", &query).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Trouble> {
        jira::parsed(&self.caller.call(Call::get(format!("{API}{path}")), jira::words).await?)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Answer, Trouble> {
        self.caller.call(Call::post(format!("{API}{path}"), body), jira::words).await
    }

    /// Oldest first, as far as the numbers in their keys tell.
    async fn search(&self, what: &str, query: &str) -> Result<Vec<Named>, Trouble> {
        let fetch = |from: jira::From| {
            let start = from.row;
            let query = jira::encoded(query);
            let path = format!("/{what}/search?query={query}&fields=key,name&startAt={start}&maxResults={PAGE_MAX}");
            async move { Ok(self.get::<Listing<Named>>(&path).await?.page()) }
        };
        let mut found = jira::whole(|named: &Named| named.key.clone(), fetch).await?;
        found.sort_by_key(|named| number(&named.key));
        Ok(found)
    }

    fn project_query(&self) -> String {
        format!("projectKey = {}", jira::quoted(&self.rules.project))
    }

    async fn run(&self, cycle: &CycleId) -> Result<Named, Trouble> {
        self.get(&format!("/testrun/{}?fields=key,name", jira::encoded(cycle.as_str()))).await
    }

    async fn results(&self, cycle: &CycleId) -> Result<Vec<TestResult>, Trouble> {
        let run = format!("/testrun/{}/testresults", jira::encoded(cycle.as_str()));
        let fetch = |from: jira::From| {
            let start = from.row;
            let path = format!("{run}/page?startAt={start}&maxResults={PAGE_MAX}&onlyLastExecutions=false");
            async move { Ok(self.get::<Listing<TestResult>>(&path).await?.page()) }
        };
        match jira::whole(|result: &TestResult| result.id, fetch).await {
            // Older builds have no pages, and say so as of a run that is not there.
            Err(Trouble::Gone(_)) => Ok(self.get::<Listing<TestResult>>(&run).await?.page().rows),
            results => results,
        }
    }

    /// The files of a result. A build that shows no names of them can't be asked what is there.
    async fn files_of(&self, row: &Row) -> Result<Listed, Trouble> {
        let path = format!("/testresult/{}/attachments", jira::encoded(row.id.as_str()));
        let files: Vec<Attached> = self.get::<Listing<Attached>>(&path).await?.page().rows;
        let names: Option<Vec<String>> = files.into_iter().map(|file| file.filename).collect();
        Ok(names.map_or(Listed::Unlisted, Listed::Names))
    }

    fn row(&self, result: TestResult) -> Row {
        let comment = result.comment.unwrap_or_default();
        let marker = Marker::find(&comment);
        Row {
            id: RowId::new(result.id.to_string()),
            case: CaseId::new(result.test_case_key),
            status: self.words.read(&result.status, &marker),
            marker,
            at_ms: result.execution_date.or(result.actual_end_date).as_deref().and_then(jira::at_ms),
            text: jira::without_marker(&comment, &marker),
        }
    }

    fn texts(&self, entry: &Entry) -> Value {
        let mut texts = json!({
            "status": self.words.word(entry.status), "comment": entry.comment(),
            "actualStartDate": jira::time(jira::began_ms(entry)), "actualEndDate": jira::time(entry.at_ms),
        });
        if let Some(duration) = entry.duration_us {
            texts["executionTime"] = json!(duration.0 / 1000);
        }
        texts
    }

    /// What a refusal means. Builds refuse a case that is not in the run by 400 or 404; the run itself may be gone; and
    /// nobody says whether the others of an array are kept when one is refused: the run is read, as nothing comes late
    /// after an answer.
    async fn refusal(&self, cycle: &CycleId, batch: &[Entry], what: String) -> Trouble {
        match self.results(cycle).await {
            Err(Trouble::Gone(_)) => Trouble::Gone(what),
            Err(_) => Trouble::Unknown(what),
            Ok(results) => {
                let written = results.iter().any(|result| {
                    let found = Marker::find(result.comment.as_deref().unwrap_or_default());
                    batch.iter().any(|entry| found == Found::Whole(entry.marker))
                });
                if written { Trouble::Unknown(what) } else { Trouble::Refused(what) }
            }
        }
    }
}

/// The number at the end of a key: `SHOP-R12`, or `SHOP-C12` on older builds.
fn number(key: &str) -> u64 {
    let digits = key.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(u64::MAX)
}

#[async_trait]
impl Cases for ZephyrServer {
    async fn titles(&self) -> Result<Titles, Trouble> {
        let mut titles = Titles::default();
        for case in self.search("testcase", &self.project_query()).await? {
            titles.add(&case.name, CaseId::new(case.key));
        }
        Ok(titles)
    }

    async fn create_case(&self, title: &str) -> Result<CaseId, Trouble> {
        let body = json!({ "projectKey": self.rules.project, "name": title });
        Ok(CaseId::new(jira::parsed::<Named>(&self.post("/testcase", &body).await?)?.key))
    }
}

fn cycle(run: Named) -> CycleFound {
    CycleFound { id: CycleId::new(run.key), name: run.name, closed: false }
}

#[async_trait]
impl Adapter for ZephyrServer {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        self.rules.choose(self, wanted).await
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let found: Vec<Named> = if let Some(given) = &wanted.given {
            jira::there(self.run(given).await)?.into_iter().collect()
        } else {
            let mut runs = self.runs().await?;
            let tag = wanted.tag();
            runs.retain(|run| run.name.contains(&tag));
            runs
        };
        Ok(found.into_iter().map(cycle).collect())
    }

    async fn namesakes(&self, name: &str) -> Result<Option<Vec<Namesake>>, Trouble> {
        let same = self.runs().await?.into_iter().filter(|run| run.name == name);
        let namesake = |run| Namesake { found: cycle(run), made_ms: None, tagged: is_tagged(name) };
        Ok(Some(same.map(namesake).collect()))
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let tag = format!(" {}", wanted.tag());
        let name = jira::cut(&wanted.name, jira::TITLE_CHARS_MAX - tag.len());
        let mut body = json!({ "projectKey": self.rules.project, "name": format!("{name}{tag}") });
        if let Some(folder) = &self.folder {
            body["folder"] = json!(folder);
        }
        Ok(CycleId::new(jira::parsed::<Named>(&self.post("/testrun", &body).await?)?.key))
    }

    /// A run can't be changed once it is made: whether a result of another case is taken, the build decides, and a
    /// refused write says it.
    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let rows = self.results(cycle).await?.into_iter().map(|result| self.row(result));
        Ok(jira::chosen(rows, cases))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let result = |entry: &Entry| {
            let mut result = self.texts(entry);
            result["testCaseKey"] = json!(entry.case);
            result
        };
        let body = Value::Array(batch.iter().map(result).collect());
        let path = format!("/testrun/{}/testresults", jira::encoded(cycle.as_str()));
        let answer = match self.post(&path, &body).await {
            Err(Trouble::Gone(what) | Trouble::Refused(what)) => return Err(self.refusal(cycle, batch, what).await),
            answer => answer?,
        };
        let made: Vec<MadeId> = serde_json::from_value(json_of(&answer)?).unwrap_or_default();
        if made.len() != batch.len() {
            return Err(Trouble::Unknown(in_words(&answer)));
        }
        Ok(Written { rows: made.iter().map(|id| Some(id.row())).collect(), refused: Vec::new(), job: None })
    }

    /// Only the newest result of a case in a run can be changed; a newer one stays (what comes between the look and the
    /// change is race R4).
    async fn amend(&self, cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let results = self.results(cycle).await.map_err(jira::unsent)?;
        let of_case = results.iter().filter(|result| result.test_case_key == entry.case.as_str());
        match of_case.map(|result| result.id).max() {
            Some(latest) if latest.to_string() == row.as_str() => {}
            Some(latest) => {
                let what = format!("result {row} can't be changed any more: {latest} of the same case is newer");
                return Err(Trouble::Refused(what));
            }
            None => return Err(Trouble::Gone(format!("{cycle} holds no result of {}", entry.case))),
        }
        let (run, case) = (jira::encoded(cycle.as_str()), jira::encoded(entry.case.as_str()));
        let call = Call::put(format!("{API}/testrun/{run}/testcase/{case}/testresult"), &self.texts(entry));
        self.caller.call(call, jira::words).await.map(drop)
    }

    async fn delete(&self, _cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        Err(Trouble::Refused(format!("Zephyr has no call that deletes a result; {row} has to be deleted by hand")))
    }

    async fn attachments(&self, _cycle: &CycleId, row: &Row) -> Result<Listed, Trouble> {
        self.files_of(row).await
    }

    async fn attach(&self, _cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        let call = post_file(format!("{API}/testresult/{}/attachments", jira::encoded(row.id.as_str())), "file", file);
        // Without it Jira takes a form for one of a browser's that was led astray.
        self.caller.call(call.header("x-atlassian-token", "no-check"), jira::words).await.map(drop)
    }

    /// A run can't be labelled or closed: one that doesn't count is deleted, so that nobody takes anything from it.
    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble> {
        match why {
            Closing::Complete => Ok(()),
            Closing::Abandoned => self.delete_cycle(cycle).await,
        }
    }

    fn deletes_abandoned(&self) -> bool {
        true
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        let path = format!("{API}/testrun/{}", jira::encoded(cycle.as_str()));
        match self.caller.call(Call::delete(path), jira::words).await {
            Err(Trouble::Gone(_)) => Ok(()),
            ended => ended.map(drop),
        }
    }
}
