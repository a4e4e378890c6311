//! What the modelled server holds, what runners wish, and what they have been told.
//! Small and canonical: a state is hashed a million times. Must not decide anything.

use std::collections::{BTreeMap, BTreeSet};

use domain::Digest;
use domain::Ordinal;
use domain::staging::{Epoch, Fate, KnownEpoch};
use domain::verdict::RevisionKind;

/// Incarnations that one runner may have.
pub(crate) const GENERATIONS: usize = 2;
/// Incarnations of both runners; the number of one is `runner * GENERATIONS + generation`.
pub(crate) const WISHES: usize = 2 * GENERATIONS;

/// What one incarnation of a runner wants to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wish {
    /// Which content.
    pub(crate) manifest: u8,
    /// The attempt number; 0 is "unknown".
    pub(crate) ordinal: u8,
}

/// An epoch and its chunks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EpochRow {
    pub(crate) fate: Fate,
    pub(crate) manifest: u8,
    pub(crate) ordinal: u8,
    /// What the content decision at begin said it would become.
    pub(crate) kind: RevisionKind,
    /// Number of the chunk, and whose bytes it holds.
    pub(crate) chunks: BTreeMap<u32, u8>,
    /// True for ever, once it was open no more without being committed.
    pub(crate) died: bool,
}

/// A revision's receipt; its number is its place in the list, from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Receipt {
    pub(crate) epoch: u8,
    pub(crate) manifest: u8,
    pub(crate) ordinal: u8,
    /// The first incarnation bound to the epoch.
    pub(crate) wish: u8,
    pub(crate) revised: bool,
    pub(crate) first: bool,
}

/// What readers join through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) epoch: u8,
    pub(crate) revision: u32,
}

/// A request on its way; never taken off it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    Begin { wish: u8 },
    Put { epoch: u8, chunk: u32, bytes: u8 },
    Commit { epoch: u8, asked: u8 },
    Cancel { epoch: u8 },
    Attach { wish: u8 },
}

/// A final answer on its way; never taken off it, so a promise once given stays to be kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Answer {
    /// "What you asked for is recorded", with the receipt of this revision.
    Recorded { asked: u8, revision: u32, receipt: Receipt },
    /// "Refused for good."
    Refused { epoch: u8 },
    /// "Nothing of it is or becomes visible."
    Ended { epoch: u8 },
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) wishes: [Option<Wish>; WISHES],
    /// The epoch that each incarnation is bound to; 0 is none.
    pub(crate) bound: [u8; WISHES],
    /// A bit for each epoch that an answer to a begin of this incarnation named.
    pub(crate) told: [u8; WISHES],
    pub(crate) epochs: Vec<EpochRow>,
    pub(crate) links: Vec<Link>,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) answers: BTreeSet<Answer>,
    /// Requests sent; empty where the model folds sending into delivery.
    pub(crate) net: BTreeSet<Request>,
    /// A put or commit of a dead epoch changed what a reader sees.
    pub(crate) leaked: bool,
    /// The sweep took rows of a linked or open epoch.
    pub(crate) swept_live: bool,
}

/// A manifest's digest; the model's contents need no hashing.
pub(crate) fn manifest_digest(manifest: u8) -> Digest {
    Digest([manifest; 32])
}

/// The digest of one chunk's bytes, other for each manifest.
pub(crate) fn chunk_digest(manifest: u8, chunk: u32) -> Digest {
    Digest([0x80 | manifest << 4 | chunk as u8; 32])
}

/// An ordinal as the domain has it.
pub(crate) fn ordinal(number: u8) -> Option<Ordinal> {
    (number > 0).then_some(Ordinal(u64::from(number)))
}

impl State {
    /// Nothing there, nothing sent.
    pub(crate) fn new(wishes: [Option<Wish>; WISHES]) -> Self {
        Self {
            wishes,
            bound: [0; WISHES],
            told: [0; WISHES],
            epochs: Vec::new(),
            links: Vec::new(),
            receipts: Vec::new(),
            answers: BTreeSet::new(),
            net: BTreeSet::new(),
            leaked: false,
            swept_live: false,
        }
    }

    /// The row of an epoch, from 1.
    pub(crate) fn row(&self, epoch: u8) -> &EpochRow {
        &self.epochs[usize::from(epoch) - 1]
    }

    /// The same, to change.
    pub(crate) fn row_mut(&mut self, epoch: u8) -> &mut EpochRow {
        &mut self.epochs[usize::from(epoch) - 1]
    }

    /// What an engine would read of an epoch.
    pub(crate) fn known(&self, epoch: u8, chunks: u32, idle: bool) -> KnownEpoch {
        let row = self.row(epoch);
        KnownEpoch {
            epoch: Epoch(u64::from(epoch)),
            fate: row.fate,
            manifest: manifest_digest(row.manifest),
            chunks,
            present: row.chunks.keys().copied().collect(),
            ordinal: ordinal(row.ordinal),
            idle,
        }
    }

    /// The newest epoch; 0 is none.
    pub(crate) fn latest(&self) -> u8 {
        self.epochs.len() as u8
    }

    /// Ends an epoch without a commit.
    pub(crate) fn end(&mut self, epoch: u8, fate: Fate) {
        let row = self.row_mut(epoch);
        row.fate = fate;
        row.died = true;
    }

    /// True if readers see the epoch.
    pub(crate) fn linked(&self, epoch: u8) -> bool {
        self.links.iter().any(|link| link.epoch == epoch)
    }

    /// What readers see: linked epochs with their chunks.
    pub(crate) fn visible(&self) -> Vec<(Link, BTreeMap<u32, u8>)> {
        self.links.iter().map(|link| (*link, self.row(link.epoch).chunks.clone())).collect()
    }

    /// Incarnations bound to an epoch.
    pub(crate) fn bound_to(&self, epoch: u8) -> impl Iterator<Item = usize> {
        (0..WISHES).filter(move |wish| self.bound[*wish] == epoch)
    }

    /// True if incarnations of both runners are bound to an epoch.
    pub(crate) fn shared(&self, epoch: u8) -> bool {
        self.bound_to(epoch).any(|w| w < GENERATIONS) && self.bound_to(epoch).any(|w| w >= GENERATIONS)
    }

    /// True if an incarnation has a successor.
    pub(crate) fn is_old(&self, wish: usize) -> bool {
        wish % GENERATIONS + 1 < GENERATIONS && self.wishes[wish + 1].is_some()
    }
}
