//! A staged push from begin to commit: outcomes a second, how long the commit takes, how much memory is added; then an
//! overlay of the same items, readings, and the check. Chunks begin as plain outcomes: digests, encoding and transactions
//! are inside the measured time, their making is not.
//! `cargo bench -p tallyonce-store --bench staged [-- OUTCOMES…]`, by default 10 000, 100 000 and 1 000 000.
#![expect(clippy::disallowed_methods, reason = "a bench measures with the clock")]
#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::panic, reason = "a bench stops at the first failure")]

use std::sync::Arc;
use std::time::Instant;

use domain::content::{Digests, chunk_of};
use domain::manifest::{ChunkPromise, chunk_bits};
use domain::{Digest, DurationUs, Epoch, ItemHash, ItemName, Manifest, Outcome, Outcomes, Status};
use store::conformance::build;
use store::{Begun, Chunk, Committed, EpochOf, Put, Store};
use tokio::runtime::Runtime;

/// Chunks that are on their way at once.
const AT_ONCE: usize = 4;
/// Chunks that are made, then measured.
const BATCH: usize = 16;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn item(n: u32) -> ItemName {
    let class = format!("com.acme.shop.module{:03}.service{:02}.CheckoutServiceTest", n / 1000 % 400, n / 100 % 10);
    let lines = mix(u64::from(n)) % 1000;
    ItemName::new(["acceptance"], Some(&class), &format!("creates_order_{n:08}_when_cart_holds_{lines}_lines"))
}

/// 5 % failed with 300 bytes of message.
fn outcome(n: u32, attempt: u64) -> Outcome {
    let failed = mix(u64::from(n) * 31 + attempt).is_multiple_of(20);
    let text = || format!("assertion failed: expected {n}\n{}", "  at frame.of.the.stack\n".repeat(11));
    Outcome {
        item: item(n),
        status: if failed { Status::Failed } else { Status::Passed },
        duration_us: Some(DurationUs(mix(u64::from(n) ^ attempt << 40) % 2_000_000)),
        message: failed.then(text),
        attempts: Vec::new(),
        external_ids: Vec::new(),
    }
}

/// Memory in MiB: now, and the most since the last question.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    let found = (of("VmRSS:"), of("VmHWM:"));
    // Where that can't be written, the peak is that of the whole process.
    let _kept = std::fs::write("/proc/self/clear_refs", "5");
    found
}

struct Content {
    /// Items in the order of hashes.
    order: Vec<(ItemHash, u32)>,
    bits: u8,
    attempt: u64,
}

impl Content {
    fn chunk(&self, number: usize) -> Outcomes {
        let from = self.order.partition_point(|(hash, _)| (chunk_of(*hash, self.bits) as usize) < number);
        let here = self.order[from..].iter().take_while(|(hash, _)| chunk_of(*hash, self.bits) as usize == number);
        Outcomes::from_unordered(here.map(|(_, n)| outcome(*n, self.attempt)).collect()).unwrap()
    }

    /// Its manifest, with chunk digests that stand for those of bodies.
    fn manifest(&self) -> Manifest {
        let mut push = build::push("").attempt(self.attempt).executor("one").0;
        let total = self.order.len() as u64;
        let (mut digests, mut chunks) = (Vec::new(), Vec::new());
        for number in 0..1 << self.bits {
            let outcomes = self.chunk(number);
            push.content.body = None;
            digests.push(Digests::of_chunk(&outcomes, total, self.bits));
            chunks.push(ChunkPromise {
                digest: Digest::of(&[number as u8, (number >> 8) as u8, self.attempt as u8]),
                outcomes: outcomes.len() as u32,
            });
        }
        let (mut manifest, _) = build::staged(&push, 0);
        manifest.counts = domain::Counts::default();
        for (_, n) in &self.order {
            let outcome = outcome(*n, self.attempt);
            manifest.counts.add(outcome.status, outcome.is_flaky());
        }
        manifest.content = Digests::of_chunks(digests).id();
        (manifest.outcomes, manifest.bits, manifest.chunks, manifest.items) = (total, self.bits, chunks, None);
        manifest.check().unwrap();
        manifest
    }
}

fn deliver(runtime: &Runtime, store: &Arc<dyn Store>, content: &Content, epoch: u64) {
    let manifest = Arc::new(content.manifest());
    let of = EpochOf { project: build::shop(), push: manifest.push(), epoch: Epoch(epoch) };
    let (before, _) = memory();
    let start = Instant::now();
    let begun = runtime.block_on(store.begin(Arc::clone(&manifest), build::now())).unwrap();
    assert!(matches!(begun, Begun::Staging(_)), "{begun:?}");
    let mut took = start.elapsed().as_secs_f64();
    let numbers: Vec<usize> = (0..manifest.chunks.len()).collect();
    for batch in numbers.chunks(BATCH) {
        let chunk = |number: &usize| {
            let digest = manifest.chunks[*number].digest;
            Arc::new(Chunk { of: of.clone(), number: *number as u32, digest, outcomes: content.chunk(*number) })
        };
        let chunks: Vec<_> = batch.iter().map(chunk).collect();
        let start = Instant::now();
        for some in chunks.chunks(AT_ONCE) {
            let put = |chunk: &Arc<Chunk>| {
                let (store, chunk) = (Arc::clone(store), Arc::clone(chunk));
                runtime.spawn(async move { store.put(chunk, build::now()).await.unwrap() })
            };
            let puts: Vec<_> = some.iter().map(put).collect();
            for put in puts {
                assert_eq!(runtime.block_on(put).unwrap(), Put::Stored { replayed: false });
            }
        }
        took += start.elapsed().as_secs_f64();
    }
    let start = Instant::now();
    let Committed::Accepted(answer) = runtime.block_on(store.commit(of, build::now())).unwrap() else {
        panic!("not accepted")
    };
    let commit = start.elapsed().as_secs_f64();
    let (_, peak) = memory();
    println!(
        "  revision {}: {:.0}k/s in {} chunks, commit {:.1} ms; memory {before} MiB before, {peak} at most",
        answer.revision,
        manifest.outcomes as f64 / (took + commit) / 1000.0,
        manifest.chunks.len(),
        commit * 1000.0,
    );
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (before, _) = memory();
    let start = Instant::now();
    let found = work();
    let took = start.elapsed().as_secs_f64();
    let (_, peak) = memory();
    println!("  {what}: {:.1} ms; memory {before} MiB before, {peak} at most", took * 1000.0);
    found
}

fn measure(n: u32) {
    println!("{n} outcomes");
    let folder = tempfile::tempdir_in(".").unwrap();
    let path = folder.path().join("store.db");
    let store = store::open(&format!("sqlite:{}", path.display())).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut order: Vec<(ItemHash, u32)> = (0..n).map(|n| (item(n).hash(), n)).collect();
    order.sort_unstable();
    let bits = chunk_bits(u64::from(n), u64::from(n) * 160, domain::limits::CHUNK_OUTCOMES, 0).max(4);
    let mut content = Content { order, bits, attempt: 1 };
    deliver(&runtime, &store, &content, 1);
    content.attempt = 2;
    deliver(&runtime, &store, &content, 2);
    drop(content);
    let choice = domain::round::RoundChoice::Latest;
    let cycle = timed("cycle", || {
        runtime.block_on(store.cycle(&build::shop(), &build::main_cycle(), &choice)).unwrap().unwrap()
    });
    assert_eq!(cycle.headline.total, u64::from(n));
    let damage = timed("check", || runtime.block_on(store.check()).unwrap());
    assert!(damage.is_empty(), "{damage:#?}");
    drop(store);
    println!("  {:.1} bytes an outcome", std::fs::metadata(&path).unwrap().len() as f64 / f64::from(2 * n));
}

fn main() {
    let asked: Vec<u32> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    for n in if asked.is_empty() { vec![10_000, 100_000, 1_000_000] } else { asked } {
        measure(n);
    }
}
