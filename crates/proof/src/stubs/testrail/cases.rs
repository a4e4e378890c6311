//! The repository: project, suites, sections, cases, and the small lists that clients look at first.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Object, Reply, TestRail, UNTESTED, invalid, number, numbers, refused};
use crate::stubs::{Answer, Call};

impl TestRail {
    /// Makes a suite; its id.
    pub fn add_suite(&mut self, name: &str) -> u64 {
        let id = self.id();
        let suite = json!({ "id": id, "name": name, "project_id": 1, "description": null, "is_master": id == 1,
            "is_baseline": false, "is_completed": false, "completed_on": null, "url": format!("/suites/{id}") });
        self.suites.insert(id, object(suite));
        id
    }

    /// Makes a case in the first suite; its id.
    pub fn add_case(&mut self, title: &str, automation_id: Option<&str>) -> u64 {
        let section = self.sections.keys().next().copied().unwrap_or_else(|| self.add_section("cases", 1, None));
        self.insert_case(section, json!({ "title": title, "custom_automation_id": automation_id }))
    }

    fn add_section(&mut self, name: &str, suite: u64, parent: Option<u64>) -> u64 {
        let id = self.id();
        let depth = parent.and_then(|p| self.sections.get(&p)?.get("depth")?.as_u64()).map_or(0, |depth| depth + 1);
        let section = json!({ "id": id, "name": name, "suite_id": suite, "parent_id": parent, "depth": depth,
            "description": null, "display_order": id });
        self.sections.insert(id, object(section));
        id
    }

    fn insert_case(&mut self, section: u64, given: Value) -> u64 {
        let id = self.id();
        let suite = self.sections.get(&section).and_then(|s| s.get("suite_id")?.as_u64()).unwrap_or(1);
        let mut case = object(json!({ "template_id": 1, "type_id": 1, "priority_id": 2, "refs": null,
            "milestone_id": null, "estimate": null, "custom_automation_id": null }));
        case.extend(object(given));
        case.extend(object(json!({ "id": id, "section_id": section, "suite_id": suite })));
        self.cases.insert(id, case);
        self.case_added(suite, id);
        id
    }

    /// The suite that a call is about. Where there are several it must be named.
    pub(super) fn suite(&self, given: Option<u64>) -> Result<u64, Answer> {
        match given {
            Some(suite) if self.suites.contains_key(&suite) => Ok(suite),
            None if self.options.suite_mode != 3 => Ok(1),
            _ => Err(invalid("suite_id")),
        }
    }

    /// Those of the suite that the call names.
    fn of_suite<'a>(&self, call: &Call<'_>, all: &'a BTreeMap<u64, Object>) -> Result<Vec<&'a Object>, Answer> {
        let suite = self.suite(call.request.number("suite_id"))?;
        Ok(all.values().filter(|one| one.get("suite_id").and_then(Value::as_u64) == Some(suite)).collect())
    }

    pub(super) fn get_cases(&self, call: &Call<'_>, name: &str, id: u64) -> Reply {
        match name {
            "get_projects" => Ok(self.list(call, "projects", &[self.project()], Value::clone)),
            "get_project" => {
                if id == 1 {
                    Ok(self.project())
                } else {
                    Err(invalid("project_id"))
                }
            }
            "get_suites" => Ok(self.list(call, "suites", &self.suites.values().collect::<Vec<_>>(), |o| shown(o))),
            "get_suite" => one(self.suites.get(&id), "suite_id"),
            "get_sections" => Ok(self.list(call, "sections", &self.of_suite(call, &self.sections)?, |o| shown(o))),
            "get_section" => one(self.sections.get(&id), "section_id"),
            "get_cases" => Ok(self.list(call, "cases", &self.of_suite(call, &self.cases)?, |o| shown(o))),
            "get_case" => one(self.cases.get(&id), "case_id"),
            "get_plans" | "get_milestones" => Ok(self.list(call, &name[4..], &[], Value::clone)),
            _ => self.get_settings(call, name),
        }
    }

    fn get_settings(&self, call: &Call<'_>, name: &str) -> Reply {
        let user = json!({ "id": 3, "name": "Bot", "email": self.options.login.0, "is_active": true, "role_id": 1 });
        Ok(match name {
            "get_statuses" => self.statuses.iter().map(|(id, name)| status(*id, name)).collect(),
            "get_case_fields" => json!([field(1, "automation_id", "custom_automation_id", 1)]),
            "get_result_fields" => {
                let all = (11..).zip(&self.options.result_fields);
                all.map(|(id, name)| field(id, name.trim_start_matches("custom_"), name, 3)).collect()
            }
            "get_priorities" => {
                json!([{ "id": 2, "name": "Medium", "short_name": "Med", "is_default": true, "priority": 2 }])
            }
            "get_templates" => json!([{ "id": 1, "name": "Test Case (Text)", "is_default": true }]),
            "get_case_types" => json!([{ "id": 1, "name": "Automated", "is_default": true }]),
            "get_configs" => json!([]),
            "get_users" => self.list(call, "users", &[user], Value::clone),
            "get_user" | "get_current_user" => user,
            "get_user_by_email" if call.request.query("email") == Some(&self.options.login.0) => user,
            "get_user_by_email" => return Err(invalid("email")),
            _ => return Err(refused(404, &format!("Unknown method '{name}'"))),
        })
    }

    fn project(&self) -> Value {
        json!({ "id": 1, "name": "acme", "suite_mode": self.options.suite_mode, "is_completed": false,
            "announcement": null, "show_announcement": false, "completed_on": null, "url": "/projects/1" })
    }

    pub(super) fn post_case(&mut self, call: &Call<'_>, name: &str, id: u64) -> Reply {
        let body = call.request.json();
        let title = body.get("name").or(body.get("title")).and_then(Value::as_str);
        match name {
            "add_suite" => {
                let id = self.add_suite(title.ok_or_else(|| invalid("name"))?);
                one(self.suites.get(&id), "suite_id")
            }
            "add_section" => {
                let suite = self.suite(number(&body, "suite_id"))?;
                let title = title.ok_or_else(|| invalid("name"))?;
                let id = self.add_section(title, suite, number(&body, "parent_id"));
                one(self.sections.get(&id), "section_id")
            }
            "add_case" => {
                one(self.sections.get(&id), "section_id")?;
                title.ok_or_else(|| invalid("title"))?;
                let id = self.insert_case(id, body.clone());
                one(self.cases.get(&id), "case_id")
            }
            "update_case" => {
                let case = self.cases.get_mut(&id).ok_or_else(|| invalid("case_id"))?;
                case.extend(object(body));
                one(Some(case), "case_id")
            }
            "delete_section" => self.sections.remove(&id).map(|_| json!({})).ok_or_else(|| invalid("section_id")),
            "delete_suite" => self.suites.remove(&id).map(|_| json!({})).ok_or_else(|| invalid("suite_id")),
            "delete_case" | "delete_cases" => {
                let gone = numbers(body.get("case_ids")).unwrap_or_else(|| vec![id]);
                self.cases.retain(|case, _| !gone.contains(case));
                Ok(json!({}))
            }
            _ => Err(refused(404, &format!("Unknown method '{name}'"))),
        }
    }
}

fn status(id: u64, name: &str) -> Value {
    json!({ "id": id, "name": name, "label": name, "color_dark": 0, "color_medium": 0, "color_bright": 0,
        "is_system": id <= 5, "is_untested": id == UNTESTED, "is_final": id != UNTESTED && id != 4 })
}

fn field(id: u64, name: &str, system_name: &str, kind: u64) -> Value {
    let context = json!({ "is_global": true, "project_ids": [] });
    json!({ "id": id, "is_active": true, "type_id": kind, "name": name, "system_name": system_name, "label": name,
        "description": null, "display_order": id, "include_all": true, "template_ids": [],
        "configs": [{ "id": "1", "context": context, "options": { "is_required": false } }] })
}

pub(super) fn object(value: Value) -> Object {
    if let Value::Object(members) = value { members } else { Object::new() }
}

fn shown(object: &Object) -> Value {
    Value::Object(object.clone())
}

fn one(found: Option<&Object>, field: &str) -> Reply {
    found.cloned().map(Value::Object).ok_or_else(|| invalid(field))
}
