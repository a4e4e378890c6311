//! A store of an older schema says the same after its migration as before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::{PushId, PushKey};
use rusqlite::Connection;
use store::conformance::build::{forty, push, readings, shop};
use store::{Promotion, Store};

use super::url;
use crate::run;

const FIRST: &str = include_str!("../../../src/sqlite/0001_first.sql");

/// The rows of a store as a program of schema 1 writes them.
fn as_schema_1(from: &Path, to: PathBuf) -> PathBuf {
    let connection = Connection::open(&to).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    connection.execute_batch(FIRST).unwrap();
    connection.execute("ATTACH ?1 AS new", [from.display().to_string()]).unwrap();
    let same = ["cycle", "round", "push", "executor", "delivery", "tombstone", "itemset", "setnames", "blocktext"];
    for table in same.iter().chain(&["bigtext", "bigtext_use"]) {
        connection.execute_batch(&format!("INSERT INTO main.{table} SELECT * FROM new.{table}")).unwrap();
    }
    connection
        .execute_batch(
            "INSERT INTO schema_version VALUES (1); INSERT INTO main.project SELECT id, name FROM new.project;
             INSERT INTO main.revision SELECT id, project, push, revision, kind, of, exact, ordinal, ordinal_scope,
               executor, incarnation, content, outcomes, bits, counts, files, report, incomplete, recorded_at,
               promotion_key, promotion_asked, receipt FROM new.revision;
             INSERT INTO main.block SELECT b.id, b.project, r.push, r.revision, b.bucket, b.n, b.itemset, b.codes, b.times
               FROM new.block b JOIN new.revision r ON r.blockset = b.blockset AND r.kind <> 3;",
        )
        .unwrap();
    to
}

async fn fill(store: &Arc<dyn Store>) -> Vec<PushId> {
    push("a- b* c!").attempt(1).executor("one").accepted(store).await;
    push("a+ b+ d~").attempt(2).executor("one").accepted(store).await;
    let kept = push("a- b- c- e+").attempt(1).executor("one");
    kept.accepted(store).await;
    let promotion = Promotion {
        project: shop(),
        push: kept.id(),
        key: PushKey::parse("p").unwrap(),
        revision: Some(3),
        exact: true,
        if_match: None,
    };
    store.promote(promotion, store::conformance::build::now()).await.unwrap();
    let many: String = (0..9000).map(|n| format!("n{n}+ ")).collect::<Vec<_>>().concat();
    let large = push(&many).job("many").run("2").keyed();
    large.accepted(store).await;
    let gone = push("gone+").run("3").keyed();
    gone.accepted(store).await;
    store.drop_round(&shop(), &store::conformance::build::main_cycle(), "3").await.unwrap().unwrap();
    vec![kept.id(), large.id(), gone.id()]
}

#[test]
fn a_store_of_schema_1_says_the_same_after_its_migration() {
    let folder = tempfile::tempdir().unwrap();
    let (new, old) = (folder.path().join("new.db"), folder.path().join("old.db"));
    run(|| async {
        let store = store::open(&url(&new)).unwrap();
        let pushes = fill(&store).await;
        let items = ["a", "b", "c", "d", "e", "n17"];
        let before = readings(&store, &pushes, &items).await;
        let old = as_schema_1(&new, old);
        // Several processes may find it old at once.
        let openers: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn({
                    let url = url(&old);
                    move || store::open(&url).map(drop)
                })
            })
            .collect();
        for opener in openers {
            opener.join().unwrap().unwrap();
        }
        let migrated = store::open(&url(&old)).unwrap();
        let after = readings(&migrated, &pushes, &items).await;
        assert_eq!(after.len(), before.len());
        for (after, before) in after.iter().zip(&before) {
            assert_eq!(after, before);
        }
        assert_eq!(migrated.check().await.unwrap(), []);
        // It goes on from there: a repeat, a revision, a staged push over an old one.
        assert!(push("a- b* c!").attempt(1).executor("one").accepted(&migrated).await.replayed);
        assert_eq!(
            push(&forty('+')).run("2").job("many").attempt(1).key("s").cut(1).delivered(&migrated).await.revision,
            1
        );
        assert_eq!(push("a+ b+ c+ d+ e+").attempt(3).cut(0).delivered(&migrated).await.revision, 5);
        assert_eq!(migrated.check().await.unwrap(), []);
        assert_eq!(migrated.next_turn("there").await.unwrap(), 1);
        // Digests were made otherwise under schema 1: nothing is held against them; those of today are.
        let sql = |sql: &str| Connection::open(&old).unwrap().execute(sql, []).unwrap();
        sql("UPDATE revision SET outcomes = randomblob(32) WHERE digests = 1 AND kind <> 3 AND push NOT IN
               (SELECT push FROM revision WHERE kind = 3)");
        assert_eq!(migrated.check().await.unwrap(), []);
        sql("UPDATE revision SET digests = 2");
        assert!(migrated.check().await.unwrap().iter().any(|damage| damage.kind == "digest-differs"));
        let versions =
            Connection::open(&old)
                .unwrap()
                .query_row("SELECT group_concat(version) FROM schema_version", [], |row| row.get::<_, String>(0));
        assert_eq!(versions.unwrap(), "1,2,3");
    });
}
