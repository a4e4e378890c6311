//! What can be wrong with a parcel: when it is packed, read, or unpacked. Must not decide what that means for a delivery.

use std::io;
use std::path::PathBuf;

use domain::limits;
use domain::push::DoubledItem;
use thiserror::Error;

/// A push that cannot be packed.
#[derive(Debug, Error)]
pub enum PackError {
    /// More outcomes than one push may hold.
    #[error("the push holds {outcomes} outcomes; at most {} are allowed", limits::STAGED_OUTCOMES_MAX)]
    TooManyOutcomes {
        /// How many it holds.
        outcomes: u64,
    },
    /// The outcomes don't come in the order of their items, or one item comes twice.
    #[error("the outcomes are not in order")]
    Order,
    /// Another number of outcomes than was said.
    #[error("{found} outcomes came for {said}")]
    Number {
        /// How many were announced.
        said: u64,
        /// How many came.
        found: u64,
    },
    /// One item twice.
    #[error(transparent)]
    Doubled(#[from] DoubledItem),
    /// The outcomes cannot be read from where they are kept.
    #[error("the outcomes cannot be read again: {0}")]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The disk is full, or a compressor failed.
    #[error("the push cannot be packed: {0}")]
    Encode(#[from] io::Error),
}

/// Bytes that are no whole parcel.
#[derive(Debug, Error)]
pub enum SealedError {
    /// The file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// Not a file of this program.
    #[error("this is no sealed push")]
    Foreign,
    /// Written by a newer version.
    #[error("this push was sealed by a newer version of tallyonce; use that version or a later one")]
    Newer,
    /// It ends early, or bytes in it have changed.
    #[error("the push is torn: {why}")]
    Torn {
        /// How one can tell.
        why: String,
    },
}

/// A parcel whose bodies are not what its header says.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// The file that holds it cannot be read.
    #[error("the kept push cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Not zstd, not JSON, or not a push.
    #[error("the body cannot be read: {0}")]
    Unreadable(String),
    /// A body inflates beyond its bound.
    #[error("the body inflates to more than {limit} bytes")]
    TooLarge {
        /// The bound in bytes.
        limit: u64,
    },
    /// One item twice.
    #[error(transparent)]
    Doubled(#[from] DoubledItem),
    /// The outcomes are not those that the header was made for.
    #[error("the body's {what} is not what the header says: {found} for {expected}")]
    Mismatch {
        /// What differs.
        what: &'static str,
        /// What the header says.
        expected: String,
        /// What the body holds.
        found: String,
    },
}

/// Refuses what is not as the header says.
pub(super) fn same<T: PartialEq + std::fmt::Debug>(
    what: &'static str,
    expected: &T,
    found: &T,
) -> Result<(), UnpackError> {
    if expected == found {
        return Ok(());
    }
    let shown = |value: &T| format!("{value:?}").chars().take(200).collect();
    Err(UnpackError::Mismatch { what, expected: shown(expected), found: shown(found) })
}
