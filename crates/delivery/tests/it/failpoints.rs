//! The client's crash points (facts on idempotency, 3.5b): what is on the disk when it dies there. Only with the feature
//! `failpoints`; a panic stands for the kill, and only in the thread of the test that wants it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use delivery::{AttachmentWanted, AttachmentsWanted, Ended, Form, Handed, Outbox, Scratch, Settled};
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
fn an_entry_stays_for_a_replay_until_all_is_said() {
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
    let settled = || Settled::of(&entry, entry.lock().unwrap(), &ended);
    dies_at("k9", || drop(settled()));
    assert_eq!(outbox.entries().unwrap().0.len(), 1);
    dies_at("client:said", || drop(settled().map(Settled::forget)));
    assert_eq!(outbox.entries().unwrap().0.len(), 1);
    settled().unwrap().forget().unwrap();
    assert_eq!(outbox.entries().unwrap().0.len(), 0);
}

#[test]
fn a_put_that_dies_anywhere_leaves_nothing_or_all_of_it() {
    for point in ["client:entry:written", "client:entry:synced", "client:entry:renamed", "client:entry:kept"] {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path()).unwrap();
        dies_at(point, || drop(outbox.put(&pack(push()))));
        let (entries, broken) = outbox.entries().unwrap();
        // Also under its temporary name it is whole by then.
        assert_eq!((entries.len(), broken.len()), (1, 0), "{point}");
        assert_eq!(*entries[0].load().unwrap().push().unwrap(), push(), "{point}");
        outbox.put(&pack(push())).unwrap();
        assert_eq!(outbox.entries().unwrap().0.len(), 1, "{point}");
    }
}

#[test]
fn a_put_with_files_that_dies_anywhere_leaves_no_entry_without_them() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let wanted = AttachmentWanted {
        item: domain::ItemHash([1; 16]),
        shown: "item".to_owned(),
        path: "a.png".to_owned(),
        source: Ok(file.path().to_owned()),
    };
    let wanted = AttachmentsWanted { files: vec![wanted], bytes_max: 1, taken_ms: 1 };
    for point in ["client:attachments:kept", "client:entry:written", "client:entry:synced", "client:entry:renamed"] {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path()).unwrap();
        dies_at(point, || drop(outbox.put_with(&pack(push()), &wanted)));
        let (entries, broken) = outbox.entries().unwrap();
        assert_eq!((entries.len(), broken.len()), (usize::from(point != "client:attachments:kept"), 0), "{point}");
        // Also under its temporary name it has them.
        assert!(entries.iter().all(|entry| entry.attachments().unwrap().files.len() == 1), "{point}");
        let (entry, taken) = outbox.put_with(&pack(push()), &wanted).unwrap();
        assert_eq!((outbox.entries().unwrap().0.len(), taken.files.len()), (1, 1), "{point}");
        entry.remove().unwrap();
        outbox.put(&pack(push())).unwrap().remove().unwrap();
        let left = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name != ".lock").collect();
        assert!(left.is_empty(), "{point}: {left:?}");
    }
}

#[test]
fn an_entry_that_is_cut_anew_is_whole_in_one_cut_or_the_other() {
    for (point, forms) in [
        ("k10", &[Form::Whole][..]),
        ("client:recut:written", &[Form::Whole]),
        ("client:recut:synced", &[Form::Whole]),
        ("client:recut:renamed", &[Form::Chunks { bits: 0 }]),
        ("client:recut:kept", &[Form::Chunks { bits: 0 }]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path()).unwrap();
        let parcel = pack(push());
        let entry = outbox.put(&parcel).unwrap();
        let finer = parcel.smaller(Scratch::Memory).unwrap().unwrap();
        let mut lock = entry.lock().unwrap();
        dies_at(point, || drop(lock.replace(&finer)));
        drop(lock);
        // Whatever lies beside it, the named one is there, and is this push.
        let (entries, _) = outbox.entries().unwrap();
        let found: Vec<Form> = entries.iter().map(|entry| entry.header().form).collect();
        assert_eq!(found, forms, "{point}");
        for entry in &entries {
            assert_eq!(entry.load().unwrap().push().unwrap().outcomes, push().outcomes, "{point}");
        }
        outbox.put(&parcel).unwrap();
        assert_eq!(outbox.entries().unwrap().0.len(), 1, "{point}");
    }
}

#[test]
fn a_removal_that_dies_has_removed_it() {
    for point in ["client:remove:removed", "client:remove:synced"] {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(folder.path()).unwrap();
        let entry = outbox.put(&pack(push())).unwrap();
        dies_at(point, || drop(entry.remove()));
        assert!(outbox.entries().unwrap().0.is_empty(), "{point}");
    }
}
