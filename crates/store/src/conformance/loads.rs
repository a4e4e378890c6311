//! What of a push is forwarded: all that counts of it now, as readers see it.

use std::sync::Arc;

use domain::intent::Intent;
use domain::limits::FORWARDED_TEXT_CHARS_MAX;
use domain::listing::{IntentReport, ItemReport};
use domain::round::RoundChoice;
use domain::{Attempt, DurationUs, OnDifference, Ordinal, Outcome, PushId, PushKey};

use super::Make;
use super::build::forwards::{forwarded, lease, next, to_there};
use super::build::{AT_MS, Build, forty, intent, main_cycle, now, outcomes, push, query, shop, sound};
use crate::{Absent, ForwardsOf, Promotion, PushLoad, Store};

async fn load(store: &Arc<dyn Store>, of: &Build) -> PushLoad {
    store.push_load(&of.0.place.project, of.id()).await.expect("works").expect("recorded")
}

/// The load, which must hold what the listing of a round with this push alone shows, but for earlier executions; of texts
/// what goes on.
async fn as_listed(store: &Arc<dyn Store>, of: &Build) -> PushLoad {
    let load = load(store, of).await;
    assert!(load.outcomes.is_sorted_by(|a, b| a.item.hash() < b.item.hash()));
    let choice = RoundChoice::Named(of.0.place.round.to_string());
    let page = store.items(&shop(), &main_cycle(), &choice, &query()).await.expect("works").expect("exists");
    let mut listed: Vec<ItemReport> = page.items;
    listed.sort_by_key(|item| item.hash.0);
    let as_listed = |outcome: &Outcome| {
        let duration_ms = outcome.duration_us.map(DurationUs::as_ms);
        ((outcome.item.clone(), outcome.status, duration_ms, outcome.message.clone()), outcome.external_ids.clone())
    };
    let found: Vec<_> = load.outcomes.iter().map(as_listed).collect();
    let expected: Vec<_> = listed
        .iter()
        .cloned()
        .map(|item| {
            let message = item.message.map(|text| text.chars().take(FORWARDED_TEXT_CHARS_MAX).collect::<String>());
            ((item.item, item.status, item.duration_ms, message), item.external_ids)
        })
        .collect();
    assert_eq!(found, expected);
    // Of what ran before, nothing: what an item's own report told of its attempts, as verdicts.
    for (outcome, item) in load.outcomes.iter().zip(&listed) {
        let verdicts = |attempts: &[Attempt]| attempts.iter().map(|attempt| attempt.status).collect::<Vec<_>>();
        assert!(verdicts(&item.attempts).ends_with(&verdicts(&outcome.attempts)), "{outcome:?}");
        assert!(outcome.attempts.iter().all(|attempt| attempt.message.is_none()), "{outcome:?}");
    }
    load
}

async fn promote(store: &Arc<dyn Store>, of: &Build, revision: u32, exact: bool) {
    let key = PushKey::parse(&format!("p{revision}")).expect("a key");
    let promotion = Promotion { project: shop(), push: of.id(), key, revision: Some(revision), exact, if_match: None };
    store.promote(promotion, now()).await.expect("works");
}

fn short(load: &PushLoad) -> (u32, Option<u64>, usize) {
    (load.revision, load.ordinal.map(|ordinal| ordinal.0), load.outcomes.len())
}

pub async fn a_load_is_what_counts(make: Make<'_>) {
    let store = make();
    let mut list = outcomes("a- b+ c* d!").as_slice().to_vec();
    list[0].message = Some("long ".repeat(2000));
    list[1].external_ids = ["C1", "KEY-T2"].map(|id| id.to_owned().into()).to_vec();
    let mut first = push("").holds(domain::Outcomes::from_unordered(list).expect("one each")).attempt(1);
    first.0.origin.run_url = Some("https://ci.example/1".to_owned());
    first.accepted(&store).await;
    let found = as_listed(&store, &first).await;
    assert_eq!(short(&found), (1, Some(1), 4));
    let longest = found.outcomes.iter().filter_map(|outcome| outcome.message.as_ref()).map(String::len).max();
    assert_eq!(longest, Some(FORWARDED_TEXT_CHARS_MAX), "of 10,000");
    assert_eq!((&found.key, &found.place), (&first.0.key, &first.0.place));
    assert_eq!(found.run_url.as_deref(), Some("https://ci.example/1"));
    // A part of it again, one that is kept beside, one that somebody promotes.
    push("a+ d+ e-").attempt(2).accepted(&store).await;
    assert_eq!(short(&as_listed(&store, &first).await), (2, Some(2), 5));
    push("a- b- f+").attempt(1).on(OnDifference::Keep).accepted(&store).await;
    assert_eq!(short(&as_listed(&store, &first).await), (3, Some(2), 6));
    promote(&store, &first, 3, false).await;
    assert_eq!(short(&as_listed(&store, &first).await), (4, Some(2), 6));
    promote(&store, &first, 1, true).await;
    assert_eq!(short(&as_listed(&store, &first).await), (5, Some(2), 4));
    push("a+ b+").attempt(3).accepted(&store).await;
    assert_eq!(short(&as_listed(&store, &first).await), (6, Some(3), 4));
    // A later attempt that says the same.
    push("a+ b+").attempt(4).accepted(&store).await;
    assert_eq!(load(&store, &first).await.ordinal, Some(Ordinal(4)));
    sound(&store).await;
}

pub async fn a_staged_load_is_what_counts(make: Make<'_>) {
    let store = make();
    let first = push(&forty('-')).run("7").key("s").attempt(1);
    first.cut(2).delivered(&store).await;
    assert_eq!(short(&as_listed(&store, &first).await), (1, Some(1), 40));
    let second = push(&format!("{} more+", forty('*'))).run("7").key("s").attempt(2);
    let open = second.cut(1);
    open.begun(&store).await;
    open.put_all(&store, 2).await;
    assert_eq!(short(&as_listed(&store, &first).await), (1, Some(1), 40));
    open.committed(&store, 2).await;
    let found = as_listed(&store, &first).await;
    assert_eq!(short(&found), (2, Some(2), 41));
    assert_eq!(found.outcomes.iter().filter(|outcome| outcome.attempts.len() == 1).count(), 40, "of their own report");
}

pub async fn a_load_of_nothing_is_absent(make: Make<'_>) {
    let store = make();
    let none = push("a+");
    let absent = store.push_load(&shop(), none.id()).await.expect("works");
    assert_eq!(absent, Err(Absent::Project(shop())));
    assert_eq!(store.forwards_of(&shop(), none.id()).await.expect("works"), Err(Absent::Project(shop())));
    none.accepted(&store).await;
    assert_eq!(store.push_load(&shop(), PushId([7; 16])).await.expect("works"), Err(Absent::Push));
    assert_eq!(store.forwards_of(&shop(), PushId([7; 16])).await.expect("works"), Err(Absent::Push));
    push("").key("empty").accepted(&store).await;
    assert_eq!(load(&store, &push("").key("empty")).await.outcomes, []);
}

pub async fn everything_of_a_push_is_found_together(make: Make<'_>) {
    let store = make();
    let mine = push("a- b+").run("1").attempt(1);
    mine.accepted(&store).await;
    let of = |waiting, intents: Vec<Intent>| ForwardsOf {
        key: mine.0.key.clone(),
        waiting,
        intents: intents.into_iter().map(IntentReport::from).collect(),
    };
    let found = || async { store.forwards_of(&shop(), mine.id()).await.expect("works").expect("known") };
    assert_eq!(found().await, of(vec![], vec![]));
    to_there(&store);
    push("a+ b+").attempt(2).accepted(&store).await;
    push("a+").key("other").accepted(&store).await;
    push("a+").project("depot").accepted(&store).await;
    let turn = lease(&store, "one", AT_MS).await.expect("free");
    let waits = next(&store, AT_MS).await.expect("waits");
    assert_eq!(found().await, of(vec![waits.clone()], vec![]));
    let mut planned = vec![intent(1), intent(0)];
    let mut others = planned.clone();
    others[0].id.0 += 100;
    others[0].key = PushKey::parse("other").expect("a key");
    others[1].id.0 += 100;
    others[1].project = domain::ProjectId::parse("depot").expect("a project");
    for intents in [planned.clone(), others] {
        store.plan_intents("there", turn, intents).await.expect("works").expect("not fenced");
    }
    assert!(store.end_waiting(turn, &waits, forwarded(2)).await.expect("works"));
    planned.reverse();
    let ended = crate::Waiting { ended: Some(forwarded(2)), ..waits };
    assert_eq!(found().await, of(vec![ended.clone()], planned.clone()));
    // Also when the round is gone.
    store.drop_round(&shop(), &main_cycle(), "1").await.expect("works").expect("exists");
    assert_eq!(found().await, of(vec![ended], planned));
    sound(&store).await;
}
