//! Putting chunks: in any order, as often as wanted, and never other bytes than the manifest names.

use domain::wire::ChunkAnswer;
use serde_json::json;
use server::BodyLimits;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::http::{Request, read_answer};
use crate::replay::{gzip, zstd};
use crate::served::{Served, memory, on_every_engine, standard};
use crate::staging::{Cut, cancel, commit, cut, digest, hex, outcomes, put, sixty};

async fn begun(served: &Served, push: &Cut) -> String {
    let begun = served.send(push.begin("k", "")).await;
    begun.header("location").unwrap_or_else(|| panic!("{}", begun.text())).to_owned()
}

#[tokio::test]
async fn a_chunk_and_its_repeat() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let epoch = begun(&served, &push).await;
        for chunk in [2, 0, 3, 1] {
            let first = served.send(push.put(&epoch, chunk)).await;
            assert_eq!(first.status, 201, "{}", first.text());
            assert_eq!(first.header("idempotent-replayed"), None);
            assert_eq!(first.header("push-epoch"), Some("1"));
            assert_eq!(first.header("cache-control"), Some("no-store"));
            let answer: ChunkAnswer = serde_json::from_slice(&first.body).unwrap();
            let outcomes = push.manifest["chunks"][chunk][1].as_u64().unwrap();
            assert_eq!((answer.chunk as usize, u64::from(answer.outcomes)), (chunk, outcomes));
            let again = served.send(push.put(&epoch, chunk)).await;
            assert_eq!((again.status, &again.body), (201, &first.body), "{}", again.text());
            assert_eq!(again.header("idempotent-replayed"), Some("true"));
        }
        served.send(commit(&epoch)).await.is_recorded();
        // A late copy, after the commit.
        let late = served.send(push.put(&epoch, 2)).await;
        assert_eq!((late.status, late.header("idempotent-replayed")), (201, Some("true")), "{}", late.text());
    })
    .await;
}

#[tokio::test]
async fn compressed_chunks_are_named_by_what_travels() {
    on_every_engine(async |served: Served| {
        for (coding, compress) in [("zstd", zstd as fn(&[u8]) -> Vec<u8>), ("gzip", gzip)] {
            let key = format!("k-{coding}");
            let mut push = sixty(&[7]);
            push.chunks = push.chunks.iter().map(|body| compress(body)).collect();
            for (at, body) in push.chunks.clone().iter().enumerate() {
                push.manifest["chunks"][at][0] = hex(body).into();
            }
            let epoch = served.send(push.begin(&key, "")).await.header("location").unwrap().to_owned();
            for chunk in 0..4 {
                let sent = push.put(&epoch, chunk).header("Content-Encoding", coding);
                assert_eq!(served.send(sent).await.status, 201);
            }
            served.send(commit(&epoch)).await.is_recorded();
        }
        let receipts = served.get("/api/v1/projects/shop/rounds?cycle=main").await.json();
        assert_eq!(receipts["headline"]["total"], 60);
    })
    .await;
}

#[tokio::test]
async fn other_bytes_are_refused() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let epoch = begun(&served, &push).await;
        let body = push.chunks[1].clone();
        // Damaged on its way; the bytes of another chunk; the same outcomes written otherwise.
        let damaged = put(&epoch, 1, body.clone()).replace_header("Content-Digest", &digest(b"other"));
        served.send(damaged).await.is_problem("digest-mismatch", &["as it travels"]);
        served.send(put(&epoch, 0, body.clone())).await.is_problem("digest-mismatch", &["chunk 0", "SHA-256"]);
        let spaced = [&body[..], b" "].concat();
        served.send(put(&epoch, 1, spaced.clone())).await.is_problem("digest-mismatch", &["chunk 1"]);
        served.send(put(&epoch, 4, body.clone())).await.is_problem("chunk-out-of-range", &["4 chunks", "from 0"]);
        served.send(push.put(&epoch, 1)).await;
        served.send(put(&epoch, 1, spaced)).await.is_problem("digest-mismatch", &[]);
        assert_eq!(served.send(push.put(&epoch, 1)).await.header("idempotent-replayed"), Some("true"));
        served.send(commit(&epoch)).await.is_problem("incomplete", &["[[0,0],[2,3]]"]);
    })
    .await;
}

#[tokio::test]
async fn chunks_that_break_the_promise() {
    on_every_engine(async |served: Served| {
        // Items of chunk 1 in chunk 0, as the manifest itself says; and one outcome less than it says.
        let mut push = sixty(&[7]);
        push.chunks.swap(0, 1);
        let few = json!({ "tallyonce": 1, "outcomes": [] }).to_string().into_bytes();
        push.chunks[2] = few;
        for at in 0..3 {
            push.manifest["chunks"][at][0] = hex(&push.chunks[at]).into();
        }
        let epoch = begun(&served, &push).await;
        for chunk in [0, 2] {
            let answer = served.send(push.put(&epoch, chunk)).await;
            answer.is_problem("manifest-malformed", &[&format!("Chunk {chunk}"), "Nothing was staged"]);
        }
        served.send(commit(&epoch)).await.is_problem("incomplete", &["[[0,3]]"]);
    })
    .await;
}

#[tokio::test]
async fn requests_that_cannot_be_read() {
    let served = standard().await;
    let push = sixty(&[7]);
    let epoch = begun(&served, &push).await;
    let mut bare = push.put(&epoch, 0);
    bare.headers.clear();
    served.send(bare.clone()).await.is_problem("parameter-malformed", &["content-digest", "missing"]);
    let other = bare.clone().header("Content-Digest", "md5=:AAAA:");
    served.send(other).await.is_problem("parameter-malformed", &["content-digest", "missing"]);
    let broken = bare.header("Content-Digest", "sha-256=abc");
    served.send(broken).await.is_problem("parameter-malformed", &["content-digest"]);
    for body in ["", "{", "[]", "{\"tallyonce\":1}", "{\"tallyonce\":1,\"outcomes\":[],\"files\":[]}"] {
        served.send(put(&epoch, 0, body)).await.is_problem("report-unreadable", &["JSON of a chunk"]);
    }
    let version = "{\"tallyonce\":2,\"outcomes\":[]}";
    served.send(put(&epoch, 0, version)).await.is_problem("report-unreadable", &["version 2"]);
    let outcome = json!({ "item": { "name": "a" }, "status": "passed" });
    let twice = json!({ "tallyonce": 1, "outcomes": [outcome, outcome] }).to_string();
    served.send(put(&epoch, 0, twice)).await.is_problem("report-unreadable", &["1 items"]);
    let long = "x".repeat(domain::limits::TEXT_BYTES_MAX + 1);
    let long = json!({ "item": { "name": "a" }, "status": "passed", "message": long });
    let long = json!({ "tallyonce": 1, "outcomes": [long] }).to_string();
    served.send(put(&epoch, 0, long)).await.is_problem("too-large", &["octets of a message of a"]);
    served.send(push.put(&epoch, 0).header("Content-Encoding", "br")).await.is_problem("unsupported-media", &[]);
    let coded = push.put(&epoch, 0).header("Content-Encoding", "gzip");
    served.send(coded).await.is_problem("report-unreadable", &["Content-Encoding"]);
    let mut with_query = push.put(&epoch, 0);
    with_query.path += "?run=1";
    served.send(with_query).await.is_problem("parameter-malformed", &["run"]);
    let foreign = push.put(&epoch, 0).header("Origin", "https://evil.example");
    served.send(foreign).await.is_problem("foreign-origin", &[]);
    for (path, word) in [
        (epoch.replace("epochs/1", "epochs/one"), "epoch"),
        (epoch.replace("epochs/1", "epochs/-1"), "epoch"),
        (epoch.replace("/pushes/", "/pushes/z"), "push"),
    ] {
        served.send(push.put(&path, 0)).await.is_problem("parameter-malformed", &[word]);
        served.send(commit(&path)).await.is_problem("parameter-malformed", &[word]);
        served.send(cancel(&path)).await.is_problem("parameter-malformed", &[word]);
    }
    let mut number = push.put(&epoch, 0);
    number.path = number.path.replace("chunks/0", "chunks/x");
    served.send(number).await.is_problem("parameter-malformed", &["n: "]);
    served.send(Request::post(format!("{epoch}/chunks/0"), "")).await.is_problem("method-not-allowed", &[]);
    served.send(commit(&epoch)).await.is_problem("incomplete", &["[[0,3]]"]);
}

#[tokio::test]
async fn a_chunk_that_stops_arriving() {
    let soon = std::time::Duration::from_millis(50);
    let served = Served::start(memory(), BodyLimits { body_idle_time: soon, ..BodyLimits::default() }).await;
    let push = sixty(&[7]);
    let epoch = begun(&served, &push).await;
    let mut cut_off = push.put(&epoch, 0).header("Content-Length", "100000");
    cut_off.body.truncate(20);
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(&cut_off.bytes()).await.unwrap();
    read_answer(&mut stream).await.is_problem("body-incomplete", &["send it again"]);
    served.send(commit(&epoch)).await.is_problem("incomplete", &["[[0,3]]"]);
}

#[tokio::test]
async fn a_chunk_beyond_the_bound_hears_the_bound() {
    let served = Served::start(memory(), BodyLimits { body_bytes: 3000, ..BodyLimits::default() }).await;
    let push = cut(outcomes(0..60, &[]), 0);
    let epoch = begun(&served, &push).await;
    let limit = "max-chunk=3000, max-chunks=1024, max-size=3072000, idle=30, staging-age=86400";
    let answer = served.send(push.put(&epoch, 0)).await;
    answer.is_problem("too-large", &["3000 bytes", "smaller chunks"]);
    assert_eq!(answer.header("push-limit"), Some(limit));
    let whole = served.send(push.one_shot("k", "")).await;
    whole.is_problem("too-large", &["staged-pushes", "--shard"]);
    assert_eq!(whole.header("push-limit"), Some(limit));
    // Cut smaller, under the same key, by the same process.
    let smaller = sixty(&[]);
    let taken = served.send(smaller.begin("k", "").header("Push-Attempt", "1")).await;
    taken.is_problem("push-in-progress", &[]);
    served.send(cancel(&epoch)).await;
    smaller.deliver(&served, smaller.begin("k", "")).await.is_recorded();
}

#[tokio::test]
async fn a_chunk_of_nothing_known() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let nowhere = format!("/api/v1/projects/shop/pushes/{}/epochs/1", "0".repeat(32));
        served.send(push.put(&nowhere, 0)).await.is_problem("unknown-push", &["Begin again"]);
        served.send(commit(&nowhere)).await.is_problem("unknown-push", &["Begin again"]);
        served.send(cancel(&nowhere)).await.is_problem("unknown-push", &["Begin again"]);
        let epoch = begun(&served, &push).await;
        let later = epoch.replace("epochs/1", "epochs/2");
        served.send(push.put(&later, 0)).await.is_problem("unknown-push", &[]);
        served.send(commit(&later)).await.is_problem("unknown-push", &[]);
        let elsewhere = epoch.replace("/shop/", "/till/");
        served.send(push.put(&elsewhere, 0)).await.is_problem("unknown-push", &[]);
        served.send(cancel(&elsewhere)).await.is_problem("unknown-push", &[]);
        served.send(push.put(&epoch, 0)).await;
    })
    .await;
}
