//! Runs, the executions in them, and what is written to those. Must not know plans.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::data::{Comment, Execution, Link, Verdict, object};
use super::query::select;
use super::{Kiwi, NO_CHOICE, Object, Reply, internal, invalid, missing, number, param};
use crate::stubs::xml_rpc::Called;
use crate::stubs::{Admin, Call};

const IDLE: u64 = 1;
const URL_CHARS_MAX: usize = 200;
const NAME_CHARS_MAX: usize = 64;

impl Kiwi {
    /// True if this call looks whether a case is in a run, finds that it is not, and inserts it after it has let go.
    pub(super) fn adds_without_lock(&self, _call: &Call<'_>, called: &Called) -> bool {
        let ids = [0, 1].map(|at| number(&called.params, at).unwrap_or_default());
        let there = self.executions.iter().any(|other| other.run == ids[0] && other.case == ids[1]);
        called.method == "TestRun.add_case" && !there && self.can_be_added(ids[0], ids[1]).is_ok()
    }

    fn can_be_added(&self, run: u64, case: u64) -> Result<(), (i64, String)> {
        self.runs.iter().find(|row| row["id"] == json!(run)).ok_or_else(|| missing("TestRun"))?;
        let case = self.cases.iter().find(|row| row["id"] == json!(case)).ok_or_else(|| missing("TestCase"))?;
        if Self::is_confirmed(case) {
            Ok(())
        } else {
            Err(internal(&format!("TC-{} status is not confirmed", case["id"])))
        }
    }

    /// A run by hand, with these cases in it.
    pub fn add_run(&mut self, summary: &str, cases: &[u64]) -> u64 {
        let id = self.id();
        let run = json!({
            "id": id, "summary": summary, "notes": "", "plan": 0, "build": 0, "manager": 2, "start_date": null,
            "stop_date": null, "+tag__name": [],
        });
        self.runs.push(object(run));
        for case in cases {
            self.execute(id, *case, super::Stamp::default());
        }
        id
    }

    /// One more execution, whether there is one or not.
    pub fn execute(&mut self, run: u64, case: u64, at: super::Stamp) -> u64 {
        let id = self.id();
        self.executions.push(Execution { id, run, case, at, history: 1, files: Vec::new() });
        id
    }

    pub(super) fn run_call(&mut self, call: &Call<'_>, name: &str, params: &[Value], checked: bool) -> Reply {
        match name {
            "filter" => select(self.runs.clone(), params.first()),
            "create" => self.create_run(call, param(params, 0)?),
            "update" => {
                let row = self.run_mut(number(params, 0)?)?;
                for (name, value) in param(params, 1)?.as_object().into_iter().flatten() {
                    row.insert(name.clone(), value.clone());
                }
                Ok(shown(row))
            }
            "add_tag" => {
                let tag = param(params, 1)?.clone();
                let row = self.run_mut(number(params, 0)?)?;
                let tags = row.get_mut("+tag__name").and_then(Value::as_array_mut);
                if let Some(tags) = tags.filter(|tags| !tags.contains(&tag)) {
                    tags.push(tag);
                }
                Ok(json!(row["+tag__name"]))
            }
            "add_case" => {
                let (run, case) = (number(params, 0)?, number(params, 1)?);
                let there = self.executions.iter().any(|other| other.run == run && other.case == case);
                if checked || !there {
                    self.can_be_added(run, case)?;
                    self.execute(run, case, call.now);
                }
                let all = self.executions.iter().filter(|other| other.run == run && other.case == case);
                Ok(all.map(|execution| Value::Object(self.shown_execution(execution))).collect())
            }
            "remove_case" => {
                let (run, case) = (number(params, 0)?, number(params, 1)?);
                self.forget(|execution| execution.run == run && execution.case == case);
                Ok(Value::Null)
            }
            "get_cases" => {
                let run = number(params, 0)?;
                let of_run = self.executions.iter().filter(|execution| execution.run == run);
                Ok(of_run.map(|execution| json!({ "id": execution.case, "execution_id": execution.id })).collect())
            }
            "remove" => {
                for run in ids(&select(self.runs.clone(), params.first())?) {
                    self.forget(|execution| execution.run == run);
                    self.runs.retain(|row| row["id"] != json!(run));
                }
                Ok(Value::Null)
            }
            _ => Err(internal("not played")),
        }
    }

    fn create_run(&mut self, call: &Call<'_>, values: &Value) -> Reply {
        for (field, table) in [("plan", &self.plans), ("build", &self.builds)] {
            let same =
                |row: &Object| row["id"] == values[field] || values[field].as_str() == Some(&row["id"].to_string());
            if !table.iter().any(same) {
                return Err(invalid(field, NO_CHOICE));
            }
        }
        if values["manager"].is_null() {
            return Err(invalid("manager", "A user name or user ID is required."));
        }
        let id = self.add_run(values["summary"].as_str().unwrap_or_default(), &[]);
        let notes = call.kept(values["notes"].as_str().unwrap_or_default());
        let row = self.run_mut(id)?;
        row.insert("notes".to_owned(), json!(notes));
        for name in ["plan", "build"] {
            row.insert(name.to_owned(), values[name].clone());
        }
        Ok(shown(row))
    }

    fn run_mut(&mut self, run: u64) -> Result<&mut Object, (i64, String)> {
        self.runs.iter_mut().find(|row| row["id"] == json!(run)).ok_or_else(|| missing("TestRun"))
    }

    /// The tags of a run.
    pub fn tags(&self, run: u64) -> Vec<Value> {
        let run = self.runs.iter().find(|row| row["id"] == json!(run));
        run.and_then(|run| run["+tag__name"].as_array()).cloned().unwrap_or_default()
    }

    fn shown_execution(&self, execution: &Execution) -> Object {
        let verdict = self.verdicts.iter().rfind(|row| row.data.execution == execution.id);
        let status = verdict.map_or(IDLE, |row| row.data.status);
        let name = self.statuses.iter().find(|row| row["id"] == json!(status)).map(|row| row["name"].clone());
        let [start, stop] = verdict.map_or([None, None], |row| row.data.dates.clone());
        let by = verdict.map(|_| self.options.login.0.clone());
        object(json!({
            "id": execution.id, "run": execution.run, "case": execution.case, "status": status,
            "status__name": name, "start_date": start, "stop_date": stop, "tested_by__username": by,
            "assignee": null, "sortkey": 10, "case_text_version": 1,
        }))
    }

    pub(super) fn execution_call(&mut self, call: &Call<'_>, name: &str, params: &[Value]) -> Reply {
        match name {
            "filter" => {
                let seen = self.executions.iter().filter(|execution| call.sees(execution.at));
                select(seen.map(|execution| self.shown_execution(execution)), params.first())
            }
            "update" => self.update(call, number(params, 0)?, param(params, 1)?),
            "add_comment" => {
                let (execution, id) = (number(params, 0)?, self.id());
                self.execution_mut(execution)?;
                let text = call.kept(param(params, 1)?.as_str().unwrap_or_default());
                self.comments.push(Comment { id, execution, text });
                Ok(json!({ "id": id }))
            }
            "get_comments" => {
                let execution = number(params, 0)?;
                self.execution_mut(execution)?;
                let all = self.comments.iter().filter(|comment| comment.execution == execution);
                Ok(all.map(|comment| json!({ "id": comment.id, "comment": comment.text })).collect())
            }
            "history" => {
                let added = self.execution_mut(number(params, 0)?)?.at.unix_ms;
                let at = jiff::Timestamp::from_millisecond(added).unwrap_or(jiff::Timestamp::MAX);
                Ok(json!([{ "history_date": at.strftime("%Y-%m-%dT%H:%M:%S%.3f").to_string() }]))
            }
            "list_attachments" => {
                let files = &self.execution_mut(number(params, 0)?)?.files;
                let one = |(name, _): &(String, Vec<u8>)| json!({ "url": format!("/uploads/attachments/{name}"), "filename": name, "mime_type": "" });
                Ok(files.iter().map(one).collect())
            }
            "add_attachment" => {
                let name = param(params, 1)?.as_str().unwrap_or_default().to_owned();
                let bytes = param(params, 2)?.as_str().and_then(|text| STANDARD.decode(text).ok());
                let bytes = bytes.ok_or_else(|| internal("Incorrect padding"))?;
                let files = &mut self.execution_mut(number(params, 0)?)?.files;
                // A name that is taken is made different.
                let taken = files.iter().filter(|(other, _)| *other == name).count();
                let name = match name.rsplit_once('.') {
                    Some((stem, ending)) if taken > 0 => format!("{stem}_x{taken}Zq.{ending}"),
                    _ => name,
                };
                files.push((name, bytes));
                Ok(Value::Null)
            }
            "add_link" => self.add_link(call, param(params, 0)?),
            "get_links" => select(self.shown_links(call), params.first()),
            "remove_link" => {
                let gone = ids(&select(self.shown_links(call), params.first())?);
                self.links.retain(|link| !gone.contains(&link.id));
                Ok(Value::Null)
            }
            "remove" => {
                let all = self.executions.iter().map(|execution| self.shown_execution(execution));
                let gone = ids(&select(all, params.first())?);
                self.forget(|execution| gone.contains(&execution.id));
                Ok(Value::Null)
            }
            _ => Err(internal("not played")),
        }
    }

    fn update(&mut self, call: &Call<'_>, execution: u64, values: &Value) -> Reply {
        let status = values["status"].as_u64().or_else(|| values["status"].as_str()?.parse().ok());
        self.execution_mut(execution)?;
        if let Some(status) = status {
            if !self.statuses.iter().any(|row| row["id"] == json!(status)) {
                return Err(invalid("status", NO_CHOICE));
            }
            let date = |name: &str| values[name].as_str().map(|date| date.replace(' ', "T"));
            let verdict = Verdict { execution, status, dates: [date("start_date"), date("stop_date")] };
            self.verdicts.write(call.now, verdict, |other| other.execution == execution);
        }
        let row = self.execution_mut(execution)?;
        row.history += 1;
        let row = row.clone();
        Ok(Value::Object(self.shown_execution(&row)))
    }

    fn add_link(&mut self, call: &Call<'_>, values: &Value) -> Reply {
        let execution = values.get("execution_id").or(values.get("execution")).and_then(Value::as_u64).unwrap_or(0);
        if self.execution_mut(execution).is_err() {
            return Err(invalid("execution", NO_CHOICE));
        }
        let [name, url] = ["name", "url"].map(|name| values[name].as_str().unwrap_or_default());
        if name.chars().count() > NAME_CHARS_MAX {
            return Err(invalid("name", "Ensure this value has at most 64 characters."));
        }
        if !url.starts_with("http") || url.chars().count() > URL_CHARS_MAX || url.contains(char::is_whitespace) {
            return Err(invalid("url", "Enter a valid URL."));
        }
        let link = Link { id: self.id(), execution, name: name.to_owned(), url: call.kept(url), at: call.now };
        self.links.push(link.clone());
        Ok(json!({ "id": link.id, "execution": execution, "name": name, "url": link.url, "is_defect": false }))
    }

    fn shown_links(&self, call: &Call<'_>) -> Vec<Object> {
        let run = |link: &Link| self.executions.iter().find(|row| row.id == link.execution).map(|row| row.run);
        let shown = |link: &Link| {
            object(json!({
                "id": link.id, "name": link.name, "url": link.url, "execution": link.execution, "is_defect": false,
                "+execution__run": run(link),
            }))
        };
        self.links.iter().filter(|link| call.sees(link.at)).map(shown).collect()
    }

    fn execution_mut(&mut self, execution: u64) -> Result<&mut Execution, (i64, String)> {
        self.executions.iter_mut().find(|row| row.id == execution).ok_or_else(|| missing("TestExecution"))
    }

    fn forget(&mut self, gone: impl Fn(&Execution) -> bool) {
        let ids: Vec<u64> = self.executions.iter().filter(|row| gone(row)).map(|row| row.id).collect();
        self.executions.retain(|row| !ids.contains(&row.id));
        self.verdicts.retain(|row| !ids.contains(&row.data.execution));
        self.links.retain(|link| !ids.contains(&link.execution));
        self.comments.retain(|comment| !ids.contains(&comment.execution));
    }

    pub(super) fn administer(&mut self, act: &Admin) -> bool {
        match act {
            Admin::CloseCycle(run) => {
                let run = run.parse().ok().and_then(|run| self.run_mut(run).ok());
                run.is_some_and(|run| run.insert("stop_date".to_owned(), json!("2026-09-21T10:13:20")).is_some())
            }
            Admin::DeleteCycle(run) => {
                let Ok(run) = run.parse::<u64>() else { return false };
                self.forget(|execution| execution.run == run);
                let before = self.runs.len();
                self.runs.retain(|row| row["id"] != json!(run));
                self.runs.len() < before
            }
            Admin::RemoveItem { cycle, item } => {
                let case = self.cases.iter().find(|case| case["summary"] == json!(item));
                let ids = case.and_then(|case| case["id"].as_u64()).zip(cycle.parse().ok());
                ids.is_some_and(|(case, run): (u64, u64)| {
                    self.forget(|execution| execution.run == run && execution.case == case);
                    true
                })
            }
            Admin::RenameStatus { from, to } => {
                let found = self.statuses.iter_mut().find(|row| row["name"] == json!(from));
                found.is_some_and(|row| row.insert("name".to_owned(), json!(to)).is_some())
            }
            Admin::DeleteStatus(name) => {
                let before = self.statuses.len();
                self.statuses.retain(|row| row["name"] != json!(name));
                self.statuses.len() < before
            }
        }
    }
}

fn shown(row: &Object) -> Value {
    row.iter().filter(|(name, _)| !name.starts_with('+')).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn ids(rows: &Value) -> Vec<u64> {
    rows.as_array().into_iter().flatten().filter_map(|row| row["id"].as_u64()).collect()
}
