//! Every fault of a write, and then the same push again, on the same machine and on a fresh one: each outcome stands there
//! once, and the program has said the truth.

use std::time::Duration;

use proof::stubs::{Fault, Plan, RetryAfter, Select, When};

use crate::site::{CASES, rail, report};

fn faults() -> Vec<(&'static str, Fault)> {
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
        // A run that came into being after it was looked for (R1, R3) stays empty, and is named.
        let doubled_run = what == "add_run" && matches!(fault, Fault::DeliveredLate(_));
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
