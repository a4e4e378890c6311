//! Bounds: too large, too steep, too slow, too many; always said, and always with nothing written.

use std::time::Duration;

use server::{BodyLimits, ForwardTerms, ServeConfig, ServeError, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::http::{Request, read_answer};
use crate::replay::{multipart, zstd};
use crate::served::{JUNIT, Served, memory, push, standard};

async fn with(change: impl FnOnce(&mut BodyLimits)) -> Served {
    let mut limits = BodyLimits::default();
    change(&mut limits);
    Served::start(memory(), limits).await
}

fn padded(bytes: usize) -> String {
    format!("{JUNIT}{}", " ".repeat(bytes - JUNIT.len()))
}

#[tokio::test]
async fn a_body_at_its_bound_and_beyond() {
    let served = with(|limits| limits.body_bytes = 1000).await;
    served.send(push("a", "", padded(1000))).await.is_recorded();
    served.send(push("b", "", padded(1001))).await.is_problem("too-large", &["1000 bytes", "--shard"]);
    let mut chunked = push("b", "", "").header("Transfer-Encoding", "chunked");
    chunked.body = format!("3e9\r\n{}\r\n0\r\n\r\n", padded(1001)).into_bytes();
    served.send(chunked).await.is_problem("too-large", &["1000 bytes"]);
}

#[tokio::test]
async fn a_body_far_beyond_a_small_bound_still_hears_why() {
    let served = with(|limits| limits.body_bytes = 1000).await;
    served.send(push("k", "", vec![b' '; 20_000_000])).await.is_problem("too-large", &["1000 bytes"]);
}

#[tokio::test]
async fn a_client_that_asks_first_is_refused_without_sending() {
    let served = with(|limits| limits.body_bytes = 1000).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let request = push("k", "", "").header("Expect", "100-continue").header("Content-Length", "100000000");
    stream.write_all(&request.bytes()).await.unwrap();
    read_answer(&mut stream).await.is_problem("too-large", &[]);
}

#[tokio::test]
async fn a_large_body_under_a_missing_key_still_hears_why() {
    let served = standard().await;
    let mut request = push("k", "", vec![b' '; 20_000_000]);
    request.headers.retain(|(name, _)| name != "Idempotency-Key");
    served.send(request).await.is_problem("key-missing", &[]);
}

#[tokio::test]
async fn bombs() {
    let served = with(|limits| limits.inflated_bytes = 10_000_000).await;
    let xml = format!("<testsuite name=\"{}\"/>", "x".repeat(20_000_000));
    for body in [xml.clone(), xml.replace("<testsuite name=", "{\"tallyonce\":1,\"files\":[").replace("/>", "]}")] {
        let bomb = push("k", "", zstd(body.as_bytes())).header("Content-Encoding", "zstd");
        served.send(bomb).await.is_problem("too-large", &["inflates"]);
    }
    let mut files = multipart("k", &[("a.xml", &xml)]).header("Content-Encoding", "zstd");
    files.body = zstd(&files.body);
    served.send(files).await.is_problem("too-large", &["inflates"]);
    let nested = format!("{}{}", "<testsuite>".repeat(100_000), "</testsuite>".repeat(100_000));
    let answer = served.send(push("k", "", nested)).await;
    assert!(matches!(answer.status, 400 | 413), "{}", answer.text());
}

#[tokio::test]
async fn a_body_that_stops_or_takes_for_ever_is_not_waited_for() {
    let soon = Duration::from_millis(50);
    let idle = with(|limits| limits.body_idle_time = soon).await;
    let whole = with(|limits| limits.body_time = soon).await;
    for served in [idle, whole] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let request = push("k", "", &JUNIT[..50]).header("Content-Length", "500");
        stream.write_all(&request.bytes()).await.unwrap();
        read_answer(&mut stream).await.is_problem("body-incomplete", &["send it again with the same key"]);
        assert!(served.store.projects().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn health_is_answered_under_load() {
    let served = with(|limits| limits.requests = 0).await;
    assert_eq!(served.get("/healthz").await.status, 200);
    assert_eq!(served.get("/readyz").await.status, 200);
}

#[tokio::test]
async fn a_head_that_stops_is_closed() {
    let served = with(|limits| limits.header_time = Duration::from_millis(50)).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost:").await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn too_many_requests_are_shed() {
    let served = with(|limits| limits.requests = 0).await;
    served.send(push("k", "", JUNIT)).await.is_problem("overloaded", &["Nothing of this request was recorded"]);
    let served = with(|limits| limits.buffered_bytes = 100).await;
    served.send(push("k", "", JUNIT)).await.is_problem("overloaded", &["Nothing was recorded"]);
    served.send(push("k", "", "<testsuite name=\"a\"/>")).await.is_recorded();
}

#[tokio::test]
async fn bytes_that_were_held_are_given_back() {
    let served = with(|limits| limits.buffered_bytes = 2 * JUNIT.len()).await;
    let first = served.send(push("k", "", JUNIT)).await;
    first.is_recorded();
    for _ in 0..20 {
        served.send(push("k", "", JUNIT)).await.is_replay_of(&first);
    }
}

#[tokio::test]
async fn only_loopback_without_being_told() {
    let listen = "0.0.0.0:0".parse().unwrap();
    let config = |open| ServeConfig {
        listen,
        store: memory(),
        open,
        limits: BodyLimits::default(),
        forwards: Vec::new(),
        forward_terms: ForwardTerms::default(),
    };
    let refused = serve(config(false), |_| panic!("it must not listen"), async {}).await;
    let Err(error @ ServeError::Exposed { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("--open"), "{error}");
    serve(config(true), |_| {}, async {}).await.unwrap();
}

#[tokio::test]
async fn stopping_finishes_what_was_begun() {
    let served = standard().await;
    let address = served.address;
    let request = push("k", "", JUNIT).bytes();
    let (head, tail) = request.split_at(request.len() - 10);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head).await.unwrap();
    // The request is begun once another one, sent later, has been answered.
    assert_eq!(Request::get("/healthz").send(address).await.status, 200);
    let stopping = tokio::spawn(served.stop());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write_all(tail).await.unwrap();
    read_answer(&mut stream).await.is_recorded();
    stopping.await.unwrap();
}
