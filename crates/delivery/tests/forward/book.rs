//! A ledger in memory that survives the processes that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use delivery::foreign::{Book, BookError, CycleId, Of, TargetName, Turn};
use domain::intent::{Flag, Intent, IntentId, IntentState};
use domain::marker::WriteId;

use crate::world::World;

#[derive(Debug, Default, Clone)]
pub(crate) struct Pages {
    intents: BTreeMap<IntentId, Intent>,
    order: Vec<IntentId>,
    cycles: BTreeMap<WriteId, CycleId>,
    turn: u64,
    holder: Option<u64>,
    /// Every flag that was ever kept.
    ever: BTreeSet<Flag>,
}

/// A process's view of the ledger.
#[derive(Debug, Clone)]
pub(crate) struct MemoryBook {
    pub(crate) pages: Arc<Mutex<Pages>>,
    pub(crate) world: Arc<World>,
    /// Somebody else may have the turn by now.
    pub(crate) is_over: Arc<AtomicBool>,
    /// How many open intents were read whole.
    pub(crate) read: Arc<AtomicUsize>,
}

impl MemoryBook {
    pub(crate) fn new(world: &Arc<World>) -> Self {
        Self { pages: Arc::default(), world: Arc::clone(world), is_over: Arc::default(), read: Arc::default() }
    }

    /// What a dead process held is free.
    pub(crate) fn bury(&self) {
        self.pages.lock().unwrap().holder = None;
    }

    /// As it is now, for a restore.
    pub(crate) fn backup(&self) -> Pages {
        self.pages.lock().unwrap().clone()
    }

    pub(crate) fn restore(&self, pages: Pages) {
        let turn = self.pages.lock().unwrap().turn;
        *self.pages.lock().unwrap() = Pages { turn, holder: None, ..pages };
    }

    /// What the first intent means to write can't be read any more.
    pub(crate) fn spoil_first(&self) {
        let mut pages = self.pages.lock().unwrap();
        let first = pages.order[0];
        pages.intents.get_mut(&first).unwrap().body = b"no entries".to_vec();
    }

    /// Flags that were kept at any time.
    pub(crate) fn ever(&self) -> BTreeSet<Flag> {
        self.pages.lock().unwrap().ever.clone()
    }

    /// All flags, each once.
    pub(crate) fn flags(&self) -> Vec<Flag> {
        let flags: BTreeSet<Flag> = self.intents().into_iter().flat_map(|intent| intent.flags).collect();
        flags.into_iter().collect()
    }

    pub(crate) fn intents(&self) -> Vec<Intent> {
        let pages = self.pages.lock().unwrap();
        pages.order.iter().map(|id| pages.intents[id].clone()).collect()
    }
}

fn is_of(intent: &Intent, of: Of<'_>) -> bool {
    match of {
        Of::Push(project, key) => intent.project == *project && intent.key == *key,
        Of::Cycle(cycle) => intent.cycle_there.as_deref() == Some(cycle.as_str()),
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

    async fn unsettled(&self, _: &TargetName, of: Option<Of<'_>>) -> Result<Vec<Intent>, BookError> {
        let mut open = self.intents();
        open.retain(|intent| !intent.state.is_settled() && of.is_none_or(|of| is_of(intent, of)));
        self.read.fetch_add(open.len(), Ordering::Relaxed);
        Ok(open)
    }

    async fn known(&self, _: &TargetName, of: Of<'_>) -> Result<Vec<Intent>, BookError> {
        Ok(self.intents().into_iter().filter(|intent| is_of(intent, of)).collect())
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
            pages.ever.extend(&intent.flags);
        }
        self.world.may_die().await;
        Ok(())
    }

    fn may_change(&self) -> Result<(), BookError> {
        if self.is_over.load(Ordering::SeqCst) { Err(BookError::Fenced) } else { Ok(()) }
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
