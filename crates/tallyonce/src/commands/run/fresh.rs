//! Which files the command wrote: those that were not there before it started, or are others now. Judged by the file
//! system's own times, never against this machine's clock. Must not know what the files are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How far the clocks of two file systems may be apart: a report on a network drive, or copied out of a container. A file
/// that is older than the start by more was not written by the command, however it came here (out of an archive, say).
const APART: Duration = Duration::from_mins(1);
/// The coarsest step in which file systems count time.
const TICK: Duration = Duration::from_secs(2);

/// What tells one writing of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    /// Another one where the file was replaced; 0 where the system has no such number.
    number: u64,
}

impl Stamp {
    fn of(file: &Path) -> Option<Self> {
        let about = std::fs::metadata(file).ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let number = 0;
        Some(Self { modified: about.modified().ok(), length: about.len(), number })
    }
}

/// How things were when the command started.
#[derive(Debug)]
pub(super) struct Before {
    /// By the clock of the folder's file system; `None` where nothing can be written there.
    start: Option<SystemTime>,
    known: BTreeMap<PathBuf, Stamp>,
}

impl Before {
    /// Of these files, right before the start.
    pub(super) fn of<'a>(folder: &Path, files: impl Iterator<Item = &'a Path>) -> Self {
        let start = tempfile::tempfile_in(folder).and_then(|probe| probe.metadata()?.modified()).ok();
        let known = files.filter_map(|file| Some((file.to_owned(), Stamp::of(file)?))).collect();
        Self { start, known }
    }

    /// True if the command wrote this file. One that cannot be looked at counts as written: whoever reads it says why.
    pub(super) fn is_new(&self, file: &Path) -> bool {
        let Some(now) = Stamp::of(file) else { return true };
        let (Some(start), Some(modified)) = (self.start, now.modified) else {
            return self.known.get(file) != Some(&now);
        };
        if self.known.get(file) == Some(&now) {
            // Written in the very tick of the start: before or after it, the same file or another of the same length.
            return modified.duration_since(start).is_ok_and(|after| after < TICK);
        }
        start.duration_since(modified).map_or(true, |earlier| earlier <= APART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    struct Files(tempfile::TempDir);

    impl Files {
        /// A file that was written so long ago.
        fn write(&self, name: &str, text: &str, seconds_ago: u64) -> PathBuf {
            let path = self.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            let file = File::options().append(true).open(&path).unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - Duration::from_secs(seconds_ago)).unwrap();
            path
        }

        fn before(&self, files: &[&Path]) -> Before {
            Before::of(self.0.path(), files.iter().copied())
        }
    }

    #[test]
    fn what_was_there_and_is_the_same_is_old() {
        let files = Files(tempfile::tempdir().unwrap());
        let old = files.write("old.xml", "1", 1);
        let before = files.before(&[&old]);
        assert!(!before.is_new(&old));
        assert!(before.is_new(&files.write("new.xml", "1", 0)));
    }

    #[test]
    fn what_was_written_again_is_new_though_its_length_is_the_same() {
        let files = Files(tempfile::tempdir().unwrap());
        let path = files.write("r.xml", "1", 30);
        let before = files.before(&[&path]);
        files.write("r.xml", "2", 0);
        assert!(before.is_new(&path));
    }

    #[test]
    fn a_file_system_whose_clock_is_late_writes_new_files_too() {
        let files = Files(tempfile::tempdir().unwrap());
        let path = files.write("r.xml", "1", 100);
        let before = files.before(&[&path]);
        files.write("r.xml", "12", 20);
        assert!(before.is_new(&path));
    }

    #[test]
    fn a_file_out_of_an_archive_is_old() {
        let files = Files(tempfile::tempdir().unwrap());
        let before = files.before(&[]);
        assert!(!before.is_new(&files.write("unpacked.xml", "1", 86_400)));
    }

    #[test]
    fn what_was_written_in_the_tick_of_the_start_gets_the_benefit_of_the_doubt() {
        let files = Files(tempfile::tempdir().unwrap());
        let path = files.write("r.xml", "1", 0);
        let mut before = files.before(&[&path]);
        before.start = Stamp::of(&path).unwrap().modified;
        assert!(before.is_new(&path));
        // A clock that runs ahead is no reason to believe that it was written now.
        before.start = before.start.map(|start| start - Duration::from_mins(1));
        assert!(!before.is_new(&path));
    }

    #[test]
    fn without_a_clock_only_changes_count() {
        let files = Files(tempfile::tempdir().unwrap());
        let path = files.write("r.xml", "1", 0);
        let before = Before { start: None, ..files.before(&[&path]) };
        assert!(!before.is_new(&path));
        files.write("r.xml", "12", 0);
        assert!(before.is_new(&path));
    }
}
