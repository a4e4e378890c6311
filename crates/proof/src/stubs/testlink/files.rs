//! Files of executions: taken, and listed by no call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::shown::number;
use super::{Execution, Reply, TestLink};
use crate::stubs::{Call, file};

impl TestLink {
    pub(super) fn add_file(&mut self, call: &Call<'_>, args: &Value) -> Reply {
        let text = |name: &str| args[name].as_str().filter(|text| !text.is_empty());
        let (Some(name), Some(content)) = (text("filename"), text("content")) else {
            return Err((9001, "(file name and content are needed)"));
        };
        let bytes = STANDARD.decode(content).map_err(|_| (9002, "(content is no Base64)"))?;
        let id = number(args, "executionid").unwrap_or(0);
        let added = self.executions.change(id, call.now, |execution| execution.files.push((name.to_owned(), bytes)));
        added.map(|row| json!({ "fk_id": row.id, "file_name": name })).ok_or((231, "(no such execution)"))
    }
}

pub(super) fn side(execution: &Execution) -> Vec<String> {
    execution.files.iter().map(|(name, bytes)| file(name, bytes)).collect()
}
