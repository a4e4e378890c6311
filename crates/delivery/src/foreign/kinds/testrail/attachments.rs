//! Files of results: listed by the test that a result is of, added to one result. A repeat would add a second one, and the
//! site setting that lets results be edited must be on. Must not know where files come from.

use super::wire::{Attached, Outcome, path};
use super::{TestRail, id};
use crate::foreign::attachment::{File, post_file};
use crate::foreign::entry::Row;
use crate::foreign::trouble::Trouble;

impl TestRail {
    /// The names of a result's files.
    pub(super) async fn files_of(&self, run: u64, row: &Row) -> Result<Vec<String>, Trouble> {
        let (result, case) = (id("result", row.id.as_str())?, id("case", row.case.as_str())?);
        let outcomes: Vec<Outcome> = self.api.list(&format!("get_results_for_case/{run}/{case}"), "results").await?;
        let Some(outcome) = outcomes.iter().find(|outcome| outcome.id == result) else {
            return Err(Trouble::Gone(format!("result {result} is not there any more")));
        };
        let call = format!("get_attachments_for_test/{}", outcome.test_id);
        let files: Vec<Attached> = self.api.list(&call, "attachments").await?;
        Ok(files.into_iter().filter(|file| file.may_be_of(result)).map(Attached::into_name).collect())
    }

    pub(super) async fn add_file(&self, result: u64, file: &File) -> Result<(), Trouble> {
        let call = post_file(path(&format!("add_attachment_to_result/{result}")), "attachment", file);
        self.api.call(call).await.map(drop)
    }
}
