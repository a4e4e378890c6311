//! Making files and changes of a folder durable. Must not know what the files are.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// How the name of a file ends that is being written.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";

/// For whom a file is written: decides only at which points proof may cut it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replacing {
    /// A new entry of the outbox.
    Entry,
    /// The same entry, cut into other chunks.
    Recut,
    /// A sealed file.
    Sealed,
}

/// Writes a file whole under a temporary name, flushes it to the disk and renames it to `path`, durably: the name never
/// stands for half a file. Gives the file, under its new name.
pub(crate) fn replace(path: &Path, what: Replacing, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<File> {
    let temporary = temporary(path);
    let written = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(&temporary)
        .and_then(|file| write(&file).map(|()| file))
        .and_then(|file| {
            at(what, "client:entry:written", "client:recut:written", "client:seal:written");
            file.sync_all()?;
            at(what, "client:entry:synced", "client:recut:synced", "client:seal:synced");
            // The name gets a file that is locked as the one before was: nobody takes it in between.
            if what == Replacing::Recut {
                file.lock()?;
            }
            fs::rename(&temporary, path)?;
            at(what, "client:entry:renamed", "client:recut:renamed", "client:seal:renamed");
            Ok(file)
        });
    let file = written.map_err(|source| {
        // The error that matters is this one; a temporary file left behind is reported as such.
        let _ = fs::remove_file(&temporary);
        io::Error::new(source.kind(), format!("{}: {source}", temporary.display()))
    })?;
    sync_folder_of(path)?;
    at(what, "client:entry:kept", "client:recut:kept", "client:seal:kept");
    Ok(file)
}

#[cfg_attr(not(feature = "failpoints"), expect(unused_variables, reason = "the points are empty without the feature"))]
fn at(what: Replacing, entry: &str, recut: &str, sealed: &str) {
    let point = match what {
        Replacing::Entry => entry,
        Replacing::Recut => recut,
        Replacing::Sealed => sealed,
    };
    fail::fail_point!(point);
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(format!(".{}{TEMPORARY_SUFFIX}", std::process::id()));
    path.with_file_name(name)
}

/// Makes a rename or removal in the folder of `path` durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_folder(folder)
}

#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Elsewhere a folder cannot be opened for this, and renames are made durable by the file system's journal.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
