//! Questions to a server.

use delivery::{ApiClient, ApiError};
use domain::{Problem, ProblemCode};
use serde_json::{Value, json};

use crate::http::settings;
use crate::support::{Play, answer, server};

async fn ask(play: Play) -> Result<Value, ApiError> {
    let (url, _seen) = server(vec![play]).await;
    ApiClient::new(url, &settings()).unwrap().get_json("/api/v1/projects/shop/rounds", &[("cycle", "a b")]).await
}

#[tokio::test]
async fn questions_and_commands_travel_as_json() {
    let play = || answer("200 OK", &[], br#"{"ok":true}"#);
    let (url, mut seen) = server(vec![play(), play()]).await;
    let client = ApiClient::new(url, &settings()).unwrap();
    let query = [("cycle", "release 2.4&x"), ("key", "a:b")];
    let value: Value = client.get_json("/api/v1/projects/shop/pushes", &query).await.unwrap();
    assert_eq!(value, json!({"ok": true}));
    let first = seen.recv().await.unwrap();
    assert!(first.head.starts_with("GET /api/v1/projects/shop/pushes?cycle=release%202.4%26x&key=a%3Ab HTTP"));

    let headers = [("Idempotency-Key", "\"k\""), ("If-Match", "\"r1-0\"")];
    let body = json!({"revision": 2});
    let _: Value = client.post_json("/api/v1/x/promote", &[], &headers, &body).await.unwrap();
    let second = seen.recv().await.unwrap();
    assert!(second.head.starts_with("POST /api/v1/x/promote HTTP"), "{}", second.head);
    assert_eq!(second.header("if-match"), Some("\"r1-0\""));
    assert_eq!(second.header("content-type"), Some("application/json"));
    assert_eq!(serde_json::from_slice::<Value>(&second.body).unwrap(), body);
}

#[tokio::test]
async fn every_other_end_says_what_is_known() {
    let problem = serde_json::to_vec(&Problem::new(ProblemCode::NotFound, "no such round")).unwrap();
    let refused = ask(answer("404 Not Found", &[], &problem)).await;
    assert!(matches!(refused, Err(ApiError::Problem(p)) if p.code == ProblemCode::NotFound));
    for code in [ProblemCode::UnknownPush, ProblemCode::Overloaded, ProblemCode::Internal] {
        let problem = serde_json::to_vec(&Problem::new(code, "words")).unwrap();
        let refused = ask(answer(&format!("{} No", code.status()), &[], &problem)).await;
        assert!(matches!(refused, Err(ApiError::Problem(p)) if p.code == code), "{code:?}");
    }
    let strange = ask(answer("404 Not Found", &[], b"<html>")).await;
    assert!(matches!(strange, Err(ApiError::Problem(p)) if p.code == ProblemCode::ForeignAnswer));
    assert!(matches!(ask(answer("502 Bad Gateway", &[], b"")).await, Err(ApiError::Unclear(_))));
    assert!(matches!(ask(Play::Reset).await, Err(ApiError::Unclear(_))));
    assert!(matches!(ask(answer("200 OK", &[], b"<html>")).await, Err(ApiError::Unclear(_))));
    let (url, _) = server(vec![]).await;
    tokio::task::yield_now().await;
    let client = ApiClient::new(url, &settings()).unwrap();
    let gone: Result<Value, _> = client.get_json("/x", &[]).await;
    assert!(matches!(gone, Err(ApiError::Unreachable(_))), "{gone:?}");
}
