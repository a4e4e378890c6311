//! A store of an older schema says the same after its migration as before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::intent::{Intent, IntentState};
use domain::{PushId, PushKey};
use rusqlite::Connection;
use store::conformance::build::forwards::{all, forwarded, lease, next, to_there};
use store::conformance::build::{AT_MS, forty, intent, push, readings, shop, write};
use store::{Advanced, IntentQuery, Promotion, Store};

use super::url;
use crate::run;

const FIRST: &str = include_str!("../../../src/sqlite/0001_first.sql");
const SECOND: &str = include_str!("../../../src/sqlite/0002_staging.sql");
const THIRD: &str = include_str!("../../../src/sqlite/0003_forward.sql");
const FOURTH: &str = include_str!("../../../src/sqlite/0004_waiting.sql");
const FIFTH: &str = include_str!("../../../src/sqlite/0005_seen.sql");

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

/// The ledger's rows as a program of schema 3 writes them.
fn as_schema_3(from: &Path, to: PathBuf) -> PathBuf {
    let connection = Connection::open(&to).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    for schema in [FIRST, SECOND, THIRD] {
        connection.execute_batch(schema).unwrap();
    }
    connection.execute("ATTACH ?1 AS new", [from.display().to_string()]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO schema_version VALUES (1), (2), (3); INSERT INTO main.turn SELECT target, turn FROM new.turn;
             INSERT INTO main.intent SELECT id, uid, target, project, cycle, round, key, number, cases, state, sends,
               planned_ms, changed_ms, sent_ms, cycle_there, flags, cause, refused, body FROM new.intent;
             INSERT INTO main.cycle_there SELECT * FROM new.cycle_there",
        )
        .unwrap();
    to
}

#[test]
fn a_ledger_of_schema_3_says_the_same_after_its_migration() {
    const HOUR: u64 = 3_600_000;
    let folder = tempfile::tempdir().unwrap();
    let (new, old) = (folder.path().join("new.db"), folder.path().join("old.db"));
    run(|| async {
        let store = store::open(&url(&new)).unwrap();
        let turn = store.next_turn("there").await.unwrap();
        let planned = (0..3).zip([IntentState::Acked, IntentState::Unknown, IntentState::Parked]);
        let planned: Vec<Intent> = planned
            .map(|(number, state)| Intent { state, changed_ms: AT_MS + u64::from(number), ..intent(number) })
            .collect();
        store.plan_intents("there", turn, planned.clone()).await.unwrap().unwrap();
        store.keep_cycle_there("there", turn, write(), Some("7".to_owned())).await.unwrap();
        let migrated = store::open(&url(&as_schema_3(&new, old))).unwrap();
        assert_eq!(migrated.intents(IntentQuery::default()).await.unwrap(), planned);
        assert_eq!(migrated.cycle_there("there", write()).await.unwrap().as_deref(), Some("7"));
        // Turns go on, and what settled is due from its last change on.
        assert_eq!(lease(&migrated, "one", AT_MS).await, Some(2));
        let due = async |ms| migrated.due_sweeps("there", ms, &[], 9).await.unwrap().len();
        assert_eq!((due(AT_MS + HOUR - 1).await, due(AT_MS + HOUR).await, due(AT_MS + HOUR + 2).await), (0, 1, 2));
        to_there(&migrated);
        push("a+").accepted(&migrated).await;
        assert_eq!(next(&migrated, 0).await.unwrap().revision, 1);
        // A later forwarder sees what an older one has sent.
        let seen = Intent { seen_ms: Some(9), ..planned[0].clone() };
        assert_eq!(migrated.advance_intent(2, IntentState::Acked, seen.clone()).await.unwrap(), Advanced::Done);
        assert_eq!(migrated.intents(IntentQuery::default()).await.unwrap()[0], seen);
        assert_eq!(migrated.check().await.unwrap(), []);
    });
}

/// What waits and what was planned, as a program of schema 5 writes it.
fn as_schema_5(from: &Path, to: PathBuf) -> PathBuf {
    let connection = Connection::open(&to).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    for schema in [FIRST, SECOND, THIRD, FOURTH, FIFTH] {
        connection.execute_batch(schema).unwrap();
    }
    connection.execute("ATTACH ?1 AS new", [from.display().to_string()]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO schema_version VALUES (1), (2), (3), (4), (5); INSERT INTO main.turn SELECT * FROM new.turn;
             INSERT INTO main.intent SELECT id, uid, target, project, cycle, round, key, number, cases, state, sends,
               planned_ms, changed_ms, sent_ms, cycle_there, flags, cause, refused, body, settled_ms, swept, seen_ms
               FROM new.intent;
             INSERT INTO main.waiting SELECT id, target, project, cycle, round, uid, key, revision, since_ms, due_ms, tries,
               cause, ended, ended_ms, ended_revision, cycle_there, flags, refused FROM new.waiting",
        )
        .unwrap();
    to
}

/// What a push became, nobody has kept yet: all of its intents.
#[test]
fn what_was_forwarded_under_schema_5_became_all_intents_of_its_push() {
    const DAY: u64 = 24 * 3_600_000;
    let folder = tempfile::tempdir().unwrap();
    let (new, old) = (folder.path().join("new.db"), folder.path().join("old.db"));
    run(|| async {
        let store = store::open(&url(&new)).unwrap();
        to_there(&store);
        push("a+").attempt(1).accepted(&store).await;
        push("b+").key("waits").accepted(&store).await;
        let gone = push("c+").key("gone").run("3");
        gone.accepted(&store).await;
        store.drop_round(&shop(), &store::conformance::build::main_cycle(), "3").await.unwrap().unwrap();
        let turn = lease(&store, "one", AT_MS).await.unwrap();
        let settled = |number| Intent { state: IntentState::Acked, seen_ms: Some(AT_MS + 3), ..intent(number) };
        let other = Intent { key: PushKey::parse("waits").unwrap(), ..intent(2) };
        store.plan_intents("there", turn, vec![settled(0), settled(1), other]).await.unwrap().unwrap();
        assert!(store.swept("there", turn, vec![intent(1).id], 1).await.unwrap());
        let row = next(&store, 0).await.unwrap();
        assert!(store.end_waiting(turn, &row, forwarded(1)).await.unwrap());
        let migrated = store::open(&url(&as_schema_5(&new, old))).unwrap();
        let mut expected = all(&store).await;
        expected[0].ended.as_mut().unwrap().intents = vec![intent(0).id, intent(1).id];
        assert_eq!(all(&migrated).await, expected);
        let intents = async |store: &Arc<dyn Store>| store.intents(IntentQuery::default()).await.unwrap();
        assert_eq!(intents(&migrated).await, intents(&store).await);
        for late in [DAY / 2, DAY] {
            let due = async |store: &Arc<dyn Store>| store.due_sweeps("there", AT_MS + late, &[], 9).await.unwrap();
            assert_eq!(due(&migrated).await, due(&store).await);
        }
        assert_eq!(migrated.forward_totals().await.unwrap(), store.forward_totals().await.unwrap());
        assert_eq!(
            migrated.intents(IntentQuery { ids: vec![intent(1).id], ..IntentQuery::default() }).await.unwrap(),
            [settled(1)]
        );
    });
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
        assert_eq!(versions.unwrap(), "1,2,3,4,5,6,7");
    });
}
