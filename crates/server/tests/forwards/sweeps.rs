//! What is settled is read back by itself: once an hour and once a day after it was sent.

use std::sync::Arc;
use std::time::Duration;

use delivery::{Clock as _, SystemClock};
use domain::intent::{Intent, IntentId, IntentState};
use proof::stubs::{Event, Fault, Plan, RetryAfter, Select};
use store::{Advanced, IntentQuery, Store};

use crate::site::{Rail, Served, memory};

const HOUR_MS: u64 = 3600 * 1000;

fn now_ms() -> u64 {
    SystemClock::new().unix_ms()
}

/// A store that knows of outcomes in the product which were sent so long ago, the first push's before the next one's.
async fn sent_before(rail: &Rail, ms: u64, keys: &[&str]) -> Arc<dyn Store> {
    sent_into(memory(), rail, ms, keys).await
}

async fn sent_into(store: Arc<dyn Store>, rail: &Rail, ms: u64, keys: &[&str]) -> Arc<dyn Store> {
    let served = Served::start(memory(), vec![rail.target("rail")]).await;
    for key in keys {
        served.push(key, &rail.names, "").await;
        served.settled(key).await;
    }
    let sent = served.stop().await.intents(IntentQuery::default()).await.unwrap();
    assert_eq!(sent.len(), keys.len());
    let turn = store.next_turn("rail").await.unwrap();
    for (at, sent) in (0..).zip(sent) {
        let then_ms = now_ms() - ms + at;
        let (state, planned_ms) = (IntentState::Planned, then_ms);
        let mut planned = Intent { state, planned_ms, changed_ms: then_ms, sent_ms: Some(then_ms), ..sent };
        store.plan_intents("rail", turn, vec![planned.clone()]).await.unwrap().unwrap();
        for state in [IntentState::Sending, IntentState::Acked] {
            let from = std::mem::replace(&mut planned.state, state);
            assert_eq!(store.advance_intent(turn, from, planned.clone()).await.unwrap(), Advanced::Done);
        }
    }
    assert_eq!(store.due_sweeps("rail", now_ms(), &[], 10).await.unwrap().len(), keys.len());
    store
}

async fn nothing_is_due(served: &Served) {
    let until = tokio::time::timeout(Duration::from_secs(30), async {
        while !served.store.due_sweeps("rail", now_ms(), &[], 10).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    until.await.expect("it is read back");
}

#[tokio::test]
async fn what_is_gone_is_flagged_and_what_is_there_is_not() {
    for (gone, ms) in [(false, HOUR_MS + 1000), (true, 24 * HOUR_MS + 1000)] {
        let rail = Rail::start();
        let store = sent_before(&rail, ms, &["k1"]).await;
        if gone {
            rail.stub.vendor().results.retain(|_| false);
        }
        let served = Served::start(store, vec![rail.target("rail")]).await;
        nothing_is_due(&served).await;
        let intent = served.store.intents(IntentQuery::default()).await.unwrap().remove(0);
        assert_eq!(intent.state, IntentState::Acked, "nothing is sent again");
        assert_eq!(intent.flags.iter().any(|flag| flag.is_wrong()), gone, "{intent:?}");
        served.stop().await;
    }
}

#[tokio::test]
async fn a_sweep_that_is_not_answered_is_tried_again_and_holds_up_no_push() {
    let rail = Rail::start();
    let store = sent_before(&rail, HOUR_MS + 1000, &["k1"]).await;
    let run = store.intents(IntentQuery::default()).await.unwrap().remove(0).cycle_there.unwrap();
    let refuse = Fault::Refused { status: 400, retry_after: RetryAfter::Missing };
    rail.stub.set_plan(Plan::on(Select::reads().path(&format!("get_results_for_run/{run}")), refuse));
    let served = Served::start(store, vec![rail.target("rail")]).await;
    let asked = |log: &[Event]| log.iter().any(|event| !event.faults.is_empty());
    let broken = async {
        while !asked(&rail.stub.log()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), broken).await.expect("it is read back");
    served.push("k2", &rail.names, "").await;
    assert_eq!(served.settled("k2").await["forwards"][0]["state"], "acked");
    assert_eq!(
        served.store.due_sweeps("rail", now_ms(), &[], 10).await.unwrap().len(),
        1,
        "it is still to be read back"
    );
    rail.stub.set_plan(Plan::pass());
    nothing_is_due(&served).await;
    served.stop().await;
}

#[tokio::test]
async fn a_cycle_that_is_never_answered_hides_no_other() {
    let rail = Rail::start();
    let store = sent_before(&rail, HOUR_MS + 1000, &["k1", "k2"]).await;
    let run = store.due_sweeps("rail", now_ms(), &[], 1).await.unwrap().remove(0).cycle_there.unwrap();
    let other = |intent: &Intent| intent.cycle_there.as_deref() != Some(&*run);
    // Of the one nobody hears anything; what was in the other one is gone.
    rail.stub.vendor().results.retain(|_| false);
    rail.stub.set_plan(Plan::on(Select::reads().path(&format!("get_results_for_run/{run}")), Fault::RequestDropped));
    let served = Served::start(store, vec![rail.target("rail")]).await;
    let seen = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let flagged = |intent: &Intent| intent.flags.iter().any(|flag| flag.is_wrong());
            let known = served.store.intents(IntentQuery::default()).await.unwrap();
            if known.iter().filter(|intent| other(intent)).all(flagged) {
                return known.iter().filter(|intent| flagged(intent)).count();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(seen.await.expect("the other one is read back"), 1);
    assert_eq!(
        served.store.due_sweeps("rail", now_ms(), &[], 10).await.unwrap().len(),
        1,
        "it is still to be read back"
    );
    rail.stub.set_plan(Plan::pass());
    nothing_is_due(&served).await;
    served.stop().await;
}

#[tokio::test]
async fn a_cycle_that_may_not_be_read_hides_no_other() {
    let rail = Rail::start();
    let store = sent_before(&rail, HOUR_MS + 1000, &["k1", "k2"]).await;
    let run = store.due_sweeps("rail", now_ms(), &[], 1).await.unwrap().remove(0).cycle_there.unwrap();
    let denied = Fault::Refused { status: 403, retry_after: RetryAfter::Missing };
    rail.stub.set_plan(Plan::on(Select::reads().path(&format!("get_results_for_run/{run}")), denied));
    let served = Served::start(store, vec![rail.target("rail")]).await;
    let one_is_due = tokio::time::timeout(Duration::from_secs(30), async {
        while served.store.due_sweeps("rail", now_ms(), &[], 10).await.unwrap().len() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    one_is_due.await.expect("the other one is read back");
    let due = served.store.due_sweeps("rail", now_ms(), &[], 10).await.unwrap();
    assert_eq!(due[0].cycle_there.as_deref(), Some(&*run), "it is still to be read back");
    rail.stub.set_plan(Plan::pass());
    nothing_is_due(&served).await;
    served.stop().await;
}

#[tokio::test]
async fn however_much_of_a_silent_cycle_is_due_it_hides_no_other() {
    let rail = Rail::start();
    let store = sent_before(&rail, HOUR_MS + 1000, &["k1", "k2"]).await;
    let first = store.due_sweeps("rail", now_ms(), &[], 1).await.unwrap().remove(0);
    let known = store.intents(IntentQuery { ids: vec![first.id], ..IntentQuery::default() }).await.unwrap().remove(0);
    let (run, turn) = (first.cycle_there.unwrap(), store.next_turn("rail").await.unwrap());
    // More of the silent one than is ever looked through, all of it older than what is due of the other.
    let more = (0..9_000_u32).map(|number| {
        let (id, changed_ms) = (IntentId(u128::from(number) + 1), known.changed_ms - 60_000);
        Intent { id, number: number + 9, state: IntentState::Planned, changed_ms, ..known.clone() }
    });
    let more: Vec<Intent> = more.collect();
    store.plan_intents("rail", turn, more.clone()).await.unwrap().unwrap();
    for mut planned in more {
        for state in [IntentState::Sending, IntentState::Acked] {
            let from = std::mem::replace(&mut planned.state, state);
            assert_eq!(store.advance_intent(turn, from, planned.clone()).await.unwrap(), Advanced::Done);
        }
    }
    rail.stub.set_plan(Plan::on(Select::reads().path(&format!("get_results_for_run/{run}")), Fault::RequestDropped));
    let served = Served::start(store, vec![rail.target("rail")]).await;
    let read_back = tokio::time::timeout(Duration::from_mins(1), async {
        let silent = [run];
        while !served.store.due_sweeps("rail", now_ms(), &silent, 10).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    read_back.await.expect("the other one is read back");
    served.stop().await;
}

#[tokio::test]
async fn an_intent_that_cannot_be_read_keeps_no_other_cycle_from_being_read_back() {
    let (rail, folder) = (Rail::start(), tempfile::tempdir().unwrap());
    let path = folder.path().join("t.db");
    let store = store::open(&format!("sqlite:{}", path.display())).unwrap();
    let store = sent_into(store, &rail, HOUR_MS + 1000, &["k1", "k2"]).await;
    let file = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(file.execute("UPDATE intent SET refused = 'no list' WHERE key = 'k1'", []).unwrap(), 1);
    let served = Served::start(store, vec![rail.target("rail")]).await;
    let one_is_due = tokio::time::timeout(Duration::from_secs(30), async {
        while served.store.due_sweeps("rail", now_ms(), &[], 10).await.unwrap().len() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    one_is_due.await.expect("the other one is read back");
    served.push("k3", &rail.names, "").await;
    assert_eq!(served.settled("k3").await["forwards"][0]["state"], "acked");
    served.stop().await;
}
