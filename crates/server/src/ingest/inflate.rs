//! Content-Encoding undone as a stream, within bounds of size and ratio, with the digest of what came out. Must not
//! know what is in it.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::{Digest, ProblemCode, limits};
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, header};

use crate::headers::single;
use crate::problem::{Failure, malformed};

/// Ratio bounds begin to hold here, in inflated bytes: small bodies inflate steeply and harm nobody.
const RATIO_FREE_BYTES: u64 = 1024 * 1024;

/// How the body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        let text =
            single(headers, header::CONTENT_ENCODING.as_str()).map_err(|why| malformed("content-encoding", why))?;
        match text.unwrap_or_default().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            other => Err(Failure::new(
                ProblemCode::UnsupportedMedia,
                format!(
                    "The content encoding {other:?} is not one of gzip, zstd and identity, each alone. Nothing was \
                     recorded; encode the body otherwise, or not at all."
                ),
            )
            .with_header(header::ACCEPT_ENCODING, "gzip, zstd, identity")),
        }
    }
}

/// What a stream came to, seen from outside of whoever reads it.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch(Arc<AtomicU64>);

/// Nothing is wrong.
const SOUND: u64 = 0;
/// The compression is damaged; any other number is a bound that was passed.
const BROKEN: u64 = u64::MAX;

impl Watch {
    /// The problem behind a read error, if the stream and not its content was at fault.
    pub(super) fn fault(&self) -> Option<Failure> {
        match self.0.load(Ordering::Relaxed) {
            SOUND => None,
            BROKEN => Some(Failure::new(
                ProblemCode::ReportUnreadable,
                "The body is not what Content-Encoding says, or its compression is damaged. Nothing was recorded; \
                 compress it again, or send it uncompressed without that header.",
            )),
            limit => Some(Failure::new(
                ProblemCode::TooLarge,
                format!(
                    "The body inflates to more than the {limit} bytes that are allowed for it (by size, or by its ratio \
                     to the compressed body, beyond which it is no honest report). Nothing was recorded. Push in shards \
                     (--shard I/N), or send it uncompressed."
                ),
            )),
        }
    }

    fn set(&self, fault: u64) -> io::Error {
        self.0.store(fault, Ordering::Relaxed);
        io::Error::other("the body cannot be inflated")
    }
}

/// A body as it was before it was compressed.
pub(super) struct Inflated<'a> {
    inner: Box<dyn Read + Send + 'a>,
    watch: Watch,
    left: u64,
    limit: u64,
}

impl<'a> Inflated<'a> {
    /// Reads `body`; at most `limit` bytes come out.
    pub(super) fn new(encoding: Encoding, body: &'a [u8], limit: u64, watch: &Watch) -> Result<Self, Failure> {
        let by_ratio = RATIO_FREE_BYTES.saturating_add((body.len() as u64).saturating_mul(limits::INFLATE_RATIO_MAX));
        let limit = limit.min(by_ratio);
        let inner: Box<dyn Read + Send + 'a> = match encoding {
            Encoding::Identity => Box::new(body),
            Encoding::Gzip => Box::new(MultiGzDecoder::new(body)),
            Encoding::Zstd => match zstd::stream::read::Decoder::with_buffer(body) {
                Ok(decoder) => Box::new(decoder),
                Err(error) => {
                    tracing::error!(%error, "no zstd decoder");
                    return Err(Failure::new(
                        ProblemCode::Overloaded,
                        "There is no memory to inflate the body. Nothing was recorded; send it again with the same key.",
                    ));
                }
            },
        };
        Ok(Self { inner, watch: watch.clone(), left: limit, limit })
    }
}

impl Read for Inflated<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match self.inner.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(_) => return Err(self.watch.set(BROKEN)),
            Ok(read) => read,
        };
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(self.watch.set(self.limit)),
        }
        Ok(read)
    }
}

/// Digests what is read through it.
pub(super) struct Digesting<R> {
    inner: R,
    hasher: blake3::Hasher,
}

impl<R: Read> Digesting<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, hasher: blake3::Hasher::new() }
    }

    /// Reads on to the end, and gives the digest of all of it.
    pub(super) fn finish(mut self) -> io::Result<Digest> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(self.hasher.finalize().into())
    }
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn inflate(encoding: Encoding, body: &[u8], limit: u64) -> Result<Vec<u8>, ProblemCode> {
        let watch = Watch::default();
        let mut out = Vec::new();
        let mut stream = Inflated::new(encoding, body, limit, &watch).map_err(|f| f.problem.code)?;
        stream.read_to_end(&mut out).map_err(|_| watch.fault().unwrap().problem.code)?;
        Ok(out)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_encoding_gives_the_same_bytes() {
        let plain = b"<testsuite/>".repeat(1000);
        assert_eq!(inflate(Encoding::Identity, &plain, 1 << 20).as_ref(), Ok(&plain));
        assert_eq!(inflate(Encoding::Gzip, &gzip(&plain), 1 << 20).as_ref(), Ok(&plain));
        let two = [gzip(&plain[..5]), gzip(&plain[5..])].concat();
        assert_eq!(inflate(Encoding::Gzip, &two, 1 << 20).as_ref(), Ok(&plain));
        let zstd = zstd::encode_all(plain.as_slice(), 3).unwrap();
        assert_eq!(inflate(Encoding::Zstd, &zstd, 1 << 20).as_ref(), Ok(&plain));
    }

    #[test]
    fn a_bound_holds_to_the_byte() {
        let body = gzip(&[b'a'; 1000]);
        assert!(inflate(Encoding::Gzip, &body, 1000).is_ok());
        assert_eq!(inflate(Encoding::Gzip, &body, 999), Err(ProblemCode::TooLarge));
    }

    #[test]
    fn a_bomb_stops_at_its_ratio() {
        let bomb = zstd::encode_all(std::io::repeat(0).take(1 << 26), 3).unwrap();
        assert!((bomb.len() as u64) < (1 << 26) / limits::INFLATE_RATIO_MAX);
        assert_eq!(inflate(Encoding::Zstd, &bomb, u64::MAX), Err(ProblemCode::TooLarge));
    }

    #[test]
    fn damage_is_told_from_size() {
        let mut body = gzip(b"<testsuite/>");
        body.truncate(body.len() - 6);
        assert_eq!(inflate(Encoding::Gzip, &body, 1000), Err(ProblemCode::ReportUnreadable));
        assert_eq!(inflate(Encoding::Zstd, b"<testsuite/>", 1000), Err(ProblemCode::ReportUnreadable));
    }
}
