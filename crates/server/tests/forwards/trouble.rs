//! Products that are away, refuse, or have no such case: said, tried again after a while, and no harm to others.

use proof::stubs::{Fault, Plan, RetryAfter, Select};

use crate::site::{CASES, Rail, Served, memory, target};

#[tokio::test]
async fn a_product_that_is_away_is_tried_again_and_another_one_goes_on() {
    let (away, here) = (Rail::start(), Rail::start());
    away.stub.set_plan(Plan::on(Select::any(), Fault::RequestDropped));
    let served = Served::start(memory(), vec![away.target("away"), here.target("here")]).await;
    served.push("k1", &here.names, "").await;
    let both = served.seen("k1", |forward| forward["tries"].as_u64() > Some(1)).await;
    assert_eq!((&both["target"], &both["state"]), (&"away".into(), &"planned".into()), "{both:#}");
    assert!(both["due_ms"].is_u64() && both["cause"].is_string(), "{both:#}");
    served.seen_at(("k1", 1), |here| here["state"] == "acked").await;
    let known = served.get(format!("{}/forwards", crate::site::at("k1"))).await.json();
    assert_eq!((&known["settled"], &known["forwards"][1]["state"]), (&false.into(), &"acked".into()), "{known:#}");
    assert_eq!((away.stub.ledger().count(), here.stub.ledger().count()), (0, CASES));

    let metrics = served.get("/metrics").await.text();
    for line in [
        "tallyonce_forward_waiting{target=\"away\"} 1",
        "tallyonce_forward_waiting{target=\"here\"} 0",
        "tallyonce_forward_intents{target=\"here\",state=\"acked\"} 1",
        "tallyonce_forward_steps_total{target=\"here\",state=\"sending\"} 1",
    ] {
        assert!(metrics.lines().any(|at| at == line), "{line} is not in\n{metrics}");
    }

    away.stub.set_plan(Plan::pass());
    let known = served.settled("k1").await;
    assert!(known["forwards"].as_array().unwrap().iter().all(|at| at["state"] == "acked"), "{known:#}");
    assert!(away.stub.doubled().is_empty());
    served.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_lost_is_read_back_and_not_sent_again() {
    let rail = Rail::start();
    rail.stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases").nth(1), Fault::ResponseDropped));
    let served = Served::start(memory(), vec![rail.target("rail")]).await;
    served.push("k1", &rail.names, "").await;
    let known = served.settled("k1").await;
    assert_eq!(known["forwards"][0]["state"], "found", "{known:#}");
    assert_eq!(rail.stub.ledger().count(), CASES);
    served.stop().await;
}

#[tokio::test]
async fn a_refusal_is_said_and_is_no_busy_loop() {
    let rail = Rail::start();
    let served = Served::start(memory(), vec![target("rail", &rail.stub, "wrong")]).await;
    served.push("k1", &rail.names, "").await;
    let forward = served.seen("k1", |forward| forward["tries"].as_u64() > Some(2)).await;
    assert!(forward["cause"].as_str().unwrap().contains("401"), "{forward:#}");
    let tries = forward["tries"].as_u64().unwrap() as usize;
    assert!(rail.stub.log().len() <= 4 * (tries + 1), "{} requests in {tries} tries", rail.stub.log().len());
    assert_eq!(rail.stub.ledger().count(), 0);
    served.stop().await;
}

#[tokio::test]
async fn items_without_a_case_are_listed_and_the_rest_is_there() {
    let rail = Rail::start();
    let served = Served::start(memory(), vec![rail.target("rail")]).await;
    let mut names = rail.names.clone();
    names.push("C9999 is nowhere".to_owned());
    names.push("nobody knows it".to_owned());
    served.push("k1", &names, "").await;
    let known = served.settled("k1").await;
    let forward = &known["forwards"][0];
    assert_eq!((&forward["state"], forward["refused"].as_array().unwrap().len()), (&"acked".into(), 2), "{known:#}");
    served.push("k2", &names[CASES..], "").await;
    let known = served.settled("k2").await;
    assert_eq!(known["forwards"][0]["state"], "rejected", "{known:#}");
    assert_eq!(rail.stub.ledger().count(), CASES);
    served.stop().await;
}

#[tokio::test]
async fn one_push_that_the_product_refuses_whole_does_not_hold_up_the_others() {
    let rail = Rail::start();
    let refuse = Fault::Refused { status: 400, retry_after: RetryAfter::Missing };
    rail.stub.set_plan(Plan::on(Select::writes().body("run k1"), refuse));
    let served = Served::start(memory(), vec![rail.target("rail")]).await;
    served.push("k1", &rail.names, "").await;
    served.seen("k1", |forward| forward["tries"].as_u64() > Some(0)).await;
    served.push("k2", &rail.names, "").await;
    assert_eq!(served.settled("k2").await["forwards"][0]["state"], "acked");
    assert_eq!(rail.stub.ledger().count(), CASES);
    served.stop().await;
}
