//! What things are and what counts: ids, keys, CI identity, outcomes, the protocol's decisions, counting.
//!
//! Pure: no I/O, no async, no clock, no environment, no HTTP, no SQL. Read in the order below.

pub mod ci;
pub mod id;
pub mod item;
pub mod key;
pub mod limits;
pub mod outcome;
pub mod summary;

pub use id::{
    Commit, CycleName, Executor, IdError, Incarnation, JobName, Ordinal, ProjectId, RoundId, RoundLabel, RunId,
    ShardRef, Variant, WorkflowName,
};
pub use item::{ItemHash, ItemName};
pub use key::{ChunkKey, KeyError, KeyParts, PushKey, Scope};
pub use outcome::{Attempt, Counts, DurationUs, Outcome, Status};
pub use summary::ReportSummary;
