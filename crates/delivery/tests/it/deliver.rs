//! The loop over tries: what is repeated, how long, and what is said in the end.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use delivery::{
    Backoff, Clock, Destination, Ended, Handed, Loose, Parcel, Progress, RetryPolicy, Stop, SystemClock,
    TallyonceTarget, Target, Terms, Try, deliver,
};
use domain::{Cause, Delivery, Problem, ProblemCode};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::http::settings;
use crate::support::{FakeClock, Play, answer, destination, pack, push, receipt, recorded, server};

/// Answers from a list, then nothing for ever.
struct Scripted(Destination, Mutex<VecDeque<Delivery<Handed>>>);

impl Scripted {
    fn new(answers: impl IntoIterator<Item = Delivery<Handed>>) -> Self {
        Self(destination(), Mutex::new(answers.into_iter().collect()))
    }
}

#[async_trait]
impl Target for Scripted {
    fn destination(&self) -> &Destination {
        &self.0
    }

    async fn deliver(&self, _parcel: &Parcel, _attempt: &Try<'_>) -> Delivery<Handed> {
        let next = self.1.lock().unwrap().pop_front();
        match next {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

fn handed(parcel: &Parcel) -> Delivery<Handed> {
    let receipt = receipt(&parcel.header);
    Delivery::Recorded(Handed {
        receipt_bytes: serde_json::to_vec(&receipt).unwrap(),
        current_counts: receipt.counts,
        receipt,
        replayed: false,
        class: None,
        current_revision: 1,
        warnings: Vec::new(),
    })
}

fn not_sent() -> Delivery<Handed> {
    Delivery::NotSent(Cause::new("refused"))
}

fn silence() -> Delivery<Handed> {
    Delivery::PossiblyWritten(Cause::new("silence"))
}

fn rejected(code: ProblemCode) -> Delivery<Handed> {
    Delivery::Rejected(Box::new(Problem::new(code, "words")))
}

fn policy(deadline_ms: u64) -> RetryPolicy {
    RetryPolicy::within(deadline_ms)
}

async fn run(target: &dyn Target, deadline_ms: u64, stop: &Stop) -> (Ended, Vec<Progress>) {
    let mut seen = Vec::new();
    let clock = FakeClock::default();
    let terms = Terms {
        policy: policy(deadline_ms),
        clock: &clock,
        random: &mut StdRng::seed_from_u64(1),
        stop,
        progress: &mut |p| seen.push(p),
    };
    let ended = deliver(target, &pack(push()), &mut Loose::beside(".".as_ref()), terms).await;
    (ended, seen)
}

async fn verdict(answers: impl IntoIterator<Item = Delivery<Handed>>) -> Ended {
    run(&Scripted::new(answers), 600_000, &Stop::new()).await.0
}

#[tokio::test]
async fn doubts_are_tried_again_until_the_truth_is_known() {
    let parcel = pack(push());
    let target = Scripted::new([not_sent(), silence(), handed(&parcel)]);
    let (ended, seen) = run(&target, 600_000, &Stop::new()).await;
    assert!(matches!(ended.delivery, Delivery::Recorded(_)));
    assert_eq!((ended.attempts, ended.bytes, ended.interrupted), (3, parcel.header.body_bytes(), false));
    let steps: Vec<_> = seen
        .iter()
        .map(|p| match p {
            Progress::Sending { attempt, .. } => (*attempt, None),
            Progress::Waiting { attempt, possibly_written, .. } => (*attempt, Some(*possibly_written)),
            Progress::Staging { .. } | Progress::Cut { .. } => unreachable!("it is not in chunks"),
        })
        .collect();
    assert_eq!(steps, [(1, None), (1, Some(false)), (2, None), (2, Some(true)), (3, None)]);
}

#[tokio::test]
async fn a_refusal_is_not_repeated() {
    let ended = verdict([not_sent(), rejected(ProblemCode::UnknownProject)]).await;
    assert!(matches!(ended.delivery, Delivery::Rejected(_)));
    assert_eq!(ended.attempts, 2);
}

#[tokio::test]
async fn a_refusal_does_not_make_an_earlier_silence_forgotten() {
    // The first try may have been written: an expired token or a strange proxy says nothing about it.
    for code in [ProblemCode::ForeignAnswer, ProblemCode::UnknownProject, ProblemCode::NotFound] {
        let ended = verdict([silence(), not_sent(), rejected(code)]).await;
        let Delivery::PossiblyWritten(cause) = ended.delivery else { panic!("{code:?}") };
        assert!(cause.what.contains("silence") && cause.what.contains("words"), "{}", cause.what);
        assert_eq!(ended.attempts, 3);
    }
    // These are judged from what is recorded under the key, or from the bytes: they settle every try.
    for code in [ProblemCode::KeyCollision, ProblemCode::KeyReused, ProblemCode::Tombstoned, ProblemCode::TooLarge] {
        assert!(matches!(verdict([silence(), rejected(code)]).await.delivery, Delivery::Rejected(_)), "{code:?}");
    }
}

#[tokio::test]
async fn at_the_deadline_one_possible_write_outweighs_all_else() {
    let many = |one: fn() -> Delivery<Handed>| std::iter::repeat_with(one).take(1000);
    let (ended, _) = run(&Scripted::new(many(not_sent)), 60_000, &Stop::new()).await;
    assert!(matches!(ended.delivery, Delivery::NotSent(_)));
    assert_eq!(ended.elapsed_ms, 60_000, "the last try begins right at the deadline");
    let mixed = std::iter::once(silence()).chain(many(not_sent));
    let (ended, _) = run(&Scripted::new(mixed), 60_000, &Stop::new()).await;
    let Delivery::PossiblyWritten(cause) = ended.delivery else { panic!("{:?}", ended.delivery) };
    assert_eq!(cause.what, "silence");
}

#[tokio::test]
async fn without_time_there_is_still_one_try() {
    let (ended, _) = run(&Scripted::new([not_sent()]), 0, &Stop::new()).await;
    assert_eq!((ended.attempts, ended.elapsed_ms), (1, 0));
}

#[tokio::test]
async fn a_wish_to_wait_is_honoured_up_to_the_deadline() {
    let wish = |ms| Delivery::NotSent(Cause { retry_after_ms: Some(ms), ..Cause::new("busy") });
    let parcel = pack(push());
    let (ended, _) = run(&Scripted::new([wish(20_000), handed(&parcel)]), 60_000, &Stop::new()).await;
    assert!((20_000..=20_500).contains(&ended.elapsed_ms), "{}", ended.elapsed_ms);
    let (ended, _) = run(&Scripted::new([wish(3_600_000), handed(&parcel)]), 60_000, &Stop::new()).await;
    assert!(matches!(ended.delivery, Delivery::Recorded(_)));
    assert_eq!((ended.attempts, ended.elapsed_ms), (2, 60_000));
}

#[tokio::test]
async fn a_stop_ends_a_send_at_once_and_leaves_it_open() {
    let stop = Stop::new();
    let raised = stop.clone();
    let target = Scripted::new([]);
    let (ended, ()) = tokio::join!(async { run(&target, 600_000, &stop).await.0 }, async { raised.request() });
    assert!(ended.interrupted);
    assert!(matches!(ended.delivery, Delivery::PossiblyWritten(_)));
    assert_eq!(ended.attempts, 1);
    // Raised before anything was sent: nothing was.
    let (ended, _) = run(&target, 600_000, &stop).await;
    assert!(ended.interrupted && matches!(ended.delivery, Delivery::NotSent(_)));
    assert_eq!(ended.attempts, 0);
}

#[tokio::test]
async fn a_stop_ends_a_wait_at_once() {
    let stop = Stop::new();
    let raised = stop.clone();
    // An hour to wait on the real clock: only the stop ends it.
    let wish = Delivery::NotSent(Cause { retry_after_ms: Some(3_600_000), ..Cause::new("busy") });
    let target = Scripted::new([wish]);
    let clock = SystemClock::new();
    let mut watch = |progress: Progress| {
        if matches!(progress, Progress::Waiting { .. }) {
            raised.request();
        }
    };
    let terms = Terms {
        policy: policy(7_200_000),
        clock: &clock,
        random: &mut StdRng::seed_from_u64(1),
        stop: &stop,
        progress: &mut watch,
    };
    let ended = deliver(&target, &pack(push()), &mut Loose::beside(".".as_ref()), terms).await;
    assert!(ended.interrupted && matches!(ended.delivery, Delivery::NotSent(_)));
}

#[tokio::test(start_paused = true)]
async fn a_try_that_runs_when_the_deadline_comes_is_given_up_after_its_grace() {
    let started = tokio::time::Instant::now();
    let (ended, _) = run(&Scripted::new([]), 60_000, &Stop::new()).await;
    assert!(matches!(ended.delivery, Delivery::PossiblyWritten(_)));
    assert!(started.elapsed().as_millis() >= 60_000);
    let started = tokio::time::Instant::now();
    let (_, _) = run(&Scripted::new([]), 0, &Stop::new()).await;
    assert_eq!(started.elapsed().as_millis() as u64 / 100, delivery::TRY_GRACE_MS / 100);
}

#[tokio::test]
async fn a_lossy_server_is_outlived_over_real_sockets() {
    let parcel = pack(push());
    let problem = serde_json::to_vec(&Problem::new(ProblemCode::InFlight, "wait")).unwrap();
    let plays = vec![
        Play::Reset,
        answer("502 Bad Gateway", &[], b"<html>"),
        answer("409 Conflict", &[("retry-after", "1")], &problem),
        Play::Close,
        answer("201 Created", &[("etag", "\"r1-0\"")], b"{}"),
        recorded(&parcel.header),
    ];
    let (url, mut seen) = server(plays).await;
    let target = TallyonceTarget::new(url, &settings()).unwrap();
    let (ended, _) = run(&target, 600_000, &Stop::new()).await;
    assert!(matches!(ended.delivery, Delivery::Recorded(_)), "{:?}", ended.delivery);
    assert_eq!(ended.attempts, 6);
    let mut keys = Vec::new();
    for _ in 0..6 {
        let seen = seen.recv().await.unwrap();
        keys.push((seen.header("idempotency-key").unwrap().to_owned(), seen.body));
    }
    keys.dedup();
    assert_eq!(keys.len(), 1, "every try is the same write");
}

#[test]
fn the_clock_writes_times_of_one_width() {
    let clock = FakeClock::default();
    assert_eq!(clock.utc_rfc3339(), "2025-11-29T12:00:00.000Z");
    clock.pass(7);
    assert_eq!(clock.utc_rfc3339(), "2025-11-29T12:00:00.007Z");
    let system = SystemClock::new();
    let first = system.now_ms();
    assert!(system.now_ms() >= first);
    assert!(system.unix_ms() > 1_700_000_000_000);
}

proptest! {
    #[test]
    fn waits_stay_within_ceiling_wish_and_deadline(
        seed in any::<u64>(),
        deadline_ms in 0..2_000_000_u64,
        wishes in prop::collection::vec(prop::option::of(0..100_000_u64), 1..40),
    ) {
        let mut jitter = StdRng::seed_from_u64(seed);
        let mut backoff = Backoff::new(policy(deadline_ms));
        let (mut elapsed, mut ceiling) = (0, 500);
        for wish in wishes {
            let Some(wait) = backoff.next_wait_ms(elapsed, wish, &mut jitter) else {
                prop_assert!(elapsed >= deadline_ms);
                break;
            };
            prop_assert!(elapsed < deadline_ms);
            prop_assert!(elapsed + wait <= deadline_ms);
            match wish {
                None => prop_assert!(wait <= ceiling),
                Some(wish) => {
                    prop_assert!(wait >= wish.min(deadline_ms - elapsed));
                    prop_assert!(wait <= wish + 500);
                }
            }
            elapsed += wait;
            ceiling = (ceiling * 2).min(30_000);
        }
    }

    #[test]
    fn jitter_is_full(seed in any::<u64>()) {
        // 64 first waits of clients that failed together: spread over the whole half second.
        let mut jitter = StdRng::seed_from_u64(seed);
        let waits: Vec<_> = (0..64)
            .map(|_| Backoff::new(policy(600_000)).next_wait_ms(0, None, &mut jitter).unwrap())
            .collect();
        prop_assert!(waits.iter().any(|w| *w < 125) && waits.iter().any(|w| *w > 375), "{waits:?}");
    }
}
