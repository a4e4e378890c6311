//! In a build with `failpoints`: every operation that writes comes past its named points, in order. Proof kills processes
//! there by name, and a name that is never reached would prove nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::Outcomes;
use serde_json::json;
use server::router::router;
use server::{App, BodyLimits};
use sha2::{Digest as _, Sha256};
use store::MemoryStore;
use tower::ServiceExt as _;

const STEPS: &[&str] = &["k0", "k1", "received", "placed", "decoded", "held", "k2", "stored", "answered", "k7"];
const WITHOUT_BODY: &[&str] = &["k0", "k2", "stored", "answered", "k7"];
const CHUNK: &str = "{\"tallyonce\":1,\"outcomes\":[]}";

type Hits = Arc<Mutex<Vec<String>>>;

/// One request; the points that it came past, and where it says the epoch is.
async fn hits(app: &Arc<App>, hits: &Hits, request: http::Request<Body>) -> (Vec<String>, String) {
    hits.lock().unwrap().clear();
    let response = router(Arc::clone(app)).oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    assert!(head.status.is_success(), "{}", String::from_utf8_lossy(&body));
    let location = head.headers.get("location").map(|value| value.to_str().unwrap().to_owned());
    (std::mem::take(&mut *hits.lock().unwrap()), location.unwrap_or_default())
}

fn request(method: &str, path: &str, body: String) -> http::Request<Body> {
    let digest = format!("sha-256=:{}:", BASE64.encode(Sha256::digest(&body)));
    let built = http::Request::builder().method(method).uri(path).header("Idempotency-Key", "k");
    built.header("Content-Digest", digest).body(Body::from(body)).unwrap()
}

fn manifest() -> String {
    let digests = Outcomes::default().digests();
    let chunk = domain::Digest(Sha256::digest(CHUNK).into());
    let none = json!({ "total": 0, "passed": 0, "failed": 0, "errored": 0, "skipped": 0, "flaky": 0 });
    json!({
        "tallyonce": 1, "counts": none, "content": digests.content, "outcomes": digests.outcomes, "bits": 0,
        "chunks": [[chunk, 0]],
    })
    .to_string()
}

#[track_caller]
fn came_past(hits: &[String], operation: &str, steps: &[&str], short: &[&str]) {
    let own: Vec<&str> = hits.iter().map(String::as_str).filter(|hit| hit.contains(':')).collect();
    let expected: Vec<String> = steps.iter().map(|step| format!("server:{operation}:{step}")).collect();
    assert_eq!(own, expected);
    let others: Vec<&str> = hits.iter().map(String::as_str).filter(|hit| !hit.contains(':')).collect();
    assert_eq!(others, short, "short names are those of a push in one request");
}

#[tokio::test]
async fn every_operation_comes_past_its_points_in_order() {
    let scenario = fail::FailScenario::setup();
    let seen = Hits::default();
    let watch = |name: String| {
        let (seen, hit) = (Arc::clone(&seen), name.clone());
        fail::cfg_callback(name, move || seen.lock().unwrap().push(hit.clone())).unwrap();
    };
    for operation in ["one-shot", "begin", "put", "commit", "cancel"] {
        for step in STEPS {
            watch(format!("server:{operation}:{step}"));
        }
    }
    for name in ["k1", "k2", "k7"] {
        watch(name.to_owned());
    }
    for inline_decoding in [true, false] {
        let limits = BodyLimits { inline_decoding, ..BodyLimits::default() };
        let app = App::new(Arc::new(MemoryStore::new()), Arc::new(delivery::SystemClock::new()), limits);
        let pushes = "/api/v1/projects/shop/staged-pushes?cycle=main&run=1";
        let (begin, epoch) = hits(&app, &seen, request("POST", pushes, manifest())).await;
        came_past(&begin, "begin", STEPS, &[]);
        let path = format!("{epoch}/chunks/0");
        let (put, _) = hits(&app, &seen, request("PUT", &path, CHUNK.to_owned())).await;
        came_past(&put, "put", STEPS, &[]);
        let (cancel, _) = hits(&app, &seen, request("DELETE", &epoch, String::new())).await;
        came_past(&cancel, "cancel", WITHOUT_BODY, &[]);
        let (_, epoch) = hits(&app, &seen, request("POST", pushes, manifest())).await;
        hits(&app, &seen, request("PUT", &format!("{epoch}/chunks/0"), CHUNK.to_owned())).await;
        let (commit, _) = hits(&app, &seen, request("POST", &format!("{epoch}/commit"), String::new())).await;
        came_past(&commit, "commit", WITHOUT_BODY, &[]);
        let whole = pushes.replace("staged-pushes", "pushes");
        let (one_shot, _) = hits(&app, &seen, request("POST", &whole, CHUNK.to_owned())).await;
        came_past(&one_shot, "one-shot", STEPS, &["k1", "k2", "k7"]);
    }
    scenario.teardown();
}
