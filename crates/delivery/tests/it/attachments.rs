//! Files that go along with an outbox entry: whole, each content once, gone with the entry, and never without it.

use std::fs;
use std::path::{Path, PathBuf};

use delivery::{AttachmentWanted, AttachmentsWanted, Outbox};
use domain::{Digest, ItemHash};

use crate::support::{pack, push};

fn open() -> (tempfile::TempDir, Outbox) {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path().join("outbox")).unwrap();
    (folder, outbox)
}

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn wanted(item: u8, source: Result<PathBuf, String>) -> AttachmentWanted {
    AttachmentWanted {
        item: ItemHash([item; 16]),
        shown: format!("item {item}"),
        path: "as/written".to_owned(),
        source,
    }
}

fn all(files: Vec<AttachmentWanted>, taken_ms: u64) -> AttachmentsWanted {
    AttachmentsWanted { files, bytes_max: 10, taken_ms }
}

/// Folders beside entries, and how many contents are in each.
fn folders(outbox: &Outbox) -> Vec<usize> {
    let entries = fs::read_dir(outbox.folder()).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.extension().is_some_and(|ending| ending == "files"));
    let contents = |path: PathBuf| {
        let names = fs::read_dir(path).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.len() == 64).count()
    };
    folders.map(contents).collect()
}

#[test]
fn files_lie_beside_their_entry_each_content_once_and_go_with_it() {
    let (keep, outbox) = open();
    let (a, same, large) = (
        file(keep.path(), "a.png", "one"),
        file(keep.path(), "b.png", "one"),
        file(keep.path(), "c.png", "12345678901"),
    );
    let files = vec![
        wanted(1, Ok(a.clone())),
        wanted(2, Ok(same)),
        wanted(1, Ok(large)),
        wanted(1, Ok(keep.path().to_owned())),
        wanted(1, Err("why not".to_owned())),
    ];
    let (entry, taken) = outbox.put_with(&pack(push()), &all(files, 5)).unwrap();
    assert_eq!((folders(&outbox), taken.files.len(), taken.left_out.len()), (vec![1], 2, 3), "{taken:?}");
    let why: Vec<&str> = taken.left_out.iter().map(|one| one.why.as_str()).collect();
    assert!(
        why[0].contains("attachment-bytes-max is 10") && why[1].contains("no file") && why[2] == "why not",
        "{why:?}"
    );
    // Whoever comes later needs the outbox alone.
    fs::remove_file(a).unwrap();
    let (entries, broken) = outbox.entries().unwrap();
    assert_eq!((entries.len(), broken.len()), (1, 0));
    let kept = entries[0].attachments().unwrap();
    assert_eq!((kept.files.len(), kept.left_out.len(), kept.taken_ms), (2, 3, 5));
    assert_eq!(kept.read(&kept.files[0]).unwrap(), b"one");
    entry.remove().unwrap();
    assert!(folders(&outbox).is_empty());
}

#[test]
fn the_same_push_again_adds_its_files_to_those_that_wait() {
    let (keep, outbox) = open();
    let first = vec![wanted(1, Ok(file(keep.path(), "a.png", "one"))), wanted(2, Err("gone".to_owned()))];
    outbox.put_with(&pack(push()), &all(first, 5)).unwrap();
    let second =
        vec![wanted(1, Ok(file(keep.path(), "a.png", "one"))), wanted(1, Ok(file(keep.path(), "b.png", "two")))];
    let (_, taken) = outbox.put_with(&pack(push()), &all(second, 9)).unwrap();
    assert_eq!((taken.files.len(), taken.left_out.len(), taken.taken_ms), (2, 0, 5), "{taken:?}");
    // And once more without any: those that wait stay.
    let (entry, taken) = outbox.put_with(&pack(push()), &AttachmentsWanted::default()).unwrap();
    assert_eq!((taken.files.len(), folders(&outbox)), (2, vec![2]));
    assert_eq!(entry.attachments().unwrap().files, taken.files);
}

#[test]
fn what_a_dead_writer_left_is_swept_and_nothing_else() {
    let (keep, outbox) = open();
    let orphan = outbox.folder().join("00000009-0123456789abcdef-0123456789abcdef.files");
    fs::create_dir(&orphan).unwrap();
    let files = vec![wanted(1, Ok(file(keep.path(), "a.png", "one")))];
    outbox.put_with(&pack(push()), &all(files, 5)).unwrap();
    assert!(!orphan.exists());
    outbox.put(&pack(push())).unwrap();
    assert_eq!(folders(&outbox), [1]);
}

#[test]
fn bytes_that_changed_are_not_handed_on() {
    let (keep, outbox) = open();
    let source = file(keep.path(), "a.png", "one");
    let (entry, taken) = outbox.put_with(&pack(push()), &all(vec![wanted(1, Ok(source.clone()))], 5)).unwrap();
    let kept = entry.path().with_extension("files").join(Digest::of(b"one").to_string());
    fs::write(&kept, "two").unwrap();
    // The process that took it still finds the source.
    assert_eq!(taken.read(&taken.files[0]).unwrap(), b"one");
    fs::write(&source, "two").unwrap();
    assert!(taken.read(&taken.files[0]).is_err());
}

#[test]
fn that_an_upload_begins_outlives_the_process() {
    let (keep, outbox) = open();
    let files = vec![wanted(1, Ok(file(keep.path(), "a.png", "one")))];
    let (entry, taken) = outbox.put_with(&pack(push()), &all(files, 5)).unwrap();
    let (upload, other) = (Digest::of(b"upload"), Digest::of(b"other"));
    taken.begin(upload, 77).unwrap();
    taken.begin(other, 78).unwrap();
    taken.unbegin(other);
    let later = entry.attachments().unwrap();
    assert_eq!((later.begun_ms(upload), later.begun_ms(other)), (Some(77), None));
    assert!(!later.is_done(upload));
    later.done(upload);
    assert!(later.is_done(upload) && later.begun_ms(upload) == Some(77));
}
