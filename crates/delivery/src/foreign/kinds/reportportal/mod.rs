//! `ReportPortal`: launches and items take UUIDs of ours, and a repeat breaks a unique key (`facts/targets.md`, section
//! 12). Items are roots of their launch. By API v1 alone: v2 accepts and may drop. Must not know any strategy.

mod attachments;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use domain::Status;
use domain::marker::{ContentTag, Marker, uuid_within};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::OpenError;
use super::caseless::{
    Gathered, absent, duration_ms, encoded, itself, of_cases, of_form, rfc3339, row_status, shortened,
};
use crate::classify::Answer;
use crate::clock::Clock;
use crate::foreign::adapter::{Adapter, Closing, Ending, Namesake, Written};
use crate::foreign::attachment::{File, Listed};
use crate::foreign::caller::{Call, Caller, Nature};
use crate::foreign::entry::{
    CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId, RowStatus,
};
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::settings::TargetSettings;
use crate::foreign::trouble::{Trouble, json};
use wire::{FINISHED, Item, Launch, Launches, Made, Moment, NO_ITEM, NO_LAUNCH, Page, Shown, judged, problem};

/// The largest page that is asked for.
const PAGE: usize = 300;
const LAUNCH_NAME_CHARS_MAX: usize = 256;
const ITEM_NAME_CHARS_MAX: usize = 1024;
/// The attribute that holds the tag of a launch and the marker of an item.
const ATTRIBUTE: &str = "tallyonce";

/// What is known of `ReportPortal`.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Reportportal,
    key_on_write: KeyOnWrite::Refuses,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: true,
    marker: MarkerFacts {
        level: MarkerLevel::M1,
        field: "uuid, and attribute tallyonce",
        chars_max: 512,
        editable: true,
    },
    bulk: Bulk { items_max: 1, atomic: false },
    visible: Visible::AtOnce,
    repair: Repair { delete: true, amend: true, delete_cycle: true },
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Idempotent, Strategy::Reconcile],
    races: &[Race::R4],
};

/// One project.
pub(crate) struct ReportPortal {
    caller: Caller,
    settings: TargetSettings,
    clock: Arc<dyn Clock>,
    base: String,
    /// Launches by UUID. Neither their number nor their beginning ever changes.
    launches: Mutex<BTreeMap<CycleId, Launch>>,
}

impl fmt::Debug for ReportPortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportPortal").field("caller", &self.caller).field("base", &self.base).finish_non_exhaustive()
    }
}

pub(crate) fn open(settings: TargetSettings, caller: Caller, clock: Arc<dyn Clock>) -> Result<ReportPortal, OpenError> {
    let token = settings.token.as_ref().ok_or(OpenError::Credential("the API key (token)"))?;
    let caller = caller.bearer(token)?;
    settings.options.clone().finish()?;
    let base = format!("/api/v1/{}", encoded(&settings.project));
    Ok(ReportPortal { caller, settings, clock, base, launches: Mutex::default() })
}

impl ReportPortal {
    fn word(&self, status: Status) -> String {
        let usual = match status {
            Status::Passed => "passed",
            // There is no status for what could not be carried out.
            Status::Failed | Status::Errored => "failed",
            Status::Skipped => "skipped",
        };
        self.settings.status(status).unwrap_or(usual).to_owned()
    }

    /// The UUID of a round's launch in this project: the same for every writer.
    fn launch_uuid(&self, wanted: &CycleWanted) -> CycleId {
        CycleId::new(uuid_within(&self.settings.project, &wanted.id.uuid(ContentTag::of(&[]))))
    }

    async fn call(&self, call: Call) -> Result<Answer, Trouble> {
        let nature = call.nature();
        judged(self.caller.ask(call).await?, nature)
    }

    /// What a UUID names; `None` if the server says in its own words that it names nothing.
    async fn look<T: for<'de> Deserialize<'de>>(&self, path: String, nothing: u64) -> Result<Option<T>, Trouble> {
        let answer = self.caller.ask(Call::get(path)).await?;
        if answer.status == 404 && problem(&answer).is_some_and(|problem| problem.error_code == nothing) {
            return Ok(None);
        }
        of_form(&judged(answer, Nature::Reads)?).map(Some)
    }

    async fn look_for_launch(&self, uuid: &CycleId) -> Result<Option<Launch>, Trouble> {
        self.look(format!("{}/launch/uuid/{}", self.base, encoded(uuid.as_str())), NO_LAUNCH).await
    }

    async fn item(&self, uuid: &str) -> Result<Option<Item>, Trouble> {
        self.look(format!("{}/item/uuid/{}", self.base, encoded(uuid)), NO_ITEM).await
    }

    async fn launch(&self, uuid: &CycleId) -> Result<Launch, Trouble> {
        let mut known = self.launches.lock().await;
        if let Some(launch) = known.get(uuid) {
            return Ok(launch.clone());
        }
        let launch = self.look_for_launch(uuid).await?;
        let launch = launch.ok_or_else(|| Trouble::Gone(format!("there is no launch {uuid}")))?;
        known.insert(uuid.clone(), launch.clone());
        Ok(launch)
    }

    /// When an item began and ended: no item may begin before its launch.
    async fn span(&self, launch: &CycleId, entry: &Entry) -> Result<(u64, u64), Trouble> {
        let began = self.launch(launch).await?.start_time.as_ref().and_then(Moment::ms).unwrap_or(0);
        let took = duration_ms(entry).unwrap_or(0);
        let start = entry.at_ms.saturating_sub(took).max(began);
        Ok((start, start.saturating_add(took)))
    }

    fn start_of(launch: &CycleId, entry: &Entry, start_ms: u64) -> Value {
        json!({
            "name": shortened(&entry.title, ITEM_NAME_CHARS_MAX),
            "startTime": rfc3339(start_ms),
            "type": "step",
            "launchUuid": launch.as_str(),
            "uuid": item_uuid(launch, entry),
            "testCaseId": entry.case.as_str(),
            "hasStats": true,
            "attributes": attributes(entry),
            "description": entry.message,
        })
    }

    fn finish_of(&self, launch: &CycleId, entry: &Entry, end_ms: u64) -> Value {
        let mut body = json!({
            "endTime": rfc3339(end_ms),
            "launchUuid": launch.as_str(),
            "status": self.word(entry.status),
        });
        if entry.status == Status::Skipped {
            // Without it a skipped item waits for somebody to investigate it.
            body["issue"] = json!({ "issueType": "NOT_ISSUE" });
        }
        body
    }

    /// Finishes an item that was started. Without that it has no verdict, so nothing but its end is an end.
    async fn finish(&self, launch: &CycleId, entry: &Entry, end_ms: u64) -> Result<(), Trouble> {
        let path = format!("{}/item/{}", self.base, item_uuid(launch, entry));
        match self.call(Call::put(path, &self.finish_of(launch, entry, end_ms))).await {
            Ok(answer) => json(&answer).map(drop),
            Err(Trouble::Refused(what)) => {
                Err(Trouble::Unknown(format!("the item is started, and its end refused: {what}")))
            }
            Err(trouble) => Err(trouble),
        }
    }

    async fn record(&self, launch: &CycleId, entry: &Entry) -> Result<RowId, Trouble> {
        let (start_ms, end_ms) = self.span(launch, entry).await?;
        let call = Call::post(format!("{}/item", self.base), &Self::start_of(launch, entry, start_ms));
        match self.call(call).await {
            Ok(answer) => {
                let made: Made = of_form(&answer)?;
                self.finish(launch, entry, end_ms).await?;
                Ok(RowId::new(made.id))
            }
            Err(Trouble::Exists(what)) => self.resume(launch, entry, end_ms, what).await,
            Err(trouble) => Err(trouble),
        }
    }

    /// The UUID is taken. An item whose start was answered into the void, or that the server has ended by itself, has
    /// still to get its verdict. One with the verdict of the entry is done. Any other is a person's to look at: somebody
    /// may have changed its verdict since, or it stands where nobody looks for it.
    async fn resume(&self, launch: &CycleId, entry: &Entry, end_ms: u64, what: String) -> Result<RowId, Trouble> {
        let here = self.launch(launch).await?.id;
        let uuid = item_uuid(launch, entry);
        let Some(item) = self.item(&uuid).await? else {
            return Err(Trouble::Refused(format!(
                "item {uuid} is said to be there, and this project has none: {what}"
            )));
        };
        if item.launch_id != Some(here) {
            return Err(Trouble::Refused(format!("item {uuid} stands in another launch than {launch}")));
        }
        if self.has_no_verdict(&item.status) {
            self.finish(launch, entry, end_ms).await?;
            return Ok(RowId::new(item.uuid));
        }
        if item.status.eq_ignore_ascii_case(&self.word(entry.status)) {
            return Err(Trouble::Exists(what));
        }
        let (there, wanted) = (item.status.to_lowercase(), self.word(entry.status));
        Err(Trouble::Refused(format!("item {uuid} is there and says {there}, where {wanted} is to be said")))
    }

    /// True for what was begun and not ended, or ended by the server itself.
    fn has_no_verdict(&self, status: &str) -> bool {
        let is = |word: &&str| status.eq_ignore_ascii_case(word);
        // A project may use one of these words for a verdict of ours.
        let is_ours = || Status::ALL.iter().any(|ours| status.eq_ignore_ascii_case(&self.word(*ours)));
        OPEN.iter().any(is) || (CUT_OFF.iter().any(is) && !is_ours())
    }

    fn row(&self, item: Item) -> Row {
        let ours = item.attributes.iter().rev().find(|attribute| attribute.key.as_deref() == Some(ATTRIBUTE));
        let status = if self.has_no_verdict(&item.status) {
            RowStatus::Open
        } else {
            row_status(&item.status, |status| self.word(status), &[])
        };
        Row {
            text: item.text(),
            id: RowId::new(item.uuid),
            case: CaseId::new(item.test_case_id.unwrap_or(item.name)),
            status,
            marker: ours.map_or(domain::marker::Found::Nothing, |attribute| Marker::find(&attribute.value)),
            at_ms: item.start_time.as_ref().and_then(Moment::ms),
        }
    }
}

fn attributes(entry: &Entry) -> Value {
    json!([{ "key": ATTRIBUTE, "value": entry.marker.to_string() }])
}

/// Statuses of what is still to be ended.
const OPEN: [&str; 2] = ["in_progress", "to_run"];
/// Statuses that the server gives to what nobody ended.
const CUT_OFF: [&str; 3] = ["interrupted", "stopped", "cancelled"];

/// The UUID of an entry's item: the same for every writer into this launch. UUIDs are unique on the whole server.
fn item_uuid(launch: &CycleId, entry: &Entry) -> String {
    uuid_within(launch.as_str(), &entry.uuid())
}

#[async_trait]
impl Adapter for ReportPortal {
    fn facts(&self) -> &Facts {
        &FACTS
    }

    /// Every item has one: items stand for themselves.
    fn own_cases(&self, wanted: &[CaseWanted<'_>]) -> Option<Vec<CaseChoice>> {
        Some(wanted.iter().map(|wanted| CaseChoice::Known(itself(wanted))).collect())
    }

    /// At most one: the UUID is unique on the server. A finished launch still takes items.
    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let uuid = wanted.given.clone().unwrap_or_else(|| self.launch_uuid(wanted));
        let found = self.look_for_launch(&uuid).await?;
        Ok(found.map(|launch| CycleFound { id: uuid, name: launch.name, closed: false }).into_iter().collect())
    }

    async fn namesakes(&self, name: &str) -> Result<Option<Vec<Namesake>>, Trouble> {
        let mut all = Gathered::new();
        for number in 1.. {
            let query = format!("filter.eq.name={}&page.page={number}&page.size={PAGE}", encoded(name));
            let page: Launches = of_form(&self.call(Call::get(format!("{}/launch?{query}", self.base))).await?)?;
            all.add(page.content, page.page.total_elements, |launch| launch.uuid.clone());
            if number >= page.page.total_pages {
                break;
            }
        }
        Ok(Some(all.whole("the launches")?.into_iter().map(Shown::namesake).collect()))
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let body = json!({
            "name": shortened(&wanted.name, LAUNCH_NAME_CHARS_MAX),
            "startTime": rfc3339(self.clock.unix_ms()),
            "uuid": self.launch_uuid(wanted).as_str(),
            "description": wanted.link,
            "mode": "DEFAULT",
            "attributes": [{ "key": ATTRIBUTE, "value": wanted.tag() }],
        });
        let made: Made = of_form(&self.call(Call::post(format!("{}/launch", self.base), &body)).await?)?;
        Ok(CycleId::new(made.id))
    }

    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let launch = self.launch(cycle).await?.id;
        let mut all = Gathered::new();
        for number in 1.. {
            let query = format!("filter.eq.launchId={launch}&page.page={number}&page.size={PAGE}&page.sort=id,ASC");
            let page: Page = of_form(&self.call(Call::get(format!("{}/item?{query}", self.base))).await?)?;
            all.add(page.content, page.page.total_elements, |item| item.uuid.clone());
            // Counted here: what a page says of its own number is not asked twice.
            if number >= page.page.total_pages {
                break;
            }
        }
        // Suites and fixtures of others are no outcomes.
        let items = all.whole("the items of the launch")?.into_iter();
        let steps = items.filter(|item| item.kind.eq_ignore_ascii_case("step"));
        Ok(of_cases(steps.map(|item| self.row(item)).collect(), cases))
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let mut written = Written::default();
        for (place, entry) in batch.iter().enumerate() {
            match self.record(cycle, entry).await {
                Ok(row) => written.rows.push(Some(row)),
                Err(Trouble::Refused(what)) => {
                    written.rows.push(None);
                    written.refused.push((place, what));
                }
                Err(trouble) if place == 0 => return Err(trouble),
                Err(trouble) => return Err(Trouble::Unknown(format!("after {place} of the batch: {trouble}"))),
            }
        }
        Ok(written)
    }

    async fn amend(&self, _cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let item = self.item(row.as_str()).await?;
        let item = item.ok_or_else(|| Trouble::Gone(format!("there is no item {row}")))?;
        let body = json!({
            "status": self.word(entry.status),
            "attributes": attributes(entry),
            "description": entry.message,
        });
        let call = Call::put(format!("{}/item/{}/update", self.base, item.id), &body);
        self.call(call).await.and_then(|answer| json(&answer)).map(drop)
    }

    /// Refused as long as the launch is in progress.
    async fn delete(&self, _cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        let Some(item) = self.item(row.as_str()).await? else { return Ok(()) };
        let call = Call::delete(format!("{}/item/{}", self.base, item.id));
        absent(self.call(call).await.and_then(|answer| json(&answer)).map(drop))
    }

    async fn attachments(&self, _cycle: &CycleId, row: &Row) -> Result<Listed, Trouble> {
        self.files_of(row).await.map(Listed::Names)
    }

    async fn attach(&self, cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        self.add_file(cycle, row, file).await
    }

    fn ending(&self) -> Ending {
        Ending::Takes
    }

    /// Items that are still open are interrupted by it. Finished twice is finished.
    async fn close_cycle(&self, cycle: &CycleId, _why: Closing) -> Result<(), Trouble> {
        let began = self.launch(cycle).await?.start_time.as_ref().and_then(Moment::ms).unwrap_or(0);
        let body = json!({ "endTime": rfc3339(self.clock.unix_ms().max(began)) });
        let path = format!("{}/launch/{}/finish", self.base, encoded(cycle.as_str()));
        let answer = self.caller.ask(Call::put(path, &body)).await?;
        if answer.status == 406 && problem(&answer).is_some_and(|problem| problem.error_code == FINISHED) {
            return Ok(());
        }
        judged(answer, Nature::Writes).and_then(|answer| json(&answer)).map(drop)
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        let Some(launch) = self.look_for_launch(cycle).await? else { return Ok(()) };
        // The server deletes no launch that is in progress.
        self.close_cycle(cycle, Closing::Abandoned).await?;
        let call = Call::delete(format!("{}/launch/{}", self.base, launch.id));
        absent(self.call(call).await.and_then(|answer| json(&answer)).map(drop))
    }
}
