//! Pushes in chunks: the sequence over a receiver that can be told to fail, every setback of the table, and resuming.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use delivery::staged::{Begun, Setback, Stage, Staging, deliver_staged};
use delivery::{
    Clock, Destination, Ended, Form, Handed, Keep, Loose, Outbox, Parcel, Progress, RetryPolicy, Scratch, Stop, Target,
    Terms, Try, deliver,
};
use domain::{Cause, Delivery, Epoch, Problem, ProblemCode, PushId};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::parcel::many;
use crate::support::{FakeClock, destination, hand, pack, push_of, receipt};

/// What a receiver was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Begin(Option<u128>),
    BeginWithoutItems,
    Put(u32),
    Commit,
    Cancel,
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

    async fn cancel(&self, _: &Parcel, _: Staging) {
        let _ = self.hear("cancel", Asked::Cancel);
        self.there.lock().unwrap().clear();
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
pub(crate) fn four() -> Parcel {
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
async fn nobody_waits_for_a_staging_that_is_over_and_that_nobody_goes_on_with() {
    let fence = Setback::Fenced { what: "cancelled".to_owned(), idle_in_ms: None, over: true };
    let receiver = Receiver { ended: true, attach_ms: 30_000, ..Receiver::new([("begin", fence)]) };
    let ended = run(&receiver).await;
    assert!(matches!(ended.delivery, Delivery::Recorded(_)));
    assert_eq!(receiver.count(|a| *a == Asked::Attach), 1);
    assert!(ended.elapsed_ms < 30_000, "{}", ended.elapsed_ms);
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
            // Whose own staging is over looks first whether anybody goes on.
            assert_eq!(receiver.count(|a| *a == Asked::Attach), 1 + usize::from(over));
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
    // The first cut's epoch is given up, and the second is another wish: it doesn't wait for what nobody goes on with.
    let asked = receiver.asked();
    let begins = || asked.iter().filter(|asked| matches!(asked, Asked::Begin(_)));
    assert_eq!((begins().count(), begins().collect::<BTreeSet<_>>().len()), (2, 2), "{asked:?}");
    assert!(asked.contains(&Asked::Cancel), "{asked:?}");
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
