//! Items: started under a UUID, finished as often as anybody likes.

use serde_json::{Value, json};

use super::{PAGE, PAGE_MAX, Reply, ReportPortal, duplicate, moment, no_item, refused, shown};
use crate::stubs::{Call, Row, Stamp, Told};

const NAME_CHARS_MAX: usize = 1024;
const STATUSES: [&str; 8] = ["PASSED", "FAILED", "SKIPPED", "STOPPED", "INTERRUPTED", "CANCELLED", "INFO", "WARN"];

/// One item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Unique on the server.
    pub uuid: String,
    /// The number of its launch.
    pub launch: u64,
    /// `IN_PROGRESS`, or its verdict.
    pub status: String,
    /// What its launch's clients said of it.
    pub attributes: Value,
    /// What of a defect is waiting to be investigated.
    pub issue: Option<String>,
    /// What people said of that.
    pub remark: Option<String>,
    parent: Option<String>,
    name: String,
    kind: String,
    test_case_id: Option<String>,
    description: Option<String>,
    start_ms: i64,
}

impl Item {
    /// What it is known by across launches.
    pub(super) fn item(&self) -> String {
        self.test_case_id.clone().unwrap_or_else(|| self.name.clone())
    }

    pub(super) fn json(&self, id: u64) -> Value {
        json!({
            "id": id, "uuid": self.uuid, "name": self.name, "type": self.kind, "status": self.status,
            "launchId": self.launch, "testCaseId": self.test_case_id, "description": self.description,
            "startTime": shown(self.start_ms), "attributes": self.attributes, "hasChildren": false,
            "issue": self.issue.as_ref().map(|defect| json!({
                "issueType": defect, "comment": self.remark, "autoAnalyzed": false, "ignoreAnalyzer": false,
                "externalSystemIssues": [],
            })),
        })
    }
}

impl ReportPortal {
    pub(super) fn open_items(&self, launch: u64) -> Vec<u64> {
        let open = |row: &&Row<Item>| row.data.launch == launch && row.data.status == "IN_PROGRESS";
        self.items.iter().filter(open).map(|row| row.id).collect()
    }

    pub(super) fn start_item(
        &mut self,
        now: Stamp,
        parent: Option<&str>,
        body: &Value,
        kept: &dyn Fn(&str) -> String,
    ) -> Reply {
        let missing = |name: &str| refused(400, 4001, &format!("Incorrect Request. Field '{name}' can't be used"));
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let (launch, about) = self.launch(body["launchUuid"].as_str().unwrap_or_default())?;
        let launch_start_ms = about.start_ms;
        let name = text("name").filter(|name| !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX);
        let kind = text("type").map(|kind| kind.to_uppercase());
        let start_ms = moment(&body["startTime"]).ok_or_else(|| missing("startTime"))?;
        let begun_ms = match parent {
            None => launch_start_ms,
            Some(parent) => {
                let found = self.items.iter().find(|row| row.data.uuid == *parent);
                found.ok_or_else(|| no_item(parent))?.data.start_ms
            }
        };
        if start_ms < begun_ms {
            let text = format!("Start time of child ['{start_ms}'] item should be same or later than of its parent");
            return Err(refused(406, 40_025, &text));
        }
        if parent.is_none() && body["retry"] == json!(true) {
            return Err(refused(400, 40_016, "Error in handled Request. Root test item can't be a retry."));
        }
        let uuid = self.uuid(body);
        let item = Item {
            uuid: uuid.clone(),
            launch,
            status: "IN_PROGRESS".to_owned(),
            attributes: json!(body["attributes"].as_array().map(|all| kept_values(all, kept)).unwrap_or_default()),
            issue: None,
            remark: None,
            parent: parent.map(str::to_owned),
            name: kept(&name.ok_or_else(|| missing("name"))?),
            kind: kind.ok_or_else(|| missing("type"))?,
            test_case_id: text("testCaseId"),
            description: text("description").map(|text| kept(&text)),
            start_ms,
        };
        match self.items.write(now, item, |other| other.uuid == uuid) {
            Told::Refused(_) => Err(duplicate("test_item_uuid_key", &uuid)),
            told => Ok(json!({ "id": uuid, "uniqueId": format!("auto:{:032x}", told.id()) })),
        }
    }

    pub(super) fn finish_item(&mut self, now: Stamp, uuid: &str, body: &Value) -> Reply {
        let found = self.items.iter().find(|row| row.data.uuid == uuid).ok_or_else(|| no_item(uuid))?;
        let (id, start_ms, launch) = (found.id, found.data.start_ms, found.data.launch);
        if moment(&body["endTime"]).is_none_or(|end| end < start_ms) {
            return Err(refused(406, 40_026, "Finish time is earlier than start time"));
        }
        let status = body["status"].as_str().unwrap_or("passed").to_uppercase();
        if !STATUSES.contains(&status.as_str()) {
            return Err(refused(400, 4001, &format!("Incorrect Request. There is no status '{status}'")));
        }
        let children: Vec<u64> = self
            .items
            .iter()
            .filter(|row| row.data.parent.as_deref() == Some(uuid) && row.data.status == "IN_PROGRESS")
            .map(|row| row.id)
            .collect();
        for child in children {
            self.items.change(child, now, |item| "INTERRUPTED".clone_into(&mut item.status));
        }
        let waived = body["issue"]["issueType"] == json!("NOT_ISSUE");
        self.items.change(id, now, |item| {
            item.issue = (matches!(status.as_str(), "FAILED" | "SKIPPED") && !waived).then(|| "ti001".to_owned());
            item.status = status;
        });
        self.follow(launch);
        Ok(json!({ "message": format!("TestItem with ID = '{uuid}' successfully finished.") }))
    }

    pub(super) fn update_item(&mut self, now: Stamp, id: &str, body: &Value, kept: &dyn Fn(&str) -> String) -> Reply {
        let number = id.parse().ok().filter(|id| self.items.get(*id).is_some()).ok_or_else(|| no_item(id))?;
        self.items.change(number, now, |item| {
            if let Some(status) = body["status"].as_str() {
                item.status = status.to_uppercase();
            }
            if let Some(attributes) = body["attributes"].as_array() {
                item.attributes = json!(kept_values(attributes, kept));
            }
            if let Some(description) = body["description"].as_str() {
                item.description = Some(kept(description));
            }
        });
        Ok(json!({ "message": "updated" }))
    }

    pub(super) fn delete_item(&mut self, id: &str) -> Reply {
        let found = id.parse().ok().and_then(|id| self.items.get(id)).ok_or_else(|| no_item(id))?;
        let (id, launch) = (found.id, found.data.launch);
        if found.data.status == "IN_PROGRESS" {
            return Err(refused(406, 40_011, "Test item is not finished"));
        }
        if self.launches.get(&launch).is_some_and(|launch| launch.status == "IN_PROGRESS") {
            return Err(refused(406, 40_010, "Launch is not finished. Unable to delete an item of it"));
        }
        self.items.retain(|row| row.id != id);
        Ok(json!({ "message": "deleted" }))
    }

    pub(super) fn list_items(&self, call: &Call<'_>) -> Reply {
        let launch = call.request.number("filter.eq.launchId");
        let uuid = call.request.query("filter.eq.uuid");
        let launch = launch.ok_or_else(|| refused(400, 4001, "Incorrect Request. No launch to filter by"))?;
        let of = |item: &Item| item.launch == launch && uuid.is_none_or(|uuid| item.uuid == uuid);
        let found: Vec<(u64, &Item)> = self.items.shown(call).filter(|(_, item)| of(item)).collect();
        let number = call.request.number("page.page").unwrap_or(1).max(1) as usize;
        let size = (call.request.number("page.size").unwrap_or(PAGE as u64) as usize).clamp(1, PAGE_MAX);
        let content: Vec<Value> =
            call.page(&found, (number - 1) * size, size).iter().map(|(id, item)| item.json(*id)).collect();
        let (total, pages) = (found.len(), found.len().div_ceil(size).max(1));
        let page = json!({ "number": number, "size": size, "totalElements": total, "totalPages": pages });
        Ok(json!({ "content": content, "page": page }))
    }
}

fn kept_values(attributes: &[Value], kept: &dyn Fn(&str) -> String) -> Vec<Value> {
    let one = |attribute: &Value| json!({ "key": attribute["key"], "value": kept(attribute["value"].as_str().unwrap_or_default()) });
    attributes.iter().map(one).collect()
}
