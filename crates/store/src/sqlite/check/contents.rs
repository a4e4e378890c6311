//! Pushes: counts against a recount, contents against their digests, receipts against both.

use domain::verdict::View;
use domain::{Counts, Outcome, Outcomes, PushId, Receipt};
use rusqlite::params;

use super::super::content::{Content, Snap, content};
use super::super::detail;
use super::super::rows::{self, PushRow, RevisionRow};
use super::Report;
use crate::receipts::result_of;
use crate::{StoreError, codec};

/// Checks every push.
pub(super) fn check(snap: &Snap<'_>, report: &mut Report) -> Result<(), StoreError> {
    let ids: Vec<i64> =
        snap.prepare("SELECT id FROM push ORDER BY id")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in ids {
        let checked = rows::pushes(snap, "p.id = ?1", [id])
            .and_then(|rows| rows.iter().try_for_each(|row| push(snap, row, report)));
        report.part(&format!("push {id}"), checked)?;
    }
    Ok(())
}

fn push(snap: &Snap<'_>, row: &PushRow, report: &mut Report) -> Result<(), StoreError> {
    let place = format!("push {}", row.id);
    if PushId::of(&row.place.project, &row.key) != row.uid {
        report.add("uid-differs", place.clone(), "its id is not that of its project and key");
    }
    let revisions = rows::revisions(snap, row.project, row.id)?;
    let mut view = View::default();
    for revision in &revisions {
        let place = format!("push {} revision {}", row.id, revision.number());
        let source = revisions.iter().find(|r| r.number() == revision.source() && !r.is_promotion());
        let Some(source) = source.filter(|s| s.number() <= revision.number()) else {
            report.add("promotion-of-nothing", place, format!("revision {} is no content", revision.source()));
            continue;
        };
        let offered = content(snap, row.project, row.id, source.number())?;
        if !offered.hashes.is_sorted_by(|a, b| a < b) {
            report.add("double-item", place.clone(), "its items are not strictly rising over its blocks");
        }
        view = view.laid_over(revision.known.kind, revision.number(), &offered.hashes, &offered.lights);
        if revision.is_promotion() {
            if (revision.known.content, revision.known.outcomes) != (source.known.content, source.known.outcomes) {
                report.add("digest-differs", place.clone(), "a promotion has other digests than what it promotes");
            }
        } else {
            digests(snap, row, revision, &offered, (&place, report))?;
        }
        receipt(snap, row, revision, &view.counts(), (&place, report))?;
    }
    let recount = view.counts();
    if recount != row.counts {
        report.add("counts-differ", place, format!("it says {:?}, a recount says {recount:?}", row.counts));
    }
    Ok(())
}

fn digests(
    snap: &Snap<'_>,
    row: &PushRow,
    revision: &RevisionRow,
    offered: &Content,
    (place, report): (&str, &mut Report),
) -> Result<(), StoreError> {
    if codec::bits_for(offered.hashes.len()) != revision.bits {
        report.add("bits-differ", place, format!("{} bits for {} items", revision.bits, offered.hashes.len()));
    }
    let outcomes: Vec<Outcome> = detail::contents(snap, row, revision, &offered.hashes)?;
    let lights = outcomes.iter().map(domain::verdict::Light::of);
    if !lights.eq(offered.lights.iter().copied()) {
        report.add("codes-differ", place, "a verdict code says otherwise than the attempts beside it");
    }
    let counts: Counts = outcomes.iter().collect();
    if counts != revision.counts {
        report.add("counts-differ", place, format!("it says {:?}, a recount says {counts:?}", revision.counts));
    }
    match Outcomes::from_unordered(outcomes) {
        Err(doubled) => report.add("double-item", place, doubled.to_string()),
        Ok(outcomes) => {
            let made = (outcomes.content_digest(), outcomes.outcome_digest());
            if made != (revision.known.content, revision.known.outcomes) {
                report.add("digest-differs", place, "the content that its blocks hold has another digest");
            }
        }
    }
    Ok(())
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
