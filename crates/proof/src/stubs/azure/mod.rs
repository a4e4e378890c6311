//! Azure Test Plans: runs whose results are appended, or born with one result for each point of a plan and then changed
//! in place. From the vendor's reference and its own clients. Must not know the kernel.

mod places;
mod results;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::stubs::{
    Admin, Answer, Call, Kind, Ledger, RecordedRow, Repeat, Request, Row, Rows, Rule, Stamp, Turn, Vendor, file,
};
use results::Outcome;

const RUNS_PAGE_MAX: usize = 100;
/// The longest span of time that runs can be asked for in.
const SPAN_MS: i64 = 7 * 24 * 60 * 60 * 1000;
const STATES: [&str; 6] = ["NotStarted", "InProgress", "Completed", "Waiting", "Aborted", "NeedsInvestigation"];

/// What a call gives, or the refusal.
type Reply = Result<Answer, Answer>;

/// A case in a suite under a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its plan.
    pub plan: u64,
    /// Its suite.
    pub suite: u64,
    /// Its case.
    pub case: u64,
    /// The title of the case.
    pub title: String,
    /// The configuration.
    pub configuration: u64,
}

#[derive(Debug, Clone)]
struct Run {
    fields: Map<String, Value>,
    updated_ms: i64,
    made: Stamp,
    next_result: u64,
}

/// One organisation with one project.
#[derive(Debug, Clone)]
pub struct Azure {
    /// The project's name.
    pub project: String,
    /// The personal access token of the one user.
    pub token: String,
    /// Whether results of a plan's run are shown with their case, beside their point.
    pub shows_cases: bool,
    /// Most members of a page, whatever is asked for; less than what is documented if it is set so.
    pub page_max: usize,
    /// All results; their rule is to append.
    pub results: Rows<Outcome>,
    runs: BTreeMap<u64, Run>,
    points: BTreeMap<u64, Point>,
}

impl Default for Azure {
    fn default() -> Self {
        Self {
            project: "demo".to_owned(),
            token: "key".to_owned(),
            shows_cases: true,
            page_max: usize::MAX,
            results: Rows::new(Rule::honest(Repeat::Append), 1),
            runs: BTreeMap::new(),
            points: BTreeMap::new(),
        }
    }
}

impl Azure {
    /// A point more; its number.
    pub fn add_point(&mut self, point: Point) -> u64 {
        let id = self.points.len() as u64 + 41;
        self.points.insert(id, point);
        id
    }

    /// The state of a run.
    pub fn state(&self, run: u64) -> Option<&str> {
        self.runs.get(&run)?.fields.get("state")?.as_str()
    }

    fn reply(&mut self, call: &Call<'_>) -> Reply {
        let (method, path) = call.request.route();
        if let Some(answer) = places::answer(method, &path) {
            return Ok(answer);
        }
        // Name and token; whoever has none is led to a page, as people are.
        if call.request.basic().is_none_or(|(_, token)| token != self.token) {
            return Err(Answer::html(203, "<html><title>Azure DevOps Services | Sign In</title></html>"));
        }
        let [project, "_apis", "test", rest @ ..] = &path[..] else { return Err(problem(404, "no such call")) };
        if *project != self.project {
            return Err(problem(404, "TF200016: The following project does not exist"));
        }
        let wants = |part: &str| part.contains("api-version=7.1");
        let version = call.request.query("api-version").map(|v| format!("api-version={v}"));
        let accepts = call.request.header("accept").unwrap_or_default();
        if !version.as_deref().is_some_and(wants) && !wants(accepts) {
            return Err(problem(400, "No api-version was supplied"));
        }
        match (method, rest) {
            ("POST", ["runs"]) => self.create_run(call),
            ("GET", ["runs"]) => self.list_runs(call),
            ("GET", ["runs", id]) => self.run(id).map(|(id, run)| Answer::json(200, &self.shown(id, run))),
            ("PATCH", ["runs", id]) => self.update_run(call, id),
            ("DELETE", ["runs", id]) => {
                let (id, _) = self.run(id)?;
                self.delete_run(id);
                Ok(Answer::empty(204))
            }
            (_, ["runs", id, "results"]) => {
                let (id, _) = self.run(id)?;
                self.results_call(call, method, id)
            }
            ("GET" | "POST", ["runs" | "Runs", id, "results" | "Results", result, "attachments"]) => {
                let (id, _) = self.run(id)?;
                self.attachments_call(call, method, id, result)
            }
            ("GET", ["Plans" | "plans", plan, "Suites" | "suites", suite, "points" | "Points"]) => {
                self.list_points(call, plan, suite)
            }
            _ => Err(problem(404, "no such call")),
        }
    }

    fn run(&self, id: &str) -> Result<(u64, &Run), Answer> {
        let found = id.parse().ok().and_then(|id| Some((id, self.runs.get(&id)?)));
        found.ok_or_else(|| problem(404, &format!("Test run {id} cannot be found")))
    }

    fn create_run(&mut self, call: &Call<'_>) -> Reply {
        let body = call.request.json();
        let name = body["name"].as_str().filter(|name| !name.is_empty() && name.chars().count() <= 256);
        let name = call.kept(name.ok_or_else(|| problem(400, "name: a value is required, up to 256 characters"))?);
        let points = body["pointIds"].as_array().cloned().unwrap_or_default();
        let points: Vec<u64> = points.iter().filter_map(Value::as_u64).collect();
        let plan = reference(&body["plan"]);
        if points.iter().any(|id| self.points.get(id).is_none_or(|point| Some(point.plan) != plan)) {
            return Err(problem(400, "pointIds: a test point is not in the plan"));
        }
        if body["tags"].as_array().is_some_and(|tags| tags.len() > 5) {
            return Err(problem(400, "tags: at most 5"));
        }
        let id = self.runs.len() as u64 + 210;
        let mut fields: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
        fields.remove("pointIds");
        fields.insert("name".to_owned(), json!(name));
        fields.entry("state").or_insert(json!("InProgress"));
        self.runs.insert(id, Run { fields, updated_ms: call.unix_ms(), made: call.now, next_result: 100_000 });
        for point in points {
            self.born(call, id, point);
        }
        let answer = self.runs.get(&id).map(|run| self.shown(id, run)).unwrap_or_default();
        Ok(Answer::json(200, &answer))
    }

    fn update_run(&mut self, call: &Call<'_>, id: &str) -> Reply {
        let (id, _) = self.run(id)?;
        let body = call.request.json();
        if body["state"].as_str().is_some_and(|state| !STATES.contains(&state)) {
            return Err(problem(400, "state: no such state"));
        }
        if let Some(run) = self.runs.get_mut(&id) {
            run.fields.extend(body.as_object().cloned().unwrap_or_default());
            run.updated_ms = call.unix_ms();
        }
        let answer = self.runs.get(&id).map(|run| self.shown(id, run)).unwrap_or_default();
        Ok(Answer::json(200, &answer))
    }

    fn delete_run(&mut self, id: u64) -> bool {
        self.results.retain(|row| row.data.run != id);
        self.runs.remove(&id).is_some()
    }

    /// With a span of time: the search; without: the list.
    fn list_runs(&self, call: &Call<'_>) -> Reply {
        let moment = |name: &str| call.request.query(name).map(str::parse::<Timestamp>);
        let span = match (moment("minLastUpdatedDate"), moment("maxLastUpdatedDate")) {
            (Some(Ok(from)), Some(Ok(to))) => Some((from.as_millisecond(), to.as_millisecond())),
            (None, None) => None,
            _ => return Err(problem(400, "minLastUpdatedDate and maxLastUpdatedDate are both required")),
        };
        if span.is_some_and(|(from, to)| to - from > SPAN_MS || to < from) {
            return Err(problem(400, "The difference between both dates can be at most 7 days"));
        }
        let title = call.request.query("runTitle");
        let named = |run: &Run| title.is_none_or(|title| run.fields.get("name").and_then(Value::as_str) == Some(title));
        let within = |run: &Run| span.is_none_or(|(from, to)| (from..=to).contains(&run.updated_ms));
        let seen = self.runs.iter().filter(|(_, run)| call.sees(run.made) && named(run) && within(run));
        let found: Vec<(&u64, &Run)> = seen.collect();
        let at = call.request.number("continuationToken").or(call.request.number("$skip")).unwrap_or(0) as usize;
        let top = call.request.number("$top").map_or(RUNS_PAGE_MAX, |top| top as usize).min(RUNS_PAGE_MAX);
        let page: Vec<Value> = call.page(&found, at, top).iter().map(|(id, run)| self.shown(**id, run)).collect();
        let answer = list(&page);
        let more = span.is_some() && at + top < found.len();
        Ok(if more { answer.header("x-ms-continuationtoken", &(at + top).to_string()) } else { answer })
    }

    fn shown(&self, id: u64, run: &Run) -> Value {
        let total = self.results.iter().filter(|row| row.data.run == id).count();
        let mut shown = run.fields.clone();
        shown.insert("id".to_owned(), json!(id));
        shown.insert("totalTests".to_owned(), json!(total));
        shown.insert("revision".to_owned(), json!(1));
        shown.insert("isAutomated".to_owned(), json!(true));
        Value::Object(shown)
    }

    fn list_points(&self, call: &Call<'_>, plan: &str, suite: &str) -> Reply {
        let configuration = call.request.number("configurationId");
        let of = |point: &Point| {
            point.plan.to_string() == plan
                && point.suite.to_string() == suite
                && configuration.is_none_or(|wanted| wanted == point.configuration)
        };
        let found: Vec<(&u64, &Point)> = self.points.iter().filter(|(_, point)| of(point)).collect();
        if !self.points.values().any(|point| point.plan.to_string() == plan) {
            return Err(problem(404, &format!("Test plan {plan} cannot be found")));
        }
        let (at, top) = results::window(call, 1000.min(self.page_max));
        let shown = |(id, point): &(&u64, &Point)| {
            json!({
                "id": id, "outcome": "Unspecified", "state": "NotReady",
                "testCase": { "id": point.case.to_string(), "name": point.title },
                "configuration": { "id": point.configuration.to_string() },
                "suite": { "id": point.suite.to_string() }, "testPlan": { "id": point.plan.to_string() },
            })
        };
        Ok(list(&call.page(&found, at, top).iter().map(shown).collect::<Vec<_>>()))
    }
}

impl Vendor for Azure {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        self.reply(call).unwrap_or_else(|refusal| refusal).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let (method, path) = request.route();
        let what = match (method, &path[..]) {
            (_, [.., "results"]) => "results",
            (_, [.., "attachments"]) => "attachments",
            (_, [.., "points" | "Points"]) => "points",
            ("POST", [.., "runs"]) => "create_run",
            _ => "run",
        };
        if method == "GET" || method == "OPTIONS" { Kind::Read(what.to_owned()) } else { Kind::Write(what.to_owned()) }
    }

    /// Results with a verdict: those that wait for one say nothing yet.
    fn ledger(&self) -> Ledger {
        let text = |row: &Row<Outcome>, name: &str| row.data.text(name).unwrap_or_default().to_owned();
        let row = |row: &Row<Outcome>| RecordedRow {
            id: row.data.id.to_string(),
            cycle: row.data.run.to_string(),
            marker: text(row, "comment"),
            status: text(row, "outcome"),
            order: row.created.order,
            created_ms: row.created.unix_ms,
            side: row.data.attachments.iter().map(|(name, bytes)| file(name, bytes)).collect(),
        };
        let ended = self.results.iter().filter(|row| row.data.text("state") == Some("Completed"));
        ended.map(|found| (self.item(&found.data), row(found))).collect()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        problem(status, text)
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("", count)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(run) => {
                let run = run.parse().ok().and_then(|run: u64| self.runs.get_mut(&run));
                run.map(|run| run.fields.insert("state".to_owned(), json!("Completed"))).is_some()
            }
            Admin::DeleteCycle(run) => run.parse().is_ok_and(|run| self.delete_run(run)),
            _ => false,
        }
    }
}

fn problem(status: u16, text: &str) -> Answer {
    let body = json!({
        "$id": "1", "innerException": null, "message": text, "typeName": "Microsoft.TeamFoundation.TestManagement",
        "typeKey": "TestManagementException", "errorCode": 0, "eventId": 3000,
    });
    Answer::json(status, &body)
}

fn list(value: &[Value]) -> Answer {
    Answer::json(200, &json!({ "count": value.len(), "value": value }))
}

/// The number of a thing that is named by `{"id": …}`, text or number.
fn reference(value: &Value) -> Option<u64> {
    value["id"].as_u64().or_else(|| value["id"].as_str()?.parse().ok())
}
