//! Testmo's automation runs: counted, and never listed (`facts/targets.md`, section 9). Each write is a thread of its own
//! in the run, found again by a field that lists what it holds. Must not know any strategy.

use std::collections::BTreeSet;

use async_trait::async_trait;
use domain::Status;
use serde::Deserialize;
use serde_json::{Value, json};

use super::OpenError;
use super::caseless::{Gathered, encoded, itself, of_form, shortened, tagged};
use crate::classify::Answer;
use crate::foreign::adapter::{Adapter, Closing, Listing, Written};
use crate::foreign::caller::{Call, Caller};
use crate::foreign::entry::{
    Case, CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId,
};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::settings::TargetSettings;
use crate::foreign::trouble::Trouble;

const PAGE: usize = 100;
/// The longest string of a name or a field.
const STRING_CHARS_MAX: usize = 750;
const TEXT_CHARS_MAX: usize = 8000;
const KEY_CHARS_MAX: usize = 64;
/// The field that names the write: of a run, the tag; of a thread, the markers of its tests; of a test, its marker.
const FIELD: &str = "tallyonce";
/// Types of fields: one line, plain text, and text as a terminal shows it.
const STRING: u8 = 1;
const TEXT: u8 = 2;
const CONSOLE: u8 = 4;

/// What is known of Testmo.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Testmo,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: false,
    marker: MarkerFacts {
        level: MarkerLevel::M4,
        field: "field tallyonce of the thread",
        chars_max: STRING_CHARS_MAX,
        editable: false,
    },
    // As many as the vendor's own client sends.
    bulk: Bulk { items_max: 250, atomic: false },
    visible: Visible::AtOnce,
    repair: Repair { delete: false, amend: false, delete_cycle: false },
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Container],
    races: &[Race::R1, Race::R3, Race::R9],
};

/// One project.
#[derive(Debug)]
pub(crate) struct Testmo {
    caller: Caller,
    settings: TargetSettings,
    source: String,
}

#[derive(Deserialize)]
struct Made {
    id: u64,
}

#[derive(Deserialize)]
struct Page {
    #[serde(rename = "next_page")]
    next: Option<u64>,
    #[serde(default)]
    total: u64,
    result: Vec<Run>,
}

#[derive(Deserialize)]
struct OneRun {
    result: Run,
}

#[derive(Deserialize)]
struct Run {
    id: u64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    is_completed: bool,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    threads: Option<Vec<Thread>>,
}

#[derive(Deserialize)]
struct Thread {
    total_count: u64,
    fields: Option<Vec<Field>>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    value: Option<String>,
}

pub(crate) fn open(settings: TargetSettings, caller: Caller) -> Result<Testmo, OpenError> {
    let mut options = settings.options.clone();
    let source = options.text("source")?.unwrap_or_else(|| "tallyonce".to_owned());
    options.finish()?;
    let token = settings.token.as_ref().ok_or(OpenError::Credential("the API key (token)"))?;
    let caller = caller.bearer(token)?;
    Ok(Testmo { caller, settings, source })
}

/// What Testmo's error form says, with the fields that it names.
fn words(answer: &Answer) -> Option<String> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let message = body.get("message")?.as_str()?;
    let fields = body.get("errors").and_then(Value::as_object).into_iter().flatten();
    let fields: Vec<String> = fields.map(|(field, why)| format!("; {field}: {why}")).collect();
    Some(format!("{message}{}", fields.concat()))
}

/// Which outcomes a thread holds: the markers of all of them. 250 fit into a text of 16 KiB, however long they are.
fn contents(batch: &[Entry]) -> String {
    batch.iter().map(|entry| entry.marker.to_string()).collect::<Vec<_>>().join(" ")
}

fn field(kind: u8, name: &str, value: &str) -> Value {
    json!({ "type": kind, "name": name, "value": value })
}

/// A key as Testmo takes it.
fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= KEY_CHARS_MAX
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

impl Testmo {
    fn word(&self, status: Status) -> &str {
        let usual = match status {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Errored => "error",
            Status::Skipped => "skipped",
        };
        self.settings.status(status).unwrap_or(usual)
    }

    fn test(&self, entry: &Entry) -> Value {
        let item = entry.items.first();
        let name = item.map_or(entry.title.as_str(), domain::ItemName::name);
        let folder = item.map(|item| item.suite().chain(item.class()).collect::<Vec<_>>().join(" > "));
        let mut fields = vec![field(STRING, FIELD, &entry.marker.to_string())];
        if let Some(message) = &entry.message {
            fields.push(field(CONSOLE, "Message", shortened(message, TEXT_CHARS_MAX)));
        }
        json!({
            "key": entry.case.as_str(),
            "name": shortened(if name.is_empty() { &entry.title } else { name }, STRING_CHARS_MAX),
            "folder": folder.as_deref().map(|folder| shortened(folder, STRING_CHARS_MAX)).filter(|f| !f.is_empty()),
            "status": self.word(entry.status),
            "elapsed": entry.duration_us.map(|duration| duration.0),
            "fields": fields,
        })
    }

    async fn run(&self, cycle: &CycleId) -> Result<Run, Trouble> {
        let path = format!("/api/v1/automation/runs/{}", encoded(cycle.as_str()));
        let one: OneRun = of_form(&self.caller.call(Call::get(path), words).await?)?;
        Ok(one.result)
    }

    async fn threads(&self, cycle: &CycleId) -> Result<Vec<Thread>, Trouble> {
        let missing = || Trouble::Refused(format!("run {cycle} is shown without its threads: nothing can be counted"));
        self.run(cycle).await?.threads.ok_or_else(missing)
    }

    async fn post(&self, path: String, body: &Value) -> Result<Answer, Trouble> {
        let answer = self.caller.call(Call::post(path, body), words).await?;
        let empty = answer.body.iter().all(u8::is_ascii_whitespace);
        let is_json = || serde_json::from_slice::<Value>(&answer.body).is_ok();
        // An answer without content is a success; a page of something in between is none.
        if empty || is_json() { Ok(answer) } else { Err(Trouble::Unknown(crate::foreign::trouble::in_words(&answer))) }
    }
}

fn found(run: Run) -> CycleFound {
    CycleFound { id: CycleId::new(run.id.to_string()), name: run.name, closed: run.is_completed }
}

/// What Testmo can't do.
fn never(what: &str) -> Trouble {
    Trouble::Refused(format!("Testmo has no call that {what} automated tests"))
}

#[async_trait]
impl Adapter for Testmo {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    /// Every item has one: tests stand for themselves, under a key that joins their history.
    fn own_cases(&self, wanted: &[CaseWanted<'_>]) -> Option<Vec<CaseChoice>> {
        let choice = |case: Case| {
            if is_key(case.id.as_str()) {
                return CaseChoice::Known(case);
            }
            let why = format!("{:?} is no key of Testmo's: up to {KEY_CHARS_MAX} of a-z and 0-9", case.id.as_str());
            CaseChoice::Unmatched { why }
        };
        Some(wanted.iter().map(|wanted| choice(itself(wanted))).collect())
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        if let Some(given) = &wanted.given {
            return Ok(vec![found(self.run(given).await?)]);
        }
        let (tag, project) = (wanted.tag(), encoded(&self.settings.project));
        let (mut all, mut number) = (Gathered::new(), 1);
        loop {
            let path = format!("/api/v1/projects/{project}/automation/runs?page={number}&per_page={PAGE}&tags={tag}");
            let page: Page = of_form(&self.caller.call(Call::get(path), words).await?)?;
            all.add(page.result, page.total, |run: &Run| run.id.to_string());
            match page.next {
                Some(next) if next > number => number = next,
                _ => break,
            }
        }
        let tagged = |run: &Run| run.name.contains(&tag) || run.tags.iter().flatten().any(|other| *other == tag);
        let mut runs: Vec<Run> = all.whole("the runs")?.into_iter().filter(tagged).collect();
        runs.sort_by_key(|run| run.id);
        Ok(runs.into_iter().map(found).collect())
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let tag = wanted.tag();
        let links: Vec<Value> = wanted.link.iter().map(|url| json!({ "name": "Pipeline", "url": url })).collect();
        let body = json!({
            // In the name too: a filter by tags may one day be ignored.
            "name": tagged(&wanted.name, &tag, STRING_CHARS_MAX),
            "source": self.source,
            "tags": [tag],
            "fields": [field(STRING, FIELD, &tag)],
            "links": links,
        });
        let path = format!("/api/v1/projects/{}/automation/runs", encoded(&self.settings.project));
        let made: Made = of_form(&self.post(path, &body).await?)?;
        Ok(CycleId::new(made.id.to_string()))
    }

    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    fn listing(&self) -> Listing {
        Listing::Counts
    }

    async fn rows(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        Err(never("lists"))
    }

    async fn count(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Option<u64>, Trouble> {
        let wanted: BTreeSet<String> = batch.iter().map(|entry| entry.marker.to_string()).collect();
        let mut count = 0;
        let threads = self.threads(cycle).await?;
        for thread in threads.iter().filter(|thread| thread.total_count > 0) {
            let Some(fields) = &thread.fields else {
                let what = format!("threads of run {cycle} are shown without their fields: nothing can be counted");
                return Err(Trouble::Refused(what));
            };
            let ours = fields.iter().filter(|field| field.name == FIELD).filter_map(|field| field.value.as_deref());
            let held: Vec<&str> = ours.flat_map(str::split_ascii_whitespace).collect();
            let of_batch = held.iter().filter(|marker| wanted.contains(**marker)).count() as u64;
            if of_batch > 0 && thread.total_count != held.len() as u64 {
                return Ok(Some(u64::MAX));
            }
            count += of_batch;
        }
        Ok(Some(count))
    }

    async fn total(&self, cycle: &CycleId) -> Result<Option<u64>, Trouble> {
        let threads = self.threads(cycle).await?;
        Ok(Some(threads.iter().map(|thread| thread.total_count).sum()))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let path = format!("/api/v1/automation/runs/{}/threads", encoded(cycle.as_str()));
        let opened = self.post(path, &json!({ "fields": [field(TEXT, FIELD, &contents(batch))] })).await?;
        let thread: Made = of_form(&opened)?;
        let tests: Vec<Value> = batch.iter().map(|entry| self.test(entry)).collect();
        let path = |call| format!("/api/v1/automation/runs/threads/{}/{call}", thread.id);
        self.post(path("append"), &json!({ "tests": tests })).await?;
        // The tests are recorded, whatever becomes of this: a thread left open shows as running until its run ends.
        let _ = self.post(path("complete"), &json!({})).await;
        Ok(Written { rows: vec![None; batch.len()], ..Written::default() })
    }

    async fn amend(&self, _cycle: &CycleId, _row: &RowId, _entry: &Entry) -> Result<(), Trouble> {
        Err(never("changes"))
    }

    async fn delete(&self, _cycle: &CycleId, _row: &RowId) -> Result<(), Trouble> {
        Err(never("deletes"))
    }

    /// A run that has ended takes nothing more, its end among it: it stays as it is.
    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble> {
        if self.run(cycle).await?.is_completed {
            return Ok(());
        }
        let run = encoded(cycle.as_str());
        if why == Closing::Abandoned {
            let label = field(STRING, "abandoned", "another run counts instead");
            self.post(format!("/api/v1/automation/runs/{run}/append"), &json!({ "fields": [label] })).await?;
        }
        let path = format!("/api/v1/automation/runs/{run}/complete");
        self.post(path, &json!({ "measure_elapsed": false })).await.map(drop)
    }

    async fn delete_cycle(&self, _cycle: &CycleId) -> Result<(), Trouble> {
        Err(Trouble::Refused("Testmo has no call that deletes automation runs".to_owned()))
    }
}
