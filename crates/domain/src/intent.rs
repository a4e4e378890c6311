//! What a forwarder means to write into a repository without keys, and how far that is: the states of an intent and every
//! step between them (`facts/idempotency.md`, 4.1). Must not know repositories, time or how intents are kept.

mod flag;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{CycleName, ProjectId, RoundId};
use crate::key::PushKey;

pub use flag::Flag;

/// How far an intent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IntentState {
    /// Nothing of it has left.
    Planned,
    /// It may be leaving right now. Whoever finds it so after a crash must take it for [`IntentState::Unknown`].
    Sending,
    /// The repository has confirmed it.
    Acked,
    /// The repository refused it: nothing of it is there.
    Rejected,
    /// It was sent, and no answer says what became of it.
    Unknown,
    /// It is being read back.
    Reconciling,
    /// Reading back showed it, whole.
    Found,
    /// Reading back showed twice that it, or a part of it, is not there; that part may be sent again.
    Absent,
    /// A person has to look: reading back contradicts itself, or the repository can't be read.
    Parked,
}

impl IntentState {
    /// All, in the order of the design.
    pub const ALL: [IntentState; 9] = [
        IntentState::Planned,
        IntentState::Sending,
        IntentState::Acked,
        IntentState::Rejected,
        IntentState::Unknown,
        IntentState::Reconciling,
        IntentState::Found,
        IntentState::Absent,
        IntentState::Parked,
    ];

    /// The word in JSON, tables and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            IntentState::Planned => "planned",
            IntentState::Sending => "sending",
            IntentState::Acked => "acked",
            IntentState::Rejected => "rejected",
            IntentState::Unknown => "unknown",
            IntentState::Reconciling => "reconciling",
            IntentState::Found => "found",
            IntentState::Absent => "absent",
            IntentState::Parked => "parked",
        }
    }

    /// True once nobody has to do anything by itself any more.
    pub fn is_settled(self) -> bool {
        matches!(self, IntentState::Acked | IntentState::Rejected | IntentState::Found | IntentState::Parked)
    }

    /// True while it may be written though nobody has seen it.
    pub fn is_uncertain(self) -> bool {
        use IntentState::{Parked, Reconciling, Sending, Unknown};
        matches!(self, Sending | Unknown | Reconciling | Parked)
    }

    /// Where an event leads; `None` if it cannot happen in this state.
    ///
    /// The rule that everything hangs on: from [`IntentState::Unknown`] no way leads to [`IntentState::Sending`] but
    /// through [`IntentState::Absent`].
    pub fn after(self, event: IntentEvent) -> Option<IntentState> {
        use IntentEvent as E;
        use IntentState as S;
        Some(match (self, event) {
            (S::Planned | S::Absent, E::Sent) => S::Sending,
            // What was refused after a silence may have come all the same.
            (S::Planned | S::Absent | S::Rejected, E::Seen) => S::Found,
            (S::Planned | S::Absent, E::Refused) => S::Rejected,
            (S::Sending, E::Confirmed) => S::Acked,
            (S::Sending, E::Refused) => S::Rejected,
            (S::Sending, E::NoEffect) => S::Planned,
            (S::Sending, E::Accepted | E::Silence | E::Found) => S::Unknown,
            (S::Unknown, E::Found) => S::Unknown,
            (S::Unknown, E::ReadsBack) => S::Reconciling,
            (S::Reconciling, E::Found | E::Silence) => S::Unknown,
            (S::Reconciling, E::Seen) => S::Found,
            (S::Reconciling, E::Missing) => S::Absent,
            (S::Planned | S::Sending | S::Unknown | S::Reconciling | S::Absent, E::GivenUp) => S::Parked,
            (S::Parked, E::Resumed) => S::Unknown,
            (S::Acked | S::Found | S::Rejected, E::PushedAgain) => S::Absent,
            _ => return None,
        })
    }
}

impl fmt::Display for IntentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for IntentState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        IntentState::ALL.into_iter().find(|state| state.word() == text).ok_or_else(|| {
            let words: Vec<&str> = IntentState::ALL.iter().map(|state| state.word()).collect();
            format!("unknown state {text:?}; one of {}", words.join(", "))
        })
    }
}

/// What happens to an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntentEvent {
    /// It is about to be sent: noted before the first byte leaves.
    Sent,
    /// The answer says that it is written.
    Confirmed,
    /// The answer says that it is taken; that it is written, only reading back shows.
    Accepted,
    /// The answer says that it is not written, and never will be as it is.
    Refused,
    /// It surely had no effect: no byte left, or the repository said that it did nothing yet.
    NoEffect,
    /// No answer, or none that says what became of it.
    Silence,
    /// Somebody finds it after a crash, of whoever had it before.
    Found,
    /// The quiet time is over: it is read back.
    ReadsBack,
    /// It is there, whole.
    Seen,
    /// It, or a part of it, was not there in two readings.
    Missing,
    /// The budget is spent, or what is read contradicts itself.
    GivenUp,
    /// A person says: look again.
    Resumed,
    /// The push comes again, and a part was refused: what was wrong there may be mended.
    PushedAgain,
}

/// Names an intent: 128 bits over its target and all that it means to write, so that planning it again finds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IntentId(pub u128);

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<IntentId> for String {
    fn from(id: IntentId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for IntentId {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match u128::from_str_radix(&text, 16) {
            Ok(bits) if text.len() == 32 => Ok(Self(bits)),
            _ => Err(format!("{text:?} is no id of an intent: 32 hexadecimal digits")),
        }
    }
}

/// An item that a repository refused, or that has no case there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedItem {
    /// The item, as people read it.
    pub item: String,
    /// The case there that it was refused for; absent if it has none, or wasn't refused for one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Why, in words.
    pub why: String,
    /// The push came again, so that it is offered once more: nobody knows yet what becomes of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

impl RefusedItem {
    /// An item that was refused whatever its case.
    pub fn new(item: impl Into<String>, why: impl Into<String>) -> Self {
        Self { item: item.into(), case: None, why: why.into(), again: false }
    }

    /// An item that was refused for one of its cases.
    pub fn for_case(item: impl Into<String>, case: impl Into<String>, why: impl Into<String>) -> Self {
        Self { case: Some(case.into()), ..Self::new(item, why) }
    }

    /// True if it speaks of this item under this case.
    pub fn is_of(&self, item: &str, case: &str) -> bool {
        self.item == item && self.case.as_deref().is_none_or(|own| own == case)
    }
}

/// An intent as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Its name.
    pub id: IntentId,
    /// The target's name.
    pub target: String,
    /// Where the push belongs with us.
    pub project: ProjectId,
    /// Its cycle with us.
    pub cycle: CycleName,
    /// Its round.
    pub round: RoundId,
    /// The push.
    pub key: PushKey,
    /// Its number among those of the push.
    pub number: u32,
    /// How many cases it is about.
    pub cases: u32,
    /// How far it is.
    pub state: IntentState,
    /// How often it was sent.
    pub sends: u32,
    /// When it was planned, milliseconds since 1970.
    pub planned_ms: u64,
    /// When its state changed last.
    pub changed_ms: u64,
    /// When it was sent last.
    pub sent_ms: Option<u64>,
    /// When a reading showed it last, whole.
    pub seen_ms: Option<u64>,
    /// The cycle there.
    pub cycle_there: Option<String>,
    /// What people have to know of it.
    pub flags: BTreeSet<Flag>,
    /// What happened last, in words.
    pub cause: Option<String>,
    /// What was refused of it.
    pub refused: Vec<RefusedItem>,
    /// What it means to write, for the forwarder alone.
    pub body: Vec<u8>,
}

/// How long after it was sent a settled intent is looked at by sweeps, in milliseconds: what comes late comes within a day.
const SWEPT_MS: u64 = 24 * 60 * 60 * 1000;

impl Intent {
    /// True if it was seen whole, and a day or more after it was sent: no sweep has to look again.
    pub fn is_at_rest(&self) -> bool {
        let late_ms = self.sent_ms.unwrap_or(self.planned_ms).saturating_add(SWEPT_MS);
        self.state != IntentState::Parked && self.flags.is_empty() && self.seen_ms.is_some_and(|ms| ms >= late_ms)
    }

    /// True if a person has to look: what the repository shows may count wrongly, or nobody knows what it shows. Not once
    /// a person has.
    pub fn is_in_doubt(&self) -> bool {
        is_in_doubt(self.state, &self.flags)
    }
}

/// See [`Intent::is_in_doubt`]: of what was told of an intent, too.
pub(crate) fn is_in_doubt<'f>(state: IntentState, flags: impl IntoIterator<Item = &'f Flag> + Clone) -> bool {
    let wrong = state.is_uncertain() || flags.clone().into_iter().any(|flag| flag.is_wrong());
    wrong && !flags.into_iter().any(|flag| *flag == Flag::GivenUp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [IntentEvent; 13] = [
        IntentEvent::Sent,
        IntentEvent::Confirmed,
        IntentEvent::Accepted,
        IntentEvent::Refused,
        IntentEvent::NoEffect,
        IntentEvent::Silence,
        IntentEvent::Found,
        IntentEvent::ReadsBack,
        IntentEvent::Seen,
        IntentEvent::Missing,
        IntentEvent::GivenUp,
        IntentEvent::Resumed,
        IntentEvent::PushedAgain,
    ];

    /// All states that can be reached without passing `barrier`.
    fn reachable(from: IntentState, barrier: IntentState) -> BTreeSet<IntentState> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(state) = open.pop() {
            for next in EVENTS.iter().filter_map(|event| state.after(*event)) {
                if next != barrier && seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    }

    #[test]
    fn what_may_be_written_is_never_sent_again_before_it_was_missing_twice() {
        for state in [IntentState::Unknown, IntentState::Reconciling, IntentState::Parked] {
            assert!(!reachable(state, IntentState::Absent).contains(&IntentState::Sending), "{state}");
        }
    }

    #[test]
    fn every_open_state_can_end_and_no_end_goes_on_unasked() {
        for state in IntentState::ALL {
            let next: Vec<_> = EVENTS.iter().filter_map(|event| state.after(*event)).collect();
            if state.is_settled() {
                // A person asks, or the push comes again: what is there is read before anything is sent. What was refused may
                // be seen, and is there then: that sends nothing either.
                let asked: &[IntentState] = match state {
                    IntentState::Parked => &[IntentState::Unknown],
                    IntentState::Rejected => &[IntentState::Found, IntentState::Absent],
                    _ => &[IntentState::Absent],
                };
                assert_eq!(next, asked);
            } else {
                assert!(next.contains(&IntentState::Parked), "{state} can be parked");
            }
        }
    }

    #[test]
    fn words_come_back() {
        for state in IntentState::ALL {
            assert_eq!(state.word().parse(), Ok(state));
        }
        assert!("sent".parse::<IntentState>().unwrap_err().contains("planned, sending"));
    }
}
