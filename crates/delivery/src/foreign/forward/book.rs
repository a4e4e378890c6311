//! Where intents are kept: what a forwarder needs of a ledger. Must not know how it is kept.

use async_trait::async_trait;
use domain::forwarding::TargetPlace;
use domain::intent::{Intent, IntentState};
use domain::marker::WriteId;
use domain::{ProjectId, PushKey};
use thiserror::Error;

use crate::foreign::entry::CycleId;
use crate::foreign::settings::TargetName;

/// A turn at one target. A higher one fences every lower one off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(pub u64);

/// Why the ledger did nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BookError {
    /// Somebody else has the turn: whoever hears this must not send.
    #[error("another process forwards to this target now")]
    Fenced,
    /// The ledger's ids mean something elsewhere alone: whoever hears this must not send.
    #[error(
        "its ledger stands for {known}, and the target is {now} now. Nothing is sent: ids of the one mean something else in \
         the other. If it only moved, say so once: `tallyonce forwards --moved --target NAME`; if it is another one, give its \
         table another name, and so a ledger of its own"
    )]
    OtherPlace {
        /// What the ledger stands for.
        known: TargetPlace,
        /// What the settings say.
        now: TargetPlace,
    },
    /// The intent isn't where its forwarder believes it to be.
    #[error("the ledger has the intent as {0}")]
    Elsewhere(IntentState),
    /// The ledger can't be read or written.
    #[error("the ledger: {0}")]
    Broken(String),
}

/// Which intents of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of<'a> {
    /// Those of one push.
    Push(&'a ProjectId, &'a PushKey),
    /// Those that were, or are to be, written into one cycle there.
    Cycle(&'a CycleId),
}

/// Keeps intents. Everything is durable before a call returns.
#[async_trait]
pub trait Book: Send + Sync {
    /// Takes the turn at a target; `None` as long as another living process has it.
    async fn take_turn(&self, target: &TargetName) -> Result<Option<Turn>, BookError>;

    /// Gives the turn back.
    async fn end_turn(&self, target: &TargetName, turn: Turn) -> Result<(), BookError>;

    /// Keeps new intents; of those that are known already, what is known. Gives all, in the order asked.
    async fn plan(&self, turn: Turn, intents: Vec<Intent>) -> Result<Vec<Intent>, BookError>;

    /// Those that aren't settled, oldest first: of a target, or of these alone.
    async fn unsettled(&self, target: &TargetName, of: Option<Of<'_>>) -> Result<Vec<Intent>, BookError>;

    /// Every intent of these, settled or not, oldest first.
    async fn known(&self, target: &TargetName, of: Of<'_>) -> Result<Vec<Intent>, BookError>;

    /// Keeps an intent as it is now, if the turn still counts and it was `from` until now.
    async fn advance(&self, turn: Turn, from: IntentState, intent: &Intent) -> Result<(), BookError>;

    /// Asked right before something is made or changed there that no intent stands for: a cycle, a case, the end of a
    /// container. A send asks by [`Book::advance`].
    ///
    /// # Errors
    /// [`BookError::Fenced`]: somebody else has the turn, or may have it by now.
    fn may_change(&self) -> Result<(), BookError> {
        Ok(())
    }

    /// The target's cycle for a round, if one was kept.
    async fn cycle(&self, target: &TargetName, id: WriteId) -> Result<Option<CycleId>, BookError>;

    /// Keeps it; `None` forgets it.
    async fn keep_cycle(
        &self,
        turn: Turn,
        target: &TargetName,
        id: WriteId,
        cycle: Option<&CycleId>,
    ) -> Result<(), BookError>;
}
