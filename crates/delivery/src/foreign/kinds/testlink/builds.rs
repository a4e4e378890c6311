//! Builds by their numbers, and how those that are made are called. Must not know cases or executions.

use serde_json::json;

use super::super::xmlrpc::text;
use super::{Place, TestLink, elements, number};
use crate::foreign::entry::{CycleId, CycleWanted};
use crate::foreign::text::cut;
use crate::foreign::trouble::Trouble;

/// Most characters of a build's name.
const BUILD_CHARS_MAX: usize = 100;
/// Our tag in it, with the space before.
const TAG_CHARS: usize = 30;

impl TestLink {
    /// The number of a build, which the configuration may give by its name.
    pub(super) async fn build(&self, place: &Place, build: &CycleId) -> Result<i64, Trouble> {
        if let Ok(number) = build.as_str().parse() {
            return Ok(number);
        }
        let mut known = self.builds.lock().await;
        if let Some(number) = known.get(build) {
            return Ok(*number);
        }
        let builds = self.rpc.read("tl.getBuildsForTestPlan", json!({"testplanid": place.plan})).await?;
        let found =
            elements(&builds).find(|row| text(&row["name"]) == build.as_str()).and_then(|row| number(row, "id"));
        let found = found.ok_or_else(|| Trouble::Gone(format!("test plan {:?} has no build {build}", self.plan)))?;
        known.insert(build.clone(), found);
        Ok(found)
    }

    /// The name of a build: what people read, and the tag whole.
    pub(super) fn build_name(wanted: &CycleWanted) -> String {
        format!("{} {}", cut(&wanted.name, BUILD_CHARS_MAX - TAG_CHARS).trim_end(), wanted.tag())
    }
}
