//! `TestLink`: cycle = build of a test plan, row = execution, marker = the execution's notes (`facts/targets.md`,
//! section 15). Must not know why it is called, or whether again.
//!
//! A repeat appends an execution. Executions can only be read for one case at a time.

mod builds;
mod cases;
mod rpc;

use std::collections::BTreeMap;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::Status;
use domain::marker::Marker;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use super::OpenError;
use super::times::utc_ms;
use super::xmlrpc::{text, whole};
use crate::foreign::adapter::{Adapter, Closing, Ending, Listing, Written};
use crate::foreign::attachment::{File, Listed};
use crate::foreign::caller::Caller;
use crate::foreign::entry::{
    CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId, RowStatus,
};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::options::OptionError;
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::{holds_tag, without_marker};
use crate::foreign::trouble::{Trouble, before_writing};
use rpc::Rpc;

/// Executions without a verdict, as the product writes it.
const NOT_RUN: &str = "n";

/// What is known of `TestLink`, read in its source.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Testlink,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: true,
    marker: MarkerFacts { level: MarkerLevel::M3, field: "notes of the execution", chars_max: 10_000, editable: true },
    bulk: Bulk { items_max: 1, atomic: true },
    visible: Visible::AtOnce,
    repair: Repair { delete: true, amend: true, delete_cycle: false },
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Reconcile, Strategy::Container],
    races: &[Race::R1, Race::R2, Race::R8],
};

/// One test plan of one installation.
#[derive(Debug)]
pub(crate) struct TestLink {
    rpc: Rpc,
    settings: TargetSettings,
    plan: String,
    platform: Option<String>,
    /// Where cases are made; there if they may be.
    suite: Option<Suite>,
    place: OnceCell<Place>,
    /// The numbers of builds that the configuration names.
    builds: Mutex<BTreeMap<CycleId, i64>>,
}

/// Where cases are made, and who is their author.
#[derive(Debug)]
struct Suite {
    number: u64,
    author: String,
}

/// Project, plan and platform by their numbers.
#[derive(Debug, Clone)]
struct Place {
    project: i64,
    prefix: String,
    plan: i64,
    platform: Option<i64>,
}

/// Reads the keys of this kind.
///
/// # Errors
/// A key or credential is missing or can't be used.
pub(crate) fn open(mut settings: TargetSettings, caller: Caller) -> Result<TestLink, OpenError> {
    let mut options = std::mem::take(&mut settings.options);
    let plan = options.need("plan", "the test plan that builds are made in, by number or name")?;
    let platform = options.text("platform")?;
    let suite = options.number("suite")?;
    options.finish()?;
    let key = settings.token.clone().ok_or(OpenError::Credential("token (a personal API key)"))?;
    let suite = match (settings.create_cases, suite) {
        (false, _) => None,
        (true, Some(number)) => {
            let author =
                settings.user.clone().ok_or(OpenError::Credential("user (author of the cases that are made)"))?;
            Some(Suite { number, author })
        }
        (true, None) => {
            let why = "the number of the test suite that cases are made in";
            return Err(OptionError::Missing { key: "suite".to_owned(), why }.into());
        }
    };
    Ok(TestLink {
        rpc: Rpc::new(caller, key),
        settings,
        plan,
        platform,
        suite,
        place: OnceCell::new(),
        builds: Mutex::default(),
    })
}

impl TestLink {
    async fn place(&self) -> Result<&Place, Trouble> {
        self.place.get_or_try_init(|| self.find_place()).await
    }

    async fn find_place(&self) -> Result<Place, Trouble> {
        let name = &self.settings.project;
        let project = self.rpc.read("tl.getTestProjectByName", json!({"testprojectname": name})).await?;
        let (project, prefix) = first(&project)
            .and_then(|row| Some((number(row, "id")?, text(&row["prefix"]))))
            .ok_or_else(|| Trouble::Unknown(format!("tl.getTestProjectByName says nothing of {name:?}")))?;
        let plan = match self.plan.parse() {
            Ok(plan) => plan,
            Err(_) => self.find_plan(name).await?,
        };
        let platform = match &self.platform {
            None => None,
            Some(wanted) => Some(self.find_platform(plan, wanted).await?),
        };
        Ok(Place { project, prefix, plan, platform })
    }

    async fn find_plan(&self, project: &str) -> Result<i64, Trouble> {
        let args = json!({"testprojectname": project, "testplanname": self.plan});
        let plan = self.rpc.read("tl.getTestPlanByName", args).await?;
        first(&plan)
            .and_then(|row| number(row, "id"))
            .ok_or_else(|| Trouble::Unknown(format!("tl.getTestPlanByName says nothing of {:?}", self.plan)))
    }

    async fn find_platform(&self, plan: i64, wanted: &str) -> Result<i64, Trouble> {
        let platforms = self.rpc.read("tl.getTestPlanPlatforms", json!({"testplanid": plan})).await?;
        let found = elements(&platforms).find(|row| text(&row["name"]) == wanted || text(&row["id"]) == wanted);
        found
            .and_then(|row| number(row, "id"))
            .ok_or_else(|| Trouble::Gone(format!("test plan {:?} has no platform {wanted:?}", self.plan)))
    }

    /// The executions of one case in a build, oldest first.
    async fn executions(&self, place: &Place, build: i64, case: &CaseId) -> Result<Vec<Row>, Trouble> {
        let mut args = json!({"testplanid": place.plan, "testcaseexternalid": case.as_str(), "buildid": build});
        if let Some(platform) = place.platform {
            args["platformid"] = json!(platform);
        }
        let said = self.rpc.read("tl.getExecutionSet", args).await?;
        let of_build = |row: &&Value| number(row, "build_id").is_none_or(|other| other == build);
        // Nothing is there: one row with the number -1.
        let there = |row: &&Value| number(row, "id").is_some_and(|id| id > 0);
        let mut rows: Vec<(i64, Row)> = elements(&said)
            .filter(there)
            .filter(of_build)
            .filter_map(|row| Some((number(row, "id")?, self.row(case, row))))
            .collect();
        rows.sort_by_key(|(id, _)| *id);
        rows.dedup_by_key(|(id, _)| *id);
        Ok(rows.into_iter().map(|(_, row)| row).filter(|row| row.status != RowStatus::Open).collect())
    }

    fn row(&self, case: &CaseId, row: &Value) -> Row {
        let notes = text(&row["notes"]);
        let marker = Marker::find(&notes);
        let code = text(&row["status"]);
        let ours = Status::ALL.into_iter().find(|status| self.code(*status) == code);
        Row {
            id: RowId::new(text(&row["id"])),
            case: case.clone(),
            status: match ours {
                Some(status) => RowStatus::Is(status),
                None if code == NOT_RUN => RowStatus::Open,
                None => RowStatus::Other(code),
            },
            marker,
            at_ms: utc_ms(&text(&row["execution_ts"])),
            text: without_marker(&notes),
        }
    }

    /// The letter of a status. `TestLink` has no error beside failed, and its "blocked" is what could not be carried out.
    fn code(&self, status: Status) -> &str {
        self.settings.status(status).unwrap_or(match status {
            Status::Passed => "p",
            Status::Failed | Status::Errored => "f",
            Status::Skipped => "b",
        })
    }

    async fn report(
        &self,
        place: &Place,
        build: i64,
        entry: &Entry,
        overwrite: bool,
    ) -> Result<Option<RowId>, Trouble> {
        // No time: it takes the server's local one, and says nowhere what that is. Never a guess at the build.
        let mut args = json!({
            "testplanid": place.plan, "testcaseexternalid": entry.case.as_str(), "buildid": build,
            "status": self.code(entry.status), "notes": entry.comment(), "overwrite": overwrite, "guess": false,
        });
        if let Some(platform) = place.platform {
            args["platformid"] = json!(platform);
        }
        if let Some(duration) = entry.duration_us {
            args["execduration"] = json!(duration.0 as f64 / 60e6);
        }
        let said = self.rpc.write("tl.reportTCResult", args).await?;
        let row = first(&said).filter(|row| is_true(&row["status"]));
        let row = row.ok_or_else(|| Trouble::Unknown(format!("tl.reportTCResult was answered by {said}")))?;
        Ok(number(row, "id").map(|id| RowId::new(id.to_string())))
    }
}

/// PHP has one kind of array: what has several rows may be a list, or a map by some number.
fn elements(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(all) => Box::new(all.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// The one row of an answer: alone, or in a list.
fn first(value: &Value) -> Option<&Value> {
    match value {
        Value::Array(all) => all.first(),
        Value::Object(_) => Some(value),
        _ => None,
    }
}

fn number(row: &Value, name: &str) -> Option<i64> {
    row.get(name).and_then(whole)
}

fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true) || whole(value) == Some(1)
}

#[async_trait]
impl Adapter for TestLink {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        self.choose_cases(wanted).await
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let place = self.place().await?;
        let builds = self.rpc.read("tl.getBuildsForTestPlan", json!({"testplanid": place.plan})).await?;
        let is_wanted = |row: &&Value| match &wanted.given {
            Some(given) => text(&row["id"]) == given.as_str() || text(&row["name"]) == given.as_str(),
            None => holds_tag(&text(&row["name"]), &wanted.tag()),
        };
        let mut found: Vec<(i64, CycleFound)> = elements(&builds)
            .filter(is_wanted)
            .filter_map(|row| {
                let id = number(row, "id")?;
                let closed = number(row, "is_open") == Some(0) || number(row, "active") == Some(0);
                Some((id, CycleFound { id: CycleId::new(id.to_string()), name: text(&row["name"]), closed }))
            })
            .collect();
        if let (Some(given), true) = (&wanted.given, found.is_empty()) {
            return Err(Trouble::Gone(format!("test plan {:?} has no build {given}", self.plan)));
        }
        found.sort_by_key(|(id, _)| *id);
        Ok(found.into_iter().map(|(_, cycle)| cycle).collect())
    }

    /// Names of builds are unique in a plan: of several that make it at once one succeeds.
    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let place = self.place().await.map_err(before_writing)?;
        let args = json!({
            "testplanid": place.plan, "buildname": Self::build_name(wanted), "active": 1, "open": 1,
            "buildnotes": wanted.link.clone().unwrap_or_default(),
        });
        let said = self.rpc.write("tl.createBuild", args).await?;
        let row = first(&said).ok_or_else(|| Trouble::Unknown(format!("tl.createBuild was answered by {said}")))?;
        match number(row, "id").filter(|id| *id > 0) {
            Some(id) if is_true(&row["status"]) => Ok(CycleId::new(id.to_string())),
            // Said by a normal answer, with the number of the one that is there.
            Some(_) => Err(Trouble::Exists(format!("tl.createBuild: {}", text(&row["message"])))),
            None => Err(Trouble::Unknown(format!("tl.createBuild was answered by {said}"))),
        }
    }

    async fn add_cases(&self, _cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        self.add_to_plan(cases).await
    }

    fn listing(&self) -> Listing {
        Listing::Case
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let place = self.place().await?;
        let build = self.build(place, cycle).await?;
        let all;
        let cases = if cases.is_empty() {
            all = self.planned(place).await?.into_iter().map(|case| CaseId::new(case.id)).collect::<Vec<_>>();
            &all[..]
        } else {
            cases
        };
        let mut rows = Vec::new();
        for case in cases {
            rows.extend(self.executions(place, build, case).await?);
        }
        Ok(rows)
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let place = self.place().await.map_err(before_writing)?;
        let build = self.build(place, cycle).await.map_err(before_writing)?;
        let mut written = Written { rows: vec![None; batch.len()], ..Written::default() };
        let mut any = false;
        for (at, entry) in batch.iter().enumerate() {
            match self.report(place, build, entry, false).await {
                Ok(row) => (any, written.rows[at]) = (true, row),
                Err(Trouble::Refused(why)) => written.refused.push((at, why)),
                // Some are written: nothing that is said of one call is true of the batch.
                Err(trouble) if any => return Err(Trouble::Unknown(trouble.to_string())),
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(written)
    }

    /// Only the newest execution of a case can be rewritten, so the row must be that.
    async fn amend(&self, cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let place = self.place().await.map_err(before_writing)?;
        let build = self.build(place, cycle).await.map_err(before_writing)?;
        let rows = self.executions(place, build, &entry.case).await.map_err(before_writing)?;
        match rows.iter().position(|other| other.id == *row) {
            None => Err(Trouble::Gone(format!("there is no execution {row} of {} any more", entry.case))),
            Some(at) if at + 1 < rows.len() => {
                Err(Trouble::Refused(format!("execution {row} is not the newest of {}", entry.case)))
            }
            Some(_) => self.report(place, build, entry, true).await.map(|_| ()),
        }
    }

    async fn delete(&self, _cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        let id: i64 = row.as_str().parse().map_err(|_| Trouble::Gone(format!("{row} is no execution")))?;
        match self.rpc.write("tl.deleteExecution", json!({"executionid": id})).await {
            // It isn't there.
            Err(Trouble::Refused(why)) if why.ends_with("(error 231)") || why.ends_with("(error 236)") => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Executions take files, and no call lists them.
    async fn attachments(&self, _cycle: &CycleId, _row: &Row) -> Result<Listed, Trouble> {
        Ok(Listed::Unlisted)
    }

    async fn attach(&self, _cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        let args = json!({
            "executionid": row.id.as_str(), "title": file.name, "filename": file.name, "filetype": file.media_type(),
            "content": STANDARD.encode(&file.bytes),
        });
        self.rpc.write("tl.uploadExecutionAttachment", args).await.map(drop)
    }

    fn ending(&self) -> Ending {
        Ending::Refuses
    }

    async fn close_cycle(&self, cycle: &CycleId, _why: Closing) -> Result<(), Trouble> {
        let place = self.place().await.map_err(before_writing)?;
        let build = self.build(place, cycle).await.map_err(before_writing)?;
        self.rpc.write("tl.closeBuild", json!({"buildid": build})).await.map(|_| ())
    }

    async fn delete_cycle(&self, _cycle: &CycleId) -> Result<(), Trouble> {
        Err(Trouble::Refused("TestLink has no call that deletes a build".to_owned()))
    }
}
