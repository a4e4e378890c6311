//! Which recorded pushes a server forwards by itself, who may work at a target, and when what is settled is looked at
//! again: rules, leases, sweeps. Must not know stores, products or a clock.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{CycleName, ProjectId};
use crate::push::Place;

/// When what was sent is read back by itself, in milliseconds after its last change of state: the first and the second
/// sweep (`facts/idempotency.md`, 4.1).
pub const SWEEPS_MS: [u64; 2] = [3600 * 1000, 24 * 3600 * 1000];

/// Names of cycles; `*` stands for any text, also for none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CyclePattern(String);

impl CyclePattern {
    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if it stands for this name.
    pub fn matches(&self, cycle: &CycleName) -> bool {
        let mut rest = cycle.as_str();
        let mut parts = self.0.split('*');
        let Some(first) = parts.next() else { return false };
        let Some(after) = rest.strip_prefix(first) else { return false };
        rest = after;
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

impl FromStr for CyclePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // With something for each `*` it has to be a name, or nothing could ever match.
        match CycleName::parse(&text.replace('*', "x")) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(format!("{text:?} stands for no cycle: {error}")),
        }
    }
}

impl fmt::Display for CyclePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which pushes go to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardRule {
    /// The target's name.
    pub target: String,
    /// Of these projects; none: of all.
    pub projects: Vec<ProjectId>,
    /// Into these cycles; none: into all.
    pub cycles: Vec<CyclePattern>,
}

impl ForwardRule {
    /// True if pushes of this place go to the target.
    pub fn takes(&self, place: &Place) -> bool {
        (self.projects.is_empty() || self.projects.contains(&place.project))
            && (self.cycles.is_empty() || self.cycles.iter().any(|cycle| cycle.matches(&place.cycle)))
    }
}

/// Which place a target's ledger stands for, as people read it: the product, its address and its own project. Ids that the
/// ledger keeps mean something there, and nothing, or something else, anywhere else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetPlace(String);

impl TargetPlace {
    /// Of this text; two that are equal are the same place.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TargetPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The targets that pushes of this place go to, each once.
pub fn targets<'a>(rules: &'a [ForwardRule], place: &Place) -> BTreeSet<&'a str> {
    rules.iter().filter(|rule| rule.takes(place)).map(|rule| rule.target.as_str()).collect()
}

/// Who works at a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// One process, by a name that no other process ever has.
    pub holder: String,
    /// Until when others leave it the target, milliseconds since 1970.
    pub until_ms: u64,
}

/// The turn at a target, and who has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lease {
    /// The highest turn that was given out: every lower one is fenced off.
    pub turn: u64,
    /// Who has it; `None`: nobody says to be working.
    pub held: Option<Held>,
}

/// What becomes of a wish to work at a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taking {
    /// Granted: the lease as it is now.
    Granted(Lease),
    /// Another holder has it.
    Refused,
    /// Another holder has it, and for longer than anybody takes it: a clock went back. The lease as it is now.
    Shortened(Lease),
}

impl Lease {
    /// Takes the target, if no other holder has it: always as a new turn, so that whatever the same holder began before it
    /// is fenced off, too. The clock decides only who waits; that nobody's write is taken for another's, the turn does.
    pub fn take(&self, holder: &str, now_ms: u64, until_ms: u64) -> Taking {
        if let Some(held) = self.held.as_ref().filter(|held| held.holder != holder && held.until_ms > now_ms) {
            if held.until_ms <= until_ms {
                return Taking::Refused;
            }
            return Taking::Shortened(Self { turn: self.turn, held: Some(Held { until_ms, ..held.clone() }) });
        }
        Taking::Granted(Self { turn: self.turn + 1, held: Some(Held { holder: holder.to_owned(), until_ms }) })
    }
}

/// How many sweeps of an intent are done once it is swept now; `None`: none is due. `settled_ms`: its last change of state;
/// `swept`: how many were done. A sweep that comes so late that the next is due as well stands for both.
pub fn due_sweep(settled_ms: u64, swept: u32, now_ms: u64) -> Option<u32> {
    let due = SWEEPS_MS.iter().filter(|after| settled_ms.saturating_add(**after) <= now_ms).count() as u32;
    (due > swept).then_some(due)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, cycle: &str) -> bool {
        pattern.parse::<CyclePattern>().unwrap().matches(&CycleName::parse(cycle).unwrap())
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, yes, no) in [
            ("main", &["main"][..], &["main2", "amain", "mai"][..]),
            ("*", &["main", "x"], &[]),
            ("release-*", &["release-", "release-1.2"], &["release", "a-release-1"]),
            ("*-rc", &["1-rc", "-rc"], &["1-rc2", "rc"]),
            ("a*a", &["aa", "aba"], &["a", "ab"]),
            ("a*b*c", &["abc", "axxbyyc", "abbc", "abcbc"], &["acb", "ab", "bc"]),
            ("a**c", &["ac", "abc"], &["a"]),
            ("*ab*ab", &["abab", "xabyab"], &["ab", "aba"]),
        ] {
            for cycle in yes {
                assert!(matches(pattern, cycle), "{pattern} {cycle}");
            }
            for cycle in no {
                assert!(!matches(pattern, cycle), "{pattern} {cycle}");
            }
        }
        assert!("".parse::<CyclePattern>().is_err());
    }

    fn held(holder: &str, until_ms: u64) -> Option<Held> {
        Some(Held { holder: holder.to_owned(), until_ms })
    }

    #[test]
    fn a_lease_is_one_holders_until_it_expires() {
        let nobody = Lease { turn: 4, held: None };
        let Taking::Granted(a) = nobody.take("a", 100, 160) else { panic!("not granted") };
        assert_eq!(a, Lease { turn: 5, held: held("a", 160) });
        assert_eq!(a.take("b", 159, 219), Taking::Refused);
        assert_eq!(a.take("b", 160, 220), Taking::Granted(Lease { turn: 6, held: held("b", 220) }));
        // The same holder again has forgotten what it did before.
        assert_eq!(a.take("a", 110, 170), Taking::Granted(Lease { turn: 6, held: held("a", 170) }));
        // The clock went back: nobody waits longer than a lease is.
        assert_eq!(a.take("b", 10, 70), Taking::Shortened(Lease { turn: 5, held: held("a", 70) }));
    }

    #[test]
    fn two_sweeps_are_due_and_late_ones_count_together() {
        let hour = SWEEPS_MS[0];
        assert_eq!(due_sweep(7, 0, 6 + hour), None);
        assert_eq!(due_sweep(7, 0, 7 + hour), Some(1));
        assert_eq!(due_sweep(7, 1, 7 + hour), None);
        assert_eq!(due_sweep(7, 1, 6 + 24 * hour), None);
        assert_eq!(due_sweep(7, 1, 7 + 24 * hour), Some(2));
        assert_eq!(due_sweep(7, 0, 7 + 30 * hour), Some(2));
        assert_eq!(due_sweep(7, 2, u64::MAX), None);
        assert_eq!(due_sweep(u64::MAX, 0, 5), None);
    }
}
