//! What the decision is made of: what is known of a key, what is offered, what can come of it. Plain data.
//! Must not decide.

use crate::compare::Comparison;
use crate::digest::Digest;
use crate::id::{Commit, Executor, Ordinal};
use crate::outcome::Counts;
use crate::push::{ContentId, OnDifference, Place, Sender};
use crate::receipt::ItemHashText;
use crate::verdict::RevisionKind;

/// How far an offered content is from what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceClass {
    /// Equal content.
    None,
    /// Equal items and statuses; times or texts differ.
    Cosmetic,
    /// Equal items, other statuses.
    Semantic,
    /// Other items.
    Structural,
}

impl DifferenceClass {
    /// The word in headers and JSON.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceClass::None => "none",
            DifferenceClass::Cosmetic => "cosmetic",
            DifferenceClass::Semantic => "semantic",
            DifferenceClass::Structural => "structural",
        }
    }
}

/// One revision that is recorded under the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRevision {
    /// From 1, without gaps.
    pub number: u32,
    /// How it came to be.
    pub kind: RevisionKind,
    /// Who delivered it first; its ordinal is the highest that this content was delivered with since.
    pub sender: Sender,
    /// Its content; a promotion's is that of the promoted revision.
    pub content: Digest,
    /// Its items and statuses.
    pub outcomes: Digest,
    /// The files it was read from.
    pub files: Vec<String>,
}

impl KnownRevision {
    /// How far a content is from this revision's, as far as digests tell: another outcome digest is said to be semantic,
    /// and may be structural.
    pub fn class_of(&self, content: &ContentId) -> DifferenceClass {
        if self.content == content.content {
            DifferenceClass::None
        } else if self.outcomes == content.outcomes {
            DifferenceClass::Cosmetic
        } else {
            DifferenceClass::Semantic
        }
    }

    /// True if a replay says that a later attempt came to the same: the engine then stores its ordinal and scope with the
    /// revision, or an attempt between the two that is delivered last would overrule the later one.
    pub fn is_confirmed_later(&self, sender: &Sender) -> bool {
        sender.ordinal > self.sender.ordinal
    }
}

/// What an engine knows of a key, all read in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Where the push belongs.
    pub place: Place,
    /// The commit that it was recorded with.
    pub commit: Option<Commit>,
    /// True once a second leg was refused under this key.
    pub contested: bool,
    /// Ordinal and executor of every accepted delivery, each pair once.
    pub executors: Vec<(Option<Ordinal>, Executor)>,
    /// All revisions, by number.
    pub revisions: Vec<KnownRevision>,
    /// The revision that an earlier delivery of the very same body bytes was answered with.
    pub same_body: Option<u32>,
}

impl Known {
    /// The revision whose verdicts count last: the latest that is not merely kept.
    pub fn counting(&self) -> Option<&KnownRevision> {
        self.revisions.iter().rev().find(|r| r.kind != RevisionKind::Kept)
    }

    /// The sender that a promotion is stored with: the highest ordinal recorded, so that no late delivery outranks a
    /// person's decision and every later attempt does.
    pub fn promotion_sender(&self) -> Sender {
        let highest = self.revisions.iter().max_by_key(|r| r.sender.ordinal);
        Sender {
            ordinal: highest.and_then(|r| r.sender.ordinal),
            ordinal_scope: highest.map(|r| r.sender.ordinal_scope).unwrap_or_default(),
            executor: None,
            incarnation: None,
        }
    }
}

/// What a delivery offers, as far as the decision looks at it: the same for a push in one request and a staged one.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// Where the push belongs.
    pub place: &'a Place,
    /// The commit under test.
    pub commit: Option<&'a Commit>,
    /// Who delivers.
    pub sender: &'a Sender,
    /// What to do if other outcomes are recorded under the key.
    pub on_difference: OnDifference,
    /// True if no CI platform was detected.
    pub outside_ci: bool,
    /// The files it was read from.
    pub files: &'a [String],
    /// What tells its content from another.
    pub content: ContentId,
}

/// Look-ups that cost more than a row, asked for only when the decision needs them.
pub trait Recorded {
    /// What a look-up can fail with.
    type Error;

    /// The offered items beside those that count under the key now; `None` while the offered items are still to come.
    fn compare(&mut self) -> Result<Option<Comparison>, Self::Error>;

    /// How many of the offered items any push of the same job in this round holds.
    fn known_in_job(&mut self) -> Result<u64, Self::Error>;

    /// The shard total known for this round, job and variant.
    fn shard_total(&mut self) -> Result<Option<u32>, Self::Error>;
}

/// A field of the push's place that differs under one key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FieldDifference {
    /// Its name.
    pub field: String,
    /// What is recorded.
    pub recorded: String,
    /// What was offered.
    pub offered: String,
}

/// Why a delivery is refused for good. Nothing of it is recorded but, for a collision, that the key is contested.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The key names a push in another place.
    KeyReused(Vec<FieldDifference>),
    /// Another execution of the job has delivered under this key at the same attempt.
    CollidingExecutor {
        /// Who delivered what is recorded.
        recorded: Vec<Executor>,
        /// The attempt number of both; `None` if the key was contested before.
        ordinal: Option<Ordinal>,
    },
    /// The offered items are other work than the recorded ones.
    CollidingItems {
        /// Items offered.
        offered: u64,
        /// Items recorded under the key.
        recorded: u64,
        /// Offered items that the round knows under this job.
        known: u64,
        /// Some offered items that are not recorded under the key.
        offered_samples: Vec<ItemHashText>,
        /// Some recorded items that are not offered.
        recorded_samples: Vec<ItemHashText>,
    },
    /// The round, job and variant were planned with another number of shards.
    ShardPlanChanged {
        /// The total that is known.
        known: u32,
        /// The total offered.
        offered: u32,
    },
    /// Other outcomes under a known key, and the policy is to fail.
    Differs(DifferenceSummary),
    /// The data of this push was deleted; a late retry never writes again.
    Tombstoned,
}

/// A difference in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DifferenceSummary {
    /// How far apart.
    pub class: DifferenceClass,
    /// Items in both with another status.
    pub changed: u64,
    /// Items only in the offered content.
    pub added: u64,
    /// Items only in what is recorded.
    pub not_offered: u64,
}

impl DifferenceSummary {
    /// True if something else counts once a content that differs so is laid over as this kind: of one that is only kept
    /// beside, items that nobody had do.
    pub fn changes_what_counts(&self, kind: RevisionKind) -> bool {
        kind != RevisionKind::Kept || self.added > 0
    }
}

/// Something that the sender should hear although the delivery was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// The same content from another executor, and nothing says which attempt it is.
    OtherExecutorUnknownAttempt,
    /// The same content from files of other names.
    OtherFiles,
}

/// What an engine has to do, in the transaction in which it read [`Known`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Write the key, outcomes, counts and receipt.
    Record,
    /// Answer with the stored receipt of this revision; log one more delivery.
    Replay {
        /// Whose receipt.
        revision: u32,
        /// How the offered content differs from that revision's.
        class: DifferenceClass,
        /// What the sender should hear.
        doubts: Vec<Doubt>,
    },
    /// Write one more revision of this kind.
    Overlay {
        /// [`RevisionKind::Revised`] or [`RevisionKind::Kept`].
        kind: RevisionKind,
        /// How the offered content differs from what counted before.
        difference: DifferenceSummary,
        /// How the push counts from now on.
        counts: Counts,
    },
    /// Only the offered items can tell, and they are still to come: stage them, and ask again at the commit.
    Undecided,
    /// Record nothing of it.
    Refuse {
        /// Why.
        refusal: Refusal,
        /// True if the key is contested from now on: to be stored.
        contest: bool,
    },
}
