//! The outbox: whole or reported, never half; one file a push; one process an entry.

use std::fs;
use std::path::Path;

use delivery::{Ended, Handed, LockError, Outbox, Parcel, Settled};
use domain::key::PushKey;
use domain::outcome::Status;
use domain::push::Push;
use domain::{Cause, Delivery, Ordinal, Problem, ProblemCode};

use crate::parcel::bytes_of;
use crate::support::{outcome, pack, push, push_of, receipt};

fn open() -> (tempfile::TempDir, Outbox) {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path().join("a/outbox")).unwrap();
    (folder, outbox)
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|n| n != ".lock").collect();
    names.sort();
    names
}

fn keyed(key: &str, status: Status) -> Parcel {
    pack(Push { key: PushKey::parse(key).unwrap(), ..push_of(vec![outcome("works", status)]) })
}

#[test]
fn an_entry_is_there_whole_and_gone_with_its_receipt() {
    let (_keep, outbox) = open();
    let parcel = pack(push());
    let entry = outbox.put(&parcel).unwrap();
    let (entries, broken) = outbox.entries().unwrap();
    assert_eq!((entries.len(), broken.len()), (1, 0));
    assert_eq!(entries[0].header(), &parcel.header);
    assert_eq!(*entries[0].load().unwrap().push().unwrap(), push());
    entry.remove().unwrap();
    entry.remove().unwrap();
    assert_eq!(files(outbox.folder()), Vec::<String>::new());
}

#[test]
fn the_same_push_twice_is_one_file_of_the_newer_sender() {
    let (_keep, outbox) = open();
    outbox.put(&pack(push())).unwrap();
    let mut again = push();
    again.sender.ordinal = Some(Ordinal(3));
    outbox.put(&pack(again)).unwrap();
    let (entries, _) = outbox.entries().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].header().sender.ordinal, Some(Ordinal(3)));
}

#[test]
fn what_a_killed_writer_left_beside_an_entry_is_no_second_one() {
    let (_keep, outbox) = open();
    let entry = outbox.put(&pack(push())).unwrap();
    let name = entry.path().file_name().unwrap().to_str().unwrap();
    let (_, push) = name.split_once('-').unwrap();
    let beside = outbox.folder().join(format!("{name}.77.tmp"));
    // One that died before its entry had a number of its own.
    let before = outbox.folder().join(format!("00000000-{push}.78.tmp"));
    fs::copy(entry.path(), &beside).unwrap();
    fs::copy(entry.path(), &before).unwrap();
    let (entries, broken) = outbox.entries().unwrap();
    assert_eq!((entries.len(), broken.len()), (1, 0), "delivered, and said, once");
    assert_eq!(entries[0].path(), entry.path());
    assert!(!beside.exists() && !before.exists(), "nothing stays behind once the entry goes");
    // Alone it is all that is left of a push.
    fs::rename(entry.path(), &beside).unwrap();
    assert_eq!(outbox.entries().unwrap().0.len(), 1);
}

#[test]
fn another_project_destination_key_or_content_is_another_file() {
    let (_keep, outbox) = open();
    outbox.put(&pack(push())).unwrap();
    let mut elsewhere = push();
    elsewhere.place.project = "other".parse().unwrap();
    outbox.put(&pack(elsewhere)).unwrap();
    outbox.put(&pack(push()).addressed_to(&"https://b.example.com".parse().unwrap())).unwrap();
    outbox.put(&keyed("other-key", Status::Passed)).unwrap();
    outbox.put(&keyed("other-key", Status::Failed)).unwrap();
    assert_eq!(outbox.entries().unwrap().0.len(), 5);
}

#[test]
fn entries_of_a_key_come_oldest_first_whatever_the_clock_says() {
    let (_keep, outbox) = open();
    for (at, status) in [Status::Passed, Status::Failed, Status::Errored, Status::Skipped].into_iter().enumerate() {
        let mut parcel = keyed("k", status);
        parcel.header.created_at = format!("2026-11-29T12:00:0{}.000Z", 9 - at);
        outbox.put(&parcel).unwrap();
    }
    let counts: Vec<_> = outbox.entries().unwrap().0.iter().map(|e| e.header().counts).collect();
    assert_eq!((counts[0].passed, counts[1].failed, counts[2].errored, counts[3].skipped), (1, 1, 1, 1));
}

#[test]
fn a_file_torn_at_any_byte_is_reported_and_never_loaded() {
    let (_keep, outbox) = open();
    let entry = outbox.put(&pack(push())).unwrap();
    let whole = fs::read(entry.path()).unwrap();
    for length in 0..whole.len() {
        fs::write(entry.path(), &whole[..length]).unwrap();
        let (entries, broken) = outbox.entries().unwrap();
        assert_eq!((entries.len(), broken.len()), (0, 1), "cut to {length} bytes");
        assert_eq!(broken[0].path, entry.path());
        assert!(entry.load().is_err(), "cut to {length} bytes");
    }
    fs::write(entry.path(), [whole.as_slice(), b"x"].concat()).unwrap();
    assert_eq!(outbox.entries().unwrap().1.len(), 1, "a byte too many");
    // A put of the same push mends it.
    outbox.put(&pack(push())).unwrap();
    assert_eq!(outbox.entries().unwrap().0.len(), 1);
}

#[test]
fn a_writer_killed_half_way_leaves_a_reported_file_and_blocks_nobody() {
    let (_keep, outbox) = open();
    let bytes = bytes_of(&pack(push()));
    let temporary = outbox.folder().join("00000001-0123456789abcdef-0123456789abcdef.push.77.tmp");
    fs::write(&temporary, &bytes[..bytes.len() / 2]).unwrap();
    let (entries, broken) = outbox.entries().unwrap();
    assert_eq!((entries.len(), broken.len()), (0, 1));
    assert!(broken[0].why.contains("torn"), "{}", broken[0].why);
    // Killed between the last byte and the rename: nothing of it is lost.
    fs::write(&temporary, &bytes).unwrap();
    let (entries, broken) = outbox.entries().unwrap();
    assert_eq!((entries.len(), broken.len()), (1, 0));
    assert_eq!(*entries[0].load().unwrap().push().unwrap(), push());
    outbox.put(&keyed("k", Status::Passed)).unwrap();
    assert_eq!(outbox.entries().unwrap().0.len(), 2);
}

#[test]
fn strange_files_beside_entries_are_left_alone() {
    let (_keep, outbox) = open();
    fs::write(outbox.folder().join("README.md"), "hello").unwrap();
    outbox.put(&pack(push())).unwrap();
    let (entries, broken) = outbox.entries().unwrap();
    assert_eq!((entries.len(), broken.len()), (1, 0));
}

#[test]
fn an_entry_is_held_by_one_at_a_time() {
    let (_keep, outbox) = open();
    let entry = outbox.put(&pack(push())).unwrap();
    let same = outbox.entries().unwrap().0.remove(0);
    let lock = entry.lock().unwrap();
    assert!(matches!(same.lock(), Err(LockError::Held { .. })));
    // Putting the very same push meanwhile changes nothing for the one who holds it.
    let mut later = push();
    later.sender.ordinal = Some(Ordinal(9));
    let shared = outbox.put(&pack(later)).unwrap();
    assert_eq!(shared.header().sender.ordinal, Some(Ordinal(2)));
    assert!(matches!(shared.lock(), Err(LockError::Held { .. })));
    entry.remove().unwrap();
    drop(lock);
    assert!(matches!(same.lock(), Err(LockError::Gone { .. })));
}

#[test]
fn the_lock_of_another_process_is_seen_and_dies_with_it() {
    let (_keep, outbox) = open();
    let entry = outbox.put(&pack(push())).unwrap();
    // `flock` of util-linux takes the same kind of lock; without it there is no other process to ask.
    let holder = std::process::Command::new("flock")
        .arg("--exclusive")
        .arg(entry.path())
        .args(["--command", "echo held; exec cat"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut holder) = holder else {
        println!("skipped: no flock program");
        return;
    };
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.take().unwrap()), &mut line).unwrap();
    assert_eq!(line, "held\n");
    assert!(matches!(entry.lock(), Err(LockError::Held { .. })));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    let _lock = entry.lock().unwrap();
}

#[test]
fn only_a_receipt_removes_an_entry() {
    let (_keep, outbox) = open();
    let parcel = pack(push());
    let entry = outbox.put(&parcel).unwrap();
    let ended = |delivery| Ended {
        delivery,
        attempts: 1,
        elapsed_ms: 1,
        bytes: 1,
        chunks: 1,
        chunks_sent: 0,
        resumed: false,
        interrupted: false,
    };
    let problem = Box::new(Problem::new(ProblemCode::KeyCollision, "two legs"));
    for open in [
        Delivery::Rejected(problem),
        Delivery::NotSent(Cause::new("refused")),
        Delivery::PossiblyWritten(Cause::new("silence")),
    ] {
        assert!(Settled::of(&entry, entry.lock().unwrap(), &ended(open)).is_none());
        assert_eq!(outbox.entries().unwrap().0.len(), 1);
    }
    let receipt = receipt(&parcel.header);
    let handed = Handed {
        receipt_bytes: serde_json::to_vec(&receipt).unwrap(),
        current_counts: receipt.counts,
        receipt,
        replayed: false,
        class: None,
        current_revision: 1,
        warnings: Vec::new(),
    };
    let settled = Settled::of(&entry, entry.lock().unwrap(), &ended(Delivery::Recorded(handed))).unwrap();
    // Until it is said what became of it.
    assert_eq!(outbox.entries().unwrap().0.len(), 1);
    assert!(matches!(entry.lock(), Err(LockError::Held { .. })));
    settled.forget().unwrap();
    assert_eq!(outbox.entries().unwrap().0.len(), 0);
}
