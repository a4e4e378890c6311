//! The ledger of a target, as forwarding sees it: intents in a store of this machine, and the turn that one process has.
//! Must not know products.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use delivery::foreign::{Book, BookError, CycleId, Of, TargetName, Turn};
use domain::forwarding::TargetPlace;
use domain::intent::{Intent, IntentState};
use domain::marker::WriteId;
use store::{Advanced, IntentQuery, Ledger, StoreError};

use crate::place;

/// Intents in a store.
pub struct StoreBook {
    ledger: Arc<dyn Ledger>,
    /// Beside it lies a file for each target, locked by whoever has the turn: the lock dies with its process.
    path: PathBuf,
    held: Mutex<BTreeMap<TargetName, File>>,
    place: Option<TargetPlace>,
}

impl StoreBook {
    /// Over a store whose file is `path`.
    pub fn new(ledger: Arc<dyn Ledger>, path: PathBuf) -> Self {
        Self { ledger, path, held: Mutex::default(), place: None }
    }

    /// Gives no turn unless the ledger stands for this place, or for none yet.
    #[must_use]
    pub fn standing_for(self, place: TargetPlace) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Refuses a turn that was given out, if the ledger stands for another place.
    pub(crate) async fn bind(&self, target: &TargetName, turn: Turn) -> Result<(), BookError> {
        match &self.place {
            Some(place) => place::bind(&*self.ledger, target, turn, place).await,
            None => Ok(()),
        }
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

pub(crate) fn broken(error: &StoreError) -> BookError {
    BookError::Broken(error.to_string())
}

/// What a ledger is asked for.
fn query(target: &TargetName, of: Option<Of<'_>>) -> IntentQuery {
    let all = IntentQuery { target: Some(target.to_string()), ..IntentQuery::default() };
    match of {
        None => all,
        Some(Of::Push(project, key)) => IntentQuery { project: Some(project.clone()), key: Some(key.clone()), ..all },
        Some(Of::Cycle(cycle)) => IntentQuery { cycle_there: Some(cycle.to_string()), ..all },
    }
}

#[async_trait]
impl Book for StoreBook {
    async fn take_turn(&self, target: &TargetName) -> Result<Option<Turn>, BookError> {
        let Some(file) = self.lock(target)? else { return Ok(None) };
        let turn = Turn(self.ledger.next_turn(target.as_str()).await.map_err(|error| broken(&error))?);
        self.bind(target, turn).await?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(target.clone(), file);
        Ok(Some(turn))
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

    async fn unsettled(&self, target: &TargetName, of: Option<Of<'_>>) -> Result<Vec<Intent>, BookError> {
        let states = IntentState::ALL.into_iter().filter(|state| !state.is_settled()).collect();
        let query = IntentQuery { states, ..query(target, of) };
        self.ledger.intents(query).await.map_err(|error| broken(&error))
    }

    async fn known(&self, target: &TargetName, of: Of<'_>) -> Result<Vec<Intent>, BookError> {
        self.ledger.intents(query(target, Some(of))).await.map_err(|error| broken(&error))
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

#[cfg(test)]
mod tests {
    use store::MemoryStore;
    use store::conformance::build::intent;

    use super::*;

    #[tokio::test]
    async fn a_push_and_a_cycle_are_asked_for_by_what_they_are() {
        let (store, target) = (Arc::new(MemoryStore::new()), TargetName::parse("there").unwrap());
        let turn = store.next_turn("there").await.unwrap();
        let other = domain::PushKey::parse("other").unwrap();
        let planned = vec![
            Intent { cycle_there: Some("7".to_owned()), ..intent(0) },
            Intent { cycle_there: Some("8".to_owned()), ..intent(1) },
            Intent { cycle_there: Some("7".to_owned()), key: other.clone(), state: IntentState::Acked, ..intent(2) },
        ];
        store.plan_intents("there", turn, planned).await.unwrap().unwrap();
        let book = StoreBook::new(store, PathBuf::from("nowhere"));
        let (shop, cycle) = (intent(0).project, CycleId::new("7"));
        let push = intent(0).key;
        for (of, numbers) in
            [(Of::Push(&shop, &push), vec![0, 1]), (Of::Push(&shop, &other), vec![2]), (Of::Cycle(&cycle), vec![0, 2])]
        {
            let known = book.known(&target, of).await.unwrap();
            assert_eq!(known.iter().map(|intent| intent.number).collect::<Vec<_>>(), numbers, "{of:?}");
            let open = book.unsettled(&target, Some(of)).await.unwrap();
            let open: Vec<u32> = open.iter().map(|intent| intent.number).collect();
            assert_eq!(open, numbers.into_iter().filter(|number| *number != 2).collect::<Vec<_>>(), "{of:?}");
        }
        let elsewhere = TargetName::parse("elsewhere").unwrap();
        assert_eq!(book.known(&elsewhere, Of::Cycle(&cycle)).await.unwrap(), []);
    }
}
