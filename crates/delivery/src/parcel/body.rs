//! The bodies' bytes: JSON, compressed; and back, within bounds. Must not know headers or files.
//! Equal outcomes in equal order make equal bytes, so that a chunk's digest names what is in it.

use std::io::{self, BufReader, BufWriter, Read, Write};

use domain::wire::{ChunkBody, PushBody, PushBodyRef};
use domain::{Outcome, Outcomes, limits};
use serde::de::DeserializeOwned;

use super::{Label, PackError, Source, UnpackError};

/// The level at which zstd is still faster than any network the body goes over.
const LEVEL: i32 = 1;
/// The largest window a body may ask the reader to keep, as a power of two: 128 MiB.
const WINDOW_LOG_MAX: u32 = 27;
/// Below this many bytes a high ratio harms nobody.
const RATIO_FROM_BYTES: u64 = 1024 * 1024;
const BUFFER_BYTES: usize = 64 * 1024;

/// A compressor whose output is in memory.
type Compressor = BufWriter<zstd::stream::write::Encoder<'static, Vec<u8>>>;

fn compressor() -> io::Result<Compressor> {
    let encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL)?;
    Ok(BufWriter::with_capacity(BUFFER_BYTES, encoder))
}

fn finish(writer: Compressor) -> io::Result<Vec<u8>> {
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

/// The body of a whole push, or `None` as soon as it is larger than `bytes_max`.
pub(super) fn whole(label: &Label, source: &dyn Source, bytes_max: usize) -> Result<Option<Vec<u8>>, PackError> {
    let empty = PushBodyRef {
        tallyonce: PushBody::VERSION,
        files: &label.files,
        report: label.report,
        incomplete: label.incomplete,
        outcomes: &[],
    };
    let json = serde_json::to_vec(&empty).map_err(io::Error::from)?;
    // The outcomes come last: in front of the two brackets that close an empty list and the body.
    let (head, tail) = json.split_at(json.len() - 2);
    let mut writer = compressor()?;
    writer.write_all(head)?;
    let mut first = true;
    for part in source.parts() {
        for outcome in part?.as_slice() {
            write_next(&mut writer, outcome, &mut first)?;
        }
        if writer.get_ref().get_ref().len() > bytes_max {
            return Ok(None);
        }
    }
    writer.write_all(tail)?;
    Ok(Some(finish(writer)?).filter(|body| body.len() <= bytes_max))
}

/// The body of a chunk.
pub(super) fn chunk(outcomes: &Outcomes) -> io::Result<Vec<u8>> {
    let mut writer = compressor()?;
    write!(writer, "{{\"tallyonce\":{},\"outcomes\":[", ChunkBody::VERSION)?;
    let mut first = true;
    for outcome in outcomes.as_slice() {
        write_next(&mut writer, outcome, &mut first)?;
    }
    writer.write_all(b"]}")?;
    finish(writer)
}

fn write_next(writer: &mut impl Write, outcome: &Outcome, first: &mut bool) -> io::Result<()> {
    if !std::mem::take(first) {
        writer.write_all(b",")?;
    }
    serde_json::to_writer(writer, outcome).map_err(io::Error::from)
}

/// Some bytes, compressed as bodies are.
pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::stream::encode_all(bytes, LEVEL)
}

pub(super) fn read_whole(compressed: &[u8]) -> Result<PushBody, UnpackError> {
    let body: PushBody = inflate(compressed)?;
    known_version(body.tallyonce, PushBody::VERSION)?;
    Ok(body)
}

pub(super) fn read_chunk(compressed: &[u8]) -> Result<Vec<Outcome>, UnpackError> {
    let body: ChunkBody = inflate(compressed)?;
    known_version(body.tallyonce, ChunkBody::VERSION)?;
    Ok(body.outcomes)
}

fn known_version(found: u32, known: u32) -> Result<(), UnpackError> {
    if found == known {
        return Ok(());
    }
    Err(UnpackError::Unreadable(format!("format {found} is not known to this version, which reads format {known}")))
}

/// Back from [`compress`], within bounds.
pub(super) fn decompress(compressed: &[u8], bytes_max: u64) -> Result<Vec<u8>, UnpackError> {
    let mut bytes = Vec::new();
    let decoder = decoder(compressed)?;
    decoder.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    if bytes.len() as u64 > bytes_max { Err(UnpackError::TooLarge { limit: bytes_max }) } else { Ok(bytes) }
}

fn decoder(compressed: &[u8]) -> Result<impl Read + '_, UnpackError> {
    let mut decoder = zstd::stream::read::Decoder::new(compressed).map_err(|e| unreadable(&e))?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(|e| unreadable(&e))?;
    Ok(decoder)
}

fn inflate<T: DeserializeOwned>(compressed: &[u8]) -> Result<T, UnpackError> {
    let ratio_bound = (compressed.len() as u64).saturating_mul(limits::INFLATE_RATIO_MAX).max(RATIO_FROM_BYTES);
    let limit = limits::INFLATED_BYTES_MAX.min(ratio_bound);
    // One byte more than allowed is enough to tell "at the bound" from "beyond it".
    let mut bounded = decoder(compressed)?.take(limit + 1);
    let parsed = {
        let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER_BYTES, &mut bounded));
        T::deserialize(&mut json).and_then(|body| json.end().map(|()| body))
    };
    if bounded.limit() == 0 {
        return Err(UnpackError::TooLarge { limit });
    }
    parsed.map_err(|e| unreadable(&e))
}

fn unreadable(error: &dyn std::fmt::Display) -> UnpackError {
    UnpackError::Unreadable(error.to_string())
}
