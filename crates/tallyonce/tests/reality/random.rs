//! `kill -9` at random times: server, client or both, in staged pushes and in such of one request, to a server and
//! embedded, up to three times before the push is left in peace. The history checker judges every one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proof::history::{Ended, Tally};
use proof::kill::Histogram;
use proof::rng::Rng;

use crate::bench::{Bench, Flow};
use crate::kills::{POINTS, wanted};
use crate::world::PATIENCE;

/// Worlds at a time.
const WORLDS: usize = 6;
/// Within so many microseconds of the start of a client.
const SPAN: u64 = 200_000;

/// Kills in all; with `TALLYONCE_KILLS` as many as at points.
fn kills() -> u64 {
    wanted().map_or(250, |each| each * POINTS)
}

fn flow(rng: &mut Rng) -> Flow {
    Flow::ALL[rng.below(Flow::ALL.len() as u64) as usize]
}

/// One push, killed up to three times.
fn one(seed: u64, seen: &mut Histogram) -> Result<Tally, String> {
    let mut rng = Rng::new(seed);
    let flow = flow(&mut rng);
    let mut bench = Bench::new(flow, None);
    let report = bench.offer(1);
    for _ in 0..=rng.below(3) {
        let client = bench.push(report, "one", "90s").start().unwrap();
        std::thread::sleep(Duration::from_micros(rng.below(SPAN)));
        let victim = if flow.embedded() { 0 } else { rng.below(3) };
        let mut word = "client";
        if victim > 0 {
            let dead = bench.server.as_mut().unwrap().kill9().unwrap();
            word = if victim == 1 { "server" } else { "both" };
            if victim == 2 {
                client.kill9();
            }
            assert!(bench.restart(None), "a server starts after kill -9");
            seen.add(&format!("server, {flow:?}"), &dead, "killed");
        } else {
            client.kill9();
        }
        let finished = client.wait(PATIENCE).unwrap();
        let ended = bench.ended(report, "one", &finished, true);
        seen.add(&format!("client, {flow:?}, killed was {word}"), &finished, &ended);
        if finished.code == Some(0) {
            break;
        }
    }
    recover(&mut bench, report, rng.below(3) == 0);
    bench.judge()
}

fn recover(bench: &mut Bench, report: usize, reexecuted: bool) {
    if reexecuted {
        bench.attempt += 1;
        let other = bench.offer(2);
        bench.deliver(other, "two", &[], false);
        bench.attempt -= 1;
    }
    let silent =
        bench.history.invocations.iter().rfind(|i| i.report == report).is_some_and(|i| i.ended == Ended::Silent);
    if bench.kept("one") {
        let finished = bench.flush("one").output().unwrap();
        bench.ended(report, "one", &finished, false);
    } else if silent && !reexecuted {
        bench.deliver(report, "one", &[], false);
    }
}

/// Kills that really killed.
fn killed(seen: &Histogram) -> u64 {
    seen.ended(proof::kill::End::Signal(9))
}

#[test]
fn kills_at_random_times() {
    let (next, all) = (AtomicU64::new(0), Mutex::new((Histogram::new(), Tally::default(), Vec::new())));
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                while killed(&all.lock().unwrap().0) < kills() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let mut seen = Histogram::new();
                    let judged = one(seed, &mut seen);
                    let mut all = all.lock().unwrap();
                    all.0.merge(&seen);
                    match judged {
                        Ok(tally) => all.1 += &tally,
                        Err(words) => all.2.push(format!("seed {seed}: {words}")),
                    }
                }
            });
        }
    });
    let (seen, tally, wrong) = all.into_inner().unwrap();
    println!("{seen}\n{} kills in {} pushes; {tally}", killed(&seen), next.into_inner());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
