//! The calls of Nitrate, table by table. Must not know sessions or how a fault is sent.

use serde_json::{Map, Value, json};

use super::{CaseRun, Comment, IDLE, Nitrate, PLAN, PRODUCT, Refusal, Reply, Run, STATUSES, Verdict};
use crate::stubs::Call;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Nitrate {
    pub(super) fn plan_call(&mut self, call: &Call<'_>, table: &str, name: &str, params: &[Value]) -> Reply {
        let query = params.first().unwrap_or(&Value::Null);
        match (table, name) {
            ("User", "get_me") => Ok(json!({ "id": 2, "username": self.options.login.0 })),
            ("Product", "filter") => select([json!({ "id": 1, "name": PRODUCT })], query),
            ("Product", "get_versions") => {
                Ok(json!([{ "id": 1, "value": "unspecified" }, { "id": 2, "value": "1.0" }]))
            }
            ("Product", "get_categories") => Ok(json!([{ "id": 1, "name": "--default--" }])),
            ("Product", "get_builds") => {
                Ok(self.builds.iter().map(|(id, name)| json!({ "build_id": id, "name": name })).collect())
            }
            ("Build", "create") => {
                let name = text(query, "name")?;
                if query.get("description").is_none() {
                    return Err((500, "NOT NULL constraint failed: test_builds.description".to_owned()));
                }
                if self.builds.iter().any(|(_, other)| *other == name) {
                    return Err((409, "UNIQUE constraint failed: test_builds.product_id, test_builds.name".to_owned()));
                }
                let id = self.id();
                self.builds.push((id, name.clone()));
                Ok(json!({ "build_id": id, "name": name }))
            }
            ("TestPlan", "filter") => select([json!({ "plan_id": 3, "name": PLAN, "product": 1 })], query),
            ("TestCase", "filter") => {
                let row = |(id, summary): (&u64, &String)| json!({ "case_id": id, "summary": summary, "category__product__name": PRODUCT });
                select(self.cases.iter().map(row), query)
            }
            ("TestCase", "check_priority") => Ok(json!({ "id": 1, "value": "P1" })),
            ("TestCase", "get_case_status") => {
                Ok(json!([{ "id": 1, "name": "PROPOSED" }, { "id": 2, "name": "CONFIRMED" }]))
            }
            ("TestCase", "create") => {
                let summary = call.kept(text(query, "summary")?.trim());
                let id = self.add_case(&summary);
                Ok(json!({ "case_id": id, "summary": summary }))
            }
            _ => Err((500, format!("method \"{table}.{name}\" is not supported"))),
        }
    }

    pub(super) fn run_call(&mut self, call: &Call<'_>, name: &str, params: &[Value]) -> Reply {
        let query = params.first().unwrap_or(&Value::Null);
        match name {
            "filter" => select(self.runs.iter().map(|(id, run)| shown_run(*id, run)), query),
            // One that is missing is no fault here.
            "get" => Ok(self.runs.get(&number(query)?).map_or_else(|| json!({}), |run| shown_run(0, run))),
            "create" => {
                for field in ["plan", "build", "manager", "product", "product_version", "summary"] {
                    if query.get(field).is_none_or(Value::is_null) {
                        return Err((400, format!("{field}: This field is required.")));
                    }
                }
                let id = self.add_run(&call.kept(&text(query, "summary")?), &[]);
                let (notes, tags) = (call.kept(query["notes"].as_str().unwrap_or_default()), tags(&query["tag"]));
                if let Some(run) = self.runs.get_mut(&id) {
                    (run.notes, run.tags) = (notes, tags);
                }
                Ok(self.runs.get(&id).map(|run| shown_run(id, run)).unwrap_or_default())
            }
            "update" => {
                let values = params.get(1).unwrap_or(&Value::Null);
                for id in numbers(query)? {
                    if let Some(run) = self.runs.get_mut(&id) {
                        if let Some(summary) = values["summary"].as_str() {
                            run.summary = call.kept(summary);
                        }
                        run.stopped |= values["status"] == json!(1);
                    }
                }
                Ok(json!([]))
            }
            "add_tag" => {
                for id in numbers(query)? {
                    if let Some(run) = self.runs.get_mut(&id) {
                        run.tags.extend(tags(params.get(1).unwrap_or(&Value::Null)));
                    }
                }
                Ok(json!([]))
            }
            "get_test_case_runs" => {
                let run = number(query)?;
                let of_run: Vec<Value> = self
                    .case_runs
                    .iter()
                    .filter(|place| place.run == run)
                    .map(|place| self.shown(call, place))
                    .collect();
                Ok(json!(of_run))
            }
            "add_cases" => {
                let (runs, cases) = (numbers(query)?, numbers(params.get(1).unwrap_or(&Value::Null))?);
                self.add_cases(&runs, &cases)
            }
            "remove_cases" => {
                let (runs, cases) = (numbers(query)?, numbers(params.get(1).unwrap_or(&Value::Null))?);
                self.forget(|place| runs.contains(&place.run) && cases.contains(&place.case));
                Ok(Value::Null)
            }
            _ => Err((500, format!("method \"TestRun.{name}\" is not supported"))),
        }
    }

    /// All of them or none: one that is there already spoils the whole call.
    fn add_cases(&mut self, runs: &[u64], cases: &[u64]) -> Reply {
        let there = |run: &u64, case: &u64| self.case_runs.iter().any(|other| other.run == *run && other.case == *case);
        if runs.iter().any(|run| !self.runs.contains_key(run))
            || cases.iter().any(|case| !self.cases.contains_key(case))
        {
            return Err((404, "matching query does not exist.".to_owned()));
        }
        if runs.iter().any(|run| cases.iter().any(|case| there(run, case))) {
            return Err(doubled());
        }
        for run in runs {
            for case in cases {
                self.place(*run, *case);
            }
        }
        Ok(Value::Null)
    }

    pub(super) fn case_run_call(&mut self, call: &Call<'_>, name: &str, params: &[Value]) -> Reply {
        let query = params.first().unwrap_or(&Value::Null);
        match name {
            "get_case_run_status" => {
                Ok((1_u64..).zip(STATUSES).map(|(id, name)| json!({ "id": id, "name": name })).collect())
            }
            "filter" => select(self.case_runs.iter().map(|place| self.shown(call, place)), query),
            "create" => {
                let ids = ["run", "case"].map(|name| number(&query[name]));
                let [run, case] = ids;
                let (run, case) = (run?, case?);
                self.add_cases(&[run], &[case])?;
                let place = self.case_runs.last().cloned().ok_or_else(doubled)?;
                self.write(call, place.id, query)?;
                Ok(self.shown(call, &place))
            }
            "update" => {
                let values = params.get(1).unwrap_or(&Value::Null);
                let ids = numbers(query)?;
                let there: Vec<CaseRun> =
                    self.case_runs.iter().filter(|place| ids.contains(&place.id)).cloned().collect();
                for place in &there {
                    self.write(call, place.id, values)?;
                }
                Ok(there.iter().map(|place| self.shown(call, place)).collect())
            }
            "add_comment" => {
                let (text, day) =
                    (call.kept(params.get(1).and_then(Value::as_str).unwrap_or_default()), call.unix_ms() / DAY_MS);
                for case_run in numbers(query)? {
                    // The same words by the same person on one day are one comment.
                    let same = |one: &Comment| one.case_run == case_run && one.text == text && one.day == day;
                    if !self.comments.iter().any(same) {
                        self.comments.push(Comment { case_run, text: text.clone(), day });
                    }
                }
                Ok(Value::Null)
            }
            "attach_log" => {
                let url = params.get(2).and_then(Value::as_str).unwrap_or_default().to_owned();
                self.logs.push((number(query)?, url));
                Ok(Value::Null)
            }
            "get_logs" => {
                let case_run = number(query)?;
                let of = self.logs.iter().filter(|(other, _)| *other == case_run);
                Ok(of.map(|(_, url)| json!({ "url": url })).collect())
            }
            _ => Err((500, format!("method \"TestCaseRun.{name}\" is not supported"))),
        }
    }

    /// Replaces what is sent of verdict and notes.
    fn write(&mut self, call: &Call<'_>, case_run: u64, values: &Value) -> Result<(), Refusal> {
        let old = self.verdicts.iter().rfind(|row| row.data.case_run == case_run).map(|row| row.data.clone());
        let status = match values.get("case_run_status") {
            None => old.as_ref().map_or(IDLE, |old| old.status),
            Some(status) => number(status)?,
        };
        if !(1..=STATUSES.len() as u64).contains(&status) {
            return Err((400, "case_run_status: Select a valid choice.".to_owned()));
        }
        let notes = values["notes"].as_str().map(|notes| call.kept(notes));
        let notes = notes.or_else(|| old.map(|old| old.notes)).unwrap_or_default();
        let verdict = Verdict { case_run, status, notes, closed_ms: call.unix_ms() };
        self.verdicts.write(call.now, verdict, |other| other.case_run == case_run);
        Ok(())
    }

    fn shown(&self, call: &Call<'_>, place: &CaseRun) -> Value {
        let verdict = self.verdicts.shown(call).map(|(_, verdict)| verdict).rfind(|one| one.case_run == place.id);
        let status = verdict.map_or(IDLE, |verdict| verdict.status);
        let closed = verdict.filter(|verdict| verdict.status > 3);
        let closed = closed.and_then(|verdict| jiff::Timestamp::from_millisecond(verdict.closed_ms).ok());
        json!({
            "case_run_id": place.id, "run_id": place.run, "run": place.run, "case_id": place.case, "case": place.case,
            "case_run_status_id": status, "notes": verdict.map_or("", |verdict| verdict.notes.as_str()),
            "close_date": closed.map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string()), "sortkey": 10,
            "case_text_version": 1,
        })
    }

    pub(super) fn forget(&mut self, gone: impl Fn(&CaseRun) -> bool) {
        let ids: Vec<u64> = self.case_runs.iter().filter(|place| gone(place)).map(|place| place.id).collect();
        self.case_runs.retain(|place| !ids.contains(&place.id));
        self.verdicts.retain(|row| !ids.contains(&row.data.case_run));
        self.comments.retain(|comment| !ids.contains(&comment.case_run));
        self.logs.retain(|(case_run, _)| !ids.contains(case_run));
    }
}

fn shown_run(id: u64, run: &Run) -> Value {
    json!({
        "run_id": id, "summary": run.summary, "notes": run.notes, "tag__name": run.tags,
        "stop_date": run.stopped.then_some("2026-09-21 10:13:20"),
    })
}

/// Case and run are a unique key.
fn doubled() -> Refusal {
    (409, "UNIQUE constraint failed: test_case_runs.case_id, test_case_runs.run_id".to_owned())
}

fn tags(value: &Value) -> Vec<String> {
    let texts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    texts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(values: &Value, name: &str) -> Result<String, Refusal> {
    values[name].as_str().map(str::to_owned).ok_or_else(|| (400, format!("{name}: This field is required.")))
}

fn number(value: &Value) -> Result<u64, Refusal> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| (400, format!("a number is expected, and {value} was sent")))
}

/// One number or several.
fn numbers(value: &Value) -> Result<Vec<u64>, Refusal> {
    match value {
        Value::Array(all) => all.iter().map(number).collect(),
        one => Ok(vec![number(one)?]),
    }
}

/// Rows that match: equality, `__in` and `__contains`. What a row doesn't have can't be looked up.
fn select(rows: impl IntoIterator<Item = Value>, query: &Value) -> Reply {
    let none = Map::new();
    let query = query.as_object().unwrap_or(&none);
    let mut found = Vec::new();
    for row in rows {
        let mut all = true;
        for (name, wanted) in query {
            all &= fits(&row, name, wanted)?;
        }
        if all {
            found.push(row);
        }
    }
    Ok(json!(found))
}

fn fits(row: &Value, name: &str, wanted: &Value) -> Result<bool, Refusal> {
    let (field, how) = match name.rsplit_once("__") {
        Some((field, how)) if ["in", "contains"].contains(&how) => (field, how),
        _ => (name, "exact"),
    };
    let value = row.get(field).ok_or_else(|| (400, format!("Cannot resolve keyword '{field}' into field.")))?;
    let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let same = |value: &Value, wanted: &Value| value == wanted || wanted.as_str() == Some(&value.to_string());
    Ok(values.iter().any(|value| match how {
        "in" => wanted.as_array().is_some_and(|all| all.iter().any(|one| same(value, one))),
        "contains" => value.as_str().zip(wanted.as_str()).is_some_and(|(value, wanted)| value.contains(wanted)),
        _ => same(value, wanted),
    }))
}
