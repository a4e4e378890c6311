//! Which container of a push holds already what is to be there: a repeat of equal outcomes is no other outcome, by whatever
//! attempt, and one that comes back after another is. Must not fill any.

use std::collections::BTreeSet;

use domain::Ordinal;
use domain::intent::{Flag, Intent, IntentState};
use domain::marker::Marker;

use super::container::{CONTAINERS_MAX, numbered};
use super::plan;
use super::settle::Hand;
use super::{Forwarder, Halt, Load, Of, Turn};
use crate::foreign::entry::{CycleId, CycleWanted, Entry};

impl Forwarder<'_> {
    /// The container that holds the newest content of a push, as far as this ledger knows.
    pub(super) async fn newest_container(&mut self, turn: Turn, load: &Load) -> Result<Option<Hand>, Halt> {
        let mut newest: Option<Hand> = None;
        for intent in self.book.known(self.target, Of::Push(&load.project, &load.key)).await? {
            if is_there(&intent) {
                let hand = Hand::of(turn, intent)?;
                newest = newest.filter(|newest| rank(newest) > rank(&hand)).or(Some(hand));
            }
        }
        Ok(newest)
    }

    /// Takes the container of the attempt right before for its own, if that one holds just this, also where the ledger of that
    /// attempt is gone. Of one further back nobody could tell what came after.
    pub(super) async fn adopts(&mut self, hand: &mut Hand, base: &CycleWanted) -> Result<bool, Halt> {
        let before = |entry: &Entry| {
            let ordinal = entry.marker.ordinal.filter(|ordinal| ordinal.0 > 1)?;
            let marker = Marker { ordinal: Some(Ordinal(ordinal.0 - 1)), ..entry.marker };
            Some(Entry { marker, ..entry.clone() })
        };
        let Some(entries) = hand.entries.iter().map(before).collect::<Option<Vec<Entry>>>() else { return Ok(false) };
        if hand.intent.sends > 0 {
            return Ok(false);
        }
        let id = plan::id(self.target, &CycleId::new(""), &entries);
        let (mut last, before) = (None, Intent { id, ..hand.intent.clone() });
        for number in 0..CONTAINERS_MAX {
            let wanted = numbered(base, &before, number);
            let Some(there) = self.first_there(hand, &wanted).await? else { break };
            last = Some(there);
        }
        let Some(there) = last else { return Ok(false) };
        let as_it_was = hand.intent.clone();
        if self.is_whole(hand, &there).await? {
            self.end(&there).await?;
            hand.intent.cycle_there = Some(there.to_string());
            return Ok(true);
        }
        hand.intent = as_it_was;
        Ok(false)
    }
}

/// True if the ledger has it as there, in a container that counts.
fn is_there(intent: &Intent) -> bool {
    let left = [Flag::Stale, Flag::GivenUp].iter().any(|flag| intent.flags.contains(flag));
    matches!(intent.state, IntentState::Acked | IntentState::Found) && intent.cycle_there.is_some() && !left
}

/// Which of a push's containers is the newest.
fn rank(hand: &Hand) -> (Option<Ordinal>, u64) {
    (hand.entries.iter().filter_map(|entry| entry.marker.ordinal).max(), hand.intent.planned_ms)
}

pub(super) fn says_the_same(one: &[Entry], other: &[Entry]) -> bool {
    let said = |entries: &[Entry]| {
        entries.iter().map(|entry| (entry.marker.write, entry.marker.content)).collect::<BTreeSet<_>>()
    };
    said(one) == said(other)
}

/// True if the newest container holds another content than one that is there, came after it, and is of no newer attempt.
pub(super) fn has_followed(newest: &Hand, known: &Intent, ordinal: Option<Ordinal>) -> bool {
    is_there(known)
        && known.id != newest.intent.id
        && newest.intent.planned_ms > known.planned_ms
        && rank(newest).0 <= ordinal
}
