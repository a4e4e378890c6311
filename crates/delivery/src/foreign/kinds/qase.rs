//! Qase: results are sent by API v2, which takes an id of ours for each, and are read by API v1 some time later
//! (`facts/targets.md`, section 8). Must not know any strategy.

use async_trait::async_trait;
use domain::Status;
use http::HeaderName;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::OpenError;
use super::caseless::{
    Gathered, absent, comment, duration_ms, encoded, itself, of_cases, of_form, row_status, said, shortened, span_ms,
    tagged, unix_ms,
};
use crate::classify::Answer;
use crate::foreign::adapter::{Adapter, Closing, Ending, Namesake, Written};
use crate::foreign::caller::{Call, Caller};
use crate::foreign::entry::{
    Case, CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId,
};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Rate, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::mapping::{IdShape, ids_in};
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::is_tagged;
use crate::foreign::trouble::{Trouble, json};

/// The largest page of a list.
const PAGE: usize = 100;
/// The longest title of a run and of a result.
const TITLE_CHARS_MAX: usize = 255;
/// No bound of a comment is documented; ours is.
const COMMENT_CHARS_MAX: usize = 5000;

/// What is known of Qase.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Qase,
    key_on_write: KeyOnWrite::Collapses,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: false,
    marker: MarkerFacts {
        level: MarkerLevel::M1,
        field: "id, and message",
        chars_max: COMMENT_CHARS_MAX,
        editable: true,
    },
    // 2000 are allowed; the vendor's own client sends 200.
    bulk: Bulk { items_max: 200, atomic: false },
    visible: Visible::Later(10_000),
    repair: Repair { delete: true, amend: true, delete_cycle: true },
    rate: Some(Rate { calls: 1000, per_ms: 60_000 }),
    quiet_ms: 120_000,
    strategies: &[Strategy::Idempotent, Strategy::Reconcile],
    races: &[Race::R1, Race::R3, Race::R6, Race::R7],
};

/// One project.
#[derive(Debug)]
pub(crate) struct Qase {
    caller: Caller,
    settings: TargetSettings,
    /// The project's code, as a segment of a path.
    code: String,
}

/// The envelope of API v1.
#[derive(Deserialize)]
struct Envelope<T> {
    result: T,
}

/// One page of a list.
#[derive(Deserialize)]
struct Page<T> {
    /// How many the filter lets through.
    filtered: u64,
    entities: Vec<T>,
}

#[derive(Deserialize)]
struct Run {
    id: u64,
    #[serde(default)]
    title: String,
    status_text: Option<String>,
    start_time: Option<String>,
    end_time: Option<String>,
}

#[derive(Deserialize)]
struct RunMade {
    id: u64,
}

#[derive(Deserialize)]
struct Outcome {
    hash: String,
    comment: Option<String>,
    stacktrace: Option<String>,
    case_id: Option<u64>,
    status: String,
    end_time: Option<String>,
}

pub(crate) fn open(settings: TargetSettings, caller: Caller) -> Result<Qase, OpenError> {
    let token = settings.token.as_ref().ok_or(OpenError::Credential("the API token (token)"))?;
    let caller = caller.always(HeaderName::from_static("token"), token.expose())?;
    settings.options.clone().finish()?;
    let code = encoded(&settings.project);
    Ok(Qase { caller, settings, code })
}

/// What Qase's error form says, with the fields that it names.
fn words(answer: &Answer) -> Option<String> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    if body.get("status")?.as_bool()? {
        return None;
    }
    let said = body.get("errorMessage").or_else(|| body.get("error")).and_then(Value::as_str)?;
    let fields = body.get("errorFields").and_then(Value::as_array).into_iter().flatten();
    let fields =
        fields.filter_map(|field| Some(format!("; {}: {}", field.get("field")?.as_str()?, field.get("error")?)));
    Some(format!("{said}{}", fields.collect::<String>()))
}

impl Qase {
    /// Runs whose title holds this.
    async fn runs(&self, title: &str) -> Result<Vec<Run>, Trouble> {
        let path = format!("/v1/run/{}?search={}", self.code, encoded(title));
        self.pages(&path, "the runs", |run: &Run| run.id.to_string()).await
    }

    fn word(&self, status: Status) -> String {
        let usual = match status {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Errored => "invalid",
            Status::Skipped => "skipped",
        };
        self.settings.status(status).unwrap_or(usual).to_owned()
    }

    /// The numbers of cases that a text names: `12`, `Q-12`, or the project's code and a number.
    fn numbers(&self, text: &str) -> Vec<String> {
        let bare = |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.to_owned());
        let ours = |id: String| {
            let (key, number) = id.split_once('-')?;
            (key == "Q" || key == self.settings.project).then(|| number.to_owned())
        };
        let dashed = || ids_in(text, IdShape::Dashed("")).into_iter().filter_map(ours).collect();
        bare(text.trim()).map_or_else(dashed, |number| vec![number])
    }

    /// `(Qase ID: 12)` and `(Qase ID: 12,13)`, as the vendor's own reporters write it into names.
    fn spelled(name: &str) -> Vec<String> {
        let lists = name.split("(Qase ID:").skip(1).filter_map(|rest| rest.split_once(')')).map(|(list, _)| list);
        let number =
            |word: &str| (!word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())).then(|| word.to_owned());
        lists.flat_map(|list| list.split(',').filter_map(|word| number(word.trim()))).collect()
    }

    fn case(&self, wanted: &CaseWanted<'_>) -> CaseChoice {
        let own = itself(wanted);
        let known = |number: String| CaseChoice::Known(Case { id: CaseId::new(number), title: own.title.clone() });
        if let Some(mapped) = wanted.mapped {
            let why = || format!("{mapped} in the mapping file is no case: {}-12, or 12", self.settings.project);
            return match self.numbers(mapped.as_str()).into_iter().next() {
                Some(number) => known(number),
                None => CaseChoice::Unmatched { why: why() },
            };
        }
        let mut numbers: Vec<String> = wanted.given().flat_map(|id| self.numbers(id)).collect();
        if numbers.is_empty() {
            let name = wanted.item.name();
            // A name that is a number names no case.
            numbers = if name.contains('-') { self.numbers(name) } else { Vec::new() };
            numbers.extend(Self::spelled(name));
        }
        if numbers.is_empty() {
            return CaseChoice::Known(own);
        }
        CaseChoice::of(numbers.into_iter().map(known))
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &str,
        id: impl Fn(&T) -> String + Send + Sync,
    ) -> Result<Vec<T>, Trouble> {
        let mut all = Gathered::new();
        loop {
            let call = Call::get(format!("{path}&limit={PAGE}&offset={}", all.shown()));
            let page: Envelope<Page<T>> = of_form(&self.caller.call(call, words).await?)?;
            let last = page.result.entities.len() < PAGE;
            all.add(page.result.entities, page.result.filtered, &id);
            if last {
                return all.whole(what);
            }
        }
    }

    async fn done(&self, call: Call) -> Result<(), Trouble> {
        self.caller.call(call, words).await.and_then(|answer| json(&answer)).map(drop)
    }

    /// What a result says, in the words that both APIs share.
    fn result_of(&self, entry: &Entry) -> Value {
        let (start, end) = span_ms(entry);
        let number = entry.case.as_str().parse::<u64>().ok();
        json!({
            "id": entry.uuid(),
            "title": shortened(&entry.title, TITLE_CHARS_MAX),
            "testops_id": number,
            "signature": number.is_none().then(|| entry.case.as_str()),
            "execution": {
                "status": self.word(entry.status),
                "start_time": start as f64 / 1000.0,
                "end_time": end as f64 / 1000.0,
                "duration": duration_ms(entry),
            },
            "message": comment(entry, COMMENT_CHARS_MAX),
        })
    }
}

fn found(run: Run) -> CycleFound {
    CycleFound {
        id: CycleId::new(run.id.to_string()),
        closed: run.status_text.map_or(run.end_time.is_some(), |text| !text.eq_ignore_ascii_case("active")),
        name: run.title,
    }
}

#[async_trait]
impl Adapter for Qase {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn held_back_ms(&self, calls: usize) -> u64 {
        self.caller.held_back_ms(calls)
    }

    /// Every item has one: results without a case's number stand for themselves.
    fn own_cases(&self, wanted: &[CaseWanted<'_>]) -> Option<Vec<CaseChoice>> {
        Some(wanted.iter().map(|wanted| self.case(wanted)).collect())
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        if let Some(given) = &wanted.given {
            let path = format!("/v1/run/{}/{}", self.code, encoded(given.as_str()));
            let run: Envelope<Run> = of_form(&self.caller.call(Call::get(path), words).await?)?;
            return Ok(vec![found(run.result)]);
        }
        let tag = wanted.tag();
        let mut runs = self.runs(&tag).await?;
        runs.retain(|run| run.title.contains(&tag));
        runs.sort_by_key(|run| run.id);
        Ok(runs.into_iter().map(found).collect())
    }

    async fn namesakes(&self, name: &str) -> Result<Option<Vec<Namesake>>, Trouble> {
        let same = self.runs(name).await?.into_iter().filter(|run| run.title == name);
        let namesake = |run: Run| Namesake {
            made_ms: run.start_time.as_deref().and_then(unix_ms),
            tagged: is_tagged(&run.title),
            found: found(run),
        };
        Ok(Some(same.map(namesake).collect()))
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let body = json!({
            "title": tagged(&wanted.name, &wanted.tag(), TITLE_CHARS_MAX),
            "description": wanted.link,
            "is_autotest": true,
            "include_all_cases": false,
        });
        let answer = self.caller.call(Call::post(format!("/v1/run/{}", self.code), &body), words).await?;
        let made: Envelope<RunMade> = of_form(&answer)?;
        Ok(CycleId::new(made.result.id.to_string()))
    }

    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let (code, run) = (&self.code, encoded(cycle.as_str()));
        let path = format!("/v1/result/{code}?run={run}");
        let found = self.pages(&path, "the results", |outcome: &Outcome| outcome.hash.clone()).await?;
        let row = |outcome: Outcome| {
            let said = said(outcome.comment.as_deref().unwrap_or_default());
            let shown = [said.text, outcome.stacktrace.unwrap_or_default()];
            let text = shown.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
            let number = || CaseId::new(outcome.case_id.map(|id| id.to_string()).unwrap_or_default());
            Row {
                id: RowId::new(outcome.hash),
                case: said.case.unwrap_or_else(number),
                status: row_status(&outcome.status, |status| self.word(status), &["untested", "in_progress"]),
                marker: said.marker,
                at_ms: outcome.end_time.as_deref().and_then(unix_ms),
                text,
            }
        };
        Ok(of_cases(found.into_iter().map(row).collect(), cases))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let results: Vec<Value> = batch.iter().map(|entry| self.result_of(entry)).collect();
        let path = format!("/v2/{}/run/{}/results", self.code, encoded(cycle.as_str()));
        let answer = self.caller.call(Call::post(path, &json!({ "results": results })), words).await?;
        match json(&answer)?.get("status").and_then(Value::as_bool) {
            // Queued: which rows they become, only the list shows.
            Some(true) => Ok(Written { rows: vec![None; batch.len()], ..Written::default() }),
            _ => Err(Trouble::Unknown(format!("status {} without a word of what was taken", answer.status))),
        }
    }

    async fn amend(&self, cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let path = format!("/v1/result/{}/{}/{}", self.code, encoded(cycle.as_str()), encoded(row.as_str()));
        let body = json!({
            "status": self.word(entry.status),
            "time_ms": duration_ms(entry),
            "comment": comment(entry, COMMENT_CHARS_MAX),
        });
        self.done(Call::patch(path, &body)).await
    }

    async fn delete(&self, cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        let path = format!("/v1/result/{}/{}/{}", self.code, encoded(cycle.as_str()), encoded(row.as_str()));
        absent(self.done(Call::delete(path)).await)
    }

    fn ending(&self) -> Ending {
        Ending::Refuses
    }

    /// An abandoned run is closed like any other: it can't be labelled.
    async fn close_cycle(&self, cycle: &CycleId, _why: Closing) -> Result<(), Trouble> {
        let path = format!("/v1/run/{}/{}/complete", self.code, encoded(cycle.as_str()));
        self.done(Call::post(path, &json!({}))).await
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        absent(self.done(Call::delete(format!("/v1/run/{}/{}", self.code, encoded(cycle.as_str())))).await)
    }
}
