//! Our own JSON ([`domain::wire::PushBody`]) as content. Read from one buffer, which is twice as fast, as long as that is
//! small; a larger body as a stream, so that it is never held inflated.
//! Must not know report formats.

use std::io::{self, BufReader, Read as _};

use domain::wire::PushBody;
use domain::{ProblemCode, ReportSummary};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::body::Received;
use super::content::{Content, Plan, canonical, content, unreadable_words};
use super::inflate::Watch;
use crate::problem::Failure;

/// Buffer between inflating and parsing, in bytes.
const BUFFER_BYTES: usize = 128 * 1024;
/// Inflated bodies up to this many bytes are held whole while they are parsed.
const HELD_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What tells our JSON from report formats that are JSON too.
#[derive(Deserialize)]
struct Mark {
    tallyonce: Option<IgnoredAny>,
}

/// The body as our JSON, and nothing else.
pub(super) fn read(plan: &Plan, body: &Received) -> Result<Content, Failure> {
    let parsed: PushBody = parse(plan, body)?.map_err(|error| {
        unreadable_words(&format!("it is not the JSON of a push: {error}")).with_errors(vec![error.to_string()])
    })?;
    version(parsed.tallyonce, PushBody::VERSION, ProblemCode::ReportUnreadable)?;
    let files = parsed.files.len() as u64;
    let report = parsed.report.unwrap_or_else(|| {
        let mut summary = ReportSummary { files, ..ReportSummary::default() };
        parsed.outcomes.iter().for_each(|outcome| summary.add(outcome.status));
        summary
    });
    let outcomes = canonical(parsed.outcomes)?;
    Ok(content(outcomes, parsed.files, report, parsed.incomplete, None, Vec::new()))
}

/// Refuses a body of another version than ours.
pub(super) fn version(found: u32, ours: u32, code: ProblemCode) -> Result<(), Failure> {
    if found == ours {
        return Ok(());
    }
    let words = format!(
        "The body has version {found} of its format, and this server reads version {ours}. Nothing was recorded. Use a \
         client and a server that fit, or send the report itself."
    );
    Err(Failure::new(code, words))
}

/// As [`read`], if the body is a JSON object that says so; `None` if it is something else that begins with `{`.
pub(super) fn read_if_ours(plan: &Plan, body: &Received) -> Result<Option<Content>, Failure> {
    match read(plan, body) {
        Ok(content) => Ok(Some(content)),
        Err(failure) if failure.problem.code != ProblemCode::ReportUnreadable => Err(failure),
        Err(failure) => {
            let ours =
                parse::<Mark>(plan, body)?.is_ok_and(|mark| mark.tallyonce.is_some()) || begins_as_ours(plan, body)?;
            if ours { Err(failure) } else { Ok(None) }
        }
    }
}

/// True if our mark stands at the beginning: a push that was cut off is not to be taken for a strange report.
fn begins_as_ours(plan: &Plan, body: &Received) -> Result<bool, Failure> {
    const MARK: &[u8] = b"\"tallyonce\"";
    let mut first = Vec::new();
    // An error shows again when the body is read.
    let _ = plan.open(body, &Watch::default())?.take(256).read_to_end(&mut first);
    Ok(first.windows(MARK.len()).any(|window| window == MARK))
}

/// The outer error is the stream's, the inner one that of the content.
pub(super) fn parse<T: for<'a> Deserialize<'a>>(
    plan: &Plan,
    body: &Received,
) -> Result<Result<T, serde_json::Error>, Failure> {
    let watch = Watch::default();
    let mut stream = plan.open(body, &watch)?;
    let mut held = Vec::new();
    let parsed = match stream.by_ref().take(HELD_BYTES_MAX).read_to_end(&mut held) {
        Err(error) => Err(serde_json::Error::io(error)),
        Ok(_) if (held.len() as u64) < HELD_BYTES_MAX => serde_json::from_slice(&held),
        Ok(_) => serde_json::from_reader(BufReader::with_capacity(BUFFER_BYTES, held.as_slice().chain(stream))),
    };
    match watch.fault() {
        Some(fault) => Err(fault),
        None => Ok(parsed.map_err(
            |error: serde_json::Error| {
                if error.is_io() { serde_json::Error::io(io::Error::other(error)) } else { error }
            },
        )),
    }
}
