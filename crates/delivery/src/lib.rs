//! Gets a push to a target effectively once: parcel, outbox, one retry policy, classification, targets.
//! Must not parse reports, know our tables, read the environment, or print.
//!
//! Read [`deliver()`] first, then `classify`: every answer and every failure ends there as one of four truths.

mod api;
mod attempt;
mod backoff;
pub mod classify;
mod clock;
mod deliver;
mod destination;
pub mod foreign;
mod http;
mod keep;
mod outbox;
mod parcel;
mod retry_after;
mod secret;
pub mod staged;
mod stop;
mod structured;
mod tallyonce;
mod target;

pub use api::{ApiClient, ApiError};
pub use attempt::{Staged, Try};
pub use backoff::{Backoff, RetryPolicy};
pub use clock::{Clock, SystemClock};
pub use deliver::{Ended, Progress, TRY_GRACE_MS, Terms, deliver};
pub use destination::{Destination, DestinationError, HttpUrl};
pub use http::{HttpSettings, ProxySettings, Request, SettingsError, Transport};
pub use keep::{Keep, Loose};
pub use outbox::{
    Attachment, AttachmentWanted, Attachments, AttachmentsWanted, BrokenEntry, Entry, EntryLock, LeftOut, LockError,
    Outbox, OutboxError, Settled,
};
pub use parcel::{
    BodyPlace, Contents, Form, Header, Label, PackError, Packing, Parcel, Scratch, SealedError, Source,
    TEXT_MORE_BYTES, UnpackError, belongs_to,
};
pub use secret::Secret;
pub use stop::Stop;
pub use tallyonce::TallyonceTarget;
pub use target::{Handed, Target};
