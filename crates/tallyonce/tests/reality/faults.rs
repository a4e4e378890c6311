//! Every fault of the network, a hundred pushes each: nothing twice, nothing lost, every exit code true.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proof::oracle::JunitSpec;
use proof::proxy::{Fault, FaultProxy, Plan};
use proof::spawn::github_env;

use crate::world::{World, count};

/// Pushes a mode; `TALLYONCE_FAULT_PUSHES` makes it a long run.
fn pushes() -> usize {
    std::env::var_os("TALLYONCE_FAULT_PUSHES").and_then(|n| n.to_str()?.parse().ok()).unwrap_or(100)
}

/// Longer than the client waits for an answer in these tests.
const STALL: Duration = Duration::from_secs(3);

/// Pushes through a proxy that breaks each first delivery, and half of the later ones, in this way.
fn mode(fault: Fault) {
    let world = World::new();
    let server = world.serve();
    let next = AtomicUsize::new(0);
    let total = pushes();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= total {
                        break;
                    }
                    one_push(&world, &server.url(), server.addr(), n as u64, fault);
                }
            });
        }
    });
    let shown = world.show(&["--cycle", "main", "--round", "all", "--from", &server.url()]);
    let rounds = shown["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), total, "a round for every push, none lost");
    let repeats: u64 = rounds.iter().map(|r| r["repeats"].as_u64().unwrap()).sum();
    println!("{}: {total} pushes with seeds 0..{total}, {repeats} replays, 0 doubled, 0 lost", fault.name());
    assert!(repeats == 0 || fault.arrivals() > 0);
    assert!(fault.arrivals() == 0 || repeats > 0, "the fault never fired");
    drop(server);
    world.check_store();
    crate::world::oracle_agrees(&world, total);
}

fn one_push(world: &World, direct: &str, upstream: std::net::SocketAddr, seed: u64, fault: Fault) {
    let proxy =
        FaultProxy::start_blocking(upstream, Plan::list(vec![Some(fault), seed.is_multiple_of(2).then_some(fault)]))
            .unwrap();
    let spec = JunitSpec { errors: 1, skipped: 1, ..JunitSpec::new(seed, 8 + (seed as usize % 5), 2) };
    let name = world.report(&format!("in/{seed}.xml"), &spec.xml());
    let expected: BTreeMap<String, String> = count(&world.path(&name));
    let env = github_env(1000 + seed, 1, "test", &format!("runner-{seed}"));
    let outbox = format!("outbox-{seed}");
    let arguments = [
        name.as_str(),
        "--project",
        "shop",
        "--cycle",
        "main",
        "--to",
        &proxy.url(),
        "--outbox",
        &outbox,
        "--timeout",
        "2s",
        "--deadline",
        "60s",
    ];
    let outcome = world.push(&arguments, &env);
    assert_eq!(outcome.code, 0, "seed {seed}: {:#}\n{}", outcome.json, outcome.stderr);
    assert!(matches!(outcome.state(), "recorded" | "replayed"), "seed {seed}: {:#}", outcome.json);
    assert!(proxy.faults() > 0, "seed {seed}: nothing was broken");
    let run = (1000 + seed).to_string();
    let items = world.items(&["--cycle", "main", "--round", &run, "--from", direct]);
    assert_eq!(items, expected, "seed {seed}");
    proxy.stop();
}

#[test]
fn the_answer_is_dropped_after_the_write() {
    mode(Fault::ResponseDropped);
}

#[test]
fn the_request_is_dropped() {
    mode(Fault::RequestDropped);
}

#[test]
fn the_request_is_cut_in_the_middle() {
    mode(Fault::CutMidRequest);
}

#[test]
fn a_gateway_answers_504_after_the_write() {
    mode(Fault::GatewayTimeoutAfterWrite);
}

#[test]
fn the_answer_stalls_beyond_the_time_out() {
    mode(Fault::Stall { hold: STALL, then_answer: false });
}

#[test]
fn the_request_is_delivered_twice() {
    mode(Fault::DuplicateDelivery { concurrent: true });
}

#[test]
fn the_answer_is_cut() {
    mode(Fault::ResponseTruncated);
}

#[test]
fn a_dead_server_keeps_the_push_and_flush_delivers_it_with_the_same_key() {
    let world = World::new();
    let mut server = world.serve();
    let url = server.url();
    let name = world.report("junit.xml", &crate::world::junit("ppf"));
    server.kill9().unwrap();
    let env = github_env(7, 1, "test", "runner-1");
    let arguments = [name.as_str(), "--project", "shop", "--cycle", "main", "--to", &url, "--deadline", "2s"];
    let failed = world.push(&arguments, &env).expect(75, "not_sent");
    assert_eq!(world.outbox_entries(), 1);
    assert!(failed.stderr.contains("flush"), "says what to do next: {}", failed.stderr);
    server.restart().unwrap();
    let flushed = world.run(&["flush", "--json", "--to", &url]).output().unwrap().expect_code(0).unwrap();
    let line: serde_json::Value = serde_json::from_str(flushed.stdout.trim()).unwrap();
    assert_eq!((line["state"].as_str(), &line["key"]), (Some("recorded"), &failed.json["key"]));
    assert_eq!(world.outbox_entries(), 0);
    world.push(&arguments, &env).expect(0, "replayed");
}

#[test]
fn an_answer_that_never_comes_is_possibly_written_and_not_called_lost() {
    let world = World::new();
    let server = world.serve();
    let always = Plan::seeded(1, vec![(Fault::ResponseDropped, 1.0)]);
    let proxy = FaultProxy::start_blocking(server.addr(), always).unwrap();
    let name = world.report("junit.xml", &crate::world::junit("ppf"));
    let env = github_env(7, 1, "test", "runner-1");
    let arguments = [name.as_str(), "--project", "shop", "--cycle", "main", "--to", &proxy.url(), "--deadline", "3s"];
    world.push(&arguments, &env).expect(75, "possibly_written");
    assert_eq!(world.outbox_entries(), 1);
    proxy.set_plan(Plan::pass());
    let flushed = world.run(&["flush", "--json", "--to", &proxy.url()]).output().unwrap().expect_code(0).unwrap();
    let line: serde_json::Value = serde_json::from_str(flushed.stdout.trim()).unwrap();
    assert_eq!(line["state"], "replayed", "it had been written all along");
}

#[test]
fn interrupted_ends_at_once_with_the_push_kept() {
    let world = World::new();
    let server = world.serve();
    let stall = Plan::seeded(1, vec![(Fault::Stall { hold: Duration::from_secs(100), then_answer: false }, 1.0)]);
    let proxy = FaultProxy::start_blocking(server.addr(), stall).unwrap();
    let name = world.report("junit.xml", &crate::world::junit("ppf"));
    for terminate in [true, false] {
        let run = world
            .run(&["push", "--json", &name, "--project", "shop", "--cycle", "main", "--to", &proxy.url()])
            .envs(github_env(7, 1, "test", "runner-1"));
        let seen = proxy.log().len();
        let running = run.start().unwrap();
        proxy.wait_for(crate::world::PATIENCE, |log| log.len() > seen).unwrap();
        if terminate {
            running.terminate();
        } else {
            running.interrupt();
        }
        let outcome = crate::world::outcome(running.wait(Duration::from_secs(20)).unwrap());
        assert_eq!(outcome.code, 75, "{:#}\n{}", outcome.json, outcome.stderr);
        assert_eq!(world.outbox_entries(), 1);
    }
}
