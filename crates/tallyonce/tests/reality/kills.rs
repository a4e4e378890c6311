//! `kill -9` of client and server at each of the points k0 to k10 and once all is said, many times each. Whatever was cut, the same push
//! delivered again leaves all of it, once. Needs a program built with the points (`cargo xtask test` does).

use std::sync::Mutex;

use proof::kill::{CRASH_POINTS, CrashPoint, Histogram, Victim, Written, kill_at, kill_nowhere};
use proof::oracle::JunitSpec;
use proof::spawn::{Finished, github_env};

use crate::world::{PATIENCE, World, count, oracle_agrees, outcome};

/// Points of the three tests here.
pub(crate) const POINTS: u64 = 20;

/// Kills a point; `TALLYONCE_KILLS` makes it a long run: 280 are 5,600 here, and as many at random times (`random.rs`).
fn kills() -> u64 {
    wanted().unwrap_or(20)
}

/// How many kills a point are asked for.
pub(crate) fn wanted() -> Option<u64> {
    std::env::var_os("TALLYONCE_KILLS").and_then(|n| n.to_str()?.parse().ok())
}

fn arguments<'a>(name: &'a str, to: &'a str) -> Vec<&'a str> {
    vec!["push", "--json", name, "--project", "shop", "--cycle", "main", "--to", to, "--deadline", "90s"]
}

fn spec(seed: u64) -> JunitSpec {
    JunitSpec { errors: 1, skipped: 1, ..JunitSpec::new(seed, 10 + (seed as usize % 7), 2) }
}

/// Did anything of run `seed` reach the tables, by the independent reader?
fn written(world: &World, seed: u64) -> bool {
    let path = world.path("tallyonce.db");
    if !path.exists() {
        return false;
    }
    let oracle = proof::oracle::Oracle::open(&path).unwrap();
    let round = format!("github:acme/shop:run:{seed}");
    let rows = oracle.outcomes("shop", "main", &round).unwrap();
    let all = count(&world.path(&format!("in/{seed}.xml"))).len();
    assert!(rows.is_empty() || rows.len() == all, "half a push is visible: {} of {all}", rows.len());
    !rows.is_empty()
}

#[track_caller]
fn as_promised(point: &CrashPoint, written: bool) {
    match point.written {
        Written::No => assert!(!written, "{}: {}", point.name, point.at),
        Written::All => assert!(written, "{}: {}", point.name, point.at),
        Written::NoOrAll => {}
    }
}

#[track_caller]
fn recorded(finished: Finished, seed: u64) -> &'static str {
    let outcome = outcome(finished);
    assert_eq!(outcome.code, 0, "seed {seed}: {:#}\n{}", outcome.json, outcome.stderr);
    match outcome.state() {
        "recorded" => "recorded",
        "replayed" => "replayed",
        other => panic!("seed {seed}: {other}"),
    }
}

fn all_there(world: &World, seeds: std::ops::Range<u64>) {
    for seed in seeds.clone() {
        let expected = count(&world.path(&format!("in/{seed}.xml")));
        assert_eq!(world.items(&["--cycle", "main", "--round", &seed.to_string()]), expected, "seed {seed}");
    }
    world.check_store();
    oracle_agrees(world, (seeds.end - seeds.start) as usize);
}

/// The server dies at the point while the client waits; a new one takes its place, and the client goes on.
fn server_dies(point: &CrashPoint) -> Histogram {
    let world = World::new();
    let mut server = world.serve_with(&[kill_nowhere()]);
    let url = server.url();
    let mut seen = Histogram::new();
    let seeds = 5000..5000 + kills();
    for seed in seeds.clone() {
        server.kill9().unwrap();
        server.restart_with(&[kill_at(point.name)]).unwrap();
        let name = world.report(&format!("in/{seed}.xml"), &spec(seed).xml());
        let env = github_env(seed, 1, "test", &format!("runner-{seed}"));
        let client = world.run(&arguments(&name, &url)).envs(env).start().unwrap();
        let dead = server.wait_exit(PATIENCE).unwrap();
        assert!(dead.was_killed(), "{}: {}", point.name, dead.stderr);
        let before = written(&world, seed);
        as_promised(point, before);
        server.restart_with(&[kill_nowhere()]).unwrap();
        let state = recorded(client.wait(PATIENCE).unwrap(), seed);
        assert_eq!(state, if before { "replayed" } else { "recorded" }, "{} seed {seed}", point.name);
        seen.add(point.name, &dead, state);
    }
    drop(server);
    all_there(&world, seeds);
    seen
}

/// The client dies at the point; the next step of the job flushes what it left, or pushes again.
fn client_dies(point: &CrashPoint, embedded: bool) -> Histogram {
    let world = World::new();
    let server = (!embedded).then(|| world.serve());
    let to = server.as_ref().map_or_else(|| world.store_url(), proof::spawn::Server::url);
    let mut seen = Histogram::new();
    let seeds = 6000..6000 + kills();
    for seed in seeds.clone() {
        let name = world.report(&format!("in/{seed}.xml"), &spec(seed).xml());
        let env = github_env(seed, 1, "test", &format!("runner-{seed}"));
        let push = world.run(&arguments(&name, &to)).envs(env);
        let (variable, value) = kill_at(point.name);
        let dead = push.clone().env(&variable, value).output().unwrap();
        assert!(dead.was_killed(), "{}: {:?} {}", point.name, dead.code, dead.stderr);
        // Said, then forgotten: never the other way round.
        let said = dead.stdout.contains("\"state\"");
        assert_eq!(said, point.name == "client:said", "{}: {}", point.name, dead.stdout);
        let before = written(&world, seed);
        as_promised(point, before);
        let again = if seed.is_multiple_of(2) && world.outbox_entries() > 0 {
            world.run(&["flush", "--json", "--to", &to]).output().unwrap()
        } else {
            push.output().unwrap()
        };
        let state = recorded(again, seed);
        assert_eq!(state, if before { "replayed" } else { "recorded" }, "{} seed {seed}", point.name);
        assert_eq!(world.outbox_entries(), 0, "{} seed {seed}: the entry is settled", point.name);
        seen.add(point.name, &dead, state);
    }
    drop(server);
    all_there(&world, seeds);
    seen
}

fn in_parallel(work: Vec<Box<dyn FnOnce() -> Histogram + Send>>) -> Histogram {
    let all = Mutex::new(Histogram::new());
    std::thread::scope(|scope| {
        for one in work {
            scope.spawn(|| {
                let seen = one();
                all.lock().unwrap().merge(&seen);
            });
        }
    });
    all.into_inner().unwrap()
}

#[test]
fn k0_to_k7_kill_the_server() {
    let points = CRASH_POINTS.iter().filter(|p| p.victim == Victim::Server);
    let seen =
        in_parallel(points.map(|p| Box::new(|| server_dies(p)) as Box<dyn FnOnce() -> Histogram + Send>).collect());
    println!("{seen}");
    for point in CRASH_POINTS.iter().filter(|p| p.victim == Victim::Server) {
        assert_eq!(seen.of(point.name), kills(), "{}", point.name);
    }
}

#[test]
fn k8_to_k10_and_said_kill_the_client() {
    let points = CRASH_POINTS.iter().filter(|p| p.victim == Victim::Client);
    let work = points.map(|p| Box::new(|| client_dies(p, false)) as Box<dyn FnOnce() -> Histogram + Send>).collect();
    let seen = in_parallel(work);
    println!("{seen}");
    for point in CRASH_POINTS.iter().filter(|p| p.victim == Victim::Client) {
        assert_eq!(seen.of(point.name), kills(), "{}", point.name);
    }
}

#[test]
fn k2_to_k6_and_k9_to_said_kill_an_embedded_push() {
    let embedded = ["k2", "k3", "k4", "k5", "k6", "k9", "k10", "client:said"];
    let points = CRASH_POINTS.iter().filter(|p| embedded.contains(&p.name));
    let work = points.map(|p| Box::new(|| client_dies(p, true)) as Box<dyn FnOnce() -> Histogram + Send>).collect();
    let seen = in_parallel(work);
    println!("{seen}");
    for point in embedded {
        assert_eq!(seen.of(point), kills(), "{point}");
    }
}
