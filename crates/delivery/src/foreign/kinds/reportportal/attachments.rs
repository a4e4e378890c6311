//! Files of items: each is a line of the item's log, whose message is the file's name; lists show no other name. A repeat would
//! add a second line. Must not know where files come from.

use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::PageFacts;
use super::{PAGE, ReportPortal};
use crate::foreign::attachment::{File, post_with};
use crate::foreign::caller::Call;
use crate::foreign::entry::{CycleId, Row};
use crate::foreign::kinds::caseless::{Gathered, of_form, rfc3339};
use crate::foreign::trouble::{Trouble, json as json_of};

#[derive(Deserialize)]
struct Lines {
    content: Vec<Line>,
    page: PageFacts,
}

/// A line of a log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: u64,
    #[serde(default)]
    message: String,
    binary_content: Option<Value>,
}

impl ReportPortal {
    /// The names of an item's files.
    pub(super) async fn files_of(&self, row: &Row) -> Result<Vec<String>, Trouble> {
        let item = self.item(row.id.as_str()).await?;
        let item = item.ok_or_else(|| Trouble::Gone(format!("there is no item {}", row.id)))?;
        let mut all = Gathered::new();
        for number in 1.. {
            let query = format!("filter.eq.item={}&page.page={number}&page.size={PAGE}&page.sort=id,ASC", item.id);
            let lines: Lines = of_form(&self.call(Call::get(format!("{}/log?{query}", self.base))).await?)?;
            all.add(lines.content, lines.page.total_elements, |line| line.id.to_string());
            if number >= lines.page.total_pages {
                break;
            }
        }
        let lines = all.whole("the log of the item")?.into_iter();
        Ok(lines.filter(|line| line.binary_content.is_some()).map(|line| line.message).collect())
    }

    pub(super) async fn add_file(&self, cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        let lines = json!([{
            "itemUuid": row.id.as_str(),
            "launchUuid": cycle.as_str(),
            "time": rfc3339(self.clock.unix_ms()),
            "level": "info",
            "message": file.name,
            "file": { "name": file.name },
        }]);
        let call = post_with(format!("{}/log", self.base), Some(("json_request_part", &lines)), "file", file);
        self.call(call).await.and_then(|answer| json_of(&answer)).map(drop)
    }
}
