//! Forwards a push into a repository without keys, so that it is there effectively once, or somebody is told
//! (`facts/idempotency.md`, 4.1). Written once, over adapters. Must not know products, or how intents are kept.
//!
//! Read [`Forwarder::forward`] first, then `settle` (one intent to its end), then `decide` (what is there against what is
//! to be).

mod adopt;
mod again;
mod attach;
mod book;
mod container;
mod counts;
mod cycle;
mod decide;
mod known;
mod offer;
mod older;
mod patience;
mod person;
mod placed;
mod plan;
mod planned;
mod reading;
mod refuse;
mod reread;
mod send;
mod settle;
mod sweep;

use std::collections::BTreeMap;

use domain::intent::{Flag, Intent, IntentState, RefusedItem};
use domain::{CycleName, Ordinal, Outcome, ProjectId, PushKey, RoundId};
use rand::Rng;
use thiserror::Error;

use super::adapter::Adapter;
use super::entry::{CaseId, CycleId, CycleWanted, Entry};
use super::facts::Strategy;
use super::settings::TargetName;
use crate::clock::Clock;
use crate::stop::Stop;

pub use attach::Attached;
pub use book::{Book, BookError, Of, Turn};
pub use container::container_id;
use cycle::{Origin, Place};
pub use decide::{Need, Needs, needs};
pub use refuse::Unfit;

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
    /// When the push was first recorded with us, milliseconds since 1970: nothing of it is older.
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

    /// All flags that people still have to know, each once.
    pub fn all_flags(&self) -> Vec<Flag> {
        let of_intents = self.intents.iter().flat_map(|intent| Flag::said(intent.flags.iter()));
        let mut flags: Vec<Flag> = self.flags.iter().copied().chain(of_intents).collect();
        flags.sort_unstable();
        flags.dedup();
        flags
    }

    /// True if all of it is there, or was refused for good.
    pub fn is_settled(&self) -> bool {
        let given_up = |intent: &Intent| intent.flags.contains(&Flag::GivenUp);
        let parked = |intent: &Intent| intent.state == IntentState::Parked && !given_up(intent);
        self.intents.iter().all(|intent| intent.state.is_settled() && !parked(intent))
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
    /// What is asked for, or written to, is not there or takes nothing more, as the repository says.
    #[error("{0}")]
    Gone(String),
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
    /// What was open in another cycle could not be settled: it stays as it is, and something else goes on.
    Left {
        /// The cycle there, if there is one yet.
        cycle: Option<String>,
        /// In words.
        why: String,
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
    /// Nobody else forwards into this target's cycles, so that what its ledger doesn't know is nobody's. Never true of a
    /// job, whose ledger may be gone or be another one's.
    pub sole: bool,
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
    /// Forwards a load, after what an earlier process left of the same push or in the same cycle. What else it left for
    /// this target is settled before, too, where nobody else does it by itself: within half of the time, and no trouble
    /// with it keeps the load back.
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

    /// Brings what an earlier process left to its end. What isn't answered of one cycle keeps no other from it.
    ///
    /// # Errors
    /// As [`Self::forward`]: for the first that could not be settled, once all others are.
    pub async fn resume(&mut self) -> Result<Vec<Intent>, Halt> {
        let turn = self.turn().await?;
        let done = self.all_open(turn).await;
        let ended = self.book.end_turn(self.target, turn).await;
        let done = done?;
        ended?;
        Ok(done)
    }

    async fn forward_in(&mut self, turn: Turn, load: Load) -> Result<Forwarded, Halt> {
        let mut forwarded = Forwarded::default();
        if self.strategy == Strategy::Container {
            self.contain(turn, &load, &mut forwarded).await?;
            return Ok(forwarded);
        }
        let entries = self.entries(&load, &mut forwarded.unmatched).await?;
        self.what_goes_first(turn, &load, &entries).await?;
        let place = self.cycle(turn, &load.wanted, &mut forwarded.flags).await?;
        // Somebody deleted or ended the cycle that the ledger knows: that is no word on the outcomes.
        let halt = match self.forward_into(turn, &load, (&place, entries), &mut forwarded).await {
            Err(halt @ (Halt::Refused(_) | Halt::Gone(_))) if place.origin == Origin::Known => halt,
            done => return done.map(|()| forwarded),
        };
        forwarded = Forwarded::default();
        let other = self.instead_of(turn, &load.wanted, (&place.cycle, &halt), &mut forwarded.flags).await?;
        let Some(other) = other else { return Err(halt) };
        self.leave_cycle(turn, &place.cycle, &halt.to_string()).await?;
        let entries = self.entries(&load, &mut forwarded.unmatched).await?;
        self.forward_into(turn, &load, (&other, entries), &mut forwarded).await?;
        self.leave_for_good(turn, &load, &place.cycle, &forwarded).await?;
        Ok(forwarded)
    }

    async fn forward_into(
        &mut self,
        turn: Turn,
        load: &Load,
        (place, entries): (&Place, Vec<Entry>),
        forwarded: &mut Forwarded,
    ) -> Result<(), Halt> {
        let cycle = &place.cycle;
        forwarded.cycle = Some(cycle.clone());
        let entries = self.writable(cycle, entries, &mut forwarded.unmatched).await?;
        let mut planned =
            plan::intents(self.target, load, cycle, &entries, self.adapter.facts().bulk.items_max, self.clock);
        for intent in &mut planned {
            intent.flags.extend(&forwarded.flags);
        }
        let planned = self.book.plan(turn, planned).await?;
        let planned = self.taken_up(turn, planned).await?;
        forwarded.intents = self.settle(turn, planned).await?;
        self.look_once_more(turn, forwarded).await?;
        if place.origin == Origin::Made {
            self.look_for_twins(turn, &load.wanted, forwarded).await?;
        }
        Ok(())
    }
}
