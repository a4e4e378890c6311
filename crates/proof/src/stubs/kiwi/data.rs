//! What an installation holds, and which calls it knows. Must not answer any.

use serde_json::json;

use super::Object;
use crate::stubs::Stamp;

/// A place for a verdict.
#[derive(Debug, Clone)]
pub(super) struct Execution {
    pub(super) id: u64,
    pub(super) run: u64,
    pub(super) case: u64,
    pub(super) at: Stamp,
    pub(super) history: usize,
    /// Names and contents.
    pub(super) files: Vec<(String, Vec<u8>)>,
}

/// The verdict of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whose.
    pub execution: u64,
    /// The number of the status.
    pub status: u64,
    /// As they were sent.
    pub dates: [Option<String>; 2],
}

#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) id: u64,
    pub(super) execution: u64,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) at: Stamp,
}

#[derive(Debug, Clone)]
pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) execution: u64,
    pub(super) text: String,
}

/// Names, and weights: none, for or against.
const STATUSES: [(&str, i64); 8] = [
    ("IDLE", 0),
    ("RUNNING", 0),
    ("PAUSED", 0),
    ("PASSED", 20),
    ("FAILED", -20),
    ("BLOCKED", -10),
    ("ERROR", -30),
    ("WAIVED", 10),
];

pub(super) fn statuses() -> Vec<Object> {
    let one = |(id, (name, weight)): (u64, (&str, i64))| {
        object(json!({ "id": id, "name": name, "weight": weight, "icon": "fa fa-times", "color": "#72767b" }))
    };
    (1_u64..).zip(STATUSES).map(one).collect()
}

pub(super) fn object(value: serde_json::Value) -> Object {
    if let serde_json::Value::Object(object) = value { object } else { Object::new() }
}

const READS: [&str; 19] = [
    "Build.filter",
    "Category.filter",
    "Classification.filter",
    "PlanType.filter",
    "Priority.filter",
    "Product.filter",
    "TestCase.filter",
    "TestCaseStatus.filter",
    "TestExecution.filter",
    "TestExecution.get_comments",
    "TestExecution.get_links",
    "TestExecution.history",
    "TestExecutionStatus.filter",
    "TestPlan.filter",
    "TestRun.filter",
    "TestRun.get_cases",
    "User.filter",
    "Version.filter",
    "Auth.logout",
];

const WRITES: [&str; 14] = [
    "Build.create",
    "TestCase.create",
    "TestExecution.add_comment",
    "TestExecution.add_link",
    "TestExecution.remove_link",
    "TestExecution.update",
    "TestPlan.add_case",
    "TestPlan.create",
    "TestRun.add_case",
    "TestRun.add_tag",
    "TestRun.create",
    "TestRun.remove_case",
    "TestRun.update",
    "Version.create",
];

/// Since 13.5 and 15.3.
const LATER: [&str; 4] = [LISTS_FILES, "TestExecution.add_attachment", "TestExecution.remove", "TestRun.remove"];
const LISTS_FILES: &str = "TestExecution.list_attachments";

pub(super) fn is_known(method: &str, later: bool) -> bool {
    READS.contains(&method) || WRITES.contains(&method) || later && LATER.contains(&method)
}

pub(super) fn reads(method: &str) -> bool {
    READS.contains(&method) || method == LISTS_FILES
}
