//! Two servers over one store: one works at a target, and the other goes on when it dies or is stopped for longer than its
//! lease.

use std::path::Path;
use std::time::{Duration, Instant};

use proof::spawn::{Running, Server};
use proof::stubs::{Fault, Plan, Select, When};
use rusqlite::Connection;

use crate::oracle::{judge, tables, wrong};
use crate::points::{Hit, Passed};
use crate::world::{LEASE, PATIENCE, Product, World};

fn hold(hit: &Hit, file: &Path) -> (String, String) {
    ("TALLYONCE_HOLD_AT".to_owned(), format!("{}={}", hit.text(), file.display()))
}

/// Blocks until it holds there.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "how long a process takes is bounded")]
fn held(file: &Path) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < PATIENCE, "it never came to {}", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Stops it outside a transaction. Within one, which it may be in to keep its lease, it holds `SQLite`'s lock on the store:
/// then nobody writes before it goes on or dies, and nobody could take its turn.
fn pause(world: &World, process: &Running) {
    for _ in 0..100 {
        process.pause();
        let connection = Connection::open(world.store()).unwrap();
        connection.busy_timeout(Duration::from_millis(500)).unwrap();
        if connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok() {
            return;
        }
        process.resume();
    }
    panic!("it is in a transaction whenever it is stopped");
}

/// A server that is stopped at a point, as a machine is that loses its processor, and let go when another one is done.
struct Stopped {
    world: World,
    first: Server,
    second: Server,
    /// Requests with outcomes that the product had answered before the first went on.
    writes: usize,
}

fn writes(log: &[proof::stubs::Event]) -> usize {
    log.iter().filter(|event| event.request.target.contains("add_results") && event.answer.is_some()).count()
}

impl Stopped {
    fn at(hit: &Hit) -> Self {
        let world = World::new(Product::Appends);
        let file = world.path("held");
        let first = world.serve(&[hold(hit, &file)]);
        let url = first.url();
        let pushed = world.push(0, &url).output().unwrap();
        assert_eq!(pushed.code, Some(0), "{pushed}");
        held(&file);
        let process = first.process().unwrap();
        pause(&world, process);
        std::fs::remove_file(&file).unwrap();
        let second = world.serve(&[]);
        world.settle(0, &second.url());
        assert!(tables(&world).turn >= 2, "the second has a turn of its own");
        assert_eq!(wrong(&world, &[0]), Vec::<String>::new(), "while the first is stopped");
        // One or two: what was kept of the first may differ between two outcomes.
        let writes = writes(&world.stub.log());
        process.resume();
        Self { world, first, second, writes }
    }
}

/// W11: stopped with the request in hand, after its last look at the lease. Nothing can call it back: it is named.
#[test]
fn a_server_stopped_with_a_request_in_hand_doubles_it_and_that_is_said() {
    let passed = Passed::watch(Product::Appends);
    let hit = Hit { point: "forward:call:begun".to_owned(), nth: passed.write_call };
    let stopped = Stopped::at(&hit);
    let world = &stopped.world;
    let sent = world.stub.wait_for(PATIENCE, |log| writes(log) > stopped.writes).is_some();
    assert!(sent, "it sends what it had in hand:\n{}{}", world.calls(), stopped.first.log());
    let said = stopped.first.process().unwrap();
    let fenced = |log: &str| log.contains("another server forwards to this target now").then_some(());
    assert!(said.find_in_stderr(PATIENCE, fenced).is_some(), "{}", stopped.first.log());
    // What it wants to keep of it is refused: the ledger is as the other left it.
    let before = tables(world);
    assert!(before.open.is_empty() && before.waiting == 0, "{before:?}");
    assert!(!wrong(world, &[0]).is_empty(), "it stands there twice:\n{}{}", world.calls(), stopped.first.log());
    let (_, flags) = world.sweep();
    assert_eq!(flags, ["duplicate-detected"]);
    let audit = world.run(&["audit", "there", "--cycle", "main", "--json"]).output().unwrap();
    assert_eq!(audit.code, Some(1), "{audit}");
    drop(stopped.second);
}

/// W11, one step earlier: it has kept that it sends, and is stopped before it does. When it goes on, its lease is over, and
/// it sends nothing.
#[test]
fn a_server_stopped_before_its_request_sends_nothing_when_its_lease_is_over() {
    let stopped = Stopped::at(&Hit { point: "server:forward:may-send".to_owned(), nth: 1 });
    // Both work on: what comes next is forwarded once, whoever does it.
    for (job, server) in [(1, &stopped.first), (2, &stopped.second)] {
        stopped.world.settle(job, &server.url());
    }
    let judged = judge(&stopped.world, &[0, 1, 2]);
    let logs = || format!("{}{}{}", stopped.world.calls(), stopped.first.log(), stopped.second.log());
    assert_eq!(judged, Ok(()), "{}", logs());
}

/// Killed while its request is on its way, and the product handles it when its client is gone.
#[expect(clippy::disallowed_methods, reason = "how long a process takes is bounded")]
#[test]
fn a_server_killed_while_it_sends_is_followed_by_another() {
    for fault in [Fault::Held(When::ClientGone), Fault::Stall { hold: When::ClientGone, then_answer: false }] {
        let world = World::new(Product::Appends);
        world.stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases").nth(1), fault.clone()));
        let mut first = world.serve(&[("TALLYONCE_TIMEOUT".to_owned(), "60s".to_owned())]);
        let pushed = world.push(0, &first.url()).output().unwrap();
        assert_eq!(pushed.code, Some(0), "{pushed}");
        let arrived = world.stub.wait_for(PATIENCE, |log| log.iter().any(|event| !event.faults.is_empty()));
        assert!(arrived.is_some(), "{fault:?}: it never came to the fault");
        let second = world.serve(&[]);
        first.kill9().unwrap();
        let killed = Instant::now();
        world.settle(0, &second.url());
        assert!(killed.elapsed() < LEASE * 10, "{fault:?}: settled {:?} after the kill", killed.elapsed());
        assert_eq!(judge(&world, &[0]), Ok(()), "{fault:?}");
    }
}

/// Nobody is disturbed: two servers, pushes to both at once, and every one is forwarded once.
#[test]
fn two_servers_over_one_store_forward_every_push_once() {
    const JOBS: usize = 12;
    let world = World::new(Product::Appends);
    let servers = [world.serve(&[]), world.serve(&[])];
    std::thread::scope(|scope| {
        for job in 0..JOBS {
            let (world, url) = (&world, servers[job % 2].url());
            scope.spawn(move || world.settle(job, &url));
        }
    });
    assert_eq!(judge(&world, &(0..JOBS).collect::<Vec<_>>()), Ok(()));
}
