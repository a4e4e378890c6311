//! Attaching to a key, with and without waiting for it.

use std::time::Duration;

use crate::http::Request;
use crate::served::{JUNIT, Served, on_every_engine, push, standard};

const ATTACH: &str = "/api/v1/projects/shop/pushes?key=k";

#[tokio::test]
async fn what_became_of_a_key() {
    on_every_engine(async |served: Served| {
        served.get(ATTACH).await.is_problem("unknown-push", &["deliver it again with the same key"]);
        let first = served.send(push("k", "", JUNIT)).await;
        let answer = served.get(ATTACH).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let attached = answer.json();
        assert_eq!(attached["state"], "recorded");
        assert_eq!(attached["receipt"], first.json());
        assert!(answer.text().contains(&first.text()), "the receipt stands there byte for byte");
        assert_eq!(answer.header("etag"), first.header("etag"));
    })
    .await;
    let served = standard().await;
    served.get("/api/v1/projects/shop/pushes").await.is_problem("parameter-malformed", &["key"]);
    served.get("/api/v1/projects/shop/pushes?key=a%20b").await.is_problem("parameter-malformed", &["key"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_when_it_is_recorded() {
    let served = standard().await;
    let address = served.address;
    let waiting = tokio::spawn(async move { Request::get(ATTACH).header("Prefer", "wait=30").send(address).await });
    let first = served.send(push("k", "", JUNIT)).await;
    let attached = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("long before 30 s").unwrap();
    assert_eq!(attached.json()["receipt"], first.json());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_notices_what_another_process_recorded() {
    let served = standard().await;
    let other = Served::start(std::sync::Arc::clone(&served.store), server::BodyLimits::default()).await;
    let address = served.address;
    let waiting = tokio::spawn(async move { Request::get(ATTACH).header("Prefer", "wait=30").send(address).await });
    let first = other.send(push("k", "", JUNIT)).await;
    let attached = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("long before 30 s").unwrap();
    assert_eq!(attached.json()["receipt"], first.json());
}

#[tokio::test]
async fn waiting_has_an_end() {
    let served = standard().await;
    let request = Request::get(ATTACH).header("Prefer", "wait=1");
    served.send(request).await.is_problem("unknown-push", &[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_ends_the_wait() {
    let served = standard().await;
    let address = served.address;
    let waiting = tokio::spawn(async move { Request::get(ATTACH).header("Prefer", "wait=30").send(address).await });
    // Whether it has begun to wait or not by now, stopping does not take the whole wait.
    assert_eq!(served.get("/healthz").await.status, 200);
    tokio::time::timeout(Duration::from_secs(10), served.stop()).await.expect("the wait ended");
    drop(waiting);
}
