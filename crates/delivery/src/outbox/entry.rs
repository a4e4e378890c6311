//! One entry of the outbox: locked while it is delivered, removed when its receipt is there.
//! Must not be removed for any other reason.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use domain::Delivery;
use thiserror::Error;

use crate::deliver::Ended;
use crate::parcel::files::{Replacing, replace, sync_folder_of};
use crate::parcel::{Header, Parcel, SealedError};

use super::attachments::{self, Attachments};
use super::{OutboxError, sequence, writing};

/// A file in the outbox that is no whole push: its writer was killed, or the disk damaged it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenEntry {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// A whole push in the outbox.
#[derive(Debug, Clone)]
pub struct Entry {
    path: PathBuf,
    header: Header,
}

/// An entry that cannot be taken for delivery.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another process is delivering it.
    #[error("another process is delivering {path} right now", path = path.display())]
    Held {
        /// The entry.
        path: PathBuf,
    },
    /// Another process has delivered it, and removed it.
    #[error("{path} has been delivered by another process", path = path.display())]
    Gone {
        /// The entry.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{path} cannot be locked: {source}", path = path.display())]
    Io {
        /// The entry.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

/// Holds an entry until it is dropped, or its process dies in whatever way.
#[derive(Debug)]
#[must_use = "the entry is free again when this is dropped"]
pub struct EntryLock {
    path: PathBuf,
    /// Locked.
    file: File,
}

impl EntryLock {
    /// Keeps the same push in another cut, in place of the one before: one of them is there at every moment. The entry
    /// stays held.
    pub fn replace(&mut self, parcel: &Parcel) -> Result<(), OutboxError> {
        let failed = |source| OutboxError::Io { path: self.path.clone(), source };
        let _guard = writing(self.folder())?;
        self.file = replace(&self.path, Replacing::Recut, |file| parcel.write_to(file)).map_err(failed)?;
        Ok(())
    }

    /// The folder of the outbox: it has room for another cut.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

impl Entry {
    pub(super) fn read(path: &Path) -> Result<Self, SealedError> {
        Ok(Self { path: path.to_owned(), header: Parcel::read_header(path)? })
    }

    pub(super) fn of(path: PathBuf, header: Header) -> Self {
        Self { path, header }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything of its push but the outcomes.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Sorts entries of one key oldest first. Ordinals come before the sequence, for folders of several machines laid
    /// together; the time only breaks ties.
    pub(super) fn order(&self) -> (u64, u64, String, PathBuf) {
        let name = self.path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let ordinal = self.header.sender.ordinal.map_or(0, |o| o.0);
        (ordinal, sequence(name), self.header.created_at.clone(), self.path.clone())
    }

    /// Takes the entry for delivery; never waits.
    pub fn lock(&self) -> Result<EntryLock, LockError> {
        let path = || self.path.clone();
        let gone_or = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => LockError::Gone { path: path() },
            _ => LockError::Io { path: path(), source },
        };
        let file = File::open(&self.path).map_err(gone_or)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held { path: path() }),
            Err(TryLockError::Error(source)) => return Err(LockError::Io { path: path(), source }),
        }
        // Between opening and locking, whoever held it may have delivered and removed it, or cut it anew.
        let there = File::open(&self.path).map_err(gone_or)?;
        if same_file(&file, &there).map_err(gone_or)? {
            Ok(EntryLock { path: path(), file })
        } else {
            Err(LockError::Held { path: path() })
        }
    }

    /// Reads it whole.
    pub fn load(&self) -> Result<Parcel, OutboxError> {
        Parcel::open_sealed(&self.path).map_err(|source| OutboxError::Broken { path: self.path.clone(), source })
    }

    /// The files that go along with it.
    pub fn attachments(&self) -> Result<Attachments, OutboxError> {
        Attachments::of(&self.path)
    }

    /// Removes it, durably. Only with a receipt in hand: [`Settled`] does that.
    pub fn remove(&self) -> Result<(), OutboxError> {
        let failed = |source| OutboxError::Io { path: self.path.clone(), source };
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => other.map_err(failed)?,
        }
        fail::fail_point!("client:remove:removed");
        sync_folder_of(&self.path).map_err(failed)?;
        fail::fail_point!("client:remove:synced");
        attachments::remove(&self.path);
        Ok(())
    }
}

#[cfg(unix)]
fn same_file(a: &File, b: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (a, b) = (a.metadata()?, b.metadata()?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Elsewhere a file that is open is not replaced.
#[cfg(not(unix))]
fn same_file(_: &File, _: &File) -> io::Result<bool> {
    Ok(true)
}

/// An entry whose delivery ended with a receipt, still there and still locked. Say what became of it, then
/// [`forget`](Self::forget) it: who dies in between leaves the entry, whose next delivery is replayed and says it.
#[derive(Debug)]
#[must_use = "the entry stays, and is delivered again, until it is forgotten"]
pub struct Settled {
    entry: Entry,
    _lock: EntryLock,
}

impl Settled {
    /// `None` without a receipt, and the entry stays: a refused push can be delivered once its cause is mended, an
    /// unconfirmed one must be.
    pub fn of(entry: &Entry, lock: EntryLock, ended: &Ended) -> Option<Self> {
        let Delivery::Recorded(_) = ended.delivery else { return None };
        fail::fail_point!("k9");
        Some(Self { entry: entry.clone(), _lock: lock })
    }

    /// Removes the entry.
    ///
    /// # Errors
    /// It stays. Delivering it again later changes nothing.
    pub fn forget(self) -> Result<(), OutboxError> {
        fail::fail_point!("client:said");
        self.entry.remove()
    }
}
