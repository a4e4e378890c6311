//! Invariants once and same answer: a repeat is counted once and answered byte for byte, however it travels.

use std::fmt::Write as _;
use std::io::Write as _;

use domain::wire::PUSH_MEDIA_TYPE;
use serde_json::json;

use crate::http::Request;
use crate::served::{JUNIT, Served, on_every_engine, push, standard};

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

pub(crate) fn multipart(key: &str, files: &[(&str, &str)]) -> Request {
    let mut body = String::new();
    for (name, content) in files {
        let _ = write!(
            body,
            "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{content}\r\n"
        );
    }
    body.push_str("--XX--\r\n");
    push(key, "", body).replace_header("Content-Type", "multipart/form-data; boundary=XX")
}

/// What [`JUNIT`] holds, in our JSON.
fn as_json() -> serde_json::Value {
    let item = |name: &str| json!({ "suite": ["shop"], "class": "cart", "name": name });
    json!({
        "outcomes": [
            { "item": item("removes"), "status": "failed", "duration_us": 250_000, "message": "MESSAGE" },
            { "item": item("clears"), "status": "skipped" },
            { "item": item("adds"), "status": "passed", "duration_us": 500_000 },
        ],
        "tallyonce": 1,
    })
}

#[tokio::test]
async fn plain_curl_twice_is_recorded_once() {
    on_every_engine(async |served: Served| {
        let first = served.send(push("\"gh-run-42-shard-1\"", "&shard=1/4", JUNIT)).await;
        first.is_recorded();
        let receipt = first.json();
        assert_eq!(
            receipt["counts"],
            json!({ "total": 3, "passed": 1, "failed": 1, "errored": 0, "skipped": 1, "flaky": 0 })
        );
        assert_eq!(receipt["round"], "run:42");
        assert_eq!(receipt["shard"], "1/4");
        let location = first.header("location").unwrap().to_owned();
        assert_eq!(location, format!("/api/v1/projects/shop/pushes/{}", receipt["push"].as_str().unwrap()));
        assert_eq!(first.header("push-current-revision"), Some("1"));
        let counts = "total=3, passed=1, failed=1, errored=0, skipped=1, flaky=0";
        assert_eq!(first.header("push-current-counts"), Some(counts));
        assert_eq!(first.header("push-difference"), None);

        let second = served.send(push("gh-run-42-shard-1", "&shard=1/4", JUNIT)).await;
        second.is_replay_of(&first);
        assert_eq!(second.header("push-difference"), Some("none"));

        let report = served.get(location.clone()).await.json();
        assert_eq!(report["deliveries"], 2);
        assert_eq!(report["log"][1]["result"], "replayed");
        let stored = served.get(format!("{location}/receipt")).await;
        assert_eq!((stored.status, &stored.body), (200, &first.body));
        assert_eq!(stored.header("etag"), first.header("etag"));
    })
    .await;
}

#[tokio::test]
async fn every_way_of_sending_is_the_same_content() {
    let served = standard().await;
    let first = served.send(push("k", "", JUNIT)).await;
    first.is_recorded();
    let mut ways = vec![
        push("k", "", gzip(JUNIT.as_bytes())).header("Content-Encoding", "gzip"),
        push("k", "", zstd(JUNIT.as_bytes())).header("Content-Encoding", "ZSTD"),
        push("k", "", JUNIT).header("Transfer-Encoding", "chunked"),
        multipart("k", &[("report.xml", JUNIT)]),
    ];
    ways[2].body = format!("{:x}\r\n{JUNIT}\r\n0\r\n\r\n", JUNIT.len()).into_bytes();
    for kind in ["", "application/xml", "application/octet-stream", "text/plain; charset=utf-8"] {
        let request = push("k", "", JUNIT).replace_header("Content-Type", kind);
        ways.push(request);
    }
    for way in ways {
        let answer = served.send(way).await;
        answer.is_replay_of(&first);
        assert_eq!(answer.header("push-difference"), Some("none"));
    }
}

#[tokio::test]
async fn json_and_the_report_it_was_read_from_agree() {
    let served = standard().await;
    let first = served.send(push("k", "", JUNIT)).await;
    first.is_recorded();
    let items = served.get("/api/v1/projects/shop/items?cycle=main&search=removes").await.json();
    let message = items["items"][0]["message"].as_str().unwrap();
    let body = as_json().to_string().replace("MESSAGE", &message.replace('\n', "\\n"));
    for (kind, encoded, encoding) in [
        (PUSH_MEDIA_TYPE, body.clone().into_bytes(), "identity"),
        ("application/json", zstd(body.as_bytes()), "zstd"),
        ("", gzip(body.as_bytes()), "gzip"),
    ] {
        let request = push("k", "", encoded).header("Content-Encoding", encoding).replace_header("Content-Type", kind);
        let answer = served.send(request).await;
        answer.is_replay_of(&first);
        assert_eq!(answer.header("push-difference"), Some("none"), "as {kind:?}");
    }
}

#[tokio::test]
async fn several_files_are_one_push() {
    let served = standard().await;
    let other = JUNIT.replace("cart", "till");
    let first = served.send(multipart("k", &[("a.xml", JUNIT), ("b.xml", &other)])).await;
    first.is_recorded();
    assert_eq!(first.json()["counts"]["total"], 6);
    assert_eq!(first.json()["report"]["files"], 2);
    served.send(multipart("k", &[("b.xml", &other), ("a.xml", JUNIT)])).await.is_replay_of(&first);
    let renamed = served.send(multipart("k", &[("c.xml", JUNIT), ("d.xml", &other)])).await;
    renamed.is_replay_of(&first);
    assert!(renamed.header("push-warnings").unwrap().contains("files of other names"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_at_once_are_one() {
    on_every_engine(async |served: Served| {
        let address = served.address;
        let tasks = (0..8).map(|task| {
            tokio::spawn(async move {
                let mine = if task < 4 { 13 } else { 12 };
                let mut answers = Vec::new();
                for _ in 0..mine {
                    answers.push(push("k", "", JUNIT).send(address).await);
                }
                answers
            })
        });
        let mut answers = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            answers.extend(task.await.unwrap());
        }
        assert_eq!(answers.len(), 100);
        let replayed = answers.iter().filter(|a| a.header("idempotent-replayed") == Some("true")).count();
        assert_eq!(replayed, 99);
        assert!(answers.iter().all(|a| a.status == 201 && a.body == answers[0].body));
        let report = served.get("/api/v1/projects/shop/rounds?cycle=main&round=all").await.json();
        assert_eq!(report["headline"]["total"], 3);
        assert_eq!(report["rounds"][0]["repeats"], 99);
        assert_eq!(report["rounds"][0]["pushes"][0]["deliveries"], 100);
        assert!(served.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn the_same_key_in_two_projects_is_two_keys() {
    let served = standard().await;
    served.send(push("k", "", JUNIT)).await.is_recorded();
    let mut other = push("k", "", JUNIT);
    other.path = other.path.replace("/shop/", "/till/");
    served.send(other).await.is_recorded();
    assert_eq!(served.get("/api/v1/projects").await.json(), json!(["shop", "till"]));
}

#[tokio::test]
async fn keys_that_differ_in_case_or_at_their_end_are_two() {
    let served = standard().await;
    let long = "long.".repeat(20);
    for key in ["Build", "build", &format!("{long}1"), &format!("{long}2")] {
        let answer = served.send(push(key, "", JUNIT)).await;
        answer.is_recorded();
        assert_eq!(answer.json()["key"], key);
    }
}

#[tokio::test]
async fn an_empty_report_is_recorded_with_a_warning() {
    let served = standard().await;
    let answer = served.send(push("k", "", "<testsuite name=\"nothing\"/>")).await;
    answer.is_recorded();
    assert_eq!(answer.json()["counts"]["total"], 0);
    assert!(answer.header("push-warnings").unwrap().contains("no outcome"));
}
