//! Staged pushes in the writer's transactions: begin, put, commit, cancel, collect, and what a push in one request meets.
//! Must not decide: `domain::staging` says who may stage, `domain::protocol` what a content is to what is recorded.

mod begin;
mod cancel;
mod collect;
mod commit;
mod gate;
mod put;
mod rows;
mod sweep;
#[cfg(all(test, feature = "conformance"))]
mod tests;
mod write;

pub(super) use begin::begin;
pub(super) use cancel::{cancel, report};
pub(super) use collect::{collect, is_due};
pub(super) use commit::commit;
pub(super) use gate::{Gate, end, one_shot};
pub(super) use put::{PutChunk, PutStep, prepare, put};
pub(super) use rows::{ChunkRow, KeptManifest, StageRow, all, chunks, promises};
pub(super) use sweep::{drop_blocks, drop_of, give_up};
