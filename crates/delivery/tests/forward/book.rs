//! A ledger in memory that survives the processes that use it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use delivery::foreign::{Book, BookError, CycleId, TargetName, Turn};
use domain::intent::{Intent, IntentId, IntentState};
use domain::marker::WriteId;

use crate::world::World;

#[derive(Debug, Default)]
pub(crate) struct Pages {
    intents: BTreeMap<IntentId, Intent>,
    order: Vec<IntentId>,
    cycles: BTreeMap<WriteId, CycleId>,
    turn: u64,
    holder: Option<u64>,
}

/// A process's view of the ledger.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBook {
    pub(crate) pages: Arc<Mutex<Pages>>,
    pub(crate) world: Arc<World>,
}

impl MemoryBook {
    pub(crate) fn new(world: &Arc<World>) -> Self {
        Self { pages: Arc::default(), world: Arc::clone(world) }
    }

    /// What a dead process held is free.
    pub(crate) fn bury(&self) {
        self.pages.lock().unwrap().holder = None;
    }

    pub(crate) fn intents(&self) -> Vec<Intent> {
        let pages = self.pages.lock().unwrap();
        pages.order.iter().map(|id| pages.intents[id].clone()).collect()
    }
}

#[async_trait]
impl Book for MemoryBook {
    async fn take_turn(&self, _: &TargetName) -> Result<Option<Turn>, BookError> {
        let mut pages = self.pages.lock().unwrap();
        if pages.holder.is_some() {
            return Ok(None);
        }
        pages.turn += 1;
        pages.holder = Some(pages.turn);
        Ok(Some(Turn(pages.turn)))
    }

    async fn end_turn(&self, _: &TargetName, turn: Turn) -> Result<(), BookError> {
        let mut pages = self.pages.lock().unwrap();
        if pages.holder == Some(turn.0) {
            pages.holder = None;
        }
        Ok(())
    }

    async fn plan(&self, turn: Turn, intents: Vec<Intent>) -> Result<Vec<Intent>, BookError> {
        self.world.may_die().await;
        let mut pages = self.pages.lock().unwrap();
        if pages.holder != Some(turn.0) {
            return Err(BookError::Fenced);
        }
        let mut kept = Vec::new();
        for intent in intents {
            if !pages.intents.contains_key(&intent.id) {
                pages.order.push(intent.id);
            }
            kept.push(pages.intents.entry(intent.id).or_insert(intent).clone());
        }
        Ok(kept)
    }

    async fn unsettled(&self, _: &TargetName) -> Result<Vec<Intent>, BookError> {
        Ok(self.intents().into_iter().filter(|intent| !intent.state.is_settled()).collect())
    }

    async fn advance(&self, turn: Turn, from: IntentState, intent: &Intent) -> Result<(), BookError> {
        self.world.may_die().await;
        {
            let mut pages = self.pages.lock().unwrap();
            if pages.holder != Some(turn.0) {
                return Err(BookError::Fenced);
            }
            let kept = pages.intents.get_mut(&intent.id).unwrap();
            if kept.state != from {
                return Err(BookError::Elsewhere(kept.state));
            }
            *kept = intent.clone();
        }
        self.world.may_die().await;
        Ok(())
    }

    async fn cycle(&self, _: &TargetName, id: WriteId) -> Result<Option<CycleId>, BookError> {
        Ok(self.pages.lock().unwrap().cycles.get(&id).cloned())
    }

    async fn keep_cycle(&self, _: Turn, _: &TargetName, id: WriteId, cycle: Option<&CycleId>) -> Result<(), BookError> {
        self.world.may_die().await;
        let mut pages = self.pages.lock().unwrap();
        match cycle {
            Some(cycle) => pages.cycles.insert(id, cycle.clone()),
            None => pages.cycles.remove(&id),
        };
        Ok(())
    }
}
