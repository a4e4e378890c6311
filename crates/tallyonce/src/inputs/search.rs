//! Finding report files by name: files, patterns, folders. Must not read them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Input;

/// How the names of report files end, for the search in folders.
const ENDINGS: [&str; 3] = [".xml", ".xml.gz", ".xml.zst"];
/// Folders that hold no reports of this run.
const NEVER_SEARCHED: [&str; 3] = [".git", ".tallyonce", "node_modules"];
/// Folders within folders; deeper ones are a loop or a mistake.
const DEPTH_MAX: usize = 64;

/// What was found, and what was not.
#[derive(Debug)]
pub(crate) struct Searched {
    /// In the order in which they are read.
    pub inputs: Vec<Input>,
    /// Paths that lead nowhere.
    pub errors: Vec<String>,
    /// Files that were left out, and why.
    pub notes: Vec<String>,
    /// Where was looked, for people.
    pub places: String,
}

/// Finds inputs.
#[derive(Debug)]
pub(crate) struct Search {
    inputs: Vec<Input>,
    errors: Vec<String>,
    notes: Vec<String>,
    /// Files that something led to, again or for the first time.
    met: usize,
    seen: BTreeSet<PathBuf>,
    never: Vec<PathBuf>,
    allow_empty: bool,
}

impl Search {
    /// Of files that are none of `never`. `allow_empty`: that a path leads nowhere is fine.
    pub(crate) fn new(never: &[PathBuf], allow_empty: bool) -> Self {
        let never = never.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let (inputs, errors, notes, seen) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
        Self { inputs, errors, notes, met: 0, seen, never, allow_empty }
    }

    /// The end of it. `places`: where was looked, for people.
    pub(crate) fn done(self, places: String) -> Searched {
        let Self { inputs, errors, notes, .. } = self;
        Searched { inputs, errors, notes, places }
    }

    /// Adds what one argument means.
    pub(crate) fn add(&mut self, text: &str) {
        if text == "-" {
            if !self.inputs.contains(&Input::Stdin) {
                self.inputs.push(Input::Stdin);
            }
            return;
        }
        // What exists is meant as it is, whatever its name looks like.
        let path = Path::new(text);
        if path.is_dir() {
            self.add_folder(path);
        } else if path.exists() {
            self.add_file(path, Input::Named);
        } else if text.contains(['*', '?', '[']) {
            self.add_pattern(text);
        } else {
            self.nothing(format!("{text}: there is no such file or folder"));
        }
    }

    fn add_pattern(&mut self, pattern: &str) {
        let matches = match glob::glob(pattern) {
            Ok(matches) => matches,
            Err(error) => {
                self.errors.push(format!("{pattern}: is no pattern: {error}"));
                return;
            }
        };
        let before = self.seen.len();
        let mut found = false;
        for path in matches {
            match path {
                Ok(path) if path.is_dir() => {}
                Ok(path) => {
                    found = true;
                    self.add_file(&path, Input::Named);
                }
                Err(error) => self.errors.push(error.to_string()),
            }
        }
        if !found && self.seen.len() == before {
            self.nothing(format!("{pattern}: no file matches this pattern"));
        }
    }

    fn add_folder(&mut self, folder: &Path) {
        let before = self.met;
        self.walk(folder, 0);
        if self.met == before {
            self.nothing(format!("{}: no file in this folder ends in {}", folder.display(), ENDINGS.join(", ")));
        }
    }

    fn walk(&mut self, folder: &Path, depth: usize) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) if depth < DEPTH_MAX => entries,
            Ok(_) => {
                self.errors.push(format!("{}: folders are nested deeper than {DEPTH_MAX}", folder.display()));
                return;
            }
            Err(error) => {
                self.errors.push(format!("{}: can't be read: {error}", folder.display()));
                return;
            }
        };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
            // A link to a folder may lead round in a circle; a link to a file is a file.
            if path.is_dir() {
                if !path.is_symlink() && !NEVER_SEARCHED.contains(&name.as_str()) {
                    self.walk(&path, depth + 1);
                }
            } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
                self.add_file(&path, Input::Found);
            }
        }
    }

    /// Each file once, however often it is named, and never one of our own.
    pub(crate) fn add_file(&mut self, path: &Path, as_input: fn(PathBuf) -> Input) {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.never.iter().any(|own| real.starts_with(own)) {
            self.notes.push(format!("{} is our own file, left out", path.display()));
            return;
        }
        self.met += 1;
        if self.seen.insert(real) {
            self.inputs.push(as_input(path.to_owned()));
        }
    }

    fn nothing(&mut self, what: String) {
        if self.allow_empty {
            self.notes.push(what);
        } else {
            self.errors.push(what);
        }
    }
}
