//! A service that only the configuration describes: what can be wrong with its keys.

use delivery::foreign::patience::Patience;
use delivery::foreign::probe::{ProbeError, ProbeOptions, probe};
use delivery::foreign::{Case, CaseId, Options, Strategy};
use delivery::{Clock as _, Stop, SystemClock};
use rand::SeedableRng as _;
use serde_json::{Value, json};

use crate::generic::{described, in_batches, of, stub, with, with_runs};
use crate::given::opened;

#[tokio::test]
async fn what_is_wrong_in_the_configuration_is_named_before_any_call() {
    let stub = stub();
    let body = |text: &str| with(described(), "/write/body", json!(text));
    let read = |key: &str, value: Value| with(described(), &format!("/read/{key}"), value);
    let cases = [
        (with(described(), "/write", Value::Null), "write is missing"),
        (with(described(), "/write/paht", json!("/x")), "unknown key write.paht"),
        (with(described(), "/wirte", json!({})), "unknown key wirte"),
        (with(described(), "/write/path", Value::Null), "write.path is missing"),
        (with(described(), "/write/path", json!("api")), "write.path can't be used"),
        (with(described(), "/write/path", json!("/{row}")), "write.path can't be used: {row} is nothing"),
        (with(described(), "/write/method", json!("SEND")), "write.method can't be used"),
        (with(described(), "/write/headers", json!({"a b": "x"})), "write.headers.a b can't be used"),
        (with(described(), "/write/id-at", json!("id")), "write.id-at can't be used: \"id\" is no JSON pointer"),
        (with(described(), "/write/batch", json!(0)), "write.batch can't be used"),
        (with(described(), "/write/batch", json!(9)), "write.body can't be used: {case} is nothing"),
        (with(in_batches(), "/write/body", json!("[]")), "write.body can't be used: a batch needs {entries}"),
        (with(in_batches(), "/write/body-item", Value::Null), "write.body-item is missing"),
        (body(r#"{"case": {case}, "status": {status}}"#), "write.body can't be used: it holds neither {marker}"),
        (body(r#"{"case": {caes}}"#), "write.body can't be used: {caes} is nothing"),
        (body(r#"{"case": {case}"#), "write.body can't be used: it is no JSON"),
        (body(r#"{"s": {status_json}, "n": {marker}}"#), "statuses.passed can't be used: \"OK\" is no JSON"),
        (with(described(), "/read", Value::Null), "read is missing"),
        (read("marker-at", Value::Null), "read.marker-at is missing"),
        (read("row-at", Value::Null), "read.row-at is missing"),
        (read("path", json!("/results?o={offset}")), "read.path can't be used: it must hold {cycle}"),
        (read("next", json!("none")), "read.next can't be used: {offset}"),
        (read("next", json!("cursor")), "read.next can't be used: it is none, offset"),
        (with(with_runs(), "/create-cycle", Value::Null), "find-cycle can't be used: create-cycle"),
        (with(with_runs(), "/create-cycle/body", json!("{}")), "create-cycle.body can't be used: it must hold {tag}"),
        (with(with_runs(), "/create-cycle/id-at", Value::Null), "create-cycle.id-at can't be used"),
        (with(described(), "/amend", json!({"path": "/x"})), "amend can't be used: it must hold {row}"),
        (with(described(), "/auth", json!("token")), "auth can't be used"),
        (with(described(), "/comment-max", json!(20)), "comment-max can't be used"),
        (with(described(), "/repeat", json!("merges")), "repeat can't be used"),
    ];
    for (own, words) in cases {
        let error = opened(of(&stub, own)).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}\n{words}");
    }
    assert!(stub.log().is_empty());
}

#[tokio::test]
async fn a_strategy_that_the_calls_do_not_carry_is_refused_before_any_call() {
    let stub = stub();
    // A row without our marker is nobody's: what was replaced could never be told from what was not.
    let replaces = |pointer: &str, value: Value| with(with(described(), "/repeat", json!("replaces")), pointer, value);
    let keyed = r#"{"case": {case}, "status": {status}, "id": {id}}"#;
    for (own, strategy, words) in [
        (replaces("/read/marker-at", Value::Null), Strategy::Replace, "read.marker-at is missing"),
        (
            replaces("/write/body", json!(keyed)),
            Strategy::Replace,
            "write.body can't be used: it holds neither {marker}",
        ),
        (replaces("/read", Value::Null), Strategy::Replace, "read is missing"),
    ] {
        let mut settings = of(&stub, own);
        settings.strategy = Some(strategy);
        let error = opened(settings).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}\n{words}");
    }
    for (strategy, words) in [
        (Strategy::Idempotent, "write.body can't be used: strategy idempotent sends {id}"),
        (Strategy::Replace, "repeat can't be used"),
        (Strategy::Container, "strategy can't be used"),
        (Strategy::AtMostOnce, "strategy can't be used: at-most-once is for services that list nothing"),
    ] {
        let mut settings = of(&stub, described());
        settings.strategy = Some(strategy);
        let error = opened(settings).map(drop).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
    let mut settings = of(&stub, described());
    settings.token = None;
    assert!(opened(settings.clone()).is_err());
    settings.options = Options::new(serde_json::from_value(with(described(), "/auth", json!("none"))).unwrap());
    assert!(opened(settings).is_ok());
    assert!(stub.log().is_empty());
}

#[tokio::test]
async fn a_probe_that_would_write_among_real_outcomes_is_refused_before_any_call() {
    let stub = stub();
    let fixed = |own: Value, path: &str| with(own, "/write/path", json!(path));
    let cases = ["A", "B"].map(|id| Case { id: CaseId::new(id), title: id.to_owned() });
    let (clock, stop, mut random) = (SystemClock::new(), Stop::new(), rand::rngs::StdRng::seed_from_u64(1));
    let mut patience = Patience::new(&clock, &mut random, &stop, clock.now_ms() + 1000);
    let adapter = opened(of(&stub, fixed(described(), "/api/results"))).unwrap();
    let refused = probe(&*adapter, &cases, &ProbeOptions::default(), &mut patience).await.unwrap_err();
    assert!(
        matches!(&refused, ProbeError::NoScratch(why) if why.contains("[write] says {cycle} nowhere")),
        "{refused}"
    );
    assert!(stub.log().is_empty());
    let in_body = r#"{"run": {cycle}, "case": {case}, "status": {status}, "note": {comment}}"#;
    let in_header = json!({"X-Run": "{cycle}"});
    for own in [
        described(),
        with(fixed(described(), "/api/results"), "/write/body", json!(in_body)),
        with(fixed(described(), "/api/results"), "/write/headers", in_header),
        with(fixed(in_batches(), "/api/results"), "/write/body-item", json!(in_body)),
    ] {
        assert_eq!(opened(of(&stub, own)).unwrap().keeps_to_its_cycle(), Ok(()));
    }
}

#[test]
fn a_probe_is_of_the_calls_that_the_table_describes() {
    let stub = stub();
    let subject = |own: Value| of(&stub, own).subject();
    let before = subject(described());
    let headers = |value: &str| with(described(), "/write/headers", json!({"X-Key": value}));
    for (own, other) in [
        (with(described(), "/comment-max", json!(500)), false),
        (with(described(), "/read/marker-at", json!("/text")), true),
        (with(described(), "/delete", json!({"path": "/api/results/{row}"})), true),
        (headers("secret"), true),
    ] {
        assert_eq!(subject(own) != before, other);
    }
    assert_eq!(subject(headers("secret")), subject(headers("another")), "no probe tells of credentials");
    assert_ne!(subject(headers("{id}")), subject(headers("{marker}")));
    let mut moved = of(&stub, described());
    moved.project = "other".to_owned();
    assert_ne!(moved.subject(), before);
}
