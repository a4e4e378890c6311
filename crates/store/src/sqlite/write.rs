//! Statements that write rows. Every one runs in the writer's transaction. Must not decide what to write.

use domain::verdict::RevisionKind;
use domain::{Counts, CycleName, Digest, OrdinalScope, Origin, ProjectId, Push, PushId, Sender};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::connect::broken;
use super::prepare::{Prepared, PreparedBlock};
use super::record::Delivery;
use super::rows::{incarnation_bytes, kind_columns, ordinal_text, pack_counts, to_json, variant_text};
use crate::codec::{self, Packer};
use crate::{RecordedAt, StoreError};

/// A revision that is being written.
pub(super) struct RevisionOf {
    pub(super) project: i64,
    pub(super) push: i64,
    pub(super) number: u32,
    pub(super) kind: RevisionKind,
}

/// Creates a project.
pub(super) fn project(connection: &Connection, name: &ProjectId) -> Result<i64, StoreError> {
    connection.prepare_cached("INSERT INTO project(name) VALUES (?1)")?.execute([name.as_str()])?;
    Ok(connection.last_insert_rowid())
}

/// The cycle of this name, created if need be.
pub(super) fn cycle(connection: &Connection, project: i64, name: &CycleName) -> Result<i64, StoreError> {
    let mut select = connection.prepare_cached("SELECT id FROM cycle WHERE project = ?1 AND name = ?2")?;
    if let Some(id) = select.query_row(params![project, name.as_str()], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    let mut insert = connection.prepare_cached("INSERT INTO cycle(project, name) VALUES (?1, ?2)")?;
    insert.execute(params![project, name.as_str()])?;
    Ok(connection.last_insert_rowid())
}

/// Creates a round.
pub(super) fn round(
    connection: &Connection,
    (project, cycle): (i64, i64),
    push: &Push,
    at: &RecordedAt,
) -> Result<i64, StoreError> {
    connection
        .prepare_cached("INSERT INTO round(project, cycle, round, run, recorded_at) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![project, cycle, push.place.round.as_str(), push.place.run.as_str(), at.0])?;
    Ok(connection.last_insert_rowid())
}

/// Fills in what the round doesn't know yet of its origin, and says that what it counts has changed.
pub(super) fn touch_round(connection: &Connection, round: i64, origin: &Origin) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "UPDATE round SET version = version + 1, workflow = coalesce(workflow, ?2),
             run_counter = coalesce(run_counter, ?3), run_url = coalesce(run_url, ?4) WHERE id = ?1",
        )?
        .execute(params![
            round,
            origin.workflow.as_ref().map(domain::WorkflowName::as_str),
            origin.run_counter.map(|n| n as i64),
            origin.run_url
        ])?;
    Ok(())
}

/// True if somebody closed the round.
pub(super) fn is_closed(connection: &Connection, round: i64) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT closed FROM round WHERE id = ?1")?;
    Ok(statement.query_row([round], |row| row.get(0))?)
}

/// The row that holds the key.
pub(super) fn push(
    connection: &Connection,
    (project, round): (i64, i64),
    push: &Push,
    late: bool,
    counts: &Counts,
) -> Result<i64, StoreError> {
    let place = &push.place;
    connection
        .prepare_cached(
            "INSERT INTO push(project, uid, key, round, job, variant, shard, shard_total, run, label, commit_id, expect,
               late, revision, deliveries, replays, counts)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 1, 1, 0, ?14)",
        )?
        .execute(params![
            project,
            PushId::of(&place.project, &push.key).0,
            push.key.as_str(),
            round,
            place.job.as_ref().map_or("", |job| job.as_str()),
            variant_text(&place.variant)?,
            place.shard.map(domain::ShardRef::index),
            place.shard.and_then(domain::ShardRef::total),
            place.run.as_str(),
            place.label.as_ref().map(domain::RoundLabel::as_str),
            push.origin.commit.as_ref().map(domain::Commit::as_str),
            push.expect,
            late,
            pack_counts(counts),
        ])?;
    Ok(connection.last_insert_rowid())
}

/// A revision of a delivered content, with its receipt.
pub(super) fn revision(
    connection: &Connection,
    of: &RevisionOf,
    delivery: &Delivery,
    bits: u8,
    counts: &Counts,
    receipt: &[u8],
) -> Result<(), StoreError> {
    let push = &*delivery.push;
    let columns = RevisionColumns {
        sender: &push.sender,
        content: push.content.content,
        outcomes: push.content.outcomes,
        bits,
        counts,
        files: &push.files,
        report: push.report,
        incomplete: push.incomplete,
        at: &delivery.at,
        promotion: None,
        receipt,
    };
    insert_revision(connection, of, &columns)
}

/// The columns of a revision.
pub(super) struct RevisionColumns<'a> {
    pub(super) sender: &'a Sender,
    pub(super) content: Digest,
    pub(super) outcomes: Digest,
    pub(super) bits: u8,
    pub(super) counts: &'a Counts,
    pub(super) files: &'a [String],
    pub(super) report: domain::ReportSummary,
    pub(super) incomplete: bool,
    pub(super) at: &'a RecordedAt,
    /// The promotion's own key, and the revision that was asked for.
    pub(super) promotion: Option<(&'a str, Option<u32>)>,
    pub(super) receipt: &'a [u8],
}

/// Writes a revision's row.
pub(super) fn insert_revision(
    connection: &Connection,
    of: &RevisionOf,
    columns: &RevisionColumns<'_>,
) -> Result<(), StoreError> {
    let (kind, source, exact) = kind_columns(of.kind);
    let sender = columns.sender;
    connection
        .prepare_cached(
            "INSERT INTO revision(project, push, revision, kind, of, exact, ordinal, ordinal_scope, executor,
               incarnation, content, outcomes, bits, counts, files, report, incomplete, recorded_at, promotion_key,
               promotion_asked, receipt)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
        )?
        .execute(params![
            of.project,
            of.push,
            of.number,
            kind,
            source,
            exact,
            ordinal_text(sender.ordinal),
            u8::from(sender.ordinal_scope == OrdinalScope::Key),
            sender.executor.as_ref().map(domain::Executor::as_str),
            incarnation_bytes(sender.incarnation),
            columns.content.0,
            columns.outcomes.0,
            columns.bits,
            pack_counts(columns.counts),
            to_json(&columns.files)?,
            to_json(&columns.report)?,
            columns.incomplete,
            columns.at.0,
            columns.promotion.map(|(key, _)| key),
            columns.promotion.and_then(|(_, asked)| asked),
            columns.receipt,
        ])?;
    Ok(())
}

/// A later attempt came to the content of this revision.
pub(super) fn attempt(
    connection: &Connection,
    (project, push, revision): (i64, i64, u32),
    sender: &Sender,
) -> Result<(), StoreError> {
    let scope = u8::from(sender.ordinal_scope == OrdinalScope::Key);
    connection
        .prepare_cached(
            "UPDATE revision SET ordinal = ?4, ordinal_scope = ?5 WHERE project = ?1 AND push = ?2 AND revision = ?3",
        )?
        .execute(params![project, push, revision, ordinal_text(sender.ordinal), scope])?;
    Ok(())
}

/// Writes the blocks of a content, and the sets and large texts that are new.
pub(super) fn blocks(
    connection: &Connection,
    of: &RevisionOf,
    push: &Push,
    prepared: &Prepared,
) -> Result<(), StoreError> {
    let mut sets = SetWriter::over(connection)?;
    let mut block = connection.prepare_cached(
        "INSERT INTO block(project, push, revision, bucket, n, itemset, codes, times)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut texts = connection.prepare_cached("INSERT INTO blocktext(id, body) VALUES (?1, ?2)")?;
    for part in &prepared.blocks {
        let set = sets.id(connection, of.project, push, prepared.bits, part)?;
        let n = part.range.len() as u32;
        block.execute(params![of.project, of.push, of.number, part.bucket, n, set, part.codes, part.times])?;
        let id = connection.last_insert_rowid();
        if let Some(body) = &part.texts {
            texts.execute(params![id, body])?;
        }
        large_texts(connection, of.project, id, part, prepared)?;
    }
    Ok(())
}

struct SetWriter<'c> {
    find: CachedStatement<'c>,
    set: CachedStatement<'c>,
    names: CachedStatement<'c>,
}

impl<'c> SetWriter<'c> {
    fn over(connection: &'c Connection) -> Result<Self, StoreError> {
        Ok(Self {
            find: connection.prepare_cached("SELECT id FROM itemset WHERE project = ?1 AND digest = ?2")?,
            set: connection.prepare_cached(
                "INSERT INTO itemset(project, digest, bits, bucket, n, hashes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
            names: connection.prepare_cached("INSERT INTO setnames(id, names) VALUES (?1, ?2)")?,
        })
    }

    fn id(
        &mut self,
        connection: &Connection,
        project: i64,
        push: &Push,
        bits: u8,
        part: &PreparedBlock,
    ) -> Result<i64, StoreError> {
        if let Some(id) = self.find.query_row(params![project, part.digest], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        self.set.execute(params![project, part.digest, bits, part.bucket, part.range.len() as u32, part.hashes])?;
        let id = connection.last_insert_rowid();
        if let Some(names) = &part.names {
            self.names.execute(params![id, names])?;
        } else {
            // The set was there when the blocks were made, and was dropped since.
            let outcomes = push.outcomes.as_slice().get(part.range.clone());
            let outcomes = outcomes.ok_or_else(|| broken("blocks of another push"))?;
            self.names.execute(params![id, codec::pack_names(outcomes, &mut Packer::new())])?;
        }
        Ok(id)
    }
}

fn large_texts(
    connection: &Connection,
    project: i64,
    block: i64,
    part: &PreparedBlock,
    prepared: &Prepared,
) -> Result<(), StoreError> {
    for digest in &part.large {
        let body = prepared.large.get(digest).ok_or_else(|| broken("a large text was not prepared"))?;
        connection
            .prepare_cached("INSERT OR IGNORE INTO bigtext(project, digest, body) VALUES (?1, ?2, ?3)")?
            .execute(params![project, digest.0, body])?;
        connection
            .prepare_cached("INSERT OR IGNORE INTO bigtext_use(project, digest, block) VALUES (?1, ?2, ?3)")?
            .execute(params![project, digest.0, block])?;
    }
    Ok(())
}

/// One row of the log of deliveries.
pub(super) fn log(
    connection: &Connection,
    delivery: &Delivery,
    (project, push, uid): (i64, Option<i64>, PushId),
    result: &str,
    revision: Option<u32>,
) -> Result<(), StoreError> {
    let Push { sender, content, .. } = &*delivery.push;
    connection
        .prepare_cached(
            "INSERT INTO delivery(project, push, body, uid, at, result, revision, ordinal, executor, incarnation)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            project,
            push,
            content.body.map(|body| body.0),
            uid.0,
            delivery.at.0,
            result,
            revision,
            ordinal_text(sender.ordinal),
            sender.executor.as_ref().map(domain::Executor::as_str),
            incarnation_bytes(sender.incarnation),
        ])?;
    Ok(())
}
