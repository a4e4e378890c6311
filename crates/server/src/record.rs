//! The one door: every push, from a socket or from this process, is recorded by [`Door::admit`] and by nothing else.
//! Promotions and a person's decisions on rounds pass here too. Must not know HTTP, and must not decide on a repeat.

use std::sync::Arc;

use domain::listing::CycleReport;
use domain::{CycleName, Problem, ProblemCode, ProjectId, Push, PushId, Receipt, limits};
use store::{Answer, Found, Promoted, Promotion, Recorded, RecordedAt, RoundAction, Store, StoreError};
use tokio::sync::broadcast;

use crate::problem::of_store;
use crate::words;
use delivery::Clock;

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
    ///
    /// A commit whose outcome is unknown is run again once: the key decides whether it was written.
    pub async fn admit(&self, push: impl Into<Arc<Push>>) -> Result<Admitted, Box<Problem>> {
        let push = push.into();
        guard(&push)?;
        fail::fail_point!("k2");
        let project = push.place.project.clone();
        let id = PushId::of(&project, &push.key);
        let at = self.now();
        let recorded = match self.store.record(Arc::clone(&push), at.clone()).await {
            Err(StoreError::PossiblyWritten { what }) => {
                tracing::warn!(what, push = %id, "commit unknown, running it again under the same key");
                still_unknown(self.store.record(Arc::clone(&push), at).await)
            }
            other => other,
        };
        match recorded.map_err(|error| Box::new(of_store(&error)))? {
            Recorded::Accepted(answer) => {
                let mut warnings: Vec<String> = answer.doubts.iter().copied().map(words::doubt).collect();
                if push.outcomes.is_empty() {
                    warnings.push("the push holds no outcome at all; it is recorded as an empty one".to_owned());
                }
                // Nobody listening is no error.
                let _ = self.recordings.send(id);
                tracing::info!(push = %id, revision = answer.revision, replayed = answer.replayed, "delivery accepted");
                Ok(Admitted { project, push: id, answer, warnings })
            }
            Recorded::Refused { refusal, recorded_samples } => {
                let problem = words::refusal(&push, refusal, &recorded_samples);
                tracing::info!(push = %id, code = problem.code.word(), "delivery refused");
                Err(Box::new(problem))
            }
        }
    }

    /// Makes a revision's verdicts count, under a key of its own.
    pub async fn promote(&self, promotion: Promotion) -> Result<Admitted, Box<Problem>> {
        let (project, id) = (promotion.project.clone(), promotion.push);
        let at = self.now();
        let promoted = match self.store.promote(promotion.clone(), at.clone()).await {
            Err(StoreError::PossiblyWritten { .. }) => still_unknown(self.store.promote(promotion, at).await),
            other => other,
        };
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
        match self.store.set_round(project, cycle, round, action).await {
            Err(StoreError::PossiblyWritten { .. }) => {
                still_unknown(self.store.set_round(project, cycle, round, action).await)
            }
            other => other,
        }
    }

    fn now(&self) -> RecordedAt {
        RecordedAt(self.clock.utc_rfc3339())
    }

    /// Ids of pushes as they are recorded through this door.
    pub fn recordings(&self) -> broadcast::Receiver<PushId> {
        self.recordings.subscribe()
    }
}

/// What a second run says after a commit whose outcome is unknown. That the second wrote nothing is no word on the first.
fn still_unknown<T>(second: Result<T, StoreError>) -> Result<T, StoreError> {
    second.map_err(|error| match error {
        StoreError::NotWritten { what } => StoreError::PossiblyWritten { what },
        other => other,
    })
}

/// Bounds that hold whichever way a push came. Readers of reports keep them by cutting and saying so; a push that
/// passes them was made by somebody else, and cutting it here would change its content.
fn guard(push: &Push) -> Result<(), Box<Problem>> {
    let mut beyond = Vec::new();
    let mut check = |what: &dyn Fn() -> String, size: usize, limit: usize| {
        if size > limit && beyond.len() < limits::SAMPLES_MAX {
            beyond.push(format!("{}: {size}, at most {limit}", what()));
        }
    };
    check(&|| "outcomes".to_owned(), push.outcomes.len(), limits::OUTCOMES_MAX);
    check(&|| "files".to_owned(), push.files.len(), limits::FILES_MAX);
    for file in &push.files {
        check(&|| "octets of a file name".to_owned(), file.len(), limits::ITEM_PART_BYTES_MAX);
    }
    for outcome in push.outcomes.as_slice() {
        let message = outcome.message.as_ref().map_or(0, String::len);
        let longest = outcome.attempts.iter().filter_map(|a| a.message.as_ref().map(String::len)).max();
        let text = message.max(longest.unwrap_or(0));
        check(&|| format!("octets of a message of {}", outcome.item), text, limits::TEXT_BYTES_MAX);
        check(&|| format!("attempts of {}", outcome.item), outcome.attempts.len(), limits::ATTEMPTS_MAX);
        let ids = outcome.external_ids.len();
        check(&|| format!("external ids of {}", outcome.item), ids, limits::EXTERNAL_IDS_MAX);
        let id = outcome.external_ids.iter().map(String::len).max().unwrap_or(0);
        check(&|| format!("octets of an external id of {}", outcome.item), id, limits::NAME_BYTES_MAX);
    }
    if beyond.is_empty() {
        return guard_url(push);
    }
    let words = "The push passes bounds of what can be kept. Nothing was recorded. Cut texts and attempts to the bounds, \
                 or push in shards (--shard I/N).";
    let mut problem = Problem::new(ProblemCode::TooLarge, words);
    problem.errors = beyond;
    Err(Box::new(problem))
}

/// Pages link to the run: only an address that a browser may be sent to.
fn guard_url(push: &Push) -> Result<(), Box<Problem>> {
    let Some(url) = &push.origin.run_url else { return Ok(()) };
    let safe = (url.starts_with("https://") || url.starts_with("http://")) && !url.chars().any(char::is_control);
    if safe && url.len() <= limits::ITEM_PART_BYTES_MAX {
        return Ok(());
    }
    let words =
        "run-url is not an http(s) address of bounded length. Nothing was recorded; correct it or leave it out.";
    Err(Box::new(Problem::new(ProblemCode::ParameterMalformed, words)))
}
