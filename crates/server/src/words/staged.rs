//! What happens to staged pushes, in words: fences, chunks that are not what was promised, epochs that have ended.
//! Must not decide anything.

use domain::manifest::ranges;
use domain::wire::StoredReceipt;
use domain::{Problem, ProblemCode, Receipt};
use serde_json::value::RawValue;
use store::{Fence, StoreError, Stored};

use crate::problem::of_store;

/// What a client does that has to wait for another delivery.
const WAIT: &str = "Attach to the key (GET …/pushes?key=…, Prefer: wait=N) until the other delivery has ended or is idle, \
    then deliver this push again with the same key: only the answer to that counts for it";
/// What a client does whose epoch has ended.
const AGAIN: &str = "Begin again with the same key; only what is missing then has to be sent";

/// The problem that a fence is.
pub(crate) fn fenced(fence: Fence) -> Problem {
    match fence {
        Fence::InProgress { epoch } => Problem::new(
            ProblemCode::PushInProgress,
            format!(
                "Another client is staging other content under this key (epoch {}), and it is not idle. Nothing of this \
                 push was recorded, and nothing of the other one was changed. {WAIT}.",
                epoch.0
            ),
        ),
        Fence::Stale { epoch } => Problem::new(
            ProblemCode::StaleAttempt,
            format!(
                "A later attempt of this job is staging under this key (epoch {}). Nothing of this push was recorded, and \
                 nothing of the other one was changed. {WAIT}.",
                epoch.0
            ),
        ),
        Fence::Superseded { epoch, recorded } => {
            let mut problem = superseded(recorded);
            problem.detail = format!("Epoch {} of this client: {}", epoch.0, problem.detail);
            problem
        }
    }
}

/// A newer epoch has begun, or this client was fenced off before.
pub(crate) fn superseded(recorded: Option<Stored>) -> Problem {
    let held = match &recorded {
        Some(_) => "What is recorded under the key, by another delivery, is in this document",
        None => "Nothing is recorded under the key so far",
    };
    let words = format!(
        "Another delivery has taken over, and nothing of this epoch is visible or will be. {held}. {WAIT}, as a new client \
         process (another Push-Incarnation)."
    );
    with_receipt(Problem::new(ProblemCode::Superseded, words), recorded)
}

/// A cancel that came too late.
pub(crate) fn committed(recorded: Stored) -> Problem {
    let words = "The epoch was committed before the cancel came: it is recorded and stays so. Its receipt is in this \
                 document; there is nothing more to do.";
    with_receipt(Problem::new(ProblemCode::Committed, words), Some(recorded))
}

fn with_receipt(mut problem: Problem, recorded: Option<Stored>) -> Problem {
    match recorded.map(stored).transpose() {
        Ok(receipt) => problem.recorded = receipt,
        Err(broken) => return *broken,
    }
    problem
}

/// A recorded receipt for another document, byte for byte.
pub(crate) fn stored(stored: Stored) -> Result<StoredReceipt, Box<Problem>> {
    let Stored { revision, receipt } = stored;
    let etag = Receipt::etag(revision, &receipt);
    let broken = |what: String| Box::new(of_store(&StoreError::Broken { what }));
    let text = String::from_utf8(receipt).map_err(|error| broken(error.to_string()))?;
    let receipt = RawValue::from_string(text).map_err(|error| broken(error.to_string()))?;
    Ok(StoredReceipt { revision, etag, receipt })
}

/// A commit before all chunks are there.
pub(crate) fn incomplete(missing: &[u32]) -> Problem {
    let words = format!(
        "{} chunks are missing, so nothing was made visible; what is staged stays. Put the missing ones, which are listed as \
         ranges, and commit again.",
        missing.len()
    );
    let mut problem = Problem::new(ProblemCode::Incomplete, words);
    problem.missing = ranges(missing);
    problem
}

/// The epoch ended without a commit.
pub(crate) fn gone() -> Problem {
    let words = format!(
        "This epoch has ended without being recorded: it was cancelled, refused, collected after a day without a sign, or \
         its data was deleted. Nothing of it is visible or will be. {AGAIN}, as a new client process (another \
         Push-Incarnation)."
    );
    Problem::new(ProblemCode::StagingExpired, words)
}

/// There is no such push or epoch.
pub(crate) fn unknown_epoch() -> Problem {
    let words = format!(
        "There is no such push or no such epoch of it in this project. Nothing was recorded by this request. {AGAIN}: the \
         answer names push and epoch."
    );
    Problem::new(ProblemCode::UnknownPush, words)
}

/// Bytes that the manifest doesn't name.
pub(crate) fn chunk_mismatch(chunk: u32) -> Problem {
    let words = format!(
        "These are not the bytes that the manifest promises for chunk {chunk}: another SHA-256. It is another chunk, or it \
         was compressed anew and came out otherwise. Nothing was staged by this request, and what is staged stays. Send \
         the bytes that the manifest was made of, or begin again with a manifest of these."
    );
    Problem::new(ProblemCode::DigestMismatch, words)
}

/// A number beyond the manifest's.
pub(crate) fn chunk_out_of_range(chunk: u32, chunks: u32) -> Problem {
    let words = format!(
        "The manifest has {chunks} chunks, numbered from 0; there is no chunk {chunk}. Nothing was staged by this request, \
         and what is staged stays. Send the chunks that the manifest names."
    );
    Problem::new(ProblemCode::ChunkOutOfRange, words)
}

/// Outcomes that don't belong into the chunk.
pub(crate) fn chunk_not_as_promised(chunk: u32, what: &str) -> Problem {
    let words = format!(
        "Chunk {chunk} doesn't hold what the manifest says: {what}. Nothing was staged by this request, and what is staged \
         stays. An item belongs into the chunk that the leading bits of its hash number. Begin again with a manifest that \
         fits the chunks."
    );
    Problem::new(ProblemCode::ManifestMalformed, words)
}

/// Chunks that together are something else.
pub(crate) fn not_as_promised(what: &str) -> Problem {
    let words = format!(
        "The chunks together are not what the manifest says: {what}. Nothing was recorded, and the epoch has ended. Begin \
         again with a manifest that is made of the outcomes, as a new client process (another Push-Incarnation)."
    );
    Problem::new(ProblemCode::ManifestMalformed, words)
}
