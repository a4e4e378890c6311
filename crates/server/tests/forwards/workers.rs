//! What is recorded goes on by itself: once, as it counts, whoever of several servers does it.

use domain::forwarding::CyclePattern;
use proof::stubs::{Fault, Plan, Select};

use crate::site::{CASES, Rail, Served, memory, push, shop};

#[tokio::test]
async fn a_push_goes_on_once_and_a_replay_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    for store in [memory(), store::open(&url).unwrap()] {
        let rail = Rail::start();
        let served = Served::start(store, vec![rail.target("rail")]).await;
        served.push("k1", &rail.names, "").await;
        let known = served.settled("k1").await;
        let forward = &known["forwards"][0];
        assert_eq!((&forward["target"], &forward["kind"]), (&"rail".into(), &"testrail".into()), "{known:#}");
        assert_eq!((&forward["state"], &forward["cases"]), (&"acked".into(), &CASES.into()), "{known:#}");
        assert_eq!(forward["states"]["acked"], CASES, "{known:#}");
        assert!(forward["cycle_there"].is_string() && forward["refused"].as_array().unwrap().is_empty(), "{known:#}");
        assert_eq!(rail.stub.ledger().count(), CASES);

        let replayed = served.push("k1", &rail.names, "").await;
        assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
        let kept = served.store.forwards_of(&shop(), push("k1")).await.unwrap().unwrap();
        assert_eq!((kept.waiting.len(), kept.intents.len()), (1, 1), "a replay makes nothing wait");
        // Another one after it is through: whatever the replay had begun would be there before.
        served.push("k2", &rail.names, "").await;
        served.settled("k2").await;
        assert_eq!(rail.stub.ledger().count(), 2 * CASES);
        assert!(rail.stub.doubled().is_empty());
        served.stop().await;
    }
}

#[tokio::test]
async fn what_counts_now_goes_on_in_the_order_of_attempts() {
    let rail = Rail::start();
    let served = Served::start(memory(), vec![rail.target("rail")]).await;
    served.push("k1", &rail.names, "&attempt=1").await;
    served.settled("k1").await;
    // Executed again in part, and passed.
    let path = "/api/v1/projects/shop/pushes?cycle=main&run=k1&attempt=2";
    let body = crate::site::report(&rail.names[..1], 0);
    let request = crate::http::Request::post(path, body).header("Content-Type", "application/xml");
    let revised = request.header("Idempotency-Key", "k1").send(served.address).await;
    assert_eq!(revised.status, 201, "{}", revised.text());
    let forward = served.settled("k1").await["forwards"][0].clone();
    assert_eq!((&forward["state"], &forward["revision"]), (&"acked".into(), &2.into()), "{forward:#}");
    let item = rail.names[0][1..].split(' ').next().unwrap().to_owned();
    let rows = rail.stub.ledger();
    let of_item = rows.items().iter().find(|(name, _)| name.ends_with(&item)).map(|(_, rows)| rows.clone()).unwrap();
    assert_eq!(of_item.last().unwrap().status, "1", "the second attempt counts: {of_item:#?}");
    assert_eq!(rows.count(), CASES + 1);
    // All of it again, of which one item says something else: the others stand there already.
    let all = crate::site::report(&rail.names, 1);
    let path = path.replace("attempt=2", "attempt=3");
    let request = crate::http::Request::post(&path, all).header("Content-Type", "application/xml");
    let revised = request.header("Idempotency-Key", "k1").send(served.address).await;
    assert_eq!(revised.status, 201, "{}", revised.text());
    let forward = served.settled("k1").await["forwards"][0].clone();
    assert_eq!(forward["revision"], 3, "{forward:#}");
    assert_eq!(rail.stub.ledger().count(), CASES + 2, "{:#?}", rail.stub.ledger());
    served.stop().await;
}

#[tokio::test]
async fn of_two_servers_over_one_store_one_forwards_each_push() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    let memory = memory();
    for [one, other] in [[memory.clone(), memory], [store::open(&url).unwrap(), store::open(&url).unwrap()]] {
        let rail = Rail::start();
        let servers = [
            Served::start(one, vec![rail.target("rail")]).await,
            Served::start(other, vec![rail.target("rail")]).await,
        ];
        for n in 0..8 {
            servers[n % 2].push(&format!("k{n}"), &rail.names, "").await;
        }
        for n in 0..8 {
            let known = servers[(n + 1) % 2].settled(&format!("k{n}")).await;
            assert_eq!(known["forwards"][0]["state"], "acked", "{known:#}");
        }
        assert_eq!(rail.stub.ledger().count(), 8 * CASES);
        assert!(rail.stub.doubled().is_empty());
        for server in servers {
            server.stop().await;
        }
    }
}

#[tokio::test]
async fn only_what_a_rule_takes_goes_on() {
    let rail = Rail::start();
    let mut target = rail.target("rail");
    target.cycles = vec!["release-*".parse::<CyclePattern>().unwrap()];
    let served = Served::start(memory(), vec![target]).await;
    served.push("k1", &rail.names, "").await;
    let known = served.settled("k1").await;
    assert_eq!(known["forwards"], serde_json::json!([]), "{known:#}");
    assert_eq!(rail.stub.ledger().count(), 0);
    served.stop().await;
}

#[tokio::test]
async fn what_waits_when_a_server_ends_goes_on_with_the_next() {
    let rail = Rail::start();
    rail.stub.set_plan(Plan::on(Select::any(), Fault::RequestDropped));
    let served = Served::start(memory(), vec![rail.target("rail")]).await;
    served.push("k1", &rail.names, "").await;
    served.seen("k1", |forward| forward["state"] == "planned").await;
    let store = served.stop().await;
    assert_eq!(rail.stub.ledger().count(), 0);
    // It has left the target to others: nobody waits for the lease to run out.
    let turn = store.take_lease("rail", "another", 1, 2).await.unwrap();
    assert!(turn.is_some());
    rail.stub.set_plan(Plan::pass());
    let served = Served::start(store, vec![rail.target("rail")]).await;
    assert_eq!(served.settled("k1").await["forwards"][0]["state"], "acked");
    assert_eq!(rail.stub.ledger().count(), CASES);
    served.stop().await;
}

#[tokio::test]
async fn a_target_that_another_server_works_at_is_left_to_it_until_its_lease_ends() {
    let rail = Rail::start();
    let store = memory();
    let now_ms = delivery::Clock::unix_ms(&delivery::SystemClock::new());
    let turn = store.take_lease("rail", "another", now_ms, now_ms + 1_500).await.unwrap().unwrap();
    let served = Served::start(store, vec![rail.target("rail")]).await;
    served.push("k1", &rail.names, "").await;
    assert_eq!(served.settled("k1").await["forwards"][0]["state"], "acked");
    assert!(delivery::Clock::unix_ms(&delivery::SystemClock::new()) >= now_ms + 1_500, "it did not wait");
    // The other one is fenced off.
    assert!(!served.store.keep_lease("rail", turn, now_ms + 60_000).await.unwrap());
    let row = served.store.waiting(store::WaitingQuery { ended: true, ..Default::default() }).await.unwrap().remove(0);
    assert!(!served.store.put_off(turn, &row, now_ms, "late").await.unwrap());
    assert_eq!(served.store.forwards_of(&shop(), push("k1")).await.unwrap().unwrap().intents.len(), 1);
    served.stop().await;
}
