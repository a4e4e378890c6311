//! What no server can close, provoked: each ends in its name (`facts/idempotency.md`, 4.3).

use proof::kill::kill_nowhere;
use proof::stubs::{Fault, Plan, Select, When};

use crate::oracle::{judge, tables, wrong};
use crate::world::{PATIENCE, Product, World, object};

/// W1, W2: the product handles a request long after its client died, and after everybody had read that it isn't there.
#[test]
fn a_request_that_comes_later_than_two_readings_is_a_double_that_is_said() {
    let world = World::new(Product::Appends);
    let late = Fault::DeliveredLate(When::Told);
    world.stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases").nth(1), late));
    let mut server = world.serve(&[]);
    let pushed = world.push(0, &server.url()).output().unwrap();
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let arrived = world.stub.wait_for(PATIENCE, |log| log.iter().any(|event| !event.faults.is_empty()));
    assert!(arrived.is_some(), "it never came to the fault");
    server.kill9().unwrap();
    server.restart_with(&[kill_nowhere()]).unwrap();
    world.settle(0, &server.url());
    assert_eq!(judge(&world, &[0]), Ok(()), "before it comes");
    world.stub.release();
    // By its fault, not by a number of requests: what came in its place may have been one request or two.
    let applied =
        |log: &[proof::stubs::Event]| log.iter().any(|event| !event.faults.is_empty() && event.applied.is_some());
    assert!(world.stub.wait_for(PATIENCE, applied).is_some(), "it came:\n{}{}", world.calls(), server.log());
    let (_, flags) = world.sweep();
    assert_eq!(flags, ["duplicate-detected"]);
    let listed = world.run(&["forwards"]).output().unwrap();
    assert!(listed.stdout.contains("duplicate-detected"), "{listed}");
}

/// W6: the store is older than what it forwarded. What it records again is found there and not written again, and that is
/// said.
#[test]
fn a_store_that_was_restored_finds_what_is_there() {
    let world = World::new(Product::Appends);
    let mut server = world.serve(&[]);
    world.settle(0, &server.url());
    server.stop(PATIENCE).unwrap();
    let saved = world.path("saved.db");
    std::fs::copy(world.store(), &saved).unwrap();
    server.restart().unwrap();
    world.settle(1, &server.url());
    server.stop(PATIENCE).unwrap();
    for leftover in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(world.path(&format!("served.db{leftover}")));
    }
    std::fs::copy(&saved, world.store()).unwrap();
    server.restart().unwrap();
    let before = tables(&world);
    assert_eq!((before.waiting, before.open.len()), (0, 0), "{before:?}");
    let writes = || world.stub.log().iter().filter(|event| event.request.target.contains("add_results")).count();
    let written = writes();
    let again = world.push(1, &server.url()).args(["--wait-forward"]).output().unwrap();
    assert_eq!(again.code, Some(7), "{again}");
    let found = object(&again);
    assert_eq!(found["forwards"][0]["states"], serde_json::json!({ "found": crate::world::ITEMS }), "{found:#}");
    assert_eq!(found["forwards"][0]["flags"], serde_json::json!(["ledger-restored"]), "{found:#}");
    assert_eq!(writes(), written);
    assert_eq!(wrong(&world, &[0, 1]), Vec::<String>::new());
    let (_, flags) = world.sweep();
    assert_eq!(flags, ["ledger-restored"], "no reading makes that untrue");
}
