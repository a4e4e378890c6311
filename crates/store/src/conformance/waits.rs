//! What makes a push wait for a target, in which order it is tried, and what ends it.

use domain::{OnDifference, ProjectId, PushKey};

use super::Make;
use super::build::forwards::{all, ends, forwarded, lease, next, open, rows, rule, short, to_there};
use super::build::{AT_MS, Build, after, forty, main_cycle, push, shop, sound};
use crate::{End, Promotion, Waiting, WaitingQuery};

pub async fn a_push_waits_for_every_target_that_takes_it(make: Make<'_>) {
    let store = make();
    let other = ProjectId::parse("depot").expect("a project");
    let rules = vec![
        rule("there", &["shop"], &["main", "release-*"]),
        rule("all", &[], &[]),
        rule("all", &["shop"], &[]),
        rule("depots", &["depot"], &["pr-*", "main"]),
    ];
    push("a+").key("early").accepted(&store).await;
    store.set_forward_rules(rules);
    let mine = push("a+ b-").key("k1").run("7");
    assert!(matches!(mine.at(&store, after(9)).await, crate::Recorded::Accepted(_)));
    push("a+").key("k2").cycle("pr-1").accepted(&store).await;
    push("a+").key("k3").project("depot").accepted(&store).await;
    push("a+").key("k4").cycle("release-1").accepted(&store).await;
    let found = open(&store).await;
    assert_eq!(
        short(&found),
        ["all k1 1", "there k1 1", "all k2 1", "all k3 1", "depots k3 1", "all k4 1", "there k4 1"]
    );
    let expected = Waiting {
        id: found[1].id,
        target: "there".to_owned(),
        project: shop(),
        cycle: main_cycle(),
        round: mine.0.place.round.clone(),
        push: mine.id(),
        key: mine.0.key.clone(),
        revision: 1,
        since_ms: AT_MS + 9,
        due_ms: 0,
        tries: 0,
        cause: None,
        ended: None,
    };
    assert_eq!(found[1], expected);
    let base = WaitingQuery::default;
    for (query, number) in [
        (WaitingQuery { target: Some("all".to_owned()), ..base() }, 4),
        (WaitingQuery { project: Some(other), ..base() }, 2),
        (WaitingQuery { cycle: Some(main_cycle()), ..base() }, 4),
        (WaitingQuery { push: Some(mine.id()), ..base() }, 2),
        (WaitingQuery { push: Some(mine.id()), target: Some("depots".to_owned()), ..base() }, 0),
        (WaitingQuery { limit: Some(3), ended: true, ..base() }, 3),
    ] {
        assert_eq!(rows(&store, query.clone()).await.len(), number, "{query:?}");
    }
    // Another list of rules is for what comes.
    store.set_forward_rules(Vec::new());
    push("a+").key("k5").accepted(&store).await;
    assert_eq!(open(&store).await, found);
    sound(&store).await;
}

/// A first content, an overlay, a promotion, and each of them staged.
pub async fn whatever_changes_what_counts_waits_once(make: Make<'_>) {
    let store = make();
    to_there(&store);
    let first = push("a- b+").attempt(1);
    first.accepted(&store).await;
    push("a+ b+").attempt(2).accepted(&store).await;
    let promotion = Promotion {
        project: shop(),
        push: first.id(),
        key: PushKey::parse("p").expect("a key"),
        revision: Some(1),
        exact: true,
        if_match: None,
    };
    for _ in 0..2 {
        store.promote(promotion.clone(), after(3)).await.expect("works");
    }
    let staged = |mark, attempt| push(&forty(mark)).key("s").attempt(attempt).cut(1);
    staged('+', 1).delivered(&store).await;
    staged('-', 2).delivered(&store).await;
    let found = open(&store).await;
    assert_eq!(short(&found), ["there k 1", "there k 2", "there k 3", "there s 1", "there s 2"]);
    assert_eq!(found[2].since_ms, AT_MS + 3);
    assert!(found.is_sorted_by_key(|row| row.id));
    sound(&store).await;
}

pub async fn a_repeat_and_what_is_refused_make_nothing_wait(make: Make<'_>) {
    let store = make();
    to_there(&store);
    let first = push("a- b+ x+").attempt(1).executor("one");
    first.accepted(&store).await;
    let staged = push(&forty('+')).key("s").attempt(1).cut(1);
    staged.delivered(&store).await;
    let before = all(&store).await;
    assert_eq!(short(&before), ["there k 1", "there s 1"]);
    for repeat in [&first, &first.clone().attempt(2), &first.clone().body("bytes")] {
        assert!(repeat.accepted(&store).await.replayed);
    }
    staged.replayed(&store).await;
    staged.committed(&store, 1).await;
    push("a+ b+ x+").attempt(1).executor("other").refused(&store).await;
    push("a+ b+ x+").attempt(1).on(OnDifference::Fail).refused(&store).await;
    // Begun, put and given up.
    let open = push(&forty('-')).key("t").cut(1);
    open.begun(&store).await;
    open.put(&store, 1, 0).await;
    open.cancel(&store, 1).await;
    assert_eq!(all(&store).await, before);
    sound(&store).await;
}

pub async fn what_is_kept_beside_waits_only_with_items_of_its_own(make: Make<'_>) {
    let store = make();
    to_there(&store);
    let kept = |words: &str| -> Build { push(words).on(OnDifference::Keep) };
    push("a- b+").accepted(&store).await;
    kept("a+ b+").accepted(&store).await;
    assert_eq!(short(&open(&store).await), ["there k 1"]);
    // Nobody had `c`, so that it counts.
    kept("a+ b- c+").accepted(&store).await;
    assert_eq!(short(&open(&store).await), ["there k 1", "there k 3"]);
    kept("a+ b- c-").cut(0).delivered(&store).await;
    kept("a- b- c- d+").cut(0).delivered(&store).await;
    assert_eq!(short(&open(&store).await), ["there k 1", "there k 3", "there k 5"]);
    sound(&store).await;
}

pub async fn the_oldest_that_is_due_comes_next(make: Make<'_>) {
    let store = make();
    to_there(&store);
    for key in ["a", "b", "c"] {
        push("a+").key(key).accepted(&store).await;
    }
    let turn = lease(&store, "one", AT_MS).await.expect("free");
    let named = |waiting: Option<Waiting>| waiting.map(|row| row.key.to_string());
    let first = next(&store, 0).await.expect("waits");
    assert!(store.put_off(turn, &first, AT_MS + 60, "no answer").await.expect("works"));
    assert_eq!(named(next(&store, AT_MS + 59).await).as_deref(), Some("b"));
    // What was put off is the oldest again once it is due.
    assert_eq!(named(next(&store, AT_MS + 60).await).as_deref(), Some("a"));
    assert!(store.put_off(turn, &first, AT_MS + 120, "no 'answer'\nagain").await.expect("works"));
    let second = next(&store, AT_MS + 60).await.expect("waits");
    assert!(store.put_off(turn, &second, AT_MS + 90, "busy").await.expect("works"));
    assert!(store.end_waiting(turn, &next(&store, AT_MS).await.expect("waits"), forwarded(1)).await.expect("works"));
    assert_eq!(next(&store, AT_MS + 89).await, None);
    assert_eq!(named(next(&store, AT_MS + 90).await).as_deref(), Some("b"));
    let kept = Waiting { due_ms: AT_MS + 120, tries: 2, cause: Some("no 'answer'\nagain".to_owned()), ..first };
    assert_eq!(next(&store, AT_MS + 120).await, Some(kept));
    assert_eq!(store.next_waiting("elsewhere", AT_MS).await.expect("works"), None);
    sound(&store).await;
}

/// What counts of a push is forwarded at once, whatever made it wait; what came later still waits.
pub async fn an_end_takes_older_waits_of_the_push_along(make: Make<'_>) {
    let store = make();
    store.set_forward_rules(vec![rule("there", &[], &[]), rule("elsewhere", &[], &[])]);
    for attempt in 1..=3 {
        push(&format!("a{} b+", ["+", "-", "!"][attempt - 1])).attempt(attempt as u64).accepted(&store).await;
    }
    push("a+").key("other").accepted(&store).await;
    let turn = lease(&store, "one", AT_MS).await.expect("free");
    let first = next(&store, AT_MS).await.expect("waits");
    assert!(store.end_waiting(turn, &first, forwarded(2)).await.expect("works"));
    let open = open(&store).await;
    assert_eq!(
        short(&open),
        ["elsewhere k 1", "elsewhere k 2", "elsewhere k 3", "there k 3", "elsewhere other 1", "there other 1"]
    );
    let ended: Vec<Waiting> = all(&store).await.into_iter().filter(|row| row.ended.is_some()).collect();
    assert_eq!(short(&ended), ["there k 1", "there k 2"]);
    assert_eq!(ended[0], Waiting { ended: Some(forwarded(2)), ..first.clone() });
    // What has ended stays as it is.
    assert!(store.end_waiting(turn, &first, forwarded(1)).await.expect("works"));
    assert!(store.put_off(turn, &first, 5, "late").await.expect("works"));
    assert_eq!(all(&store).await.into_iter().find(|row| row.id == first.id), ended.first().cloned());
    // The row that was tried ends whatever was forwarded.
    let third = next(&store, AT_MS).await.expect("waits");
    assert!(store.end_waiting(turn, &third, forwarded(0)).await.expect("works"));
    assert_eq!(next(&store, AT_MS).await.map(|row| row.key.to_string()).as_deref(), Some("other"));
    sound(&store).await;
}

pub async fn a_dropped_round_ends_what_waits(make: Make<'_>) {
    let store = make();
    to_there(&store);
    let gone = push("a- b+").run("1").keyed().attempt(1);
    let done = push("c+").run("1").job("done").keyed();
    let stays = push("a+").run("2").keyed();
    done.accepted(&store).await;
    let turn = lease(&store, "one", AT_MS).await.expect("free");
    assert!(store.end_waiting(turn, &next(&store, AT_MS).await.expect("waits"), forwarded(1)).await.expect("works"));
    gone.accepted(&store).await;
    gone.clone().holds(super::build::outcomes("a+ b+")).attempt(2).accepted(&store).await;
    stays.accepted(&store).await;
    let waits = next(&store, AT_MS).await.expect("waits");
    assert_eq!(waits.push, gone.id());
    store.drop_round(&shop(), &main_cycle(), "1").await.expect("works").expect("exists");
    assert_eq!(ends(&store, gone.id()).await, [Some(End::Dropped); 2]);
    assert_eq!(ends(&store, done.id()).await, [Some(End::Forwarded)]);
    assert_eq!(ends(&store, stays.id()).await, [None]);
    let dropped = all(&store).await.into_iter().find(|row| row.id == waits.id).and_then(|row| row.ended);
    assert_eq!(dropped, Some(crate::Ended::dropped()));
    // Somebody was about to forward it.
    assert!(store.end_waiting(turn, &waits, forwarded(2)).await.expect("works"));
    assert_eq!(ends(&store, gone.id()).await, [Some(End::Dropped); 2]);
    assert_eq!(next(&store, AT_MS).await.map(|row| row.push), Some(stays.id()));
    sound(&store).await;
}
