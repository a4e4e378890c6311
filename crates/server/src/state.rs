//! What every handler shares: the door, the store, the bounds and the places that are taken. Nothing of it is truth: a
//! restart loses only who is waiting. Must not cache an answer for a key.

use std::sync::Arc;

use domain::PushId;
use store::Store;
use tokio::sync::{Semaphore, broadcast, watch};

use crate::config::BodyLimits;
use crate::record::Door;
use delivery::Clock;

/// What every handler shares.
pub struct App {
    pub(crate) door: Door,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) limits: BodyLimits,
    /// Places for requests.
    pub(crate) requests: Arc<Semaphore>,
    /// Places for attached clients that wait: half of the requests, so that waiting never starves pushing.
    pub(crate) waiting: Arc<Semaphore>,
    /// Bytes of bodies in memory.
    pub(crate) buffered: Arc<Semaphore>,
    /// Places for decoders.
    pub(crate) decoders: Arc<Semaphore>,
    draining: watch::Sender<bool>,
}

impl App {
    /// Over a store, with all places free.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, limits: BodyLimits) -> Arc<Self> {
        let places = |n: usize| Arc::new(Semaphore::new(n.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self {
            door: Door::new(Arc::clone(&store), clock),
            store,
            requests: places(limits.requests),
            waiting: places((limits.requests / 2).max(1)),
            buffered: places(limits.buffered_bytes),
            decoders: places(limits.decoders.max(1)),
            limits,
            draining: watch::Sender::new(false),
        })
    }

    /// Tells those who wait that the server stops.
    pub(crate) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// True once the server stops.
    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Ends when the server stops.
    pub(crate) async fn drained(&self) {
        let mut draining = self.draining.subscribe();
        // The sender lives as long as `self`.
        let _ = draining.wait_for(|draining| *draining).await;
    }

    /// Ids of pushes as they are recorded here.
    pub(crate) fn recordings(&self) -> broadcast::Receiver<PushId> {
        self.door.recordings()
    }
}
