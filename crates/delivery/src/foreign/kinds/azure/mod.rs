//! Azure Test Plans (`facts/targets.md`, section 14), in its two modes: results that are appended to a run, each with
//! an id of ours, or, with a plan, a run that is born with one result for each point and in which results are replaced.
//! Must not know any strategy.

mod attachments;
mod cases;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use domain::Status;
use domain::marker::Found;
use serde_json::{Value, json};

use super::OpenError;
use super::caseless::{
    absent, comment, duration_ms, encoded, itself, of_cases, of_form, rfc3339, row_status, said, shortened, span_ms,
    tagged, unix_ms,
};
use crate::clock::Clock;
use crate::foreign::adapter::{Adapter, Closing, Ending, Namesake, Written};
use crate::foreign::attachment::{File, Listed};
use crate::foreign::caller::{Call, Caller};
use crate::foreign::entry::{
    CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId, RowStatus,
};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::options::OptionError;
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::is_tagged;
use crate::foreign::trouble::{Trouble, json};
use wire::{Api, List, Outcome, Point, Run, ambiguous, found};

const NAME_CHARS_MAX: usize = 256;
const COMMENT_CHARS_MAX: usize = 1000;
/// How long after its last change a run is still found, unless `look-back-days` says otherwise.
const LOOK_BACK_DAYS: u64 = 28;

/// What is known of Azure's runs without a plan.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Azure,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: false,
    marker: MarkerFacts {
        level: MarkerLevel::M3,
        field: "comment, and automatedTestId",
        chars_max: COMMENT_CHARS_MAX,
        editable: true,
    },
    bulk: Bulk { items_max: 1000, atomic: false },
    visible: Visible::AtOnce,
    repair: Repair { delete: false, amend: true, delete_cycle: true },
    rate: None,
    // As long as the vendor's own agent waits for an answer.
    quiet_ms: 300_000,
    strategies: &[Strategy::Reconcile],
    races: &[Race::R1, Race::R2, Race::R3, Race::R7],
};

/// What is known of its runs of a plan.
pub(crate) const FACTS_OF_PLAN: Facts = Facts {
    verdict: VerdictRule::Replaces,
    marker: MarkerFacts { field: "comment", ..FACTS.marker },
    strategies: &[Strategy::Replace, Strategy::Reconcile],
    races: &[Race::R1, Race::R3, Race::R4, Race::R10],
    ..FACTS
};

/// The points that a run of a plan is born with.
#[derive(Debug, Clone, Copy)]
struct Plan {
    id: u64,
    suite: u64,
    configuration: Option<u64>,
}

/// One project.
pub(crate) struct Azure {
    api: Api,
    settings: TargetSettings,
    clock: Arc<dyn Clock>,
    plan: Option<Plan>,
    look_back_days: u64,
}

impl fmt::Debug for Azure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Azure").field("api", &self.api).field("plan", &self.plan).finish_non_exhaustive()
    }
}

pub(crate) fn open(settings: TargetSettings, caller: Caller, clock: Arc<dyn Clock>) -> Result<Azure, OpenError> {
    let mut options = settings.options.clone();
    let (plan, suite) = (options.number("plan")?, options.number("suite")?);
    let configuration = options.number("configuration")?;
    let look_back_days = options.number("look-back-days")?.unwrap_or(LOOK_BACK_DAYS);
    options.finish()?;
    let missing = |key: &str, why| Err(OptionError::Missing { key: key.to_owned(), why });
    let plan = match (plan, suite) {
        (Some(id), Some(suite)) => Some(Plan { id, suite, configuration }),
        (Some(_), None) => missing("suite", "the suite of the plan whose points the run is made of")?,
        (None, None) if configuration.is_none() => None,
        (None, _) => missing("plan", "suite and configuration say which of its points a run is made of")?,
    };
    let token = settings.token.as_ref().ok_or(OpenError::Credential("the personal access token (token)"))?;
    let caller = caller.basic(settings.user.as_deref().unwrap_or_default(), token)?;
    let api = Api::new(caller, &settings.project);
    Ok(Azure { api, settings, clock, plan, look_back_days })
}

impl Azure {
    fn word(&self, status: Status) -> String {
        let usual = match status {
            Status::Passed => "Passed",
            Status::Failed => "Failed",
            Status::Errored => "Error",
            Status::Skipped => "NotExecuted",
        };
        self.settings.status(status).unwrap_or(usual).to_owned()
    }

    async fn points(&self, plan: Plan) -> Result<Vec<Point>, Trouble> {
        self.api.points(plan.id, plan.suite, plan.configuration).await
    }

    /// The results of a run with the case of each, as far as it can be told.
    async fn results(&self, cycle: &CycleId) -> Result<Vec<(Option<String>, Outcome)>, Trouble> {
        let found = self.api.results(cycle.as_str()).await?;
        let case = |outcome: &Outcome| outcome.test_case.as_ref().and_then(wire::Reference::id);
        let by_point = match self.plan {
            Some(plan) if found.iter().any(|outcome| case(outcome).is_none()) => self.points(plan).await?,
            _ => Vec::new(),
        };
        let by_point: BTreeMap<String, Option<String>> =
            by_point.iter().map(|point| (point.id.to_string(), point.case())).collect();
        let at_point = |outcome: &Outcome| by_point.get(&outcome.test_point.as_ref()?.id()?).cloned().flatten();
        Ok(found.into_iter().map(|outcome| (case(&outcome).or_else(|| at_point(&outcome)), outcome)).collect())
    }

    fn row(&self, case: Option<String>, outcome: Outcome) -> Row {
        let said = said(outcome.comment.as_deref().unwrap_or_default());
        let ended = outcome.state.is_empty() || outcome.state.eq_ignore_ascii_case("Completed");
        let status = if ended {
            row_status(
                &outcome.verdict,
                |status| self.word(status),
                &["", "Unspecified", "None", "InProgress", "Paused"],
            )
        } else {
            RowStatus::Open
        };
        let test = test_of(said.marker, outcome.automated_test_storage, outcome.automated_test_name);
        let own = || case.or(test).unwrap_or_default();
        let case = match said.case {
            Some(case) if self.plan.is_none() => case,
            _ => CaseId::new(own()),
        };
        let texts = [outcome.error_message.unwrap_or_default(), said.text];
        let text = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        Row {
            id: RowId::new(outcome.id.to_string()),
            case,
            status,
            marker: said.marker,
            at_ms: outcome.completed_date.as_deref().and_then(unix_ms),
            text,
        }
    }

    /// The fields of a result that a later write replaces.
    fn verdict(&self, entry: &Entry) -> Value {
        let (start, end) = span_ms(entry);
        let bare = Entry { message: None, ..entry.clone() };
        let mut fields = json!({
            "outcome": self.word(entry.status),
            "state": "Completed",
            "startedDate": rfc3339(start),
            "completedDate": rfc3339(end),
            "durationInMs": duration_ms(entry).unwrap_or(0),
            "errorMessage": entry.message.as_deref().unwrap_or_default(),
            "comment": comment(&bare, COMMENT_CHARS_MAX),
        });
        if self.plan.is_none() {
            fields["automatedTestId"] = json!(entry.uuid());
        }
        fields
    }

    fn appended(&self, entry: &Entry) -> Value {
        let mut fields = self.verdict(entry);
        fields["testCaseTitle"] = json!(shortened(&entry.title, NAME_CHARS_MAX));
        fields["automatedTestName"] = json!(shortened(&entry.title, NAME_CHARS_MAX));
        fields["automatedTestStorage"] = json!(shortened(entry.case.as_str(), NAME_CHARS_MAX));
        fields
    }

    fn results_path(&self, cycle: &CycleId) -> String {
        self.api.path(&format!("runs/{}/results", encoded(cycle.as_str())), "")
    }

    async fn append(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let body: Vec<Value> = batch.iter().map(|entry| self.appended(entry)).collect();
        let answer = self.api.call(Call::post(self.results_path(cycle), &json!(body))).await?;
        let made: List<Outcome> = of_form(&answer)?;
        let mut rows: Vec<Option<RowId>> =
            made.value.iter().map(|outcome| Some(RowId::new(outcome.id.to_string()))).collect();
        rows.resize(batch.len(), None);
        Ok(Written { rows, ..Written::default() })
    }

    /// Replaces the one result that each case has. A case with several is left alone: which one is meant, nobody knows.
    async fn replace(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let mut places: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (case, outcome) in self.results(cycle).await? {
            places.entry(case.unwrap_or_default()).or_default().push(outcome.id);
        }
        let (mut written, mut changes) = (Written::default(), Vec::new());
        for (place, entry) in batch.iter().enumerate() {
            let found = places.get(entry.case.as_str()).map_or(&[][..], Vec::as_slice);
            if let [id] = found {
                let mut change = self.verdict(entry);
                change["id"] = json!(id);
                changes.push(change);
                written.rows.push(Some(RowId::new(id.to_string())));
            } else {
                written.rows.push(None);
                written.refused.push((place, ambiguous(&entry.case, found.len())));
            }
        }
        if !changes.is_empty() {
            let answer = self.api.call(Call::patch(self.results_path(cycle), &json!(changes))).await?;
            of_form::<List<Value>>(&answer)?;
        }
        Ok(written)
    }

    /// The run's name: the only thing of it that can be searched for.
    fn name(wanted: &CycleWanted) -> String {
        tagged(&wanted.name, &wanted.tag(), NAME_CHARS_MAX)
    }

    async fn set_run(&self, cycle: &CycleId, body: &Value) -> Result<(), Trouble> {
        let path = self.api.path(&format!("runs/{}", encoded(cycle.as_str())), "");
        self.api.call(Call::patch(path, body)).await.and_then(|answer| json(&answer)).map(drop)
    }
}

/// What a result is of where it names no case of a plan. Ours stands in the storage; other clients keep the file or the
/// class there, and only the name beside it tells one test of it from the next.
fn test_of(marker: Found, storage: Option<String>, name: Option<String>) -> Option<String> {
    match (marker, storage, name) {
        (Found::Nothing, Some(storage), Some(name)) => Some(format!("{storage} > {name}")),
        (_, storage, name) => storage.or(name),
    }
}

#[async_trait]
impl Adapter for Azure {
    fn facts(&self) -> &Facts {
        if self.plan.is_some() { &FACTS_OF_PLAN } else { &FACTS }
    }

    /// Without a plan every item stands for itself. With one, a case is never made: it would have no place in the suite.
    fn own_cases(&self, wanted: &[CaseWanted<'_>]) -> Option<Vec<CaseChoice>> {
        self.plan.is_none().then(|| wanted.iter().map(|wanted| CaseChoice::Known(itself(wanted))).collect())
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        let Some(plan) = self.plan else { return Ok(self.own_cases(wanted).unwrap_or_default()) };
        let points = self.points(plan).await?;
        let title = |point: &Point| point.test_case.as_ref().and_then(|case| case.name.clone());
        let cases = points.iter().filter_map(|point| Some((point.case()?, title(point)))).collect();
        Ok(wanted.iter().map(|wanted| cases::of_plan(wanted, &cases)).collect())
    }

    /// Runs that were changed within the last weeks: Azure lists them by no other order.
    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        if let Some(given) = &wanted.given {
            return Ok(vec![found(self.api.get(&format!("runs/{}", encoded(given.as_str())), "").await?)]);
        }
        let (name, tag) = (Self::name(wanted), wanted.tag());
        let mut runs = self.api.runs_back(&name, self.clock.unix_ms(), self.look_back_days).await?;
        runs.retain(|run| run.name.contains(&tag));
        Ok(runs.into_iter().map(found).collect())
    }

    async fn namesakes(&self, name: &str) -> Result<Option<Vec<Namesake>>, Trouble> {
        let runs = self.api.runs_back(name, self.clock.unix_ms(), self.look_back_days).await?;
        let namesake = |run: Run| Namesake { tagged: is_tagged(&run.name), found: found(run), made_ms: None };
        Ok(Some(runs.into_iter().map(namesake).collect()))
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let mut body = json!({
            "name": Self::name(wanted),
            "automated": true,
            "isAutomated": true,
            "state": "InProgress",
            "tags": [{ "name": wanted.tag() }],
            "comment": wanted.link.as_deref().unwrap_or_default(),
        });
        if let Some(plan) = self.plan {
            let points: Vec<u64> = self.points(plan).await?.iter().map(|point| point.id).collect();
            body["plan"] = json!({ "id": plan.id.to_string() });
            body["pointIds"] = json!(points);
        }
        let run: Run = of_form(&self.api.call(Call::post(self.api.path("runs", ""), &body)).await?)?;
        Ok(CycleId::new(run.id.to_string()))
    }

    /// A run of a plan has the points that it was made with, and gets no others.
    async fn add_cases(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        if self.plan.is_none() || cases.is_empty() {
            return Ok(Vec::new());
        }
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for (case, _) in self.results(cycle).await? {
            *places.entry(case.unwrap_or_default()).or_default() += 1;
        }
        let counted = cases.iter().map(|case| (case, places.get(case.as_str()).copied().unwrap_or(0)));
        let bad = counted.filter(|(_, count)| *count != 1);
        Ok(bad.map(|(case, count)| (case.clone(), ambiguous(case, count))).collect())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let results = self.results(cycle).await?;
        Ok(of_cases(results.into_iter().map(|(case, outcome)| self.row(case, outcome)).collect(), cases))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        if self.plan.is_some() { self.replace(cycle, batch).await } else { self.append(cycle, batch).await }
    }

    async fn amend(&self, cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let id: u64 = row.as_str().parse().map_err(|_| Trouble::Refused(format!("{row} is no number of a result")))?;
        let mut change = self.verdict(entry);
        change["id"] = json!(id);
        let answer = self.api.call(Call::patch(self.results_path(cycle), &json!([change]))).await?;
        of_form::<List<Value>>(&answer).map(drop)
    }

    async fn delete(&self, _cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        Err(Trouble::Refused(format!("result {row}: Azure deletes whole runs, and no single result")))
    }

    async fn attachments(&self, cycle: &CycleId, row: &Row) -> Result<Listed, Trouble> {
        self.files_of(cycle, row).await.map(Listed::Names)
    }

    async fn attach(&self, cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        self.add_file(cycle, row, file).await
    }

    fn ending(&self) -> Ending {
        Ending::Takes
    }

    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble> {
        let body = match why {
            Closing::Complete => json!({ "state": "Completed" }),
            Closing::Abandoned => json!({ "state": "Aborted", "comment": "abandoned: another run counts instead" }),
        };
        self.set_run(cycle, &body).await
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        let path = self.api.path(&format!("runs/{}", encoded(cycle.as_str())), "");
        absent(self.api.call(Call::delete(path)).await.map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_one_file_are_told_apart_by_their_names() {
        let of = |marker, name: &str| test_of(marker, Some("shop.dll".to_owned()), Some(name.to_owned()));
        assert_eq!(of(Found::Nothing, "adds").as_deref(), Some("shop.dll > adds"));
        assert_ne!(of(Found::Nothing, "adds"), of(Found::Nothing, "pays"));
        assert_eq!(of(Found::Mangled, "adds").as_deref(), Some("shop.dll"), "ours keeps its case there");
        assert_eq!(test_of(Found::Nothing, None, Some("adds".to_owned())).as_deref(), Some("adds"));
    }
}
