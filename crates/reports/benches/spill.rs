//! Time and memory per outcome, in memory and over a temporary file, each run in a process of its own:
//! `cargo bench -p tallyonce-reports --bench spill [-- OUTCOMES…]`. Reports and the temporary file are in TMPDIR.

#![expect(clippy::print_stdout, reason = "a benchmark reports by printing")]
#![expect(clippy::unwrap_used, reason = "a benchmark that can't run is to stop")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

mod made_up;

use reports::{Collector, Gathered, ReadOptions, Spill};

/// What the program uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 3;
const MEMORY_BYTES: usize = 48 * 1024 * 1024;
/// Files of a push in many files.
const MANY_FILES_TESTS: usize = 50;

/// One way to read.
#[derive(Debug, Clone, Copy)]
enum Way {
    Held,
    Spilling,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let way = |name: &str| [Way::Held, Way::Spilling].into_iter().find(|known| format!("{known:?}") == name);
    if let [name, path] = &args[..]
        && let Some(way) = way(name)
    {
        return run(way, Path::new(path));
    }
    let mut sizes: Vec<usize> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![10_000, 100_000, 1_000_000, 5_000_000];
    }
    println!("best of {RUNS}; {} MiB may be held; peak is VmHWM", MEMORY_BYTES >> 20);
    for tests in sizes {
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().join("one");
        fs::create_dir(&one).unwrap();
        let mut out = BufWriter::new(File::create(one.join("r.xml")).unwrap());
        made_up::report(&mut out, tests, 40).unwrap();
        drop(out);
        compare(tests, "one file", &one);
        fs::remove_dir_all(&one).unwrap();
        let many = folder.path().join("many");
        fs::create_dir(&many).unwrap();
        split(tests, &many);
        compare(tests, "many files", &many);
    }
}

/// Writes files of a few tests each.
fn split(tests: usize, folder: &Path) {
    for file in 0..tests / MANY_FILES_TESTS {
        let mut text = format!("<testsuite name=\"suite-{file}\" timestamp=\"2026-01-01T00:00:00\">\n");
        for test in 0..MANY_FILES_TESTS {
            let name = format!("test_{file:06}_{test:02}_invoice_refund_xxxxxxxxxxxxxxxxxxxxxxxx");
            let class = format!("acme.checkout.basket.Test{file}");
            let _ = writeln!(text, "<testcase classname=\"{class}\" name=\"{name}\" time=\"0.25\"/>");
        }
        fs::write(folder.join(format!("TEST-acme.checkout.basket.Test{file}.xml")), text + "</testsuite>\n").unwrap();
    }
}

/// Runs both ways in turns.
fn compare(tests: usize, what: &str, path: &Path) {
    let mut best = [(f64::MAX, f64::MAX); 2];
    for _ in 0..RUNS {
        for (best, way) in best.iter_mut().zip([Way::Held, Way::Spilling]) {
            let exe = std::env::current_exe().unwrap();
            let output = Command::new(exe).arg(format!("{way:?}")).arg(path).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
            *best = (best.0.min(figures[0]), best.1.min(figures[1]));
        }
    }
    let per_outcome = best.map(|(seconds, _)| seconds * 1e9 / tests as f64);
    println!(
        "{tests:>9} in {what:10}: held {:5.0} ns/outcome, peak {:6.0} MiB; spilling {:5.0} ns/outcome ({:+4.0} %), peak {:4.0} MiB",
        per_outcome[0],
        best[0].1,
        per_outcome[1],
        (per_outcome[1] / per_outcome[0] - 1.0) * 100.0,
        best[1].1
    );
}

/// In a process of its own: reads all files of a folder, walks all outcomes, prints seconds and peak.
#[expect(clippy::disallowed_methods, reason = "a benchmark is about the clock")]
fn run(way: Way, folder: &Path) {
    let start = std::time::Instant::now();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    match way {
        Way::Held => {
            let mut collector = Collector::new(ReadOptions::standard());
            for path in &files {
                collector.add(&name(path), File::open(path).unwrap()).unwrap();
            }
            let read = collector.finish();
            let sorted = domain::Outcomes::from_hashed(read.hashes, read.outcomes).unwrap();
            black_box(sorted.len());
            std::mem::forget(sorted);
        }
        Way::Spilling => {
            let spill = Spill { folder: std::env::temp_dir(), memory_bytes: MEMORY_BYTES };
            let mut collector = Collector::spilling(ReadOptions::staged(), spill);
            for path in &files {
                collector.add(&name(path), File::open(path).unwrap()).unwrap();
            }
            match collector.gather().unwrap().outcomes {
                Gathered::Held { hashes, outcomes } => {
                    black_box(domain::Outcomes::from_hashed(hashes, outcomes).unwrap().len());
                }
                Gathered::Spilled(spilled) => {
                    spilled.parts().for_each(|part| drop(black_box(part.unwrap())));
                }
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    println!("{seconds} {}", peak.unwrap_or(0.0) / 1024.0);
}
