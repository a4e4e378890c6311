//! The end of a round's cycle at a target: after each push where what comes later still counts, and by `close` elsewhere.

use proof::spawn::Run;
use proof::stubs::{Door, Fault, Plan, Qase, ReportPortal, Select, Stub, Testmo, ZephyrServer};

use crate::site::{CASES, Folder, config, rail, report};

fn names(head: &str) -> Vec<String> {
    (0..CASES).map(|n| format!("{head} {n}")).collect()
}

fn folder(door: &Door, kind: &str, project: &str, more: &str) -> Folder {
    let folder = Folder::new(&config(door, kind, project, more));
    folder.write("report.xml", &report(&names("adds"), &[]));
    folder
}

const CLOSE: [&str; 9] = ["close", "--to", "there", "--round", "7", "--project", "shop", "--cycle", "main"];

fn portal(more: &str) -> (Stub<ReportPortal>, Folder) {
    let stub = Stub::start(ReportPortal::default()).unwrap();
    let folder = folder(&stub, "reportportal", "demo", more);
    (stub, folder)
}

#[test]
fn a_launch_is_finished_after_each_push_and_takes_the_next_one() {
    let (stub, folder) = portal("");
    let (first, object) = folder.push(&["--job", "a"]);
    assert_eq!(first.code, Some(0), "{first}");
    let launch = object["forward"]["cycle"].as_str().unwrap();
    assert_eq!(stub.vendor().status(launch), Some("PASSED"));
    folder.write("report.xml", &report(&names("pays"), &[1]));
    let (second, _) = folder.push(&["--job", "b"]);
    assert_eq!(second.code, Some(0), "{second}");
    assert_eq!(stub.ledger().count(), 2 * CASES);
    assert_eq!(stub.vendor().status(launch), Some("FAILED"), "it follows what came later");
    let clean = folder.run(&["audit", "there", "--cycle", "main"]).output().unwrap();
    assert_eq!(clean.code, Some(0), "{clean}");
}

#[test]
fn a_launch_that_could_not_be_finished_is_said_and_the_push_is_whole() {
    let (stub, folder) = portal("");
    stub.set_plan(Plan::on(
        Select::writes().what("finish_launch"),
        Fault::Refused { status: 403, retry_after: proof::stubs::RetryAfter::Missing },
    ));
    let (pushed, object) = folder.push(&[]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let warnings = object["warnings"].to_string();
    assert!(warnings.contains("still in progress") && warnings.contains("tallyonce close --to there"), "{warnings}");
    assert_eq!(stub.ledger().count(), CASES);
}

#[test]
fn a_round_is_ended_by_a_machine_that_knows_nothing_of_it() {
    let (stub, first) = portal("close = \"never\"\n");
    let (pushed, object) = first.push(&[]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let launch = object["forward"]["cycle"].as_str().unwrap();
    assert_eq!(stub.vendor().status(launch), Some("IN_PROGRESS"));
    let last = folder(&stub, "reportportal", "demo", "close = \"never\"\n");
    for _ in 0..2 {
        let closed = last.run(&CLOSE).output().unwrap();
        assert_eq!(closed.code, Some(0), "{closed}");
        assert!(closed.stdout.contains(&format!("ended: cycle {launch}")), "{closed}");
    }
    assert_eq!(stub.vendor().status(launch), Some("PASSED"));
    let other = last.run(&["close", "--to", "there", "--round", "8", "--project", "shop", "--cycle", "main"]);
    let other = other.output().unwrap();
    assert_eq!(other.code, Some(4), "{other}");
    assert!(other.stderr.contains("nothing there carries the tag"), "{other}");
}

#[test]
fn what_may_refuse_the_next_job_is_ended_by_command_alone() {
    let stub = Stub::start(Qase::default()).unwrap();
    let wrong = folder(&stub, "qase", "DEMO", "close = \"push\"\n");
    let (refused, _) = wrong.push(&[]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("may refuse the next job's outcomes"), "{refused}");
    let folder = folder(&stub, "qase", "DEMO", "");
    let (pushed, _) = folder.push(&[]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let closed = folder.run(&CLOSE).output().unwrap();
    assert_eq!(closed.code, Some(0), "{closed}");
    assert!(closed.stdout.contains("may be refused there"), "{closed}");
    let again = folder.run(&CLOSE).output().unwrap();
    assert!(again.code == Some(0) && again.stdout.contains("ended before"), "{again}");
}

#[test]
fn what_is_on_its_way_is_not_shut_out() {
    let (stub, folder) = portal("close = \"never\"\n");
    stub.set_plan(Plan::on(Select::writes().what("start_item"), Fault::RequestDropped));
    let (cut, _) = folder.push(&["--deadline", "300ms"]);
    assert_eq!(cut.code, Some(75), "{cut}");
    stub.set_plan(Plan::pass());
    let open = folder.run(&CLOSE).output().unwrap();
    assert_eq!(open.code, Some(75), "{open}");
    assert!(open.stderr.contains("the round isn't ended"), "{open}");
    assert_eq!(folder.run(&["flush", "--to", "there"]).output().unwrap().code, Some(0));
    let closed = folder.run(&CLOSE).output().unwrap();
    assert_eq!(closed.code, Some(0), "{closed}");
}

#[test]
fn what_is_kept_in_the_outbox_is_not_shut_out() {
    let (stub, folder, _) = rail();
    assert_eq!(folder.push(&["--job", "a"]).0.code, Some(0));
    // Nothing of the second job's push is planned, so that the ledger has no intent of it.
    stub.set_plan(Plan::on(Select::any(), Fault::RequestDropped));
    let at = |run: Run| run.env("TALLYONCE_OUTBOX", "elsewhere").output().unwrap();
    let cut = at(folder.pushing(&["--job", "b", "--deadline", "300ms"]));
    assert_eq!(cut.code, Some(75), "{cut}");
    stub.set_plan(Plan::pass());
    let open = at(folder.run(&CLOSE));
    assert_eq!(open.code, Some(75), "{open}");
    assert!(open.stderr.contains("the round isn't ended: push run:7:job:b is kept in the outbox"), "{open}");
    assert_eq!(at(folder.run(&["flush", "--to", "there"])).code, Some(0));
    let closed = at(folder.run(&CLOSE));
    assert_eq!(closed.code, Some(0), "{closed}");
    assert_eq!(stub.ledger().count(), 2 * CASES);
}

#[test]
fn where_nothing_ends_that_is_said() {
    let testmo = Stub::start(Testmo::default()).unwrap();
    let zephyr = Stub::start(ZephyrServer { token: "key".to_owned(), ..ZephyrServer::default() }).unwrap();
    for (folder, words) in [
        (folder(&testmo, "testmo", "1", ""), "ended by itself"),
        (folder(&zephyr, "zephyr-server", "SHOP", ""), "nothing has an end in zephyr-server"),
    ] {
        let closed = folder.run(&CLOSE).output().unwrap();
        assert_eq!(closed.code, Some(2), "{closed}");
        assert!(closed.stderr.contains(words), "{closed}");
    }
}
