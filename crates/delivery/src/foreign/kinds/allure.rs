//! Allure `TestOps`: results are uploaded into launches, and processed later (`facts/targets.md`, section 13; members as
//! the vendor's own plugin sends them). Must not know any strategy.

use async_trait::async_trait;
use domain::Status;
use http::{Method, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::OpenError;
use super::caseless::{
    Gathered, absent, comment, encoded, itself, of_cases, of_form, row_status, said, shortened, span_ms, tagged,
};
use crate::classify::Answer;
use crate::foreign::adapter::{Adapter, Closing, Written};
use crate::foreign::caller::{Call, Caller, Nature};
use crate::foreign::entry::{CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Rate, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::settings::TargetSettings;
use crate::foreign::trouble::{Trouble, judge};
use crate::secret::Secret;

const PAGE: usize = 100;
const NAME_CHARS_MAX: usize = 255;
const MESSAGE_CHARS_MAX: usize = 5000;
/// How the name of a launch begins from which nothing may be taken.
const ABANDONED: &str = "abandoned: ";

/// What is known of Allure `TestOps`.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Allure,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: false,
    marker: MarkerFacts { level: MarkerLevel::M5, field: "message", chars_max: MESSAGE_CHARS_MAX, editable: false },
    bulk: Bulk { items_max: 100, atomic: false },
    visible: Visible::Later(30_000),
    repair: Repair { delete: false, amend: false, delete_cycle: true },
    rate: Some(Rate { calls: 20, per_ms: 1000 }),
    quiet_ms: 120_000,
    strategies: &[Strategy::Container],
    races: &[Race::R1, Race::R3, Race::R6, Race::R7],
};

/// One project.
#[derive(Debug)]
pub(crate) struct Allure {
    caller: Caller,
    settings: TargetSettings,
    token: Secret,
    /// What the token was changed for; empty before the first call.
    session: Mutex<Option<Secret>>,
}

#[derive(Deserialize)]
struct Login {
    access_token: String,
}

#[derive(Deserialize)]
struct Made {
    id: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    content: Vec<T>,
    // Never guessed: a list whose end isn't known is not whole.
    total_elements: u64,
    total_pages: u64,
}

#[derive(Deserialize)]
struct Tag {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Launch {
    id: u64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    closed: bool,
    #[serde(default)]
    tags: Vec<Tag>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    id: u64,
    full_name: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: Option<String>,
    message: Option<String>,
    stop: Option<u64>,
}

#[derive(Deserialize)]
struct Uploaded {
    #[serde(default)]
    results: Vec<UploadedOne>,
}

#[derive(Deserialize)]
struct UploadedOne {
    id: u64,
    uuid: String,
}

pub(crate) fn open(settings: TargetSettings, caller: Caller) -> Result<Allure, OpenError> {
    let token = settings.token.clone().ok_or(OpenError::Credential("the API token (token)"))?;
    settings.options.clone().finish()?;
    Ok(Allure { caller, settings, token, session: Mutex::default() })
}

/// What the server's error form says.
fn words(answer: &Answer) -> Option<String> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let said = ["message", "error_description", "error"].into_iter().find_map(|name| body.get(name)?.as_str());
    said.map(str::to_owned)
}

impl Allure {
    fn word(&self, status: Status) -> String {
        let usual = match status {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Errored => "broken",
            Status::Skipped => "skipped",
        };
        self.settings.status(status).unwrap_or(usual).to_owned()
    }

    async fn log_in(&self) -> Result<Secret, Trouble> {
        let token = encoded(self.token.expose());
        let form = format!("grant_type=apitoken&scope=openid&token={token}");
        let call = Call::new(Method::POST, "/api/uaa/oauth/token", Nature::Reads)
            .content("application/x-www-form-urlencoded", form);
        let login: Login = of_form(&self.caller.call(call, words).await?)?;
        Ok(Secret::new(&login.access_token))
    }

    /// With a login; a reading that finds it worn out logs in again, once.
    async fn call(&self, call: Call) -> Result<Answer, Trouble> {
        let mut session = self.session.lock().await;
        let known = session.is_some();
        let secret = match session.clone() {
            Some(secret) => secret,
            None => self.log_in().await?,
        };
        *session = Some(secret.clone());
        drop(session);
        let answer = self.caller.ask(with(&call, &secret)).await?;
        if answer.status != 401 {
            return judge(answer, call.nature(), words);
        }
        let mut session = self.session.lock().await;
        *session = None;
        if known && call.nature() == Nature::Reads {
            let secret = self.log_in().await?;
            *session = Some(secret.clone());
            return judge(self.caller.ask(with(&call, &secret)).await?, Nature::Reads, words);
        }
        judge(answer, call.nature(), words)
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &str,
        id: impl Fn(&T) -> String + Send + Sync,
    ) -> Result<Vec<T>, Trouble> {
        let mut all = Gathered::new();
        for number in 0.. {
            let page: Page<T> = of_form(&self.call(Call::get(format!("{path}&page={number}&size={PAGE}"))).await?)?;
            let last = page.content.is_empty() || number + 1 >= page.total_pages;
            all.add(page.content, page.total_elements, &id);
            if last {
                break;
            }
        }
        all.whole(what)
    }

    fn upload(&self, entry: &Entry) -> Value {
        let (start, stop) = span_ms(entry);
        json!({
            "uuid": entry.uuid(),
            "name": shortened(&entry.title, NAME_CHARS_MAX),
            "fullName": entry.case.as_str(),
            // Without the attempt: results of one item become retries of one test.
            "historyId": entry.case.as_str(),
            "status": self.word(entry.status),
            "start": start,
            "stop": stop,
            "message": comment(entry, MESSAGE_CHARS_MAX),
            "labels": [{ "name": "tallyonce", "value": entry.marker.to_string() }],
        })
    }

    fn row(&self, outcome: Outcome) -> Row {
        let said = said(outcome.message.as_deref().unwrap_or_default());
        let own = outcome.full_name.unwrap_or(outcome.name);
        Row {
            id: RowId::new(outcome.id.to_string()),
            case: said.case.unwrap_or_else(|| CaseId::new(own)),
            status: row_status(
                outcome.status.as_deref().unwrap_or_default(),
                |status| self.word(status),
                &["", "in_progress"],
            ),
            marker: said.marker,
            at_ms: outcome.stop,
            text: said.text,
        }
    }
}

fn with(call: &Call, secret: &Secret) -> Call {
    call.clone().header(header::AUTHORIZATION.as_str(), &format!("Bearer {}", secret.expose()))
}

fn found(launch: Launch) -> CycleFound {
    CycleFound { id: CycleId::new(launch.id.to_string()), name: launch.name, closed: launch.closed }
}

fn unchanging() -> Trouble {
    Trouble::Refused("results of a launch are not changed: a launch of its own counts instead".to_owned())
}

#[async_trait]
impl Adapter for Allure {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn held_back_ms(&self, calls: usize) -> u64 {
        self.caller.held_back_ms(calls)
    }

    /// Every item has one: results stand for themselves, and the server joins them by their full name.
    fn own_cases(&self, wanted: &[CaseWanted<'_>]) -> Option<Vec<CaseChoice>> {
        Some(wanted.iter().map(|wanted| CaseChoice::Known(itself(wanted))).collect())
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        if let Some(given) = &wanted.given {
            let path = format!("/api/launch/{}", encoded(given.as_str()));
            return Ok(vec![found(of_form(&self.call(Call::get(path)).await?)?)]);
        }
        let tag = wanted.tag();
        let query = encoded(&format!("tag = \"{tag}\""));
        let path = format!("/api/launch/__search?projectId={}&rql={query}", encoded(&self.settings.project));
        let mut launches = self.pages(&path, "the launches", |launch: &Launch| launch.id.to_string()).await?;
        launches.retain(|launch| launch.name.contains(&tag) || launch.tags.iter().any(|other| other.name == tag));
        launches.sort_by_key(|launch| launch.id);
        Ok(launches.into_iter().map(found).collect())
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let links: Vec<Value> = wanted.link.iter().map(|url| json!({ "name": "Pipeline", "url": url })).collect();
        let body = json!({
            "projectId": self.settings.project.parse::<u64>().map_or_else(|_| json!(self.settings.project), |id| json!(id)),
            "name": tagged(&wanted.name, &wanted.tag(), NAME_CHARS_MAX),
            // Nothing but our own end ends it.
            "autoclose": false,
            "external": true,
            "tags": [{ "name": wanted.tag() }],
            "links": links,
        });
        let made: Made = of_form(&self.call(Call::post("/api/launch", &body)).await?)?;
        Ok(CycleId::new(made.id.to_string()))
    }

    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let path = format!("/api/testresult?launchId={}&sort=id%2CASC", encoded(cycle.as_str()));
        let found = self.pages(&path, "the results", |outcome: &Outcome| outcome.id.to_string()).await?;
        Ok(of_cases(found.into_iter().map(|outcome| self.row(outcome)).collect(), cases))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let launch = cycle.as_str().parse::<u64>();
        let launch = launch.map_err(|_| Trouble::Refused(format!("{cycle} is no number of a launch")))?;
        let body = json!({ "launchId": launch, "environment": [] });
        let session: Made = of_form(&self.call(Call::post("/api/upload/session?manual=true", &body)).await?)?;
        let results: Vec<Value> = batch.iter().map(|entry| self.upload(entry)).collect();
        let body = json!({ "testSessionId": session.id, "results": results });
        let uploaded: Uploaded = of_form(&self.call(Call::post("/api/upload/test-result", &body)).await?)?;
        let row = |uuid: &str| uploaded.results.iter().find(|one| one.uuid == uuid).map(|one| one.id.to_string());
        let rows = batch.iter().map(|entry| row(&entry.uuid()).map(RowId::new)).collect();
        Ok(Written { rows, ..Written::default() })
    }

    async fn amend(&self, _cycle: &CycleId, _row: &RowId, _entry: &Entry) -> Result<(), Trouble> {
        Err(unchanging())
    }

    async fn delete(&self, _cycle: &CycleId, _row: &RowId) -> Result<(), Trouble> {
        Err(unchanging())
    }

    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble> {
        let path = format!("/api/launch/{}", encoded(cycle.as_str()));
        if why == Closing::Abandoned {
            let launch: Launch = of_form(&self.call(Call::get(&path)).await?)?;
            if !launch.name.starts_with(ABANDONED) {
                // The beginning goes rather than the tag at the end.
                let kept = launch.name.chars().count().saturating_sub(NAME_CHARS_MAX - ABANDONED.len());
                let name: String = ABANDONED.chars().chain(launch.name.chars().skip(kept)).collect();
                self.call(Call::patch(&path, &json!({ "name": name }))).await?;
            }
        }
        self.call(Call::new(Method::POST, format!("{path}/close"), Nature::Writes)).await.map(drop)
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        absent(self.call(Call::delete(format!("/api/launch/{}", encoded(cycle.as_str())))).await.map(drop))
    }
}
