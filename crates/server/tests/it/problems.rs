//! Every problem code that this server can end in, with its status, retry, written and words.

use crate::http::Request;
use crate::served::{Fault, Faulty, JUNIT, Served, memory, on_every_engine, push, standard};
use server::BodyLimits;

fn with_executor(key: &str, executor: &str, attempt: &str) -> Request {
    push(key, "", JUNIT).header("Push-Executor", executor).header("Push-Attempt", attempt)
}

#[tokio::test]
async fn a_key_in_another_place_is_reused() {
    on_every_engine(async |served: Served| {
        served.send(push("k", "&job=unit&shard=1/2&commit=aaa", JUNIT)).await.is_recorded();
        let answer = served.send(push("k", "&job=lint&shard=2/2&commit=bbb", JUNIT)).await;
        answer.is_problem(
            "key-reused",
            &["job is \\\"unit\\\" there and \\\"lint\\\" here", "nothing of this push was recorded"],
        );
        let document = answer.json();
        let fields: Vec<&str> =
            document["fields"].as_array().unwrap().iter().map(|f| f["field"].as_str().unwrap()).collect();
        assert_eq!(fields, ["job", "shard", "commit"]);
    })
    .await;
}

#[tokio::test]
async fn a_second_leg_collides_even_with_equal_outcomes() {
    on_every_engine(async |served: Served| {
        let first = served.send(with_executor("k", "runner%201", "1")).await;
        first.is_recorded();
        let second = served.send(with_executor("k", "runner%202", "1")).await;
        second.is_problem(
            "key-collision",
            &[
                "--job",
                "--shard",
                "--variant",
                "counts from 1",
                "recorded executor: runner 1",
                "offered executor: runner 2",
            ],
        );
        let third = served.send(with_executor("k", "runner%202", "2")).await;
        third.is_problem("key-collision", &["contested"]);
        served.send(with_executor("k", "runner%201", "1")).await.is_replay_of(&first);
        let report = served.get(first.header("location").unwrap()).await.json();
        assert_eq!(report["state"], "contested");
    })
    .await;
}

#[tokio::test]
async fn other_work_under_the_key_collides() {
    on_every_engine(async |served: Served| {
        served.send(push("k", "", JUNIT)).await.is_recorded();
        let other = JUNIT.replace("cart", "till").replace("adds", "opens");
        let answer = served.send(push("k", "&on-difference=revise", other)).await;
        answer.is_problem("key-collision", &["only offered: ", "opens", "only recorded: ", "adds", "--shard"]);
    })
    .await;
}

#[tokio::test]
async fn a_shard_plan_stays() {
    on_every_engine(async |served: Served| {
        served.send(push("k1", "&job=unit&shard=1/4", JUNIT)).await.is_recorded();
        let answer = served.send(push("k2", "&job=unit&shard=1/5", JUNIT)).await;
        answer.is_problem("shard-plan-changed", &["4 shards", "says 5", "--round"]);
    })
    .await;
}

#[tokio::test]
async fn deleted_data_stay_deleted() {
    on_every_engine(async |served: Served| {
        served.send(push("k", "", JUNIT)).await.is_recorded();
        let (project, cycle) = ("shop".parse().unwrap(), "main".parse().unwrap());
        served.store.drop_round(&project, &cycle, "42").await.unwrap().unwrap();
        let answer = served.send(push("k", "", JUNIT)).await;
        answer.is_problem("tombstoned", &["never brings deleted data back"]);
    })
    .await;
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let served = standard().await;
    served.get("/api/v1/projects/shop/cycles").await.is_problem("unknown-project", &["no project shop"]);
    served.send(push("k", "", JUNIT)).await.is_recorded();
    let id = "0".repeat(32);
    for (path, word) in [
        (format!("/api/v1/projects/shop/pushes/{id}"), "no such push"),
        (format!("/api/v1/projects/shop/pushes/{id}/receipt"), "no such push"),
        (format!("/api/v1/projects/shop/items/{id}/history"), "no such item"),
        ("/api/v1/projects/shop/rounds?cycle=dev".to_owned(), "no cycle"),
        ("/api/v1/projects/shop/rounds?cycle=main&round=7".to_owned(), "No round"),
        ("/api/v2/nothing".to_owned(), "There is nothing at"),
        ("/".to_owned(), "openapi.json"),
    ] {
        served.get(path).await.is_problem("not-found", &[word]);
    }
    let answer = served.send(Request::post("/api/v1/projects/shop/cycles", "")).await;
    answer.is_problem("method-not-allowed", &["POST"]);
    assert!(answer.header("allow").unwrap().contains("GET"));
}

#[tokio::test]
async fn a_store_that_cannot_write_says_that_nothing_is_written() {
    let served = Served::start(Faulty::new(&[Fault::NotWritten]), BodyLimits::default()).await;
    served.get("/readyz").await.is_problem("store-unavailable", &[]);
    served.send(push("k", "", JUNIT)).await.is_problem("store-unavailable", &["nothing of this request was written"]);
    served.send(push("k", "", JUNIT)).await.is_recorded();
    assert_eq!(served.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn an_unknown_commit_is_run_again_once() {
    let before = [Fault::UnknownBefore];
    let served = Served::start(Faulty::new(&before), BodyLimits::default()).await;
    served.send(push("k", "", JUNIT)).await.is_recorded();

    let after = [Fault::UnknownAfter];
    let served = Served::start(Faulty::new(&after), BodyLimits::default()).await;
    let answer = served.send(push("k", "", JUNIT)).await;
    assert_eq!((answer.status, answer.header("idempotent-replayed")), (201, Some("true")), "the key decided");

    let twice = [Fault::UnknownAfter, Fault::UnknownAfter];
    let served = Served::start(Faulty::new(&twice), BodyLimits::default()).await;
    served.send(push("k", "", JUNIT)).await.is_problem("commit-unknown", &["same key", "in neither case twice"]);
    let report = served.get("/api/v1/projects/shop/rounds?cycle=main").await.json();
    assert_eq!(report["headline"]["total"], 3);
    let answer = served.send(push("k", "", JUNIT)).await;
    assert_eq!(answer.header("idempotent-replayed"), Some("true"));
}

#[tokio::test]
async fn an_unknown_commit_stays_unknown_when_the_second_run_writes_nothing() {
    let then_full = [Fault::UnknownAfter, Fault::NotWritten];
    let served = Served::start(Faulty::new(&then_full), BodyLimits::default()).await;
    // The first run did record it: "written: no" would be a lie.
    served.send(push("k", "", JUNIT)).await.is_problem("commit-unknown", &["same key", "in neither case twice"]);
    let answer = served.send(push("k", "", JUNIT)).await;
    assert_eq!(answer.header("idempotent-replayed"), Some("true"));
}

#[tokio::test]
async fn a_crash_is_a_problem_document_without_its_secrets() {
    let served = Served::start(Faulty::new(&[Fault::Panic, Fault::Broken]), BodyLimits::default()).await;
    let answer = served.send(push("k", "", JUNIT)).await;
    answer.is_problem("internal", &["same key"]);
    assert!(!answer.text().contains("secret"));
    served.send(push("k", "", JUNIT)).await.is_problem("internal", &["check-store"]);
    served.send(push("k", "", JUNIT)).await.is_recorded();
}

#[tokio::test]
async fn health_is_answered_without_a_store() {
    let served = Served::start(memory(), BodyLimits::default()).await;
    assert_eq!(served.get("/healthz").await.json()["status"], "ok");
    assert_eq!(served.get("/readyz").await.json()["status"], "ok");
    served.stop().await;
}
