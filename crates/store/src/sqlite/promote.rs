//! A person's decision that a revision's verdicts count, in the writer's transaction.

use domain::compare::{Comparison, Listed, listed};
use domain::forwarding::ForwardRule;
use domain::protocol::Known;
use domain::verdict::RevisionKind;
use domain::{Counts, Receipt, limits};
use rusqlite::{Connection, OptionalExtension, params};

use super::connect::broken;
use super::content::{Snap, content, fold, names_of};
use super::known::{KnownPush, known};
use super::parts::{COUNTED_ITEMS, Part};
use super::points::{Op, Tx};
use super::rows::{self, RevisionRow, pack_counts};
use super::waiting::{self, Forward};
use super::write::{self, Logged, RevisionColumns, RevisionOf};
use crate::receipts::{self, Parts};
use crate::{Answer, Now, Promoted, Promotion, RecordedAt, StoreError};

/// Runs one promotion.
pub(super) fn promote(
    connection: &Connection,
    promotion: &Promotion,
    now: &Now,
    rules: &[ForwardRule],
) -> Result<Promoted, StoreError> {
    let (tx, snap) = (Tx::of(connection, Op::PROMOTE), Snap::over(connection));
    let Some(project) = rows::project_id(connection, promotion.project.as_str())? else {
        return Ok(Promoted::UnknownPush);
    };
    let Some(row) = rows::push_by_uid(connection, project, promotion.push)? else { return Ok(Promoted::UnknownPush) };
    let known = known(&snap, row, None)?;
    if let Some(answer) = earlier(connection, promotion, &known)? {
        return Ok(answer);
    }
    let Some(of) = choose(promotion.revision, &known.revisions) else {
        let revisions = known.revisions.iter().filter(|r| !r.is_promotion()).map(RevisionRow::number).collect();
        return Ok(Promoted::UnknownRevision { revisions });
    };
    if let Some(wanted) = &promotion.if_match {
        let etag = newest_etag(connection, &known)?;
        if etag != *wanted {
            return Ok(Promoted::Mismatch { etag });
        }
    }
    let answer = carry_out((tx, &snap), promotion, &now.at, &known, of)?;
    let forward = Forward { rules, now_ms: now.ms };
    waiting::wait(tx, (&known.row.place, &known.row.key), answer.revision, forward)?;
    Ok(Promoted::Accepted(answer))
}

/// Push, revision, the revision asked for, exact, receipt.
type Earlier = (i64, u32, Option<u32>, bool, Vec<u8>);

/// The same promotion again, or its key under another one.
fn earlier(connection: &Connection, promotion: &Promotion, known: &KnownPush) -> Result<Option<Promoted>, StoreError> {
    let row = &known.row;
    let found: Option<Earlier> = connection
        .prepare_cached(
            "SELECT push, revision, promotion_asked, exact, receipt FROM revision
             WHERE project = ?1 AND promotion_key = ?2",
        )?
        .query_row(params![row.project, promotion.key.as_str()], |r| {
            Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?))
        })
        .optional()?;
    let Some((push, revision, asked, exact, receipt)) = found else { return Ok(None) };
    if (push, asked, exact) != (row.id, promotion.revision, promotion.exact) {
        return Ok(Some(Promoted::KeyReused));
    }
    Ok(Some(Promoted::Accepted(Answer {
        receipt,
        revision,
        current_revision: row.revision,
        current_counts: row.counts,
        replayed: true,
        class: None,
        doubts: Vec::new(),
    })))
}

/// The revision asked for; else the latest that is kept, else the latest.
fn choose(asked: Option<u32>, revisions: &[RevisionRow]) -> Option<&RevisionRow> {
    let mut contents = revisions.iter().filter(|r| !r.is_promotion());
    if let Some(number) = asked {
        return contents.find(|r| r.number() == number);
    }
    let kept = contents.clone().rfind(|r| r.known.kind == RevisionKind::Kept);
    kept.or_else(|| contents.next_back())
}

fn newest_etag(connection: &Connection, known: &KnownPush) -> Result<String, StoreError> {
    let row = &known.row;
    let receipt = rows::receipt(connection, row.project, row.id, row.revision)?
        .ok_or_else(|| broken(format!("push {} has no newest receipt", row.id)))?;
    Ok(Receipt::etag(row.revision, &receipt))
}

/// What a promotion comes to, part by part of the order of hashes.
#[derive(Default)]
struct Effect {
    counts: Counts,
    comparison: Comparison,
    listed: Vec<Listed>,
}

fn effect(snap: &Snap<'_>, known: &KnownPush, of: &RevisionRow, kind: RevisionKind) -> Result<Effect, StoreError> {
    let row = &known.row;
    let mut effect = Effect::default();
    for part in Part::of(row.counts.total.max(of.counts.total), COUNTED_ITEMS) {
        let before = fold(snap, row.project, &known.revisions, part)?;
        let offered = content(snap, of.lies(row.project), part)?;
        let after = before.laid_over(kind, row.revision + 1, &offered.hashes, &offered.lights);
        for verdict in after.verdicts {
            effect.counts.add(verdict.light.status, verdict.light.is_flaky());
        }
        effect.comparison += Comparison::of(&before, &offered.hashes, &offered.lights);
        if effect.listed.len() < limits::DIFFERENCE_ITEMS_MAX {
            effect.listed.extend(listed(&before, &offered.hashes, &offered.lights));
            effect.listed.truncate(limits::DIFFERENCE_ITEMS_MAX);
        }
    }
    Ok(effect)
}

fn carry_out(
    (tx, snap): (Tx<'_>, &Snap<'_>),
    promotion: &Promotion,
    at: &RecordedAt,
    known: &KnownPush,
    of: &RevisionRow,
) -> Result<Answer, StoreError> {
    let row = &known.row;
    let kind = RevisionKind::Promoted { of: of.number(), exact: promotion.exact };
    let number = row.revision + 1;
    let Effect { counts, comparison, listed } = effect(snap, known, of, kind)?;
    let wanted: Vec<_> = listed.iter().map(|(hash, _, _)| *hash).collect();
    let mut names = names_of(snap, row.project, &known.revisions, &wanted)?.into_iter();
    let items = receipts::named(listed, |_| names.next().flatten().ok_or_else(|| broken("an item without a name")))?;
    let difference = receipts::difference(receipts::promotion_difference(&comparison), items);
    let receipt = receipts::bytes(Parts {
        place: &row.place,
        key: &row.key,
        revision: number,
        kind,
        at,
        counts,
        report: of.report,
        incomplete: of.incomplete,
        late: write::is_closed(tx, row.round)?,
        content: of.known.content,
        difference: Some(difference),
    })?;
    store(tx, promotion, at, (&known.known, known, of, kind), &receipt)?;
    let sql = "UPDATE push SET revision = ?2, counts = ?3 WHERE id = ?1";
    tx.step("promote-push", sql)?.run(params![row.id, number, pack_counts(&counts)])?;
    write::touch_round(tx, row.round, &domain::Origin::default())?;
    Ok(Answer {
        receipt,
        revision: number,
        current_revision: number,
        current_counts: counts,
        replayed: false,
        class: None,
        doubts: Vec::new(),
    })
}

fn store(
    tx: Tx<'_>,
    promotion: &Promotion,
    at: &RecordedAt,
    (facts, known, of, kind): (&Known, &KnownPush, &RevisionRow, RevisionKind),
    receipt: &[u8],
) -> Result<(), StoreError> {
    let row = &known.row;
    let number = row.revision + 1;
    let columns = RevisionColumns {
        sender: &facts.promotion_sender(),
        content: of.known.content,
        outcomes: of.known.outcomes,
        blocks: (of.blockset, of.bits),
        counts: &of.counts,
        files: &of.known.files,
        report: of.report,
        incomplete: of.incomplete,
        at,
        promotion: Some((promotion.key.as_str(), promotion.revision)),
        receipt,
    };
    write::insert_revision(tx, &RevisionOf { project: row.project, push: row.id, number, kind }, &columns)?;
    let nobody = domain::Sender::default();
    let logged = Logged {
        project: row.project,
        push: Some(row.id),
        uid: row.uid,
        body: None,
        at,
        result: kind.word(),
        revision: Some(number),
        sender: &nobody,
    };
    write::log(tx, &logged)
}
