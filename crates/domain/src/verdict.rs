//! What counts of an item: verdicts within a push (revisions laid over one another) and within a round (overlaps).
//! Small values without names or texts, so that counting never reads those. Must not know how they are kept.

use crate::id::Ordinal;
use crate::item::ItemHash;
use crate::outcome::{Counts, Outcome, Status};

/// An outcome as far as counting needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Light {
    /// The final verdict.
    pub status: Status,
    /// True if an earlier attempt failed or errored.
    pub bad_before: bool,
}

impl Light {
    /// Of a whole outcome.
    pub fn of(outcome: &Outcome) -> Self {
        Self { status: outcome.status, bad_before: outcome.attempts.iter().any(|a| a.status.is_bad()) }
    }

    /// Passed after a failed attempt.
    pub fn is_flaky(self) -> bool {
        self.status == Status::Passed && self.bad_before
    }

    /// One small number: the status in bits 0 and 1, `bad_before` in bit 2.
    pub fn code(self) -> u8 {
        self.status.code() | u8::from(self.bad_before) << 2
    }

    /// Back from [`Light::code`].
    pub fn from_code(code: u8) -> Option<Self> {
        let status = Status::from_code(code & 3)?;
        (code < 8).then_some(Self { status, bad_before: code & 4 != 0 })
    }
}

/// What counts of one item of a push, and which revision says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Status and history.
    pub light: Light,
    /// The revision that the verdict came from, from 1.
    pub revision: u32,
}

/// How a revision came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RevisionKind {
    /// The first content recorded under the key.
    First,
    /// Its verdicts count, the earlier ones are attempts.
    Revised,
    /// Only items without an outcome count; the others wait for a promotion.
    Kept,
    /// A person decided: the verdicts of revision `of` count from now on; `exact`: that content alone.
    Promoted {
        /// The revision whose content is promoted.
        of: u32,
        /// True if items that it doesn't hold no longer count.
        exact: bool,
    },
}

impl RevisionKind {
    /// The word in receipts and listings.
    pub fn word(self) -> &'static str {
        match self {
            RevisionKind::First => "recorded",
            RevisionKind::Revised => "revised",
            RevisionKind::Kept => "kept",
            RevisionKind::Promoted { .. } => "promoted",
        }
    }

    /// True if its verdicts go before those of other pushes that are merely first recorded (design, section 7).
    pub fn is_elevated(self) -> bool {
        matches!(self, RevisionKind::Revised | RevisionKind::Promoted { .. })
    }
}

/// The items of a push as they count, sorted by hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Item hashes, rising.
    pub hashes: Vec<ItemHash>,
    /// Verdicts in the same order.
    pub verdicts: Vec<Verdict>,
}

/// What one item of an offered content is to the view before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// In both, with another status.
    Changed {
        /// The status that counted.
        from: Status,
        /// The offered one.
        to: Status,
    },
    /// Only in the offered content.
    Added(Status),
    /// Only in the view.
    NotOffered(Status),
}

impl View {
    /// The view that a first content gives.
    pub fn first(hashes: &[ItemHash], lights: &[Light]) -> Self {
        View::default().laid_over(RevisionKind::First, 1, hashes, lights)
    }

    /// This view with one more revision laid over it. `hashes` (rising) and `lights` are the revision's content; for a
    /// promotion, that of the promoted revision.
    pub fn laid_over(&self, kind: RevisionKind, revision: u32, hashes: &[ItemHash], lights: &[Light]) -> Self {
        let source = if let RevisionKind::Promoted { of, .. } = kind { of } else { revision };
        let mut view = View::default();
        view.hashes.reserve(self.hashes.len().max(hashes.len()));
        view.verdicts.reserve(self.hashes.len().max(hashes.len()));
        merge(&self.hashes, hashes, |hash, old, new| {
            let verdict = match (old.map(|at| self.verdicts[at]), new.map(|at| lights[at])) {
                (Some(_), None) if matches!(kind, RevisionKind::Promoted { exact: true, .. }) => return,
                (Some(old), None) => old,
                (None, Some(light)) => Verdict { light, revision },
                (Some(old), Some(_)) if kind == RevisionKind::Kept => old,
                (Some(old), Some(light)) => combine(kind, revision, source, old, light),
                (None, None) => return,
            };
            view.hashes.push(hash);
            view.verdicts.push(verdict);
        });
        view
    }

    /// How the items count.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for verdict in &self.verdicts {
            counts.add(verdict.light.status, verdict.light.is_flaky());
        }
        counts
    }

    /// The verdict on an item.
    pub fn get(&self, hash: ItemHash) -> Option<Verdict> {
        self.hashes.binary_search(&hash).ok().map(|at| self.verdicts[at])
    }

    /// What the offered content says otherwise, item by item, in the order of hashes.
    pub fn changes(&self, hashes: &[ItemHash], lights: &[Light], mut each: impl FnMut(ItemHash, Change)) {
        merge(&self.hashes, hashes, |hash, old, new| {
            let old = old.map(|at| self.verdicts[at].light.status);
            let new = new.map(|at| lights[at].status);
            match (old, new) {
                (Some(from), Some(to)) if from != to => each(hash, Change::Changed { from, to }),
                (Some(from), None) => each(hash, Change::NotOffered(from)),
                (None, Some(to)) => each(hash, Change::Added(to)),
                _ => {}
            }
        });
    }
}

/// One item's verdict under a revision that lays `light` over `old`.
pub(crate) fn combine(kind: RevisionKind, revision: u32, source: u32, old: Verdict, light: Light) -> Verdict {
    if let RevisionKind::Promoted { exact, .. } = kind {
        // Promoting what counts already, or that content alone, adds no attempt.
        let same = old.revision == source;
        let bad_before = light.bad_before || (!exact && (old.light.bad_before || (!same && old.light.status.is_bad())));
        return Verdict { light: Light { status: light.status, bad_before }, revision };
    }
    let bad_before = old.light.bad_before || old.light.status.is_bad() || light.bad_before;
    Verdict { light: Light { status: light.status, bad_before }, revision }
}

/// Walks two rising lists side by side.
pub(crate) fn merge(a: &[ItemHash], b: &[ItemHash], mut each: impl FnMut(ItemHash, Option<usize>, Option<usize>)) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let order = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => x.cmp(y),
            (Some(_), None) => std::cmp::Ordering::Less,
            _ => std::cmp::Ordering::Greater,
        };
        match order {
            std::cmp::Ordering::Less => {
                each(a[i], Some(i), None);
                i += 1;
            }
            std::cmp::Ordering::Greater => {
                each(b[j], None, Some(j));
                j += 1;
            }
            std::cmp::Ordering::Equal => {
                each(a[i], Some(i), Some(j));
                i += 1;
                j += 1;
            }
        }
    }
}

/// One push's verdict on an item, as it competes with those of other pushes of the round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Status and history.
    pub light: Light,
    /// True if it comes from a promoted or revised revision.
    pub elevated: bool,
    /// The attempt number of its revision, where the platform counts attempts of the round.
    pub attempt: Option<Ordinal>,
}

/// Which of the claims on one item and variant counts (design, section 7, overlaps): promoted or revised verdicts before
/// those that are not; of these the highest attempt, where attempts are known; of these the worst. Gives its place, and
/// what counts: flaky if any equal one is. Of equal claims the first is named.
///
/// Over all claims at once, never pair by pair: a claim without an attempt competes with whatever is left, and pairs
/// would come out by the order in which the pushes arrived.
pub fn settle(claims: &[Claim]) -> Option<(usize, Light)> {
    let elevated = claims.iter().any(|claim| claim.elevated);
    let tier = || claims.iter().enumerate().filter(|(_, claim)| claim.elevated == elevated);
    let highest = tier().filter_map(|(_, claim)| claim.attempt).max();
    let left = || tier().filter(|(_, claim)| claim.attempt.is_none() || claim.attempt == highest);
    let (at, winner) = left()
        .reduce(|best, next| if next.1.light.status.badness() > best.1.light.status.badness() { next } else { best })?;
    let status = winner.light.status;
    let bad_before = left().any(|(_, claim)| claim.light.status == status && claim.light.bad_before);
    Some((at, Light { status, bad_before }))
}
