//! A results service as a team writes one for itself: outcomes in runs, appended, listed newest first in pages. What such
//! services do differently is an option. Must not know the kernel.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stubs::{
    Admin, Answer, Call, Kind, Ledger, RecordedRow, Repeat, Request, Rows, Rule, Stamp, Told, Turn, Vendor,
};

/// The statuses that it takes.
const STATUSES: [&str; 4] = ["OK", "KO", "ERR", "SKIP"];

/// What a repeat is a repeat of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Same {
    /// The case in the run.
    Case,
    /// The client's own `uid`.
    Uid,
}

/// One outcome.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    run: String,
    case: String,
    status: String,
    note: String,
    uid: String,
    ms: Option<u64>,
}

/// One run.
#[derive(Debug, Clone)]
struct Run {
    name: String,
    label: String,
    closed: bool,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    /// All outcomes, with the repeat rule.
    pub rows: Rows<Outcome>,
    /// What the rule takes for a repeat.
    pub same: Same,
    /// A run has to be made before it is written to; else its first outcome makes it.
    pub runs_first: bool,
    /// Pages start at this number.
    pub first_page: u64,
    /// A page behind the last one is not there (404) instead of being empty.
    pub pages_end: bool,
    /// A batch is answered with the ids alone.
    pub bare_ids: bool,
    runs: BTreeMap<String, Run>,
}

type Reply = Result<Answer, Answer>;

impl Service {
    /// A service with this rule about this.
    pub fn new(rule: Rule, same: Same) -> Self {
        Self {
            rows: Rows::new(rule, 1),
            same,
            runs_first: false,
            first_page: 1,
            pages_end: false,
            bare_ids: false,
            runs: BTreeMap::new(),
        }
    }

    /// The smallest one: it only appends.
    pub fn appending() -> Self {
        Self::new(Rule::honest(Repeat::Append), Same::Case)
    }

    /// Another writer's outcome.
    pub fn foreign(&mut self, at: Stamp, run: &str, case: &str) {
        let (run, case) = (run.to_owned(), case.to_owned());
        self.rows
            .push(at, Outcome { run, case, status: "OK".to_owned(), note: "by hand".to_owned(), ..Outcome::default() });
    }

    fn reply(&mut self, call: &Call<'_>) -> Reply {
        if call.request.bearer() != Some("key") && call.request.header("x-api-key") != Some("key") {
            return Err(refused(401, "who are you?"));
        }
        let (method, path) = call.request.route();
        match (method, path.as_slice()) {
            ("POST", ["api", "runs"]) => self.add_run(call),
            ("GET", ["api", "runs"]) => {
                let runs: Vec<Value> = self.runs.iter().rev().map(|(id, run)| shown_run(id, run)).collect();
                Ok(self.list(call, "runs", &runs))
            }
            ("GET", ["api", "runs", run]) => {
                self.runs.get(*run).map(|found| Answer::json(200, &shown_run(run, found))).ok_or_else(missing)
            }
            ("DELETE", ["api", "runs", run]) => {
                self.rows.retain(|row| row.data.run != *run);
                self.runs.remove(*run).map(|_| Answer::empty(204)).ok_or_else(missing)
            }
            ("POST", ["api", "runs", run, "results"]) => self.add(call, run, &call.request.json()),
            ("POST", ["api", "runs", run, "bulk"]) => {
                let body = call.request.json();
                let sent = body.get("results").and_then(Value::as_array).cloned().unwrap_or_default();
                let one = |result: &Value| self.add(call, run, result).unwrap_or_else(|refusal| refusal);
                let answers: Vec<Answer> = sent.iter().map(one).collect();
                let bodies: Vec<Value> =
                    answers.iter().map(|one| serde_json::from_slice(&one.body).unwrap_or_default()).collect();
                let bodies = if self.bare_ids { bodies.iter().map(|one| one["id"].clone()).collect() } else { bodies };
                Ok(Answer::json(200, &json!({ "results": bodies })))
            }
            ("GET", ["api", "runs", run, "results"]) => self.results(call, run),
            ("PATCH", ["api", "results", id]) => self.amend(call, id.parse().unwrap_or(0)),
            ("DELETE", ["api", "results", id]) => {
                let id = id.parse().unwrap_or(0);
                let there = self.rows.get(id).is_some();
                self.rows.retain(|row| row.id != id);
                if there { Ok(Answer::empty(204)) } else { Err(missing()) }
            }
            _ => Err(missing()),
        }
    }

    fn add_run(&mut self, call: &Call<'_>) -> Reply {
        let body = call.request.json();
        let (name, label) = (text(&body, "name"), text(&body, "label"));
        let id = format!("{}", self.runs.len() + 1);
        self.runs.insert(id.clone(), Run { name, label: call.kept(&label), closed: false });
        Ok(Answer::json(201, &json!({ "id": id.parse::<u64>().unwrap_or(0) })))
    }

    fn add(&mut self, call: &Call<'_>, run: &str, sent: &Value) -> Reply {
        match self.runs.get(run) {
            Some(found) if found.closed => return Err(refused(400, "this run is closed")),
            None if self.runs_first => return Err(missing()),
            None => {
                self.runs.insert(run.to_owned(), Run { name: run.to_owned(), label: run.to_owned(), closed: false });
            }
            Some(_) => {}
        }
        let uid = call.request.header("idempotency-key").map_or_else(|| text(sent, "uid"), str::to_owned);
        let outcome = Outcome {
            run: run.to_owned(),
            case: text(sent, "case"),
            status: text(sent, "status"),
            note: call.kept(&text(sent, "note")),
            uid,
            ms: sent.get("ms").and_then(Value::as_u64),
        };
        if outcome.case.is_empty() || !STATUSES.contains(&outcome.status.as_str()) {
            return Err(refused(422, &format!("case or status is not known: {sent}")));
        }
        let (same, new) = (self.same, outcome.clone());
        let repeats = move |old: &Outcome| match same {
            Same::Case => (&old.run, &old.case) == (&new.run, &new.case),
            Same::Uid => !new.uid.is_empty() && old.uid == new.uid,
        };
        match self.rows.write(call.now, outcome, repeats) {
            Told::Refused(_) => Err(refused(409, "recorded already")),
            told => Ok(Answer::json(201, &json!({ "id": told.id() }))),
        }
    }

    fn amend(&mut self, call: &Call<'_>, id: u64) -> Reply {
        let body = call.request.json();
        let row = self.rows.get_mut(id).ok_or_else(missing)?;
        row.data.status = text(&body, "status");
        row.data.note = call.kept(&text(&body, "note"));
        row.changed = call.now;
        Ok(Answer::empty(204))
    }

    fn results(&self, call: &Call<'_>, run: &str) -> Reply {
        self.runs.get(run).ok_or_else(missing)?;
        let of_run = self.rows.iter().rev().filter(|row| row.data.run == run && call.sees(row.created));
        let shown = of_run.map(|row| {
            json!({ "id": row.id, "run": run, "case": row.data.case, "status": row.data.status, "note": row.data.note,
                "ms": row.data.ms, "at": row.created.unix_ms })
        });
        Ok(self.list(call, "results", &shown.collect::<Vec<_>>()))
    }

    /// A page, wherever the client says that it begins.
    fn list(&self, call: &Call<'_>, name: &str, rows: &[Value]) -> Answer {
        let limit = call.request.number("limit").unwrap_or(100).clamp(1, 100) as usize;
        let page = call.request.number("page").map(|page| page.saturating_sub(self.first_page) as usize * limit);
        let after = call.request.number("after").map(|after| after as usize);
        let offset = call.request.number("offset").map(|offset| offset as usize);
        let offset = offset.or(page).or(after).unwrap_or(0);
        if self.pages_end && page > Some(0) && offset >= rows.len() {
            return missing();
        }
        let shown = call.page(rows, offset, limit);
        let next = (offset + limit < rows.len()).then_some(offset + limit);
        let path = call.request.target.split('?').next().unwrap_or_default();
        let link = next.map(|next| format!("{path}?offset={next}&limit={limit}"));
        Answer::json(200, &json!({ name: shown, "total": rows.len(), "next": next, "link": link }))
    }
}

impl Vendor for Service {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        self.reply(call).unwrap_or_else(|refusal| refusal).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let (method, path) = request.route();
        let what = path.last().filter(|_| path.len() > 3).or(path.get(1)).copied().unwrap_or_default().to_owned();
        if method == "GET" { Kind::Read(what) } else { Kind::Write(what) }
    }

    fn ledger(&self) -> Ledger {
        let row = |id: u64, at: Stamp, outcome: &Outcome| RecordedRow {
            id: id.to_string(),
            cycle: outcome.run.clone(),
            marker: outcome.note.clone(),
            status: outcome.status.clone(),
            order: at.order,
            created_ms: at.unix_ms,
            side: Vec::new(),
        };
        self.rows.iter().map(|one| (one.data.case.clone(), row(one.id, one.created, &one.data))).collect()
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("/results", count)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(run) => self.runs.get_mut(run).map(|run| run.closed = true).is_some(),
            Admin::DeleteCycle(run) => self.runs.remove(run).is_some(),
            _ => false,
        }
    }
}

fn shown_run(id: &str, run: &Run) -> Value {
    let id = id.parse::<u64>().map_or_else(|_| json!(id), |id| json!(id));
    json!({ "id": id, "name": run.name, "label": run.label, "closed": run.closed })
}

fn text(body: &Value, name: &str) -> String {
    body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn refused(status: u16, text: &str) -> Answer {
    Answer::json(status, &json!({ "error": text }))
}

fn missing() -> Answer {
    refused(404, "there is no such thing")
}
