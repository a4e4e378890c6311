//! Two deliveries under one key: who may stage, who waits, and what each is told.

use domain::limits::EPOCH_IDLE_MS;

use crate::http::Answer;
use crate::in_process::{InProcess, on_every_store};
use crate::staging::{From as _, Sends as _, cancel, commit, cut, outcomes, sixty};

const ATTACH: &str = "/api/v1/projects/shop/pushes?key=run%3A42";

#[track_caller]
fn is_fenced(answer: &Answer, code: &str, seconds: u64) {
    answer.is_problem(code, &["Nothing of this push was recorded", "Attach", "only the answer to that counts"]);
    assert_eq!(answer.header("location"), Some(ATTACH));
    assert_eq!(answer.header("retry-after"), Some(seconds.to_string().as_str()));
}

#[tokio::test]
async fn an_active_epoch_is_waited_for_and_an_idle_one_taken_over() {
    on_every_store(async |here: InProcess| {
        let (mine, theirs) = (sixty(&[7]), sixty(&[8]));
        let epoch = mine.stage(&here, mine.begin("run:42", "").process(1)).await;
        is_fenced(&here.send(theirs.begin("run:42", "").process(2)).await, "push-in-progress", 30);
        is_fenced(&here.send(theirs.one_shot("run:42", "").process(2)).await, "push-in-progress", 30);
        here.later(EPOCH_IDLE_MS - 2500);
        is_fenced(&here.send(theirs.begin("run:42", "").process(2)).await, "push-in-progress", 3);
        here.later(2500);
        let taken = here.send(theirs.begin("run:42", "").process(2)).await;
        assert_eq!((taken.status, taken.header("push-epoch")), (201, Some("2")), "{}", taken.text());
        here.send(mine.put(&epoch, 0)).await.is_problem("superseded", &["nothing of this epoch is visible"]);
        let late = here.send(commit(&epoch)).await;
        late.is_problem("superseded", &["Nothing is recorded under the key so far"]);
        assert_eq!(late.json()["recorded"], serde_json::Value::Null);
        // The delayed begin of the first: never a new epoch.
        let delayed = here.send(mine.begin("run:42", "").process(1)).await;
        delayed.is_problem("superseded", &["Epoch 1 of this client"]);
        assert_eq!(delayed.header("location"), Some(ATTACH));
        assert_eq!(here.send(cancel(&epoch)).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_later_attempt_takes_over_at_once_and_an_earlier_one_waits() {
    on_every_store(async |here: InProcess| {
        let (old, new) = (sixty(&[7]), sixty(&[8]));
        let first = old.stage(&here, old.begin("run:42", "").process(1).attempt(1)).await;
        let second = new.stage(&here, new.begin("run:42", "").process(2).attempt(2)).await;
        assert!(second.ends_with("/epochs/2"), "{second}");
        is_fenced(&here.send(old.begin("run:42", "").process(3).attempt(1)).await, "stale-attempt", 30);
        is_fenced(&here.send(old.one_shot("run:42", "").process(3).attempt(1)).await, "stale-attempt", 30);
        let recorded = here.send(commit(&second)).await;
        recorded.is_recorded();
        let late = here.send(commit(&first)).await;
        late.is_problem("superseded", &["by another delivery"]);
        let receipt = &late.json()["recorded"];
        assert_eq!((receipt["revision"].as_u64(), receipt["etag"].as_str()), (Some(1), recorded.header("etag")));
        assert!(late.text().contains(&recorded.text()), "the receipt of the other, byte for byte");
        assert_eq!(here.send(commit(&first)).await, late, "equal bytes for every copy");
        assert!(here.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_push_in_one_request_beside_an_epoch() {
    on_every_store(async |here: InProcess| {
        // The same content ends the epoch as committed.
        let push = sixty(&[7]);
        let epoch = here.send(push.begin("a", "").process(1)).await.header("location").unwrap().to_owned();
        here.send(push.put(&epoch, 0)).await;
        let whole = here.send(push.one_shot("a", "").process(2)).await;
        whole.is_recorded();
        here.send(commit(&epoch)).await.is_replay_of(&whole);
        here.send(push.begin("a", "").process(1)).await.is_replay_of(&whole);
        here.send(cancel(&epoch)).await.is_problem("committed", &[]);
        // Another content of a later attempt supersedes it.
        let epoch = push.stage(&here, push.begin("b", "").process(3).attempt(1)).await;
        let whole = here.send(sixty(&[8]).one_shot("b", "").process(4).attempt(2)).await;
        whole.is_recorded();
        let late = here.send(commit(&epoch)).await;
        late.is_problem("superseded", &[]);
        assert_eq!(late.json()["recorded"]["etag"].as_str(), whole.header("etag"));
        let report = here.app.door().collect().await.unwrap();
        assert_eq!(report.abandoned, 0);
        assert!(here.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_second_leg_collides_with_what_is_staged() {
    on_every_store(async |here: InProcess| {
        let push = sixty(&[7]);
        let begin = || push.begin("run:42", "").attempt(1);
        let epoch = push.stage(&here, begin().executor("runner-1").process(1)).await;
        let leg = here.send(begin().executor("runner-2").process(2)).await;
        leg.is_problem("key-collision", &["recorded executor: runner-1", "offered executor: runner-2", "--shard"]);
        let leg = here.send(push.one_shot("run:42", "").attempt(1).executor("runner-3").process(3)).await;
        leg.is_problem("key-collision", &["offered executor: runner-3"]);
        let recorded = here.send(commit(&epoch)).await;
        recorded.is_recorded();
        let report = here.send(crate::http::Request::get(recorded.header("location").unwrap())).await;
        assert_eq!(report.json()["state"], "contested");
        let later = here.send(push.begin("run:42", "").attempt(2).executor("runner-2")).await;
        later.is_problem("key-collision", &["contested"]);
    })
    .await;
}

#[tokio::test]
async fn the_same_key_in_two_projects_is_two_stagings() {
    on_every_store(async |here: InProcess| {
        let push = sixty(&[7]);
        let epoch = push.stage(&here, push.begin("run:42", "").process(1)).await;
        let other = crate::http::Request::get(ATTACH.replace("/shop/", "/till/"));
        here.send(other.clone()).await.is_problem("unknown-push", &[]);
        here.send(commit(&epoch)).await.is_recorded();
        here.send(other).await.is_problem("unknown-push", &[]);
        let theirs = cut(outcomes(0..10, &[]), 0);
        let mut begin = theirs.begin("run:42", "").process(1);
        begin.path = begin.path.replace("/shop/", "/till/");
        let begun = here.send(begin).await;
        assert_eq!((begun.status, begun.header("push-epoch")), (201, Some("1")), "{}", begun.text());
        assert!(!begun.text().contains("recorded"), "{}", begun.text());
    })
    .await;
}

#[tokio::test]
async fn a_dropped_round_takes_what_is_staged_with_it() {
    on_every_store(async |here: InProcess| {
        let push = sixty(&[7]);
        here.send(push.one_shot("other", "&job=lint")).await.is_recorded();
        let epoch = push.stage(&here, push.begin("run:42", "&job=unit").process(1)).await;
        let (project, cycle) = ("shop".parse().unwrap(), "main".parse().unwrap());
        here.store.drop_round(&project, &cycle, "42").await.unwrap().unwrap();
        here.send(commit(&epoch)).await.is_problem("staging-expired", &["deleted"]);
        here.send(push.put(&epoch, 0)).await.is_problem("staging-expired", &[]);
        here.send(push.begin("run:42", "&job=unit").process(2)).await.is_problem("tombstoned", &[]);
    })
    .await;
}
