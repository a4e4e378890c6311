//! Keeps pushes once, and what was forwarded of them: the traits `Store`, `Forwards` and `Ledger`, engines, migrations,
//! the check of a store, and the suite that every engine passes. Must not know HTTP, report formats or vendors, and must
//! not decide: it asks `domain`.

mod api;
mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
mod cursor;
mod error;
mod forwards;
mod ledger;
mod memory;
mod places;
mod receipts;
mod sqlite;
mod staged;

use std::path::Path;
use std::sync::Arc;

pub use api::{
    Absent, Answer, Damage, Found, Now, Promoted, Promotion, Recorded, RecordedAt, Refused, RoundAction, Store,
};
pub use error::StoreError;
pub use forwards::{DueSweep, End, Ended, ForwardTotals, Forwards, ForwardsOf, PushLoad, Waiting, WaitingQuery};
pub use ledger::{Advanced, IntentQuery, Ledger};
pub use memory::MemoryStore;
pub use places::{Bound, Places};
#[cfg(feature = "failpoints")]
pub use sqlite::FAIL_POINTS;
pub use staged::{
    Begun, Cancelled, Chunk, Collected, Committed, EpochOf, Fence, Lifetime, Put, Staging, StagingReport, Stored,
};

/// Opens the store at an address: `sqlite:PATH`, created and migrated if need be. Blocks for as long as that takes.
///
/// # Errors
/// [`StoreError::BadUrl`] for an address of another form, [`StoreError::NewerSchema`] for a store that a newer program
/// wrote.
pub fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let bad = |why: &str| StoreError::BadUrl { url: url.to_owned(), why: why.to_owned() };
    let path = url.strip_prefix("sqlite:").ok_or_else(|| bad("it does not begin with sqlite:"))?;
    if path.is_empty() || path == ":memory:" {
        return Err(bad("sqlite: needs the path of a file"));
    }
    Ok(Arc::new(sqlite::SqliteStore::open(Path::new(path))?))
}
