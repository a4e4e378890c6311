//! How fast JUnit XML is read, beside the bare event loop of quick-xml over the same bytes, in one run:
//! `cargo bench -p tallyonce-reports [-- FILE]`. Without a file a report of 100 MiB is made up in memory.

#![expect(clippy::print_stdout, reason = "a benchmark reports by printing")]
#![expect(clippy::doc_markdown, reason = "JUnit is a name")]

use std::hint::black_box;
use std::io::BufReader;
use std::time::Duration;

mod made_up;

use reports::{Collector, Event, ReadOptions};

const RUNS: usize = 7;

fn main() {
    let file = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let bytes = file.map_or_else(made_up, |path| std::fs::read(path).unwrap_or_default());
    let mib = bytes.len() as f64 / (1024.0 * 1024.0);
    println!("{mib:.1} MiB, best of {RUNS} runs each, taking turns");
    let mut best = [Duration::MAX; 3];
    for _ in 0..RUNS {
        for (slot, run) in best.iter_mut().zip([bare as fn(&[u8]) -> u64, read, collect]) {
            *slot = (*slot).min(timed(|| run(&bytes)));
        }
    }
    let speed = best.map(|time| mib / time.as_secs_f64());
    println!("quick-xml, bare events     {:8.0} MiB/s", speed[0]);
    println!("events of this crate       {:8.0} MiB/s  {:.2} of bare", speed[1], speed[1] / speed[0]);
    println!("collected into outcomes    {:8.0} MiB/s  {:.2} of bare", speed[2], speed[2] / speed[0]);
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is about the clock")]
fn timed(run: impl FnOnce() -> u64) -> Duration {
    let start = std::time::Instant::now();
    black_box(run());
    start.elapsed()
}

fn made_up() -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = made_up::report(&mut bytes, 682_000, 5);
    bytes
}

fn bare(bytes: &[u8]) -> u64 {
    let mut reader = quick_xml::Reader::from_reader(BufReader::new(bytes));
    let mut buffer = Vec::new();
    let mut events = 0;
    loop {
        match reader.read_event_into(&mut buffer) {
            Ok(quick_xml::events::Event::Eof) | Err(_) => return events,
            Ok(event) => {
                black_box(event);
                events += 1;
            }
        }
        buffer.clear();
    }
}

fn read(bytes: &[u8]) -> u64 {
    let Ok(mut reader) = reports::open("bench.xml", bytes, &ReadOptions::standard()) else { return 0 };
    let mut outcomes = 0;
    while let Ok(Some(event)) = reader.next() {
        outcomes += u64::from(matches!(black_box(event), Event::Outcome(_)));
    }
    outcomes
}

fn collect(bytes: &[u8]) -> u64 {
    let mut collector = Collector::new(ReadOptions::standard());
    if collector.add("bench.xml", bytes).is_err() {
        return 0;
    }
    black_box(collector.finish()).outcomes.len() as u64
}
