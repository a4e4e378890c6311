//! Attaching to a key, with and without waiting for it.

use std::time::Duration;

use serde_json::json;

use crate::http::Request;
use crate::in_process::{InProcess, on_every_store};
use crate::served::{JUNIT, Served, on_every_engine, push, standard};
use crate::staging::{From as _, Sends as _, cancel, commit, sixty};

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

#[tokio::test]
async fn what_is_staged_shows_to_who_has_the_key() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let begun = served.send(push.begin("k", "").process(1)).await;
        let epoch = begun.header("location").unwrap().to_owned();
        for (present, chunk) in [(0, 3), (1, 0)] {
            let answer = served.get(ATTACH).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.header("push-epoch"), Some("1"));
            assert_eq!(answer.header("etag"), None);
            assert_eq!(answer.header("cache-control"), Some("no-store"));
            let mut attached = answer.json();
            attached["staging"]["idle_ms"].take();
            let staging = json!({ "epoch": 1, "chunks": 4, "present": present, "idle_ms": null });
            assert_eq!(attached, json!({ "key": "k", "push": begun.json()["push"], "staging": staging }));
            served.send(push.put(&epoch, chunk)).await;
        }
        served.send(cancel(&epoch)).await;
        served.get(ATTACH).await.is_problem("unknown-push", &["recorded or staged"]);
        let first = push.deliver(&served, push.begin("k", "").process(2)).await;
        let over = sixty(&[]);
        served.send(over.begin("k", "&on-difference=keep").process(3)).await;
        let attached = served.get(ATTACH).await;
        assert_eq!(attached.header("etag"), first.header("etag"));
        assert_eq!(attached.header("push-epoch"), Some("3"));
        assert!(attached.text().contains(&first.text()), "{}", attached.text());
        assert_eq!(attached.json()["staging"]["present"], 0);
        served.get(ATTACH.replace("/shop/", "/till/")).await.is_problem("unknown-push", &[]);
    })
    .await;
}

/// Attaches with the longest wait, beside the test. It ends long before that or the test fails.
fn attached(served: &Served) -> impl Future<Output = crate::http::Answer> {
    let address = served.address;
    let waiting = tokio::spawn(async move { Request::get(ATTACH).header("Prefer", "wait=30").send(address).await });
    async { tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("long before 30 s").unwrap() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_with_the_commit() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let epoch = push.stage(&served, push.begin("k", "")).await;
        let waiting = attached(&served);
        let first = served.send(commit(&epoch)).await;
        let answer = waiting.await;
        assert_eq!(answer.json()["receipt"], first.json());
        assert_eq!(answer.json()["staging"], serde_json::Value::Null);
        // Also for who waits for a revision over it.
        let over = sixty(&[]);
        let epoch = over.stage(&served, over.begin("k", "&on-difference=keep")).await;
        let waiting = attached(&served);
        let second = served.send(commit(&epoch)).await;
        assert_eq!(waiting.await.json()["receipt"], second.json());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_with_the_epoch() {
    let served = standard().await;
    let push = sixty(&[7]);
    let epoch = push.stage(&served, push.begin("k", "").process(1).attempt(1)).await;
    let waiting = attached(&served);
    // Whether it has looked by now or not, what it finds at its end is the newer epoch.
    assert_eq!(served.get("/healthz").await.status, 200);
    served.send(sixty(&[8]).begin("k", "").process(2).attempt(2)).await;
    served.send(cancel(&epoch.replace("epochs/1", "epochs/2"))).await;
    let answer = waiting.await;
    if answer.status == 200 {
        assert_eq!(answer.json()["staging"]["epoch"], 2, "{}", answer.text());
    } else {
        answer.is_problem("unknown-push", &[]);
    }
}

#[tokio::test]
async fn an_idle_epoch_is_not_waited_for() {
    on_every_store(async |here: InProcess| {
        let push = sixty(&[7]);
        push.stage(&here, push.begin("k", "")).await;
        here.later(domain::limits::EPOCH_IDLE_MS);
        let attach = here.send(Request::get(ATTACH).header("Prefer", "wait=30"));
        let answer = tokio::time::timeout(Duration::from_secs(20), attach).await.expect("at once");
        assert_eq!(answer.json()["staging"]["idle_ms"], domain::limits::EPOCH_IDLE_MS);
    })
    .await;
}
