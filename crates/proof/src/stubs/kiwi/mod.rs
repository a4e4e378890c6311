//! Kiwi TCMS 12.4 and 16: JSON-RPC and XML-RPC behind a session, lists by field look-ups, verdicts that are replaced
//! beside links, comments and history that are appended. From what a running 12.4 answered. Must not know the kernel.

mod data;
mod executions;
mod plans;
mod query;

use serde_json::{Map, Value, json};

use crate::stubs::xml_rpc::{self, Called};
use crate::stubs::{
    Admin, Answer, Call, Kind, Ledger, RecordedRow, Repeat, Request, Rows, Rule, Stamp, Turn, Vendor, file,
};
use data::{Comment, Execution, Link, Verdict};

/// What differs from one installation to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Name and password of the one user.
    pub login: (String, String),
    /// The calls of 16: executions and runs can be removed, and executions take files.
    pub removes: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { login: ("bot@example.com".to_owned(), "key".to_owned()), removes: false }
    }
}

type Object = Map<String, Value>;
/// What a call gives, or number and words of the error.
type Reply = Result<Value, (i64, String)>;

/// One installation with one product (`Shop`, version `1.0`, build `unspecified`) and one plan (`Automated`).
#[derive(Debug, Clone)]
pub struct Kiwi {
    /// May be changed at any time.
    pub options: Options,
    /// Verdicts, one for each execution that has one; their rule is to replace.
    pub verdicts: Rows<Verdict>,
    /// Ends all sessions when it is emptied.
    pub sessions: Vec<String>,
    versions: Vec<Object>,
    builds: Vec<Object>,
    plans: Vec<Object>,
    cases: Vec<Object>,
    runs: Vec<Object>,
    statuses: Vec<Object>,
    executions: Vec<Execution>,
    links: Vec<Link>,
    comments: Vec<Comment>,
    next_id: u64,
}

/// Calls of one request that are carried out one after another, in no common transaction.
struct Batch {
    calls: Vec<(Value, Called)>,
    done: Vec<Value>,
    form: Form,
    entered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    JsonOne,
    JsonBatch,
    Xml,
}

impl Kiwi {
    /// An installation as it comes.
    pub fn new(options: Options) -> Self {
        let mut new = Self {
            options,
            verdicts: Rows::new(Rule::honest(Repeat::Replace), 1),
            sessions: Vec::new(),
            versions: Vec::new(),
            builds: Vec::new(),
            plans: Vec::new(),
            cases: Vec::new(),
            runs: Vec::new(),
            statuses: data::statuses(),
            executions: Vec::new(),
            links: Vec::new(),
            comments: Vec::new(),
            next_id: 1,
        };
        new.add_version("unspecified");
        new.add_version("1.0");
        new.add_plan("Automated");
        new
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Carries on until a call leaves its lock open, or all are done.
    fn go_on(&mut self, call: &Call<'_>, mut batch: Batch) -> Turn<Self> {
        while let Some((id, called)) = batch.calls.get(batch.done.len()) {
            if !batch.entered && self.adds_without_lock(call, called) {
                batch.entered = true;
                return Turn::gap("TestRun.add_case", move |kiwi: &mut Self, call| kiwi.go_on(call, batch));
            }
            let reply = self.reply(call, called, batch.entered);
            batch.entered = false;
            let done = match (batch.form, reply) {
                (Form::Xml, Ok(value)) => return self.with_session(xml_rpc::answer(&value), &value).into(),
                (Form::Xml, Err((code, text))) => return xml_rpc::fault(200, code, &text).into(),
                (_, Ok(value)) => json!({ "id": id, "jsonrpc": "2.0", "result": value }),
                (_, Err((code, message))) => {
                    json!({ "id": id, "jsonrpc": "2.0", "error": { "code": code, "message": message } })
                }
            };
            batch.done.push(done);
        }
        match (batch.form, batch.done.as_slice()) {
            (Form::JsonOne, [one]) => {
                let denied =
                    one["error"]["message"].as_str().is_some_and(|text| text.contains("Authentication failed"));
                let answer = Answer::json(if denied { 403 } else { 200 }, one);
                self.with_session(answer, &one["result"]).into()
            }
            (_, all) => Answer::json(200, &json!(all)).into(),
        }
    }

    /// A login answers with a cookie, too.
    fn with_session(&self, answer: Answer, result: &Value) -> Answer {
        match result.as_str().filter(|text| self.sessions.iter().any(|session| session == text)) {
            Some(session) => answer.header("Set-Cookie", &cookie(session)),
            None => answer,
        }
    }

    fn reply(&mut self, call: &Call<'_>, called: &Called, checked: bool) -> Reply {
        let (method, params) = (called.method.as_str(), called.params.as_slice());
        if method == "Auth.login" {
            let (name, password) = (&self.options.login.0, &self.options.login.1);
            if *params != [json!(name), json!(password)] {
                return Err(internal("Wrong username or password"));
            }
            let session = format!("session{}", self.id());
            self.sessions.push(session.clone());
            return Ok(json!(session));
        }
        if !data::is_known(method, self.options.removes) {
            return Err((-32601, format!("Method not found: \"{method}\"")));
        }
        if !session(call.request).is_some_and(|session| self.sessions.contains(&session)) {
            return Err(internal(&format!("Authentication failed when calling \"{method}\"")));
        }
        match method.split_once('.') {
            Some(("TestExecution", name)) => self.execution_call(call, name, params),
            Some(("TestRun", name)) => self.run_call(call, name, params, checked),
            Some((table, name)) => self.plan_call(call, table, name, params),
            None => Err((-32601, method.to_owned())),
        }
    }
}

impl Vendor for Kiwi {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        match read(call.request) {
            Some((calls, form)) => self.go_on(call, Batch { calls, done: Vec::new(), form, entered: false }),
            None => Answer::html(404, "<h1>Not found</h1>").into(),
        }
    }

    fn classify(&self, request: &Request) -> Kind {
        classify(request)
    }

    fn ledger(&self) -> Ledger {
        let rows = self.verdicts.iter().filter_map(|row| {
            let execution = self.executions.iter().find(|execution| execution.id == row.data.execution)?;
            let case = self.cases.iter().find(|case| case["id"] == json!(execution.case))?;
            let links = || self.links.iter().filter(|link| link.execution == execution.id);
            let comments = self.comments.iter().filter(|comment| comment.execution == execution.id);
            let side = links().map(|link| format!("link {}", link.url));
            let side = side.chain(comments.map(|comment| format!("comment {}", comment.text)));
            let files = execution.files.iter().map(|(name, bytes)| file(name, bytes));
            let history = (0..execution.history).map(|_| "history".to_owned());
            let recorded = RecordedRow {
                id: execution.id.to_string(),
                cycle: execution.run.to_string(),
                marker: links().next_back().map(|link| link.url.clone()).unwrap_or_default(),
                status: row.data.status.to_string(),
                order: row.created.order,
                created_ms: row.created.unix_ms,
                side: side.chain(history).chain(files).collect(),
            };
            Some((case["summary"].as_str()?.to_owned(), recorded))
        });
        rows.collect()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        problem(status, text)
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("", count)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        self.administer(act)
    }

    fn settle(&mut self, _now: Stamp) {}
}

/// What a request is by the calls in it: a write if one of them writes.
pub(super) fn classify(request: &Request) -> Kind {
    let calls = read(request).map(|(calls, _)| calls).unwrap_or_default();
    let names: Vec<&str> = calls.iter().map(|(_, called)| called.method.as_str()).collect();
    let reads = |name: &&str| data::reads(name);
    match names.iter().find(|name| !reads(name)).or(names.first()) {
        Some(&"Auth.login") => Kind::Auth,
        Some(name) if data::reads(name) => Kind::Read((*name).to_owned()),
        Some(name) => Kind::Write((*name).to_owned()),
        None => Kind::Read(String::new()),
    }
}

/// An error as Kiwi words it.
pub(super) fn problem(status: u16, text: &str) -> Answer {
    let (code, message) = internal(text);
    Answer::json(status, &json!({ "id": null, "jsonrpc": "2.0", "error": { "code": code, "message": message } }))
}

/// The calls of a request, each with its id.
fn read(request: &Request) -> Option<(Vec<(Value, Called)>, Form)> {
    match request.route() {
        ("POST", path) if path == ["xml-rpc"] => Some((vec![(json!(0), xml_rpc::called(&request.body)?)], Form::Xml)),
        ("POST", path) if path == ["json-rpc"] => {
            let body = request.json();
            let called = |one: &Value| {
                let params = one["params"].as_array().cloned().unwrap_or_default();
                Some((one["id"].clone(), Called { method: one["method"].as_str()?.to_owned(), params }))
            };
            match &body {
                Value::Array(all) => Some((all.iter().map(called).collect::<Option<_>>()?, Form::JsonBatch)),
                one => Some((vec![called(one)?], Form::JsonOne)),
            }
        }
        _ => None,
    }
}

fn session(request: &Request) -> Option<String> {
    let mut cookies = request.header("cookie")?.split(';');
    cookies.find_map(|cookie| cookie.trim().strip_prefix("sessionid=")).map(str::to_owned)
}

fn cookie(session: &str) -> String {
    format!("sessionid={session}; HttpOnly; Path=/; SameSite=Lax")
}

/// The one number that all errors within have.
fn internal(text: &str) -> (i64, String) {
    (-32603, format!("Internal error: {text}"))
}

fn missing(what: &str) -> (i64, String) {
    internal(&format!("{what} matching query does not exist."))
}

/// A form that was not filled in properly.
fn invalid(field: &str, text: &str) -> (i64, String) {
    internal(&format!("[('{field}', ['{text}'])]"))
}

const NO_CHOICE: &str = "Select a valid choice. That choice is not one of the available choices.";

fn param(params: &[Value], at: usize) -> Result<&Value, (i64, String)> {
    params.get(at).ok_or_else(|| (-32602, "Invalid parameters: missing a required positional argument".to_owned()))
}

fn number(params: &[Value], at: usize) -> Result<u64, (i64, String)> {
    let value = param(params, at)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| internal(&format!("Field 'id' expected a number but got '{value}'.")))
}
