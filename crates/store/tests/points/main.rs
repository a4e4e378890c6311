//! Every writing statement of the store in a file fails once, and nothing comes of it but one more try: same answers, a
//! sound store. And a forwarder's process dies at each. `cargo test -p tallyonce-store --features failpoints --test points`
#![cfg(feature = "failpoints")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod forwards;
mod kills;
mod ledger;
mod scenario;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use scenario::Client;
use store::FAIL_POINTS;

/// Points at which a process can be killed, but which cannot fail by themselves.
fn only_kills(point: &str) -> bool {
    let of_transaction = ["store:txn:begin", "store:txn:commit-before", "store:txn:commit-after"];
    of_transaction.contains(&point) || point.starts_with("store:queue:") || point.starts_with("store:read:")
}

/// Whether the point is to fail: all are, or those with the word of `TALLYONCE_POINTS` in their name.
#[expect(clippy::disallowed_methods, reason = "how long this takes is asked for outside")]
fn is_chosen(point: &str) -> bool {
    std::env::var("TALLYONCE_POINTS").map_or(true, |word| point.contains(&word))
}

fn walked() -> Client {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = Client::open(&path);
        client.walk(&path).await;
        client
    })
}

/// One test at a time, as points belong to the whole process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn every_point_is_reached_and_may_fail() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let reached = Arc::new(Mutex::new(BTreeSet::new()));
    for point in FAIL_POINTS {
        let reached = Arc::clone(&reached);
        fail::cfg_callback(*point, move || reached.lock().unwrap().extend([(*point).to_owned()])).unwrap();
    }
    let undisturbed = walked();
    assert_eq!(undisturbed.failures, 0);
    let reached: BTreeSet<String> = reached.lock().unwrap().clone();
    let missed: Vec<&&str> = FAIL_POINTS.iter().filter(|point| !reached.contains(**point)).collect();
    assert!(missed.is_empty(), "no step of the scenario gets to {missed:?}");
    for point in FAIL_POINTS {
        fail::remove(point);
    }
    for point in FAIL_POINTS.iter().filter(|point| !only_kills(point) && is_chosen(point)) {
        fail::cfg(*point, "1*return").unwrap();
        let disturbed = walked();
        fail::remove(point);
        assert_eq!(disturbed.failures, 1, "{point}");
        for (step, (said, expected)) in disturbed.said.iter().zip(&undisturbed.said).enumerate() {
            assert_eq!(said, expected, "{point}, step {step}");
        }
    }
}
