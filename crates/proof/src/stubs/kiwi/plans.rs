//! Products, versions, builds, plans and cases. Must not know runs.

use serde_json::{Value, json};

use super::data::object;
use super::query::select;
use super::{Kiwi, Object, Reply, internal, invalid, missing, number, param};
use crate::stubs::Call;

const PRODUCT: &str = "Shop";
const SUMMARY_CHARS_MAX: usize = 255;

impl Kiwi {
    /// One more version of the product, with the build that each has.
    pub fn add_version(&mut self, value: &str) -> u64 {
        let id = self.id();
        self.versions.push(object(json!({ "id": id, "value": value, "product": 1, "product__name": PRODUCT })));
        self.push_build("unspecified", id, value);
        id
    }

    fn push_build(&mut self, name: &str, version: u64, value: &str) -> Value {
        let id = self.id();
        let build = json!({
            "id": id, "name": name, "version": version, "version__value": value, "is_active": true,
            "+version__product__name": PRODUCT,
        });
        self.builds.push(object(build));
        json!({ "id": id, "name": name, "version": version, "is_active": true })
    }

    /// One more plan of the product.
    pub fn add_plan(&mut self, name: &str) -> u64 {
        let id = self.id();
        let version = self.versions.last().map(|version| version["id"].clone());
        let plan = json!({
            "id": id, "name": name, "product": 1, "product__name": PRODUCT, "product_version": version, "author": 2,
            "is_active": true,
        });
        self.plans.push(object(plan));
        id
    }

    /// One more case; `confirmed`: it can be added to runs.
    pub fn add_case(&mut self, summary: &str, confirmed: bool) -> u64 {
        let id = self.id();
        let status = if confirmed { (2, "CONFIRMED") } else { (1, "PROPOSED") };
        let case = json!({
            "id": id, "summary": summary, "category": 1, "category__name": "--default--", "priority": 1,
            "case_status": status.0, "case_status__name": status.1, "is_automated": true,
            "+category__product": 1, "+category__product__name": PRODUCT, "+plan": [],
        });
        self.cases.push(object(case));
        id
    }

    pub(super) fn is_confirmed(case: &Object) -> bool {
        case["case_status"] == json!(2)
    }

    pub(super) fn plan_call(&mut self, call: &Call<'_>, table: &str, name: &str, params: &[Value]) -> Reply {
        let query = params.first();
        let one = |row: Value| select([object(row)], query);
        match (table, name) {
            ("User", "filter") => Ok(json!([{ "id": 2, "username": self.options.login.0, "is_active": true }])),
            ("Classification", "filter") => one(json!({ "id": 1, "name": "Rig" })),
            ("Product", "filter") => one(json!({ "id": 1, "name": PRODUCT, "classification": 1 })),
            ("PlanType", "filter") => one(json!({ "id": 2, "name": "Integration" })),
            ("Priority", "filter") => one(json!({ "id": 1, "value": "P1", "is_active": true })),
            ("Category", "filter") => {
                one(json!({ "id": 1, "name": "--default--", "product": 1, "+product__name": PRODUCT }))
            }
            ("TestCaseStatus", "filter") => {
                let all = [(1, "PROPOSED", false), (2, "CONFIRMED", true), (3, "DISABLED", false)];
                let row = |(id, name, yes)| object(json!({ "id": id, "name": name, "is_confirmed": yes }));
                select(all.map(row), query)
            }
            ("TestExecutionStatus", "filter") => select(self.statuses.clone(), query),
            ("Version", "filter") => select(self.versions.clone(), query),
            ("Build", "filter") => select(self.builds.clone(), query),
            ("TestPlan", "filter") => select(self.plans.clone(), query),
            ("TestCase", "filter") => select(self.cases.iter().cloned().map(escaped), query),
            ("Auth", "logout") => Ok(Value::Null),
            ("Version", "create") => {
                let id = self.add_version(param(params, 0)?["value"].as_str().unwrap_or_default());
                Ok(json!({ "id": id }))
            }
            ("Build", "create") => self.create_build(param(params, 0)?),
            ("TestPlan", "create") => {
                let id = self.add_plan(param(params, 0)?["name"].as_str().unwrap_or_default());
                Ok(json!({ "id": id }))
            }
            ("TestPlan", "add_case") => self.add_case_to_plan(params),
            ("TestCase", "create") => self.create_case(call, param(params, 0)?),
            _ => Err(internal("not played")),
        }
    }

    fn create_build(&mut self, values: &Value) -> Reply {
        let version = self.versions.iter().find(|version| version["id"] == values["version"]).cloned();
        let version = version.ok_or_else(|| invalid("version", super::NO_CHOICE))?;
        let name = values["name"].as_str().unwrap_or_default();
        if self.builds.iter().any(|build| build["name"] == json!(name) && build["version"] == version["id"]) {
            return Err(invalid("__all__", "Build with this Version and Name already exists."));
        }
        let value = version["value"].as_str().unwrap_or_default().to_owned();
        Ok(self.push_build(name, version["id"].as_u64().unwrap_or_default(), &value))
    }

    fn create_case(&mut self, call: &Call<'_>, values: &Value) -> Reply {
        let summary = call.kept(values["summary"].as_str().unwrap_or_default().trim());
        let chars = summary.chars().count();
        if chars > SUMMARY_CHARS_MAX {
            let text = format!("Ensure this value has at most {SUMMARY_CHARS_MAX} characters (it has {chars}).");
            return Err(invalid("summary", &text));
        }
        for field in ["summary", "category", "priority", "case_status"] {
            if values.get(field).is_none_or(|value| value.is_null() || value == "") {
                return Err(invalid(field, "This field is required."));
            }
        }
        let id = self.add_case(&summary, values["case_status"] == json!(2));
        Ok(json!({ "id": id, "summary": summary, "case_status": values["case_status"] }))
    }

    /// A second time it does nothing.
    fn add_case_to_plan(&mut self, params: &[Value]) -> Reply {
        let (plan, case) = (number(params, 0)?, number(params, 1)?);
        self.plans.iter().find(|row| row["id"] == json!(plan)).ok_or_else(|| missing("TestPlan"))?;
        let case = self.cases.iter_mut().find(|row| row["id"] == json!(case)).ok_or_else(|| missing("TestCase"))?;
        let plans = case.get_mut("+plan").and_then(Value::as_array_mut);
        if let Some(plans) = plans.filter(|plans| !plans.contains(&json!(plan))) {
            plans.push(json!(plan));
        }
        Ok(json!({ "id": case["id"], "summary": case["summary"], "sortkey": 0 }))
    }

    /// How many cases a plan has.
    pub fn cases_of_plan(&self, plan: u64) -> usize {
        let is_in = |case: &&Object| case["+plan"].as_array().is_some_and(|plans| plans.contains(&json!(plan)));
        self.cases.iter().filter(is_in).count()
    }
}

/// Texts leave it as HTML would have them, and are looked up as they were sent.
fn escaped(mut case: Object) -> Object {
    let summary = case["summary"].as_str().unwrap_or_default().to_owned();
    let escaped = quick_xml::escape::escape(summary.as_str()).replace("&apos;", "&#x27;");
    case.insert("+summary".to_owned(), json!(summary));
    case.insert("summary".to_owned(), json!(escaped));
    case
}
