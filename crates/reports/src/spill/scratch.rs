//! The temporary file: bytes go to its end and are read back from anywhere. It has no name, so that nothing is left
//! behind however the process ends. Must not know what the bytes are.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::error::ReportError;

/// One temporary file.
#[derive(Debug)]
pub(super) struct Scratch {
    /// Position and bytes belong together, so readers take turns.
    file: Mutex<File>,
    folder: String,
    end: u64,
}

impl Scratch {
    pub(super) fn new(folder: &Path) -> Result<Self, ReportError> {
        let name = folder.display().to_string();
        match tempfile::tempfile_in(folder) {
            Ok(file) => Ok(Self { file: Mutex::new(file), folder: name, end: 0 }),
            Err(source) => Err(ReportError::Spill { folder: name, source }),
        }
    }

    /// Writes at the end, and says where that was. After an error the end is where it was.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<u64, ReportError> {
        let at = self.end;
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        let written = file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(bytes));
        written.map_err(|source| self.error(source))?;
        self.end = at + bytes.len() as u64;
        Ok(at)
    }

    /// Fills `bytes` from `at`.
    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), ReportError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(bytes));
        read.map_err(|source| self.error(source))
    }

    /// What was written did not come back.
    pub(super) fn changed(&self) -> ReportError {
        self.error(io::Error::new(io::ErrorKind::InvalidData, "what was written there came back changed"))
    }

    #[cfg(test)]
    pub(super) fn swap(&mut self, file: File) -> File {
        std::mem::replace(self.file.get_mut().unwrap(), file)
    }

    fn error(&self, source: io::Error) -> ReportError {
        ReportError::Spill { folder: self.folder.clone(), source }
    }
}
