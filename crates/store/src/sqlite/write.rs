//! Statements that write rows of recorded pushes. Every one runs in the writer's transaction, through
//! [`Tx::step`](super::points::Tx::step). Must not decide what to write.

use domain::verdict::RevisionKind;
use domain::{Counts, CycleName, Digest, Origin, Outcomes, ProjectId, PushId, Sender, mutant};
use rusqlite::{CachedStatement, OptionalExtension, params};

use super::connect::broken;
use super::delivered::Delivered;
use super::mutants;
use super::points::{Step, Tx};
use super::prepare::{Prepared, PreparedBlock};
use super::rows::{incarnation_bytes, kind_columns, ordinal_text, pack_counts, scope_code, to_json, variant_text};
use crate::codec::{self, Packer};
use crate::{RecordedAt, StoreError};

/// A revision that is being written.
pub(super) struct RevisionOf {
    pub(super) project: i64,
    pub(super) push: i64,
    pub(super) number: u32,
    pub(super) kind: RevisionKind,
}

/// Creates a project, for staging at first.
pub(super) fn project(tx: Tx<'_>, name: &ProjectId) -> Result<i64, StoreError> {
    tx.step("insert-project", "INSERT INTO project(name, recorded) VALUES (?1, 0)")?.run([name.as_str()])?;
    Ok(tx.last_insert_rowid())
}

/// From now on the project is there for readers.
pub(super) fn project_recorded(tx: Tx<'_>, project: i64) -> Result<(), StoreError> {
    let mut shown = tx.prepare_cached("SELECT 1 FROM project WHERE id = ?1 AND recorded = 1")?;
    if !shown.exists([project])? {
        tx.step("show-project", "UPDATE project SET recorded = 1 WHERE id = ?1")?.run([project])?;
    }
    Ok(())
}

/// The cycle of this name, created if need be.
pub(super) fn cycle(tx: Tx<'_>, project: i64, name: &CycleName) -> Result<i64, StoreError> {
    let mut select = tx.prepare_cached("SELECT id FROM cycle WHERE project = ?1 AND name = ?2")?;
    if let Some(id) = select.query_row(params![project, name.as_str()], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    let mut insert = tx.step("insert-cycle", "INSERT INTO cycle(project, name) VALUES (?1, ?2)")?;
    insert.run(params![project, name.as_str()])?;
    Ok(tx.last_insert_rowid())
}

/// Creates a round.
pub(super) fn round(tx: Tx<'_>, (project, cycle): (i64, i64), of: &Delivered<'_>) -> Result<i64, StoreError> {
    let sql = "INSERT INTO round(project, cycle, round, run, recorded_at) VALUES (?1, ?2, ?3, ?4, ?5)";
    let (round, run) = (of.place.round.as_str(), of.place.run.as_str());
    tx.step("insert-round", sql)?.run(params![project, cycle, round, run, of.at.0])?;
    Ok(tx.last_insert_rowid())
}

/// Fills in what the round doesn't know yet of its origin, and says that what it counts has changed.
pub(super) fn touch_round(tx: Tx<'_>, round: i64, origin: &Origin) -> Result<(), StoreError> {
    let sql = "UPDATE round SET version = version + 1, workflow = coalesce(workflow, ?2),
               run_counter = coalesce(run_counter, ?3), run_url = coalesce(run_url, ?4) WHERE id = ?1";
    let workflow = origin.workflow.as_ref().map(domain::WorkflowName::as_str);
    let counter = origin.run_counter.map(|n| n as i64);
    tx.step("update-round", sql)?.run(params![round, workflow, counter, origin.run_url])?;
    Ok(())
}

/// True if somebody closed the round.
pub(super) fn is_closed(tx: Tx<'_>, round: i64) -> Result<bool, StoreError> {
    let mut statement = tx.prepare_cached("SELECT closed FROM round WHERE id = ?1")?;
    Ok(statement.query_row([round], |row| row.get(0))?)
}

/// The row that holds the key.
pub(super) fn push(
    tx: Tx<'_>,
    (project, round): (i64, i64),
    of: &Delivered<'_>,
    late: bool,
    counts: &Counts,
) -> Result<i64, StoreError> {
    let place = of.place;
    let again = mutant!(M1) || mutant!(M3) || mutant!(M12) || mutant!(M30);
    let uid = if again { mutants::beside(tx, project, of.uid())? } else { of.uid() };
    let sql =
        "INSERT INTO push(project, uid, key, round, job, variant, shard, shard_total, run, label, commit_id, expect,
                 late, revision, deliveries, replays, counts)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 1, 1, 0, ?14)";
    tx.step("insert-push", sql)?.run(params![
        project,
        uid.0,
        of.key.as_str(),
        round,
        place.job.as_ref().map_or("", |job| job.as_str()),
        variant_text(&place.variant)?,
        place.shard.map(domain::ShardRef::index),
        place.shard.and_then(domain::ShardRef::total),
        place.run.as_str(),
        place.label.as_ref().map(domain::RoundLabel::as_str),
        of.origin.commit.as_ref().map(domain::Commit::as_str),
        of.expect,
        late,
        pack_counts(counts),
    ])?;
    Ok(tx.last_insert_rowid())
}

/// The columns of a revision.
pub(super) struct RevisionColumns<'a> {
    pub(super) sender: &'a Sender,
    pub(super) content: Digest,
    pub(super) outcomes: Digest,
    /// Number of its blocks, and by how many bits they are cut.
    pub(super) blocks: (i64, u8),
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
pub(super) fn insert_revision(tx: Tx<'_>, of: &RevisionOf, columns: &RevisionColumns<'_>) -> Result<(), StoreError> {
    let (kind, source, exact) = kind_columns(of.kind);
    let sender = columns.sender;
    tx.step(
        "insert-revision",
        "INSERT INTO revision(project, push, revision, kind, of, exact, ordinal, ordinal_scope, executor,
           incarnation, content, outcomes, bits, counts, files, report, incomplete, recorded_at, promotion_key,
           promotion_asked, receipt, blockset, digests)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
           coalesce((SELECT digests FROM revision WHERE project = ?1 AND blockset = ?22 LIMIT 1), 2))",
    )?
    .run(params![
        of.project,
        of.push,
        of.number,
        kind,
        source,
        exact,
        ordinal_text(sender.ordinal),
        scope_code(sender.ordinal_scope),
        sender.executor.as_ref().map(domain::Executor::as_str),
        incarnation_bytes(sender.incarnation),
        columns.content.0,
        columns.outcomes.0,
        columns.blocks.1,
        pack_counts(columns.counts),
        to_json(&columns.files)?,
        to_json(&columns.report)?,
        columns.incomplete,
        columns.at.0,
        columns.promotion.map(|(key, _)| key),
        columns.promotion.and_then(|(_, asked)| asked),
        columns.receipt,
        columns.blocks.0,
    ])?;
    Ok(())
}

/// A later attempt came to the content of this revision.
pub(super) fn attempt(
    tx: Tx<'_>,
    (project, push, revision): (i64, i64, u32),
    sender: &Sender,
) -> Result<(), StoreError> {
    let sql = "UPDATE revision SET ordinal = ?4, ordinal_scope = ?5 WHERE project = ?1 AND push = ?2 AND revision = ?3";
    let (ordinal, scope) = (ordinal_text(sender.ordinal), scope_code(sender.ordinal_scope));
    tx.step("raise-attempt", sql)?.run(params![project, push, revision, ordinal, scope])?;
    Ok(())
}

/// A number for blocks to come.
pub(super) fn blockset(tx: Tx<'_>, project: i64) -> Result<i64, StoreError> {
    tx.step("insert-blockset", "INSERT INTO blockset(project) VALUES (?1)")?.run([project])?;
    Ok(tx.last_insert_rowid())
}

/// Writes blocks under a number, and the sets and large texts that are new.
pub(super) fn blocks(
    tx: Tx<'_>,
    (project, blockset): (i64, i64),
    outcomes: &Outcomes,
    prepared: &Prepared,
) -> Result<(), StoreError> {
    let mut sets = SetWriter::over(tx)?;
    let mut block = tx.step(
        "insert-block",
        "INSERT INTO block(project, blockset, bucket, n, itemset, codes, times) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut texts = tx.step("insert-texts", "INSERT INTO blocktext(id, body) VALUES (?1, ?2)")?;
    for part in prepared.blocks.iter().skip(usize::from(mutant!(M15))) {
        let set = sets.id(project, outcomes, prepared.bits, part)?;
        let n = part.range.len() as u32;
        block.run(params![project, blockset, part.bucket, n, set, part.codes, part.times])?;
        let id = tx.last_insert_rowid();
        if let Some(body) = &part.texts {
            texts.run(params![id, body])?;
        }
        large_texts(tx, project, id, part, prepared)?;
    }
    Ok(())
}

struct SetWriter<'c> {
    tx: Tx<'c>,
    find: CachedStatement<'c>,
    set: Step<'c>,
    names: Step<'c>,
}

impl<'c> SetWriter<'c> {
    fn over(tx: Tx<'c>) -> Result<Self, StoreError> {
        Ok(Self {
            tx,
            find: tx.connection().prepare_cached("SELECT id FROM itemset WHERE project = ?1 AND digest = ?2")?,
            set: tx.step(
                "insert-itemset",
                "INSERT INTO itemset(project, digest, bits, bucket, n, hashes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
            names: tx.step("insert-names", "INSERT INTO setnames(id, names) VALUES (?1, ?2)")?,
        })
    }

    fn id(&mut self, project: i64, outcomes: &Outcomes, bits: u8, part: &PreparedBlock) -> Result<i64, StoreError> {
        if let Some(id) = self.find.query_row(params![project, part.digest], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        self.set.run(params![project, part.digest, bits, part.bucket, part.range.len() as u32, part.hashes])?;
        let id = self.tx.last_insert_rowid();
        if let Some(names) = &part.names {
            self.names.run(params![id, names])?;
        } else {
            // The set was there when the blocks were made, and was dropped since.
            let outcomes = outcomes.as_slice().get(part.range.clone());
            let outcomes = outcomes.ok_or_else(|| broken("blocks of another push"))?;
            self.names.run(params![id, codec::pack_names(outcomes, &mut Packer::new())])?;
        }
        Ok(id)
    }
}

fn large_texts(
    tx: Tx<'_>,
    project: i64,
    block: i64,
    part: &PreparedBlock,
    prepared: &Prepared,
) -> Result<(), StoreError> {
    for digest in &part.large {
        let body = prepared.large.get(digest).ok_or_else(|| broken("a large text was not prepared"))?;
        let sql = "INSERT OR IGNORE INTO bigtext(project, digest, body) VALUES (?1, ?2, ?3)";
        tx.step("insert-large-text", sql)?.run(params![project, digest.0, body])?;
        let sql = "INSERT OR IGNORE INTO bigtext_use(project, digest, block) VALUES (?1, ?2, ?3)";
        tx.step("insert-large-text-use", sql)?.run(params![project, digest.0, block])?;
    }
    Ok(())
}

/// One row of the log of deliveries.
pub(super) struct Logged<'a> {
    pub(super) project: i64,
    /// The push, if one is recorded.
    pub(super) push: Option<i64>,
    pub(super) uid: PushId,
    pub(super) body: Option<Digest>,
    pub(super) at: &'a RecordedAt,
    pub(super) result: &'a str,
    pub(super) revision: Option<u32>,
    pub(super) sender: &'a Sender,
}

/// Writes it.
pub(super) fn log(tx: Tx<'_>, of: &Logged<'_>) -> Result<(), StoreError> {
    let sql = "INSERT INTO delivery(project, push, body, uid, at, result, revision, ordinal, executor, incarnation)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    tx.step("insert-delivery", sql)?.run(params![
        of.project,
        of.push,
        of.body.map(|body| body.0),
        of.uid.0,
        of.at.0,
        of.result,
        of.revision,
        ordinal_text(of.sender.ordinal),
        of.sender.executor.as_ref().map(domain::Executor::as_str),
        incarnation_bytes(of.sender.incarnation),
    ])?;
    Ok(())
}

/// Who delivered what was accepted.
pub(super) fn executor(tx: Tx<'_>, (project, push): (i64, i64), sender: &Sender) -> Result<(), StoreError> {
    let Some(executor) = &sender.executor else { return Ok(()) };
    let ordinal = ordinal_text(sender.ordinal).unwrap_or_default();
    let sql = "INSERT OR IGNORE INTO executor(project, push, ordinal, executor) VALUES (?1, ?2, ?3, ?4)";
    tx.step("insert-executor", sql)?.run(params![project, push, ordinal, executor.as_str()])?;
    Ok(())
}

/// From now on only executors that are accepted may use the key.
pub(super) fn contest(tx: Tx<'_>, push: i64) -> Result<(), StoreError> {
    tx.step("contest-push", "UPDATE push SET contested = 1 WHERE id = ?1")?.run([push])?;
    Ok(())
}
