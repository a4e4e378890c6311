//! Pushes: counts against a recount, contents against their digests, receipts against both. Part by part of the order of
//! hashes, so that memory doesn't grow with a content.

use domain::verdict::View;
use domain::{Counts, PushId, Receipt};
use rusqlite::params;

use super::super::content::{Snap, content};
use super::super::parts::{COUNTED_ITEMS, Part};
use super::super::rows::{self, PushRow, RevisionRow};
use super::super::stage;
use super::recount::{self, Counted};
use super::repair::{Mend, Mends};
use super::{Report, stages};
use crate::receipts::result_of;
use crate::{StoreError, codec};

/// Checks every push; gives the counts that can be made anew.
pub(super) fn check(snap: &Snap<'_>, report: &mut Report) -> Result<Mends, StoreError> {
    let ids: Vec<i64> =
        snap.prepare("SELECT id FROM push ORDER BY id")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let mut mends = Mends::default();
    for id in ids {
        let checked = rows::pushes(snap, "p.id = ?1", [id])
            .and_then(|rows| rows.iter().try_for_each(|row| push(snap, row, report, &mut mends)));
        report.part(&format!("push {id}"), checked)?;
    }
    Ok(mends)
}

fn push(snap: &Snap<'_>, row: &PushRow, report: &mut Report, mends: &mut Mends) -> Result<(), StoreError> {
    let place = format!("push {}", row.id);
    if PushId::of(&row.place.project, &row.key) != row.uid {
        report.add("uid-differs", place.clone(), "its id is not that of its project and key");
    }
    let all = rows::revisions(snap, row.project, row.id)?;
    let mut revisions = Vec::with_capacity(all.len());
    for revision in all.iter().cloned() {
        if is_of_content(row, &revision, &all, report) {
            revisions.push(revision);
        }
    }
    let mut sound = revisions.len() == all.len();
    let after = fold(snap, row.project, &revisions)?;
    for (revision, counts) in revisions.iter().zip(&after) {
        let place = format!("push {} revision {}", row.id, revision.number());
        if !revision.is_promotion() {
            sound &= of_content(snap, row, revision, (&place, report, &mut *mends))?;
        }
        receipt(snap, row, revision, counts, (&place, report))?;
    }
    let recount = after.last().copied().unwrap_or_default();
    if recount != row.counts {
        report.add("counts-differ", place.clone(), format!("it says {:?}, a recount says {recount:?}", row.counts));
        if sound {
            mends.push(Mend::push(row.id, row.revision, &row.counts, &recount));
        }
    }
    Ok(())
}

/// True if a revision leads to a content: its own, or that of an earlier revision that it promotes.
fn is_of_content(row: &PushRow, revision: &RevisionRow, all: &[RevisionRow], report: &mut Report) -> bool {
    let place = format!("push {} revision {}", row.id, revision.number());
    let source = all.iter().find(|r| r.number() == revision.source() && !r.is_promotion());
    let Some(source) = source.filter(|s| s.number() <= revision.number()) else {
        report.add("promotion-of-nothing", place, format!("revision {} is no content", revision.source()));
        return false;
    };
    if (revision.known.content, revision.known.outcomes) != (source.known.content, source.known.outcomes) {
        report.add("digest-differs", place.clone(), "a promotion has other digests than what it promotes");
    }
    if (revision.blockset, revision.bits) != (source.blockset, source.bits) {
        report.add("blockset-differs", place, "a promotion has other blocks than what it promotes");
        return false;
    }
    true
}

/// How the push counts after each of its revisions.
fn fold(snap: &Snap<'_>, project: i64, revisions: &[RevisionRow]) -> Result<Vec<Counts>, StoreError> {
    let mut most = 0;
    for revision in revisions {
        most = most.max(recount::items(snap, revision.lies(project))?);
    }
    let mut after = vec![Counts::default(); revisions.len()];
    for part in Part::of(most, COUNTED_ITEMS) {
        let mut view = View::default();
        for (revision, counts) in revisions.iter().zip(&mut after) {
            let offered = content(snap, revision.lies(project), part)?;
            view = view.laid_over(revision.known.kind, revision.number(), &offered.hashes, &offered.lights);
            *counts += view.counts();
        }
    }
    Ok(after)
}

/// Checks one content; true if it is what its digests say.
fn of_content(
    snap: &Snap<'_>,
    row: &PushRow,
    revision: &RevisionRow,
    (place, report, mends): (&str, &mut Report, &mut Mends),
) -> Result<bool, StoreError> {
    let lies = revision.lies(row.project);
    let total = recount::items(snap, lies)?;
    let linked = stage::all(snap, "project = ?1 AND blockset = ?2", params![row.project, revision.blockset])?.pop();
    let least = linked.as_ref().map_or(0, |stage| stage.bits);
    let bits = codec::bits_for(total as usize).max(least);
    if bits != revision.bits {
        report.add("bits-differ", place, format!("{} bits for {total} items", revision.bits));
    }
    let chunks = recount::chunks(snap, lies, total, least, (place, report))?;
    let Counted { counts, digests, .. } = recount::together(&chunks);
    let sound = (digests.content, digests.outcomes) == (revision.known.content, revision.known.outcomes);
    if !sound && revision.tree_digests {
        report.add("digest-differs", place, "the content that its blocks hold has another digest");
    }
    if counts != revision.counts {
        report.add("counts-differ", place, format!("it says {:?}, a recount says {counts:?}", revision.counts));
        if sound {
            mends.push(Mend::revision((row.project, row.id, revision.number()), &revision.counts, &counts));
        }
    }
    if let Some(stage) = linked {
        stages::committed(snap, &stage, &chunks, report)?;
    }
    Ok(sound)
}

fn receipt(
    snap: &Snap<'_>,
    row: &PushRow,
    revision: &RevisionRow,
    counts: &Counts,
    (place, report): (&str, &mut Report),
) -> Result<(), StoreError> {
    let bytes: Vec<u8> = snap
        .prepare_cached("SELECT receipt FROM revision WHERE project = ?1 AND push = ?2 AND revision = ?3")?
        .query_row(params![row.project, row.id, revision.number()], |r| r.get(0))?;
    let receipt: Receipt = match serde_json::from_slice(&bytes) {
        Ok(receipt) => receipt,
        Err(error) => {
            report.add("receipt-unreadable", place, error.to_string());
            return Ok(());
        }
    };
    let mut differs = Vec::new();
    let mut agree = |what: &'static str, same: bool| {
        if !same {
            differs.push(what);
        }
    };
    let of = &row.place;
    agree("key", receipt.key == row.key && receipt.push == row.uid);
    let place_of = (&receipt.project, &receipt.cycle, &receipt.round, &receipt.job, receipt.shard, &receipt.variant);
    agree("place", place_of == (&of.project, &of.cycle, &of.round, &of.job, of.shard, &of.variant));
    agree("revision", receipt.revision == revision.number() && receipt.result == result_of(revision.known.kind));
    agree("counts", receipt.counts == *counts);
    agree("content", receipt.content == revision.known.content);
    agree("report", receipt.report == revision.report && receipt.incomplete == revision.incomplete);
    agree("time", receipt.recorded_at == revision.recorded_at);
    if !differs.is_empty() {
        report.add("receipt-differs", place, format!("its receipt says otherwise: {}", differs.join(", ")));
    }
    Ok(())
}
