//! Beginning a staged push: what it answers, when it resumes, and what it refuses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::http::Request;
use crate::replay::{gzip, zstd};
use crate::served::{JUNIT, Served, on_every_engine, push, standard};
use crate::staging::{Cut, From as _, commit, cut, digest, outcomes, sixty};

#[tokio::test]
async fn a_new_epoch_and_its_headers() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let begun = served.send(push.begin("k", "").process(1)).await;
        assert_eq!(begun.status, 201, "{}", begun.text());
        let answer = begun.json();
        let id = answer["push"].as_str().unwrap();
        let expected = json!({ "push": id, "epoch": 1, "resumed": false, "chunks": 4, "missing": [[0, 3]] });
        assert_eq!(answer, expected);
        let epoch = format!("/api/v1/projects/shop/pushes/{id}/epochs/1");
        assert_eq!(begun.header("location"), Some(epoch.as_str()));
        assert_eq!(begun.header("push-epoch"), Some("1"));
        let limit = "max-chunk=33554432, max-chunks=1024, max-size=34359738368, idle=30, staging-age=86400";
        assert_eq!(begun.header("push-limit"), Some(limit));
        assert_eq!(begun.header("cache-control"), Some("no-store"));
        assert_eq!(begun.header("content-type"), Some("application/json"));
        assert_eq!(begun.header("idempotent-replayed"), None);
        assert_eq!(begun.header("push-difference"), None);
        assert_eq!(served.get("/api/v1/projects").await.json(), json!([]), "nothing of it shows");
    })
    .await;
}

#[tokio::test]
async fn the_same_manifest_resumes() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let epoch = served.send(push.begin("k", "").process(1)).await.header("location").unwrap().to_owned();
        served.send(push.put(&epoch, 1)).await;
        // The same process, another one after a restart, one of a later attempt, compressed on its way.
        let mut compressed = push.begin("k", "").process(3).header("Content-Encoding", "zstd");
        compressed.body = zstd(&compressed.body);
        let sent = digest(&compressed.body);
        let requests = [
            push.begin("k", "").process(1),
            push.begin("k", "").process(2),
            push.begin("k", "").process(4).attempt(9),
            compressed.header("Content-Digest", &sent),
        ];
        let mut bodies = Vec::new();
        for request in requests {
            let again = served.send(request).await;
            assert_eq!(again.status, 200, "{}", again.text());
            assert_eq!(again.header("location"), Some(epoch.as_str()));
            assert_eq!(again.header("push-epoch"), Some("1"));
            let answer = again.json();
            assert_eq!((&answer["resumed"], &answer["missing"]), (&json!(true), &json!([[0, 0], [2, 3]])));
            bodies.push(again.body);
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]), "equal bytes for every repeat");
    })
    .await;
}

#[tokio::test]
async fn a_recorded_content_is_replayed() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let first = served.send(push.one_shot("k", "")).await;
        first.is_recorded();
        for bits in 0..=2 {
            let cut_otherwise = cut(outcomes(0..60, &[7]), bits);
            let answer = served.send(cut_otherwise.begin("k", "")).await;
            answer.is_replay_of(&first);
            assert_eq!(answer.header("push-difference"), Some("none"));
            assert_eq!(answer.header("push-current-revision"), Some("1"));
            assert_eq!(answer.header("push-epoch"), None);
        }
        let location = first.header("location").unwrap();
        assert_eq!(served.get(location).await.json()["deliveries"], 4);
    })
    .await;
}

#[tokio::test]
async fn other_outcomes_are_staged_over_what_is_recorded() {
    on_every_engine(async |served: Served| {
        let first = served.send(sixty(&[7]).one_shot("k", "").attempt(1)).await;
        let push = sixty(&[]).with_items();
        let begun = served.send(push.begin("k", "&on-difference=revise").attempt(2)).await;
        assert_eq!(begun.status, 201, "{}", begun.text());
        let answer = begun.json();
        assert_eq!((&answer["epoch"], &answer["difference"]), (&json!(1), &json!("semantic")));
        assert_eq!(begun.header("push-difference"), Some("semantic"));
        assert_eq!(begun.header("push-current-revision"), Some("1"));
        assert_eq!(answer["recorded"]["revision"], 1);
        assert_eq!(answer["recorded"]["etag"].as_str(), first.header("etag"));
        assert!(begun.text().contains(&first.text()), "the receipt stands there byte for byte");
        // Without items, only the commit can tell.
        let mut blind = sixty(&[]);
        blind.manifest["files"] = json!(["a.xml"]);
        let blind = served.send(blind.begin("k", "&on-difference=revise").attempt(3)).await;
        assert_eq!((blind.status, blind.json()["difference"].clone()), (201, Value::Null));
        assert_eq!(blind.json()["epoch"], 2);
    })
    .await;
}

#[tokio::test]
async fn what_is_refused_is_refused_before_anything_is_sent() {
    on_every_engine(async |served: Served| {
        served.send(sixty(&[7]).one_shot("k", "&job=unit&shard=1/2").attempt(1).executor("a")).await.is_recorded();
        let push = sixty(&[]).with_items();
        let other = push.begin("k", "&job=lint&shard=1/2");
        served.send(other).await.is_problem("key-reused", &["\\\"lint\\\" here", "nothing of this push"]);
        let fails = push.begin("k", "&job=unit&shard=1/2&on-difference=fail").attempt(1).executor("a");
        served.send(fails).await.is_problem("differs", &["1 items with another status"]);
        let strange = cut(outcomes(100..160, &[]), 2).with_items();
        let strange = strange.begin("k", "&job=unit&shard=1/2&on-difference=revise").attempt(2).executor("a");
        served.send(strange).await.is_problem("key-collision", &["only recorded: ", "--shard"]);
        let plan = push.begin("k2", "&job=unit&shard=2/3");
        served.send(plan).await.is_problem("shard-plan-changed", &["2 shards"]);
        let leg = push.begin("k", "&job=unit&shard=1/2").attempt(1).executor("b");
        let words = ["recorded executor: a", "offered executor: b"];
        served.send(leg).await.is_problem("key-collision", &words);
        let (project, cycle) = ("shop".parse().unwrap(), "main".parse().unwrap());
        served.store.drop_round(&project, &cycle, "42").await.unwrap().unwrap();
        served.send(push.begin("k", "&job=unit&shard=1/2")).await.is_problem("tombstoned", &[]);
    })
    .await;
}

/// A manifest with one field set.
fn with(field: &str, value: Value) -> Cut {
    let mut cut = sixty(&[]);
    cut.manifest[field] = value;
    cut
}

#[tokio::test]
async fn manifests_that_cannot_be() {
    let served = standard().await;
    let counts = |total: u64, passed: u64| json!({ "total": total, "passed": passed, "failed": 0, "errored": 0, "skipped": 0, "flaky": 0 });
    let packed = |bytes: &[u8]| Value::from(BASE64.encode(zstd(bytes)));
    let chunks = sixty(&[]).manifest["chunks"].as_array().unwrap().clone();
    let bad_digest = json!([["12", 15], ["34", 15], ["56", 15], ["78", 15]]);
    for (cut, words) in [
        (with("tallyonce", json!(2)), &["version 2"][..]),
        (with("extra", json!(1)), &["extra"]),
        (with("bits", json!(3)), &["4 chunks with 3 bits"]),
        (with("bits", json!(300)), &["300"]),
        (with("bits", json!(200)), &["4 chunks with 200 bits"]),
        (with("chunks", json!(chunks[..2])), &["2 chunks with 2 bits"]),
        (with("chunks", bad_digest), &["64 hexadecimal"]),
        (with("counts", counts(61, 61)), &["the chunks say 60", "61"]),
        (with("counts", counts(60, 59)), &["by status say 59"]),
        (with("content", json!("abc")), &["64 hexadecimal"]),
        (with("items", json!("%%%")), &["base64"]),
        (with("items", json!(BASE64.encode(b"not zstd"))), &["zstd"]),
        (with("items", packed(&[0; 17 * 59])), &["17 bytes each of 60 items"]),
        (with("items", packed(&[0; 17 * 60])), &["rising order"]),
        (with("items", packed(&[255; 17 * 60])), &["a verdict that there is none of"]),
        (with("items", packed(&vec![0; 100_000_000])), &["17 bytes each of 60 items"]),
        (with("items", json!("A".repeat(1_500_000))), &["more than 1048576 bytes"]),
    ] {
        served.send(cut.begin("k", "")).await.is_problem("manifest-malformed", words);
    }
    let mut small = sixty(&[]);
    small.manifest["counts"] = counts(16, 16);
    small.manifest["chunks"] = chunks.iter().map(|chunk| json!([chunk[0], 4])).collect();
    served.send(small.begin("k", "")).await.is_problem("manifest-malformed", &["at most 0 bits"]);
    let many = counts(50_000_001, 50_000_001);
    served.send(with("counts", many).begin("k", "")).await.is_problem("too-large", &["50000001 outcomes"]);
    assert!(served.store.check().await.unwrap().is_empty());
}

#[tokio::test]
async fn requests_that_cannot_be_read() {
    let served = standard().await;
    let push_ = sixty(&[]);
    let mut no_key = push_.begin("k", "");
    no_key.headers.retain(|(name, _)| name != "Idempotency-Key");
    served.send(no_key).await.is_problem("key-missing", &[]);
    let path =
        |query: &str| Request { path: format!("/api/v1/projects/shop/staged-pushes?{query}"), ..push_.begin("k", "") };
    served.send(path("cycle=main")).await.is_problem("run-missing", &[]);
    served.send(path("run=1")).await.is_problem("parameter-malformed", &["cycle"]);
    served.send(path("cycle=main&run=1&partial=true")).await.is_problem("parameter-malformed", &["partial"]);
    served.send(path("cycle=main&run=1&run-url=x")).await.is_problem("parameter-malformed", &["run-url"]);
    let body = |body: &[u8]| Request { body: body.to_vec(), ..push_.begin("k", "") };
    for bytes in [&b""[..], b"{", b"[]", JUNIT.as_bytes(), b"{\"tallyonce\":1,\"outcomes\":[]}"] {
        served.send(body(bytes)).await.is_problem("manifest-malformed", &["not the JSON of a manifest"]);
    }
    served.send(body(b"{}").header("Content-Digest", &digest(b"[]"))).await.is_problem("digest-mismatch", &[]);
    served.send(body(b"{}").header("Content-Encoding", "gzip")).await.is_problem("report-unreadable", &[]);
    served.send(body(b"{}").header("Content-Encoding", "br")).await.is_problem("unsupported-media", &[]);
    let bomb = [b"{\"tallyonce\":1,\"files\":[\"", " ".repeat(60_000_000).as_bytes()].concat();
    let bomb = body(&gzip(&bomb)).header("Content-Encoding", "gzip");
    served.send(bomb).await.is_problem("too-large", &["inflates"]);
    let other = Request { method: "GET", body: Vec::new(), ..push_.begin("k", "") };
    served.send(other).await.is_problem("method-not-allowed", &[]);
    let foreign = push_.begin("k", "").header("Origin", "https://evil.example");
    served.send(foreign).await.is_problem("foreign-origin", &[]);
    served.get("/api/v1/projects/shop/pushes?key=k").await.is_problem("unknown-push", &[]);
}

#[tokio::test]
async fn an_empty_push_is_staged_with_a_warning() {
    on_every_engine(async |served: Served| {
        let empty = cut(Vec::new(), 0);
        let answer = empty.deliver(&served, empty.begin("k", "")).await;
        answer.is_recorded();
        assert_eq!(answer.json()["counts"]["total"], 0);
        assert!(answer.header("push-warnings").unwrap().contains("no outcome"));
        let one_shot = served.send(push("k2", "", "{\"tallyonce\":1,\"outcomes\":[]}")).await;
        assert_eq!(one_shot.json()["content"], answer.json()["content"]);
        let again = served.send(empty.begin("k", "")).await;
        again.is_replay_of(&answer);
        assert!(again.header("push-warnings").unwrap().contains("no outcome"));
        served.send(commit(&format!("{}/epochs/1", answer.header("location").unwrap()))).await.is_replay_of(&answer);
    })
    .await;
}
