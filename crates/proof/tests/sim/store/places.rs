//! Which place a target's ledger stands for, behind the same awaits and failures. Must not decide.

use async_trait::async_trait;
use domain::forwarding::TargetPlace;
use store::{Bound, Places, StoreError};

use super::{Apply, SimStore};
use crate::faults::Kind;

#[async_trait]
impl Places for SimStore {
    async fn place(&self, target: &str) -> Result<Option<TargetPlace>, StoreError> {
        self.read(self.durable().place(target)).await
    }

    async fn bind_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<Bound, StoreError> {
        let target = target.to_owned();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.bind_place(&target, turn, place).await }));
        self.write(None, Kind::Other, apply).await
    }

    async fn move_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<bool, StoreError> {
        let target = target.to_owned();
        let apply: Apply<_> =
            Box::new(move |store| Box::pin(async move { store.move_place(&target, turn, place).await }));
        self.write(None, Kind::Other, apply).await
    }
}
