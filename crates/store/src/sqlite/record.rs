//! One delivery, in the writer's transaction: read what is known, let the domain decide, carry the decision out.
//! Must not decide.

use std::sync::Arc;

use domain::protocol::{Decision, DifferenceSummary, Doubt, Refusal, decide};
use domain::verdict::{Light, RevisionKind, View};
use domain::{ItemName, Push, PushId, Sender};
use rusqlite::{Connection, OptionalExtension, params};

use super::content::{Snap, names_of};
use super::known::{self, KnownPush, Lookups};
use super::prepare::Prepared;
use super::rows::{self, pack_counts};
use super::write::{self, RevisionOf};
use crate::receipts::{self, Parts};
use crate::{Answer, Recorded, RecordedAt, StoreError};

/// What came of running a delivery.
pub(super) enum Step {
    /// It is carried out.
    Done(Recorded),
    /// It is to be recorded, and its blocks are not made yet. Nothing is written.
    NeedsBlocks,
}

/// A delivery on its way through the writer.
pub(super) struct Delivery {
    pub(super) push: Arc<Push>,
    pub(super) at: RecordedAt,
    pub(super) prepared: Option<Arc<Prepared>>,
}

/// The round as the store has it.
struct Round {
    project: i64,
    id: i64,
    closed: bool,
}

/// Runs one delivery.
pub(super) fn record(connection: &Connection, delivery: &Delivery) -> Result<Step, StoreError> {
    let snap = Snap::over(connection);
    let push = &*delivery.push;
    let uid = PushId::of(&push.place.project, &push.key);
    let project = rows::project_id(connection, push.place.project.as_str())?;
    let round = project.map(|p| find_round(connection, p, push)).transpose()?.flatten();
    let row = project.map(|p| rows::push_by_uid(connection, p, uid)).transpose()?.flatten();
    let known = row.map(|row| known::known(&snap, row, push.content.body)).transpose()?;
    let tombstoned = project.map(|p| is_tombstoned(connection, p, uid)).transpose()?.unwrap_or(false);
    let mut lookups =
        Lookups { snap: &snap, push, project, round: round.as_ref().map(|r| r.id), known: known.as_ref() };
    let decision = decide(push, known.as_ref().map(|k| &k.known), tombstoned, &mut lookups)?;
    match (decision, known) {
        (Decision::Record, _) => first(connection, delivery, project, round),
        (Decision::Replay { revision, class, doubts }, Some(known)) => {
            let answer = replay(connection, delivery, &known, revision, (class, doubts))?;
            Ok(Step::Done(Recorded::Accepted(answer)))
        }
        (Decision::Overlay { kind, difference, before }, Some(known)) => {
            overlay(connection, delivery, &known, (kind, difference, before))
        }
        (Decision::Refuse { refusal, contest }, known) => {
            refuse(&snap, delivery, (uid, project, known.as_ref()), refusal, contest).map(Step::Done)
        }
        _ => Err(super::connect::broken("a decision on a push that is not recorded")),
    }
}

fn find_round(connection: &Connection, project: i64, push: &Push) -> Result<Option<Round>, StoreError> {
    let sql = "SELECT r.id, r.closed FROM round r JOIN cycle c ON c.id = r.cycle
               WHERE c.project = ?1 AND c.name = ?2 AND r.project = ?1 AND r.round = ?3";
    let values = params![project, push.place.cycle.as_str(), push.place.round.as_str()];
    Ok(connection
        .prepare_cached(sql)?
        .query_row(values, |row| Ok(Round { project, id: row.get(0)?, closed: row.get(1)? }))
        .optional()?)
}

fn is_tombstoned(connection: &Connection, project: i64, uid: PushId) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM tombstone WHERE project = ?1 AND uid = ?2")?;
    Ok(statement.exists(params![project, uid.0])?)
}

fn first(
    connection: &Connection,
    delivery: &Delivery,
    project: Option<i64>,
    round: Option<Round>,
) -> Result<Step, StoreError> {
    let Some(prepared) = &delivery.prepared else { return Ok(Step::NeedsBlocks) };
    let push = &*delivery.push;
    let round = if let Some(round) = round {
        round
    } else {
        let project = project.map_or_else(|| write::project(connection, &push.place.project), Ok)?;
        let cycle = write::cycle(connection, project, &push.place.cycle)?;
        Round { project, id: write::round(connection, (project, cycle), push, &delivery.at)?, closed: false }
    };
    let counts = push.outcomes.counts();
    let id = write::push(connection, (round.project, round.id), push, round.closed, &counts)?;
    fail::fail_point!("k3");
    let receipt = receipts::bytes(Parts {
        place: &push.place,
        key: &push.key,
        revision: 1,
        kind: RevisionKind::First,
        at: &delivery.at,
        counts,
        report: push.report,
        incomplete: push.incomplete,
        late: round.closed,
        content: push.content.content,
        difference: None,
    })?;
    let revision = RevisionOf { project: round.project, push: id, number: 1, kind: RevisionKind::First };
    write::revision(connection, &revision, delivery, prepared.bits, &counts, &receipt)?;
    write::blocks(connection, &revision, push, prepared)?;
    accept(connection, delivery, (round.project, id), RevisionKind::First.word(), 1)?;
    write::touch_round(connection, round.id, &push.origin)?;
    Ok(Step::Done(Recorded::Accepted(Answer {
        receipt,
        revision: 1,
        current_revision: 1,
        current_counts: counts,
        replayed: false,
        class: None,
        doubts: Vec::new(),
    })))
}

fn replay(
    connection: &Connection,
    delivery: &Delivery,
    known: &KnownPush,
    revision: u32,
    (class, doubts): (domain::protocol::DifferenceClass, Vec<Doubt>),
) -> Result<Answer, StoreError> {
    let row = &known.row;
    let receipt = rows::receipt(connection, row.project, row.id, revision)?
        .ok_or_else(|| super::connect::broken(format!("push {} has no revision {revision}", row.id)))?;
    accept(connection, delivery, (row.project, row.id), "replayed", revision)?;
    let sender = &delivery.push.sender;
    if known.revisions.iter().any(|r| r.number() == revision && r.known.is_confirmed_later(sender)) {
        write::attempt(connection, (row.project, row.id, revision), sender)?;
        write::touch_round(connection, row.round, &domain::Origin::default())?;
    }
    connection
        .prepare_cached(
            "UPDATE push SET deliveries = deliveries + 1, replays = replays + 1,
             expect = CASE WHEN ?2 IS NULL THEN expect ELSE max(coalesce(expect, 0), ?2) END WHERE id = ?1",
        )?
        .execute(params![row.id, delivery.push.expect])?;
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

fn overlay(
    connection: &Connection,
    delivery: &Delivery,
    known: &KnownPush,
    (kind, summary, before): (RevisionKind, DifferenceSummary, View),
) -> Result<Step, StoreError> {
    let Some(prepared) = &delivery.prepared else { return Ok(Step::NeedsBlocks) };
    let (push, row) = (&*delivery.push, &known.row);
    let number = row.revision + 1;
    let (hashes, outcomes) = (push.outcomes.hashes(), push.outcomes.as_slice());
    let lights: Vec<Light> = outcomes.iter().map(Light::of).collect();
    let counts = before.laid_over(kind, number, hashes, &lights).counts();
    let name = |at: usize| outcomes.get(at).map(|outcome| outcome.item.clone());
    let difference = receipts::difference(summary, &before, hashes, &lights, name);
    let late = write::is_closed(connection, row.round)?;
    let receipt = receipts::bytes(Parts {
        place: &row.place,
        key: &row.key,
        revision: number,
        kind,
        at: &delivery.at,
        counts,
        report: push.report,
        incomplete: push.incomplete,
        late,
        content: push.content.content,
        difference: Some(difference),
    })?;
    let revision = RevisionOf { project: row.project, push: row.id, number, kind };
    write::revision(connection, &revision, delivery, prepared.bits, &push.outcomes.counts(), &receipt)?;
    write::blocks(connection, &revision, push, prepared)?;
    accept(connection, delivery, (row.project, row.id), kind.word(), number)?;
    connection
        .prepare_cached(
            "UPDATE push SET revision = ?2, counts = ?3, deliveries = deliveries + 1,
             expect = CASE WHEN ?4 IS NULL THEN expect ELSE max(coalesce(expect, 0), ?4) END WHERE id = ?1",
        )?
        .execute(params![row.id, number, pack_counts(&counts), push.expect])?;
    write::touch_round(connection, row.round, &push.origin)?;
    Ok(Step::Done(Recorded::Accepted(Answer {
        receipt,
        revision: number,
        current_revision: number,
        current_counts: counts,
        replayed: false,
        class: Some(summary.class),
        doubts: Vec::new(),
    })))
}

/// Logs an accepted delivery, and who made it.
fn accept(
    connection: &Connection,
    delivery: &Delivery,
    (project, push): (i64, i64),
    result: &str,
    revision: u32,
) -> Result<(), StoreError> {
    let uid = PushId::of(&delivery.push.place.project, &delivery.push.key);
    write::log(connection, delivery, (project, Some(push), uid), result, Some(revision))?;
    let Sender { ordinal, executor: Some(executor), .. } = &delivery.push.sender else { return Ok(()) };
    let ordinal = rows::ordinal_text(*ordinal).unwrap_or_default();
    connection
        .prepare_cached("INSERT OR IGNORE INTO executor(project, push, ordinal, executor) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![project, push, ordinal, executor.as_str()])?;
    Ok(())
}

fn refuse(
    snap: &Snap<'_>,
    delivery: &Delivery,
    (uid, project, known): (PushId, Option<i64>, Option<&KnownPush>),
    refusal: Refusal,
    contest: bool,
) -> Result<Recorded, StoreError> {
    // Without the project there is nothing that could have refused it, and nothing is logged.
    if let Some(project) = project {
        let push = known.map(|k| k.row.id);
        write::log(snap, delivery, (project, push, uid), receipts::refusal_word(&refusal), None)?;
    }
    if let Some(known) = known.filter(|known| contest && !known.row.contested) {
        snap.prepare_cached("UPDATE push SET contested = 1 WHERE id = ?1")?.execute([known.row.id])?;
    }
    let recorded_samples = match (&refusal, known) {
        (Refusal::CollidingItems { recorded_samples, .. }, Some(known)) => samples(snap, known, recorded_samples)?,
        _ => Vec::new(),
    };
    Ok(Recorded::Refused { refusal, recorded_samples })
}

fn samples(snap: &Snap<'_>, known: &KnownPush, hashes: &[domain::ItemHash]) -> Result<Vec<ItemName>, StoreError> {
    let names = names_of(snap, known.row.project, known.row.id, &known.revisions, hashes)?;
    Ok(names.into_iter().flatten().collect())
}
