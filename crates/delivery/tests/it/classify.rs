//! The table of the design's section 8: which answer is which truth.

use bytes::Bytes;
use delivery::Handed;
use delivery::classify::{Answer, Expected, classify_push};
use domain::problem::{Retry, Written};
use domain::protocol::DifferenceClass;
use domain::{Counts, Delivery, Problem, ProblemCode, PushKey, Receipt};
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use crate::support::{KEY, pack, push, receipt};

fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    Answer { url: "https://tests.example.com/api".to_owned(), status, headers: map, body: body.into() }
}

fn classified(answer: &Answer) -> Delivery<Handed> {
    let expected = Expected { project: &"shop".parse().unwrap(), key: &PushKey::parse(KEY).unwrap() };
    classify_push(answer, expected)
}

/// The truth in one word, and the wait asked for.
fn truth(answer: &Answer) -> (&'static str, Option<u64>) {
    match classified(answer) {
        Delivery::Recorded(_) => ("recorded", None),
        Delivery::Rejected(_) => ("rejected", None),
        Delivery::NotSent(cause) => ("not sent", cause.retry_after_ms),
        Delivery::PossiblyWritten(cause) => ("possibly written", cause.retry_after_ms),
    }
}

#[test]
fn every_code_of_ours_is_the_truth_that_it_says() {
    for code in ProblemCode::ALL {
        let problem = Problem::new(*code, "words");
        let answer = answer(code.status(), &[("retry-after", "2")], serde_json::to_vec(&problem).unwrap());
        let expected = match code {
            ProblemCode::Throttled | ProblemCode::Overloaded | ProblemCode::StoreUnavailable => "not sent",
            ProblemCode::DigestMismatch => "not sent",
            ProblemCode::PushInProgress | ProblemCode::StaleAttempt | ProblemCode::Incomplete => "not sent",
            ProblemCode::Internal | ProblemCode::CommitUnknown | ProblemCode::InFlight => "possibly written",
            _ if code.status() == 408 || code.status() >= 500 => "possibly written",
            _ if code.retry() == Retry::Begin => "not sent",
            _ => "rejected",
        };
        let (truth, wait) = truth(&answer);
        assert_eq!(truth, expected, "{code:?}");
        assert_eq!(wait, (truth != "rejected").then_some(2000), "{code:?}");
    }
}

#[test]
fn bare_answers_are_believed_only_where_they_refuse() {
    for status in 300..600_u16 {
        let expected = match status {
            408 | 429 | 500.. => "possibly written",
            _ => "rejected",
        };
        for body in ["", "<html>no</html>", "{}", "{\"error\":\"no\"}"] {
            assert_eq!(truth(&answer(status, &[], body)).0, expected, "{status} {body}");
        }
    }
}

#[test]
fn a_problem_says_not_written_only_with_429_or_503() {
    let mut problem = Problem::new(ProblemCode::Overloaded, "words");
    for status in [500, 502, 504] {
        let body = serde_json::to_vec(&problem).unwrap();
        assert_eq!(truth(&answer(status, &[], body)).0, "possibly written", "{status}");
    }
    problem.written = Written::Unknown;
    for status in [429, 503] {
        let body = serde_json::to_vec(&problem).unwrap();
        assert_eq!(truth(&answer(status, &[], body)).0, "possibly written", "{status}");
    }
}

#[test]
fn a_code_of_a_newer_server_keeps_its_words_and_its_meaning() {
    let body = r#"{"type":"x","title":"the moon is full","status":422,"code":"full-moon","retry":"never",
        "written":"no","detail":"wait a week","later":1}"#;
    let Delivery::Rejected(problem) = classified(&answer(422, &[], body)) else { panic!("not rejected") };
    assert_eq!(problem.title, "the moon is full (full-moon)");
    assert_eq!((problem.detail.as_str(), problem.status), ("wait a week", 422));
    let again = body.replace("never", "same-key");
    assert_eq!(truth(&answer(422, &[], again)).0, "not sent");
}

#[test]
fn a_strange_refusal_says_who_answered_what() {
    let html = format!("<html>\n\u{7}<h1>404</h1>{}", "x".repeat(5000));
    let Delivery::Rejected(problem) = classified(&answer(404, &[], html)) else { panic!("not rejected") };
    assert_eq!((problem.code, problem.status), (ProblemCode::ForeignAnswer, 404));
    let words = &problem.detail;
    assert!(
        words.contains("https://tests.example.com/api answered with status 404: <html> <h1>404</h1>xxx"),
        "{words}"
    );
    assert!(words.contains("Is this the address of a Tallyonce server?"), "{words}");
    assert!(words.len() < 400, "{words}");

    let moved = answer(302, &[("location", "https://login.example.com/")], "");
    let Delivery::Rejected(problem) = classified(&moved) else { panic!("not rejected") };
    assert!(problem.detail.contains("redirects to https://login.example.com/"), "{}", problem.detail);
}

fn success(change: impl FnOnce(&mut Receipt)) -> Vec<u8> {
    let mut receipt = receipt(&pack(push()).header);
    change(&mut receipt);
    serde_json::to_vec(&receipt).unwrap()
}

#[test]
fn a_receipt_is_taken_over_with_all_that_the_headers_say() {
    let body = success(|_| {});
    let etag = Receipt::etag(1, &body);
    let headers = [
        ("etag", etag.as_str()),
        ("idempotent-replayed", "true"),
        ("push-difference", "cosmetic"),
        ("push-current-revision", "3"),
        ("push-current-counts", "total=2, passed=1, failed=1, errored=0, skipped=0, flaky=1"),
        ("push-warnings", r#""one", "two \"2\"""#),
        ("push-warnings", "not a list"),
    ];
    let Delivery::Recorded(handed) = classified(&answer(201, &headers, body.clone())) else { panic!("not recorded") };
    assert_eq!(handed.receipt_bytes, body);
    assert!(handed.replayed);
    assert_eq!(handed.class, Some(DifferenceClass::Cosmetic));
    assert_eq!(handed.current_revision, 3);
    assert_eq!(handed.current_counts, Counts { total: 2, passed: 1, failed: 1, flaky: 1, ..Counts::default() });
    assert_eq!(handed.warnings, ["one", "two \"2\"", "not a list"]);

    let Delivery::Recorded(bare) = classified(&answer(201, &[("etag", &format!("W/{etag}"))], body)) else {
        panic!("not recorded")
    };
    assert_eq!((bare.replayed, bare.class, bare.current_revision), (false, None, 1));
    assert_eq!(bare.current_counts, bare.receipt.counts);
}

#[test]
fn a_success_that_cannot_be_believed_may_have_been_written() {
    let good = success(|_| {});
    let tagged = |body: &[u8]| Receipt::etag(1, body);
    let other_key = success(|r| r.key = PushKey::parse("other").unwrap());
    let other_project = success(|r| r.project = "other".parse().unwrap());
    let table = [
        ("no etag", answer(201, &[], good.clone())),
        ("wrong etag", answer(201, &[("etag", "\"r1-0123456789abcdef\"")], good.clone())),
        ("wrong revision", answer(201, &[("etag", &tagged(&good).replace("r1", "r2"))], good.clone())),
        ("short", answer(201, &[("etag", &tagged(&good)), ("content-length", "9999")], good.clone())),
        ("other key", answer(201, &[("etag", &tagged(&other_key))], other_key)),
        ("other project", answer(201, &[("etag", &tagged(&other_project))], other_project)),
        ("html", answer(200, &[], "<html>welcome to the proxy</html>")),
        ("nothing", answer(204, &[], "")),
        ("not a receipt", answer(200, &[("etag", &tagged(b"{}"))], "{}")),
    ];
    for (what, answer) in table {
        assert_eq!(truth(&answer).0, "possibly written", "{what}");
    }
}

proptest! {
    #[test]
    fn no_damaged_receipt_is_ever_believed(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = success(|_| {});
        let etag = Receipt::etag(1, &body);
        let at = at.index(body.len());
        prop_assume!(body[at] != byte);
        body[at] = byte;
        prop_assert_eq!(truth(&answer(201, &[("etag", &etag)], body)).0, "possibly written");
    }
}
