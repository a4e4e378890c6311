//! Items of rounds as they count: each item and variant once, however many pushes and rounds hold it.
//! Must not know names or texts, so that counting never reads them.

use std::collections::BTreeMap;
use std::ops::Range;

use domain::round::listing_order;
use domain::verdict::{Claim, Light, Verdict, settle};
use domain::{Counts, ItemHash, Variant, WorkflowName};

use super::content::{Snap, claim, fold};
use super::facts::Scope;
use super::parts::{COUNTED_ITEMS, Part};
use super::rows::{self, PushRow, RevisionRow};
use crate::StoreError;

/// A push with its revisions.
pub(super) struct LoadedPush {
    pub(super) row: PushRow,
    pub(super) revisions: Vec<RevisionRow>,
}

/// What counts of one item and variant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) hash: ItemHash,
    /// Place in [`Listing::variants`].
    pub(super) variant: u32,
    /// Place in [`Listing::pushes`] of the push that says so.
    pub(super) push: u32,
    /// Pushes of that push's round that hold it.
    pub(super) pushes: u32,
    pub(super) verdict: Verdict,
}

/// Items of some rounds, sorted by hash and variant.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) pushes: Vec<LoadedPush>,
    pub(super) variants: Vec<Variant>,
    pub(super) held: Vec<Held>,
}

/// A listing in numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) counts: Counts,
    pub(super) overlaps: u64,
}

/// The pushes of a round, in the order of recording.
pub(super) fn pushes_of(snap: &Snap<'_>, project: i64, round: i64) -> Result<Vec<LoadedPush>, StoreError> {
    let rows = rows::pushes(snap, "p.project = ?1 AND p.round = ?2", [project, round])?;
    rows.into_iter().map(|row| Ok(LoadedPush { revisions: rows::revisions(snap, project, row.id)?, row })).collect()
}

/// Rounds of one workflow, by place.
type OfWorkflow<'a> = (Option<&'a WorkflowName>, BTreeMap<usize, Vec<Held>>);

/// The pushes of some rounds, and which of them each round has.
pub(super) struct Loaded {
    pub(super) listing: Listing,
    spans: Vec<(usize, Range<usize>)>,
}

impl Loaded {
    /// How many items they count at most.
    pub(super) fn items(&self) -> u64 {
        self.listing.pushes.iter().map(|push| push.row.counts.total).sum()
    }
}

/// The pushes of the rounds at these places of a cycle.
pub(super) fn load(snap: &Snap<'_>, scope: &Scope, places: &[usize]) -> Result<Loaded, StoreError> {
    let mut listing = Listing::default();
    let mut spans = Vec::with_capacity(places.len());
    for place in places {
        let from = listing.pushes.len();
        listing.pushes.extend(pushes_of(snap, scope.project, scope.rows[*place].id)?);
        spans.push((*place, from..listing.pushes.len()));
    }
    listing.variants = listing.pushes.iter().map(|p| p.row.place.variant.clone()).collect();
    listing.variants.sort();
    listing.variants.dedup();
    Ok(Loaded { listing, spans })
}

/// Items of the rounds at these places of a cycle: in one workflow the later round counts, between workflows the worst.
/// All of them at once, as an order that isn't that of hashes needs them.
pub(super) fn resolve(snap: &Snap<'_>, scope: &Scope, places: &[usize]) -> Result<Listing, StoreError> {
    let mut loaded = load(snap, scope, places)?;
    loaded.listing.held = held(snap, scope, &loaded, Part::ALL)?;
    Ok(loaded.listing)
}

/// The same in numbers, part by part of the order of hashes, so that memory doesn't grow with the rounds.
pub(super) fn totals(snap: &Snap<'_>, scope: &Scope, places: &[usize]) -> Result<Totals, StoreError> {
    let loaded = load(snap, scope, places)?;
    let mut totals = Totals::default();
    for part in Part::of(loaded.items(), COUNTED_ITEMS) {
        for held in held(snap, scope, &loaded, part)? {
            totals.counts.add(held.verdict.light.status, held.verdict.light.is_flaky());
            totals.overlaps += u64::from(held.pushes > 1);
        }
    }
    Ok(totals)
}

/// The rounds' items in a part of the order of hashes.
pub(super) fn held(snap: &Snap<'_>, scope: &Scope, loaded: &Loaded, part: Part) -> Result<Vec<Held>, StoreError> {
    let mut workflows: Vec<OfWorkflow<'_>> = Vec::new();
    for (place, span) in &loaded.spans {
        let held = round(snap, &loaded.listing, span.clone(), part)?;
        let workflow = scope.facts[*place].workflow.as_ref();
        if let Some((_, rounds)) = workflows.iter_mut().find(|(name, _)| *name == workflow) {
            rounds.insert(*place, held);
        } else {
            workflows.push((workflow, BTreeMap::from([(*place, held)])));
        }
    }
    let mut all: Option<Vec<Held>> = None;
    for (_, mut rounds) in workflows {
        let members: Vec<usize> = rounds.keys().copied().collect();
        let facts: Vec<_> = members.iter().map(|place| scope.facts[*place].clone()).collect();
        let in_order = listing_order(&facts).into_iter().filter_map(|at| rounds.remove(&members[at]));
        let of_workflow = in_order.reduce(|older, newer| merge(older, &newer, |_, newer| newer)).unwrap_or_default();
        all = Some(match all {
            None => of_workflow,
            Some(all) => merge(all, &of_workflow, worst),
        });
    }
    Ok(all.unwrap_or_default())
}

/// Items of one round: its pushes' verdicts, competing.
fn round(snap: &Snap<'_>, listing: &Listing, span: Range<usize>, part: Part) -> Result<Vec<Held>, StoreError> {
    let several = span.len() > 1;
    let mut entries = Vec::new();
    for at in span {
        let LoadedPush { row, revisions } = &listing.pushes[at];
        let variant = listing.variants.binary_search(&row.place.variant).unwrap_or(0) as u32;
        let view = fold(snap, row.project, revisions, part)?;
        entries.reserve(view.hashes.len());
        for (hash, verdict) in view.hashes.into_iter().zip(view.verdicts) {
            entries.push(Held { hash, variant, push: at as u32, pushes: 1, verdict });
        }
    }
    if several {
        // Stable, so that equal items stay in the order of recording; and the runs are sorted already.
        entries.sort_by_key(|held| (held.hash, held.variant));
        let mut kept: Vec<Held> = Vec::with_capacity(entries.len());
        for same in entries.chunk_by(|a, b| (a.hash, a.variant) == (b.hash, b.variant)) {
            kept.extend(compete(&listing.pushes, same));
        }
        entries = kept;
    }
    Ok(entries)
}

/// What counts of one item and variant among pushes of one round.
pub(super) fn compete(pushes: &[LoadedPush], same: &[Held]) -> Option<Held> {
    if let [only] = same {
        return Some(*only);
    }
    let claims: Vec<Claim> =
        same.iter().map(|held| claim(held.verdict, &pushes[held.push as usize].revisions)).collect();
    let (at, light) = settle(&claims)?;
    let verdict = Verdict { light, ..same[at].verdict };
    Some(Held { verdict, pushes: same.len() as u32, ..same[at] })
}

/// Between rounds of different workflows attempts say nothing: the worst counts.
fn worst(mine: Held, other: Held) -> Held {
    let plain = |light: Light| Claim { light, elevated: false, attempt: None };
    let claims = [plain(mine.verdict.light), plain(other.verdict.light)];
    let (at, light) = settle(&claims).unwrap_or((0, mine.verdict.light));
    let held = if at == 0 { mine } else { other };
    Held { verdict: Verdict { light, ..held.verdict }, ..held }
}

fn merge(older: Vec<Held>, newer: &[Held], both: impl Fn(Held, Held) -> Held) -> Vec<Held> {
    let mut merged = Vec::with_capacity(older.len().max(newer.len()));
    let mut newer = newer.iter().copied().peekable();
    for mine in older {
        while let Some(next) = newer.next_if(|next| (next.hash, next.variant) < (mine.hash, mine.variant)) {
            merged.push(next);
        }
        match newer.next_if(|next| (next.hash, next.variant) == (mine.hash, mine.variant)) {
            Some(other) => merged.push(both(mine, other)),
            None => merged.push(mine),
        }
    }
    merged.extend(newer);
    merged
}
