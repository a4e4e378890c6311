//! Writes small stores from the layout's prose: own numbers, frames, hashes. Shares nothing with the reader or the store.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proof::oracle::Oracle;
use rusqlite::{Connection, params};
use tempfile::TempDir;

/// The tables as the store makes them.
pub(super) const SCHEMA: &str = concat!(
    include_str!("../../../../store/src/sqlite/0001_first.sql"),
    include_str!("../../../../store/src/sqlite/0002_staging.sql"),
    include_str!("../../../../store/src/sqlite/0003_forward.sql"),
    include_str!("../../../../store/src/sqlite/0004_waiting.sql"),
    include_str!("../../../../store/src/sqlite/0005_seen.sql"),
    include_str!("../../../../store/src/sqlite/0006_place.sql"),
    include_str!("../../../../store/src/sqlite/0007_plain.sql")
);

pub(super) const PASSED: u8 = 0;
pub(super) const FAILED: u8 = 1;
pub(super) const ERRORED: u8 = 2;
pub(super) const SKIPPED: u8 = 3;

/// One item of a content.
#[derive(Clone)]
pub(super) struct Case {
    encoded: Vec<u8>,
    status: u8,
    bad_before: bool,
    entry: Option<Vec<u8>>,
    large: Vec<String>,
}

impl Case {
    pub(super) fn hash(&self) -> [u8; 16] {
        blake3::hash(&self.encoded).as_bytes()[..16].try_into().unwrap()
    }

    /// With these bytes as its entry in the texts.
    pub(super) fn entry(self, bad_before: bool, entry: Vec<u8>) -> Self {
        Self { bad_before, entry: Some(entry), ..self }
    }

    /// With a message and nothing else in its entry.
    pub(super) fn message(self, message: &str) -> Self {
        let large = if message.len() < 2048 { Vec::new() } else { vec![message.to_owned()] };
        Self { large, ..self.entry(false, [vec![1], text(message)].concat()) }
    }

    /// With one attempt before, without duration and message.
    pub(super) fn after(self, status: u8) -> Self {
        self.entry(status == FAILED || status == ERRORED, vec![2, 1, status, 0, 0])
    }
}

pub(super) fn case(name: &str, status: u8) -> Case {
    item(&[], "", name, 0, status)
}

pub(super) fn item(suite: &[&str], class: &str, name: &str, ordinal: u32, status: u8) -> Case {
    let mut encoded = Vec::new();
    for part in suite.iter().chain([&name, &class]) {
        encoded.extend((part.len() as u32).to_le_bytes());
        encoded.extend(part.bytes());
    }
    encoded.extend((suite.len() as u32).to_le_bytes());
    encoded.extend(ordinal.to_le_bytes());
    Case { encoded, status, bad_before: false, entry: None, large: Vec::new() }
}

pub(super) fn varint(number: usize) -> Vec<u8> {
    if number < 128 { vec![number as u8] } else { [vec![number as u8 | 128], varint(number >> 7)].concat() }
}

pub(super) fn text(words: &str) -> Vec<u8> {
    if words.len() < 2048 {
        [varint(words.len() * 2), words.into()].concat()
    } else {
        [varint(words.len() * 2 + 1), blake3::hash(words.as_bytes()).as_bytes().to_vec()].concat()
    }
}

fn frame(plain: &[u8], zip: bool) -> Vec<u8> {
    let body = if zip { zstd::encode_all(plain, 3).unwrap() } else { plain.to_vec() };
    [vec![u8::from(zip)], (plain.len() as u32).to_le_bytes().to_vec(), body].concat()
}

/// A store in a folder of its own.
pub(super) struct Book {
    pub(super) folder: TempDir,
    pub(super) tables: Connection,
    /// Whether frames are zstd; stored ones are easier to damage.
    pub(super) zip: bool,
}

impl Book {
    pub(super) fn new() -> Self {
        Self::with_schema(SCHEMA)
    }

    /// Tables that don't refuse doubles.
    pub(super) fn without_unique() -> Self {
        let plain = SCHEMA.replace("CREATE UNIQUE INDEX", "CREATE INDEX").replace("NOT NULL UNIQUE", "NOT NULL");
        let lines: Vec<&str> = plain.lines().collect();
        // A line `UNIQUE(…));` ends its table: what is before it loses its comma.
        let lines = lines.iter().map(|line| if line.trim().starts_with("UNIQUE(") { "@);" } else { line });
        Self::with_schema(&lines.collect::<Vec<_>>().join("\n").replace(",\n@);", ");"))
    }

    fn with_schema(schema: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tables = Connection::open(folder.path().join("store.db")).unwrap();
        tables.pragma_update(None, "journal_mode", "WAL").unwrap();
        tables.pragma_update(None, "synchronous", "OFF").unwrap();
        tables.execute_batch(schema).unwrap();
        tables.execute("INSERT INTO schema_version VALUES (1), (2), (3), (4), (5), (6), (7)", []).unwrap();
        Self { folder, tables, zip: false }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    pub(super) fn oracle(&self) -> Oracle {
        Oracle::open(&self.path()).unwrap()
    }

    pub(super) fn run(&self, sql: &str) {
        assert!(self.tables.execute(sql, []).unwrap() > 0, "{sql}");
    }

    /// Changes the bytes of each row of a column.
    pub(super) fn patch(&self, table: &str, column: &str, change: impl Fn(&mut Vec<u8>)) {
        let mut statement = self.tables.prepare(&format!("SELECT id, {column} FROM {table}")).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let rows: Vec<(i64, Vec<u8>)> = rows.map(Result::unwrap).collect();
        for (id, mut bytes) in rows {
            change(&mut bytes);
            let sql = format!("UPDATE {table} SET {column} = ?1 WHERE id = ?2");
            self.tables.execute(&sql, params![bytes, id]).unwrap();
        }
    }

    fn id(&self, table: &str, name: &str, values: &[(&str, &dyn rusqlite::ToSql)]) -> i64 {
        let found = format!("SELECT MAX(id) FROM {table} WHERE {name}");
        let all: Vec<_> = values.iter().map(|(_, value)| *value).collect();
        if let Some(id) = self.tables.query_row(&found, &*all, |row| row.get(0)).unwrap() {
            return id;
        }
        let columns: Vec<&str> = values.iter().map(|(column, _)| *column).collect();
        let marks = vec!["?"; values.len()].join(",");
        self.tables.execute(&format!("INSERT INTO {table}({}) VALUES ({marks})", columns.join(",")), &*all).unwrap();
        self.tables.last_insert_rowid()
    }

    /// A push of project `project` in round `run` of cycle `main`, without revisions yet.
    pub(super) fn push(&self, project: &str, run: &str, key: &str, variant: &str, shard: Option<u32>) -> Push {
        let project = self.id("project", "name = ?1", &[("name", &project)]);
        let cycle = self.id("cycle", "project = ?1 AND name = ?2", &[("project", &project), ("name", &"main")]);
        let round = self.id(
            "round",
            "project = ?1 AND cycle = ?2 AND round = ?3 AND run = ?4 AND recorded_at = ?5",
            &[("project", &project), ("cycle", &cycle), ("round", &run), ("run", &run), ("recorded_at", &"now")],
        );
        let uid = blake3::hash(format!("{project} {key}").as_bytes());
        self.tables
            .execute(
                "INSERT INTO push(project, uid, key, round, job, variant, shard, run, late, revision, deliveries, replays,
                   counts) VALUES (?1, ?2, ?3, ?4, 'unit', ?5, ?6, ?7, 0, 0, 1, 0, zeroblob(48))",
                params![project, &uid.as_bytes()[..16], key, round, variant, shard, run],
            )
            .unwrap();
        Push { project, id: self.tables.last_insert_rowid() }
    }

    /// What the push counts.
    pub(super) fn counts(&self, push: &Push, counts: [u64; 6]) {
        let sql = "UPDATE push SET counts = ?1 WHERE id = ?2";
        self.tables.execute(sql, params![eight(counts), push.id]).unwrap();
    }

    /// A content, sorted and cut as it should be.
    pub(super) fn revision(&self, push: &Push, number: u32, kind: u8, cases: &[Case]) {
        let mut bits = 0;
        while cases.len() > 4096 << bits {
            bits += 1;
        }
        let mut buckets: BTreeMap<u32, Vec<Case>> = BTreeMap::new();
        for case in cases {
            let head = u64::from(u32::from_be_bytes(case.hash()[..4].try_into().unwrap()));
            buckets.entry((head >> (32 - bits)) as u32).or_default().push(case.clone());
        }
        for bucket in buckets.values_mut() {
            bucket.sort_by_key(Case::hash);
        }
        self.raw_revision(push, number, kind, bits, &buckets.into_iter().collect::<Vec<_>>());
    }

    /// A content just as given.
    pub(super) fn raw_revision(&self, push: &Push, number: u32, kind: u8, bits: u8, buckets: &[(u32, Vec<Case>)]) {
        let mut counts = [0; 6];
        for case in buckets.iter().flat_map(|(_, cases)| cases) {
            counts[0] += 1;
            counts[1 + usize::from(case.status)] += 1;
            counts[5] += u64::from(case.bad_before && case.status == PASSED);
        }
        self.tables.execute("INSERT INTO blockset(project) VALUES (?1)", [push.project]).unwrap();
        let content = self.tables.last_insert_rowid();
        self.revision_row(push, number, kind, None, bits, counts, content);
        for (bucket, cases) in buckets {
            self.block(push, content, bits, *bucket, cases);
        }
    }

    /// A promotion: `exact` or not, of revision `of`, whose content counts so by itself.
    pub(super) fn promotion(&self, push: &Push, number: u32, of: u32, exact: bool, counts: [u64; 6]) {
        let content = "SELECT coalesce(max(blockset), 0) FROM revision WHERE push = ?1 AND revision = ?2";
        let content: i64 = self.tables.query_row(content, params![push.id, of], |row| row.get(0)).unwrap();
        self.revision_row(push, number, 3, Some((of, exact)), 0, counts, content);
    }

    #[expect(clippy::too_many_arguments, reason = "a row has as many columns")]
    fn revision_row(
        &self,
        push: &Push,
        number: u32,
        kind: u8,
        of: Option<(u32, bool)>,
        bits: u8,
        counts: [u64; 6],
        content: i64,
    ) {
        let (of, exact) = of.map_or((None, false), |(of, exact)| (Some(of), exact));
        let receipt = format!("{{\"revision\":{number}}}").into_bytes();
        self.tables
            .execute(
                "INSERT INTO revision(project, push, revision, kind, of, exact, ordinal_scope, content, outcomes, bits,
                   counts, files, report, incomplete, recorded_at, receipt, blockset)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, x'', x'', ?7, ?8, '', '', 0, 'now', ?9, ?10)",
                params![push.project, push.id, number, kind, of, exact, bits, eight(counts), receipt, content],
            )
            .unwrap();
        self.tables.execute("UPDATE push SET revision = ?1 WHERE id = ?2", params![number, push.id]).unwrap();
    }

    fn block(&self, push: &Push, content: i64, bits: u8, bucket: u32, cases: &[Case]) {
        let hashes: Vec<u8> = cases.iter().flat_map(Case::hash).collect();
        let names: Vec<u8> = cases.iter().flat_map(|c| [varint(c.encoded.len()), c.encoded.clone()].concat()).collect();
        let digest = [b"tallyonce set 1".to_vec(), vec![bits], bucket.to_le_bytes().to_vec(), hashes.clone()].concat();
        let digest = blake3::hash(&digest).as_bytes()[..16].to_vec();
        let n = cases.len() as u32;
        let known = "SELECT MAX(id) FROM itemset WHERE project = ?1 AND digest = ?2";
        let known: Option<i64> = self.tables.query_row(known, params![push.project, digest], |row| row.get(0)).unwrap();
        let set = known.unwrap_or_else(|| {
            let sql = "INSERT INTO itemset(project, digest, bits, bucket, n, hashes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            self.tables.execute(sql, params![push.project, digest, bits, bucket, n, hashes]).unwrap();
            let set = self.tables.last_insert_rowid();
            let names = frame(&names, self.zip);
            self.tables.execute("INSERT INTO setnames VALUES (?1, ?2)", params![set, names]).unwrap();
            set
        });
        let code = |c: &Case| c.status | u8::from(c.bad_before) << 2 | u8::from(c.entry.is_some()) << 3;
        let codes: Vec<u8> = cases.iter().map(code).collect();
        // One plane: each took its place in microseconds.
        let times: Vec<u8> = [1].into_iter().chain((0..cases.len()).map(|at| at as u8)).collect();
        let block = params![push.project, content, bucket, n, set, frame(&codes, self.zip), frame(&times, self.zip)];
        self.tables
            .execute(
                "INSERT INTO block(project, blockset, bucket, n, itemset, codes, times)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                block,
            )
            .unwrap();
        self.texts(push, self.tables.last_insert_rowid(), cases);
    }

    fn texts(&self, push: &Push, block: i64, cases: &[Case]) {
        let entries: Vec<u8> = cases.iter().filter_map(|c| c.entry.clone()).flatten().collect();
        if !entries.is_empty() {
            let body = frame(&entries, self.zip);
            self.tables.execute("INSERT INTO blocktext VALUES (?1, ?2)", params![block, body]).unwrap();
        }
        for words in cases.iter().flat_map(|c| &c.large) {
            let digest = blake3::hash(words.as_bytes()).as_bytes().to_vec();
            let body = frame(words.as_bytes(), self.zip);
            let values = params![push.project, digest, body];
            self.tables.execute("INSERT OR IGNORE INTO bigtext VALUES (?1, ?2, ?3)", values).unwrap();
            let values = params![push.project, digest, block];
            self.tables.execute("INSERT OR IGNORE INTO bigtext_use VALUES (?1, ?2, ?3)", values).unwrap();
        }
    }
}

/// An epoch of a push: its key, number, fate (0 open, 5 committed), what becomes of its blocks, bits, and blockset.
pub(super) struct Epoch<'a> {
    pub(super) key: &'a str,
    pub(super) number: u32,
    pub(super) fate: u8,
    pub(super) revision: Option<u32>,
    pub(super) blocks: u8,
    pub(super) bits: u8,
    pub(super) blockset: i64,
}

impl Book {
    /// An epoch of a push of project 1.
    pub(super) fn epoch(&self, epoch: &Epoch<'_>) {
        let Epoch { key, number, fate, revision, blocks, bits, blockset } = epoch;
        let uid = blake3::hash(format!("1 {key}").as_bytes());
        let values = params![&uid.as_bytes()[..16], key, number, fate, revision, blocks, bits, blockset];
        self.tables
            .execute(
                "INSERT INTO stage(project, uid, key, epoch, fate, revision, blocks, bits, blockset, cycle, round,
                   manifest_digest, content, n, began_at, touched_ms, manifest, promises)
                 VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'main', 'r', x'', x'', 2, 'now', 0, '', x'')",
                values,
            )
            .unwrap();
    }
}

pub(super) struct Push {
    pub(super) project: i64,
    pub(super) id: i64,
}

fn eight(counts: [u64; 6]) -> Vec<u8> {
    counts.into_iter().flat_map(u64::to_le_bytes).collect()
}
