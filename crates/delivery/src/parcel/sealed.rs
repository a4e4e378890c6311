//! The file form of a parcel, for the outbox and for sealed files: header, body, and a trailer that proves it whole.
//! Must not choose file names. The trailer proves that nothing is missing or damaged, not who wrote it.
//!
//! ```text
//! "tallyonce parcel 1\n"   u32 LE header length   header JSON   body   u64 LE bytes before   BLAKE3 of them   "end\n"
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use domain::{Digest, limits};
use thiserror::Error;

use super::files::sync_folder_of;
use super::{Header, Parcel};

const MAGIC: &[u8] = b"tallyonce parcel ";
const HEAD: &[u8] = b"tallyonce parcel 1\n";
const END: &[u8] = b"end\n";
const LENGTH_BYTES: usize = 8;
const DIGEST_BYTES: usize = 32;
const TRAILER_BYTES: usize = LENGTH_BYTES + DIGEST_BYTES + END.len();
/// A header holds names and a list of files; this is far beyond any of them.
const HEADER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that are no whole parcel.
#[derive(Debug, Error)]
pub enum SealedError {
    /// The file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// Not a file of this program.
    #[error("this is no sealed push")]
    Foreign,
    /// Written by a newer version.
    #[error("this push was sealed by a newer version of tallyonce; use that version or a later one")]
    Newer,
    /// It ends early, or bytes in it have changed.
    #[error("the push is torn: {why}")]
    Torn {
        /// How one can tell.
        why: String,
    },
}

fn torn(why: impl Into<String>) -> SealedError {
    SealedError::Torn { why: why.into() }
}

impl Parcel {
    /// The file form.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let header = serde_json::to_vec(&self.header)?;
        let length = u32::try_from(header.len())
            .ok()
            .filter(|length| *length as usize <= HEADER_BYTES_MAX)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the list of files is too long"))?;
        let mut bytes =
            Vec::with_capacity(HEAD.len() + size_of::<u32>() + header.len() + self.body.len() + TRAILER_BYTES);
        bytes.extend_from_slice(HEAD);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(&self.body);
        let digest = Digest::of(&bytes);
        let before = bytes.len() as u64;
        bytes.extend_from_slice(&before.to_le_bytes());
        bytes.extend_from_slice(&digest.0);
        bytes.extend_from_slice(END);
        Ok(bytes)
    }

    /// Back from [`Parcel::encode`]: whole or not at all. Whether the body is what the header says, [`Parcel::push`]
    /// tells.
    pub fn decode(bytes: impl Into<Bytes>) -> Result<Self, SealedError> {
        let bytes = bytes.into();
        let Some(content) = bytes.len().checked_sub(TRAILER_BYTES).filter(|_| bytes.starts_with(HEAD)) else {
            return Err(not_a_parcel(&bytes));
        };
        let (before, trailer) = bytes.split_at(content);
        let (length, rest) = trailer.split_at(LENGTH_BYTES);
        let (digest, end) = rest.split_at(DIGEST_BYTES);
        if end != END || length != (content as u64).to_le_bytes() {
            return Err(torn(format!("its {} bytes do not end as a whole one does", bytes.len())));
        }
        if digest != Digest::of(before).0 {
            return Err(torn("its bytes are not those that were written"));
        }
        let after_head = before.get(HEAD.len()..).unwrap_or_default();
        let (length, rest) = after_head.split_first_chunk().ok_or_else(|| torn("it has no header"))?;
        let header_bytes = u32::from_le_bytes(*length) as usize;
        let header = rest.get(..header_bytes).ok_or_else(|| torn("its header is cut"))?;
        let header = read_header(header)?;
        let body = bytes.slice(HEAD.len() + size_of::<u32>() + header_bytes..content);
        Ok(Self { header, body, push: None })
    }

    /// Writes the file form to `path`: a temporary file beside it, flushed to the disk, then renamed, so that the name
    /// never stands for half a push. An existing file is replaced.
    pub fn seal(&self, path: &Path) -> Result<(), SealedError> {
        let failed = |source| SealedError::Io { path: path.to_owned(), source };
        let bytes = self.encode().map_err(failed)?;
        let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
        name.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(name);
        let written = File::create(&temporary)
            .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
            .and_then(|()| std::fs::rename(&temporary, path))
            .and_then(|()| sync_folder_of(path));
        written.map_err(|source| {
            // The error that matters is the one above; a temporary file left behind is no push.
            let _ = std::fs::remove_file(&temporary);
            failed(source)
        })
    }

    /// Reads a file that [`Parcel::seal`] wrote, within bounds.
    pub fn open_sealed(path: &Path) -> Result<Self, SealedError> {
        let failed = |source| SealedError::Io { path: path.to_owned(), source };
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > limits::INFLATED_BYTES_MAX {
            return Err(SealedError::Foreign);
        }
        Self::decode(std::fs::read(path).map_err(failed)?)
    }
}

fn read_header(bytes: &[u8]) -> Result<Header, SealedError> {
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

fn not_a_parcel(bytes: &[u8]) -> SealedError {
    let begins = bytes.len().min(HEAD.len());
    if bytes[..begins] == HEAD[..begins] {
        torn(format!("it ends after {} bytes", bytes.len()))
    } else if bytes.starts_with(MAGIC) {
        SealedError::Newer
    } else {
        SealedError::Foreign
    }
}
