//! Pushes that are too large to go on, or can't be read any more: said, and no harm to others.

use domain::forwarding::ForwardRule;

use crate::site::{CASES, Rail, Served, TERMS, memory};

#[tokio::test]
async fn a_push_of_too_many_outcomes_is_refused_and_is_not_tried_again() {
    let rail = Rail::start();
    let served = Served::start(memory(), vec![rail.target("rail")]).await;
    let many: Vec<String> = (0..=TERMS.outcomes_max).map(|n| format!("{} {n}", rail.names[0])).collect();
    served.push("k1", &many, "").await;
    let known = served.settled("k1").await;
    let forward = &known["forwards"][0];
    assert_eq!((&forward["state"], &forward["tries"]), (&"rejected".into(), &0.into()), "{known:#}");
    let refused = &forward["refused"][0];
    assert_eq!(refused["item"], "all 9 outcomes of the push", "{known:#}");
    assert!(refused["why"].as_str().unwrap().contains("more than the 8 "), "{known:#}");
    let listed = served.get("/api/v1/projects/shop/forwards?state=rejected").await.json();
    assert_eq!(listed["forwards"][0]["key"], "k1", "{listed:#}");
    assert!(listed["forwards"][0]["cause"].as_str().unwrap().contains("--shard"), "{listed:#}");
    assert!(rail.stub.log().is_empty(), "the product hears nothing of it");
    // Just as many as may be.
    served.push("k2", &many[1..], "").await;
    assert_eq!(served.settled("k2").await["forwards"][0]["state"], "acked");
    served.stop().await;
}

#[tokio::test]
async fn a_push_that_cannot_be_read_does_not_hold_up_the_others() {
    for (damage, is_said) in [
        ("UPDATE block SET codes = X'00' WHERE id = (SELECT min(id) FROM block)", true),
        ("UPDATE waiting SET cycle = '' WHERE id = (SELECT min(id) FROM waiting)", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        let open = || store::open(&format!("sqlite:{}", path.display())).unwrap();
        let rail = Rail::start();
        let served = Served::start(open(), Vec::new()).await;
        let rule = ForwardRule { target: "rail".to_owned(), projects: Vec::new(), cycles: Vec::new() };
        served.store.set_forward_rules(vec![rule]);
        served.push("k1", &rail.names, "").await;
        served.push("k2", &rail.names, "").await;
        drop(served.stop().await);
        let file = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(file.execute(damage, []).unwrap(), 1);
        drop(file);

        let served = Served::start(open(), vec![rail.target("rail")]).await;
        assert_eq!(served.settled("k2").await["forwards"][0]["state"], "acked", "{damage}");
        // Only a row that can be read can say why.
        if is_said {
            let forward = served.seen("k1", |forward| forward["tries"].as_u64() > Some(1)).await;
            assert!(forward["cause"].as_str().unwrap().contains("check-store"), "{forward:#}");
        }
        served.push("k3", &rail.names, "").await;
        assert_eq!(served.settled("k3").await["forwards"][0]["state"], "acked", "{damage}");
        assert_eq!(rail.stub.ledger().count(), 2 * CASES);
        served.stop().await;
    }
}
