//! What was offered, what was answered, what was heard: everything that a world is judged by, and nothing that the
//! system under test decided by itself. Must not read the store.

use std::collections::{BTreeMap, BTreeSet};

use domain::protocol::DifferenceClass;
use domain::{Digest, Incarnation, OnDifference, ProblemCode, ProjectId, PushId, PushKey};

use crate::content::Content;
use crate::faults::Class;

/// How many kinds of faults there are.
pub(crate) const CLASSES: usize = Class::ALL.len();

/// One execution of a job that offers its report: a runner.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) project: ProjectId,
    pub(crate) key: PushKey,
    pub(crate) push: PushId,
    pub(crate) content: Content,
    pub(crate) ordinal: Option<u64>,
    /// Its attempt number counts attempts of the round.
    pub(crate) attempt_of_round: bool,
    pub(crate) incarnation: Incarnation,
    pub(crate) policy: OnDifference,
    /// How many chunks it is cut into; 0 in one request.
    pub(crate) chunks: u32,
    pub(crate) racing: bool,
    pub(crate) executed_again: bool,
    /// Problems that the rules may answer it with.
    pub(crate) refusals: &'static [ProblemCode],
    pub(crate) faults: [u32; CLASSES],
    pub(crate) heard: Vec<Heard>,
    /// Its disk is gone with it: nobody will deliver it any more.
    pub(crate) evicted: bool,
    /// It has begun to offer.
    pub(crate) begun: bool,
}

/// How one client process ended, for one push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    Recorded { receipt: Vec<u8>, revision: u32, content: Digest, replayed: bool, class: Option<DifferenceClass> },
    Refused(ProblemCode, String),
    Unknown(String),
    Killed,
}

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) offers: Vec<Offer>,
    /// Entity tag and bytes of every receipt that the server gave out.
    pub(crate) receipts: BTreeMap<(PushId, u32), Vec<u8>>,
    /// Pushes of rounds that were deleted.
    pub(crate) dropped: BTreeSet<PushId>,
    pub(crate) violations: Vec<String>,
    /// Deliveries: requests that were to record something.
    pub(crate) requests: u64,
    /// Looks of readers in between.
    pub(crate) looks: u64,
    /// Faults of a script that did not happen.
    pub(crate) left: usize,
    /// The latest message that arrived, by process.
    arrived: BTreeMap<u64, u64>,
}

impl History {
    /// A fault has hit a push.
    pub(crate) fn hit(&mut self, runner: Option<usize>, class: Class) {
        if let Some(offer) = runner.and_then(|at| self.offers.get_mut(at)) {
            offer.faults[class as usize] += 1;
        }
    }

    /// A message has arrived: was it overtaken by a later one of its process?
    pub(crate) fn arrived(&mut self, process: u64, id: u64) -> bool {
        self.requests += 1;
        let latest = self.arrived.entry(process).or_default();
        let overtaken = *latest > id;
        *latest = id.max(*latest);
        overtaken
    }

    /// The runner whose report an outbox entry holds.
    pub(crate) fn runner_of(
        &self,
        key: &PushKey,
        project: &ProjectId,
        incarnation: Option<Incarnation>,
    ) -> Option<usize> {
        self.offers.iter().position(|offer| {
            offer.begun && offer.key == *key && offer.project == *project && Some(offer.incarnation) == incarnation
        })
    }

    /// A content that was offered under a key.
    pub(crate) fn content(&self, push: PushId, digest: Digest) -> Option<&Content> {
        self.offers.iter().find(|o| o.begun && o.push == push && o.content.digest == digest).map(|o| &o.content)
    }
}

impl Offer {
    /// True if any fault hit it.
    pub(crate) fn is_faulted(&self) -> bool {
        self.faults.iter().any(|n| *n > 0)
    }

    /// The last word that it heard.
    pub(crate) fn last(&self) -> Option<&Heard> {
        self.heard.last()
    }

    /// A verdict that is final for it.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.last(), Some(Heard::Recorded { .. } | Heard::Refused(..)))
    }
}
