//! After faults stop: from every reachable state, for every choice of who is still alive and how far it had come, every
//! fair run ends, and ends well (`facts/idempotency.md` 3.6, L1 to L5). Must not decide anything.
//!
//! Runners follow the client's program (3.4): begin, put what is missing, commit; fenced off, begin again as a new
//! incarnation; told to wait, wait. Besides them zombies resolve and the collector works. Steps that change nothing
//! (waiting, asking again) are left out. If what is left has no cycle, every run comes to an end in which nothing can
//! change any more, provided that whatever may go on for ever does go on; so it is enough to look at those ends.
//!
//! An epoch is idle if no live runner works for it: a dead owner's becomes so at some time, a live owner's does not. Its
//! new incarnations bear the old one's number, which only an explicit `revise` could tell apart.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use domain::staging::Fate;
use stateright::{Checker, Model, StateRecorder};

use crate::actions::{Action, Push};
use crate::config::Config;
use crate::decisions::{Choice, Decisions, PRODUCTION};
use crate::server::{self, Reply};
use crate::staged;
use crate::state::{Request, SLOTS, State};

/// Epochs that may begin after faults stop; what needs more chases itself.
const MORE_EPOCHS: u8 = 4;

/// How far a live runner has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Doing {
    Begin,
    At(u8),
    Recorded,
    Refused,
}

/// Server and live runners; a runner's slot is that of its newest incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Fair {
    state: State,
    live: [Option<Doing>; SLOTS],
}

/// What was walked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Walked {
    pub(crate) starts: usize,
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    pub(crate) ends: usize,
}

/// What fails: the property, and where.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) property: &'static str,
    pub(crate) walked: Walked,
    pub(crate) at: String,
}

impl Fair {
    /// Without what nobody will look at any more.
    fn normal(mut self) -> Self {
        let state = &mut self.state;
        for at in 0..SLOTS {
            (state.told[at], state.saw[at]) = (0, 0);
            if self.live[at].is_none_or(|doing| matches!(doing, Doing::Recorded | Doing::Refused)) {
                (state.wishes[at], state.bound[at]) = (None, 0);
            }
        }
        state.net.clear();
        (state.recorded, state.refused, state.ended, state.faults) = (0, 0, 0, 0);
        self
    }

    fn is_owned(&self, epoch: u8) -> bool {
        self.live.contains(&Some(Doing::At(epoch)))
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(self, &mut hasher);
        hasher.finish()
    }
}

/// All that may be the case when faults stop in this state.
fn starts(config: &Config, state: &State) -> Vec<Fair> {
    let mut starts = vec![Fair { state: state.clone(), live: [None; SLOTS] }];
    for runner in 0..config.runners {
        let slots = runner * config.generations..(runner + 1) * config.generations;
        let Some(at) = slots.rev().find(|at| state.wishes[*at].is_some()) else { continue };
        let told = (1..=state.latest()).filter(|epoch| state.told[at] & 1 << epoch != 0).map(Doing::At);
        let doing: Vec<Doing> = [Doing::Begin].into_iter().chain(told).collect();
        let alive = |start: &Fair| {
            let start = start.clone();
            let with = |doing: &Doing| {
                let mut live = start.live;
                live[at] = Some(*doing);
                Fair { live, state: start.state.clone() }
            };
            doing.iter().map(with).collect::<Vec<_>>()
        };
        let more: Vec<Fair> = starts.iter().flat_map(alive).collect();
        starts.extend(more);
    }
    starts.into_iter().filter(|start| start.live.iter().any(Option::is_some)).map(Fair::normal).collect()
}

/// The next step of one live runner's program.
fn step(model: &Push, before: &Fair, at: usize) -> Result<Fair, &'static str> {
    let mut next = before.clone();
    let state = &mut next.state;
    let (request, choice) = match before.live[at] {
        Some(Doing::Begin) => {
            let idle = state.open().is_some_and(|open| !before.is_owned(open));
            (Request::Begin { at: at as u8 }, Choice(idle))
        }
        Some(Doing::At(epoch)) => {
            let open = state.open() == Some(epoch);
            let missing = (0..model.config.chunks).find(|chunk| open && state.row(epoch).chunk(*chunk).is_none());
            let asked = state.wishes[at].map_or(0, |wish| wish.content);
            let put = missing.map(|chunk| Request::Put { epoch, chunk, bytes: asked });
            (put.unwrap_or(Request::Commit { epoch, asked }), Choice(false))
        }
        _ => return Ok(next),
    };
    let reply = server::deliver(model, state, None, request, choice).ok_or("L3")?;
    let (doing, again) = match reply {
        Reply::Staging { epoch } => (Some(Doing::At(epoch)), false),
        Reply::Recorded => (Some(Doing::Recorded), false),
        Reply::Refused(_) => (Some(Doing::Refused), false),
        Reply::Fenced | Reply::Gone => (Some(Doing::Begin), true),
        _ => (before.live[at], false),
    };
    next.live[at] = doing;
    if again {
        next.state.bound[at] = 0;
    }
    Ok(next.normal())
}

/// A live owner is fenced off by a higher attempt alone.
fn keeps_its_epoch(before: &Fair, after: &Fair) -> bool {
    let Some(open) = before.state.open().filter(|open| before.is_owned(*open)) else { return true };
    let Some(row) = after.state.epochs.get(usize::from(open) - 1).filter(|row| row.fate == Fate::Superseded) else {
        return true;
    };
    after.state.epochs.last().is_some_and(|newer| newer.wish.ordinal > row.wish.ordinal)
}

/// All that may come next and changes something.
fn successors(walk: &Walk<'_>, before: &Fair) -> Result<Vec<Fair>, &'static str> {
    let model = walk.model;
    let mut all = Vec::new();
    for at in (0..SLOTS).filter(|at| before.live[*at].is_some()) {
        let after = step(model, before, at)?;
        if walk.owners && !keeps_its_epoch(before, &after) {
            return Err("idle");
        }
        all.push(after);
    }
    if before.state.zombie.is_some() {
        for action in [Action::Resolve, Action::Abort] {
            // A zombie begin past the bound: as if it were aborted.
            if let Some(state) = model.next_state(&before.state, action) {
                all.push(Fair { state, live: before.live }.normal());
            }
        }
    }
    for epoch in (1..=before.state.latest()).filter(|epoch| !before.is_owned(*epoch)) {
        let mut after = before.clone();
        staged::abandon(model, &mut after.state, epoch, true, true);
        all.push(after.normal());
        let mut after = before.clone();
        staged::sweep(model, &mut after.state, epoch);
        all.push(after.normal());
    }
    all.retain(|after| after != before);
    Ok(all)
}

/// What an end in which nothing changes any more fails.
fn ends_well(model: &Push, end: &Fair) -> Result<(), &'static str> {
    let state = &end.state;
    if end.live.iter().flatten().any(|doing| matches!(doing, Doing::Begin | Doing::At(_))) {
        return Err("L2");
    }
    let all_refused = end.live.iter().flatten().all(|doing| *doing == Doing::Refused);
    if state.linked == 0 && !state.deleted && !all_refused {
        return Err("L1");
    }
    let leftover = |epoch: u8| !(model.decisions.sees)(state, epoch) && !state.row(epoch).is_empty();
    if (1..=state.latest()).any(leftover) {
        return Err("L4");
    }
    if state.zombie.is_some() { Err("L5") } else { Ok(()) }
}

/// A property that fails, and where.
type Fault = (&'static str, Box<Fair>);

/// What is walked, and whether live owners have to keep their epochs.
struct Walk<'a> {
    model: &'a Push,
    owners: bool,
}

/// Depth first over all starts; a state that is met again on the way down is a run without end.
fn walk(walk: &Walk<'_>, seen: &mut HashMap<u64, bool>, start: Fair, walked: &mut Walked) -> Result<(), Fault> {
    let hash = start.hash();
    if seen.contains_key(&hash) {
        return Ok(());
    }
    let open = |node: Fair, seen: &mut HashMap<u64, bool>, walked: &mut Walked| {
        seen.insert(node.hash(), false);
        walked.states += 1;
        let next = successors(walk, &node).map_err(|property| (property, Box::new(node.clone())))?;
        walked.transitions += next.len();
        if next.is_empty() {
            walked.ends += 1;
            ends_well(walk.model, &node).map_err(|property| (property, Box::new(node.clone())))?;
        }
        Ok((node.hash(), next))
    };
    let mut path = vec![open(start, seen, walked)?];
    while let Some((hash, left)) = path.last_mut() {
        let Some(next) = left.pop() else {
            seen.insert(*hash, true);
            path.pop();
            continue;
        };
        match seen.get(&next.hash()) {
            Some(true) => {}
            Some(false) => return Err(("L3", Box::new(next))),
            None => path.push(open(next, seen, walked)?),
        }
    }
    Ok(())
}

/// Walks every fair run from every reachable state; `owners`: held against what a live owner may expect, too.
pub(crate) fn check(config: &Config, decisions: Decisions, owners: bool) -> Result<Walked, Failure> {
    let (recorder, states) = StateRecorder::new_with_accessor();
    Push::new(config.clone(), decisions).checker().visitor(recorder).spawn_bfs().join();
    let mut model = Push::new(config.clone(), decisions);
    model.epochs += MORE_EPOCHS;
    let mut seen = HashMap::new();
    let mut walked = Walked::default();
    for state in states() {
        for start in starts(config, &state) {
            walked.starts += 1;
            let ended = walk(&Walk { model: &model, owners }, &mut seen, start, &mut walked);
            ended.map_err(|(property, at)| Failure { property, walked, at: format!("{at:#?}") })?;
        }
    }
    Ok(walked)
}

/// Walks the default configurations, or all.
fn every_fair_run(configs: &[Config]) {
    for config in configs {
        let began = std::time::Instant::now();
        let walked = check(config, PRODUCTION, true);
        let walked = walked.unwrap_or_else(|f| panic!("{}: {} fails at {}", config.name, f.property, f.at));
        println!(
            "liveness {} | {} starts | {} states | {} transitions | {} ends | {:.1} s",
            config.name,
            walked.starts,
            walked.states,
            walked.transitions,
            walked.ends,
            began.elapsed().as_secs_f64()
        );
        assert!(walked.ends > 0 && walked.states > 100, "{}: {walked:?}", config.name);
    }
}

#[test]
fn every_fair_run_ends_with_a_receipt_or_a_refusal() {
    every_fair_run(crate::config::LIVENESS);
    if crate::whole().is_some() {
        every_fair_run(crate::config::LIVENESS_FULL);
    }
}
