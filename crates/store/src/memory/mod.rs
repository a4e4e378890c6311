//! The engine in memory, naive on purpose: whole pushes in ordered maps, everything counted anew for each reading.
//! The simulator runs on it, and it is the second opinion on the embedded engine. Must not share counting with that.

mod carry;
mod check;
mod forwards;
mod items;
mod ledger;
mod model;
mod places;
mod promote;
mod read;
mod record;
mod rounds;
mod stage;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use domain::listing::{
    CycleReport, CycleSummary, DifferenceReport, HistoryEntry, ItemPage, ItemQuery, PushReport, UnseenItem,
};
use domain::round::RoundChoice;
use domain::{CycleName, ItemHash, Manifest, ProjectId, Push, PushId};

use model::World;

use crate::{
    Begun, Cancelled, Chunk, Collected, Committed, Damage, EpochOf, Found, Lifetime, Now, Promoted, Promotion, Put,
    Recorded, RoundAction, StagingReport, Store, StoreError,
};

/// A store that lives as long as its process.
#[derive(Default)]
pub struct MemoryStore {
    world: Mutex<World>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// One lock for every reading and writing: each is one snapshot, each is one transaction.
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn record(&self, push: Arc<Push>, now: Now) -> Result<Recorded, StoreError> {
        record::record(&mut self.world(), &push, &now)
    }

    async fn begin(&self, manifest: Arc<Manifest>, now: Now) -> Result<Begun, StoreError> {
        stage::begin(&mut self.world(), &manifest, &now)
    }

    async fn put(&self, chunk: Arc<Chunk>, now: Now) -> Result<Put, StoreError> {
        Ok(stage::put(&mut self.world(), &chunk, &now))
    }

    async fn commit(&self, epoch: EpochOf, now: Now) -> Result<Committed, StoreError> {
        stage::commit(&mut self.world(), &epoch, &now)
    }

    async fn cancel(&self, epoch: EpochOf, now: Now) -> Result<Cancelled, StoreError> {
        Ok(stage::cancel(&mut self.world(), &epoch, &now))
    }

    async fn staging(&self, project: &ProjectId, push: PushId, now: Now) -> Result<Option<StagingReport>, StoreError> {
        Ok(stage::report(&self.world(), &(project.clone(), push), &now))
    }

    async fn collect(&self, lifetime: Lifetime, now: Now) -> Result<Collected, StoreError> {
        Ok(stage::collect(&mut self.world(), lifetime, &now))
    }

    async fn promote(&self, promotion: Promotion, now: Now) -> Result<Promoted, StoreError> {
        promote::promote(&mut self.world(), &promotion, &now)
    }

    async fn set_round(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
        action: RoundAction,
    ) -> Found<CycleReport> {
        Ok(rounds::set_round(&mut self.world(), project, cycle, round, action))
    }

    async fn drop_round(&self, project: &ProjectId, cycle: &CycleName, round: &str) -> Found<u64> {
        Ok(rounds::drop_round(&mut self.world(), project, cycle, round))
    }

    async fn projects(&self) -> Result<Vec<ProjectId>, StoreError> {
        Ok(self.world().projects.keys().cloned().collect())
    }

    async fn cycles(&self, project: &ProjectId) -> Found<Vec<CycleSummary>> {
        Ok(read::cycles(&self.world(), project))
    }

    async fn cycle(&self, project: &ProjectId, cycle: &CycleName, rounds: &RoundChoice) -> Found<CycleReport> {
        Ok(read::cycle(&self.world(), project, cycle, rounds))
    }

    async fn items(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        rounds: &RoundChoice,
        query: &ItemQuery,
    ) -> Found<ItemPage> {
        Ok(items::items(&self.world(), (project, cycle), rounds, query))
    }

    async fn not_seen_since(&self, project: &ProjectId, cycle: &CycleName) -> Found<Vec<UnseenItem>> {
        Ok(read::not_seen_since(&self.world(), project, cycle))
    }

    async fn item_history(
        &self,
        project: &ProjectId,
        cycle: Option<&CycleName>,
        item: ItemHash,
    ) -> Found<Vec<HistoryEntry>> {
        Ok(items::history(&self.world(), project, cycle, item))
    }

    async fn push(&self, project: &ProjectId, push: PushId) -> Found<PushReport> {
        Ok(read::push(&self.world(), project, push))
    }

    async fn receipt(&self, project: &ProjectId, push: PushId, revision: Option<u32>) -> Found<(Vec<u8>, u32)> {
        Ok(read::receipt(&self.world(), project, push, revision))
    }

    async fn difference(&self, project: &ProjectId, push: PushId, revision: u32) -> Found<DifferenceReport> {
        Ok(read::difference(&self.world(), project, push, revision))
    }

    async fn check(&self) -> Result<Vec<Damage>, StoreError> {
        Ok(check::check(&self.world()))
    }

    async fn repair(&self) -> Result<Vec<Damage>, StoreError> {
        // Nothing is derived beforehand, so nothing derived can be wrong.
        Ok(Vec::new())
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
