//! What all connections of one stub share, whoever the vendor is: the plan, the quirks, the log, the clock, and who
//! waits for what. Must not know sockets.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

use crate::stubs::fault::{Counted, Fault, Plan, Progress, Seen, Select, When};
use crate::stubs::message::{Answer, Request};
use crate::stubs::quirks::{Limit, Quirks, Rate, Window};
use crate::stubs::vendor::{Kind, Stamp};

/// One request, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// From 1, in order of arrival.
    pub no: u32,
    /// As the vendor classifies it.
    pub kind: Kind,
    /// The request as it came.
    pub request: Request,
    /// The faults that hit it.
    pub faults: Vec<Fault>,
    /// The vendor's own status, once it has handled the request; `None` if it never did.
    pub applied: Option<u16>,
    /// What was sent to the client whole; `None` if nothing was.
    pub answer: Option<Answer>,
}

impl Event {
    /// The status that the client saw.
    pub fn status(&self) -> Option<u16> {
        self.answer.as_ref().map(|answer| answer.status)
    }
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// For threads that wait.
    changed: Condvar,
    /// For connections that wait.
    bell: Notify,
}

#[derive(Debug, Default)]
struct State {
    plan: Progress,
    befores: Vec<(Counted, u64)>,
    next_before: u64,
    quirks: Quirks,
    log: Vec<Event>,
    /// Which requests have been handled, or never will be.
    handled: Vec<bool>,
    /// How often the test had said "release" when a request arrived.
    told_at: Vec<u64>,
    parked: Vec<Parked>,
    clock_ms: Option<i64>,
    order: u64,
    reads: u64,
    window: Window,
    gaps: HashMap<String, u32>,
    waiting: HashMap<String, u32>,
    told: u64,
}

/// A request that is applied when so many later ones have been handled.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) no: u32,
    pub(super) request: Request,
    requests: u32,
}

/// What the kernel has decided about a request that arrived.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) no: u32,
    pub(super) faults: Vec<Fault>,
    /// Acts of the test that come before it.
    pub(super) befores: Vec<u64>,
    pub(super) over_limit: Option<OverLimit>,
}

/// A request over the limit, and after how many seconds to come again, if the vendor tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct OverLimit {
    pub(super) seconds: Option<u64>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes who waits for a change.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let done = change(&mut self.lock());
        self.changed.notify_all();
        self.bell.notify_waiters();
        done
    }

    /// Waits until the state satisfies this.
    async fn until(&self, mut done: impl FnMut(&mut State) -> bool) {
        loop {
            let rung = self.bell.notified();
            tokio::pin!(rung);
            // Before looking: a change between the look and the wait must not be missed.
            rung.as_mut().enable();
            if done(&mut self.lock()) {
                return;
            }
            rung.await;
        }
    }

    pub(super) fn set_plan(&self, plan: Plan) {
        self.change(|state| state.plan = Progress::new(plan));
    }

    pub(super) fn add_before(&self, select: Select) -> u64 {
        self.change(|state| {
            state.next_before += 1;
            state.befores.push((Counted::new(select), state.next_before));
            state.next_before
        })
    }

    pub(super) fn set_quirks(&self, quirks: Quirks) {
        self.change(|state| state.quirks = quirks);
    }

    pub(super) fn quirks(&self) -> Quirks {
        self.lock().quirks.clone()
    }

    pub(super) fn set_clock(&self, unix_ms: Option<i64>) {
        self.change(|state| state.clock_ms = unix_ms);
    }

    pub(super) fn unix_ms(&self) -> i64 {
        self.lock().unix_ms()
    }

    /// The moment of a new transaction.
    pub(super) fn stamp(&self) -> Stamp {
        let mut state = self.lock();
        state.order += 1;
        Stamp { order: state.order, unix_ms: state.unix_ms(), reads: state.reads }
    }

    pub(super) fn log(&self) -> Vec<Event> {
        self.lock().log.clone()
    }

    /// Blocks until the log satisfies `enough`; `None` if it does not within `patience`.
    pub(super) fn wait_for(&self, patience: Duration, mut enough: impl FnMut(&[Event]) -> bool) -> Option<Vec<Event>> {
        let waited = self.changed.wait_timeout_while(self.lock(), patience, |state| !enough(&state.log));
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then(|| state.log.clone())
    }

    /// Logs a request and says what is to happen to it.
    pub(super) fn arrived(&self, request: &Request, kind: Kind, documented: Option<Rate>) -> Arrived {
        self.change(|state| {
            let no = state.log.len() as u32 + 1;
            let over_limit = state.over_limit(documented);
            let (mut faults, mut befores) = (Vec::new(), Vec::new());
            if over_limit.is_none() {
                state.reads += u64::from(matches!(kind, Kind::Read(_)));
                let (method, target) = (request.method.as_str(), request.target.as_str());
                let seen = Seen { kind: &kind, method, target, body: &request.body };
                faults = state.plan.decide(&seen);
                befores =
                    state.befores.iter_mut().filter_map(|(counted, id)| counted.hit(&seen).then_some(*id)).collect();
            }
            let event =
                Event { no, kind, request: request.clone(), faults: faults.clone(), applied: None, answer: None };
            state.log.push(event);
            state.handled.push(false);
            state.told_at.push(state.told);
            Arrived { no, faults, befores, over_limit }
        })
    }

    /// The vendor has handled it.
    pub(super) fn applied(&self, no: u32, status: u16) {
        self.change(|state| {
            if let Some(event) = state.log.get_mut(no as usize - 1) {
                event.applied = Some(status);
            }
        });
    }

    /// Nothing more will happen at the vendor before this request is answered.
    pub(super) fn handled(&self, no: u32) {
        self.change(|state| {
            if let Some(handled) = state.handled.get_mut(no as usize - 1) {
                *handled = true;
            }
        });
    }

    pub(super) fn answered(&self, no: u32, answer: &Answer) {
        self.change(|state| {
            if let Some(event) = state.log.get_mut(no as usize - 1) {
                event.answer = Some(answer.clone());
            }
        });
    }

    pub(super) fn park(&self, no: u32, request: Request, requests: u32) {
        self.change(|state| state.parked.push(Parked { no, request, requests }));
    }

    /// What is due when this request has been handled, which is not marked as such yet.
    pub(super) fn take_parked(&self, handling: u32) -> Vec<Parked> {
        let mut state = self.lock();
        let handled = std::mem::take(&mut state.handled);
        let due = |parked: &mut Parked| later(&handled, parked.no) + u32::from(handling > parked.no) >= parked.requests;
        let due = state.parked.extract_if(.., due).collect();
        state.handled = handled;
        due
    }

    /// Waits for this moment, as seen from this request. [`When::ClientGone`] is the connection's business: never.
    pub(super) async fn wait(&self, no: u32, when: When) {
        match when {
            When::After(time) => tokio::time::sleep(time).await,
            When::Requests(count) => self.until(|state| later(&state.handled, no) >= count).await,
            When::Told => self.until(|state| Some(&state.told) > state.told_at.get(no as usize - 1)).await,
            When::ClientGone => std::future::pending().await,
        }
    }

    pub(super) fn release(&self) {
        self.change(|state| state.told += 1);
    }

    pub(super) fn set_gap(&self, point: &str, size: u32) {
        self.change(|state| state.gaps.insert(point.to_owned(), size));
    }

    /// Passes a vendor's gap, where the test may have called a meeting.
    pub(super) async fn pass_gap(&self, point: &str) {
        let size = self.lock().gaps.get(point).copied();
        match size {
            Some(size) => self.meet(point, size).await,
            None => tokio::task::yield_now().await,
        }
    }

    /// Waits until `size` wait here, in groups.
    pub(super) async fn meet(&self, point: &str, size: u32) {
        let size = size.max(1);
        let here = self.change(|state| {
            let count = state.waiting.entry(point.to_owned()).or_default();
            *count += 1;
            *count
        });
        let needed = here.div_ceil(size) * size;
        self.until(|state| state.waiting.get(point).is_some_and(|count| *count >= needed)).await;
    }
}

/// How many requests that arrived after this one have been handled.
fn later(handled: &[bool], no: u32) -> u32 {
    handled.iter().skip(no as usize).filter(|handled| **handled).count() as u32
}

impl State {
    #[expect(clippy::disallowed_methods, reason = "a vendor has a clock of its own, which tests may set")]
    fn unix_ms(&self) -> i64 {
        self.clock_ms.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }

    fn over_limit(&mut self, documented: Option<Rate>) -> Option<OverLimit> {
        let rate = match self.quirks.limit {
            Limit::Off => return None,
            Limit::AsDocumented => documented?,
            Limit::Rate(rate) => rate,
        };
        let now_ms = self.unix_ms();
        self.window.refuses(rate, now_ms).map(|seconds| OverLimit { seconds: rate.tells.then_some(seconds) })
    }
}
