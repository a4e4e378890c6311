//! The embedded store as a target: a push without a socket goes through the same door as one with, whole or staged. Must
//! not record past the door, nor forget which of the three truths a failure stands for.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use delivery::staged::{Begun, Setback, Stage, Staging, damaged, deliver_staged, wait_for_other};
use delivery::{Clock, Destination, Form, Handed, Parcel, SystemClock, Target, Try, classify};
use domain::{Cause, Delivery, NextTry, Problem, ProblemCode, PushId, Receipt, limits, manifest};
use store::{Chunk, EpochOf, Store, StoreError};

use crate::record::{self, Admitted, Door};

/// Chunks that are decoded and put at a time: more only wait for the one writer.
const PUTS_AT_ONCE: usize = 2;
/// Steps of collecting after a push; the next push does more.
const COLLECT_STEPS: usize = 4;
/// Between two looks at what another process stages, in milliseconds.
const LOOK_AGAIN_MS: u64 = 250;

/// A store in this process, behind the door.
pub struct LocalTarget {
    destination: Destination,
    door: Door,
    clock: Arc<dyn Clock>,
}

impl LocalTarget {
    /// The embedded store in this file, made and migrated if need be. Blocks for as long as that takes.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let store = store::open(&format!("sqlite:{}", path.display()))?;
        Ok(Self::over(Destination::Sqlite(path.to_owned()), store, Arc::new(SystemClock::new())))
    }

    /// An opened store under this name.
    pub fn over(destination: Destination, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { destination, door: Door::new(store, Arc::clone(&clock)), clock }
    }

    /// A push that is one piece.
    async fn whole(&self, parcel: &Parcel, attempt: &Try<'_>) -> Delivery<Handed> {
        let push = match parcel.push() {
            Ok(push) => push,
            Err(error) => return Delivery::Rejected(damaged(&error)),
        };
        match self.door.admit(push).await.map_err(setback).and_then(handed) {
            Ok(handed) => Delivery::Recorded(handed),
            Err(Setback::Fenced { what, idle_in_ms, over }) => {
                wait_for_other(self, parcel, attempt, what, idle_in_ms, over).await
            }
            Err(Setback::TooLarge(what)) => Delivery::NotSent(Cause { next: NextTry::Smaller, ..Cause::new(what) }),
            Err(Setback::Rejected(problem)) => Delivery::Rejected(problem),
            Err(Setback::NotTaken(cause)) => Delivery::NotSent(cause),
            Err(Setback::Unclear(cause)) => Delivery::PossiblyWritten(cause),
            Err(Setback::Gone(what)) => Delivery::NotSent(Cause { next: NextTry::Anew, ..Cause::new(what) }),
            Err(Setback::Incomplete(_)) => Delivery::NotSent(Cause::new("chunks are missing")),
        }
    }
}

#[async_trait]
impl Target for LocalTarget {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    async fn deliver(&self, parcel: &Parcel, attempt: &Try<'_>) -> Delivery<Handed> {
        match parcel.header.form {
            Form::Whole => self.whole(parcel, attempt).await,
            Form::Chunks { .. } => deliver_staged(self, parcel, attempt).await,
        }
    }

    /// Nobody else collects in a store that no server serves.
    async fn tidy(&self) {
        for _ in 0..COLLECT_STEPS {
            match self.door.collect().await {
                Ok(collected) if collected.more => {}
                Ok(_) => return,
                Err(problem) => {
                    tracing::debug!(detail = problem.detail, "nothing collected");
                    return;
                }
            }
        }
    }
}

#[async_trait]
impl Stage for LocalTarget {
    fn at_once(&self) -> usize {
        PUTS_AT_ONCE
    }

    async fn begin(&self, parcel: &Parcel, _with_items: bool) -> Result<Begun, Setback> {
        match self.door.begin(parcel.manifest()?).await.map_err(setback)? {
            record::Begun::Staging { push, staging } => Ok(Begun::Staging {
                at: Staging { push, epoch: staging.epoch },
                missing: manifest::ranges(&staging.missing),
                resumed: staging.resumed,
            }),
            record::Begun::Replayed(admitted) => handed(admitted).map(|handed| Begun::Recorded(Box::new(handed))),
        }
    }

    async fn put(&self, parcel: &Parcel, at: Staging, chunk: u32) -> Result<(), Setback> {
        let number = chunk as usize;
        let digest =
            parcel.header.chunks.get(number).map(|place| place.sha256).ok_or(Setback::Incomplete(Vec::new()))?;
        let (kept, of) = (parcel.clone(), epoch(parcel, at));
        // Decoding is work for a thread of its own: two chunks then keep two cores busy.
        let decoded = tokio::task::spawn_blocking(move || kept.chunk(number)).await;
        let outcomes = decoded.map_err(|error| Setback::NotTaken(Cause::new(error.to_string())))??;
        self.door.put(Chunk { of, number: chunk, digest, outcomes }).await.map_err(setback)?;
        Ok(())
    }

    async fn commit(&self, parcel: &Parcel, at: Staging) -> Result<Handed, Setback> {
        self.door.commit(epoch(parcel, at)).await.map_err(setback).and_then(handed)
    }

    async fn cancel(&self, parcel: &Parcel, at: Staging) {
        if let Err(problem) = self.door.cancel(epoch(parcel, at)).await {
            tracing::debug!(push = %at.push, why = problem.detail, "the epoch could not be given up, and becomes idle");
        }
    }

    async fn attach(&self, parcel: &Parcel, wait_ms: u64) -> bool {
        let project = &parcel.header.place.project;
        let push = PushId::of(project, &parcel.header.key);
        let until_ms = self.clock.now_ms().saturating_add(wait_ms);
        let mut first = None;
        loop {
            let Ok(staging) = self.door.staging(project, push).await else { return false };
            let Some(other) = staging.filter(|other| other.idle_ms < limits::EPOCH_IDLE_MS) else { return true };
            if *first.get_or_insert(other.epoch) != other.epoch {
                return true;
            }
            let left_ms = until_ms.saturating_sub(self.clock.now_ms());
            if left_ms == 0 {
                return false;
            }
            self.clock.sleep(left_ms.min(LOOK_AGAIN_MS)).await;
        }
    }
}

fn epoch(parcel: &Parcel, at: Staging) -> EpochOf {
    EpochOf { project: parcel.header.place.project.clone(), push: at.push, epoch: at.epoch }
}

/// What a problem of the door comes to.
fn setback(problem: Box<Problem>) -> Setback {
    // Another process over the same file is idle after that long at the latest.
    if let Some(setback) = classify::setback_of(&problem, Some(limits::EPOCH_IDLE_MS)) {
        return setback;
    }
    let cause = Cause::new(problem.detail.clone());
    match problem.code {
        ProblemCode::StoreUnavailable | ProblemCode::InFlight | ProblemCode::Overloaded => Setback::NotTaken(cause),
        ProblemCode::CommitUnknown | ProblemCode::Internal => Setback::Unclear(cause),
        _ => Setback::Rejected(problem),
    }
}

fn handed(admitted: Admitted) -> Result<Handed, Setback> {
    let Admitted { answer, warnings, .. } = admitted;
    let receipt: Receipt = serde_json::from_slice(&answer.receipt)
        .map_err(|error| Setback::Unclear(Cause::new(format!("the stored receipt cannot be read: {error}"))))?;
    Ok(Handed {
        receipt,
        receipt_bytes: answer.receipt,
        replayed: answer.replayed,
        class: answer.class,
        current_revision: answer.current_revision,
        current_counts: answer.current_counts,
        warnings,
    })
}
