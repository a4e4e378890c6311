//! The ledger of a target, as forwarding sees it: intents in a store of this machine, and the turn that one process has.
//! Must not know products.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use delivery::foreign::{Book, BookError, CycleId, TargetName, Turn};
use domain::intent::{Intent, IntentState};
use domain::marker::WriteId;
use store::{Advanced, IntentQuery, Ledger, StoreError};

/// Intents in a store.
pub struct StoreBook {
    ledger: Arc<dyn Ledger>,
    /// Beside it lies a file for each target, locked by whoever has the turn: the lock dies with its process.
    path: PathBuf,
    held: Mutex<BTreeMap<TargetName, File>>,
}

impl StoreBook {
    /// Over a store whose file is `path`.
    pub fn new(ledger: Arc<dyn Ledger>, path: PathBuf) -> Self {
        Self { ledger, path, held: Mutex::default() }
    }

    fn lock(&self, target: &TargetName) -> Result<Option<File>, BookError> {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{target}.turn"));
        let broken = |error: std::io::Error| BookError::Broken(format!("{}: {error}", PathBuf::from(&name).display()));
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&name).map_err(broken)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(broken(error)),
        }
    }
}

fn broken(error: &StoreError) -> BookError {
    BookError::Broken(error.to_string())
}

#[async_trait]
impl Book for StoreBook {
    async fn take_turn(&self, target: &TargetName) -> Result<Option<Turn>, BookError> {
        let Some(file) = self.lock(target)? else { return Ok(None) };
        let turn = self.ledger.next_turn(target.as_str()).await.map_err(|error| broken(&error))?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(target.clone(), file);
        Ok(Some(Turn(turn)))
    }

    async fn end_turn(&self, target: &TargetName, _: Turn) -> Result<(), BookError> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(target);
        Ok(())
    }

    async fn plan(&self, turn: Turn, intents: Vec<Intent>) -> Result<Vec<Intent>, BookError> {
        let Some(target) = intents.first().map(|intent| intent.target.clone()) else { return Ok(intents) };
        let planned = self.ledger.plan_intents(&target, turn.0, intents).await.map_err(|error| broken(&error))?;
        planned.ok_or(BookError::Fenced)
    }

    async fn unsettled(&self, target: &TargetName) -> Result<Vec<Intent>, BookError> {
        let states = IntentState::ALL.into_iter().filter(|state| !state.is_settled()).collect();
        let query = IntentQuery { target: Some(target.to_string()), states, ..IntentQuery::default() };
        self.ledger.intents(query).await.map_err(|error| broken(&error))
    }

    async fn advance(&self, turn: Turn, from: IntentState, intent: &Intent) -> Result<(), BookError> {
        match self.ledger.advance_intent(turn.0, from, intent.clone()).await.map_err(|error| broken(&error))? {
            Advanced::Done => Ok(()),
            Advanced::Fenced => Err(BookError::Fenced),
            Advanced::Elsewhere(state) => Err(BookError::Elsewhere(state)),
            Advanced::Unplanned => Err(BookError::Broken(format!("intent {} was never planned", intent.id))),
        }
    }

    async fn cycle(&self, target: &TargetName, id: WriteId) -> Result<Option<CycleId>, BookError> {
        let cycle = self.ledger.cycle_there(target.as_str(), id).await.map_err(|error| broken(&error))?;
        Ok(cycle.map(CycleId::new))
    }

    async fn keep_cycle(
        &self,
        turn: Turn,
        target: &TargetName,
        id: WriteId,
        cycle: Option<&CycleId>,
    ) -> Result<(), BookError> {
        let cycle = cycle.map(ToString::to_string);
        let kept = self.ledger.keep_cycle_there(target.as_str(), turn.0, id, cycle).await;
        if kept.map_err(|error| broken(&error))? { Ok(()) } else { Err(BookError::Fenced) }
    }
}
