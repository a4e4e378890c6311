//! Runs: found by the tag in `refs` or in the description, made, closed, and their selection of cases.
//! Must not know results.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::wire::{CaseOf, Run, path};
use super::{TestRail, id};
use crate::foreign::adapter::{Closing, Namesake};
use crate::foreign::caller::Call;
use crate::foreign::entry::{CaseId, CycleFound, CycleId, CycleWanted};
use crate::foreign::text::{above, cut, holds_tag, is_tagged};
use crate::foreign::trouble::{Trouble, before_writing};

/// Most characters of a run's name.
const NAME_CHARS_MAX: usize = 250;
const DESCRIPTION_CHARS_MAX: usize = 4000;

impl TestRail {
    pub(super) async fn find_runs(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        if let Some(given) = &wanted.given {
            let gone = |trouble| match trouble {
                Trouble::Refused(what) => Trouble::Gone(format!("run {given}: {what}")),
                other => other,
            };
            let number = id("run", given.as_str()).map_err(gone)?;
            return Ok(vec![found(self.run(number).await.map_err(gone)?)]);
        }
        let runs = self.runs().await?;
        let tag = wanted.tag();
        let holds = |text: &Option<String>| text.as_deref().is_some_and(|text| holds_tag(text, &tag));
        let mut ours: Vec<Run> = runs.into_iter().filter(|run| holds(&run.refs) || holds(&run.description)).collect();
        ours.sort_by_key(|run| run.id);
        Ok(ours.into_iter().map(found).collect())
    }

    async fn runs(&self) -> Result<Vec<Run>, Trouble> {
        let mut call = format!("get_runs/{}", self.project);
        if let Some(after_s) = self.runs_after_s {
            call = format!("{call}&created_after={after_s}");
        }
        self.api.list(&call, "runs").await
    }

    pub(super) async fn runs_named(&self, name: &str) -> Result<Vec<Namesake>, Trouble> {
        let same = self.runs().await?.into_iter().filter(|run| run.name == name);
        let namesake = |run: Run| {
            let tagged = run.refs.iter().chain(&run.description).any(|text| is_tagged(text));
            Namesake { made_ms: run.created_on.map(|s| s.saturating_mul(1000)), found: found(run), tagged }
        };
        Ok(same.map(namesake).collect())
    }

    pub(super) async fn create_run(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let tag = wanted.tag();
        let link = wanted.link.as_deref().unwrap_or_default();
        let mut body = json!({
            "name": cut(&wanted.name, NAME_CHARS_MAX),
            // In both places: old servers know no refs of runs, and people edit descriptions.
            "refs": tag,
            "description": above(link, &tag, DESCRIPTION_CHARS_MAX),
            "include_all": self.include_all,
        });
        if !self.include_all {
            body["case_ids"] = json!([]);
        }
        if let Some(suite) = self.suite {
            body["suite_id"] = json!(suite);
        }
        let run: Run = self.api.parsed(Call::post(path(&format!("add_run/{}", self.project)), &body)).await?;
        Ok(CycleId::new(run.id.to_string()))
    }

    async fn run(&self, run: u64) -> Result<Run, Trouble> {
        self.api.whole(&format!("get_run/{run}")).await
    }

    /// Why a run took nothing: texts differ from version to version, so the run itself is asked.
    pub(super) async fn why_refused(&self, run: u64, refused: Trouble) -> Trouble {
        match self.run(run).await {
            Ok(found) if found.is_completed => Trouble::Gone(format!("run {run} is completed: {refused}")),
            Err(Trouble::Refused(_) | Trouble::Gone(_)) => Trouble::Gone(format!("run {run} is not there: {refused}")),
            _ => refused,
        }
    }

    /// Makes cases a part of a run. The product takes the whole selection and drops what is left out of it, results and
    /// all; so what is there is read first, and what became of it afterwards.
    pub(super) async fn select_cases(&self, run: u64, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        let mut wanted = cases.iter().map(|case| id("case", case.as_str())).collect::<Result<BTreeSet<u64>, _>>()?;
        let present = self.selected(run).await.map_err(before_writing)?;
        if wanted.is_subset(&present) {
            return Ok(Vec::new());
        }
        let now = self.run(run).await.map_err(before_writing)?;
        if now.is_completed {
            return Err(Trouble::Gone(format!("run {run} is completed")));
        }
        if now.include_all {
            return Ok(without(cases, &present, "the run holds all cases of its suite, and this is none of them"));
        }
        let known = self.known_cases().await.map_err(before_writing)?;
        wanted.retain(|case| known.contains(case));
        if !wanted.is_subset(&present) {
            // Without an answer it may still come, and drop what was added meanwhile: the caller waits before it looks again.
            self.select(&now, &present | &wanted).await?;
            let after = self.selected(run).await.map_err(before_writing)?;
            if !wanted.is_subset(&after) {
                let what = format!("another writer changed the cases of run {run} at the same time");
                return Err(before_writing(Trouble::Unknown(what)));
            }
        }
        Ok(without(cases, &(&known | &present), "there is no such case in the project and suite"))
    }

    async fn select(&self, run: &Run, cases: BTreeSet<u64>) -> Result<Value, Trouble> {
        let method = if run.plan_id.is_some() { "update_run_in_plan_entry" } else { "update_run" };
        let body = json!({ "include_all": false, "case_ids": cases });
        self.api.call(Call::post(path(&format!("{method}/{}", run.id)), &body)).await
    }

    async fn selected(&self, run: u64) -> Result<BTreeSet<u64>, Trouble> {
        Ok(self.api.tests(run).await?.into_iter().map(|test| test.case_id).collect())
    }

    async fn known_cases(&self) -> Result<BTreeSet<u64>, Trouble> {
        let cases: Vec<CaseOf> = self.case_list().await?;
        Ok(cases.into_iter().map(|case| case.id).collect())
    }

    /// Ends a run. The product never opens it again.
    pub(super) async fn close_run(&self, run: u64, why: Closing) -> Result<(), Trouble> {
        let now = self.run(run).await?;
        if now.is_completed {
            return Ok(());
        }
        if why == Closing::Abandoned {
            let body = json!({ "name": cut(&format!("[abandoned] {}", now.name), NAME_CHARS_MAX) });
            self.api.call(Call::post(path(&format!("update_run/{run}")), &body)).await?;
        }
        self.api.call(Call::post(path(&format!("close_run/{run}")), &json!({}))).await.map(drop)
    }

    pub(super) async fn delete_run(&self, run: u64) -> Result<(), Trouble> {
        match self.api.call(Call::post(path(&format!("delete_run/{run}")), &json!({}))).await {
            Err(refused @ Trouble::Refused(_)) => match self.why_refused(run, refused).await {
                Trouble::Gone(_) => Ok(()),
                other => Err(other),
            },
            Err(Trouble::Gone(_)) => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

fn found(run: Run) -> CycleFound {
    CycleFound { id: CycleId::new(run.id.to_string()), name: run.name, closed: run.is_completed }
}

/// Those of the cases that are none of `known`, and why.
fn without(cases: &[CaseId], known: &BTreeSet<u64>, why: &str) -> Vec<(CaseId, String)> {
    let unknown = |case: &&CaseId| id("case", case.as_str()).is_ok_and(|case| !known.contains(&case));
    cases.iter().filter(unknown).map(|case| (case.clone(), why.to_owned())).collect()
}
