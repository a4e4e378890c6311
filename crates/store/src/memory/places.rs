//! Which place a target's ledger stands for, in the memory engine. Must not know what a place is.

use async_trait::async_trait;
use domain::forwarding::TargetPlace;

use super::MemoryStore;
use crate::{Bound, Places, StoreError};

#[async_trait]
impl Places for MemoryStore {
    async fn place(&self, target: &str) -> Result<Option<TargetPlace>, StoreError> {
        Ok(self.world().ledger.places_there.get(target).cloned())
    }

    async fn bind_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<Bound, StoreError> {
        let ledger = &mut self.world().ledger;
        if !ledger.counts(target, turn) {
            return Ok(Bound::Fenced);
        }
        let known = ledger.places_there.entry(target.to_owned()).or_insert_with(|| place.clone());
        Ok(if *known == place { Bound::Here } else { Bound::Elsewhere(known.clone()) })
    }

    async fn move_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<bool, StoreError> {
        let ledger = &mut self.world().ledger;
        let counts = ledger.counts(target, turn);
        if counts {
            ledger.places_there.insert(target.to_owned(), place);
        }
        Ok(counts)
    }
}
