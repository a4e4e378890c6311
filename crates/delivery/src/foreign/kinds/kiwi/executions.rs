//! Executions of a run of Kiwi TCMS: the places for verdicts, their comments and their links. Must not know cases' names.

use std::collections::{BTreeMap, BTreeSet};

use domain::marker::{Found, Marker};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::times::{utc, utc_ms};
use super::Kiwi;
use super::rpc::{Ask, ask, parsed};
use crate::foreign::adapter::Written;
use crate::foreign::entry::{CaseId, Entry, Row, RowId, RowStatus};
use crate::foreign::text::above;
use crate::foreign::trouble::{Trouble, before_writing};

/// What our links are called.
const LINK_NAME: &str = "tallyonce";
/// Most characters of a comment.
const COMMENT_CHARS_MAX: usize = 3000;

#[derive(Debug, Clone, Deserialize)]
struct Execution {
    id: u64,
    case: u64,
    status: u64,
    #[serde(default, rename = "tested_by__username")]
    tested_by: Option<String>,
    #[serde(default)]
    stop_date: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct Link {
    id: u64,
    url: String,
    execution: u64,
}

#[derive(Debug, Deserialize)]
struct Comment {
    comment: String,
}

#[derive(Debug, Deserialize)]
struct Change {
    history_date: String,
}

/// A run as it is now: one look, three questions.
struct Run {
    executions: Vec<Execution>,
    /// Our links by execution, oldest first.
    links: BTreeMap<u64, Vec<Link>>,
}

impl Run {
    /// The execution of a case that is written to: the oldest, whoever looks. Others come from writers that added the
    /// case at the same time, or from properties of the case.
    fn place(&self, case: &CaseId) -> Option<&Execution> {
        let case: u64 = case.as_str().parse().ok()?;
        self.executions.iter().find(|execution| execution.case == case)
    }

    /// What the newest of our links says.
    fn marker(&self, execution: u64) -> Found {
        match self.links.get(&execution).and_then(|links| links.last()) {
            Some(link) => Marker::find(&link.url),
            None => Found::Nothing,
        }
    }
}

/// An entry and where it goes.
struct Placed<'a> {
    /// Its place in the batch.
    at: usize,
    entry: &'a Entry,
    execution: &'a Execution,
    status: u64,
}

impl Kiwi {
    async fn look(&self, run: u64) -> Result<Run, Trouble> {
        let asks = [
            ask("TestRun.filter", json!([{"pk": run}])),
            ask("TestExecution.filter", json!([{"run": run}])),
            ask("TestExecution.get_links", json!([{"execution__run": run, "name": LINK_NAME}])),
        ];
        let mut said = self.rpc.read(&asks).await?.into_iter();
        let mut next = || said.next().unwrap_or_default();
        if parsed::<Vec<Value>>(next())?.is_empty() {
            return Err(Trouble::Gone(format!("there is no test run {run}")));
        }
        let mut executions: Vec<Execution> = parsed(next())?;
        executions.sort_by_key(|execution| execution.id);
        executions.dedup_by_key(|execution| execution.id);
        let mut links = BTreeMap::<u64, Vec<Link>>::new();
        for link in parsed::<Vec<Link>>(next())? {
            links.entry(link.execution).or_default().push(link);
        }
        for links in links.values_mut() {
            links.sort_by_key(|link| link.id);
        }
        Ok(Run { executions, links })
    }

    /// Adding looks first and inserts then, without a lock between (R2): only cases that are not there are added.
    pub(super) async fn add_executions(&self, run: u64, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        let now = self.look(run).await.map_err(before_writing)?;
        let missing: BTreeSet<&CaseId> = cases.iter().filter(|case| now.place(case).is_none()).collect();
        let (mut refused, mut asks) = (Vec::new(), Vec::new());
        for case in missing {
            match case.as_str().parse::<u64>() {
                Ok(number) => asks.push((case, ask("TestRun.add_case", json!([run, number])))),
                Err(_) => refused.push((case.clone(), format!("{:?} is no number of a case", case.as_str()))),
            }
        }
        for piece in asks.chunks(super::FACTS.bulk.items_max) {
            let asks: Vec<Ask> = piece.iter().map(|(_, ask)| ask.clone()).collect();
            for (said, (case, _)) in self.rpc.write(&asks).await?.into_iter().zip(piece) {
                match said {
                    Ok(_) => {}
                    Err(Trouble::Refused(why)) => refused.push(((*case).clone(), why)),
                    Err(Trouble::Gone(why)) if why.contains("TestCase") => refused.push(((*case).clone(), why)),
                    Err(other) => return Err(other),
                }
            }
        }
        Ok(refused)
    }

    /// The rows that hold a verdict, and every execution of a case beside the one that is written to: those are doubles
    /// of the place, whatever they hold, and people want to know.
    pub(super) async fn execution_rows(&self, run: u64, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let statuses = self.statuses().await?;
        let now = self.look(run).await?;
        let wanted: BTreeSet<&str> = cases.iter().map(CaseId::as_str).collect();
        let mut seen = BTreeSet::new();
        let mut rows = Vec::new();
        for execution in &now.executions {
            let case = execution.case.to_string();
            let first = seen.insert(execution.case);
            let status = statuses.meaning(execution.status);
            let empty = first && status == RowStatus::Open;
            if empty || !(wanted.is_empty() || wanted.contains(case.as_str())) {
                continue;
            }
            rows.push(Row {
                id: RowId::new(execution.id.to_string()),
                case: CaseId::new(case),
                status,
                marker: now.marker(execution.id),
                at_ms: execution.stop_date.as_deref().and_then(utc_ms),
                text: execution.tested_by.as_ref().map(|name| format!("by {name}")).unwrap_or_default(),
            });
        }
        self.date(&mut rows).await?;
        Ok(rows)
    }

    /// Reports without times leave executions without them. Where a case has several, when each was added tells doubles
    /// from what was carried out again; the history knows.
    async fn date(&self, rows: &mut [Row]) -> Result<(), Trouble> {
        let mut of_case = BTreeMap::<CaseId, usize>::new();
        for row in rows.iter() {
            *of_case.entry(row.case.clone()).or_default() += 1;
        }
        let undated = rows.iter_mut().filter(|row| row.at_ms.is_none() && of_case.get(&row.case) > Some(&1));
        let mut undated: Vec<&mut Row> = undated.collect();
        for piece in undated.chunks_mut(super::FACTS.bulk.items_max) {
            let asks: Vec<Ask> =
                piece.iter().map(|row| ask("TestExecution.history", json!([row.id.as_str()]))).collect();
            for (said, row) in self.rpc.read(&asks).await?.into_iter().zip(piece) {
                let changes: Vec<Change> = parsed(said)?;
                row.at_ms = changes.iter().filter_map(|change| utc_ms(&change.history_date)).min();
            }
        }
        Ok(())
    }

    pub(super) async fn write_executions(&self, run: u64, batch: &[Entry]) -> Result<Written, Trouble> {
        let statuses = self.statuses().await.map_err(before_writing)?;
        let now = self.look(run).await.map_err(before_writing)?;
        let mut written = Written { rows: vec![None; batch.len()], ..Written::default() };
        let mut placed = Vec::new();
        for (at, entry) in batch.iter().enumerate() {
            let execution = now.place(&entry.case).ok_or_else(|| {
                format!("TC-{} is not in test run {run} and can't be written before it is added", entry.case)
            });
            match execution.and_then(|execution| Ok((execution, statuses.number(entry.status)?))) {
                Ok((execution, status)) => placed.push(Placed { at, entry, execution, status }),
                Err(why) => written.refused.push((at, why)),
            }
        }
        for (at, why) in self.put(&now, &placed).await? {
            written.refused.push((at, why));
        }
        for place in &placed {
            written.rows[place.at] = Some(RowId::new(place.execution.id.to_string()));
        }
        for (at, _) in &written.refused {
            written.rows[*at] = None;
        }
        Ok(written)
    }

    pub(super) async fn amend_execution(&self, run: u64, execution: u64, entry: &Entry) -> Result<(), Trouble> {
        let statuses = self.statuses().await.map_err(before_writing)?;
        let now = self.look(run).await.map_err(before_writing)?;
        let execution = now.executions.iter().find(|other| other.id == execution);
        let execution = execution.ok_or_else(|| Trouble::Gone(format!("it is not in test run {run} any more")))?;
        let status = statuses.number(entry.status).map_err(Trouble::Refused)?;
        match self.put(&now, &[Placed { at: 0, entry, execution, status }]).await?.pop() {
            Some((_, why)) => Err(Trouble::Refused(why)),
            None => Ok(()),
        }
    }

    /// Verdicts first, then comments, then links; gives the entries that were refused. One that is there whole already
    /// is left alone: sent again it would only lengthen the history.
    async fn put(&self, now: &Run, placed: &[Placed<'_>]) -> Result<Vec<(usize, String)>, Trouble> {
        let whole = |place: &&Placed<'_>| {
            place.execution.status == place.status && now.marker(place.execution.id) == Found::Whole(place.entry.marker)
        };
        let open: Vec<&Placed<'_>> = placed.iter().filter(|place| !whole(place)).collect();
        let (taken, refused) = self.put_verdicts(&open).await?;
        let unmarked: Vec<&Placed<'_>> = taken
            .into_iter()
            .filter(|place| now.marker(place.execution.id) != Found::Whole(place.entry.marker))
            .collect();
        self.put_comments(&unmarked).await?;
        self.put_links(now, &unmarked).await?;
        Ok(refused)
    }

    async fn put_verdicts<'p>(
        &self,
        open: &[&'p Placed<'p>],
    ) -> Result<(Vec<&'p Placed<'p>>, Vec<(usize, String)>), Trouble> {
        let asks: Vec<Ask> = open.iter().map(|place| update(place)).collect();
        let (mut taken, mut refused, mut doubt) = (Vec::new(), Vec::new(), None);
        for (said, place) in self.rpc.write(&asks).await?.into_iter().zip(open) {
            match said {
                Ok(_) => taken.push(*place),
                Err(Trouble::Refused(why) | Trouble::Gone(why)) => refused.push((place.at, why)),
                // Nothing is denied to one and granted to another.
                Err(denied @ Trouble::Denied(_)) if taken.is_empty() => return Err(denied),
                Err(other) => doubt = Some(other),
            }
        }
        if !refused.is_empty() {
            self.forget_statuses().await;
        }
        match doubt {
            Some(doubt) => Err(Trouble::Unknown(doubt.to_string())),
            None => Ok((taken, refused)),
        }
    }

    /// The message, for people. Comments are only ever appended, so those that are there are read first.
    async fn put_comments(&self, unmarked: &[&Placed<'_>]) -> Result<(), Trouble> {
        let telling: Vec<(&Placed<'_>, &str)> =
            unmarked.iter().filter_map(|place| Some((*place, place.entry.message.as_deref()?))).collect();
        let asks: Vec<Ask> =
            telling.iter().map(|(place, _)| ask("TestExecution.get_comments", json!([place.execution.id]))).collect();
        let said = self.rpc.read(&asks).await.map_err(|trouble| half_done(&trouble))?;
        let mut new = Vec::new();
        for (said, (place, message)) in said.into_iter().zip(telling) {
            let marker = place.entry.marker;
            let comments: Vec<Comment> = parsed(said)?;
            if comments.iter().all(|comment| Marker::find(&comment.comment) != Found::Whole(marker)) {
                let text = above(message, &marker.to_string(), COMMENT_CHARS_MAX);
                new.push(ask("TestExecution.add_comment", json!([place.execution.id, text])));
            }
        }
        // A comment that Kiwi won't take (a right that is missing, say) keeps no verdict from being marked.
        for said in self.rpc.write(&new).await.map_err(|trouble| half_done(&trouble))? {
            if let Err(Trouble::Unknown(why)) = said {
                return Err(Trouble::Unknown(why));
            }
        }
        Ok(())
    }

    /// The marker of each, and then away with what marked an earlier content of it.
    async fn put_links(&self, now: &Run, unmarked: &[&Placed<'_>]) -> Result<(), Trouble> {
        let links: Vec<Ask> = unmarked
            .iter()
            .map(|place| {
                let url = format!("{}/{}", self.marker_base, place.entry.marker);
                let link = json!({"execution_id": place.execution.id, "name": LINK_NAME, "url": url});
                ask("TestExecution.add_link", json!([link]))
            })
            .collect();
        for said in self.rpc.write(&links).await.map_err(|trouble| half_done(&trouble))? {
            said.map_err(|trouble| half_done(&trouble))?;
        }
        let old: Vec<u64> = unmarked
            .iter()
            .flat_map(|place| now.links.get(&place.execution.id).into_iter().flatten())
            .map(|link| link.id)
            .collect();
        if old.is_empty() {
            return Ok(());
        }
        // If they stay, the newest counts all the same.
        let _ = self.rpc.write_one(ask("TestExecution.remove_link", json!([{"pk__in": old}]))).await;
        Ok(())
    }
}

/// The fields that are replaced, and no others.
fn update(place: &Placed<'_>) -> Ask {
    let mut values = json!({"status": place.status});
    if let Some(stop) = utc(place.entry.at_ms) {
        let start_ms = place.entry.duration_us.map(|us| place.entry.at_ms.saturating_sub(us.0 / 1000));
        values["stop_date"] = json!(stop);
        values["start_date"] = json!(start_ms.and_then(utc).unwrap_or(stop));
    }
    ask("TestExecution.update", json!([place.execution.id, values]))
}

/// Whatever goes wrong now, verdicts are written already.
fn half_done(trouble: &Trouble) -> Trouble {
    Trouble::Unknown(format!("the verdict is written, the rest is not: {trouble}"))
}
