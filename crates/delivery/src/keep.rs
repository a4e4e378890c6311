//! Who keeps a parcel while it is delivered, and takes it in another cut if a receiver wants that.
//! Must not deliver, and must not let go of what it keeps.

use std::path::{Path, PathBuf};

use crate::outbox::{EntryLock, OutboxError};
use crate::parcel::{Parcel, Scratch};

/// Whoever keeps a parcel.
pub trait Keep: Send {
    /// Where the bodies of another cut lie until they are kept.
    fn scratch(&self) -> Scratch<'_>;

    /// Keeps the same push in another cut from now on.
    fn replace(&mut self, parcel: &Parcel) -> Result<(), OutboxError>;
}

/// An entry of the outbox that is held.
impl Keep for EntryLock {
    fn scratch(&self) -> Scratch<'_> {
        Scratch::Folder(self.folder())
    }

    fn replace(&mut self, parcel: &Parcel) -> Result<(), OutboxError> {
        EntryLock::replace(self, parcel)
    }
}

/// Of a parcel that somebody else keeps, in the cut that it has: a sealed file, or an entry that another process holds.
#[derive(Debug, Clone)]
pub struct Loose {
    folder: PathBuf,
}

impl Loose {
    /// Another cut would lie in this folder.
    pub fn beside(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }
}

impl Keep for Loose {
    fn scratch(&self) -> Scratch<'_> {
        Scratch::Folder(&self.folder)
    }

    fn replace(&mut self, _: &Parcel) -> Result<(), OutboxError> {
        Ok(())
    }
}
