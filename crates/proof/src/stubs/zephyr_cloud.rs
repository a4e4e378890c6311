//! Zephyr Scale Cloud (API v2): executions are appended, cycles have no unique name, lists give numbers where writes
//! take names. Stub only: from the vendor's pages, checked by no client of the vendor's. Must not know the kernel.

use serde_json::{Map, Value, json};

use crate::stubs::{
    Admin, Answer, Call, Kind, Ledger, RecordedRow, Repeat, Request, Row, Rows, Rule, Stamp, Turn, Vendor,
};

/// What a page holds if nobody says, and the most that it holds (source: the vendor's API description).
const PAGE: u64 = 10;
const PAGE_MAX: u64 = 1000;

/// A case or a cycle.
#[derive(Debug, Clone)]
pub struct Named {
    /// Its number.
    pub id: u64,
    /// Its key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    made: Stamp,
}

/// A test execution: the members that were sent, and what they mean.
#[derive(Debug, Clone, Default)]
pub struct Execution {
    /// The case's number.
    pub case: u64,
    /// The cycle's number.
    pub cycle: u64,
    /// The status's number.
    pub status: u64,
    /// Its comment.
    pub comment: String,
    /// All else that was sent.
    pub fields: Map<String, Value>,
}

/// One project.
#[derive(Debug, Clone)]
pub struct ZephyrCloud {
    /// The project's key.
    pub project: String,
    /// The token that is known.
    pub token: String,
    /// Whether there is the listing by cursor.
    pub cursor: bool,
    /// Whether the first page by cursor holds nothing, and still says where the next one begins.
    pub empty_first_page: bool,
    /// Whether links to cases hold their keys, as they mostly do.
    pub keyed_links: bool,
    /// All executions; their rule is to append.
    pub executions: Rows<Execution>,
    /// All cases.
    pub cases: Vec<Named>,
    /// All cycles.
    pub cycles: Vec<Named>,
    /// Names of statuses by number.
    pub statuses: Vec<(u64, String)>,
}

impl Default for ZephyrCloud {
    fn default() -> Self {
        let statuses = ["Not Executed", "In Progress", "Pass", "Fail", "Blocked"];
        Self {
            project: "SHOP".to_owned(),
            token: "token".to_owned(),
            cursor: true,
            empty_first_page: false,
            keyed_links: true,
            executions: Rows::new(Rule::honest(Repeat::Append), 7001),
            cases: Vec::new(),
            cycles: Vec::new(),
            statuses: (41..).zip(statuses).map(|(id, name)| (id, name.to_owned())).collect(),
        }
    }
}

type Reply = Result<Answer, Answer>;

impl ZephyrCloud {
    /// One more case; its key.
    pub fn add_case(&mut self, name: &str) -> String {
        add(&mut self.cases, &self.project, 'T', Stamp::default(), name, "").key.clone()
    }

    fn get(&self, call: &Call<'_>, path: &[&str]) -> Reply {
        match path {
            ["testcases"] => Ok(list(call, &self.listed(call, &self.cases)?, |case| named(case))),
            ["testcycles"] => Ok(list(call, &self.listed(call, &self.cycles)?, |cycle| named(cycle))),
            ["testcycles", key] => find(&self.cycles, key).map(|cycle| Answer::json(200, &named(cycle))),
            ["testcases", key] => find(&self.cases, key).map(|case| Answer::json(200, &named(case))),
            ["statuses"] if call.request.query("statusType") == Some("TEST_EXECUTION") => {
                let show = |(id, name): &(u64, String)| json!({ "id": id, "name": name, "archived": false });
                Ok(list(call, &self.statuses, show))
            }
            ["testexecutions"] => Ok(list(call, &self.chosen(call)?, |(id, row)| self.execution(*id, row))),
            ["testexecutions", "nextgen"] if self.cursor => self.by_cursor(call),
            ["testexecutions", id] => self.one(id).map(|row| Answer::json(200, &self.execution(row.id, &row.data))),
            _ => Err(problem(404, "The requested resource does not exist")),
        }
    }

    /// What a list of the project shows by now.
    fn listed<'a>(&self, call: &Call<'_>, all: &'a [Named]) -> Result<Vec<&'a Named>, Answer> {
        match call.request.query("projectKey") {
            Some(project) if project != self.project => Err(problem(404, "Project not found")),
            _ => Ok(all.iter().filter(|one| call.sees(one.made)).collect()),
        }
    }

    fn chosen(&self, call: &Call<'_>) -> Result<Vec<(u64, &Execution)>, Answer> {
        let mut rows: Vec<_> = self.executions.shown(call).collect();
        if let Some(key) = call.request.query("testCycle") {
            let cycle = find(&self.cycles, key)?.id;
            rows.retain(|(_, row)| row.cycle == cycle);
        }
        if let Some(key) = call.request.query("testCase") {
            let case = find(&self.cases, key)?.id;
            rows.retain(|(_, row)| row.case == case);
        }
        Ok(rows)
    }

    /// Rows that come meanwhile shift nothing: a page begins at an id.
    fn by_cursor(&self, call: &Call<'_>) -> Reply {
        let limit = call.request.number("limit").unwrap_or(PAGE).min(PAGE_MAX);
        let start = call.request.number("startAtId").unwrap_or(0);
        let rows: Vec<_> = self.chosen(call)?.into_iter().filter(|(id, _)| *id >= start).collect();
        let limit = if self.empty_first_page && start == 0 { 0 } else { limit };
        let page: Vec<Value> = rows.iter().take(limit as usize).map(|(id, row)| self.execution(*id, row)).collect();
        let next = rows.get(limit as usize).map(|(id, _)| *id);
        Ok(Answer::json(200, &json!({ "values": page, "limit": limit, "nextStartAtId": next, "next": null })))
    }

    fn one(&self, id: &str) -> Result<&Row<Execution>, Answer> {
        let id = id.rsplit_once("-E").map_or(id, |(_, number)| number);
        id.parse().ok().and_then(|id| self.executions.get(id)).ok_or_else(|| problem(404, "Test execution not found"))
    }

    fn execution(&self, id: u64, data: &Execution) -> Value {
        let key = self.cases.iter().find(|case| case.id == data.case).map_or("", |case| case.key.as_str());
        let case = if self.keyed_links { key.to_owned() } else { data.case.to_string() };
        let link = |what: &str, id: u64| json!({ "id": id, "self": format!("https://api.example/v2/{what}/{id}") });
        let mut shown = data.fields.clone();
        let own = json!({
            "id": id, "key": format!("{}-E{id}", self.project), "comment": data.comment,
            "testCase": { "id": data.case, "self": format!("https://api.example/v2/testcases/{case}/versions/1") },
            "testCycle": link("testcycles", data.cycle), "testExecutionStatus": link("statuses", data.status),
            "project": link("projects", 1), "automated": false, "customFields": {}, "links": {},
        });
        shown.extend(own.as_object().cloned().unwrap_or_default());
        Value::Object(shown)
    }

    fn status(&self, body: &Value) -> Result<Option<u64>, Answer> {
        let Some(name) = body.get("statusName").and_then(Value::as_str) else { return Ok(None) };
        let found = self.statuses.iter().find(|(_, known)| known == name).map(|(id, _)| *id);
        found.map(Some).ok_or_else(|| problem(400, &format!("statusName: the status {name} does not exist")))
    }

    fn add_execution(&mut self, call: &Call<'_>) -> Reply {
        let body = call.request.json();
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("projectKey") != self.project {
            return Err(problem(400, "projectKey: should be a valid project"));
        }
        let case = find(&self.cases, text("testCaseKey"))?.id;
        let cycle = find(&self.cycles, text("testCycleKey"))?.id;
        let status = self.status(&body)?.ok_or_else(|| problem(400, "statusName: must not be null"))?;
        let mut execution = Execution { case, cycle, status, ..Execution::default() };
        patch(&mut execution, call, &body);
        let id = self.executions.write(call.now, execution, |other| other.case == case && other.cycle == cycle).id();
        Ok(Answer::json(201, &json!({ "id": id, "self": format!("https://api.example/v2/testexecutions/{id}") })))
    }

    fn amend(&mut self, call: &Call<'_>, id: &str) -> Reply {
        let body = call.request.json();
        let (id, status) = (self.one(id)?.id, self.status(&body)?);
        self.executions.change(id, call.now, |execution| {
            execution.status = status.unwrap_or(execution.status);
            patch(execution, call, &body);
        });
        Ok(Answer::empty(200))
    }

    fn add_named(&mut self, call: &Call<'_>, letter: char) -> Reply {
        let body = call.request.json();
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("projectKey") != self.project {
            return Err(problem(400, "projectKey: should be a valid project"));
        }
        if text("name").is_empty() || text("name").chars().count() > 255 {
            return Err(problem(400, "name: size must be between 1 and 255"));
        }
        let all = if letter == 'T' { &mut self.cases } else { &mut self.cycles };
        let description = call.kept(text("description"));
        let made = add(all, &self.project, letter, call.now, text("name"), &description);
        let address = format!("https://api.example/v2/{}", made.id);
        Ok(Answer::json(201, &json!({ "id": made.id, "key": made.key, "self": address })))
    }

    /// A report makes a cycle of its own, each time. Cases are found by their keys in the names of the tests.
    fn import(&mut self, call: &Call<'_>) -> Reply {
        let about: Value =
            call.request.part("testCycle").and_then(|p| serde_json::from_slice(&p.body).ok()).unwrap_or_default();
        let file = call.request.part("file").ok_or_else(|| problem(400, "file: must not be null"))?;
        let report = String::from_utf8_lossy(&file.body).into_owned();
        let name = about.get("name").and_then(Value::as_str).unwrap_or("Automated build");
        let cycle = add(&mut self.cycles, &self.project, 'R', call.now, name, "").clone();
        for test in report.split("<testcase ").skip(1) {
            let holds = |case: &&Named| {
                let after = test.find(&case.key).map(|at| &test[at + case.key.len()..]);
                after.is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_digit()))
            };
            if let Some(case) = self.cases.iter().find(holds).map(|case| case.id) {
                let status = if test.contains("<failure") || test.contains("<error") { 44 } else { 43 };
                let execution = Execution { case, cycle: cycle.id, status, ..Execution::default() };
                self.executions.push(call.now, execution);
            }
        }
        let cycle = json!({ "id": cycle.id, "key": cycle.key, "url": "https://api.example" });
        Ok(Answer::json(200, &json!({ "testCycle": cycle })))
    }
}

fn add<'a>(
    all: &'a mut Vec<Named>,
    project: &str,
    letter: char,
    at: Stamp,
    name: &str,
    description: &str,
) -> &'a Named {
    let number = all.last().map_or(1, |last| last.id % 1000 + 1);
    // Numbers are not those of the keys.
    let id = if letter == 'T' { 5000 + number } else { 12_000 + number };
    let (name, description) = (name.to_owned(), description.to_owned());
    all.push(Named { id, key: format!("{project}-{letter}{number}"), name, description, made: at });
    &all[all.len() - 1]
}

fn find<'a>(all: &'a [Named], key: &str) -> Result<&'a Named, Answer> {
    let found = all.iter().find(|one| one.key == key || one.id.to_string() == key);
    found.ok_or_else(|| problem(404, &format!("{key} does not exist")))
}

fn named(one: &Named) -> Value {
    json!({ "id": one.id, "key": one.key, "name": one.name, "description": one.description })
}

/// Members that are absent or null stay as they are.
fn patch(execution: &mut Execution, call: &Call<'_>, body: &Value) {
    if let Some(comment) = body.get("comment").and_then(Value::as_str) {
        execution.comment = call.kept(comment);
    }
    for name in ["actualEndDate", "executionTime", "environmentName", "executedById", "assignedToId"] {
        if let Some(value) = body.get(name).filter(|value| !value.is_null()) {
            execution.fields.insert(name.to_owned(), value.clone());
        }
    }
}

fn list<T>(call: &Call<'_>, rows: &[T], show: impl Fn(&T) -> Value) -> Answer {
    let start = call.request.number("startAt").unwrap_or(0);
    let limit = call.request.number("maxResults").unwrap_or(PAGE).min(PAGE_MAX);
    let page: Vec<Value> = call.page(rows, start as usize, limit as usize).iter().map(show).collect();
    let last = start + limit >= rows.len() as u64;
    let envelope = json!({ "next": null, "startAt": start, "maxResults": limit, "total": rows.len(),
        "isLast": last, "values": page });
    Answer::json(200, &envelope)
}

fn problem(status: u16, text: &str) -> Answer {
    Answer::json(status, &json!({ "errorCode": status, "message": text }))
}

impl Vendor for ZephyrCloud {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        let (method, path) = call.request.route();
        if call.request.bearer() != Some(&self.token) {
            return Answer::json(401, &json!({ "error": "Unauthorized" })).into();
        }
        let ["v2", path @ ..] = path.as_slice() else { return problem(404, "no such resource").into() };
        let reply = match (method, path) {
            ("GET", path) => self.get(call, path),
            ("POST", ["testexecutions"]) => self.add_execution(call),
            ("PUT", ["testexecutions", id]) => self.amend(call, id),
            ("POST", ["testcycles"]) => self.add_named(call, 'R'),
            ("POST", ["testcases"]) => self.add_named(call, 'T'),
            ("POST", ["automations", "executions", "junit"]) => self.import(call),
            _ => Err(problem(405, "Method not allowed")),
        };
        reply.unwrap_or_else(|refused| refused).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let path = request.route().1;
        let what = if path.contains(&"nextgen") { "nextgen" } else { path.get(1).copied().unwrap_or_default() };
        if request.method == "GET" { Kind::Read(what.to_owned()) } else { Kind::Write(what.to_owned()) }
    }

    fn ledger(&self) -> Ledger {
        let key = |all: &[Named], id: u64| all.iter().find(|one| one.id == id).map(|one| one.key.clone());
        let status = |id: u64| self.statuses.iter().find(|(known, _)| *known == id).map(|(_, name)| name.clone());
        let row = |row: &Row<Execution>| RecordedRow {
            id: row.id.to_string(),
            cycle: key(&self.cycles, row.data.cycle).unwrap_or_default(),
            marker: row.data.comment.clone(),
            status: status(row.data.status).unwrap_or_default(),
            order: row.created.order,
            created_ms: row.created.unix_ms,
            side: Vec::new(),
        };
        self.executions.iter().map(|one| (key(&self.cases, one.data.case).unwrap_or_default(), row(one))).collect()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        problem(status, text)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::DeleteCycle(key) => {
                let Ok(cycle) = find(&self.cycles, key).map(|cycle| cycle.id) else { return false };
                self.cycles.retain(|one| one.id != cycle);
                self.executions.retain(|row| row.data.cycle != cycle);
                true
            }
            Admin::RenameStatus { from, to } => match self.statuses.iter_mut().find(|(_, name)| name == from) {
                Some((_, name)) => {
                    to.clone_into(name);
                    true
                }
                None => false,
            },
            Admin::DeleteStatus(name) => {
                let before = self.statuses.len();
                self.statuses.retain(|(_, known)| known != name);
                self.statuses.len() < before
            }
            // A cycle that is done takes executions all the same; an execution can't be taken out by a call.
            Admin::CloseCycle(_) | Admin::RemoveItem { .. } => false,
        }
    }
}
