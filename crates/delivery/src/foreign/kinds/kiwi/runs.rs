//! Test runs of Kiwi TCMS: found by tag, made in a plan for a build. Must not know executions' verdicts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::rpc::{ask, parsed};
use super::{Kiwi, Plan, number};
use crate::foreign::adapter::{Closing, Namesake};
use crate::foreign::entry::{CycleFound, CycleId, CycleWanted};
use crate::foreign::text::{cut, is_tagged};
use crate::foreign::trouble::Trouble;

/// Most characters of a run's summary that we write; the product sets no bound.
const SUMMARY_CHARS_MAX: usize = 255;
/// What the summary of a run begins with that nothing may be taken from.
const ABANDONED: &str = "[abandoned] ";

#[derive(Debug, Deserialize)]
struct RunRow {
    id: u64,
    summary: String,
    #[serde(default)]
    notes: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Numbered {
    id: u64,
}

#[derive(Debug, Deserialize)]
struct Ended {
    start_date: Option<String>,
    stop_date: Option<String>,
}

impl Kiwi {
    /// By tag, or by the same text in the notes: a run is made with notes, and tagged by a second call that may be lost.
    pub(super) async fn find_runs(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let asks = match &wanted.given {
            Some(given) => {
                let run = number("test run", given.as_str())?;
                vec![ask("TestRun.filter", json!([{"pk": run}]))]
            }
            None => vec![
                ask("TestRun.filter", json!([{"tag__name": wanted.tag()}])),
                ask("TestRun.filter", json!([{"notes__contains": wanted.tag()}])),
            ],
        };
        let mut found = BTreeMap::new();
        for rows in self.rpc.read(&asks).await? {
            for run in parsed::<Vec<RunRow>>(rows)? {
                found.insert(run.id, run.summary);
            }
        }
        if let (Some(given), true) = (&wanted.given, found.is_empty()) {
            return Err(Trouble::Gone(format!("there is no test run {given}")));
        }
        // Numbers rise, so the oldest comes first. Kiwi takes results for a run that has ended, too.
        let found = found.into_iter().map(|(id, name)| CycleFound {
            id: CycleId::new(id.to_string()),
            closed: name.starts_with(ABANDONED),
            name,
        });
        Ok(found.collect())
    }

    /// Kiwi doesn't tell when a run was made.
    pub(super) async fn runs_named(&self, name: &str) -> Result<Vec<Namesake>, Trouble> {
        let rows: Vec<RunRow> = self.rpc.rows(ask("TestRun.filter", json!([{"summary": name}]))).await?;
        let namesake = |run: RunRow| Namesake {
            tagged: run.notes.as_deref().is_some_and(is_tagged),
            found: CycleFound { id: CycleId::new(run.id.to_string()), name: run.summary, closed: false },
            made_ms: None,
        };
        Ok(rows.into_iter().map(namesake).collect())
    }

    pub(super) async fn create_run(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let build = self.build_number().await?;
        let plan = self.plan_number().await?;
        let me: Vec<Numbered> = self.rpc.rows(ask("User.filter", json!([]))).await?;
        let manager = me.first().ok_or_else(|| Trouble::Unknown("User.filter names nobody".to_owned()))?.id;
        let link = wanted.link.as_ref().map(|link| format!("{link}\n\n")).unwrap_or_default();
        let run = ask(
            "TestRun.create",
            json!([{
                "summary": cut(&wanted.name, SUMMARY_CHARS_MAX), "notes": format!("{link}{}", wanted.tag()),
                "manager": manager, "plan": plan, "build": build,
            }]),
        );
        let run: Numbered = parsed(self.rpc.write_one(run).await?)?;
        let tagged = self.rpc.write_one(ask("TestRun.add_tag", json!([run.id, wanted.tag()]))).await;
        match tagged {
            // The notes hold the same text: it is found again without the tag.
            Ok(_) | Err(Trouble::Denied(_) | Trouble::Refused(_) | Trouble::Gone(_)) => {
                Ok(CycleId::new(run.id.to_string()))
            }
            Err(other) => Err(other),
        }
    }

    pub(super) async fn close_run(&self, run: u64, why: Closing) -> Result<(), Trouble> {
        let values = match why {
            Closing::Complete => {
                let rows: Vec<Ended> = self.rpc.rows(ask("TestExecution.filter", json!([{"run": run}]))).await?;
                // The run has ended with its last execution; no clock of ours is needed.
                let Some(end) = rows.into_iter().filter_map(|row| row.stop_date.or(row.start_date)).max() else {
                    return Ok(());
                };
                json!({"stop_date": end.replace('T', " ")})
            }
            Closing::Abandoned => {
                let rows: Vec<RunRow> = self.rpc.rows(ask("TestRun.filter", json!([{"pk": run}]))).await?;
                let row = rows.first().ok_or_else(|| Trouble::Gone(format!("there is no test run {run}")))?;
                if row.summary.starts_with(ABANDONED) {
                    return Ok(());
                }
                json!({"summary": format!("{ABANDONED}{}", row.summary)})
            }
        };
        self.rpc.write_one(ask("TestRun.update", json!([run, values]))).await.map(|_| ())
    }

    pub(super) async fn plan_number(&self) -> Result<u64, Trouble> {
        let mut query = json!({"product__name": self.product()});
        match &self.plan {
            Plan::Number(plan) => query["pk"] = json!(plan),
            Plan::Name(name) => query["name"] = json!(name),
        }
        let rows: Vec<Numbered> = self.rpc.rows(ask("TestPlan.filter", json!([query]))).await?;
        rows.iter().map(|row| row.id).min().ok_or_else(|| {
            let plan = match &self.plan {
                Plan::Number(plan) => format!("TP-{plan}"),
                Plan::Name(name) => format!("{name:?}"),
            };
            Trouble::Gone(format!("{} has no test plan {plan}", self.product()))
        })
    }

    /// The build by its name, which is unique in a version: of several that make it at once one succeeds.
    async fn build_number(&self) -> Result<u64, Trouble> {
        if let Some(build) = self.find_build().await? {
            return Ok(build);
        }
        let query = json!([{"value": self.version, "product__name": self.product()}]);
        let versions: Vec<Numbered> = self.rpc.rows(ask("Version.filter", query)).await?;
        let version = versions.first().ok_or_else(|| {
            Trouble::Gone(format!("{} has no version {:?}: make it, or name another", self.product(), self.version))
        })?;
        let build = json!([{"name": self.build, "version": version.id}]);
        match self.rpc.write_one(ask("Build.create", build)).await {
            Ok(build) => Ok(parsed::<Numbered>(build)?.id),
            Err(Trouble::Exists(why)) => self.find_build().await?.ok_or(Trouble::Unknown(why)),
            Err(other) => Err(other),
        }
    }

    async fn find_build(&self) -> Result<Option<u64>, Trouble> {
        let query = json!([{
            "name": self.build, "version__value": self.version, "version__product__name": self.product(),
        }]);
        let builds: Vec<Numbered> = self.rpc.rows(ask("Build.filter", query)).await?;
        Ok(builds.first().map(|build| build.id))
    }
}
