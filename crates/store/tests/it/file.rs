//! What is particular to the store in a file: several processes, durability settings, damage, versions.

mod damage;
mod ledger;
mod migration;
mod scan;
mod staging;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use domain::Push;
use rusqlite::Connection;
use store::StoreError;
use store::conformance::build::forwards::{all, lease, open, to_there};
use store::conformance::build::{self, numbered, push};

use crate::run;

const ROLE: &str = "TALLYONCE_STORE_TEST_CHILD";

fn url(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// The part of the test below that runs in processes of its own; by itself it does nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test hands a path to its own child processes")]
fn child_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (number, path) = role.split_once(':').unwrap();
    let number: u32 = number.parse().unwrap();
    run(|| async move {
        let store = store::open(&url(Path::new(path))).unwrap();
        to_there(&store);
        // Of all processes one works there.
        let holder = lease(&store, &number.to_string(), build::AT_MS).await.is_some();
        for shard in 0..6 {
            let own = push(&numbered(shard * 10..shard * 10 + 10, '+'))
                .variant(&format!("process={number}"))
                .shard(&format!("{}/6", shard + 1))
                .keyed();
            own.accepted(&store).await;
            own.accepted(&store).await;
        }
        // One push that every process delivers.
        push("shared+").job("shared").keyed().accepted(&store).await;
        assert!(!holder || store.keep_lease("there", 1, build::AT_MS + 60_000).await.unwrap());
    });
}

#[test]
fn eight_processes_create_and_fill_one_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let children: Vec<_> = (0..8)
        .map(|number| {
            Command::new(std::env::current_exe().unwrap())
                .args(["file::child_process", "--exact", "--nocapture"])
                .env(ROLE, format!("{number}:{}", path.display()))
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        let round = build::cycle(&store).await.rounds.remove(0);
        assert_eq!(round.counts.total, 8 * 60 + 1);
        assert_eq!((round.pushes.len(), round.repeats), (8 * 6 + 1, 8 * 6 + 7));
        // Each push waits once, whoever recorded it, and the target was taken once.
        let waiting: BTreeSet<_> = open(&store).await.into_iter().map(|row| row.push).collect();
        assert_eq!((waiting.len(), all(&store).await.len()), (8 * 6 + 1, 8 * 6 + 1));
        assert_eq!(lease(&store, "later", build::AT_MS + 59_999).await, None);
        assert_eq!(lease(&store, "later", build::AT_MS + 60_000).await, Some(2));
        build::sound(&store).await;
    });
}

#[test]
fn what_was_recorded_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let answers: Vec<store::Answer> = (0..2)
        .map(|_| {
            let mut answer = None;
            run(|| async {
                let store = store::open(&url(&path)).unwrap();
                answer = Some(push("a+ b- c*").accepted(&store).await);
                store.ready().await.unwrap();
                assert_eq!(build::cycle(&store).await.rounds[0].pushes.len(), 1);
                build::sound(&store).await;
            });
            answer.unwrap()
        })
        .collect();
    assert_eq!(answers[0].receipt, answers[1].receipt);
    assert_eq!((answers[0].replayed, answers[1].replayed), (false, true));
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    drop(store::open(&url(&path)).unwrap());
    let connection = Connection::open(&path).unwrap();
    connection.execute("INSERT INTO schema_version(version) VALUES (99)", []).unwrap();
    let refused = store::open(&url(&path)).err();
    assert!(matches!(refused, Some(StoreError::NewerSchema { found: 99, .. })), "{refused:?}");
}

#[test]
fn addresses_that_are_none_are_said() {
    for wrong in ["t.db", "sqlite:", "sqlite::memory:", "postgres://here"] {
        assert!(matches!(store::open(wrong).err(), Some(StoreError::BadUrl { .. })), "{wrong}");
    }
    let nowhere = store::open("sqlite:/nowhere/at/all/t.db").err();
    assert!(matches!(nowhere, Some(StoreError::NotWritten { .. })), "{nowhere:?}");
}

#[test]
fn the_file_is_set_up_for_power_cuts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    drop(store::open(&url(&path)).unwrap());
    let connection = Connection::open(&path).unwrap();
    let ask = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0));
    assert_eq!(ask("journal_mode").unwrap(), "wal");
    let size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    assert_eq!(size, 4096);
}

/// Not one bit of a large push is lost, over bucket borders and repeats.
#[test]
fn a_push_of_many_buckets_counts_and_replays() {
    let folder = tempfile::tempdir().unwrap();
    run(|| async {
        let store = store::open(&url(&folder.path().join("t.db"))).unwrap();
        let words: String =
            (0..20_000).map(|n| format!("n{n}{} ", ['+', '-', '~', '!', '*'][n % 5])).collect::<Vec<_>>().concat();
        let large: Push = push(&words).0;
        for replayed in [false, true] {
            let record = store.record(Arc::new(large.clone()), build::now()).await.unwrap();
            let store::Recorded::Accepted(answer) = record else { panic!("refused") };
            assert_eq!(answer.replayed, replayed);
            assert_eq!(answer.current_counts, large.outcomes.counts());
        }
        build::sound(&store).await;
    });
}
