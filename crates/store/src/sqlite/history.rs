//! What one item did in every round: from the sets that hold it to the blocks that point to them.

use std::collections::BTreeMap;

use domain::listing::HistoryEntry;
use domain::round::listing_order;
use domain::verdict::View;
use domain::{CycleName, ItemHash, ProjectId, Variant};
use rusqlite::params;

use super::content::{Snap, blob, walk};
use super::detail::reports;
use super::facts::{Missing, project, scope};
use super::resolve::{self, Held, Listing, LoadedPush};
use super::rows;
use crate::{Absent, StoreError, codec};

/// The history of an item, oldest round first.
pub(super) fn history(
    snap: &Snap<'_>,
    name: &ProjectId,
    cycle: Option<&CycleName>,
    item: ItemHash,
) -> Result<Vec<HistoryEntry>, Missing> {
    let project = project(snap, name)?;
    let order: Option<Vec<i64>> = match cycle {
        None => None,
        Some(cycle) => {
            let scope = scope(snap, name, cycle)?;
            Some(listing_order(&scope.facts).into_iter().map(|at| scope.rows[at].id).collect())
        }
    };
    let mut rounds: BTreeMap<(usize, i64, Variant), Vec<LoadedPush>> = BTreeMap::new();
    for id in pushes_with(snap, project, item)? {
        let Some(row) = rows::pushes(snap, "p.id = ?1", [id])?.pop() else { continue };
        let place = match &order {
            None => Some(0),
            Some(order) => order.iter().position(|round| *round == row.round),
        };
        if let Some(place) = place {
            let key = (place, row.round, row.place.variant.clone());
            let revisions = rows::revisions(snap, project, id)?;
            rounds.entry(key).or_default().push(LoadedPush { row, revisions });
        }
    }
    let mut listing = Listing::default();
    for (_, pushes) in rounds {
        if let Some(held) = compete(snap, &mut listing, pushes, item)? {
            listing.held.push(held);
        }
    }
    if listing.held.is_empty() {
        return Err(Absent::Item.into());
    }
    let reports = reports(snap, &listing, &listing.held)?;
    let cycle_of = |held: &Held| listing.pushes[held.push as usize].row.place.cycle.clone();
    let entries = listing.held.iter().zip(reports);
    Ok(entries.map(|(held, outcome)| HistoryEntry { cycle: cycle_of(held), outcome }).collect())
}

/// Pushes whose contents hold the item, in the order of recording.
fn pushes_with(snap: &Snap<'_>, project: i64, item: ItemHash) -> Result<Vec<i64>, StoreError> {
    let mut sets = Vec::new();
    let mut bits: Option<u8> = None;
    let mut next = snap.prepare_cached("SELECT min(bits) FROM itemset WHERE project = ?1 AND bits > ?2")?;
    let mut in_bucket =
        snap.prepare_cached("SELECT id, hashes FROM itemset WHERE project = ?1 AND bits = ?2 AND bucket = ?3")?;
    loop {
        let after = bits.map_or(-1, i64::from);
        bits = next.query_row(params![project, after], |row| row.get(0))?;
        let Some(bits) = bits else { break };
        let mut rows = in_bucket.query(params![project, bits, codec::bucket_of(item, bits)])?;
        while let Some(row) = rows.next()? {
            if codec::find_hash(blob(row, 1)?, item).is_some() {
                sets.push(row.get::<_, i64>(0)?);
            }
        }
    }
    let mut pushes = Vec::new();
    let mut blocks = snap.prepare_cached(
        "SELECT r.push FROM block b JOIN revision r ON r.project = b.project AND r.blockset = b.blockset
         WHERE b.project = ?1 AND b.itemset = ?2",
    )?;
    for set in sets {
        let mut rows = blocks.query(params![project, set])?;
        while let Some(row) = rows.next()? {
            pushes.push(row.get(0)?);
        }
    }
    pushes.sort_unstable();
    pushes.dedup();
    Ok(pushes)
}

/// What counts of the item among pushes of one round and variant.
fn compete(
    snap: &Snap<'_>,
    listing: &mut Listing,
    pushes: Vec<LoadedPush>,
    item: ItemHash,
) -> Result<Option<Held>, StoreError> {
    let mut same = Vec::new();
    for push in pushes {
        let view = view_of(snap, &push, item)?;
        let Some(verdict) = view.get(item) else { continue };
        same.push(Held { hash: item, variant: 0, push: listing.pushes.len() as u32, pushes: 1, verdict });
        listing.pushes.push(push);
    }
    Ok(resolve::compete(&listing.pushes, &same))
}

/// The view of a push on one item alone.
fn view_of(snap: &Snap<'_>, push: &LoadedPush, item: ItemHash) -> Result<View, StoreError> {
    let mut view = View::default();
    for revision in &push.revisions {
        let (mut hashes, mut lights) = (Vec::new(), Vec::new());
        walk(snap, revision.lies(push.row.project), &[item], &mut |block, places| {
            for (_, place) in places {
                hashes.push(item);
                lights.push(codec::light_of(block.codes[*place])?);
            }
            Ok(())
        })?;
        view = view.laid_over(revision.known.kind, revision.number(), &hashes, &lights);
    }
    Ok(view)
}
