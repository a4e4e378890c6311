//! A report too large for memory, staged over HTTP: the client killed half-way, resumed by `flush`. Of 200,000 outcomes
//! here; the release's five million through the same code:
//! `TALLYONCE_BIG=5000000 cargo test --release -p tallyonce --features failpoints --test reality big:: -- --nocapture`

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use proof::oracle::{JunitSpec, Oracle};
use proof::proxy::{Event, FaultProxy, Plan};
use proof::spawn::{Finished, Running, github_env};

use crate::world::{World, outcome};

/// Cases of one file.
const FILE_CASES: usize = 50_000;
/// What a client and a server may have resident, each.
const PEAK_KB_MAX: u64 = 256 << 10;

fn outcomes() -> usize {
    std::env::var_os("TALLYONCE_BIG").and_then(|n| n.to_str()?.parse().ok()).unwrap_or(200_000)
}

/// The most that a process had resident so far, as the kernel counts it; nothing once it has ended.
fn peak_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

/// Watches a process while `work` goes on; gives its peak.
fn watched<T>(pid: u32, work: impl FnOnce() -> T) -> (T, u64) {
    let (peak, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                peak.fetch_max(peak_kb(pid).unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        done
    });
    (done, peak.into_inner())
}

fn reports(world: &World, total: usize) -> u64 {
    let mut failed = 0;
    for (number, from) in (0..total).step_by(FILE_CASES).enumerate() {
        let cases = FILE_CASES.min(total - from);
        failed += cases as u64 / 100;
        world.report(&format!("in/{number:04}.xml"), &JunitSpec::new(number as u64 + 1, cases, cases / 100).xml());
    }
    failed
}

fn puts(log: &[Event], status: Option<u16>) -> Vec<&str> {
    let puts =
        log.iter().filter(|event| event.method == "PUT" && (status.is_none() || event.upstream_status == status));
    puts.map(|event| event.path.as_str()).collect()
}

/// A client that waits before its commit, let go; how long the commit took until it was answered.
#[expect(clippy::disallowed_methods, reason = "the time is printed, and nothing asks for it")]
fn committed(client: Running, held: &Path, proxy: &FaultProxy, patience: Duration) -> (Finished, Duration) {
    while !held.exists() {
        assert!(!client.ended(Duration::from_millis(10)), "it ended before its commit: {}", client.stderr());
    }
    let from = std::time::Instant::now();
    std::fs::remove_file(held).unwrap();
    let answered = |log: &[Event]| log.iter().any(|e| e.path.ends_with("/commit") && e.upstream_status.is_some());
    proxy.wait_for(patience, answered).expect("the commit is answered");
    let took = from.elapsed();
    (client.wait(patience).unwrap(), took)
}

#[test]
fn a_large_push_killed_half_way_is_resumed_in_little_memory() {
    let total = outcomes();
    let patience = Duration::from_secs(120 + total as u64 / 1000);
    let world = World::new();
    let failed = reports(&world, total);
    let server = world.serve();
    let proxy = FaultProxy::start_blocking(server.addr(), Plan::pass()).unwrap();
    let url = proxy.url();
    let arguments = ["push", "--json", "in", "--project", "shop", "--cycle", "main", "--to", &url, "--deadline", "1h"];
    let chunks = (total as u64).div_ceil(domain::limits::CHUNK_OUTCOMES).next_power_of_two();
    let client = world.run(&arguments).envs(github_env(1, 1, "test", "runner-1")).start().unwrap();
    let half = |log: &[Event]| puts(log, Some(201)).len() as u64 >= chunks / 2;
    let ((), first_peak) = watched(client.pid(), || {
        proxy.wait_for(patience, half).expect("half of it is staged");
        client.kill9();
        client.wait(patience).unwrap();
    });
    let oracle = Oracle::open(&world.path("tallyonce.db")).unwrap();
    assert_eq!(oracle.pushes().unwrap(), Vec::<String>::new(), "nothing of it shows");
    let before = proxy.log();
    let held = world.path("held");
    let flush = ["flush", "--json", "--to", &url, "--deadline", "1h"];
    let flush = world.run(&flush).env("TALLYONCE_HOLD_AT", format!("client:commit:send={}", held.display()));
    let client = flush.start().unwrap();
    let ((finished, commit), second_peak) = watched(client.pid(), || committed(client, &held, &proxy, patience));
    let flushed = outcome(finished).expect(0, "recorded");
    let after = proxy.log();
    let (taken, again) = (puts(&before, Some(201)), puts(&after[before.len()..], None));
    assert!(again.iter().all(|path| !taken.contains(path)), "a chunk that was there travelled again");
    assert!(!again.is_empty() && again.len() as u64 <= chunks - chunks / 2, "{} of {chunks}", again.len());
    assert_eq!(flushed.json["delivery"]["resumed"], true);
    let counts = &flushed.json["counts"];
    assert_eq!((counts["total"].as_u64(), counts["failed"].as_u64()), (Some(total as u64), Some(failed)));
    let server_peak = peak_kb(server.process().unwrap().pid()).unwrap();
    let shown = world.show(&["--cycle", "main", "--from", &url]);
    assert_eq!((&shown["headline"]["total"], &shown["headline"]["failed"]), (&total.into(), &failed.into()));
    println!(
        "{total} outcomes in {chunks} chunks: {} taken before the kill, {} sent by the flush, commit answered in {} ms; \
         peaks: client {} and {} MiB, server {} MiB",
        taken.len(),
        again.len(),
        commit.as_millis(),
        first_peak >> 10,
        second_peak >> 10,
        server_peak >> 10
    );
    for (who, peak) in [("first client", first_peak), ("second client", second_peak), ("server", server_peak)] {
        assert!(peak > 0 && peak < PEAK_KB_MAX, "the {who} had {} MiB resident", peak >> 10);
    }
    world.check_store();
}
