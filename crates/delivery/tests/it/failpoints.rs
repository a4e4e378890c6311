//! The client's crash points (facts on idempotency, 3.5b): what is on the disk when it dies there. Only with the feature
//! `failpoints`; a panic stands for the kill, and only in the thread of the test that wants it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use delivery::{Ended, Handed, Outbox, settle};
use domain::Delivery;

use crate::support::{pack, push, receipt};

/// Runs `act` and dies at the point `name`.
fn dies_at(name: &str, act: impl FnOnce()) {
    let me = std::thread::current().id();
    let here = move || assert_ne!(std::thread::current().id(), me, "killed here");
    fail::cfg_callback(name, here).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(act)).is_err(), "{name} was not passed");
    fail::remove(name);
}

#[test]
fn k10_leaves_a_reported_half_that_the_next_put_clears_away() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    dies_at("k10", || drop(outbox.put(&pack(push()))));
    let (entries, broken) = outbox.entries().unwrap();
    assert_eq!((entries.len(), broken.len()), (0, 1));
    outbox.put(&pack(push())).unwrap();
    let (entries, broken) = outbox.entries().unwrap();
    assert_eq!((entries.len(), broken.len()), (1, 0));
}

#[test]
fn k9_leaves_the_entry_for_a_replay() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    let parcel = pack(push());
    let entry = outbox.put(&parcel).unwrap();
    let receipt = receipt(&parcel.header);
    let delivery = Delivery::Recorded(Handed {
        receipt_bytes: Vec::new(),
        current_counts: receipt.counts,
        receipt,
        replayed: false,
        class: None,
        current_revision: 1,
        warnings: Vec::new(),
    });
    let ended = Ended {
        delivery,
        attempts: 1,
        elapsed_ms: 1,
        bytes: 1,
        chunks: 1,
        chunks_sent: 0,
        resumed: false,
        interrupted: false,
    };
    dies_at("k9", || drop(settle(&entry, &ended)));
    assert_eq!(outbox.entries().unwrap().0.len(), 1);
    assert!(settle(&entry, &ended).unwrap());
    assert_eq!(outbox.entries().unwrap().0.len(), 0);
}
