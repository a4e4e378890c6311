//! What the API says of forwarding: of one push, of a project, in numbers; and what it refuses.

use std::time::Duration;

use domain::forwarding::ForwardRule;
use store::{End, Ended};

use crate::http::Request;
use crate::site::{Served, at, memory, push, shop};

/// A server whose store lets pushes wait for a target that nobody works at.
async fn waiting() -> Served {
    let served = Served::start(memory(), Vec::new()).await;
    let rule = ForwardRule { target: "rail".to_owned(), projects: Vec::new(), cycles: Vec::new() };
    served.store.set_forward_rules(vec![rule]);
    served.push("k1", &["adds".to_owned()], "").await;
    served
}

#[tokio::test]
async fn a_push_that_waits_is_planned_everywhere() {
    let served = waiting().await;
    let known = served.get(format!("{}/forwards", at("k1"))).await.json();
    assert_eq!((&known["settled"], &known["key"]), (&false.into(), &"k1".into()), "{known:#}");
    let forward = &known["forwards"][0];
    assert_eq!((&forward["target"], &forward["state"]), (&"rail".into(), &"planned".into()), "{known:#}");
    assert_eq!((&forward["revision"], &forward["cases"], &forward["tries"]), (&1.into(), &0.into(), &0.into()));
    assert!(forward.get("kind").is_none(), "no configuration names it: {known:#}");
    let report = served.get(at("k1")).await.json();
    assert_eq!(report["forwards"], known["forwards"], "{report:#}");

    let listed = served.get("/api/v1/projects/shop/forwards").await.json();
    assert_eq!(listed["states"], serde_json::json!({"planned": 1}), "{listed:#}");
    assert_eq!(listed["forwards"][0]["waiting"]["revision"], 1, "{listed:#}");
    for (more, count) in [("?target=rail", 1), ("?target=other", 0), ("?state=planned", 1), ("?state=acked", 0)] {
        let listed = served.get(format!("/api/v1/projects/shop/forwards{more}")).await.json();
        assert_eq!(listed["forwards"].as_array().unwrap().len(), count, "{more}: {listed:#}");
    }
    for (more, count) in [("?cycle=main", 1), ("?cycle=dev", 0), ("?limit=1", 1)] {
        let listed = served.get(format!("/api/v1/projects/shop/forwards{more}")).await.json();
        assert_eq!(listed["forwards"].as_array().unwrap().len(), count, "{more}: {listed:#}");
        assert!(listed.get("more").is_none(), "{listed:#}");
    }
    served.push("k2", &["adds".to_owned()], "").await;
    let listed = served.get("/api/v1/projects/shop/forwards?limit=1").await.json();
    assert_eq!((&listed["more"], &listed["forwards"][0]["key"]), (&true.into(), &"k1".into()), "{listed:#}");
    served.stop().await;
}

#[tokio::test]
async fn who_waits_hears_it_when_it_ends() {
    let served = waiting().await;
    let request = Request::get(format!("{}/forwards", at("k1"))).header("Prefer", "wait=25");
    let (store, address) = (served.store.clone(), served.address);
    let mut waits = tokio::spawn(async move { request.send(address).await.json() });
    let early = tokio::time::timeout(Duration::from_millis(600), &mut waits).await;
    assert!(early.is_err(), "it is answered before anything has ended: {early:?}");
    let turn = store.take_lease("rail", "the test", 1, 2).await.unwrap().unwrap();
    let row = store.next_waiting("rail", 1).await.unwrap().unwrap();
    let ended = Ended {
        end: End::Forwarded,
        at_ms: 1,
        revision: 1,
        cycle_there: Some("R7".to_owned()),
        flags: [].into(),
        refused: Vec::new(),
        intents: Vec::new(),
    };
    assert!(store.end_waiting(turn, &row, ended).await.unwrap());
    let known = waits.await.unwrap();
    assert_eq!(known["settled"], true, "{known:#}");
    let forward = &known["forwards"][0];
    assert_eq!((&forward["state"], &forward["cycle_there"]), (&"acked".into(), &"R7".into()), "{known:#}");
    served.stop().await;
}

#[tokio::test]
async fn what_is_not_there_or_not_asked_well_is_refused() {
    let served = waiting().await;
    served.get(format!("{}/forwards", at("other"))).await.is_problem("not-found", &[]);
    served
        .get(format!("/api/v1/projects/bank/pushes/{}/forwards", push("k1")))
        .await
        .is_problem("unknown-project", &[]);
    for (more, word) in
        [("?state=sent", "planned"), ("?limit=0", "limit"), ("?limit=1001", "limit"), ("?round=1", "round")]
    {
        let answer = served.get(format!("/api/v1/projects/shop/forwards{more}")).await;
        answer.is_problem("parameter-malformed", &[word]);
    }
    assert!(served.store.forwards_of(&shop(), push("k1")).await.unwrap().is_ok());
    let metrics = served.get("/metrics").await;
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(metrics.text().contains("tallyonce_forward_waiting{target=\"rail\"} 1\n"), "{}", metrics.text());
    served.stop().await;
}
