//! What handing a push over came to: always one of four, so that no error forgets whether the write may have happened.
//! Must not know HTTP or sockets.

use crate::problem::Problem;

/// The outcome of one delivery, or of all deliveries of a push.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Delivery<T> {
    /// It is recorded, now or by an earlier delivery.
    Recorded(T),
    /// It arrived and was refused: nothing is written, and trying again is pointless until the cause is mended.
    Rejected(Box<Problem>),
    /// It never arrived.
    NotSent(Cause),
    /// Silence, or an answer that tells nothing: it may be written. Deliver again with the same key.
    PossiblyWritten(Cause),
}

/// Why a delivery ended without a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What happened, in words for people.
    pub what: String,
    /// Milliseconds that the receiver asked to wait before the next try.
    pub retry_after_ms: Option<u64>,
    /// What the next try has to do otherwise.
    pub next: NextTry,
}

/// How the next try of the same push differs from the one that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NextTry {
    /// In nothing: the same bytes under the same key.
    #[default]
    Same,
    /// The staging that this incarnation took part in has ended: begin again with a new one.
    Anew,
    /// What was sent is too large for one request: in chunks, or in smaller ones.
    Smaller,
}

impl Cause {
    /// A cause without a wish of the receiver.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), retry_after_ms: None, next: NextTry::Same }
    }
}

impl<T> Delivery<T> {
    /// The same with another content.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Delivery<U> {
        match self {
            Delivery::Recorded(value) => Delivery::Recorded(with(value)),
            Delivery::Rejected(problem) => Delivery::Rejected(problem),
            Delivery::NotSent(cause) => Delivery::NotSent(cause),
            Delivery::PossiblyWritten(cause) => Delivery::PossiblyWritten(cause),
        }
    }
}
