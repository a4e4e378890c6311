//! Time that only passes when everybody waits, chance from one seed, and processes that die at a chosen step.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;
use delivery::Clock;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct World {
    now_ms: AtomicU64,
    random: Mutex<StdRng>,
    /// Steps until the process dies; below zero it lives.
    fuse: AtomicI64,
    died: Notify,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now_ms: AtomicU64::new(1_790_000_000_000),
            random: Mutex::new(StdRng::seed_from_u64(seed)),
            fuse: AtomicI64::new(-1),
            died: Notify::new(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    /// Time passes.
    pub(crate) fn pass(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.random.lock().unwrap().random_range(0..bound)
    }

    /// The process dies after so many steps.
    pub(crate) fn light(&self, steps: i64) {
        self.fuse.store(steps, Ordering::SeqCst);
    }

    /// A step at which the process may die: then it never goes on.
    pub(crate) async fn may_die(&self) {
        let left = self.fuse.load(Ordering::SeqCst);
        if left < 0 {
            return;
        }
        self.fuse.store(left - 1, Ordering::SeqCst);
        if left == 0 {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// Runs a process until it ends or dies; `None` if it died.
    pub(crate) async fn process<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            ended = work => { self.light(-1); Some(ended) }
            () = self.died.notified() => { self.light(-1); None }
        }
    }
}

#[async_trait]
impl Clock for World {
    fn now_ms(&self) -> u64 {
        self.now()
    }

    fn unix_ms(&self) -> u64 {
        self.now()
    }

    async fn sleep(&self, ms: u64) {
        self.pass(ms);
        self.may_die().await;
    }
}
