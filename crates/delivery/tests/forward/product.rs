//! A product that holds its rule for repeats as data, loses answers, and works on requests whose client has gone away.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use delivery::foreign::{
    Adapter, Bulk, Case, CaseChoice, CaseId, CaseWanted, Closing, CycleFound, CycleId, CycleWanted, Entry, Facts,
    KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Repair, Row, RowId, RowStatus, Strategy, Trouble, VerdictRule, Visible,
    Written,
};
use domain::Cause;
use domain::marker::{Found, Marker};

use crate::world::World;

/// What one request meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Carried out; the answer is lost.
    AnswerLost,
    /// Never arrives, and looks like the one before.
    RequestLost,
    /// Carried out so many milliseconds after the client gave up.
    Late(u64),
    /// A part is carried out, and no answer.
    Part,
    /// The connection never stood.
    NotSent,
    /// `429`.
    Wait,
    /// The marker loses its end.
    Mangled,
}

#[derive(Debug, Default)]
struct State {
    cycles: Vec<(CycleId, String)>,
    rows: BTreeMap<CycleId, Vec<Stored>>,
    late: Vec<(u64, CycleId, Vec<Entry>, bool)>,
    closed: BTreeMap<CycleId, Closing>,
    next: u64,
}

#[derive(Debug, Clone)]
struct Stored {
    id: u64,
    entry: Entry,
    mangled: bool,
    at_ms: u64,
}

#[derive(Debug)]
pub(crate) struct Product {
    pub(crate) facts: Facts,
    world: Arc<World>,
    state: Mutex<State>,
    /// Faults of the next writes, in their order; afterwards none.
    pub(crate) script: Mutex<Vec<Fault>>,
    /// Faults of any write, one in so many; 0 for none.
    pub(crate) storm: Mutex<u64>,
    pub(crate) bad_cases: BTreeSet<CaseId>,
    pub(crate) met: Mutex<BTreeMap<Fault, u64>>,
}

pub(crate) fn facts(verdict: VerdictRule, key_on_write: KeyOnWrite) -> Facts {
    let strategies: &[Strategy] = match (key_on_write, verdict) {
        (KeyOnWrite::None, VerdictRule::Appends) => &[Strategy::Reconcile],
        (KeyOnWrite::None, _) => &[Strategy::Replace],
        _ => &[Strategy::Idempotent],
    };
    Facts {
        kind: Kind::Generic,
        key_on_write,
        verdict,
        side_rows: &[],
        cycle_unique: false,
        marker: MarkerFacts { level: MarkerLevel::M3, field: "comment", chars_max: 200, editable: true },
        bulk: Bulk { items_max: 4, atomic: true },
        visible: Visible::AtOnce,
        repair: Repair { delete: true, amend: true, delete_cycle: true },
        rate: None,
        quiet_ms: 60_000,
        strategies,
        races: &[],
    }
}

impl Product {
    pub(crate) fn new(world: &Arc<World>, facts: Facts) -> Self {
        Self {
            facts,
            world: Arc::clone(world),
            state: Mutex::default(),
            script: Mutex::default(),
            storm: Mutex::new(0),
            bad_cases: BTreeSet::new(),
            met: Mutex::default(),
        }
    }

    /// Rows of all cycles: case and marker.
    pub(crate) fn recorded(&self) -> Vec<(CaseId, Marker)> {
        self.due();
        let state = self.state.lock().unwrap();
        state.rows.values().flatten().map(|row| (row.entry.case.clone(), row.entry.marker)).collect()
    }

    /// Rows of the containers that count.
    pub(crate) fn published(&self) -> (usize, Vec<(CaseId, Marker)>) {
        self.due();
        let state = self.state.lock().unwrap();
        let complete: Vec<&CycleId> =
            state.closed.iter().filter(|(_, why)| **why == Closing::Complete).map(|(cycle, _)| cycle).collect();
        let rows = complete.iter().filter_map(|cycle| state.rows.get(*cycle)).flatten();
        (complete.len(), rows.map(|row| (row.entry.case.clone(), row.entry.marker)).collect())
    }

    pub(crate) fn cycles(&self) -> usize {
        self.state.lock().unwrap().cycles.len()
    }

    pub(crate) fn forget_rows(&self) {
        self.state.lock().unwrap().rows.clear();
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
            let stored = Stored { id: state.next, entry: entry.clone(), mangled, at_ms };
            let rows = state.rows.entry(cycle.clone()).or_default();
            let same_id = rows.iter().any(|row| row.entry.uuid() == entry.uuid());
            let same_case = rows.iter().rposition(|row| row.entry.case == entry.case);
            match (self.facts.key_on_write, self.facts.verdict, same_case) {
                (KeyOnWrite::Collapses | KeyOnWrite::Refuses, ..) if same_id => {}
                (KeyOnWrite::None, VerdictRule::Replaces | VerdictRule::ReplacesLatest, Some(at)) => {
                    rows[at].entry = stored.entry;
                    rows[at].mangled = mangled;
                }
                _ => rows.push(stored),
            }
        }
    }
}

fn kind(fault: Fault) -> Fault {
    match fault {
        Fault::Late(ms) if ms > 60_000 => Fault::Late(60_001),
        Fault::Late(_) => Fault::Late(1),
        other => other,
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
        let choice = |wanted: &CaseWanted<'_>| match wanted.item.name() {
            "unmatched" => CaseChoice::Unmatched { why: "no case is named so".to_owned() },
            name => CaseChoice::Known(Case { id: CaseId::new(name), title: name.to_owned() }),
        };
        Ok(wanted.iter().map(choice).collect())
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let state = self.state.lock().unwrap();
        let tagged = state.cycles.iter().filter(|(_, tag)| *tag == wanted.tag());
        Ok(tagged.map(|(id, tag)| CycleFound { id: id.clone(), name: tag.clone(), closed: false }).collect())
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
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

    async fn add_cases(&self, _: &CycleId, _: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        self.world.may_die().await;
        self.due();
        let state = self.state.lock().unwrap();
        let rows = state.rows.get(cycle).map_or(&[][..], Vec::as_slice);
        let asked = rows.iter().filter(|row| cases.is_empty() || cases.contains(&row.entry.case));
        Ok(asked
            .map(|row| Row {
                id: RowId::new(row.id.to_string()),
                case: row.entry.case.clone(),
                status: RowStatus::Is(row.entry.status),
                marker: if row.mangled { Found::Mangled } else { Found::Whole(row.entry.marker) },
                at_ms: Some(row.at_ms),
                text: String::new(),
            })
            .collect())
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        assert!(batch.len() <= self.facts.bulk.items_max && !batch.is_empty());
        self.world.may_die().await;
        self.due();
        if batch.iter().any(|entry| self.bad_cases.contains(&entry.case)) {
            return Err(Trouble::Refused("a case is not in the cycle".to_owned()));
        }
        let fault = self.draw();
        let now = self.world.now();
        {
            let mut state = self.state.lock().unwrap();
            match fault {
                Fault::None | Fault::AnswerLost => self.apply(&mut state, cycle, batch, false, now),
                Fault::Mangled => self.apply(&mut state, cycle, batch, true, now),
                Fault::Part => self.apply(&mut state, cycle, &batch[..batch.len() / 2], false, now),
                Fault::Late(ms) => state.late.push((now + ms, cycle.clone(), batch.to_vec(), false)),
                Fault::RequestLost | Fault::NotSent | Fault::Wait => {}
            }
        }
        self.world.may_die().await;
        match fault {
            Fault::None | Fault::Mangled => Ok(Written { rows: vec![None; batch.len()], ..Written::default() }),
            Fault::NotSent => Err(Trouble::NotSent(Cause::new("refused"))),
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
        self.state.lock().unwrap().closed.insert(cycle.clone(), why);
        Ok(())
    }

    async fn delete_cycle(&self, _: &CycleId) -> Result<(), Trouble> {
        Ok(())
    }
}
