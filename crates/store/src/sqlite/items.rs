//! Items listings: filter, search, sort, pages. Names and durations are read only where the order needs them.

use std::cmp::Reverse;
use std::sync::Arc;

use domain::listing::{ItemPage, ItemQuery, ItemSort};
use domain::round::RoundChoice;
use domain::{CycleName, ItemHash, ItemName, ProjectId};

use super::connect::broken;
use super::content::{Snap, names, walk};
use super::detail::{by_push, reports, times};
use super::facts::{Missing, scope};
use super::resolve::{Held, Listing, resolve};
use crate::codec::value_of;
use crate::cursor::{ItemCursor, variant_tag};
use crate::{Absent, StoreError};

/// One page of the items of the chosen rounds.
pub(super) fn items(
    snap: &Snap<'_>,
    (project, cycle): (&ProjectId, &CycleName),
    choice: &RoundChoice,
    query: &ItemQuery,
) -> Result<ItemPage, Missing> {
    let scope = scope(snap, project, cycle)?;
    let places = scope.choose(choice)?;
    let listing = resolve(snap, &scope, &places)?;
    let ordered = ordered(snap, &listing, query)?;
    let from = match &query.cursor {
        None => 0,
        Some(text) => after(snap, &listing, &ordered, query.sort, text)?,
    };
    let until = query.limit.map_or(ordered.len(), |limit| ordered.len().min(from + limit.max(1)));
    let page: Vec<Held> = ordered.places[from..until].iter().map(|at| listing.held[*at as usize]).collect();
    let next = match page.last() {
        Some(last) if until < ordered.len() => {
            let key = ordered.key(until - 1);
            let cursor = ItemCursor::new(key, last.hash, &listing.variants[last.variant as usize]);
            Some(cursor.to_text(query.sort))
        }
        _ => None,
    };
    Ok(ItemPage { items: reports(snap, &listing, &page)?, next, total: ordered.len() as u64 })
}

/// What a query matches, in its order.
struct Ordered {
    /// Places in the listing.
    places: Vec<u32>,
    /// Duration value or badness of each, where sorted by it.
    keys: Vec<u64>,
    /// Name of each, where sorted by it.
    names: Vec<Arc<ItemName>>,
}

impl Ordered {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn key(&self, at: usize) -> u64 {
        self.keys.get(at).copied().unwrap_or(0)
    }
}

fn ordered(snap: &Snap<'_>, listing: &Listing, query: &ItemQuery) -> Result<Ordered, StoreError> {
    let fits = |held: &Held| {
        let light = held.verdict.light;
        query.status.is_none_or(|status| light.status == status) && (!query.flaky || light.is_flaky())
    };
    let mut places: Vec<u32> =
        (0..listing.held.len()).filter(|at| fits(&listing.held[*at])).map(|at| at as u32).collect();
    let by_name = query.sort == ItemSort::Name;
    let mut names = if by_name || query.search.is_some() { names_at(snap, listing, &places)? } else { Vec::new() };
    if let Some(search) = &query.search {
        let search = search.to_lowercase();
        let hit: Vec<bool> = names.iter().map(|name| name.to_string().to_lowercase().contains(&search)).collect();
        let mut keep = hit.iter();
        places.retain(|_| keep.next() == Some(&true));
        let mut keep = hit.iter();
        names.retain(|_| keep.next() == Some(&true));
    }
    let mut ordered = Ordered { keys: Vec::new(), names: Vec::new(), places };
    // Places rise by hash and variant, so a stable sort leaves ties in that order.
    match query.sort {
        ItemSort::Name => {
            let mut pairs: Vec<(Arc<ItemName>, u32)> = names.into_iter().zip(ordered.places).collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            (ordered.names, ordered.places) = pairs.into_iter().unzip();
        }
        ItemSort::Duration => {
            let keys = durations_at(snap, listing, &ordered.places)?;
            ordered.sort_by_key(keys);
        }
        ItemSort::Status => {
            let badness = |at: &u32| u64::from(listing.held[*at as usize].verdict.light.status.badness());
            let keys = ordered.places.iter().map(badness).collect();
            ordered.sort_by_key(keys);
        }
    }
    Ok(ordered)
}

impl Ordered {
    /// Highest key first.
    fn sort_by_key(&mut self, keys: Vec<u64>) {
        let mut pairs: Vec<(u64, u32)> = keys.into_iter().zip(std::mem::take(&mut self.places)).collect();
        pairs.sort_by_key(|pair| Reverse(pair.0));
        (self.keys, self.places) = pairs.into_iter().unzip();
    }
}

/// The place after the cursor's item, also where that item is no longer among those that match.
fn after(snap: &Snap<'_>, listing: &Listing, ordered: &Ordered, sort: ItemSort, text: &str) -> Result<usize, Missing> {
    let unknown = || Missing::Absent(Absent::Cursor);
    let cursor = ItemCursor::parse(text, sort).ok_or_else(unknown)?;
    let variant = listing.variants.iter().position(|v| variant_tag(v) == cursor.variant).ok_or_else(unknown)?;
    let tie = (cursor.hash, variant as u32);
    let tie_of = |place: u32| (listing.held[place as usize].hash, listing.held[place as usize].variant);
    if sort != ItemSort::Name {
        let mut keyed = ordered.keys.iter().zip(&ordered.places);
        let until = |(key, place): (&u64, &u32)| (Reverse(*key), tie_of(*place)) > (Reverse(cursor.key), tie);
        return Ok(keyed.position(until).unwrap_or(ordered.len()));
    }
    let at = listing.held.binary_search_by_key(&tie, |held| (held.hash, held.variant)).map_err(|_| unknown())?;
    let name = names_at(snap, listing, &[at as u32])?.pop().ok_or_else(unknown)?;
    let mut named = ordered.names.iter().zip(&ordered.places);
    Ok(named.position(|(n, place)| (n, tie_of(*place)) > (&name, tie)).unwrap_or(ordered.len()))
}

/// Names of the items at these places.
fn names_at(snap: &Snap<'_>, listing: &Listing, places: &[u32]) -> Result<Vec<Arc<ItemName>>, StoreError> {
    let held: Vec<Held> = places.iter().map(|at| listing.held[*at as usize]).collect();
    let mut found: Vec<Option<Arc<ItemName>>> = vec![None; held.len()];
    each_block(snap, listing, &held, &mut |block, at_places, to| {
        names(snap, block.set, at_places, |at, name| found[to[at]] = Some(Arc::new(name)))
    })?;
    found.into_iter().map(|name| name.ok_or_else(|| broken("an item without a name"))).collect()
}

/// Durations (as kept) of the executions that count.
fn durations_at(snap: &Snap<'_>, listing: &Listing, places: &[u32]) -> Result<Vec<u64>, StoreError> {
    let held: Vec<Held> = places.iter().map(|at| listing.held[*at as usize]).collect();
    let mut found = vec![0; held.len()];
    each_block(snap, listing, &held, &mut |block, at_places, to| {
        let times = times(snap, block)?;
        for (at, place) in at_places {
            found[to[*at]] = value_of(times[*place]);
        }
        Ok(())
    })?;
    Ok(found)
}

type EachBlock<'a> =
    dyn FnMut(&super::content::BlockRow, &super::content::Places, &[usize]) -> Result<(), StoreError> + 'a;

/// The blocks of the contents that the items' verdicts came from; `to` leads back to the items.
fn each_block(snap: &Snap<'_>, listing: &Listing, held: &[Held], each: &mut EachBlock<'_>) -> Result<(), StoreError> {
    for (push, of_push) in by_push(held, 0..held.len()) {
        let push = &listing.pushes[push as usize];
        for revision in &push.revisions {
            let places: Vec<usize> =
                of_push.iter().copied().filter(|at| held[*at].verdict.revision == revision.number()).collect();
            if places.is_empty() {
                continue;
            }
            let hashes: Vec<ItemHash> = places.iter().map(|at| held[*at].hash).collect();
            walk(snap, revision.lies(push.row.project), &hashes, &mut |block, at_places| {
                each(block, at_places, &places)
            })?;
        }
    }
    Ok(())
}
