//! Rows of what waits for a target, from the transaction that records a push to their end. Must not decide: rules say which
//! push waits for what.

use domain::forwarding::{ForwardRule, targets};
use domain::{Place, ProjectId, PushId, PushKey};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

use super::connect::broken;
use super::points::Tx;
use super::rows::{Fixed, json, parsed, to_json};
use crate::{End, Ended, StoreError, Waiting, WaitingQuery};

/// What makes a push wait: rules, and the recorder's clock.
#[derive(Clone, Copy)]
pub(super) struct Forward<'a> {
    pub(super) rules: &'a [ForwardRule],
    pub(super) now_ms: u64,
}

impl Forward<'_> {
    /// Where nothing is recorded.
    pub(super) const NEVER: Self = Self { rules: &[], now_ms: 0 };
}

/// What counts of a push has changed: it waits for every target that a rule sends it to.
pub(super) fn wait(
    tx: Tx<'_>,
    (place, key): (&Place, &PushKey),
    revision: u32,
    forward: Forward<'_>,
) -> Result<(), StoreError> {
    for target in targets(forward.rules, place) {
        let sql = "INSERT INTO waiting(target, project, cycle, round, uid, key, revision, since_ms)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        tx.step("insert-waiting", sql)?.run(params![
            target,
            place.project.as_str(),
            place.cycle.as_str(),
            place.round.as_str(),
            PushId::of(&place.project, key).0,
            key.as_str(),
            revision,
            forward.now_ms as i64,
        ])?;
    }
    Ok(())
}

/// The push is deleted.
pub(super) fn drop_push(tx: Tx<'_>, project: &ProjectId, push: PushId) -> Result<(), StoreError> {
    let Ended { end, at_ms, revision, flags, refused, intents, .. } = Ended::dropped();
    let sql = "UPDATE waiting SET ended = ?3, ended_ms = ?4, ended_revision = ?5, flags = ?6, refused = ?7,
                 intents = ?8 WHERE project = ?1 AND uid = ?2 AND ended IS NULL";
    tx.step("drop-waiting", sql)?.run(params![
        project.as_str(),
        push.0,
        end_code(end),
        at_ms as i64,
        revision,
        to_json(&flags)?,
        to_json(&refused)?,
        to_json(&intents)?,
    ])?;
    Ok(())
}

/// Keeps why it was put off, and until when.
pub(super) fn put_off(tx: Tx<'_>, waiting: u64, due_ms: u64, cause: &str) -> Result<(), StoreError> {
    let sql = "UPDATE waiting SET due_ms = ?2, tries = tries + 1, cause = ?3 WHERE id = ?1 AND ended IS NULL";
    tx.step("put-off", sql)?.run(params![waiting as i64, due_ms as i64, cause])?;
    Ok(())
}

/// Ends it, and what else waits for the same target of the same push up to the revision that was forwarded.
pub(super) fn end(tx: Tx<'_>, waiting: &Waiting, ended: &Ended) -> Result<(), StoreError> {
    let sql = "UPDATE waiting SET ended = ?6, ended_ms = ?7, ended_revision = ?5, cycle_there = ?8, flags = ?9,
                 refused = ?10, intents = ?11
               WHERE project = ?1 AND uid = ?2 AND target = ?3 AND ended IS NULL AND (id = ?4 OR revision <= ?5)";
    tx.step("end-waiting", sql)?.run(params![
        waiting.project.as_str(),
        waiting.push.0,
        waiting.target,
        waiting.id as i64,
        ended.revision,
        end_code(ended.end),
        ended.at_ms as i64,
        ended.cycle_there,
        to_json(&ended.flags)?,
        to_json(&ended.refused)?,
        to_json(&ended.intents)?,
    ])?;
    Ok(())
}

/// The oldest that may be tried. One that can't be read keeps no other back; it is an error once nothing else waits.
pub(super) fn next(connection: &Connection, target: &str, now_ms: u64) -> Result<Option<Waiting>, StoreError> {
    let rest = "WHERE target = ?1 AND ended IS NULL AND due_ms <= ?2 ORDER BY id";
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM waiting {rest}"))?;
    let mut rows = statement.query(params![target, now_ms as i64])?;
    let mut damage = None;
    while let Some(row) = rows.next()? {
        match waiting(row) {
            Ok(oldest) => return Ok(Some(oldest)),
            Err(error) => damage = damage.or(Some(error)),
        }
    }
    damage.map_or(Ok(None), Err)
}

/// Those that a query wants, oldest first.
pub(super) fn wanted(connection: &Connection, query: &WaitingQuery) -> Result<Vec<Waiting>, StoreError> {
    let (mut conditions, mut values) = (vec!["true".to_owned()], Vec::new());
    let mut narrow = |column: &str, value: Option<Value>| {
        if let Some(value) = value {
            values.push(value);
            conditions.push(format!("{column} = ?{}", values.len()));
        }
    };
    narrow("target", query.target.clone().map(Value::Text));
    narrow("project", query.project.clone().map(|project| Value::Text(project.into())));
    narrow("cycle", query.cycle.clone().map(|cycle| Value::Text(cycle.into())));
    narrow("uid", query.push.map(|push| Value::Blob(push.0.to_vec())));
    if !query.ended {
        conditions.push("ended IS NULL".to_owned());
    }
    // Below zero: no limit.
    values.push(Value::Integer(query.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))));
    let rest = format!("WHERE {} ORDER BY id LIMIT ?{}", conditions.join(" AND "), values.len());
    select(connection, &rest, values)
}

/// The row of this id, whoever can read it.
pub(super) fn by_row(connection: &Connection, row: i64) -> Result<Option<Waiting>, StoreError> {
    Ok(select(connection, "WHERE id = ?1", [Value::Integer(row)])?.pop())
}

const COLUMNS: &str = "id, target, project, cycle, round, uid, key, revision, since_ms, due_ms, tries, cause, ended, \
     ended_ms, ended_revision, cycle_there, flags, refused, intents";

fn select(
    connection: &Connection,
    rest: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<Waiting>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM waiting {rest}"))?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(waiting(row)?);
    }
    Ok(found)
}

fn waiting(row: &Row<'_>) -> Result<Waiting, StoreError> {
    let text = |column: usize| row.get::<_, String>(column);
    Ok(Waiting {
        id: row.get::<_, i64>(0)? as u64,
        target: text(1)?,
        project: parsed(&text(2)?)?,
        cycle: parsed(&text(3)?)?,
        round: parsed(&text(4)?)?,
        push: PushId(row.get::<_, Fixed<16>>(5)?.0),
        key: parsed(&text(6)?)?,
        revision: row.get(7)?,
        since_ms: row.get::<_, i64>(8)? as u64,
        due_ms: row.get::<_, i64>(9)? as u64,
        tries: row.get(10)?,
        cause: row.get(11)?,
        ended: row.get::<_, Option<i64>>(12)?.map(|end| ended(row, end)).transpose()?,
    })
}

fn ended(row: &Row<'_>, end: i64) -> Result<Ended, StoreError> {
    Ok(Ended {
        end: end_of(end)?,
        at_ms: row.get::<_, i64>(13)? as u64,
        revision: row.get(14)?,
        cycle_there: row.get(15)?,
        flags: json(&row.get::<_, String>(16)?)?,
        refused: json(&row.get::<_, String>(17)?)?,
        intents: json(&row.get::<_, String>(18)?)?,
    })
}

/// An end as a column.
fn end_code(end: End) -> u8 {
    match end {
        End::Forwarded => 0,
        End::Dropped => 1,
    }
}

/// Back from [`end_code`].
fn end_of(code: i64) -> Result<End, StoreError> {
    let found = [End::Forwarded, End::Dropped].into_iter().find(|end| i64::from(end_code(*end)) == code);
    found.ok_or_else(|| broken(format!("a push that waited has an unknown end {code}")))
}
