//! The file form of a parcel, for the outbox and for sealed files: bodies, header, and a trailer that proves it whole.
//! Must not choose file names. The trailer proves that nothing is missing or damaged, not who wrote it.
//!
//! ```text
//! "tallyonce parcel 2\n"  bodies  header JSON  u64 LE its length   u64 LE bytes before   BLAKE3 of them   "end\n"
//! "tallyonce parcel 1\n"  u32 LE header length  header JSON  body   u64 LE bytes before   BLAKE3 of them   "end\n"
//! ```
//!
//! The header comes last, as it says what only the packed bodies show; so a file is written in one go. Files of the
//! first form are still read: their content digest is of an older kind, and made anew.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use domain::Digest;

use super::bodies::Bodies;
use super::files::{Replacing, replace};
use super::pack::sha256;
use super::{BodyPlace, Form, Header, Parcel, SealedError};

const MAGIC: &[u8] = b"tallyonce parcel ";
const HEAD: &[u8; 19] = b"tallyonce parcel 2\n";
const FIRST_HEAD: &[u8; 19] = b"tallyonce parcel 1\n";
const END: &[u8] = b"end\n";
const LENGTH_BYTES: usize = 8;
const DIGEST_BYTES: usize = 32;
const TRAILER_BYTES: usize = LENGTH_BYTES + DIGEST_BYTES + END.len();
/// A header holds names, chunks and a list of files; this is far beyond any of them.
const HEADER_BYTES_MAX: u64 = 64 * 1024 * 1024;
const BUFFER_BYTES: u64 = 256 * 1024;

fn torn(why: impl Into<String>) -> SealedError {
    SealedError::Torn { why: why.into() }
}

impl Parcel {
    /// Writes the file form to `path`: a temporary file beside it, flushed to the disk, then renamed, so that the name
    /// never stands for half a push. An existing file is replaced.
    pub fn seal(&self, path: &Path) -> Result<(), SealedError> {
        let failed = |source| SealedError::Io { path: path.to_owned(), source };
        replace(path, Replacing::Sealed, |file| self.write_to(file)).map(|_| ()).map_err(failed)
    }

    /// Reads a file that [`Parcel::seal`] wrote; its bodies stay where they are.
    pub fn open_sealed(path: &Path) -> Result<Self, SealedError> {
        let failed = |source| SealedError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        match read_head(&file).map_err(|error| error.at(path))? {
            (header, true) => Self::of_first_form(header, file).map_err(|error| error.at(path)),
            (header, false) => Ok(Self { header, bodies: Bodies::in_file(file, HEAD.len() as u64), push: None }),
        }
    }

    /// The header alone, of a file that is whole.
    pub(crate) fn read_header(path: &Path) -> Result<Header, SealedError> {
        let file = File::open(path).map_err(|source| SealedError::Io { path: path.to_owned(), source })?;
        Ok(read_head(&file).map_err(|error| error.at(path))?.0)
    }

    /// Its digests are made anew; after that it is like any other.
    fn of_first_form(mut header: Header, file: File) -> Result<Self, ReadError> {
        let place = header.chunks.first_mut().ok_or_else(|| torn("it has no body"))?;
        let base = FIRST_HEAD.len() as u64;
        let bodies = Bodies::Memory(Bodies::in_file(file, base).read(place.at, place.bytes)?);
        place.at = 0;
        let mut parcel = Self { header, bodies, push: None };
        // What was checked as the file's bytes has no digest of its own yet.
        let body = parcel.bodies.read(0, parcel.header.body_bytes())?;
        if let Some(place) = parcel.header.chunks.first_mut() {
            place.sha256 = sha256(&body);
        }
        let push = parcel.unpack(false).map_err(|error| torn(error.to_string()))?;
        (parcel.header.version, parcel.header.form) = (Header::VERSION, Form::Whole);
        (parcel.header.content, parcel.header.outcome_digest) = (push.content.content, push.content.outcomes);
        Ok(parcel)
    }

    pub(crate) fn write_to(&self, file: &File) -> io::Result<()> {
        let header = serde_json::to_vec(&self.header)?;
        if header.len() as u64 > HEADER_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the list of files is too long"));
        }
        let mut out = Digesting {
            to: BufWriter::with_capacity(BUFFER_BYTES as usize, file),
            of: blake3::Hasher::new(),
            bytes: 0,
        };
        out.write_all(HEAD)?;
        let end = self.header.bodies_end().unwrap_or(0);
        let mut at = 0;
        while at < end {
            let piece = BUFFER_BYTES.min(end - at);
            out.write_all(&self.bodies.read(at, piece)?)?;
            at += piece;
        }
        out.to.flush()?;
        fail::fail_point!("k10");
        out.write_all(&header)?;
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        let Digesting { mut to, of, bytes } = out;
        to.write_all(&bytes.to_le_bytes())?;
        to.write_all(of.finalize().as_bytes())?;
        to.write_all(END)?;
        to.flush()
    }
}

/// Digests what it passes on.
struct Digesting<W> {
    to: W,
    of: blake3::Hasher,
    bytes: u64,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let written = self.to.write(buf)?;
        self.of.update(&buf[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A file that can't be read, before its name is known.
enum ReadError {
    Io(io::Error),
    Sealed(SealedError),
}

impl ReadError {
    fn at(self, path: &Path) -> SealedError {
        match self {
            Self::Io(source) => SealedError::Io { path: path.to_owned(), source },
            Self::Sealed(error) => error,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<SealedError> for ReadError {
    fn from(error: SealedError) -> Self {
        Self::Sealed(error)
    }
}

/// Holds the whole file against its trailer, in the memory of a buffer, and reads the header; says whether the file is
/// of the first form.
fn read_head(file: &File) -> Result<(Header, bool), ReadError> {
    let length = file.metadata()?.len();
    let mut head = Vec::new();
    file.take(HEAD.len() as u64).read_to_end(&mut head)?;
    let first = match head.as_slice() {
        head if head == HEAD => false,
        head if head == FIRST_HEAD => true,
        head => return Err(not_a_parcel(head, length).into()),
    };
    let content = length
        .checked_sub(TRAILER_BYTES as u64)
        .filter(|content| *content >= (HEAD.len() + LENGTH_BYTES) as u64)
        .ok_or_else(|| torn(format!("it ends after {length} bytes")))?;
    whole(file, content)?;
    let header = if first { header_at_begin(file, content)? } else { header_at_end(file, content)? };
    Ok((header, first))
}

fn whole(mut file: &File, content: u64) -> Result<(), ReadError> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file.take(content))?;
    let mut trailer = [0; TRAILER_BYTES];
    file.seek(SeekFrom::Start(content))?;
    file.read_exact(&mut trailer)?;
    let (length, rest) = trailer.split_at(LENGTH_BYTES);
    let (digest, end) = rest.split_at(DIGEST_BYTES);
    if end != END || length != content.to_le_bytes() {
        let all = content + TRAILER_BYTES as u64;
        return Err(torn(format!("its {all} bytes do not end as a whole one does")).into());
    }
    if digest != hasher.finalize().as_bytes() {
        return Err(torn("its bytes are not those that were written").into());
    }
    Ok(())
}

fn header_at_end(mut file: &File, content: u64) -> Result<Header, ReadError> {
    let mut length = [0; LENGTH_BYTES];
    file.seek(SeekFrom::Start(content - LENGTH_BYTES as u64))?;
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    let begin = content.saturating_sub(LENGTH_BYTES as u64).checked_sub(length);
    let begin = begin.filter(|begin| *begin >= HEAD.len() as u64 && length <= HEADER_BYTES_MAX);
    let begin = begin.ok_or_else(|| torn("its header is cut"))?;
    let header = parse_header(&read(file, begin, length)?)?;
    // Nothing lies between the bodies and the header, so that every place of it is within the file.
    if header.bodies_end() != Some(begin - HEAD.len() as u64) {
        return Err(torn("its bodies are not where its header says").into());
    }
    Ok(header)
}

/// The first form: its one body lies behind the header.
fn header_at_begin(mut file: &File, content: u64) -> Result<Header, ReadError> {
    let mut length = [0; size_of::<u32>()];
    file.seek(SeekFrom::Start(FIRST_HEAD.len() as u64))?;
    file.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    let begin = (FIRST_HEAD.len() + size_of::<u32>()) as u64;
    let bytes = content.checked_sub(begin + length).filter(|_| length <= HEADER_BYTES_MAX);
    let bytes = bytes.ok_or_else(|| torn("its header is cut"))?;
    let mut header = parse_header(&read(file, begin, length)?)?;
    let at = begin + length - FIRST_HEAD.len() as u64;
    header.chunks = vec![BodyPlace { at, bytes, sha256: Digest([0; 32]), outcomes: header.outcomes as u32 }];
    Ok(header)
}

fn read(mut file: &File, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}

fn parse_header(bytes: &[u8]) -> Result<Header, SealedError> {
    /// Only the version, whatever else a newer header holds.
    #[derive(serde::Deserialize)]
    struct Versioned {
        version: u32,
    }
    let unreadable = |e: serde_json::Error| torn(format!("its header cannot be read: {e}"));
    let Versioned { version } = serde_json::from_slice(bytes).map_err(unreadable)?;
    if version > Header::VERSION {
        return Err(SealedError::Newer);
    }
    serde_json::from_slice(bytes).map_err(unreadable)
}

fn not_a_parcel(head: &[u8], length: u64) -> SealedError {
    let begins = |whole: &[u8]| whole.starts_with(head);
    if begins(HEAD) || begins(FIRST_HEAD) {
        torn(format!("it ends after {length} bytes"))
    } else if head.starts_with(MAGIC) {
        SealedError::Newer
    } else {
        SealedError::Foreign
    }
}
