//! Staged pushes in the file: chunks at once, rows that a dead epoch leaves behind, a store that is opened again.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use store::conformance::build::{self, Cut, after, forty, now, push, readings};
use store::{Begun, Chunk, Committed, Lifetime, Put};

use super::url;
use crate::run;

fn rows(path: &Path, table: &str) -> i64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn cut(n: usize, bits: u8) -> Cut {
    let words: String =
        (0..n).map(|n| format!("n{n}{} ", ['+', '-', '~', '!', '*'][n % 5])).collect::<Vec<_>>().concat();
    push(&words).attempt(1).executor("one").cut(bits)
}

#[test]
fn chunks_at_once_are_all_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        let cut = cut(3000, 5);
        cut.begun(&store).await;
        // Every chunk by three deliveries at once.
        let put = |chunk: &Chunk| {
            let (store, chunk) = (Arc::clone(&store), Arc::new(chunk.clone()));
            tokio::spawn(async move { store.put(chunk, now()).await.unwrap() })
        };
        let puts: Vec<_> = (0..3).flat_map(|_| cut.chunks.iter().map(put).collect::<Vec<_>>()).collect();
        let mut stored = 0;
        for put in puts {
            match put.await.unwrap() {
                Put::Stored { replayed } => stored += usize::from(!replayed),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(stored, 32);
        let answer = cut.committed(&store, 1).await;
        assert_eq!(answer.current_counts, cut.manifest.counts);
        build::sound(&store).await;
    });
}

#[test]
fn staged_and_whole_lie_in_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let dump = |name: &str, in_chunks: bool| {
        let path = folder.path().join(name);
        run(|| async {
            let store = store::open(&url(&path)).unwrap();
            let whole = push(&(0..10_000).map(|n| format!("n{n}+ ")).collect::<Vec<_>>().concat());
            if in_chunks {
                whole.cut(1).delivered(&store).await;
            } else {
                whole.accepted(&store).await;
            }
        });
        let connection = Connection::open(&path).unwrap();
        let sql = "SELECT group_concat(hex(b.codes) || hex(b.times) || b.bucket || hex(s.hashes) || hex(n.names) ||
                     r.bits || hex(r.content) || hex(r.receipt)) FROM revision r
                   JOIN block b ON b.blockset = r.blockset JOIN itemset s ON s.id = b.itemset
                   JOIN setnames n ON n.id = s.id ORDER BY b.bucket";
        connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap()
    };
    assert_eq!(dump("whole.db", false), dump("staged.db", true));
}

#[test]
fn a_dead_epoch_leaves_no_rows_and_takes_nothing_that_others_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        let mut list = build::outcomes(&forty('-')).as_slice().to_vec();
        list[0].message = Some("long ".repeat(1000));
        let outcomes = domain::Outcomes::from_unordered(list).unwrap();
        let staged = push("").holds(outcomes.clone()).key("dead").cut(1);
        staged.begun(&store).await;
        staged.put_all(&store, 1).await;
        // The same sets and the same large text, recorded beside it.
        push("").holds(outcomes).key("alive").job("other").cut(1).delivered(&store).await;
        let before = readings(&store, &[], &["t001"]).await;
        staged.cancel(&store, 1).await;
        let one = Lifetime { blocks_max: 1, ..Lifetime::standard() };
        let mut calls = 0;
        while store.collect(one, after(0)).await.unwrap().more {
            calls += 1;
            build::sound(&store).await;
        }
        assert!(calls >= 2, "one block a call: {calls}");
        assert_eq!((rows(&path, "block"), rows(&path, "stage_chunk"), rows(&path, "bigtext")), (2, 2, 1));
        assert_eq!(readings(&store, &[], &["t001"]).await, before);
        assert!(matches!(staged.commit(&store, 1).await, Committed::Gone));
    });
}

#[test]
fn an_open_epoch_is_never_swept() {
    let folder = tempfile::tempdir().unwrap();
    run(|| async {
        let store = store::open(&url(&folder.path().join("t.db"))).unwrap();
        let open = cut(100, 2);
        open.begun(&store).await;
        open.put(&store, 1, 0).await;
        for hours in 0..20 {
            let collected = store.collect(Lifetime::standard(), after(hours * 3_600_000)).await.unwrap();
            assert_eq!((collected.abandoned, collected.blocks, collected.more), (0, 0, false));
        }
        assert_eq!(open.staging(&store, now()).await.unwrap().present, 1);
    });
}

#[test]
fn what_is_staged_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let cut = cut(100, 2);
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        cut.begun(&store).await;
        cut.put(&store, 1, 2).await;
    });
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        let Begun::Staging(staging) = cut.begin(&store, now()).await else { panic!("not staging") };
        assert_eq!((staging.resumed, staging.missing), (true, vec![0, 1, 3]));
        cut.put_all(&store, 1).await;
        cut.committed(&store, 1).await;
    });
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        let Committed::Accepted(answer) = cut.commit(&store, 1).await else { panic!("not accepted") };
        assert!(answer.replayed);
        build::sound(&store).await;
    });
}
