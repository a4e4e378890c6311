//! Results of runs: born with points, appended, changed by their numbers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Azure, Reply, list, problem, reference};
use crate::stubs::{Answer, Call};

const PAGE_MAX: usize = 1000;
const BULK_MAX: usize = 1000;
const COMMENT_CHARS_MAX: usize = 1000;
const OUTCOMES: [&str; 15] = [
    "Unspecified",
    "None",
    "Passed",
    "Failed",
    "Inconclusive",
    "Timeout",
    "Aborted",
    "Blocked",
    "NotExecuted",
    "Warning",
    "Error",
    "NotApplicable",
    "Paused",
    "InProgress",
    "NotImpacted",
];

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Its number, unique in its run.
    pub id: u64,
    /// The run.
    pub run: u64,
    /// What was sent.
    pub fields: Map<String, Value>,
    /// Its files: names and contents.
    pub attachments: Vec<(String, Vec<u8>)>,
}

impl Outcome {
    /// A field that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }
}

/// Where a page begins, and how long it may be.
pub(super) fn window(call: &Call<'_>, page_max: usize) -> (usize, usize) {
    let number = |name| call.request.number(name).map(|number| number as usize);
    (number("$skip").unwrap_or(0), number("$top").unwrap_or(page_max).clamp(1, page_max))
}

impl Azure {
    /// The name of a result in the ledger: its case, else where it is from, else the test's name.
    pub(super) fn item(&self, outcome: &Outcome) -> String {
        let point = outcome.fields.get("testPoint").and_then(reference).and_then(|point| self.points.get(&point));
        let named = || outcome.text("automatedTestStorage").or_else(|| outcome.text("automatedTestName"));
        point.map(|point| point.case.to_string()).or_else(|| named().map(str::to_owned)).unwrap_or_default()
    }

    /// The result that a point of a new run has from the beginning.
    pub(super) fn born(&mut self, call: &Call<'_>, run: u64, point: u64) {
        let case = self.points.get(&point).map(|point| (point.case, point.title.clone())).unwrap_or_default();
        let mut fields = json!({
            "testPoint": { "id": point.to_string() }, "testCaseTitle": case.1, "outcome": "Unspecified",
            "state": "Pending",
        });
        if self.shows_cases {
            fields["testCase"] = json!({ "id": case.0.to_string(), "name": case.1 });
        }
        self.push(call, run, fields.as_object().cloned().unwrap_or_default());
    }

    fn push(&mut self, call: &Call<'_>, run: u64, fields: Map<String, Value>) -> u64 {
        let id = self.runs.get_mut(&run).map_or(0, |run| {
            run.updated_ms = call.unix_ms();
            run.next_result += 1;
            run.next_result - 1
        });
        let name = fields.get("automatedTestName").cloned();
        let point = fields.get("testPoint").cloned();
        let same = |other: &Outcome| {
            other.run == run
                && other.fields.get("automatedTestName").cloned() == name
                && other.fields.get("testPoint").cloned() == point
        };
        self.results.write(call.now, Outcome { id, run, fields, attachments: Vec::new() }, same);
        id
    }

    pub(super) fn results_call(&mut self, call: &Call<'_>, method: &str, run: u64) -> Reply {
        match method {
            "GET" => Ok(self.list_results(call, run)),
            "POST" => {
                let sent = Self::checked(call)?;
                let ids: Vec<u64> = sent.into_iter().map(|fields| self.push(call, run, fields)).collect();
                Ok(list(
                    &ids.iter().map(|id| json!({ "id": id, "testRun": { "id": run.to_string() } })).collect::<Vec<_>>(),
                ))
            }
            "PATCH" => self.change(call, run),
            _ => Err(problem(405, "The requested resource does not support this method")),
        }
    }

    /// Files of one result: contents come in Base64 within JSON.
    pub(super) fn attachments_call(&mut self, call: &Call<'_>, method: &str, run: u64, result: &str) -> Reply {
        let of = |outcome: &Outcome| outcome.run == run && outcome.id.to_string() == result;
        let found = self.results.iter().find(|row| of(&row.data)).map(|row| (row.id, row.data.attachments.clone()));
        let (row, files) = found.ok_or_else(|| problem(404, "Test result cannot be found"))?;
        if method == "GET" {
            let shown = |(at, (name, bytes)): (usize, &(String, Vec<u8>))| json!({ "id": at + 1, "fileName": name, "size": bytes.len() });
            return Ok(list(&files.iter().enumerate().map(shown).collect::<Vec<_>>()));
        }
        let body = call.request.json();
        let bytes = body["stream"].as_str().and_then(|text| STANDARD.decode(text).ok());
        let bytes = bytes.ok_or_else(|| problem(400, "stream: Base64 is expected"))?;
        let name = body["fileName"].as_str().ok_or_else(|| problem(400, "fileName: a value is required"))?.to_owned();
        self.results.change(row, call.now, |outcome| outcome.attachments.push((name, bytes)));
        Ok(Answer::json(200, &json!({ "id": files.len() + 1, "url": "" })))
    }

    fn list_results(&self, call: &Call<'_>, run: u64) -> Answer {
        let found: Vec<&Outcome> =
            self.results.shown(call).map(|(_, outcome)| outcome).filter(|outcome| outcome.run == run).collect();
        let details = call.request.query("detailsToInclude").is_some_and(|details| details != "None");
        let (at, top) = window(call, (if details { 200 } else { PAGE_MAX }).min(self.page_max));
        let shown = |outcome: &&Outcome| {
            let mut shown = outcome.fields.clone();
            shown.insert("id".to_owned(), json!(outcome.id));
            shown.insert("testRun".to_owned(), json!({ "id": run.to_string() }));
            Value::Object(shown)
        };
        list(&call.page(&found, at, top).iter().map(shown).collect::<Vec<_>>())
    }

    /// The results of a request: all of them can be used, or none is.
    fn checked(call: &Call<'_>) -> Result<Vec<Map<String, Value>>, Answer> {
        let body = call.request.json();
        let sent = body.as_array().ok_or_else(|| problem(400, "a list of results is expected"))?;
        if sent.len() > BULK_MAX {
            return Err(problem(400, "at most 1000 results in one call"));
        }
        sent.iter().map(|one| checked_one(call, one)).collect()
    }

    fn change(&mut self, call: &Call<'_>, run: u64) -> Reply {
        let sent = Self::checked(call)?;
        let number = |fields: &Map<String, Value>| fields.get("id").and_then(Value::as_u64);
        let find = |id: Option<u64>| {
            let found = self.results.iter().find(|row| row.data.run == run && Some(row.data.id) == id);
            found.map(|row| row.id).ok_or_else(|| problem(404, "Test result cannot be found"))
        };
        let found = sent.iter().map(|fields| find(number(fields))).collect::<Result<Vec<u64>, Answer>>()?;
        for (id, fields) in found.iter().zip(&sent) {
            self.results.change(*id, call.now, |outcome| {
                outcome.fields.extend(fields.clone());
                outcome.fields.remove("id");
            });
        }
        if let Some(run) = self.runs.get_mut(&run) {
            run.updated_ms = call.unix_ms();
        }
        Ok(list(&sent.iter().map(|fields| json!({ "id": fields.get("id"), "revision": 2 })).collect::<Vec<_>>()))
    }
}

fn checked_one(call: &Call<'_>, one: &Value) -> Result<Map<String, Value>, Answer> {
    let mut fields = one.as_object().cloned().ok_or_else(|| problem(400, "a result is expected"))?;
    if let Some(outcome) = fields.get("outcome").and_then(Value::as_str)
        && !OUTCOMES.contains(&outcome)
    {
        return Err(problem(400, &format!("Unknown outcome {outcome}")));
    }
    if let Some(comment) = fields.get("comment").and_then(Value::as_str) {
        if comment.chars().count() > COMMENT_CHARS_MAX {
            return Err(problem(400, "The comment is longer than 1000 characters"));
        }
        let kept = call.kept(comment);
        fields.insert("comment".to_owned(), json!(kept));
    }
    Ok(fields)
}
