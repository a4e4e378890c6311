//! Forwarding by the server itself, in the file: what waits, leases, what counts of a push, sweeps. Must not know what an
//! intent writes, nor when to try again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use domain::forwarding::{ForwardRule, Held, Lease, SWEEPS_MS, Taking, due_sweep};
use domain::intent::{Flag, IntentId, IntentState};
use domain::verdict::RevisionKind;
use domain::{Outcome, ProjectId, PushId};
use rusqlite::types::{FromSql, Value};
use rusqlite::{Connection, OptionalExtension, params};

use super::content::{Snap, fold};
use super::detail;
use super::facts::{Missing, project};
use super::ledger::{self, counts, state_code, state_of};
use super::parts::{Part, WHOLE_OUTCOMES};
use super::points::{Op, Tx};
use super::rows::{self, Fixed, json};
use super::{SqliteStore, pushes, waiting};
use crate::{
    Absent, DueSweep, Ended, ForwardTotals, Forwards, ForwardsOf, Found, PushLoad, StoreError, Waiting, WaitingQuery,
};

/// The rules of an open store.
#[derive(Default)]
pub(super) struct Rules(RwLock<Arc<Vec<ForwardRule>>>);

impl Rules {
    /// As they are now.
    pub(super) fn now(&self) -> Arc<Vec<ForwardRule>> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, rules: Vec<ForwardRule>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }
}

#[async_trait]
impl Forwards for SqliteStore {
    fn set_forward_rules(&self, rules: Vec<ForwardRule>) {
        self.rules.set(rules);
    }

    async fn take_lease(
        &self,
        target: &str,
        holder: &str,
        now_ms: u64,
        until_ms: u64,
    ) -> Result<Option<u64>, StoreError> {
        let wish = Arc::new((target.to_owned(), holder.to_owned()));
        let asking = Arc::clone(&wish);
        // Whoever stands by asks often, and must not hold up the writer each time.
        let kept = self.readers.read(move |snap| lease(snap, &asking.0)).await?;
        if kept.take(holder, now_ms, until_ms) == Taking::Refused {
            return Ok(None);
        }
        self.writer
            .run(move |connection| take(Tx::of(connection, Op::FORWARDS), (&wish.0, &wish.1), now_ms, until_ms))
            .await
    }

    async fn keep_lease(&self, target: &str, turn: u64, until_ms: u64) -> Result<bool, StoreError> {
        let target = target.to_owned();
        let sql = "UPDATE turn SET until_ms = ?3 WHERE target = ?1 AND turn = ?2 AND holder IS NOT NULL";
        let keep = move |connection: &Connection| {
            let tx = Tx::of(connection, Op::FORWARDS);
            Ok(tx.step("keep-lease", sql)?.run(params![target, turn as i64, until_ms as i64])? > 0)
        };
        self.writer.run(keep).await
    }

    async fn end_lease(&self, target: &str, turn: u64) -> Result<(), StoreError> {
        let target = target.to_owned();
        let sql = "UPDATE turn SET holder = NULL, until_ms = NULL WHERE target = ?1 AND turn = ?2";
        let end = move |connection: &Connection| {
            Tx::of(connection, Op::FORWARDS).step("end-lease", sql)?.run(params![target, turn as i64])?;
            Ok(())
        };
        self.writer.run(end).await
    }

    async fn next_waiting(&self, target: &str, now_ms: u64) -> Result<Option<Waiting>, StoreError> {
        let target = target.to_owned();
        self.readers.read(move |snap| waiting::next(snap, &target, now_ms)).await
    }

    async fn put_off(&self, turn: u64, waiting: &Waiting, due_ms: u64, cause: &str) -> Result<bool, StoreError> {
        let (id, cause) = (waiting.id, cause.to_owned());
        self.fenced(&waiting.target, turn, move |tx| waiting::put_off(tx, id, due_ms, &cause)).await
    }

    async fn end_waiting(&self, turn: u64, waiting: &Waiting, ended: Ended) -> Result<bool, StoreError> {
        let of = waiting.clone();
        self.fenced(&waiting.target, turn, move |tx| waiting::end(tx, &of, &ended)).await
    }

    async fn waiting(&self, query: WaitingQuery) -> Result<Vec<Waiting>, StoreError> {
        self.readers.read(move |snap| waiting::wanted(snap, &query)).await
    }

    async fn push_load(&self, project: &ProjectId, push: PushId) -> Found<PushLoad> {
        let project = project.clone();
        self.read(move |snap, _| push_load(snap, &project, push)).await
    }

    async fn due_sweeps(
        &self,
        target: &str,
        now_ms: u64,
        without: &[String],
        limit: usize,
    ) -> Result<Vec<DueSweep>, StoreError> {
        // A list of texts always becomes JSON.
        let (target, without) = (target.to_owned(), serde_json::to_string(without).unwrap_or_default());
        self.readers.read(move |snap| due_sweeps(snap, (&target, now_ms), &without, limit)).await
    }

    async fn swept(&self, target: &str, turn: u64, ids: Vec<IntentId>, number: u32) -> Result<bool, StoreError> {
        let of = target.to_owned();
        let sql = "UPDATE intent SET swept = ?3 WHERE uid = ?1 AND target = ?2";
        let keep = move |tx: Tx<'_>| {
            let mut step = tx.step("sweep-intent", sql)?;
            ids.into_iter().try_for_each(|id| step.run(params![id.0.to_be_bytes(), of, number]).map(drop))
        };
        self.fenced(target, turn, keep).await
    }

    async fn forwards_of(&self, project: &ProjectId, push: PushId) -> Found<ForwardsOf> {
        let project = project.clone();
        self.read(move |snap, _| forwards_of(snap, &project, push)).await
    }

    async fn forward_totals(&self) -> Result<BTreeMap<String, ForwardTotals>, StoreError> {
        self.readers.read(|snap| totals(snap)).await
    }
}

impl SqliteStore {
    /// Runs `work` if `turn` is the target's highest, in one transaction; else gives false.
    async fn fenced<F>(&self, target: &str, turn: u64, work: F) -> Result<bool, StoreError>
    where
        F: FnOnce(Tx<'_>) -> Result<(), StoreError> + Send + 'static,
    {
        let target = target.to_owned();
        let fenced = move |connection: &Connection| {
            let tx = Tx::of(connection, Op::FORWARDS);
            if !counts(&tx, &target, turn)? {
                return Ok(false);
            }
            work(tx)?;
            Ok(true)
        };
        self.writer.run(fenced).await
    }
}

/// The turn at a target, and who has it.
fn lease(connection: &Connection, target: &str) -> Result<Lease, StoreError> {
    let mut statement = connection.prepare_cached("SELECT turn, holder, until_ms FROM turn WHERE target = ?1")?;
    let lease = statement.query_row([target], |row| {
        let held: Option<String> = row.get(1)?;
        let until_ms = row.get::<_, Option<i64>>(2)?.unwrap_or(0) as u64;
        Ok(Lease { turn: row.get::<_, i64>(0)? as u64, held: held.map(|holder| Held { holder, until_ms }) })
    });
    Ok(lease.optional()?.unwrap_or_default())
}

fn take(tx: Tx<'_>, (target, holder): (&str, &str), now_ms: u64, until_ms: u64) -> Result<Option<u64>, StoreError> {
    let (lease, granted) = match lease(&tx, target)?.take(holder, now_ms, until_ms) {
        Taking::Granted(lease) => (lease, true),
        Taking::Shortened(lease) => (lease, false),
        Taking::Refused => return Ok(None),
    };
    let held = lease.held.as_ref();
    let sql = "INSERT INTO turn(target, turn, holder, until_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT(target)
               DO UPDATE SET turn = excluded.turn, holder = excluded.holder, until_ms = excluded.until_ms";
    tx.step("take-lease", sql)?.run(params![
        target,
        lease.turn as i64,
        held.map(|held| held.holder.as_str()),
        held.map(|held| held.until_ms as i64),
    ])?;
    Ok(granted.then_some(lease.turn))
}

fn push_load(snap: &Snap<'_>, name: &ProjectId, uid: PushId) -> Result<PushLoad, Missing> {
    let push = pushes::load(snap, name, uid)?;
    let project = push.row.project;
    let n = push.revisions.iter().map(|revision| revision.counts.total).sum();
    let mut outcomes = Vec::new();
    for part in Part::of(n, WHOLE_OUTCOMES) {
        let view = fold(snap, project, &push.revisions, part)?;
        let whole = detail::counting(snap, &push, &view.hashes)?;
        // Part by part, so that of texts no more than a part's is ever whole in memory.
        outcomes.extend(whole.into_iter().map(Outcome::for_forwarding));
    }
    let mut statement = snap.prepare_cached("SELECT run_url FROM round WHERE id = ?1")?;
    let run_url = statement.query_row([push.row.round], |row| row.get(0))?;
    let counting = push.revisions.iter().rev().find(|revision| revision.known.kind != RevisionKind::Kept);
    let ordinal = counting.and_then(|revision| revision.known.sender.ordinal);
    let row = push.row;
    Ok(PushLoad { key: row.key, place: row.place, revision: row.revision, ordinal, run_url, outcomes })
}

/// `without`: names of cycles, as JSON.
fn due_sweeps(
    connection: &Connection,
    (target, now_ms): (&str, u64),
    without: &str,
    limit: usize,
) -> Result<Vec<DueSweep>, StoreError> {
    let before = |after: u64| now_ms.saturating_sub(after) as i64;
    let mut statement = connection.prepare_cached(
        // Each half has an index of its own.
        "SELECT uid, cycle_there, settled_ms, swept FROM (
           SELECT id, uid, cycle_there, settled_ms, swept FROM intent
           WHERE target = ?1 AND swept < 2 AND state IN (2, 6, 8) AND settled_ms <= CASE swept WHEN 0 THEN ?2 ELSE ?3 END
           UNION ALL
           SELECT id, uid, cycle_there, settled_ms, swept FROM intent
           WHERE target = ?1 AND swept < 2 AND state = 3 AND sends > 1
             AND settled_ms <= CASE swept WHEN 0 THEN ?2 ELSE ?3 END)
         WHERE coalesce(cycle_there, '') NOT IN (SELECT value FROM json_each(?5))
         ORDER BY settled_ms, id LIMIT ?4",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![target, before(SWEEPS_MS[0]), before(SWEEPS_MS[1]), limit, without])?;
    let mut due = Vec::new();
    while let Some(row) = rows.next()? {
        if let Some(number) = due_sweep(row.get::<_, i64>(2)? as u64, row.get(3)?, now_ms) {
            let id = IntentId(u128::from_be_bytes(row.get::<_, Fixed<16>>(0)?.0));
            due.push(DueSweep { id, cycle_there: row.get(1)?, number });
        }
    }
    Ok(due)
}

fn forwards_of(snap: &Snap<'_>, name: &ProjectId, uid: PushId) -> Result<ForwardsOf, Missing> {
    let query = WaitingQuery { project: Some(name.clone()), push: Some(uid), ended: true, ..WaitingQuery::default() };
    let waiting = waiting::wanted(snap, &query)?;
    let key = match waiting.first() {
        Some(row) => row.key.clone(),
        None => rows::push_by_uid(snap, project(snap, name)?, uid)?.ok_or(Absent::Push)?.key,
    };
    let values = [Value::Text(name.to_string()), Value::Text(key.to_string())];
    let intents = ledger::list(snap, "WHERE project = ?1 AND key = ?2 ORDER BY planned_ms, number, id", values)?;
    Ok(ForwardsOf { key, waiting, intents })
}

fn totals(connection: &Connection) -> Result<BTreeMap<String, ForwardTotals>, StoreError> {
    let mut all: BTreeMap<String, ForwardTotals> = BTreeMap::new();
    let older = |of: &mut ForwardTotals, ms: i64| {
        of.oldest_ms = Some(of.oldest_ms.map_or(ms as u64, |oldest| oldest.min(ms as u64)));
    };
    let sql = "SELECT target, count(*), min(since_ms) FROM waiting WHERE ended IS NULL GROUP BY target";
    for (target, n, since_ms) in grouped::<i64>(connection, sql)? {
        let of = all.entry(target).or_default();
        of.waiting = n;
        older(of, since_ms);
    }
    let sql = "SELECT target, count(*), state FROM intent GROUP BY target, state";
    for (target, n, state) in grouped::<i64>(connection, sql)? {
        all.entry(target).or_default().states.insert(state_of(state)?, n);
    }
    // Of what is parked, nobody has to look at those any more.
    let sql = "SELECT target, count(*), min(state) FROM intent WHERE flags <> '[]' AND flags LIKE '%\"given-up\"%' \
               AND state = 8 GROUP BY target";
    for (target, n, state) in grouped::<i64>(connection, sql)? {
        let (states, state) = (&mut all.entry(target).or_default().states, state_of(state)?);
        if let Some(left) = states.remove(&state).map(|all| all.saturating_sub(n)).filter(|left| *left > 0) {
            states.insert(state, left);
        }
    }
    let sql = "SELECT target, count(*), flags FROM intent WHERE flags <> '[]' GROUP BY target, flags";
    for (target, n, flags) in grouped::<String>(connection, sql)? {
        let of = all.entry(target).or_default();
        for flag in Flag::said(json::<BTreeSet<Flag>>(&flags)?.iter()) {
            *of.flags.entry(flag).or_default() += n;
        }
    }
    let open = IntentState::ALL.into_iter().filter(|state| !state.is_settled());
    let open: Vec<String> = open.map(|state| state_code(state).to_string()).collect();
    let sql = "SELECT target, count(*), min(planned_ms) FROM intent WHERE state IN (STATES) GROUP BY target";
    for (target, _, planned_ms) in grouped::<i64>(connection, &sql.replace("STATES", &open.join(", ")))? {
        older(all.entry(target).or_default(), planned_ms);
    }
    Ok(all)
}

/// Rows of a target, a number, and whatever the query is about.
fn grouped<T: FromSql>(connection: &Connection, sql: &str) -> Result<Vec<(String, u64, T)>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64, row.get(2)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
