//! Items of earlier rounds that the headline doesn't hold. Sets that the headline shares are never read.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use domain::listing::UnseenItem;
use domain::receipt::ItemHashText;
use domain::round::listing_order;
use domain::{CycleName, ItemHash, ProjectId, Variant};
use rusqlite::params;

use super::cache::{Caches, CycleState};
use super::connect::broken;
use super::content::{Snap, blob, fold, names_of};
use super::facts::{Missing, Scope, scope};
use super::resolve::resolve;
use super::rows::{self, variant_of};
use crate::{StoreError, codec};

/// An item that was last seen in an earlier round.
#[derive(Debug, Clone)]
pub(super) struct Unseen {
    pub(super) hash: ItemHash,
    pub(super) variant: Variant,
    /// Place of the last round that held it.
    pub(super) round: usize,
    /// A push of that round that holds it.
    pub(super) push: i64,
}

/// Items not seen since, by name.
pub(super) fn not_seen_since(
    snap: &Snap<'_>,
    caches: &Caches,
    (project, cycle): (&ProjectId, &CycleName),
) -> Result<Vec<UnseenItem>, Missing> {
    let scope = scope(snap, project, cycle)?;
    let list = unseen(snap, caches, &scope)?;
    let mut by_push: BTreeMap<i64, Vec<&Unseen>> = BTreeMap::new();
    for unseen in list.iter() {
        by_push.entry(unseen.push).or_default().push(unseen);
    }
    let mut found = Vec::with_capacity(list.len());
    for (push, mut items) in by_push {
        items.sort_by_key(|item| item.hash);
        let hashes: Vec<ItemHash> = items.iter().map(|item| item.hash).collect();
        let revisions = rows::revisions(snap, scope.project, push)?;
        let names = names_of(snap, scope.project, push, &revisions, &hashes)?;
        for (item, name) in items.into_iter().zip(names) {
            found.push(UnseenItem {
                hash: ItemHashText(item.hash),
                item: name.ok_or_else(|| broken(format!("item {} has no name", item.hash)))?,
                variant: item.variant.clone(),
                last_seen: scope.facts[item.round].round.clone(),
            });
        }
    }
    found.sort_by(|a, b| (&a.item, a.hash.0, &a.variant).cmp(&(&b.item, b.hash.0, &b.variant)));
    Ok(found)
}

/// The same without names, remembered for the cycle's state.
pub(super) fn unseen(snap: &Snap<'_>, caches: &Caches, scope: &Scope) -> Result<Arc<Vec<Unseen>>, StoreError> {
    let places = scope.rows.iter().zip(&scope.standings);
    let state: CycleState = places.map(|(row, standing)| ((row.id, row.version), standing.authoritative)).collect();
    if let Some((of, known)) = caches.unseen.get(&scope.cycle)
        && *of == state
    {
        return Ok(known);
    }
    let found = Arc::new(search(snap, scope)?);
    caches.unseen.put(scope.cycle, (Arc::new(state), Arc::clone(&found)));
    Ok(found)
}

/// Places of the rounds before their workflow's authoritative one, latest first.
fn earlier(scope: &Scope) -> Vec<usize> {
    let mut before = HashSet::new();
    for at in scope.authoritative() {
        let members: Vec<usize> =
            (0..scope.rows.len()).filter(|m| scope.facts[*m].workflow == scope.facts[at].workflow).collect();
        let facts: Vec<_> = members.iter().map(|m| scope.facts[*m].clone()).collect();
        let order = listing_order(&facts);
        before.extend(order.into_iter().map(|m| members[m]).take_while(|m| *m != at));
    }
    listing_order(&scope.facts).into_iter().rev().filter(|at| before.contains(at)).collect()
}

/// One push of a round, as far as its sets matter.
struct SetsOf {
    push: i64,
    variant: String,
    sets: Vec<i64>,
    /// A promotion left that content alone: what counts is less than what the sets hold.
    exact: bool,
}

fn sets_of(snap: &Snap<'_>, project: i64, round: i64) -> Result<Vec<SetsOf>, StoreError> {
    let mut statement = snap.prepare_cached(
        "SELECT p.id, p.variant, b.itemset, EXISTS(SELECT 1 FROM revision v
           WHERE v.project = p.project AND v.push = p.id AND v.kind = 3 AND v.exact = 1)
         FROM push p JOIN block b ON b.project = p.project AND b.push = p.id
         WHERE p.project = ?1 AND p.round = ?2 ORDER BY p.id",
    )?;
    let mut rows = statement.query(params![project, round])?;
    let mut found: Vec<SetsOf> = Vec::new();
    while let Some(row) = rows.next()? {
        let (push, set): (i64, i64) = (row.get(0)?, row.get(2)?);
        match found.last_mut().filter(|last| last.push == push) {
            Some(last) => last.sets.push(set),
            None => found.push(SetsOf { push, variant: row.get(1)?, sets: vec![set], exact: row.get(3)? }),
        }
    }
    Ok(found)
}

fn search(snap: &Snap<'_>, scope: &Scope) -> Result<Vec<Unseen>, StoreError> {
    let earlier = earlier(scope);
    if earlier.is_empty() {
        return Ok(Vec::new());
    }
    let authoritative = scope.authoritative();
    let mut done: HashSet<(String, i64)> = HashSet::new();
    for at in &authoritative {
        for push in sets_of(snap, scope.project, scope.rows[*at].id)?.into_iter().filter(|p| !p.exact) {
            done.extend(push.sets.iter().map(|set| (push.variant.clone(), *set)));
        }
    }
    let mut headline: Option<BTreeMap<Variant, Vec<ItemHash>>> = None;
    let mut found = BTreeMap::new();
    for at in earlier {
        for push in sets_of(snap, scope.project, scope.rows[at].id)? {
            let hashes = unread(snap, scope, &push, &mut done)?;
            if hashes.is_empty() {
                continue;
            }
            if headline.is_none() {
                headline = Some(by_variant(snap, scope, &authoritative)?);
            }
            let variant = variant_of(&push.variant)?;
            let seen = headline.as_ref().and_then(|headline| headline.get(&variant)).map_or(&[][..], Vec::as_slice);
            absent(&hashes, seen, |hash| {
                found.entry((hash, variant.clone())).or_insert((at, push.push));
            });
        }
    }
    let list = found.into_iter();
    Ok(list.map(|((hash, variant), (round, push))| Unseen { hash, variant, round, push }).collect())
}

/// The headline's items, rising, by variant.
fn by_variant(
    snap: &Snap<'_>,
    scope: &Scope,
    places: &[usize],
) -> Result<BTreeMap<Variant, Vec<ItemHash>>, StoreError> {
    let listing = resolve(snap, scope, places)?;
    let mut found: BTreeMap<Variant, Vec<ItemHash>> = BTreeMap::new();
    for (at, variant) in listing.variants.iter().enumerate() {
        let of_variant = listing.held.iter().filter(|held| held.variant as usize == at);
        found.insert(variant.clone(), of_variant.map(|held| held.hash).collect());
    }
    Ok(found)
}

/// Gives the hashes that `seen` (rising) doesn't hold. `hashes` is a row of rising runs, so each run is walked beside it
/// rather than looked up item by item.
fn absent(hashes: &[ItemHash], seen: &[ItemHash], mut each: impl FnMut(ItemHash)) {
    for run in hashes.chunk_by(|a, b| a < b) {
        let mut at = seen.partition_point(|hash| *hash < run[0]);
        for hash in run {
            while seen.get(at).is_some_and(|other| other < hash) {
                at += 1;
            }
            if seen.get(at) != Some(hash) {
                each(*hash);
            }
        }
    }
}

/// Items of a push's sets that no later round and not the headline had.
fn unread(
    snap: &Snap<'_>,
    scope: &Scope,
    push: &SetsOf,
    done: &mut HashSet<(String, i64)>,
) -> Result<Vec<ItemHash>, StoreError> {
    if push.exact {
        let revisions = rows::revisions(snap, scope.project, push.push)?;
        return Ok(fold(snap, scope.project, push.push, &revisions)?.hashes);
    }
    let mut hashes = Vec::new();
    let mut statement = snap.prepare_cached("SELECT hashes FROM itemset WHERE id = ?1")?;
    for set in &push.sets {
        if done.insert((push.variant.clone(), *set)) {
            let mut rows = statement.query([set])?;
            let row = rows.next()?.ok_or_else(|| broken(format!("set {set} is missing")))?;
            codec::unpack_hashes(blob(row, 0)?, &mut hashes)?;
        }
    }
    Ok(hashes)
}
