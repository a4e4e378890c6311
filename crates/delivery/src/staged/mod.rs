//! A push in chunks: begin, put what is missing, commit. One sequence for every receiver that stages.
//! Must not know how a receiver is reached, and must not repeat what `deliver` repeats.
//!
//! Nothing is recorded before the commit, whatever happens to a begin or a put; so a failure before it is "not sent".
//! The receiver's list of missing chunks is the truth, never a memory of ours: that is what makes a delivery that was cut
//! short go on where it was.

pub(crate) mod http;
mod run;

use async_trait::async_trait;
use domain::{Cause, Epoch, Problem, ProblemCode, PushId};

use crate::parcel::{Parcel, UnpackError};
use crate::target::Handed;

pub use run::{deliver_staged, wait_for_other};

/// A receiver that stages. Each call is one request, in bounded time; each may be dropped.
#[async_trait]
pub trait Stage: Send + Sync {
    /// How many chunks it takes at a time.
    fn at_once(&self) -> usize;

    /// Begins or resumes. `with_items`: with items and verdicts, if the parcel has them.
    async fn begin(&self, parcel: &Parcel, with_items: bool) -> Result<Begun, Setback>;

    /// Puts one chunk.
    async fn put(&self, parcel: &Parcel, at: Staging, chunk: u32) -> Result<(), Setback>;

    /// Makes it visible, whole.
    async fn commit(&self, parcel: &Parcel, at: Staging) -> Result<Handed, Setback>;

    /// Gives the epoch up, so that nobody has to wait until it is idle. Whether it was heard doesn't matter: nothing of an
    /// epoch that nobody commits is ever visible.
    async fn cancel(&self, parcel: &Parcel, at: Staging);

    /// Waits until somebody else's delivery under this key has ended or is idle, for at most about this long; true if it
    /// has or is. What became of it is no answer to our own push, and is not said.
    async fn attach(&self, parcel: &Parcel, wait_ms: u64) -> bool;
}

/// Where chunks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staging {
    /// The push.
    pub push: PushId,
    /// The epoch.
    pub epoch: Epoch,
}

/// What a begin came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// There is something to put, or only to commit.
    Staging {
        /// Where.
        at: Staging,
        /// Chunks that are not there, as ranges with both ends included.
        missing: Vec<[u32; 2]>,
        /// True if an earlier begin opened it.
        resumed: bool,
    },
    /// It is recorded already.
    Recorded(Box<Handed>),
}

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Setback {
    /// Refused for good.
    Rejected(Box<Problem>),
    /// Nothing of it was taken, for certain.
    NotTaken(Cause),
    /// No answer, or one that tells nothing.
    Unclear(Cause),
    /// Another delivery is under way.
    Fenced {
        /// In words.
        what: String,
        /// When it will be idle, if nothing comes for it, in milliseconds.
        idle_in_ms: Option<u64>,
        /// True if this client's own staging is over: it needs a new incarnation.
        over: bool,
    },
    /// The staging has ended, or was never there: begin again, with a new incarnation.
    Gone(String),
    /// Chunks are missing, as ranges with both ends included.
    Incomplete(Vec<[u32; 2]>),
    /// The body is too large for it.
    TooLarge(String),
}

impl From<UnpackError> for Setback {
    fn from(error: UnpackError) -> Self {
        Self::Rejected(damaged(&error))
    }
}

/// What is kept is damaged: sending it again changes nothing.
pub fn damaged(error: &UnpackError) -> Box<Problem> {
    let words = format!("The kept push cannot be unpacked: {error}. Nothing was recorded by this delivery.");
    Box::new(Problem::new(ProblemCode::ReportUnreadable, words))
}
