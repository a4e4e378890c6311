//! The body of a begin into what a manifest promises: our JSON, with the packed items and verdicts unpacked within
//! bounds. Must not know the head; whether the promise holds together, the door says.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::manifest::ItemVector;
use domain::verdict::Light;
use domain::wire::ManifestBody;
use domain::{ItemHash, ProblemCode, ReportSummary, limits};

use super::body::Received;
use super::content::Plan;
use super::json;
use crate::problem::Failure;

/// A manifest after inflating, in bytes: all chunks, items, and as many file names as an honest push has.
pub(super) const MANIFEST_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Bytes of one item in the packed items: its hash and its verdict.
const ITEM_BYTES: usize = 17;
/// Unpacked items, in bytes: hashes hardly compress, so that honest ones are little more than they are packed.
const UNPACKED_BYTES_MAX: usize = 2 * limits::ITEM_VECTOR_BYTES_MAX;

/// The body of a manifest as it was read.
#[derive(Debug)]
pub(super) struct Promised {
    pub(super) body: ManifestBody,
    pub(super) report: ReportSummary,
    pub(super) items: Option<ItemVector>,
}

/// Reads the body of a begin. Blocks: it inflates and parses.
pub(super) fn read(plan: &Plan, received: &Received) -> Result<Promised, Failure> {
    let mut body: ManifestBody = json::parse(plan, received)?.map_err(|error| {
        malformed(&format!("it is not the JSON of a manifest: {error}")).with_errors(vec![error.to_string()])
    })?;
    json::version(body.tallyonce, ManifestBody::VERSION, ProblemCode::ManifestMalformed)?;
    let counts = &body.counts;
    let report = body.report.unwrap_or(ReportSummary {
        files: body.files.len() as u64,
        outcomes: counts.total,
        passed: counts.passed,
        failed: counts.failed,
        errored: counts.errored,
        skipped: counts.skipped,
        ..ReportSummary::default()
    });
    let items = body.items.take().map(|packed| unpack(&packed, counts.total)).transpose()?;
    Ok(Promised { body, report, items })
}

/// Items and verdicts of `total` outcomes.
fn unpack(packed: &str, total: u64) -> Result<ItemVector, Failure> {
    if packed.len() > limits::ITEM_VECTOR_BYTES_MAX.div_ceil(3) * 4 {
        let most = limits::ITEM_VECTOR_BYTES_MAX;
        return Err(malformed(&format!("its items are more than {most} bytes; leave them out if they don't fit")));
    }
    let packed = BASE64.decode(packed).map_err(|error| malformed(&format!("its items are not base64: {error}")))?;
    let not_zstd = |error: std::io::Error| malformed(&format!("its items are not zstd: {error}"));
    let decoder = zstd::stream::read::Decoder::with_buffer(packed.as_slice()).map_err(not_zstd)?;
    let mut bytes = Vec::new();
    decoder.take(UNPACKED_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(not_zstd)?;
    let expected = usize::try_from(total).ok().and_then(|total| total.checked_mul(ITEM_BYTES));
    if bytes.len() > UNPACKED_BYTES_MAX || Some(bytes.len()) != expected {
        let why = format!("its items are not the {ITEM_BYTES} bytes each of {total} items (hashes, then verdicts)");
        return Err(malformed(&why));
    }
    let (hashes, codes) = bytes.split_at(bytes.len() / ITEM_BYTES * (ITEM_BYTES - 1));
    let (hashes, _) = hashes.as_chunks();
    let lights = codes.iter().map(|code| Light::from_code(*code)).collect::<Option<Vec<_>>>();
    let lights = lights.ok_or_else(|| malformed("its items hold a verdict that there is none of"))?;
    Ok(ItemVector { hashes: hashes.iter().copied().map(ItemHash).collect(), lights })
}

fn malformed(why: &str) -> Failure {
    let words = format!(
        "The manifest cannot be read: {why}. Nothing was recorded and nothing is staged. Correct it, and begin again with \
         the same key."
    );
    Failure::new(ProblemCode::ManifestMalformed, words)
}
