//! Pushes in chunks over a socket: the requests as the protocol wants them, and what each answer comes to.

use delivery::{Handed, Parcel, TallyonceTarget};
use domain::wire::{ChunkAnswer, ManifestBody, StagingAnswer};
use domain::{Delivery, Epoch, Problem, ProblemCode, PushId};

use crate::http::settings;
use crate::parcel::many;
use crate::staged::four;
use crate::support::{Play, answer, hand, pack, push_of, recorded, server};

/// The answer to a begin of this parcel.
pub(crate) fn staging(parcel: &Parcel, missing: &[[u32; 2]]) -> Vec<u8> {
    let answer = StagingAnswer {
        push: PushId::of(&parcel.header.place.project, &parcel.header.key),
        epoch: Epoch(3),
        resumed: false,
        chunks: parcel.header.chunks.len() as u32,
        missing: missing.to_vec(),
        difference: None,
        recorded: None,
    };
    serde_json::to_vec(&answer).unwrap()
}

fn taken(parcel: &Parcel, chunk: u32) -> Vec<u8> {
    let outcomes = parcel.header.chunks[chunk as usize].outcomes;
    serde_json::to_vec(&ChunkAnswer { chunk, outcomes }).unwrap()
}

fn problem(code: ProblemCode, change: impl FnOnce(&mut Problem)) -> Play {
    let mut problem = Problem::new(code, "words");
    change(&mut problem);
    answer(&format!("{} Status", code.status()), &[], &serde_json::to_vec(&problem).unwrap())
}

#[tokio::test]
async fn the_requests_are_what_the_protocol_wants() {
    let parcel = four();
    let plays = vec![
        answer("201 Created", &[], &staging(&parcel, &[[2, 2]])),
        answer("201 Created", &[], &taken(&parcel, 2)),
        recorded(&parcel.header),
    ];
    let (url, mut seen) = server(plays).await;
    let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
    assert!(matches!(delivery, Delivery::Recorded(_)), "{delivery:?}");
    let begin = seen.recv().await.unwrap();
    let line = begin.head.lines().next().unwrap();
    assert!(line.starts_with("POST /api/v1/projects/shop/staged-pushes?cycle=release%202.4&run=42&"), "{line}");
    assert_eq!(begin.header("content-type"), Some("application/vnd.tallyonce.manifest+json"));
    assert_eq!(begin.header("push-incarnation"), Some("00000000000000000000000000000007"));
    assert!(begin.header("idempotency-key").is_some() && begin.header("content-digest").is_some());
    let manifest: ManifestBody = serde_json::from_slice(&begin.body).unwrap();
    assert_eq!((manifest.bits, manifest.chunks.len(), manifest.items.is_some()), (2, 4, true));
    let put = seen.recv().await.unwrap();
    let push = PushId::of(&parcel.header.place.project, &parcel.header.key);
    let line = format!("PUT /api/v1/projects/shop/pushes/{push}/epochs/3/chunks/2 HTTP/1.1");
    assert_eq!(put.head.lines().next(), Some(line.as_str()));
    assert_eq!(put.body, parcel.body(&parcel.header.chunks[2]).unwrap());
    assert_eq!(put.header("content-encoding"), Some("zstd"));
    assert!(put.header("content-digest").is_some());
    let commit = seen.recv().await.unwrap();
    let line = format!("POST /api/v1/projects/shop/pushes/{push}/epochs/3/commit HTTP/1.1");
    assert_eq!(commit.head.lines().next(), Some(line.as_str()));
}

#[tokio::test]
async fn answers_are_believed_only_if_they_are_whole_and_ours() {
    let parcel = four();
    let whole = staging(&parcel, &[]);
    let other = {
        let mut answer: StagingAnswer = serde_json::from_slice(&whole).unwrap();
        answer.push = PushId([9; 16]);
        serde_json::to_vec(&answer).unwrap()
    };
    let table = [
        answer("201 Created", &[], b"{}"),
        answer("201 Created", &[], &other),
        answer("200 OK", &[], &staging(&parcel, &[[0, 9]])),
        answer("200 OK", &[], b"<html>welcome</html>"),
        answer("200 OK", &[("etag", "\"r1-0\"")], b"{}"),
        Play::Reset,
        Play::Answer(b"HTTP/1.1 201 Created\r\ncontent-length: 900\r\n\r\n{}".to_vec()),
    ];
    for play in table {
        let (url, _seen) = server(vec![play]).await;
        let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
        assert!(matches!(delivery, Delivery::NotSent(_)), "{delivery:?}");
    }
    // A chunk that is answered as another one, and a receipt of another key.
    let begun = || answer("201 Created", &[], &staging(&parcel, &[[2, 2]]));
    let (url, _seen) = server(vec![begun(), answer("201 Created", &[], &taken(&parcel, 1))]).await;
    let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
    assert!(matches!(delivery, Delivery::NotSent(_)), "{delivery:?}");
    let mut header = parcel.header.clone();
    header.key = "other".parse().unwrap();
    let nothing_missing = answer("201 Created", &[], &whole);
    let (url, _seen) = server(vec![nothing_missing, recorded(&header)]).await;
    let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
    assert!(matches!(delivery, Delivery::PossiblyWritten(_)), "{delivery:?}");
}

#[tokio::test]
async fn a_begin_over_a_recorded_push_is_a_replay() {
    let parcel = four();
    let (url, mut seen) = server(vec![recorded(&parcel.header)]).await;
    let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
    assert!(matches!(delivery, Delivery::Recorded(_)), "{delivery:?}");
    assert!(seen.recv().await.is_some() && seen.recv().await.is_none(), "nothing is put");
}

#[tokio::test]
async fn a_whole_push_is_fenced_by_staging_and_waits_too() {
    let parcel = pack(push_of(many(3)));
    for (code, next) in [
        (ProblemCode::PushInProgress, domain::NextTry::Same),
        (ProblemCode::StaleAttempt, domain::NextTry::Same),
        (ProblemCode::Superseded, domain::NextTry::Anew),
    ] {
        let attached = problem(ProblemCode::UnknownPush, |_| ());
        // One whose own staging is over doesn't wait where nobody goes on.
        let waits = (code != ProblemCode::Superseded).then_some("wait=2");
        let (url, mut seen) = server(vec![problem(code, |_| ()), attached]).await;
        let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
        let Delivery::NotSent(cause) = delivery else { panic!("{delivery:?}") };
        assert_eq!(cause.next, next);
        seen.recv().await.unwrap();
        let attach = seen.recv().await.unwrap();
        let key = "github%3Aacme%2Fshop%3Arun%3A42%3Ajob%3Ae2e%3Ashard%3A3-8";
        assert!(attach.head.starts_with(&format!("GET /api/v1/projects/shop/pushes?key={key} ")), "{}", attach.head);
        assert_eq!(attach.header("prefer"), waits, "half of what an answer may take");
    }
    // What an attach tells is only whether somebody is still at it.
    let busy = |idle_ms: u64| format!("{{\"staging\":{{\"epoch\":2,\"idle_ms\":{idle_ms}}}}}").into_bytes();
    for (status, body, wait_ms) in [
        ("200 OK", busy(1_000), Some(9_000)),
        ("200 OK", busy(31_000), None),
        ("200 OK", b"{\"receipt\":{}}".to_vec(), None),
        ("500 Oh", Vec::new(), Some(9_000)),
    ] {
        let fence = serde_json::to_vec(&Problem::new(ProblemCode::PushInProgress, "words")).unwrap();
        let plays = vec![answer("409 Conflict", &[("retry-after", "9")], &fence), answer(status, &[], &body)];
        let (url, _seen) = server(plays).await;
        let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
        assert!(matches!(delivery, Delivery::NotSent(cause) if cause.retry_after_ms == wait_ms), "{status}");
    }
    // Too large for one request, whoever says it: staged.
    for play in [answer("413 Payload Too Large", &[], b"<html>nginx</html>"), problem(ProblemCode::TooLarge, |_| ())] {
        let (url, _seen) = server(vec![play]).await;
        let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
        assert!(matches!(delivery, Delivery::NotSent(cause) if cause.next == domain::NextTry::Smaller));
    }
}

type Judge = fn(&Delivery<Handed>) -> bool;

#[tokio::test]
async fn every_problem_of_a_commit_is_what_the_table_says() {
    let parcel = four();
    let begun = || answer("201 Created", &[], &staging(&parcel, &[]));
    let cases: [(ProblemCode, Judge); 8] = [
        (ProblemCode::StagingExpired, |d| matches!(d, Delivery::NotSent(c) if c.next == domain::NextTry::Anew)),
        (ProblemCode::UnknownPush, |d| matches!(d, Delivery::NotSent(c) if c.next == domain::NextTry::Anew)),
        (ProblemCode::InFlight, |d| matches!(d, Delivery::PossiblyWritten(_))),
        (ProblemCode::CommitUnknown, |d| matches!(d, Delivery::PossiblyWritten(_))),
        (ProblemCode::StoreUnavailable, |d| matches!(d, Delivery::NotSent(_))),
        (ProblemCode::Overloaded, |d| matches!(d, Delivery::NotSent(_))),
        (ProblemCode::Differs, |d| matches!(d, Delivery::Rejected(_))),
        (ProblemCode::Tombstoned, |d| matches!(d, Delivery::Rejected(_))),
    ];
    for (code, as_expected) in cases {
        let (url, _seen) = server(vec![begun(), problem(code, |_| ())]).await;
        let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
        assert!(as_expected(&delivery), "{code:?}: {delivery:?}");
    }
    let incomplete = problem(ProblemCode::Incomplete, |p| p.missing = vec![[1, 1]]);
    let plays = vec![begun(), incomplete, answer("201 Created", &[], &taken(&parcel, 1)), recorded(&parcel.header)];
    let (url, _seen) = server(plays).await;
    let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
    assert!(matches!(delivery, Delivery::Recorded(_)), "{delivery:?}");
}
