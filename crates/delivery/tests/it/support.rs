//! Pushes to deliver, a clock that never sleeps, and a server that misbehaves on request.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use delivery::{Clock, Destination, Handed, Header, HttpUrl, Parcel, Target, Try};
use domain::Delivery;
use domain::digest::Digest;
use domain::id::{CycleName, Executor, Incarnation, Ordinal, ProjectId, RoundId, RunId, ShardRef, Variant};
use domain::item::ItemName;
use domain::key::PushKey;
use domain::outcome::{DurationUs, Outcome, Status};
use domain::push::{OnDifference, OrdinalScope, Origin, Outcomes, Place, Push, PushId, Sender};
use domain::receipt::{Receipt, ReceiptResult};
use domain::summary::ReportSummary;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

pub(crate) const KEY: &str = "github:acme/shop:run:42:job:e2e:shard:3-8";

pub(crate) fn outcome(name: &str, status: Status) -> Outcome {
    Outcome {
        item: ItemName::new(["suite"], Some("Class"), name),
        status,
        duration_us: Some(DurationUs(1500)),
        message: None,
        attempts: Vec::new(),
        external_ids: Vec::new(),
    }
}

pub(crate) fn push_of(outcomes: Vec<Outcome>) -> Push {
    let outcomes = Outcomes::from_unordered(outcomes).unwrap();
    let content = outcomes.digests().id();
    Push {
        key: PushKey::parse(KEY).unwrap(),
        place: Place {
            project: ProjectId::parse("shop").unwrap(),
            cycle: CycleName::parse("release 2.4").unwrap(),
            round: RoundId::parse("github:acme/shop:run:42").unwrap(),
            run: RunId::parse("42").unwrap(),
            label: None,
            job: Some("e2e".parse().unwrap()),
            shard: Some(ShardRef::new(3, Some(8)).unwrap()),
            variant: Variant::from_pairs([("os", "linux"), ("browser", "fire=fox,nightly")]).unwrap(),
        },
        origin: Origin { commit: Some("0a1b2c".parse().unwrap()), ..Origin::default() },
        sender: Sender {
            ordinal: Some(Ordinal(2)),
            ordinal_scope: OrdinalScope::Key,
            executor: Some(Executor::parse("Läufer 7/a").unwrap()),
            incarnation: Some(Incarnation(7)),
        },
        on_difference: OnDifference::Auto,
        outside_ci: false,
        expect: Some(8),
        files: vec!["junit.xml".to_owned()],
        report: ReportSummary { files: 1, outcomes: outcomes.len() as u64, ..ReportSummary::default() },
        incomplete: false,
        outcomes,
        content,
    }
}

pub(crate) fn push() -> Push {
    push_of(vec![outcome("works", Status::Passed), outcome("breaks", Status::Failed)])
}

pub(crate) fn destination() -> Destination {
    Destination::parse("https://tests.example.com").unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "every caller has just made it")]
pub(crate) fn pack(push: Push) -> Parcel {
    Parcel::pack(&push, &destination(), "2026-11-29T12:00:00.000Z".to_owned()).unwrap()
}

/// One try, without a loop around it.
pub(crate) async fn hand(target: &dyn Target, parcel: &Parcel) -> Delivery<Handed> {
    let clock = FakeClock::default();
    target.deliver(parcel, &Try::new(&clock, 60_000)).await
}

pub(crate) fn receipt(header: &Header) -> Receipt {
    Receipt {
        receipt: Receipt::FORMAT,
        result: ReceiptResult::Recorded,
        project: header.place.project.clone(),
        cycle: header.place.cycle.clone(),
        round: header.place.round.clone(),
        job: header.place.job.clone(),
        shard: header.place.shard,
        variant: header.place.variant.clone(),
        key: header.key.clone(),
        push: PushId::of(&header.place.project, &header.key),
        revision: 1,
        recorded_at: "2026-11-29T12:00:01.000Z".to_owned(),
        counts: header.counts,
        report: header.report,
        incomplete: false,
        late: false,
        content: Digest::of(b"content"),
        difference: None,
    }
}

/// Time that passes only when somebody waits.
#[derive(Default)]
pub(crate) struct FakeClock(AtomicU64);

impl FakeClock {
    pub(crate) fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for FakeClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn unix_ms(&self) -> u64 {
        1_764_417_600_000 + self.now_ms()
    }

    async fn sleep(&self, ms: u64) {
        self.pass(ms);
    }
}

/// What the server does with one connection, once it has read the request.
pub(crate) enum Play {
    /// Answers these bytes and closes.
    Answer(Vec<u8>),
    /// Answers these bytes as soon as the head is there, and never reads the body.
    Early(Vec<u8>),
    /// Resets the connection without an answer.
    Reset,
    /// Closes it in good order without an answer.
    Close,
    /// Says nothing, and keeps it open.
    Stall,
}

/// A request as it came.
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (n, value) = line.split_once(':')?;
            n.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// Serves one play a connection, in order; then refuses connections.
pub(crate) async fn server(plays: Vec<Play>) -> (HttpUrl, mpsc::Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = HttpUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (sender, seen) = mpsc::channel(100);
    tokio::spawn(async move {
        let mut stalled = Vec::new();
        for play in plays {
            let (mut stream, _) = listener.accept().await.unwrap();
            if let Play::Early(bytes) = play {
                read_head(&mut stream, &mut Vec::new()).await;
                stream.write_all(&bytes).await.unwrap();
                stalled.push(stream);
                continue;
            }
            sender.send(read_request(&mut stream).await).await.unwrap();
            match play {
                Play::Answer(bytes) => {
                    stream.write_all(&bytes).await.unwrap();
                    stream.shutdown().await.unwrap();
                }
                Play::Reset => stream.set_zero_linger().unwrap(),
                Play::Close => {}
                Play::Early(_) | Play::Stall => stalled.push(stream),
            }
        }
        drop(listener);
        if !stalled.is_empty() {
            std::future::pending::<()>().await;
        }
    });
    (url, seen)
}

pub(crate) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Seen {
    let mut bytes = Vec::new();
    let head_end = read_head(stream, &mut bytes).await;
    let mut seen = Seen { head: String::from_utf8(bytes[..head_end].to_vec()).unwrap(), body: Vec::new() };
    let length: usize = seen.header("content-length").map_or(0, |l| l.parse().unwrap());
    while bytes.len() < head_end + length {
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "the client closed within its body");
    }
    seen.body = bytes.split_off(head_end);
    seen
}

/// Reads until the head is there, and says where it ends.
async fn read_head(stream: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> usize {
    loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            return at + 4;
        }
        assert!(stream.read_buf(bytes).await.unwrap() > 0, "the client closed within its head");
    }
}

/// An answer whose length is right unless the headers give another one.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Play {
    let mut text = format!("HTTP/1.1 {status}\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "content-length") {
        let _ = write!(text, "content-length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    Play::Answer(bytes)
}

/// The answer of an honest server that records the push.
pub(crate) fn recorded(header: &Header) -> Play {
    let bytes = serde_json::to_vec(&receipt(header)).unwrap();
    answer("201 Created", &[("etag", &Receipt::etag(1, &bytes))], &bytes)
}
