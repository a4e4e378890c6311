//! Servers over one store, killed and stopped at random times over a link that loses what it can, while jobs push. Once
//! that ends, everything settles by itself: nothing is lost, and what stands there twice has its name.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proof::proxy::Plan;
use proof::rng::Rng;
use proof::spawn::Server;

use crate::kills::wanted;
use crate::oracle::{tables, wrong};
use crate::world::{LEASE, Product, World};

/// Kills in all; with `TALLYONCE_KILLS` ten times as many.
fn kills() -> u64 {
    wanted().map_or(24, |each| each * 10)
}

/// Worlds at a time.
const WORLDS: usize = 4;
/// Pushes of a world.
const JOBS: usize = 4;

/// What was seen.
#[derive(Debug, Default)]
struct Tally {
    worlds: u64,
    kills: u64,
    stops: u64,
    broken: usize,
    doubled: u64,
}

fn disturb(servers: &mut [Server; 2], rng: &mut Rng, tally: &mut Tally) {
    let server = &mut servers[rng.below(2) as usize];
    std::thread::sleep(Duration::from_millis(rng.below(400)));
    if rng.below(6) == 0 {
        // Longer than its lease: whoever has the turn then is the other one.
        let process = server.process().unwrap();
        process.pause();
        std::thread::sleep(LEASE + Duration::from_millis(500));
        process.resume();
        tally.stops += 1;
    } else {
        let dead = server.kill9().unwrap();
        assert!(dead.was_killed(), "{dead}");
        server.restart().unwrap();
        tally.kills += 1;
    }
}

fn one(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let world = World::new(Product::Appends);
    world.proxy.set_plan(Plan::lossy(seed, 0.25, Duration::from_millis(1200)));
    let mut servers = [world.serve(&[]), world.serve(&[])];
    let urls: Vec<String> = servers.iter().map(Server::url).collect();
    let clients: Vec<_> = (0..JOBS).map(|job| world.push(job, &urls[job % 2]).start().unwrap()).collect();
    for _ in 0..3 {
        disturb(&mut servers, &mut rng, tally);
    }
    tally.broken += world.proxy.faults();
    world.proxy.set_plan(Plan::pass());
    drop(clients);
    for (job, url) in (0..JOBS).zip(urls.iter().cycle()) {
        let settled = world.push(job, url).args(["--wait-forward"]).output().unwrap();
        // A flag that was seen already is no failure to settle.
        if !matches!(settled.code, Some(0 | 7)) {
            return Err(format!("job {job}: {settled}"));
        }
    }
    let (_, flags) = world.sweep();
    let tables = tables(&world);
    if tables.waiting > 0 || !tables.open.is_empty() || tables.parked > 0 {
        return Err(format!("stuck: {tables:?}"));
    }
    let sound = world.run(&["check-store", "--store", &world.store_url(), "--json"]).output().unwrap();
    if sound.code != Some(0) {
        return Err(format!("the store is damaged: {sound}"));
    }
    let wrong = wrong(&world, &(0..JOBS).collect::<Vec<_>>());
    let doubled = world.stub.ledger().count() > JOBS * crate::world::ITEMS;
    tally.doubled += u64::from(doubled);
    let is_said = flags.iter().any(|flag| flag == "duplicate-detected");
    if doubled == is_said && (wrong.is_empty() || doubled) {
        return Ok(());
    }
    Err(format!("flags {flags:?}: {}", wrong.join("; ")))
}

#[test]
fn servers_killed_and_stopped_at_random_times_lose_nothing_and_name_every_double() {
    let (next, all) = (AtomicU64::new(1), Mutex::new((Tally::default(), Vec::new())));
    std::thread::scope(|scope| {
        for _ in 0..WORLDS {
            scope.spawn(|| {
                while all.lock().unwrap().0.kills < kills() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let mut tally = Tally { worlds: 1, ..Tally::default() };
                    let judged = one(seed, &mut tally);
                    let mut all = all.lock().unwrap();
                    let sum = &mut all.0;
                    *sum = Tally {
                        worlds: sum.worlds + tally.worlds,
                        kills: sum.kills + tally.kills,
                        stops: sum.stops + tally.stops,
                        broken: sum.broken + tally.broken,
                        doubled: sum.doubled + tally.doubled,
                    };
                    if let Err(why) = judged {
                        all.1.push(format!("seed {seed}: {why}"));
                    }
                }
            });
        }
    });
    let (tally, wrong) = all.into_inner().unwrap();
    println!("{tally:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
