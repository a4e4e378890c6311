//! What the modelled engine asks, as pointers, so that a mutant can take the place of any: the product's functions.
//! Must not carry anything out.

use domain::Digest;
use domain::staging::{
    self, Begin, BeginDecision, CancelDecision, CommitDecision, Epoch, Fate, KnownEpoch, OneShotDecision, PutDecision,
};

use crate::content::{self, Content, Offer, Past};
use crate::state::{EpochRow, Receipt, Revision, State};

/// What the server does not know: on a begin, whether the open epoch is idle; on a commit, whether it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice(pub(crate) bool);

/// The epoch that an incarnation is bound to, and what became of it.
pub(crate) type Bound = Option<(Epoch, Fate)>;

/// What an engine asks.
#[derive(Clone, Copy)]
pub(crate) struct Decisions {
    pub(crate) content: fn(&Offer) -> Content,
    pub(crate) begin: fn(&Begin, Option<&KnownEpoch>, Bound) -> BeginDecision,
    pub(crate) one_shot: fn(&Begin, Option<&KnownEpoch>, Bound) -> OneShotDecision,
    /// The epoch that a put is for: the named one of the named and the newest.
    pub(crate) address: fn(u8, u8) -> u8,
    pub(crate) put: fn(&KnownEpoch, u32, Option<Digest>, Digest) -> PutDecision,
    pub(crate) commit: fn(&KnownEpoch) -> CommitDecision,
    pub(crate) cancel: fn(&KnownEpoch) -> CancelDecision,
    pub(crate) may_abandon: fn(&KnownEpoch, bool) -> bool,
    /// Whether chunks of an epoch may be deleted; the second is whether a revision is made of them.
    pub(crate) may_sweep: fn(&EpochRow, bool) -> bool,
    /// The receipt of a revision, of all that are stored.
    pub(crate) receipt: fn(&[Revision], u8) -> Option<Receipt>,
    /// What is remembered of a key; the second is whether much time has passed.
    pub(crate) remembers: fn(&mut Vec<Past>, bool),
    pub(crate) tombstoned: fn(bool) -> bool,
    /// Whether readers see the chunks of an epoch.
    pub(crate) sees: fn(&State, u8) -> bool,
    /// What an attach tells of: the newest revision, and the open epoch.
    pub(crate) attach: fn(&State) -> (u8, Option<u8>),
    /// The newest revision that a promotion is held against.
    pub(crate) newest: fn(u8, u8) -> u8,
    /// Whether a sender of an epoch counts as one who delivered once the epoch is committed, beside those accepted so far.
    pub(crate) accepts: fn(&State, (u8, u8)) -> bool,
    pub(crate) slips: Slips,
}

/// Faults of the engine itself; the product has none of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slips {
    /// Decides on what it read when the request was taken in.
    pub(crate) reads_early: bool,
    /// Answers before the transaction is committed.
    pub(crate) answers_early: bool,
    /// Applies what a commit decided twice.
    pub(crate) applies_twice: bool,
    /// Keeps a failure of its own as the answer.
    pub(crate) stores_failures: bool,
    /// Counts before it looks whether the content is known.
    pub(crate) counts_first: bool,
    /// Registers a revision that readers can't get at.
    pub(crate) links_nothing: bool,
    /// Does not store the attempt that confirmed a revision.
    pub(crate) confirms_nothing: bool,
    /// Writes a confirmed attempt into the stored receipt.
    pub(crate) confirms_in_receipt: bool,
    /// Does not ask again at the commit what the content is.
    pub(crate) trusts_the_begin: bool,
    /// Commits an epoch first, and registers its revision in a transaction of its own.
    pub(crate) receipt_later: bool,
    /// Counts a round as the sum of its pushes.
    pub(crate) forgets_overlaps: bool,
    /// Forgets that a key is contested.
    pub(crate) contests_nothing: bool,
}

/// Those of the product.
pub(crate) const PRODUCTION: Decisions = Decisions {
    content: content::production,
    begin: staging::begin,
    one_shot: staging::one_shot,
    address: |named, _| named,
    put: staging::put,
    commit: staging::commit,
    cancel: staging::cancel,
    may_abandon: staging::may_abandon,
    may_sweep: |row, made_of| row.fate != Fate::Open && !made_of,
    receipt: |stored, revision| stored.get(usize::from(revision).checked_sub(1)?).map(|r| r.receipt),
    remembers: |_, _| {},
    tombstoned: |deleted| deleted,
    sees: State::is_visible,
    attach: |state| (state.current(), state.open()),
    newest: |current, _| current,
    accepts: content::accepts,
    slips: Slips {
        reads_early: false,
        answers_early: false,
        applies_twice: false,
        stores_failures: false,
        counts_first: false,
        links_nothing: false,
        confirms_nothing: false,
        confirms_in_receipt: false,
        trusts_the_begin: false,
        contests_nothing: false,
        receipt_later: false,
        forgets_overlaps: false,
    },
};
