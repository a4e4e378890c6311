//! Calls and answers of the API: addresses, pages in both shapes, members. Must not know what they are used for.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::classify::Answer;
use crate::foreign::caller::{Call, Caller};
use crate::foreign::paging::{Reading, Step};
use crate::foreign::trouble::{Trouble, json};

/// The status of a test without a result. It can't be written.
pub(super) const UNTESTED: u64 = 3;
/// Most rows of a page; the product cuts a larger wish to this.
const PAGE_ROWS: usize = 250;
/// How long to wait when a Cloud instance is being maintained, in milliseconds.
const MAINTENANCE_WAIT_MS: u64 = 120_000;

/// A call's address: the whole call stands in the query, and parameters follow with `&`.
pub(super) fn path(call: &str) -> String {
    format!("/index.php?/api/v2/{call}")
}

/// The product's own error form.
fn words(answer: &Answer) -> Option<String> {
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    body.get("error")?.as_str().map(str::to_owned)
}

/// Calls one instance.
#[derive(Debug)]
pub(super) struct Api(Caller);

impl Api {
    pub(super) fn new(caller: Caller) -> Self {
        Self(caller)
    }

    pub(super) fn held_back_ms(&self, calls: usize) -> u64 {
        self.0.held_back_ms(calls)
    }

    /// One call, its answer as JSON.
    pub(super) async fn call(&self, call: Call) -> Result<Value, Trouble> {
        let product_s = AtomicBool::new(false);
        let noting = |answer: &Answer| words(answer).inspect(|_| product_s.store(true, Ordering::Relaxed));
        match self.0.call(call, noting).await {
            // The product uses 409 for its maintenance alone, and does nothing meanwhile.
            Err(Trouble::Exists(what)) if product_s.into_inner() => {
                Err(Trouble::Wait { what: format!("maintenance: {what}"), after_ms: MAINTENANCE_WAIT_MS })
            }
            Err(Trouble::Exists(what)) => Err(Trouble::Unknown(what)),
            answered => json(&answered?),
        }
    }

    /// One call, its answer as the members that are needed of it.
    pub(super) async fn parsed<T: DeserializeOwned>(&self, call: Call) -> Result<T, Trouble> {
        of(self.call(call).await?)
    }

    /// A small list that has no pages.
    pub(super) async fn whole<T: DeserializeOwned>(&self, call: &str) -> Result<T, Trouble> {
        self.parsed(Call::get(path(call))).await
    }

    /// A list with all its pages.
    pub(super) async fn list<T: DeserializeOwned + Id>(&self, call: &str, name: &str) -> Result<Vec<T>, Trouble> {
        let mut reading = Reading::default();
        loop {
            let offset = reading.offset();
            let answer = self.whole(&format!("{call}&limit={PAGE_ROWS}&offset={offset}")).await?;
            let (rows, last) = page::<T>(answer, name)?;
            let rows = rows.into_iter().map(|row| (row.id(), row)).collect();
            if reading.take(rows, last)? == Step::Done {
                return Ok(reading.rows());
            }
        }
    }

    /// The tests of a run.
    pub(super) async fn tests(&self, run: u64) -> Result<Vec<Test>, Trouble> {
        self.list(&format!("get_tests/{run}"), "tests").await
    }
}

/// The rows of a page, and whether it is the last one as far as it tells. Before version 6.7 a page was a bare array,
/// and some lists had no pages at all.
fn page<T: DeserializeOwned>(answer: Value, name: &str) -> Result<(Vec<T>, Option<bool>), Trouble> {
    match answer {
        Value::Array(rows) => {
            let last = (rows.len() != PAGE_ROWS).then_some(true);
            Ok((of(Value::Array(rows))?, last))
        }
        Value::Object(mut envelope) => {
            let rows = envelope.remove(name).unwrap_or(Value::Null);
            let next = envelope.get("_links").and_then(|links| links.get("next"));
            Ok((of(rows)?, next.map(Value::is_null)))
        }
        other => of(other).map(|rows| (rows, None)),
    }
}

fn of<T: DeserializeOwned>(value: Value) -> Result<T, Trouble> {
    serde_json::from_value(value)
        .map_err(|error| Trouble::Unknown(format!("an answer that is not as TestRail documents it: {error}")))
}

/// What can be told from others.
pub(super) trait Id {
    fn id(&self) -> String;
}

macro_rules! has_id {
    ($($type:ident),+) => {$(
        impl Id for $type {
            fn id(&self) -> String {
                self.id.to_string()
            }
        }
    )+};
}
has_id!(Run, Test, Outcome, CaseOf, Attached);

/// A run, the cycle.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) refs: Option<String>,
    #[serde(default)]
    pub(super) is_completed: bool,
    #[serde(default)]
    pub(super) include_all: bool,
    /// The plan that it is a part of.
    pub(super) plan_id: Option<u64>,
    /// Seconds since 1970.
    pub(super) created_on: Option<u64>,
}

/// A test: the copy of a case in a run.
#[derive(Debug, Deserialize)]
pub(super) struct Test {
    pub(super) id: u64,
    pub(super) case_id: u64,
}

/// A result. Administrators add members of their own.
#[derive(Debug, Deserialize)]
pub(super) struct Outcome {
    pub(super) id: u64,
    pub(super) test_id: u64,
    pub(super) status_id: Option<u64>,
    /// In seconds since 1970.
    pub(super) created_on: Option<u64>,
    pub(super) comment: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Outcome {
    /// A member that only some instances have.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.others.get(name)?.as_str()
    }
}

/// A file of a result.
#[derive(Debug, Deserialize)]
pub(super) struct Attached {
    /// A number, and since 7.1 a text.
    id: Value,
    name: Option<String>,
    filename: Option<String>,
    /// Its result, under the one name or the other.
    result_id: Option<Value>,
    entity_id: Option<Value>,
}

impl Attached {
    /// False if it says that it is another result's.
    pub(super) fn may_be_of(&self, result: u64) -> bool {
        let is = |id: &Value| id.as_u64().or_else(|| id.as_str()?.parse().ok()) == Some(result);
        let said: Vec<&Value> =
            [&self.result_id, &self.entity_id].into_iter().flatten().filter(|id| !id.is_null()).collect();
        said.is_empty() || said.into_iter().any(is)
    }

    /// Its name.
    pub(super) fn into_name(self) -> String {
        self.name.or(self.filename).unwrap_or_default()
    }
}

/// A case of the repository.
#[derive(Debug, Deserialize)]
pub(super) struct CaseOf {
    pub(super) id: u64,
    pub(super) title: String,
    pub(super) section_id: Option<u64>,
    /// The fields that the vendor's own client matches.
    custom_automation_id: Option<String>,
    custom_case_automation_id: Option<String>,
}

impl CaseOf {
    /// What the vendor's own client knows it by.
    pub(super) fn automation_id(&self) -> Option<&str> {
        let both = [&self.custom_automation_id, &self.custom_case_automation_id];
        both.into_iter().filter_map(|id| id.as_deref()).map(str::trim).find(|id| !id.is_empty())
    }
}

/// A field of cases.
#[derive(Debug, Deserialize)]
pub(super) struct CaseField {
    pub(super) system_name: String,
}

/// A status.
#[derive(Debug, Deserialize)]
pub(super) struct StatusOf {
    pub(super) id: u64,
    pub(super) name: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    pub(super) is_untested: bool,
}

impl StatusOf {
    /// True if people call it so: by number, name or label.
    pub(super) fn is(&self, text: &str) -> bool {
        text.parse() == Ok(self.id) || self.name.eq_ignore_ascii_case(text) || self.label.eq_ignore_ascii_case(text)
    }
}

/// A duration as the product takes it, such as `1m 30s`; `None` below half a second, as it refuses zero.
pub(super) fn elapsed(us: u64) -> Option<String> {
    let seconds = us.saturating_add(500_000) / 1_000_000;
    let parts = [(seconds / 3600, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_a_result_in_every_version() {
        let file = |text: &str| serde_json::from_str::<Attached>(text).unwrap();
        let old = file(r#"{"id": 444, "name": "a.png", "result_id": 901, "user_id": 3}"#);
        assert!(old.may_be_of(901) && !old.may_be_of(902));
        let new = file(r#"{"id": "2ec27be4", "filename": "a.png", "entity_id": "901", "entity_type": "test_change"}"#);
        assert!(new.may_be_of(901) && !new.may_be_of(902));
        assert_eq!(new.into_name(), "a.png");
        assert!(file(r#"{"id": 1, "name": "a.png", "result_id": null}"#).may_be_of(901), "nothing is said");
    }

    #[test]
    fn durations_are_never_zero() {
        let shown = [0, 499_999, 500_000, 90_000_000, 3_600_000_000, 90_061_000_000].map(elapsed);
        let shown: Vec<&str> = shown.iter().map(|text| text.as_deref().unwrap_or("-")).collect();
        assert_eq!(shown, ["-", "-", "1s", "1m 30s", "1h", "25h 1m 1s"]);
    }
}
