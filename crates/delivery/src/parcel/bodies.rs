//! Where bodies lie: in memory, or one behind the other in a file, read one at a time. Must not know what they hold.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Where the bodies of a parcel go while it is packed.
#[derive(Debug, Clone, Copy)]
pub enum Scratch<'a> {
    /// Into memory: for what is small anyway.
    Memory,
    /// Into a temporary file without a name in this folder, which is gone with the parcel or the process.
    Folder(&'a Path),
    /// Nowhere: they are only counted.
    Nowhere,
}

/// Bodies that are there.
#[derive(Debug, Clone)]
pub(super) enum Bodies {
    Memory(Bytes),
    /// Position and bytes belong together, so readers take turns.
    File {
        file: Arc<Mutex<File>>,
        /// Where the first body begins.
        base: u64,
    },
    Nowhere,
}

impl Bodies {
    pub(super) fn in_file(file: File, base: u64) -> Self {
        Self::File { file: Arc::new(Mutex::new(file)), base }
    }

    /// These bytes, counted from the first body.
    pub(super) fn read(&self, at: u64, bytes: u64) -> io::Result<Bytes> {
        let short = || io::Error::new(io::ErrorKind::UnexpectedEof, "a body is cut");
        match self {
            Self::Memory(all) => {
                let end = at.checked_add(bytes).filter(|end| *end <= all.len() as u64).ok_or_else(short)?;
                Ok(all.slice(at as usize..end as usize))
            }
            Self::File { file, base } => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(base.checked_add(at).ok_or_else(short)?))?;
                // A damaged length must not cost more memory than the file has bytes.
                let mut body = Vec::new();
                (&*file).take(bytes).read_to_end(&mut body)?;
                if body.len() as u64 == bytes { Ok(Bytes::from(body)) } else { Err(short()) }
            }
            Self::Nowhere => Err(io::Error::new(io::ErrorKind::NotFound, "the bodies were only counted")),
        }
    }
}

/// Takes bodies one after the other.
pub(super) enum Sink {
    Memory(Vec<u8>),
    File(BufWriter<File>, u64),
    Nowhere(u64),
}

impl Sink {
    pub(super) fn open(scratch: Scratch<'_>) -> io::Result<Self> {
        Ok(match scratch {
            Scratch::Memory => Self::Memory(Vec::new()),
            Scratch::Nowhere => Self::Nowhere(0),
            Scratch::Folder(folder) => {
                let file = tempfile::tempfile_in(folder)
                    .map_err(|source| io::Error::new(source.kind(), format!("{}: {source}", folder.display())))?;
                fail::fail_point!("client:pack:scratch");
                Self::File(BufWriter::with_capacity(64 * 1024, file), 0)
            }
        })
    }

    /// Takes one body, and says where it lies.
    pub(super) fn put(&mut self, body: &[u8]) -> io::Result<u64> {
        let length = body.len() as u64;
        match self {
            Self::Memory(all) => {
                all.extend_from_slice(body);
                Ok(all.len() as u64 - length)
            }
            Self::File(file, end) => {
                file.write_all(body)?;
                *end += length;
                Ok(*end - length)
            }
            Self::Nowhere(end) => {
                *end += length;
                Ok(*end - length)
            }
        }
    }

    pub(super) fn done(self) -> io::Result<Bodies> {
        Ok(match self {
            Self::Memory(all) => Bodies::Memory(Bytes::from(all)),
            Self::File(file, _) => Bodies::in_file(file.into_inner().map_err(io::IntoInnerError::into_error)?, 0),
            Self::Nowhere(_) => Bodies::Nowhere,
        })
    }
}
