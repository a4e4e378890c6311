//! Kiwi TCMS: cycle = `TestRun`, row = `TestExecution`, marker = a link of the execution (`facts/targets.md`, section 10).
//! Must not know why it is called, or whether again.
//!
//! A repeat replaces the verdict, and appends a record to the execution's history. Links and comments would be appended
//! too: they are looked for first. The link is written last: where it is, all of the item is.

mod attachments;
mod cases;
mod executions;
mod rpc;
mod runs;

use async_trait::async_trait;
use domain::marker::Marker;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;

use super::OpenError;
use super::tcms::Statuses;
use crate::foreign::adapter::{Adapter, Closing, Ending, Namesake, Written};
use crate::foreign::attachment::{File, Listed};
use crate::foreign::caller::Caller;
use crate::foreign::entry::{CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::options::OptionError;
use crate::foreign::settings::TargetSettings;
use crate::foreign::trouble::Trouble;
use rpc::{Rpc, ask};

/// Most characters of a link's address.
const URL_CHARS_MAX: usize = 200;
/// Where links lead if nothing else is said: nowhere, as the name is reserved (RFC 2606).
const MARKER_BASE: &str = "https://tallyonce.invalid/w";

/// What is known of Kiwi TCMS, measured on 12.4. Deleting a row needs 15.3, deleting a run 13.5: older ones refuse.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Kiwi,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Replaces,
    side_rows: &["links", "comments", "history"],
    cycle_unique: false,
    marker: MarkerFacts {
        level: MarkerLevel::M2,
        field: "link of the execution",
        chars_max: Marker::CHARS_MAX + 1,
        editable: true,
    },
    bulk: Bulk { items_max: 50, atomic: false },
    visible: Visible::AtOnce,
    repair: Repair { delete: true, amend: true, delete_cycle: true },
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Replace, Strategy::Reconcile, Strategy::Container],
    races: &[Race::R2, Race::R3, Race::R4, Race::R5],
};

/// One product of one installation.
#[derive(Debug)]
pub(crate) struct Kiwi {
    rpc: Rpc,
    settings: TargetSettings,
    version: String,
    build: String,
    plan: Plan,
    marker_base: String,
    statuses: Mutex<Option<Statuses>>,
}

/// A plan by its number or by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Plan {
    Number(u64),
    Name(String),
}

/// Reads the keys of this kind.
///
/// # Errors
/// A key or credential is missing or can't be used.
pub(crate) fn open(mut settings: TargetSettings, caller: Caller) -> Result<Kiwi, OpenError> {
    let mut options = std::mem::take(&mut settings.options);
    let usual = || "unspecified".to_owned();
    let version = options.text("version")?.unwrap_or_else(usual);
    let build = options.text("build")?.unwrap_or_else(usual);
    let plan = options.need("plan", "the test plan that runs are made in, by number or name")?;
    let marker_base = options.text("marker-base")?.unwrap_or_else(|| MARKER_BASE.to_owned());
    options.finish()?;
    let marker_base = checked_base(&marker_base)?;
    let user = settings.user.clone().ok_or(OpenError::Credential("user"))?;
    let password = settings.token.clone().ok_or(OpenError::Credential("token (the user's password)"))?;
    let plan = plan.parse().map_or(Plan::Name(plan), Plan::Number);
    let rpc = Rpc::new(caller, user, password);
    Ok(Kiwi { rpc, settings, version, build, plan, marker_base, statuses: Mutex::new(None) })
}

/// Kiwi takes links to `http` and `https` of a bounded length, and the marker must still fit behind.
fn checked_base(text: &str) -> Result<String, OptionError> {
    let base = text.trim_end_matches('/');
    let fits = base.chars().count() + 1 + FACTS.marker.chars_max <= URL_CHARS_MAX;
    let web = base.starts_with("https://") || base.starts_with("http://");
    if fits && web && !base.contains(char::is_whitespace) {
        return Ok(base.to_owned());
    }
    let most = URL_CHARS_MAX - 1 - FACTS.marker.chars_max;
    let why = format!("an http or https address of at most {most} characters is expected");
    Err(OptionError::Wrong { key: "marker-base".to_owned(), why })
}

#[derive(Debug, Deserialize)]
struct StatusRow {
    id: u64,
    name: String,
    weight: f64,
}

impl Kiwi {
    /// The statuses, asked for once; forgotten when one of them is refused.
    async fn statuses(&self) -> Result<Statuses, Trouble> {
        let mut kept = self.statuses.lock().await;
        if let Some(statuses) = &*kept {
            return Ok(statuses.clone());
        }
        let rows: Vec<StatusRow> = self.rpc.rows(ask("TestExecutionStatus.filter", json!([{}]))).await?;
        // A status without weight is no verdict: idle, running, paused.
        let rows = rows.into_iter().map(|row| (row.id, row.name, row.weight != 0.0));
        Ok(kept.insert(Statuses::new(&self.settings, rows)).clone())
    }

    async fn forget_statuses(&self) {
        *self.statuses.lock().await = None;
    }

    fn product(&self) -> &str {
        &self.settings.project
    }
}

/// The number of a thing of Kiwi's.
fn number(what: &str, text: &str) -> Result<u64, Trouble> {
    text.parse().map_err(|_| Trouble::Gone(format!("{text:?} is no number of a {what}")))
}

#[async_trait]
impl Adapter for Kiwi {
    fn facts(&self) -> &Facts {
        &FACTS
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
        self.add_executions(number("test run", cycle.as_str())?, cases).await
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        self.execution_rows(number("test run", cycle.as_str())?, cases).await
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        self.write_executions(number("test run", cycle.as_str())?, batch).await
    }

    async fn amend(&self, cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let (run, execution) = (number("test run", cycle.as_str())?, number("execution", row.as_str())?);
        self.amend_execution(run, execution, entry).await
    }

    async fn delete(&self, _cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        let execution = number("execution", row.as_str())?;
        self.rpc.write_one(ask("TestExecution.remove", json!([{"pk": execution}]))).await.map(|_| ())
    }

    async fn attachments(&self, _cycle: &CycleId, row: &Row) -> Result<Listed, Trouble> {
        self.files_of(number("execution", row.id.as_str())?).await.map(Listed::Names)
    }

    async fn attach(&self, _cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        self.add_file(number("execution", row.id.as_str())?, file).await
    }

    fn ending(&self) -> Ending {
        Ending::Refuses
    }

    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble> {
        self.close_run(number("test run", cycle.as_str())?, why).await
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        let run = number("test run", cycle.as_str())?;
        self.rpc.write_one(ask("TestRun.remove", json!([{"pk": run}]))).await.map(|_| ())
    }
}
