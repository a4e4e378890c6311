//! Which place a target's ledger stands for, in the file. Must not know what a place is.

use async_trait::async_trait;
use domain::forwarding::TargetPlace;
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteStore;
use super::ledger::counts;
use super::points::{Op, Tx};
use crate::{Bound, Places, StoreError};

#[async_trait]
impl Places for SqliteStore {
    async fn place(&self, target: &str) -> Result<Option<TargetPlace>, StoreError> {
        let target = target.to_owned();
        self.readers.read(move |snap| place(snap, &target)).await
    }

    async fn bind_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<Bound, StoreError> {
        let target = target.to_owned();
        self.writer.run(move |connection| bind(Tx::of(connection, Op::LEDGER), (&target, turn), &place)).await
    }

    async fn move_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<bool, StoreError> {
        let target = target.to_owned();
        self.writer.run(move |connection| replace(Tx::of(connection, Op::LEDGER), (&target, turn), &place)).await
    }
}

fn place(connection: &Connection, target: &str) -> Result<Option<TargetPlace>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT place FROM target_place WHERE target = ?1")?;
    let text: Option<String> = statement.query_row([target], |row| row.get(0)).optional()?;
    Ok(text.map(TargetPlace::new))
}

fn bind(tx: Tx<'_>, (target, turn): (&str, u64), wanted: &TargetPlace) -> Result<Bound, StoreError> {
    if !counts(&tx, target, turn)? {
        return Ok(Bound::Fenced);
    }
    match place(&tx, target)? {
        Some(known) if known == *wanted => Ok(Bound::Here),
        Some(known) => Ok(Bound::Elsewhere(known)),
        None => {
            let sql = "INSERT INTO target_place(target, place) VALUES (?1, ?2)";
            tx.step("keep-place", sql)?.run(params![target, wanted.as_str()])?;
            Ok(Bound::Here)
        }
    }
}

fn replace(tx: Tx<'_>, (target, turn): (&str, u64), wanted: &TargetPlace) -> Result<bool, StoreError> {
    if !counts(&tx, target, turn)? {
        return Ok(false);
    }
    let sql = "INSERT OR REPLACE INTO target_place(target, place) VALUES (?1, ?2)";
    tx.step("move-place", sql)?.run(params![target, wanted.as_str()])?;
    Ok(true)
}
