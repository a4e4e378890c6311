//! Zephyr Scale for Jira Server and Data Center (the ATM API): results are appended, `PUT` changes the newest, runs
//! can't be changed. Stub only: from what clients say of it, checked by no client of the vendor's.
//! Must not know the kernel.

mod files;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::stubs::jql;
use crate::stubs::{
    Admin, Answer, Call, Kind, Ledger, RecordedRow, Repeat, Request, Row, Rows, Rule, Stamp, Turn, Vendor,
};

/// What becomes of a result of a case that is not in the run: builds differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// The case is added in silence.
    Added,
    /// It is refused with this status.
    Refused(u16),
}

/// A test run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: Option<String>,
    /// The cases in it.
    pub cases: BTreeSet<String>,
    made: Stamp,
}

/// A test result.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The run's key.
    pub run: String,
    /// The case's key.
    pub case: String,
    /// The word of its status.
    pub status: String,
    /// Its comment.
    pub comment: String,
    /// All else that was sent.
    pub fields: Map<String, Value>,
    /// Its files: names and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

/// One project in one Jira.
#[derive(Debug, Clone)]
pub struct ZephyrServer {
    /// The project's key.
    pub project: String,
    /// The personal token that is known.
    pub token: String,
    /// Whether results are listed in pages; older builds list all at once.
    pub paged: bool,
    /// What becomes of a result of a case that is not in the run.
    pub outside: Outside,
    /// Whether an array with a bad element is refused as a whole, or kept up to that element.
    pub atomic: bool,
    /// The letter of runs' keys: `R`, or `C` on older builds.
    pub letter: char,
    /// The folders of runs that are there.
    pub folders: BTreeSet<String>,
    /// All results; their rule is to append.
    pub results: Rows<Outcome>,
    /// Keys and names of all cases.
    pub cases: Vec<(String, String)>,
    /// All runs.
    pub runs: Vec<Run>,
    /// The words of statuses.
    pub statuses: Vec<String>,
}

impl Default for ZephyrServer {
    fn default() -> Self {
        let statuses = ["Not Executed", "In Progress", "Pass", "Fail", "Blocked"];
        Self {
            project: "SHOP".to_owned(),
            token: "token".to_owned(),
            paged: true,
            outside: Outside::Added,
            atomic: true,
            letter: 'R',
            folders: BTreeSet::from(["/Nightly".to_owned()]),
            results: Rows::new(Rule::honest(Repeat::Append), 501),
            cases: Vec::new(),
            runs: Vec::new(),
            statuses: statuses.into_iter().map(str::to_owned).collect(),
        }
    }
}

type Reply = Result<Answer, Answer>;

impl ZephyrServer {
    /// One more case; its key.
    pub fn add_case(&mut self, name: &str) -> String {
        let key = format!("{}-T{}", self.project, self.cases.len() + 1);
        self.cases.push((key.clone(), name.to_owned()));
        key
    }

    fn run(&self, key: &str) -> Result<&Run, Answer> {
        let found = self.runs.iter().find(|run| run.key == key);
        found.ok_or_else(|| problem(404, &format!("The test run {key} was not found.")))
    }

    fn add_run(&mut self, call: &Call<'_>) -> Reply {
        let body = call.request.json();
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        if text("projectKey") != Some(&self.project) {
            return Err(problem(400, "The project key is required."));
        }
        let name = text("name").unwrap_or_default();
        if name.is_empty() || name.chars().count() > 255 {
            return Err(problem(400, "The name must have 1 to 255 characters."));
        }
        let folder = text("folder").map(str::to_owned);
        if folder.as_ref().is_some_and(|folder| !self.folders.contains(folder)) {
            return Err(problem(400, "The folder was not found for field folder."));
        }
        let key = format!("{}-{}{}", self.project, self.letter, self.runs.len() + 1);
        let items: Vec<Value> = body.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let outcomes: Vec<Outcome> =
            items.iter().map(|item| self.outcome(call, &key, None, item)).collect::<Result<_, _>>()?;
        let cases = outcomes.iter().map(|outcome| outcome.case.clone()).collect();
        self.runs.push(Run { key: key.clone(), name: name.to_owned(), folder, cases, made: call.now });
        for outcome in outcomes {
            self.results.push(call.now, outcome);
        }
        Ok(Answer::json(201, &json!({ "key": key })))
    }

    /// A result as it was sent, checked.
    fn outcome(&self, call: &Call<'_>, run: &str, case: Option<&str>, body: &Value) -> Result<Outcome, Answer> {
        let case = case.or_else(|| body.get("testCaseKey")?.as_str()).unwrap_or_default().to_owned();
        if !self.cases.iter().any(|(key, _)| *key == case) {
            return Err(problem(400, &format!("The test case {case} was not found.")));
        }
        let mut outcome = Outcome { run: run.to_owned(), case, status: self.statuses[0].clone(), ..Outcome::default() };
        self.patch(call, &mut outcome, body)?;
        Ok(outcome)
    }

    fn patch(&self, call: &Call<'_>, outcome: &mut Outcome, body: &Value) -> Result<(), Answer> {
        if let Some(status) = body.get("status").and_then(Value::as_str) {
            if !self.statuses.iter().any(|known| known == status) {
                return Err(problem(400, &format!("The status {status} was not found for field status.")));
            }
            status.clone_into(&mut outcome.status);
        }
        if let Some(comment) = body.get("comment").and_then(Value::as_str) {
            outcome.comment = call.kept(comment);
        }
        for name in ["actualStartDate", "actualEndDate", "executionTime", "environment", "userKey"] {
            if let Some(value) = body.get(name).filter(|value| !value.is_null()) {
                outcome.fields.insert(name.to_owned(), value.clone());
            }
        }
        Ok(())
    }

    fn add_result(&mut self, call: &Call<'_>, run: &str, case: Option<&str>, body: &Value) -> Result<u64, Answer> {
        self.run(run)?;
        let outcome = self.outcome(call, run, case, body)?;
        let inside = self.run(run)?.cases.contains(&outcome.case);
        match self.outside {
            Outside::Refused(status) if !inside => {
                return Err(problem(status, &format!("The test case {} is not in the test run.", outcome.case)));
            }
            Outside::Refused(_) | Outside::Added => {
                let case = outcome.case.clone();
                self.runs.iter_mut().filter(|one| one.key == run).for_each(|one| {
                    one.cases.insert(case.clone());
                });
            }
        }
        let (run, case) = (outcome.run.clone(), outcome.case.clone());
        Ok(self.results.write(call.now, outcome, |other| other.run == run && other.case == case).id())
    }

    fn add_results(&mut self, call: &Call<'_>, run: &str) -> Reply {
        let Value::Array(all) = call.request.json() else {
            return Err(problem(400, "An array is expected."));
        };
        let before = self.clone();
        let mut ids = Vec::new();
        for one in &all {
            match self.add_result(call, run, None, one) {
                Ok(id) => ids.push(json!({ "id": id })),
                Err(refused) => {
                    if self.atomic {
                        *self = before;
                    }
                    return Err(refused);
                }
            }
        }
        Ok(Answer::json(201, &json!(ids)))
    }

    /// Only the newest result of the case in the run.
    fn amend(&mut self, call: &Call<'_>, run: &str, case: &str) -> Reply {
        self.run(run)?;
        let newest = self.results.iter().rfind(|row| row.data.run == run && row.data.case == case);
        let newest = newest.cloned().ok_or_else(|| problem(404, "The test result was not found."))?;
        let mut outcome = newest.data;
        self.patch(call, &mut outcome, &call.request.json())?;
        self.results.change(newest.id, call.now, |old| *old = outcome);
        Ok(Answer::json(200, &json!({ "id": newest.id })))
    }

    fn delete_run(&mut self, key: &str) -> Reply {
        self.run(key)?;
        self.runs.retain(|run| run.key != key);
        self.results.retain(|row| row.data.run != key);
        Ok(Answer::empty(204))
    }

    /// Only by project and folder.
    fn search(&self, call: &Call<'_>, runs: bool) -> Reply {
        let clauses = jql::clauses(call.request.query("query").unwrap_or_default());
        let clauses = clauses.ok_or_else(|| problem(400, "The query is not valid."))?;
        let mut folder = None;
        for (field, value) in clauses {
            match field.as_str() {
                "projectKey" if value == self.project => {}
                "folder" if self.folders.contains(&value) => folder = Some(value),
                _ => return Err(problem(400, &format!("The query is not valid: {field}"))),
            }
        }
        let found: Vec<Value> = if runs {
            let seen = self.runs.iter().filter(|run| call.sees(run.made));
            let seen = seen.filter(|run| folder.is_none() || run.folder == folder);
            seen.map(|run| json!({ "key": run.key, "name": run.name })).collect()
        } else {
            self.cases.iter().map(|(key, name)| json!({ "key": key, "name": name })).collect()
        };
        Ok(Answer::json(200, &json!(page(call, &found))))
    }

    fn listed(&self, call: &Call<'_>, run: &str) -> Result<Vec<Value>, Answer> {
        self.run(run)?;
        let created = |id: u64| self.results.get(id).map(|row| row.created).unwrap_or_default();
        let shown = self.results.shown(call).filter(|(_, data)| data.run == run);
        Ok(shown.map(|(id, data)| result(id, created(id), data)).collect())
    }

    fn get(&self, call: &Call<'_>, path: &[&str]) -> Reply {
        match path {
            ["testrun", "search"] => self.search(call, true),
            ["testcase", "search"] => self.search(call, false),
            ["testrun", key] => {
                let run = self.run(key)?;
                Ok(Answer::json(200, &json!({ "key": run.key, "name": run.name, "folder": run.folder })))
            }
            ["testrun", key, "testresults", "page"] if self.paged => {
                let all = self.listed(call, key)?;
                let start = call.request.number("startAt").unwrap_or(0);
                let limit = call.request.number("maxResults").unwrap_or(200);
                let shown = page(call, &all);
                let last = start + limit >= all.len() as u64;
                let envelope = json!({ "startAt": start, "maxResults": limit, "total": all.len(), "isLast": last,
                    "values": shown });
                Ok(Answer::json(200, &envelope))
            }
            ["testrun", key, "testresults"] => Ok(Answer::json(200, &json!(self.listed(call, key)?))),
            ["testresult", id, "attachments"] => Ok(self.list_files(id)),
            ["testcase", case, "testresult", "latest"] => {
                let newest = self.results.iter().rfind(|row| row.data.case == *case);
                newest
                    .map(|row| Answer::json(200, &result(row.id, row.created, &row.data)))
                    .ok_or_else(|| problem(404, "No test result."))
            }
            _ => Err(problem(404, "Not found.")),
        }
    }
}

fn page<'a>(call: &Call<'_>, all: &'a [Value]) -> &'a [Value] {
    let start = call.request.number("startAt").unwrap_or(0);
    call.page(all, start as usize, call.request.number("maxResults").unwrap_or(200) as usize)
}

fn result(id: u64, created: Stamp, data: &Outcome) -> Value {
    let mut shown = data.fields.clone();
    let at = jiff::Timestamp::from_millisecond(created.unix_ms).unwrap_or_default();
    let own = json!({ "id": id, "testCaseKey": data.case, "status": data.status, "comment": data.comment,
        "executionDate": format!("{at:.3}"), "automated": false });
    shown.extend(own.as_object().cloned().unwrap_or_default());
    Value::Object(shown)
}

fn problem(status: u16, text: &str) -> Answer {
    Answer::json(status, &json!({ "errorMessages": [text] }))
}

impl Vendor for ZephyrServer {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        let (method, path) = call.request.route();
        let known = call.request.bearer() == Some(&self.token)
            || call.request.basic().is_some_and(|(_, password)| password == self.token);
        if !known {
            // Jira shows its login page, whatever was asked for.
            return Answer::html(401, "<html><body>Unauthorized (401)</body></html>").into();
        }
        let ["rest", "atm", "1.0", path @ ..] = path.as_slice() else { return problem(404, "Not found.").into() };
        let body = call.request.json();
        let reply = match (method, path) {
            ("GET", path) => self.get(call, path),
            ("POST", ["testrun"]) => self.add_run(call),
            ("DELETE", ["testrun", key]) => self.delete_run(key),
            ("POST", ["testrun", run, "testresults"]) => self.add_results(call, run),
            ("POST", ["testrun", run, "testcase", case, "testresult"]) => {
                self.add_result(call, run, Some(case), &body).map(|id| Answer::json(201, &json!({ "id": id })))
            }
            ("PUT", ["testrun", run, "testcase", case, "testresult"]) => self.amend(call, run, case),
            ("POST", ["testresult", id, "attachments"]) => self.add_file(call, id),
            ("POST", ["testcase"]) => {
                let key = self.add_case(body.get("name").and_then(Value::as_str).unwrap_or_default());
                Ok(Answer::json(201, &json!({ "key": key })))
            }
            _ => Err(problem(405, "Method not allowed.")),
        };
        reply.unwrap_or_else(|refused| refused).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let path = request.route().1;
        let what = match path.as_slice() {
            [.., "search"] => "search",
            [.., "testresults" | "testresult"] | [.., "testresults", "page"] => "testresults",
            [.., "attachments"] => "attachments",
            [.., "testcase"] => "testcase",
            _ => "testrun",
        };
        if request.method == "GET" { Kind::Read(what.to_owned()) } else { Kind::Write(what.to_owned()) }
    }

    fn ledger(&self) -> Ledger {
        let row = |row: &Row<Outcome>| RecordedRow {
            id: row.id.to_string(),
            cycle: row.data.run.clone(),
            marker: row.data.comment.clone(),
            status: row.data.status.clone(),
            order: row.created.order,
            created_ms: row.created.unix_ms,
            side: files::side(&row.data),
        };
        self.results.iter().map(|one| (one.data.case.clone(), row(one))).collect()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        problem(status, text)
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("", count)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::DeleteCycle(key) => self.delete_run(key).is_ok(),
            Admin::RenameStatus { from, to } => match self.statuses.iter_mut().find(|status| *status == from) {
                Some(status) => {
                    to.clone_into(status);
                    true
                }
                None => false,
            },
            Admin::DeleteStatus(name) => {
                let before = self.statuses.len();
                self.statuses.retain(|status| status != name);
                self.statuses.len() < before
            }
            Admin::RemoveItem { cycle, item } => {
                let run = self.runs.iter_mut().find(|run| run.key == *cycle);
                run.is_some_and(|run| run.cases.remove(item))
            }
            Admin::CloseCycle(_) => false,
        }
    }
}
