//! The `Store` trait: every write is one transaction, every reading one snapshot. Both engines pass one conformance
//! suite. A store carries decisions out and never makes them: it asks `domain::protocol`.

use std::sync::Arc;

use async_trait::async_trait;
use domain::listing::{
    CycleReport, CycleSummary, DifferenceReport, HistoryEntry, ItemPage, ItemQuery, PushReport, UnseenItem,
};
use domain::protocol::{DifferenceClass, Doubt, Refusal};
use domain::round::{RoundChoice, RoundChoiceError};
use domain::{Counts, CycleName, ItemHash, ItemName, Manifest, ProjectId, Push, PushId, PushKey};

use crate::staged::{Begun, Cancelled, Chunk, Collected, Committed, EpochOf, Fence, Lifetime, Put, StagingReport};
use crate::{Forwards, StoreError};

/// The recorder's clock reading as RFC 3339 in UTC. It is kept for people and decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordedAt(pub String);

/// The recorder's clock as it reads now: a text for people, and milliseconds since the Unix epoch, which tell only what
/// is idle (when to let another client take over, when to collect) and never what is recorded or counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    /// For people.
    pub at: RecordedAt,
    /// Milliseconds.
    pub ms: u64,
}

/// The answer to an accepted delivery or promotion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The stored receipt, byte for byte (`domain::Receipt` as JSON).
    pub receipt: Vec<u8>,
    /// The revision whose receipt it is.
    pub revision: u32,
    /// The newest revision of the push.
    pub current_revision: u32,
    /// The push's items as they count now.
    pub current_counts: Counts,
    /// True if the receipt was stored by an earlier delivery.
    pub replayed: bool,
    /// How the offered content differs from the revision that answers (a replay), or from what counted before (an
    /// overlay); `None` for a first content and for promotions.
    pub class: Option<DifferenceClass>,
    /// What the sender should hear.
    pub doubts: Vec<Doubt>,
}

/// What came of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// Recorded, replayed or laid over.
    Accepted(Answer),
    /// Refused for good; nothing of it is recorded, but the refusal is logged.
    Refused(Refused),
    /// Another delivery is staging under the key: nothing is recorded, and nothing is refused for good.
    Fenced(Fence),
}

/// A delivery that is refused for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// Names of offered items that the refusal gives as samples, as far as they are known.
    pub offered_samples: Vec<ItemName>,
    /// Names of recorded items that the refusal gives as samples.
    pub recorded_samples: Vec<ItemName>,
}

/// A person's decision that a revision's verdicts count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// The tenant.
    pub project: ProjectId,
    /// The push.
    pub push: PushId,
    /// The idempotency key of the promotion itself.
    pub key: PushKey,
    /// The revision to promote; `None`: the latest that is kept, else the latest.
    pub revision: Option<u32>,
    /// True: that content alone counts; items that it doesn't hold no longer do.
    pub exact: bool,
    /// Only if the newest receipt still has this entity tag.
    pub if_match: Option<String>,
}

/// What came of a promotion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Promoted {
    /// Done, now or by an earlier delivery of the same promotion.
    Accepted(Answer),
    /// The project has no such push.
    UnknownPush,
    /// The push has no such revision, or it is a promotion itself.
    UnknownRevision {
        /// Revisions that can be promoted.
        revisions: Vec<u32>,
    },
    /// Another receipt is the newest.
    Mismatch {
        /// Its entity tag.
        etag: String,
    },
    /// The promotion's key was used for another promotion.
    KeyReused,
}

/// What a person does to a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundAction {
    /// It is complete as it is.
    Close,
    /// It is authoritative, whatever comes.
    Pin,
    /// No longer.
    Unpin,
}

/// Why a reading found nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absent {
    /// No push has ever created this project.
    #[error("there is no project {0}")]
    Project(ProjectId),
    /// The project has no such cycle.
    #[error("the project has no cycle {0:?}")]
    Cycle(CycleName),
    /// The cycle has no such round, or more than one.
    #[error(transparent)]
    Round(#[from] RoundChoiceError),
    /// The project has no such push.
    #[error("the project has no such push")]
    Push,
    /// The push has no such revision.
    #[error("the push has no revision {0}")]
    Revision(u32),
    /// The project has no such item.
    #[error("the project has no such item")]
    Item,
    /// The cursor was not made by this listing.
    #[error("the cursor is not one that this listing gave")]
    Cursor,
}

/// The answer to a question: what was asked for, or why there is none.
pub type Found<T> = Result<Result<T, Absent>, StoreError>;

/// One contradiction that `check` found in a store.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// The kind, as one stable word (`counts-differ`, `orphan-block`, `double-item`, …).
    pub kind: &'static str,
    /// Where: table and row.
    pub place: String,
    /// What contradicts what.
    pub what: String,
}

/// Keeps pushes once, and what was forwarded of them: an `Arc<dyn Store>` is an `Arc<dyn Forwards>` and an
/// `Arc<dyn Ledger>`, too.
#[async_trait]
pub trait Store: Forwards {
    /// Lets `domain::protocol` decide on a delivery and carries the decision out: key, outcomes, counts and receipt in
    /// one transaction that is durable before this returns.
    /// What is staged under the key beside it, `domain::staging` decides.
    async fn record(&self, push: Arc<Push>, now: Now) -> Result<Recorded, StoreError>;

    /// Begins or resumes a staged push, or answers from what is recorded under its key.
    async fn begin(&self, manifest: Arc<Manifest>, now: Now) -> Result<Begun, StoreError>;

    /// Stages one chunk: durable before this returns, visible to no reader.
    async fn put(&self, chunk: Arc<Chunk>, now: Now) -> Result<Put, StoreError>;

    /// Makes an epoch visible, whole, in one transaction whose length doesn't grow with the outcomes.
    async fn commit(&self, epoch: EpochOf, now: Now) -> Result<Committed, StoreError>;

    /// Ends an epoch: nothing of it is or becomes visible.
    async fn cancel(&self, epoch: EpochOf, now: Now) -> Result<Cancelled, StoreError>;

    /// What is staged under a key right now: its newest epoch, if that is open.
    async fn staging(&self, project: &ProjectId, push: PushId, now: Now) -> Result<Option<StagingReport>, StoreError>;

    /// Collects: gives up epochs that were seen idle for a lifetime, twice, and deletes some rows of epochs that ended
    /// without becoming visible. To be called again while it says that there is more.
    async fn collect(&self, lifetime: Lifetime, now: Now) -> Result<Collected, StoreError>;

    /// Makes a revision's verdicts count, in one durable transaction.
    async fn promote(&self, promotion: Promotion, now: Now) -> Result<Promoted, StoreError>;

    /// Closes, pins or unpins a round (by id, run value or unique beginning). May be repeated.
    async fn set_round(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
        action: RoundAction,
    ) -> Found<CycleReport>;

    /// Deletes a round with its pushes, also those that are only staged, and leaves a tombstone for every key.
    async fn drop_round(&self, project: &ProjectId, cycle: &CycleName, round: &str) -> Found<u64>;

    /// Projects, by name.
    async fn projects(&self) -> Result<Vec<ProjectId>, StoreError>;

    /// Cycles of a project, by name.
    async fn cycles(&self, project: &ProjectId) -> Found<Vec<CycleSummary>>;

    /// A cycle with its headline and the chosen rounds, without items.
    async fn cycle(&self, project: &ProjectId, cycle: &CycleName, rounds: &RoundChoice) -> Found<CycleReport>;

    /// Items of the chosen rounds, each item and variant once.
    async fn items(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        rounds: &RoundChoice,
        query: &ItemQuery,
    ) -> Found<ItemPage>;

    /// Items of earlier rounds that the headline doesn't hold, by name.
    async fn not_seen_since(&self, project: &ProjectId, cycle: &CycleName) -> Found<Vec<UnseenItem>>;

    /// What an item did in each round of every cycle of the project (or of one), oldest round first.
    async fn item_history(
        &self,
        project: &ProjectId,
        cycle: Option<&CycleName>,
        item: ItemHash,
    ) -> Found<Vec<HistoryEntry>>;

    /// A push with its revisions and deliveries.
    async fn push(&self, project: &ProjectId, push: PushId) -> Found<PushReport>;

    /// The newest receipt of a push: bytes and revision; or that of one revision.
    async fn receipt(&self, project: &ProjectId, push: PushId, revision: Option<u32>) -> Found<(Vec<u8>, u32)>;

    /// How a revision differs from what counted before it, item by item.
    async fn difference(&self, project: &ProjectId, push: PushId, revision: u32) -> Found<DifferenceReport>;

    /// Every contradiction in the store: counts against a recount, orphans, doubles, digests.
    async fn check(&self) -> Result<Vec<Damage>, StoreError>;

    /// Makes derived data (counts) anew where `check` finds it wrong, and nothing else; gives what it mended.
    async fn repair(&self) -> Result<Vec<Damage>, StoreError>;

    /// Cheap: can the store be read?
    async fn ready(&self) -> Result<(), StoreError>;
}
