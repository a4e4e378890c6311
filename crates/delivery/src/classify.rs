//! Every answer and every failure becomes one of the four truths, here and nowhere else (design, section 8).
//! Must not send, wait or repeat.
//!
//! The rule in one line: "nothing was written" is believed only where the connection never stood, or where a server of
//! ours says so in its own words; everything unclear may have been written.

use std::error::Error as StdError;
use std::io;

use ::http::{HeaderMap, header};
use domain::key::PushKey;
use domain::problem::{Retry, Written};
use domain::protocol::DifferenceClass;
use domain::wire::names;
use domain::{Cause, Delivery, Problem, ProblemCode, ProjectId, Receipt, mutant};
use serde::de::DeserializeOwned;

use crate::destination::HttpUrl;
use crate::http::reason;
pub use crate::http::{Answer, Failure};
use crate::retry_after::retry_after_ms;
use crate::staged::Setback;
use crate::structured;
use crate::target::Handed;

/// Most octets of a strange answer that are shown.
const SHOWN_BYTES_MAX: usize = 200;

/// What an answer's receipt must be about.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Our project.
    pub project: &'a ProjectId,
    /// Our key.
    pub key: &'a PushKey,
}

/// A request that got no whole answer.
pub fn classify_failure<T>(failure: &Failure) -> Delivery<T> {
    match failure {
        Failure::Request(error) => {
            let cause = Cause::new(reason(error));
            if mutant!(M26) || error.is_connect() || error.is_builder() || certificate_refused(error) {
                Delivery::NotSent(cause)
            } else if error.is_timeout() {
                Delivery::PossiblyWritten(Cause::new(format!("no answer in time: {}", cause.what)))
            } else {
                Delivery::PossiblyWritten(cause)
            }
        }
        Failure::Lost { connected: false, why } => Delivery::NotSent(Cause::new(why.clone())),
        Failure::Lost { connected: true, why } => Delivery::PossiblyWritten(Cause::new(why.clone())),
        Failure::AnswerTooLarge { limit } => {
            Delivery::PossiblyWritten(Cause::new(format!("the answer is longer than {limit} bytes")))
        }
    }
}

/// The same, with the address that was tried: the library's words leave it out.
pub(crate) fn at_address<T>(base: &HttpUrl, delivery: Delivery<T>) -> Delivery<T> {
    match delivery {
        Delivery::NotSent(cause) => Delivery::NotSent(named(base, cause)),
        Delivery::PossiblyWritten(cause) => Delivery::PossiblyWritten(named(base, cause)),
        other => other,
    }
}

fn named(base: &HttpUrl, mut cause: Cause) -> Cause {
    // A server that speaks plain HTTP answers a TLS greeting with text.
    let plain = cause.what.contains("InvalidContentType");
    let hint = if plain { "; what answers there speaks no TLS: is it an http:// address?" } else { "" };
    cause.what = format!("{base}: {}{hint}", cause.what);
    cause
}

/// In TLS 1.3 a server refuses a client's certificate after the client believes that the connection stands. Its alert
/// still says that no request was read.
fn certificate_refused(error: &(dyn StdError + 'static)) -> bool {
    use rustls::AlertDescription as Alert;
    let mut next = Some(error);
    while let Some(error) = next {
        // An I/O error's own `source` skips the error it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = wrapped.and_then(|e| e.downcast_ref()).or_else(|| error.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::AlertReceived(alert)) = tls {
            return matches!(
                alert,
                Alert::CertificateRequired
                    | Alert::BadCertificate
                    | Alert::UnsupportedCertificate
                    | Alert::CertificateRevoked
                    | Alert::CertificateExpired
                    | Alert::CertificateUnknown
                    | Alert::UnknownCA
                    | Alert::AccessDenied
                    | Alert::HandshakeFailure
            );
        }
        next = match wrapped {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => error.source(),
        };
    }
    false
}

/// The whole answer to a one-shot push.
pub fn classify_push(answer: &Answer, expected: Expected<'_>) -> Delivery<Handed> {
    match answer.status {
        200..=299 => match receipt(answer, expected) {
            Ok(handed) => Delivery::Recorded(handed),
            Err(why) => Delivery::PossiblyWritten(Cause::new(format!(
                "status {} without a receipt that can be believed: {why}",
                answer.status
            ))),
        },
        _ => classify_refusal(answer),
    }
}

/// Any answer but a success.
pub fn classify_refusal<T>(answer: &Answer) -> Delivery<T> {
    let problem = problem(answer);
    let wait_ms = retry_after_ms(&answer.headers);
    let cause = |what: String| Cause { retry_after_ms: wait_ms, ..Cause::new(what) };
    let Some(problem) = problem else {
        return match answer.status {
            300..=399 | 400..=407 | 409..=428 | 430..=499 => Delivery::Rejected(Box::new(foreign(answer))),
            // 408, 429, 5xx, and what HTTP doesn't know.
            _ => Delivery::PossiblyWritten(cause(in_words(answer))),
        };
    };
    let what = format!("status {}: {}: {}", answer.status, problem.title, problem.detail);
    match answer.status {
        429 | 503 if problem.written == Written::No => Delivery::NotSent(cause(what)),
        // Another delivery is staging: of this one nothing was taken.
        409 if is_fence(problem.code) => Delivery::NotSent(cause(what)),
        408 | 409 | 429 | 500..=599 if problem.retry != Retry::Never => Delivery::PossiblyWritten(cause(what)),
        408 | 429 | 500..=599 => Delivery::PossiblyWritten(cause(what)),
        _ if problem.retry == Retry::Never => Delivery::Rejected(Box::new(problem)),
        // A body that arrived damaged, and the like: our server says that a repeat helps.
        _ if problem.written == Written::No => Delivery::NotSent(cause(what)),
        _ => Delivery::PossiblyWritten(cause(what)),
    }
}

fn is_fence(code: ProblemCode) -> bool {
    use ProblemCode::{Incomplete, PushInProgress, StaleAttempt, Superseded};
    matches!(code, PushInProgress | StaleAttempt | Superseded | Incomplete)
}

/// The answer to a request of a staged push that is no success.
pub fn setback(answer: &Answer) -> Setback {
    let what = || in_words(answer);
    if let Some(problem) = problem(answer) {
        if let Some(setback) = setback_of(&problem, retry_after_ms(&answer.headers)) {
            return setback;
        }
    } else if answer.status == 413 {
        return Setback::TooLarge(what());
    }
    match classify_refusal::<()>(answer) {
        Delivery::Rejected(problem) => Setback::Rejected(problem),
        Delivery::NotSent(cause) => Setback::NotTaken(cause),
        Delivery::PossiblyWritten(cause) => Setback::Unclear(cause),
        Delivery::Recorded(()) => Setback::Unclear(Cause::new("an answer that says nothing")),
    }
}

/// A problem that says how to go on, wherever it comes from. `idle_in_ms`: the wait that came with it.
pub fn setback_of(problem: &Problem, idle_in_ms: Option<u64>) -> Option<Setback> {
    let what = format!("{}: {}", problem.title, problem.detail);
    match problem.code {
        ProblemCode::PushInProgress | ProblemCode::StaleAttempt => {
            Some(Setback::Fenced { what, idle_in_ms, over: false })
        }
        ProblemCode::Superseded => Some(Setback::Fenced { what, idle_in_ms, over: true }),
        ProblemCode::StagingExpired | ProblemCode::UnknownPush => Some(Setback::Gone(what)),
        ProblemCode::Incomplete => Some(Setback::Incomplete(problem.missing.clone())),
        // One that lists findings is about what is in it, and no smaller body mends that.
        ProblemCode::TooLarge if problem.errors.is_empty() => Some(Setback::TooLarge(what)),
        _ => None,
    }
}

/// A request of a staged push that got no whole answer.
pub(crate) fn setback_of_failure(failure: &Failure) -> Setback {
    match classify_failure::<()>(failure) {
        Delivery::NotSent(cause) => Setback::NotTaken(cause),
        Delivery::Rejected(problem) => Setback::Rejected(problem),
        Delivery::PossiblyWritten(cause) => Setback::Unclear(cause),
        Delivery::Recorded(()) => Setback::Unclear(Cause::new("an answer that says nothing")),
    }
}

/// As [`at_address`].
pub(crate) fn at_setback(base: &HttpUrl, setback: Setback) -> Setback {
    match setback {
        Setback::NotTaken(cause) => Setback::NotTaken(named(base, cause)),
        Setback::Unclear(cause) => Setback::Unclear(named(base, cause)),
        other => other,
    }
}

/// The receipt that a commit, or a begin over a recorded push, is answered with.
pub(crate) fn classify_commit(answer: &Answer, expected: Expected<'_>) -> Result<Handed, Setback> {
    receipt(answer, expected).map_err(|why| {
        let status = answer.status;
        Setback::Unclear(Cause::new(format!("status {status} without a receipt that can be believed: {why}")))
    })
}

/// The JSON of a success, whole.
pub(crate) fn json<T: DeserializeOwned>(answer: &Answer) -> Result<T, String> {
    is_whole(answer)?;
    serde_json::from_slice(&answer.body).map_err(|e| format!("it cannot be read ({e}): {}", shown(&answer.body)))
}

fn is_whole(answer: &Answer) -> Result<(), String> {
    let (bytes, length) = (answer.body.len(), text(&answer.headers, header::CONTENT_LENGTH.as_str()));
    match length {
        _ if mutant!(M39) => Ok(()),
        Some(length) if length.parse() != Ok(bytes) => Err(format!("{bytes} bytes of {length} arrived")),
        _ => Ok(()),
    }
}

/// The receipt of a success: whole, unchanged since it was made, and ours (idempotency facts, R14).
fn receipt(answer: &Answer, expected: Expected<'_>) -> Result<Handed, String> {
    let bytes = &answer.body;
    let receipt: Receipt = json(answer)?;
    if !mutant!(M39) {
        is_ours(answer, &receipt, expected)?;
    }
    let class = text(&answer.headers, names::H_DIFFERENCE).and_then(difference_class);
    let revision = text(&answer.headers, names::H_CURRENT_REVISION).and_then(|t| t.parse().ok());
    let counts = text(&answer.headers, names::H_CURRENT_COUNTS).and_then(structured::counts);
    Ok(Handed {
        receipt_bytes: bytes.to_vec(),
        replayed: text(&answer.headers, names::H_REPLAYED).is_some_and(structured::boolean),
        class,
        current_revision: revision.unwrap_or(receipt.revision),
        current_counts: counts.unwrap_or(receipt.counts),
        warnings: warnings(&answer.headers),
        receipt,
    })
}

fn is_ours(answer: &Answer, receipt: &Receipt, expected: Expected<'_>) -> Result<(), String> {
    let etag = text(&answer.headers, header::ETAG.as_str()).ok_or("it has no ETag to hold it against")?;
    // A proxy may mark a tag as weak; the digest in it says whether the bytes are still the same.
    let strong = etag.strip_prefix("W/").unwrap_or(etag);
    if strong != Receipt::etag(receipt.revision, &answer.body) {
        return Err(format!("its bytes are not those of its ETag {etag}"));
    }
    if receipt.key != *expected.key {
        return Err(format!("it is about another key: {}", receipt.key));
    }
    if receipt.project != *expected.project {
        return Err(format!("it is about another project: {}", receipt.project));
    }
    Ok(())
}

/// Warnings from all lines of the header. One that cannot be read is shown as it came: better odd than lost.
fn warnings(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(names::H_WARNINGS).iter();
    lines
        .flat_map(|line| {
            let line = String::from_utf8_lossy(line.as_bytes()).into_owned();
            structured::strings(&line).unwrap_or_else(|| vec![line])
        })
        .collect()
}

fn difference_class(word: &str) -> Option<DifferenceClass> {
    use DifferenceClass::{Cosmetic, None, Semantic, Structural};
    [None, Cosmetic, Semantic, Structural].into_iter().find(|class| class.word() == word.trim())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// A problem document of ours, also one with a code that this version doesn't know.
pub(crate) fn problem(answer: &Answer) -> Option<Problem> {
    /// What every problem document of ours holds, whatever its version.
    #[derive(serde::Deserialize)]
    struct Newer {
        title: String,
        code: String,
        retry: Retry,
        written: Written,
        detail: String,
    }
    if let Ok(problem) = serde_json::from_slice::<Problem>(&answer.body) {
        return Some(problem);
    }
    let Newer { title, code, retry, written, detail } = serde_json::from_slice(&answer.body).ok()?;
    let mut problem = Problem::new(ProblemCode::ForeignAnswer, detail);
    problem.title = format!("{title} ({code})");
    (problem.status, problem.retry, problem.written) = (answer.status, retry, written);
    Some(problem)
}

/// A refusal by something that is no server of ours: a proxy, another service, a wrong address.
fn foreign(answer: &Answer) -> Problem {
    let meaning = match answer.status {
        300..=399 => {
            let to = text(&answer.headers, header::LOCATION.as_str()).unwrap_or("an address that it doesn't name");
            format!(
                "It redirects to {to}. A redirected push may lose its body, so redirects are not followed: \
                 give the final address as the destination."
            )
        }
        401 | 403 => "Something in front of the server refuses the request: does it want other credentials?".to_owned(),
        407 => "The proxy wants credentials: put them into the proxy's address.".to_owned(),
        413 => "Something in front of the server takes no body of this size: raise its limit.".to_owned(),
        _ => "Is this the address of a Tallyonce server?".to_owned(),
    };
    let mut problem = Problem::new(ProblemCode::ForeignAnswer, format!("{}. {meaning}", in_words(answer)));
    problem.status = answer.status;
    problem
}

/// An answer that is none of ours, for people.
fn in_words(answer: &Answer) -> String {
    let Answer { url, status, body, .. } = answer;
    if body.is_empty() {
        format!("{url} answered with status {status} and nothing else")
    } else {
        format!("{url} answered with status {status}: {}", shown(body))
    }
}

/// The head of a body, in printable characters, blanks folded.
fn shown(body: &[u8]) -> String {
    let head = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES_MAX)]);
    let printable: String = head.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    printable.split_whitespace().collect::<Vec<_>>().join(" ")
}
