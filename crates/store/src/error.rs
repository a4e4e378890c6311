//! What can go wrong in a store, typed by what it means for the data. Must not know HTTP.

use thiserror::Error;

/// Why a store could not answer.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Nothing of the request is written: busy, out of reach, disk full before the commit.
    #[error("nothing was written: {what}")]
    NotWritten {
        /// What happened.
        what: String,
    },
    /// The commit was sent and its outcome is unknown: run the same transaction again, the key decides.
    #[error("the commit's outcome is unknown: {what}")]
    PossiblyWritten {
        /// What happened.
        what: String,
    },
    /// The store's own data contradict each other; `check-store` names where.
    #[error("the store is damaged: {what}; run `tallyonce check-store`")]
    Broken {
        /// What contradicts what.
        what: String,
    },
    /// The store was written by a newer version.
    #[error("the store has schema {found}, this program knows up to {known}: use the newer program")]
    NewerSchema {
        /// The schema found.
        found: u32,
        /// The newest schema known.
        known: u32,
    },
    /// The address of the store cannot be read.
    #[error("{url:?} is no store address: {why}")]
    BadUrl {
        /// The address as given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
}
