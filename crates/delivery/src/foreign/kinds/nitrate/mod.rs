//! Nitrate: cycle = `TestRun`, row = `TestCaseRun`, marker = its notes (`facts/targets.md`, section 11).
//! Must not know why it is called, or whether again.
//!
//! A row is unique for a case in a run: adding it again is refused. Verdict and notes are replaced by one update, so that
//! the marker is there if and only if the verdict is. On newer Pythons every fault is sent as status 500, "exists" too:
//! such an answer is unknown until it is read back.

mod rpc;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use domain::marker::Marker;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::OpenError;
use super::tcms::{By, Known, LookUp, Statuses, look_ups};
use super::times::utc_ms;
use crate::foreign::adapter::{Adapter, Closing, Ending, Namesake, Written};
use crate::foreign::caller::Caller;
use crate::foreign::entry::{
    CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId, RowStatus,
};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::without_marker;
use crate::foreign::trouble::{Trouble, before_writing};
use rpc::{Rpc, parsed};

/// What is known of Nitrate, measured on 4.13.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Nitrate,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Replaces,
    side_rows: &[],
    cycle_unique: false,
    marker: MarkerFacts { level: MarkerLevel::M2, field: "notes of the case run", chars_max: 10_000, editable: true },
    bulk: Bulk { items_max: 50, atomic: false },
    visible: Visible::AtOnce,
    repair: Repair { delete: true, amend: true, delete_cycle: false },
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Replace, Strategy::Reconcile, Strategy::Container],
    races: &[Race::R3, Race::R4],
};

/// Statuses that are no verdict.
const OPEN: [&str; 3] = ["IDLE", "RUNNING", "PAUSED"];

/// One product of one installation.
#[derive(Debug)]
pub(crate) struct Nitrate {
    rpc: Rpc,
    settings: TargetSettings,
    version: String,
    build: String,
    plan: String,
    statuses: Mutex<Option<Statuses>>,
}

/// Reads the keys of this kind.
///
/// # Errors
/// A key or credential is missing or can't be used.
pub(crate) fn open(mut settings: TargetSettings, caller: Caller) -> Result<Nitrate, OpenError> {
    let mut options = std::mem::take(&mut settings.options);
    let usual = || "unspecified".to_owned();
    let version = options.text("version")?.unwrap_or_else(usual);
    let build = options.text("build")?.unwrap_or_else(usual);
    let plan = options.need("plan", "the test plan that runs are made in, by number or name")?;
    options.finish()?;
    let user = settings.user.clone().ok_or(OpenError::Credential("user"))?;
    let password = settings.token.clone().ok_or(OpenError::Credential("token (the user's password)"))?;
    Ok(Nitrate { rpc: Rpc::new(caller, user, password), settings, version, build, plan, statuses: Mutex::new(None) })
}

#[derive(Debug, Deserialize)]
struct StatusRow {
    id: u64,
    name: String,
}

#[derive(Debug, Deserialize)]
struct CaseRow {
    case_id: u64,
    summary: String,
}

#[derive(Debug, Clone, Deserialize)]
struct CaseRun {
    #[serde(rename = "case_run_id")]
    id: u64,
    #[serde(rename = "case_id")]
    case: u64,
    #[serde(rename = "case_run_status_id")]
    status: u64,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default)]
    close_date: Option<String>,
}

impl Nitrate {
    fn product(&self) -> &str {
        &self.settings.project
    }

    async fn statuses(&self) -> Result<Statuses, Trouble> {
        let mut kept = self.statuses.lock().await;
        if let Some(statuses) = &*kept {
            return Ok(statuses.clone());
        }
        let rows: Vec<StatusRow> = self.rpc.read("TestCaseRun.get_case_run_status", json!([])).await?;
        let rows = rows.into_iter().map(|row| {
            let verdict = !OPEN.contains(&row.name.as_str());
            (row.id, row.name, verdict)
        });
        Ok(kept.insert(Statuses::new(&self.settings, rows)).clone())
    }

    async fn look_up(&self, by: &[By]) -> Result<Known, Trouble> {
        let mut known = Known::default();
        for look_up in look_ups(by) {
            let mut query = json!({"category__product__name": self.product()});
            match look_up {
                LookUp::Numbers(numbers) => query["case_id__in"] = json!(numbers),
                LookUp::Summaries(summaries) => query["summary__in"] = json!(summaries),
            }
            for row in self.rpc.read::<Vec<CaseRow>>("TestCase.filter", json!([query])).await? {
                known.add(row.case_id, &row.summary);
            }
        }
        Ok(known)
    }

    /// The case runs of a run, oldest first; all of them, as Nitrate knows no pages.
    async fn case_runs(&self, run: u64) -> Result<Vec<CaseRun>, Trouble> {
        let mut all: Vec<CaseRun> = self.rpc.read("TestRun.get_test_case_runs", json!([run])).await?;
        all.sort_by_key(|row| row.id);
        all.dedup_by_key(|row| row.id);
        if all.is_empty() {
            self.check_run(run).await?;
        }
        Ok(all)
    }

    /// Writes one row: verdict and marker by one update. `Ok(Err(why))` if it was refused.
    async fn update(&self, row: u64, entry: &Entry, status: u64) -> Result<Result<(), String>, Trouble> {
        let values = json!({"case_run_status": status, "notes": entry.comment()});
        match self.rpc.write("TestCaseRun.update", json!([[row], values])).await {
            Ok(rows) => {
                // An update of a row that is gone updates none, and is no error.
                let rows: Vec<CaseRun> = parsed("TestCaseRun.update", rows)?;
                let there = rows.iter().any(|other| other.id == row);
                Ok(there.then_some(()).ok_or_else(|| format!("case run {row} is not there any more")))
            }
            Err(Trouble::Refused(why) | Trouble::Gone(why)) => {
                *self.statuses.lock().await = None;
                Ok(Err(why))
            }
            Err(other) => Err(other),
        }
    }
}

/// The case run that is written to: the oldest of the case. A second one comes of a newer text of the case.
fn place<'a>(all: &'a [CaseRun], case: &CaseId) -> Option<&'a CaseRun> {
    let case: u64 = case.as_str().parse().ok()?;
    all.iter().find(|row| row.case == case)
}

/// The number of a thing of Nitrate's.
fn number(what: &str, text: &str) -> Result<u64, Trouble> {
    text.parse().map_err(|_| Trouble::Gone(format!("{text:?} is no number of a {what}")))
}

#[async_trait]
impl Adapter for Nitrate {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        let each: Vec<Vec<By>> = wanted.iter().map(By::of).collect();
        let by = each.concat();
        let mut known = self.look_up(&by).await?;
        let missing = known.missing(&by);
        let mut refused = BTreeMap::new();
        if self.settings.create_cases && !missing.is_empty() {
            refused = self.create_cases(&missing).await?;
            known = self.look_up(&by).await?;
        }
        Ok(each.iter().map(|by| known.choices(by, self.product(), &refused)).collect())
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

    /// A call for each: one for all would fail as a whole where a single case is in the run already.
    async fn add_cases(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        let run = number("test run", cycle.as_str())?;
        let now = self.case_runs(run).await.map_err(before_writing)?;
        let missing: BTreeSet<&CaseId> = cases.iter().filter(|case| place(&now, case).is_none()).collect();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let by: Vec<By> = missing.iter().filter_map(|case| case.as_str().parse().ok().map(By::Number)).collect();
        let known = self.look_up(&by).await.map_err(before_writing)?;
        let (mut refused, mut doubts) = (Vec::new(), Vec::new());
        for case in missing {
            // A fault may come without words: what can be known is asked before.
            let found = case.as_str().parse().ok().filter(|number| known.has(*number));
            let Some(number) = found else {
                refused.push((case.clone(), format!("{} has no case TC-{case}", self.product())));
                continue;
            };
            match self.rpc.write("TestRun.add_cases", json!([[run], [number]])).await {
                Ok(_) | Err(Trouble::Exists(_)) => {}
                Err(Trouble::Refused(why)) => refused.push((case.clone(), why)),
                Err(Trouble::Unknown(why)) => doubts.push((case, why)),
                Err(other) => return Err(other),
            }
        }
        if doubts.is_empty() {
            return Ok(refused);
        }
        // Whoever was faster leaves us an answer that says nothing; the row says all that matters.
        let now = self.case_runs(run).await?;
        match doubts.into_iter().find(|(case, _)| place(&now, case).is_none()) {
            Some((case, why)) => Err(Trouble::Unknown(format!("adding TC-{case} to test run {run}: {why}"))),
            None => Ok(refused),
        }
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let statuses = self.statuses().await?;
        let wanted: BTreeSet<&str> = cases.iter().map(CaseId::as_str).collect();
        let mut rows = Vec::new();
        for row in self.case_runs(number("test run", cycle.as_str())?).await? {
            let case = row.case.to_string();
            let status = statuses.meaning(row.status);
            if status == RowStatus::Open || !(wanted.is_empty() || wanted.contains(case.as_str())) {
                continue;
            }
            let notes = row.notes.unwrap_or_default();
            let marker = Marker::find(&notes);
            rows.push(Row {
                id: RowId::new(row.id.to_string()),
                case: CaseId::new(case),
                status,
                marker,
                at_ms: row.close_date.as_deref().and_then(utc_ms),
                text: without_marker(&notes),
            });
        }
        Ok(rows)
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let run = number("test run", cycle.as_str())?;
        let statuses = self.statuses().await.map_err(before_writing)?;
        let now = self.case_runs(run).await.map_err(before_writing)?;
        let mut written = Written { rows: vec![None; batch.len()], ..Written::default() };
        let mut any = false;
        for (at, entry) in batch.iter().enumerate() {
            let row = place(&now, &entry.case).map(|row| row.id).ok_or_else(|| {
                format!("TC-{} is not in test run {run} and can't be written before it is added", entry.case)
            });
            let (row, status) = match row.and_then(|row| Ok((row, statuses.number(entry.status)?))) {
                Ok(both) => both,
                Err(why) => {
                    written.refused.push((at, why));
                    continue;
                }
            };
            match self.update(row, entry, status).await {
                Ok(Ok(())) => {
                    any = true;
                    written.rows[at] = Some(RowId::new(row.to_string()));
                }
                Ok(Err(why)) => written.refused.push((at, why)),
                // Some are written: nothing that is said of one call is true of the batch.
                Err(trouble) if any => return Err(Trouble::Unknown(trouble.to_string())),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(written)
    }

    async fn amend(&self, _cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let row = number("case run", row.as_str())?;
        let statuses = self.statuses().await.map_err(before_writing)?;
        let status = statuses.number(entry.status).map_err(Trouble::Refused)?;
        self.update(row, entry, status).await?.map_err(Trouble::Refused)
    }

    /// Nitrate takes a case out of a run, and with it every row of the case: only where this is the one row.
    async fn delete(&self, cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        let (run, row) = (number("test run", cycle.as_str())?, number("case run", row.as_str())?);
        let now = self.case_runs(run).await.map_err(before_writing)?;
        let Some(found) = now.iter().find(|other| other.id == row) else { return Ok(()) };
        if now.iter().filter(|other| other.case == found.case).count() > 1 {
            let case = found.case;
            return Err(Trouble::Refused(format!("Nitrate would delete the other rows of TC-{case} with it")));
        }
        self.rpc.write("TestRun.remove_cases", json!([[run], [found.case]])).await.map(|_: Value| ())
    }

    fn ending(&self) -> Ending {
        Ending::Refuses
    }

    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble> {
        self.close_run(number("test run", cycle.as_str())?, why).await
    }

    async fn delete_cycle(&self, _cycle: &CycleId) -> Result<(), Trouble> {
        Err(Trouble::Refused("Nitrate has no call that deletes a test run".to_owned()))
    }
}
