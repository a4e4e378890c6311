//! What a load says again of what was planned for the same push before, perhaps for other cases. Plain data. Must not send.

use std::collections::{BTreeMap, HashSet};

use domain::marker::WriteId;
use domain::{ItemName, Ordinal};

use super::Load;
use super::settle::Hand;
use crate::foreign::entry::Entry;

/// The items of a load, and where they go.
pub(super) struct Offer<'a> {
    ordinal: Option<Ordinal>,
    writes: BTreeMap<WriteId, Option<Ordinal>>,
    items: HashSet<&'a ItemName>,
}

impl<'a> Offer<'a> {
    /// Of the entries of a load.
    pub(super) fn of(load: &Load, entries: &'a [Entry]) -> Self {
        Self {
            ordinal: load.ordinal,
            writes: entries.iter().map(|entry| (entry.marker.write, entry.marker.ordinal)).collect(),
            items: entries.iter().flat_map(|entry| &entry.items).collect(),
        }
    }

    /// True if nothing of an intent is left unsaid, by this attempt or an older one: each outcome goes to the same case
    /// again, or all of its items go to others now.
    pub(super) fn says_all_of(&self, hand: &Hand) -> bool {
        hand.entries.iter().all(|entry| match self.writes.get(&entry.marker.write) {
            Some(ordinal) => !is_older(*ordinal, entry),
            None => self.goes_elsewhere(entry),
        })
    }

    /// True if it says all of an intent, and some of it for other cases: a mended mapping.
    pub(super) fn moves(&self, hand: &Hand) -> bool {
        let elsewhere = |entry: &Entry| !self.writes.contains_key(&entry.marker.write) && self.goes_elsewhere(entry);
        self.says_all_of(hand) && hand.entries.iter().any(elsewhere)
    }

    fn goes_elsewhere(&self, entry: &Entry) -> bool {
        !is_older(self.ordinal, entry) && entry.items.iter().all(|item| self.items.contains(item))
    }
}

/// True if this attempt is known to be older than an entry's.
fn is_older(attempt: Option<Ordinal>, than: &Entry) -> bool {
    attempt.is_some() && than.marker.ordinal.is_some() && attempt < than.marker.ordinal
}
