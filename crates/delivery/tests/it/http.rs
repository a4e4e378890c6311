//! One request over a real socket, and each way in which its answer goes wrong.

use std::sync::Once;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use delivery::{Handed, HttpSettings, HttpUrl, Parcel, ProxySettings, Secret, SettingsError, TallyonceTarget};
use domain::{Delivery, NextTry, Outcome, Problem, ProblemCode, outcome::Status};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use crate::staged_http::staging;
use crate::support::{KEY, Play, answer, hand, outcome, pack, push, push_of, recorded, server};

pub(crate) fn settings() -> HttpSettings {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        rustls::crypto::ring::default_provider().install_default().unwrap();
    });
    HttpSettings { answer_timeout_ms: 5_000, connect_timeout_ms: 2_000, ..HttpSettings::new("tallyonce/test") }
}

async fn deliver(play: Play) -> Delivery<Handed> {
    let (url, _seen) = server(vec![play]).await;
    hand(&TallyonceTarget::new(url, &settings()).unwrap(), &pack(push())).await
}

#[track_caller]
fn possibly(delivery: &Delivery<Handed>, words: &str) {
    let Delivery::PossiblyWritten(cause) = delivery else { panic!("{delivery:?}") };
    assert!(cause.what.contains(words), "{}", cause.what);
}

#[track_caller]
fn not_sent(delivery: &Delivery<Handed>, words: &str) {
    let Delivery::NotSent(cause) = delivery else { panic!("{delivery:?}") };
    assert!(cause.what.contains(words), "{}", cause.what);
}

#[tokio::test]
async fn a_push_goes_out_as_the_protocol_wants_it() {
    let parcel = pack(push());
    let (url, mut seen) = server(vec![recorded(&parcel.header)]).await;
    let base = HttpUrl::parse(&format!("{url}/base/")).unwrap();
    let token = Some(Secret::new("tly_secret"));
    let target = TallyonceTarget::new(base, &HttpSettings { token, ..settings() }).unwrap();
    let Delivery::Recorded(handed) = hand(&target, &parcel).await else { panic!("not recorded") };
    assert_eq!(handed.receipt.key.as_str(), KEY);

    let seen = seen.recv().await.unwrap();
    let line = seen.head.lines().next().unwrap();
    let expected = "POST /base/api/v1/projects/shop/pushes?cycle=release%202.4&run=42\
        &round-id=github%3Aacme%2Fshop%3Arun%3A42&job=e2e&shard=3%2F8\
        &variant=browser%3Dfire%3Dfox%2Cnightly&variant=os%3Dlinux&attempt-scope=key\
        &on-difference=auto&expect=8&commit=0a1b2c HTTP/1.1";
    assert_eq!(line, expected);
    let quoted = format!("\"{KEY}\"");
    let digest = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(&seen.body)));
    let headers = [
        ("idempotency-key", quoted.as_str()),
        ("push-attempt", "2"),
        ("push-executor", "L%C3%A4ufer%207%2Fa"),
        ("push-incarnation", "00000000000000000000000000000007"),
        ("content-digest", digest.as_str()),
        ("content-encoding", "zstd"),
        ("content-type", "application/vnd.tallyonce.push+json"),
        ("authorization", "Bearer tly_secret"),
        ("user-agent", "tallyonce/test"),
        ("accept-encoding", "identity"),
    ];
    for (name, value) in headers {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(seen.body, parcel.whole_body().unwrap());
}

#[tokio::test]
async fn an_answer_cut_short_may_have_been_written() {
    let parcel = pack(push());
    let Play::Answer(whole) = recorded(&parcel.header) else { unreachable!() };
    for cut in [whole.len() - 1, whole.len() - 200, 30, 1] {
        let (url, _seen) = server(vec![Play::Answer(whole[..cut].to_vec())]).await;
        let target = TallyonceTarget::new(url, &settings()).unwrap();
        possibly(&hand(&target, &parcel).await, "");
    }
}

#[tokio::test]
async fn silence_of_every_kind_may_have_been_written() {
    possibly(&deliver(Play::Reset).await, "");
    possibly(&deliver(Play::Close).await, "");
    possibly(&deliver(Play::Answer(b"220 mail.example.com ESMTP\r\n".to_vec())).await, "");
    possibly(&deliver(answer("504 Gateway Timeout", &[], b"<html>too slow</html>")).await, "too slow");
    let (url, _seen) = server(vec![Play::Stall]).await;
    let impatient = HttpSettings { answer_timeout_ms: 80, answer_timeout_per_mib_ms: 0, ..settings() };
    possibly(&hand(&TallyonceTarget::new(url, &impatient).unwrap(), &pack(push())).await, "no answer in time");
}

#[tokio::test]
async fn a_connection_that_never_stood_was_not_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = HttpUrl::parse(&format!("http://{closed}")).unwrap();
    not_sent(&hand(&TallyonceTarget::new(url, &settings()).unwrap(), &pack(push())).await, "onnect");

    let url = HttpUrl::parse("http://no-such-host.invalid").unwrap();
    not_sent(&hand(&TallyonceTarget::new(url, &settings()).unwrap(), &pack(push())).await, "");
}

#[tokio::test]
async fn tls_with_one_who_speaks_none_was_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = HttpUrl::parse(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    not_sent(&hand(&TallyonceTarget::new(url, &settings()).unwrap(), &pack(push())).await, "");
}

#[tokio::test]
async fn a_busy_server_says_when_to_come_back() {
    let problem = serde_json::to_vec(&Problem::new(ProblemCode::Overloaded, "try later")).unwrap();
    let dates = [("date", "Sun, 06 Nov 1994 08:49:00 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")];
    let delivery = deliver(answer("503 Service Unavailable", &dates, &problem)).await;
    not_sent(&delivery, "try later");
    let Delivery::NotSent(cause) = delivery else { unreachable!() };
    assert_eq!(cause.retry_after_ms, Some(37_000));
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_wrong_address_is_named() {
    let Delivery::Rejected(problem) = deliver(answer("302 Found", &[("location", "/login")], b"")).await else {
        panic!("not rejected")
    };
    assert!(problem.detail.contains("redirects to /login"), "{}", problem.detail);
    let Delivery::Rejected(problem) = deliver(answer("404 Not Found", &[], b"<html>nginx</html>")).await else {
        panic!("not rejected")
    };
    assert!(problem.detail.contains("/api/v1/projects/shop/pushes answered with status 404: <html>nginx</html>"));
    assert!(!problem.detail.contains("cycle="), "{}", problem.detail);
}

#[tokio::test]
async fn a_proxy_is_used_only_where_it_is_given() {
    let parcel = pack(push());
    let (proxy, mut seen) = server(vec![recorded(&parcel.header)]).await;
    let url = HttpUrl::parse("http://tests.example.com:8080").unwrap();
    let through = |no_proxy: Option<&str>| HttpSettings {
        proxy: ProxySettings {
            https: None,
            http: Some(Secret::new(&proxy.to_string().replace("http://", "http://me:hunter2@"))),
            no_proxy: no_proxy.map(str::to_owned),
        },
        ..settings()
    };
    let target = TallyonceTarget::new(url, &through(Some("example.org"))).unwrap();
    assert!(matches!(hand(&target, &parcel).await, Delivery::Recorded(_)));
    let seen = seen.recv().await.unwrap();
    assert!(seen.head.starts_with("POST http://tests.example.com:8080/api/v1/"), "{}", seen.head);
    assert_eq!(seen.header("proxy-authorization"), Some("Basic bWU6aHVudGVyMg=="));
    assert!(!format!("{:?}{target:?}", through(None)).contains("hunter2"), "{target:?}");

    // The proxy is gone: whoever goes round it gets through, to a server that stands.
    let (url, _seen) = server(vec![recorded(&parcel.header)]).await;
    let target = TallyonceTarget::new(url, &through(Some("127.0.0.1"))).unwrap();
    assert!(matches!(hand(&target, &parcel).await, Delivery::Recorded(_)));
}

#[tokio::test]
async fn a_proxy_that_refuses_the_tunnel_sent_nothing() {
    for status in ["407 Proxy Authentication Required", "403 Forbidden", "502 Bad Gateway"] {
        let (proxy, _seen) = server(vec![answer(status, &[], b"<html>no</html>")]).await;
        let url = HttpUrl::parse("https://tests.example.com").unwrap();
        let address = proxy.to_string().replace("http://", "http://me:hunter2@");
        let proxy = ProxySettings { https: Some(Secret::new(&address)), ..ProxySettings::default() };
        let token = Some(Secret::new("hunter2"));
        let target = TallyonceTarget::new(url, &HttpSettings { proxy, token, ..settings() }).unwrap();
        let delivery = hand(&target, &pack(push())).await;
        not_sent(&delivery, "");
        assert!(!format!("{target:?}{delivery:?}").contains("hunter2"), "{target:?}{delivery:?}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_without_showing_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        Some(folder.path().join(name))
    };
    let url = || HttpUrl::parse("https://tests.example.com").unwrap();
    let refused = |settings: HttpSettings| TallyonceTarget::new(url(), &settings).unwrap_err();
    let missing = Some(folder.path().join("none.pem"));
    assert!(matches!(refused(HttpSettings { ca_file: missing, ..settings() }), SettingsError::File { .. }));
    let empty = path("empty.pem", "nothing here\n");
    assert!(matches!(refused(HttpSettings { ca_file: empty.clone(), ..settings() }), SettingsError::Pem { .. }));
    assert!(matches!(refused(HttpSettings { client_cert: empty, ..settings() }), SettingsError::Pem { .. }));
    for token in ["hunter2\nevil: yes", "", "hünter2", "hunter 2"] {
        let error = refused(HttpSettings { token: Some(Secret::new(token)), ..settings() });
        assert!(matches!(error, SettingsError::Token), "{error}");
        assert!(!error.to_string().contains("hunter2"));
    }
    let proxy = ProxySettings { https: Some(Secret::new("http://me:hunter2@[")), ..ProxySettings::default() };
    let error = refused(HttpSettings { proxy, ..settings() });
    assert!(matches!(error, SettingsError::Proxy { .. }) && !format!("{error:?}{error}").contains("hunter2"));
}

#[tokio::test]
async fn a_large_body_gets_more_time() {
    // 1 ms for the answer, 3 s more for the first begun mebibyte: the stalling server is given up after the latter.
    let (url, _seen) = server(vec![Play::Stall]).await;
    let slow = HttpSettings { answer_timeout_ms: 1, answer_timeout_per_mib_ms: 300, ..settings() };
    let target = TallyonceTarget::new(url, &slow).unwrap();
    let parcel: Parcel = pack(push());
    let quick = tokio::time::timeout(std::time::Duration::from_millis(150), hand(&target, &parcel)).await;
    assert!(quick.is_err(), "given up before the body's own time had passed");
}

#[tokio::test]
async fn an_answer_before_the_whole_body_was_read_is_heard() {
    let mut noise = vec![0; 7_000_000];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    let message: String = noise.iter().map(|byte| char::from(b' ' + byte % 95)).collect();
    let large = push_of(vec![Outcome { message: Some(message), ..outcome("breaks", Status::Failed) }]);
    let parcel = pack(large);
    assert!(parcel.header.chunks[0].bytes > 5_000_000, "it must not fit into the sockets' buffers");
    let problem = serde_json::to_vec(&Problem::new(ProblemCode::TooLarge, "at most 32 MiB")).unwrap();
    let Play::Answer(bytes) = answer("413 Content Too Large", &[], &problem) else { unreachable!() };
    let staging = staging(&parcel, &[[0, 0]]);
    let (url, _seen) = server(vec![answer("201 Created", &[], &staging), Play::Early(bytes)]).await;
    let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
    let Delivery::NotSent(cause) = delivery else { panic!("{delivery:?}") };
    assert_eq!(cause.next, NextTry::Smaller, "{}", cause.what);
}
