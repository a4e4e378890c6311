//! Epochs out of their rows. Must not decide.

use domain::content::Digests;
use domain::protocol::{self, FieldDifference};
use domain::push::ContentId;
use domain::staging::{Fate, KnownEpoch, is_idle};
use domain::{
    Comparison, Counts, Digest, Epoch, Incarnation, OnDifference, Origin, Place, PushId, PushKey, ReportSummary,
    Sender, limits,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::super::connect::broken;
use super::super::delivered::Delivered;
use super::super::rows::{self, Fixed, json, unpack_counts};
use super::super::waiting::Forward;
use crate::{RecordedAt, StoreError, Stored};

/// One epoch, without manifest and promises.
pub(in crate::sqlite) struct StageRow {
    pub(in crate::sqlite) id: i64,
    pub(in crate::sqlite) project: i64,
    pub(in crate::sqlite) uid: PushId,
    pub(in crate::sqlite) epoch: Epoch,
    pub(in crate::sqlite) fate: Fate,
    pub(in crate::sqlite) manifest: Digest,
    pub(in crate::sqlite) content: Digest,
    /// Outcomes of all chunks.
    pub(in crate::sqlite) n: u64,
    pub(in crate::sqlite) bits: u8,
    pub(in crate::sqlite) blockset: i64,
    pub(in crate::sqlite) contested: bool,
    pub(in crate::sqlite) touched_ms: u64,
    /// True if its blocks lie there for this epoch alone.
    pub(in crate::sqlite) has_blocks: bool,
}

impl StageRow {
    pub(in crate::sqlite) fn chunks(&self) -> u32 {
        1 << self.bits
    }

    /// By how many bits its blocks are cut: a chunk is whole buckets.
    pub(in crate::sqlite) fn block_bits(&self) -> u8 {
        self.bits.max(crate::codec::bits_for(self.n as usize))
    }

    pub(in crate::sqlite) fn idle_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.touched_ms)
    }
}

const COLUMNS: &str = "id, project, uid, epoch, fate, revision, manifest_digest, content, n, bits, blockset, contested, \
                       touched_ms, blocks FROM stage";

fn stage_row(row: &Row<'_>) -> Result<StageRow, StoreError> {
    let fate = match (row.get::<_, u8>(4)?, row.get::<_, Option<u32>>(5)?) {
        (0, None) => Fate::Open,
        (1, None) => Fate::Superseded,
        (2, None) => Fate::Abandoned,
        (3, None) => Fate::Cancelled,
        (4, None) => Fate::Refused,
        (5, Some(revision)) => Fate::Committed { revision },
        (fate, _) => return Err(broken(format!("an epoch of unknown fate {fate}"))),
    };
    let bits: u8 = row.get(9)?;
    if 1_usize.checked_shl(u32::from(bits)).is_none_or(|chunks| chunks > limits::CHUNKS_MAX) {
        return Err(broken(format!("an epoch cut by {bits} bits")));
    }
    Ok(StageRow {
        id: row.get(0)?,
        project: row.get(1)?,
        uid: PushId(row.get::<_, Fixed<16>>(2)?.0),
        epoch: Epoch(row.get::<_, i64>(3)? as u64),
        fate,
        manifest: Digest(row.get::<_, Fixed<32>>(6)?.0),
        content: Digest(row.get::<_, Fixed<32>>(7)?.0),
        n: row.get::<_, i64>(8)? as u64,
        bits,
        blockset: row.get(10)?,
        contested: row.get(11)?,
        touched_ms: row.get::<_, i64>(12)? as u64,
        has_blocks: row.get::<_, u8>(13)? == 0,
    })
}

/// Epochs for which the condition holds, oldest first.
pub(in crate::sqlite) fn all(
    connection: &Connection,
    condition: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<StageRow>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} WHERE {condition}"))?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(stage_row(row)?);
    }
    Ok(found)
}

/// The newest epoch of a push.
pub(super) fn latest(connection: &Connection, project: i64, uid: PushId) -> Result<Option<StageRow>, StoreError> {
    let condition = "project = ?1 AND uid = ?2 ORDER BY epoch DESC LIMIT 1";
    Ok(all(connection, condition, params![project, uid.0])?.pop())
}

/// One epoch of a push.
pub(super) fn of_epoch(
    connection: &Connection,
    project: i64,
    uid: PushId,
    epoch: Epoch,
) -> Result<Option<StageRow>, StoreError> {
    let condition = "project = ?1 AND uid = ?2 AND epoch = ?3";
    Ok(all(connection, condition, params![project, uid.0, epoch.0 as i64])?.pop())
}

/// Everyone who began or resumed an epoch, in the order of coming.
pub(in crate::sqlite) fn senders(connection: &Connection, stage: &StageRow) -> Result<Vec<Sender>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT ordinal, ordinal_scope, executor, incarnation FROM stage_sender
         WHERE project = ?1 AND stage = ?2 ORDER BY id",
    )?;
    let mut rows = statement.query(params![stage.project, stage.id])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(Sender {
            ordinal: rows::ordinal_of(row.get::<_, Option<String>>(0)?.as_deref())?,
            ordinal_scope: rows::scope_of(row.get(1)?),
            executor: rows::parsed_opt(row.get::<_, Option<String>>(2)?.as_deref())?,
            incarnation: rows::incarnation_of(row.get(3)?),
        });
    }
    Ok(found)
}

/// The epoch that an incarnation is bound to: the first that admitted it.
pub(super) fn bound(
    connection: &Connection,
    project: i64,
    uid: PushId,
    incarnation: Option<Incarnation>,
) -> Result<Option<(Epoch, Fate)>, StoreError> {
    let Some(bytes) = rows::incarnation_bytes(incarnation) else { return Ok(None) };
    let condition = "id = (SELECT stage FROM stage_sender WHERE project = ?1 AND uid = ?2 AND incarnation = ?3
                           ORDER BY id LIMIT 1)";
    let stage = all(connection, condition, params![project, uid.0, bytes])?.pop();
    Ok(stage.map(|stage| (stage.epoch, stage.fate)))
}

/// What `domain::staging` gets to know of an epoch.
pub(super) fn known(connection: &Connection, stage: &StageRow, now_ms: u64) -> Result<KnownEpoch, StoreError> {
    let mut statement = connection.prepare_cached("SELECT chunk FROM stage_chunk WHERE project = ?1 AND stage = ?2")?;
    let present = statement.query_map(params![stage.project, stage.id], |row| row.get(0))?;
    let present = present.collect::<Result<_, _>>()?;
    let senders = senders(connection, stage)?;
    let mut executors = Vec::new();
    for pair in senders.iter().filter_map(|sender| Some((sender.ordinal, sender.executor.clone()?))) {
        if !executors.contains(&pair) {
            executors.push(pair);
        }
    }
    Ok(KnownEpoch {
        epoch: stage.epoch,
        fate: stage.fate,
        manifest: stage.manifest,
        content: stage.content,
        chunks: stage.chunks(),
        present,
        ordinal: senders.iter().filter_map(|sender| sender.ordinal).max(),
        executors,
        contested: stage.contested,
        idle: is_idle(stage.idle_ms(now_ms)),
    })
}

/// The manifest as its row keeps it: without key, sender, chunks and items.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sqlite) struct KeptManifest {
    pub(in crate::sqlite) place: Place,
    pub(in crate::sqlite) origin: Origin,
    pub(in crate::sqlite) on_difference: OnDifference,
    pub(in crate::sqlite) outside_ci: bool,
    pub(in crate::sqlite) expect: Option<u32>,
    pub(in crate::sqlite) files: Vec<String>,
    pub(in crate::sqlite) report: ReportSummary,
    pub(in crate::sqlite) incomplete: bool,
    pub(in crate::sqlite) counts: Counts,
    pub(in crate::sqlite) content: Digest,
    pub(in crate::sqlite) outcomes: Digest,
}

/// The fields in which a delivery's place differs from that of an open epoch; one that has ended claims nothing.
pub(super) fn differing_fields(
    connection: &Connection,
    stage: &StageRow,
    of: &Delivered<'_>,
) -> Result<Vec<FieldDifference>, StoreError> {
    if stage.fate != Fate::Open {
        return Ok(Vec::new());
    }
    let (_, kept) = KeptManifest::of(connection, stage.id)?;
    Ok(protocol::differing_fields(&of.offer(), &kept.place, kept.origin.commit.as_ref()))
}

impl KeptManifest {
    /// Of an epoch; with its key.
    pub(in crate::sqlite) fn of(connection: &Connection, stage: i64) -> Result<(PushKey, Self), StoreError> {
        let mut statement = connection.prepare_cached("SELECT key, manifest FROM stage WHERE id = ?1")?;
        let (key, text): (String, String) = statement.query_row([stage], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok((rows::parsed(&key)?, json(&text)?))
    }

    pub(in crate::sqlite) fn digests(&self) -> Digests {
        Digests { content: self.content, outcomes: self.outcomes }
    }

    /// As a delivery by this sender.
    pub(super) fn delivered<'a>(
        &'a self,
        (key, sender): (&'a PushKey, &'a Sender),
        at: &'a RecordedAt,
        forward: Forward<'a>,
    ) -> Delivered<'a> {
        Delivered {
            key,
            place: &self.place,
            origin: &self.origin,
            sender,
            on_difference: self.on_difference,
            outside_ci: self.outside_ci,
            expect: self.expect,
            files: &self.files,
            report: self.report,
            incomplete: self.incomplete,
            content: ContentId { content: self.content, outcomes: self.outcomes, body: None },
            at,
            forward,
        }
    }
}

/// Bytes of one chunk's promise.
const PROMISE: usize = 36;

/// Digests and numbers of outcomes that the chunks of an epoch are to have.
pub(in crate::sqlite) fn promises(connection: &Connection, stage: &StageRow) -> Result<Vec<(Digest, u32)>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT promises FROM stage WHERE id = ?1")?;
    let bytes: Vec<u8> = statement.query_row([stage.id], |row| row.get(0))?;
    let (chunks, rest) = bytes.as_chunks::<PROMISE>();
    if !rest.is_empty() || chunks.len() != stage.chunks() as usize {
        return Err(broken(format!("epoch {} promises other chunks than it has", stage.id)));
    }
    let promise = |chunk: &[u8; PROMISE]| {
        let (mut digest, mut n) = ([0; 32], [0; 4]);
        digest.copy_from_slice(&chunk[..32]);
        n.copy_from_slice(&chunk[32..]);
        (Digest(digest), u32::from_le_bytes(n))
    };
    Ok(chunks.iter().map(promise).collect())
}

/// The promises as they are kept.
pub(super) fn pack_promises(chunks: &[domain::manifest::ChunkPromise]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(chunks.len() * PROMISE);
    for chunk in chunks {
        bytes.extend_from_slice(&chunk.digest.0);
        bytes.extend_from_slice(&chunk.outcomes.to_le_bytes());
    }
    bytes
}

/// One chunk that is there.
pub(in crate::sqlite) struct ChunkRow {
    pub(in crate::sqlite) number: u32,
    pub(in crate::sqlite) n: u64,
    pub(in crate::sqlite) counts: Counts,
    pub(in crate::sqlite) digests: Digests,
    /// The revision that it was held against, and what that came to.
    pub(in crate::sqlite) compared: Option<(u32, Comparison)>,
}

/// The chunks of an epoch, by number.
pub(in crate::sqlite) fn chunks(connection: &Connection, stage: &StageRow) -> Result<Vec<ChunkRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT chunk, n, counts, content, outcomes, compared_with, comparison FROM stage_chunk
         WHERE project = ?1 AND stage = ?2 ORDER BY chunk",
    )?;
    let mut rows = statement.query(params![stage.project, stage.id])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let compared = row.get::<_, Option<u32>>(5)?.zip(row.get::<_, Option<String>>(6)?);
        found.push(ChunkRow {
            number: row.get(0)?,
            n: row.get::<_, i64>(1)? as u64,
            counts: unpack_counts(&row.get::<_, Fixed<48>>(2)?.0),
            digests: Digests {
                content: Digest(row.get::<_, Fixed<32>>(3)?.0),
                outcomes: Digest(row.get::<_, Fixed<32>>(4)?.0),
            },
            compared: compared.map(|(revision, text)| Ok::<_, StoreError>((revision, json(&text)?))).transpose()?,
        });
    }
    Ok(found)
}

/// The newest receipt of a push, if one is recorded.
pub(super) fn recorded(connection: &Connection, project: i64, uid: PushId) -> Result<Option<Stored>, StoreError> {
    let sql = "SELECT v.revision, v.receipt FROM push p
               JOIN revision v ON v.project = p.project AND v.push = p.id AND v.revision = p.revision
               WHERE p.project = ?1 AND p.uid = ?2";
    let row = |row: &Row<'_>| Ok(Stored { revision: row.get(0)?, receipt: row.get(1)? });
    Ok(connection.prepare_cached(sql)?.query_row(params![project, uid.0], row).optional()?)
}
