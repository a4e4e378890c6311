//! `TestRail`, Cloud and Server, by its API v2: runs hold tests of cases, results are appended to a test's history and
//! listed newest first (`facts/targets.md`, 3). Must not know strategies.

mod attachments;
mod cases;
mod runs;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use domain::Status;
use domain::marker::Marker;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use super::OpenError;
use crate::clock::Clock;
use crate::foreign::adapter::{Adapter, Closing, Ending, Namesake, Written};
use crate::foreign::attachment::{File, Listed};
use crate::foreign::caller::{Call, Caller};
use crate::foreign::entry::{
    CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId, RowStatus,
};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Rate, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::options::{OptionError, Options};
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::{above, without_marker};
use crate::foreign::trouble::Trouble;
use wire::{Api, Outcome, StatusOf};

/// Most characters of a comment: far below what the product keeps.
const COMMENT_CHARS_MAX: usize = 16_000;
const MINUTE_MS: u64 = 60_000;
/// How far the product's clock may be from ours, in milliseconds, where runs are looked for by age.
const SKEW_MS: u64 = 60 * MINUTE_MS;

/// What is known of it.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Testrail,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: false,
    marker: MarkerFacts {
        level: MarkerLevel::M3,
        field: "last line of the result's comment, or the result field of marker-field",
        chars_max: COMMENT_CHARS_MAX,
        editable: true,
    },
    // A batch with one bad result is refused whole, as far as was seen; the official client sends 50 at a time.
    bulk: Bulk { items_max: 250, atomic: true },
    visible: Visible::AtOnce,
    repair: Repair { delete: false, amend: true, delete_cycle: true },
    // The smaller one of the two documented for Cloud; all users of an instance share it.
    rate: Some(Rate { calls: 180, per_ms: MINUTE_MS }),
    quiet_ms: 120_000,
    strategies: &[Strategy::Reconcile, Strategy::Container],
    races: &[Race::R1, Race::R2, Race::R3, Race::R8],
};

/// Where the marker of a result stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MarkerField {
    /// In the last line of `comment`.
    Comment,
    /// Alone in a field of its own.
    Own(String),
}

/// One project of one instance.
#[derive(Debug)]
pub(crate) struct TestRail {
    api: Api,
    project: u64,
    suite: Option<u64>,
    marker: MarkerField,
    /// The run holds every case of the suite, so that nobody has to change its selection.
    include_all: bool,
    /// Runs older than this are not looked at, in seconds since 1970.
    runs_after_s: Option<u64>,
    /// Where cases are made, if they may be.
    section: Option<u64>,
    statuses: BTreeMap<Status, String>,
    /// The numbers of the statuses. Names may change at any time, so that they are asked for once a process.
    status_ids: OnceCell<BTreeMap<Status, u64>>,
}

/// Reads the keys of its own.
pub(crate) fn open(mut settings: TargetSettings, caller: Caller, clock: Arc<dyn Clock>) -> Result<TestRail, OpenError> {
    let mut options = std::mem::take(&mut settings.options);
    let section = number(&mut options, "section")?;
    if settings.create_cases && section.is_none() {
        let why = "cases are made in a section: give the number in its address (S…)";
        return Err(OptionError::Missing { key: "section".to_owned(), why }.into());
    }
    let rate = match options.number("calls-per-minute")? {
        None => FACTS.rate,
        Some(0) => None,
        Some(calls) => Some(Rate { calls: u32::try_from(calls).unwrap_or(u32::MAX), per_ms: MINUTE_MS }),
    };
    let target = TestRail {
        project: project(&settings.project)?,
        suite: number(&mut options, "suite")?,
        marker: marker_field(&mut options)?,
        include_all: options.flag("include-all")?.unwrap_or(false),
        runs_after_s: options.number("look-back-days")?.map(|days| {
            let back_ms = days.saturating_mul(24 * 60 * MINUTE_MS).saturating_add(SKEW_MS);
            clock.unix_ms().saturating_sub(back_ms) / 1000
        }),
        section: section.filter(|_| settings.create_cases),
        statuses: settings.statuses,
        status_ids: OnceCell::new(),
        api: {
            let user = settings.user.ok_or(OpenError::Credential("user (the e-mail address of the TestRail user)"))?;
            let token = settings.token.ok_or(OpenError::Credential("token (an API key of that user)"))?;
            Api::new(caller.paced(rate, clock).basic(&user, &token)?)
        },
    };
    options.finish()?;
    Ok(target)
}

fn project(text: &str) -> Result<u64, OptionError> {
    text.trim().trim_start_matches(['P', 'p']).parse().map_err(|_| OptionError::Wrong {
        key: "project".to_owned(),
        why: format!("{text:?} is not the number of a TestRail project; it stands in the project's address (P…)"),
    })
}

/// A number, with or without the letter that the product's pages put in front.
fn number(options: &mut Options, key: &str) -> Result<Option<u64>, OptionError> {
    let Some(text) = options.text(key)? else { return Ok(None) };
    let digits = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    digits
        .parse()
        .map(Some)
        .map_err(|_| OptionError::Wrong { key: key.to_owned(), why: format!("{text:?} is not a number such as 3") })
}

fn marker_field(options: &mut Options) -> Result<MarkerField, OptionError> {
    match options.text("marker-field")?.as_deref() {
        None | Some("comment") => Ok(MarkerField::Comment),
        Some(field) if field == "version" || field.starts_with("custom_") => Ok(MarkerField::Own(field.to_owned())),
        Some(other) => Err(OptionError::Wrong {
            key: "marker-field".to_owned(),
            why: format!("{other:?} is neither comment, version nor a text field of results, custom_…"),
        }),
    }
}

impl TestRail {
    /// The number under which the product knows each status of ours.
    async fn status_ids(&self) -> Result<&BTreeMap<Status, u64>, Trouble> {
        self.status_ids.get_or_try_init(|| self.resolve_statuses()).await
    }

    async fn resolve_statuses(&self) -> Result<BTreeMap<Status, u64>, Trouble> {
        let usual = |status| match status {
            Status::Passed => 1,
            Status::Failed | Status::Errored => 5,
            Status::Skipped => 4,
        };
        let mut ids: BTreeMap<Status, u64> = Status::ALL.map(|status| (status, usual(status))).into();
        if self.statuses.values().all(|text| text.parse::<u64>().is_ok()) {
            ids.extend(self.statuses.iter().filter_map(|(status, text)| Some((*status, text.parse().ok()?))));
            return Ok(ids);
        }
        let known: Vec<StatusOf> = self.api.whole("get_statuses").await?;
        for (status, text) in &self.statuses {
            let found = known.iter().find(|one| one.is(text));
            let id = found.filter(|one| !one.is_untested).map(|one| one.id).ok_or_else(|| {
                let names: Vec<&str> = known.iter().filter(|s| !s.is_untested).map(|s| s.name.as_str()).collect();
                Trouble::Refused(format!("statuses.{status}: no status {text:?} there; it has {}", names.join(", ")))
            })?;
            ids.insert(*status, id);
        }
        Ok(ids)
    }

    /// One result as it is sent.
    fn result(&self, entry: &Entry, statuses: &BTreeMap<Status, u64>) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("status_id".to_owned(), json!(statuses.get(&entry.status)));
        let message = entry.message.as_deref().unwrap_or_default();
        let marker = entry.marker.to_string();
        let comment = match &self.marker {
            MarkerField::Comment => above(message, &marker, COMMENT_CHARS_MAX),
            MarkerField::Own(field) => {
                members.insert(field.clone(), json!(marker));
                above(message, "", COMMENT_CHARS_MAX).trim_end().to_owned()
            }
        };
        if !comment.is_empty() {
            members.insert("comment".to_owned(), json!(comment));
        }
        if let Some(elapsed) = entry.duration_us.and_then(|duration| wire::elapsed(duration.0)) {
            members.insert("elapsed".to_owned(), json!(elapsed));
        }
        members
    }

    fn row(&self, outcome: &Outcome, case: u64, statuses: &BTreeMap<Status, u64>) -> Option<Row> {
        let status = outcome.status_id.filter(|id| *id != wire::UNTESTED)?;
        let ours = Status::ALL.into_iter().find(|ours| statuses.get(ours) == Some(&status));
        let comment = outcome.comment.as_deref().unwrap_or_default();
        let marked = match &self.marker {
            MarkerField::Comment => comment,
            MarkerField::Own(field) => outcome.field(field).unwrap_or_default(),
        };
        let (marker, comment) = (Marker::find(marked), without_marker(comment));
        let shown = [Some(comment.as_str()), outcome.field("elapsed"), outcome.field("defects")].into_iter().flatten();
        Some(Row {
            id: RowId::new(outcome.id.to_string()),
            case: CaseId::new(case.to_string()),
            status: ours.map_or_else(|| RowStatus::Other(status.to_string()), RowStatus::Is),
            marker,
            at_ms: outcome.created_on.map(|seconds| seconds.saturating_mul(1000)),
            text: shown.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        })
    }
}

/// The number of a run, case or result as the strategies hold it. One that is none came from a configuration.
fn id(what: &str, text: &str) -> Result<u64, Trouble> {
    let digits = text.trim().trim_start_matches(|c: char| c.is_ascii_alphabetic());
    digits.parse().map_err(|_| Trouble::Refused(format!("{text:?} is not the number of a {what}")))
}

#[async_trait]
impl Adapter for TestRail {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    fn held_back_ms(&self, calls: usize) -> u64 {
        self.api.held_back_ms(calls)
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        self.choose_cases(wanted).await
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        self.find_runs(wanted).await
    }

    async fn namesakes(&self, name: &str) -> Result<Option<Vec<Namesake>>, Trouble> {
        self.runs_named(name).await.map(Some)
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        self.create_run(wanted).await
    }

    async fn add_cases(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        self.select_cases(id("run", cycle.as_str())?, cases).await
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let run = id("run", cycle.as_str())?;
        let wanted = cases.iter().map(|case| id("case", case.as_str())).collect::<Result<BTreeSet<u64>, _>>()?;
        let statuses = self.status_ids().await?;
        // Results before tests: the test of every result that is there is then known, unless both are gone.
        let mut outcomes: Vec<Outcome> = self.api.list(&format!("get_results_for_run/{run}"), "results").await?;
        // They come newest first, and times are whole seconds.
        outcomes.sort_by_key(|outcome| outcome.id);
        let tests = self.api.tests(run).await?;
        let case_of: BTreeMap<u64, u64> = tests.into_iter().map(|test| (test.id, test.case_id)).collect();
        let placed = outcomes.into_iter().filter_map(|outcome| Some((*case_of.get(&outcome.test_id)?, outcome)));
        let placed = placed.filter(|(case, _)| wanted.is_empty() || wanted.contains(case));
        Ok(placed.filter_map(|(case, outcome)| self.row(&outcome, case, statuses)).collect())
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let run = id("run", cycle.as_str())?;
        let statuses = self.status_ids().await?;
        let mut results = Vec::with_capacity(batch.len());
        for entry in batch {
            let mut result = self.result(entry, statuses);
            result.insert("case_id".to_owned(), json!(id("case", entry.case.as_str())?));
            results.push(Value::Object(result));
        }
        let call = Call::post(wire::path(&format!("add_results_for_cases/{run}")), &json!({ "results": results }));
        let answered = match self.api.parsed::<Vec<Outcome>>(call).await {
            Err(refused @ (Trouble::Refused(_) | Trouble::Denied(_))) => {
                return Err(self.why_refused(run, refused).await);
            }
            answered => answered?,
        };
        if answered.len() != batch.len() {
            let (sent, got) = (batch.len(), answered.len());
            return Err(Trouble::Unknown(format!("{sent} results were sent, and the answer holds {got}")));
        }
        let rows = answered.into_iter().map(|outcome| Some(RowId::new(outcome.id.to_string()))).collect();
        Ok(Written { rows, ..Written::default() })
    }

    async fn amend(&self, _cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let row = id("result", row.as_str())?;
        let body = Value::Object(self.result(entry, self.status_ids().await?));
        let call = Call::post(wire::path(&format!("edit_result/{row}")), &body);
        self.api.parsed::<Outcome>(call).await.map(drop)
    }

    async fn delete(&self, _cycle: &CycleId, _row: &RowId) -> Result<(), Trouble> {
        Err(Trouble::Refused("TestRail deletes no single result; it can be amended".to_owned()))
    }

    async fn attachments(&self, cycle: &CycleId, row: &Row) -> Result<Listed, Trouble> {
        self.files_of(id("run", cycle.as_str())?, row).await.map(Listed::Names)
    }

    async fn attach(&self, _cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        self.add_file(id("result", row.id.as_str())?, file).await
    }

    fn ending(&self) -> Ending {
        Ending::Refuses
    }

    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble> {
        self.close_run(id("run", cycle.as_str())?, why).await
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        self.delete_run(id("run", cycle.as_str())?).await
    }
}
