//! Chunks: made into blocks and compared with what is recorded in a reader's snapshot, written in one short job.
//! Must not decide.

use std::sync::Arc;

use domain::compare::listed;
use domain::content::{Digests, chunk_of};
use domain::staging::{self, PutDecision};
use domain::verdict::Light;
use domain::{Comparison, Counts, limits, mutant};
use rusqlite::{Connection, params};

use super::super::content::{Snap, fold};
use super::super::parts::Part;
use super::super::points::{Op, Tx};
use super::super::prepare::{self, Prepared};
use super::super::record::name;
use super::super::rows::{self as tables, pack_counts, to_json};
use super::super::{connect::broken, write as blocks};
use super::rows::{self, StageRow};
use super::write;
use crate::receipts::named;
use crate::{Chunk, Now, Put, StoreError};

/// A chunk as its rows will hold it.
pub(in crate::sqlite) struct PreparedChunk {
    prepared: Prepared,
    counts: Counts,
    digests: Digests,
    compared: Option<Compared>,
}

/// A chunk beside what counts of the same part of the order of hashes.
struct Compared {
    revision: u32,
    /// JSON of a `Comparison`.
    comparison: String,
    /// JSON of the first items that differ, as receipts list them.
    listed: String,
}

/// A chunk on its way through the writer.
pub(in crate::sqlite) struct PutChunk {
    pub(in crate::sqlite) chunk: Arc<Chunk>,
    pub(in crate::sqlite) now: Now,
    pub(in crate::sqlite) prepared: Option<Arc<PreparedChunk>>,
}

/// What came of preparing or running a put.
pub(in crate::sqlite) enum PutStep {
    /// It is done.
    Done(Put),
    /// Run it; with blocks, if they are needed.
    Run(Option<Arc<PreparedChunk>>),
}

/// The epoch of a chunk, and what the domain says to it.
fn decide(
    connection: &Connection,
    chunk: &Chunk,
    now_ms: u64,
) -> Result<Result<(StageRow, PutDecision), Put>, StoreError> {
    let of = &chunk.of;
    let Some(project) = tables::project_id(connection, of.project.as_str())? else { return Ok(Err(Put::Unknown)) };
    if tables::is_tombstoned(connection, project, of.push)? {
        return Ok(Err(Put::Gone));
    }
    let Some(stage) = rows::of_epoch(connection, project, of.push, of.epoch)? else { return Ok(Err(Put::Unknown)) };
    let promised = rows::promises(connection, &stage)?.get(chunk.number as usize).map(|(digest, _)| *digest);
    let known = rows::known(connection, &stage, now_ms)?;
    let decision = staging::put(&known, chunk.number, promised, chunk.digest);
    Ok(Ok((stage, decision)))
}

/// Makes the blocks of a chunk, if they will be needed, and compares it.
pub(in crate::sqlite) fn prepare(snap: &Snap<'_>, chunk: &Chunk, now_ms: u64) -> Result<PutStep, StoreError> {
    let Ok((stage, PutDecision::Store)) = decide(snap, chunk, now_ms)? else {
        // Nothing to prepare; the writer says so.
        return Ok(PutStep::Run(None));
    };
    if let Some(what) = broken_promise(snap, &stage, chunk)? {
        return Ok(PutStep::Done(Put::NotAsPromised { what }));
    }
    let outcomes = &chunk.outcomes;
    let mut sets = snap.prepare_cached("SELECT 1 FROM itemset WHERE project = ?1 AND digest = ?2")?;
    let known = |set: &[u8; 16]| sets.exists(params![stage.project, set]).unwrap_or(false);
    Ok(PutStep::Run(Some(Arc::new(PreparedChunk {
        prepared: prepare::prepare(outcomes, stage.block_bits(), known),
        counts: outcomes.counts(),
        digests: Digests::of_chunk(outcomes, stage.n, stage.bits),
        compared: compare(snap, &stage, chunk)?,
    }))))
}

fn broken_promise(connection: &Connection, stage: &StageRow, chunk: &Chunk) -> Result<Option<String>, StoreError> {
    let promised = rows::promises(connection, stage)?.get(chunk.number as usize).map_or(0, |(_, n)| *n);
    let (number, found) = (chunk.number, chunk.outcomes.len());
    if found as u64 != u64::from(promised) {
        return Ok(Some(format!("chunk {number} holds {found} outcomes; the manifest says {promised}")));
    }
    let stray = chunk.outcomes.hashes().iter().find(|hash| chunk_of(**hash, stage.bits) != number);
    Ok(stray.map(|hash| format!("item {hash} belongs into chunk {}, not {number}", chunk_of(*hash, stage.bits))))
}

fn compare(snap: &Snap<'_>, stage: &StageRow, chunk: &Chunk) -> Result<Option<Compared>, StoreError> {
    let Some(row) = tables::push_by_uid(snap, stage.project, stage.uid)? else { return Ok(None) };
    let revisions = tables::revisions(snap, row.project, row.id)?;
    let before = fold(snap, row.project, &revisions, Part::chunk(chunk.number, stage.bits))?;
    let hashes = chunk.outcomes.hashes();
    let lights: Vec<Light> = chunk.outcomes.as_slice().iter().map(Light::of).collect();
    let mut first = listed(&before, hashes, &lights);
    if are_listed(snap, stage, chunk.number)? {
        first.clear();
    }
    let listed =
        named(first, |hash| name(&chunk.outcomes, hash).ok_or_else(|| broken("an offered item without a name")))?;
    Ok(Some(Compared {
        revision: row.revision,
        comparison: to_json(&Comparison::of(&before, hashes, &lights))?,
        listed: to_json(&listed)?,
    }))
}

/// True if the chunks before this one list as many items as a receipt does: then nobody asks for more.
fn are_listed(connection: &Connection, stage: &StageRow, number: u32) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT json_extract(comparison, '$.changed') + json_extract(comparison, '$.added') FROM stage_chunk
         WHERE project = ?1 AND stage = ?2 AND chunk < ?3 AND comparison IS NOT NULL ORDER BY chunk",
    )?;
    let mut rows = statement.query(params![stage.project, stage.id, number])?;
    let mut listed = 0;
    while listed < limits::DIFFERENCE_ITEMS_MAX as i64
        && let Some(row) = rows.next()?
    {
        listed += row.get::<_, i64>(0)?;
    }
    Ok(listed >= limits::DIFFERENCE_ITEMS_MAX as i64)
}

/// Runs one put.
pub(in crate::sqlite) fn put(connection: &Connection, of: &PutChunk) -> Result<PutStep, StoreError> {
    let tx = Tx::of(connection, Op::PUT);
    let (stage, decision) = match decide(&tx, &of.chunk, of.now.ms)? {
        Ok(found) => found,
        Err(put) => return Ok(PutStep::Done(put)),
    };
    let done = match (decision, &of.prepared) {
        (PutDecision::Store, None) => return Ok(PutStep::Run(None)),
        (PutDecision::Store, Some(prepared)) => {
            store(tx, &stage, &of.chunk, prepared)?;
            write::touch(tx, stage.id, of.now.ms)?;
            Put::Stored { replayed: false }
        }
        (PutDecision::Replay, _) => {
            if stage.fate == staging::Fate::Open {
                write::touch(tx, stage.id, of.now.ms)?;
            }
            Put::Stored { replayed: true }
        }
        (PutDecision::Mismatch, _) => Put::Mismatch,
        (PutDecision::OutOfRange, _) => Put::OutOfRange { chunks: stage.chunks() },
        (PutDecision::Superseded, _) => Put::Superseded,
        (PutDecision::Gone, _) => Put::Gone,
    };
    Ok(PutStep::Done(done))
}

fn store(tx: Tx<'_>, stage: &StageRow, chunk: &Chunk, of: &PreparedChunk) -> Result<(), StoreError> {
    let current = if mutant!(M21) { rows::latest(&tx, stage.project, stage.uid)? } else { None };
    let blockset = current.map_or(stage.blockset, |current| current.blockset);
    blocks::blocks(tx, (stage.project, blockset), &chunk.outcomes, &of.prepared)?;
    let sql = "INSERT INTO stage_chunk(project, stage, chunk, n, counts, content, outcomes, compared_with, comparison,
                 listed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let compared = of.compared.as_ref();
    tx.step("insert-chunk", sql)?.run(params![
        stage.project,
        stage.id,
        chunk.number,
        chunk.outcomes.len() as i64,
        pack_counts(&of.counts),
        of.digests.content.0,
        of.digests.outcomes.0,
        compared.map(|c| c.revision),
        compared.map(|c| &c.comparison),
        compared.map(|c| &c.listed),
    ])?;
    Ok(())
}
