//! Carrying out what was decided on a delivery, in one request or staged: a first content, an overlay, a replay, a
//! refusal. In the writer's transaction. Must not decide.

use domain::protocol::{DifferenceClass, DifferenceSummary, Doubt, Refusal};
use domain::receipt::ItemDifference;
use domain::verdict::RevisionKind;
use domain::{Counts, ItemHash, ItemName, Outcomes, mutant};
use rusqlite::params;

use super::connect::broken;
use super::content::{Snap, names_of};
use super::delivered::Delivered;
use super::known::{KnownPush, RoundOf};
use super::mutants;
use super::points::Tx;
use super::prepare::Prepared;
use super::rows::{self, pack_counts};
use super::waiting;
use super::write::{self, Logged, RevisionColumns, RevisionOf};
use crate::receipts::{self, Parts};
use crate::{Answer, Refused, StoreError};

/// A content as it is given to be linked.
#[derive(Clone, Copy)]
pub(super) enum Blocks<'a> {
    /// To be written now.
    Made(&'a Outcomes, &'a Prepared),
    /// Staged under this number, cut by so many bits.
    Staged(i64, u8),
}

impl Blocks<'_> {
    /// Number and bits of the blocks.
    fn number(self, tx: Tx<'_>, project: i64) -> Result<(i64, u8), StoreError> {
        match self {
            Blocks::Staged(blockset, bits) => Ok((blockset, bits)),
            Blocks::Made(_, prepared) => Ok((write::blockset(tx, project)?, prepared.bits)),
        }
    }

    /// Under this number they lie from now on.
    fn lie(self, tx: Tx<'_>, project: i64, blockset: i64) -> Result<(), StoreError> {
        match self {
            Blocks::Staged(..) => Ok(()),
            Blocks::Made(outcomes, prepared) => write::blocks(tx, (project, blockset), outcomes, prepared),
        }
    }
}

/// A content with how it counts by itself.
pub(super) struct Linked<'a> {
    pub(super) blocks: Blocks<'a>,
    pub(super) counts: Counts,
}

/// Records a first content under its key.
pub(super) fn first(
    tx: Tx<'_>,
    of: &Delivered<'_>,
    (project, round): (Option<i64>, Option<RoundOf>),
    content: &Linked<'_>,
) -> Result<Answer, StoreError> {
    let project = project.map_or_else(|| write::project(tx, &of.place.project), Ok)?;
    write::project_recorded(tx, project)?;
    let round = if let Some(round) = round {
        round
    } else {
        let cycle = write::cycle(tx, project, &of.place.cycle)?;
        RoundOf { id: write::round(tx, (project, cycle), of)?, closed: false }
    };
    let push = write::push(tx, (project, round.id), of, round.closed, &content.counts)?;
    fail::fail_point!("k3");
    let kind = RevisionKind::First;
    let receipt = receipt(of, (1, kind), content.counts, round.closed, None)?;
    let revision = RevisionOf { project, push, number: 1, kind };
    link(tx, of, &revision, content, &receipt)?;
    write::touch_round(tx, round.id, of.origin)?;
    waiting::wait(tx, (of.place, of.key), 1, of.forward)?;
    Ok(answer(receipt, 1, content.counts, None))
}

/// Lays a content over what is recorded. `counts`: how the push counts from now on; `items`: the first that differ.
pub(super) fn overlay(
    tx: Tx<'_>,
    of: &Delivered<'_>,
    known: &KnownPush,
    (kind, summary, counts, items): (RevisionKind, DifferenceSummary, Counts, Vec<ItemDifference>),
    content: &Linked<'_>,
) -> Result<Answer, StoreError> {
    let row = &known.row;
    let number = row.revision + 1;
    let difference = receipts::difference(summary, items);
    let late = write::is_closed(tx, row.round)?;
    let recorded = Delivered { key: &row.key, place: &row.place, ..*of };
    let receipt = receipt(&recorded, (number, kind), counts, late, Some(difference))?;
    let revision = RevisionOf { project: row.project, push: row.id, number, kind };
    link(tx, of, &revision, content, &receipt)?;
    let sql = "UPDATE push SET revision = ?2, counts = ?3, deliveries = deliveries + 1,
               expect = CASE WHEN ?4 IS NULL THEN expect ELSE max(coalesce(expect, 0), ?4) END WHERE id = ?1";
    tx.step("overlay-push", sql)?.run(params![row.id, number, pack_counts(&counts), of.expect])?;
    write::touch_round(tx, row.round, of.origin)?;
    if summary.changes_what_counts(kind) {
        waiting::wait(tx, (&row.place, &row.key), number, of.forward)?;
    }
    Ok(answer(receipt, number, counts, Some(summary.class)))
}

fn receipt(
    of: &Delivered<'_>,
    (revision, kind): (u32, RevisionKind),
    counts: Counts,
    late: bool,
    difference: Option<domain::receipt::Difference>,
) -> Result<Vec<u8>, StoreError> {
    receipts::bytes(Parts {
        place: of.place,
        key: of.key,
        revision,
        kind,
        at: of.at,
        counts,
        report: of.report,
        incomplete: of.incomplete,
        late,
        content: of.content.content,
        difference,
    })
}

fn answer(receipt: Vec<u8>, revision: u32, counts: Counts, class: Option<DifferenceClass>) -> Answer {
    Answer {
        receipt,
        revision,
        current_revision: revision,
        current_counts: counts,
        replayed: false,
        class,
        doubts: Vec::new(),
    }
}

/// The revision with its blocks, the log of its delivery, and who made it.
fn link(
    tx: Tx<'_>,
    of: &Delivered<'_>,
    revision: &RevisionOf,
    content: &Linked<'_>,
    receipt: &[u8],
) -> Result<(), StoreError> {
    let (project, push, number) = (revision.project, revision.push, revision.number);
    let blocks = content.blocks.number(tx, project)?;
    if !mutant!(M2) {
        content.blocks.lie(tx, project, blocks.0)?;
    }
    let columns = RevisionColumns {
        sender: of.sender,
        content: of.content.content,
        outcomes: of.content.outcomes,
        blocks,
        counts: &content.counts,
        files: of.files,
        report: of.report,
        incomplete: of.incomplete,
        at: of.at,
        promotion: None,
        receipt: if mutant!(M16) { &[] } else { receipt },
    };
    write::insert_revision(tx, revision, &columns)?;
    accept(tx, of, (project, push), revision.kind.word(), number)?;
    if mutant!(M2) {
        mutants::commit_early(&tx)?;
        content.blocks.lie(tx, project, blocks.0)?;
    }
    if mutant!(M16) {
        mutants::commit_early(&tx)?;
        mutants::receipt(tx, (project, push, number), receipt)?;
    }
    Ok(())
}

/// Logs an accepted delivery, and who made it.
fn accept(
    tx: Tx<'_>,
    of: &Delivered<'_>,
    (project, push): (i64, i64),
    result: &str,
    revision: u32,
) -> Result<(), StoreError> {
    let logged = Logged {
        project,
        push: Some(push),
        uid: of.uid(),
        body: of.content.body,
        at: of.at,
        result,
        revision: Some(revision),
        sender: of.sender,
    };
    write::log(tx, &logged)?;
    write::executor(tx, (project, push), of.sender)
}

/// Answers with a stored receipt, and logs one more delivery.
pub(super) fn replay(
    tx: Tx<'_>,
    of: &Delivered<'_>,
    known: &KnownPush,
    revision: u32,
    (class, doubts): (DifferenceClass, Vec<Doubt>),
) -> Result<Answer, StoreError> {
    let row = &known.row;
    let receipt = rows::receipt(&tx, row.project, row.id, revision)?
        .ok_or_else(|| broken(format!("push {} has no revision {revision}", row.id)))?;
    accept(tx, of, (row.project, row.id), "replayed", revision)?;
    if known.revisions.iter().any(|r| r.number() == revision && r.known.is_confirmed_later(of.sender)) {
        write::attempt(tx, (row.project, row.id, revision), of.sender)?;
        write::touch_round(tx, row.round, &domain::Origin::default())?;
    }
    let sql = "UPDATE push SET deliveries = deliveries + 1, replays = replays + 1,
               expect = CASE WHEN ?2 IS NULL THEN expect ELSE max(coalesce(expect, 0), ?2) END WHERE id = ?1";
    tx.step("replay-push", sql)?.run(params![row.id, of.expect])?;
    Ok(Answer {
        receipt,
        revision,
        current_revision: row.revision,
        current_counts: row.counts,
        replayed: true,
        class: Some(class),
        doubts,
    })
}

/// The same where the client, not its content, says which revision answers; further than `at_most` it can't differ.
pub(super) fn repeat(
    tx: Tx<'_>,
    of: &Delivered<'_>,
    known: Option<&KnownPush>,
    (revision, at_most): (u32, DifferenceClass),
) -> Result<Answer, StoreError> {
    let known = known.ok_or_else(|| broken("a committed epoch without its push"))?;
    let found = known.revisions.iter().find(|r| r.number() == revision);
    let class = found.map_or(at_most, |found| found.known.class_of(&of.content).min(at_most));
    replay(tx, of, known, revision, (class, Vec::new()))
}

/// Refuses a delivery. `offered` names offered items, as far as that is known.
pub(super) fn refuse(
    (tx, snap): (Tx<'_>, &Snap<'_>),
    of: &Delivered<'_>,
    (project, known): (Option<i64>, Option<&KnownPush>),
    (refusal, contest): (Refusal, bool),
    offered: impl FnOnce(&[ItemHash]) -> Result<Vec<ItemName>, StoreError>,
) -> Result<Refused, StoreError> {
    // Without the project there is nothing that could have refused it, and nothing is logged.
    if let Some(project) = project {
        let logged = Logged {
            project,
            push: known.map(|k| k.row.id),
            uid: of.uid(),
            body: of.content.body,
            at: of.at,
            result: receipts::refusal_word(&refusal),
            revision: None,
            sender: of.sender,
        };
        write::log(tx, &logged)?;
    }
    if let Some(known) = known.filter(|known| contest && !known.row.contested) {
        write::contest(tx, known.row.id)?;
    }
    let hashes = |texts: &[domain::receipt::ItemHashText]| texts.iter().map(|text| text.0).collect::<Vec<_>>();
    let (offered_samples, recorded_samples) = match (&refusal, known) {
        (Refusal::CollidingItems { offered_samples, recorded_samples, .. }, Some(known)) => {
            let recorded = names_of(snap, known.row.project, &known.revisions, &hashes(recorded_samples))?;
            (offered(&hashes(offered_samples))?, recorded.into_iter().flatten().collect())
        }
        _ => (Vec::new(), Vec::new()),
    };
    Ok(Refused { refusal, offered_samples, recorded_samples })
}
