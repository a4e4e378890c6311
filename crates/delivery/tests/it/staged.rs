//! Pushes in chunks: the sequence over a receiver that can be told to fail, every setback of the table, resuming, and the
//! requests as they go over a socket.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use delivery::staged::{Begun, Setback, Stage, Staging, deliver_staged};
use delivery::{
    Clock, Destination, Ended, Form, Handed, Keep, Loose, Outbox, Parcel, Progress, RetryPolicy, Scratch, Stop,
    TallyonceTarget, Target, Terms, Try, deliver,
};
use domain::wire::{ChunkAnswer, ManifestBody, StagingAnswer};
use domain::{Cause, Delivery, Epoch, Problem, ProblemCode, PushId};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::http::settings;
use crate::parcel::many;
use crate::support::{FakeClock, Play, answer, destination, hand, pack, push_of, receipt, recorded, server};

/// What a receiver was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Begin(Option<u128>),
    BeginWithoutItems,
    Put(u32),
    Commit,
    Attach,
}

/// One that keeps what it is given, but for the setbacks that it is told.
struct Receiver {
    destination: Destination,
    clock: Arc<FakeClock>,
    told: Mutex<VecDeque<(&'static str, Setback)>>,
    there: Mutex<BTreeSet<u32>>,
    asked: Mutex<Vec<Asked>>,
    /// True if an attach finds nobody any more.
    ended: bool,
    /// How long an attach waits, in milliseconds.
    attach_ms: u64,
    /// Larger chunks are too large.
    bytes_max: u64,
}

impl Receiver {
    fn new(told: impl IntoIterator<Item = (&'static str, Setback)>) -> Self {
        Self {
            destination: destination(),
            clock: Arc::default(),
            told: Mutex::new(told.into_iter().collect()),
            there: Mutex::default(),
            asked: Mutex::default(),
            ended: false,
            attach_ms: 0,
            bytes_max: u64::MAX,
        }
    }

    /// Notes the question; a setback, if one is told for it next.
    fn hear(&self, operation: &str, asked: Asked) -> Result<(), Setback> {
        self.asked.lock().unwrap().push(asked);
        let mut told = self.told.lock().unwrap();
        match told.front() {
            Some((next, _)) if *next == operation => Err(told.pop_front().unwrap().1),
            _ => Ok(()),
        }
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn count(&self, of: impl Fn(&Asked) -> bool) -> usize {
        self.asked().iter().filter(|asked| of(asked)).count()
    }
}

#[async_trait]
impl Stage for Receiver {
    fn at_once(&self) -> usize {
        2
    }

    async fn begin(&self, parcel: &Parcel, with_items: bool) -> Result<Begun, Setback> {
        let incarnation = parcel.header.sender.incarnation.map(|i| i.0);
        self.hear("begin", if with_items { Asked::Begin(incarnation) } else { Asked::BeginWithoutItems })?;
        let there = self.there.lock().unwrap();
        let missing = (0..parcel.header.chunks.len() as u32).filter(|n| !there.contains(n)).map(|n| [n, n]).collect();
        let push = PushId::of(&parcel.header.place.project, &parcel.header.key);
        Ok(Begun::Staging { at: Staging { push, epoch: Epoch(1) }, missing, resumed: !there.is_empty() })
    }

    async fn put(&self, parcel: &Parcel, _: Staging, chunk: u32) -> Result<(), Setback> {
        self.hear("put", Asked::Put(chunk))?;
        if parcel.header.chunks[chunk as usize].bytes > self.bytes_max {
            return Err(Setback::TooLarge("a proxy".to_owned()));
        }
        parcel.chunk(chunk as usize)?;
        self.there.lock().unwrap().insert(chunk);
        Ok(())
    }

    async fn commit(&self, parcel: &Parcel, _: Staging) -> Result<Handed, Setback> {
        self.hear("commit", Asked::Commit)?;
        assert_eq!(self.there.lock().unwrap().len(), parcel.header.chunks.len(), "committed too early");
        Ok(handed(parcel))
    }

    async fn attach(&self, _: &Parcel, wait_ms: u64) -> bool {
        let _ = self.hear("attach", Asked::Attach);
        self.clock.pass(wait_ms.min(self.attach_ms));
        self.ended
    }
}

#[async_trait]
impl Target for Receiver {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    async fn deliver(&self, parcel: &Parcel, attempt: &Try<'_>) -> Delivery<Handed> {
        deliver_staged(self, parcel, attempt).await
    }
}

fn handed(parcel: &Parcel) -> Handed {
    let receipt = receipt(&parcel.header);
    Handed {
        receipt_bytes: serde_json::to_vec(&receipt).unwrap(),
        current_counts: receipt.counts,
        receipt,
        replayed: false,
        class: None,
        current_revision: 1,
        warnings: Vec::new(),
    }
}

/// In four chunks.
fn four() -> Parcel {
    let halved = pack(push_of(many(100))).smaller(Scratch::Memory).unwrap().unwrap();
    let parcel = halved.smaller(Scratch::Memory).unwrap().unwrap();
    assert_eq!(parcel.header.chunks.len(), 4);
    parcel
}

async fn run_in(receiver: &Receiver, keep: &mut dyn Keep, parcel: &Parcel, deadline_ms: u64) -> (Ended, Vec<Progress>) {
    let mut seen = Vec::new();
    let terms = Terms {
        policy: RetryPolicy::within(deadline_ms),
        clock: &*receiver.clock,
        random: &mut StdRng::seed_from_u64(1),
        stop: &Stop::new(),
        progress: &mut |p| seen.push(p),
    };
    let ended = deliver(receiver, parcel, keep, terms).await;
    (ended, seen)
}

async fn run(receiver: &Receiver) -> Ended {
    run_in(receiver, &mut Loose::beside(".".as_ref()), &four(), 600_000).await.0
}

fn unclear() -> Setback {
    Setback::Unclear(Cause::new("silence"))
}

#[tokio::test]
async fn begin_put_commit_and_all_is_said() {
    let receiver = Receiver::new([]);
    let (ended, seen) = run_in(&receiver, &mut Loose::beside(".".as_ref()), &four(), 600_000).await;
    assert!(matches!(ended.delivery, Delivery::Recorded(_)));
    assert_eq!((ended.attempts, ended.chunks, ended.chunks_sent, ended.resumed), (1, 4, 4, false));
    let mut asked = receiver.asked();
    assert_eq!((asked[0], asked[5]), (Asked::Begin(Some(7)), Asked::Commit));
    asked.sort();
    assert_eq!(asked[1..5], [0, 1, 2, 3].map(Asked::Put));
    let last = seen.iter().rev().find_map(|p| match p {
        Progress::Staging { staged, .. } => Some(*staged),
        _ => None,
    });
    assert_eq!(last.map(|staged| (staged.chunks, staged.there)), Some((4, 4)));
}

#[tokio::test]
async fn what_is_there_is_not_sent_again() {
    // Silence at each place: the next try begins again, and puts only what is missing.
    for (operation, sent) in [("begin", 4), ("commit", 4)] {
        let receiver = Receiver::new([(operation, unclear())]);
        let ended = run(&receiver).await;
        assert!(matches!(ended.delivery, Delivery::Recorded(_)));
        assert_eq!((ended.attempts, ended.chunks_sent), (2, sent), "{operation}");
        assert_eq!(receiver.count(|a| matches!(a, Asked::Put(_))), 4, "{operation}");
    }
    let receiver = Receiver::new([("put", unclear()), ("put", unclear())]);
    let ended = run(&receiver).await;
    assert_eq!((ended.attempts, ended.chunks_sent), (3, 4));
    // Somebody before us has put two.
    let receiver = Receiver::new([]);
    receiver.there.lock().unwrap().extend([0, 2]);
    let ended = run(&receiver).await;
    assert_eq!((ended.chunks, ended.chunks_sent, ended.resumed), (4, 2, true));
}

#[tokio::test]
async fn before_the_commit_nothing_can_be_written() {
    let always = |operation| std::iter::repeat_with(move || (operation, unclear())).take(500);
    for operation in ["begin", "put"] {
        let (ended, _) = {
            let receiver = Receiver::new(always(operation));
            run_in(&receiver, &mut Loose::beside(".".as_ref()), &four(), 20_000).await
        };
        assert!(matches!(ended.delivery, Delivery::NotSent(_)), "{operation}: {:?}", ended.delivery);
    }
    let receiver = Receiver::new(always("commit"));
    let (ended, _) = run_in(&receiver, &mut Loose::beside(".".as_ref()), &four(), 20_000).await;
    assert!(matches!(ended.delivery, Delivery::PossiblyWritten(_)));
}

#[tokio::test]
async fn an_incomplete_commit_is_filled_up_in_the_same_try() {
    let receiver = Receiver::new([("commit", Setback::Incomplete(vec![[1, 2]]))]);
    let ended = run(&receiver).await;
    assert!(matches!(ended.delivery, Delivery::Recorded(_)));
    assert_eq!((ended.attempts, ended.chunks_sent), (1, 6));
    // One that says so for ever is not believed for ever.
    let receiver = Receiver::new(std::iter::repeat_with(|| ("commit", Setback::Incomplete(vec![[1, 1]]))).take(999));
    let (ended, _) = run_in(&receiver, &mut Loose::beside(".".as_ref()), &four(), 0).await;
    assert!(matches!(ended.delivery, Delivery::NotSent(_)));
    // A list that is not of this push is no answer.
    for strange in [vec![[2, 1]], vec![[0, 4]], vec![[1, 2], [2, 3]]] {
        let receiver = Receiver::new([("commit", Setback::Incomplete(strange))]);
        assert!(matches!(hand(&receiver, &four()).await, Delivery::NotSent(_)));
    }
}

#[tokio::test]
async fn who_is_fenced_off_waits_and_begins_again() {
    for operation in ["begin", "put", "commit"] {
        for over in [false, true] {
            let fence = Setback::Fenced { what: "another".to_owned(), idle_in_ms: Some(20_000), over };
            let receiver = Receiver::new([(operation, fence)]);
            let ended = run(&receiver).await;
            assert!(matches!(ended.delivery, Delivery::Recorded(_)));
            assert_eq!(ended.attempts, 2, "{operation}");
            assert_eq!(receiver.count(|a| *a == Asked::Attach), 1);
            // The attach didn't wait: the loop does.
            assert!(ended.elapsed_ms >= 20_000, "{}", ended.elapsed_ms);
            let begins: Vec<Asked> = receiver.asked().into_iter().filter(|a| matches!(a, Asked::Begin(_))).collect();
            assert_eq!(begins.len(), 2);
            assert_eq!(begins[0] == begins[1], !over, "a new incarnation only where the old one is bound");
        }
    }
}

#[tokio::test]
async fn a_wait_that_was_long_enough_is_not_waited_again() {
    let fence = || Setback::Fenced { what: "another".to_owned(), idle_in_ms: Some(20_000), over: false };
    let receiver = Receiver { attach_ms: 20_000, ..Receiver::new([("begin", fence())]) };
    let ended = run(&receiver).await;
    assert!((20_000..=20_500).contains(&ended.elapsed_ms), "{}", ended.elapsed_ms);
    // The other one has ended at once: no wait but the jitter.
    let receiver = Receiver { ended: true, ..Receiver::new([("begin", fence())]) };
    let ended = run(&receiver).await;
    assert!(ended.elapsed_ms <= 500, "{}", ended.elapsed_ms);
    assert!(matches!(ended.delivery, Delivery::Recorded(_)));
    // What an attach finds is never our own result.
    let many = std::iter::repeat_with(|| ("begin", fence())).take(1000);
    let receiver = Receiver { ended: true, ..Receiver::new(many) };
    let (ended, _) = run_in(&receiver, &mut Loose::beside(".".as_ref()), &four(), 30_000).await;
    assert!(matches!(ended.delivery, Delivery::NotSent(_)));
}

#[tokio::test]
async fn staging_that_is_gone_is_begun_again_by_a_new_incarnation() {
    for operation in ["begin", "put", "commit"] {
        let receiver = Receiver::new([(operation, Setback::Gone("expired".to_owned()))]);
        let ended = run(&receiver).await;
        assert!(matches!(ended.delivery, Delivery::Recorded(_)));
        let begins: BTreeSet<Asked> = receiver.asked().into_iter().filter(|a| matches!(a, Asked::Begin(_))).collect();
        assert_eq!((ended.attempts, begins.len()), (2, 2), "{operation}");
        assert_eq!(receiver.count(|a| *a == Asked::Attach), 0);
        // Everything that is drawn comes from the seed: the same again is the same.
        let again = Receiver::new([(operation, Setback::Gone("expired".to_owned()))]);
        run(&again).await;
        assert_eq!(receiver.asked(), again.asked());
    }
}

#[tokio::test]
async fn a_refusal_ends_it() {
    for operation in ["begin", "put", "commit"] {
        let problem = Box::new(Problem::new(ProblemCode::KeyCollision, "two legs"));
        let ended = run(&Receiver::new([(operation, Setback::Rejected(problem))])).await;
        assert!(matches!(ended.delivery, Delivery::Rejected(_)), "{operation}");
        assert_eq!(ended.attempts, 1);
    }
}

#[tokio::test]
async fn chunks_too_large_are_cut_and_kept_so() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Outbox::open(folder.path()).unwrap();
    let parcel = four();
    let entry = outbox.put(&parcel).unwrap();
    let mut lock = entry.lock().unwrap();
    let largest = parcel.header.chunks.iter().map(|chunk| chunk.bytes).max().unwrap();
    let receiver = Receiver { bytes_max: largest - 1, ..Receiver::new([]) };
    // What a proxy took of the first cut is of no use for the second.
    let (ended, seen) = run_in(&receiver, &mut lock, &parcel, 600_000).await;
    assert!(matches!(ended.delivery, Delivery::Recorded(_)), "{:?}", ended.delivery);
    assert_eq!(ended.chunks, 8);
    assert!(seen.contains(&Progress::Cut { chunks: 8 }));
    assert!(!seen.iter().any(|p| matches!(p, Progress::Waiting { .. })), "a cut needs no wait");
    // The entry is the new cut, whole, and still held; a put of the same push keeps the cut.
    assert!(matches!(entry.lock(), Err(delivery::LockError::Held { .. })));
    assert_eq!(entry.load().unwrap().header.form, Form::Chunks { bits: 3 });
    assert_eq!(entry.load().unwrap().push().unwrap().outcomes, parcel.push().unwrap().outcomes);
    drop(lock);
    let again = outbox.put(&parcel).unwrap();
    assert_eq!((again.path(), again.header().form), (entry.path(), Form::Chunks { bits: 3 }));
    assert_eq!(outbox.entries().unwrap().0.len(), 1);
}

#[tokio::test]
async fn what_is_too_large_in_every_cut_is_rejected_with_words() {
    let receiver = Receiver { bytes_max: 10, ..Receiver::new([]) };
    let ended = run(&receiver).await;
    let Delivery::Rejected(problem) = ended.delivery else { panic!("{:?}", ended.delivery) };
    assert_eq!(problem.code, ProblemCode::TooLarge);
    assert!(problem.detail.contains("smallest chunk"), "{}", problem.detail);
    // A manifest that is too large goes without items first; one that still is cannot be helped.
    let large = || ("begin", Setback::TooLarge("a proxy".to_owned()));
    let receiver = Receiver::new([large()]);
    assert!(matches!(run(&receiver).await.delivery, Delivery::Recorded(_)));
    assert_eq!(receiver.asked()[1], Asked::BeginWithoutItems);
    let ended = run(&Receiver::new([large(), large()])).await;
    assert!(matches!(ended.delivery, Delivery::Rejected(p) if p.code == ProblemCode::TooLarge));
}

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
        let (url, mut seen) = server(vec![problem(code, |_| ()), attached]).await;
        let delivery = hand(&TallyonceTarget::new(url, &settings()).unwrap(), &parcel).await;
        let Delivery::NotSent(cause) = delivery else { panic!("{delivery:?}") };
        assert_eq!(cause.next, next);
        seen.recv().await.unwrap();
        let attach = seen.recv().await.unwrap();
        let key = "github%3Aacme%2Fshop%3Arun%3A42%3Ajob%3Ae2e%3Ashard%3A3-8";
        assert!(attach.head.starts_with(&format!("GET /api/v1/projects/shop/pushes?key={key} ")), "{}", attach.head);
        assert_eq!(attach.header("prefer"), Some("wait=2"), "half of what an answer may take");
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

#[tokio::test(start_paused = true)]
async fn a_try_that_is_cut_short_while_it_stages_was_not_sent() {
    /// Takes every begin, and never a chunk.
    struct Slow(Receiver);
    #[async_trait]
    impl Target for Slow {
        fn destination(&self) -> &Destination {
            self.0.destination()
        }
        async fn deliver(&self, parcel: &Parcel, attempt: &Try<'_>) -> Delivery<Handed> {
            attempt.only_stages();
            let _ = self.0.begin(parcel, true).await;
            std::future::pending().await
        }
    }
    let clock = FakeClock::default();
    let terms = Terms {
        policy: RetryPolicy::within(0),
        clock: &clock,
        random: &mut StdRng::seed_from_u64(1),
        stop: &Stop::new(),
        progress: &mut |_| (),
    };
    let ended = deliver(&Slow(Receiver::new([])), &four(), &mut Loose::beside(".".as_ref()), terms).await;
    assert!(matches!(ended.delivery, Delivery::NotSent(_)), "{:?}", ended.delivery);
    assert_eq!(clock.now_ms(), 0);
}
