//! Runs and their tests. Giving a run other cases replaces its selection: the tests that are left out go, and their
//! results with them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::cases::object;
use super::{Object, Reply, TestRail, UNTESTED, invalid, numbers, refused};
use crate::stubs::{Answer, Call};

/// What a client may set on a run.
const SETTABLE: [&str; 7] = ["name", "description", "milestone_id", "assignedto_id", "refs", "start_on", "due_on"];
/// The most characters in `refs` (source: the vendor's own client).
const REFS_MAX: usize = 250;

/// The cases that a run is to have.
enum Selection {
    /// All of its suite, later ones as well.
    All,
    These(BTreeSet<u64>),
}

#[derive(Debug, Clone)]
pub(super) struct Run {
    id: u64,
    suite: u64,
    include_all: bool,
    pub(super) completed_s: Option<i64>,
    created_s: i64,
    fields: Object,
    /// Case → test.
    pub(super) tests: BTreeMap<u64, u64>,
}

impl TestRail {
    /// Makes a run of these cases; its id. Cases that are not there are left out.
    pub fn add_run(&mut self, name: &str, cases: &[u64]) -> u64 {
        let cases = cases.iter().copied().filter(|case| self.cases.contains_key(case)).collect();
        self.insert_run(1, object(json!({ "name": name })), Selection::These(cases), 0)
    }

    /// The cases of a run and their tests.
    pub fn tests(&self, run: u64) -> BTreeMap<u64, u64> {
        self.runs.get(&run).map(|run| run.tests.clone()).unwrap_or_default()
    }

    fn insert_run(&mut self, suite: u64, fields: Object, cases: Selection, created_s: i64) -> u64 {
        let id = self.id();
        let run = Run { id, suite, include_all: true, completed_s: None, created_s, fields, tests: BTreeMap::new() };
        self.runs.insert(id, run);
        self.choose(id, cases);
        id
    }

    /// Makes these the cases of the run.
    fn choose(&mut self, id: u64, cases: Selection) {
        let Some(mut run) = self.runs.remove(&id) else { return };
        run.include_all = matches!(cases, Selection::All);
        let suite = json!(run.suite);
        let cases = match cases {
            Selection::These(cases) => cases,
            Selection::All => {
                let all = self.cases.iter().filter(|(_, case)| case.get("suite_id") == Some(&suite));
                all.map(|(id, _)| *id).collect()
            }
        };
        run.tests.retain(|case, _| cases.contains(case));
        self.results.retain(|row| row.data.run != id || cases.contains(&row.data.case));
        for case in cases {
            run.tests.entry(case).or_insert_with(|| self.id());
        }
        self.runs.insert(id, run);
    }

    /// A new case joins the open runs that hold all of its suite.
    pub(super) fn case_added(&mut self, suite: u64, case: u64) {
        let test = self.id();
        for run in self.runs.values_mut().filter(|r| r.include_all && r.suite == suite && r.completed_s.is_none()) {
            run.tests.insert(case, test);
        }
    }

    pub(super) fn remove_test(&mut self, run: u64, case: u64) -> bool {
        let removed = self.runs.get_mut(&run).is_some_and(|run| run.tests.remove(&case).is_some());
        self.results.retain(|row| row.data.run != run || row.data.case != case);
        removed
    }

    pub(super) fn run(&self, id: u64) -> Result<&Run, Answer> {
        self.runs.get(&id).ok_or_else(|| invalid("run_id"))
    }

    /// A run that can still be written to.
    pub(super) fn open_run(&self, id: u64) -> Result<&Run, Answer> {
        let run = self.run(id)?;
        if run.completed_s.is_some() { Err(refused(403, "The test run is completed.")) } else { Ok(run) }
    }

    pub(super) fn close_run(&mut self, id: u64, now_s: i64) -> Reply {
        self.open_run(id)?;
        if let Some(run) = self.runs.get_mut(&id) {
            run.completed_s = Some(now_s);
        }
        self.run(id).map(|run| self.run_json(run))
    }

    pub(super) fn delete_run(&mut self, id: u64) -> Reply {
        self.runs.remove(&id).ok_or_else(|| invalid("run_id"))?;
        self.results.retain(|row| row.data.run != id);
        Ok(json!({}))
    }

    pub(super) fn post_run(&mut self, call: &Call<'_>, name: &str, id: u64) -> Reply {
        match name {
            "close_run" => return self.close_run(id, call.unix_s()),
            "delete_run" => return self.delete_run(id),
            _ => {}
        }
        let body = call.request.json();
        let set = object(body.clone()).into_iter().filter(|(name, _)| SETTABLE.contains(&name.as_str()));
        let mut set: Object = set.collect();
        if set.get("refs").and_then(Value::as_str).is_some_and(|refs| refs.chars().count() > REFS_MAX) {
            return Err(invalid("refs"));
        }
        for text in set.values_mut() {
            if let Value::String(sent) = text {
                *sent = call.kept(sent);
            }
        }
        let chosen = self.chosen(&body)?;
        let id = if name == "add_run" {
            if id != 1 {
                return Err(invalid("project_id"));
            }
            let suite = self.suite(super::number(&body, "suite_id"))?;
            set.get("name").and_then(Value::as_str).ok_or_else(|| invalid("name"))?;
            self.insert_run(suite, set, chosen.unwrap_or(Selection::All), call.unix_s())
        } else {
            self.open_run(id)?;
            if let Some(run) = self.runs.get_mut(&id) {
                run.fields.extend(set);
            }
            if let Some(cases) = chosen {
                self.choose(id, cases);
            }
            id
        };
        self.run(id).map(|run| self.run_json(run))
    }

    /// The selection that a body asks for, if it does.
    fn chosen(&self, body: &Value) -> Result<Option<Selection>, Answer> {
        let cases = numbers(body.get("case_ids"));
        if let Some(unknown) = cases.iter().flatten().find(|case| !self.cases.contains_key(case)) {
            return Err(refused(400, &format!("Field :case_ids contains an unknown case: C{unknown}.")));
        }
        Ok(match (body.get("include_all").and_then(Value::as_bool), cases) {
            (Some(true), _) => Some(Selection::All),
            (_, Some(cases)) => Some(Selection::These(cases.into_iter().collect())),
            (Some(false), None) => Some(Selection::These(BTreeSet::new())),
            (None, None) => None,
        })
    }

    pub(super) fn get_runs(&self, call: &Call<'_>, name: &str, id: u64) -> Reply {
        match name {
            "get_run" => self.run(id).map(|run| self.run_json(run)),
            "get_runs" => {
                let after = call.request.number("created_after").map(|s| s as i64);
                let completed = call.request.query("is_completed");
                let wanted = |run: &&Run| {
                    completed.is_none_or(|want| (want == "1") == run.completed_s.is_some())
                        && after.is_none_or(|after| run.created_s > after)
                };
                // Newest first.
                let found: Vec<&Run> = self.runs.values().rev().filter(wanted).collect();
                Ok(self.list(call, "runs", &found, |run| self.run_json(run)))
            }
            "get_test" => {
                let (run, case) = self.test(id)?;
                Ok(self.test_json(run, case, id, self.test_statuses(run).get(&id).copied()))
            }
            _ => {
                let run = self.run(id)?;
                let statuses = self.test_statuses(id);
                let tests: Vec<(u64, u64)> = run.tests.iter().map(|(case, test)| (*case, *test)).collect();
                let show = |(case, test): &(u64, u64)| self.test_json(id, *case, *test, statuses.get(test).copied());
                Ok(self.list(call, "tests", &tests, show))
            }
        }
    }

    /// The run and the case of a test.
    pub(super) fn test(&self, test: u64) -> Result<(u64, u64), Answer> {
        let all = self.runs.values().flat_map(|run| run.tests.iter().map(move |(case, test)| (run.id, *case, *test)));
        let mut found = all.filter(|(.., other)| *other == test);
        found.next().map(|(run, case, _)| (run, case)).ok_or_else(|| invalid("test_id"))
    }

    fn test_json(&self, run: u64, case: u64, test: u64, status: Option<u64>) -> Value {
        let case_of = self.cases.get(&case);
        let member = |name: &str| case_of.and_then(|case| case.get(name)).cloned().unwrap_or(Value::Null);
        json!({ "id": test, "case_id": case, "run_id": run, "status_id": status.unwrap_or(UNTESTED),
            "title": member("title"), "assignedto_id": null, "refs": member("refs"),
            "custom_automation_id": member("custom_automation_id") })
    }

    fn run_json(&self, run: &Run) -> Value {
        let id = run.id;
        let statuses = self.test_statuses(id);
        let mut json = object(json!({ "description": null, "milestone_id": null, "assignedto_id": null, "refs": null,
            "start_on": null, "due_on": null, "plan_id": null, "config": null, "config_ids": [], "created_by": 3 }));
        json.extend(run.fields.clone());
        json.extend(object(json!({ "id": id, "suite_id": run.suite, "project_id": 1, "include_all": run.include_all,
            "is_completed": run.completed_s.is_some(), "completed_on": run.completed_s, "created_on": run.created_s,
            "url": format!("/index.php?/runs/view/{id}") })));
        let count = |id: u64| statuses.values().filter(|status| **status == id).count();
        for (id, name) in [(1, "passed"), (2, "blocked"), (4, "retest"), (5, "failed")] {
            json.insert(format!("{name}_count"), json!(count(id)));
        }
        for custom in 1..=7 {
            json.insert(format!("custom_status{custom}_count"), json!(count(custom + 5)));
        }
        json.insert("untested_count".to_owned(), json!(run.tests.len() - statuses.len()));
        Value::Object(json)
    }

    /// Test → the status of its newest result that has one.
    fn test_statuses(&self, run: u64) -> BTreeMap<u64, u64> {
        let of_run = self.results.iter().filter(|row| row.data.run == run);
        of_run.filter_map(|row| Some((row.data.test, row.data.status()?))).collect()
    }
}
