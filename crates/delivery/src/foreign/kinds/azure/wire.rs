//! How calls of Azure's test API look: addresses, errors, pages, and what of the answers is needed. Must not know what
//! they are used for.

use std::collections::BTreeSet;

use http::HeaderMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::classify::Answer;
use crate::foreign::caller::{Call, Caller};
use crate::foreign::entry::{CaseId, CycleFound, CycleId};
use crate::foreign::kinds::caseless::{encoded, of_form, rfc3339};
use crate::foreign::trouble::{Trouble, judge};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// The longest span of time that runs are asked for in.
const SPAN_DAYS: u64 = 7;
/// The largest page of results and of points.
const PAGE: usize = 1000;
/// The header that leads to the next page of runs.
const CONTINUATION: &str = "x-ms-continuationtoken";

/// A list, in the envelope that all lists have.
#[derive(Deserialize)]
pub(super) struct List<T> {
    pub(super) value: Vec<T>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) state: String,
}

/// Another thing, by its id: text or number, as it comes.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Reference {
    id: Option<Value>,
    pub(super) name: Option<String>,
}

impl Reference {
    pub(super) fn id(&self) -> Option<String> {
        match self.id.as_ref()? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome {
    pub(super) id: u64,
    #[serde(rename = "outcome", default)]
    pub(super) verdict: String,
    #[serde(default)]
    pub(super) state: String,
    pub(super) comment: Option<String>,
    pub(super) error_message: Option<String>,
    pub(super) automated_test_name: Option<String>,
    pub(super) automated_test_storage: Option<String>,
    pub(super) completed_date: Option<String>,
    pub(super) test_case: Option<Reference>,
    pub(super) test_point: Option<Reference>,
}

/// A case in a suite under a configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Point {
    pub(super) id: u64,
    pub(super) test_case: Option<Reference>,
}

impl Point {
    pub(super) fn case(&self) -> Option<String> {
        self.test_case.as_ref()?.id()
    }
}

/// Why a case has not one place in a run.
pub(super) fn ambiguous(case: &CaseId, places: usize) -> String {
    match places {
        0 => format!("case {case} has no result in the run: it had no point in the suite when the run was made"),
        _ => format!("case {case} has {places} results in the run: name one configuration, or another suite"),
    }
}

pub(super) fn found(run: Run) -> CycleFound {
    CycleFound {
        id: CycleId::new(run.id.to_string()),
        // A completed run still takes results.
        closed: run.state.eq_ignore_ascii_case("Aborted"),
        name: run.name,
    }
}

/// The calls below one project.
#[derive(Debug)]
pub(super) struct Api {
    caller: Caller,
    base: String,
}

/// What Azure's error form says.
fn words(answer: &Answer) -> Option<String> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    body.get("typeKey")?.as_str()?;
    Some(body.get("message")?.as_str()?.to_owned())
}

/// Whoever can't be known is led to a page to sign in, under a status that is none of a refusal.
fn signs_in(answer: &Answer) -> bool {
    let html = holds(&answer.headers, "content-type", "html");
    match answer.status {
        203 => html,
        302 => holds(&answer.headers, "location", "signin") || holds(&answer.headers, "location", "login"),
        _ => false,
    }
}

fn holds(headers: &HeaderMap, name: &str, part: &str) -> bool {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.to_ascii_lowercase().contains(part))
}

impl Api {
    pub(super) fn new(caller: Caller, project: &str) -> Self {
        Self { caller, base: format!("/{}/_apis/test", encoded(project)) }
    }

    /// The address of a path below the project; `query` may be empty.
    pub(super) fn path(&self, path: &str, query: &str) -> String {
        let and = if query.is_empty() { "" } else { "&" };
        format!("{}/{path}?{query}{and}api-version=7.1", self.base)
    }

    pub(super) async fn call(&self, call: Call) -> Result<Answer, Trouble> {
        let nature = call.nature();
        let answer = self.caller.ask(call).await?;
        if signs_in(&answer) {
            let what = format!("status {}: a page to sign in: the token is not taken", answer.status);
            return Err(Trouble::Denied(what));
        }
        judge(answer, nature, words)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str, query: &str) -> Result<T, Trouble> {
        of_form(&self.call(Call::get(self.path(path, query))).await?)
    }

    /// All results of a run. Pages overlap by one, so that a list that moved between two of them is known.
    pub(super) async fn results(&self, run: &str) -> Result<Vec<Outcome>, Trouble> {
        let path = format!("runs/{}/results", encoded(run));
        self.overlapping(&path, "", |outcome: &Outcome| outcome.id, "the results of the run").await
    }

    /// All points of a suite, or those of one configuration.
    pub(super) async fn points(
        &self,
        plan: u64,
        suite: u64,
        configuration: Option<u64>,
    ) -> Result<Vec<Point>, Trouble> {
        let path = format!("Plans/{plan}/Suites/{suite}/points");
        let query = configuration.map(|id| format!("configurationId={id}&")).unwrap_or_default();
        self.overlapping(&path, &query, |point: &Point| point.id, "the points of the suite").await
    }

    async fn overlapping<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
        id: impl Fn(&T) -> u64 + Send + Sync,
        what: &str,
    ) -> Result<Vec<T>, Trouble> {
        let (mut all, mut seen) = (Vec::<T>::new(), BTreeSet::new());
        let mut shown = 0_usize;
        loop {
            let skip = shown.saturating_sub(1);
            let page: List<T> = self.get(path, &format!("{query}$top={PAGE}&$skip={skip}")).await?;
            shown = skip + page.value.len();
            if let Some(last) = all.last().map(&id)
                && !page.value.iter().any(|member| id(member) == last)
            {
                return Err(Trouble::Unknown(format!("{what} changed while they were read")));
            }
            let known = all.len();
            all.extend(page.value.into_iter().filter(|member| seen.insert(id(member))));
            // Not by its length: a server's own bound may be smaller than what was asked for.
            if all.len() == known {
                return Ok(all);
            }
        }
    }

    /// Runs of this name that were changed within so many days, each once, oldest first.
    pub(super) async fn runs_back(&self, name: &str, now_ms: u64, days: u64) -> Result<Vec<Run>, Trouble> {
        // A day ahead: their clock may be.
        let mut to = now_ms.saturating_add(DAY_MS);
        let mut runs = Vec::new();
        for _ in 0..(days + 1).div_ceil(SPAN_DAYS) {
            let from = to.saturating_sub(SPAN_DAYS * DAY_MS);
            runs.extend(self.runs(name, &rfc3339(from), &rfc3339(to)).await?);
            to = from;
        }
        runs.sort_by_key(|run| run.id);
        runs.dedup_by_key(|run| run.id);
        Ok(runs)
    }

    /// Runs of this name that were changed between two times (RFC 3339, at most seven days apart).
    async fn runs(&self, name: &str, from: &str, to: &str) -> Result<Vec<Run>, Trouble> {
        let (name, from, to) = (encoded(name), encoded(from), encoded(to));
        let base = format!("minLastUpdatedDate={from}&maxLastUpdatedDate={to}&runTitle={name}&$top=100");
        let mut query = base.clone();
        let mut runs = Vec::new();
        loop {
            let answer = self.call(Call::get(self.path("runs", &query))).await?;
            let page: List<Run> = of_form(&answer)?;
            runs.extend(page.value);
            match answer.headers.get(CONTINUATION).and_then(|value| value.to_str().ok()) {
                Some(next) if !next.is_empty() => query = format!("{base}&continuationToken={}", encoded(next)),
                _ => return Ok(runs),
            }
        }
    }
}
