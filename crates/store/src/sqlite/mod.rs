//! The embedded engine: one file, one writer that commits waiting jobs as a group, readers beside it that never wait.
//! Must not decide on deliveries, verdicts or rounds: the domain does.

mod accept;
mod cache;
mod check;
mod connect;
mod content;
mod cycle;
mod delivered;
mod detail;
mod facts;
mod forwards;
mod history;
mod items;
mod known;
mod ledger;
mod migrations;
mod mutants;
mod parts;
mod places;
mod points;
mod prepare;
mod promote;
mod pushes;
mod readers;
mod record;
mod resolve;
mod rounds;
mod rows;
mod stage;
mod unseen;
mod waiting;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use domain::listing::{
    CycleReport, CycleSummary, DifferenceReport, HistoryEntry, ItemPage, ItemQuery, PushReport, UnseenItem,
};
use domain::round::RoundChoice;
use domain::{CycleName, ItemHash, Manifest, ProjectId, Push, PushId};
use rusqlite::{Connection, params};

#[cfg(feature = "failpoints")]
pub use points::FAIL_POINTS;

use cache::Caches;
use facts::{Missing, found};
use forwards::Rules;
use prepare::{Prepared, prepare};
use readers::Readers;
use record::{Delivery, Step};
use stage::{PutChunk, PutStep};
use writer::Writer;

use crate::{
    Begun, Cancelled, Chunk, Collected, Committed, Damage, EpochOf, Found, Lifetime, Now, Promoted, Promotion, Put,
    Recorded, RoundAction, StagingReport, Store, StoreError, codec,
};

/// A store in one file.
pub(crate) struct SqliteStore {
    writer: Writer,
    readers: Arc<Readers>,
    caches: Arc<Caches>,
    rules: Rules,
}

impl SqliteStore {
    /// Opens the file, creates or migrates it if need be.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let path: PathBuf = path.to_path_buf();
        let mut connection = connect::writer(&path)?;
        migrations::migrate(&connection)?;
        writer::hook(&mut connection)?;
        Ok(Self {
            readers: Arc::new(Readers::new(path.clone())),
            writer: Writer::start(connection, path)?,
            caches: Arc::new(Caches::new()),
            rules: Rules::default(),
        })
    }

    /// Makes the blocks of a push, unless its key is recorded: then most likely nobody needs them.
    async fn prepare(&self, push: &Arc<Push>, even_if_known: bool) -> Result<Option<Arc<Prepared>>, StoreError> {
        let push = Arc::clone(push);
        self.readers
            .read(move |snap| {
                let project = rows::project_id(snap, push.place.project.as_str())?;
                let uid = PushId::of(&push.place.project, &push.key);
                let mut known = snap.prepare_cached("SELECT 1 FROM push WHERE project = ?1 AND uid = ?2")?;
                if !even_if_known && known.exists(params![project, uid.0])? {
                    return Ok(None);
                }
                let mut sets = snap.prepare_cached("SELECT 1 FROM itemset WHERE project = ?1 AND digest = ?2")?;
                let known = |set: &[u8; 16]| sets.exists(params![project, set]).unwrap_or(false);
                let bits = codec::bits_for(push.outcomes.len());
                Ok(Some(Arc::new(prepare(&push.outcomes, bits, known))))
            })
            .await
    }

    async fn read<T, F>(&self, work: F) -> Found<T>
    where
        T: Send + 'static,
        F: FnOnce(&content::Snap<'_>, &Caches) -> Result<T, Missing> + Send + 'static,
    {
        let caches = Arc::clone(&self.caches);
        self.readers.read(move |snap| found(work(snap, &caches))).await
    }

    async fn write<T, F>(&self, work: F) -> Found<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Missing> + Send + 'static,
    {
        // A question that has no answer wrote nothing, and leaves its savepoint as one that did.
        self.writer.run(move |connection| found(work(connection))).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn record(&self, push: Arc<Push>, now: Now) -> Result<Recorded, StoreError> {
        let mut prepared = self.prepare(&push, false).await?;
        // Twice is enough: with blocks at hand, a delivery is always carried out.
        for _ in 0..2 {
            let delivery = Delivery {
                push: Arc::clone(&push),
                now: now.clone(),
                prepared: prepared.clone(),
                rules: self.rules.now(),
            };
            match self.writer.run(move |connection| record::record(connection, &delivery)).await? {
                Step::Done(recorded) => return Ok(recorded),
                Step::NeedsBlocks => prepared = self.prepare(&push, true).await?,
            }
        }
        Err(connect::broken("a delivery was not carried out although its blocks were made"))
    }

    async fn begin(&self, manifest: Arc<Manifest>, now: Now) -> Result<Begun, StoreError> {
        self.writer.run(move |connection| stage::begin(connection, &manifest, &now)).await
    }

    async fn put(&self, chunk: Arc<Chunk>, now: Now) -> Result<Put, StoreError> {
        // Twice is enough: an epoch that the snapshot did not have yet is there by then.
        for _ in 0..2 {
            let (reading, ms) = (Arc::clone(&chunk), now.ms);
            let prepared = match self.readers.read(move |snap| stage::prepare(snap, &reading, ms)).await? {
                PutStep::Done(put) => return Ok(put),
                PutStep::Run(prepared) => prepared,
            };
            let of = PutChunk { chunk: Arc::clone(&chunk), now: now.clone(), prepared };
            if let PutStep::Done(put) = self.writer.run(move |connection| stage::put(connection, &of)).await? {
                return Ok(put);
            }
        }
        Err(connect::broken("a chunk was not stored although its blocks were made"))
    }

    async fn commit(&self, epoch: EpochOf, now: Now) -> Result<Committed, StoreError> {
        let rules = self.rules.now();
        self.writer.run(move |connection| stage::commit(connection, &epoch, &now, &rules)).await
    }

    async fn cancel(&self, epoch: EpochOf, now: Now) -> Result<Cancelled, StoreError> {
        self.writer.run(move |connection| stage::cancel(connection, &epoch, &now)).await
    }

    async fn staging(&self, project: &ProjectId, push: PushId, now: Now) -> Result<Option<StagingReport>, StoreError> {
        let project = project.clone();
        self.readers.read(move |snap| stage::report(snap, &project, push, &now)).await
    }

    async fn collect(&self, lifetime: Lifetime, now: Now) -> Result<Collected, StoreError> {
        let at = now.clone();
        if !self.readers.read(move |snap| stage::is_due(snap, lifetime, &at)).await? {
            return Ok(Collected::default());
        }
        self.writer.run(move |connection| stage::collect(connection, lifetime, &now)).await
    }

    async fn promote(&self, promotion: Promotion, now: Now) -> Result<Promoted, StoreError> {
        let rules = self.rules.now();
        self.writer.run(move |connection| promote::promote(connection, &promotion, &now, &rules)).await
    }

    async fn set_round(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
        action: RoundAction,
    ) -> Found<CycleReport> {
        let (place, name) = ((project.clone(), cycle.clone()), round.to_owned());
        let set = self.write(move |connection| rounds::set(connection, (&place.0, &place.1), &name, action)).await?;
        match set {
            Ok(round) => self.cycle(project, cycle, &RoundChoice::Named(round)).await,
            Err(absent) => Ok(Err(absent)),
        }
    }

    async fn drop_round(&self, project: &ProjectId, cycle: &CycleName, round: &str) -> Found<u64> {
        let (project, cycle, round) = (project.clone(), cycle.clone(), round.to_owned());
        self.write(move |connection| rounds::drop_round(connection, (&project, &cycle), &round)).await
    }

    async fn projects(&self) -> Result<Vec<ProjectId>, StoreError> {
        self.readers.read(|snap| cycle::projects(snap)).await
    }

    async fn cycles(&self, project: &ProjectId) -> Found<Vec<CycleSummary>> {
        let project = project.clone();
        self.read(move |snap, _| cycle::cycles(snap, &project)).await
    }

    async fn cycle(&self, project: &ProjectId, cycle: &CycleName, rounds: &RoundChoice) -> Found<CycleReport> {
        let (project, cycle, rounds) = (project.clone(), cycle.clone(), rounds.clone());
        self.read(move |snap, caches| cycle::cycle(snap, caches, (&project, &cycle), &rounds)).await
    }

    async fn items(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        rounds: &RoundChoice,
        query: &ItemQuery,
    ) -> Found<ItemPage> {
        let (project, cycle, rounds, query) = (project.clone(), cycle.clone(), rounds.clone(), query.clone());
        self.read(move |snap, _| items::items(snap, (&project, &cycle), &rounds, &query)).await
    }

    async fn not_seen_since(&self, project: &ProjectId, cycle: &CycleName) -> Found<Vec<UnseenItem>> {
        let (project, cycle) = (project.clone(), cycle.clone());
        self.read(move |snap, caches| unseen::not_seen_since(snap, caches, (&project, &cycle))).await
    }

    async fn item_history(
        &self,
        project: &ProjectId,
        cycle: Option<&CycleName>,
        item: ItemHash,
    ) -> Found<Vec<HistoryEntry>> {
        let (project, cycle) = (project.clone(), cycle.cloned());
        self.read(move |snap, _| history::history(snap, &project, cycle.as_ref(), item)).await
    }

    async fn push(&self, project: &ProjectId, push: PushId) -> Found<PushReport> {
        let project = project.clone();
        self.read(move |snap, _| pushes::report(snap, &project, push)).await
    }

    async fn receipt(&self, project: &ProjectId, push: PushId, revision: Option<u32>) -> Found<(Vec<u8>, u32)> {
        let project = project.clone();
        self.read(move |snap, _| pushes::receipt(snap, &project, push, revision)).await
    }

    async fn difference(&self, project: &ProjectId, push: PushId, revision: u32) -> Found<DifferenceReport> {
        let project = project.clone();
        self.read(move |snap, _| pushes::difference(snap, &project, push, revision)).await
    }

    async fn check(&self) -> Result<Vec<Damage>, StoreError> {
        self.readers.read(check::check).await
    }

    async fn repair(&self) -> Result<Vec<Damage>, StoreError> {
        let mut mended = Vec::new();
        // Counting needs lengths that are right.
        for find in [check::lengths, check::counts] {
            let mends = self.readers.read(find).await?;
            if !mends.is_empty() {
                mended.extend(self.writer.run(move |connection| check::apply(connection, mends)).await?);
            }
        }
        Ok(mended)
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.readers
            .read(|snap| {
                let _count: i64 = snap.query_row("SELECT count(*) FROM schema_version", [], |row| row.get(0))?;
                Ok(())
            })
            .await
    }
}
