//! Testmo's automation runs: threads to which tests are appended, counts, and no list of the tests. From the vendor's
//! own client. Must not know the kernel.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stubs::{
    Admin, Answer, Call, Kind, Ledger, RecordedRow, Repeat, Request, Row, Rows, Rule, Stamp, Turn, Vendor,
};

const PAGE_MAX: usize = 100;
const STRING_CHARS_MAX: usize = 750;
const TEXT_BYTES_MAX: usize = 16 * 1024;
const FIELDS_MAX: usize = 25;
const KEY_CHARS_MAX: usize = 64;
/// The aliases that count as success and as failure; all others count as neither.
const SUCCESSES: [&str; 2] = ["passed", "success"];
const FAILURES: [&str; 4] = ["failed", "failure", "error", "errored"];

/// What a call gives, or the refusal.
type Reply = Result<Answer, Answer>;

/// One test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Its key.
    pub key: String,
    /// The run.
    pub run: u64,
    /// The thread.
    pub thread: u64,
    /// The alias of its status.
    pub status: String,
    /// The values of its fields, one a line.
    pub fields: String,
}

#[derive(Debug, Clone)]
struct Run {
    name: String,
    tags: Vec<String>,
    fields: Value,
    links: Value,
    complete: bool,
    made: Stamp,
}

#[derive(Debug, Clone)]
struct Thread {
    run: u64,
    fields: Value,
    complete: bool,
}

/// One site with one project (1).
#[derive(Debug, Clone)]
pub struct Testmo {
    /// The API key of the one user.
    pub token: String,
    /// Whether a run's threads are shown with their fields.
    pub shows_fields: bool,
    /// All tests; their rule is to append.
    pub tests: Rows<Test>,
    runs: BTreeMap<u64, Run>,
    threads: BTreeMap<u64, Thread>,
}

impl Default for Testmo {
    fn default() -> Self {
        Self {
            token: "key".to_owned(),
            shows_fields: true,
            tests: Rows::new(Rule::honest(Repeat::Append), 1),
            runs: BTreeMap::new(),
            threads: BTreeMap::new(),
        }
    }
}

impl Testmo {
    /// A run of this name with these tags; its number.
    pub fn add_run(&mut self, at: Stamp, name: &str, tags: &[&str]) -> u64 {
        let id = self.runs.len() as u64 + 7;
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let (name, fields, links) = (name.to_owned(), json!([]), json!([]));
        self.runs.insert(id, Run { name, tags, fields, links, complete: false, made: at });
        id
    }

    /// A thread of another client's, without fields, of this number.
    pub fn add_thread(&mut self, run: u64, number: u64) {
        self.threads.insert(number, Thread { run, fields: json!([]), complete: true });
    }

    /// Whether each thread of a run is complete, oldest first.
    pub fn threads(&self, run: u64) -> Vec<bool> {
        self.threads.values().filter(|thread| thread.run == run).map(|thread| thread.complete).collect()
    }

    /// The fields of a run.
    pub fn fields(&self, run: u64) -> Value {
        self.runs.get(&run).map_or(Value::Null, |run| run.fields.clone())
    }

    fn reply(&mut self, call: &Call<'_>) -> Reply {
        if call.request.bearer() != Some(&self.token) {
            return Err(problem(401, "Unauthenticated."));
        }
        let (method, path) = call.request.route();
        let ["api", "v1", rest @ ..] = &path[..] else { return Err(problem(404, "Not found.")) };
        let body = call.request.json();
        match (method, rest) {
            ("POST", ["projects", "1", "automation", "runs"]) => self.create_run(call, &body),
            ("GET", ["projects", "1", "automation", "runs"]) => self.list_runs(call),
            ("GET", ["automation", "runs", id]) => {
                let id = self.run(id, true)?;
                Ok(Answer::json(200, &json!({ "result": self.shown(call, id), "expands": {} })))
            }
            ("POST", ["automation", "runs", "threads", id, "append"]) => self.append(call, id, &body),
            ("POST", ["automation", "runs", "threads", id, "complete"]) => {
                let id = self.thread(id)?;
                if let Some(thread) = self.threads.get_mut(&id) {
                    thread.complete = true;
                }
                Ok(Answer::empty(204))
            }
            ("POST", ["automation", "runs", id, "append"]) => {
                let id = self.run(id, false)?;
                checked_fields(&body["fields"], "fields")?;
                if let Some((fields, more)) =
                    self.runs.get_mut(&id).and_then(|run| run.fields.as_array_mut()).zip(body["fields"].as_array())
                {
                    fields.extend(more.iter().cloned());
                }
                Ok(Answer::empty(204))
            }
            ("POST", ["automation", "runs", id, "threads"]) => {
                let run = self.run(id, false)?;
                checked_fields(&body["fields"], "fields")?;
                let id = self.threads.len() as u64 + 70;
                self.threads.insert(id, Thread { run, fields: body["fields"].clone(), complete: false });
                Ok(Answer::json(201, &json!({ "id": id })))
            }
            ("POST", ["automation", "runs", id, "complete"]) => {
                let id = self.run(id, false)?;
                self.complete(id);
                Ok(Answer::empty(204))
            }
            _ => Err(problem(404, "Not found.")),
        }
    }

    /// The run of this number; one that is complete only to be read.
    fn run(&self, id: &str, to_read: bool) -> Result<u64, Answer> {
        let found = id.parse().ok().and_then(|id| Some((id, self.runs.get(&id)?)));
        let (id, run) = found.ok_or_else(|| problem(404, "Automation run not found."))?;
        if run.complete && !to_read {
            return Err(problem(422, "The automation run is already completed."));
        }
        Ok(id)
    }

    fn thread(&self, id: &str) -> Result<u64, Answer> {
        let found = id.parse().ok().and_then(|id| Some((id, self.threads.get(&id)?)));
        let (id, thread) = found.ok_or_else(|| problem(404, "Automation run thread not found."))?;
        if thread.complete {
            return Err(problem(422, "The thread is already completed."));
        }
        Ok(id)
    }

    fn complete(&mut self, id: u64) -> bool {
        self.runs.get_mut(&id).map(|run| run.complete = true).is_some()
    }

    fn create_run(&mut self, call: &Call<'_>, body: &Value) -> Reply {
        let text = |name: &str| {
            let value = body[name].as_str().filter(|text| !text.is_empty() && text.chars().count() <= STRING_CHARS_MAX);
            value.ok_or_else(|| invalid(name, "is required, up to 750 characters"))
        };
        let (name, _source) = (text("name")?, text("source")?);
        checked_fields(&body["fields"], "fields")?;
        let tags: Vec<&str> = body["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let id = self.add_run(call.now, &call.kept(name), &tags);
        if let Some(run) = self.runs.get_mut(&id) {
            run.fields = json!(body["fields"].as_array().cloned().unwrap_or_default());
            run.links = json!(body["links"].as_array().cloned().unwrap_or_default());
        }
        Ok(Answer::json(201, &json!({ "id": id })))
    }

    fn append(&mut self, call: &Call<'_>, thread: &str, body: &Value) -> Reply {
        let thread = self.thread(thread)?;
        let run = self.threads.get(&thread).map(|thread| thread.run).unwrap_or_default();
        self.run(&run.to_string(), false)?;
        let sent = body["tests"].as_array().cloned().unwrap_or_default();
        let tests = sent.iter().enumerate().map(|(at, one)| test(call, (run, thread), at, one));
        for test in tests.collect::<Result<Vec<Test>, Answer>>()? {
            self.tests.write(call.now, test.clone(), |other| other.run == run && other.key == test.key);
        }
        Ok(Answer::empty(204))
    }

    fn list_runs(&self, call: &Call<'_>) -> Reply {
        let number = |name, usual| call.request.number(name).map_or(usual, |number| number as usize);
        let (number, size) = (number("page", 1), number("per_page", PAGE_MAX));
        if number == 0 || size == 0 || size > PAGE_MAX {
            return Err(invalid("per_page", "is 1 to 100"));
        }
        let tags: Vec<&str> = call.request.query("tags").into_iter().flat_map(|tags| tags.split(',')).collect();
        let tagged = |run: &Run| tags.is_empty() || tags.iter().any(|tag| run.tags.iter().any(|other| other == tag));
        let seen = self.runs.iter().filter(|(_, run)| call.sees(run.made) && tagged(run));
        let all: Vec<u64> = seen.map(|(id, _)| *id).rev().collect();
        let result: Vec<Value> =
            call.page(&all, (number - 1) * size, size).iter().map(|id| self.shown(call, *id)).collect();
        let last = all.len().div_ceil(size).max(1);
        Ok(Answer::json(
            200,
            &json!({
                "page": number, "prev_page": (number > 1).then(|| number - 1),
                "next_page": (number < last).then(|| number + 1), "last_page": last, "per_page": size,
                "total": all.len(), "result": result, "expands": {},
            }),
        ))
    }

    fn shown(&self, call: &Call<'_>, id: u64) -> Value {
        let Some(run) = self.runs.get(&id) else { return Value::Null };
        let threads = self.threads.iter().filter(|(_, thread)| thread.run == id);
        let threads: Vec<Value> = threads
            .map(|(thread, about)| {
                let mut shown = self.counts(call, |test| test.thread == *thread);
                shown["id"] = json!(thread);
                shown["is_completed"] = json!(about.complete);
                if self.shows_fields {
                    shown["fields"] = json!(about.fields.as_array().cloned().unwrap_or_default());
                }
                shown
            })
            .collect();
        let mut shown = self.counts(call, |test| test.run == id);
        let failed = shown["failure_count"] != json!(0);
        let status = if run.complete { 2 + u8::from(failed) } else { 4 };
        shown["id"] = json!(id);
        shown["name"] = json!(run.name);
        shown["status"] = json!(status);
        shown["is_completed"] = json!(run.complete);
        shown["tags"] = json!(run.tags);
        shown["fields"] = run.fields.clone();
        shown["links"] = run.links.clone();
        shown["thread_count"] = json!(threads.len());
        shown["threads"] = json!(threads);
        shown
    }

    fn counts(&self, call: &Call<'_>, of: impl Fn(&Test) -> bool) -> Value {
        let tests: Vec<&Test> = self.tests.shown(call).map(|(_, test)| test).filter(|test| of(test)).collect();
        let count = |words: &[&str]| tests.iter().filter(|test| words.contains(&test.status.as_str())).count();
        json!({
            "total_count": tests.len(), "completed_count": tests.len(), "untested_count": 0,
            "success_count": count(&SUCCESSES), "failure_count": count(&FAILURES),
        })
    }
}

impl Vendor for Testmo {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        self.reply(call).unwrap_or_else(|refusal| refusal).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let (method, path) = request.route();
        let what = match path[..] {
            [.., "threads", _, "append"] => "append_tests",
            [.., "threads", _, "complete"] => "complete_thread",
            [.., "threads"] => "create_thread",
            [.., "projects", _, "automation", "runs"] => "create_run",
            _ => "run",
        };
        if method == "GET" { Kind::Read(what.to_owned()) } else { Kind::Write(what.to_owned()) }
    }

    fn ledger(&self) -> Ledger {
        let row = |row: &Row<Test>| RecordedRow {
            id: row.id.to_string(),
            cycle: row.data.run.to_string(),
            marker: row.data.fields.clone(),
            status: row.data.status.clone(),
            order: row.created.order,
            created_ms: row.created.unix_ms,
            side: Vec::new(),
        };
        self.tests.iter().map(|found| (found.data.key.clone(), row(found))).collect()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        problem(status, text)
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("/tests", count)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(run) => run.parse().is_ok_and(|run| self.complete(run)),
            _ => false,
        }
    }
}

fn problem(status: u16, text: &str) -> Answer {
    Answer::json(status, &json!({ "message": text }))
}

fn invalid(field: &str, why: &str) -> Answer {
    Answer::json(422, &json!({ "message": "The given data was invalid.", "errors": { field: [why] } }))
}

fn checked_fields(fields: &Value, name: &str) -> Result<(), Answer> {
    let fields = fields.as_array().map_or(&[][..], Vec::as_slice);
    if fields.len() > FIELDS_MAX {
        return Err(invalid(name, "holds more than 25"));
    }
    let fits = |field: &Value| {
        let value = field["value"].as_str().unwrap_or_default();
        let kind = field["type"].as_u64();
        let bound = if matches!(kind, Some(1 | 5)) { STRING_CHARS_MAX } else { TEXT_BYTES_MAX };
        kind.is_some_and(|kind| (1..=5).contains(&kind)) && field["name"].is_string() && value.len() <= bound
    };
    if fields.iter().all(fits) { Ok(()) } else { Err(invalid(name, "holds one that is no field")) }
}

fn test(call: &Call<'_>, (run, thread): (u64, u64), at: usize, sent: &Value) -> Result<Test, Answer> {
    let key = sent["key"].as_str().unwrap_or_default();
    let plain = key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if key.is_empty() || key.len() > KEY_CHARS_MAX || !plain {
        return Err(invalid(&format!("tests.{at}.key"), "is up to 64 of a-z and 0-9"));
    }
    for name in ["name", "status"] {
        let text = sent[name].as_str().unwrap_or_default();
        if text.is_empty() || text.chars().count() > STRING_CHARS_MAX {
            return Err(invalid(&format!("tests.{at}.{name}"), "is required, up to 750 characters"));
        }
    }
    checked_fields(&sent["fields"], &format!("tests.{at}.fields"))?;
    let fields = sent["fields"].as_array().into_iter().flatten().filter_map(|field| field["value"].as_str());
    let fields: Vec<String> = fields.map(|text| call.kept(text)).collect();
    let (key, status) = (key.to_owned(), sent["status"].as_str().unwrap_or_default().to_owned());
    Ok(Test { key, run, thread, status, fields: fields.join("\n") })
}
