//! Which report files are meant: files, patterns, folders, standard input; and reading them into one collection.
//! Must not know keys or destinations beyond the paths that are never inputs.

mod search;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use domain::Counts;
use reports::{Collector, Gathered, Gathering, ReadOptions, ReportError, Spill, SpillingCollector};

use crate::failure::Failure;
pub(crate) use search::{Search, Searched};

/// How much of the outcomes is held in memory while reports are read, in bytes.
const MEMORY_BYTES: usize = 48 * 1024 * 1024;

/// How inputs are read.
#[derive(Debug)]
pub(crate) struct Wish {
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

    /// True if an item failed or errored in the end.
    pub(crate) fn any_bad(&self) -> bool {
        match &self.collected.outcomes {
            Gathered::Held { outcomes, .. } => outcomes.iter().collect::<Counts>().any_bad(),
            Gathered::Spilled(spilled) => spilled.counts().any_bad(),
        }
    }
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// Standard input.
    Stdin,
    /// A file that somebody named or a pattern matched: it must be a report.
    Named(PathBuf),
    /// A file found in a folder: it may be something else.
    Found(PathBuf),
}

impl Input {
    /// The file, unless it is standard input.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::Named(path) | Self::Found(path) => Some(path),
        }
    }

    /// The name under which it is known in messages and in the push: as typed, with `/`, without `./` in front.
    pub(crate) fn shown(&self) -> String {
        let Some(path) = self.path() else { return "-".to_owned() };
        let text = path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        text.strip_prefix("./").map_or_else(|| text.clone(), str::to_owned)
    }
}

/// Finds what is meant by files, patterns, folders and `-`.
pub(crate) fn search(paths: &[String], wish: &Wish) -> Searched {
    let mut search = Search::new(&wish.never, wish.allow_empty);
    for path in paths {
        search.add(path);
    }
    search.done(paths.join(", "))
}

/// Reads everything that was found.
///
/// # Errors
/// A path or report cannot be used, or nothing was found; every one that cannot is listed.
pub(crate) fn read(wish: &Wish, searched: Searched) -> Result<Reports, Failure> {
    let Searched { inputs, mut errors, mut notes, places } = searched;
    let mut lost = Vec::new();
    let spill = Spill { folder: wish.spill.clone(), memory_bytes: MEMORY_BYTES };
    let mut collector = Collector::spilling(wish.options.clone(), spill);
    let mut read = 0_usize;
    for input in &inputs {
        match add(&mut collector, input) {
            Ok(()) => read += 1,
            Err(ReportError::NotAReport { .. } | ReportError::UnsupportedFormat { .. })
                if matches!(input, Input::Found(_)) =>
            {
                notes.push(format!("{} is no test report, left out", input.shown()));
            }
            // Our own disk is no damage of a report.
            Err(error @ ReportError::Spill { .. }) => return Err(no_room(&error)),
            Err(error) if wish.options.partial => lost.push(error.to_string()),
            Err(error) => errors.push(error.to_string()),
        }
    }
    if read == 0 && errors.is_empty() && lost.is_empty() && !wish.allow_empty {
        errors.push(format!("no test report is in {places}"));
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
            let name = input.shown();
            let file = File::open(path).map_err(|source| ReportError::Io { file: name.clone(), source })?;
            collector.add(&name, BufReader::with_capacity(256 * 1024, file))
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

    fn wish() -> Wish {
        let (options, spill) = (ReadOptions::standard(), std::env::temp_dir());
        Wish { options, allow_empty: false, never: Vec::new(), spill }
    }

    fn read(wish: &Wish, paths: &[String]) -> Result<Reports, Failure> {
        super::read(wish, search(paths, wish))
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
        let reports = read(&wish(), &paths).unwrap();
        assert_eq!(reports.items(), 2);
        assert_eq!(reports.notes.len(), 1, "{:?}", reports.notes);
        assert!(reports.notes[0].contains("pom.xml"));
    }

    #[test]
    fn a_named_file_has_to_be_a_report() {
        let folder = folder(&[("pom.xml", "<project/>"), ("empty.xml", "")]);
        for name in ["pom.xml", "*.xml", "gone.xml", "gone*.xml"] {
            let paths = at(&folder, &[name]);
            let failure = read(&wish(), &paths).unwrap_err();
            assert_eq!(failure.exit.number(), 3, "{name}");
            let text = crate::render::failure(&failure);
            assert!(text.contains(name.trim_start_matches('*')), "{text}");
        }
        let paths = at(&folder, &["empty.xml"]);
        assert_eq!(read(&wish(), &paths).unwrap_err().exit.number(), 3);
    }

    #[test]
    fn an_empty_report_in_a_folder_is_never_skipped() {
        let folder = folder(&[("r/a.xml", &REPORT.replace("NAME", "one")), ("r/b.xml", "")]);
        let paths = at(&folder, &["r"]);
        assert_eq!(read(&wish(), &paths).unwrap_err().exit.number(), 3);
    }

    #[test]
    fn the_same_file_is_read_once_and_our_own_never() {
        let folder = folder(&[("a.xml", &REPORT.replace("NAME", "one")), ("box/b.xml", "no"), ("t.db", "no")]);
        let paths = at(&folder, &["a.xml", "*.xml", "a.xml", "*", "**/*.xml"]);
        let mut wish = wish();
        wish.never = vec![folder.path().join("box"), folder.path().join("t.db")];
        let reports = read(&wish, &paths).unwrap();
        assert_eq!(reports.collected.summary.files, 1);
        assert_eq!(reports.items(), 1);
        // A folder of which every file is named already leads somewhere all the same.
        std::fs::create_dir(folder.path().join("r")).unwrap();
        std::fs::rename(folder.path().join("a.xml"), folder.path().join("r/a.xml")).unwrap();
        let paths = at(&folder, &["r/*.xml", "r"]);
        assert_eq!(read(&self::wish(), &paths).unwrap().items(), 1);
    }

    #[test]
    fn nothing_found_is_fine_only_if_said() {
        let folder = folder(&[("x/readme.txt", "hi")]);
        let paths = at(&folder, &["x", "x/*.xml"]);
        assert_eq!(read(&wish(), &paths).unwrap_err().exit.number(), 3);
        let wish = Wish { allow_empty: true, ..wish() };
        assert!(read(&wish, &paths).unwrap().items() == 0);
    }

    #[test]
    fn partial_keeps_what_is_readable() {
        let cut = REPORT.replace("NAME", "one").replace("</testsuite>", "<testcase name='two'");
        let folder = folder(&[("a.xml", &cut), ("b.xml", "")]);
        let paths = at(&folder, &["a.xml", "b.xml"]);
        assert_eq!(read(&wish(), &paths).unwrap_err().exit.number(), 3);
        let mut wish = wish();
        wish.options.partial = true;
        let reports = read(&wish, &paths).unwrap();
        assert_eq!((reports.items(), reports.collected.damage.len(), reports.lost.len()), (1, 1, 1));
    }
}
