//! What people put into a product before outcomes come: cases, and plans. By the product's own interface. Must not write an
//! outcome.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::Live;
use super::wire::post;
use crate::rigs::{Rig, Vendor};
use crate::stubs::xml_rpc;

/// A session of the user of a rig.
#[derive(Debug)]
pub struct World<'a> {
    rig: &'a Rig,
    upstream: SocketAddr,
    session: String,
}

impl<'a> World<'a> {
    /// Logs in.
    ///
    /// # Errors
    /// The product does not answer, or refuses.
    pub fn of(rig: &'a Rig) -> anyhow::Result<Self> {
        let upstream = Live::of(rig, "")?.upstream;
        let mut world = Self { rig, upstream, session: String::new() };
        let who = match rig.vendor() {
            Vendor::Kiwi => json!([rig.user(), rig.password()]),
            Vendor::Nitrate => json!([{"username": rig.user(), "password": rig.password()}]),
        };
        let answer = world.call("Auth.login", &who)?;
        answer.as_str().context("no session")?.clone_into(&mut world.session);
        Ok(world)
    }

    /// Cases of these summaries, ready to be run; their numbers.
    ///
    /// # Errors
    /// One can't be made.
    pub fn add_cases(&self, summaries: &[String]) -> anyhow::Result<Vec<u64>> {
        let first = |method: &str, query: Value| -> anyhow::Result<Value> {
            let rows = self.call(method, &json!([query]))?;
            rows.get(0).cloned().with_context(|| format!("{method} gives nothing"))
        };
        let mut case = match self.rig.vendor() {
            Vendor::Kiwi => json!({
                "product": first("Product.filter", json!({"name": self.rig.product()}))?["id"],
                "category": first("Category.filter", json!({"product__name": self.rig.product()}))?["id"],
                "priority": first("Priority.filter", json!({}))?["id"],
                "case_status": first("TestCaseStatus.filter", json!({"is_confirmed": true}))?["id"],
            }),
            Vendor::Nitrate => {
                let product = first("Product.filter", json!({"name": self.rig.product()}))?["id"].clone();
                let category = first("Product.get_categories", product.clone())?["id"].clone();
                // The statuses and priorities that come with the migrations: CONFIRMED, P1.
                json!({"product": product, "category": category, "priority": 1, "case_status": 2, "is_automated": 1})
            }
        };
        let mut numbers = Vec::new();
        for summary in summaries {
            case["summary"] = json!(summary);
            let made = self.call("TestCase.create", &json!([case]))?;
            let number = made["id"].as_u64().or_else(|| made["case_id"].as_u64());
            numbers.push(number.with_context(|| format!("TestCase.create: {made}"))?);
        }
        Ok(numbers)
    }

    /// An empty plan of this name.
    ///
    /// # Errors
    /// It can't be made.
    pub fn add_plan(&self, name: &str) -> anyhow::Result<()> {
        let plan = match self.rig.vendor() {
            Vendor::Kiwi => {
                let versions = self.call("Version.filter", &json!([{"value": self.rig.version()}]))?;
                let kinds = self.call("PlanType.filter", &json!([{}]))?;
                json!({"name": name, "text": "", "product": versions[0]["product"], "is_active": true,
                       "product_version": versions[0]["id"], "type": kinds[0]["id"]})
            }
            // The seed's product, its own version after the one that comes with every product, the first plan type.
            Vendor::Nitrate => json!({"name": name, "text": "plan", "product": 1, "product_version": 2,
                                      "default_product_version": 2, "type": 1}),
        };
        self.call("TestPlan.create", &json!([plan])).map(|_| ())
    }

    /// An empty run in a plan of Kiwi TCMS; its number.
    ///
    /// # Errors
    /// It can't be made.
    pub fn add_run(&self, plan: &str, summary: &str) -> anyhow::Result<u64> {
        let id = |method: &str, query: Value| -> anyhow::Result<Value> {
            Ok(self.call(method, &json!([query]))?[0]["id"].clone())
        };
        let run = json!({
            "summary": summary,
            "plan": id("TestPlan.filter", json!({"name": plan}))?,
            "build": id("Build.filter", json!({"name": self.rig.build()}))?,
            "manager": id("User.filter", json!({"username": self.rig.user()}))?,
        });
        let made = self.call("TestRun.create", &json!([run]))?;
        made["id"].as_u64().with_context(|| format!("TestRun.create: {made}"))
    }

    /// Any call, past every fault: for what a test has to see that the tables do not show.
    ///
    /// # Errors
    /// The product does not answer, or answers with an error.
    pub fn call(&self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let session = Some(self.session.as_str()).filter(|session| !session.is_empty());
        let path = self.rig.rpc().strip_prefix(self.rig.url()).context("an address of the rig")?;
        let all = params.as_array().context("parameters are a list")?;
        match self.rig.vendor() {
            Vendor::Kiwi => {
                let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
                let (_, answer) = post(self.upstream, path, "application/json", session, &body)?;
                let answer: Value = serde_json::from_str(&answer).with_context(|| format!("{method}: {answer}"))?;
                ensure!(answer.get("error").is_none(), "{method}: {answer}");
                Ok(answer["result"].clone())
            }
            Vendor::Nitrate => {
                let body = xml_rpc::call(method, all);
                let (_, answer) = post(self.upstream, path, "text/xml", session, &body)?;
                xml_rpc::answered(answer.as_bytes()).with_context(|| format!("{method}: {answer}"))
            }
        }
    }
}
