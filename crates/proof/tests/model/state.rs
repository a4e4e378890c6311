//! What the modelled server holds, what runners wish, and what they have been told.
//! Small and canonical: a state is hashed millions of times. Must not decide anything.

use std::collections::BTreeSet;

use domain::staging::{Epoch, Fate, KnownEpoch};
use domain::verdict::RevisionKind;
use domain::{Digest, Executor, Ordinal};

use crate::content::Tally;

/// Incarnations of all runners; the number of one is `runner * generations + generation`.
pub(crate) const SLOTS: usize = 4;
/// No chunk of the model has a higher number.
pub(crate) const CHUNKS: usize = 4;
/// Bytes that no manifest names: a body that was cut or that has a flipped bit.
pub(crate) const DAMAGED: u8 = 0x7f;
/// Recorded by no runner, but by a person.
pub(crate) const NOBODY: u8 = 0x7f;

/// What one incarnation of a runner wants to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Wish {
    /// Which content, see [`crate::content`].
    pub(crate) content: u8,
    /// The attempt number; 0 is "unknown".
    pub(crate) ordinal: u8,
    /// Who executes; 0 is "unknown".
    pub(crate) executor: u8,
    /// The part of the key that must not change, see [`crate::content`].
    pub(crate) place: u8,
}

/// An epoch and its chunks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EpochRow {
    pub(crate) fate: Fate,
    /// What it was begun with; ordinal and executor are those of the highest attempt that began or resumed it.
    pub(crate) wish: Wish,
    /// The incarnation of that attempt.
    pub(crate) sender: u8,
    /// By number, whose bytes it holds, plus one; 0 is none.
    pub(crate) chunks: [u8; CHUNKS],
    /// Ordinal and executor of all who began or resumed it.
    pub(crate) executors: Vec<(u8, u8)>,
    pub(crate) contested: bool,
    /// True for ever, once it was open no more without being committed.
    pub(crate) died: bool,
}

impl EpochRow {
    /// Whose bytes a chunk holds.
    pub(crate) fn chunk(&self, chunk: u32) -> Option<u8> {
        self.chunks[chunk as usize].checked_sub(1)
    }

    /// True without any chunk.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks == [0; CHUNKS]
    }
}

/// What a revision was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Epoch(u8),
    OneShot,
    /// A person, who had seen the receipt of revision `expected`; both numbers are the promotion's own key.
    Promotion {
        of: u8,
        expected: u8,
    },
}

/// The stored result of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Receipt {
    pub(crate) revision: u8,
    pub(crate) content: u8,
    pub(crate) ordinal: u8,
}

/// One accepted content; its number is its place in the list, from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Revision {
    pub(crate) source: Source,
    pub(crate) kind: RevisionKind,
    pub(crate) content: u8,
    pub(crate) place: u8,
    /// The highest attempt that came to this content since.
    pub(crate) ordinal: u8,
    /// The same, whatever the engine stores.
    pub(crate) heard: u8,
    /// The incarnation that it came from.
    pub(crate) by: u8,
    pub(crate) receipt: Receipt,
    /// The receipt as it was first answered.
    pub(crate) promised: Receipt,
}

/// A request on its way; never taken off it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    Begin {
        at: u8,
    },
    OneShot {
        at: u8,
    },
    Put {
        epoch: u8,
        chunk: u32,
        bytes: u8,
    },
    /// `asked` is the content of who sends it.
    Commit {
        epoch: u8,
        asked: u8,
    },
    Cancel {
        epoch: u8,
    },
    Attach {
        at: u8,
    },
    /// The same raw key, presented under another project.
    AttachElsewhere,
    /// Of revision `of`, if `expected` is the newest.
    Promote {
        of: u8,
        expected: u8,
    },
}

/// A request that was taken in and is applied later or never; nobody reads its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Zombie {
    pub(crate) request: Request,
    pub(crate) choice: bool,
    /// What it was decided on; only a mutant decides on what it read earlier.
    pub(crate) read: Option<Box<State>>,
}

/// Faults that only a step shows, as bits of [`State::faults`].
pub(crate) mod fault {
    /// S3: told "recorded" of a content that is another and not what counts.
    pub(crate) const SUPPRESSED: u8 = 1;
    /// S6: a put or commit of a dead epoch changed what a reader sees.
    pub(crate) const LEAKED: u8 = 2;
    /// S7: an answered receipt is not the one that was answered first.
    pub(crate) const RECEIPT: u8 = 4;
    /// S11: what is stored as counts is not what the linked contents come to.
    pub(crate) const COUNTS: u8 = 8;
    /// S12: rows of a linked or open epoch were taken, or an epoch in use was given up.
    pub(crate) const SWEPT: u8 = 16;
    /// S14: a reader saw less than it had seen.
    pub(crate) const BACKWARDS: u8 = 32;
    /// A lower attempt's verdicts were laid over those of a higher one.
    pub(crate) const OVERRULED: u8 = 64;
}

/// The whole of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) wishes: [Option<Wish>; SLOTS],
    /// The epoch that each incarnation is bound to; 0 is none.
    pub(crate) bound: [u8; SLOTS],
    /// A bit for each epoch that an answer to a begin of this incarnation named.
    pub(crate) told: [u8; SLOTS],
    /// What each incarnation saw by attaching: twice the newest revision, and 1 for an open epoch.
    pub(crate) saw: [u8; SLOTS],
    pub(crate) epochs: Vec<EpochRow>,
    pub(crate) revisions: Vec<Revision>,
    /// A bit for each revision that readers join through.
    pub(crate) linked: u16,
    /// Ordinal and executor of all accepted deliveries.
    pub(crate) executors: Vec<(u8, u8)>,
    pub(crate) contested: bool,
    pub(crate) deleted: bool,
    /// Another shard's push of the same round, with its ordinal.
    pub(crate) neighbour: Option<u8>,
    /// How the push counts, as stored.
    pub(crate) tally: Tally,
    /// How the round counts, as stored.
    pub(crate) round: Tally,
    /// Promises once given, a bit each: "recorded" by asked content and revision, "refused" and "ended" by epoch.
    pub(crate) recorded: u64,
    pub(crate) refused: u8,
    pub(crate) ended: u8,
    pub(crate) zombie: Option<Zombie>,
    /// Requests sent; empty where the model folds sending into delivery.
    pub(crate) net: BTreeSet<Request>,
    pub(crate) faults: u8,
}

/// A manifest's digest; the model's contents need no hashing.
pub(crate) fn manifest_digest(wish: Wish) -> Digest {
    Digest([wish.content | wish.place << 4; 32])
}

/// The digest of one chunk's bytes, other for each content.
pub(crate) fn chunk_digest(bytes: u8, chunk: u32) -> Digest {
    let mut digest = [bytes; 32];
    digest[0] = 0x80 | chunk as u8;
    Digest(digest)
}

/// An ordinal as the domain has it.
pub(crate) fn ordinal(number: u8) -> Option<Ordinal> {
    (number > 0).then_some(Ordinal(u64::from(number)))
}

/// An executor as the domain has it.
pub(crate) fn executor(number: u8) -> Option<Executor> {
    (number > 0).then(|| Executor::parse(&format!("runner-{number}")).expect("an executor"))
}

/// Both, as the domain keeps them of accepted deliveries.
pub(crate) fn executors(pairs: &[(u8, u8)]) -> Vec<(Option<Ordinal>, Executor)> {
    pairs.iter().filter_map(|(number, who)| Some((ordinal(*number), executor(*who)?))).collect()
}

impl State {
    /// Nothing there, nothing sent.
    pub(crate) fn new(wishes: [Option<Wish>; SLOTS]) -> Self {
        Self {
            wishes,
            bound: [0; SLOTS],
            told: [0; SLOTS],
            saw: [0; SLOTS],
            epochs: Vec::new(),
            revisions: Vec::new(),
            linked: 0,
            executors: Vec::new(),
            contested: false,
            deleted: false,
            neighbour: None,
            tally: Tally::default(),
            round: Tally::default(),
            recorded: 0,
            refused: 0,
            ended: 0,
            zombie: None,
            net: BTreeSet::new(),
            faults: 0,
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
            manifest: manifest_digest(row.wish),
            content: crate::content::digest(row.wish.content),
            chunks,
            present: (0..chunks).filter(|chunk| row.chunk(*chunk).is_some()).collect(),
            ordinal: ordinal(row.wish.ordinal),
            executors: executors(&row.executors),
            contested: row.contested,
            idle,
        }
    }

    /// The newest epoch; 0 is none.
    pub(crate) fn latest(&self) -> u8 {
        self.epochs.len() as u8
    }

    /// The newest epoch, if it is open.
    pub(crate) fn open(&self) -> Option<u8> {
        (self.epochs.last()?.fate == Fate::Open).then(|| self.latest())
    }

    /// The newest revision; 0 is none.
    pub(crate) fn current(&self) -> u8 {
        self.revisions.len() as u8
    }

    /// Ends an epoch without a commit.
    pub(crate) fn end(&mut self, epoch: u8, fate: Fate) {
        let row = self.row_mut(epoch);
        row.fate = fate;
        row.died = true;
    }

    /// True if readers join through a revision.
    pub(crate) fn is_linked(&self, revision: u8) -> bool {
        self.linked & (1 << revision) != 0
    }

    /// The revision that an epoch's chunks were made of.
    pub(crate) fn made_of(&self, epoch: u8) -> Option<u8> {
        let at = self.revisions.iter().position(|revision| revision.source == Source::Epoch(epoch))?;
        Some(at as u8 + 1)
    }

    /// True if readers see the chunks of an epoch.
    pub(crate) fn is_visible(&self, epoch: u8) -> bool {
        self.made_of(epoch).is_some_and(|revision| self.is_linked(revision))
    }

    /// Incarnations bound to an epoch.
    pub(crate) fn bound_to(&self, epoch: u8) -> impl Iterator<Item = usize> {
        (0..SLOTS).filter(move |at| self.bound[*at] == epoch)
    }
}
