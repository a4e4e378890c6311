//! Re-runs that are staged, and receipts that don't tell how a content travelled. Rows S of `situations.md`.

use std::sync::Arc;

use domain::listing::PushState;
use domain::protocol::Refusal;
use domain::{Executor, OnDifference, Ordinal, Push, PushId, PushKey};

use super::Make;
use super::build::{Build, accepted, cycle, forty, log, now, numbered, outcomes, push, receipt, shop, sound, words};
use crate::{Committed, Promoted, Promotion, Recorded, Refused, Store};

fn sixty(failed: u32, mark: char) -> String {
    numbered(0..failed, mark) + &numbered(failed..60, '+')
}

fn attempt(n: u64, words: &str) -> Build {
    push(words).attempt(n).executor(&format!("e{n}")).incarnation(n.into())
}

/// S2, S3: with the first leg open, and with it committed.
pub async fn s3_a_second_leg_is_refused_while_the_first_is_staged(make: Make<'_>) {
    let store = make();
    let leg = |executor: &str, n: u64| push(&forty('+')).executor(executor).attempt(n);
    let first = leg("linux", 1).incarnation(1).cut(2);
    first.begun(&store).await;
    first.put(&store, 1, 0).await;
    let collides = |refusal: Refusal, known: bool| match refusal {
        Refusal::CollidingExecutor { recorded, ordinal } => {
            assert_eq!(recorded.iter().map(Executor::as_str).collect::<Vec<_>>(), ["linux"]);
            assert_eq!(ordinal, known.then_some(Ordinal(1)));
        }
        other => panic!("not a collision: {other:?}"),
    };
    collides(leg("mac", 1).incarnation(2).cut(1).refused(&store).await, true);
    collides(leg("mac", 1).incarnation(2).refused(&store).await, false);
    collides(leg("mac", 2).incarnation(3).cut(2).blind().refused(&store).await, false);
    assert!(store.projects().await.expect("works").is_empty());
    first.put_all(&store, 1).await;
    assert!(!first.committed(&store, 1).await.replayed, "who came first goes on");
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].state, PushState::Contested);
    collides(leg("mac", 3).incarnation(4).cut(2).refused(&store).await, false);
    assert!(leg("linux", 1).cut(2).replayed(&store).await.replayed);
    sound(&store).await;
}

pub async fn s3_a_second_leg_is_refused_after_the_first_was_staged(make: Make<'_>) {
    let store = make();
    let leg = |executor: &str, n: u64| push(&forty('+')).executor(executor).attempt(n);
    leg("linux", 1).cut(2).delivered(&store).await;
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].state, PushState::Recorded);
    let refusal = leg("mac", 1).cut(1).refused(&store).await;
    assert!(matches!(refusal, Refusal::CollidingExecutor { ordinal: Some(Ordinal(1)), .. }));
    assert_eq!(cycle(&store).await.rounds[0].pushes[0].state, PushState::Contested);
    let refusal = leg("mac", 2).refused(&store).await;
    assert!(matches!(refusal, Refusal::CollidingExecutor { ordinal: None, .. }));
    sound(&store).await;
}

/// All who began or resumed an epoch are accepted with it, at the attempts that they named.
pub async fn everyone_who_staged_is_accepted(make: Make<'_>) {
    let store = make();
    let [one, two] = [1, 2].map(|n| attempt(n, &forty('-')).cut(2));
    one.begun(&store).await;
    assert!(two.begun(&store).await.resumed, "a second attempt with the same content");
    one.put_all(&store, 1).await;
    let answer = one.committed(&store, 1).await;
    let report = store.push(&shop(), one.manifest.push()).await.expect("works").expect("exists");
    assert_eq!(report.revisions[0].ordinal, Some(Ordinal(2)), "the highest");
    assert_eq!(report.log.iter().map(|e| e.executor.as_ref().map(Executor::as_str)).collect::<Vec<_>>(), [Some("e2")]);
    // Before they come again: a repeat would make them known.
    for n in [1, 2] {
        let leg = push(&forty('-')).attempt(n).executor("other");
        assert!(matches!(leg.refused(&store).await, Refusal::CollidingExecutor { .. }), "attempt {n}");
    }
    for n in [1, 2] {
        assert_eq!(attempt(n, &forty('-')).accepted(&store).await.receipt, answer.receipt);
    }
    sound(&store).await;
}

pub async fn s5_s6_staged_reruns_whole_and_in_part(make: Make<'_>) {
    let store = make();
    attempt(1, &sixty(20, '-')).cut(2).delivered(&store).await;
    let part = attempt(2, &numbered(0..10, '+')).cut(0).delivered(&store).await;
    assert_eq!((part.revision, part.current_counts.flaky, part.current_counts.failed), (2, 10, 10));
    let rest = attempt(3, &numbered(0..20, '+')).cut(1).blind().delivered(&store).await;
    let counts = receipt(&rest).counts;
    assert_eq!((rest.revision, counts.total, counts.flaky, counts.failed), (3, 60, 20, 0));
    let whole = attempt(4, &sixty(5, '!')).cut(1).delivered(&store).await;
    assert_eq!((whole.revision, whole.current_counts.errored, whole.current_counts.total), (4, 5, 60));
    // S7: the first attempt's outbox is flushed late.
    let late = attempt(1, &sixty(20, '-')).cut(2).replayed(&store).await;
    assert_eq!((late.revision, late.current_revision), (1, 4));
    assert_eq!(log(&store, push("").id()).await, ["recorded", "revised", "revised", "revised", "replayed"]);
    sound(&store).await;
}

pub async fn s9_fail_pass_fail_staged(make: Make<'_>) {
    let store = make();
    for (n, mark, bits) in [(1, '-', 2), (2, '+', 1), (3, '-', 0)] {
        let answer = attempt(n, &forty(mark)).cut(bits).delivered(&store).await;
        assert_eq!((answer.revision, answer.replayed), (n as u32, false));
    }
    assert_eq!(words(&store).await, forty('-').trim());
    let items = super::build::page(&store, &super::build::query()).await.items;
    assert!(items.iter().all(|item| item.attempts.len() == 2));
    sound(&store).await;
}

/// How one content of a sequence travels.
#[derive(Clone, Copy)]
enum Way {
    Whole,
    Cut(u8),
    Blind(u8),
}

async fn deliver(store: &Arc<dyn Store>, build: &Build, way: Way) -> Recorded {
    let most = domain::content::leaf_bits(build.0.outcomes.len() as u64);
    let cut = match way {
        Way::Whole => return build.to(store).await,
        Way::Cut(bits) => build.cut(bits.min(most)),
        Way::Blind(bits) => build.cut(bits.min(most)).blind(),
    };
    let epoch = match cut.begin(store, now()).await {
        crate::Begun::Staging(staging) => staging.epoch.0,
        crate::Begun::Replayed(answer) => return Recorded::Accepted(answer),
        crate::Begun::Refused(refused) => return Recorded::Refused(refused),
        crate::Begun::Fenced(fence) => return Recorded::Fenced(fence),
    };
    cut.put_all(store, epoch).await;
    match cut.commit(store, epoch).await {
        Committed::Accepted(answer) => Recorded::Accepted(answer),
        Committed::Refused(refused) => Recorded::Refused(refused),
        other => panic!("{other:?}"),
    }
}

/// An answer as text, as if its push were one of project `shop`.
fn as_of_shop(recorded: &Recorded, push: &Push) -> String {
    let renamed = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).expect("JSON");
        let id = PushId::of(&push.place.project, &push.key).to_string();
        text.replace(&id, "PUSH").replace(&format!("\"{}\"", push.place.project), "\"shop\"")
    };
    match recorded {
        Recorded::Accepted(answer) => {
            let receipt = renamed(&answer.receipt);
            format!("{receipt} {:?}", crate::Answer { receipt: Vec::new(), ..answer.clone() })
        }
        // Which names a begin can give of offered items is the engine's to say.
        Recorded::Refused(Refused { refusal, recorded_samples, .. }) => format!("{refusal:?} {recorded_samples:?}"),
        Recorded::Fenced(fence) => format!("{fence:?}"),
    }
}

/// The same sequence of contents, whole in one project and staged in others: the same receipts byte for byte, the same
/// answers, whether they are first, revised, kept, replayed or refused.
pub async fn receipts_do_not_tell_how_a_content_travelled(make: Make<'_>) {
    let store = make();
    let sequence = [
        attempt(1, &sixty(20, '-')),
        attempt(2, &(sixty(10, '~') + "new1+ new2-")),
        attempt(2, &sixty(3, '!')).on(OnDifference::Keep).executor("e2").incarnation(20),
        attempt(1, &sixty(20, '-')),
        attempt(3, &numbered(100..160, '+')),
        attempt(4, &numbered(0..20, '*')),
        attempt(5, &sixty(1, '-')).on(OnDifference::Fail),
        push(&forty('!')).on(OnDifference::Revise).incarnation(6),
    ];
    let ways = [Way::Whole, Way::Cut(0), Way::Cut(1), Way::Cut(2), Way::Blind(0), Way::Blind(1), Way::Blind(2)];
    let mut whole: Vec<String> = Vec::new();
    for (at, way) in ways.into_iter().enumerate() {
        let name = if at == 0 { "shop".to_owned() } else { format!("sho{at}") };
        for (step, build) in sequence.iter().enumerate() {
            let build = build.clone().project(&name);
            let answer = as_of_shop(&deliver(&store, &build, way).await, &build.0);
            match whole.get(step).filter(|_| at > 0) {
                Some(expected) => assert_eq!(&answer, expected, "way {at}, step {step}"),
                None => whole.push(answer),
            }
        }
    }
    sound(&store).await;
}

/// A receipt lists the first hundred items in the order of hashes, also out of several chunks.
pub async fn a_long_difference_is_listed_alike(make: Make<'_>) {
    let store = make();
    let mut receipts = Vec::new();
    for (name, way) in [("shop", Way::Whole), ("sho1", Way::Cut(4)), ("sho2", Way::Blind(1))] {
        let first = attempt(1, &numbered(0..400, '-')).project(name);
        let second = attempt(2, &numbered(100..500, '+')).project(name);
        deliver(&store, &first, way).await;
        let recorded = deliver(&store, &second, way).await;
        receipts.push(as_of_shop(&recorded, &second.0));
        let difference = receipt(&accepted(recorded)).difference.expect("a difference");
        assert_eq!((difference.changed, difference.added, difference.not_offered), (300, 100, 100));
        assert_eq!(difference.items.len(), domain::limits::DIFFERENCE_ITEMS_MAX);
        assert!(difference.items.is_sorted_by_key(|item| item.hash.0));
    }
    assert_eq!(receipts[0], receipts[1]);
    assert_eq!(receipts[0], receipts[2]);
    sound(&store).await;
}

async fn promote(store: &Arc<dyn Store>, build: &Build) {
    let promotion = Promotion {
        project: build.0.place.project.clone(),
        push: build.id(),
        key: PushKey::parse("promotion").expect("a key"),
        revision: None,
        exact: false,
        if_match: None,
    };
    let promoted = store.promote(promotion, now()).await.expect("the store works");
    assert!(matches!(promoted, Promoted::Accepted(_)), "{promoted:?}");
}

/// What counts moves while chunks are put: the commit counts against what counts then.
pub async fn a_promotion_between_puts_and_commit_is_counted(make: Make<'_>) {
    let store = make();
    let mut answers = Vec::new();
    for (name, bits) in [("shop", None), ("sho1", Some(2)), ("sho2", Some(0))] {
        let in_project = |build: Build| build.project(name);
        let kept = in_project(push(&sixty(30, '!')).attempt(1).on(OnDifference::Keep).incarnation(8));
        let third = in_project(attempt(3, &sixty(40, '+')));
        in_project(attempt(1, &sixty(20, '-')).executor("e1")).accepted(&store).await;
        kept.accepted(&store).await;
        let recorded = match bits {
            None => {
                promote(&store, &kept).await;
                third.to(&store).await
            }
            Some(bits) => {
                let cut = third.cut(bits);
                let epoch = cut.begun(&store).await.epoch.0;
                cut.put(&store, epoch, 0).await;
                promote(&store, &kept).await;
                cut.put_all(&store, epoch).await;
                Recorded::Accepted(cut.committed(&store, epoch).await)
            }
        };
        answers.push(as_of_shop(&recorded, &third.0));
        let receipt = receipt(&accepted(recorded));
        assert_eq!((receipt.revision, receipt.counts.total, receipt.counts.flaky), (4, 60, 30));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
    sound(&store).await;
}

pub async fn a_staged_overlay_is_read_item_by_item(make: Make<'_>) {
    let store = make();
    attempt(1, &sixty(2, '-')).cut(2).delivered(&store).await;
    attempt(2, &(sixty(2, '+') + "new+")).cut(1).delivered(&store).await;
    let difference = store.difference(&shop(), push("").id(), 2).await.expect("works").expect("exists");
    let mut names: Vec<_> = difference.items.iter().map(|item| item.item.name().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["new", "t000", "t001"]);
    assert_eq!(outcomes(&words(&store).await).counts().flaky, 2);
    sound(&store).await;
}
