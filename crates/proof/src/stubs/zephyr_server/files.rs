//! Files of results: one that is not there has none.

use serde_json::json;

use super::{Outcome, Reply, ZephyrServer, problem};
use crate::stubs::{Answer, Call, file};

impl ZephyrServer {
    pub(super) fn list_files(&self, id: &str) -> Answer {
        let row = id.parse().ok().and_then(|id| self.results.get(id));
        let files = row.map(|row| row.data.files.as_slice()).unwrap_or_default();
        let shown = |(at, (name, bytes)): (usize, &(String, Vec<u8>))| json!({ "id": at, "filename": name, "filesize": bytes.len(), "url": "" });
        Answer::json(200, &json!(files.iter().enumerate().map(shown).collect::<Vec<_>>()))
    }

    pub(super) fn add_file(&mut self, call: &Call<'_>, id: &str) -> Reply {
        if call.request.header("x-atlassian-token") != Some("no-check") {
            return Err(Answer::html(403, "XSRF check failed"));
        }
        let part = call.request.part("file").ok_or_else(|| problem(400, "The file is required."))?;
        let file = (part.file.clone().unwrap_or_default(), part.body.clone());
        let id = id.parse().map_err(|_| problem(404, "The test result was not found."))?;
        let changed = self.results.change(id, call.now, |outcome| outcome.files.push(file));
        changed.map(|_| Answer::empty(201)).ok_or_else(|| problem(404, "The test result was not found."))
    }
}

pub(super) fn side(outcome: &Outcome) -> Vec<String> {
    outcome.files.iter().map(|(name, bytes)| file(name, bytes)).collect()
}
