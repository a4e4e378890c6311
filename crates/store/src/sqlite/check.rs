//! Every contradiction in a store: rows that hang in the air, counts against a recount, contents against their digests,
//! receipts against what they say. Must go on where something is damaged, and mends only what can be derived.

mod contents;
mod intents;
mod orphans;
mod recount;
mod repair;
mod sets;
mod staged;
mod stages;
mod texts;

use rusqlite::Connection;

use super::content::Snap;

use crate::{Damage, StoreError};
pub(super) use repair::{apply, counts, lengths};

/// What was found so far.
#[derive(Default)]
struct Report {
    found: Vec<Damage>,
}

impl Report {
    fn add(&mut self, kind: &'static str, place: impl Into<String>, what: impl Into<String>) {
        self.found.push(Damage { kind, place: place.into(), what: what.into() });
    }

    /// One damage for each row: its first column says where, its second what.
    fn rows(&mut self, connection: &Connection, kind: &'static str, table: &str, sql: &str) -> Result<(), StoreError> {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (id, what): (i64, String) = (row.get(0)?, row.get(1)?);
            self.add(kind, format!("{table} {id}"), what);
        }
        Ok(())
    }

    /// What a part of the check could not read is damage, too.
    fn part(&mut self, place: &str, result: Result<(), StoreError>) -> Result<(), StoreError> {
        match result {
            Err(StoreError::Broken { what }) => {
                self.add("unreadable", place, what);
                Ok(())
            }
            other => other,
        }
    }
}

/// Checks everything.
pub(super) fn check(snap: &Snap<'_>) -> Result<Vec<Damage>, StoreError> {
    let mut report = Report::default();
    let engine = engine(snap, &mut report);
    report.part("file", engine)?;
    let orphans = orphans::check(snap, &mut report);
    report.part("tables", orphans)?;
    let staged = staged::check(snap, &mut report);
    report.part("tables", staged)?;
    let sets = sets::check(snap, &mut report);
    report.part("itemset", sets)?;
    let texts = texts::check(snap, &mut report);
    report.part("blocktext", texts)?;
    let contents = contents::check(snap, &mut report).map(drop);
    report.part("push", contents)?;
    let stages = stages::check(snap, &mut report);
    report.part("stage", stages)?;
    let intents = intents::check(snap, &mut report);
    report.part("intent", intents)?;
    let waiting = intents::waiting(snap, &mut report);
    report.part("waiting", waiting)?;
    Ok(report.found)
}

/// What the engine says of its own file.
fn engine(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    let mut statement = connection.prepare("PRAGMA quick_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            report.add("file-damaged", "file", line);
        }
    }
    Ok(())
}
