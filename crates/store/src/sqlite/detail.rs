//! Single items with names, durations, texts and attempts: what listings show of the few that they show.

use std::collections::BTreeMap;

use domain::listing::ItemReport;
use domain::receipt::ItemHashText;
use domain::verdict::RevisionKind;
use domain::{Attempt, Digest, DurationUs, ItemHash, ItemName, Outcome};
use rusqlite::OptionalExtension;

use super::connect::broken;
use super::content::{BlockRow, Lies, Places, Snap, blob, large_text, names, walk};
use super::resolve::{Held, Listing, LoadedPush};
use super::rows::RevisionRow;
use crate::StoreError;
use crate::codec::{self, HAS_TEXT, Texts};

/// Reports of these items, in the order given.
pub(super) fn reports(snap: &Snap<'_>, listing: &Listing, held: &[Held]) -> Result<Vec<ItemReport>, StoreError> {
    let mut reports: Vec<Option<ItemReport>> = Vec::new();
    reports.resize_with(held.len(), || None);
    for (push, places) in by_push(held, 0..held.len()) {
        let push = &listing.pushes[push as usize];
        let hashes: Vec<ItemHash> = places.iter().map(|at| held[*at].hash).collect();
        for (at, outcome) in places.iter().zip(outcomes(snap, push, &hashes)?) {
            reports[*at] = Some(report(push, &held[*at], outcome));
        }
    }
    Ok(reports.into_iter().flatten().collect())
}

/// Places of items by their push, rising by hash within it.
pub(super) fn by_push(held: &[Held], places: impl IntoIterator<Item = usize>) -> BTreeMap<u32, Vec<usize>> {
    let mut found: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for at in places {
        found.entry(held[at].push).or_default().push(at);
    }
    for places in found.values_mut() {
        places.sort_by_key(|at| held[*at].hash);
    }
    found
}

fn report(push: &LoadedPush, held: &Held, outcome: Outcome) -> ItemReport {
    let light = held.verdict.light;
    ItemReport {
        hash: ItemHashText(held.hash),
        item: outcome.item,
        variant: push.row.place.variant.clone(),
        status: light.status,
        flaky: light.is_flaky(),
        duration_ms: outcome.duration_us.map(DurationUs::as_ms),
        message: outcome.message,
        attempts: outcome.attempts,
        external_ids: outcome.external_ids,
        round: push.row.place.round.clone(),
        key: push.row.key.clone(),
        pushes: held.pushes,
    }
}

/// What these items (rising hashes) did in a push: the execution that counts, and every earlier one as an attempt.
fn outcomes(snap: &Snap<'_>, push: &LoadedPush, hashes: &[ItemHash]) -> Result<Vec<Outcome>, StoreError> {
    let composed = |(mut last, earlier): (Outcome, Vec<Outcome>)| {
        let mut attempts = Vec::new();
        for outcome in earlier {
            let itself = outcome.as_attempt();
            attempts.extend(outcome.attempts);
            attempts.push(itself);
        }
        last.prepend_attempts(attempts);
        last
    };
    Ok(executions(snap, push, hashes)?.into_iter().map(composed).collect())
}

/// The execution of each of these items (rising hashes) that counts in a push, as its own report told it.
pub(super) fn counting(snap: &Snap<'_>, push: &LoadedPush, hashes: &[ItemHash]) -> Result<Vec<Outcome>, StoreError> {
    Ok(executions(snap, push, hashes)?.into_iter().map(|(last, _)| last).collect())
}

/// Each item's execution that counts, and the earlier ones, oldest first.
fn executions(
    snap: &Snap<'_>,
    push: &LoadedPush,
    hashes: &[ItemHash],
) -> Result<Vec<(Outcome, Vec<Outcome>)>, StoreError> {
    let mut executions: Vec<BTreeMap<u32, Outcome>> = vec![BTreeMap::new(); hashes.len()];
    for revision in push.revisions.iter().filter(|r| !r.is_promotion()) {
        let number = revision.number();
        walk(snap, revision.lies(push.row.project), hashes, &mut |block, places| {
            read(snap, push.row.project, block, places, &mut |at, outcome| {
                executions[at].insert(number, outcome);
            })
        })?;
    }
    let compose = |(hash, mut of): (&ItemHash, BTreeMap<u32, Outcome>)| {
        let line = line(&push.revisions, |revision| of.contains_key(&revision));
        let mut ran: Vec<Outcome> = line.iter().filter_map(|revision| of.remove(revision)).collect();
        let last = ran.pop().ok_or_else(|| broken(format!("item {hash} counts without content")))?;
        Ok((last, ran))
    };
    hashes.iter().zip(executions).map(compose).collect()
}

/// Whole outcomes of these items (rising hashes) of one content, in that order.
pub(super) fn contents(snap: &Snap<'_>, lies: Lies, hashes: &[ItemHash]) -> Result<Vec<Outcome>, StoreError> {
    let mut found: Vec<Option<Outcome>> = vec![None; hashes.len()];
    walk(snap, lies, hashes, &mut |block, places| {
        read(snap, lies.0, block, places, &mut |at, outcome| found[at] = Some(outcome))
    })?;
    found.into_iter().map(|outcome| outcome.ok_or_else(|| broken("a block lost an item"))).collect()
}

/// The revisions whose executions of an item count, oldest first, the verdict last: as `View::laid_over` has it.
fn line(revisions: &[RevisionRow], holds: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut line: Vec<u32> = Vec::new();
    for revision in revisions {
        let source = revision.source();
        match (revision.known.kind, holds(source)) {
            (RevisionKind::Promoted { exact: true, .. }, held) => {
                line.clear();
                line.extend(held.then_some(source));
            }
            (_, false) => {}
            (RevisionKind::Kept, true) if !line.is_empty() => {}
            (_, true) => {
                line.retain(|earlier| *earlier != source);
                line.push(source);
            }
        }
    }
    line
}

/// Whole outcomes at these places of a block.
fn read(
    snap: &Snap<'_>,
    project: i64,
    block: &BlockRow,
    places: &Places,
    each: &mut dyn FnMut(usize, Outcome),
) -> Result<(), StoreError> {
    let times = times(snap, block)?;
    let mut texts = texts(snap, project, block, places)?;
    let mut named: BTreeMap<usize, ItemName> = BTreeMap::new();
    names(snap, block.set, places, |at, name| {
        named.insert(at, name);
    })?;
    for (at, place) in places {
        let Texts { message, attempts, external_ids } = texts.remove(place).unwrap_or_default();
        let attempts: Vec<Attempt> = attempts;
        each(
            *at,
            Outcome {
                item: named.remove(at).ok_or_else(|| broken(format!("set {} has too few names", block.set)))?,
                status: codec::light_of(block.codes[*place])?.status,
                duration_us: times[*place],
                message,
                attempts,
                external_ids,
            },
        );
    }
    Ok(())
}

/// Durations of a block.
pub(super) fn times(snap: &Snap<'_>, block: &BlockRow) -> Result<Vec<Option<DurationUs>>, StoreError> {
    let mut statement = snap.prepare_cached("SELECT times FROM block WHERE id = ?1")?;
    let mut rows = statement.query([block.id])?;
    let row = rows.next()?.ok_or_else(|| broken(format!("block {} is missing", block.id)))?;
    Ok(codec::unpack_times(blob(row, 0)?, block.n, &mut snap.unpacker())?)
}

fn texts(
    snap: &Snap<'_>,
    project: i64,
    block: &BlockRow,
    places: &Places,
) -> Result<BTreeMap<usize, Texts>, StoreError> {
    let mut found = BTreeMap::new();
    if places.iter().all(|(_, place)| block.codes[*place] & HAS_TEXT == 0) {
        return Ok(found);
    }
    let mut wanted: Vec<usize> = places.iter().map(|(_, place)| *place).collect();
    wanted.sort_unstable();
    let body: Option<Vec<u8>> = snap
        .prepare_cached("SELECT body FROM blocktext WHERE id = ?1")?
        .query_row([block.id], |row| row.get(0))
        .optional()?;
    let body = body.ok_or_else(|| broken(format!("block {} has lost its texts", block.id)))?;
    codec::unpack_texts(
        &body,
        &block.codes,
        &mut snap.unpacker(),
        &mut |digest: Digest| large_text(snap, project, digest),
        &mut |place| wanted.binary_search(&place).is_ok(),
        &mut |place, texts| {
            found.insert(place, texts);
        },
    )?;
    Ok(found)
}
