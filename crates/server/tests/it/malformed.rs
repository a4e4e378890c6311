//! Requests that cannot be read: refused before anything is looked up, with words that say what to do.

use base64::Engine as _;
use domain::ProblemCode;
use domain::wire::PUSH_MEDIA_TYPE;
use serde_json::json;
use sha2::Digest as _;

use crate::http::Request;
use crate::replay::{gzip, multipart, zstd};
use crate::served::{JUNIT, push, standard};

#[tokio::test]
async fn keys() {
    let served = standard().await;
    let mut none = push("k", "", JUNIT);
    none.headers.retain(|(name, _)| name != "Idempotency-Key");
    served.send(none.clone()).await.is_problem("key-missing", &["never an attempt number", "Nothing was recorded"]);
    served.send(none.header("Idempotency-Key", "\"\"")).await.is_problem("key-missing", &[]);
    for bad in ["\"a\", \"b\"", "a b", "\"open", "schlüssel", &"x".repeat(256)] {
        served.send(push(bad, "", JUNIT)).await.is_problem("key-malformed", &["Nothing was recorded"]);
    }
    let twice = push("a", "", JUNIT).header("Idempotency-Key", "b");
    served.send(twice).await.is_problem("key-malformed", &["more than once"]);
    served.send(push(&"x".repeat(255), "", JUNIT)).await.is_recorded();
}

#[tokio::test]
async fn parameters() {
    let served = standard().await;
    let with = |query: &str| {
        let path = format!("/api/v1/projects/shop/pushes{query}");
        Request::post(path, JUNIT).header("Idempotency-Key", "k")
    };
    served.send(with("?cycle=main")).await.is_problem("run-missing", &["GITHUB_RUN_ID", "never a commit"]);
    for (query, words) in [
        ("?run=1", &["cycle", "missing"][..]),
        ("?cycle=main&run=1&shart=1/4", &["shart", "no such parameter"]),
        ("?cycle=main&run=1&run=2", &["run", "2 times"]),
        ("?cycle=main&run=", &["run", "empty"]),
        ("?cycle=main&run=1&shard=5/4", &["shard", "I/N"]),
        ("?cycle=main&run=1&shard=0", &["shard"]),
        ("?cycle=main&run=1&variant=linux", &["variant", "NAME=VALUE"]),
        ("?cycle=main&run=1&variant=os%3Da&variant=os%3Db", &["variant", "twice"]),
        ("?cycle=main&run=1&on-difference=merge", &["on-difference", "auto, revise, keep, fail"]),
        ("?cycle=main&run=1&attempt=first", &["attempt"]),
        ("?cycle=main&run=1&attempt-scope=job", &["attempt-scope"]),
        ("?cycle=main&run=1&partial=yes", &["partial"]),
        ("?cycle=main&run=1&expect=-1", &["expect"]),
        ("?cycle=%ff&run=1", &["cycle", "UTF-8"]),
        ("?cycle=main&run=1&run-url=javascript:alert(1)", &["run-url"]),
    ] {
        served.send(with(query)).await.is_problem("parameter-malformed", words);
    }
    for (name, value, words) in [
        ("Push-Attempt", "-1", &["push-attempt"][..]),
        ("Push-Attempt", "1.5", &["push-attempt"]),
        ("Push-Executor", "%ff", &["push-executor"]),
        ("Push-Incarnation", "12", &["push-incarnation", "32 hexadecimal"]),
        ("Content-Digest", "sha-256=abc", &["content-digest"]),
    ] {
        let request = with("?cycle=main&run=1").header(name, value);
        served.send(request).await.is_problem("parameter-malformed", words);
    }
    let both = with("?cycle=main&run=1&attempt=1").header("Push-Attempt", "2");
    served.send(both).await.is_problem("parameter-malformed", &["the query says 1", "says 2"]);
    let mut project = with("?cycle=main&run=1");
    project.path = project.path.replace("shop", "sh%20op");
    served.send(project).await.is_problem("parameter-malformed", &["project"]);
    assert!(served.store.projects().await.unwrap().is_empty(), "nothing was recorded");
}

#[tokio::test]
async fn reports() {
    let served = standard().await;
    let cut = &JUNIT[..JUNIT.len() - 30];
    let bodies: [(&str, &[u8], &[&str]); 5] = [
        ("", cut.as_bytes(), &["body:4:", "partial=true", "Nothing was recorded"]),
        ("", b"", &["empty"]),
        ("", b"<html><body>502 Bad Gateway</body></html>", &["no test report"]),
        ("", b"ok 1 - not read here", &["Nothing was recorded"]),
        ("application/json", b"{\"tallyonce\":1,\"outcomes\":[{", &["not the JSON of a push", "line 1"]),
    ];
    for (kind, body, words) in bodies {
        let request = push("k", "", body).replace_header("Content-Type", kind);
        served.send(request).await.is_problem("report-unreadable", words);
    }
    let strict =
        |body: serde_json::Value| push("k", "", body.to_string()).replace_header("Content-Type", PUSH_MEDIA_TYPE);
    let outcome = json!({ "item": { "name": "a" }, "status": "passed" });
    for (body, words) in [
        (json!({ "tallyonce": 2, "outcomes": [] }), &["version 2"][..]),
        (json!({ "outcomes": [] }), &["tallyonce"]),
        (json!({ "tallyonce": 1, "outcomes": [], "extra": 1 }), &["extra"]),
        (json!({ "tallyonce": 1, "outcomes": [{ "item": { "name": "a" }, "status": "flaky" }] }), &["flaky"]),
        (json!({ "tallyonce": 1, "outcomes": [outcome, outcome] }), &["1 items", "attempts", "\"a\""]),
        (json!([]), &["not the JSON of a push"]),
    ] {
        served.send(strict(body)).await.is_problem("report-unreadable", words);
    }
    let long = "x".repeat(domain::limits::TEXT_BYTES_MAX + 1);
    let body =
        json!({ "tallyonce": 1, "outcomes": [{ "item": { "name": "a" }, "status": "passed", "message": long }] });
    served.send(strict(body)).await.is_problem("too-large", &["octets of a message of a"]);
    assert!(served.store.projects().await.unwrap().is_empty(), "nothing was recorded");
}

#[tokio::test]
async fn a_damaged_report_on_purpose() {
    let served = standard().await;
    let cut = &JUNIT[..JUNIT.len() - 30];
    let answer = served.send(push("k", "&partial=true", cut)).await;
    answer.is_recorded();
    assert_eq!(answer.json()["incomplete"], true);
    assert_eq!(answer.json()["counts"]["total"], 2);
    assert!(answer.header("push-warnings").unwrap().contains("incomplete"));
}

#[tokio::test]
async fn encodings_and_digests() {
    let served = standard().await;
    for coding in ["br", "deflate", "gzip, zstd"] {
        let answer = served.send(push("k", "", JUNIT).header("Content-Encoding", coding)).await;
        answer.is_problem("unsupported-media", &["gzip, zstd and identity"]);
        assert_eq!(answer.header("accept-encoding"), Some("gzip, zstd, identity"));
    }
    let wrong = push("k", "", JUNIT).header("Content-Encoding", "gzip");
    served.send(wrong).await.is_problem("report-unreadable", &["Content-Encoding"]);
    let mut damaged = gzip(JUNIT.as_bytes());
    let at = damaged.len() - 8;
    damaged[at] ^= 1;
    let damaged = push("k", "", damaged).header("Content-Encoding", "gzip");
    served.send(damaged).await.is_problem("report-unreadable", &["damaged"]);

    let body = zstd(JUNIT.as_bytes());
    let digest = |bytes: &[u8]| {
        let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(bytes));
        format!("sha-256=:{hash}:")
    };
    let send = |digest: String| {
        push("k", "", body.clone()).header("Content-Encoding", "zstd").header("Content-Digest", &digest)
    };
    served.send(send(digest(JUNIT.as_bytes()))).await.is_problem("digest-mismatch", &["as it travels"]);
    assert!(served.store.projects().await.unwrap().is_empty(), "nothing was recorded");
    served.send(send(digest(&body))).await.is_recorded();
}

#[tokio::test]
async fn files() {
    let served = standard().await;
    served.send(multipart("k", &[])).await.is_problem("report-unreadable", &["multipart"]);
    let mut unnamed = multipart("k", &[("a.xml", JUNIT)]);
    unnamed.body = String::from_utf8(unnamed.body).unwrap().replace("; filename=\"a.xml\"", "").into_bytes();
    served.send(unnamed).await.is_problem("report-unreadable", &["is no file", "query"]);
    let cut = &JUNIT[..JUNIT.len() - 30];
    served
        .send(multipart("k", &[("a.xml", JUNIT), ("b.xml", cut)]))
        .await
        .is_problem("report-unreadable", &["b.xml:4:"]);
    let mut open = multipart("k", &[("a.xml", JUNIT)]);
    open.body.truncate(open.body.len() - 10);
    served.send(open).await.is_problem("report-unreadable", &["multipart"]);
    let boundary = multipart("k", &[("a.xml", JUNIT)]).replace_header("Content-Type", "multipart/form-data");
    served.send(boundary).await.is_problem("parameter-malformed", &["content-type"]);
    assert_eq!(ProblemCode::ReportUnreadable.status(), 400);
    assert!(served.store.projects().await.unwrap().is_empty(), "nothing was recorded");
}
