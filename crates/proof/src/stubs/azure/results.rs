//! Results of runs: born with points, appended, changed by their numbers.

use serde_json::{Map, Value, json};

use super::{Azure, Reply, list, problem, reference};
use crate::stubs::{Answer, Call, Row};

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
        self.results.write(call.now, Outcome { id, run, fields }, same);
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

    fn list_results(&self, call: &Call<'_>, run: u64) -> Answer {
        let of = |row: &&Row<Outcome>| row.data.run == run && call.sees(row.created);
        let found: Vec<&Row<Outcome>> = self.results.iter().filter(of).collect();
        let details = call.request.query("detailsToInclude").is_some_and(|details| details != "None");
        let (at, top) = window(call, if details { 200 } else { PAGE_MAX });
        let shown = |row: &&Row<Outcome>| {
            let mut shown = row.data.fields.clone();
            shown.insert("id".to_owned(), json!(row.data.id));
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
            if let Some(row) = self.results.get_mut(*id) {
                row.data.fields.extend(fields.clone());
                row.data.fields.remove("id");
                row.changed = call.now;
            }
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
