//! Rows N, R, G, X and O: cancels, shard plans, collecting, several runners, pushes of one request.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use proof::oracle::Fate;

use super::{Rows, done};
use crate::world::outcome;

/// A cancel of the epoch that the first put went to; its status and body.
fn cancel(rows: &Rows) -> (u16, String) {
    let log = rows.proxy.log();
    let put = log.iter().find(|event| event.path.contains("/chunks/")).unwrap();
    let epoch = put.path.split("/chunks/").next().unwrap();
    let mut stream = TcpStream::connect(rows.server.addr()).unwrap();
    write!(stream, "DELETE {epoch} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", rows.server.addr()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[test]
fn n1_a_cancel_before_the_commit_wins_and_one_after_it_is_told_the_receipt() {
    let rows = Rows::new();
    let (client, held) = rows.held(1, 1, "client:commit:send");
    assert_eq!(cancel(&rows).0, 200);
    rows.nothing_counts();
    std::fs::remove_file(held).unwrap();
    // Its commit is refused; it still has the report, and so begins anew.
    outcome(client.wait(super::PATIENCE).unwrap()).expect(0, "recorded");
    assert_eq!(rows.fates(), [Fate::Cancelled, Fate::Committed(1)]);
    rows.counts(1);

    let rows = Rows::new();
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    let (status, body) = cancel(&rows);
    assert_eq!(status, 409);
    assert!(body.contains("committed") && body.contains("\"recorded\""), "{body}");
    rows.counts(1);
}

#[test]
fn n2_a_cancel_is_repeated() {
    let rows = Rows::new();
    rows.killed(1, 1, "client:commit:send");
    let (first, second) = (cancel(&rows), cancel(&rows));
    assert_eq!((first.0, &first), (200, &second));
    assert_eq!(rows.fates(), [Fate::Cancelled]);
    rows.nothing_counts();
    rows.world.check_store();
}

#[test]
fn r1_a_shard_of_another_plan_is_refused() {
    let rows = Rows::new();
    done(&rows.push(1, 1, &["--shard", "1/4"])).expect(0, "recorded");
    let refused = done(&rows.push(2, 2, &["--shard", "2/5"]));
    assert_eq!(refused.code, 5, "{:#}", refused.json);
    assert_eq!(rows.oracle().pushes().unwrap().len(), 1);
}

/// As if a day had passed since anybody touched what is staged, and an hour since it was first seen idle.
fn a_day_later(rows: &Rows) {
    let tables = rusqlite::Connection::open(rows.world.path("tallyonce.db")).unwrap();
    assert_eq!(tables.execute("UPDATE stage SET touched_ms = 1, idle_seen_ms = 2 WHERE fate = 0", []).unwrap(), 1);
}

#[test]
fn g1_g2_collection_killed_between_steps_goes_on() {
    let points = [
        "store:collect:end-stage",
        "store:collect:delete-block",
        "store:collect:delete-texts",
        "store:collect:delete-itemset",
        "store:collect:delete-names",
        "store:collect:delete-chunks",
        "store:collect:sweep-stage",
        "store:txn:commit-before",
        "store:txn:commit-after",
    ];
    let mut rows = Rows::new();
    rows.killed(1, 1, "client:commit:send");
    rows.server.kill9().unwrap();
    a_day_later(&rows);
    let mut killed = 0;
    for point in points {
        // A server collects as soon as it is there.
        let armed = rows.server.restart_with(&[("TALLYONCE_KILL_AT".to_owned(), point.to_owned())]);
        if armed.is_err()
            || rows.server.wait_exit(std::time::Duration::from_secs(20)).is_ok_and(|dead| dead.was_killed())
        {
            killed += 1;
        }
        rows.nothing_counts();
        rows.world.check_store();
    }
    assert!(killed >= points.len() - 2, "{killed} kills");
    rows.server.restart_with(&[("TALLYONCE_KILL_AT".to_owned(), String::new())]).unwrap();
    let blocks = || {
        let tables = rusqlite::Connection::open(rows.world.path("tallyonce.db")).unwrap();
        tables.query_row("SELECT COUNT(*) FROM block", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    // The server collects by itself; it is given as long as any step may take.
    let looks = crate::world::PATIENCE.as_millis() / 20;
    let swept = (0..looks).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        blocks() == 0
    });
    assert!(swept, "{} blocks of a dead epoch are left", blocks());
    assert_eq!(rows.fates(), [Fate::Abandoned]);
    rows.nothing_counts();
    // P15: what comes after that is told to begin again, and does.
    rows.flush(1).expect(0, "recorded");
    assert_eq!(rows.fates(), [Fate::Abandoned, Fate::Committed(1)]);
    rows.counts(1);
}

#[test]
fn x3_two_clients_with_the_same_bytes_commit_once() {
    let rows = Rows::new();
    let runs = ["one", "two"].map(|outbox| rows.push(1, 1, &["--outbox", outbox]).start().unwrap());
    let mut states: Vec<String> = Vec::new();
    for running in runs {
        let ended = outcome(running.wait(super::PATIENCE).unwrap());
        assert_eq!(ended.code, 0, "{:#}", ended.json);
        states.push(ended.state().to_owned());
    }
    states.sort();
    assert!(states == ["recorded", "replayed"] || states == ["replayed", "replayed"], "{states:?}");
    assert_eq!(rows.fates(), [Fate::Committed(1)]);
    rows.counts(1);
}

#[test]
fn x2_x6_a_paused_client_resumes_after_another_has_taken_over() {
    let rows = Rows::new();
    let (paused, held) = rows.held(1, 1, "client:put:done@2");
    paused.pause();
    done(&rows.push(2, 2, &[])).expect(0, "recorded");
    std::fs::remove_file(held).unwrap();
    paused.resume();
    let late = outcome(paused.wait(super::PATIENCE).unwrap());
    assert_eq!((late.code, &late.json["difference"]["class"]), (0, &"semantic".into()), "{:#}", late.json);
    assert_eq!(rows.fates()[0], Fate::Superseded);
    rows.counts(2);
}

#[test]
fn o1_o2_one_request_with_the_same_content_ends_an_open_epoch() {
    let rows = Rows::new();
    rows.killed(1, 1, "client:commit:send");
    let whole = rows.push_of(1, &Rows::spec(1), &["--cycle", "main", "--outbox", "other"]);
    done(&whole).expect(0, "recorded");
    assert_eq!(rows.count("one-shot 201"), 1, "{:?}", rows.writes());
    rows.counts(1);
    rows.flush(1).expect(0, "replayed");
    assert_eq!(rows.fates(), [Fate::Committed(1)]);
    rows.counts(1);
}

#[test]
fn o1_one_request_of_a_higher_attempt_supersedes_an_open_epoch() {
    let rows = Rows::new();
    rows.killed(1, 1, "client:put:done@2");
    done(&rows.push_of(2, &Rows::spec(2), &["--cycle", "main"])).expect(0, "recorded");
    assert_eq!(rows.fates(), [Fate::Superseded]);
    rows.counts(2);
}

#[test]
fn h2_the_same_key_in_another_project_is_another_push() {
    let rows = Rows::new();
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    let name = rows.world.report("in/h2.xml", &Rows::spec(2).xml());
    let url = rows.proxy.url();
    let arguments = ["push", "--json", &name, "--project", "other", "--cycle", "main", "--to", &url];
    let env = proof::spawn::github_env(super::RUN, 1, "test", "runner-1");
    done(&rows.world.run(&arguments).envs(env)).expect(0, "recorded");
    rows.counts(1);
    assert_eq!(rows.oracle().pushes().unwrap().len(), 2);
}

#[test]
fn a_client_dies_while_it_gives_up_an_epoch_to_cut_smaller() {
    for point in ["client:cancel:read", "client:cancel:done", "client:recut:written", "client:recut:kept"] {
        let world = crate::world::World::new();
        world.report("small.toml", "[serve]\nbody-bytes-max = 15000\n");
        let config = world.path("small.toml");
        let more = ["--config", config.to_str().unwrap()];
        let server = proof::spawn::Server::start(&world.binary, &world.store_url(), &[], &more).unwrap();
        let spec = proof::oracle::JunitSpec::new(1, 4000, 40);
        let (name, url) = (world.report("in.xml", &spec.xml()), server.url());
        let arguments = ["push", "--json", &name, "--project", "shop", "--cycle", "main", "--to", &url];
        let run = world.run(&arguments).args(["--chunk-outcomes", "2000"]);
        let run = run.envs(proof::spawn::github_env(super::RUN, 1, "test", "runner-1"));
        let dead = run.env("TALLYONCE_KILL_AT", point).output().unwrap();
        assert!(dead.was_killed(), "{point}: {dead}");
        let flushed = world.run(&["flush", "--json", "--to", &url]).output().unwrap().expect_code(0).unwrap();
        let lines: Vec<serde_json::Value> =
            flushed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // What was being written in an entry's place is no push of its own, though it may be whole.
        let states: Vec<&str> = lines.iter().map(|line| line["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["recorded"], "{point}: {}", flushed.stdout);
        assert!(lines[0]["delivery"]["chunks"].as_u64().unwrap() > 2, "{point}: {}", flushed.stdout);
        let oracle = proof::oracle::Oracle::open(&world.path("tallyonce.db")).unwrap();
        let rows = oracle.outcomes("shop", "main", super::ROUND).unwrap();
        let items: proof::history::Items = rows.into_iter().map(|row| (row.item, row.status)).collect();
        assert_eq!(items, spec.expected(), "{point}");
        world.check_store();
    }
}
