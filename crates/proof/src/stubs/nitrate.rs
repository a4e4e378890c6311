//! Nitrate 4.13: XML-RPC behind a session, one row for a case in a run, verdicts and notes that are replaced. From
//! measurements of a real one; it, too, answers every fault with status 500 and no word of XML. What it sends as base64
//! (names of related rows) is left out. Must not know the kernel.

mod calls;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stubs::xml_rpc::{self, Called};
use crate::stubs::{Admin, Answer, Call, Kind, Ledger, RecordedRow, Repeat, Request, Rows, Rule, Turn, Vendor};

const PRODUCT: &str = "Shop";
const PLAN: &str = "Automated";
const IDLE: u64 = 1;
/// By number, from 1. The first three are no verdicts.
const STATUSES: [&str; 8] = ["IDLE", "RUNNING", "PAUSED", "PASSED", "FAILED", "BLOCKED", "ERROR", "WAIVED"];

/// What differs from one installation to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Name and password of the one user.
    pub login: (String, String),
    /// A Python that can write faults: they come as XML then, with a number of HTTP's.
    pub writes_faults: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { login: ("bot@example.com".to_owned(), "key".to_owned()), writes_faults: false }
    }
}

/// The verdict of a case run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whose.
    pub case_run: u64,
    /// The number of the status.
    pub status: u64,
    /// The notes beside it.
    pub notes: String,
    closed_ms: i64,
}

#[derive(Debug, Clone)]
struct Run {
    summary: String,
    notes: String,
    tags: Vec<String>,
    stopped: bool,
}

/// A place for a verdict: unique for a case in a run.
#[derive(Debug, Clone)]
struct CaseRun {
    id: u64,
    run: u64,
    case: u64,
}

#[derive(Debug, Clone)]
struct Comment {
    case_run: u64,
    text: String,
    day: i64,
}

/// Number and words of a fault.
type Refusal = (i64, String);
type Reply = Result<Value, Refusal>;

/// One installation with product `Shop`, version `1.0` and plan `Automated`.
#[derive(Debug, Clone)]
pub struct Nitrate {
    /// May be changed at any time.
    pub options: Options,
    /// All verdicts; their rule is to replace.
    pub verdicts: Rows<Verdict>,
    builds: Vec<(u64, String)>,
    cases: BTreeMap<u64, String>,
    runs: BTreeMap<u64, Run>,
    case_runs: Vec<CaseRun>,
    comments: Vec<Comment>,
    logs: Vec<(u64, String)>,
    sessions: Vec<String>,
    next_id: u64,
}

impl Nitrate {
    /// An installation without cases and runs.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            verdicts: Rows::new(Rule::honest(Repeat::Replace), 1),
            builds: Vec::new(),
            cases: BTreeMap::new(),
            runs: BTreeMap::new(),
            case_runs: Vec::new(),
            comments: Vec::new(),
            logs: Vec::new(),
            sessions: Vec::new(),
            next_id: 11,
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// One more case; its number.
    pub fn add_case(&mut self, summary: &str) -> u64 {
        let id = self.id();
        self.cases.insert(id, summary.to_owned());
        id
    }

    /// A run by hand, with these cases in it.
    pub fn add_run(&mut self, summary: &str, cases: &[u64]) -> u64 {
        let id = self.id();
        let run = Run { summary: summary.to_owned(), notes: String::new(), tags: Vec::new(), stopped: false };
        self.runs.insert(id, run);
        for case in cases {
            self.place(id, *case);
        }
        id
    }

    fn place(&mut self, run: u64, case: u64) -> u64 {
        let id = self.id();
        self.case_runs.push(CaseRun { id, run, case });
        id
    }

    /// The comments of a case run, oldest first.
    pub fn comments(&self, case_run: u64) -> Vec<&str> {
        let of = |comment: &&Comment| comment.case_run == case_run;
        self.comments.iter().filter(of).map(|comment| comment.text.as_str()).collect()
    }

    fn answer(&mut self, call: &Call<'_>) -> Answer {
        let Some(Called { method, params }) = called(call.request) else {
            return Answer::html(404, "<h1>Not Found</h1>");
        };
        match self.reply(call, &method, &params) {
            Ok(value) => {
                let answer = xml_rpc::answer(&value);
                match value.as_str().filter(|text| self.sessions.iter().any(|session| session == text)) {
                    Some(session) => answer.header("Set-Cookie", &format!("sessionid={session}; HttpOnly; Path=/")),
                    None => answer,
                }
            }
            Err((code, text)) if self.options.writes_faults => xml_rpc::fault(200, code, &text),
            Err(_) => page(500),
        }
    }

    fn reply(&mut self, call: &Call<'_>, method: &str, params: &[Value]) -> Reply {
        if method == "Auth.login" {
            let who = params.first().unwrap_or(&Value::Null);
            if who["username"] != json!(self.options.login.0) || who["password"] != json!(self.options.login.1) {
                return Err((403, "Wrong username or password".to_owned()));
            }
            let session = format!("session{}", self.id());
            self.sessions.push(session.clone());
            return Ok(json!(session));
        }
        let mut cookies = call.request.header("cookie").unwrap_or_default().split(';');
        let session = cookies.find_map(|cookie| cookie.trim().strip_prefix("sessionid="));
        if !session.is_some_and(|session| self.sessions.iter().any(|known| known == session)) {
            return Err((403, "Permission denied".to_owned()));
        }
        match method.split_once('.') {
            Some(("TestRun", name)) => self.run_call(call, name, params),
            Some(("TestCaseRun", name)) => self.case_run_call(call, name, params),
            Some((table, name)) => self.plan_call(call, table, name, params),
            None => Err((500, format!("method \"{method}\" is not supported"))),
        }
    }
}

impl Vendor for Nitrate {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        self.answer(call).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let method = called(request).map(|called| called.method).unwrap_or_default();
        let writes = ["create", "update", "add_", "remove_", "attach_"];
        let name = method.split_once('.').map_or("", |(_, name)| name);
        if method == "Auth.login" {
            Kind::Auth
        } else if writes.iter().any(|write| name.starts_with(write)) {
            Kind::Write(method)
        } else {
            Kind::Read(method)
        }
    }

    fn ledger(&self) -> Ledger {
        let rows = self.verdicts.iter().filter(|row| row.data.status > 3).filter_map(|row| {
            let place = self.case_runs.iter().find(|place| place.id == row.data.case_run)?;
            let comments = self.comments.iter().filter(|comment| comment.case_run == place.id);
            let logs = self.logs.iter().filter(|(case_run, _)| *case_run == place.id);
            let side = comments.map(|comment| format!("comment {}", comment.text));
            let recorded = RecordedRow {
                id: place.id.to_string(),
                cycle: place.run.to_string(),
                marker: row.data.notes.clone(),
                status: row.data.status.to_string(),
                order: row.created.order,
                created_ms: row.created.unix_ms,
                side: side.chain(logs.map(|(_, url)| format!("log {url}"))).collect(),
            };
            Some((self.cases.get(&place.case)?.clone(), recorded))
        });
        rows.collect()
    }

    fn problem(&self, status: u16, _text: &str) -> Answer {
        page(status)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(run) => {
                let run = run.parse().ok().and_then(|run: u64| self.runs.get_mut(&run));
                run.map(|run| run.stopped = true).is_some()
            }
            Admin::DeleteCycle(run) => {
                let Ok(run) = run.parse::<u64>() else { return false };
                self.forget(|place| place.run == run);
                self.runs.remove(&run).is_some()
            }
            _ => false,
        }
    }
}

fn called(request: &Request) -> Option<Called> {
    match request.route() {
        ("POST", path) if path == ["xmlrpc"] => xml_rpc::called(&request.body),
        _ => None,
    }
}

/// What the web server in front makes of what it can't send.
fn page(status: u16) -> Answer {
    Answer::html(status, "<!doctype html><title>Server Error</title><h1>Server Error</h1>")
}
