//! The stub as its users hold it: start, plan, look, stop; and how a request goes through a vendor's transactions.
//! Must not know HTTP: `serve` does.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::stubs::fault::{Admin, Fault, Plan, Select};
use crate::stubs::live;
use crate::stubs::message::{Answer, Request};
use crate::stubs::quirks::{Quirks, with_extra_members};
use crate::stubs::serve;
use crate::stubs::shared::{Event, Shared};
use crate::stubs::vendor::{Call, Ledger, Next, Stamp, Turn, Vendor};

/// A stub server of one vendor, on a loopback port of its own. Stops when dropped; what is still waiting is lost.
/// Everything that does not depend on the vendor is in [`Door`].
#[derive(Debug)]
pub struct Stub<V: Vendor> {
    door: Door,
    engine: Arc<Engine<V>>,
    runtime: Option<Runtime>,
}

impl<V: Vendor> Stub<V> {
    /// Starts on a thread of its own; for synchronous and asynchronous callers alike.
    ///
    /// # Errors
    /// No port or no thread could be opened.
    pub fn start(vendor: V) -> io::Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("stub").enable_all().build()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let engine = Arc::new(Engine {
            vendor: Mutex::new(vendor),
            befores: Mutex::new(HashMap::new()),
            shared: Arc::new(Shared::default()),
        });
        runtime.spawn(serve::accept(listener, Arc::clone(&engine)));
        let looking: Arc<dyn Look> = Arc::clone(&engine) as _;
        let door = Door { addr, shared: Arc::clone(&engine.shared), vendor: looking };
        Ok(Self { door, engine, runtime: Some(runtime) })
    }

    /// The vendor's state, to look at and to change. Requests wait as long as this is held.
    pub fn vendor(&self) -> MutexGuard<'_, V> {
        self.engine.vendor()
    }

    /// Before the selected request is handled, and once only, this is done to the vendor's state: another writer,
    /// an administrator, a row more between two pages.
    pub fn before(&self, select: Select, act: impl FnOnce(&mut V, Stamp) + Send + 'static) {
        // Held over both: a request that is selected must find its act.
        let mut befores = self.engine.befores.lock().unwrap_or_else(PoisonError::into_inner);
        befores.insert(self.door.shared.add_before(select), Box::new(act));
    }
}

impl<V: Vendor> Deref for Stub<V> {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}

impl<V: Vendor> Drop for Stub<V> {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Not a plain drop: that panics when the stub is dropped inside another runtime.
            runtime.shutdown_background();
        }
    }
}

/// What can be said to and asked of any stub, whoever the vendor is.
#[derive(Debug)]
pub struct Door {
    addr: SocketAddr,
    shared: Arc<Shared>,
    vendor: Arc<dyn Look>,
}

impl Door {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://` and its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// From the next request on, this plan, from its beginning. The log and its numbers go on.
    pub fn set_plan(&self, plan: Plan) {
        self.shared.set_plan(plan);
    }

    /// From the next request on, these ways.
    pub fn set_quirks(&self, quirks: Quirks) {
        self.shared.set_quirks(quirks);
    }

    /// Holds the vendor's clock at this time (milliseconds since 1970); `None` is the machine's clock again.
    pub fn set_clock(&self, unix_ms: Option<i64>) {
        self.shared.set_clock(unix_ms);
    }

    /// The requests that pass the vendor's gap of this name meet there, so many at once.
    pub fn meet(&self, point: &str, size: u32) {
        self.shared.set_gap(point, size);
    }

    /// Lets go whatever waits for [`When::Told`](crate::stubs::When::Told) now.
    pub fn release(&self) {
        self.shared.release();
    }

    /// An administrator does this now; `false` if the vendor has no such thing.
    pub fn admin(&self, act: &Admin) -> bool {
        self.vendor.admin(act)
    }

    /// Everything that stands recorded.
    pub fn ledger(&self) -> Ledger {
        self.vendor.ledger()
    }

    /// [`Ledger::doubled`] now.
    pub fn doubled(&self) -> BTreeMap<String, usize> {
        self.ledger().doubled()
    }

    /// [`Ledger::lost`] now.
    pub fn lost<S: AsRef<str>>(&self, expected: impl IntoIterator<Item = S>) -> Vec<String> {
        self.ledger().lost(expected)
    }

    /// What happened so far, in order of arrival.
    pub fn log(&self) -> Vec<Event> {
        self.shared.log()
    }

    /// Blocks until the log satisfies `enough`, and returns it; `None` if it does not within `patience`. Lets a test
    /// act at a known moment, for example when a late request has been applied.
    pub fn wait_for(&self, patience: Duration, enough: impl FnMut(&[Event]) -> bool) -> Option<Vec<Event>> {
        self.shared.wait_for(patience, enough)
    }

    /// The requests and the answers so far, for a recorded fixture. Headers are left out: they hold secrets.
    pub fn traffic(&self) -> Value {
        let body =
            |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(bytes)));
        let one = |event: &Event| {
            let answer =
                event.answer.as_ref().map(|answer| json!({ "status": answer.status, "body": body(&answer.body) }));
            let request = &event.request;
            json!({ "method": request.method, "target": request.target, "body": body(&request.body), "answer": answer })
        };
        self.shared.log().iter().map(one).collect()
    }
}

/// What [`Door`] asks of a vendor without knowing which.
trait Look: Send + Sync + std::fmt::Debug {
    fn ledger(&self) -> Ledger;
    fn admin(&self, act: &Admin) -> bool;
}

type Before<V> = Box<dyn FnOnce(&mut V, Stamp) + Send>;

/// A vendor behind its lock.
pub(super) struct Engine<V: Vendor> {
    vendor: Mutex<V>,
    befores: Mutex<HashMap<u64, Before<V>>>,
    pub(super) shared: Arc<Shared>,
}

impl<V: Vendor> std::fmt::Debug for Engine<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl<V: Vendor> Look for Engine<V> {
    fn ledger(&self) -> Ledger {
        let mut vendor = self.vendor();
        vendor.settle(self.shared.stamp());
        vendor.ledger()
    }

    fn admin(&self, act: &Admin) -> bool {
        self.vendor().admin(act)
    }
}

impl<V: Vendor> Engine<V> {
    pub(super) fn vendor(&self) -> MutexGuard<'_, V> {
        self.vendor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the test does to the state before a request.
    pub(super) fn act_before(&self, ids: &[u64]) {
        for id in ids {
            let act = self.befores.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
            if let Some(act) = act {
                act(&mut self.vendor(), self.shared.stamp());
            }
        }
    }

    /// Takes a request through the vendor's transactions.
    pub(super) async fn apply(&self, no: u32, request: &Request, faults: &[Fault]) -> Answer {
        let part = faults
            .iter()
            .find_map(|fault| if let Fault::AppliedInPart { first } = fault { Some(*first) } else { None });
        let part = part.map(|first| self.vendor().part(request, first));
        let request = match &part {
            None => request,
            Some(Some(part)) => part,
            Some(None) => return self.vendor().problem(500, "internal error"),
        };
        let upstream = self.vendor().upstream();
        let answer = match upstream {
            Some(upstream) => live::ask(upstream, request).await,
            None => self.handled(request, faults).await,
        };
        self.shared.applied(no, answer.status);
        if self.shared.quirks().extra_members { with_extra_members(answer) } else { answer }
    }

    async fn handled(&self, request: &Request, faults: &[Fault]) -> Answer {
        let mut next: Option<Next<V>> = None;
        loop {
            match self.transaction(request, faults, next) {
                Turn::Done(answer) => return answer,
                Turn::Gap { point, then } => {
                    self.shared.pass_gap(point).await;
                    next = Some(then);
                }
            }
        }
    }

    fn transaction(&self, request: &Request, faults: &[Fault], next: Option<Next<V>>) -> Turn<V> {
        let quirks = self.shared.quirks();
        let mut vendor = self.vendor();
        let call = Call { request, now: self.shared.stamp(), quirks: &quirks, faults };
        vendor.settle(call.now);
        match next {
            Some(next) => next(&mut vendor, &call),
            None => vendor.handle(&call),
        }
    }
}
