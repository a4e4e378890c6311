//! Rows as the domain's types. Must not know SQL beyond column order, and must not decide.

use std::str::FromStr;

use domain::protocol::KnownRevision;
use domain::verdict::RevisionKind;
use domain::{
    Commit, Counts, Digest, Executor, Incarnation, Ordinal, OrdinalScope, Place, PushId, PushKey, ReportSummary,
    Sender, ShardRef, Variant,
};
use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;

use super::connect::broken;
use crate::StoreError;

/// A name out of a column.
pub(super) fn parsed<T: FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|_| broken(format!("{text:?} is no {}", std::any::type_name::<T>())))
}

/// A name that may be absent: NULL or empty.
pub(super) fn parsed_opt<T: FromStr>(text: Option<&str>) -> Result<Option<T>, StoreError> {
    text.filter(|t| !t.is_empty()).map(parsed).transpose()
}

/// A document out of a column.
pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|e| broken(format!("a column is not the JSON it should be: {e}")))
}

/// A document for a column.
pub(super) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| broken(format!("a value cannot be written as JSON: {e}")))
}

/// Bytes of a fixed length.
pub(super) struct Fixed<const N: usize>(pub(super) [u8; N]);

impl<const N: usize> FromSql for Fixed<N> {
    fn column_result(value: ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
        <[u8; N]>::column_result(value).map(Fixed)
    }
}

/// Counts as six numbers of eight bytes.
pub(super) fn pack_counts(counts: &Counts) -> [u8; 48] {
    let Counts { total, passed, failed, errored, skipped, flaky } = *counts;
    let mut bytes = [0; 48];
    for (at, number) in [total, passed, failed, errored, skipped, flaky].into_iter().enumerate() {
        bytes[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// Back from [`pack_counts`].
pub(super) fn unpack_counts(bytes: &[u8; 48]) -> Counts {
    let numbers = bytes.as_chunks::<8>().0;
    let at = |at: usize| u64::from_le_bytes(numbers[at]);
    Counts { total: at(0), passed: at(1), failed: at(2), errored: at(3), skipped: at(4), flaky: at(5) }
}

/// A revision's kind as three columns.
pub(super) fn kind_columns(kind: RevisionKind) -> (u8, Option<u32>, bool) {
    match kind {
        RevisionKind::First => (0, None, false),
        RevisionKind::Revised => (1, None, false),
        RevisionKind::Kept => (2, None, false),
        RevisionKind::Promoted { of, exact } => (3, Some(of), exact),
    }
}

fn kind_of(kind: u8, of: Option<u32>, exact: bool) -> Result<RevisionKind, StoreError> {
    match (kind, of) {
        (0, None) => Ok(RevisionKind::First),
        (1, None) => Ok(RevisionKind::Revised),
        (2, None) => Ok(RevisionKind::Kept),
        (3, Some(of)) => Ok(RevisionKind::Promoted { of, exact }),
        _ => Err(broken(format!("a revision of unknown kind {kind}"))),
    }
}

/// An attempt number as a column.
pub(super) fn ordinal_text(ordinal: Option<Ordinal>) -> Option<String> {
    ordinal.map(|o| o.0.to_string())
}

/// Back from [`ordinal_text`].
pub(super) fn ordinal_of(text: Option<&str>) -> Result<Option<Ordinal>, StoreError> {
    Ok(parsed_opt::<u64>(text)?.map(Ordinal))
}

/// An ordinal's scope as a column.
pub(super) fn scope_code(scope: OrdinalScope) -> u8 {
    u8::from(scope == OrdinalScope::Key)
}

/// Back from [`scope_code`].
pub(super) fn scope_of(code: u8) -> OrdinalScope {
    if code == 0 { OrdinalScope::Round } else { OrdinalScope::Key }
}

/// The sender's incarnation as a column.
pub(super) fn incarnation_bytes(incarnation: Option<Incarnation>) -> Option<[u8; 16]> {
    incarnation.map(|i| i.0.to_be_bytes())
}

/// Back from [`incarnation_bytes`].
pub(super) fn incarnation_of(bytes: Option<Fixed<16>>) -> Option<Incarnation> {
    bytes.map(|b| Incarnation(u128::from_be_bytes(b.0)))
}

/// One push, with where it belongs.
#[derive(Debug, Clone)]
pub(super) struct PushRow {
    pub(super) id: i64,
    pub(super) project: i64,
    pub(super) uid: PushId,
    pub(super) key: PushKey,
    pub(super) round: i64,
    pub(super) place: Place,
    pub(super) commit: Option<Commit>,
    pub(super) contested: bool,
    pub(super) late: bool,
    pub(super) revision: u32,
    pub(super) deliveries: u64,
    pub(super) replays: u64,
    pub(super) counts: Counts,
}

const PUSH_COLUMNS: &str = "p.id, p.project, p.uid, p.key, p.round, pr.name, c.name, r.round, p.run, p.label, p.job, \
     p.shard, p.shard_total, p.variant, p.commit_id, p.contested, p.late, p.revision, p.deliveries, \
     p.replays, p.counts \
     FROM push p JOIN round r ON r.id = p.round JOIN cycle c ON c.id = r.cycle JOIN project pr ON pr.id = p.project";

/// Pushes for which the condition holds, in the order of recording.
pub(super) fn pushes(
    connection: &Connection,
    condition: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<PushRow>, StoreError> {
    let sql = format!("SELECT {PUSH_COLUMNS} WHERE {condition} ORDER BY p.id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(push_row(row)?);
    }
    Ok(found)
}

/// The push with this public id.
pub(super) fn push_by_uid(connection: &Connection, project: i64, uid: PushId) -> Result<Option<PushRow>, StoreError> {
    Ok(pushes(connection, "p.project = ?1 AND p.uid = ?2", params![project, uid.0])?.pop())
}

fn push_row(row: &Row<'_>) -> Result<PushRow, StoreError> {
    let text = |at: usize| row.get_ref(at).map_err(StoreError::from).and_then(|v| text_of(v));
    let optional = |at: usize| row.get_ref(at).map_err(StoreError::from).and_then(|v| opt_text_of(v));
    let shard = match row.get::<_, Option<u32>>(11)? {
        None => None,
        Some(index) => Some(ShardRef::new(index, row.get(12)?).map_err(|e| broken(e.to_string()))?),
    };
    Ok(PushRow {
        id: row.get(0)?,
        project: row.get(1)?,
        uid: PushId(row.get::<_, Fixed<16>>(2)?.0),
        key: parsed(text(3)?)?,
        round: row.get(4)?,
        place: Place {
            project: parsed(text(5)?)?,
            cycle: parsed(text(6)?)?,
            round: parsed(text(7)?)?,
            run: parsed(text(8)?)?,
            label: parsed_opt(optional(9)?)?,
            job: parsed_opt(optional(10)?)?,
            shard,
            variant: variant_of(text(13)?)?,
        },
        commit: parsed_opt(optional(14)?)?,
        contested: row.get(15)?,
        late: row.get(16)?,
        revision: row.get(17)?,
        deliveries: row.get::<_, i64>(18)? as u64,
        replays: row.get::<_, i64>(19)? as u64,
        counts: unpack_counts(&row.get::<_, Fixed<48>>(20)?.0),
    })
}

fn text_of(value: ValueRef<'_>) -> Result<&str, StoreError> {
    value.as_str().map_err(|e| broken(e.to_string()))
}

fn opt_text_of(value: ValueRef<'_>) -> Result<Option<&str>, StoreError> {
    value.as_str_or_null().map_err(|e| broken(e.to_string()))
}

/// A variant as a column: '' for the empty one, else JSON.
pub(super) fn variant_text(variant: &Variant) -> Result<String, StoreError> {
    if variant.is_empty() { Ok(String::new()) } else { to_json(variant) }
}

/// Back from [`variant_text`].
pub(super) fn variant_of(text: &str) -> Result<Variant, StoreError> {
    if text.is_empty() { Ok(Variant::default()) } else { json(text) }
}

/// One revision, without its receipt.
#[derive(Debug, Clone)]
pub(super) struct RevisionRow {
    pub(super) known: KnownRevision,
    /// Where its content lies; of a promotion, that of the promoted one.
    pub(super) blockset: i64,
    pub(super) bits: u8,
    pub(super) counts: Counts,
    pub(super) report: ReportSummary,
    pub(super) incomplete: bool,
    pub(super) recorded_at: String,
    /// False for digests that programs of schema 1 made in another way.
    pub(super) tree_digests: bool,
}

impl RevisionRow {
    pub(super) fn number(&self) -> u32 {
        self.known.number
    }

    /// Where its content lies.
    pub(super) fn lies(&self, project: i64) -> (i64, i64, u8) {
        (project, self.blockset, self.bits)
    }

    /// The revision that delivered its content.
    pub(super) fn source(&self) -> u32 {
        if let RevisionKind::Promoted { of, .. } = self.known.kind { of } else { self.known.number }
    }

    pub(super) fn is_promotion(&self) -> bool {
        matches!(self.known.kind, RevisionKind::Promoted { .. })
    }
}

/// The revisions of a push, by number.
pub(super) fn revisions(connection: &Connection, project: i64, push: i64) -> Result<Vec<RevisionRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT revision, kind, of, exact, ordinal, ordinal_scope, executor, incarnation, content, outcomes, bits,
                counts, files, report, incomplete, recorded_at, blockset, digests
         FROM revision WHERE project = ?1 AND push = ?2 ORDER BY revision",
    )?;
    let mut rows = statement.query(params![project, push])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(revision_row(row)?);
    }
    Ok(found)
}

fn revision_row(row: &Row<'_>) -> Result<RevisionRow, StoreError> {
    let text = |at: usize| row.get_ref(at).map_err(StoreError::from).and_then(|v| text_of(v));
    let optional = |at: usize| row.get_ref(at).map_err(StoreError::from).and_then(|v| opt_text_of(v));
    let sender = Sender {
        ordinal: ordinal_of(optional(4)?)?,
        ordinal_scope: scope_of(row.get(5)?),
        executor: parsed_opt::<Executor>(optional(6)?)?,
        incarnation: incarnation_of(row.get(7)?),
    };
    Ok(RevisionRow {
        known: KnownRevision {
            number: row.get(0)?,
            kind: kind_of(row.get(1)?, row.get(2)?, row.get(3)?)?,
            sender,
            content: Digest(row.get::<_, Fixed<32>>(8)?.0),
            outcomes: Digest(row.get::<_, Fixed<32>>(9)?.0),
            files: json(text(12)?)?,
        },
        blockset: row.get(16)?,
        bits: row.get(10)?,
        counts: unpack_counts(&row.get::<_, Fixed<48>>(11)?.0),
        report: json(text(13)?)?,
        incomplete: row.get(14)?,
        recorded_at: text(15)?.to_owned(),
        tree_digests: row.get::<_, u8>(17)? == 2,
    })
}

/// The stored receipt of one revision.
pub(super) fn receipt(
    connection: &Connection,
    project: i64,
    push: i64,
    revision: u32,
) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT receipt FROM revision WHERE project = ?1 AND push = ?2 AND revision = ?3";
    Ok(connection.prepare_cached(sql)?.query_row(params![project, push, revision], |row| row.get(0)).optional()?)
}

/// The id of a project, also of one that is only staged for.
pub(super) fn project_id(connection: &Connection, name: &str) -> Result<Option<i64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT id FROM project WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// True if the push with this public id was deleted.
pub(super) fn is_tombstoned(connection: &Connection, project: i64, uid: PushId) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM tombstone WHERE project = ?1 AND uid = ?2")?;
    Ok(statement.exists(params![project, uid.0])?)
}
