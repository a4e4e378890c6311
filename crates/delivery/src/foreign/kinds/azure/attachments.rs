//! Files of results: in one JSON text each, listed whole. A repeat would add a second one. Must not know where files come from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Azure;
use super::wire::List;
use crate::foreign::attachment::File;
use crate::foreign::caller::Call;
use crate::foreign::entry::{CycleId, Row};
use crate::foreign::kinds::caseless::{encoded, of_form};
use crate::foreign::trouble::Trouble;

/// A file of a result.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    #[serde(default)]
    file_name: String,
}

impl Azure {
    fn files_path(&self, cycle: &CycleId, row: &Row) -> String {
        let (run, result) = (encoded(cycle.as_str()), encoded(row.id.as_str()));
        self.api.path(&format!("runs/{run}/results/{result}/attachments"), "")
    }

    /// The names of a result's files.
    pub(super) async fn files_of(&self, cycle: &CycleId, row: &Row) -> Result<Vec<String>, Trouble> {
        let answer = self.api.call(Call::get(self.files_path(cycle, row))).await?;
        let files: List<Attached> = of_form(&answer)?;
        Ok(files.value.into_iter().map(|file| file.file_name).collect())
    }

    pub(super) async fn add_file(&self, cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        let body = json!({
            "stream": STANDARD.encode(&file.bytes),
            "fileName": file.name,
            "comment": "",
            "attachmentType": "GeneralAttachment",
        });
        let answer = self.api.call(Call::post(self.files_path(cycle, row), &body)).await?;
        of_form::<Value>(&answer).map(drop)
    }
}
