//! The strategy `container` by a server: what is open of a container is settled, whatever becomes of its push.

use std::sync::Arc;
use std::time::Duration;

use delivery::foreign::Strategy;
use domain::CycleName;
use domain::forwarding::ForwardRule;
use domain::intent::{Intent, IntentState};
use server::ForwardTarget;
use store::{Advanced, IntentQuery, Store};

use crate::site::{CASES, Rail, Served, memory, shop};

fn contained(rail: &Rail) -> ForwardTarget {
    ForwardTarget { strategy: Strategy::Container, ..rail.target("rail") }
}

/// A store whose push `k1` was written into a container, and whose server heard nothing of it.
async fn unheard(rail: &Rail) -> Arc<dyn Store> {
    let served = Served::start(memory(), vec![contained(rail)]).await;
    served.push("k1", &rail.names, "&attempt=1").await;
    let known = served.settled("k1").await;
    assert_eq!(known["forwards"][0]["state"], "acked", "{known:#}");
    let store = served.stop().await;
    let acked = store.intents(IntentQuery::default()).await.unwrap().remove(0);
    let turn = store.next_turn("rail").await.unwrap();
    let unknown = Intent { state: IntentState::Unknown, ..acked };
    assert_eq!(store.advance_intent(turn, IntentState::Acked, unknown).await.unwrap(), Advanced::Done);
    store
}

/// The intents of a store, once all of them are settled.
async fn ended(served: &Served) -> Vec<Intent> {
    let until = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let known = served.store.intents(IntentQuery::default()).await.unwrap();
            if known.iter().all(|intent| intent.state.is_settled()) {
                return known;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    until.await.expect("every intent ends")
}

fn rows(rail: &Rail, intent: &Intent) -> usize {
    let run = intent.cycle_there.clone().unwrap();
    rail.stub.vendor().results.iter().filter(|row| row.data.run.to_string() == run).count()
}

#[tokio::test]
async fn the_container_of_an_older_revision_ends_with_the_newer_one() {
    for whole in [true, false] {
        let rail = Rail::start();
        let store = unheard(&rail).await;
        if !whole {
            let mut vendor = rail.stub.vendor();
            let last = vendor.results.iter().last().map(|row| row.id);
            vendor.results.retain(|row| Some(row.id) != last);
        }
        let served = Served::start(store, vec![]).await;
        let path = "/api/v1/projects/shop/pushes?cycle=main&run=k1&attempt=2";
        let body = crate::site::report(&rail.names, 0);
        let request = crate::http::Request::post(path, body).header("Content-Type", "application/xml");
        let rule = ForwardRule { target: "rail".to_owned(), projects: Vec::new(), cycles: Vec::new() };
        served.store.set_forward_rules(vec![rule]);
        let revised = request.header("Idempotency-Key", "k1").send(served.address).await;
        assert_eq!(revised.status, 201, "{}", revised.text());
        let served = Served::start(served.stop().await, vec![contained(&rail)]).await;
        let known = served.settled("k1").await;
        assert_eq!(known["forwards"][0]["revision"], 2, "{known:#}");
        let intents = ended(&served).await;
        let states: Vec<IntentState> = intents.iter().map(|intent| intent.state).collect();
        assert_eq!(states, [IntentState::Found, IntentState::Acked], "{known:#}");
        assert_eq!((intents[0].cycle_there.is_some(), rows(&rail, &intents[1])), (whole, CASES), "{intents:#?}");
        served.stop().await;
    }
}

#[tokio::test]
async fn a_container_ends_although_its_round_was_deleted_or_nothing_waits() {
    for deleted in [true, false] {
        let rail = Rail::start();
        let store = unheard(&rail).await;
        if deleted {
            let cycle = CycleName::parse("main").unwrap();
            let known = store.intents(IntentQuery::default()).await.unwrap().remove(0);
            assert_eq!(store.drop_round(&shop(), &cycle, known.round.as_str()).await.unwrap(), Ok(1));
        }
        let served = Served::start(store, vec![contained(&rail)]).await;
        let intents = ended(&served).await;
        assert_eq!((intents.len(), intents[0].state), (1, IntentState::Found));
        assert_eq!(rows(&rail, &intents[0]), CASES);
        served.stop().await;
    }
}
