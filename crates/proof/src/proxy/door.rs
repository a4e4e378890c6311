//! The proxy as its users hold it: start, plan, log, stop; and what its connections share.
//! Must not know HTTP: `relay` does.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinSet};

use crate::proxy::fault::{Event, Fault};
use crate::proxy::plan::{Plan, Progress};
use crate::proxy::relay::{Parked, Relay, Request};

/// A fault proxy in front of one upstream, on a loopback port of its own. Stops when dropped.
#[derive(Debug)]
pub struct FaultProxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
    /// Only of a proxy that was started from synchronous code.
    runtime: Option<Runtime>,
}

impl FaultProxy {
    /// Starts on the runtime of the caller.
    ///
    /// # Errors
    /// No port could be opened.
    pub async fn start(upstream: SocketAddr, plan: Plan) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared::new(upstream, plan));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self { addr, shared, accepting, runtime: None })
    }

    /// Starts on a thread of its own, for synchronous callers.
    ///
    /// # Errors
    /// No port or no thread could be opened.
    pub fn start_blocking(upstream: SocketAddr, plan: Plan) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fault-proxy")
            .enable_all()
            .build()?;
        let mut proxy = runtime.block_on(Self::start(upstream, plan))?;
        proxy.runtime = Some(runtime);
        Ok(proxy)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://` and its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// From the next connection and request on, this plan, from its beginning. The log and its numbers go on.
    pub fn set_plan(&self, plan: Plan) {
        self.shared.lock().plan = Progress::new(plan);
    }

    /// Another upstream from the next request on: a server that came back on another port, or a fail-over.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        self.shared.lock().upstream = upstream;
    }

    /// From the next request on, the upstream is told this host instead of the proxy's own: one that serves several
    /// hosts under one address tells them apart by it.
    pub fn set_host(&self, host: &str) {
        self.shared.lock().host = Some(host.to_owned());
    }

    /// What happened so far, in order of arrival.
    pub fn log(&self) -> Vec<Event> {
        self.shared.lock().log.clone()
    }

    /// How many faults were done so far.
    pub fn faults(&self) -> usize {
        self.shared.lock().log.iter().filter(|event| event.fault.is_some()).count()
    }

    /// Blocks until the log satisfies `enough`, and returns it; `None` if it does not within `patience`. Lets a test
    /// act at a known moment, for example while an answer is stalled (its `upstream_status` is there).
    pub fn wait_for(&self, patience: Duration, mut enough: impl FnMut(&[Event]) -> bool) -> Option<Vec<Event>> {
        let state = self.shared.lock();
        let (state, waited) = self
            .shared
            .changed
            .wait_timeout_while(state, patience, |state| !enough(&state.log))
            .unwrap_or_else(PoisonError::into_inner);
        (!waited.timed_out()).then(|| state.log.clone())
    }

    /// Closes the port and every connection. A request parked for a late delivery is lost.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Some(runtime) = self.runtime.take() {
            // Not a plain drop: that panics when the proxy is dropped inside another runtime.
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropping the set ends the connections with the proxy.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                if shared.resets_connection() {
                    let _ = stream.set_zero_linger();
                    continue;
                }
                let _ = stream.set_nodelay(true);
                connections.spawn(Relay::new(stream, Arc::clone(&shared)).run());
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// What all connections of one proxy share.
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    upstream: SocketAddr,
    host: Option<String>,
    plan: Progress,
    log: Vec<Event>,
    parked: Vec<Parked>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    fn new(upstream: SocketAddr, plan: Plan) -> Self {
        let state = State { upstream, host: None, plan: Progress::new(plan), log: Vec::new(), parked: Vec::new() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn upstream(&self) -> SocketAddr {
        self.lock().upstream
    }

    pub(crate) fn host(&self) -> Option<String> {
        self.lock().host.clone()
    }

    fn resets_connection(&self) -> bool {
        let mut state = self.lock();
        let reset = state.plan.reset_connection();
        if reset {
            state.push(Event {
                request_no: 0,
                method: String::new(),
                path: String::new(),
                key: None,
                request_bytes: 0,
                fault: Some(Fault::ResetOnConnect),
                upstream_status: None,
                duplicate_status: None,
            });
            self.changed.notify_all();
        }
        reset
    }

    /// Logs a request and says what is to happen to it.
    pub(crate) fn arrived(&self, request: &Request) -> (u32, Option<Fault>) {
        let (method, path) = (request.head.word(0), request.head.word(1));
        let mut state = self.lock();
        let fault = state.plan.decide(method, path);
        let no = state.push(Event {
            request_no: 0,
            method: method.to_owned(),
            path: path.to_owned(),
            key: request.head.header("idempotency-key").map(str::to_owned),
            request_bytes: request.len(),
            fault,
            upstream_status: None,
            duplicate_status: None,
        });
        self.changed.notify_all();
        (no, fault)
    }

    pub(crate) fn answered(&self, no: u32, status: u16) {
        self.answered_twice(no, status, None);
    }

    pub(crate) fn answered_twice(&self, no: u32, status: u16, other: Option<u16>) {
        let mut state = self.lock();
        if let Some(event) = state.log.get_mut(no as usize - 1) {
            event.upstream_status = Some(status);
            event.duplicate_status = other;
        }
        self.changed.notify_all();
    }

    pub(crate) fn park(&self, late: Parked) {
        self.lock().parked.push(late);
    }

    /// What waits for a request that came after it, such as this one: an answer to an earlier one passes nothing.
    pub(crate) fn take_parked(&self, passed_by: u32) -> Vec<Parked> {
        self.lock().parked.extract_if(.., |late| late.request_no < passed_by).collect()
    }
}

impl State {
    fn push(&mut self, event: Event) -> u32 {
        let no = self.log.len() as u32 + 1;
        self.log.push(Event { request_no: no, ..event });
        no
    }
}
