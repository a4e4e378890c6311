//! Staged pushes while things go wrong: a store that fails or crashes, overload, many at once, clients that never end.

use std::sync::Arc;
use std::time::Duration;

use domain::limits::{STAGING_LIFETIME_MS, STAGING_SECOND_LOOK_MS};
use server::BodyLimits;

use crate::http::{Answer, Request};
use crate::in_process::{InProcess, on_every_store};
use crate::served::{Fault, Faulty, Served, memory, on_every_engine};
use crate::staging::{From as _, Sends as _, cancel, commit, cut, outcomes, sixty};

const ATTACH: &str = "/api/v1/projects/shop/pushes?key=k";

/// The requests of one staged push up to here, over a store that then fails as told.
async fn fails(faults: &[Fault], requests: impl AsyncFn(&Served, &Faulty)) {
    let store = Faulty::new(&[]);
    let served = Served::start(Arc::clone(&store) as Arc<dyn store::Store>, BodyLimits::default()).await;
    assert!(!faults.is_empty());
    requests(&served, &store).await;
}

#[tokio::test]
async fn an_unknown_commit_of_any_step_is_run_again_once() {
    for fault in [Fault::UnknownBefore, Fault::UnknownAfter] {
        fails(&[fault], async |served: &Served, store: &Faulty| {
            let push = sixty(&[7]);
            store.next(&[fault]);
            let begun = served.send(push.begin("k", "").process(1)).await;
            // It is the same epoch, whichever run opened it.
            let resumed = if fault == Fault::UnknownAfter { 200 } else { 201 };
            assert_eq!((begun.status, begun.header("push-epoch")), (resumed, Some("1")), "{}", begun.text());
            let epoch = begun.header("location").unwrap().to_owned();
            for chunk in 0..4 {
                store.next(&[fault]);
                assert_eq!(served.send(push.put(&epoch, chunk)).await.status, 201);
            }
            store.next(&[fault]);
            let first = served.send(commit(&epoch)).await;
            assert_eq!(first.status, 201, "{}", first.text());
            served.send(commit(&epoch)).await.is_replay_of(&Answer { status: 201, ..first });
            let other = sixty(&[]);
            let begun = served.send(other.begin("k", "&on-difference=keep").process(2)).await;
            store.next(&[fault]);
            assert_eq!(served.send(cancel(begun.header("location").unwrap())).await.status, 200);
        })
        .await;
    }
}

#[tokio::test]
async fn a_failing_store_says_what_is_known() {
    let twice = [Fault::UnknownAfter, Fault::NotWritten];
    for (faults, code) in [
        (&[Fault::NotWritten][..], "store-unavailable"),
        (&twice, "commit-unknown"),
        (&[Fault::Broken], "internal"),
        (&[Fault::Panic], "internal"),
    ] {
        fails(faults, async |served: &Served, store: &Faulty| {
            let push = sixty(&[7]);
            store.next(faults);
            served.send(push.begin("k", "")).await.is_problem(code, &[]);
            let begun = served.send(push.begin("k", "")).await;
            let epoch = begun.header("location").unwrap().to_owned();
            assert_eq!(begun.header("push-epoch"), Some("1"));
            for chunk in 0..4 {
                store.next(faults);
                let answer = served.send(push.put(&epoch, chunk)).await;
                answer.is_problem(code, &[]);
                assert!(!answer.text().contains("secret"));
                assert_eq!(served.send(push.put(&epoch, chunk)).await.status, 201);
            }
            store.next(faults);
            served.send(commit(&epoch)).await.is_problem(code, &[]);
            let recorded = served.send(commit(&epoch)).await;
            assert_eq!(recorded.status, 201, "{}", recorded.text());
            let begun = served.send(sixty(&[]).begin("k", "&on-difference=keep")).await;
            store.next(faults);
            let epoch = begun.header("location").unwrap();
            served.send(cancel(epoch)).await.is_problem(code, &[]);
            assert_eq!(served.send(cancel(epoch)).await.status, 200);
            assert_eq!(served.get("/api/v1/projects/shop/rounds?cycle=main").await.json()["headline"]["total"], 60);
        })
        .await;
    }
}

#[tokio::test]
async fn overload_sheds_and_what_is_staged_stays() {
    let store = memory();
    let open = Served::start(Arc::clone(&store), BodyLimits::default()).await;
    let push = sixty(&[7]);
    let epoch = open.send(push.begin("k", "")).await.header("location").unwrap().to_owned();
    open.send(push.put(&epoch, 0)).await;
    let full = Served::start(Arc::clone(&store), BodyLimits { requests: 0, ..BodyLimits::default() }).await;
    for request in [push.begin("k", ""), push.put(&epoch, 1), commit(&epoch), cancel(&epoch)] {
        full.send(request).await.is_problem("overloaded", &["Nothing of this request was recorded"]);
    }
    let tight = Served::start(Arc::clone(&store), BodyLimits { buffered_bytes: 100, ..BodyLimits::default() }).await;
    for request in [push.begin("k", ""), push.put(&epoch, 1)] {
        tight.send(request).await.is_problem("overloaded", &["Nothing was recorded"]);
    }
    // Room for one decoded thing at a time is enough to go on.
    let limits = BodyLimits { decoded_bytes: 1, decoders: 1, ..BodyLimits::default() };
    let narrow = Served::start(store, limits).await;
    push.stage(&narrow, push.begin("k", "")).await;
    narrow.send(commit(&epoch)).await.is_recorded();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chunks_in_parallel_and_commits_at_once() {
    on_every_engine(async |served: Served| {
        let push = Arc::new(cut(outcomes(0..1000, &[7]), 5));
        let epoch: Arc<str> = served.send(push.begin("k", "")).await.header("location").unwrap().into();
        let address = served.address;
        // Each chunk twice, from eight clients.
        let tasks = (0..8_usize).map(|task| {
            let (push, epoch) = (Arc::clone(&push), Arc::clone(&epoch));
            tokio::spawn(async move {
                let mut replayed = 0;
                for chunk in (0..32).filter(|chunk| chunk % 4 == task % 4) {
                    let answer = push.put(&epoch, chunk).send(address).await;
                    assert_eq!(answer.status, 201, "{}", answer.text());
                    replayed += usize::from(answer.header("idempotent-replayed").is_some());
                }
                replayed
            })
        });
        let mut replayed = 0;
        for task in tasks.collect::<Vec<_>>() {
            replayed += task.await.unwrap();
        }
        assert_eq!(replayed, 32, "each chunk was stored once");
        let commits = (0..8).map(|_| {
            let request = commit(&epoch);
            tokio::spawn(async move { request.send(address).await })
        });
        let mut answers = Vec::new();
        for task in commits.collect::<Vec<_>>() {
            answers.push(task.await.unwrap());
        }
        let first = answers.iter().filter(|answer| answer.header("idempotent-replayed").is_none()).count();
        assert_eq!(first, 1);
        assert!(answers.iter().all(|answer| answer.status == 201 && answer.body == answers[0].body));
        assert_eq!(answers[0].json()["counts"]["total"], 1000);
        assert!(served.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn what_nobody_ends_is_collected_after_a_day() {
    on_every_store(async |here: InProcess| {
        let push = sixty(&[7]);
        let epoch = push.stage(&here, push.begin("k", "").process(1)).await;
        let collect = async || {
            let mut abandoned = 0;
            for _ in 0..100 {
                let step = here.app.door().collect().await.unwrap();
                abandoned += step.abandoned;
                if !step.more {
                    return abandoned;
                }
            }
            panic!("there is always more");
        };
        here.later(STAGING_LIFETIME_MS - 1);
        assert_eq!(collect().await, 0);
        here.later(1);
        assert_eq!(collect().await, 0, "seen once: the clock may have jumped");
        here.later(STAGING_SECOND_LOOK_MS - 1);
        assert_eq!(collect().await, 0);
        here.later(1);
        assert_eq!(collect().await, 1);
        here.send(commit(&epoch)).await.is_problem("staging-expired", &["collected"]);
        here.send(push.put(&epoch, 0)).await.is_problem("staging-expired", &[]);
        here.send(Request::get(ATTACH)).await.is_problem("unknown-push", &[]);
        push.deliver(&here, push.begin("k", "").process(2)).await.is_recorded();
        assert!(here.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_collects_by_itself_and_stops() {
    let store = memory();
    // Staged long ago, and seen idle once since.
    let before = InProcess::new(Arc::clone(&store), BodyLimits::default());
    let push = sixty(&[7]);
    let epoch = push.stage(&before, push.begin("k", "")).await;
    before.later(STAGING_LIFETIME_MS);
    before.app.door().collect().await.unwrap();
    let collect_every = Duration::from_millis(1);
    let served = Served::start(store, BodyLimits { collect_every, ..BodyLimits::default() }).await;
    let gone = async {
        while served.get(ATTACH).await.status == 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it is collected");
    served.send(commit(&epoch)).await.is_problem("staging-expired", &[]);
    tokio::time::timeout(Duration::from_secs(20), served.stop()).await.expect("it stops");
}
