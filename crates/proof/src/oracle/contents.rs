//! What lies under one key, content by content and epoch by epoch, for whoever judges a whole history.
//! Must not know who offered what.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use rusqlite::params;

use super::fold::Kind;
use super::tables::{Oracle, Push};

/// How a revision came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The first content of its push.
    First,
    /// Laid over what was there.
    Revised,
    /// Kept beside what counts.
    Kept,
    /// An earlier content, made to count.
    Promoted,
}

/// One revision of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// From 1.
    pub revision: u32,
    /// How it came to be.
    pub how: How,
    /// Item text to status, of this content by itself; empty for a promotion.
    pub items: BTreeMap<String, String>,
}

/// What became of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Chunks are still taken.
    Open,
    /// A later epoch took over.
    Superseded,
    /// Collected.
    Abandoned,
    /// Given up by its runner.
    Cancelled,
    /// Its commit was refused for good.
    Refused,
    /// It is this revision.
    Committed(u32),
}

impl Oracle {
    /// The revisions of a push, in order; none if it isn't there. `key` is the push key.
    ///
    /// # Errors
    /// The bytes contradict the layout or each other.
    pub fn contents(&self, project: &str, key: &str) -> anyhow::Result<Vec<Stored>> {
        self.reading(|reading| {
            let named = |push: &Push| push.project_name == project && push.key == key;
            let Some(push) = reading.pushes()?.into_iter().find(named) else { return Ok(Vec::new()) };
            let mut all = Vec::new();
            for recorded in reading.revisions(&push)? {
                let revision = recorded.revision.number;
                let how = match recorded.revision.kind {
                    Kind::First => How::First,
                    Kind::Revised => How::Revised,
                    Kind::Kept => How::Kept,
                    Kind::Promoted { .. } => How::Promoted,
                };
                let mut items = BTreeMap::new();
                for (_, item, _, execution) in reading.outcomes(&push, revision)? {
                    let words = ["passed", "failed", "errored", "skipped"];
                    let status = words.get(usize::from(execution.status)).context("a status")?;
                    items.insert(item, (*status).to_owned());
                }
                all.push(Stored { revision, how, items });
            }
            Ok(all)
        })
    }

    /// The epochs of a push, in order; none if it was never staged, or was dropped.
    ///
    /// # Errors
    /// A fate that no epoch can have.
    pub fn epochs(&self, project: &str, key: &str) -> anyhow::Result<Vec<(u32, Fate)>> {
        self.reading(|reading| {
            let mut statement = reading.connection.prepare(
                "SELECT s.epoch, s.fate, s.revision FROM stage s NOT INDEXED JOIN project j ON j.id = s.project
                 WHERE j.name = ?1 AND s.key = ?2 ORDER BY s.epoch, s.id",
            )?;
            let rows = statement.query_map(params![project, key], |row| {
                Ok((row.get::<_, u32>(0)?, row.get::<_, i64>(1)?, row.get::<_, Option<u32>>(2)?))
            })?;
            rows.map(|row| {
                let (epoch, fate, revision) = row?;
                let fate = match (fate, revision) {
                    (0, None) => Fate::Open,
                    (1, None) => Fate::Superseded,
                    (2, None) => Fate::Abandoned,
                    (3, None) => Fate::Cancelled,
                    (4, None) => Fate::Refused,
                    (5, Some(revision)) => Fate::Committed(revision),
                    _ => bail!("epoch {epoch} has fate {fate} and revision {revision:?}"),
                };
                Ok((epoch, fate))
            })
            .collect()
        })
    }

    /// Chunks that lie under epochs of the push, each once, committed ones included.
    ///
    /// # Errors
    /// The tables can't be read.
    pub fn staged_chunks(&self, project: &str, key: &str) -> anyhow::Result<u64> {
        self.reading(|reading| {
            let count: i64 = reading.connection.query_row(
                "SELECT COUNT(*) FROM stage_chunk c JOIN stage s ON s.id = c.stage AND s.project = c.project
                 JOIN project j ON j.id = s.project WHERE j.name = ?1 AND s.key = ?2",
                params![project, key],
                |row| row.get(0),
            )?;
            Ok(u64::try_from(count)?)
        })
    }
}
