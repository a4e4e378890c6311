//! One try, as the target that makes it sees it: how long it may take, and whom to tell how far it is.
//! Must not know targets, nor decide whether there is another try.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::clock::Clock;

/// How far a push in chunks is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Staged {
    /// Chunks of the push.
    pub chunks: u32,
    /// Those that the receiver has, as far as it said.
    pub there: u32,
    /// Those that were sent in this try and taken.
    pub sent: u32,
    /// True if this try's begin found staging that an earlier one had opened.
    pub resumed: bool,
}

/// One try.
pub struct Try<'a> {
    clock: &'a dyn Clock,
    until_ms: u64,
    staged: watch::Sender<Staged>,
    harmless: AtomicBool,
}

impl<'a> Try<'a> {
    /// A try that may take this long from now on.
    pub fn new(clock: &'a dyn Clock, left_ms: u64) -> Self {
        let until_ms = clock.now_ms().saturating_add(left_ms);
        Self { clock, until_ms, staged: watch::Sender::new(Staged::default()), harmless: AtomicBool::new(false) }
    }

    /// How many milliseconds are left of it.
    pub fn left_ms(&self) -> u64 {
        self.until_ms.saturating_sub(self.clock.now_ms())
    }

    /// The clock that it is measured with.
    pub fn clock(&self) -> &dyn Clock {
        self.clock
    }

    /// From here on nothing that is sent can record anything, until [`Try::may_record`].
    pub fn only_stages(&self) {
        self.harmless.store(true, Ordering::Relaxed);
    }

    /// What is sent next may be recorded.
    pub fn may_record(&self) {
        self.harmless.store(false, Ordering::Relaxed);
    }

    /// True if nothing that was sent can have recorded anything. A target that says nothing may have.
    pub fn is_harmless(&self) -> bool {
        self.harmless.load(Ordering::Relaxed)
    }

    /// Tells how far it is.
    pub fn tell(&self, change: impl FnOnce(&mut Staged)) {
        self.staged.send_modify(change);
    }

    /// How far it is.
    pub fn staged(&self) -> Staged {
        *self.staged.borrow()
    }

    /// Each change of how far it is.
    pub(crate) fn watch(&self) -> watch::Receiver<Staged> {
        self.staged.subscribe()
    }
}
