//! A product that holds its rule for repeats as data, loses answers, and works on requests whose client has gone away.

mod refusing;
mod there;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use delivery::foreign::{
    Adapter, Case, CaseChoice, CaseId, CaseWanted, Closing, CycleFound, CycleId, CycleWanted, Entry, Facts, KeyOnWrite,
    Listing, Row, RowId, RowStatus, Trouble, VerdictRule, Written,
};
use domain::Cause;
use domain::marker::Found;
use tokio::sync::Semaphore;

use crate::faults::{Fault, kind};
use crate::world::World;

#[derive(Debug, Default)]
struct State {
    cycles: Vec<(CycleId, String)>,
    rows: BTreeMap<CycleId, Vec<Stored>>,
    late: Vec<(u64, CycleId, Vec<Entry>, bool)>,
    closed: BTreeMap<CycleId, Closing>,
    next: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) id: u64,
    pub(crate) entry: Entry,
    pub(crate) mangled: bool,
    pub(crate) at_ms: u64,
    /// Written by a person.
    pub(crate) foreign: bool,
}

#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) facts: Facts,
    pub(crate) listing: Listing,
    /// How long lists lag behind, whatever the facts say.
    pub(crate) lag_ms: u64,
    /// So many searches don't find the cycles yet.
    pub(crate) blind: Mutex<u32>,
    /// How often rows were asked for, and writes made.
    pub(crate) calls: Mutex<(u64, u64)>,
    /// Somebody deleted these.
    pub(crate) gone: Mutex<BTreeSet<CycleId>>,
    gate: Semaphore,
    world: Arc<World>,
    state: Mutex<State>,
    /// Faults of the next writes, in their order; afterwards none.
    pub(crate) script: Mutex<Vec<Fault>>,
    /// Faults of any write, one in so many; 0 for none.
    pub(crate) storm: Mutex<u64>,
    pub(crate) bad_cases: BTreeSet<CaseId>,
    /// These can't be added to a cycle.
    pub(crate) no_cases: BTreeSet<CaseId>,
    /// A call with one of these is never answered, and writes nothing.
    pub(crate) mute_cases: BTreeSet<CaseId>,
    /// What is in these is never shown: no answer comes.
    pub(crate) mute_cycles: Mutex<BTreeSet<CycleId>>,
    /// Cycles are neither made nor ended, and it says so.
    pub(crate) refuses_cycles: Mutex<bool>,
    /// Cycles that somebody deleted.
    pub(crate) deleted: Mutex<BTreeSet<CycleId>>,
    /// Every question is refused, whatever it is about; or those for rows alone.
    pub(crate) refuses: Mutex<bool>,
    pub(crate) refuses_rows: Mutex<bool>,
    /// Cycles that somebody ended.
    pub(crate) ended: Mutex<BTreeSet<CycleId>>,
    /// Adding cases is no look at the cycle.
    pub(crate) adds_blindly: bool,
    /// No write is answered, or carried out, before.
    pub(crate) away_until_ms: Mutex<u64>,
    /// Its answers name the rows that it wrote.
    pub(crate) names_rows: bool,
    /// How often cases are asked for without an answer, and when they were asked for.
    pub(crate) silent_cases: Mutex<usize>,
    pub(crate) asked_for_cases: Mutex<Vec<u64>>,
    pub(crate) met: Mutex<BTreeMap<Fault, u64>>,
    /// Cases that items of other names belong to.
    pub(crate) aliases: Mutex<BTreeMap<&'static str, &'static str>>,
    /// How long a reading takes, and a write.
    pub(crate) takes_ms: (u64, u64),
}

impl Product {
    pub(crate) fn new(world: &Arc<World>, facts: Facts) -> Self {
        Self {
            facts,
            listing: Listing::Cycle,
            lag_ms: 0,
            blind: Mutex::new(0),
            calls: Mutex::default(),
            gone: Mutex::default(),
            gate: Semaphore::new(0),
            world: Arc::clone(world),
            state: Mutex::default(),
            script: Mutex::default(),
            storm: Mutex::new(0),
            bad_cases: BTreeSet::new(),
            no_cases: BTreeSet::new(),
            mute_cases: BTreeSet::new(),
            mute_cycles: Mutex::default(),
            refuses_cycles: Mutex::new(false),
            deleted: Mutex::default(),
            refuses: Mutex::default(),
            refuses_rows: Mutex::default(),
            ended: Mutex::default(),
            adds_blindly: false,
            away_until_ms: Mutex::default(),
            names_rows: false,
            silent_cases: Mutex::new(0),
            asked_for_cases: Mutex::default(),
            met: Mutex::default(),
            aliases: Mutex::default(),
            takes_ms: (0, 0),
        }
    }

    fn draw(&self) -> Fault {
        let mut script = self.script.lock().unwrap();
        let fault = if script.is_empty() { self.drawn_of_the_storm() } else { script.remove(0) };
        *self.met.lock().unwrap().entry(kind(fault)).or_default() += 1;
        fault
    }

    fn drawn_of_the_storm(&self) -> Fault {
        let one_in = *self.storm.lock().unwrap();
        if one_in == 0 || self.world.below(one_in) > 0 {
            return Fault::None;
        }
        match self.world.below(14) {
            0..=2 => Fault::AnswerLost,
            3..=5 => Fault::RequestLost,
            6 | 7 => Fault::Late(self.world.below(50_000)),
            // Beyond the quiet time: the window that only a sweep sees.
            8 => Fault::Late(60_000 + self.world.below(7_200_000)),
            9 | 10 => Fault::Part,
            11 => Fault::NotSent,
            12 => Fault::Wait,
            _ => Fault::Mangled,
        }
    }

    fn has_one_of(&self, cycle: &CycleId, batch: &[Entry]) -> bool {
        let state = self.state.lock().unwrap();
        let rows = state.rows.get(cycle).map_or(&[][..], Vec::as_slice);
        rows.iter().any(|row| batch.iter().any(|entry| entry.uuid() == row.entry.uuid()))
    }

    /// Carries out what is late and due.
    fn due(&self) {
        let now = self.world.now();
        let mut state = self.state.lock().unwrap();
        let (due, later) = std::mem::take(&mut state.late).into_iter().partition(|(at, ..)| *at <= now);
        state.late = later;
        for (at, cycle, entries, mangled) in due {
            self.apply(&mut state, &cycle, &entries, mangled, at);
        }
    }

    fn apply(&self, state: &mut State, cycle: &CycleId, entries: &[Entry], mangled: bool, at_ms: u64) {
        for entry in entries {
            state.next += 1;
            let stored = Stored { id: state.next, entry: entry.clone(), mangled, at_ms, foreign: false };
            let rows = state.rows.entry(cycle.clone()).or_default();
            let same_id = rows.iter().any(|row| row.entry.uuid() == entry.uuid());
            let same_case = rows.iter().rposition(|row| row.entry.case == entry.case);
            match (self.facts.key_on_write, self.facts.verdict, same_case) {
                (KeyOnWrite::Collapses | KeyOnWrite::Refuses, ..) if same_id => {}
                (KeyOnWrite::None, VerdictRule::Replaces | VerdictRule::ReplacesLatest, Some(at)) => {
                    rows[at].entry = stored.entry;
                    rows[at].mangled = mangled;
                    rows[at].foreign = false;
                }
                _ => rows.push(stored),
            }
        }
    }
}

fn unknown() -> Trouble {
    Trouble::Unknown("no answer in time".to_owned())
}

#[async_trait]
impl Adapter for Product {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        self.world.may_die().await;
        let asked = {
            let mut asked = self.asked_for_cases.lock().unwrap();
            asked.push(self.world.now());
            asked.len()
        };
        if asked <= *self.silent_cases.lock().unwrap() {
            return Err(unknown());
        }
        let choice = |wanted: &CaseWanted<'_>| match wanted.item.name() {
            "unmatched" => CaseChoice::Unmatched { why: "no case is named so".to_owned() },
            name => CaseChoice::of(name.split(" and ").map(|case| match case {
                "gone" => CaseChoice::Unmatched { why: "that case is gone".to_owned() },
                case => {
                    let id = self.aliases.lock().unwrap().get(case).copied().unwrap_or(case);
                    CaseChoice::Known(Case { id: CaseId::new(id), title: case.to_owned() })
                }
            })),
        };
        Ok(wanted.iter().map(choice).collect())
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        self.if_it_answers()?;
        let mut blind = self.blind.lock().unwrap();
        if *blind > 0 && wanted.given.is_none() {
            *blind -= 1;
            return Ok(Vec::new());
        }
        let state = self.state.lock().unwrap();
        let (deleted, ended) = (self.deleted.lock().unwrap(), self.ended.lock().unwrap());
        let tagged = state.cycles.iter().filter(|(id, tag)| {
            !deleted.contains(id) && wanted.given.as_ref().map_or(*tag == wanted.tag(), |given| given == id)
        });
        Ok(tagged
            .map(|(id, tag)| CycleFound { id: id.clone(), name: tag.clone(), closed: ended.contains(id) })
            .collect())
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        self.if_taken()?;
        let fault = self.draw();
        if matches!(fault, Fault::NotSent) {
            return Err(Trouble::NotSent(Cause::new("refused")));
        }
        let id = {
            let mut state = self.state.lock().unwrap();
            state.next += 1;
            let id = CycleId::new(format!("R{}", state.next));
            if fault != Fault::RequestLost {
                state.cycles.push((id.clone(), wanted.tag()));
            }
            id
        };
        self.world.may_die().await;
        if matches!(fault, Fault::RequestLost | Fault::AnswerLost) { Err(unknown()) } else { Ok(id) }
    }

    async fn add_cases(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        if !self.adds_blindly {
            self.if_there(cycle)?;
        }
        let out = cases.iter().filter(|case| self.no_cases.contains(case));
        Ok(out.map(|case| (case.clone(), "there is no such case".to_owned())).collect())
    }

    fn listing(&self) -> Listing {
        self.listing
    }

    async fn count(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Option<u64>, Trouble> {
        if self.listing != Listing::Counts {
            return Ok(None);
        }
        self.calls.lock().unwrap().0 += 1;
        self.due();
        let state = self.state.lock().unwrap();
        let rows = state.rows.get(cycle).map_or(&[][..], Vec::as_slice);
        if rows.iter().any(|row| row.foreign) {
            return Ok(Some(u64::MAX));
        }
        let ours = |row: &&Stored| batch.iter().any(|entry| entry.marker == row.entry.marker);
        Ok(Some(rows.iter().filter(ours).count() as u64))
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        if matches!(self.listing, Listing::Counts | Listing::Nothing) {
            return Err(Trouble::Refused("outcomes are not listed".to_owned()));
        }
        self.world.may_die().await;
        self.if_it_answers()?;
        if *self.refuses_rows.lock().unwrap() {
            return Err(Trouble::Refused("statuses.passed: no such status".to_owned()));
        }
        self.if_there(cycle)?;
        self.calls.lock().unwrap().0 += 1;
        self.takes(self.takes_ms.0).await;
        if self.mute_cycles.lock().unwrap().contains(cycle) {
            return Err(unknown());
        }
        if self.gone.lock().unwrap().contains(cycle) {
            return Err(Trouble::Gone("there is no such cycle".to_owned()));
        }
        self.due();
        let shown_ms = self.world.now().saturating_sub(self.lag_ms);
        let state = self.state.lock().unwrap();
        let rows = state.rows.get(cycle).map_or(&[][..], Vec::as_slice);
        let rows = rows.iter().filter(|row| self.lag_ms == 0 || row.at_ms <= shown_ms);
        let asked = rows.filter(|row| cases.is_empty() || cases.contains(&row.entry.case));
        Ok(asked
            .map(|row| Row {
                id: RowId::new(row.id.to_string()),
                case: row.entry.case.clone(),
                status: RowStatus::Is(row.entry.status),
                marker: match row {
                    Stored { foreign: true, .. } => Found::Nothing,
                    Stored { mangled: true, .. } => Found::Mangled,
                    _ => Found::Whole(row.entry.marker),
                },
                at_ms: Some(row.at_ms),
                text: String::new(),
            })
            .collect())
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        assert!(batch.len() <= self.facts.bulk.items_max && !batch.is_empty());
        self.world.may_die().await;
        self.takes(self.takes_ms.1).await;
        self.due();
        self.if_there(cycle)?;
        if self.ended.lock().unwrap().contains(cycle) {
            return Err(Trouble::Gone(format!("{cycle} is completed")));
        }
        let away = self.world.now() < *self.away_until_ms.lock().unwrap();
        if away || batch.iter().any(|entry| self.mute_cases.contains(&entry.case)) {
            self.calls.lock().unwrap().1 += 1;
            return Err(unknown());
        }
        if let Some(at) = batch.iter().position(|entry| self.bad_cases.contains(&entry.case)) {
            // Carried out in parts: what stood before it is kept.
            let kept = if self.facts.bulk.atomic { 0 } else { at };
            self.apply(&mut self.state.lock().unwrap(), cycle, &batch[..kept], false, self.world.now());
            return Err(Trouble::Refused("a case is not in the cycle".to_owned()));
        }
        if self.facts.key_on_write == KeyOnWrite::Refuses && self.has_one_of(cycle, batch) {
            return Err(Trouble::Exists("an outcome with this id is there".to_owned()));
        }
        let fault = self.draw();
        self.calls.lock().unwrap().1 += 1;
        if fault == Fault::Held {
            self.gate.acquire().await.unwrap().forget();
        }
        let now = self.world.now();
        {
            let mut state = self.state.lock().unwrap();
            match fault {
                Fault::None | Fault::AnswerLost | Fault::Dies | Fault::Held => {
                    self.apply(&mut state, cycle, batch, false, now);
                }
                Fault::Mangled => self.apply(&mut state, cycle, batch, true, now),
                Fault::Part => self.apply(&mut state, cycle, &batch[..batch.len() / 2], false, now),
                Fault::Late(ms) => state.late.push((now + ms, cycle.clone(), batch.to_vec(), false)),
                Fault::RequestLost | Fault::NotSent | Fault::Wait | Fault::Lost | Fault::Refused => {}
            }
        }
        if fault == Fault::Dies {
            self.world.light(0);
        }
        self.world.may_die().await;
        match fault {
            Fault::None | Fault::Mangled | Fault::Lost | Fault::Held => {
                let name = |entry: &Entry| self.names_rows.then(|| RowId::new(entry.uuid()));
                Ok(Written { rows: batch.iter().map(name).collect(), ..Written::default() })
            }
            Fault::NotSent => Err(Trouble::NotSent(Cause::new("refused"))),
            Fault::Refused => Err(Trouble::Refused("the case is locked".to_owned())),
            Fault::Wait => Err(Trouble::Wait { what: "too fast".to_owned(), after_ms: 5000 }),
            _ => Err(unknown()),
        }
    }

    async fn amend(&self, _: &CycleId, _: &RowId, _: &Entry) -> Result<(), Trouble> {
        Ok(())
    }

    async fn delete(&self, cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        let mut state = self.state.lock().unwrap();
        state.rows.entry(cycle.clone()).or_default().retain(|stored| stored.id.to_string() != row.as_str());
        Ok(())
    }

    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble> {
        self.world.may_die().await;
        self.if_taken()?;
        self.state.lock().unwrap().closed.insert(cycle.clone(), why);
        Ok(())
    }

    async fn delete_cycle(&self, _: &CycleId) -> Result<(), Trouble> {
        Ok(())
    }
}
