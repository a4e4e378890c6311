//! Xray Cloud: a token for a client's id and secret, imports, and GraphQL, whose errors come within a success.
//! Stub only: from the vendor's pages, checked by no client of the vendor's. Must not know the kernel.

use serde_json::{Map, Value, json};

use super::graphql::{self, Field, Operation};
use super::{EXECUTION, Issue, Run, Site, TEST};
use crate::stubs::{Admin, Answer, Call, Kind, Ledger, Rate, Request, Turn, Vendor};

/// The most rows of one page, and what a page holds if nobody says (source: the GraphQL reference).
const PAGE_MAX: u64 = 100;

/// One tenant.
#[derive(Debug, Clone)]
pub struct XrayCloud {
    /// What it keeps.
    pub site: Site,
    /// The id and the secret of its one client.
    pub client: (String, String),
    tokens: Vec<String>,
    logins: u32,
}

impl Default for XrayCloud {
    fn default() -> Self {
        let site = Site::new(&["TO DO", "EXECUTING", "PASSED", "FAILED", "ABORTED"]);
        Self { site, client: ("id".to_owned(), "secret".to_owned()), tokens: Vec::new(), logins: 0 }
    }
}

type Reply = Result<Value, String>;

impl XrayCloud {
    /// All tokens that were given out are no good any more: a day has gone by.
    pub fn expire(&mut self) {
        self.tokens.clear();
    }

    fn authenticate(&mut self, body: &Value) -> Answer {
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        if (text("client_id"), text("client_secret")) != (self.client.0.as_str(), self.client.1.as_str()) {
            return self.problem(401, "Invalid client credentials");
        }
        self.logins += 1;
        let token = format!("jwt.{}.sig", self.logins);
        self.tokens.push(token.clone());
        Answer::json(200, &json!(token))
    }

    /// As a whole: one bad element, and nothing is carried out.
    fn import(&mut self, call: &Call<'_>) -> Answer {
        let body = call.request.json();
        let tests: Vec<Value> = body.get("tests").and_then(Value::as_array).cloned().unwrap_or_default();
        if tests.is_empty() {
            return self.problem(400, "Result is not valid Xray Format");
        }
        if let Some(problem) = tests.iter().find_map(|test| self.site.import_problem(test)) {
            return self.problem(400, &problem);
        }
        match self.site.import_execution(call.now, &body) {
            Err(problem) => self.problem(400, &problem),
            Ok(key) => {
                for test in &tests {
                    self.site.import_one(call, &key, test);
                }
                let issue = self.site.issue(&key, EXECUTION);
                Answer::json(200, &issue.map(Site::self_of).unwrap_or_default())
            }
        }
    }

    fn graphql(&mut self, call: &Call<'_>) -> Answer {
        let operation = match operation(call.request) {
            Ok(operation) => operation,
            Err(text) => return Answer::json(200, &json!({ "errors": [{ "message": text }] })),
        };
        let (mut data, mut errors) = (Map::new(), Vec::new());
        for field in &operation.fields {
            let value = self.resolve(call, &operation, field).and_then(|value| graphql::project(&value, &field.select));
            let value = value.unwrap_or_else(|text| {
                errors.push(json!({ "message": text, "path": [field.alias] }));
                Value::Null
            });
            data.insert(field.alias.clone(), value);
        }
        let data = if data.values().all(Value::is_null) { Value::Null } else { Value::Object(data) };
        let answer =
            if errors.is_empty() { json!({ "data": data }) } else { json!({ "errors": errors, "data": data }) };
        Answer::json(200, &answer)
    }

    fn resolve(&mut self, call: &Call<'_>, operation: &Operation, field: &Field) -> Reply {
        let text = |name: &str| field.args.get(name).and_then(Value::as_str).unwrap_or_default();
        match (operation.mutation, field.name.as_str()) {
            (false, "getTestExecutions") => self.issues(call, field, EXECUTION),
            (false, "getTests") => self.issues(call, field, TEST),
            (false, "getTestRuns") => self.runs(call, field),
            (true, "createTestExecution") => self.create(call, field, EXECUTION, "testExecution"),
            (true, "createTest") => self.create(call, field, TEST, "test"),
            (true, "deleteTestExecution") => {
                let key = self.site.by_id(text("issueId")).filter(|issue| issue.kind == EXECUTION);
                let key = key.map(|issue| issue.key.clone()).ok_or("Test Execution not found")?;
                self.site.delete_issue(&key);
                Ok(json!("Test Execution deleted"))
            }
            (true, "updateTestRunStatus") => {
                let status = text("status").to_owned();
                if !self.site.statuses.contains(&status) {
                    return Err(format!("Status {status} not found"));
                }
                self.change_run(call, text("id"), |run| run.status = status)?;
                Ok(json!("Test Run status updated"))
            }
            (true, "updateTestRun") => {
                let comment = call.kept(text("comment"));
                let times = ["startedOn", "finishedOn"].map(|name| field.args.get(name)?.as_str().map(str::to_owned));
                self.change_run(call, text("id"), |run| {
                    if field.args.get("comment").is_some_and(Value::is_string) {
                        run.comment = comment;
                    }
                    let [started, finished] = times;
                    run.started = started.or(run.started.take());
                    run.finished = finished.or(run.finished.take());
                })?;
                Ok(json!({ "warnings": [] }))
            }
            (true, "resetTestRun") => {
                let open = self.site.open();
                self.change_run(call, text("id"), |run| {
                    let (execution, test) = (run.execution.clone(), run.test.clone());
                    *run = Run { execution, test, status: open, ..Run::default() };
                })?;
                Ok(json!("Test Run reset"))
            }
            (_, name) => Err(format!("Cannot query field {name:?}")),
        }
    }

    fn change_run(&mut self, call: &Call<'_>, id: &str, change: impl FnOnce(&mut Run)) -> Result<(), String> {
        let id = u64::from_str_radix(id, 16).map_err(|_| "Test Run not found")?;
        self.site.runs.change(id, call.now, change).map(drop).ok_or_else(|| "Test Run not found".to_owned())
    }

    fn issues(&self, call: &Call<'_>, field: &Field, kind: &str) -> Reply {
        let jql = field.args.get("jql").and_then(Value::as_str).unwrap_or_default();
        let found = self.site.search(call, jql, Some(kind))?;
        connection(call, field, &found, |issue| issue_json(issue))
    }

    fn runs(&self, call: &Call<'_>, field: &Field) -> Reply {
        let ids = |name: &str| field.args.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let key = |id: &Value| self.site.by_id(id.as_str()?).map(|issue| issue.key.clone());
        let executions: Vec<String> = ids("testExecIssueIds").iter().filter_map(key).collect();
        let tests: Vec<String> = ids("testIssueIds").iter().filter_map(key).collect();
        if executions.len() < ids("testExecIssueIds").len() {
            return Err("Test Execution not found".to_owned());
        }
        let mut found: Vec<(u64, &Run)> = self.site.runs.shown(call).collect();
        found.retain(|(_, run)| executions.is_empty() || executions.contains(&run.execution));
        found.retain(|(_, run)| tests.is_empty() || tests.contains(&run.test));
        connection(call, field, &found, |(id, run)| {
            let changed = self.site.runs.get(*id).map(|row| row.changed).unwrap_or_default();
            let issue = |key: &str, kind| self.site.issue(key, kind).map(issue_json).unwrap_or_default();
            let files: Vec<Value> = run.evidence.iter().map(|name| json!({ "id": name, "filename": name })).collect();
            json!({
                "id": format!("{id:024x}"), "status": { "name": run.status }, "comment": run.comment,
                "startedOn": run.started, "finishedOn": run.finished, "defects": [], "evidence": files,
                "lastModified": time(changed.unix_ms), "test": issue(&run.test, TEST),
                "testExecution": issue(&run.execution, EXECUTION),
            })
        })
    }

    fn create(&mut self, call: &Call<'_>, field: &Field, kind: &str, member: &str) -> Reply {
        let fields = field.args.get("jira").and_then(|jira| jira.get("fields")).cloned().unwrap_or_default();
        let summary = fields.get("summary").and_then(Value::as_str).unwrap_or_default();
        let project = fields.pointer("/project/key").and_then(Value::as_str).unwrap_or_default();
        if summary.is_empty() || summary.chars().count() > 255 || project != self.site.project {
            return Err("Failed to create the issue: summary and project are required".to_owned());
        }
        let labels: Vec<String> = fields
            .get("labels")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if labels.iter().any(|label| label.contains(' ')) {
            return Err("The label can't contain spaces".to_owned());
        }
        let definition = field.args.get("unstructured").and_then(Value::as_str).unwrap_or_default().to_owned();
        let issue = self.site.add_issue(call.now, kind, summary, labels);
        issue.definition = definition;
        let (shown, key) = (issue_json(issue), issue.key.clone());
        let tests = field.args.get("testIssueIds").and_then(Value::as_array).into_iter().flatten();
        for id in tests.filter_map(Value::as_str) {
            if let Some(test) = self.site.by_id(id).map(|test| test.key.clone()) {
                self.site.add_run(call.now, &key, &test);
            }
        }
        Ok(json!({ member: shown, "warnings": [] }))
    }
}

fn operation(request: &Request) -> Result<Operation, String> {
    let body = request.json();
    let query = body.get("query").and_then(Value::as_str).ok_or("Must provide query string.")?;
    graphql::parse(query, body.get("variables").unwrap_or(&Value::Null))
}

fn issue_json(issue: &Issue) -> Value {
    json!({ "issueId": issue.id.to_string(), "unstructured": issue.definition,
        "jira": { "key": issue.key, "summary": issue.summary, "labels": issue.labels } })
}

fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|time| format!("{time:.3}")).unwrap_or_default()
}

fn connection<T>(call: &Call<'_>, field: &Field, rows: &[T], show: impl Fn(&T) -> Value) -> Reply {
    let number = |name: &str| field.args.get(name).and_then(Value::as_u64);
    let (limit, start) = (number("limit").ok_or("limit is required")?, number("start").unwrap_or(0));
    if limit > PAGE_MAX {
        return Err(format!("The limit must be at most {PAGE_MAX}"));
    }
    let page: Vec<Value> = call.page(rows, start as usize, limit as usize).iter().map(show).collect();
    Ok(json!({ "total": rows.len(), "start": start, "limit": limit, "results": page }))
}

impl Vendor for XrayCloud {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        let (method, path) = call.request.route();
        if (method, path.as_slice()) == ("POST", &["api", "v2", "authenticate"]) {
            return self.authenticate(&call.request.json()).into();
        }
        let known = call.request.bearer().is_some_and(|token| self.tokens.iter().any(|known| known == token));
        if !known {
            return self.problem(401, "Authentication failed. Invalid client credentials or token expired.").into();
        }
        match (method, path.as_slice()) {
            ("POST", ["api", "v2", "graphql"]) => self.graphql(call).into(),
            ("POST", ["api", "v2", "import", "execution"]) => self.import(call).into(),
            _ => self.problem(404, "Not Found").into(),
        }
    }

    fn classify(&self, request: &Request) -> Kind {
        let path = request.route().1;
        match path.as_slice() {
            [.., "authenticate"] => Kind::Auth,
            [.., "graphql"] => match operation(request) {
                Ok(Operation { mutation, fields }) => {
                    let what = fields.first().map(|field| field.name.clone()).unwrap_or_default();
                    if mutation { Kind::Write(what) } else { Kind::Read(what) }
                }
                Err(_) => Kind::Read("graphql".to_owned()),
            },
            _ => Kind::Write("import".to_owned()),
        }
    }

    fn ledger(&self) -> Ledger {
        self.site.ledger()
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("/tests", count)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        self.site.admin(act)
    }

    fn rate(&self) -> Option<Rate> {
        Some(Rate { requests: 300, per_ms: 300_000, tells: true })
    }
}
