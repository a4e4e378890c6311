//! The seam between delivering and what is delivered to: a target, and what it hands back.
//! Must not know HTTP, stores or vendors.

use async_trait::async_trait;
use domain::outcome::Counts;
use domain::protocol::DifferenceClass;
use domain::{Delivery, Receipt};

use crate::attempt::Try;
use crate::destination::Destination;
use crate::parcel::Parcel;

/// What a target answers when a push is recorded, now or by an earlier delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// The receipt as stored, byte for byte.
    pub receipt_bytes: Vec<u8>,
    /// The same, read.
    pub receipt: Receipt,
    /// True if an earlier delivery made it.
    pub replayed: bool,
    /// How the offered content differs from what is recorded; `None` for a first delivery.
    pub class: Option<DifferenceClass>,
    /// The push's newest revision.
    pub current_revision: u32,
    /// The push's items as they count now.
    pub current_counts: Counts,
    /// What the sender should hear.
    pub warnings: Vec<String>,
}

/// Something that takes a push. One call is one attempt: no target repeats by itself.
#[async_trait]
pub trait Target: Send + Sync {
    /// Where it is.
    fn destination(&self) -> &Destination;

    /// One attempt, in bounded time. May be dropped at any moment; what it did until then counts as possibly written,
    /// unless it told the try otherwise.
    async fn deliver(&self, parcel: &Parcel, attempt: &Try<'_>) -> Delivery<Handed>;

    /// Work that can wait until nobody waits for an answer. It may fail, be dropped, or never be done.
    async fn tidy(&self) {}
}
