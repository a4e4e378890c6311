//! Which report files are meant: files, patterns, folders, standard input; and reading them into one collection.
//! Must not know keys or destinations beyond the paths that are never inputs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use reports::{Collector, Gathered, Gathering, ReadOptions, ReportError, Spill, SpillingCollector};

use crate::failure::Failure;

/// How the names of report files end, for the search in folders.
const ENDINGS: [&str; 3] = [".xml", ".xml.gz", ".xml.zst"];
/// Folders that hold no reports of this run.
const NEVER_SEARCHED: [&str; 3] = [".git", ".tallyonce", "node_modules"];
/// How much of the outcomes is held in memory while reports are read, in bytes.
const MEMORY_BYTES: usize = 48 * 1024 * 1024;
/// Folders within folders; deeper ones are a loop or a mistake.
const DEPTH_MAX: usize = 64;

/// How inputs are read.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    /// As typed.
    pub paths: &'a [String],
    /// How reports are read.
    pub options: ReadOptions,
    /// That nothing is found is fine.
    pub allow_empty: bool,
    /// Our own files, which are never inputs: the outbox, the store, the sealed file.
    pub never: Vec<PathBuf>,
    /// Where outcomes go that are too many for memory, in a file without a name.
    pub spill: PathBuf,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Reports {
    /// Outcomes and figures.
    pub collected: Gathering,
    /// Files that were left out, and why.
    pub notes: Vec<String>,
    /// Files that could not be read at all although `--partial` was given.
    pub lost: Vec<String>,
}

impl Reports {
    /// How many items they hold.
    pub(crate) fn items(&self) -> u64 {
        match &self.collected.outcomes {
            Gathered::Held { outcomes, .. } => outcomes.len() as u64,
            Gathered::Spilled(spilled) => spilled.len(),
        }
    }
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Input {
    /// Standard input.
    Stdin,
    /// A file that somebody named or a pattern matched: it must be a report.
    Named(PathBuf),
    /// A file found in a folder: it may be something else.
    Found(PathBuf),
}

/// Finds and reads everything.
///
/// # Errors
/// A path or report cannot be used, or nothing was found; every one that cannot is listed.
pub(crate) fn read(wish: &Wish<'_>) -> Result<Reports, Failure> {
    let mut search = Search::new(wish);
    for path in wish.paths {
        search.add(path);
    }
    let mut errors = std::mem::take(&mut search.errors);
    let mut notes = std::mem::take(&mut search.notes);
    let mut lost = Vec::new();
    let spill = Spill { folder: wish.spill.clone(), memory_bytes: MEMORY_BYTES };
    let mut collector = Collector::spilling(wish.options.clone(), spill);
    let mut read = 0_usize;
    for input in &search.inputs {
        match add(&mut collector, input) {
            Ok(()) => read += 1,
            Err(ReportError::NotAReport { .. } | ReportError::UnsupportedFormat { .. })
                if matches!(input, Input::Found(_)) =>
            {
                notes.push(format!("{} is no test report, left out", shown(input)));
            }
            // Our own disk is no damage of a report.
            Err(error @ ReportError::Spill { .. }) => return Err(no_room(&error)),
            Err(error) if wish.options.partial => lost.push(error.to_string()),
            Err(error) => errors.push(error.to_string()),
        }
    }
    if read == 0 && errors.is_empty() && lost.is_empty() && !wish.allow_empty {
        errors.push(format!("no test report is in {}", wish.paths.join(", ")));
    }
    if read == 0 && !lost.is_empty() {
        errors.append(&mut lost);
    }
    if !errors.is_empty() {
        return Err(Failure::unreadable(errors));
    }
    let collected = collector.gather().map_err(|error| no_room(&error))?;
    Ok(Reports { collected, notes, lost })
}

fn no_room(error: &ReportError) -> Failure {
    Failure::machine(error.to_string(), "Free space, or name an --outbox on a disk with room for the reports.")
}

fn add(collector: &mut SpillingCollector, input: &Input) -> Result<(), ReportError> {
    match input {
        Input::Stdin => collector.add("-", std::io::stdin().lock()),
        Input::Named(path) | Input::Found(path) => {
            let name = shown(input);
            let file = File::open(path).map_err(|source| ReportError::Io { file: name.clone(), source })?;
            collector.add(&name, BufReader::with_capacity(256 * 1024, file))
        }
    }
}

/// The name under which a file is known in messages and in the push: as typed, with `/`, without `./` in front.
fn shown(input: &Input) -> String {
    match input {
        Input::Stdin => "-".to_owned(),
        Input::Named(path) | Input::Found(path) => {
            let text = path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
            text.strip_prefix("./").map_or_else(|| text.clone(), str::to_owned)
        }
    }
}

struct Search {
    inputs: Vec<Input>,
    errors: Vec<String>,
    notes: Vec<String>,
    seen: BTreeSet<PathBuf>,
    never: Vec<PathBuf>,
    allow_empty: bool,
}

impl Search {
    fn new(wish: &Wish<'_>) -> Self {
        let never = wish.never.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let (inputs, errors, notes, seen) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
        Self { inputs, errors, notes, seen, never, allow_empty: wish.allow_empty }
    }

    fn add(&mut self, text: &str) {
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
        let before = self.inputs.len();
        self.walk(folder, 0);
        if self.inputs.len() == before {
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
    fn add_file(&mut self, path: &Path, as_input: fn(PathBuf) -> Input) {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.never.iter().any(|own| real.starts_with(own)) {
            self.notes.push(format!("{} is our own file, left out", path.display()));
        } else if self.seen.insert(real) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "<testsuite name='a'><testcase classname='c' name='NAME'/></testsuite>";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    fn wish(paths: &[String]) -> Wish<'_> {
        Wish {
            paths,
            options: ReadOptions::standard(),
            allow_empty: false,
            never: Vec::new(),
            spill: std::env::temp_dir(),
        }
    }

    fn at(folder: &tempfile::TempDir, names: &[&str]) -> Vec<String> {
        names.iter().map(|name| folder.path().join(name).to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_folder_is_searched_and_what_is_no_report_is_left_out() {
        let one = REPORT.replace("NAME", "one");
        let folder = folder(&[
            ("r/a.xml", &one),
            ("r/deep/er/b.XML", &REPORT.replace("NAME", "two")),
            ("r/pom.xml", "<project/>"),
            ("r/log.txt", "hello"),
            ("r/.tallyonce/x.xml", "no"),
        ]);
        let paths = at(&folder, &["r"]);
        let reports = read(&wish(&paths)).unwrap();
        assert_eq!(reports.items(), 2);
        assert_eq!(reports.notes.len(), 1, "{:?}", reports.notes);
        assert!(reports.notes[0].contains("pom.xml"));
    }

    #[test]
    fn a_named_file_has_to_be_a_report() {
        let folder = folder(&[("pom.xml", "<project/>"), ("empty.xml", "")]);
        for name in ["pom.xml", "*.xml", "gone.xml", "gone*.xml"] {
            let paths = at(&folder, &[name]);
            let failure = read(&wish(&paths)).unwrap_err();
            assert_eq!(failure.exit.number(), 3, "{name}");
            let text = crate::render::failure(&failure);
            assert!(text.contains(name.trim_start_matches('*')), "{text}");
        }
        let paths = at(&folder, &["empty.xml"]);
        assert_eq!(read(&wish(&paths)).unwrap_err().exit.number(), 3);
    }

    #[test]
    fn an_empty_report_in_a_folder_is_never_skipped() {
        let folder = folder(&[("r/a.xml", &REPORT.replace("NAME", "one")), ("r/b.xml", "")]);
        let paths = at(&folder, &["r"]);
        assert_eq!(read(&wish(&paths)).unwrap_err().exit.number(), 3);
    }

    #[test]
    fn the_same_file_is_read_once_and_our_own_never() {
        let folder = folder(&[("a.xml", &REPORT.replace("NAME", "one")), ("box/b.xml", "no"), ("t.db", "no")]);
        let paths = at(&folder, &["a.xml", "*.xml", "a.xml", "*", "**/*.xml"]);
        let mut wish = wish(&paths);
        wish.never = vec![folder.path().join("box"), folder.path().join("t.db")];
        let reports = read(&wish).unwrap();
        assert_eq!(reports.collected.summary.files, 1);
        assert_eq!(reports.items(), 1);
    }

    #[test]
    fn nothing_found_is_fine_only_if_said() {
        let folder = folder(&[("x/readme.txt", "hi")]);
        let paths = at(&folder, &["x", "x/*.xml"]);
        assert_eq!(read(&wish(&paths)).unwrap_err().exit.number(), 3);
        let wish = Wish { allow_empty: true, ..wish(&paths) };
        assert!(read(&wish).unwrap().items() == 0);
    }

    #[test]
    fn partial_keeps_what_is_readable() {
        let cut = REPORT.replace("NAME", "one").replace("</testsuite>", "<testcase name='two'");
        let folder = folder(&[("a.xml", &cut), ("b.xml", "")]);
        let paths = at(&folder, &["a.xml", "b.xml"]);
        assert_eq!(read(&wish(&paths)).unwrap_err().exit.number(), 3);
        let mut wish = wish(&paths);
        wish.options.partial = true;
        let reports = read(&wish).unwrap();
        assert_eq!((reports.items(), reports.collected.damage.len(), reports.lost.len()), (1, 1, 1));
    }
}
