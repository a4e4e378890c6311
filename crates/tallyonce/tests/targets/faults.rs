//! Every fault of a write, and then the same push again, on the same machine and on a fresh one: each outcome stands there
//! once, and the program has said the truth.

use std::time::Duration;

use proof::stubs::{Door, Fault, Plan, RetryAfter, Select, When};
use serde_json::Value;

use crate::site::{CASES, rail, report};

pub(crate) fn faults() -> Vec<(&'static str, Fault)> {
    let refused = |status, retry_after| Fault::Refused { status, retry_after };
    vec![
        ("answer dropped after the write", Fault::ResponseDropped),
        ("answer cut", Fault::ResponseTruncated),
        ("request dropped", Fault::RequestDropped),
        ("504 after the write", Fault::Page { status: 504, applied: true }),
        ("502 before the write", Fault::Page { status: 502, applied: false }),
        ("500 after the write", Fault::ErrorAfterWrite(500)),
        ("500 before the write", refused(500, RetryAfter::Missing)),
        ("a login page", Fault::Page { status: 200, applied: false }),
        ("stall", Fault::Stall { hold: When::ClientGone, then_answer: false }),
        ("429 with Retry-After", refused(429, RetryAfter::Seconds(1))),
        ("a part of the batch", Fault::AppliedInPart { first: 3 }),
        ("late, after the client gave up", Fault::DeliveredLate(When::Requests(1))),
    ]
}

#[test]
fn every_fault_of_a_write_leaves_every_outcome_once() {
    std::thread::scope(|scope| {
        for (name, fault) in faults() {
            scope.spawn(move || under(name, &fault));
        }
    });
}

fn under(name: &str, fault: &Fault) {
    for what in ["add_results_for_cases", "add_run"] {
        let (stub, folder, _) = rail();
        if what == "add_run" && matches!(fault, Fault::AppliedInPart { .. }) {
            continue;
        }
        stub.set_plan(Plan::on(Select::writes().what(what).nth(1), fault.clone()));
        let (finished, json) = folder.push(&[]);
        assert_eq!(finished.code, Some(0), "{name}, {what}: {finished}");
        assert_eq!(json["forward"]["cases"], CASES, "{name}, {what}: {json:#}");
        assert!(stub.log().iter().any(|event| !event.faults.is_empty()), "{name}, {what}: it never came to it");
        // Again, and again by a machine that knows nothing of it.
        let (again, _) = folder.push(&[]);
        assert_eq!(again.code, Some(0), "{name}, {what}: {again}");
        std::fs::remove_dir_all(folder.path(".tallyonce")).unwrap();
        let (fresh, _) = folder.push(&[]);
        assert_eq!(fresh.code, Some(0), "{name}, {what}: {fresh}");
        assert_eq!(stub.ledger().count(), CASES, "{name}, {what}: {:?}", stub.ledger());
        assert!(stub.doubled().is_empty(), "{name}, {what}: {:?}", stub.doubled());
        let audit = folder.run(&["audit", "there", "--cycle", "main", "--json"]).output().unwrap();
        // A run that came into being after both looks for it (R1, R3) stays empty, and is named.
        let asked = stub.log().iter().filter(|event| event.kind.what() == "add_run").count();
        let doubled_run = asked > 1 && what == "add_run" && matches!(fault, Fault::DeliveredLate(_));
        assert_eq!(audit.code, Some(i32::from(doubled_run)), "{name}, {what}: {audit}");
        assert_eq!(audit.stdout.contains("duplicate-cycles"), doubled_run, "{name}, {what}: {audit}");
    }
}

#[test]
fn a_client_that_dies_half_way_is_followed_by_one_that_ends_it() {
    for (fault, kept) in [
        (Fault::Held(When::ClientGone), true),
        (Fault::Held(When::ClientGone), false),
        (Fault::Stall { hold: When::ClientGone, then_answer: false }, true),
        (Fault::Stall { hold: When::ClientGone, then_answer: false }, false),
    ] {
        let (stub, folder, _) = rail();
        stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases").nth(1), fault));
        let client = folder.pushing(&[]).start().unwrap();
        // Until its request is there.
        let arrived = stub.wait_for(Duration::from_secs(30), |log| log.iter().any(|event| !event.faults.is_empty()));
        assert!(arrived.is_some(), "it never came to the fault");
        client.kill9();
        client.wait(Duration::from_secs(30)).unwrap();
        if !kept {
            std::fs::remove_dir_all(folder.path(".tallyonce")).unwrap();
        }
        let (finished, json) = folder.push(&[]);
        assert_eq!(finished.code, Some(0), "{finished}");
        assert!(stub.doubled().is_empty(), "kept {kept}: {json:#} {:?}", stub.doubled());
        assert_eq!(stub.ledger().count(), CASES, "kept {kept}");
    }
}

#[test]
fn what_an_earlier_attempt_left_reaches_the_target_before_a_part_that_ran_again() {
    let (stub, folder, names) = rail();
    stub.set_plan(Plan::on(Select::any(), Fault::RequestDropped));
    let (cut, _) = folder.push(&["--attempt", "1", "--deadline", "300ms"]);
    assert_eq!(cut.code, Some(75), "{cut}");
    stub.set_plan(Plan::pass());
    // Only what failed runs again: the rest is in the first attempt alone.
    folder.write("report.xml", &report(&names[2..3], &[]));
    let (again, json) = folder.push(&["--attempt", "2", "--on-difference", "revise"]);
    assert_eq!(again.code, Some(0), "{again}");
    let items = stub.ledger();
    assert_eq!(items.items().len(), CASES, "{json:#} {items:?}");
    // The item that ran again stands there with both of its executions.
    assert_eq!(items.count(), CASES + 1, "{items:?}");
}

/// Bodies of the calls that wrote outcomes since the first so many requests.
fn written(stub: &Door, after: usize) -> Vec<String> {
    let events = stub.log().into_iter().skip(after).filter(|event| event.kind.what() == "add_results_for_cases");
    events.map(|event| String::from_utf8_lossy(&event.request.body).into_owned()).collect()
}

#[test]
fn a_later_entry_of_a_key_waits_while_an_earlier_one_is_open() {
    let (stub, folder, names) = rail();
    stub.set_plan(Plan::on(Select::any(), Fault::RequestDropped));
    for (attempt, failed) in [("1", &[2][..]), ("2", &[])] {
        folder.write("report.xml", &report(&names, failed));
        let (cut, _) = folder.push(&["--attempt", attempt, "--on-difference", "revise", "--deadline", "400ms"]);
        assert_eq!(cut.code, Some(75), "{attempt}: {cut}");
    }
    // Now all but the outcomes gets through: the first attempt stays open, and the second one is not begun.
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases"), Fault::RequestDropped));
    let before = stub.log().len();
    let flush = |deadline| folder.run(&["flush", "--to", "there", "--json", "--deadline", deadline]).output().unwrap();
    let cut = flush("3s");
    assert_eq!(cut.code, Some(75), "{cut}");
    let objects: Vec<Value> = cut.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2, "both are told of: {cut}");
    let sent = written(&stub, before);
    let of =
        |attempt: &str, bodies: &[String]| bodies.iter().filter(|body| body.contains(&format!("u{attempt}\""))).count();
    assert!(of("1", &sent) > 0 && of("2", &sent) == 0, "{sent:?}");
    assert_eq!(stub.ledger().count(), 0);
    stub.set_plan(Plan::pass());
    let before = stub.log().len();
    let done = flush("30s");
    assert_eq!(done.code, Some(0), "{done}");
    let sent = written(&stub, before);
    assert!(of("1", &sent[..1]) == 1 && of("2", &sent[1..]) == 1, "in their order: {sent:?}");
    let (ledger, rows) = (stub.ledger(), CASES + 1);
    assert_eq!(ledger.count(), rows, "what differs is written again: {ledger:?}");
    let nothing = flush("30s");
    assert_eq!((nothing.code, stub.ledger().count()), (Some(0), rows), "{nothing}");
}

#[test]
fn a_sealed_push_goes_on_to_the_target_that_flushes_it() {
    let (stub, folder, _) = rail();
    let seal = ["push", "report.xml", "--seal", "job.push", "--project", "shop", "--cycle", "main", "--run", "7"];
    let sealed = folder.run(&seal).output().unwrap();
    assert_eq!(sealed.code, Some(0), "{sealed}");
    let bound = ["flush", "job.push", "--to", "there", "--project", "shop", "--cycle", "main", "--run", "7"];
    for _ in 0..2 {
        let flushed = folder.run(&bound).output().unwrap();
        assert_eq!(flushed.code, Some(0), "{flushed}");
        assert_eq!(stub.ledger().count(), CASES);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a process takes is measured")]
fn a_limit_that_outlasts_the_deadline_is_not_asked_again() {
    let (stub, folder, _) = rail();
    let limit = Fault::Refused { status: 429, retry_after: RetryAfter::Seconds(60) };
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases"), limit));
    let begun = std::time::Instant::now();
    let (cut, _) = folder.push(&["--deadline", "40s"]);
    assert_eq!(cut.code, Some(75), "{cut}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it waited for a deadline that can't help");
    assert!(cut.stderr.contains("60 s, which is after the deadline"), "{cut}");
    assert_eq!(written(&stub, 0).len(), 1);
    stub.set_plan(Plan::pass());
    let (done, _) = folder.push(&[]);
    assert_eq!((done.code, stub.ledger().count()), (Some(0), CASES), "{done}");
}

#[test]
fn what_the_deadline_cuts_is_kept_and_flushed() {
    let (stub, folder, _) = rail();
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases"), Fault::RequestDropped));
    let (cut, json) = folder.push(&["--deadline", "500ms"]);
    assert_eq!(cut.code, Some(75), "{cut}");
    assert_eq!(json["state"], "possibly_written");
    assert!(cut.stderr.contains("tallyonce flush --to there"), "{cut}");
    let waiting = folder.run(&["forwards", "--json"]).output().unwrap();
    assert_eq!(waiting.code, Some(7), "{waiting}");
    stub.set_plan(Plan::pass());
    let flushed = folder.run(&["flush", "--to", "there", "--json"]).output().unwrap();
    assert_eq!(flushed.code, Some(0), "{flushed}");
    assert_eq!(stub.ledger().count(), CASES);
    let done = folder.run(&["forwards", "--json"]).output().unwrap();
    assert_eq!(done.code, Some(0), "{done}");
}

#[test]
fn what_is_parked_is_left_or_taken_up_by_its_id() {
    let (stub, folder, _) = rail();
    let json = |args: &[&str]| {
        let finished = folder.run(args).output().unwrap();
        let value: Value = serde_json::from_str(finished.stdout.trim()).unwrap_or_default();
        (finished.code, value)
    };
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases"), Fault::RequestDropped));
    let (parked, _) = folder.push(&["--deadline", "3m"]);
    assert_eq!(parked.code, Some(7), "{parked}");
    let (code, listed) = json(&["forwards", "--json"]);
    assert_eq!((code, &listed["forwards"][0]["state"]), (Some(7), &"parked".into()), "{listed}");
    let id = listed["forwards"][0]["id"].as_str().unwrap().to_owned();
    let (code, left) = json(&["forwards", "--give-up", &id, "--because", "recorded by hand", "--json"]);
    assert_eq!((code, &left["forwards"][0]["cause"]), (Some(0), &"recorded by hand".into()), "{left}");
    let (again, _) = folder.push(&[]);
    assert_eq!((again.code, stub.ledger().count()), (Some(0), 0), "{again}");
    stub.set_plan(Plan::pass());
    let (code, taken_up) = json(&["forwards", "--resume", &id, "--json"]);
    assert_eq!((code, stub.ledger().count()), (Some(0), CASES), "{taken_up}");
    // Neither what has ended nor what nobody knows is taken up.
    let none = "0".repeat(32);
    for wrong in [&id, &none] {
        assert_eq!(json(&["forwards", "--resume", wrong]).0, Some(2));
    }
}
