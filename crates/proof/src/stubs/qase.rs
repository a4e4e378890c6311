//! Qase: API v2 takes results with an id that it collapses on, and stores them some time after its 202; API v1 lists
//! them without that id. From the vendor's reference. Must not know the kernel.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::stubs::{
    Admin, Answer, Call, Jobs, Kind, Ledger, Rate, RecordedRow, Repeat, Request, Row, Rows, Rule, Stamp, Turn, Vendor,
};

/// A page that doesn't say how large it is to be, and the largest.
const PAGE: usize = 10;
const PAGE_MAX: usize = 100;
/// The most results in one request.
const BULK_MAX: usize = 2000;
const TITLE_CHARS_MAX: usize = 255;
/// The statuses that a result can have.
const STATUSES: [&str; 6] = ["passed", "failed", "blocked", "skipped", "invalid", "in_progress"];

/// What a call gives, or the refusal.
type Reply = Result<Answer, Answer>;

/// One result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The id that the client gave, or a random one.
    pub id: String,
    /// The run.
    pub run: u64,
    /// The case; 0 of a result that names none.
    pub case: u64,
    /// How the case was named: by its number, else by signature or title.
    pub item: String,
    /// The status.
    pub status: String,
    /// The comment.
    pub comment: String,
    /// What a reporter says of where it failed.
    pub stacktrace: Option<String>,
    time_ms: u64,
    at_ms: i64,
}

#[derive(Debug, Clone)]
struct Run {
    title: String,
    description: Option<String>,
    complete: bool,
    made: Stamp,
}

/// One account with one project.
#[derive(Debug, Clone)]
pub struct Qase {
    /// The code of the project.
    pub code: String,
    /// The token of the one user.
    pub token: String,
    /// All results; a repeated id is collapsed, within its run.
    pub results: Rows<Outcome>,
    queue: Jobs<Vec<Outcome>>,
    runs: BTreeMap<u64, Run>,
    cases: Vec<String>,
    drawn: u64,
}

impl Default for Qase {
    fn default() -> Self {
        Self {
            code: "DEMO".to_owned(),
            token: "key".to_owned(),
            results: Rows::new(Rule::honest(Repeat::Collapse), 1),
            queue: Jobs::default(),
            runs: BTreeMap::new(),
            cases: Vec::new(),
            drawn: 0,
        }
    }
}

impl Qase {
    /// A run of this title; its number.
    pub fn add_run(&mut self, at: Stamp, title: &str) -> u64 {
        let id = self.runs.len() as u64 + 31;
        self.runs.insert(id, Run { title: title.to_owned(), description: None, complete: false, made: at });
        id
    }

    /// Another writer's result.
    pub fn foreign_result(&mut self, at: Stamp, run: u64, case: u64, status: &str) -> u64 {
        self.drawn += 1;
        let (id, item, status) = (format!("drawn-{}", self.drawn), case.to_string(), status.to_owned());
        let outcome = Outcome { id, run, case, item, status, at_ms: at.unix_ms, ..Outcome::default() };
        self.results.push(at, outcome)
    }

    fn reply(&mut self, call: &Call<'_>) -> Reply {
        if call.request.header("token") != Some(&self.token) {
            return Err(problem(401, "Unauthenticated."));
        }
        let (method, path) = call.request.route();
        let Some((version, rest)) = path.split_first() else { return Err(problem(404, "Not found")) };
        match (method, *version, rest) {
            ("POST", "v2", [code, "run", run, "results"]) => {
                self.own(code)?;
                let body = call.request.json();
                let sent = body["results"].as_array().ok_or_else(|| invalid("results", "is required"))?;
                self.queued(call, run, sent).map(|()| Answer::json(202, &json!({ "status": true })))
            }
            ("POST", "v2", [code, "run", run, "result"]) => {
                self.own(code)?;
                self.queued(call, run, &[call.request.json()])?;
                Ok(Answer::json(202, &json!({ "status": true, "hash": hash(0) })))
            }
            (_, "v1", ["run", code, rest @ ..]) => {
                self.own(code)?;
                self.run_call(call, method, rest)
            }
            (_, "v1", ["result", code, rest @ ..]) => {
                self.own(code)?;
                self.result_call(call, method, rest)
            }
            _ => Err(problem(404, "Not found")),
        }
    }

    fn own(&self, code: &str) -> Result<(), Answer> {
        if code == self.code { Ok(()) } else { Err(problem(404, "Project is not found.")) }
    }

    fn run(&self, id: &str) -> Result<u64, Answer> {
        id.parse().ok().filter(|id| self.runs.contains_key(id)).ok_or_else(|| problem(404, "Test run not found"))
    }

    /// Takes results into the queue: all or none.
    fn queued(&mut self, call: &Call<'_>, run: &str, sent: &[Value]) -> Result<(), Answer> {
        let run = self.run(run)?;
        if self.runs.get(&run).is_some_and(|run| run.complete) {
            return Err(problem(400, "Test run is complete"));
        }
        if sent.len() > BULK_MAX {
            return Err(problem(413, "Too many results"));
        }
        for (at, one) in sent.iter().enumerate() {
            let title = one["title"].as_str().unwrap_or_default();
            if title.is_empty() || title.chars().count() > TITLE_CHARS_MAX {
                return Err(invalid(&format!("results.{at}.title"), "is required, up to 255 characters"));
            }
            if !one["execution"]["status"].as_str().is_some_and(|status| STATUSES.contains(&status)) {
                return Err(invalid(&format!("results.{at}.execution.status"), "is no status"));
            }
        }
        let outcomes = sent.iter().map(|one| self.outcome(call, run, one)).collect();
        self.queue.accept(call, outcomes);
        Ok(())
    }

    fn outcome(&mut self, call: &Call<'_>, run: u64, one: &Value) -> Outcome {
        let text = |name: &str| one[name].as_str().map(str::to_owned);
        let id = text("id").unwrap_or_else(|| {
            self.drawn += 1;
            format!("drawn-{}", self.drawn)
        });
        let name = text("signature").or_else(|| text("title")).unwrap_or_default();
        let given = one["testops_id"].as_u64().or_else(|| one["testops_ids"][0].as_u64());
        let case = given.unwrap_or_else(|| self.case_named(&name));
        Outcome {
            id,
            run,
            case,
            item: given.map_or(name, |case| case.to_string()),
            status: one["execution"]["status"].as_str().unwrap_or_default().to_owned(),
            comment: call.kept(one["message"].as_str().unwrap_or_default()),
            stacktrace: one["execution"]["stacktrace"].as_str().map(str::to_owned),
            time_ms: one["execution"]["duration"].as_u64().unwrap_or(0),
            at_ms: call.unix_ms(),
        }
    }

    /// The case that was made for a result without one.
    fn case_named(&mut self, name: &str) -> u64 {
        let at = self.cases.iter().position(|other| other == name).unwrap_or_else(|| {
            self.cases.push(name.to_owned());
            self.cases.len() - 1
        });
        at as u64 + 1000
    }

    fn run_call(&mut self, call: &Call<'_>, method: &str, rest: &[&str]) -> Reply {
        match (method, rest) {
            ("POST", []) => {
                let body = call.request.json();
                let title = body["title"].as_str().filter(|title| !title.is_empty());
                let title = title.filter(|title| title.chars().count() <= TITLE_CHARS_MAX);
                let title = call.kept(title.ok_or_else(|| invalid("title", "is required, up to 255 characters"))?);
                let id = self.add_run(call.now, &title);
                if let Some(run) = self.runs.get_mut(&id) {
                    run.description = body["description"].as_str().map(str::to_owned);
                }
                Ok(success(&json!({ "id": id })))
            }
            ("GET", []) => {
                let search = call.request.query("search").unwrap_or_default();
                let seen = |run: &Run| call.sees(run.made) && run.title.contains(search);
                let mut runs: Vec<(&u64, &Run)> = self.runs.iter().filter(|(_, run)| seen(run)).collect();
                runs.sort_by_key(|(id, _)| Reverse(**id));
                page(call, self.runs.len(), &runs, |(id, run)| shown(**id, run))
            }
            ("GET", [id]) => {
                let id = self.run(id)?;
                Ok(success(&self.runs.get(&id).map_or(Value::Null, |run| shown(id, run))))
            }
            ("POST", [id, "complete"]) => {
                let id = self.run(id)?;
                self.complete(id);
                Ok(Answer::json(200, &json!({ "status": true })))
            }
            ("DELETE", [id]) => {
                let id = self.run(id)?;
                self.delete_run(id);
                Ok(success(&json!({ "id": id })))
            }
            _ => Err(problem(404, "Not found")),
        }
    }

    fn complete(&mut self, id: u64) -> bool {
        self.runs.get_mut(&id).map(|run| run.complete = true).is_some()
    }

    fn delete_run(&mut self, id: u64) -> bool {
        self.results.retain(|row| row.data.run != id);
        self.runs.remove(&id).is_some()
    }

    fn result_call(&mut self, call: &Call<'_>, method: &str, rest: &[&str]) -> Reply {
        match (method, rest) {
            ("GET", []) => {
                let runs = call.request.query("run").unwrap_or_default();
                let of_run = |run: u64| runs.is_empty() || runs.split(',').any(|one| one.parse() == Ok(run));
                let shown = self.results.shown(call).rev().filter(|(_, outcome)| of_run(outcome.run));
                page(call, self.results.iter().count(), &shown.collect::<Vec<_>>(), |(id, outcome)| {
                    result(*id, outcome)
                })
            }
            // Without an id of the client's, every call adds.
            ("POST", [run]) => {
                let (run, body) = (self.run(run)?, call.request.json());
                let case = body["case_id"].as_u64().ok_or_else(|| invalid("case_id", "is required"))?;
                let status = body["status"].as_str().unwrap_or_default().to_owned();
                let id = self.foreign_result(call.now, run, case, &status);
                Ok(success(&json!({ "case_id": case, "hash": hash(id) })))
            }
            ("PATCH" | "DELETE", [run, hash]) => {
                let run = self.run(run)?;
                let found = self.results.iter().find(|row| row.data.run == run && self::hash(row.id) == **hash);
                let id = found.ok_or_else(|| problem(404, "Result not found"))?.id;
                if method == "DELETE" {
                    self.results.retain(|row| row.id != id);
                } else {
                    self.amend(call, id)?;
                }
                Ok(success(&json!({ "hash": hash })))
            }
            _ => Err(problem(404, "Not found")),
        }
    }

    fn amend(&mut self, call: &Call<'_>, id: u64) -> Result<(), Answer> {
        let body = call.request.json();
        let status = body["status"].as_str();
        if status.is_some_and(|status| !STATUSES.contains(&status)) {
            return Err(invalid("status", "is no status"));
        }
        self.results.change(id, call.now, |outcome| {
            status.unwrap_or(&outcome.status.clone()).clone_into(&mut outcome.status);
            if let Some(comment) = body["comment"].as_str() {
                outcome.comment = call.kept(comment);
            }
        });
        Ok(())
    }
}

impl Vendor for Qase {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        self.reply(call).unwrap_or_else(|refusal| refusal).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let (method, path) = request.route();
        let what = match path[..] {
            ["v2", .., "results" | "result"] => "add_results",
            ["v1", "run", _] if method == "POST" => "add_run",
            ["v1", "run", ..] => "run",
            _ => "result",
        };
        if method == "GET" { Kind::Read(what.to_owned()) } else { Kind::Write(what.to_owned()) }
    }

    fn ledger(&self) -> Ledger {
        let row = |row: &Row<Outcome>| RecordedRow {
            id: hash(row.id),
            cycle: row.data.run.to_string(),
            marker: row.data.comment.clone(),
            status: row.data.status.clone(),
            order: row.created.order,
            created_ms: row.created.unix_ms,
            side: Vec::new(),
        };
        self.results.iter().map(|found| (found.data.item.clone(), row(found))).collect()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        problem(status, text)
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("/results", count)
    }

    fn settle(&mut self, now: Stamp) {
        for (_, outcomes) in self.queue.due(now) {
            for outcome in outcomes {
                let (run, id) = (outcome.run, outcome.id.clone());
                self.results.write(now, outcome, |other| other.run == run && other.id == id);
            }
        }
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(run) => run.parse().is_ok_and(|run| self.complete(run)),
            Admin::DeleteCycle(run) => run.parse().is_ok_and(|run| self.delete_run(run)),
            _ => false,
        }
    }

    fn rate(&self) -> Option<Rate> {
        Some(Rate { requests: 1000, per_ms: 60_000, tells: true })
    }
}

fn hash(id: u64) -> String {
    format!("{id:040x}")
}

fn problem(status: u16, text: &str) -> Answer {
    Answer::json(status, &json!({ "status": false, "errorMessage": text }))
}

fn invalid(field: &str, why: &str) -> Answer {
    let fields = json!([{ "field": field, "error": why }]);
    Answer::json(400, &json!({ "status": false, "errorMessage": "Data is invalid.", "errorFields": fields }))
}

fn success(result: &Value) -> Answer {
    Answer::json(200, &json!({ "status": true, "result": result }))
}

fn shown(id: u64, run: &Run) -> Value {
    let (status, text) = if run.complete { (1, "complete") } else { (0, "active") };
    json!({
        "id": id, "title": run.title, "description": run.description, "status": status, "status_text": text,
        "start_time": time(run.made.unix_ms), "end_time": null, "public": false, "tags": [], "custom_fields": [],
    })
}

/// As API v1 shows it: without the id that the client gave.
fn result(id: u64, outcome: &Outcome) -> Value {
    json!({
        "hash": hash(id), "result_hash": hash(id), "comment": outcome.comment, "stacktrace": outcome.stacktrace,
        "run_id": outcome.run, "case_id": (outcome.case > 0).then_some(outcome.case), "status": outcome.status, "is_api_result": true,
        "time_spent_ms": outcome.time_ms, "end_time": time(outcome.at_ms), "attachments": [], "steps": [],
    })
}

fn time(unix_ms: i64) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

fn page<T>(call: &Call<'_>, total: usize, rows: &[T], show: impl Fn(&T) -> Value) -> Reply {
    let limit = call.request.number("limit").map_or(PAGE, |limit| limit as usize);
    let offset = call.request.number("offset").unwrap_or(0) as usize;
    if limit == 0 || limit > PAGE_MAX {
        return Err(invalid("limit", "is 1 to 100"));
    }
    let entities: Vec<Value> = call.page(rows, offset, limit).iter().map(show).collect();
    let (filtered, count) = (rows.len(), entities.len());
    Ok(success(&json!({ "total": total, "filtered": filtered, "count": count, "entities": entities })))
}
