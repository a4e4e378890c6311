//! Xray for Jira Server and Data Center: Jira's own calls for issues, Xray's for imports and runs.
//! Stub only: from the vendor's pages, checked by no client of the vendor's. Must not know the kernel.

use serde_json::{Value, json};

use super::{EXECUTION, Issue, Run, Site, TEST};
use crate::stubs::{Admin, Answer, Call, Kind, Ledger, Request, Row, Turn, Vendor};

/// One Jira with Xray.
#[derive(Debug, Clone)]
pub struct XrayServer {
    /// What it keeps.
    pub site: Site,
    /// The personal token that is known.
    pub token: String,
    /// How many runs a page holds at most, as an administrator has set it.
    pub page_max: u64,
    /// Whether the detailed listing leaves out keys and comments, as older versions show it.
    pub terse: bool,
    /// Whether an import carries out the good elements and names the bad ones, or refuses all.
    pub partial: bool,
}

impl Default for XrayServer {
    fn default() -> Self {
        let site = Site::new(&["TODO", "EXECUTING", "PASS", "FAIL", "ABORTED"]);
        Self { site, token: "token".to_owned(), page_max: 200, terse: false, partial: true }
    }
}

impl XrayServer {
    fn jira(&mut self, call: &Call<'_>, method: &str, path: &[&str]) -> Answer {
        match (method, path) {
            ("POST", ["issue"]) => self.create(call),
            ("GET", ["search"]) => self.search(call),
            ("GET", ["issue", key]) => match self.site.issues.iter().find(|issue| issue.key == *key) {
                Some(issue) => Answer::json(200, &full(issue)),
                None => self.problem(404, "Issue Does Not Exist"),
            },
            ("DELETE", ["issue", key]) if self.site.delete_issue(key) => Answer::empty(204),
            ("DELETE", ["issue", _]) => self.problem(404, "Issue Does Not Exist"),
            _ => Answer::html(404, "<html><body>dead link</body></html>"),
        }
    }

    fn create(&mut self, call: &Call<'_>) -> Answer {
        let body = call.request.json();
        let text = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (summary, kind) = (text("/fields/summary"), text("/fields/issuetype/name"));
        let wrong =
            |field: &str, text: &str| Answer::json(400, &json!({ "errorMessages": [], "errors": { field: text } }));
        if text("/fields/project/key") != self.site.project {
            return wrong("project", "project is required");
        }
        if kind != TEST && kind != EXECUTION {
            return wrong("issuetype", "issue type is required");
        }
        if summary.is_empty() || summary.chars().count() > 255 {
            return wrong("summary", "Summary must be given, and less than 256 characters.");
        }
        let labels: Vec<String> = body
            .pointer("/fields/labels")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if labels.iter().any(|label| label.contains(' ')) {
            return wrong("labels", "The label can't contain spaces.");
        }
        Answer::json(201, &Site::self_of(self.site.add_issue(call.now, &kind, &summary, labels)))
    }

    fn search(&self, call: &Call<'_>) -> Answer {
        let found = match self.site.search(call, call.request.query("jql").unwrap_or_default(), None) {
            Ok(found) => found,
            Err(text) => return self.problem(400, &text),
        };
        let start = call.request.number("startAt").unwrap_or(0);
        let limit = call.request.number("maxResults").unwrap_or(50).min(1000);
        let page: Vec<Value> =
            call.page(&found, start as usize, limit as usize).iter().map(|issue| full(issue)).collect();
        Answer::json(200, &json!({ "startAt": start, "maxResults": limit, "total": found.len(), "issues": page }))
    }

    fn import(&mut self, call: &Call<'_>) -> Answer {
        let body = call.request.json();
        let tests: Vec<Value> = body.get("tests").and_then(Value::as_array).cloned().unwrap_or_default();
        let problems: Vec<Option<String>> = tests.iter().map(|test| self.site.import_problem(test)).collect();
        let first = problems.iter().flatten().next().cloned();
        let all_bad = problems.iter().all(Option::is_some);
        if let Some(problem) = first.filter(|_| !self.partial || all_bad) {
            return xray_problem(400, &problem);
        }
        let key = match self.site.import_execution(call.now, &body) {
            Ok(key) => key,
            Err(problem) => return xray_problem(400, &problem),
        };
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for (test, problem) in tests.iter().zip(problems) {
            let test_key = test.get("testKey").and_then(Value::as_str).unwrap_or_default();
            if let Some(problem) = problem {
                bad.push(json!({ "testKey": test_key, "messages": [problem] }));
            } else {
                self.site.import_one(call, &key, test);
                good.extend(self.site.issue(test_key, TEST).map(Site::self_of));
            }
        }
        let execution = self.site.issue(&key, EXECUTION).map(Site::self_of);
        let tests = json!({ "success": good, "error": bad });
        Answer::json(200, &json!({ "testExecIssue": execution, "testIssues": tests, "infoMessages": [] }))
    }

    fn tests_of(&self, call: &Call<'_>, key: &str) -> Answer {
        if self.site.issue(key, EXECUTION).is_none() {
            return xray_problem(404, &format!("Test Execution {key} not found"));
        }
        let limit = call.request.number("limit").unwrap_or(self.page_max);
        if limit > self.page_max {
            return xray_problem(400, &format!("The limit must be at most {}", self.page_max));
        }
        let detailed = call.request.query("detailed") == Some("true");
        let page = call.request.number("page").unwrap_or(1).max(1);
        let rows: Vec<&Row<Run>> = self.site.runs.iter().filter(|row| row.data.execution == key).collect();
        let shown = call.page(&rows, ((page - 1) * limit) as usize, limit as usize);
        let show = |row: &&Row<Run>| match (detailed, self.terse) {
            (false, _) => json!({ "id": row.id, "key": row.data.test, "rank": row.id, "status": row.data.status }),
            (true, true) => json!({ "id": row.id, "status": row.data.status, "finishedOn": "Friday 10:13 AM" }),
            (true, false) => {
                let mut shown = run(row);
                shown["key"] = json!(row.data.test);
                shown
            }
        };
        Answer::json(200, &shown.iter().map(show).collect())
    }

    fn change(&mut self, call: &Call<'_>, id: &str) -> Answer {
        let body = call.request.json();
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        if let Some(status) = text("status").filter(|status| !self.site.statuses.iter().any(|known| known == status)) {
            return xray_problem(400, &format!("The status {status} does not exist"));
        }
        let changed = id.parse().ok().and_then(|id| {
            self.site.runs.change(id, call.now, |run| {
                if let Some(status) = text("status") {
                    status.clone_into(&mut run.status);
                }
                if let Some(comment) = text("comment") {
                    run.comment = call.kept(comment);
                }
            })
        });
        if changed.is_none() {
            return xray_problem(404, "Test Run not found");
        }
        Answer::json(200, &json!([]))
    }

    fn raven(&mut self, call: &Call<'_>, method: &str, path: &[&str]) -> Answer {
        match (method, path) {
            ("POST", ["import", "execution"]) => self.import(call),
            ("GET", ["api", "testexec", key, "test"]) => self.tests_of(call, key),
            ("PUT", ["api", "testrun", id]) => self.change(call, id),
            ("GET", ["api", "testrun", id]) => match id.parse().ok().and_then(|id| self.site.runs.get(id)) {
                Some(row) => Answer::json(200, &run(row)),
                None => xray_problem(404, "Test Run not found"),
            },
            ("GET", ["api", "testrun"]) => {
                let asked = |name: &str| call.request.query(name).unwrap_or_default().to_owned();
                let (execution, test) = (asked("testExecIssueKey"), asked("testIssueKey"));
                match self.site.runs.iter().find(|row| row.data.execution == execution && row.data.test == test) {
                    Some(row) => Answer::json(200, &run(row)),
                    None => xray_problem(404, "Test Run not found"),
                }
            }
            _ => xray_problem(404, "null for uri"),
        }
    }
}

/// Errors of Xray's own calls.
fn xray_problem(status: u16, text: &str) -> Answer {
    Answer::json(status, &json!({ "error": text }))
}

fn full(issue: &Issue) -> Value {
    let mut shown = Site::self_of(issue);
    shown["fields"] = json!({ "summary": issue.summary, "labels": issue.labels, "issuetype": { "name": issue.kind } });
    shown
}

fn run(row: &Row<Run>) -> Value {
    let run = &row.data;
    let files: Vec<Value> = run.evidence.iter().map(|name| json!({ "id": 1, "fileName": name })).collect();
    json!({ "id": row.id, "status": run.status, "testKey": run.test, "testExecKey": run.execution,
        "comment": run.comment, "startedOn": run.started, "finishedOn": run.finished, "defects": [], "evidences": files })
}

impl Vendor for XrayServer {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        let (method, path) = call.request.route();
        let known = call.request.bearer() == Some(&self.token)
            || call.request.basic().is_some_and(|(_, password)| password == self.token);
        if !known {
            // Jira shows its login page, whatever was asked for.
            return Answer::html(401, "<html><body>Unauthorized (401)</body></html>").into();
        }
        match path.as_slice() {
            ["rest", "api", "2", rest @ ..] => self.jira(call, method, rest).into(),
            ["rest", "raven", "1.0" | "2.0" | "latest", rest @ ..] => self.raven(call, method, rest).into(),
            _ => Answer::html(404, "<html><body>dead link</body></html>").into(),
        }
    }

    fn classify(&self, request: &Request) -> Kind {
        let path = request.route().1;
        let what = match path.as_slice() {
            [.., "import", "execution"] => "import",
            [.., "testexec", _, "test"] => "tests",
            [.., "testrun"] | [.., "testrun", _] => "testrun",
            [.., "search"] => "search",
            _ => "issue",
        };
        if request.method == "GET" { Kind::Read(what.to_owned()) } else { Kind::Write(what.to_owned()) }
    }

    fn ledger(&self) -> Ledger {
        self.site.ledger()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        Answer::json(status, &json!({ "errorMessages": [text], "errors": {} }))
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("/tests", count)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        self.site.admin(act)
    }
}
