//! `TestRail` (API v2): results are appended, runs hold tests of cases, lists are paged at 250 and newest first.
//! From the vendor's pages and its own client; where both are silent the stricter reading. Must not know the kernel.

mod cases;
mod results;
mod runs;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::stubs::{
    Admin, Answer, Call, Kind, Ledger, Rate, RecordedRow, Repeat, Request, Rows, Rule, Stamp, Turn, Vendor, file,
};
use results::Outcome;
use runs::Run;

/// The most rows in one page (source: the API's introduction, bulk endpoints).
const PAGE_MAX: usize = 250;
const PREFIX: &str = "/api/v2/";
/// The status that can't be written: no result yet.
const UNTESTED: u64 = 3;

/// What differs from one installation to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Name and API key (or password) of the one user.
    pub login: (String, String),
    /// The site setting that lets results be edited.
    pub edit_results: bool,
    /// Lists without the envelope, as before 6.7.
    pub bare_lists: bool,
    /// 1: one suite; 3: several, so that `suite_id` must be given.
    pub suite_mode: u64,
    /// The custom result fields that the instance has, those that an administrator has made included.
    pub result_fields: BTreeSet<String>,
    /// Whether a custom field that it does not have is dropped without a word, instead of refused.
    pub drops_unknown_fields: bool,
    /// The result field that holds the marker, for the ledger.
    pub marker_field: String,
    /// The rate of the instance.
    pub rate: Option<Rate>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            login: ("bot@example.com".to_owned(), "key".to_owned()),
            edit_results: true,
            bare_lists: false,
            suite_mode: 1,
            // The second is sent by the vendor's own client with each result.
            result_fields: ["custom_step_results", "custom_testrail_bdd_scenario_results"].map(str::to_owned).into(),
            drops_unknown_fields: false,
            marker_field: "comment".to_owned(),
            // The smaller of the two documented ones.
            rate: Some(Rate { requests: 180, per_ms: 60_000, tells: true }),
        }
    }
}

type Object = Map<String, Value>;
/// What a call gives, or the refusal.
type Reply = Result<Value, Answer>;

/// One instance with one project (1) and, at first, one suite (1).
#[derive(Debug, Clone)]
pub struct TestRail {
    /// May be changed at any time.
    pub options: Options,
    /// All results; their rule is to append.
    pub results: Rows<Outcome>,
    suites: BTreeMap<u64, Object>,
    sections: BTreeMap<u64, Object>,
    cases: BTreeMap<u64, Object>,
    runs: BTreeMap<u64, Run>,
    statuses: BTreeMap<u64, String>,
    next_id: u64,
}

impl TestRail {
    /// An instance as it comes, with these options.
    pub fn new(options: Options) -> Self {
        let statuses = [(1, "passed"), (2, "blocked"), (UNTESTED, "untested"), (4, "retest"), (5, "failed")];
        let mut new = Self {
            options,
            results: Rows::new(Rule::honest(Repeat::Append), 901),
            suites: BTreeMap::new(),
            sections: BTreeMap::new(),
            cases: BTreeMap::new(),
            runs: BTreeMap::new(),
            statuses: statuses.into_iter().map(|(id, name)| (id, name.to_owned())).collect(),
            next_id: 1,
        };
        new.add_suite("Master");
        new
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// The name of a case in the ledger: its automation id, else `C` and its number.
    fn item(&self, case: u64) -> String {
        let automation = self.cases.get(&case).and_then(|case| case.get("custom_automation_id"));
        automation.and_then(Value::as_str).filter(|id| !id.is_empty()).map_or_else(|| format!("C{case}"), str::to_owned)
    }

    fn reply(&mut self, call: &Call<'_>) -> Reply {
        let path = api_path(call.request).ok_or_else(|| refused(404, "not a call of the API"))?;
        if call.request.basic().as_ref() != Some(&self.options.login) {
            return Err(refused(401, "authentication failed: name or password is wrong"));
        }
        let ids: Vec<u64> = path.iter().skip(1).filter_map(|id| id.parse().ok()).collect();
        let (name, first) = (path[0], ids.first().copied().unwrap_or(0));
        let second = ids.get(1).copied().unwrap_or(0);
        match call.request.method.as_str() {
            "GET" => self.get(call, name, first, second),
            "POST" => self.post(call, name, first, second),
            _ => Err(refused(405, "only GET and POST")),
        }
    }

    fn get(&self, call: &Call<'_>, name: &str, id: u64, second: u64) -> Reply {
        match name {
            "get_run" | "get_runs" | "get_test" | "get_tests" => self.get_runs(call, name, id),
            "get_results" | "get_results_for_case" | "get_results_for_run" => self.get_results(call, name, id, second),
            "get_attachments_for_test" => self.get_attachments(call, id),
            _ => self.get_cases(call, name, id),
        }
    }

    fn post(&mut self, call: &Call<'_>, name: &str, id: u64, second: u64) -> Reply {
        match name {
            "add_run" | "update_run" | "close_run" | "delete_run" => self.post_run(call, name, id),
            "add_results" | "add_results_for_cases" => self.add_results(call, name, id),
            "add_result" | "add_result_for_case" => self.add_result(call, name, id, second),
            "edit_result" => self.edit_result(call, id),
            "add_attachment_to_result" => self.add_attachment(call, id),
            _ => self.post_case(call, name, id),
        }
    }

    /// One page of a list, in the envelope or bare.
    fn list<T>(&self, call: &Call<'_>, name: &str, rows: &[T], show: impl Fn(&T) -> Value) -> Value {
        let number = |name| call.request.number(name).map(|n| n as usize);
        let offset = number("offset").unwrap_or(0);
        let limit = number("limit").filter(|limit| *limit > 0).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let page: Vec<Value> = call.page(rows, offset, limit).iter().map(show).collect();
        if self.options.bare_lists {
            return json!(page);
        }
        let link = |offset: usize| {
            let kept = call.request.queries().iter().skip(1).filter(|(name, _)| name != "limit" && name != "offset");
            let kept: Vec<String> = kept.map(|(name, value)| format!("&{name}={value}")).collect();
            let path = call.request.queries().first().map_or("", |(path, _)| path);
            format!("{path}{}&limit={limit}&offset={offset}", kept.concat())
        };
        let next = (offset + limit < rows.len()).then(|| link(offset + limit));
        let prev = (offset > 0).then(|| link(offset.saturating_sub(limit)));
        let links = json!({ "next": next, "prev": prev });
        json!({ "offset": offset, "limit": limit, "size": page.len(), "_links": links, name: page })
    }
}

impl Vendor for TestRail {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        self.reply(call).map_or_else(Turn::from, |value| Answer::json(200, &value).into())
    }

    fn classify(&self, request: &Request) -> Kind {
        let name = api_path(request).map_or("", |path| path[0]).to_owned();
        if request.method == "GET" { Kind::Read(name) } else { Kind::Write(name) }
    }

    fn ledger(&self) -> Ledger {
        let field = &self.options.marker_field;
        let row = |id: u64, at: Stamp, outcome: &Outcome| RecordedRow {
            id: id.to_string(),
            cycle: outcome.run.to_string(),
            marker: outcome.fields.get(field).and_then(Value::as_str).unwrap_or_default().to_owned(),
            status: outcome.status().map(|status| status.to_string()).unwrap_or_default(),
            order: at.order,
            created_ms: outcome.created_s * 1000,
            side: outcome.attachments.iter().map(|one| file(&one.name, &one.bytes)).collect(),
        };
        self.results.iter().map(|r| (self.item(r.data.case), row(r.id, r.created, &r.data))).collect()
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("/results", count)
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(run) => run.parse().is_ok_and(|run| self.close_run(run, 0).is_ok()),
            Admin::DeleteCycle(run) => run.parse().is_ok_and(|run| self.delete_run(run).is_ok()),
            Admin::RemoveItem { cycle, item } => {
                let case = self.cases.keys().copied().find(|case| self.item(*case) == *item);
                case.zip(cycle.parse().ok()).is_some_and(|(case, run)| self.remove_test(run, case))
            }
            Admin::RenameStatus { from, to } => {
                let found = self.statuses.values_mut().find(|name| *name == from);
                found.is_some_and(|name| {
                    to.clone_into(name);
                    true
                })
            }
            Admin::DeleteStatus(name) => {
                let before = self.statuses.len();
                self.statuses.retain(|_, other| other != name);
                self.statuses.len() < before
            }
        }
    }

    fn rate(&self) -> Option<Rate> {
        self.options.rate
    }
}

/// The call's name and what follows it. The whole call stands in the query: `index.php?/api/v2/get_run/7&limit=1`.
fn api_path(request: &Request) -> Option<Vec<&str>> {
    let (path, _) = request.queries().first()?;
    let path: Vec<&str> = path.strip_prefix(PREFIX)?.split('/').collect();
    request.target.contains("index.php?").then_some(path)
}

fn refused(status: u16, text: &str) -> Answer {
    Answer::json(status, &json!({ "error": text }))
}

/// The refusal of a field's value (400).
fn invalid(field: &str) -> Answer {
    refused(400, &format!("Field :{field} is not valid."))
}

fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()))
}

fn numbers(value: Option<&Value>) -> Option<Vec<u64>> {
    value?.as_array().map(|all| all.iter().filter_map(Value::as_u64).collect())
}
