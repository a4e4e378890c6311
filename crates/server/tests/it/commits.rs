//! Committing and cancelling: whole or not at all, and the same answer for every copy.

use serde_json::json;

use crate::in_process::{InProcess, on_every_store};
use crate::served::{Served, on_every_engine};
use crate::staging::{From as _, Sends as _, cancel, commit, cut, outcomes, sixty};

#[tokio::test]
async fn the_answer_is_that_of_a_push_in_one_request() {
    on_every_store(async |here: InProcess| {
        let push = sixty(&[7, 8]);
        let staged = push.deliver(&here, push.begin("k", "&job=unit").process(1)).await;
        staged.is_recorded();
        // The same key, and so the same receipt, in a project of its own.
        let mut whole = push.one_shot("k", "&job=unit");
        whole.path = whole.path.replace("/shop/", "/till/");
        let whole = here.send(whole).await;
        whole.is_recorded();
        let id = |answer: &crate::http::Answer| answer.json()["push"].as_str().unwrap().to_owned();
        let text = whole.text().replace("\"till\"", "\"shop\"").replace(&id(&whole), &id(&staged));
        assert_eq!(staged.text(), text);
        assert_eq!(staged.header("push-epoch"), Some("1"));
        for name in ["push-current-revision", "push-current-counts", "push-difference", "link", "content-type"] {
            assert_eq!(staged.header(name), whole.header(name), "{name}");
        }
        assert_eq!(staged.header("location"), Some(format!("/api/v1/projects/shop/pushes/{}", id(&staged)).as_str()));
        assert!(here.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn nothing_shows_before_and_all_after() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let epoch = push.stage(&served, push.begin("k", "")).await;
        assert_eq!(served.get("/api/v1/projects").await.json(), json!([]));
        served.get("/api/v1/projects/shop/cycles").await.is_problem("unknown-project", &[]);
        let first = served.send(commit(&epoch)).await;
        first.is_recorded();
        let headline = served.get("/api/v1/projects/shop/rounds?cycle=main").await.json()["headline"].clone();
        assert_eq!((&headline["total"], &headline["failed"]), (&json!(60), &json!(1)));
        for _ in 0..3 {
            let again = served.send(commit(&epoch)).await;
            again.is_replay_of(&first);
            assert_eq!(again.header("push-epoch"), Some("1"));
        }
        served.send(push.one_shot("k", "")).await.is_replay_of(&first);
        served.send(push.begin("k", "")).await.is_replay_of(&first);
        let report = served.get(first.header("location").unwrap()).await.json();
        assert_eq!(report["revisions"].as_array().unwrap().len(), 1);
        assert!(served.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn too_early_says_what_is_missing() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let epoch = served.send(push.begin("k", "")).await.header("location").unwrap().to_owned();
        served.send(push.put(&epoch, 2)).await;
        let early = served.send(commit(&epoch)).await;
        early.is_problem("incomplete", &["3 chunks are missing", "stays"]);
        assert_eq!(early.json()["missing"], json!([[0, 1], [3, 3]]));
        assert_eq!(served.send(commit(&epoch)).await.body, early.body);
        for chunk in [0, 1, 3] {
            served.send(push.put(&epoch, chunk)).await;
        }
        served.send(commit(&epoch)).await.is_recorded();
    })
    .await;
}

#[tokio::test]
async fn an_overlay_lists_what_it_changed() {
    on_every_store(async |here: InProcess| {
        let first = sixty(&[7]).deliver(&here, sixty(&[7]).begin("k", "").attempt(1)).await;
        first.is_recorded();
        let push = cut(outcomes(0..62, &[9]), 2).with_items();
        let second = push.deliver(&here, push.begin("k", "&on-difference=revise").attempt(2)).await;
        second.is_recorded();
        assert_eq!(second.json()["result"], "revised");
        assert_eq!(second.header("push-difference"), Some("structural"));
        assert_eq!(second.header("push-current-revision"), Some("2"));
        assert!(second.header("link").unwrap().contains("/differences/2>"));
        let difference = &second.json()["difference"];
        assert_eq!((&difference["changed"], &difference["added"]), (&json!(2), &json!(2)));
        // The same, each in one request, in another project: the same receipt.
        for (cut, more, attempt) in [(sixty(&[7]), "", 1), (push.clone(), "&on-difference=revise", 2)] {
            let mut whole = cut.one_shot("k", more).attempt(attempt);
            whole.path = whole.path.replace("/shop/", "/till/");
            let whole = here.send(whole).await;
            if attempt == 2 {
                let id = whole.json()["push"].as_str().unwrap().to_owned();
                let mine = second.json()["push"].as_str().unwrap().to_owned();
                assert_eq!(second.text(), whole.text().replace("\"till\"", "\"shop\"").replace(&id, &mine));
            }
        }
        // A late copy of the first commit gets the first receipt.
        let late = here.send(commit(&format!("{}/epochs/1", first.header("location").unwrap()))).await;
        late.is_replay_of(&first);
        assert_eq!(late.header("push-current-revision"), Some("2"));
        assert!(here.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_refused_commit_stays_refused() {
    on_every_engine(async |served: Served| {
        // Without items, only the commit can see what is wrong.
        served.send(sixty(&[7]).one_shot("k", "").attempt(1)).await.is_recorded();
        let push = sixty(&[]);
        let epoch = push.stage(&served, push.begin("k", "&on-difference=fail").attempt(1).process(1)).await;
        let refused = served.send(commit(&epoch)).await;
        refused.is_problem("differs", &["1 items with another status", "nothing of this push was recorded"]);
        for _ in 0..2 {
            assert_eq!(served.send(commit(&epoch)).await, refused);
        }
        served.send(push.put(&epoch, 0)).await.is_problem("staging-expired", &["refused"]);
        served.send(push.begin("k", "").attempt(1).process(1)).await.is_problem("superseded", &["Push-Incarnation"]);
        assert_eq!(served.send(cancel(&epoch)).await.status, 200);
        let strange = cut(outcomes(100..160, &[]), 2);
        let epoch = strange.stage(&served, strange.begin("k", "&on-difference=revise").attempt(2)).await;
        let refused = served.send(commit(&epoch)).await;
        refused.is_problem("key-collision", &["only offered: ", "only recorded: "]);
        assert_eq!(served.send(commit(&epoch)).await, refused);
        assert!(served.store.check().await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_content_that_is_not_the_promised_one() {
    on_every_engine(async |served: Served| {
        let zeros = json!("0".repeat(64));
        let wrong_counts = json!({ "total": 60, "passed": 60, "failed": 0, "errored": 0, "skipped": 0, "flaky": 0 });
        for (at, (field, value)) in
            [("content", zeros.clone()), ("outcomes", zeros), ("counts", wrong_counts)].into_iter().enumerate()
        {
            let mut push = sixty(&[7]);
            push.manifest[field] = value;
            let epoch = push.stage(&served, push.begin(&format!("k{at}"), "")).await;
            served.send(commit(&epoch)).await.is_problem("manifest-malformed", &["Nothing was recorded", "has ended"]);
            let again = served.send(commit(&epoch)).await;
            assert!(matches!(again.status, 400 | 410), "{}", again.text());
        }
        assert_eq!(served.get("/api/v1/projects").await.json(), json!([]));
    })
    .await;
}

#[tokio::test]
async fn a_cancel_ends_it_and_may_be_repeated() {
    on_every_engine(async |served: Served| {
        let push = sixty(&[7]);
        let epoch = push.stage(&served, push.begin("k", "").process(1)).await;
        let first = served.send(cancel(&epoch)).await;
        assert_eq!((first.status, first.json()), (200, json!({ "epoch": 1, "state": "cancelled" })));
        assert_eq!(first.header("push-epoch"), Some("1"));
        assert_eq!(first.header("cache-control"), Some("no-store"));
        let again = served.send(cancel(&epoch)).await;
        assert_eq!((again.status, &again.body), (200, &first.body));
        served.send(commit(&epoch)).await.is_problem("staging-expired", &["Begin again"]);
        served.send(push.put(&epoch, 0)).await.is_problem("staging-expired", &[]);
        served.send(push.begin("k", "").process(1)).await.is_problem("superseded", &[]);
        let recorded = push.deliver(&served, push.begin("k", "").process(2)).await;
        recorded.is_recorded();
        assert_eq!(recorded.header("push-epoch"), Some("2"));
        let second = epoch.replace("epochs/1", "epochs/2");
        let late = served.send(cancel(&second)).await;
        late.is_problem("committed", &["stays so"]);
        assert_eq!(late.json()["recorded"]["etag"].as_str(), recorded.header("etag"));
        assert!(late.text().contains(&recorded.text()), "the receipt stands there byte for byte");
        assert_eq!(served.send(cancel(&epoch)).await.status, 200);
    })
    .await;
}
