//! The same push many times at once: one write, the same answer for everybody.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use proof::spawn::github_env;

use crate::world::{World, junit};

/// How often each state came, over `times` pushes from `processes` at once.
fn storm(
    world: &World,
    processes: usize,
    times: usize,
    arguments: &[&str],
    env: &[(String, String)],
) -> (usize, usize) {
    let states = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for process in 0..processes {
            let states = &states;
            let share = times / processes + usize::from(process < times % processes);
            scope.spawn(move || {
                for _ in 0..share {
                    let outcome = world.push(arguments, env);
                    assert_eq!(outcome.code, 0, "{:#}\n{}", outcome.json, outcome.stderr);
                    states.lock().unwrap().push((
                        outcome.state().to_owned(),
                        outcome.total(),
                        outcome.json["push"].clone(),
                    ));
                }
            });
        }
    });
    let states = states.into_inner().unwrap();
    assert!(states.iter().all(|(_, total, push)| *total == 12 && *push == states[0].2));
    let of = |word: &str| states.iter().filter(|(state, ..)| state == word).count();
    (of("recorded"), of("replayed"))
}

#[test]
fn a_hundred_times_from_eight_processes_embedded() {
    let world = World::new();
    world.report("junit.xml", &junit("ppppppppppfs"));
    let arguments = ["junit.xml", "--project", "shop", "--run", "r1", "--cycle", "main"];
    assert_eq!(storm(&world, 8, 100, &arguments, &[]), (1, 99));
    let shown = world.show(&["--cycle", "main"]);
    assert_eq!(shown["headline"]["total"], 12);
    assert_eq!(shown["rounds"][0]["pushes"][0]["deliveries"], 100);
    assert_eq!(shown["rounds"][0]["repeats"], 99);
    assert_eq!(world.items(&["--cycle", "main"]).len(), 12);
    world.check_store();
    assert_eq!(world.outbox_entries(), 0);
}

#[test]
fn a_hundred_times_from_eight_processes_over_http() {
    let world = World::new();
    let server = world.serve();
    world.report("junit.xml", &junit("ppppppppppfs"));
    let url = server.url();
    let arguments = ["junit.xml", "--project", "shop", "--cycle", "main", "--to", &url];
    let env = github_env(42, 1, "test", "runner-1");
    assert_eq!(storm(&world, 8, 100, &arguments, &env), (1, 99));
    let shown = world.show(&["--cycle", "main", "--from", &url]);
    assert_eq!((&shown["headline"]["total"], &shown["rounds"][0]["repeats"]), (&12.into(), &99.into()));
    drop(server);
    world.check_store();
}

/// Status line and body of one POST, by nothing but a socket.
fn post(addr: std::net::SocketAddr, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    write!(
        stream,
        "POST /api/v1/projects/shop/pushes?cycle=main&run=42&shard=1/4 HTTP/1.1\r\nHost: tallyonce\r\n\
         Idempotency-Key: \"gh-run-42-shard-1\"\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn every_answer_has_the_same_status_and_the_same_bytes() {
    let world = World::new();
    let server = world.serve();
    let body = junit("pppfs");
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..13 {
                    let answer = post(server.addr(), &body);
                    answers.lock().unwrap().push(answer);
                }
            });
        }
    });
    let answers = answers.into_inner().unwrap();
    assert!(answers[0].0.contains("201"), "{}", answers[0].0);
    assert!(answers[0].1.contains("\"total\":5"));
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(answers.len(), 104);
}

#[test]
fn curl_as_the_readme_says_is_a_correct_client() {
    let world = World::new();
    let server = world.serve();
    world.report("junit.xml", &junit("ppf"));
    for _ in 0..2 {
        let curl = std::process::Command::new("curl")
            .args(["--silent", "--show-error", "--fail-with-body", "--retry", "8", "--retry-all-errors"])
            .args(["-H", "Idempotency-Key: \"gh-run-42-shard-1\"", "--data-binary"])
            .arg(format!("@{}", world.path("junit.xml").display()))
            .arg(format!("{}/api/v1/projects/shop/pushes?cycle=main&run=42&shard=1/4", server.url()))
            .output()
            .unwrap();
        assert!(curl.status.success(), "{}", String::from_utf8_lossy(&curl.stdout));
    }
    let shown = world.show(&["--cycle", "main", "--round", "latest", "--from", &server.url()]);
    assert_eq!(shown["rounds"][0]["counts"]["total"], 3);
    assert_eq!(shown["rounds"][0]["pushes"][0]["deliveries"], 2);
}

#[test]
fn two_legs_at_once_are_never_one() {
    for round in 0..5 {
        let world = World::new();
        let server = world.serve();
        world.report("junit.xml", &junit("pppp"));
        let url = server.url();
        let codes = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for leg in ["linux", "mac"] {
                let (world, url, codes) = (&world, &url, &codes);
                scope.spawn(move || {
                    let env = github_env(100 + round, 1, "test", leg);
                    let outcome = world.push(&["junit.xml", "--project", "shop", "--cycle", "main", "--to", url], &env);
                    codes.lock().unwrap().push((outcome.code, outcome.json["code"].as_str().map(str::to_owned)));
                });
            }
        });
        let mut codes = codes.into_inner().unwrap();
        codes.sort();
        assert_eq!(codes, [(0, None), (5, Some("key-collision".to_owned()))]);
    }
}
