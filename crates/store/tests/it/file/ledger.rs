//! The ledger in the file: opened again, and shared by processes.

use std::sync::Arc;

use domain::intent::{Intent, IntentState};
use domain::listing::IntentReport;
use store::conformance::build::{self, intent, write};
use store::{Advanced, IntentQuery, Store};

use super::url;
use crate::run;

fn sending(number: u32) -> Intent {
    Intent { state: IntentState::Sending, sends: 1, ..intent(number) }
}

async fn planned(store: &Arc<dyn Store>, numbers: std::ops::Range<u32>) -> u64 {
    let turn = store.next_turn("there").await.unwrap();
    store.plan_intents("there", turn, numbers.map(intent).collect()).await.unwrap().unwrap();
    turn
}

#[test]
fn what_was_forwarded_is_known_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        let turn = planned(&store, 0..2).await;
        assert_eq!(store.advance_intent(turn, IntentState::Planned, sending(1)).await.unwrap(), Advanced::Done);
        assert!(store.keep_cycle_there("there", turn, write(), Some("7".to_owned())).await.unwrap());
    });
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        assert_eq!(store.intents(IntentQuery::default()).await.unwrap(), [intent(0), sending(1)]);
        assert_eq!(store.cycle_there("there", write()).await.unwrap().as_deref(), Some("7"));
        assert_eq!(store.next_turn("there").await.unwrap(), 2);
        assert_eq!(store.advance_intent(1, IntentState::Planned, sending(0)).await.unwrap(), Advanced::Fenced);
        build::sound(&store).await;
    });
}

/// Two writers that know nothing of each other, as two processes are.
#[test]
fn of_two_writers_over_one_file_one_takes_each_step() {
    const INTENTS: u32 = 24;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    run(|| async {
        let stores = [store::open(&url(&path)).unwrap(), store::open(&url(&path)).unwrap()];
        let turn = planned(&stores[0], 0..INTENTS).await;
        let tasks: Vec<_> = stores
            .iter()
            .cloned()
            .map(|store| {
                tokio::spawn(async move {
                    let mut answers = Vec::new();
                    for number in 0..INTENTS {
                        let step = store.advance_intent(turn, IntentState::Planned, sending(number));
                        answers.push(step.await.unwrap());
                    }
                    answers
                })
            })
            .collect();
        let mut both = Vec::new();
        for task in tasks {
            both.push(task.await.unwrap());
        }
        for (one, other) in both[0].iter().zip(&both[1]) {
            let late = Advanced::Elsewhere(IntentState::Sending);
            assert!([(Advanced::Done, late), (late, Advanced::Done)].contains(&(*one, *other)), "{one:?} {other:?}");
        }
    });
}

/// What an intent means to write may be as long as its push.
#[test]
fn who_lists_or_looks_reads_nothing_of_what_intents_mean_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        build::push("a+").accepted(&store).await;
        let turn = store.next_turn("there").await.unwrap();
        let settled = Intent { state: IntentState::Acked, ..intent(0) };
        store.plan_intents("there", turn, vec![settled.clone()]).await.unwrap().unwrap();
        // Whoever reads it stumbles.
        let file = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(file.execute("UPDATE intent SET body = 'no bytes'", []).unwrap(), 1);
        store.intents(IntentQuery::default()).await.unwrap_err();
        let listed = vec![IntentReport::from(settled)];
        assert_eq!(store.intent_reports(IntentQuery::default()).await.unwrap(), listed);
        let of = store.forwards_of(&build::shop(), build::push("a+").id()).await.unwrap().unwrap();
        assert_eq!(of.intents, listed);
        assert_eq!(store.due_sweeps("there", u64::MAX >> 1, &[], 9).await.unwrap().len(), 1);
        assert_eq!(store.forward_totals().await.unwrap().len(), 1);
    });
}

#[test]
fn intents_are_found_by_however_many_names() {
    let folder = tempfile::tempdir().unwrap();
    run(|| async {
        let store = store::open(&url(&folder.path().join("t.db"))).unwrap();
        planned(&store, 0..3).await;
        let ids = (1..40_000).map(|number| intent(number).id).collect();
        let found = store.intents(IntentQuery { ids, ..IntentQuery::default() }).await.unwrap();
        assert_eq!(found, [intent(1), intent(2)]);
    });
}

#[test]
fn a_store_is_a_ledger() {
    let folder = tempfile::tempdir().unwrap();
    run(|| async {
        let store = store::open(&url(&folder.path().join("t.db"))).unwrap();
        let ledger: Arc<dyn store::Ledger> = store;
        assert_eq!(ledger.next_turn("there").await.unwrap(), 1);
    });
}
