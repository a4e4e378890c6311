//! From file to durable, as a user has it: the built program against a bare insert of the same rows, in one run.
//!
//! `cargo bench -p tallyonce --bench push` prints ratios; figures go to docs/performance.md. With
//! `-- --sizes 10000,100000,1000000,5000000` it measures staged pushes of these sizes instead. Rates of a shared machine
//! move; only numbers of one run may be compared. Must not fail a build: it measures.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measuring program reads the clock, prints, and may stop on any trouble"
)]

mod load;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use load::{Names, bare_insert, junit, median, random_order, sorted_order};
use proof::spawn::{Binary, Server};

const OUTCOMES: usize = 100_000;
const REPEATS: usize = 5;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let binary = Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap();
    if let Some(sizes) = std::env::args().skip_while(|argument| argument != "--sizes").nth(1) {
        for size in sizes.split(',') {
            load::staged::measure(folder.path(), &binary, size.parse().unwrap());
        }
        return;
    }
    start_up(binary.path());
    let rates = bare(folder.path());
    file_to_durable(folder.path(), &binary, &rates, false);
    file_to_durable(folder.path(), &binary, &rates, true);
    replays(folder.path(), &binary);
    memory(folder.path(), binary.path());
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn start_up(program: &Path) {
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            timed(|| assert!(Command::new(program).arg("--version").stdout(Stdio::null()).status().unwrap().success()))
        })
        .collect();
    println!("process start (--version, median of 50): {:.1} ms", median(&mut times).as_secs_f64() * 1e3);
}

/// Rows a second of the bare insert, for names in order and in random order.
struct Rates {
    sorted: f64,
    random: f64,
}

fn rate(times: &mut [Duration]) -> f64 {
    OUTCOMES as f64 / median(times).as_secs_f64()
}

fn bare(folder: &Path) -> Rates {
    let measure = |order: &[usize], label: &str| {
        let mut times: Vec<Duration> = (0..REPEATS)
            .map(|n| {
                let names = Names { seed: n as u64 };
                bare_insert(&folder.join("bare.db"), &names, order)
            })
            .collect();
        let rate = rate(&mut times);
        println!("bare insert, {label}: {:.0}k rows/s", rate / 1e3);
        rate
    };
    Rates { sorted: measure(&sorted_order(OUTCOMES), "sorted"), random: measure(&random_order(OUTCOMES), "random") }
}

fn push(program: &Path, folder: &Path, file: &str, to: &str, run: &str) -> Duration {
    timed(|| {
        let output = Command::new(program)
            .args(["push", file, "--json", "--project", "shop", "--cycle", "main", "--run", run, "--to", to])
            .current_dir(folder)
            .env_clear()
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    })
}

fn file_to_durable(folder: &Path, binary: &Binary, rates: &Rates, http: bool) {
    let way = if http { "over HTTP" } else { "embedded" };
    let store = folder.join(if http { "http.db" } else { "embedded.db" });
    let url = format!("sqlite:{}", store.display());
    let server = http.then(|| Server::start(binary, &url, &[], &[] as &[&str]).unwrap());
    let to = server.as_ref().map_or(url, Server::url);
    let mut run = 0;
    let mut series = |label: &str, order: &[usize], same_names: bool, bare: f64| {
        let mut times = Vec::new();
        let before = size(&store);
        for n in 0..REPEATS {
            run += 1;
            let seed = if same_names { 1_000_000 } else { run };
            let names = Names { seed };
            std::fs::write(folder.join("in.xml"), junit(&names, order, run)).unwrap();
            let time = push(binary.path(), folder, "in.xml", &to, &format!("run-{run}"));
            if !(same_names && n == 0) {
                times.push(time);
            }
        }
        let bytes = (size(&store) - before) as f64 / (OUTCOMES * REPEATS) as f64;
        let rate = rate(&mut times);
        println!(
            "file to durable, {way}, {label}: {:.0}k outcomes/s, x{:.2} of the bare insert; {bytes:.1} B/outcome added",
            rate / 1e3,
            rate / bare
        );
    };
    series("new sorted", &sorted_order(OUTCOMES), false, rates.sorted);
    series("new random", &random_order(OUTCOMES), false, rates.random);
    series("known items", &random_order(OUTCOMES), true, rates.random);
}

/// The store's size with its log written back.
fn size(store: &Path) -> u64 {
    if store.exists() {
        let connection = rusqlite::Connection::open(store).unwrap();
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
    std::fs::metadata(store).map_or(0, |m| m.len())
}

fn replays(folder: &Path, binary: &Binary) {
    let url = format!("sqlite:{}", folder.join("replays.db").display());
    let server = Server::start(binary, &url, &[], &[] as &[&str]).unwrap();
    for (threads, each) in [(1, 500), (8, 500)] {
        let time = timed(|| {
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| load::post_many(server.addr(), each));
                }
            });
        });
        let total = f64::from(threads * each);
        println!("replays of a push of 100, {threads} connections: {:.0}/s", total / time.as_secs_f64());
    }
}

fn memory(folder: &Path, program: &Path) {
    for (label, cases, output_bytes) in
        [("mostly captured output", 50_000, 10_000), ("mostly test cases", 2_500_000, 100)]
    {
        let file = folder.join("big.xml");
        let run = &format!("r{cases}");
        let megabytes = load::big_report(&file, cases, output_bytes) >> 20;
        for (verb, arguments) in [
            ("read", &["push", "big.xml", "--dry-run", "--json", "--run", "r", "--project", "shop"][..]),
            (
                "push embedded",
                &["push", "big.xml", "--json", "--run", run, "--project", "shop", "--to", "sqlite:big.db"][..],
            ),
        ] {
            let (peak_kb, time) = load::peak_kb(program, arguments, folder);
            println!(
                "{verb} a report of {megabytes} MiB, {cases} cases, {label}: peak {} MiB, {:.1} s",
                peak_kb >> 10,
                time.as_secs_f64()
            );
        }
    }
}
