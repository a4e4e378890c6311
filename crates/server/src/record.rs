//! The one door: every push, from a socket or from this process, is recorded by [`Door::admit`] or, staged, by
//! [`Door::begin`], [`Door::put`] and [`Door::commit`], and by nothing else. Promotions and a person's decisions on rounds
//! pass here too. Must not know HTTP, and must not decide on a repeat.

mod guard;
mod mutants;
mod staged;

use std::sync::Arc;

use domain::listing::CycleReport;
use domain::{CycleName, Executor, Problem, ProblemCode, ProjectId, Push, PushId, Receipt, Sender, mutant};
use store::{Answer, Found, Now, Promoted, Promotion, Recorded, RecordedAt, RoundAction, Store, StoreError};
use tokio::sync::broadcast;

use crate::points::{Operation, Step, point};
use crate::problem::of_store;
use crate::words;
use delivery::Clock;

pub use staged::Begun;

/// Recordings that a slow listener may fall behind before it has to look for itself.
const RECORDINGS_KEPT: usize = 1024;

/// The one door to a store.
pub struct Door {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    recordings: broadcast::Sender<PushId>,
}

/// An accepted delivery or promotion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The tenant.
    pub project: ProjectId,
    /// The push in URLs.
    pub push: PushId,
    /// What the store answered.
    pub answer: Answer,
    /// Sentences that the sender should hear.
    pub warnings: Vec<String>,
}

impl Admitted {
    /// The entity tag of the receipt.
    pub fn etag(&self) -> String {
        Receipt::etag(self.answer.revision, &self.answer.receipt)
    }
}

impl Door {
    /// The door to `store`. There is one per store and process.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, recordings: broadcast::Sender::new(RECORDINGS_KEPT) }
    }

    /// Records one delivery: guards, the store's transaction, and words for what came of it.
    pub async fn admit(&self, push: impl Into<Arc<Push>>) -> Result<Admitted, Box<Problem>> {
        let push = push.into();
        guard::push(&push)?;
        point(Operation::OneShot, Step::K2);
        let (id, now) = (PushId::of(&push.place.project, &push.key), self.now());
        if mutant!(M11)
            && let Some(kept) = mutants::kept(&self.store, id)
        {
            return Err(kept);
        }
        let recorded = if mutant!(M32) {
            mutants::twice(&self.store, &push, &now).await
        } else {
            settled("push", || self.store.record(Arc::clone(&push), now.clone())).await
        };
        point(Operation::OneShot, Step::Stored);
        let recorded = recorded.map_err(|error| Box::new(of_store(&error)));
        if let Err(failure) = &recorded
            && mutant!(M11)
        {
            mutants::keep(&self.store, id, failure.clone());
        }
        match recorded? {
            Recorded::Accepted(answer) => {
                Ok(self.accepted(push.place.project.clone(), id, answer, push.outcomes.is_empty()))
            }
            Recorded::Refused(refusal) => Err(refused(id, words::refusal(refusal, executor(&push.sender)))),
            Recorded::Fenced(fence) => Err(refused(id, words::fenced(fence))),
        }
    }

    /// An accepted delivery: told to who listens, with what the sender should hear.
    fn accepted(&self, project: ProjectId, push: PushId, answer: Answer, empty: bool) -> Admitted {
        let mut warnings: Vec<String> = answer.doubts.iter().copied().map(words::doubt).collect();
        if empty {
            warnings.push("the push holds no outcome at all; it is recorded as an empty one".to_owned());
        }
        // Nobody listening is no error.
        let _ = self.recordings.send(push);
        tracing::info!(%push, revision = answer.revision, replayed = answer.replayed, "delivery accepted");
        Admitted { project, push, answer, warnings }
    }

    /// Makes a revision's verdicts count, under a key of its own.
    pub async fn promote(&self, promotion: Promotion) -> Result<Admitted, Box<Problem>> {
        let (project, id) = (promotion.project.clone(), promotion.push);
        let now = self.now();
        let promoted = settled("promotion", || self.store.promote(promotion.clone(), now.clone())).await;
        let refused = |code, words: String| Err(Box::new(Problem::new(code, words)));
        match promoted.map_err(|error| Box::new(of_store(&error)))? {
            Promoted::Accepted(answer) => {
                let _ = self.recordings.send(id);
                Ok(Admitted { project, push: id, answer, warnings: Vec::new() })
            }
            Promoted::UnknownPush => refused(
                ProblemCode::NotFound,
                format!("Project {project} has no push {id}. Nothing was changed."),
            ),
            Promoted::UnknownRevision { revisions } => {
                let list: Vec<String> = revisions.iter().map(u32::to_string).collect();
                let words = format!(
                    "The push has no such revision, or it is a promotion itself. Nothing was changed. Revisions that can \
                     be promoted: {}.",
                    list.join(", ")
                );
                refused(ProblemCode::NotFound, words)
            }
            Promoted::Mismatch { etag } => refused(
                ProblemCode::ReceiptMismatch,
                format!(
                    "The newest receipt of the push is {etag}, another than If-Match names: somebody recorded or promoted \
                     in between. Nothing was changed. Look at the push again, then decide."
                ),
            ),
            Promoted::KeyReused => refused(
                ProblemCode::KeyReused,
                "This Idempotency-Key was used for another promotion. Nothing was changed. A promotion needs a key of its \
                 own: the same in its retries, another for another decision."
                    .to_owned(),
            ),
        }
    }

    /// Closes, pins or unpins a round. May be repeated.
    pub async fn set_round(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
        action: RoundAction,
    ) -> Found<CycleReport> {
        settled("round", || self.store.set_round(project, cycle, round, action)).await
    }

    fn now(&self) -> Now {
        Now { at: RecordedAt(self.clock.utc_rfc3339()), ms: self.clock.unix_ms() }
    }

    /// What time it is.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Ids of pushes as they are recorded through this door.
    pub fn recordings(&self) -> broadcast::Receiver<PushId> {
        self.recordings.subscribe()
    }
}

/// A problem on its way out, logged.
fn refused(push: PushId, problem: Problem) -> Box<Problem> {
    tracing::info!(%push, code = problem.code.word(), "delivery refused");
    Box::new(problem)
}

/// Who delivers, for words.
fn executor(sender: &Sender) -> &str {
    sender.executor.as_ref().map_or("(not given)", Executor::as_str)
}

/// Runs a transaction, and once more if nobody knows whether it was committed: what is stored decides whether it was.
/// That the second run wrote nothing is no word on the first.
async fn settled<T, F>(what: &'static str, run: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    match run().await {
        Err(StoreError::PossiblyWritten { what: why }) => {
            tracing::warn!(what, why, "commit unknown, running it again under the same key");
            run().await.map_err(|error| match error {
                StoreError::NotWritten { what } => StoreError::PossiblyWritten { what },
                other => other,
            })
        }
        other => other,
    }
}
