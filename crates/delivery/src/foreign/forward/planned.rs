//! What the ledger knows of one cycle there, as a look back asks for it: read once a look, after the rows, since what is there
//! was planned before. Must not read there, nor judge.

use std::collections::BTreeMap;

use domain::intent::{Flag, Intent, IntentState};
use domain::marker::Marker;

use super::settle::Hand;
use super::sweep::is_looked_at;
use super::{Forwarder, Halt, Of, Turn};
use crate::foreign::entry::CycleId;

/// What is known of one marker.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    /// When it was planned last.
    planned_ms: u64,
    /// True if it was confirmed or found there.
    confirmed: bool,
}

/// What the ledger knows of a cycle.
#[derive(Debug, Default)]
pub(super) struct Planned {
    told: BTreeMap<Marker, Told>,
    /// The oldest that is looked at: what is said of the whole cycle is said there.
    pub(super) eldest: Option<Intent>,
    /// Others that say something of the whole cycle.
    pub(super) orphaned: Vec<Intent>,
}

impl Planned {
    /// True if it may be there.
    pub(super) fn knows(&self, marker: Marker) -> bool {
        self.told.contains_key(&marker)
    }

    /// True if it was planned at that time or later.
    pub(super) fn is_as_late_as(&self, marker: Marker, planned_ms: u64) -> bool {
        self.told.get(&marker).is_some_and(|told| told.planned_ms >= planned_ms)
    }

    /// True if a newer attempt of the same write got there. One that was refused, or never sent, took nobody's place.
    pub(super) fn has_newer_than(&self, marker: Marker) -> bool {
        let newer = |other: &Marker| other.write == marker.write && other.ordinal > marker.ordinal;
        self.told.iter().any(|(other, told)| told.confirmed && newer(other))
    }

    fn add(&mut self, hand: Hand) {
        let there = matches!(hand.intent.state, IntentState::Acked | IntentState::Found);
        for entry in &hand.entries {
            let told = self.told.entry(entry.marker).or_default();
            told.planned_ms = hand.intent.planned_ms.max(told.planned_ms);
            told.confirmed |= there && !hand.is_refused(entry);
        }
        if !is_looked_at(&hand.intent) {
            return;
        }
        if self.eldest.is_none() {
            self.eldest = Some(hand.intent);
        } else if hand.intent.flags.contains(&Flag::Orphan) {
            self.orphaned.push(hand.intent);
        }
    }
}

impl Forwarder<'_> {
    /// What the ledger knows of a cycle; asked for once a look.
    pub(super) async fn planned_in<'p>(
        &mut self,
        cycle: &CycleId,
        planned: &'p mut Option<Planned>,
    ) -> Result<&'p Planned, Halt> {
        if planned.is_none() {
            let mut all = Planned::default();
            for intent in self.book.known(self.target, Of::Cycle(cycle)).await? {
                all.add(Hand::of(Turn(0), intent)?);
            }
            *planned = Some(all);
        }
        Ok(planned.get_or_insert_default())
    }
}
