//! Statements that write: the one way to run them, each after a point at which proof can kill the process or fail the
//! statement. Must not know tables.

use std::ops::Deref;

use rusqlite::{CachedStatement, Connection, Params};

use crate::StoreError;

/// Every point of the store in a file, so that faults can be enumerated; `k3` to `k6` are older names for some of them.
#[cfg(feature = "failpoints")]
pub const FAIL_POINTS: &[&str] = &[
    "store:begin:contest-push",
    "store:begin:contest-stage",
    "store:begin:end-stage",
    "store:begin:insert-blockset",
    "store:begin:insert-delivery",
    "store:begin:insert-executor",
    "store:begin:insert-project",
    "store:begin:insert-sender",
    "store:begin:insert-stage",
    "store:begin:raise-attempt",
    "store:begin:replay-push",
    "store:begin:touch-stage",
    "store:begin:update-round",
    "store:cancel:end-stage",
    "store:collect:delete-block",
    "store:collect:delete-chunks",
    "store:collect:delete-itemset",
    "store:collect:delete-large-text",
    "store:collect:delete-large-text-uses",
    "store:collect:delete-names",
    "store:collect:delete-senders",
    "store:collect:delete-stage",
    "store:collect:delete-stage-blockset",
    "store:collect:delete-texts",
    "store:collect:end-stage",
    "store:collect:see-idle",
    "store:collect:sweep-stage",
    "store:commit:contest-push",
    "store:commit:end-stage",
    "store:commit:forget-comparisons",
    "store:commit:insert-cycle",
    "store:commit:insert-delivery",
    "store:commit:insert-executor",
    "store:commit:insert-push",
    "store:commit:insert-revision",
    "store:commit:insert-round",
    "store:commit:insert-waiting",
    "store:commit:keep-refusal",
    "store:commit:link-stage",
    "store:commit:overlay-push",
    "store:commit:raise-attempt",
    "store:commit:replay-push",
    "store:commit:show-project",
    "store:commit:update-round",
    "store:drop-round:delete-block",
    "store:drop-round:delete-blockset",
    "store:drop-round:delete-chunks",
    "store:drop-round:delete-cycle",
    "store:drop-round:delete-deliveries",
    "store:drop-round:delete-executors",
    "store:drop-round:delete-itemset",
    "store:drop-round:delete-large-text",
    "store:drop-round:delete-large-text-uses",
    "store:drop-round:delete-names",
    "store:drop-round:delete-push",
    "store:drop-round:delete-revisions",
    "store:drop-round:delete-round",
    "store:drop-round:delete-senders",
    "store:drop-round:delete-stage",
    "store:drop-round:delete-stage-blockset",
    "store:drop-round:delete-texts",
    "store:drop-round:drop-waiting",
    "store:drop-round:end-stage",
    "store:drop-round:insert-tombstone",
    "store:drop-round:tombstone-stage",
    "store:forwards:end-lease",
    "store:forwards:end-waiting",
    "store:forwards:keep-lease",
    "store:forwards:put-off",
    "store:forwards:sweep-intent",
    "store:forwards:take-lease",
    "store:ledger:forget-cycle-there",
    "store:ledger:insert-intent",
    "store:ledger:keep-cycle-there",
    "store:ledger:keep-place",
    "store:ledger:move-place",
    "store:ledger:raise-turn",
    "store:ledger:update-intent",
    "store:promote:insert-delivery",
    "store:promote:insert-revision",
    "store:promote:insert-waiting",
    "store:promote:promote-push",
    "store:promote:update-round",
    "store:put:insert-block",
    "store:put:insert-chunk",
    "store:put:insert-itemset",
    "store:put:insert-large-text",
    "store:put:insert-large-text-use",
    "store:put:insert-names",
    "store:put:insert-texts",
    "store:put:touch-stage",
    "store:queue:send",
    "store:queue:wait",
    "store:read:begin",
    "store:read:wait",
    "store:record:contest-push",
    "store:record:contest-stage",
    "store:record:end-stage",
    "store:record:insert-block",
    "store:record:insert-blockset",
    "store:record:insert-cycle",
    "store:record:insert-delivery",
    "store:record:insert-executor",
    "store:record:insert-itemset",
    "store:record:insert-large-text",
    "store:record:insert-large-text-use",
    "store:record:insert-names",
    "store:record:insert-project",
    "store:record:insert-push",
    "store:record:insert-revision",
    "store:record:insert-round",
    "store:record:insert-texts",
    "store:record:insert-waiting",
    "store:record:overlay-push",
    "store:record:raise-attempt",
    "store:record:replay-push",
    "store:record:show-project",
    "store:record:update-round",
    "store:repair:mend-block",
    "store:repair:mend-itemset",
    "store:repair:mend-push",
    "store:repair:mend-revision",
    "store:repair:update-round",
    "store:set-round:close-round",
    "store:set-round:pin-round",
    "store:txn:begin",
    "store:txn:commit-after",
    "store:txn:commit-before",
    "store:txn:in-commit",
    "store:txn:release",
    "store:txn:savepoint",
];

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
    pub(super) const LEDGER: Self = Self("ledger");
    pub(super) const FORWARDS: Self = Self("forwards");
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
        debug_assert!(FAIL_POINTS.contains(&name.as_str()), "{name} is not in the list");
        fail::fail_point!(&name, |_| Err(StoreError::NotWritten { what: format!("stopped at {name}") }));
        Ok(())
    }

    #[cfg(not(feature = "failpoints"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the same shape as with fail points")]
    fn point(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
