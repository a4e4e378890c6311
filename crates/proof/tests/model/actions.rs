//! The model: which messages may come when, and stateright's view of it. What a message does is in `server`.
//! Must not decide anything itself.
//!
//! The network never loses a message for good and delivers it any number of times. A server crash is then a handled
//! request whose answer nobody reads; a runner's crash is a runner that sends no more; a restart from the same spool
//! sends what may be sent anyway. A runner that was superseded by its own re-execution may be paused only (X6), so old
//! incarnations go on. With that, whatever may be sent once may be delivered at any time later, and sending as a step of
//! its own only adds states: `folded` leaves it out, and a test compares both. So any number of drops, duplicates and
//! server crashes is in, not two of each.
//!
//! A zombie transaction is in for the same reason. One writer reads, decides and writes in one transaction, so a request
//! that dies unanswered is applied wholly at some later time or never: a delivery whose answer is lost. `zombies` makes
//! it a step of its own all the same, so that its rows are seen and that faults of an engine which decides or answers
//! before it applies have a place; a test compares both here too.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use stateright::{Model, Property};

use crate::config::Config;
use crate::decisions::{Choice, Decisions};
use crate::rows::{EVENTS, Event};
use crate::state::{DAMAGED, Request, SLOTS, State, Wish, Zombie};
use crate::{notes, people, properties, server, staged};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Send(Request),
    Deliver(Request, Choice),
    /// A request is taken in; it is applied later or never.
    TakeIn(Request, Choice),
    Resolve,
    /// The server dies, or the transaction fails.
    Abort,
    /// A runner's job is executed again: a new incarnation.
    Restart {
        runner: usize,
        wish: Wish,
    },
    Abandon {
        epoch: u8,
        idle: bool,
        idle_before: bool,
    },
    Sweep {
        epoch: u8,
    },
    Neighbour {
        ordinal: u8,
    },
    Delete,
}

/// The pushes under one key.
pub(crate) struct Push {
    pub(crate) config: Config,
    pub(crate) decisions: Decisions,
    /// No epoch has a higher number.
    pub(crate) epochs: u8,
    seen: [AtomicU64; 2],
}

impl Push {
    pub(crate) fn new(config: Config, decisions: Decisions) -> Self {
        Self { epochs: config.epochs, config, decisions, seen: [const { AtomicU64::new(0) }; 2] }
    }

    /// Notes that a step was this.
    pub(crate) fn saw_it(&self, event: Event) {
        let (word, bit) = (event as usize / 64, 1 << (event as usize % 64));
        if self.seen[word].load(Ordering::Relaxed) & bit == 0 {
            self.seen[word].fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Everything that was seen.
    pub(crate) fn events(&self) -> BTreeSet<Event> {
        let seen =
            |event: &Event| self.seen[*event as usize / 64].load(Ordering::Relaxed) & 1 << (*event as usize % 64) != 0;
        EVENTS.iter().map(|(event, ..)| *event).filter(seen).collect()
    }

    /// All that runners may send: begins at any time, the rest for an epoch that they were told of.
    fn requests(&self, state: &State) -> Vec<Request> {
        let config = &self.config;
        let mut requests = Vec::new();
        for (at, wish) in state.wishes.iter().enumerate() {
            let Some(wish) = wish else { continue };
            let at = at as u8;
            requests.push(Request::Begin { at });
            if config.one_shots {
                requests.push(Request::OneShot { at });
            }
            if config.attaches {
                requests.extend([Request::Attach { at }, Request::AttachElsewhere]);
            }
            let told = state.told[usize::from(at)];
            for epoch in (1..=self.epochs).filter(|epoch| told & 1 << epoch != 0) {
                requests.push(Request::Commit { epoch, asked: wish.content });
                if config.cancels {
                    requests.push(Request::Cancel { epoch });
                }
                for chunk in 0..config.chunks {
                    requests.extend(config.contents.iter().map(|bytes| Request::Put { epoch, chunk, bytes: *bytes }));
                }
                if config.damage {
                    requests.push(Request::Put { epoch, chunk: 0, bytes: DAMAGED });
                    requests.push(Request::Put { epoch, chunk: config.chunks, bytes: wish.content });
                }
            }
        }
        let done = state.revisions.iter().filter(|revision| crate::content::is_promotion(revision.source)).count();
        if config.promotions > 0 {
            let all = 1..=state.current();
            let again = done >= usize::from(config.promotions);
            requests
                .extend(all.clone().flat_map(|of| all.clone().map(move |expected| Request::Promote { of, expected })));
            // At the bound, only those that change nothing.
            requests.retain(|request| !matches!(request, Request::Promote { expected, .. } if again && *expected == state.current()));
        }
        requests.sort_unstable();
        requests.dedup();
        requests
    }

    fn choices(&self, request: Request) -> &'static [Choice] {
        let free = match request {
            Request::Begin { .. } | Request::OneShot { .. } => true,
            Request::Commit { .. } => self.config.refusals,
            _ => false,
        };
        if free { &[Choice(false), Choice(true)] } else { &[Choice(false)] }
    }

    /// All wishes that a runner may begin with.
    fn wishes(&self) -> Vec<Wish> {
        let config = &self.config;
        let mut wishes = Vec::new();
        for content in config.contents.iter().copied() {
            for ordinal in config.ordinals.iter().copied() {
                for executor in config.executors.iter().copied() {
                    wishes.extend(config.places.iter().map(|place| Wish { content, ordinal, executor, place: *place }));
                }
            }
        }
        wishes
    }

    /// A re-execution may say anything, at a higher or an unknown ordinal; a fenced runner says the same again.
    fn restarts(&self, state: &State, actions: &mut Vec<Action>) {
        let generations = self.config.generations;
        for at in (0..self.config.runners * generations).filter(|at| (at + 1) % generations != 0) {
            let Some(before) = state.wishes[at].filter(|_| state.wishes[at + 1].is_none()) else { continue };
            for wish in self.wishes() {
                let same_place = wish.place == before.place;
                if same_place && (wish == before || wish.ordinal == 0 || wish.ordinal > before.ordinal) {
                    actions.push(Action::Restart { runner: at / generations, wish });
                }
            }
        }
    }

    fn take_in(&self, state: &State, request: Request, choice: Choice) -> Zombie {
        let read = self.decisions.slips.reads_early.then(|| Box::new(State { zombie: None, ..state.clone() }));
        Zombie { request, choice: choice.0, read }
    }

    /// Applies a request that was taken in, or drops it.
    fn settle(&self, state: &mut State, abort: bool) -> Option<()> {
        let Zombie { request, choice, read } = state.zombie.take()?;
        if abort {
            let before = state.clone();
            if let (true, Request::Put { epoch, .. } | Request::Commit { epoch, .. }) =
                (self.decisions.slips.stores_failures, request)
                && state.open() == Some(epoch)
            {
                state.end(epoch, domain::staging::Fate::Refused);
            }
            if *state == before {
                notes::aborted(self, state, request);
            }
            return Some(());
        }
        let before = state.clone();
        let reply = server::deliver(self, state, read.as_deref(), request, Choice(choice))?;
        notes::resolved(self, &before, state, request, reply);
        Some(())
    }
}

impl Model for Push {
    type State = State;
    type Action = Action;

    /// Runners have no order, so only rising wishes; the first says the first content.
    fn init_states(&self) -> Vec<State> {
        let wishes = self.wishes();
        let mut chosen = vec![Vec::new()];
        for _ in 0..self.config.runners {
            let one_more = |before: &Vec<usize>| {
                let from = before.last().copied().unwrap_or(0);
                let before = before.clone();
                (from..wishes.len()).map(move |next| [before.clone(), vec![next]].concat()).collect::<Vec<_>>()
            };
            chosen = chosen.iter().flat_map(one_more).collect();
        }
        let state = |chosen: Vec<usize>| {
            let mut slots = [None; SLOTS];
            for (runner, wish) in chosen.into_iter().enumerate() {
                slots[runner * self.config.generations] = Some(wishes[wish]);
            }
            State::new(slots)
        };
        chosen.into_iter().map(state).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let config = &self.config;
        let requests = self.requests(state);
        let deliver = |request: Request| self.choices(request).iter().map(move |choice| (request, *choice));
        if config.sends {
            actions.extend(requests.into_iter().filter(|request| !state.net.contains(request)).map(Action::Send));
            actions.extend(state.net.iter().copied().flat_map(deliver).map(|(r, c)| Action::Deliver(r, c)));
        } else {
            if config.zombies && state.zombie.is_none() {
                let all = requests
                    .iter()
                    .copied()
                    .filter(|r| !matches!(r, Request::Attach { .. } | Request::AttachElsewhere));
                actions.extend(all.flat_map(deliver).map(|(r, c)| Action::TakeIn(r, c)));
            }
            actions.extend(requests.into_iter().flat_map(deliver).map(|(r, c)| Action::Deliver(r, c)));
        }
        if state.zombie.is_some() {
            actions.extend([Action::Resolve, Action::Abort]);
        }
        if config.generations > 1 {
            self.restarts(state, actions);
        }
        if config.gc {
            for epoch in 1..=state.latest() {
                for (idle, idle_before) in [(true, true), (true, false), (false, true)] {
                    actions.push(Action::Abandon { epoch, idle, idle_before });
                }
                actions.push(Action::Sweep { epoch });
            }
        }
        if config.neighbour && state.neighbour.is_none() && !state.deleted {
            actions.extend(config.ordinals.iter().map(|ordinal| Action::Neighbour { ordinal: *ordinal }));
        }
        if config.deletes && !state.deleted && !state.revisions.is_empty() {
            actions.push(Action::Delete);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Send(request) => {
                state.net.insert(request);
            }
            Action::Restart { runner, wish } => {
                let first = runner * self.config.generations;
                let at = (first..first + self.config.generations).find(|at| state.wishes[*at].is_none())?;
                state.wishes[at] = Some(wish);
            }
            Action::Deliver(request, choice) => {
                if before.zombie.as_ref().is_some_and(|zombie| zombie.request == request) {
                    self.saw_it(Event::X4);
                }
                server::deliver(self, &mut state, None, request, choice)?;
            }
            Action::TakeIn(request, choice) => {
                state.zombie = Some(self.take_in(before, request, choice));
                if self.decisions.slips.answers_early {
                    let mut ahead = before.clone();
                    server::deliver(self, &mut ahead, None, request, choice)?;
                    (state.recorded, state.refused, state.ended) = (ahead.recorded, ahead.refused, ahead.ended);
                }
            }
            Action::Resolve => self.settle(&mut state, false)?,
            Action::Abort => self.settle(&mut state, true)?,
            Action::Abandon { epoch, idle, idle_before } => {
                staged::abandon(self, &mut state, epoch, idle, idle_before);
            }
            Action::Sweep { epoch } => staged::sweep(self, &mut state, epoch),
            Action::Neighbour { ordinal } => people::neighbour(self, &mut state, ordinal),
            Action::Delete => people::delete(&mut state),
        }
        (state != *before).then_some(state)
    }

    /// Only a mutant makes more revisions than wishes, promotions and one more.
    fn within_boundary(&self, state: &State) -> bool {
        let wishes = self.config.runners * self.config.generations;
        state.revisions.len() <= (wishes + usize::from(self.config.promotions) + 1).min(7)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::safety()
    }
}
