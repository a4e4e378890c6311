//! The model: bounds, which messages may come when, and stateright's view of it.
//! What a message does is in `server`. Must not decide anything itself.
//!
//! The network never loses a message for good and delivers it any number of times. A server crash is then a handled
//! request whose answer nobody reads; a runner's crash is a runner that sends no more; a restart from the same spool
//! sends what may be sent anyway. A runner that was superseded by its own re-execution may be paused only (X6), so old
//! incarnations go on. With that, whatever may be sent once may be delivered at any time later, and sending as a step of
//! its own only adds states: `folded` leaves it out, and a test compares both.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use stateright::{Model, Property};

use crate::rows::{self, Row};
use crate::server::{Choice, Decisions};
use crate::state::{GENERATIONS, Request, State, WISHES, Wish};
use crate::{properties, server};

/// Bounds and freedoms of one run.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) chunks: u32,
    pub(crate) manifests: u8,
    /// Attempt numbers that a runner may have; 0 is "unknown".
    pub(crate) ordinals: &'static [u8],
    pub(crate) epochs: u8,
    /// True: `on-difference fail`, so nothing is staged after a commit; false: overlays.
    pub(crate) fail: bool,
    /// Whether runners may be executed again.
    pub(crate) restarts: bool,
    pub(crate) cancels: bool,
    /// Whether a commit may be refused for good.
    pub(crate) refusals: bool,
    pub(crate) gc: bool,
    /// Whether sending is a step of its own.
    pub(crate) sends: bool,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Send(Request),
    Deliver(Request, Choice),
    /// A runner's job is executed again: a new incarnation.
    Restart {
        runner: usize,
        wish: Wish,
    },
    Abandon {
        epoch: u8,
    },
    Sweep {
        epoch: u8,
    },
}

/// The staged push of one key.
pub(crate) struct Push {
    pub(crate) config: Config,
    pub(crate) decisions: Decisions,
    seen: AtomicU64,
}

impl Push {
    pub(crate) fn new(config: Config, decisions: Decisions) -> Self {
        Self { config, decisions, seen: AtomicU64::new(0) }
    }

    /// Notes that a step was this row.
    pub(crate) fn row(&self, row: Row) {
        self.seen.fetch_or(1 << row as u64, Ordering::Relaxed);
    }

    /// True once a step was this row.
    pub(crate) fn saw(&self, row: Row) -> bool {
        self.seen.load(Ordering::Relaxed) & 1 << row as u64 != 0
    }

    /// Names of the rows that were seen.
    pub(crate) fn rows(&self) -> BTreeSet<&'static str> {
        rows::ALL.iter().filter(|(row, _)| self.saw(*row)).map(|(_, name)| *name).collect()
    }

    /// All that runners may send: begins at any time, the rest for an epoch that they were told of.
    fn requests(&self, state: &State) -> BTreeSet<Request> {
        let mut requests = BTreeSet::new();
        for (at, wish) in state.wishes.iter().enumerate() {
            let Some(wish) = wish else { continue };
            let at = at as u8;
            requests.extend([Request::Begin { wish: at }, Request::Attach { wish: at }]);
            let told = state.told[usize::from(at)];
            for epoch in (1..=state.latest()).filter(|epoch| told & 1 << epoch != 0) {
                requests.insert(Request::Commit { epoch, asked: wish.manifest });
                if self.config.cancels {
                    requests.insert(Request::Cancel { epoch });
                }
                for chunk in 0..self.config.chunks {
                    requests.extend((0..self.config.manifests).map(|bytes| Request::Put { epoch, chunk, bytes }));
                }
            }
        }
        requests
    }

    fn deliveries(&self, request: Request, actions: &mut Vec<Action>) {
        let free = match request {
            Request::Begin { .. } => true,
            Request::Commit { .. } => self.config.refusals,
            Request::Put { .. } | Request::Cancel { .. } | Request::Attach { .. } => false,
        };
        actions.push(Action::Deliver(request, Choice(false)));
        if free {
            actions.push(Action::Deliver(request, Choice(true)));
        }
    }

    /// A re-execution may say anything, at a higher or an unknown ordinal; a fenced runner says the same again.
    fn restarts(&self, state: &State, actions: &mut Vec<Action>) {
        for at in (0..WISHES).filter(|at| at % GENERATIONS + 1 < GENERATIONS) {
            let Some(before) = state.wishes[at].filter(|_| state.wishes[at + 1].is_none()) else { continue };
            for manifest in 0..self.config.manifests {
                for ordinal in self.config.ordinals.iter().copied() {
                    let wish = Wish { manifest, ordinal };
                    if wish == before || ordinal == 0 || ordinal > before.ordinal {
                        actions.push(Action::Restart { runner: at / GENERATIONS, wish });
                    }
                }
            }
        }
    }
}

impl Model for Push {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut states = Vec::new();
        // Contents have no order, so the first runner's is the first.
        for a in self.config.ordinals {
            for b in self.config.ordinals {
                for manifest in 0..self.config.manifests {
                    let mut wishes = [None; WISHES];
                    wishes[0] = Some(Wish { manifest: 0, ordinal: *a });
                    wishes[GENERATIONS] = Some(Wish { manifest, ordinal: *b });
                    states.push(State::new(wishes));
                }
            }
        }
        states
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let requests = self.requests(state);
        if self.config.sends {
            actions.extend(requests.difference(&state.net).copied().map(Action::Send));
            for request in &state.net {
                self.deliveries(*request, actions);
            }
        } else {
            for request in requests {
                self.deliveries(request, actions);
            }
        }
        if self.config.restarts {
            self.restarts(state, actions);
        }
        if self.config.gc {
            for epoch in 1..=state.latest() {
                actions.extend([Action::Abandon { epoch }, Action::Sweep { epoch }]);
            }
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Send(request) => {
                state.net.insert(request);
            }
            Action::Restart { runner, wish } => {
                let at = (runner * GENERATIONS..WISHES).find(|at| state.wishes[*at].is_none())?;
                state.wishes[at] = Some(wish);
            }
            Action::Deliver(request, choice) => server::deliver(self, &mut state, request, choice)?,
            Action::Abandon { epoch } => server::abandon(self, &mut state, epoch),
            Action::Sweep { epoch } => server::sweep(self, &mut state, epoch),
        }
        (state != *before).then_some(state)
    }

    /// Only a mutant makes more revisions than epochs; one more shows it.
    fn within_boundary(&self, state: &State) -> bool {
        state.receipts.len() <= usize::from(self.config.epochs) + 1
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = properties::safety();
        all.extend(rows::properties());
        all
    }
}
