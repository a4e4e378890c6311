//! Files that go along with an entry to its target: taken when the entry is put, kept in a folder beside it under the BLAKE3
//! of their content, and gone with it. Must not know which item wants which file, or what a target takes.
//!
//! `NAME.push` has `NAME.files` beside it: each content once, `list.json`, and a mark for each upload that was begun, so that
//! whoever comes after a dead process knows that the target may still be working on it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use domain::{Digest, ItemHash};
use serde::{Deserialize, Serialize};

use super::taking::Copies;
use super::{OutboxError, SUFFIX, at};
use crate::parcel::files::{TEMPORARY_SUFFIX, sync_folder, sync_folder_of};

const FOLDER_SUFFIX: &str = ".files";
const LIST_NAME: &str = "list.json";
const MARK_SUFFIX: &str = ".begun";
const DONE: &str = "done";
/// Most characters of a file's name at a target, the digest in it left out.
const NAME_CHARS_MAX: usize = 80;
/// Hexadecimal digits of the content's digest in a name.
const TAG_DIGITS: usize = 12;

/// A file that is to go along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachmentWanted {
    /// The item that it belongs to.
    pub item: ItemHash,
    /// The item as people read it.
    pub shown: String,
    /// The file as its report writes it.
    pub path: String,
    /// Where it is; else why it can't be taken.
    pub source: Result<PathBuf, String>,
}

/// A file that doesn't go along, or not all the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The item as people read it.
    pub item: String,
    /// The file.
    pub file: String,
    /// Why, in words.
    pub why: String,
}

/// A file that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The item that it belongs to, as 32 hexadecimal digits.
    pub(super) item: String,
    /// The item as people read it.
    pub shown: String,
    /// The last part of its path.
    pub file: String,
    /// Its content.
    pub content: Digest,
    /// Its length.
    pub bytes: u64,
    /// Where it was taken from; known to the process that took it alone.
    #[serde(skip)]
    pub(super) source: Option<PathBuf>,
}

impl Attachment {
    /// The item that it belongs to.
    pub fn item(&self) -> Option<ItemHash> {
        ItemHash::parse(&self.item)
    }

    /// What tells its content from others in a name.
    pub fn tag(&self) -> String {
        let mut tag = self.content.to_string();
        tag.truncate(TAG_DIGITS);
        tag
    }

    /// The name at a target: that of the file with its tag before the ending, in letters that every product takes. So a
    /// repeat is known by its name.
    pub fn name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
        let name: String = self.file.chars().map(plain).collect();
        let (stem, ending) = match name.rsplit_once('.') {
            Some((stem, ending)) if !stem.is_empty() && ending.len() <= 16 => (stem, format!(".{ending}")),
            _ => (name.as_str(), String::new()),
        };
        let stem = stem.get(..NAME_CHARS_MAX.min(stem.len())).unwrap_or(stem);
        format!("{}-{}{ending}", stem.trim_matches('.'), self.tag())
    }
}

/// Files that are to go along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttachmentsWanted {
    /// The files.
    pub files: Vec<AttachmentWanted>,
    /// Larger ones are left out, in bytes.
    pub bytes_max: u64,
    /// Now, in milliseconds since 1970.
    pub taken_ms: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    taken_ms: u64,
    files: Vec<Attachment>,
    left_out: Vec<LeftOut>,
}

/// All files of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachments {
    folder: Option<PathBuf>,
    /// When the first of them were taken, in milliseconds since 1970: what was sent for this entry, its marks tell.
    pub taken_ms: u64,
    /// Those that were taken.
    pub files: Vec<Attachment>,
    /// Those that were not, from the beginning.
    pub left_out: Vec<LeftOut>,
}

impl Attachments {
    /// Those of the entry with this file; none if none were taken.
    ///
    /// # Errors
    /// Their list can't be read.
    pub(super) fn of(entry: &Path) -> Result<Self, OutboxError> {
        let folder = folder_of(entry);
        let path = folder.join(LIST_NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(at(&path)(error)),
        };
        let List { taken_ms, files, left_out } =
            serde_json::from_slice(&bytes).map_err(|error| at(&path)(io::Error::other(error)))?;
        Ok(Self { folder: Some(folder), taken_ms, files, left_out })
    }

    /// Gives an entry that is about to be put the files that were taken for it, beside those that are there from an earlier
    /// time. On the disk when this returns. Only under the outbox's lock.
    pub(super) fn keep(entry: &Path, taken: Copies) -> Result<Self, OutboxError> {
        if taken.is_empty() {
            return Self::of(entry);
        }
        let folder = folder_of(entry);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let mut all = Self { left_out: Vec::new(), ..Self::of(entry)? };
        if all.folder.replace(folder.clone()).is_none() {
            all.taken_ms = taken.taken_ms;
        }
        taken.move_to(&folder).map_err(at(&folder))?;
        for file in taken.files {
            match all.files.iter_mut().find(|known| known.is(&file)) {
                Some(known) => known.source = file.source,
                None => all.files.push(file),
            }
        }
        all.left_out = taken.left_out;
        let list = List { taken_ms: all.taken_ms, files: all.files.clone(), left_out: all.left_out.clone() };
        let bytes = serde_json::to_vec(&list).map_err(|error| at(&folder)(io::Error::other(error)))?;
        write_whole(&folder.join(LIST_NAME), &bytes).map_err(at(&folder))?;
        sync_folder_of(&folder).map_err(at(&folder))?;
        fail::fail_point!("client:attachments:kept");
        Ok(all)
    }

    /// True if there is nothing to say of any file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.left_out.is_empty()
    }

    /// The bytes of a file: those that are kept, else those that it was taken from, if they are still the same.
    ///
    /// # Errors
    /// It is in neither place.
    pub fn read(&self, file: &Attachment) -> io::Result<Vec<u8>> {
        let kept = self.folder.as_ref().map(|folder| folder.join(file.content.to_string()));
        let places = kept.iter().chain(&file.source);
        for place in places {
            if let Ok(bytes) = fs::read(place)
                && Digest::of(&bytes) == file.content
            {
                return Ok(bytes);
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, "it was changed or removed since it was taken"))
    }

    /// When an upload of this name was begun, in milliseconds since 1970, if one was.
    pub fn begun_ms(&self, upload: Digest) -> Option<u64> {
        fs::read_to_string(self.mark(upload)?).ok()?.split_whitespace().next()?.parse().ok()
    }

    /// Keeps that an upload was answered, where that is all that will ever tell.
    pub fn done(&self, upload: Digest) {
        if let (Some(path), Some(begun_ms)) = (self.mark(upload), self.begun_ms(upload)) {
            // Without it the upload is taken for one without an answer, and said.
            let _ = write_whole(&path, format!("{begun_ms} {DONE}").as_bytes());
        }
    }

    /// True if an upload was answered, and that was kept.
    pub fn is_done(&self, upload: Digest) -> bool {
        let text = self.mark(upload).and_then(|path| fs::read_to_string(path).ok());
        text.is_some_and(|text| text.ends_with(DONE))
    }

    /// Keeps that an upload begins: on the disk when this returns.
    ///
    /// # Errors
    /// It can't be kept, so that it must not begin.
    pub fn begin(&self, upload: Digest, now_ms: u64) -> io::Result<()> {
        let Some(path) = self.mark(upload) else { return Ok(()) };
        // Another process may have removed the entry with its receipt.
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        write_whole(&path, now_ms.to_string().as_bytes())
    }

    /// An upload had no effect.
    pub fn unbegin(&self, upload: Digest) {
        if let Some(path) = self.mark(upload) {
            // One that stays only costs a wait.
            let _ = fs::remove_file(path);
        }
    }

    fn mark(&self, upload: Digest) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{upload}{MARK_SUFFIX}")))
    }
}

impl Attachment {
    fn is(&self, other: &Self) -> bool {
        (&self.item, self.content) == (&other.item, other.content)
    }
}

/// The folder beside an entry, also beside one whose writer was killed before it had its name.
fn folder_of(entry: &Path) -> PathBuf {
    let name = entry.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split_once(SUFFIX).map_or(&*name, |(stem, _)| stem);
    entry.with_file_name(format!("{stem}{FOLDER_SUFFIX}"))
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(TEMPORARY_SUFFIX.trim_start_matches('.'));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Removes what went along with an entry that is gone. What can't be removed is swept later.
pub(super) fn remove(entry: &Path) {
    let _ = fs::remove_dir_all(folder_of(entry));
}

/// Removes folders whose entry is gone or never came: their processes are dead. Only under the outbox's lock.
pub(super) fn sweep(outbox: &Path, entries: &[String]) -> io::Result<()> {
    for file in fs::read_dir(outbox)? {
        let name = file?.file_name();
        let Some(entry) = name.to_str().and_then(|name| name.strip_suffix(FOLDER_SUFFIX)) else { continue };
        let of = format!("{entry}{SUFFIX}");
        if !entries.iter().any(|name| name.starts_with(&of)) {
            let _ = fs::remove_dir_all(outbox.join(&name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(file: &str) -> String {
        let content = Digest::of(b"x");
        Attachment { item: String::new(), shown: String::new(), file: file.to_owned(), content, bytes: 1, source: None }
            .name()
    }

    #[test]
    fn a_name_carries_the_content_and_nothing_that_a_product_stumbles_over() {
        let tag = &Digest::of(b"x").to_string()[..TAG_DIGITS];
        assert_eq!(named("screen.png"), format!("screen-{tag}.png"));
        assert_eq!(named("a \"b\"/ü.tar.gz"), format!("a__b___.tar-{tag}.gz"));
        assert_eq!(named(".env"), format!("env-{tag}"));
        assert_eq!(named("log"), format!("log-{tag}"));
        assert_eq!(named(&"n".repeat(300)).len(), NAME_CHARS_MAX + 1 + TAG_DIGITS);
    }
}
