//! Forwards a push into a repository without keys, so that it is there effectively once, or somebody is told
//! (`facts/idempotency.md`, 4.1). Written once, over adapters. Must not know products, or how intents are kept.
//!
//! Read [`Forwarder::forward`] first, then `settle` (one intent to its end), then `decide` (what is there against what is
//! to be).

mod book;
mod container;
mod cycle;
mod decide;
mod patience;
mod plan;
mod send;
mod settle;
mod sweep;

use std::collections::BTreeMap;

use domain::intent::{Flag, Intent, IntentState, RefusedItem};
use domain::{CycleName, Ordinal, Outcome, ProjectId, PushKey, RoundId};
use rand::Rng;
use thiserror::Error;

use super::adapter::Adapter;
use super::entry::{CaseId, CycleId, CycleWanted};
use super::facts::Strategy;
use super::settings::TargetName;
use crate::clock::Clock;
use crate::stop::Stop;

pub use book::{Book, BookError, Turn};
pub use decide::{Need, Needs, needs};

/// A push as it is to be there.
#[derive(Debug, Clone)]
pub struct Load {
    /// Its project with us.
    pub project: ProjectId,
    /// Its cycle with us.
    pub cycle: CycleName,
    /// Its round.
    pub round: RoundId,
    /// The push.
    pub key: PushKey,
    /// The attempt, if known.
    pub ordinal: Option<Ordinal>,
    /// Its outcomes.
    pub outcomes: Vec<Outcome>,
    /// When it was recorded with us, milliseconds since 1970.
    pub at_ms: u64,
    /// The cycle there.
    pub wanted: CycleWanted,
}

/// What became of a load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Where it is there.
    pub cycle: Option<CycleId>,
    /// Its intents, as they are now.
    pub intents: Vec<Intent>,
    /// Items without a case there.
    pub unmatched: Vec<RefusedItem>,
    /// What people have to know of the cycle.
    pub flags: Vec<Flag>,
}

impl Forwarded {
    /// Everything that was refused, items without a case among them.
    pub fn refused(&self) -> Vec<RefusedItem> {
        self.unmatched.iter().chain(self.intents.iter().flat_map(|intent| &intent.refused)).cloned().collect()
    }

    /// All flags, each once.
    pub fn all_flags(&self) -> Vec<Flag> {
        let mut flags: Vec<Flag> =
            self.flags.iter().chain(self.intents.iter().flat_map(|intent| &intent.flags)).copied().collect();
        flags.sort_unstable();
        flags.dedup();
        flags
    }

    /// True if all of it is there, or was refused for good.
    pub fn is_settled(&self) -> bool {
        self.intents.iter().all(|intent| intent.state.is_settled() && intent.state != IntentState::Parked)
    }
}

/// Why forwarding ended before its end. What was planned stays in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Halt {
    /// Somebody asked to stop.
    #[error("interrupted; the last that was heard: {0}")]
    Stopped(String),
    /// The deadline has come.
    #[error("{0}")]
    Over(String),
    /// The repository refuses who asks.
    #[error("{0}")]
    Denied(String),
    /// The repository refuses what is asked, whatever the outcomes.
    #[error("{0}")]
    Refused(String),
    /// The ledger.
    #[error(transparent)]
    Book(#[from] BookError),
}

/// What happens, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A wait, and why.
    Waiting {
        /// Milliseconds.
        ms: u64,
        /// In words.
        why: String,
    },
    /// An intent is somewhere else now.
    Intent {
        /// Its number.
        number: u32,
        /// Where.
        state: IntentState,
    },
}

/// Forwards to one target, within one deadline.
pub struct Forwarder<'a> {
    /// The target.
    pub target: &'a TargetName,
    /// Its adapter.
    pub adapter: &'a dyn Adapter,
    /// Cases by the item's text, from the mapping file.
    pub mapping: &'a BTreeMap<String, CaseId>,
    /// How.
    pub strategy: Strategy,
    /// The quiet time, in milliseconds.
    pub quiet_ms: u64,
    /// Where intents are kept.
    pub book: &'a dyn Book,
    /// What time it is.
    pub clock: &'a dyn Clock,
    /// For waits.
    pub random: &'a mut (dyn Rng + Send),
    /// The wish to stop.
    pub stop: &'a Stop,
    /// On the clock's scale: nothing is begun after it.
    pub deadline_ms: u64,
    /// Hears what happens.
    pub progress: &'a mut (dyn FnMut(Step) + Send),
}

impl Forwarder<'_> {
    /// Forwards a load, after what an earlier process left for this target.
    ///
    /// # Errors
    /// It isn't known whether all of it is there; what is planned goes on with the next call.
    pub async fn forward(&mut self, load: Load) -> Result<Forwarded, Halt> {
        let turn = self.turn().await?;
        let done = self.forward_in(turn, load).await;
        let ended = self.book.end_turn(self.target, turn).await;
        let done = done?;
        ended?;
        Ok(done)
    }

    /// Brings what an earlier process left to its end.
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub async fn resume(&mut self) -> Result<Vec<Intent>, Halt> {
        let turn = self.turn().await?;
        let done = self.older(turn).await;
        let ended = self.book.end_turn(self.target, turn).await;
        let done = done?;
        ended?;
        Ok(done)
    }

    async fn forward_in(&mut self, turn: Turn, load: Load) -> Result<Forwarded, Halt> {
        let older = self.older(turn).await?;
        if let Some(before) = older.iter().find(|intent| intent.key == load.key && !intent.state.is_settled()) {
            let cause = before.cause.as_deref().unwrap_or("no answer yet");
            return Err(Halt::Over(format!("an earlier delivery of this key goes first: {cause}")));
        }
        let mut forwarded = Forwarded::default();
        if self.strategy == Strategy::Container {
            self.contain(turn, &load, &mut forwarded).await?;
            return Ok(forwarded);
        }
        let cycle = self.cycle(turn, &load.wanted, &mut forwarded.flags).await?;
        forwarded.cycle = Some(cycle.clone());
        let entries = self.entries(&load, &mut forwarded.unmatched).await?;
        let entries = self.writable(&cycle, entries, &mut forwarded.unmatched).await?;
        let planned =
            plan::intents(self.target, &load, &cycle, &entries, self.adapter.facts().bulk.items_max, self.clock);
        for intent in self.book.plan(turn, planned).await? {
            forwarded.intents.push(self.settle(turn, intent).await?);
        }
        self.look_once_more(turn, &mut forwarded).await?;
        Ok(forwarded)
    }

    async fn older(&mut self, turn: Turn) -> Result<Vec<Intent>, Halt> {
        let mut ended = Vec::new();
        for intent in self.book.unsettled(self.target).await? {
            // A container is begun anew with its push, which knows its name.
            if self.strategy != Strategy::Container {
                ended.push(self.settle(turn, intent).await?);
            }
        }
        Ok(ended)
    }
}
