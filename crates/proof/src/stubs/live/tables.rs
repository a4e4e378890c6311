//! What stands in the tables of a real product. Must not trust its interface, nor write.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row};

use crate::rigs::Vendor;
use crate::stubs::vendor::{Ledger, RecordedRow};

/// As long as a rig's writers wait for one another.
const PATIENCE: Duration = Duration::from_mins(1);

fn open(database: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}

/// Executions that hold a verdict. A place that is still to be filled is no outcome.
const KIWI: &str = "
    SELECT c.summary, e.id, e.run_id,
           (SELECT l.url FROM linkreference_linkreference l WHERE l.execution_id = e.id ORDER BY l.id DESC LIMIT 1),
           s.name, e.stop_date,
           (SELECT group_concat('link ' || l.url, char(10)) FROM linkreference_linkreference l WHERE l.execution_id = e.id),
           (SELECT group_concat('comment ' || d.comment, char(10)) FROM django_comments d
              JOIN django_content_type t ON t.id = d.content_type_id
              WHERE t.model = 'testexecution' AND d.object_pk = CAST(e.id AS TEXT))
    FROM testruns_testexecution e
    JOIN testruns_testrun r ON r.id = e.run_id
    JOIN testplans_testplan p ON p.id = r.plan_id
    JOIN testcases_testcase c ON c.id = e.case_id
    JOIN testruns_testexecutionstatus s ON s.id = e.status_id
    WHERE p.name = ?1 AND s.weight <> 0
    ORDER BY e.id";

const NITRATE: &str = "
    SELECT c.summary, e.case_run_id, e.run_id, e.notes, s.name, e.close_date, NULL,
           (SELECT group_concat('comment ' || d.comment, char(10)) FROM django_comments d
              JOIN django_content_type t ON t.id = d.content_type_id
              WHERE t.model = 'testcaserun' AND d.object_pk = CAST(e.case_run_id AS TEXT))
    FROM test_case_runs e
    JOIN test_runs r ON r.run_id = e.run_id
    JOIN test_plans p ON p.plan_id = r.plan_id
    JOIN test_cases c ON c.case_id = e.case_id
    JOIN test_case_run_status s ON s.case_run_status_id = e.case_run_status_id
    WHERE p.name = ?1 AND s.name NOT IN ('IDLE', 'RUNNING', 'PAUSED')
    ORDER BY e.case_run_id";

/// Item to rows.
pub(super) fn recorded(vendor: Vendor, database: &Path, plan: &str) -> anyhow::Result<Ledger> {
    let connection = open(database)?;
    let mut statement = connection.prepare(match vendor {
        Vendor::Kiwi => KIWI,
        Vendor::Nitrate => NITRATE,
    })?;
    Ok(statement.query_map([plan], recorded_row)?.collect::<Result<_, _>>()?)
}

fn recorded_row(row: &Row<'_>) -> rusqlite::Result<(String, RecordedRow)> {
    let id: i64 = row.get(1)?;
    let text = |at: usize| row.get::<_, Option<String>>(at).map(Option::unwrap_or_default);
    let side = text(6)?.lines().chain(text(7)?.lines()).map(str::to_owned).collect();
    let recorded = RecordedRow {
        id: id.to_string(),
        cycle: row.get::<_, i64>(2)?.to_string(),
        marker: text(3)?,
        status: text(4)?,
        order: id.unsigned_abs(),
        created_ms: millis(&text(5)?),
        side,
    };
    Ok((row.get(0)?, recorded))
}

/// `2026-01-02 03:04:05.678`, in UTC; 0 if it is none.
fn millis(text: &str) -> i64 {
    format!("{text}Z").parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond)
}

/// The runs of a plan, oldest first.
pub(super) fn runs(vendor: Vendor, database: &Path, plan: &str) -> anyhow::Result<Vec<String>> {
    let connection = open(database)?;
    let mut statement = connection.prepare(match vendor {
        Vendor::Kiwi => {
            "SELECT r.id FROM testruns_testrun r JOIN testplans_testplan p ON p.id = r.plan_id WHERE p.name = ?1
             ORDER BY r.id"
        }
        Vendor::Nitrate => {
            "SELECT r.run_id FROM test_runs r JOIN test_plans p ON p.plan_id = r.plan_id WHERE p.name = ?1
             ORDER BY r.run_id"
        }
    })?;
    let ids = statement.query_map([plan], |row| row.get::<_, i64>(0))?;
    Ok(ids.map(|id| id.map(|id| id.to_string())).collect::<Result<_, _>>()?)
}
