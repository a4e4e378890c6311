//! What Xray keeps in Jira, whoever hosts it: issues of tests and executions, and one run for each pair of them, which
//! an import replaces. Stub only: from the vendor's pages, checked by no client of the vendor's.
//! Must not know how it is called: `cloud` and `server` do.

mod cloud;
mod graphql;
mod server;

use serde_json::{Value, json};

use crate::stubs::jql;
use crate::stubs::{Admin, Call, Ledger, RecordedRow, Repeat, Rows, Rule, Stamp};

pub use cloud::XrayCloud;
pub use server::XrayServer;

/// An issue of Jira.
#[derive(Debug, Clone)]
pub struct Issue {
    /// Its number.
    pub id: u64,
    /// Its key.
    pub key: String,
    /// The name of its type.
    pub kind: String,
    /// Its summary.
    pub summary: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// The definition of a generic test.
    pub definition: String,
    made: Stamp,
}

/// The run of a test in an execution.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// The execution's key.
    pub execution: String,
    /// The test's key.
    pub test: String,
    /// The word of its status.
    pub status: String,
    /// Its comment.
    pub comment: String,
    /// When it began, as sent.
    pub started: Option<String>,
    /// When it ended, as sent.
    pub finished: Option<String>,
    /// Names of files; an import adds them again.
    pub evidence: Vec<String>,
}

/// The name of the issue type of a test.
pub const TEST: &str = "Test";
/// The name of the issue type of an execution.
pub const EXECUTION: &str = "Test Execution";

/// One project and what Xray keeps of it.
#[derive(Debug, Clone)]
pub struct Site {
    /// The project's key.
    pub project: String,
    /// All issues, oldest first.
    pub issues: Vec<Issue>,
    /// All runs; their rule is to replace.
    pub runs: Rows<Run>,
    /// The words of statuses, the one for "nothing yet" first.
    pub statuses: Vec<String>,
    next: u64,
}

impl Site {
    fn new(statuses: &[&str]) -> Self {
        Self {
            project: "SHOP".to_owned(),
            issues: Vec::new(),
            runs: Rows::new(Rule::honest(Repeat::Replace), 371),
            statuses: statuses.iter().map(|&status| status.to_owned()).collect(),
            next: 1,
        }
    }

    /// One more issue.
    pub fn add_issue(&mut self, at: Stamp, kind: &str, summary: &str, labels: Vec<String>) -> &mut Issue {
        let number = self.next;
        self.next += 1;
        let (key, kind, summary) = (format!("{}-{number}", self.project), kind.to_owned(), summary.to_owned());
        let definition = String::new();
        self.issues.push(Issue { id: 10_000 + number, key, kind, summary, labels, definition, made: at });
        let last = self.issues.len() - 1;
        &mut self.issues[last]
    }

    /// One more test; its key.
    pub fn add_test(&mut self, summary: &str) -> String {
        self.add_issue(Stamp::default(), TEST, summary, Vec::new()).key.clone()
    }

    fn issue(&self, key: &str, kind: &str) -> Option<&Issue> {
        self.issues.iter().find(|issue| issue.key == key && issue.kind == kind)
    }

    fn by_id(&self, id: &str) -> Option<&Issue> {
        self.issues.iter().find(|issue| issue.id.to_string() == id)
    }

    /// By the index of searches, which may lag. A key that nobody has is an error there.
    fn search(&self, call: &Call<'_>, query: &str, kind: Option<&str>) -> Result<Vec<&Issue>, String> {
        let clauses = jql::clauses(query).ok_or_else(|| format!("Error in the JQL Query: {query}"))?;
        let mut found: Vec<&Issue> = self.issues.iter().filter(|issue| call.sees(issue.made)).collect();
        found.retain(|issue| kind.is_none_or(|kind| issue.kind == kind));
        for (field, value) in &clauses {
            match field.as_str() {
                "project" if *value == self.project => {}
                "project" => return Err(format!("The value '{value}' does not exist for the field 'project'.")),
                "key" | "issuekey" => {
                    found.retain(|issue| issue.key == *value);
                    if found.is_empty() {
                        return Err(format!("An issue with key '{value}' does not exist for field 'key'."));
                    }
                }
                "labels" => found.retain(|issue| issue.labels.contains(value)),
                "issuetype" => found.retain(|issue| issue.kind == *value),
                _ => return Err(format!("Field '{field}' does not exist or you do not have permission to view it.")),
            }
        }
        Ok(found)
    }

    fn open(&self) -> String {
        self.statuses[0].clone()
    }

    /// Puts a test into an execution, if it is not in it yet.
    pub fn add_run(&mut self, at: Stamp, execution: &str, test: &str) {
        if !self.runs.iter().any(|row| row.data.execution == execution && row.data.test == test) {
            let (execution, test) = (execution.to_owned(), test.to_owned());
            self.runs.push(at, Run { execution, test, status: self.open(), ..Run::default() });
        }
    }

    /// The execution that an import goes to: the one that it names, or one more.
    fn import_execution(&mut self, at: Stamp, body: &Value) -> Result<String, String> {
        let Some(key) = body.get("testExecutionKey").and_then(Value::as_str) else {
            let summary = body.pointer("/info/summary").and_then(Value::as_str).unwrap_or("Execution results");
            return Ok(self.add_issue(at, EXECUTION, summary, Vec::new()).key.clone());
        };
        let found = self.issue(key, EXECUTION).map(|issue| issue.key.clone());
        found.ok_or_else(|| format!("Issue with key {key} not found or is not of type Test Execution."))
    }

    /// Why one element of an import can't be carried out.
    fn import_problem(&self, test: &Value) -> Option<String> {
        let text = |name: &str| test.get(name).and_then(Value::as_str).unwrap_or_default();
        let (key, status) = (text("testKey"), text("status"));
        if self.issue(key, TEST).is_none() {
            return Some(format!("Test with key {key} not found."));
        }
        (!self.statuses.iter().any(|known| known == status)).then(|| format!("The status {status} does not exist."))
    }

    /// One element of an import: the run is overwritten; evidence that comes again is there twice.
    fn import_one(&mut self, call: &Call<'_>, execution: &str, test: &Value) {
        let text = |name: &str| test.get(name).and_then(Value::as_str).map(str::to_owned);
        let evidence = ["evidence", "evidences"].iter().find_map(|name| test.get(name)?.as_array());
        let names = evidence.into_iter().flatten().filter_map(|file| file.get("filename")?.as_str());
        let run = Run {
            execution: execution.to_owned(),
            test: text("testKey").unwrap_or_default(),
            status: text("status").unwrap_or_default(),
            comment: call.kept(&text("comment").unwrap_or_default()),
            started: text("start"),
            finished: text("finish"),
            evidence: names.map(str::to_owned).collect(),
        };
        let (execution, test) = (run.execution.clone(), run.test.clone());
        let same = move |other: &Run| other.execution == execution && other.test == test;
        self.runs.write_with(call.now, run, same, |old, new| {
            let kept = std::mem::take(&mut old.evidence);
            *old = new;
            old.evidence = kept.into_iter().chain(std::mem::take(&mut old.evidence)).collect();
        });
    }

    fn delete_issue(&mut self, key: &str) -> bool {
        let before = self.issues.len();
        self.issues.retain(|issue| issue.key != key);
        self.runs.retain(|row| row.data.execution != key && row.data.test != key);
        self.issues.len() < before
    }

    fn admin(&mut self, act: &Admin) -> bool {
        match act {
            Admin::DeleteCycle(key) => self.delete_issue(key),
            Admin::RemoveItem { cycle, item } => {
                let before = self.runs.iter().count();
                self.runs.retain(|row| row.data.execution != *cycle || row.data.test != *item);
                self.runs.iter().count() < before
            }
            Admin::RenameStatus { from, to } => match self.statuses.iter_mut().find(|status| *status == from) {
                Some(status) => {
                    to.clone_into(status);
                    true
                }
                None => false,
            },
            Admin::DeleteStatus(name) => {
                let before = self.statuses.len();
                self.statuses.retain(|status| status != name);
                self.statuses.len() < before
            }
            // Workflows are Jira's, and stop no import.
            Admin::CloseCycle(_) => false,
        }
    }

    /// Runs that were never carried out are places for a verdict, and no rows.
    fn ledger(&self) -> Ledger {
        let carried_out = self.runs.iter().filter(|row| row.data.status != self.open() || !row.data.comment.is_empty());
        carried_out
            .map(|row| {
                let recorded = RecordedRow {
                    id: row.id.to_string(),
                    cycle: row.data.execution.clone(),
                    marker: row.data.comment.clone(),
                    status: row.data.status.clone(),
                    order: row.changed.order,
                    created_ms: row.changed.unix_ms,
                    side: row.data.evidence.clone(),
                };
                (row.data.test.clone(), recorded)
            })
            .collect()
    }

    fn self_of(issue: &Issue) -> Value {
        json!({ "id": issue.id.to_string(), "key": issue.key, "self": format!("https://jira.example/rest/api/2/issue/{}", issue.id) })
    }
}
