//! Where bytes come from: gzip and zstd undone (known by their first bytes), inflation bounded.
//! Must not know encodings or formats.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};

use domain::limits;

use crate::error::ReportError;

/// Inflated bytes that are let through before their ratio to the compressed ones is looked at.
const RATIO_FREE_BYTES: u64 = 1024 * 1024;

/// What went wrong below the decoder; travels inside an `io::Error`.
#[derive(Debug)]
pub(crate) enum Fault {
    /// More inflated bytes than allowed, in bytes.
    TooLarge(u64),
    /// The compressed data is broken, or ends early.
    Inflate(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLarge(limit) => write!(f, "inflates beyond {limit} bytes"),
            Fault::Inflate(what) => write!(f, "the compressed data is broken: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

/// The bytes of a file, inflated if they are compressed.
pub(crate) fn inflated<'a>(name: &str, mut input: impl Read + 'a, max: u64) -> Result<Box<dyn Read + 'a>, ReportError> {
    let mut magic = [0; 4];
    let got = read_some(&mut input, &mut magic).map_err(|source| ReportError::Io { file: name.to_owned(), source })?;
    let rest = Cursor::new(magic).take(got as u64).chain(input);
    let (taken, counted) = Counted::new(rest);
    if magic.starts_with(&[0x1f, 0x8b]) {
        let inner = flate2::read::MultiGzDecoder::new(counted);
        return Ok(Box::new(Inflated { inner, taken, given: 0, max }));
    }
    if magic == [0x28, 0xb5, 0x2f, 0xfd] {
        let inner = zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(64 * 1024, counted))
            .map_err(|e| ReportError::BadCompression { file: name.to_owned(), what: e.to_string() })?;
        return Ok(Box::new(Inflated { inner, taken, given: 0, max }));
    }
    Ok(Box::new(counted.inner))
}

/// Reads until `into` is full or the input ends.
pub(crate) fn read_some(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match input.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

type Taken = std::rc::Rc<std::cell::Cell<u64>>;

/// Counts the compressed bytes that were taken.
struct Counted<R> {
    inner: R,
    taken: Taken,
    broken: bool,
}

impl<R: Read> Counted<R> {
    fn new(inner: R) -> (Taken, Self) {
        let taken = Taken::default();
        (taken.clone(), Self { inner, taken, broken: false })
    }
}

/// Marks an error of the input itself, so that it is not taken for broken compression.
#[derive(Debug)]
struct Below(io::Error);

impl fmt::Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Below {}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(into) {
            Ok(n) => {
                self.taken.set(self.taken.get() + n as u64);
                Ok(n)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => {
                self.broken = true;
                Err(io::Error::other(Below(e)))
            }
        }
    }
}

/// A decompressor under bounds.
struct Inflated<R> {
    inner: R,
    taken: Taken,
    given: u64,
    max: u64,
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = match self.inner.read(into) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) if e.get_ref().and_then(|inner| inner.downcast_ref::<Below>()).is_some() => return Err(e),
            Err(e) => return Err(io::Error::other(Fault::Inflate(e.to_string()))),
        };
        self.given += n as u64;
        let steep = self.given.saturating_sub(RATIO_FREE_BYTES) / limits::INFLATE_RATIO_MAX > self.taken.get();
        if self.given > self.max || steep {
            return Err(io::Error::other(Fault::TooLarge(self.max)));
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn all(bytes: &[u8], max: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        inflated("a", bytes, max).unwrap().read_to_end(&mut out).map(|_| out)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_wrapping_gives_the_same_bytes() {
        let text = b"<testsuite/>".repeat(1000);
        assert_eq!(all(&text, 1 << 20).unwrap(), text);
        assert_eq!(all(&gzip(&text), 1 << 20).unwrap(), text);
        assert_eq!(all(&zstd::encode_all(&text[..], 3).unwrap(), 1 << 20).unwrap(), text);
        let two = [gzip(b"a"), gzip(b"b")].concat();
        assert_eq!(all(&two, 100).unwrap(), b"ab");
    }

    #[test]
    fn a_bound_holds_at_the_bound_and_one_beyond() {
        let text = vec![b' '; 5000];
        assert_eq!(all(&gzip(&text), 5000).unwrap().len(), 5000);
        let error = all(&gzip(&text), 4999).unwrap_err();
        assert!(matches!(error.get_ref().unwrap().downcast_ref::<Fault>(), Some(Fault::TooLarge(_))));
    }

    #[test]
    fn a_steep_bomb_is_refused_before_the_bound() {
        let bomb = zstd::encode_all(io::repeat(0).take(64 << 20), 19).unwrap();
        let error = all(&bomb, u64::MAX).unwrap_err();
        assert!(matches!(error.get_ref().unwrap().downcast_ref::<Fault>(), Some(Fault::TooLarge(_))));
    }
}
