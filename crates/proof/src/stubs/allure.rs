//! Allure `TestOps`: results are uploaded into a session of a launch, and processed some time later. From the vendor's own
//! plugin; what that does not show is a guess, and no client has tried it. Must not know the kernel.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::stubs::{
    Admin, Answer, Call, Jobs, Kind, Ledger, Rate, RecordedRow, Repeat, Request, Row, Rows, Rule, Stamp, Turn, Vendor,
};

const PAGE: usize = 10;

/// What a call gives, or the refusal.
type Reply = Result<Answer, Answer>;

/// One test result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The number that the upload was answered with.
    pub id: u64,
    /// The launch.
    pub launch: u64,
    /// What makes results of one test retries of each other.
    pub history: String,
    /// The status.
    pub status: String,
    /// The message.
    pub message: String,
    name: String,
    full_name: Option<String>,
    stop_ms: Option<u64>,
}

#[derive(Debug, Clone)]
struct Launch {
    name: String,
    tags: Vec<String>,
    closed: bool,
    made: Stamp,
}

/// One server with one project (1).
#[derive(Debug, Clone)]
pub struct Allure {
    /// The API token of the one user.
    pub token: String,
    /// All results; their rule is to append.
    pub results: Rows<Outcome>,
    /// What the token was changed for: each is taken until all wear out.
    open: BTreeSet<String>,
    logins: u64,
    launches: BTreeMap<u64, Launch>,
    sessions: BTreeMap<u64, u64>,
    queue: Jobs<Vec<Outcome>>,
    next_result: u64,
}

impl Default for Allure {
    fn default() -> Self {
        Self {
            token: "key".to_owned(),
            results: Rows::new(Rule::honest(Repeat::Append), 1),
            open: BTreeSet::new(),
            logins: 0,
            launches: BTreeMap::new(),
            sessions: BTreeMap::new(),
            queue: Jobs::default(),
            next_result: 500,
        }
    }
}

impl Allure {
    /// All logins wear out.
    pub fn expire(&mut self) {
        self.open.clear();
    }

    /// A launch of this name with these tags; its number.
    pub fn add_launch(&mut self, at: Stamp, name: &str, tags: &[&str]) -> u64 {
        let id = self.launches.keys().last().map_or(90, |last| last + 1);
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self.launches.insert(id, Launch { name: name.to_owned(), tags, closed: false, made: at });
        id
    }

    /// Whether a launch is closed; `None` if there is none.
    pub fn is_closed(&self, launch: u64) -> Option<bool> {
        self.launches.get(&launch).map(|launch| launch.closed)
    }

    fn reply(&mut self, call: &Call<'_>) -> Reply {
        let (method, path) = call.request.route();
        if path == ["api", "uaa", "oauth", "token"] {
            return self.log_in(call);
        }
        if !call.request.bearer().is_some_and(|login| self.open.contains(login)) {
            return Err(problem(401, "unauthorized"));
        }
        let ["api", rest @ ..] = &path[..] else { return Err(problem(404, "not found")) };
        let body = call.request.json();
        match (method, rest) {
            ("POST", ["launch"]) => {
                let name = body["name"].as_str().filter(|name| !name.is_empty() && name.chars().count() <= 255);
                let name = call.kept(name.ok_or_else(|| problem(400, "name: must not be empty, nor longer than 255"))?);
                let tags = body["tags"].as_array().into_iter().flatten().filter_map(|tag| tag["name"].as_str());
                let id = self.add_launch(call.now, &name, &tags.collect::<Vec<_>>());
                Ok(Answer::json(200, &self.shown(id)))
            }
            ("GET", ["launch", "__search"]) => self.search(call),
            ("GET", ["launch", id]) => self.launch(id).map(|id| Answer::json(200, &self.shown(id))),
            ("PATCH", ["launch", id]) => {
                let id = self.launch(id)?;
                if let Some((launch, name)) = self.launches.get_mut(&id).zip(body["name"].as_str()) {
                    launch.name = call.kept(name);
                }
                Ok(Answer::json(200, &self.shown(id)))
            }
            ("POST", ["launch", id, "close"]) => {
                let id = self.launch(id)?;
                self.close(id);
                Ok(Answer::empty(204))
            }
            ("DELETE", ["launch", id]) => {
                let id = self.launch(id)?;
                self.delete(id);
                Ok(Answer::empty(204))
            }
            ("POST", ["upload", "session"]) => {
                let launch = self.launch(&body["launchId"].to_string())?;
                if self.is_closed(launch) == Some(true) {
                    return Err(problem(400, "launch is closed"));
                }
                let id = self.sessions.len() as u64 + 30;
                self.sessions.insert(id, launch);
                Ok(Answer::json(200, &json!({ "id": id })))
            }
            ("POST", ["upload", "test-result"]) => self.upload(call, &body),
            ("GET", ["testresult"]) => self.list_results(call),
            _ => Err(problem(404, "not found")),
        }
    }

    fn log_in(&mut self, call: &Call<'_>) -> Reply {
        let form = call.request.form();
        let part = |name: &str| call.request.part(name).map(|part| String::from_utf8_lossy(&part.body).into_owned());
        let field =
            |name: &str| form.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone()).or_else(|| part(name));
        if field("grant_type").as_deref() != Some("apitoken") || field("token").as_deref() != Some(&self.token) {
            return Err(Answer::json(401, &json!({ "error": "invalid_grant", "error_description": "no such token" })));
        }
        self.logins += 1;
        let login = format!("jwt-{}", self.logins);
        self.open.insert(login.clone());
        Ok(Answer::json(200, &json!({ "access_token": login, "token_type": "bearer", "expires_in": 3600 })))
    }

    fn launch(&self, id: &str) -> Result<u64, Answer> {
        id.parse().ok().filter(|id| self.launches.contains_key(id)).ok_or_else(|| problem(404, "launch not found"))
    }

    fn close(&mut self, id: u64) -> bool {
        self.launches.get_mut(&id).map(|launch| launch.closed = true).is_some()
    }

    fn delete(&mut self, id: u64) -> bool {
        self.results.retain(|row| row.data.launch != id);
        self.launches.remove(&id).is_some()
    }

    fn search(&self, call: &Call<'_>) -> Reply {
        let query = call.request.query("rql").unwrap_or_default();
        let tag = query.strip_prefix("tag = \"").and_then(|rest| rest.strip_suffix('"'));
        let tag = tag.ok_or_else(|| problem(400, "the query is not understood"))?;
        let of = |launch: &Launch| call.sees(launch.made) && launch.tags.iter().any(|other| other == tag);
        let found: Vec<u64> = self.launches.iter().filter(|(_, launch)| of(launch)).map(|(id, _)| *id).rev().collect();
        Ok(page(call, &found, |id| self.shown(*id)))
    }

    fn shown(&self, id: u64) -> Value {
        let Some(launch) = self.launches.get(&id) else { return Value::Null };
        let tags: Vec<Value> = launch.tags.iter().map(|tag| json!({ "id": 1, "name": tag })).collect();
        json!({ "id": id, "name": launch.name, "closed": launch.closed, "projectId": 1, "tags": tags })
    }

    /// All or none are taken; they are processed later.
    fn upload(&mut self, call: &Call<'_>, body: &Value) -> Reply {
        let session = body["testSessionId"].as_u64().and_then(|session| self.sessions.get(&session));
        let launch = *session.ok_or_else(|| problem(404, "session not found"))?;
        self.launch(&launch.to_string())?;
        let sent = body["results"].as_array().cloned().unwrap_or_default();
        if sent.iter().any(|one| one["name"].as_str().is_none_or(str::is_empty) || !one["status"].is_string()) {
            return Err(problem(400, "results: name and status are required"));
        }
        let outcomes: Vec<Outcome> = sent.iter().map(|one| self.outcome(call, launch, one)).collect();
        let told = outcomes.iter().zip(&sent).map(|(outcome, one)| json!({ "id": outcome.id, "uuid": one["uuid"] }));
        let told: Vec<Value> = told.collect();
        self.queue.accept(call, outcomes);
        Ok(Answer::json(200, &json!({ "results": told })))
    }

    fn outcome(&mut self, call: &Call<'_>, launch: u64, one: &Value) -> Outcome {
        let text = |name: &str| one[name].as_str().map(str::to_owned);
        let name = text("name").unwrap_or_default();
        self.next_result += 1;
        Outcome {
            id: self.next_result - 1,
            launch,
            history: text("historyId").or_else(|| text("fullName")).unwrap_or_else(|| name.clone()),
            status: text("status").unwrap_or_default(),
            message: call.kept(&text("message").unwrap_or_default()),
            full_name: text("fullName"),
            stop_ms: one["stop"].as_u64(),
            name,
        }
    }

    fn list_results(&self, call: &Call<'_>) -> Reply {
        let launch = self.launch(call.request.query("launchId").unwrap_or_default())?;
        let found: Vec<&Outcome> =
            self.results.shown(call).map(|(_, outcome)| outcome).filter(|outcome| outcome.launch == launch).collect();
        let shown = |data: &&Outcome| {
            json!({
                "id": data.id, "name": data.name, "fullName": data.full_name, "status": data.status,
                "message": data.message, "launchId": launch, "stop": data.stop_ms,
            })
        };
        Ok(page(call, &found, shown))
    }
}

impl Vendor for Allure {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        self.reply(call).unwrap_or_else(|refusal| refusal).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let (method, path) = request.route();
        let what = match path[..] {
            ["api", "uaa", ..] => return Kind::Auth,
            [.., "session"] => "session",
            [.., "test-result"] => "upload",
            [.., "launch"] if method == "POST" => "create_launch",
            [.., "testresult"] => "results",
            _ => "launch",
        };
        if method == "GET" { Kind::Read(what.to_owned()) } else { Kind::Write(what.to_owned()) }
    }

    fn ledger(&self) -> Ledger {
        let row = |row: &Row<Outcome>| RecordedRow {
            id: row.data.id.to_string(),
            cycle: row.data.launch.to_string(),
            marker: row.data.message.clone(),
            status: row.data.status.clone(),
            order: row.created.order,
            created_ms: row.created.unix_ms,
            side: Vec::new(),
        };
        self.results.iter().map(|found| (found.data.history.clone(), row(found))).collect()
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
                let (launch, history) = (outcome.launch, outcome.history.clone());
                self.results.write(now, outcome, |other| other.launch == launch && other.history == history);
            }
        }
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(launch) => launch.parse().is_ok_and(|launch| self.close(launch)),
            Admin::DeleteCycle(launch) => launch.parse().is_ok_and(|launch| self.delete(launch)),
            _ => false,
        }
    }

    fn rate(&self) -> Option<Rate> {
        Some(Rate { requests: 20, per_ms: 1000, tells: false })
    }
}

fn problem(status: u16, text: &str) -> Answer {
    Answer::json(status, &json!({ "message": text, "status": status }))
}

fn page<T>(call: &Call<'_>, rows: &[T], show: impl Fn(&T) -> Value) -> Answer {
    let number = call.request.number("page").unwrap_or(0) as usize;
    let size = (call.request.number("size").unwrap_or(PAGE as u64) as usize).clamp(1, 1000);
    let content: Vec<Value> = call.page(rows, number * size, size).iter().map(show).collect();
    let (total, pages) = (rows.len(), rows.len().div_ceil(size));
    let last = number + 1 >= pages;
    let shown = json!({
        "content": content, "number": number, "size": size, "totalElements": total, "totalPages": pages, "last": last,
    });
    Answer::json(200, &shown)
}
