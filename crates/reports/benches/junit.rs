//! How fast JUnit XML is read, beside the bare event loop of quick-xml over the same bytes, in one run:
//! `cargo bench -p tallyonce-reports [-- FILE]`. Without a file a report of 100 MiB is made up in memory.

#![expect(clippy::print_stdout, reason = "a benchmark reports by printing")]
#![expect(clippy::doc_markdown, reason = "JUnit is a name")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::BufReader;
use std::time::Duration;

use reports::{Collector, Event, ReadOptions};

const RUNS: usize = 7;

fn main() {
    let file = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let bytes = match &file {
        Some(path) => std::fs::read(path).unwrap_or_default(),
        None => made_up(682_000),
    };
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

/// Suites of a thousand tests, one in twenty failed with a message.
fn made_up(tests: usize) -> Vec<u8> {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"acme\">\n");
    let message = "expected 200 but the gateway answered 502 after three attempts; ".repeat(5);
    for i in 0..tests {
        if i % 1000 == 0 {
            let end = if i == 0 { "" } else { "</testsuite>\n" };
            let _ = writeln!(xml, "{end}<testsuite name=\"suite-{:04}\" timestamp=\"2026-01-01T00:00:00\">", i / 1000);
        }
        let (class, millis) = (i / 30 % 900, i * 7919 % 2000);
        let head = format!(
            "<testcase classname=\"acme.checkout.basket.TestClass{class:03}\" name=\"test_{i:07}_invoice_refund_xxxxxxxxxxxxxxxxxxxxxxxx\" time=\"{}.{:03}\"",
            millis / 1000,
            millis % 1000
        );
        let _ = if i % 20 == 7 {
            writeln!(
                xml,
                "{head}><failure message=\"{}\" type=\"AssertionError\">{message}</failure></testcase>",
                &message[..80]
            )
        } else {
            writeln!(xml, "{head}/>")
        };
    }
    xml.push_str("</testsuite>\n</testsuites>\n");
    xml.into_bytes()
}
