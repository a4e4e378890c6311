//! Reports of any size, staged over HTTP to a fresh server: outcomes a second, the commit alone, and peaks of memory.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use proof::oracle::JunitSpec;
use proof::proxy::{Fault, FaultProxy, Plan};
use proof::spawn::{Binary, Run, Server};

use super::peak_kb;

/// Cases of one file.
const FILE_CASES: usize = 250_000;
const PATIENCE: Duration = Duration::from_hours(1);

fn reports(folder: &Path, total: usize) -> u64 {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
    let mut bytes = 0;
    for (number, from) in (0..total).step_by(FILE_CASES).enumerate() {
        let cases = FILE_CASES.min(total - from);
        let xml = JunitSpec::new(number as u64 + 1, cases, cases / 100).xml();
        bytes += xml.len() as u64;
        std::fs::write(folder.join(format!("{number:04}.xml")), xml).unwrap();
    }
    bytes
}

/// One size: pushed once undisturbed, and once up to its commit, which is then sent alone.
pub(crate) fn measure(folder: &Path, binary: &Binary, total: usize) {
    let megabytes = reports(&folder.join("in"), total) >> 20;
    let store = folder.join(format!("staged-{total}.db"));
    let server = Server::start(binary, &format!("sqlite:{}", store.display()), &[], &[] as &[&str]).unwrap();
    let url = server.url();
    let arguments = |run: &'static str| ["push", "in", "--json", "--project", "shop", "--cycle", "main", "--run", run];
    let pushed = [&arguments("whole")[..], &["--to", &url, "--deadline", "1h", "--chunk-outcomes", "16384"]].concat();
    let (client_kb, time) = peak_kb(binary.path(), &pushed, folder);
    let server_kb = super::resident_kb(server.process().unwrap().pid());
    let commit = commit(folder, binary, &server, &arguments("commit"));
    println!(
        "staged over HTTP, {total} outcomes ({megabytes} MiB): {:.0}k outcomes/s ({:.1} s), commit {:.1} ms, peaks: client {} \
         MiB, server {} MiB",
        total as f64 / time.as_secs_f64() / 1e3,
        time.as_secs_f64(),
        commit.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3),
        client_kb >> 10,
        server_kb >> 10
    );
    drop(server);
    let _ = std::fs::remove_file(store);
}

/// How long the server takes to answer a commit. None if the push is so small that it isn't staged.
fn commit(folder: &Path, binary: &Binary, server: &Server, arguments: &[&str]) -> Option<Duration> {
    // Its commit doesn't arrive, and its client gives up.
    let plan = Plan::first(u32::MAX, Fault::RequestDropped).only_path("/commit");
    let proxy = FaultProxy::start_blocking(server.addr(), plan).unwrap();
    let url = proxy.url();
    let more = ["--to", &url, "--deadline", "0s", "--outbox", "bench-outbox", "--chunk-outcomes", "16384"];
    Run::new(binary).args(arguments).args(more).folder(folder).timeout(PATIENCE).output().unwrap();
    let log = proxy.log();
    let path = &log.iter().find(|event| event.path.ends_with("/commit"))?.path;
    let mut stream = TcpStream::connect(server.addr()).unwrap();
    let start = Instant::now();
    let head = "Host: bench\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(format!("POST {path} HTTP/1.1\r\n{head}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let took = start.elapsed();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let _ = std::fs::remove_dir_all(folder.join("bench-outbox"));
    Some(took)
}
