//! Test runs and cases of Nitrate that are made: found by tag, made in a plan for a build. Must not know verdicts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::rpc::parsed;
use super::{Nitrate, number};
use crate::foreign::adapter::{Closing, Namesake};
use crate::foreign::entry::{CycleFound, CycleId, CycleWanted};
use crate::foreign::text::{cut, is_tagged};
use crate::foreign::trouble::{Trouble, before_writing};

/// Most characters of a run's summary that we write.
const SUMMARY_CHARS_MAX: usize = 200;
/// What the summary of a run begins with that nothing may be taken from.
const ABANDONED: &str = "[abandoned] ";

#[derive(Debug, Deserialize)]
struct RunRow {
    #[serde(rename = "run_id")]
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
struct PlanRow {
    plan_id: u64,
}

#[derive(Debug, Deserialize)]
struct BuildRow {
    build_id: u64,
    name: String,
}

#[derive(Debug, Deserialize)]
struct VersionRow {
    id: u64,
    value: String,
}

#[derive(Debug, Deserialize)]
struct NamedRow {
    id: u64,
    name: String,
}

impl Nitrate {
    /// By tag, or by the same text in the notes: tags are added after the run, and the second step may be lost.
    pub(super) async fn find_runs(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let queries = match &wanted.given {
            Some(given) => vec![json!({"run_id": number("test run", given.as_str())?})],
            None => vec![json!({"tag__name": wanted.tag()}), json!({"notes__contains": wanted.tag()})],
        };
        let mut found = BTreeMap::new();
        for query in queries {
            for run in self.rpc.read::<Vec<RunRow>>("TestRun.filter", json!([query])).await? {
                found.insert(run.id, run.summary);
            }
        }
        if let (Some(given), true) = (&wanted.given, found.is_empty()) {
            return Err(Trouble::Gone(format!("there is no test run {given}")));
        }
        // Numbers rise, so the oldest comes first. Nitrate takes results for a run that was stopped, too.
        let found = found.into_iter().map(|(id, name)| CycleFound {
            id: CycleId::new(id.to_string()),
            closed: name.starts_with(ABANDONED),
            name,
        });
        Ok(found.collect())
    }

    /// When a run was made is told in the server's own time, whose zone nobody says: it is left out.
    pub(super) async fn runs_named(&self, name: &str) -> Result<Vec<Namesake>, Trouble> {
        let rows: Vec<RunRow> = self.rpc.read("TestRun.filter", json!([{"summary": name}])).await?;
        let namesake = |run: RunRow| Namesake {
            tagged: run.notes.as_deref().is_some_and(is_tagged),
            found: CycleFound { id: CycleId::new(run.id.to_string()), name: run.summary, closed: false },
            made_ms: None,
        };
        Ok(rows.into_iter().map(namesake).collect())
    }

    /// # Errors
    /// [`Trouble::Gone`] if there is none.
    pub(super) async fn check_run(&self, run: u64) -> Result<RunName, Trouble> {
        let runs: Vec<RunRow> = self.rpc.read("TestRun.filter", json!([{"run_id": run}])).await?;
        let found = runs.into_iter().next().map(|run| RunName(run.summary));
        found.ok_or_else(|| Trouble::Gone(format!("there is no test run {run}")))
    }

    pub(super) async fn create_run(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let place = self.place().await.map_err(before_writing)?;
        let me: Numbered = self.rpc.read("User.get_me", json!([])).await.map_err(before_writing)?;
        let build = self.build_number(place.product).await?;
        let link = wanted.link.as_ref().map(|link| format!("{link}\n\n")).unwrap_or_default();
        let run = json!({
            "summary": cut(&wanted.name, SUMMARY_CHARS_MAX), "notes": format!("{link}{}", wanted.tag()),
            "tag": wanted.tag(), "manager": me.id, "plan": place.plan, "build": build,
            "product": place.product, "product_version": place.version,
        });
        let made = self.rpc.write("TestRun.create", json!([run])).await?;
        Ok(CycleId::new(parsed::<RunRow>("TestRun.create", made)?.id.to_string()))
    }

    pub(super) async fn close_run(&self, run: u64, why: Closing) -> Result<(), Trouble> {
        let RunName(summary) = self.check_run(run).await.map_err(before_writing)?;
        let values = match why {
            Closing::Complete => json!({"status": 1}),
            Closing::Abandoned if summary.starts_with(ABANDONED) => return Ok(()),
            Closing::Abandoned => {
                let summary = format!("{ABANDONED}{summary}");
                json!({"status": 1, "summary": cut(&summary, SUMMARY_CHARS_MAX)})
            }
        };
        self.rpc.write("TestRun.update", json!([[run], values])).await.map(|_: Value| ())
    }

    /// Makes a case for each summary, in the plan. Gives those that were refused, and why.
    pub(super) async fn create_cases(&self, summaries: &[String]) -> Result<BTreeMap<String, String>, Trouble> {
        let place = self.place().await.map_err(before_writing)?;
        let categories: Vec<Numbered> = self.read_of(place.product, "Product.get_categories").await?;
        let priority: Numbered =
            self.rpc.read("TestCase.check_priority", json!(["P1"])).await.map_err(before_writing)?;
        let statuses: Vec<NamedRow> =
            self.rpc.read("TestCase.get_case_status", json!([])).await.map_err(before_writing)?;
        let category = categories
            .iter()
            .map(|row| row.id)
            .min()
            .ok_or_else(|| Trouble::Refused(format!("cases can't be made: {} has no category", self.product())))?;
        let status = statuses.iter().find(|status| status.name == "CONFIRMED").map(|status| status.id);
        let mut refused = BTreeMap::new();
        for summary in summaries {
            let mut case = json!({
                "summary": summary, "product": place.product, "category": category, "priority": priority.id,
                "plan": [place.plan], "is_automated": 1,
            });
            if let Some(status) = status {
                case["case_status"] = json!(status);
            }
            match self.rpc.write("TestCase.create", json!([case])).await {
                Ok(_) => {}
                Err(Trouble::Refused(why)) => {
                    refused.insert(summary.clone(), why);
                }
                Err(other) => return Err(other),
            }
        }
        Ok(refused)
    }

    async fn read_of<T: serde::de::DeserializeOwned>(&self, product: u64, method: &str) -> Result<Vec<T>, Trouble> {
        self.rpc.read(method, json!([product])).await.map_err(before_writing)
    }

    async fn place(&self) -> Result<Place, Trouble> {
        let products: Vec<Numbered> = self.rpc.read("Product.filter", json!([{"name": self.product()}])).await?;
        let product = products.first().map(|row| row.id);
        let product = product.ok_or_else(|| Trouble::Gone(format!("there is no product {:?}", self.product())))?;
        let versions: Vec<VersionRow> = self.read_of(product, "Product.get_versions").await?;
        let version = versions.iter().find(|row| row.value == self.version).map(|row| row.id);
        let version = version.ok_or_else(|| {
            Trouble::Gone(format!("{} has no version {:?}: make it, or name another", self.product(), self.version))
        })?;
        let mut query = json!({"product": product});
        match self.plan.parse::<u64>() {
            Ok(plan) => query["plan_id"] = json!(plan),
            Err(_) => query["name"] = json!(self.plan),
        }
        let plans: Vec<PlanRow> = self.rpc.read("TestPlan.filter", json!([query])).await?;
        let plan = plans.iter().map(|row| row.plan_id).min();
        let plan = plan.ok_or_else(|| Trouble::Gone(format!("{} has no test plan {:?}", self.product(), self.plan)))?;
        Ok(Place { product, version, plan })
    }

    /// The build by its name, which is unique in a product: of several that make it at once one succeeds.
    async fn build_number(&self, product: u64) -> Result<u64, Trouble> {
        if let Some(build) = self.find_build(product).await.map_err(before_writing)? {
            return Ok(build);
        }
        // Without a description its database refuses.
        let build = json!([{"name": self.build, "product": product, "description": ""}]);
        let why = match self.rpc.write("Build.create", build).await {
            Ok(build) => return Ok(parsed::<BuildRow>("Build.create", build)?.build_id),
            Err(Trouble::Exists(why) | Trouble::Unknown(why)) => why,
            Err(other) => return Err(other),
        };
        self.find_build(product).await?.ok_or(Trouble::Unknown(why))
    }

    async fn find_build(&self, product: u64) -> Result<Option<u64>, Trouble> {
        let builds: Vec<BuildRow> = self.rpc.read("Product.get_builds", json!([product])).await?;
        Ok(builds.iter().find(|build| build.name == self.build).map(|build| build.build_id))
    }
}

/// What people read of a run.
pub(super) struct RunName(String);

/// Where runs are made.
struct Place {
    product: u64,
    version: u64,
    plan: u64,
}
