//! What is particular to the store in a file: several processes, durability settings, damage, versions.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use domain::{Outcomes, Push};
use rusqlite::Connection;
use store::conformance::build::{self, numbered, push};
use store::{Damage, Store, StoreError};

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
        build::sound(&store).await;
    });
}

#[test]
fn what_was_recorded_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let receipts: Vec<Vec<u8>> = (0..2)
        .map(|_| {
            let mut receipt = Vec::new();
            run(|| async {
                let store = store::open(&url(&path)).unwrap();
                receipt = push("a+ b- c*").accepted(&store).await.receipt;
                store.ready().await.unwrap();
            });
            receipt
        })
        .collect();
    assert_eq!(receipts[0], receipts[1]);
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

/// A store with one of everything: revisions, a promotion, large texts, several buckets.
async fn filled(store: &Arc<dyn Store>) {
    let mut list = build::outcomes("a- b* c!").as_slice().to_vec();
    list[0].message = Some("long ".repeat(1000));
    let first = push("").holds(Outcomes::from_unordered(list).unwrap()).attempt(1).executor("one");
    first.accepted(store).await;
    push("a+ b+ c!").attempt(2).executor("two").accepted(store).await;
    push("a+ b+ c+ d~").attempt(1).executor("one").accepted(store).await;
    let promotion = store::Promotion {
        project: build::shop(),
        push: first.id(),
        key: domain::PushKey::parse("p").unwrap(),
        revision: None,
        exact: false,
        if_match: None,
    };
    store.promote(promotion, build::now()).await.unwrap();
    let many: String = (0..9000).map(|n| format!("n{n}+ ")).collect::<Vec<_>>().concat();
    push(&many).job("many").keyed().accepted(store).await;
    push("gone+").run("2").keyed().accepted(store).await;
    store.drop_round(&build::shop(), &build::main_cycle(), "2").await.unwrap().unwrap();
    build::sound(store).await;
}

/// What `check` finds after this statement.
fn damaged(sql: &str) -> Vec<Damage> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let mut found = Vec::new();
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        filled(&store).await;
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
        found = store.check().await.unwrap();
    });
    found
}

#[test]
fn check_finds_every_kind_of_damage() {
    let cases = [
        ("UPDATE push SET counts = zeroblob(48) WHERE id = 1", "counts-differ"),
        ("UPDATE revision SET counts = zeroblob(48) WHERE revision = 1", "counts-differ"),
        ("DELETE FROM block WHERE revision = 2", "digest-differs"),
        ("UPDATE block SET codes = X'000400000004040404' WHERE n = 4", "codes-differ"),
        ("DELETE FROM push WHERE id = 1", "orphan-revision"),
        ("DELETE FROM push WHERE id = 1", "orphan-delivery"),
        ("DELETE FROM revision WHERE revision = 2", "revision-gap"),
        ("DELETE FROM revision WHERE revision = 2", "orphan-block"),
        ("DELETE FROM revision WHERE revision = 2", "delivery-without-revision"),
        ("DELETE FROM block WHERE push = 2", "orphan-set"),
        ("DELETE FROM itemset WHERE n > 1000", "block-without-set"),
        ("DELETE FROM itemset WHERE n > 1000", "orphan-names"),
        ("DELETE FROM setnames WHERE id = 1", "set-without-names"),
        ("UPDATE setnames SET names = (SELECT names FROM setnames WHERE id = 2) WHERE id = 1", "names-differ"),
        ("UPDATE itemset SET bucket = 7 WHERE n > 1000", "wrong-bucket"),
        ("UPDATE itemset SET bucket = 7 WHERE n > 1000", "bucket-differs"),
        ("UPDATE itemset SET n = 5 WHERE id = 1", "block-n-differs"),
        ("UPDATE itemset SET hashes = zeroblob(48) WHERE n = 3", "double-item"),
        (
            "UPDATE itemset SET hashes = CAST(substr(hashes, 17) || substr(hashes, 1, 16) AS BLOB) WHERE n = 3",
            "set-not-sorted",
        ),
        ("UPDATE itemset SET digest = zeroblob(16) WHERE n = 3", "set-digest-differs"),
        ("DELETE FROM blocktext", "unreadable"),
        ("DELETE FROM bigtext", "large-text-missing"),
        ("DELETE FROM bigtext_use", "orphan-large-text"),
        ("INSERT INTO blocktext VALUES (999, zeroblob(1))", "orphan-text"),
        ("INSERT INTO tombstone SELECT project, uid, key FROM push", "tombstone-with-push"),
        ("UPDATE push SET replays = 3", "deliveries-differ"),
        ("DELETE FROM executor", "executor-missing"),
        ("UPDATE revision SET receipt = CAST('nonsense' AS BLOB) WHERE revision = 2", "receipt-unreadable"),
        (
            "UPDATE revision SET receipt = CAST(replace(receipt, '\"total\":', '\"total\":9') AS BLOB)",
            "receipt-differs",
        ),
        ("UPDATE revision SET content = zeroblob(32) WHERE kind = 0", "digest-differs"),
        ("UPDATE revision SET of = 9 WHERE kind = 3", "promotion-of-nothing"),
        ("DELETE FROM round", "orphan-push"),
        ("UPDATE push SET key = 'other' WHERE id = 1", "uid-differs"),
    ];
    for (sql, kind) in cases {
        let found = damaged(sql);
        assert!(found.iter().any(|damage| damage.kind == kind), "{sql}: no {kind} in {found:#?}");
    }
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
