//! Gets a push to a target effectively once: parcel, outbox, one retry policy, classification, targets.
//! Must not parse reports, know our tables, read the environment, or print.
//!
//! Read [`deliver()`] first, then `classify`: every answer and every failure ends there as one of four truths.

mod api;
mod backoff;
pub mod classify;
mod clock;
mod deliver;
mod destination;
mod http;
mod outbox;
mod parcel;
mod retry_after;
mod secret;
mod stop;
mod structured;
mod tallyonce;
mod target;

pub use api::{ApiClient, ApiError};
pub use backoff::{Backoff, RetryPolicy};
pub use clock::{Clock, SystemClock};
pub use deliver::{Ended, Progress, TRY_GRACE_MS, deliver};
pub use destination::{Destination, DestinationError, HttpUrl};
pub use http::{HttpSettings, ProxySettings, Request, SettingsError, Transport};
pub use outbox::{BrokenEntry, Entry, EntryLock, LockError, Outbox, OutboxError, settle};
pub use parcel::{Header, PackError, Parcel, SealedError, UnpackError, belongs_to};
pub use secret::Secret;
pub use stop::Stop;
pub use tallyonce::TallyonceTarget;
pub use target::{Handed, Target};
