//! What all parts of one simulated world share: the one source of chance, virtual time, the trace, the server process,
//! the durable store, and the history that is judged. Must not know what is simulated on it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use delivery::Clock;
use proof::rng::Rng;
use store::MemoryStore;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::faults::{Class, Source};
use crate::history::History;
use crate::server::ServerProcess;
use crate::trace::Trace;

/// When every world begins: 2026-01-01.
const EPOCH_UNIX_MS: i64 = 1_767_225_600_000;

/// One world.
pub(crate) struct Sim {
    rng: Mutex<Rng>,
    trace: Mutex<Trace>,
    pub(crate) faults: Mutex<Source>,
    pub(crate) history: Mutex<History>,
    pub(crate) server: Mutex<ServerProcess>,
    /// The database: it outlives the server.
    pub(crate) durable: Arc<MemoryStore>,
    started: Instant,
    /// How far the server's clock is off, in milliseconds, and how far it ever was ahead.
    skew_ms: AtomicI64,
    ahead_ms: AtomicI64,
    numbers: AtomicU64,
    /// Client processes that are alive.
    processes: Mutex<BTreeMap<u64, AbortHandle>>,
}

/// Writes one line into the trace of a world.
macro_rules! note {
    ($sim:expr, $($words:tt)*) => { $sim.note(format_args!($($words)*)) };
}
pub(crate) use note;

/// Whatever a panic left: it fails the world anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sim {
    /// The world of a seed, at its beginning; within a runtime whose time is paused.
    pub(crate) fn new(rng: Rng, source: Source, keep_trace: bool) -> Arc<Self> {
        Arc::new(Self {
            rng: Mutex::new(rng),
            trace: Mutex::new(Trace::new(keep_trace)),
            faults: Mutex::new(source),
            history: Mutex::default(),
            server: Mutex::default(),
            durable: Arc::new(MemoryStore::new()),
            started: Instant::now(),
            skew_ms: AtomicI64::new(0),
            ahead_ms: AtomicI64::new(0),
            numbers: AtomicU64::new(0),
            processes: Mutex::default(),
        })
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        lock(&self.rng).below(bound)
    }

    /// Something drawn with the world's chance.
    pub(crate) fn draw<T>(&self, with: impl FnOnce(&mut Rng) -> T) -> T {
        with(&mut lock(&self.rng))
    }

    /// Rises with every call.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Virtual milliseconds since the beginning.
    pub(crate) fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub(crate) fn note(&self, words: fmt::Arguments<'_>) {
        lock(&self.trace).add(self.now_ms(), words);
    }

    pub(crate) fn trace(&self) -> MutexGuard<'_, Trace> {
        lock(&self.trace)
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        lock(&self.history)
    }

    /// A contradiction: the seed fails.
    pub(crate) fn violation(&self, words: fmt::Arguments<'_>) {
        note!(self, "VIOLATION: {words}");
        self.history().violations.push(words.to_string());
    }

    /// A fault has hit a runner's push.
    pub(crate) fn hit(&self, runner: Option<usize>, class: Class) {
        note!(self, "  fault on {runner:?}: {}", class.words());
        self.history().hit(runner, class);
    }

    /// The server's clock jumps.
    pub(crate) fn jump(&self, ms: i64) {
        let before = self.skew_ms.fetch_add(ms, Ordering::Relaxed);
        self.ahead_ms.fetch_max(before + ms, Ordering::Relaxed);
        note!(self, "server clock jumps by {ms} ms");
    }

    /// Faults end here, for good. The clock is behind no earlier reading of it from now on: a time in the future that
    /// staging was touched at would keep it from being idle until then.
    pub(crate) fn calm(&self) {
        self.skew_ms.store(self.ahead_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        *lock(&self.faults) = Source::Calm;
    }

    /// True once they have ended.
    pub(crate) fn is_calm(&self) -> bool {
        matches!(*lock(&self.faults), Source::Calm)
    }

    /// A client process that can be killed.
    pub(crate) fn started_process(&self, process: u64, handle: AbortHandle) {
        lock(&self.processes).insert(process, handle);
    }

    /// It ended by itself.
    pub(crate) fn ended_process(&self, process: u64) {
        lock(&self.processes).remove(&process);
    }

    /// Kills a client process, and says whether it was alive.
    pub(crate) fn kill(&self, process: u64) -> bool {
        let handle = lock(&self.processes).remove(&process);
        if let Some(handle) = &handle {
            note!(self, "process {process} is killed");
            handle.abort();
        }
        handle.is_some()
    }

    /// The server's clock, for what is asked of the store without the server.
    pub(crate) fn server_clock(self: &Arc<Self>) -> SimClock {
        SimClock { sim: Arc::clone(self), server: true }
    }

    /// A client's clock.
    pub(crate) fn client_clock(self: &Arc<Self>) -> SimClock {
        SimClock { sim: Arc::clone(self), server: false }
    }
}

/// Waits virtual milliseconds.
pub(crate) async fn sleep(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Virtual time as a clock; the server's may be off.
pub(crate) struct SimClock {
    sim: Arc<Sim>,
    server: bool,
}

#[async_trait]
impl Clock for SimClock {
    fn now_ms(&self) -> u64 {
        self.sim.now_ms()
    }

    fn unix_ms(&self) -> u64 {
        let skew = if self.server { self.sim.skew_ms.load(Ordering::Relaxed) } else { 0 };
        (EPOCH_UNIX_MS + self.sim.now_ms() as i64 + skew).max(0) as u64
    }

    async fn sleep(&self, ms: u64) {
        sleep(ms).await;
    }
}
