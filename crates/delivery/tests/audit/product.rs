//! A product whose ways are one thing and whose facts another: rows as people see them, lists that lag, comments that are
//! cut, and calls whose answers get lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use delivery::foreign::{
    Adapter, CaseChoice, CaseId, CaseWanted, Closing, CycleFound, CycleId, CycleWanted, Entry, Facts, JobEnd, JobId,
    KeyOnWrite, Namesake, Row, RowId, RowStatus, Trouble, VerdictRule, Written,
};
use domain::Status;
use domain::marker::Marker;

use crate::given::{honest, wanted};
use crate::ways::{Bad, Ways};
use crate::world::World;

/// What a delete or an amendment meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    AnswerLost,
    RequestLost,
    Wait,
    Refused,
    Denied,
}

#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) id: u64,
    pub(crate) cycle: CycleId,
    pub(crate) case: CaseId,
    pub(crate) status: RowStatus,
    pub(crate) comment: String,
    pub(crate) uuid: String,
    pub(crate) at_ms: u64,
    shows_ms: u64,
    gone_ms: Option<u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Cycle {
    pub(crate) id: CycleId,
    pub(crate) name: String,
    tag: String,
    pub(crate) closed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) cycles: Vec<Cycle>,
    pub(crate) rows: Vec<Stored>,
    pub(crate) touched: Vec<u64>,
    jobs: BTreeMap<String, u64>,
    next: u64,
}

#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) facts: Facts,
    pub(crate) ways: Ways,
    pub(crate) world: Arc<World>,
    pub(crate) state: Mutex<State>,
    pub(crate) faults: Mutex<Vec<Fault>>,
    /// It lets nobody read any more.
    pub(crate) denies_reads: AtomicBool,
    /// What it says to whoever asks for a cycle by its id.
    pub(crate) says_of_ids: Mutex<Option<Trouble>>,
    /// Calls give way to others a few times, by chance.
    pub(crate) gives_way: bool,
}

impl Product {
    pub(crate) fn new(facts: Facts) -> Self {
        Self {
            facts,
            ways: honest(&facts),
            world: Arc::new(World::new(1)),
            state: Mutex::default(),
            faults: Mutex::default(),
            denies_reads: AtomicBool::new(false),
            says_of_ids: Mutex::default(),
            gives_way: false,
        }
    }

    /// A cycle for the round of the tests.
    pub(crate) fn cycle(&self) -> CycleId {
        self.state.lock().unwrap().add_cycle(&wanted())
    }

    /// A cycle of another client's.
    pub(crate) fn foreign_cycle(&self, name: &str) -> CycleId {
        let mut state = self.state.lock().unwrap();
        let id = state.add_cycle(&CycleWanted { name: name.to_owned(), ..wanted() });
        state.cycles.last_mut().unwrap().tag.clear();
        id
    }

    /// A row as any client may have written it.
    pub(crate) fn put(&self, cycle: &CycleId, case: &str, status: Status, comment: &str, at_ms: u64) -> RowId {
        let mut state = self.state.lock().unwrap();
        let stored = self.stored(&mut state, cycle, case, RowStatus::Is(status), comment, at_ms);
        let id = RowId::new(stored.id.to_string());
        state.rows.push(Stored { shows_ms: 0, ..stored });
        id
    }

    fn stored(
        &self,
        state: &mut State,
        cycle: &CycleId,
        case: &str,
        status: RowStatus,
        comment: &str,
        at_ms: u64,
    ) -> Stored {
        state.next += 1;
        Stored {
            id: state.next,
            cycle: cycle.clone(),
            case: CaseId::new(case),
            status,
            comment: comment.chars().take(self.ways.comment_chars).collect(),
            uuid: String::new(),
            at_ms,
            shows_ms: self.world.now() + self.ways.lag_ms,
            gone_ms: None,
        }
    }

    /// Rows that are really there.
    pub(crate) fn there(&self) -> Vec<Stored> {
        self.state.lock().unwrap().rows.iter().filter(|row| row.gone_ms.is_none()).cloned().collect()
    }

    pub(crate) fn edit(&self, row: &RowId, comment: &str) {
        let mut state = self.state.lock().unwrap();
        let row = state.rows.iter_mut().find(|stored| stored.id.to_string() == row.as_str()).unwrap();
        comment.clone_into(&mut row.comment);
    }

    pub(crate) fn remove(&self, row: &RowId) {
        self.state.lock().unwrap().rows.retain(|stored| stored.id.to_string() != row.as_str());
    }

    fn apply(&self, state: &mut State, cycle: &CycleId, entry: &Entry, found: Option<usize>) -> Result<(), Trouble> {
        let same_id = state.rows.iter().any(|row| row.uuid == entry.uuid() && row.gone_ms.is_none());
        match (self.ways.key, same_id) {
            (KeyOnWrite::Refuses, true) => return Err(Trouble::Exists("this id is there".to_owned())),
            (KeyOnWrite::Collapses, true) => return Ok(()),
            _ => {}
        }
        let now = self.world.now();
        let status = RowStatus::Is(entry.status);
        let stored = self.stored(state, cycle, entry.case.as_str(), status, &entry.comment(), now);
        let stored = Stored { uuid: entry.uuid(), ..stored };
        match (self.ways.verdict, found) {
            (VerdictRule::Refuses, Some(_)) => return Err(Trouble::Refused("it has an outcome".to_owned())),
            (VerdictRule::Replaces | VerdictRule::ReplacesLatest, Some(at)) => {
                let old = &state.rows[at];
                state.rows[at] = Stored { id: old.id, shows_ms: old.shows_ms, at_ms: old.at_ms, ..stored };
            }
            _ => state.rows.push(stored),
        }
        Ok(())
    }

    fn latest(state: &State, cycle: &CycleId, case: &CaseId) -> Option<usize> {
        state.rows.iter().rposition(|row| row.cycle == *cycle && row.case == *case && row.gone_ms.is_none())
    }

    fn no(&self, what: &str) -> Trouble {
        if self.ways.denies { Trouble::Denied(what.to_owned()) } else { Trouble::Refused(what.to_owned()) }
    }

    async fn give_way(&self) {
        if self.gives_way {
            for _ in 0..self.world.below(4) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn fault(&self) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        (!faults.is_empty()).then(|| faults.remove(0))
    }
}

impl State {
    fn add_cycle(&mut self, wanted: &CycleWanted) -> CycleId {
        self.next += 1;
        let id = CycleId::new(format!("R{}", self.next));
        self.cycles.push(Cycle { id: id.clone(), name: wanted.name.clone(), tag: wanted.tag(), closed: false });
        id
    }
}

fn unknown() -> Trouble {
    Trouble::Unknown("no answer in time".to_owned())
}

/// The outcome of a call that changes a row, and whether it is carried out.
fn meets(fault: Option<Fault>) -> (bool, Result<(), Trouble>) {
    match fault {
        None => (true, Ok(())),
        Some(Fault::AnswerLost) => (true, Err(unknown())),
        Some(Fault::RequestLost) => (false, Err(unknown())),
        Some(Fault::Wait) => (false, Err(Trouble::Wait { what: "too fast".to_owned(), after_ms: 5000 })),
        Some(Fault::Refused) => (false, Err(Trouble::Refused("this row is locked".to_owned()))),
        Some(Fault::Denied) => (false, Err(Trouble::Denied("no right to edit".to_owned()))),
    }
}

#[async_trait]
impl Adapter for Product {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    async fn cases(&self, _: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        Ok(Vec::new())
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        if let Some(says) = self.says_of_ids.lock().unwrap().clone().filter(|_| wanted.given.is_some()) {
            return Err(says);
        }
        let state = self.state.lock().unwrap();
        let fits = |cycle: &&Cycle| match &wanted.given {
            Some(given) => cycle.id == *given,
            None => cycle.tag == wanted.tag(),
        };
        let found = |cycle: &Cycle| CycleFound { id: cycle.id.clone(), name: cycle.name.clone(), closed: cycle.closed };
        let listed = if wanted.given.is_some() { usize::MAX } else { self.ways.cycles_listed };
        Ok(state.cycles.iter().filter(fits).take(listed).map(found).collect())
    }

    async fn namesakes(&self, name: &str) -> Result<Option<Vec<Namesake>>, Trouble> {
        let state = self.state.lock().unwrap();
        let found = |cycle: &Cycle| CycleFound { id: cycle.id.clone(), name: cycle.name.clone(), closed: cycle.closed };
        let namesake = |of: &Cycle| Namesake { found: found(of), made_ms: None, tagged: !of.tag.is_empty() };
        Ok(Some(state.cycles.iter().filter(|cycle| cycle.name == name).map(namesake).collect()))
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let mut state = self.state.lock().unwrap();
        if self.ways.cycle_unique && state.cycles.iter().any(|cycle| cycle.name == wanted.name) {
            return Err(Trouble::Refused("the name is taken".to_owned()));
        }
        let made = state.add_cycle(wanted);
        if self.ways.makes_cycles_silently { Err(unknown()) } else { Ok(made) }
    }

    async fn add_cases(&self, _: &CycleId, _: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        self.give_way().await;
        if self.denies_reads.load(Ordering::SeqCst) {
            return Err(Trouble::Denied("the token has expired".to_owned()));
        }
        let now = self.world.now();
        let state = self.state.lock().unwrap();
        if !state.cycles.iter().any(|known| known.id == *cycle) {
            return Err(Trouble::Gone("no such cycle".to_owned()));
        }
        let shows = |row: &&Stored| {
            let gone = row.gone_ms.is_some_and(|gone| gone + self.ways.lag_ms <= now);
            row.cycle == *cycle && row.shows_ms <= now && !gone && (cases.is_empty() || cases.contains(&row.case))
        };
        // Newest first, as some products list.
        Ok(state.rows.iter().rev().filter(shows).map(row).collect())
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let bad = batch.iter().position(|entry| entry.case.as_str().ends_with("999999999"));
        let found: Vec<Option<usize>> = {
            let state = self.state.lock().unwrap();
            batch.iter().map(|entry| Self::latest(&state, cycle, &entry.case)).collect()
        };
        if self.ways.looks_then_writes {
            tokio::task::yield_now().await;
        }
        if self.ways.hangs && batch[0].message.as_deref() == Some("cut off") {
            std::future::pending::<()>().await;
        }
        let mut state = self.state.lock().unwrap();
        if state.rows.len() >= self.ways.rows_max {
            return Err(Trouble::Denied("this token is not known any more".to_owned()));
        }
        let mut written = Written { rows: vec![None; batch.len()], ..Written::default() };
        for (at, entry) in batch.iter().enumerate() {
            match (bad, self.ways.bad) {
                (Some(_), Bad::RefusesAll) => return Err(Trouble::Refused("there is no such case".to_owned())),
                (Some(bad), Bad::StoresSomeAndRefuses) if bad == at => {
                    return Err(Trouble::Refused("there is no such case".to_owned()));
                }
                (Some(bad), Bad::NamesIt) if bad == at => {
                    written.refused.push((at, "there is no such case".to_owned()));
                    continue;
                }
                (Some(bad), Bad::DropsIt) if bad == at => continue,
                _ => {}
            }
            let seen = if self.ways.looks_then_writes { found[at] } else { Self::latest(&state, cycle, &entry.case) };
            self.apply(&mut state, cycle, entry, seen)?;
        }
        if let Some(job_ms) = self.ways.job_ms {
            let job = format!("J{}", state.next);
            state.jobs.insert(job.clone(), self.world.now() + job_ms);
            let from = state.rows.len().saturating_sub(batch.len());
            for row in &mut state.rows[from..] {
                row.shows_ms = self.world.now() + job_ms + self.ways.lag_ms;
            }
            written.job = Some(JobId::new(job));
        }
        Ok(written)
    }

    async fn amend(&self, _: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        self.give_way().await;
        if !self.ways.amends {
            return Err(self.no("nothing can be changed"));
        }
        let (carried_out, answer) = meets(self.fault());
        let mut state = self.state.lock().unwrap();
        let stored = state.rows.iter_mut().find(|stored| stored.id.to_string() == row.as_str());
        if let Some(stored) = stored.filter(|_| carried_out) {
            stored.status = RowStatus::Is(entry.status);
            stored.comment = entry.comment();
            let id = stored.id;
            state.touched.push(id);
        }
        answer
    }

    async fn delete(&self, _: &CycleId, row: &RowId) -> Result<(), Trouble> {
        self.give_way().await;
        if !self.ways.deletes {
            return Err(self.no("nothing can be deleted"));
        }
        let (carried_out, answer) = meets(self.fault());
        let now = self.world.now();
        let mut state = self.state.lock().unwrap();
        let stored = state.rows.iter_mut().find(|stored| stored.id.to_string() == row.as_str());
        if let Some(stored) = stored.filter(|stored| carried_out && stored.gone_ms.is_none()) {
            stored.gone_ms = Some(now);
            let id = stored.id;
            state.touched.push(id);
        }
        answer
    }

    async fn poll(&self, job: &JobId) -> Result<JobEnd, Trouble> {
        let state = self.state.lock().unwrap();
        Ok(if state.jobs[job.as_str()] <= self.world.now() { JobEnd::Done } else { JobEnd::Open })
    }

    async fn close_cycle(&self, cycle: &CycleId, _: Closing) -> Result<(), Trouble> {
        let mut state = self.state.lock().unwrap();
        let found = state.cycles.iter_mut().find(|known| known.id == *cycle);
        found.ok_or(Trouble::Gone("no such cycle".to_owned()))?.closed = true;
        Ok(())
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        if !self.ways.deletes_cycles {
            return Err(self.no("no cycle can be deleted"));
        }
        let mut state = self.state.lock().unwrap();
        state.cycles.retain(|known| known.id != *cycle);
        state.rows.retain(|row| row.cycle != *cycle);
        Ok(())
    }
}

fn row(stored: &Stored) -> Row {
    let lines: Vec<&str> = stored.comment.lines().filter(|line| line.parse::<Marker>().is_err()).collect();
    Row {
        id: RowId::new(stored.id.to_string()),
        case: stored.case.clone(),
        status: stored.status.clone(),
        marker: Marker::find(&stored.comment),
        at_ms: Some(stored.at_ms),
        text: lines.join("\n").trim_end().to_owned(),
    }
}
