//! Results: appended, whole batches or nothing, listed newest first.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::{Object, Reply, TestRail, UNTESTED, invalid, number, refused};
use crate::stubs::{Answer, Call, Stamp, Told};

/// What a client may set on a result, beside custom fields.
const SETTABLE: [&str; 6] = ["status_id", "comment", "version", "elapsed", "defects", "assignedto_id"];

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The run that it is in.
    pub run: u64,
    /// The test that it is of.
    pub test: u64,
    /// The case of that test.
    pub case: u64,
    /// What the client sent, as kept.
    pub fields: serde_json::Map<String, Value>,
    /// In seconds since 1970, by the vendor's clock.
    pub created_s: i64,
    /// Each attachment.
    pub attachments: Vec<Attached>,
}

/// A file of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Outcome {
    /// Its status; a result may be a comment only.
    pub fn status(&self) -> Option<u64> {
        self.fields.get("status_id").and_then(Value::as_u64)
    }

    fn json(&self, id: u64) -> Value {
        let attachments: Vec<u64> = self.attachments.iter().map(|one| one.id).collect();
        let mut json = Object::new();
        for name in SETTABLE {
            json.insert(name.to_owned(), Value::Null);
        }
        json.extend(self.fields.clone());
        json.insert("id".to_owned(), json!(id));
        json.insert("test_id".to_owned(), json!(self.test));
        json.insert("created_on".to_owned(), json!(self.created_s));
        json.insert("created_by".to_owned(), json!(3));
        json.insert("attachment_ids".to_owned(), json!(attachments));
        Value::Object(json)
    }
}

impl TestRail {
    /// Another writer's result; its id. `None` if the case is not in the run.
    pub fn foreign_result(&mut self, at: Stamp, run: u64, case: u64, status: u64, comment: &str) -> Option<u64> {
        let test = *self.runs.get(&run)?.tests.get(&case)?;
        let fields = super::cases::object(json!({ "status_id": status, "comment": comment }));
        let created_s = at.unix_ms.div_euclid(1000);
        Some(self.results.push(at, Outcome { run, test, case, fields, created_s, attachments: Vec::new() }))
    }

    /// `add_results` and `add_results_for_cases`: the answer is in the order sent; one bad result refuses all.
    pub(super) fn add_results(&mut self, call: &Call<'_>, name: &str, run: u64) -> Reply {
        self.open_run(run)?;
        let body = call.request.json();
        let sent = body.get("results").and_then(Value::as_array).ok_or_else(|| invalid("results"))?;
        let by_case = name == "add_results_for_cases";
        let checked = sent.iter().map(|one| {
            let tests = &self.run(run)?.tests;
            let (id, found) = if by_case {
                let id = number(one, "case_id");
                (id, id.and_then(|case| Some((case, *tests.get(&case)?))))
            } else {
                let id = number(one, "test_id");
                (id, id.and_then(|test| tests.iter().find(|(_, other)| **other == test).map(|(c, t)| (*c, *t))))
            };
            let what = if by_case { "case C" } else { "test T" };
            let missing = || format!("Field :results contains a {what}{} that is not in the run.", id.unwrap_or(0));
            let (case, test) = found.ok_or_else(|| refused(400, &missing()))?;
            self.outcome(call, (run, test, case), one)
        });
        let checked = checked.collect::<Result<Vec<Outcome>, Answer>>()?;
        checked.into_iter().map(|outcome| self.store(call, &outcome)).collect()
    }

    /// `add_result` of a test and `add_result_for_case` of a run and a case.
    pub(super) fn add_result(&mut self, call: &Call<'_>, name: &str, id: u64, case: u64) -> Reply {
        let (run, case, test) = if name == "add_result" {
            let (run, case) = self.test(id)?;
            (run, case, id)
        } else {
            (id, case, *self.run(id)?.tests.get(&case).ok_or_else(|| invalid("case_id"))?)
        };
        self.open_run(run)?;
        let outcome = self.outcome(call, (run, test, case), &call.request.json())?;
        self.store(call, &outcome)
    }

    fn outcome(&self, call: &Call<'_>, (run, test, case): (u64, u64, u64), sent: &Value) -> Result<Outcome, Answer> {
        let (fields, attachments) = (self.fields(call, sent)?, Vec::new());
        Ok(Outcome { run, test, case, fields, created_s: call.unix_s(), attachments })
    }

    /// What is kept of the fields sent; refused if a status or a custom field is not known.
    fn fields(&self, call: &Call<'_>, sent: &Value) -> Result<Object, Answer> {
        if let Some(status) = sent.get("status_id").filter(|status| !status.is_null()) {
            let known = status.as_u64().filter(|id| *id != UNTESTED && self.statuses.contains_key(id));
            known.ok_or_else(|| invalid("status_id"))?;
        }
        let mut kept = Object::new();
        for (name, value) in sent.as_object().ok_or_else(|| invalid("results"))? {
            let custom = name.starts_with("custom_");
            if custom && !self.options.result_fields.contains(name) {
                if self.options.drops_unknown_fields {
                    continue;
                }
                return Err(refused(400, &format!("Field :{name} is not a known result field.")));
            }
            if custom || SETTABLE.contains(&name.as_str()) {
                kept.insert(name.clone(), value.as_str().map_or_else(|| value.clone(), |text| json!(call.kept(text))));
            }
        }
        Ok(kept)
    }

    fn store(&mut self, call: &Call<'_>, outcome: &Outcome) -> Reply {
        let (run, test) = (outcome.run, outcome.test);
        let told = self.results.write(call.now, outcome.clone(), |other| other.run == run && other.test == test);
        match told {
            Told::Refused(_) => Err(refused(400, "The test has a result already.")),
            told => Ok(outcome.json(told.id())),
        }
    }

    pub(super) fn edit_result(&mut self, call: &Call<'_>, id: u64) -> Reply {
        if !self.options.edit_results {
            return Err(refused(403, "You are not allowed to edit results."));
        }
        let run = self.results.get(id).ok_or_else(|| invalid("result_id"))?.data.run;
        self.open_run(run)?;
        let fields = self.fields(call, &call.request.json())?;
        let edited = self.results.change(id, call.now, |outcome| outcome.fields.extend(fields));
        edited.map(|row| row.data.json(id)).ok_or_else(|| invalid("result_id"))
    }

    pub(super) fn get_results(&self, call: &Call<'_>, name: &str, id: u64, case: u64) -> Reply {
        let of: Box<dyn Fn(&Outcome) -> bool> = match name {
            "get_results" => {
                self.test(id)?;
                Box::new(move |outcome| outcome.test == id)
            }
            "get_results_for_case" => {
                self.run(id)?.tests.get(&case).ok_or_else(|| invalid("case_id"))?;
                Box::new(move |outcome| outcome.run == id && outcome.case == case)
            }
            _ => {
                self.run(id)?;
                Box::new(move |outcome| outcome.run == id)
            }
        };
        let second = |name| call.request.number(name).map(|s| s as i64);
        let (after, before) = (second("created_after"), second("created_before"));
        let statuses = call.request.query("status_id");
        let wanted = |status: Option<u64>| {
            statuses.is_none_or(|all| all.split(',').any(|one| one.parse().ok() == status && status.is_some()))
        };
        let mut found: Vec<(u64, &Outcome)> = self.results.shown(call).filter(|(_, outcome)| of(outcome)).collect();
        found.retain(|(_, outcome)| {
            let created = outcome.created_s;
            after.is_none_or(|after| created > after)
                && before.is_none_or(|before| created < before)
                && wanted(outcome.status())
        });
        found.sort_by_key(|(id, outcome)| Reverse((outcome.created_s, *id)));
        Ok(self.list(call, "results", &found, |(id, outcome)| outcome.json(*id)))
    }

    pub(super) fn add_attachment(&mut self, call: &Call<'_>, id: u64) -> Reply {
        let part = call.request.part("attachment").ok_or_else(|| refused(400, "No file attached or upload failed."))?;
        let (name, bytes) = (part.file.clone().unwrap_or_default(), part.body.clone());
        if !self.options.edit_results {
            return Err(refused(403, "You are not allowed to edit results."));
        }
        let attachment = self.id();
        let file = Attached { id: attachment, name, bytes };
        let changed = self.results.change(id, call.now, |outcome| outcome.attachments.push(file));
        changed.map(|_| json!({ "attachment_id": attachment })).ok_or_else(|| invalid("result_id"))
    }

    pub(super) fn get_attachments(&self, call: &Call<'_>, test: u64) -> Reply {
        self.test(test)?;
        let of_test = self.results.iter().filter(|row| row.data.test == test);
        let all = of_test.flat_map(|row| row.data.attachments.iter().map(move |one| (row.id, one.id, &one.name)));
        let show = |(result, id, name): &(u64, u64, &String)| json!({ "id": id, "name": name, "result_id": result, "user_id": 3 });
        Ok(self.list(call, "attachments", &all.collect::<Vec<_>>(), show))
    }
}
