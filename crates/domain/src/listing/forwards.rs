//! What became of pushes at the targets that a server hands them on to, in the JSON that API and command line share. Made
//! from what a store keeps. Must not know repositories, time, or how anything is kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{CycleName, ProjectId, RoundId};
use crate::intent::{self, Flag, Intent, IntentId, IntentState, RefusedItem};
use crate::key::PushKey;
use crate::push::PushId;

/// One push at one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardReport {
    /// The target's name.
    pub target: String,
    /// The product; unknown for a target that the server has no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The revision that is, or is to be, there.
    pub revision: u32,
    /// The worst that is open; `planned` while it waits for its turn.
    pub state: IntentState,
    /// Cases that its intents are about, those of earlier attempts among them.
    pub cases: u64,
    /// Cases by the state of their intent.
    pub states: BTreeMap<IntentState, u64>,
    /// What people have to know of it; `given-up` once a person has looked at all of it that was parked.
    pub flags: Vec<Flag>,
    /// What the target refused, items without a case there among them.
    pub refused: Vec<RefusedItem>,
    /// Where it is there.
    pub cycle_there: Option<String>,
    /// Tries that came to no end.
    pub tries: u32,
    /// When it is tried next at the earliest, milliseconds since 1970; absent if it is tried at once, or by nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_ms: Option<u64>,
    /// What happened last, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

impl ForwardReport {
    /// True if what is there may be missing or counted wrongly.
    pub fn is_wrong(&self) -> bool {
        !self.state.is_settled() || self.asks_for_a_look() || self.flags.iter().any(|flag| flag.is_wrong())
    }

    /// True if something of it is parked that no person has looked at yet.
    pub fn asks_for_a_look(&self) -> bool {
        self.state == IntentState::Parked && !self.flags.contains(&Flag::GivenUp)
    }
}

/// One push at all its targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushForwards {
    /// Its id in URLs.
    pub push: PushId,
    /// Its key.
    pub key: PushKey,
    /// True once nothing more happens by itself.
    pub settled: bool,
    /// By target.
    pub forwards: Vec<ForwardReport>,
}

impl PushForwards {
    /// Of what is known of each target.
    pub fn new(push: PushId, key: PushKey, forwards: Vec<ForwardReport>) -> Self {
        let settled = forwards.iter().all(|forward| forward.state.is_settled());
        Self { push, key, settled, forwards }
    }
}

/// One intent, or a push that waits to become intents, in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentReport {
    /// The intent's id; absent while the push waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<IntentId>,
    /// The target's name.
    pub target: String,
    /// Where the push belongs.
    pub project: ProjectId,
    /// Its cycle.
    pub cycle: CycleName,
    /// Its round.
    pub round: RoundId,
    /// The push.
    pub key: PushKey,
    /// The intent's number among those of the push.
    pub number: u32,
    /// How many cases it is about; 0 where that is not known yet.
    pub cases: u32,
    /// How far it is; `planned` while the push waits.
    pub state: IntentState,
    /// How often it was sent.
    pub sends: u32,
    /// When it was planned, milliseconds since 1970.
    pub planned_ms: u64,
    /// When its state changed last.
    pub changed_ms: u64,
    /// When it was last seen whole there.
    pub seen_ms: Option<u64>,
    /// The cycle there.
    pub cycle_there: Option<String>,
    /// What people have to know of it.
    pub flags: Vec<Flag>,
    /// What happened last, in words.
    pub cause: Option<String>,
    /// What was refused of it.
    pub refused: Vec<RefusedItem>,
    /// The push that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingReport>,
}

impl IntentReport {
    /// True if a person has to look, and none has yet.
    pub fn is_in_doubt(&self) -> bool {
        intent::is_in_doubt(self.state, &self.flags)
    }
}

/// A push that waits for its turn at a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingReport {
    /// The revision.
    pub revision: u32,
    /// Tries that came to no end.
    pub tries: u32,
    /// When it is tried next at the earliest, milliseconds since 1970.
    pub due_ms: u64,
}

impl From<Intent> for IntentReport {
    fn from(intent: Intent) -> Self {
        let Intent { id, target, project, cycle, round, key, number, cases, state, sends, .. } = intent;
        Self {
            id: Some(id),
            target,
            project,
            cycle,
            round,
            key,
            number,
            cases,
            state,
            sends,
            planned_ms: intent.planned_ms,
            changed_ms: intent.changed_ms,
            seen_ms: intent.seen_ms,
            cycle_there: intent.cycle_there,
            flags: intent.flags.into_iter().collect(),
            cause: intent.cause,
            refused: intent.refused,
            waiting: None,
        }
    }
}

/// A list of them, with how many there are of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardsReport {
    /// How many of these by state.
    pub states: BTreeMap<IntentState, u64>,
    /// How many of these by flag; what a person has looked at has no other than `given-up`.
    pub flags: BTreeMap<Flag, u64>,
    /// What is in doubt, then what waits, then what else is open, then what is settled; each oldest first.
    pub forwards: Vec<IntentReport>,
    /// True if there are more than the limit that was given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

impl ForwardsReport {
    /// Of these.
    pub fn new(forwards: Vec<IntentReport>) -> Self {
        let (mut states, mut flags) = (BTreeMap::new(), BTreeMap::new());
        for one in &forwards {
            *states.entry(one.state).or_default() += 1;
            for flag in Flag::said(one.flags.iter()) {
                *flags.entry(flag).or_default() += 1;
            }
        }
        Self { states, flags, forwards, more: false }
    }
}
