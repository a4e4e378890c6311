//! Real clients: curl as the design shows it, and our own HTTP target, whose headers both ends must read alike.

use std::net::SocketAddr;
use std::process::{Command, Output};
use std::sync::{Arc, Once};

use delivery::staged::{Begun, Stage as _};
use delivery::{
    Clock as _, Destination, Handed, HttpSettings, HttpUrl, Parcel, Scratch, SystemClock, TallyonceTarget, Target as _,
    Try,
};
use domain::protocol::DifferenceClass;
use domain::{Delivery, NextTry, Outcomes, ProblemCode, Push, Status};

use crate::local::push as made;
use crate::served::{JUNIT, Served, on_every_engine, standard};
use crate::staging::outcomes;

/// Runs curl; `None` (and said so) where there is none.
async fn curl(arguments: Vec<String>) -> Option<Output> {
    let run = move || Command::new("curl").args(["--silent", "--show-error", "--include"]).args(arguments).output();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    if output.is_err() {
        println!("skipped: no curl");
    }
    output.ok()
}

fn arguments(address: SocketAddr, file: &str, more: &[&str]) -> Vec<String> {
    let url = format!("http://{address}/api/v1/projects/shop/pushes?cycle=main&run=42&shard=1/4");
    let plain = ["--fail-with-body", "--retry", "8", "-H", "Idempotency-Key: \"gh-run-42-shard-1\""];
    let all = plain.iter().chain(more).map(|text| (*text).to_owned());
    all.chain([file.to_owned(), url]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_is_a_correct_client() {
    let served = standard().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("junit.xml");
    // Large enough that curl asks first (Expect: 100-continue).
    std::fs::write(&path, format!("{JUNIT}{}", " ".repeat(2_000_000))).unwrap();
    let body = format!("@{}", path.display());
    let mut answers = Vec::new();
    for more in
        [vec!["--data-binary"], vec!["--data-binary"], vec!["-H", "Transfer-Encoding: chunked", "--data-binary"]]
    {
        let Some(output) = curl(arguments(served.address, &body, &more)).await else { return };
        assert!(output.status.success(), "{output:?}");
        answers.push(String::from_utf8(output.stdout).unwrap());
    }
    let Some(output) = curl(arguments(served.address, &format!("file=@{}", path.display()), &["-F"])).await else {
        return;
    };
    answers.push(String::from_utf8(output.stdout).unwrap());
    let receipt = |answer: &str| answer.rsplit("\r\n\r\n").next().unwrap().to_owned();
    assert!(!answers[0].contains("idempotent-replayed"), "{}", answers[0]);
    for answer in &answers[1..] {
        assert!(answer.contains("idempotent-replayed: true") && answer.contains("201 Created"), "{answer}");
        assert_eq!(receipt(answer), receipt(&answers[0]));
    }
}

async fn target(address: SocketAddr) -> TallyonceTarget {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| rustls::crypto::ring::default_provider().install_default().unwrap());
    let url = HttpUrl::parse(&format!("http://{address}")).unwrap();
    // Building it reads the system's certificates, which blocks.
    tokio::task::spawn_blocking(move || TallyonceTarget::new(url, &HttpSettings::new("test"))).await.unwrap().unwrap()
}

async fn deliver(target: &TallyonceTarget, push: Arc<Push>) -> Delivery<Handed> {
    let destination: &Destination = target.destination();
    let clock = SystemClock::new();
    let parcel = Parcel::pack(&push, destination, clock.utc_rfc3339()).unwrap();
    target.deliver(&parcel, &Try::new(&clock, 60_000)).await
}

/// A push with everything that travels in queries and headers, in awkward spellings.
fn awkward(status: Status, attempt: u64) -> Arc<Push> {
    let mut push = Arc::unwrap_or_clone(made(status));
    push.key = "github:acme/shop:run:1:job:e%20e:shard:2-3:variant:os=linux,x=%3D".parse().unwrap();
    push.place.round = "github:acme/shop:run:1".parse().unwrap();
    push.place.cycle = "release 2.4 + fixes & more".parse().unwrap();
    push.place.label = Some("nightly #2".parse().unwrap());
    push.place.job = Some("e e/ö".parse().unwrap());
    push.place.shard = Some("2/3".parse().unwrap());
    push.place.variant = domain::Variant::from_pairs([("os", "linux"), ("x", "=")]).unwrap();
    push.origin.commit = Some("c0ffee".parse().unwrap());
    push.origin.workflow = Some("CI / tests.yml".parse().unwrap());
    push.origin.run_counter = Some(7);
    push.origin.run_url = Some("https://example.com/runs/1?a=b&c=d#e".to_owned());
    push.sender.ordinal = Some(domain::Ordinal(attempt));
    push.sender.executor = Some("Läufer 1, \"blue\"".parse().unwrap());
    push.sender.incarnation = Some(domain::Incarnation(u128::from(attempt)));
    push.outside_ci = false;
    push.expect = Some(3);
    push.files = vec!["out/a b.xml".to_owned()];
    Arc::new(push)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_client_and_this_server_read_each_other() {
    let served = standard().await;
    let target = target(served.address).await;
    let Delivery::Recorded(first) = deliver(&target, awkward(Status::Failed, 1)).await else { panic!("not recorded") };
    assert!(!first.replayed && first.class.is_none());
    let push = awkward(Status::Failed, 1);
    assert_eq!(first.receipt.job, push.place.job);
    assert_eq!(first.receipt.cycle, push.place.cycle);
    assert_eq!(first.receipt.variant, push.place.variant);
    let Delivery::Recorded(again) = deliver(&target, awkward(Status::Failed, 1)).await else { panic!("not recorded") };
    assert_eq!((again.replayed, again.class), (true, Some(DifferenceClass::None)));
    assert_eq!(again.receipt_bytes, first.receipt_bytes);
    let Delivery::Recorded(higher) = deliver(&target, awkward(Status::Passed, 2)).await else { panic!("not recorded") };
    assert_eq!((higher.class, higher.current_revision), (Some(DifferenceClass::Semantic), 2));
    assert_eq!((higher.current_counts.passed, higher.current_counts.flaky), (1, 1));

    let report = served.store.push(&push.place.project, first.receipt.push).await.unwrap().unwrap();
    assert_eq!(report.log[0].executor, push.sender.executor);
    assert_eq!(report.log[0].incarnation, push.sender.incarnation);
    let mut moved = Arc::unwrap_or_clone(awkward(Status::Passed, 3));
    moved.place.job = None;
    let Delivery::Rejected(problem) = deliver(&target, Arc::new(moved)).await else { panic!("not rejected") };
    assert_eq!((problem.code, problem.fields[0].field.as_str()), (ProblemCode::KeyReused, "job"));
}

/// A push of so many outcomes, in at least so many chunks.
fn chunked(destination: &Destination, number: u32, chunks: usize) -> Parcel {
    let outcomes = Outcomes::from_unordered(outcomes(0..number, &[3])).unwrap();
    let content = outcomes.digests().id();
    let push = Push { outcomes, content, ..Arc::unwrap_or_clone(made(Status::Passed)) };
    let mut parcel = Parcel::pack(&push, destination, SystemClock::new().utc_rfc3339()).unwrap();
    while parcel.header.chunks.len() < chunks {
        parcel = parcel.smaller(Scratch::Memory).unwrap().unwrap();
    }
    parcel
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_client_stages_here() {
    on_every_engine(async |served: Served| {
        let target = target(served.address).await;
        let parcel = chunked(target.destination(), 500, 8);
        // Another process has begun and put one chunk before it was evicted.
        let Ok(Begun::Staging { at, .. }) = target.begin(&parcel, true).await else { panic!("not begun") };
        target.put(&parcel, at, 2).await.unwrap();
        let clock = SystemClock::new();
        let attempt = Try::new(&clock, 60_000);
        let Delivery::Recorded(first) = target.deliver(&parcel, &attempt).await else { panic!("not recorded") };
        assert!(!first.replayed && attempt.staged().resumed);
        assert_eq!(attempt.staged().sent, attempt.staged().chunks - 1, "only what was missing was sent");
        assert_eq!((first.current_counts.total, first.current_counts.failed), (500, 1));
        for again in [chunked(target.destination(), 500, 16), parcel] {
            let again = target.deliver(&again, &Try::new(&clock, 60_000)).await;
            let Delivery::Recorded(again) = again else { panic!("not recorded") };
            assert_eq!((again.replayed, again.receipt_bytes), (true, first.receipt_bytes.clone()));
        }
        assert!(served.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_client_hears_that_a_chunk_is_too_large_and_gives_its_epoch_up() {
    let limits = server::BodyLimits { body_bytes: 1500, ..server::BodyLimits::default() };
    let served = Served::start(crate::served::memory(), limits).await;
    let target = target(served.address).await;
    let clock = SystemClock::new();
    let large = target.deliver(&chunked(target.destination(), 1500, 2), &Try::new(&clock, 60_000)).await;
    let Delivery::NotSent(cause) = large else { panic!("it was taken") };
    assert_eq!(cause.next, NextTry::Smaller, "{}", cause.what);
    // That one has given its epoch up: another content under its key need not wait for it.
    let other = target.deliver(&chunked(target.destination(), 400, 8), &Try::new(&clock, 60_000)).await;
    assert!(matches!(other, Delivery::Recorded(_)), "it waits for what nobody goes on with");
}
