//! The body's bytes: JSON, compressed; and back, within bounds. Must not know headers or files.

use std::io::{self, BufReader, BufWriter, Read, Write};

use bytes::Bytes;
use domain::limits;
use domain::push::Push;
use domain::wire::{PushBody, PushBodyRef};

use super::UnpackError;

/// The level at which zstd is still faster than any network the body goes over.
const LEVEL: i32 = 1;
/// The largest window a body may ask the reader to keep, as a power of two: 128 MiB.
const WINDOW_LOG_MAX: u32 = 27;
/// Below this many bytes a high ratio harms nobody.
const RATIO_FROM_BYTES: u64 = 1024 * 1024;

pub(super) fn compress(push: &Push) -> io::Result<Bytes> {
    let body = PushBodyRef {
        tallyonce: PushBody::VERSION,
        files: &push.files,
        report: push.report,
        incomplete: push.incomplete,
        outcomes: push.outcomes.as_slice(),
    };
    let encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL)?;
    let mut writer = BufWriter::with_capacity(64 * 1024, encoder);
    serde_json::to_writer(&mut writer, &body).map_err(io::Error::from)?;
    writer.flush()?;
    let encoder = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(Bytes::from(encoder.finish()?))
}

pub(super) fn inflate(compressed: &[u8]) -> Result<PushBody, UnpackError> {
    let ratio_bound = (compressed.len() as u64).saturating_mul(limits::INFLATE_RATIO_MAX).max(RATIO_FROM_BYTES);
    let limit = limits::INFLATED_BYTES_MAX.min(ratio_bound);
    let unreadable = |e: &dyn std::fmt::Display| UnpackError::Unreadable(e.to_string());
    let mut decoder = zstd::stream::read::Decoder::new(compressed).map_err(|e| unreadable(&e))?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(|e| unreadable(&e))?;
    // One byte more than allowed is enough to tell "at the bound" from "beyond it".
    let mut bounded = decoder.take(limit + 1);
    let parsed = {
        let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(64 * 1024, &mut bounded));
        serde::Deserialize::deserialize(&mut json).and_then(|body: PushBody| json.end().map(|()| body))
    };
    if bounded.limit() == 0 {
        return Err(UnpackError::TooLarge { limit });
    }
    let body = parsed.map_err(|e| unreadable(&e))?;
    if body.tallyonce == PushBody::VERSION {
        Ok(body)
    } else {
        Err(UnpackError::Unreadable(format!(
            "format {} is not known to this version, which reads format {}",
            body.tallyonce,
            PushBody::VERSION
        )))
    }
}
