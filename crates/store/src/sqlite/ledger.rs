//! The ledger in the file: turns, intents, cycles there. Must not know what an intent writes, nor which steps there are.

use async_trait::async_trait;
use domain::intent::{Flag, Intent, IntentId, IntentState};
use domain::listing::IntentReport;
use domain::marker::WriteId;
use domain::mutant;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::SqliteStore;
use super::connect::broken;
use super::points::{Op, Tx};
use super::rows::{Fixed, json, parsed, to_json};
use crate::ledger::all_for;
use crate::{Advanced, IntentQuery, Ledger, StoreError};

#[async_trait]
impl Ledger for SqliteStore {
    async fn next_turn(&self, target: &str) -> Result<u64, StoreError> {
        let target = target.to_owned();
        self.writer.run(move |connection| next_turn(Tx::of(connection, Op::LEDGER), &target)).await
    }

    async fn plan_intents(
        &self,
        target: &str,
        turn: u64,
        intents: Vec<Intent>,
    ) -> Result<Option<Vec<Intent>>, StoreError> {
        all_for(target, &intents)?;
        let target = target.to_owned();
        self.writer.run(move |connection| plan(Tx::of(connection, Op::LEDGER), (&target, turn), intents)).await
    }

    async fn intents(&self, query: IntentQuery) -> Result<Vec<Intent>, StoreError> {
        self.readers.read(move |snap| intents(snap, &query)).await
    }

    async fn intent_reports(&self, query: IntentQuery) -> Result<Vec<IntentReport>, StoreError> {
        self.readers.read(move |snap| reports(snap, &query)).await
    }

    async fn advance_intent(&self, turn: u64, from: IntentState, intent: Intent) -> Result<Advanced, StoreError> {
        self.writer.run(move |connection| advance(Tx::of(connection, Op::LEDGER), turn, from, &intent)).await
    }

    async fn cycle_there(&self, target: &str, id: WriteId) -> Result<Option<String>, StoreError> {
        let target = target.to_owned();
        self.readers.read(move |snap| cycle_there(snap, &target, id)).await
    }

    async fn keep_cycle_there(
        &self,
        target: &str,
        turn: u64,
        id: WriteId,
        cycle: Option<String>,
    ) -> Result<bool, StoreError> {
        let target = target.to_owned();
        self.writer
            .run(move |connection| keep_cycle(Tx::of(connection, Op::LEDGER), (&target, turn), id, cycle.as_deref()))
            .await
    }
}

fn next_turn(tx: Tx<'_>, target: &str) -> Result<u64, StoreError> {
    let sql = "INSERT INTO turn(target, turn) VALUES (?1, 1)
               ON CONFLICT(target) DO UPDATE SET turn = turn + 1, holder = NULL, until_ms = NULL";
    tx.step("raise-turn", sql)?.run([target])?;
    highest(&tx, target)?.ok_or_else(|| broken("a turn that was given out is not there"))
}

/// The highest turn that was given out at a target.
fn highest(connection: &Connection, target: &str) -> Result<Option<u64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT turn FROM turn WHERE target = ?1")?;
    Ok(statement.query_row([target], |row| row.get::<_, i64>(0)).optional()?.map(|turn| turn as u64))
}

/// Whether nobody took a later turn. One that was never given out counts as little as an old one.
pub(super) fn counts(connection: &Connection, target: &str, turn: u64) -> Result<bool, StoreError> {
    Ok(highest(connection, target)? == Some(turn))
}

fn plan(tx: Tx<'_>, (target, turn): (&str, u64), intents: Vec<Intent>) -> Result<Option<Vec<Intent>>, StoreError> {
    if !counts(&tx, target, turn)? {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(intents.len());
    for intent in intents {
        let known = select(&tx, "WHERE uid = ?1", [Value::Blob(uid(intent.id).to_vec())])?.pop();
        if known.is_none() {
            insert(tx, &intent)?;
        }
        kept.push(known.unwrap_or(intent));
    }
    Ok(Some(kept))
}

fn insert(tx: Tx<'_>, intent: &Intent) -> Result<(), StoreError> {
    let sql =
        "INSERT INTO intent(uid, target, project, cycle, round, key, number, cases, state, sends, planned_ms, changed_ms,
           sent_ms, seen_ms, cycle_there, flags, cause, refused, body, settled_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?12)";
    tx.step("insert-intent", sql)?.run(params![
        uid(intent.id),
        intent.target,
        intent.project.as_str(),
        intent.cycle.as_str(),
        intent.round.as_str(),
        intent.key.as_str(),
        intent.number,
        intent.cases,
        state_code(intent.state),
        intent.sends,
        intent.planned_ms as i64,
        intent.changed_ms as i64,
        intent.sent_ms.map(|ms| ms as i64),
        intent.seen_ms.map(|ms| ms as i64),
        intent.cycle_there,
        to_json(&intent.flags)?,
        intent.cause,
        to_json(&intent.refused)?,
        intent.body,
    ])?;
    Ok(())
}

fn advance(tx: Tx<'_>, turn: u64, from: IntentState, intent: &Intent) -> Result<Advanced, StoreError> {
    if !counts(&tx, &intent.target, turn)? {
        return Ok(Advanced::Fenced);
    }
    let mut statement = tx.prepare_cached("SELECT state FROM intent WHERE uid = ?1 AND target = ?2")?;
    let code = statement.query_row(params![uid(intent.id), intent.target], |row| row.get(0)).optional()?;
    let Some(code) = code else { return Ok(Advanced::Unplanned) };
    let kept = state_of(code)?;
    // The same step of two writers at once.
    let as_equal = mutant!(M38) && kept == intent.state;
    if kept != from && !as_equal {
        return Ok(Advanced::Elsewhere(kept));
    }
    let sql = "UPDATE intent SET state = ?2, sends = ?3, changed_ms = ?4, sent_ms = ?5, seen_ms = ?6, cycle_there = ?7,
               flags = ?8, cause = ?9, refused = ?10, planned_ms = ?11, settled_ms = CASE state WHEN ?2 THEN settled_ms ELSE ?4 END,
               swept = CASE state WHEN ?2 THEN swept ELSE 0 END WHERE uid = ?1";
    tx.step("update-intent", sql)?.run(params![
        uid(intent.id),
        state_code(intent.state),
        intent.sends,
        intent.changed_ms as i64,
        intent.sent_ms.map(|ms| ms as i64),
        intent.seen_ms.map(|ms| ms as i64),
        intent.cycle_there,
        to_json(&intent.flags)?,
        intent.cause,
        to_json(&intent.refused)?,
        intent.planned_ms as i64,
    ])?;
    Ok(Advanced::Done)
}

fn cycle_there(connection: &Connection, target: &str, id: WriteId) -> Result<Option<String>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT cycle FROM cycle_there WHERE target = ?1 AND uid = ?2")?;
    Ok(statement.query_row(params![target, id.0.to_be_bytes()], |row| row.get(0)).optional()?)
}

fn keep_cycle(tx: Tx<'_>, (target, turn): (&str, u64), id: WriteId, cycle: Option<&str>) -> Result<bool, StoreError> {
    if !counts(&tx, target, turn)? {
        return Ok(false);
    }
    let id = id.0.to_be_bytes();
    if let Some(cycle) = cycle {
        let sql = "INSERT OR REPLACE INTO cycle_there(target, uid, cycle) VALUES (?1, ?2, ?3)";
        tx.step("keep-cycle-there", sql)?.run(params![target, id, cycle])?;
    } else {
        let sql = "DELETE FROM cycle_there WHERE target = ?1 AND uid = ?2";
        tx.step("forget-cycle-there", sql)?.run(params![target, id])?;
    }
    Ok(true)
}

fn intents(connection: &Connection, query: &IntentQuery) -> Result<Vec<Intent>, StoreError> {
    let (rest, values) = wanted(query);
    select(connection, &rest, values)
}

fn reports(connection: &Connection, query: &IntentQuery) -> Result<Vec<IntentReport>, StoreError> {
    let (rest, values) = wanted(query);
    list(connection, &rest, values)
}

/// What a query wants, as the rest of a statement.
fn wanted(query: &IntentQuery) -> (String, Vec<Value>) {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut narrow = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            values.push(value);
            conditions.push(format!("{condition} ?{}", values.len()));
        }
    };
    narrow("target =", query.target.clone().map(Value::Text));
    narrow("project =", query.project.clone().map(|project| Value::Text(project.into())));
    narrow("cycle =", query.cycle.clone().map(|cycle| Value::Text(cycle.into())));
    narrow("key =", query.key.clone().map(|key| Value::Text(key.into())));
    narrow("cycle_there =", query.cycle_there.clone().map(Value::Text));
    narrow("changed_ms <", query.changed_before_ms.map(|ms| Value::Integer(ms as i64)));
    if !query.states.is_empty() {
        let codes: Vec<String> = query.states.iter().map(|state| state_code(*state).to_string()).collect();
        conditions.push(format!("state IN ({})", codes.join(", ")));
    }
    conditions.extend(query.in_doubt.map(in_doubt));
    if !query.ids.is_empty() {
        // One value, however many they are.
        let names: Vec<String> = query.ids.iter().map(|id| format!("\"{id}\"")).collect();
        values.push(Value::Text(format!("[{}]", names.join(","))));
        conditions.push(format!("uid IN (SELECT unhex(value) FROM json_each(?{}))", values.len()));
    }
    // Below zero: no limit.
    values.push(Value::Integer(query.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))));
    let wanted = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
    (format!("{wanted} ORDER BY planned_ms, number, id LIMIT ?{}", values.len()), values)
}

/// As `Intent::is_in_doubt` has it, or not.
fn in_doubt(whether: bool) -> String {
    let states: Vec<String> = IntentState::ALL
        .into_iter()
        .filter(|state| state.is_uncertain())
        .map(|state| state_code(state).to_string())
        .collect();
    let is_flagged = |flag: Flag| format!("flags LIKE '%\"{flag}\"%'");
    let wrong: Vec<String> = Flag::ALL.into_iter().filter(|flag| flag.is_wrong()).map(is_flagged).collect();
    let not = if whether { "" } else { "NOT " };
    format!(
        "{not}((state IN ({}) OR flags <> '[]' AND ({})) AND NOT {})",
        states.join(", "),
        wrong.join(" OR "),
        is_flagged(Flag::GivenUp)
    )
}

/// All but the body.
const COLUMNS: &str = "uid, target, project, cycle, round, key, number, cases, state, sends, planned_ms, changed_ms, \
     sent_ms, seen_ms, cycle_there, flags, cause, refused";

/// Intents for which the rest of the query holds.
pub(super) fn select(
    connection: &Connection,
    rest: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<Intent>, StoreError> {
    each(connection, ("body", rest), values, |intent| intent)
}

/// The same without what they mean to write: of a long body not one byte is read.
pub(super) fn list(
    connection: &Connection,
    rest: &str,
    values: impl IntoIterator<Item = Value>,
) -> Result<Vec<IntentReport>, StoreError> {
    each(connection, ("X''", rest), values, IntentReport::from)
}

fn each<T>(
    connection: &Connection,
    (body, rest): (&str, &str),
    values: impl IntoIterator<Item = Value>,
    make: impl Fn(Intent) -> T,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS}, {body} FROM intent {rest}"))?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(make(intent(row)?));
    }
    Ok(found)
}

/// The intent of a row, whoever can read it.
pub(super) fn by_row(connection: &Connection, row: i64) -> Result<Option<Intent>, StoreError> {
    Ok(select(connection, "WHERE id = ?1", [Value::Integer(row)])?.pop())
}

fn intent(row: &Row<'_>) -> Result<Intent, StoreError> {
    let text = |column: usize| row.get::<_, String>(column);
    Ok(Intent {
        id: IntentId(u128::from_be_bytes(row.get::<_, Fixed<16>>(0)?.0)),
        target: text(1)?,
        project: parsed(&text(2)?)?,
        cycle: parsed(&text(3)?)?,
        round: parsed(&text(4)?)?,
        key: parsed(&text(5)?)?,
        number: row.get(6)?,
        cases: row.get(7)?,
        state: state_of(row.get(8)?)?,
        sends: row.get(9)?,
        planned_ms: row.get::<_, i64>(10)? as u64,
        changed_ms: row.get::<_, i64>(11)? as u64,
        sent_ms: row.get::<_, Option<i64>>(12)?.map(|ms| ms as u64),
        seen_ms: row.get::<_, Option<i64>>(13)?.map(|ms| ms as u64),
        cycle_there: row.get(14)?,
        flags: json(&text(15)?)?,
        cause: row.get(16)?,
        refused: json(&text(17)?)?,
        body: row.get(18)?,
    })
}

fn uid(id: IntentId) -> [u8; 16] {
    id.0.to_be_bytes()
}

/// A state as a column.
pub(super) fn state_code(state: IntentState) -> u8 {
    match state {
        IntentState::Planned => 0,
        IntentState::Sending => 1,
        IntentState::Acked => 2,
        IntentState::Rejected => 3,
        IntentState::Unknown => 4,
        IntentState::Reconciling => 5,
        IntentState::Found => 6,
        IntentState::Absent => 7,
        IntentState::Parked => 8,
    }
}

/// Back from [`state_code`].
pub(super) fn state_of(code: i64) -> Result<IntentState, StoreError> {
    let found = IntentState::ALL.into_iter().find(|state| i64::from(state_code(*state)) == code);
    found.ok_or_else(|| broken(format!("an intent in unknown state {code}")))
}
