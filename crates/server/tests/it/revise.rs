//! Never silently swallowed: other outcomes under a known key are recorded or refused, and said either way; a person may
//! decide afterwards.

use serde_json::json;

use crate::http::Request;
use crate::served::{JUNIT, Served, all_passed, on_every_engine, push};

async fn two_contents(served: &Served, policy: &str) -> (crate::http::Answer, crate::http::Answer) {
    let first = served.send(push("k", "", JUNIT).header("Push-Attempt", "1")).await;
    first.is_recorded();
    let second = push("k", &format!("&on-difference={policy}"), all_passed()).header("Push-Attempt", "2");
    (first, served.send(second).await)
}

#[tokio::test]
async fn a_revision_says_what_it_changed() {
    on_every_engine(async |served: Served| {
        let (first, second) = two_contents(&served, "revise").await;
        second.is_recorded();
        assert_eq!(second.header("push-difference"), Some("semantic"));
        assert_eq!(second.header("push-current-revision"), Some("2"));
        assert_eq!(second.json()["result"], "revised");
        assert_eq!(second.json()["counts"]["flaky"], 1);
        let location = second.header("location").unwrap();
        let link = format!("<{location}/differences/2>; rel=\"difference\"");
        assert_eq!(second.header("link"), Some(link.as_str()));
        let difference = served.get(format!("{location}/differences/2")).await.json();
        assert_eq!(difference["items"][0]["item"]["name"], "removes");
        assert_eq!(difference["items"][0]["recorded"], "failed");
        assert_eq!(difference["items"][0]["offered"], "passed");
        // A late copy of the first gets the first's receipt, and learns that it is no longer the newest.
        let late = served.send(push("k", "", JUNIT).header("Push-Attempt", "1")).await;
        late.is_replay_of(&first);
        assert_eq!(late.header("push-current-revision"), Some("2"));
        assert!(late.header("push-current-counts").unwrap().contains("passed=2, failed=0"));
    })
    .await;
}

#[tokio::test]
async fn a_kept_content_waits_for_a_person() {
    on_every_engine(async |served: Served| {
        let (first, second) = two_contents(&served, "keep").await;
        assert_eq!(second.json()["result"], "kept");
        assert_eq!(second.json()["counts"]["failed"], 1, "the recorded verdict counts");
        let location = second.header("location").unwrap().to_owned();

        let promote = |key: &str, tag: &str, more: &str| {
            Request::post(format!("{location}/promote{more}"), "")
                .header("Idempotency-Key", key)
                .header("If-Match", tag)
        };
        let stale = served.send(promote("p1", first.header("etag").unwrap(), "")).await;
        stale
            .is_problem("receipt-mismatch", &["Nothing was changed", second.header("etag").unwrap().trim_matches('"')]);

        let promoted = served.send(promote("p1", second.header("etag").unwrap(), "")).await;
        promoted.is_recorded();
        assert_eq!(promoted.json()["result"], "promoted");
        assert_eq!(promoted.json()["counts"]["failed"], 0);
        let again = served.send(promote("p1", second.header("etag").unwrap(), "")).await;
        again.is_replay_of(&promoted);

        served.send(promote("p1", "*", "?revision=1")).await.is_problem("key-reused", &["another promotion"]);
        served.send(promote("p2", "*", "?revision=9")).await.is_problem("not-found", &["no such revision", "1, 2"]);
        let report = served.get(location.clone()).await.json();
        assert_eq!(report["revisions"].as_array().unwrap().len(), 3);
        assert_eq!(report["state"], "revised");
    })
    .await;
}

#[tokio::test]
async fn promoting_is_checked_before_it_is_done() {
    let served = crate::served::standard().await;
    let (_, second) = two_contents(&served, "keep").await;
    let location = second.header("location").unwrap();
    served.send(Request::post(format!("{location}/promote"), "")).await.is_problem("key-missing", &[]);
    let promote = |more: &str, tag: &str| {
        Request::post(format!("{location}/promote{more}"), "").header("Idempotency-Key", "p").header("If-Match", tag)
    };
    served.send(promote("?exakt=true", "*")).await.is_problem("parameter-malformed", &["exakt"]);
    served.send(promote("?exact=1", "*")).await.is_problem("parameter-malformed", &["exact", "neither true nor false"]);
    served.send(promote("", "r1")).await.is_problem("parameter-malformed", &["if-match", "entity tag"]);
    let unknown = Request::post(format!("/api/v1/projects/shop/pushes/{}/promote", "0".repeat(32)), "");
    served.send(unknown.header("Idempotency-Key", "p")).await.is_problem("not-found", &["has no push"]);
}

#[tokio::test]
async fn the_policy_to_fail_refuses_and_says_how_far_apart() {
    let served = crate::served::standard().await;
    let (first, second) = two_contents(&served, "fail").await;
    second.is_problem("differs", &["--run", "--on-difference", "nothing of this push was recorded"]);
    let expected = json!({ "class": "semantic", "changed": 1, "added": 0, "not_offered": 0 });
    assert_eq!(second.json()["difference"], expected);
    served.send(push("k", "", JUNIT)).await.is_replay_of(&first);
}
