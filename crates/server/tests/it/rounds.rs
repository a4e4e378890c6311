//! Rounds: listing, closing, pinning.

use crate::http::Request;
use crate::served::{JUNIT, Served, on_every_engine, push, standard};

fn act(round: &str, action: &str) -> Request {
    Request::post(format!("/api/v1/projects/shop/rounds/{round}/{action}?cycle=main"), "")
}

#[tokio::test]
async fn a_closed_round_is_complete_and_refuses_nothing() {
    on_every_engine(async |served: Served| {
        served.send(push("k1", "&job=unit&shard=1/2", JUNIT)).await.is_recorded();
        let rounds = "/api/v1/projects/shop/rounds?cycle=main&round=latest";
        let before = served.get(rounds).await.json();
        assert_eq!(before["rounds"][0]["complete"], false);
        assert!(before["rounds"][0]["missing"].to_string().contains("shard 2 of 2"));
        for _ in 0..2 {
            let closed = served.send(act("run%3A42", "close")).await;
            assert_eq!(closed.status, 200, "{}", closed.text());
            assert_eq!(closed.json()["rounds"][0]["closed"], true);
        }
        let late = served.send(push("k2", "&job=unit&shard=2/2", JUNIT)).await;
        late.is_recorded();
        assert_eq!(late.json()["late"], true);
        let after = served.get(rounds).await.json();
        assert_eq!(after["rounds"][0]["complete"], true);
        assert_eq!(after["rounds"][0]["overlaps"], 3);
        assert_eq!(after["headline"]["total"], 3, "an overlap counts once");
    })
    .await;
}

#[tokio::test]
async fn a_pin_decides_until_it_is_taken_away() {
    on_every_engine(async |served: Served| {
        served.send(push("k1", "", JUNIT)).await.is_recorded();
        let mut second = push("k2", "", JUNIT);
        second.path = second.path.replace("run=42", "run=43");
        served.send(second).await.is_recorded();
        let authoritative = async || {
            let report = served.get("/api/v1/projects/shop/rounds?cycle=main").await.json();
            report["rounds"][0]["run"].as_str().unwrap().to_owned()
        };
        assert_eq!(authoritative().await, "43");
        assert_eq!(served.send(act("42", "pin")).await.status, 200);
        assert_eq!(authoritative().await, "42");
        assert_eq!(served.send(act("42", "unpin")).await.status, 200);
        assert_eq!(authoritative().await, "43");
    })
    .await;
}

#[tokio::test]
async fn a_round_must_be_named() {
    let served = standard().await;
    for (key, run) in [("k1", "421"), ("k2", "422")] {
        let mut request = push(key, "", JUNIT);
        request.path = request.path.replace("run=42", &format!("run={run}"));
        served.send(request).await.is_recorded();
    }
    served.send(act("42", "close")).await.is_problem("not-found", &["More than one round", "run:421", "run:422"]);
    served.send(act("7", "close")).await.is_problem("not-found", &["No round"]);
    served
        .send(Request::post("/api/v1/projects/shop/rounds/421/close", ""))
        .await
        .is_problem("parameter-malformed", &["cycle"]);
    served
        .send(Request::post("/api/v1/projects/shop/rounds/421/open?cycle=main", ""))
        .await
        .is_problem("not-found", &[]);
}

#[tokio::test]
async fn a_round_id_with_slashes_travels_encoded() {
    let served = standard().await;
    let id = "github%3Aacme%2Fshop%3Arun%3A42";
    served.send(push("k", &format!("&round-id={id}"), JUNIT)).await.is_recorded();
    let closed = served.send(act(id, "close")).await;
    assert_eq!(closed.json()["rounds"][0]["round"], "github:acme/shop:run:42", "{}", closed.text());
}
