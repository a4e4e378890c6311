//! What stands at the product against an own count of what was pushed; and the tables of the store, read by themselves.
//! Must not ask the program.

use std::collections::BTreeMap;

use rusqlite::{Connection, OpenFlags};

use crate::world::{ITEMS, Product, World, fails};

/// Forwarding as the tables have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    /// Pushes that still wait.
    pub(crate) waiting: u64,
    /// Intents that are not settled, by state.
    pub(crate) open: Vec<i64>,
    /// Intents that are parked.
    pub(crate) parked: u64,
    /// Flags of intents and of what has ended.
    pub(crate) flags: Vec<String>,
    /// The highest turn.
    pub(crate) turn: i64,
}

pub(crate) fn tables(world: &World) -> Tables {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let Ok(connection) = Connection::open_with_flags(world.store(), flags) else { return Tables::default() };
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap_or(0);
    let list = |sql: &str| {
        let mut rows = connection.prepare(sql).unwrap();
        let rows = rows.query_map([], |row| row.get::<_, i64>(0)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let mut rows = connection
        .prepare("SELECT flags FROM intent WHERE flags <> '[]' UNION SELECT flags FROM waiting WHERE flags <> '[]'")
        .unwrap();
    let texts: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let mut flags: Vec<String> =
        texts.iter().flat_map(|text| serde_json::from_str::<Vec<String>>(text).unwrap()).collect();
    flags.sort();
    flags.dedup();
    Tables {
        waiting: count("SELECT count(*) FROM waiting WHERE ended IS NULL") as u64,
        // Planned, sending, unknown, reconciling, absent.
        open: list("SELECT state FROM intent WHERE state IN (0, 1, 4, 5, 7) ORDER BY id"),
        parked: count("SELECT count(*) FROM intent WHERE state = 8") as u64,
        flags,
        turn: count("SELECT max(turn) FROM turn"),
    }
}

/// Rows of one case, by what they say.
type Seen = BTreeMap<bool, usize>;

/// What is wrong: lost, more than once, or another verdict. `jobs`: those that were pushed, each once.
pub(crate) fn wrong(world: &World, jobs: &[usize]) -> Vec<String> {
    let ledger = world.stub.ledger();
    let mut wrong = Vec::new();
    if ledger.items().len() != ITEMS {
        wrong.push(format!("{} cases of {ITEMS} have rows", ledger.items().len()));
    }
    for (case, rows) in ledger.items() {
        let at = world.item_of(case);
        let mut seen = Seen::new();
        for row in rows {
            *seen.entry(is_bad(world.product, &row.status)).or_default() += 1;
        }
        let mut expected = Seen::new();
        match world.product {
            Product::Appends => {
                for job in jobs {
                    *expected.entry(fails(*job, at)).or_default() += 1;
                }
            }
            // One execution a case, whoever wrote last.
            Product::Replaces => *expected.entry(seen.keys().next().copied().unwrap_or(false)).or_default() += 1,
        }
        if seen != expected {
            wrong.push(format!("case {case}: failed or not {seen:?}, expected {expected:?}: {rows:?}"));
        }
        if let (Product::Replaces, [job]) = (world.product, jobs)
            && seen.keys().ne([&fails(*job, at)])
        {
            wrong.push(format!("case {case} has another verdict: {rows:?}"));
        }
        let mut markers: Vec<&str> = rows.iter().map(|row| row.marker.as_str()).collect();
        markers.sort_unstable();
        if markers.windows(2).any(|pair| pair[0] == pair[1]) {
            wrong.push(format!("case {case} has one marker twice: {rows:?}"));
        }
    }
    wrong
}

/// Whether the product's number stands for a failure.
fn is_bad(product: Product, status: &str) -> bool {
    match (product, status) {
        (Product::Appends, "1") | (Product::Replaces, "4") => false,
        (Product::Appends | Product::Replaces, "5") => true,
        (_, other) => panic!("a row says {other:?}"),
    }
}

/// All that must hold once everything has settled: nothing waits, nothing is open or parked, the store is sound, and every
/// outcome stands there once; or it is said.
pub(crate) fn judge(world: &World, jobs: &[usize]) -> Result<(), String> {
    let (swept, flags) = world.sweep();
    let tables = tables(world);
    let mut found = Vec::new();
    if tables.waiting > 0 || !tables.open.is_empty() || tables.parked > 0 {
        found.push(format!("stuck: {tables:?}"));
    }
    let sound = world.run(&["check-store", "--store", &world.store_url(), "--json"]).output().unwrap();
    if sound.code != Some(0) {
        found.push(format!("the store is damaged: {sound}"));
    }
    let wrong = wrong(world, jobs);
    if !wrong.is_empty() {
        found.push(wrong.join("; "));
    }
    if !flags.is_empty() {
        found.push(format!("flags {flags:?}"));
    }
    if swept.code != Some(0) {
        found.push(format!("the sweep: {swept}"));
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}
