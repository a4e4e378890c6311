//! The load of the bench: names, reports, a bare insert to compare with, a plain HTTP client, peak memory of a process.

pub(crate) mod staged;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names of 60 to 120 bytes, all different for different seeds.
pub(crate) struct Names {
    pub(crate) seed: u64,
}

impl Names {
    pub(crate) fn class(&self, n: usize) -> String {
        format!("com.example.s{}.module{:02}.service{:04}Test", self.seed, n % 40, n / 40 % 500)
    }
}

/// The test's own name; seeds differ by class.
fn name(n: usize) -> String {
    format!("handlesRequestNumber{n:07}WithPayload{}", "AndField".repeat(1 + n % 5))
}

pub(crate) fn sorted_order(n: usize) -> Vec<usize> {
    (0..n).collect()
}

/// A fixed shuffle.
pub(crate) fn random_order(n: usize) -> Vec<usize> {
    let mut order = sorted_order(n);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for at in (1..n).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(at, (state % (at as u64 + 1)) as usize);
    }
    order
}

fn message(n: usize, salt: u64) -> String {
    format!("expected 200 but was 503 in request {n} of run {}", salt * (n as u64 % 2)).repeat(6)
}

fn micros(n: usize, salt: u64) -> u64 {
    (n as u64).wrapping_mul(2_654_435_761).wrapping_add(salt * 7919) % 2_000_000
}

/// A report of these tests; one in twenty fails with a message of some 300 bytes.
pub(crate) fn junit(names: &Names, order: &[usize], salt: u64) -> String {
    let mut xml = String::with_capacity(order.len() * 190);
    xml.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"all\">\n");
    for &n in order {
        let seconds = micros(n, salt) as f64 / 1e6;
        let (class, name) = (names.class(n), name(n));
        if n % 20 == 0 {
            let text = message(n, salt);
            writeln!(xml, "<testcase classname=\"{class}\" name=\"{name}\" time=\"{seconds:.6}\"><failure message=\"{text}\"/></testcase>")
        } else {
            writeln!(xml, "<testcase classname=\"{class}\" name=\"{name}\" time=\"{seconds:.6}\"/>")
        }
        .unwrap();
    }
    xml.push_str("</testsuite>\n</testsuites>\n");
    xml
}

/// One table, no index, one transaction, WAL and FULL: the rows that the reports hold.
pub(crate) fn bare_insert(path: &Path, names: &Names, order: &[usize]) -> Duration {
    let rows: Vec<(String, i64, i64, Option<String>)> = order
        .iter()
        .map(|&n| {
            let bad = n % 20 == 0;
            let name = format!("{} {}", names.class(n), name(n));
            (name, i64::from(bad), micros(n, names.seed) as i64, bad.then(|| message(n, names.seed)))
        })
        .collect();
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536; CREATE TABLE IF NOT EXISTS outcome(run INTEGER, item TEXT, status INTEGER, duration INTEGER, message TEXT)").unwrap();
    let start = Instant::now();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    {
        let mut insert = connection.prepare("INSERT INTO outcome VALUES(?1, ?2, ?3, ?4, ?5)").unwrap();
        for (item, status, duration, message) in &rows {
            insert.execute(rusqlite::params![names.seed as i64, item, status, duration, message]).unwrap();
        }
    }
    connection.execute_batch("COMMIT").unwrap();
    start.elapsed()
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The same push over one kept connection, again and again.
pub(crate) fn post_many(addr: SocketAddr, times: i32) {
    let body = junit(&Names { seed: 1 }, &sorted_order(100), 1);
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let request = format!(
        "POST /api/v1/projects/shop/pushes?cycle=main&run=1 HTTP/1.1\r\nHost: bench\r\nIdempotency-Key: bench-1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..times {
        stream.write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).unwrap();
    }
}

/// Writes a report and gives its size in bytes.
pub(crate) fn big_report(path: &Path, cases: usize, output_bytes: usize) -> u64 {
    let mut file = BufWriter::new(std::fs::File::create(path).unwrap());
    let names = Names { seed: 1 };
    let output = "2026-11-29 12:00:00 INFO something was done in a while\n".repeat(1 + output_bytes / 55);
    file.write_all(b"<testsuites><testsuite name=\"all\">\n").unwrap();
    for n in 0..cases {
        let (class, name) = (names.class(n), name(n));
        writeln!(
            file,
            "<testcase classname=\"{class}\" name=\"{name}\" time=\"0.25\"><system-out>{output}</system-out></testcase>"
        )
        .unwrap();
    }
    file.write_all(b"</testsuite></testsuites>\n").unwrap();
    file.flush().unwrap();
    std::fs::metadata(path).unwrap().len()
}

/// The most memory that a process had resident, as the kernel counts it.
pub(crate) fn peak_kb(program: &Path, arguments: &[&str], folder: &Path) -> (u64, Duration) {
    let start = Instant::now();
    let mut child =
        Command::new(program).args(arguments).current_dir(folder).env_clear().stdout(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    loop {
        peak = peak.max(resident_kb(child.id()));
        if let Some(ended) = child.try_wait().unwrap() {
            assert!(ended.success(), "{ended}");
            return (peak, start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The most that a running process had resident so far.
pub(crate) fn resident_kb(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
}
