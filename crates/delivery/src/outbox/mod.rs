//! The folder that keeps pushes until a receipt is there: durable before the first byte is sent, one file per entry.
//! Must not send anything, and must not decide where an entry goes.
//!
//! A file is named `SEQUENCE-KEY-CONTENT.push`: a number that orders, 16 hex digits over destination, project and key,
//! and 16 over the content. So the same push put twice is one file, and no clock orders entries of one machine.
//! Of two entries with one name the later stands: same outcomes, newer sender.

mod attachments;
mod entry;
mod taking;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use domain::Digest;
use thiserror::Error;

use crate::parcel::files::{Replacing, TEMPORARY_SUFFIX, replace, sync_folder_of};
use crate::parcel::{Header, Parcel, SealedError};

use taking::Copies;

pub use attachments::{Attachment, AttachmentWanted, Attachments, AttachmentsWanted, LeftOut};
pub use entry::{BrokenEntry, Entry, EntryLock, LockError, Settled};

const SUFFIX: &str = ".push";
/// Taken while an entry is put, and shared while entries are listed.
const LOCK_NAME: &str = ".lock";
const SEQUENCE_DIGITS: usize = 8;

/// An outbox that cannot do what it is for.
#[derive(Debug, Error)]
pub enum OutboxError {
    /// The file system refused.
    #[error("outbox {path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// An entry's file is no whole push.
    #[error("outbox entry {path}: {source}", path = path.display())]
    Broken {
        /// The entry.
        path: PathBuf,
        /// Why.
        source: SealedError,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> OutboxError + use<> {
    let path = path.to_owned();
    move |source| OutboxError::Io { path, source }
}

/// A folder of entries. Several processes may share it.
#[derive(Debug, Clone)]
pub struct Outbox {
    folder: PathBuf,
}

impl Outbox {
    /// The outbox in this folder, which is made if it isn't there.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, OutboxError> {
        let folder = folder.into();
        let made: Vec<&Path> = folder.ancestors().take_while(|a| !a.as_os_str().is_empty() && !a.exists()).collect();
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        for new in &made {
            sync_folder_of(new).map_err(at(new))?;
            fail::fail_point!("client:outbox:made");
        }
        Ok(Self { folder })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps a parcel: on the disk, file and folder, when this returns. If another process is delivering the very same
    /// content under the same key, its entry is given back untouched, and [`Entry::lock`] will say who holds it. Where
    /// the entry's form is another than the parcel's, the entry is what should be delivered.
    pub fn put(&self, parcel: &Parcel) -> Result<Entry, OutboxError> {
        self.put_with(parcel, &AttachmentsWanted::default()).map(|(entry, _)| entry)
    }

    /// As [`Self::put`], with files that go along. They are on the disk before the entry is.
    pub fn put_with(&self, parcel: &Parcel, wanted: &AttachmentsWanted) -> Result<(Entry, Attachments), OutboxError> {
        let taken = Copies::of(&self.folder, wanted)?;
        let guard = writing(&self.folder)?;
        let identity = identity(&parcel.header);
        let names = self.names()?;
        let known = names.iter().find(|name| name.ends_with(&identity));
        let name = known.cloned().unwrap_or_else(|| format!("{:0SEQUENCE_DIGITS$}{identity}", next_sequence(&names)));
        let path = self.folder.join(name);
        attachments::sweep(&self.folder, &names).map_err(at(&self.folder))?;
        taking::sweep(&self.folder).map_err(at(&self.folder))?;
        let files = Attachments::keep(&path, taken)?;
        if known.is_none() || !held_and_whole(&path) {
            match finer_cut(&path, parcel) {
                Some(finer) => write_whole(&path, &finer)?,
                None => write_whole(&path, parcel)?,
            }
        }
        // What a killed writer left of this very push is superseded; under the lock no writer is alive.
        for left in names.iter().filter(|name| name.contains(&identity) && name.ends_with(TEMPORARY_SUFFIX)) {
            let _ = fs::remove_file(self.folder.join(left));
            fail::fail_point!("client:outbox:cleared");
        }
        drop(guard);
        match Entry::read(&path) {
            Ok(entry) => Ok((entry, files)),
            // Whoever held it has its receipt and removed it in between: locking will say that it is gone.
            Err(SealedError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok((Entry::of(path, parcel.header.clone()), files))
            }
            Err(source) => Err(OutboxError::Broken { path, source }),
        }
    }

    /// All entries, those of one key oldest first (by ordinal, then in the order in which they were put), and files that
    /// are no whole entry. Waits while another process puts one, so that a half-written file is always a dead one.
    pub fn entries(&self) -> Result<(Vec<Entry>, Vec<BrokenEntry>), OutboxError> {
        // Without a lock file nobody has ever put anything here: a folder that was uploaded, perhaps read-only.
        let guard = File::open(self.folder.join(LOCK_NAME)).ok().filter(|file| file.lock_shared().is_ok());
        let mut entries = Vec::new();
        let mut broken = Vec::new();
        let names = self.names()?;
        for name in &names {
            if is_left_beside(name, &names) {
                // Whole or not: it is the entry once more, by a writer that is dead. Without the lock it may live.
                if guard.is_some() {
                    let _ = fs::remove_file(self.folder.join(name));
                    fail::fail_point!("client:outbox:cleared");
                }
                continue;
            }
            let path = self.folder.join(name);
            match Entry::read(&path) {
                Ok(entry) => entries.push(entry),
                Err(SealedError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
                Err(why) => broken.push(BrokenEntry { path, why: why.to_string() }),
            }
        }
        entries.sort_by_cached_key(Entry::order);
        Ok((entries, broken))
    }

    /// Names of entries and of temporary files, sorted.
    fn names(&self) -> Result<Vec<String>, OutboxError> {
        let mut names = Vec::new();
        for file in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            let name = file.map_err(at(&self.folder))?.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.ends_with(SUFFIX) || (name.contains(SUFFIX) && name.ends_with(TEMPORARY_SUFFIX)) {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Taken while a file is written, so that a half-written one is always a dead one.
fn writing(folder: &Path) -> Result<File, OutboxError> {
    let path = folder.join(LOCK_NAME);
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    opened.and_then(|file| file.lock().map(|()| file)).map_err(at(&path))
}

/// The same push as an earlier process kept it, in smaller chunks because the receiver takes no larger ones, with the
/// sender of now: what the receiver has of it needn't be sent again.
fn finer_cut(path: &Path, parcel: &Parcel) -> Option<Parcel> {
    let kept = Parcel::open_sealed(path).ok()?;
    kept.is_finer_than(parcel).then(|| kept.relabelled(&parcel.header))
}

/// The part of a name that says which push it is: `-KEY-CONTENT.push`.
fn identity(header: &Header) -> String {
    let mut key = Vec::new();
    for part in [header.destination.as_str(), header.place.project.as_str(), header.key.as_str()] {
        key.extend_from_slice(&(part.len() as u64).to_le_bytes());
        key.extend_from_slice(part.as_bytes());
    }
    let key = Digest::of(&key).to_string();
    let content = header.content.to_string();
    format!("-{}-{}{SUFFIX}", &key[..16], &content[..16])
}

/// True for a file that was being written for a push that has an entry, under whatever number.
fn is_left_beside(name: &str, names: &[String]) -> bool {
    let Some((entry, rest)) = name.split_once(SUFFIX) else { return false };
    let Some((_, push)) = entry.split_once('-') else { return false };
    let mut entries = names.iter().filter_map(|other| other.strip_suffix(SUFFIX)?.split_once('-'));
    rest.ends_with(TEMPORARY_SUFFIX) && entries.any(|(_, of)| of == push)
}

/// The number in front of a name.
fn sequence(name: &str) -> u64 {
    name.split_once('-').and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
}

fn next_sequence(names: &[String]) -> u64 {
    names.iter().map(|name| sequence(name)).max().unwrap_or(0).saturating_add(1)
}

/// True if another handle, of this process or another one, holds the file's lock.
fn is_held(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn held_and_whole(path: &Path) -> bool {
    is_held(path) && Entry::read(path).is_ok()
}

/// Only under the outbox's lock.
fn write_whole(path: &Path, parcel: &Parcel) -> Result<(), OutboxError> {
    replace(path, Replacing::Entry, |file| parcel.write_to(file)).map(|_| ()).map_err(at(path))
}
