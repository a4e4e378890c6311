//! The door for staged pushes: begin, put, commit, cancel, what is staged, and collecting what nobody will end. Every one
//! may be repeated. Must not know HTTP, and must not decide: that is done in `domain::staging`.

use std::sync::Arc;

use domain::{Manifest, Problem, ProjectId, PushId};
use store::{
    Begun as Stored, Cancelled, Chunk, Collected, Committed, EpochOf, Lifetime, Put, Staging, StagingReport, StoreError,
};

use super::{Admitted, Door, executor, guard, refused, settled};
use crate::points::{Operation, Step, point};
use crate::problem::of_store;
use crate::words;

/// What an accepted begin came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Put what is missing, then commit.
    Staging {
        /// The push in URLs.
        push: PushId,
        /// The epoch, what is missing of it, and what is recorded already.
        staging: Staging,
    },
    /// The content is recorded already: its stored receipt.
    Replayed(Admitted),
}

impl Door {
    /// Begins a staged push, goes on with one, or answers from what is recorded under its key.
    pub async fn begin(&self, manifest: impl Into<Arc<Manifest>>) -> Result<Begun, Box<Problem>> {
        let manifest = manifest.into();
        guard::manifest(&manifest)?;
        point(Operation::Begin, Step::K2);
        let (push, now) = (manifest.push(), self.now());
        let begun = settled("begin", || self.store.begin(Arc::clone(&manifest), now.clone())).await;
        point(Operation::Begin, Step::Stored);
        match begun.map_err(failed)? {
            Stored::Staging(staging) => {
                let (epoch, missing) = (staging.epoch.0, staging.missing.len());
                tracing::info!(%push, epoch, resumed = staging.resumed, missing, "staging");
                Ok(Begun::Staging { push, staging })
            }
            Stored::Replayed(answer) => {
                let project = manifest.place.project.clone();
                Ok(Begun::Replayed(self.accepted(project, push, answer, manifest.outcomes == 0)))
            }
            Stored::Refused(refusal) => Err(refused(push, words::refusal(refusal, executor(&manifest.sender)))),
            Stored::Fenced(fence) => Err(refused(push, words::fenced(fence))),
        }
    }

    /// Stages one chunk, durably; `true` if it was there before.
    pub async fn put(&self, chunk: impl Into<Arc<Chunk>>) -> Result<bool, Box<Problem>> {
        let chunk = chunk.into();
        guard::chunk(&chunk)?;
        point(Operation::Put, Step::K2);
        let now = self.now();
        let put = settled("put", || self.store.put(Arc::clone(&chunk), now.clone())).await;
        point(Operation::Put, Step::Stored);
        let problem = match put.map_err(failed)? {
            Put::Stored { replayed } => {
                tracing::debug!(push = %chunk.of.push, epoch = chunk.of.epoch.0, chunk = chunk.number, replayed, "staged");
                return Ok(replayed);
            }
            Put::Mismatch => words::chunk_mismatch(chunk.number),
            Put::OutOfRange { chunks } => words::chunk_out_of_range(chunk.number, chunks),
            Put::NotAsPromised { what } => words::chunk_not_as_promised(chunk.number, &what),
            Put::Superseded => words::superseded(None),
            Put::Gone => words::gone(),
            Put::Unknown => words::unknown_epoch(),
        };
        Err(refused(chunk.of.push, problem))
    }

    /// Makes an epoch visible, whole.
    pub async fn commit(&self, of: EpochOf) -> Result<Admitted, Box<Problem>> {
        point(Operation::Commit, Step::K2);
        let now = self.now();
        let committed = settled("commit", || self.store.commit(of.clone(), now.clone())).await;
        point(Operation::Commit, Step::Stored);
        let problem = match committed.map_err(failed)? {
            Committed::Accepted(answer) => {
                // The content itself is not at hand; a push that counts nothing can have got nothing.
                let empty = answer.current_counts.total == 0;
                return Ok(self.accepted(of.project, of.push, answer, empty));
            }
            Committed::Incomplete { missing } => words::incomplete(&missing),
            Committed::Refused(refusal) => words::refusal(refusal, "(that of the begin)"),
            Committed::NotAsPromised { what } => words::not_as_promised(&what),
            Committed::Superseded { recorded } => words::superseded(recorded),
            Committed::Gone => words::gone(),
            Committed::Unknown => words::unknown_epoch(),
        };
        Err(refused(of.push, problem))
    }

    /// Ends an epoch: nothing of it is or becomes visible.
    pub async fn cancel(&self, of: EpochOf) -> Result<(), Box<Problem>> {
        point(Operation::Cancel, Step::K2);
        let now = self.now();
        let cancelled = settled("cancel", || self.store.cancel(of.clone(), now.clone())).await;
        point(Operation::Cancel, Step::Stored);
        let problem = match cancelled.map_err(failed)? {
            Cancelled::Ended => {
                tracing::info!(push = %of.push, epoch = of.epoch.0, "staging cancelled");
                return Ok(());
            }
            Cancelled::Committed(recorded) => words::committed(recorded),
            Cancelled::Unknown => words::unknown_epoch(),
        };
        Err(refused(of.push, problem))
    }

    /// What is staged under a key right now.
    pub async fn staging(&self, project: &ProjectId, push: PushId) -> Result<Option<StagingReport>, Box<Problem>> {
        self.store.staging(project, push, self.now()).await.map_err(failed)
    }

    /// One step of collecting what was staged and will not be ended by anybody; at once again while it says `more`.
    pub async fn collect(&self) -> Result<Collected, Box<Problem>> {
        self.store.collect(Lifetime::standard(), self.now()).await.map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err asks for")]
fn failed(error: StoreError) -> Box<Problem> {
    Box::new(of_store(&error))
}
