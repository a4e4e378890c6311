//! How answers of `ReportPortal` look, and what its errors mean. Must not know what they are used for.

use serde::Deserialize;

use crate::classify::Answer;
use crate::foreign::adapter::Namesake;
use crate::foreign::caller::Nature;
use crate::foreign::entry::{CycleFound, CycleId};
use crate::foreign::kinds::caseless::unix_ms;
use crate::foreign::text::is_tagged;
use crate::foreign::trouble::{Trouble, judge};

/// No launch, no item of this UUID.
pub(super) const NO_LAUNCH: u64 = 4041;
pub(super) const NO_ITEM: u64 = 4043;
/// The launch is finished already.
pub(super) const FINISHED: u64 = 40_023;
/// Anything that the server has no words for, a broken unique key among it.
const UNCLASSIFIED: u64 = 5000;
const UNIQUE_KEYS: [&str; 2] = ["launch_uuid_key", "test_item_uuid_key"];

/// A time as this server shows it: text, or milliseconds in older versions.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Moment {
    Ms(u64),
    Text(String),
}

impl Moment {
    pub(super) fn ms(&self) -> Option<u64> {
        match self {
            Moment::Ms(ms) => Some(*ms),
            Moment::Text(text) => unix_ms(text),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Launch {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) name: String,
    pub(super) start_time: Option<Moment>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attribute {
    pub(super) key: Option<String>,
    #[serde(default)]
    pub(super) value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    pub(super) id: u64,
    pub(super) uuid: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) status: String,
    pub(super) test_case_id: Option<String>,
    pub(super) description: Option<String>,
    pub(super) start_time: Option<Moment>,
    pub(super) launch_id: Option<u64>,
    #[serde(default)]
    pub(super) attributes: Vec<Attribute>,
    pub(super) issue: Option<Issue>,
}

/// What people said of a defect.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Issue {
    #[serde(rename = "issueType")]
    defect: Option<String>,
    comment: Option<String>,
    external_system_issues: Vec<External>,
}

/// An issue in a tracker.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct External {
    ticket_id: Option<String>,
    url: Option<String>,
}

/// The defect type of what nobody has looked at yet.
const TO_INVESTIGATE: &str = "ti001";

impl Item {
    /// All that people see of it: what it says, and how it was triaged.
    pub(super) fn text(&self) -> String {
        let triage = self.issue.iter().flat_map(Issue::lines);
        self.description.iter().cloned().chain(triage).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

impl Issue {
    fn lines(&self) -> Vec<String> {
        let defect = self.defect.iter().filter(|word| *word != TO_INVESTIGATE).map(|word| format!("defect: {word}"));
        let trackers = self.external_system_issues.iter();
        let trackers = trackers.filter_map(|issue| issue.ticket_id.as_ref().or(issue.url.as_ref()));
        defect.chain(self.comment.clone()).chain(trackers.map(|issue| format!("issue: {issue}"))).collect()
    }
}

#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) content: Vec<Item>,
    pub(super) page: PageFacts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageFacts {
    pub(super) total_elements: u64,
    pub(super) total_pages: u64,
}

/// A launch of a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    pub(super) uuid: String,
    #[serde(default)]
    pub(super) name: String,
    pub(super) start_time: Option<Moment>,
    #[serde(default)]
    pub(super) attributes: Vec<Attribute>,
}

impl Shown {
    pub(super) fn namesake(self) -> Namesake {
        Namesake {
            made_ms: self.start_time.as_ref().and_then(Moment::ms),
            tagged: self.attributes.iter().any(|attribute| is_tagged(&attribute.value)),
            found: CycleFound { id: CycleId::new(self.uuid), name: self.name, closed: false },
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Launches {
    pub(super) content: Vec<Shown>,
    pub(super) page: PageFacts,
}

#[derive(Deserialize)]
pub(super) struct Made {
    pub(super) id: String,
}

/// The error form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Problem {
    pub(super) error_code: u64,
    pub(super) message: String,
}

pub(super) fn problem(answer: &Answer) -> Option<Problem> {
    serde_json::from_slice(&answer.body).ok()
}

pub(super) fn words(answer: &Answer) -> Option<String> {
    problem(answer).map(|problem| format!("{} (code {})", problem.message, problem.error_code))
}

/// Judges an answer. A unique key that a UUID of ours would break is known by its name alone: the server has no words
/// of its own for it, and other failures have the same code.
pub(super) fn judged(answer: Answer, nature: Nature) -> Result<Answer, Trouble> {
    let exists = problem(&answer).filter(|problem| {
        problem.error_code == UNCLASSIFIED && UNIQUE_KEYS.iter().any(|key| problem.message.contains(key))
    });
    match exists {
        Some(problem) => Err(Trouble::Exists(format!("status {}: {}", answer.status, problem.message))),
        None => judge(answer, nature, words),
    }
}
