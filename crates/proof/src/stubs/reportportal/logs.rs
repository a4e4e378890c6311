//! Lines of logs that carry files, as multipart requests bring them. Plain ones are taken and forgotten.

use serde_json::{Value, json};

use super::{Item, PAGE, PAGE_MAX, Reply, ReportPortal, no_item, refused};
use crate::stubs::{Answer, Call, Row, file};

/// A line with a file.
#[derive(Debug, Clone)]
pub(super) struct Line {
    item: u64,
    message: String,
    bytes: Vec<u8>,
}

impl ReportPortal {
    pub(super) fn add_lines(&mut self, call: &Call<'_>) -> Result<Answer, Answer> {
        let wrong = |what: &str| refused(400, 4001, &format!("Incorrect Request. {what}"));
        let part = call.request.part("json_request_part").ok_or_else(|| wrong("There is no json_request_part"))?;
        let lines: Vec<Value> = serde_json::from_slice(&part.body).map_err(|_| wrong("A list is expected"))?;
        let mut new = Vec::new();
        for line in &lines {
            let uuid = line["itemUuid"].as_str().unwrap_or_default();
            let item = self.items.iter().find(|row| row.data.uuid == uuid).ok_or_else(|| no_item(uuid))?.id;
            let Some(name) = line["file"]["name"].as_str() else { continue };
            let file = call.request.parts.iter().find(|part| part.file.as_deref() == Some(name));
            let bytes = file.ok_or_else(|| wrong("There is no part of that file name"))?.body.clone();
            new.push(Line { item, message: call.kept(line["message"].as_str().unwrap_or_default()), bytes });
        }
        let answers: Vec<Value> = lines.iter().map(|_| json!({ "id": "log" })).collect();
        self.logs.extend(new);
        Ok(Answer::json(201, &json!({ "responses": answers })))
    }

    pub(super) fn list_lines(&self, call: &Call<'_>) -> Reply {
        let item = call.request.number("filter.eq.item");
        let item = item.ok_or_else(|| refused(400, 4001, "Incorrect Request. No item to filter by"))?;
        let found: Vec<(usize, &Line)> = self.logs.iter().enumerate().filter(|(_, line)| line.item == item).collect();
        let number = call.request.number("page.page").unwrap_or(1).max(1) as usize;
        let size = (call.request.number("page.size").unwrap_or(PAGE as u64) as usize).clamp(1, PAGE_MAX);
        let shown = |(at, line): &(usize, &Line)| {
            let content = json!({ "id": at.to_string(), "contentType": "image/png" });
            json!({ "id": at, "message": line.message, "itemId": line.item, "binaryContent": content })
        };
        let content: Vec<Value> = call.page(&found, (number - 1) * size, size).iter().map(shown).collect();
        let (total, pages) = (found.len(), found.len().div_ceil(size).max(1));
        let page = json!({ "number": number, "size": size, "totalElements": total, "totalPages": pages });
        Ok(json!({ "content": content, "page": page }))
    }

    pub(super) fn files_of(&self, row: &Row<Item>) -> Vec<String> {
        self.logs.iter().filter(|line| line.item == row.id).map(|line| file(&line.message, &line.bytes)).collect()
    }
}
