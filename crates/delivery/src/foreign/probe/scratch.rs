//! The scratch cycle of a probe: made, remembered, and removed whatever happens. Must not know what is written into it.

use domain::marker::WriteId;
use futures_util::future::BoxFuture;
use rand::RngExt;

use super::call::{Called, called};
use super::measured::Twin;
use crate::clock::Clock;
use crate::foreign::adapter::{Adapter, Closing};
use crate::foreign::entry::{CycleId, CycleWanted};
use crate::foreign::patience::{GaveUp, Patience};
use crate::foreign::trouble::Trouble;

/// So often a removal is tried.
const TRIES_MAX: u32 = 4;
/// Between two tries of a removal, in milliseconds.
const PAUSE_MS: u64 = 1000;

/// The cycles of a probe.
pub(super) struct Scratch<'a> {
    pub(super) adapter: &'a dyn Adapter,
    wanted: CycleWanted,
    known: Vec<CycleId>,
    /// Something was asked for, so there may be something.
    asked: bool,
}

impl<'a> Scratch<'a> {
    /// Nothing is made yet.
    pub(super) fn new(adapter: &'a dyn Adapter, at: &str, patience: &mut Patience<'_>) -> Self {
        let id = WriteId(patience.random.random());
        let wanted = CycleWanted { name: format!("Tallyonce probe {at}"), id, link: None, given: None };
        Self { adapter, wanted, known: Vec::new(), asked: false }
    }

    /// Makes the cycle.
    pub(super) async fn make(&mut self, patience: &mut Patience<'_>) -> Result<CycleId, GaveUp> {
        self.asked = true;
        let (adapter, wanted) = (self.adapter, self.wanted.clone());
        match called(patience, adapter.facts().quiet_ms, || adapter.create_cycle(&wanted)).await? {
            Called::Done(cycle) => {
                self.known.push(cycle.clone());
                Ok(cycle)
            }
            Called::Refused(trouble) => Err(GaveUp::Refused(format!("no cycle can be made: {trouble}"))),
            Called::Unknown(what) => {
                let found = patience.reading(|| adapter.find_cycles(&wanted)).await?;
                self.known.extend(found.into_iter().map(|cycle| cycle.id));
                self.known.first().cloned().ok_or(GaveUp::Over(format!("no cycle could be made: {what}")))
            }
        }
    }

    /// Makes it once more.
    pub(super) async fn make_a_twin(&mut self, patience: &mut Patience<'_>) -> Result<Twin, GaveUp> {
        let (adapter, wanted) = (self.adapter, self.wanted.clone());
        let words = match called(patience, adapter.facts().quiet_ms, || adapter.create_cycle(&wanted)).await? {
            Called::Done(cycle) => {
                if !self.known.contains(&cycle) {
                    self.known.push(cycle);
                }
                None
            }
            Called::Refused(trouble) => Some(trouble.to_string()),
            Called::Unknown(what) => Some(what),
        };
        for cycle in patience.reading(|| adapter.find_cycles(&wanted)).await? {
            if !self.known.contains(&cycle.id) {
                self.known.push(cycle.id);
            }
        }
        Ok(Twin { made: self.known.len() > 1, words })
    }

    /// Deletes what was made, or closes it where nothing can be deleted. Also after a wish to stop. Says what is left.
    pub(super) async fn remove(mut self, clock: &dyn Clock) -> Vec<String> {
        if !self.asked {
            return Vec::new();
        }
        let mut left = Vec::new();
        match self.found(clock).await {
            Ok(found) => self.known.extend(found),
            Err(why) if self.known.is_empty() => {
                left.push(format!("perhaps a cycle named {:?}: {why}", self.wanted.name));
            }
            Err(_) => {}
        }
        self.known.sort();
        self.known.dedup();
        for cycle in &self.known {
            left.extend(self.remove_one(cycle, clock).await);
        }
        left
    }

    async fn found(&self, clock: &dyn Clock) -> Result<Vec<CycleId>, Trouble> {
        let found = again(clock, || self.adapter.find_cycles(&self.wanted)).await?;
        Ok(found.into_iter().map(|cycle| cycle.id).collect())
    }

    async fn remove_one(&self, cycle: &CycleId, clock: &dyn Clock) -> Option<String> {
        let mut why = "the product deletes no cycle".to_owned();
        if self.adapter.facts().repair.delete_cycle {
            match again(clock, || self.adapter.delete_cycle(cycle)).await {
                Ok(()) | Err(Trouble::Gone(_)) => return None,
                Err(trouble) => why = trouble.to_string(),
            }
        }
        match again(clock, || self.adapter.close_cycle(cycle, Closing::Abandoned)).await {
            Ok(()) => Some(format!("cycle {cycle}, closed ({why})")),
            Err(trouble) => Some(format!("cycle {cycle}, open: delete it by hand ({why}; {trouble})")),
        }
    }
}

/// A few tries that no wish to stop and no deadline ends: removing again is harmless.
async fn again<'c, T: Send>(
    clock: &dyn Clock,
    mut call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
) -> Result<T, Trouble> {
    let mut tries = 1;
    loop {
        match call().await {
            Err(Trouble::Wait { after_ms, .. }) if tries < TRIES_MAX => clock.sleep(after_ms).await,
            Err(Trouble::Unknown(_) | Trouble::NotSent(_)) if tries < TRIES_MAX => clock.sleep(PAUSE_MS).await,
            ended => return ended,
        }
        tries += 1;
    }
}
