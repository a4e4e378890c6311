//! How `TestLink` shows what it holds, and the loose ways in which it takes values. Must not change anything.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Build, Case, Execution, PLAN, PREFIX, Reply, TestLink};
use crate::stubs::{Call, Row};

/// PHP says nothing as an empty text.
pub(super) fn none_as_text(rows: &[Value]) -> Value {
    if rows.is_empty() { json!("") } else { json!(rows) }
}

pub(super) fn shown_build(build: &Build) -> Value {
    let open = u8::from(build.open).to_string();
    json!({ "id": build.id.to_string(), "name": build.name, "notes": "", "active": "1", "is_open": open })
}

pub(super) fn shown_case(number: u64, case: &Case) -> Value {
    json!({
        "tcase_id": (number + 100).to_string(), "tcase_name": case.name, "name": case.name, "version": "1",
        "external_id": number.to_string(), "full_external_id": format!("{PREFIX}-{number}"),
    })
}

pub(super) fn shown_execution(row: &Row<Execution>) -> Value {
    let at = jiff::Timestamp::from_millisecond(row.data.at_ms).unwrap_or_default();
    json!({
        "id": row.id.to_string(), "build_id": row.data.build.to_string(), "status": row.data.status,
        "notes": row.data.notes, "execution_ts": at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        "testplan_id": PLAN.to_string(), "platform_id": row.data.platform.to_string(), "execution_type": "2",
        "tcversion_id": (row.data.case + 200).to_string(), "tcversion_number": "1",
    })
}

impl TestLink {
    pub(super) fn execution_set(&self, call: &Call<'_>, args: &Value) -> Reply {
        let case = self.planned(args)?;
        let build = if args.get("buildid").is_some() { Some(self.build(args)?) } else { None };
        let platform = number(args, "platformid");
        let fits = |row: &&Row<Execution>| {
            row.data.case == case
                && build.is_none_or(|build| build == row.data.build)
                && platform.is_none_or(|platform| platform == row.data.platform)
                && call.sees(row.created)
        };
        let rows: BTreeMap<String, Value> =
            self.executions.iter().filter(fits).map(|row| (row.id.to_string(), shown_execution(row))).collect();
        Ok(if rows.is_empty() { json!([{ "id": -1 }]) } else { json!(rows) })
    }

    pub(super) fn last(&self, args: &Value) -> Reply {
        let case = self.planned(args)?;
        let row = self.executions.iter().rfind(|row| row.data.case == case);
        Ok(json!([row.map_or(json!({ "id": -1 }), shown_execution)]))
    }
}

/// A number, also as text.
pub(super) fn number(args: &Value, name: &str) -> Option<u64> {
    let value = args.get(name)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// A yes, also as a number.
pub(super) fn is_true(value: &Value) -> bool {
    *value == json!(true) || value.as_u64() == Some(1)
}
