//! Rounds: which are complete, which the headline counts.

use std::sync::Arc;

use domain::round::RoundChoice;

use super::Make;
use super::build::{cycle, main_cycle, push, receipt, shop, sound, words};
use crate::{RoundAction, Store};

async fn set(store: &Arc<dyn Store>, round: &str, action: RoundAction) {
    let report = store.set_round(&shop(), &main_cycle(), round, action).await.expect("works").expect("exists");
    assert_eq!(report.rounds.len(), 1);
}

async fn authoritative(store: &Arc<dyn Store>) -> Vec<String> {
    let rounds = cycle(store).await.rounds;
    rounds.iter().filter(|r| r.authoritative).map(|r| r.run.to_string()).collect()
}

pub async fn s22_two_runs_are_two_rounds(make: Make<'_>) {
    let store = make();
    push("a- b+").run("1").commit("c0ffee").keyed().accepted(&store).await;
    push("a+ b+").run("2").commit("c0ffee").keyed().accepted(&store).await;
    let report = cycle(&store).await;
    assert_eq!(report.rounds.len(), 2);
    assert_eq!(authoritative(&store).await, ["2"]);
    assert_eq!(report.headline, report.rounds[1].counts);
    assert_eq!(words(&store).await, "a+ b+");
    sound(&store).await;
}

pub async fn s27_an_incomplete_round_counts_when_closed(make: Make<'_>) {
    let store = make();
    push("a+").shard("1/2").run("1").keyed().accepted(&store).await;
    assert!(authoritative(&store).await.is_empty());
    assert_eq!(cycle(&store).await.headline.total, 0);
    let round = cycle(&store).await.rounds.remove(0);
    assert!(!round.complete && !round.missing.is_empty());
    set(&store, "1", RoundAction::Close).await;
    set(&store, "run:1", RoundAction::Close).await;
    assert_eq!(authoritative(&store).await, ["1"]);
    assert_eq!(cycle(&store).await.headline.total, 1);
    sound(&store).await;
}

pub async fn s28_two_workflows_make_one_headline(make: Make<'_>) {
    let store = make();
    push("a+ shared+").run("1").workflow("unit").keyed().accepted(&store).await;
    push("b+ shared-").run("2").workflow("e2e").keyed().accepted(&store).await;
    push("a- shared+").run("3").workflow("unit").keyed().accepted(&store).await;
    assert_eq!(authoritative(&store).await, ["2", "3"]);
    assert_eq!(words(&store).await, "a- b+ shared-");
    let headline = cycle(&store).await.headline;
    assert_eq!((headline.total, headline.failed), (3, 2));
    sound(&store).await;
}

pub async fn s29_yesterdays_outbox_changes_no_headline(make: Make<'_>) {
    let store = make();
    push("a+").run("11").workflow("unit").counter(11).keyed().accepted(&store).await;
    push("a- old+").run("10").workflow("unit").counter(10).keyed().accepted(&store).await;
    let report = cycle(&store).await;
    assert_eq!(report.rounds.iter().map(|r| r.run.as_str()).collect::<Vec<_>>(), ["10", "11"]);
    assert_eq!(authoritative(&store).await, ["11"]);
    assert_eq!(words(&store).await, "a+");
    assert_eq!(report.not_seen_since, 1);
    sound(&store).await;
}

pub async fn s30_a_renamed_item_is_not_seen_since(make: Make<'_>) {
    let store = make();
    push("gone+ old_name+ a+").run("1").keyed().accepted(&store).await;
    push("old_name+ a+").run("2").keyed().accepted(&store).await;
    push("new_name+ a+").run("3").keyed().accepted(&store).await;
    let report = cycle(&store).await;
    assert_eq!((report.headline.total, report.not_seen_since), (2, 2));
    let unseen = store.not_seen_since(&shop(), &main_cycle()).await.expect("works").expect("exists");
    let listed: Vec<_> = unseen.iter().map(|u| (u.item.name(), u.last_seen.as_str())).collect();
    assert_eq!(listed, [("gone", "run:1"), ("old_name", "run:2")]);
    // A newer round that is not complete makes nothing unseen.
    push("only+").shard("1/2").run("4").keyed().accepted(&store).await;
    assert_eq!(cycle(&store).await.not_seen_since, 2);
    sound(&store).await;
}

pub async fn a_late_push_is_recorded_and_said(make: Make<'_>) {
    let store = make();
    push("a+").shard("1/2").keyed().accepted(&store).await;
    set(&store, "1", RoundAction::Close).await;
    let late = push("b+").shard("2/2").keyed().accepted(&store).await;
    assert!(receipt(&late).late);
    let round = cycle(&store).await.rounds.remove(0);
    assert_eq!(round.pushes.iter().map(|p| p.late).collect::<Vec<_>>(), [false, true]);
    assert_eq!(round.counts.total, 2);
    sound(&store).await;
}

pub async fn a_pinned_round_is_authoritative(make: Make<'_>) {
    let store = make();
    for (run, words) in [("1", "a+"), ("2", "a-"), ("3", "a!")] {
        push(words).run(run).keyed().accepted(&store).await;
    }
    set(&store, "1", RoundAction::Pin).await;
    assert_eq!(authoritative(&store).await, ["1"]);
    set(&store, "2", RoundAction::Pin).await;
    assert_eq!(authoritative(&store).await, ["2"]);
    set(&store, "1", RoundAction::Pin).await;
    assert_eq!(authoritative(&store).await, ["1"], "the latest wish holds");
    set(&store, "1", RoundAction::Unpin).await;
    assert_eq!(authoritative(&store).await, ["3"]);
    sound(&store).await;
}

pub async fn expect_completes_a_job(make: Make<'_>) {
    let store = make();
    let expecting = |words: &str, shard: &str, expect: Option<u32>| {
        let mut build = push(words).shard(shard).keyed();
        build.0.expect = expect;
        build
    };
    expecting("a+", "1", Some(2)).accepted(&store).await;
    assert!(!cycle(&store).await.rounds[0].complete);
    expecting("b+", "2", None).accepted(&store).await;
    assert!(cycle(&store).await.rounds[0].complete);
    // A repeat may say it, too.
    expecting("b+", "2", Some(3)).accepted(&store).await;
    let rounds =
        store.cycle(&shop(), &main_cycle(), &RoundChoice::Latest).await.expect("works").expect("exists").rounds;
    assert!(!rounds[0].complete);
    assert_eq!(rounds[0].shards[0].seen, 2);
    sound(&store).await;
}
