//! The `Ledger` trait: what a forwarder keeps of its intents, its turns and the cycles that it made elsewhere. Every write
//! is one transaction, every reading one snapshot. Must not know repositories, nor when an intent may go on: it compares.

use async_trait::async_trait;
use domain::intent::{Intent, IntentId, IntentState};
use domain::listing::IntentReport;
use domain::marker::WriteId;
use domain::{CycleName, ProjectId, PushKey};

use crate::{Places, StoreError};

/// What became of a step that a forwarder wanted to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advanced {
    /// It is kept.
    Done,
    /// Another turn is the highest of the target: nothing is kept, and whoever hears this must not send.
    Fenced,
    /// The intent is kept in another state than the step begins with: nothing is kept.
    Elsewhere(IntentState),
    /// The target has no such intent: it was never planned, or the ledger is older than the forwarder
    /// (`facts/idempotency.md`, W6). Nothing is kept.
    Unplanned,
}

/// Which intents. What is not given does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntentQuery {
    /// These; none: any.
    pub ids: Vec<IntentId>,
    /// Of this target.
    pub target: Option<String>,
    /// True: those that are in doubt ([`Intent::is_in_doubt`]); false: the others.
    pub in_doubt: Option<bool>,
    /// In one of these states; none: in any.
    pub states: Vec<IntentState>,
    /// Of pushes of this project.
    pub project: Option<ProjectId>,
    /// Of pushes into this cycle with us.
    pub cycle: Option<CycleName>,
    /// Of the pushes with this key.
    pub key: Option<PushKey>,
    /// Written, or to be written, into this cycle there.
    pub cycle_there: Option<String>,
    /// Last changed earlier than this, milliseconds since 1970.
    pub changed_before_ms: Option<u64>,
    /// At most so many, the oldest.
    pub limit: Option<usize>,
}

/// Keeps what was, or may have been, written into repositories without keys. What is written is durable before a method
/// returns.
///
/// Intents are kept for good, also when their round is deleted: what they tell of stands in another repository.
///
/// # Errors
/// Every method: [`StoreError::NotWritten`], [`StoreError::PossiblyWritten`], [`StoreError::Broken`]. A step whose outcome
/// is unknown may be tried again; if it was written, the answer then is [`Advanced::Elsewhere`] with the state that it
/// leads to.
#[async_trait]
pub trait Ledger: Places {
    /// The next turn at a target, from 1: a number that fences every lower one off. Who may take it, the caller decides.
    async fn next_turn(&self, target: &str) -> Result<u64, StoreError>;

    /// Keeps new intents of a target; of those that are known (by id) already, what is known stays. Gives all as they are
    /// kept, in the order asked; `None`, and keeps nothing, if `turn` is not the target's highest.
    ///
    /// # Errors
    /// [`StoreError::NotWritten`] also if one of them is for another target.
    async fn plan_intents(
        &self,
        target: &str,
        turn: u64,
        intents: Vec<Intent>,
    ) -> Result<Option<Vec<Intent>>, StoreError>;

    /// Intents, oldest first: by the time of planning, then by number, then in the order of coming.
    async fn intents(&self, query: IntentQuery) -> Result<Vec<Intent>, StoreError>;

    /// The same without what they mean to write, which may be as long as a push: for whoever lists, counts or looks.
    async fn intent_reports(&self, query: IntentQuery) -> Result<Vec<IntentReport>, StoreError>;

    /// Keeps how far an intent is now, if `turn` is the highest of its target and the kept state is `from`: state, sends,
    /// times, the cycle there, flags, cause and what was refused. Where it belongs and what it means to write stay as
    /// planned.
    async fn advance_intent(&self, turn: u64, from: IntentState, intent: Intent) -> Result<Advanced, StoreError>;

    /// The target's cycle for a cycle or round of ours, if one is kept.
    async fn cycle_there(&self, target: &str, id: WriteId) -> Result<Option<String>, StoreError>;

    /// Keeps it; `None` forgets it. False, and nothing changes, if `turn` is not the target's highest.
    async fn keep_cycle_there(
        &self,
        target: &str,
        turn: u64,
        id: WriteId,
        cycle: Option<String>,
    ) -> Result<bool, StoreError>;
}

/// Every intent is for this target.
pub(crate) fn all_for(target: &str, intents: &[Intent]) -> Result<(), StoreError> {
    match intents.iter().find(|intent| intent.target != target) {
        None => Ok(()),
        Some(stray) => Err(StoreError::NotWritten {
            what: format!("intent {} is for target {:?} and was planned for {target:?}", stray.id, stray.target),
        }),
    }
}
