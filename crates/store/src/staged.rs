//! What goes into a store and comes out of it for a staged push: plain data. Must not decide.

use domain::protocol::DifferenceClass;
use domain::{Digest, Epoch, Incarnation, Outcomes, ProjectId, PushId};

use crate::{Answer, Refused};

/// One epoch of one push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochOf {
    /// The tenant.
    pub project: ProjectId,
    /// The push.
    pub push: PushId,
    /// The epoch.
    pub epoch: Epoch,
}

/// What came of a begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Put what is missing, then commit.
    Staging(Staging),
    /// Recorded already: the stored receipt.
    Replayed(Answer),
    /// Refused for good.
    Refused(Refused),
    /// Another delivery is staging, or this client was fenced off.
    Fenced(Fence),
}

/// An epoch to put into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staging {
    /// The epoch.
    pub epoch: Epoch,
    /// True if an earlier begin opened it.
    pub resumed: bool,
    /// How many chunks there are.
    pub chunks: u32,
    /// Chunks that are not there, rising.
    pub missing: Vec<u32>,
    /// How the offered content differs from what counts, where the manifest says so.
    pub difference: Option<DifferenceClass>,
    /// What is recorded under the key already.
    pub recorded: Option<Stored>,
}

/// A receipt that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its revision.
    pub revision: u32,
    /// Its bytes.
    pub receipt: Vec<u8>,
}

/// Why a delivery has to wait for another one, or to begin again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fence {
    /// Another client stages other content, and its epoch is not idle (`409 push-in-progress`).
    InProgress {
        /// The open epoch.
        epoch: Epoch,
    },
    /// A later attempt is staging (`409 stale-attempt`).
    Stale {
        /// The open epoch.
        epoch: Epoch,
    },
    /// This client's epoch is dead (`409 superseded`).
    Superseded {
        /// The dead epoch.
        epoch: Epoch,
        /// What is recorded under the key, if anything is.
        recorded: Option<Stored>,
    },
}

/// One chunk, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Where it goes.
    pub of: EpochOf,
    /// Its number.
    pub number: u32,
    /// SHA-256 of its body as it travelled.
    pub digest: Digest,
    /// Its outcomes.
    pub outcomes: Outcomes,
}

/// What came of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It is there, now or since an earlier delivery (`replayed`).
    Stored {
        /// True if it was there before.
        replayed: bool,
    },
    /// Its bytes are not those that the manifest names.
    Mismatch,
    /// The manifest has no such chunk.
    OutOfRange {
        /// How many there are.
        chunks: u32,
    },
    /// It holds other items than its number says, or not as many as the manifest says.
    NotAsPromised {
        /// In words.
        what: String,
    },
    /// A newer epoch has begun.
    Superseded,
    /// The epoch ended without a commit.
    Gone,
    /// There is no such push or epoch.
    Unknown,
}

/// What came of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Committed {
    /// It is visible, now or since an earlier commit.
    Accepted(Answer),
    /// Chunks are missing.
    Incomplete {
        /// Which, rising.
        missing: Vec<u32>,
    },
    /// Refused for good: the epoch is dead, and so is every copy of this commit.
    Refused(Refused),
    /// The chunks together are not what the manifest says: the epoch is dead.
    NotAsPromised {
        /// In words.
        what: String,
    },
    /// A newer epoch has begun.
    Superseded {
        /// What is recorded under the key, if anything is.
        recorded: Option<Stored>,
    },
    /// The epoch ended without a commit.
    Gone,
    /// There is no such push or epoch.
    Unknown,
}

/// What came of a cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// Nothing of the epoch is or becomes visible.
    Ended,
    /// Too late: it is visible, and this is its receipt.
    Committed(Stored),
    /// There is no such push or epoch.
    Unknown,
}

/// What is staged under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagingReport {
    /// The open epoch.
    pub epoch: Epoch,
    /// How many chunks there will be.
    pub chunks: u32,
    /// How many are there.
    pub present: u32,
    /// For how long nothing has come for it, in milliseconds.
    pub idle_ms: u64,
    /// The clients that began or resumed it.
    pub incarnations: Vec<Incarnation>,
}

/// When staging is collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// How long it may be idle, in milliseconds.
    pub idle_ms: u64,
    /// How far apart it must be seen idle twice, in milliseconds.
    pub second_look_ms: u64,
    /// How many blocks one call deletes at most.
    pub blocks_max: usize,
}

impl Lifetime {
    /// A day, seen twice an hour apart; a short transaction a call.
    pub fn standard() -> Self {
        Self {
            idle_ms: domain::limits::STAGING_LIFETIME_MS,
            second_look_ms: domain::limits::STAGING_SECOND_LOOK_MS,
            blocks_max: 64,
        }
    }
}

/// What a collection did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Epochs that were given up.
    pub abandoned: u64,
    /// Blocks of dead epochs that were deleted.
    pub blocks: u64,
    /// True if there is more to delete now.
    pub more: bool,
}
