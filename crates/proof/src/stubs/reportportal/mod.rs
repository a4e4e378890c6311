//! `ReportPortal`: launches and items under UUIDs that must be unique, API v1 at once, API v2 through a queue that drops
//! what it can't carry out. From the server's sources. Must not know the kernel.

mod items;
mod launches;
mod logs;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::stubs::{
    Admin, Answer, Call, Jobs, Kind, Ledger, RecordedRow, Repeat, Request, Row, Rows, Rule, Stamp, Turn, Vendor,
};
use items::Item;
use launches::Launch;
use logs::Line;

const PAGE: usize = 50;
const PAGE_MAX: usize = 300;

/// What a call gives, or the refusal.
type Reply = Result<Value, Answer>;

/// One server with one project.
#[derive(Debug, Clone)]
pub struct ReportPortal {
    /// The project's name.
    pub project: String,
    /// The API key of the one user.
    pub token: String,
    /// All items; a UUID that is there already is refused.
    pub items: Rows<Item>,
    launches: BTreeMap<u64, Launch>,
    logs: Vec<Line>,
    queue: Jobs<Message>,
    /// What the queue could not carry out.
    parked: Vec<String>,
    drawn: u64,
}

/// A message of API v2: what is to be done, and the client's time of it.
#[derive(Debug, Clone)]
struct Message {
    method: String,
    path: Vec<String>,
    body: Value,
}

impl Default for ReportPortal {
    fn default() -> Self {
        Self {
            project: "demo".to_owned(),
            token: "key".to_owned(),
            items: Rows::new(Rule::honest(Repeat::Refuse), 555),
            launches: BTreeMap::new(),
            logs: Vec::new(),
            queue: Jobs::default(),
            parked: Vec::new(),
            drawn: 0,
        }
    }
}

impl ReportPortal {
    /// What the queue of API v2 could not carry out, in words.
    pub fn parked(&self) -> &[String] {
        &self.parked
    }

    /// The status of each launch, oldest first.
    pub fn launch_statuses(&self) -> Vec<&str> {
        self.launches.values().map(|launch| launch.status.as_str()).collect()
    }

    /// The UUID of the request, or one that is drawn.
    fn uuid(&mut self, body: &Value) -> String {
        body["uuid"].as_str().map_or_else(
            || {
                self.drawn += 1;
                format!("00000000-0000-4000-8000-{:012x}", self.drawn)
            },
            str::to_owned,
        )
    }

    fn reply(&mut self, call: &Call<'_>) -> Result<Answer, Answer> {
        if call.request.bearer() != Some(&self.token) {
            return Err(Answer::json(401, &json!({ "error": "unauthorized", "error_description": "no such key" })));
        }
        let (method, path) = call.request.route();
        match path[..] {
            ["api", "v1", project, ref rest @ ..] if project == self.project => {
                if (method, rest) == ("POST", &["log"]) && !call.request.parts.is_empty() {
                    return self.add_lines(call);
                }
                let body = call.request.json();
                let created = method == "POST" && rest != ["item", "bulk"];
                let value = if method == "GET" {
                    self.look(call, rest)?
                } else {
                    self.act(call.now, method, rest, &body, &|text| call.kept(text))?
                };
                Ok(Answer::json(if created { 201 } else { 200 }, &value))
            }
            ["api", "v2", project, ref rest @ ..] if project == self.project => {
                let rest: Vec<String> = rest.iter().map(|part| (*part).to_owned()).collect();
                Ok(self.enqueue(call, method, rest))
            }
            _ => Err(refused(404, 4041, "there is no such project or call")),
        }
    }

    fn look(&self, call: &Call<'_>, rest: &[&str]) -> Reply {
        match rest {
            ["launch", "uuid", uuid] => self.launch(uuid).map(|(id, launch)| launch.json(id)),
            ["item", "uuid", uuid] => {
                let item = self.items.shown(call).find(|(_, item)| item.uuid == *uuid);
                item.map(|(id, item)| item.json(id)).ok_or_else(|| no_item(uuid))
            }
            ["launch"] => Ok(self.list_launches(call)),
            ["item"] => self.list_items(call),
            ["log"] => self.list_lines(call),
            ["settings"] => Ok(json!({})),
            _ => Err(refused(404, 4040, "there is no such call")),
        }
    }

    /// A change, at once.
    fn act(&mut self, now: Stamp, method: &str, rest: &[&str], body: &Value, kept: &dyn Fn(&str) -> String) -> Reply {
        match (method, rest) {
            ("POST", ["launch"]) => self.start_launch(now, body, kept),
            ("PUT", ["launch", uuid, "finish"]) => self.finish_launch(now, uuid, body),
            ("PUT", ["launch", id, "stop"]) => self.stop_launch(now, id),
            ("DELETE", ["launch", id]) => self.delete_launch(id),
            ("POST", ["item"]) => self.start_item(now, None, body, kept),
            ("POST", ["item", parent]) => self.start_item(now, Some(parent), body, kept),
            ("PUT", ["item", id, "update"]) => self.update_item(now, id, body, kept),
            ("PUT", ["item", uuid]) => self.finish_item(now, uuid, body),
            ("DELETE", ["item", id]) => self.delete_item(id),
            ("POST", ["log"]) => Ok(json!({ "responses": [{ "id": "log" }] })),
            _ => Err(refused(404, 4040, "there is no such call")),
        }
    }

    /// API v2: answered before it is done, with the UUID that it will have.
    fn enqueue(&mut self, call: &Call<'_>, method: &str, path: Vec<String>) -> Answer {
        let mut body = call.request.json();
        let starts = method == "POST" && path.first().is_some_and(|first| first != "log");
        if starts {
            let uuid = self.uuid(&body);
            body["uuid"] = json!(uuid);
        }
        let answer = if method == "POST" {
            json!({ "id": body["uuid"], "responses": [] })
        } else {
            json!({ "message": "accepted", "id": path.get(1) })
        };
        self.queue.accept(call, Message { method: method.to_owned(), path, body });
        Answer::json(if method == "POST" { 201 } else { 200 }, &answer)
    }
}

impl Vendor for ReportPortal {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        self.reply(call).unwrap_or_else(|refusal| refusal).into()
    }

    fn classify(&self, request: &Request) -> Kind {
        let (method, path) = request.route();
        let what = match (method, path.get(3..).unwrap_or_default()) {
            ("POST", ["launch"]) => "start_launch",
            ("POST", ["item", ..]) => "start_item",
            ("PUT", ["item", _]) => "finish_item",
            ("PUT", ["launch", _, "finish"]) => "finish_launch",
            (_, [first, ..]) => first,
            _ => "other",
        };
        if method == "GET" { Kind::Read(what.to_owned()) } else { Kind::Write(what.to_owned()) }
    }

    /// Items with a verdict: one that is only started says nothing yet.
    fn ledger(&self) -> Ledger {
        let row = |row: &Row<Item>| RecordedRow {
            id: row.data.uuid.clone(),
            cycle: row.data.launch.to_string(),
            marker: row.data.attributes.to_string(),
            status: row.data.status.clone(),
            order: row.created.order,
            created_ms: row.created.unix_ms,
            side: self.files_of(row),
        };
        let ended = self.items.iter().filter(|row| row.data.status != "IN_PROGRESS");
        ended.map(|found| (found.data.item(), row(found))).collect()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        refused(status, if status == 401 || status == 403 { 4003 } else { 5000 }, text)
    }

    fn settle(&mut self, now: Stamp) {
        for (_, message) in self.queue.due(now) {
            let path: Vec<&str> = message.path.iter().map(String::as_str).collect();
            if self.act(now, &message.method, &path, &message.body, &str::to_owned).is_err() {
                self.parked.push(format!("{} {}", message.method, message.path.join("/")));
            }
        }
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(id) => self.stop_launch(Stamp::default(), id).is_ok(),
            Admin::DeleteCycle(id) => {
                self.stop_launch(Stamp::default(), id).and_then(|_| self.delete_launch(id)).is_ok()
            }
            _ => false,
        }
    }
}

fn refused(status: u16, code: u64, text: &str) -> Answer {
    Answer::json(status, &json!({ "errorCode": code, "message": text }))
}

fn no_item(id: &str) -> Answer {
    refused(404, 4043, &format!("Test Item '{id}' not found. Did you use correct Test Item ID?"))
}

/// A unique key would break: nothing in the server catches that.
fn duplicate(key: &str, uuid: &str) -> Answer {
    let database =
        format!("duplicate key value violates unique constraint \"{key}\" Detail: Key (uuid)=({uuid}) already exists.");
    refused(500, 5000, &format!("Unclassified error [could not execute statement [ERROR: {database}]]"))
}

/// A time as clients send it: text, or milliseconds as a number or text.
fn moment(value: &Value) -> Option<i64> {
    let text = value.as_str();
    value.as_i64().or_else(|| text?.parse().ok()).or_else(|| Some(text?.parse::<Timestamp>().ok()?.as_millisecond()))
}

fn shown(ms: i64) -> String {
    format!("{:.3}", Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX))
}
