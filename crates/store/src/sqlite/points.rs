//! Statements that write: the one way to run them, each after a point at which proof can kill the process or fail the
//! statement. Must not know tables.

use std::ops::Deref;

use rusqlite::{CachedStatement, Connection, Params};

use crate::StoreError;

/// Every point of the store in a file, so that faults can be enumerated; `k3` to `k6` are older names for some of them.
#[cfg(feature = "failpoints")]
pub const FAIL_POINTS: &[&str] = &[];

/// What a transaction is for: the middle of its points' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Op(&'static str);

impl Op {
    pub(super) const RECORD: Self = Self("record");
    pub(super) const BEGIN: Self = Self("begin");
    pub(super) const PUT: Self = Self("put");
    pub(super) const COMMIT: Self = Self("commit");
    pub(super) const CANCEL: Self = Self("cancel");
    pub(super) const COLLECT: Self = Self("collect");
    pub(super) const PROMOTE: Self = Self("promote");
    pub(super) const SET_ROUND: Self = Self("set-round");
    pub(super) const DROP_ROUND: Self = Self("drop-round");
    pub(super) const REPAIR: Self = Self("repair");
}

/// A connection inside the writer's transaction, on behalf of one operation.
#[derive(Clone, Copy)]
pub(super) struct Tx<'c> {
    connection: &'c Connection,
    op: Op,
}

impl Deref for Tx<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl<'c> Tx<'c> {
    pub(super) fn of(connection: &'c Connection, op: Op) -> Self {
        Self { connection, op }
    }

    pub(super) fn connection(&self) -> &'c Connection {
        self.connection
    }

    /// A statement that writes. `name` tells it from the others of an operation.
    pub(super) fn step(&self, name: &'static str, sql: &str) -> Result<Step<'c>, StoreError> {
        Ok(Step { statement: self.connection.prepare_cached(sql)?, op: self.op, name })
    }
}

/// A statement that writes, ready to run.
#[cfg_attr(not(feature = "failpoints"), expect(dead_code, reason = "names are read by points only"))]
pub(super) struct Step<'c> {
    statement: CachedStatement<'c>,
    op: Op,
    name: &'static str,
}

impl Step<'_> {
    /// Runs it; gives the number of rows that it changed.
    pub(super) fn run(&mut self, values: impl Params) -> Result<usize, StoreError> {
        self.point()?;
        Ok(self.statement.execute(values)?)
    }

    #[cfg(feature = "failpoints")]
    fn point(&self) -> Result<(), StoreError> {
        let name = format!("store:{}:{}", self.op.0, self.name);
        if std::env::var("PTS").is_ok() {
            eprintln!("POINT {name}");
        } // TEMP
        fail::fail_point!(&name, |_| Err(StoreError::NotWritten { what: format!("stopped at {name}") }));
        Ok(())
    }

    #[cfg(not(feature = "failpoints"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same shape as with fail points")]
    fn point(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
