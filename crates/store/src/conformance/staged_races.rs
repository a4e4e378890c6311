//! Staged deliveries at the same time: rows B3, B5, P7, C4, C5, C7, N1 and X4 of the table of interleavings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::Epoch;
use domain::limits::EPOCH_IDLE_MS;

use super::Make;
use super::build::{Cut, after, cycle, forty, log, now, numbered, page, push, query, shop, sound, words};
use crate::{Answer, Begun, Cancelled, Committed, Fence, Lifetime, Put, Recorded, Store};

/// Runs one task for each, all at once, and gives what they came to in order.
async fn at_once<T, F>(tasks: impl IntoIterator<Item = F>) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.expect("no panic"));
    }
    done
}

/// One client from begin to commit; `None` if it was fenced off.
async fn client(store: Arc<dyn Store>, cut: Cut) -> Option<Answer> {
    let staging = match cut.begin(&store, now()).await {
        Begun::Staging(staging) => staging,
        Begun::Replayed(answer) => return Some(answer),
        Begun::Fenced(_) => return None,
        Begun::Refused(refused) => panic!("{refused:?}"),
    };
    for chunk in staging.missing {
        match cut.put(&store, staging.epoch.0, chunk as usize).await {
            Put::Stored { .. } => tokio::task::yield_now().await,
            Put::Superseded => return None,
            other => panic!("{other:?}"),
        }
    }
    match cut.commit(&store, staging.epoch.0).await {
        Committed::Accepted(answer) => Some(answer),
        Committed::Superseded { .. } => None,
        other => panic!("{other:?}"),
    }
}

/// B3, P2, C4, X4: the same staged push, by as many clients as retries can make.
pub async fn c4_x4_one_staged_push_eight_times_is_recorded_once(make: Make<'_>) {
    let store = make();
    let cut = push(&forty('+')).attempt(1).executor("runner").incarnation(1).cut(2);
    // All put everything before anyone commits, so that nobody's commit overtakes a put.
    let put = at_once((0..8).map(|_| {
        let (store, cut) = (Arc::clone(&store), cut.clone());
        async move {
            let staging = cut.begun(&store).await;
            cut.put_all(&store, 1).await;
            (staging.epoch, staging.resumed)
        }
    }));
    let begun = put.await;
    assert!(begun.iter().all(|(epoch, _)| *epoch == Epoch(1)));
    assert_eq!(begun.iter().filter(|(_, resumed)| !resumed).count(), 1);
    let answers = at_once((0..8).map(|_| {
        let (store, cut) = (Arc::clone(&store), cut.clone());
        async move { cut.committed(&store, 1).await }
    }));
    let answers = answers.await;
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1);
    assert!(answers.iter().all(|answer| answer.receipt == answers[0].receipt));
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!((round.counts.total, round.repeats), (40, 7));
    sound(&store).await;
}

/// The same from begin to commit, without any order between the clients.
pub async fn x4_eight_clients_of_one_staged_push_all_get_its_receipt(make: Make<'_>) {
    let store = make();
    let clients = (0..8_u128).map(|n| {
        let cut = push(&forty('+')).incarnation(n).cut(2);
        client(Arc::clone(&store), if n % 2 == 0 { cut } else { cut.blind() })
    });
    let answers: Vec<Answer> = at_once(clients).await.into_iter().flatten().collect();
    assert_eq!(answers.len(), 8);
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1);
    assert!(answers.iter().all(|answer| answer.receipt == answers[0].receipt));
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}

/// B5, C5: two contents, staged and whole, by attempts that may overtake one another: never a mix, at no moment.
pub async fn c5_two_contents_at_once_never_mix(make: Make<'_>) {
    let store = make();
    for round in 0..8 {
        let run = format!("{}", 100 + round);
        let build = |n: u64, mark: char| {
            push(&forty(mark)).run(&run).keyed().attempt(n).executor(&format!("e{n}")).incarnation(n.into())
        };
        let whole = build(3, '!');
        let (first, second) = (build(1, '-').cut(2), build(2, '~').cut(1));
        let (a, b) = (client(Arc::clone(&store), first), client(Arc::clone(&store), second.clone()));
        let staged = at_once([a, b]).await;
        assert!(staged[1].is_some(), "nothing overrules the higher attempt");
        let items = page(&store, &query()).await.items;
        assert_eq!(items.len(), 40);
        assert!(items.iter().all(|item| item.status == domain::Status::Skipped), "the second attempt counts");
        assert!(matches!(whole.to(&store).await, Recorded::Accepted(answer) if !answer.replayed));
        assert_eq!(page(&store, &query()).await.items.len(), 40);
    }
    sound(&store).await;
}

/// Readers during commits see nothing of a push or all of it, and an overlap never twice.
pub async fn readers_see_all_of_a_staged_push_or_nothing(make: Make<'_>) {
    let store = make();
    let base = push(&numbered(0..30, '+')).run("1").job("base").keyed();
    base.accepted(&store).await;
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (store, done) = (Arc::clone(&store), Arc::clone(&done));
            tokio::spawn(async move {
                let mut seen = std::collections::BTreeSet::new();
                while !done.load(Ordering::Acquire) {
                    let round = cycle(&store).await.rounds.remove(0);
                    assert_eq!(round.overlaps, if round.pushes.len() > 1 { 10 } else { 0 });
                    seen.insert(round.counts.total);
                    let items = page(&store, &query()).await;
                    assert_eq!(items.items.len() as u64, items.total);
                    seen.insert(items.total);
                    tokio::task::yield_now().await;
                }
                seen
            })
        })
        .collect();
    // Each holds ten items of the first push and thirty of its own.
    for job in 1..=8 {
        let words = numbered(0..10, '+') + &numbered(100 * job..100 * job + 30, '+');
        let cut = push(&words).run("1").job(&format!("job{job}")).keyed().cut(2);
        client(Arc::clone(&store), cut).await.expect("recorded");
    }
    done.store(true, Ordering::Release);
    for reader in readers {
        let totals = reader.await.expect("no panic");
        assert!(totals.iter().all(|total| (total - 30) % 30 == 0), "{totals:?}");
    }
    sound(&store).await;
}

/// C5, C7, N1, O2: a commit beside whatever else ends an epoch. Either is first, and both answers say the same.
pub async fn c7_n1_a_commit_beside_whatever_ends_its_epoch(make: Make<'_>) {
    let store = make();
    for round in 0..6 {
        for end in ["cancel", "collect", "begin", "whole"] {
            let key = format!("{end}-{round}");
            let cut = push(&forty('+')).key(&key).attempt(1).incarnation(1).cut(2);
            cut.begun(&store).await;
            cut.put_all(&store, 1).await;
            let lifetime = Lifetime { idle_ms: 10, second_look_ms: 0, blocks_max: 64 };
            if end == "collect" {
                store.collect(lifetime, after(20)).await.expect("works");
            }
            let commit = tokio::spawn({
                let (store, cut) = (Arc::clone(&store), cut.clone());
                async move { cut.commit(&store, 1).await }
            });
            let next = push(&forty('-')).key(&key).attempt(2).incarnation(2);
            let ended = match end {
                "cancel" => cut.cancel(&store, 1).await == Cancelled::Ended,
                "collect" => store.collect(lifetime, after(30)).await.expect("works").abandoned == 1,
                "begin" => match next.cut(1).begin(&store, now()).await {
                    Begun::Staging(staging) => staging.recorded.is_none(),
                    other => panic!("{other:?}"),
                },
                _ => match next.to(&store).await {
                    Recorded::Accepted(answer) => answer.revision == 1,
                    other => panic!("{other:?}"),
                },
            };
            let committed = commit.await.expect("no panic");
            assert_eq!(matches!(committed, Committed::Accepted(_)), !ended, "{key}: {committed:?}");
            let found = store.push(&shop(), cut.manifest.push()).await.expect("works");
            assert_eq!(found.is_ok(), !ended || end == "whole", "{key}");
            if end == "begin" {
                cut.cancel(&store, 2).await;
            }
        }
    }
    sound(&store).await;
}

/// P7: puts beside the begin that fences them off.
pub async fn p7_puts_beside_a_begin_that_supersedes(make: Make<'_>) {
    let store = make();
    for round in 0..8 {
        let key = format!("k{round}");
        let old = push(&forty('-')).key(&key).attempt(1).incarnation(1).cut(2);
        let new = push(&forty('+')).key(&key).attempt(2).incarnation(2).cut(2);
        old.begun(&store).await;
        let puts = tokio::spawn({
            let (store, old) = (Arc::clone(&store), old.clone());
            async move {
                let mut stored = Vec::new();
                for chunk in 0..4 {
                    stored.push(old.put(&store, 1, chunk).await);
                }
                stored
            }
        });
        let answer = client(Arc::clone(&store), new.clone()).await.expect("recorded");
        assert!(!answer.replayed);
        let stored = puts.await.expect("no panic");
        let late = stored.iter().skip_while(|put| **put == Put::Stored { replayed: false });
        assert!(late.into_iter().all(|put| *put == Put::Superseded), "{stored:?}");
        assert!(matches!(old.commit(&store, 1).await, Committed::Superseded { recorded: Some(_) }));
        assert!(matches!(old.begin(&store, after(2 * EPOCH_IDLE_MS)).await, Begun::Fenced(Fence::Superseded { .. })));
        assert_eq!(log(&store, new.manifest.push()).await, ["recorded"]);
    }
    assert_eq!(words(&store).await, forty('+').trim());
    sound(&store).await;
}
