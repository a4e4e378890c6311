//! Staged pushes: what begin, put, commit and cancel come to (`facts/idempotency.md`, 3.4 and 3.5), as pure functions.
//!
//! An engine supplies what it knows of a push's epochs, read in the transaction that will carry the decision out. What a
//! *content* is to what is recorded under the key is decided by [`crate::protocol`]; here is decided who may stage it.
//! Must not know clocks: whether an epoch is idle comes in as a value, and being wrong about it costs work, never truth.

use std::collections::BTreeSet;

use crate::digest::Digest;
use crate::id::{Executor, Ordinal};
use crate::protocol::{FieldDifference, Refusal, colliding_executor};
use crate::push::Sender;
use crate::{limits, mutant};

/// One generation of a staged push, from 1; a newer one fences the older off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The generation after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What became of an epoch. Every fate but `Open` is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Chunks are being put.
    Open,
    /// A newer epoch has begun.
    Superseded,
    /// Idle for so long that its chunks are collected.
    Abandoned,
    /// Its owner gave it up.
    Cancelled,
    /// Its commit was refused for good.
    Refused,
    /// It is visible, as this revision.
    Committed {
        /// The revision.
        revision: u32,
    },
}

/// What an engine knows of one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KnownEpoch {
    /// Its number.
    pub epoch: Epoch,
    /// What became of it.
    pub fate: Fate,
    /// The digest of the manifest that it was begun with.
    pub manifest: Digest,
    /// The content digest that the manifest names.
    pub content: Digest,
    /// How many chunks the manifest names.
    pub chunks: u32,
    /// Chunks that are there.
    pub present: BTreeSet<u32>,
    /// The highest ordinal that began or resumed it.
    pub ordinal: Option<Ordinal>,
    /// Ordinal and executor of all who began or resumed it, each pair once.
    pub executors: Vec<(Option<Ordinal>, Executor)>,
    /// True once a second leg was refused beside it.
    pub contested: bool,
    /// True if nothing has come for it for the idle time.
    pub idle: bool,
}

impl KnownEpoch {
    /// Chunks that are not there, rising.
    pub fn missing(&self) -> Vec<u32> {
        (0..self.chunks).filter(|chunk| !self.present.contains(chunk)).collect()
    }
}

/// Who wants to stage what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The digest of the manifest: place, chunks and contents.
    pub manifest: Digest,
    /// The content digest.
    pub content: Digest,
    /// Who it is.
    pub sender: Sender,
    /// Fields of its place in which it differs from the newest epoch ([`crate::protocol::differing_fields`]).
    pub fields: Vec<FieldDifference>,
}

/// What an engine has to do on a begin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum BeginDecision {
    /// Begin this epoch and bind the incarnation to it; an open one before it is dead from now on.
    Open {
        /// The new epoch.
        epoch: Epoch,
        /// The epoch that it fences off.
        supersedes: Option<Epoch>,
    },
    /// Go on with this epoch: bind the incarnation, raise the stored ordinal, list what is missing.
    Resume {
        /// The open epoch.
        epoch: Epoch,
        /// The ordinal to store: the higher of both.
        ordinal: Option<Ordinal>,
        /// Chunks that are not there.
        missing: Vec<u32>,
    },
    /// This client's epoch is committed: answer with its receipt.
    Replay {
        /// The revision.
        revision: u32,
    },
    /// Another client is delivering: attach, and begin again when it is done or idle (`409 push-in-progress`).
    InProgress {
        /// The open epoch.
        epoch: Epoch,
    },
    /// A later attempt is delivering (`409 stale-attempt`).
    Stale {
        /// The open epoch.
        epoch: Epoch,
    },
    /// A delayed message of a client that was fenced off (`409 superseded`).
    Superseded {
        /// The epoch that the client was bound to.
        bound: Epoch,
    },
    /// Another execution at the same attempt is staging under this key: two legs share it (`422 key-collision`). The
    /// epoch is contested from now on: to be stored.
    Collides(Refusal),
    /// What is staged under this key belongs to another place (`422 key-reused`).
    Reused(Refusal),
}

/// Decides on a begin whose content has to be staged. `latest` is the newest epoch of the push; `bound` the epoch that the
/// sender's incarnation began or resumed before.
pub fn begin(offer: &Begin, latest: Option<&KnownEpoch>, bound: Option<(Epoch, Fate)>) -> BeginDecision {
    match bound.filter(|_| !mutant!(M34)) {
        Some((_, Fate::Committed { revision })) => return BeginDecision::Replay { revision },
        Some((bound, Fate::Superseded | Fate::Abandoned | Fate::Cancelled | Fate::Refused)) => {
            return BeginDecision::Superseded { bound };
        }
        Some((_, Fate::Open)) | None => {}
    }
    let Some(latest) = latest else {
        return BeginDecision::Open { epoch: Epoch(1), supersedes: None };
    };
    if mutant!(M31) && !matches!(latest.fate, Fate::Open | Fate::Committed { .. }) {
        return BeginDecision::InProgress { epoch: latest.epoch };
    }
    if latest.fate != Fate::Open {
        return BeginDecision::Open { epoch: latest.epoch.next(), supersedes: None };
    }
    if !offer.fields.is_empty() {
        return BeginDecision::Reused(Refusal::KeyReused(offer.fields.clone()));
    }
    let sender = &offer.sender;
    if let Some(refusal) = colliding_executor(sender, &latest.executors, latest.contested) {
        return BeginDecision::Collides(refusal);
    }
    let takes_over = BeginDecision::Open { epoch: latest.epoch.next(), supersedes: Some(latest.epoch) };
    if latest.manifest == offer.manifest && mutant!(M33) {
        return takes_over;
    }
    if latest.manifest == offer.manifest {
        let ordinal = latest.ordinal.max(sender.ordinal);
        return BeginDecision::Resume { epoch: latest.epoch, ordinal, missing: latest.missing() };
    }
    match sender.ordinal.zip(latest.ordinal).map(|(mine, theirs)| mine.cmp(&theirs)) {
        Some(std::cmp::Ordering::Greater) => takes_over,
        _ if latest.idle || mutant!(M34) => takes_over,
        Some(std::cmp::Ordering::Less) => BeginDecision::Stale { epoch: latest.epoch },
        _ => BeginDecision::InProgress { epoch: latest.epoch },
    }
}

/// What an engine has to do on a push in one request that is to be recorded, before it records it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum OneShotDecision {
    /// Record it. An open epoch ends with it.
    Record {
        /// The open epoch, and how it ends.
        ends: Option<(Epoch, Ending)>,
    },
    /// As a begin comes to; nothing is recorded.
    Wait(BeginDecision),
}

/// How an open epoch ends by a push in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was staging the same content, so it is committed as the revision that is recorded now.
    Committed,
    /// Another content takes over.
    Superseded,
}

/// Decides on a push in one request beside what is staged under its key: as a begin, its puts and its commit at once.
pub fn one_shot(offer: &Begin, latest: Option<&KnownEpoch>, bound: Option<(Epoch, Fate)>) -> OneShotDecision {
    // How it would be cut is of no interest: the content says whether it is the same.
    let manifest = latest.filter(|latest| latest.content == offer.content).map_or(offer.manifest, |l| l.manifest);
    match begin(&Begin { manifest, ..offer.clone() }, latest, bound) {
        BeginDecision::Open { supersedes, .. } => {
            OneShotDecision::Record { ends: supersedes.map(|epoch| (epoch, Ending::Superseded)) }
        }
        BeginDecision::Resume { epoch, .. } => match latest.filter(|latest| is_of_later_attempt(latest, &offer.sender))
        {
            None => OneShotDecision::Record { ends: Some((epoch, Ending::Committed)) },
            Some(latest) if latest.idle => OneShotDecision::Record { ends: Some((epoch, Ending::Superseded)) },
            Some(_) if offer.sender.ordinal.is_none() => OneShotDecision::Wait(BeginDecision::InProgress { epoch }),
            Some(_) => OneShotDecision::Wait(BeginDecision::Stale { epoch }),
        },
        other => OneShotDecision::Wait(other),
    }
}

/// An earlier or unknown attempt must not commit what a later one stages, though it is the same: the later one would hear
/// that it is recorded, and the revision would have the rank of the earlier.
fn is_of_later_attempt(epoch: &KnownEpoch, sender: &Sender) -> bool {
    // An unknown one is below every known one.
    epoch.ordinal > sender.ordinal
}

/// What an engine has to do on a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum PutDecision {
    /// Write it.
    Store,
    /// It is there with the same bytes: answer as before.
    Replay,
    /// Its bytes are not those that the manifest names (`422 digest-mismatch`).
    Mismatch,
    /// The manifest has no such chunk (`422 chunk-out-of-range`).
    OutOfRange,
    /// A newer epoch has begun (`409 superseded`).
    Superseded,
    /// The epoch ended without a commit (`410 staging-expired`): begin again.
    Gone,
}

/// Decides on a chunk for an epoch. `promised` is the digest that the manifest names for it.
pub fn put(epoch: &KnownEpoch, chunk: u32, promised: Option<Digest>, offered: Digest) -> PutDecision {
    let Some(promised) = promised.filter(|_| chunk < epoch.chunks) else {
        return PutDecision::OutOfRange;
    };
    if promised != offered {
        return PutDecision::Mismatch;
    }
    match epoch.fate {
        Fate::Superseded | Fate::Abandoned | Fate::Cancelled | Fate::Refused if mutant!(M21) => PutDecision::Store,
        Fate::Open if epoch.present.contains(&chunk) => PutDecision::Replay,
        Fate::Open => PutDecision::Store,
        // All chunks of a committed epoch are there, and these are the bytes.
        Fate::Committed { .. } => PutDecision::Replay,
        Fate::Superseded => PutDecision::Superseded,
        Fate::Abandoned | Fate::Cancelled | Fate::Refused => PutDecision::Gone,
    }
}

/// What an engine has to do on a commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[must_use]
pub enum CommitDecision {
    /// Link the epoch: from now on it is visible, whole.
    Commit,
    /// It is linked already: the same receipt.
    Replay {
        /// Its revision.
        revision: u32,
    },
    /// Chunks are missing (`409 incomplete`).
    Incomplete {
        /// Which.
        missing: Vec<u32>,
    },
    /// A newer epoch has begun (`409 superseded`): never "your commit succeeded".
    Superseded,
    /// The epoch was refused for good, and stays refused.
    Refused,
    /// The epoch ended without a commit (`410 staging-expired`): begin again.
    Gone,
}

/// Decides on a commit of an epoch.
pub fn commit(epoch: &KnownEpoch) -> CommitDecision {
    let short_by = usize::from(mutant!(M18));
    match epoch.fate {
        Fate::Superseded if mutant!(M17) && epoch.missing().is_empty() => CommitDecision::Commit,
        Fate::Superseded if mutant!(M20) => CommitDecision::Replay { revision: 1 },
        Fate::Committed { .. } if mutant!(M19) => CommitDecision::Gone,
        Fate::Refused if mutant!(M41) => CommitDecision::Commit,
        Fate::Open if epoch.missing().len() <= short_by => CommitDecision::Commit,
        Fate::Open => CommitDecision::Incomplete { missing: epoch.missing() },
        Fate::Committed { revision } => CommitDecision::Replay { revision },
        Fate::Superseded => CommitDecision::Superseded,
        Fate::Refused => CommitDecision::Refused,
        Fate::Abandoned | Fate::Cancelled => CommitDecision::Gone,
    }
}

/// What an engine has to do on a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum CancelDecision {
    /// End the epoch; nothing of it becomes visible.
    Cancel,
    /// It ended without a commit before: nothing of it is or becomes visible.
    Ended,
    /// Too late: it is visible. The receipt says so.
    Committed {
        /// Its revision.
        revision: u32,
    },
}

/// Decides on a cancel of an epoch.
pub fn cancel(epoch: &KnownEpoch) -> CancelDecision {
    match epoch.fate {
        Fate::Open => CancelDecision::Cancel,
        Fate::Committed { revision } => CancelDecision::Committed { revision },
        Fate::Superseded | Fate::Abandoned | Fate::Cancelled | Fate::Refused => CancelDecision::Ended,
    }
}

/// Whether an epoch may be collected now: only an open one that was seen idle, twice (a clock that jumps is seen once).
pub fn may_abandon(epoch: &KnownEpoch, idle_before: bool) -> bool {
    epoch.fate == Fate::Open && epoch.idle && (idle_before || mutant!(M22))
}

/// Whether an epoch for which nothing came for so long may be taken over.
pub fn is_idle(for_ms: u64) -> bool {
    let limit_ms = if mutant!(M5) { limits::EPOCH_IDLE_MS / 1000 } else { limits::EPOCH_IDLE_MS };
    for_ms >= limit_ms || mutant!(M4)
}
