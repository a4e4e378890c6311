//! Which place a target's ledger stands for: asked before anything is kept or sent, and changed when a person says that the
//! target only moved. Must not decide which of two places is right.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use delivery::foreign::{Book, Turn};
use delivery::{Clock as _, Destination, Stop, SystemClock};
use domain::forwarding::TargetPlace;
use server::{ForwardTerms, LeaseBook, StoreBook};
use store::Store;

use super::{Forwarding, existing_ledger};
use crate::failure::Failure;
use crate::repository;

/// Between two looks whether another process still works at the target.
const AGAIN: Duration = Duration::from_millis(500);

impl Forwarding {
    /// Where intents are kept, for a target at this place.
    pub(super) fn book(&self, stop: &Stop) -> Result<Box<dyn Book>, Failure> {
        self.book_over(repository::open(&self.target.ledger.to_string())?, Some(self.target.settings.place()), stop)
    }

    fn book_over(
        &self,
        store: Arc<dyn Store>,
        place: Option<TargetPlace>,
        stop: &Stop,
    ) -> Result<Box<dyn Book>, Failure> {
        if self.target.served {
            let (clock, holder) = (Arc::new(SystemClock::new()), format!("{:032x}", rand::random::<u128>()));
            let book = LeaseBook::new(store, clock, ForwardTerms::default(), holder, stop.clone());
            return Ok(match place {
                Some(place) => Box::new(book.standing_for(place)),
                None => Box::new(book),
            });
        }
        let Destination::Sqlite(path) = &self.target.ledger else {
            return Err(Failure::usage("a ledger is kept in sqlite:PATH", "Mend `ledger` of the target."));
        };
        let book = StoreBook::new(store, PathBuf::clone(path));
        Ok(match place {
            Some(place) => Box::new(book.standing_for(place)),
            None => Box::new(book),
        })
    }

    /// Before anything is kept or run. A ledger that can't be read is no reason: whoever writes to it says what is wrong, and
    /// keeps the push.
    ///
    /// # Errors
    /// The ledger stands for another place.
    pub(crate) async fn stands_here(&self) -> Result<(), Failure> {
        let Ok(Some(ledger)) = existing_ledger(&self.target.ledger) else { return Ok(()) };
        match ledger.place(self.name()).await {
            Ok(known) => self.is_here(known),
            Err(_) => Ok(()),
        }
    }

    fn is_here(&self, known: Option<TargetPlace>) -> Result<(), Failure> {
        let now = self.target.settings.place();
        match known.filter(|known| *known != now) {
            Some(known) => Err(Failure::other_place(&self.target.settings.name, &known, &now)),
            None => Ok(()),
        }
    }

    /// Its ledger, if anything was recorded for it on this machine.
    ///
    /// # Errors
    /// It can't be opened, or it stands for another place: its ids mean nothing here.
    pub(crate) async fn ledger(&self) -> Result<Option<Arc<dyn Store>>, Failure> {
        let Some(ledger) = existing_ledger(&self.target.ledger)? else { return Ok(None) };
        let known = ledger.place(self.name()).await.map_err(|error| Failure::store(&error))?;
        self.is_here(known)?;
        Ok(Some(ledger))
    }

    /// Makes the ledger stand for the place that the settings name. Gives what it stood for before.
    ///
    /// # Errors
    /// There is no ledger, another process works at the target until the deadline, or it can't be written.
    pub(crate) async fn move_here(&self, deadline: Duration, stop: &Stop) -> Result<Option<TargetPlace>, Failure> {
        let name = &self.target.settings.name;
        let Some(ledger) = existing_ledger(&self.target.ledger)? else {
            return Err(Failure::usage(
                format!("{name}: nothing was recorded for it here, so nothing can have moved"),
                "Push to it: its first push says which place its ledger stands for.",
            ));
        };
        let book = self.book_over(Arc::clone(&ledger), None, stop)?;
        let turn = self.turn(&*book, deadline, stop).await?;
        let known = ledger.place(self.name()).await;
        let moved = ledger.move_place(self.name(), turn.0, self.target.settings.place()).await;
        let ended = book.end_turn(name, turn).await;
        let broken = |error: &dyn std::fmt::Display| {
            let what = format!("the ledger of {name} can't be written: {error}");
            Failure::machine(what, "Free space or mend permissions, then run the same command again.")
        };
        ended.map_err(|error| broken(&error))?;
        if !moved.map_err(|error| Failure::store(&error))? {
            return Err(broken(&"another process took its turn meanwhile"));
        }
        known.map_err(|error| Failure::store(&error))
    }

    async fn turn(&self, book: &dyn Book, deadline: Duration, stop: &Stop) -> Result<Turn, Failure> {
        let (clock, name) = (SystemClock::new(), &self.target.settings.name);
        let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        loop {
            let taken = book.take_turn(name).await.map_err(|error| self.halted(&error.into()))?;
            if let Some(turn) = taken {
                return Ok(turn);
            }
            if stop.is_requested() || clock.now_ms() >= deadline_ms {
                return Err(Failure::unanswered(name, "another process forwards to this target now"));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    pub(super) fn name(&self) -> &str {
        self.target.settings.name.as_str()
    }
}
