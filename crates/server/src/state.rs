//! What every handler shares: the door, the store, the bounds and the places that are taken. Nothing of it is truth: a
//! restart loses only who is waiting. Must not cache an answer for a key.

use std::sync::Arc;

use domain::PushId;
use store::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, watch};

use crate::config::BodyLimits;
use crate::forward::{Board, ForwardTarget};
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
    /// Bytes of what is decoded and waits for the store.
    decoded: Arc<Semaphore>,
    /// How far forwarding is, as this process sees it.
    pub(crate) board: Board,
    draining: watch::Sender<bool>,
}

impl App {
    /// Over a store, with all places free, forwarding to nobody.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, limits: BodyLimits) -> Arc<Self> {
        Self::forwarding(store, clock, limits, &[])
    }

    /// The same, and what the store records from now on is to go to these targets. Who carries it there, the caller sees to.
    pub fn forwarding(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        limits: BodyLimits,
        targets: &[ForwardTarget],
    ) -> Arc<Self> {
        store.set_forward_rules(targets.iter().map(ForwardTarget::rule).collect());
        let places = |n: usize| Arc::new(Semaphore::new(n.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self {
            door: Door::new(Arc::clone(&store), clock),
            store,
            requests: places(limits.requests),
            waiting: places((limits.requests / 2).max(1)),
            buffered: places(limits.buffered_bytes),
            decoders: places(limits.decoders.max(1)),
            decoded: places(decoded_bytes(&limits)),
            limits,
            board: Board::new(targets),
            draining: watch::Sender::new(false),
        })
    }

    /// The door, for whoever calls the router in its own process.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// Waits until that many bytes of decoded content may wait for the store; they count until it is dropped. `None` if
    /// nobody owns the app any more.
    pub(crate) async fn hold_decoded(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = bytes.min(decoded_bytes(&self.limits));
        Arc::clone(&self.decoded).acquire_many_owned(u32::try_from(bytes).unwrap_or(u32::MAX)).await.ok()
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

/// As many as there are permits in one request for them.
fn decoded_bytes(limits: &BodyLimits) -> usize {
    limits.decoded_bytes.clamp(1, u32::MAX as usize)
}

/// Runs `work` to its end, even if the client has gone by then: the store goes on with what it was given, and what that
/// takes must stay counted as long.
pub(crate) async fn finish<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await.map_err(tokio::task::JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is ending, and this task with it.
        Err(Err(_)) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_goes_on_when_the_client_has_gone() {
        let places = Arc::new(Semaphore::new(1));
        let (go, gone) = tokio::sync::oneshot::channel::<()>();
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let mut begun = Box::pin(finish(async move {
            let _ = gone.await;
            drop(place);
        }));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(begun.as_mut().poll(&mut context).is_pending());
        drop(begun);
        tokio::task::yield_now().await;
        assert_eq!(places.available_permits(), 0, "what is being written still counts");
        go.send(()).unwrap();
        let _free = places.acquire().await.unwrap();
    }

    #[tokio::test]
    #[should_panic(expected = "on purpose")]
    async fn a_crash_of_the_work_is_a_crash_of_the_request() {
        finish(async { panic!("on purpose") }).await;
    }
}
