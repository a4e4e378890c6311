//! Launches: started under a UUID, finished once.

use serde_json::{Value, json};

use super::{Reply, ReportPortal, duplicate, moment, refused, shown};
use crate::stubs::{Answer, Call, Stamp};

const NAME_CHARS_MAX: usize = 256;

/// One launch.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) uuid: String,
    pub(super) name: String,
    pub(super) status: String,
    pub(super) start_ms: i64,
    description: String,
    attributes: Value,
}

impl Launch {
    pub(super) fn json(&self, id: u64) -> Value {
        json!({
            "id": id, "uuid": self.uuid, "name": self.name, "number": id, "status": self.status,
            "startTime": shown(self.start_ms), "description": self.description, "attributes": self.attributes,
            "mode": "DEFAULT",
        })
    }
}

impl ReportPortal {
    pub(super) fn launch(&self, uuid: &str) -> Result<(u64, &Launch), Answer> {
        let found = self.launches.iter().find(|(_, launch)| launch.uuid == uuid);
        let missing = || refused(404, 4041, &format!("Launch '{uuid}' not found. Did you use correct Launch ID?"));
        found.map(|(id, launch)| (*id, launch)).ok_or_else(missing)
    }

    pub(super) fn list_launches(&self, call: &Call<'_>) -> Value {
        let name = call.request.query("filter.eq.name");
        let found: Vec<(&u64, &Launch)> =
            self.launches.iter().filter(|(_, launch)| name.is_none_or(|name| launch.name == name)).collect();
        let number = call.request.number("page.page").unwrap_or(1).max(1) as usize;
        let size = call.request.number("page.size").unwrap_or(20).clamp(1, 300) as usize;
        let content: Vec<Value> =
            call.page(&found, (number - 1) * size, size).iter().map(|(id, launch)| launch.json(**id)).collect();
        let pages = found.len().div_ceil(size).max(1);
        let page = json!({ "number": number, "size": size, "totalElements": found.len(), "totalPages": pages });
        json!({ "content": content, "page": page })
    }

    /// The status of a launch.
    pub fn status(&self, uuid: &str) -> Option<&str> {
        self.launch(uuid).ok().map(|(_, launch)| launch.status.as_str())
    }

    /// The verdict of a launch follows its items, also once it is finished.
    pub(super) fn follow(&mut self, id: u64) {
        let failed = self.items.iter().any(|row| row.data.launch == id && row.data.status == "FAILED");
        if let Some(launch) = self.launches.get_mut(&id).filter(|launch| launch.status != "IN_PROGRESS") {
            (if failed { "FAILED" } else { "PASSED" }).clone_into(&mut launch.status);
        }
    }

    fn launch_numbered(&mut self, id: &str) -> Result<(u64, &mut Launch), Answer> {
        let missing = || refused(404, 4041, &format!("Launch '{id}' not found. Did you use correct Launch ID?"));
        let number = id.parse::<u64>().map_err(|_| missing())?;
        Ok((number, self.launches.get_mut(&number).ok_or_else(missing)?))
    }

    pub(super) fn start_launch(&mut self, _now: Stamp, body: &Value, kept: &dyn Fn(&str) -> String) -> Reply {
        let name = body["name"].as_str().filter(|name| !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX);
        let name = name.ok_or_else(|| refused(400, 4001, "Incorrect Request. Field 'name' is required, up to 256"))?;
        let start_ms = moment(&body["startTime"]);
        let start_ms =
            start_ms.ok_or_else(|| refused(400, 4001, "Incorrect Request. Field 'startTime' is required"))?;
        let uuid = self.uuid(body);
        if self.launch(&uuid).is_ok() {
            return Err(duplicate("launch_uuid_key", &uuid));
        }
        let id = self.launches.keys().last().map_or(77, |last| last + 1);
        let launch = Launch {
            uuid: uuid.clone(),
            name: kept(name),
            status: "IN_PROGRESS".to_owned(),
            start_ms,
            description: kept(body["description"].as_str().unwrap_or_default()),
            attributes: json!(body["attributes"].as_array().cloned().unwrap_or_default()),
        };
        self.launches.insert(id, launch);
        Ok(json!({ "id": uuid, "number": id }))
    }

    /// Items that are still open are interrupted by it.
    pub(super) fn finish_launch(&mut self, now: Stamp, uuid: &str, body: &Value) -> Reply {
        let (id, launch) = self.launch(uuid)?;
        if launch.status != "IN_PROGRESS" {
            let text =
                format!("Finish launch is not allowed. Launch '{id}' already finished with status '{}'", launch.status);
            return Err(refused(406, 40_023, &text));
        }
        if moment(&body["endTime"]).is_none_or(|end| end < launch.start_ms) {
            return Err(refused(406, 40_026, "Finish time is earlier than start time"));
        }
        let failed = self.items.iter().any(|row| row.data.launch == id && row.data.status == "FAILED");
        self.end_launch(now, id, if failed { "FAILED" } else { "PASSED" });
        Ok(json!({ "id": uuid, "number": id, "link": format!("/ui/#{}/launches/all/{id}", self.project) }))
    }

    pub(super) fn stop_launch(&mut self, now: Stamp, id: &str) -> Reply {
        let (id, _) = self.launch_numbered(id)?;
        self.end_launch(now, id, "STOPPED");
        Ok(json!({ "message": "stopped" }))
    }

    fn end_launch(&mut self, now: Stamp, id: u64, status: &str) {
        if let Some(launch) = self.launches.get_mut(&id) {
            status.clone_into(&mut launch.status);
        }
        for item in self.open_items(id) {
            self.items.change(item, now, |item| "INTERRUPTED".clone_into(&mut item.status));
        }
    }

    pub(super) fn delete_launch(&mut self, id: &str) -> Reply {
        let (id, launch) = self.launch_numbered(id)?;
        if launch.status == "IN_PROGRESS" {
            return Err(refused(406, 40_010, "Launch is not finished. Unable to delete it in progress state"));
        }
        self.launches.remove(&id);
        self.items.retain(|row| row.data.launch != id);
        Ok(json!({ "message": "deleted" }))
    }
}
