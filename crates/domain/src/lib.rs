//! What things are and what counts: ids, keys, CI identity, outcomes, the protocol's decisions, counting.
//!
//! Pure: no I/O, no async, no clock, no environment, no HTTP, no SQL. Read in the order below.

pub mod id;
pub mod limits;

pub mod external_id;
pub mod item;
pub mod outcome;
pub mod summary;

pub mod ci;
pub mod content;
pub mod digest;
pub mod key;
pub mod manifest;
pub mod push;

pub mod compare;
pub mod protocol;
pub mod round;
pub mod staging;
pub mod verdict;

pub mod delivery;
pub mod forwarding;
pub mod intent;
pub mod listing;
pub mod marker;
pub mod mutants;
pub mod problem;
pub mod receipt;
pub mod wire;

pub use compare::Comparison;
pub use content::Digests;
pub use delivery::{Cause, Delivery, NextTry};
pub use digest::Digest;
pub use external_id::{ExternalId, IdSource};
pub use id::{
    Commit, CycleName, Executor, IdError, Incarnation, JobName, Ordinal, ProjectId, RoundId, RoundLabel, RunId,
    ShardRef, Variant, WorkflowName,
};
pub use item::{ItemHash, ItemName};
pub use key::PushKey;
pub use manifest::Manifest;
pub use outcome::{Attempt, Counts, DurationUs, Outcome, Status};
pub use problem::{Problem, ProblemCode};
pub use push::{OnDifference, OrdinalScope, Origin, Outcomes, Place, Push, PushId, Sender};
pub use receipt::Receipt;
pub use staging::Epoch;
pub use summary::ReportSummary;
