//! Flags of intents. Must not know who raises them, or where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What people have to know of an intent beyond its state: the named ends of the windows that no strategy closes
/// (`facts/idempotency.md`, 4.3). Never in silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// W1, W2, W11, R2: one write stands there more than once.
    DuplicateDetected,
    /// W4: it was confirmed, and is not there any more.
    VendorLost,
    /// W5: rows of ours are there that no intent knows. Kept at the oldest intent of the cycle.
    Orphan,
    /// W6: it was there before this ledger sent it: the ledger is older than what it forwarded.
    LedgerRestored,
    /// W7: a count is neither what it was nor what it should be.
    CountContradicts,
    /// W8: a part of it is there.
    Partial,
    /// W9: a marker came back changed.
    MarkerMangled,
    /// W10: somebody changed or deleted it.
    Vanished,
    /// W12: nothing can be read there: it was sent once, and never again.
    AtMostOnce,
    /// W13: accepted, and not seen since.
    AcceptedNotConfirmed,
    /// W14: what was found is older than the push.
    SuspiciousMatch,
    /// R3: more than one cycle carries the round's id; the oldest is used.
    CycleDoubled,
    /// R3: the round's cycle was made, and the product doesn't list it: who has no ledger of the round makes another.
    CycleUnseen,
    /// R4: a newer attempt of the same write is there, or its outcomes go to other cases now; this one was left out.
    Stale,
    /// R10: several rows of the case are there, others' among them, where only one should count.
    RowsAmbiguous,
    /// R4: what is shown is not what the newest attempt said: an older write, or a person, came after it, or of two attempts
    /// nobody can tell which is the newer.
    Overtaken,
    /// A person has looked, and said that it stays as it is.
    GivenUp,
}

impl Flag {
    /// All.
    pub const ALL: [Flag; 17] = [
        Flag::DuplicateDetected,
        Flag::VendorLost,
        Flag::Orphan,
        Flag::LedgerRestored,
        Flag::CountContradicts,
        Flag::Partial,
        Flag::MarkerMangled,
        Flag::Vanished,
        Flag::AtMostOnce,
        Flag::AcceptedNotConfirmed,
        Flag::SuspiciousMatch,
        Flag::CycleDoubled,
        Flag::CycleUnseen,
        Flag::Stale,
        Flag::RowsAmbiguous,
        Flag::Overtaken,
        Flag::GivenUp,
    ];

    /// The word in JSON, tables and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Flag::DuplicateDetected => "duplicate-detected",
            Flag::VendorLost => "vendor-lost",
            Flag::Orphan => "orphan",
            Flag::LedgerRestored => "ledger-restored",
            Flag::CountContradicts => "count-contradicts",
            Flag::Partial => "partial",
            Flag::MarkerMangled => "marker-mangled",
            Flag::Vanished => "vanished",
            Flag::AtMostOnce => "at-most-once",
            Flag::AcceptedNotConfirmed => "accepted-not-confirmed",
            Flag::SuspiciousMatch => "suspicious-match",
            Flag::CycleDoubled => "cycle-doubled",
            Flag::CycleUnseen => "cycle-unseen",
            Flag::Stale => "stale",
            Flag::RowsAmbiguous => "rows-ambiguous",
            Flag::Overtaken => "overtaken",
            Flag::GivenUp => "given-up",
        }
    }

    /// What people still have to know of these: once one of them has looked, only that.
    pub fn said<'a>(flags: impl Iterator<Item = &'a Flag> + Clone) -> impl Iterator<Item = Flag> {
        let looked_at = flags.clone().any(|flag| *flag == Flag::GivenUp);
        flags.copied().filter(move |flag| !looked_at || *flag == Flag::GivenUp)
    }

    /// True if what the repository shows may count wrongly because of it.
    pub fn is_wrong(self) -> bool {
        use Flag::{AtMostOnce, CycleDoubled, GivenUp, RowsAmbiguous, Stale};
        !matches!(self, AtMostOnce | CycleDoubled | GivenUp | RowsAmbiguous | Stale)
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
