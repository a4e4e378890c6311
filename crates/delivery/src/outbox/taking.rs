//! Takes files that are to go along, before the outbox is locked for their entry: copying takes as long as it takes, and nobody
//! else waits for it. Must not know entries.
//!
//! They lie in a folder of their own until then, beside a file that is locked as long as their process lives.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use domain::Digest;

use super::attachments::{Attachment, AttachmentWanted, AttachmentsWanted, LeftOut};
use super::{OutboxError, at};
use crate::parcel::files::TEMPORARY_SUFFIX;

const PREFIX: &str = "taking-";
const LOCK_SUFFIX: &str = ".lock";
/// Most bytes of all files of a push together; what is beyond is left out.
const ALL_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Files that were taken, and are nobody's yet.
#[derive(Debug, Default)]
pub(super) struct Copies {
    place: Option<Place>,
    pub(super) taken_ms: u64,
    pub(super) files: Vec<Attachment>,
    pub(super) left_out: Vec<LeftOut>,
}

impl Copies {
    /// Takes files into a folder of the outbox.
    pub(super) fn of(outbox: &Path, wanted: &AttachmentsWanted) -> Result<Self, OutboxError> {
        Self::within(outbox, wanted, ALL_BYTES_MAX)
    }

    fn within(outbox: &Path, wanted: &AttachmentsWanted, all_bytes_max: u64) -> Result<Self, OutboxError> {
        let AttachmentsWanted { files: wanted, bytes_max, taken_ms } = wanted;
        let mut all = Self { taken_ms: *taken_ms, ..Self::default() };
        if wanted.is_empty() {
            return Ok(all);
        }
        let place = all.place.insert(Place::new(outbox).map_err(at(outbox))?);
        let mut left = all_bytes_max;
        for one in wanted {
            let why = match take(&place.folder, one, *bytes_max).map_err(at(&place.folder))? {
                Ok(file) if file.bytes <= left => {
                    left -= file.bytes;
                    all.files.push(file);
                    continue;
                }
                Ok(_) => format!("all files of a push together have at most {all_bytes_max} bytes"),
                Err(why) => why,
            };
            all.left_out.push(LeftOut { item: one.shown.clone(), file: one.path.clone(), why });
        }
        Ok(all)
    }

    /// True if none were wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.place.is_none()
    }

    /// Moves what was taken to where it stays.
    pub(super) fn move_to(&self, folder: &Path) -> io::Result<()> {
        let Some(place) = &self.place else { return Ok(()) };
        let contents: BTreeSet<String> = self.files.iter().map(|file| file.content.to_string()).collect();
        contents.iter().try_for_each(|content| fs::rename(place.folder.join(content), folder.join(content)))
    }
}

/// A folder, and the lock of the process that fills it. Gone with it.
#[derive(Debug)]
struct Place {
    folder: PathBuf,
    lock: PathBuf,
    _held: File,
}

impl Place {
    fn new(outbox: &Path) -> io::Result<Self> {
        let folder = outbox.join(format!("{PREFIX}{:016x}", rand::random::<u64>()));
        let lock = lock_of(&folder);
        let held = File::create_new(&lock)?;
        held.lock()?;
        fs::create_dir(&folder)?;
        Ok(Self { folder, lock, _held: held })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What can't be removed is swept later.
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_file(&self.lock);
    }
}

fn lock_of(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(LOCK_SUFFIX);
    PathBuf::from(name)
}

/// Removes what a process that is dead had taken.
pub(super) fn sweep(outbox: &Path) -> io::Result<()> {
    for file in fs::read_dir(outbox)? {
        let name = file?.file_name();
        let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(LOCK_SUFFIX)) else { continue };
        let lock = outbox.join(&name);
        if stem.starts_with(PREFIX) && File::open(&lock).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(outbox.join(stem));
            let _ = fs::remove_file(lock);
        }
    }
    Ok(())
}

/// Takes one file. The outer error is the outbox's, the inner one the file's.
fn take(folder: &Path, wanted: &AttachmentWanted, bytes_max: u64) -> io::Result<Result<Attachment, String>> {
    let source = match &wanted.source {
        Ok(source) => source,
        Err(why) => return Ok(Err(why.clone())),
    };
    let unreadable = |error: io::Error| Ok(Err(format!("it can't be read: {error}")));
    let mut file = match File::open(source) {
        Ok(file) => file,
        Err(error) => return unreadable(error),
    };
    match file.metadata() {
        Ok(about) if !about.is_file() => return Ok(Err("it is no file".to_owned())),
        Ok(about) if about.len() > bytes_max => return Ok(Err(too_large(about.len(), bytes_max))),
        Ok(_) => {}
        Err(error) => return unreadable(error),
    }
    let temporary = folder.join(format!("taken{TEMPORARY_SUFFIX}"));
    let mut kept = File::create(&temporary)?;
    let (mut hasher, mut bytes, mut piece) = (blake3::Hasher::new(), 0_u64, vec![0; 256 * 1024]);
    loop {
        let length = match file.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) => return unreadable(error),
        };
        bytes += length as u64;
        if bytes > bytes_max {
            return Ok(Err(too_large(bytes, bytes_max)));
        }
        hasher.update(&piece[..length]);
        kept.write_all(&piece[..length])?;
    }
    let content = Digest::from(hasher.finalize());
    kept.sync_all()?;
    fs::rename(&temporary, folder.join(content.to_string()))?;
    let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source = std::path::absolute(source).ok();
    let (item, shown) = (wanted.item.to_string(), wanted.shown.clone());
    Ok(Ok(Attachment { item, shown, file: name, content, bytes, source }))
}

fn too_large(bytes: u64, bytes_max: u64) -> String {
    format!("it has {bytes} bytes or more, and attachment-bytes-max is {bytes_max}")
}

#[cfg(test)]
mod tests {
    use domain::ItemHash;

    use super::*;

    fn wanted(folder: &Path, sizes: &[usize]) -> AttachmentsWanted {
        let file = |(at, size): (usize, &usize)| {
            let path = folder.join(format!("{at}.png"));
            fs::write(&path, vec![at as u8; *size]).unwrap();
            let (item, shown) = (ItemHash([at as u8; 16]), format!("item {at}"));
            AttachmentWanted { item, shown, path: path.display().to_string(), source: Ok(path) }
        };
        AttachmentsWanted { files: sizes.iter().enumerate().map(file).collect(), bytes_max: 100, taken_ms: 1 }
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn all_files_of_a_push_have_a_bound() {
        let (outbox, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let taken = Copies::within(outbox.path(), &wanted(source.path(), &[60, 50, 101, 40]), 100).unwrap();
        assert_eq!(taken.files.iter().map(|file| file.bytes).collect::<Vec<_>>(), [60, 40]);
        assert!(taken.left_out[0].why.contains("at most 100 bytes"), "{:?}", taken.left_out);
        assert!(taken.left_out[1].why.contains("attachment-bytes-max is 100"), "{:?}", taken.left_out);
        drop(taken);
        assert_eq!(names(outbox.path()), 0);
    }

    #[test]
    fn only_what_a_dead_process_had_taken_is_swept() {
        let (outbox, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let taken = Copies::of(outbox.path(), &wanted(source.path(), &[60])).unwrap();
        sweep(outbox.path()).unwrap();
        let kept = tempfile::tempdir().unwrap();
        taken.move_to(kept.path()).unwrap();
        assert_eq!((names(kept.path()), names(outbox.path())), (1, 2));
        // It dies.
        let dead = outbox.path().join("taking-0123");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("taken.tmp"), b"half").unwrap();
        File::create(lock_of(&dead)).unwrap();
        sweep(outbox.path()).unwrap();
        assert_eq!(names(outbox.path()), 2, "what is alive stays");
        drop(taken);
        assert_eq!(names(outbox.path()), 0);
    }
}
