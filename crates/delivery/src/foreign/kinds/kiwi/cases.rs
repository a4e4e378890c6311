//! Cases of Kiwi TCMS: found by number or summary, made where that is allowed. Must not know runs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::tcms::{By, Known, LookUp, look_ups};
use super::Kiwi;
use super::rpc::{Ask, ask, parsed};
use crate::foreign::entry::{CaseChoice, CaseWanted};
use crate::foreign::trouble::Trouble;

#[derive(Debug, Deserialize)]
struct CaseRow {
    id: u64,
    summary: String,
}

#[derive(Debug, Deserialize)]
struct Numbered {
    id: u64,
}

impl Kiwi {
    pub(super) async fn choose_cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        let each: Vec<Vec<By>> = wanted.iter().map(By::of).collect();
        let by = each.concat();
        let mut known = self.look_up(&by).await?;
        let missing = known.missing(&by);
        let mut refused = BTreeMap::new();
        if self.settings.create_cases && !missing.is_empty() {
            refused = self.create_cases(&missing).await?;
            // Whoever made one at the same time: of two the oldest counts for both.
            known = self.look_up(&by).await?;
        }
        Ok(each.iter().map(|by| known.choices(by, self.product(), &refused)).collect())
    }

    async fn look_up(&self, by: &[By]) -> Result<Known, Trouble> {
        let ask_for = |look_up: LookUp<'_>| {
            let mut query = json!({"category__product__name": self.product()});
            match look_up {
                LookUp::Numbers(numbers) => query["pk__in"] = json!(numbers),
                LookUp::Summaries(summaries) => query["summary__in"] = json!(summaries),
            }
            ask("TestCase.filter", json!([query]))
        };
        let asks: Vec<Ask> = look_ups(by).into_iter().map(ask_for).collect();
        let mut known = Known::default();
        for rows in self.rpc.read(&asks).await? {
            for row in parsed::<Vec<CaseRow>>(rows)? {
                known.add(row.id, &row.summary);
            }
        }
        Ok(known)
    }

    /// Makes a case for each summary, and puts it into the plan. Gives those that were refused, and why.
    async fn create_cases(&self, summaries: &[String]) -> Result<BTreeMap<String, String>, Trouble> {
        let found = self
            .rpc
            .read(&[
                ask("Category.filter", json!([{"product__name": self.product()}])),
                ask("Priority.filter", json!([{"is_active": true}])),
                ask("TestCaseStatus.filter", json!([{"is_confirmed": true}])),
            ])
            .await?;
        let needed = ["category", "active priority", "case status that counts as confirmed"];
        let mut numbers = Vec::new();
        for (rows, what) in found.into_iter().zip(needed) {
            numbers.push(first(rows, what, self.product())?);
        }
        let plan = self.plan_number().await?;
        let asks: Vec<Ask> = summaries
            .iter()
            .map(|summary| {
                ask(
                    "TestCase.create",
                    json!([{
                        "summary": summary, "category": numbers[0], "priority": numbers[1],
                        "case_status": numbers[2], "is_automated": true,
                    }]),
                )
            })
            .collect();
        let (mut refused, mut made) = (BTreeMap::new(), Vec::new());
        for (said, summary) in self.rpc.write(&asks).await?.into_iter().zip(summaries) {
            match said {
                Ok(case) => made.push(parsed::<Numbered>(case)?.id),
                Err(Trouble::Refused(why) | Trouble::Gone(why)) => {
                    refused.insert(summary.clone(), why);
                }
                Err(other) => return Err(other),
            }
        }
        let asks: Vec<Ask> = made.iter().map(|case| ask("TestPlan.add_case", json!([plan, case]))).collect();
        for said in self.rpc.write(&asks).await? {
            said?;
        }
        Ok(refused)
    }
}

/// The oldest of what was found.
fn first(rows: Value, what: &str, product: &str) -> Result<u64, Trouble> {
    let rows: Vec<Numbered> = parsed(rows)?;
    let oldest = rows.iter().map(|row| row.id).min();
    oldest.ok_or_else(|| Trouble::Refused(format!("cases can't be made: there is no {what} for {product}")))
}
