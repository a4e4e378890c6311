//! The tables of a store in `SQLite`, read only and in one transaction a question, beside a running server or after a kill.
//! Must not know the code that wrote them, and believes no column that it can work out itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::bytes::Bytes;
use super::fold::{Content, Counts, Execution, Kind, Revision, fold};
use super::layout;
use super::names::{Hash, ItemSet, SetRow, bits_for, item_set};

/// The only schema that this reader was written for.
const SCHEMA: i64 = 7;

/// Longer than a writer holds the file on a busy machine.
const BUSY: Duration = Duration::from_secs(30);

/// What one push counts of one item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The push's key.
    pub key: String,
    /// The item, as [`super::item_text`] makes it; ` #2`, ` #3`, … follow where the report could not tell items apart.
    pub item: String,
    /// The push's variant as stored: empty for none, else an object in JSON.
    pub variant: String,
    /// `passed`, `failed`, `errored` or `skipped`.
    pub status: String,
    /// Passed after a failed or errored execution.
    pub flaky: bool,
    /// The revision that had the last word, from 1: of a promotion its own number, not that of what it promotes.
    pub revision: u32,
}

/// An independent reader of a store in `SQLite`.
pub struct Oracle {
    connection: Connection,
}

impl Oracle {
    /// Opens the store at `path` read only; a server may have it open, or a killed one may have left a WAL.
    ///
    /// # Errors
    /// There is no such file, or it is no database.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).with_context(|| path.display().to_string())?;
        connection.busy_timeout(BUSY)?;
        // Reads the first page, so that a file that is no database is told here.
        connection.query_row("SELECT COUNT(*) FROM sqlite_master", [], |_| Ok(()))?;
        Ok(Self { connection })
    }

    /// Carries out `read` on one state of the store; without tables (a kill before there were any) on nothing.
    pub(super) fn reading<T: Default>(
        &self,
        read: impl FnOnce(&mut Reading<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        // Deferred, and never written to: it only holds the state that is read.
        let state = self.connection.unchecked_transaction()?;
        let tables: i64 = state.query_row("SELECT COUNT(*) FROM sqlite_master", [], |row| row.get(0))?;
        if tables == 0 {
            return Ok(T::default());
        }
        let version: Option<i64> = state.query_row("SELECT MAX(version) FROM schema_version", [], |row| row.get(0))?;
        ensure!(version == Some(SCHEMA), "the schema is {version:?}; this reader knows {SCHEMA}");
        read(&mut Reading { connection: &state, sets: BTreeMap::new() })
    }

    /// What each push of a round counts, sorted by key and item; empty if there is no such project, cycle or round.
    ///
    /// # Errors
    /// The bytes contradict the layout or each other.
    pub fn outcomes(&self, project: &str, cycle: &str, round: &str) -> anyhow::Result<Vec<Row>> {
        self.reading(|reading| {
            let mut rows = Vec::new();
            for push in reading.pushes()? {
                if push.project_name == project && push.cycle == cycle && push.round_name == round {
                    rows.extend(reading.rows(&push).with_context(|| push.words())?);
                }
            }
            rows.sort();
            Ok(rows)
        })
    }

    /// `project/key` of every push of the store, sorted; one that is there twice is listed twice.
    ///
    /// # Errors
    /// A push refers to a project, cycle or round that isn't there.
    pub fn pushes(&self) -> anyhow::Result<Vec<String>> {
        self.reading(|reading| {
            let mut all: Vec<String> = reading.pushes()?.iter().map(Push::words).collect();
            all.sort();
            Ok(all)
        })
    }

    /// Number and receipt of each revision of the push with this key; empty if there is no such push.
    ///
    /// # Errors
    /// A receipt is not UTF-8.
    pub fn receipts(&self, project: &str, key: &str) -> anyhow::Result<Vec<(u32, String)>> {
        self.reading(|reading| {
            let mut statement = reading.connection.prepare(
                "SELECT r.revision, r.receipt FROM revision r
                 JOIN push p ON p.id = r.push AND p.project = r.project JOIN project j ON j.id = p.project
                 WHERE j.name = ?1 AND p.key = ?2 ORDER BY r.revision",
            )?;
            let rows =
                statement.query_map(params![project, key], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
            rows.map(|row| {
                let (revision, receipt) = row?;
                Ok((revision, String::from_utf8(receipt).context("a receipt is not UTF-8")?))
            })
            .collect()
        })
    }
}

/// A row of `push` with the names of what it belongs to.
pub(super) struct Push {
    pub(super) id: i64,
    pub(super) project: i64,
    pub(super) project_name: String,
    cycle: String,
    pub(super) round: i64,
    pub(super) round_name: String,
    pub(super) key: String,
    pub(super) job: String,
    pub(super) variant: String,
    pub(super) shard: Option<i64>,
    revision: u32,
    counts: Vec<u8>,
}

impl Push {
    pub(super) fn words(&self) -> String {
        format!("{}/{}", self.project_name, self.key)
    }

    pub(super) fn counts(&self) -> anyhow::Result<Counts> {
        counts(&self.counts)
    }
}

/// A revision and what its row says of its content.
pub(super) struct Recorded {
    pub(super) revision: Revision,
    pub(super) counts: Counts,
}

/// One question to the store: item sets are read once.
pub(super) struct Reading<'a> {
    pub(super) connection: &'a Connection,
    sets: BTreeMap<i64, Rc<ItemSet>>,
}

impl Reading<'_> {
    /// Every push of the store, in the order of ids.
    pub(super) fn pushes(&self) -> anyhow::Result<Vec<Push>> {
        let mut statement = self.connection.prepare(
            "SELECT p.id, p.project, j.name, c.name, p.round, r.round, p.key, p.job, p.variant, p.shard, p.revision,
               p.counts, length(p.uid)
             FROM push p NOT INDEXED LEFT JOIN project j ON j.id = p.project
             LEFT JOIN round r ON r.id = p.round AND r.project = p.project
             LEFT JOIN cycle c ON c.id = r.cycle AND c.project = p.project ORDER BY p.id",
        )?;
        let rows = statement.query_map([], |row| {
            let push = Push {
                id: row.get(0)?,
                project: row.get(1)?,
                project_name: row.get(2)?,
                cycle: row.get(3)?,
                round: row.get(4)?,
                round_name: row.get(5)?,
                key: row.get(6)?,
                job: row.get(7)?,
                variant: row.get(8)?,
                shard: row.get(9)?,
                revision: row.get(10)?,
                counts: row.get(11)?,
            };
            Ok((push, row.get::<_, i64>(12)?))
        })?;
        rows.map(|row| {
            let (push, uid) = row.context("a push without project, cycle or round, or of other types")?;
            ensure!(uid == 16, "{}: a uid of {uid} bytes", push.words());
            Ok(push)
        })
        .collect()
    }

    fn rows(&mut self, push: &Push) -> anyhow::Result<Vec<Row>> {
        let recorded = self.revisions(push)?;
        let revisions: Vec<Revision> = recorded.into_iter().map(|r| r.revision).collect();
        let view = fold(&revisions)?;
        let names: BTreeMap<Hash, &str> =
            self.sets.values().flat_map(|set| &set.items).map(|(hash, name)| (*hash, name.as_str())).collect();
        view.iter()
            .map(|(hash, counted)| {
                let item = names.get(hash).context("an item without a name")?;
                let status = ["passed", "failed", "errored", "skipped"][usize::from(counted.status())];
                Ok(Row {
                    key: push.key.clone(),
                    item: (*item).to_owned(),
                    variant: push.variant.clone(),
                    status: status.to_owned(),
                    flaky: counted.flaky(),
                    revision: counted.revision,
                })
            })
            .collect()
    }

    /// The revisions of a push with their contents.
    pub(super) fn revisions(&mut self, push: &Push) -> anyhow::Result<Vec<Recorded>> {
        let rows = rows(
            self.connection,
            "SELECT revision, kind, of, exact, bits, counts, blockset,
               (SELECT coalesce(max(s.bits), 0) FROM stage s WHERE s.project = r.project AND s.blockset = r.blockset)
             FROM revision r NOT INDEXED WHERE project = ?1 AND push = ?2 ORDER BY revision",
            &[push.project, push.id],
            |row| {
                let (number, kind, of): (u32, i64, Option<u32>) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let (exact, bits, counts): (bool, u8, Vec<u8>) = (row.get(3)?, row.get(4)?, row.get(5)?);
                let (blockset, staged_bits): (i64, u8) = (row.get(6)?, row.get(7)?);
                Ok((number, kind, of, exact, bits, counts, blockset, staged_bits))
            },
        )?;
        let last = rows.last().map_or(0, |row| row.0);
        ensure!(last == push.revision, "the push says revision {}, the last one is {last}", push.revision);
        let mut all = Vec::new();
        let mut blocksets = BTreeMap::new();
        for (number, kind, of, exact, bits, stored, blockset, staged_bits) in rows {
            let kind = kind_of(kind, of, exact).with_context(|| format!("revision {number}"))?;
            let outcomes = self.outcomes(push, number).with_context(|| format!("revision {number}"))?;
            blocksets.insert(number, blockset);
            if let Kind::Promoted { of, .. } = kind {
                let named = blocksets.get(&of).filter(|_| of < number);
                ensure!(named == Some(&blockset), "revision {number} promotes {of} and names other blocks");
            } else {
                // A staged content may lie in more buckets, one or several to a chunk.
                let fit = bits_for(outcomes.len() as u64).max(staged_bits);
                ensure!(bits == fit, "revision {number} has {bits} bits where {fit} fit");
            }
            let mut content = Content::new();
            for (of_bits, item, hash, execution) in outcomes {
                ensure!(of_bits == bits, "revision {number} has {bits} bits, its set {of_bits}");
                ensure!(content.insert(hash, execution).is_none(), "revision {number} holds {item} twice");
            }
            all.push(Recorded { revision: Revision { number, kind, content }, counts: counts(&stored)? });
        }
        Ok(all)
    }

    /// Bits of the set, item, hash and execution of all that a revision holds, as often as it does.
    pub(super) fn outcomes(
        &mut self,
        push: &Push,
        revision: u32,
    ) -> anyhow::Result<Vec<(u8, String, Hash, Execution)>> {
        let blocks = rows(
            self.connection,
            "SELECT b.id, b.bucket, b.n, b.itemset, b.codes, b.times, t.body FROM block b NOT INDEXED
             LEFT JOIN blocktext t ON t.id = b.id
             WHERE b.project = ?1 AND b.blockset IN (SELECT r.blockset FROM revision r NOT INDEXED
               WHERE r.project = ?1 AND r.push = ?2 AND r.revision = ?3 AND r.kind <> 3) ORDER BY b.bucket, b.id",
            &[push.project, push.id, i64::from(revision)],
            |row| {
                let bytes: (Vec<u8>, Vec<u8>, Option<Vec<u8>>) = (row.get(4)?, row.get(5)?, row.get(6)?);
                let (id, bucket, n, set): (i64, u32, u32, i64) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                Ok((id, bucket, n, set, bytes))
            },
        )?;
        let mut all = Vec::new();
        for (id, bucket, n, set, (codes, times, texts)) in blocks {
            let place = || format!("block {id} of bucket {bucket}");
            let set = self.set(push.project, set).with_context(place)?;
            ensure!(set.bucket == bucket, "{}: its set is of bucket {}", place(), set.bucket);
            let items = set.items.len();
            ensure!(n as usize == items, "{}: n is {n}, its set holds {items}", place());
            let block = layout::block(items, &codes, &times, texts.as_deref()).with_context(place)?;
            for text in &block.large {
                self.check_large(push.project, id, text).with_context(place)?;
            }
            let executions = set.items.iter().zip(block.executions);
            all.extend(executions.map(|((hash, item), execution)| (set.bits, item.clone(), *hash, execution)));
        }
        Ok(all)
    }

    fn set(&mut self, project: i64, id: i64) -> anyhow::Result<Rc<ItemSet>> {
        if let Some(set) = self.sets.get(&id) {
            return Ok(Rc::clone(set));
        }
        let found = self.connection.query_row(
            "SELECT s.bits, s.bucket, s.n, s.digest, s.hashes, m.names FROM itemset s
             JOIN setnames m ON m.id = s.id WHERE s.project = ?1 AND s.id = ?2",
            [project, id],
            |row| {
                let (bits, bucket, n): (u8, u32, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let set = SetRow { bits, bucket, n: u64::from(n), digest: row.get(3)?, hashes: row.get(4)? };
                Ok((set, row.get::<_, Vec<u8>>(5)?))
            },
        );
        let (row, names) = found.optional()?.with_context(|| format!("item set {id} or its names are not there"))?;
        let set = Rc::new(item_set(&row, &names).with_context(|| format!("item set {id}"))?);
        self.sets.insert(id, Rc::clone(&set));
        Ok(set)
    }

    fn check_large(&self, project: i64, block: i64, text: &layout::LargeText) -> anyhow::Result<()> {
        let body: Option<Vec<u8>> = self
            .connection
            .query_row(
                "SELECT t.body FROM bigtext t JOIN bigtext_use u ON u.project = t.project AND u.digest = t.digest
                 WHERE t.project = ?1 AND t.digest = ?2 AND u.block = ?3",
                params![project, text.digest, block],
                |row| row.get(0),
            )
            .optional()?;
        layout::check_large(text, &body.context("a large text, or its use, is not there")?).context("a large text")
    }
}

fn rows<T>(
    connection: &Connection,
    sql: &str,
    values: &[i64],
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn kind_of(kind: i64, of: Option<u32>, exact: bool) -> anyhow::Result<Kind> {
    Ok(match (kind, of) {
        (0, None) => Kind::First,
        (1, None) => Kind::Revised,
        (2, None) => Kind::Kept,
        (3, Some(of)) => Kind::Promoted { of, exact },
        _ => bail!("kind {kind} of {of:?}"),
    })
}

/// Total, passed, failed, errored, skipped, flaky: eight bytes each.
fn counts(bytes: &[u8]) -> anyhow::Result<Counts> {
    let mut all = Bytes::new(bytes);
    let mut counts = Counts::default();
    for count in &mut counts {
        *count = all.u64().context("counts")?;
    }
    all.end().context("counts")?;
    Ok(counts)
}
