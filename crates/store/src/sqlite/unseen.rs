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
use super::parts::{COUNTED_ITEMS, Part};
use super::resolve::{self, Loaded};
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
        let names = names_of(snap, scope.project, &revisions, &hashes)?;
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

/// A set, and where it lies in the order of hashes.
struct SetAt {
    id: i64,
    bits: u8,
    bucket: u32,
}

/// One push of a round, as far as its sets matter.
struct SetsOf {
    /// Place of the round.
    round: usize,
    push: i64,
    variant: String,
    sets: Vec<SetAt>,
    /// A promotion left that content alone: what counts is less than what the sets hold.
    exact: bool,
}

fn sets_of(snap: &Snap<'_>, scope: &Scope, at: usize) -> Result<Vec<SetsOf>, StoreError> {
    let mut statement = snap.prepare_cached(
        "SELECT p.id, p.variant, b.itemset, r.bits, b.bucket, EXISTS(SELECT 1 FROM revision v
           WHERE v.project = p.project AND v.push = p.id AND v.kind = 3 AND v.exact = 1)
         FROM push p JOIN revision r ON r.project = p.project AND r.push = p.id AND r.kind <> 3
         JOIN block b ON b.project = r.project AND b.blockset = r.blockset
         WHERE p.project = ?1 AND p.round = ?2 ORDER BY p.id, r.revision, b.bucket",
    )?;
    let mut rows = statement.query(params![scope.project, scope.rows[at].id])?;
    let mut found: Vec<SetsOf> = Vec::new();
    while let Some(row) = rows.next()? {
        let push: i64 = row.get(0)?;
        let set = SetAt { id: row.get(2)?, bits: row.get(3)?, bucket: row.get(4)? };
        match found.last_mut().filter(|last| last.push == push) {
            Some(last) => last.sets.push(set),
            None => {
                found.push(SetsOf { round: at, push, variant: row.get(1)?, sets: vec![set], exact: row.get(5)? });
            }
        }
    }
    Ok(found)
}

/// Part by part of the order of hashes, so that memory grows with what is found alone.
fn search(snap: &Snap<'_>, scope: &Scope) -> Result<Vec<Unseen>, StoreError> {
    let authoritative = scope.authoritative();
    let unread = unread(snap, scope, &authoritative)?;
    if unread.is_empty() {
        return Ok(Vec::new());
    }
    let headline = resolve::load(snap, scope, &authoritative)?;
    let mut found = BTreeMap::new();
    for part in Part::of(headline.items(), COUNTED_ITEMS) {
        let seen = by_variant(snap, scope, &headline, part)?;
        for push in &unread {
            let variant = variant_of(&push.variant)?;
            let hashes = hashes(snap, scope, push, part)?;
            absent(&hashes, seen.get(&variant).map_or(&[][..], Vec::as_slice), |hash| {
                found.entry((hash, variant.clone())).or_insert((push.round, push.push));
            });
        }
    }
    let list = found.into_iter();
    Ok(list.map(|((hash, variant), (round, push))| Unseen { hash, variant, round, push }).collect())
}

/// Pushes of earlier rounds, latest first, with those of their sets that no later round and not the headline has.
fn unread(snap: &Snap<'_>, scope: &Scope, authoritative: &[usize]) -> Result<Vec<SetsOf>, StoreError> {
    let earlier = earlier(scope);
    let mut done: HashSet<(String, i64)> = HashSet::new();
    if !earlier.is_empty() {
        for at in authoritative {
            for push in sets_of(snap, scope, *at)?.into_iter().filter(|p| !p.exact) {
                done.extend(push.sets.iter().map(|set| (push.variant.clone(), set.id)));
            }
        }
    }
    let mut unread = Vec::new();
    for at in earlier {
        for mut push in sets_of(snap, scope, at)? {
            if !push.exact {
                let variant = push.variant.clone();
                push.sets.retain(|set| done.insert((variant.clone(), set.id)));
            }
            if !push.sets.is_empty() {
                unread.push(push);
            }
        }
    }
    Ok(unread)
}

/// The headline's items, rising, by variant.
fn by_variant(
    snap: &Snap<'_>,
    scope: &Scope,
    headline: &Loaded,
    part: Part,
) -> Result<BTreeMap<Variant, Vec<ItemHash>>, StoreError> {
    let mut found: BTreeMap<Variant, Vec<ItemHash>> = BTreeMap::new();
    for held in resolve::held(snap, scope, headline, part)? {
        let variant = &headline.listing.variants[held.variant as usize];
        match found.get_mut(variant) {
            Some(hashes) => hashes.push(held.hash),
            None => drop(found.insert(variant.clone(), vec![held.hash])),
        }
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

/// Items of a push's sets in a part of the order of hashes: rising runs.
fn hashes(snap: &Snap<'_>, scope: &Scope, push: &SetsOf, part: Part) -> Result<Vec<ItemHash>, StoreError> {
    if push.exact {
        let revisions = rows::revisions(snap, scope.project, push.push)?;
        return Ok(fold(snap, scope.project, &revisions, part)?.hashes);
    }
    let mut hashes = Vec::new();
    let mut statement = snap.prepare_cached("SELECT hashes FROM itemset WHERE id = ?1")?;
    for set in &push.sets {
        let (first, last) = part.buckets(set.bits);
        if (first..=last).contains(&set.bucket) {
            let mut rows = statement.query([set.id])?;
            let row = rows.next()?.ok_or_else(|| broken(format!("set {} is missing", set.id)))?;
            codec::unpack_hashes(blob(row, 0)?, &mut hashes)?;
        }
    }
    if push.sets.iter().any(|set| set.bits < part.bits()) {
        hashes.retain(|hash| part.holds(*hash));
    }
    Ok(hashes)
}
