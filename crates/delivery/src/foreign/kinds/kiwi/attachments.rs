//! Files of executions, since 15.3: within the call as Base64. A repeat would add a second one, under a name that is made
//! different. Must not know where files come from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::Kiwi;
use super::rpc::ask;
use crate::foreign::attachment::File;
use crate::foreign::trouble::Trouble;

/// A file of an execution.
#[derive(Deserialize)]
struct Attached {
    filename: Option<String>,
    #[serde(default)]
    url: String,
}

impl Kiwi {
    /// The names of an execution's files.
    pub(super) async fn files_of(&self, execution: u64) -> Result<Vec<String>, Trouble> {
        let files: Vec<Attached> = self.rpc.rows(ask("TestExecution.list_attachments", json!([execution]))).await?;
        let name = |file: Attached| {
            let in_url = || file.url.rsplit('/').next().unwrap_or_default().to_owned();
            file.filename.filter(|name| !name.is_empty()).unwrap_or_else(in_url)
        };
        Ok(files.into_iter().map(name).collect())
    }

    pub(super) async fn add_file(&self, execution: u64, file: &File) -> Result<(), Trouble> {
        let params = json!([execution, file.name, STANDARD.encode(&file.bytes)]);
        self.rpc.write_one(ask("TestExecution.add_attachment", params)).await.map(drop)
    }
}
