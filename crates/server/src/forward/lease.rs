//! The ledger of a target that a server forwards to: the server's own store, and a turn that is leased, so that of several
//! servers over one store one works at a target. Must not know products.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use delivery::foreign::{Book, BookError, CycleId, Of, TargetName, Turn};
use delivery::{Clock, Stop};
use domain::forwarding::TargetPlace;
use domain::intent::{Intent, IntentState};
use domain::marker::WriteId;
use store::{Store, StoreError};
use tokio::task::JoinHandle;

use super::ForwardTerms;
use crate::ledger::StoreBook;

/// Leased turns in a store. What is done under a lease that is lost is fenced off by the store itself; beyond that, `stop`
/// is raised, so that nothing more is sent or made: outcomes, cycles and cases alike are asked for right before they leave.
pub struct LeaseBook {
    store: Arc<dyn Store>,
    kept: StoreBook,
    clock: Arc<dyn Clock>,
    terms: ForwardTerms,
    /// A name that no other process has.
    holder: String,
    stop: Stop,
    held: Mutex<Option<Held>>,
    /// Until when others leave us the target, as far as the store has kept it.
    until_ms: Arc<AtomicU64>,
}

/// A lease in hand.
struct Held {
    turn: Turn,
    /// How often it was taken and not given back: a forwarder works within the turn of its worker.
    depth: u32,
    renewing: JoinHandle<()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

impl LeaseBook {
    /// Over a store. `stop` is raised when the lease is lost; once it is raised, by whomever, nothing is sent any more.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        terms: ForwardTerms,
        holder: impl Into<String>,
        stop: Stop,
    ) -> Self {
        // Turns are leased, so the lock beside a ledger's file is never asked for.
        let ledger: Arc<dyn Store> = Arc::clone(&store);
        let kept = StoreBook::new(ledger, std::path::PathBuf::new());
        Self {
            store,
            kept,
            clock,
            terms,
            holder: holder.into(),
            stop,
            held: Mutex::default(),
            until_ms: Arc::default(),
        }
    }

    /// Gives no turn unless the store stands for this place, or for none yet.
    #[must_use]
    pub fn standing_for(self, place: TargetPlace) -> Self {
        Self { kept: self.kept.standing_for(place), ..self }
    }

    fn nested(&self, by: i8) -> Option<Turn> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let lease = held.as_mut()?;
        let turn = lease.turn;
        lease.depth = lease.depth.saturating_add_signed(i32::from(by));
        if lease.depth == 0 {
            *held = None;
        }
        Some(turn)
    }

    fn may_send(&self) -> Result<(), BookError> {
        let is_over = self.clock.unix_ms() >= self.until_ms.load(Ordering::SeqCst);
        if is_over || self.stop.is_requested() { Err(BookError::Fenced) } else { Ok(()) }
    }

    fn is_held(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Keeps the lease until it is given back, lost, or the store can't be written for as long as it lasts.
    fn renewing(&self, target: &TargetName, turn: Turn, until_ms: u64) -> JoinHandle<()> {
        let (store, clock, stop) = (Arc::clone(&self.store), Arc::clone(&self.clock), self.stop.clone());
        let (target, terms, kept_ms) = (target.clone(), self.terms, Arc::clone(&self.until_ms));
        kept_ms.store(until_ms, Ordering::SeqCst);
        tokio::spawn(async move {
            let mut until_ms = until_ms;
            loop {
                clock.sleep(terms.renew_ms).await;
                let next_ms = clock.unix_ms().saturating_add(terms.lease_ms);
                match store.keep_lease(target.as_str(), turn.0, next_ms).await {
                    Ok(true) => {
                        until_ms = next_ms;
                        kept_ms.store(until_ms, Ordering::SeqCst);
                    }
                    Ok(false) => break,
                    Err(error) if clock.unix_ms() >= until_ms => {
                        tracing::warn!(%target, %error, "the lease could not be kept");
                        break;
                    }
                    Err(error) => tracing::debug!(%target, %error, "the lease is to be kept, and isn't yet"),
                }
            }
            tracing::warn!(%target, turn = turn.0, "another server forwards to this target now");
            stop.request();
        })
    }
}

fn broken(error: &StoreError) -> BookError {
    BookError::Broken(error.to_string())
}

#[async_trait]
impl Book for LeaseBook {
    async fn take_turn(&self, target: &TargetName) -> Result<Option<Turn>, BookError> {
        if let Some(turn) = self.nested(1) {
            return Ok(Some(turn));
        }
        let now_ms = self.clock.unix_ms();
        let until_ms = now_ms.saturating_add(self.terms.lease_ms);
        let taken = self.store.take_lease(target.as_str(), &self.holder, now_ms, until_ms).await;
        let Some(turn) = taken.map_err(|error| broken(&error))?.map(Turn) else { return Ok(None) };
        let renewing = self.renewing(target, turn, until_ms);
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(Held { turn, depth: 1, renewing });
        if let Err(error) = self.kept.bind(target, turn).await {
            self.end_turn(target, turn).await?;
            return Err(error);
        }
        Ok(Some(turn))
    }

    async fn end_turn(&self, target: &TargetName, turn: Turn) -> Result<(), BookError> {
        self.nested(-1);
        if self.is_held() {
            return Ok(());
        }
        self.store.end_lease(target.as_str(), turn.0).await.map_err(|error| broken(&error))
    }

    async fn plan(&self, turn: Turn, intents: Vec<Intent>) -> Result<Vec<Intent>, BookError> {
        self.kept.plan(turn, intents).await
    }

    async fn unsettled(&self, target: &TargetName, of: Option<Of<'_>>) -> Result<Vec<Intent>, BookError> {
        self.kept.unsettled(target, of).await
    }

    async fn known(&self, target: &TargetName, of: Of<'_>) -> Result<Vec<Intent>, BookError> {
        self.kept.known(target, of).await
    }

    async fn advance(&self, turn: Turn, from: IntentState, intent: &Intent) -> Result<(), BookError> {
        if intent.state != IntentState::Sending {
            return self.kept.advance(turn, from, intent).await;
        }
        // The last step before a send. A process that was stopped meanwhile finds its lease over here, before it has asked
        // anybody: whoever has the target now takes what it kept for possibly sent.
        self.may_send()?;
        self.kept.advance(turn, from, intent).await?;
        fail::fail_point!("server:forward:may-send");
        self.may_send()
    }

    fn may_change(&self) -> Result<(), BookError> {
        self.may_send()
    }

    async fn cycle(&self, target: &TargetName, id: WriteId) -> Result<Option<CycleId>, BookError> {
        self.kept.cycle(target, id).await
    }

    async fn keep_cycle(
        &self,
        turn: Turn,
        target: &TargetName,
        id: WriteId,
        cycle: Option<&CycleId>,
    ) -> Result<(), BookError> {
        self.kept.keep_cycle(turn, target, id, cycle).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A clock that somebody sets; nobody wakes from it.
    struct Set(AtomicU64);

    #[async_trait]
    impl Clock for Set {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }

        fn unix_ms(&self) -> u64 {
            self.now_ms()
        }

        async fn sleep(&self, _: u64) {
            std::future::pending::<()>().await;
        }
    }

    #[tokio::test]
    async fn nothing_is_made_under_a_lease_that_is_over_or_given_up() {
        let (target, terms) = (TargetName::parse("there").unwrap(), ForwardTerms::default());
        let clock = Arc::new(Set(AtomicU64::new(1_000)));
        let stop = Stop::new();
        let store: Arc<dyn Store> = Arc::new(store::MemoryStore::new());
        let book = LeaseBook::new(Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>, terms, "a", stop.clone());
        assert_eq!(book.may_change(), Err(BookError::Fenced), "nobody has taken it");
        book.take_turn(&target).await.unwrap().unwrap();
        assert_eq!(book.may_change(), Ok(()));
        // The process stood still until its lease had run out, and has asked nobody yet.
        clock.0.store(1_000 + terms.lease_ms, Ordering::SeqCst);
        assert_eq!(book.may_change(), Err(BookError::Fenced));
        clock.0.store(1_000, Ordering::SeqCst);
        stop.request();
        assert_eq!(book.may_change(), Err(BookError::Fenced));
    }
}
