//! The store beside a bare insert of the same rows in one run: ratios, bytes an outcome, replays a second.
//!
//! Bare: one table (rowid, run, item, status, duration, message), no other index, WAL and FULL, one transaction a push.
//! The store's side begins with a plain list of outcomes: hashing, sorting, digests, encoding and the transaction are
//! inside the measured time. `cargo bench -p tallyonce-store --bench ingest [-- OUTCOMES [REPEATS]]`
#![expect(clippy::disallowed_methods, reason = "a bench measures with the clock")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench stops at the first failure and prints figures")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use domain::forwarding::ForwardRule;
use domain::{DurationUs, ItemName, Outcome, Outcomes, Push, Status};
use rusqlite::{Connection, params};
use store::Store;
use store::conformance::build;

/// A small generator of numbers that look random.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Outcomes of items `from..to`: 5 % failed with 300 bytes of message, half of them new in each round.
fn rows(from: u64, to: u64, round: u64, shuffled: bool) -> Vec<Outcome> {
    // The order of the report is the order in memory, as a reader of reports leaves it.
    let mut order: Vec<u64> = (from..to).collect();
    if shuffled {
        order.sort_by_cached_key(|n| mix(n ^ round << 32));
    }
    order
        .into_iter()
        .map(|n| {
            let class =
                format!("com.acme.shop.module{:03}.service{:02}.CheckoutServiceTest", n / 1000 % 400, n / 100 % 10);
            let name = format!("creates_order_{n:08}_when_cart_holds_{}_lines", mix(n) % 1000);
            let changing = if n.is_multiple_of(2) { 0 } else { round };
            let failed = mix(n * 31 + changing).is_multiple_of(20);
            let text = || {
                format!(
                    "assertion failed: expected {n} but was {}\n{}",
                    n ^ round,
                    "  at frame.of.the.stack\n".repeat(11)
                )
            };
            Outcome {
                item: ItemName::new(["acceptance"], Some(&class), &name),
                status: if failed { Status::Failed } else { Status::Passed },
                duration_us: Some(DurationUs(mix(n ^ round << 40) % 2_000_000)),
                message: failed.then(text),
                attempts: Vec::new(),
                external_ids: Vec::new(),
            }
        })
        .collect()
}

fn bare(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
             PRAGMA wal_autocheckpoint = 4000;
             CREATE TABLE bare(id INTEGER PRIMARY KEY, run INTEGER NOT NULL, item TEXT NOT NULL,
               status INTEGER NOT NULL, duration INTEGER, message TEXT);",
        )
        .unwrap();
    connection
}

fn insert(connection: &Connection, run: u64, rows: &[(String, Outcome)]) -> f64 {
    let start = Instant::now();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    {
        let mut statement = connection
            .prepare_cached("INSERT INTO bare(run, item, status, duration, message) VALUES (?1, ?2, ?3, ?4, ?5)")
            .unwrap();
        for (item, row) in rows {
            let duration = row.duration_us.map(|us| us.0 as i64);
            statement.execute(params![run as i64, item, row.status.code(), duration, row.message]).unwrap();
        }
    }
    connection.execute_batch("COMMIT").unwrap();
    start.elapsed().as_secs_f64()
}

struct Bench {
    runtime: tokio::runtime::Runtime,
    store: Arc<dyn Store>,
    prepare: f64,
}

impl Bench {
    fn push(&mut self, run: u64, rows: Vec<Outcome>) -> (f64, Arc<Push>) {
        let start = Instant::now();
        let outcomes = Outcomes::from_unordered(rows).unwrap();
        let content = outcomes.digests().id();
        self.prepare += start.elapsed().as_secs_f64();
        let mut push = build::push("").run(&run.to_string()).keyed().0;
        (push.outcomes, push.content) = (outcomes, content);
        let push = Arc::new(push);
        self.runtime.block_on(self.store.record(Arc::clone(&push), build::now())).unwrap();
        (start.elapsed().as_secs_f64(), push)
    }
}

fn size(folder: &Path, name: &str) -> u64 {
    let connection = Connection::open(folder.join(name)).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    std::fs::metadata(folder.join(name)).unwrap().len()
}

fn median(list: &mut [f64]) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse::<u64>().ok());
    let (n, repeats) = (numbers.next().unwrap_or(100_000), numbers.next().unwrap_or(5));
    let folder = tempfile::tempdir_in(".").unwrap();
    let bare = bare(&folder.path().join("bare.db"));
    let store = store::open(&format!("sqlite:{}", folder.path().join("store.db").display())).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut bench = Bench { runtime, store, prepare: 0.0 };
    bench.push(1, rows(0, n, 0, false));
    let mut run = 10;
    for (what, fresh, shuffled) in
        [("known items", false, true), ("new, sorted", true, false), ("new, random", true, true)]
    {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        bench.prepare = 0.0;
        let before = (size(folder.path(), "store.db"), size(folder.path(), "bare.db"));
        for _ in 0..repeats {
            run += 1;
            let from = if fresh { run * n } else { 0 };
            let list = rows(from, from + n, run, shuffled);
            let named: Vec<(String, Outcome)> = list.iter().map(|o| (o.item.to_string(), o.clone())).collect();
            theirs.push(insert(&bare, run, &named));
            drop(named);
            ours.push(bench.push(run, list).0);
        }
        let (total, prepare) = (ours.iter().sum::<f64>(), bench.prepare);
        let (a, b) = (median(&mut ours), median(&mut theirs));
        let grown = |after: u64, before: u64| (after - before) as f64 / (n * repeats) as f64;
        println!(
            "{what}: store {:.0}k/s, bare {:.0}k/s, x{:.2}; hashing, sorting, digests {:.0} %; {:.1} B an outcome (bare {:.1})",
            n as f64 / a / 1000.0,
            n as f64 / b / 1000.0,
            b / a,
            prepare / total * 100.0,
            grown(size(folder.path(), "store.db"), before.0),
            grown(size(folder.path(), "bare.db"), before.1),
        );
    }
    replays(&mut bench, n);
    readings(&bench);
    forwarded(folder.path(), &bench.runtime);
}

/// What it costs to keep, with each push, that it is to go on to targets: stores with no, one and five targets take turns.
fn forwarded(folder: &Path, runtime: &tokio::runtime::Runtime) {
    const PUSHES: u64 = 200;
    let stores: Vec<(usize, Arc<dyn Store>)> = [0, 1, 5]
        .map(|targets| {
            let store = store::open(&format!("sqlite:{}", folder.join(format!("{targets}.db")).display())).unwrap();
            let rule = |n| ForwardRule { target: format!("there{n}"), projects: Vec::new(), cycles: Vec::new() };
            store.set_forward_rules((0..targets).map(rule).collect());
            (targets, store)
        })
        .into();
    for outcomes in [100, 10_000] {
        let mut took = vec![Vec::new(); stores.len()];
        for run in 0..PUSHES {
            let push = build::push("").run(&format!("{outcomes}-{run}")).keyed().0;
            let outcomes = Outcomes::from_unordered(rows(0, outcomes, run, true)).unwrap();
            let push = Arc::new(Push { content: outcomes.digests().id(), outcomes, ..push });
            // Whoever is first warms the push for the others.
            for turn in 0..stores.len() {
                let at = (run as usize + turn) % stores.len();
                let (store, took) = (&stores[at].1, &mut took[at]);
                let start = Instant::now();
                runtime.block_on(store.record(Arc::clone(&push), build::now())).unwrap();
                took.push(start.elapsed().as_secs_f64());
            }
        }
        let medians: Vec<f64> = took.iter_mut().map(|took| median(took)).collect();
        for ((targets, _), took) in stores.iter().zip(&medians).skip(1) {
            println!(
                "a push of {outcomes} that goes on to {targets}: {:.2} ms, x{:.2} of one that goes nowhere ({:.2} ms)",
                took * 1000.0,
                took / medians[0],
                medians[0] * 1000.0,
            );
        }
    }
}

fn replays(bench: &mut Bench, n: u64) {
    let (_, large) = bench.push(5, rows(0, n, 5, true));
    let (_, small) = bench.push(6, rows(0, 100, 6, true));
    for (what, push) in [("large", large), ("small", small)] {
        for at_once in [1, 32] {
            let start = Instant::now();
            let store = Arc::clone(&bench.store);
            let rounds = 512 / at_once;
            bench.runtime.block_on(async {
                for _ in 0..rounds {
                    let tasks: Vec<_> = (0..at_once)
                        .map(|_| {
                            let (store, push) = (Arc::clone(&store), Arc::clone(&push));
                            tokio::spawn(async move { store.record(push, build::now()).await })
                        })
                        .collect();
                    for task in tasks {
                        task.await.unwrap().unwrap();
                    }
                }
            });
            let rate = f64::from(rounds * at_once) / start.elapsed().as_secs_f64();
            println!("replays of a {what} push, {at_once} at once: {rate:.0}/s");
        }
    }
}

fn readings(bench: &Bench) {
    let (project, cycle) = (build::shop(), build::main_cycle());
    let store = &bench.store;
    let timed = |what: &str, repeat: bool| {
        let start = Instant::now();
        bench.runtime.block_on(async {
            let query = domain::listing::ItemQuery { limit: Some(100), ..build::query() };
            let failed = domain::listing::ItemQuery {
                status: Some(Status::Failed),
                sort: domain::listing::ItemSort::Status,
                ..query.clone()
            };
            let choice = domain::round::RoundChoice::Latest;
            match what {
                "cycle" => drop(store.cycle(&project, &cycle, &choice).await.unwrap().unwrap()),
                "failed items, first page" => drop(store.items(&project, &cycle, &choice, &failed).await.unwrap()),
                "items by name, first page" => drop(store.items(&project, &cycle, &choice, &query).await.unwrap()),
                "history of an item" => {
                    let item = rows(7, 8, 0, false)[0].item.hash();
                    drop(store.item_history(&project, None, item).await.unwrap().unwrap());
                }
                _ => assert!(store.check().await.unwrap().is_empty(), "the store is sound"),
            }
        });
        println!("{what}{}: {:.1} ms", if repeat { ", again" } else { "" }, start.elapsed().as_secs_f64() * 1000.0);
    };
    for what in ["cycle", "failed items, first page", "items by name, first page", "history of an item", "check"] {
        timed(what, false);
        timed(what, true);
    }
}
