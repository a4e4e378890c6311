//! What a product really does, whatever its facts say.

use delivery::foreign::{KeyOnWrite, VerdictRule};

/// What it really does.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) verdict: VerdictRule,
    pub(crate) key: KeyOnWrite,
    /// Rows show, and stop showing, so much later.
    pub(crate) lag_ms: u64,
    /// Comments are cut to so many characters.
    pub(crate) comment_chars: usize,
    /// A job that takes so long.
    pub(crate) job_ms: Option<u64>,
    /// What happens to the good ones beside a bad entry.
    pub(crate) bad: Bad,
    pub(crate) deletes: bool,
    pub(crate) amends: bool,
    pub(crate) deletes_cycles: bool,
    pub(crate) cycle_unique: bool,
    /// So many cycles of one tag are listed, the oldest first.
    pub(crate) cycles_listed: usize,
    /// A cycle is made, and no answer says so.
    pub(crate) makes_cycles_silently: bool,
    /// From so many rows on nobody may write any more.
    pub(crate) rows_max: usize,
    /// A right is missing: amending, deleting and deleting cycles are denied, and not refused.
    pub(crate) denies: bool,
    /// A write that is given up never comes.
    pub(crate) hangs: bool,
    /// It looks whether a row is there, and writes it later.
    pub(crate) looks_then_writes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
    /// Nothing is stored, and it says so.
    RefusesAll,
    /// The others are stored, and it says which is refused.
    NamesIt,
    /// The others before it are stored, and it says that all is refused.
    StoresSomeAndRefuses,
    /// The others are stored, and it says nothing.
    DropsIt,
}
