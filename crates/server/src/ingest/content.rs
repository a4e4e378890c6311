//! The content of a push: our JSON, one raw report, or several files, told apart by media type and by how they begin.
//! All ways give the same outcomes and so the same digests. Must not know formats: `reports` does.

use std::io::Read as _;

use domain::push::ContentId;
use domain::{Digest, Outcome, Outcomes, ProblemCode, ReportSummary, limits, wire};
use http::{HeaderMap, header};
use reports::{Collector, ReadOptions, ReportError};

use super::body::Received;
use super::inflate::{Digesting, Encoding, Inflated, Watch};
use super::{json, multipart};
use crate::headers::single;
use crate::problem::{Failure, malformed};

/// Warnings of a reader that an answer holds; of more, only the number is said.
const WARNINGS_MAX: usize = 10;

/// What a body came to.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) outcomes: Outcomes,
    pub(super) files: Vec<String>,
    pub(super) report: ReportSummary,
    pub(super) incomplete: bool,
    pub(super) id: ContentId,
    pub(super) warnings: Vec<String>,
}

/// How a body is to be read, from its headers.
#[derive(Debug)]
pub(super) struct Plan {
    encoding: Encoding,
    kind: Kind,
    partial: bool,
    inflated_bytes: u64,
}

#[derive(Debug)]
enum Kind {
    /// Our JSON and nothing else.
    Push,
    /// Several files, with the boundary between them.
    Files(String),
    /// Whatever it is.
    Any,
}

impl Plan {
    pub(super) fn new(headers: &HeaderMap, partial: bool, inflated_bytes: u64) -> Result<Self, Failure> {
        let kind = single(headers, header::CONTENT_TYPE.as_str()).map_err(|why| malformed("content-type", why))?;
        let text = kind.unwrap_or_default();
        let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let kind = match media.as_str() {
            wire::PUSH_MEDIA_TYPE => Kind::Push,
            "multipart/form-data" => {
                Kind::Files(multer::parse_boundary(text).map_err(|why| malformed("content-type", why))?)
            }
            _ => Kind::Any,
        };
        Ok(Self { encoding: Encoding::of(headers)?, kind, partial, inflated_bytes })
    }

    /// For JSON of a known shape, whatever the content type says.
    pub(super) fn json(headers: &HeaderMap, inflated_bytes: u64) -> Result<Self, Failure> {
        Ok(Self { encoding: Encoding::of(headers)?, kind: Kind::Push, partial: false, inflated_bytes })
    }

    /// The body from its beginning, inflated.
    pub(super) fn open<'a>(&self, body: &'a Received, watch: &Watch) -> Result<Inflated<'a>, Failure> {
        Inflated::new(self.encoding, &body.bytes, self.inflated_bytes, watch)
    }

    pub(super) fn collector(&self) -> Collector {
        let standard = ReadOptions::standard();
        Collector::new(ReadOptions { partial: self.partial, inflated_bytes_max: self.inflated_bytes, ..standard })
    }
}

/// Reads a body. Blocks: it inflates, parses and hashes.
pub(super) fn read(plan: &Plan, body: &Received) -> Result<Content, Failure> {
    let watch = Watch::default();
    match &plan.kind {
        Kind::Push => json::read(plan, body),
        Kind::Files(boundary) => multipart::read(plan, body, boundary),
        Kind::Any => {
            let mut first = Vec::new();
            let beginning = plan.open(body, &watch)?.take(64).read_to_end(&mut first);
            beginning.map_err(|_| watch.fault().unwrap_or_else(unreadable_body))?;
            let is_object = first.trim_ascii_start().starts_with(b"{");
            if is_object && let Some(push) = json::read_if_ours(plan, body)? {
                return Ok(push);
            }
            raw(plan, body)
        }
    }
}

/// The one report that the body is.
fn raw(plan: &Plan, body: &Received) -> Result<Content, Failure> {
    let watch = Watch::default();
    let mut stream = Digesting::new(plan.open(body, &watch)?);
    let mut collector = plan.collector();
    collector.add("body", &mut stream).map_err(|e| watch.fault().unwrap_or_else(|| unreadable(&e)))?;
    let digest = stream.finish().map_err(|_| watch.fault().unwrap_or_else(unreadable_body))?;
    // The body has no name of its own; a made-up one must not be compared with the names of another delivery.
    collected(collector, digest, false)
}

/// What a collector read, as content.
pub(super) fn collected(collector: Collector, body: Digest, named: bool) -> Result<Content, Failure> {
    let read = collector.finish();
    let incomplete = !read.damage.is_empty();
    let damage = read.damage.iter().map(ToString::to_string);
    let mut warnings: Vec<String> = damage.chain(read.warnings.iter().map(ToString::to_string)).collect();
    if warnings.len() > WARNINGS_MAX {
        let more = warnings.len() - WARNINGS_MAX;
        warnings.truncate(WARNINGS_MAX);
        warnings.push(format!("and {more} warnings more"));
    }
    // A collector gives each item once; should it not, the error says so.
    let outcomes = Outcomes::from_hashed(read.hashes, read.outcomes).map_err(|e| unreadable_words(&e.to_string()))?;
    let files = if named { read.files } else { Vec::new() };
    Ok(content(outcomes, files, read.summary, incomplete, Some(body), warnings))
}

/// Content with its digests.
pub(super) fn content(
    outcomes: Outcomes,
    files: Vec<String>,
    report: ReportSummary,
    incomplete: bool,
    body: Option<Digest>,
    warnings: Vec<String>,
) -> Content {
    let id = ContentId { body, ..outcomes.digests().id() };
    Content { outcomes, files, report, incomplete, id, warnings }
}

/// Outcomes in canonical order; items that come twice are listed.
pub(super) fn canonical(outcomes: Vec<Outcome>) -> Result<Outcomes, Failure> {
    let mut hashes: Vec<_> = outcomes.iter().map(|o| (o.item.hash(), &o.item)).collect();
    hashes.sort_unstable();
    let twice = hashes.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1.to_string());
    let mut doubled: Vec<String> = twice.collect();
    if doubled.is_empty() {
        let failure = |doubled: domain::push::DoubledItem| unreadable_words(&doubled.to_string());
        return Outcomes::from_unordered(outcomes).map_err(failure);
    }
    doubled.dedup();
    let words = format!(
        "{} items have more than one outcome in this push. Nothing was recorded. Send one outcome per item, and earlier \
         executions of it as its attempts.",
        doubled.len()
    );
    doubled.truncate(limits::SAMPLES_MAX);
    Err(Failure::new(ProblemCode::ReportUnreadable, words).with_errors(doubled))
}

/// The problem that a report which cannot be read is.
pub(super) fn unreadable(error: &ReportError) -> Failure {
    let code = match error {
        ReportError::TooLarge { .. } | ReportError::OutcomesLimit { .. } => ProblemCode::TooLarge,
        _ => ProblemCode::ReportUnreadable,
    };
    let words = format!("{error}. Nothing was recorded. (Over HTTP, --partial is partial=true in the query.)");
    Failure::new(code, words)
}

pub(super) fn unreadable_words(why: &str) -> Failure {
    Failure::new(ProblemCode::ReportUnreadable, format!("The body cannot be read: {why}. Nothing was recorded."))
}

fn unreadable_body() -> Failure {
    unreadable_words("its bytes end in an error")
}
