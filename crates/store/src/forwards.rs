//! The `Forwards` trait: what a server keeps to forward recorded pushes by itself. A push that a rule takes waits from the
//! very transaction that records it. Every write is one transaction, every reading one snapshot. Must not know
//! repositories, nor when to try again.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use domain::forwarding::ForwardRule;
use domain::intent::{Flag, IntentId, IntentState, RefusedItem};
use domain::listing::IntentReport;
use domain::{CycleName, Ordinal, Outcome, Place, ProjectId, PushId, PushKey, RoundId};

use crate::{Found, Ledger, StoreError};

/// A push, as of one revision, that is to go to one target: it waits, or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Its number; it rises in the order of recording.
    pub id: u64,
    /// The target's name.
    pub target: String,
    /// Where the push belongs.
    pub project: ProjectId,
    /// Its cycle.
    pub cycle: CycleName,
    /// Its round.
    pub round: RoundId,
    /// The push.
    pub push: PushId,
    /// Its key.
    pub key: PushKey,
    /// The revision whose recording made it wait.
    pub revision: u32,
    /// When that was, milliseconds since 1970 by the recorder's clock.
    pub since_ms: u64,
    /// When it may be tried, by the forwarder's clock; 0: at once.
    pub due_ms: u64,
    /// How often it was put off.
    pub tries: u32,
    /// Why it was put off last, in words.
    pub cause: Option<String>,
    /// What became of it; `None` while it waits.
    pub ended: Option<Ended>,
}

/// What became of a push that waited for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// When, by the clock of whoever ended it; 0: nobody said (its round was deleted).
    pub at_ms: u64,
    /// The revision up to which what counts was forwarded; 0: nothing was.
    pub revision: u32,
    /// What the repository calls the cycle that it is in.
    pub cycle_there: Option<String>,
    /// What people have to know of that cycle; an intent has its own.
    pub flags: BTreeSet<Flag>,
    /// Items without a case there; what was refused of an intent, the intent says.
    pub refused: Vec<RefusedItem>,
    /// The intents that it became: those of this revision alone, as far as they were planned.
    pub intents: Vec<IntentId>,
}

impl Ended {
    /// Its round was deleted before.
    pub(crate) fn dropped() -> Self {
        Self {
            end: End::Dropped,
            at_ms: 0,
            revision: 0,
            cycle_there: None,
            flags: BTreeSet::new(),
            refused: Vec::new(),
            intents: Vec::new(),
        }
    }
}

/// How a push that waited for a target ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Its intents are planned and say how far they are.
    Forwarded,
    /// Its round was deleted before.
    Dropped,
}

/// Which waiting pushes. What is not given does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingQuery {
    /// For this target.
    pub target: Option<String>,
    /// Of this project.
    pub project: Option<ProjectId>,
    /// Into this cycle with us.
    pub cycle: Option<CycleName>,
    /// Of this push.
    pub push: Option<PushId>,
    /// True: also those that have ended.
    pub ended: bool,
    /// At most so many, the oldest.
    pub limit: Option<usize>,
}

/// What counts of a push now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushLoad {
    /// Its key.
    pub key: PushKey,
    /// Where it belongs.
    pub place: Place,
    /// Its newest revision, which this is as of.
    pub revision: u32,
    /// The attempt of the revision whose verdicts count last, if known.
    pub ordinal: Option<Ordinal>,
    /// Where people find the run.
    pub run_url: Option<String>,
    /// Every item once, rising by hash: the execution that counts, as its own report told it, so that an item that did the
    /// same again says the same; texts as far as they go on ([`Outcome::for_forwarding`]).
    pub outcomes: Vec<Outcome>,
}

/// Everything that is known of forwarding one push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardsOf {
    /// Its key.
    pub key: PushKey,
    /// What waits or has ended, oldest first.
    pub waiting: Vec<Waiting>,
    /// Its intents at every target, oldest first.
    pub intents: Vec<IntentReport>,
}

/// An intent that is to be read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSweep {
    /// The intent.
    pub id: IntentId,
    /// The cycle there.
    pub cycle_there: Option<String>,
    /// How many sweeps are done once this one is: what to give to [`Forwards::swept`].
    pub number: u32,
}

/// Forwarding to one target in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForwardTotals {
    /// Intents by state; what is parked and a person has looked at is left out.
    pub states: BTreeMap<IntentState, u64>,
    /// Intents by flag; what a person has looked at has no other than that ([`Flag::said`]).
    pub flags: BTreeMap<Flag, u64>,
    /// Pushes that wait.
    pub waiting: u64,
    /// Since when the oldest of those waits, or the oldest unsettled intent is planned, milliseconds since 1970.
    pub oldest_ms: Option<u64>,
}

/// Keeps which pushes wait for which target, and who works at it.
///
/// A transaction that changes what counts of a push (a first content, an overlay, a promotion, the commit of a staged one)
/// also makes it wait for every target whose rule takes it: never one without the other. A replay, a refusal and what is
/// only kept beside make nothing wait. When a round is deleted, its pushes wait no longer.
///
/// # Errors
/// Every method: [`StoreError::NotWritten`], [`StoreError::PossiblyWritten`], [`StoreError::Broken`]. A write whose outcome
/// is unknown may be tried again, but [`Forwards::take_lease`] then gives another turn.
#[async_trait]
pub trait Forwards: Ledger {
    /// Rules for everything that this open store records from now on. They are not kept in the store: every process sets
    /// its own.
    fn set_forward_rules(&self, rules: Vec<ForwardRule>);

    /// Takes a target for `holder` until then, as a new turn ([`domain::forwarding::Lease::take`]); `None` while another
    /// holder has it. [`Ledger::next_turn`] ends every lease.
    async fn take_lease(
        &self,
        target: &str,
        holder: &str,
        now_ms: u64,
        until_ms: u64,
    ) -> Result<Option<u64>, StoreError>;

    /// Keeps the target until then; false, and nothing changes, if `turn` is not its highest, or its lease was ended.
    async fn keep_lease(&self, target: &str, turn: u64, until_ms: u64) -> Result<bool, StoreError>;

    /// Leaves the target to others at once; nothing happens if `turn` is not its highest.
    async fn end_lease(&self, target: &str, turn: u64) -> Result<(), StoreError>;

    /// The oldest push that waits for the target and may be tried.
    async fn next_waiting(&self, target: &str, now_ms: u64) -> Result<Option<Waiting>, StoreError>;

    /// Keeps why it could not be forwarded, and when to try again. False, and nothing changes, if `turn` is not the target's
    /// highest. Nothing happens to what has ended.
    async fn put_off(&self, turn: u64, waiting: &Waiting, due_ms: u64, cause: &str) -> Result<bool, StoreError>;

    /// Ends it, and with it what else waits for the target of the same push, up to the revision that was forwarded. False,
    /// and nothing changes, if `turn` is not the target's highest. What has ended already stays as it is.
    async fn end_waiting(&self, turn: u64, waiting: &Waiting, ended: Ended) -> Result<bool, StoreError>;

    /// What waits or has waited, oldest first.
    async fn waiting(&self, query: WaitingQuery) -> Result<Vec<Waiting>, StoreError>;

    /// What counts of a push now.
    async fn push_load(&self, project: &ProjectId, push: PushId) -> Found<PushLoad>;

    /// Intents of a target whose sweep is due ([`domain::forwarding::due_sweep`]), those first that settled first; at most so
    /// many, and none of these cycles there. They are acked, found or parked, or rejected after more than one send: an earlier
    /// one may have been carried out late.
    async fn due_sweeps(
        &self,
        target: &str,
        now_ms: u64,
        without: &[String],
        limit: usize,
    ) -> Result<Vec<DueSweep>, StoreError>;

    /// Keeps how many sweeps of these intents are done. False, and nothing changes, if `turn` is not the target's highest.
    /// A later change of state begins at none again.
    async fn swept(&self, target: &str, turn: u64, ids: Vec<IntentId>, number: u32) -> Result<bool, StoreError>;

    /// Everything of one push, also after its round was deleted.
    async fn forwards_of(&self, project: &ProjectId, push: PushId) -> Found<ForwardsOf>;

    /// All targets that anything waits for or was planned for, in numbers.
    async fn forward_totals(&self) -> Result<BTreeMap<String, ForwardTotals>, StoreError>;
}
