//! Looks for reports in the usual places: walks the working folder once, and names the files that a pattern matches.
//! Must not open them: whether one is a report is for its content to say.

use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::places::{COPIES, ENDINGS, FOLLOWED, NEVER, NEVER_BELOW, PLACES};

/// Folders within folders; deeper ones are a loop or a mistake.
const DEPTH_MAX: usize = 64;
/// Entries that are looked at. A tree beyond it is no project, or `--report` is the quicker way.
const ENTRIES_MAX: usize = 1_000_000;
/// Folders that cannot be read, and are named.
const UNREADABLE_MAX: usize = 5;

/// A file in one of the usual places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// From the working folder.
    pub path: PathBuf,
    /// Whose place it is.
    pub runner: &'static str,
}

/// What a walk came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Discovered {
    /// In the order of their paths.
    pub candidates: Vec<Candidate>,
    /// What was not looked at, for people.
    pub notes: Vec<String>,
}

/// Looks below `folder`. `never`: folders of ours.
pub(super) fn discover(folder: &Path, never: &[PathBuf]) -> Discovered {
    let never = never.iter().filter_map(|path| folder.join(path).canonicalize().ok()).collect();
    let mut walk = Walk { table: Table::new(), never, entries: 0, unreadable: 0, found: Discovered::default() };
    walk.folder(folder, Path::new(""), 0);
    if walk.entries >= ENTRIES_MAX {
        walk.found.notes.push(format!(
            "the search for reports ended after {ENTRIES_MAX} files and folders: name the reports with --report"
        ));
    }
    walk.found
}

struct Walk {
    table: Table,
    never: Vec<PathBuf>,
    entries: usize,
    unreadable: usize,
    found: Discovered,
}

impl Walk {
    fn folder(&mut self, folder: &Path, below: &Path, depth: usize) {
        if depth >= DEPTH_MAX {
            return;
        }
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable += 1;
                if self.unreadable <= UNREADABLE_MAX {
                    self.found.notes.push(format!("{} can't be searched for reports: {error}", folder.display()));
                }
                return;
            }
        };
        let mut names: Vec<_> = entries.filter_map(Result::ok).collect();
        names.sort_by_key(std::fs::DirEntry::file_name);
        for entry in names {
            self.entries += 1;
            if self.entries >= ENTRIES_MAX {
                return;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let (path, name) = (entry.path(), entry.file_name());
            let within = below.join(&name);
            let name = name.to_string_lossy();
            if kind.is_dir() || (kind.is_symlink() && FOLLOWED.contains(&name.as_ref()) && path.is_dir()) {
                if self.may_enter(&path, below, &name) {
                    self.folder(&path, &within, depth + 1);
                }
                continue;
            }
            // A pipe or socket would be read for ever.
            let is_file = kind.is_file() || (kind.is_symlink() && path.is_file());
            if let Some(runner) = self.table.runner(&within, &name).filter(|_| is_file) {
                self.found.candidates.push(Candidate { path: within, runner });
            }
        }
    }

    fn may_enter(&self, path: &Path, below: &Path, name: &str) -> bool {
        if name.starts_with('.') || NEVER.contains(&name) {
            return false;
        }
        let parent = below.file_name().unwrap_or_default();
        if NEVER_BELOW.iter().any(|(outer, inner)| parent == *outer && name == *inner) {
            return false;
        }
        self.never.is_empty() || path.canonicalize().is_ok_and(|real| !self.never.contains(&real))
    }
}

/// The patterns, ready to match.
struct Table {
    places: Vec<(Pattern, &'static str)>,
    copies: Vec<Pattern>,
}

impl Table {
    fn new() -> Self {
        // A pattern that is none is found by the test that compiles them all.
        let pattern = |text: &&str| Pattern::new(text).ok();
        let places = PLACES
            .iter()
            .flat_map(|place| place.patterns.iter().filter_map(pattern).map(|pattern| (pattern, place.runner)));
        Self { places: places.collect(), copies: COPIES.iter().filter_map(pattern).collect() }
    }

    fn runner(&self, within: &Path, name: &str) -> Option<&'static str> {
        if !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            return None;
        }
        let options = MatchOptions { require_literal_separator: true, ..MatchOptions::new() };
        let text = within.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
        let matches = |pattern: &Pattern| pattern.matches_with(&text, options);
        if self.copies.iter().any(matches) {
            return None;
        }
        self.places.iter().find(|(pattern, _)| matches(pattern)).map(|(_, runner)| *runner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        folder
    }

    fn found(folder: &Path, never: &[&str]) -> Vec<(String, &'static str)> {
        let never: Vec<PathBuf> = never.iter().map(PathBuf::from).collect();
        let candidates = discover(folder, &never).candidates;
        candidates.into_iter().map(|c| (c.path.to_string_lossy().into_owned(), c.runner)).collect()
    }

    #[test]
    fn what_tests_read_and_what_is_no_file_is_left_alone() {
        let folder = tree(&["target/test-classes/junit.xml", "src/test/resources/reports/bad.xml", "out/junit.xml"]);
        let results = folder.path().join("results");
        std::fs::create_dir(&results).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(results.join("socket.xml")).unwrap();
        let found: Vec<String> = found(folder.path(), &[]).into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, ["out/junit.xml"]);
    }

    #[test]
    fn every_pattern_is_one_and_ends_as_reports_do() {
        let count = PLACES.iter().map(|place| place.patterns.len()).sum::<usize>();
        let table = Table::new();
        assert_eq!((table.places.len(), table.copies.len()), (count, COPIES.len()));
        for pattern in PLACES.iter().flat_map(|place| place.patterns) {
            assert!(ENDINGS.iter().any(|ending| pattern.ends_with(ending)), "{pattern}");
            assert!(pattern.starts_with("**/"), "{pattern} would match in the working folder only");
        }
    }

    #[test]
    fn each_runner_s_own_place_is_known_by_its_name() {
        let expected = [
            ("a/target/surefire-reports/TEST-c.T.xml", "Maven Surefire"),
            ("app/build/outputs/androidTest-results/connected/debug/TEST-p.xml", "Gradle"),
            ("app/build/test-results/integrationTest/TEST-c.T.xml", "Gradle"),
            ("build/logs/log.xml", "PHPUnit"),
            ("build/test_detail.xml", "GoogleTest"),
            ("core/target/scala-3.4.2/test-reports/TEST-s.xml", "sbt"),
            ("cypress/results/a-0f.xml", "Cypress"),
            ("fastlane/test_output/report.junit", "fastlane"),
            ("features/reports/TESTS-login.xml", "Behave"),
            ("it/target/failsafe-reports/TEST-c.It.xml", "Maven Failsafe"),
            ("junit.xml", "Jest and others"),
            ("out/TEST-unit.xml", "Ant and others"),
            ("packages/a/junit-ci.xml", "Jest and others"),
            ("packages/a/test-results.xml", "Mocha and others"),
            ("results/e2e.xml", "a folder for reports"),
            ("robot/xunit.xml", "Robot Framework"),
            ("target/nextest/ci/junit.xml", "cargo-nextest"),
            ("tests/Unit/TestResults/unit.xml", ".NET"),
        ];
        let folder = tree(&expected.map(|(path, _)| path));
        let wanted: Vec<_> = expected.iter().map(|(path, runner)| ((*path).to_owned(), *runner)).collect();
        assert_eq!(found(folder.path(), &[]), wanted);
    }

    #[test]
    fn what_others_wrote_and_what_is_ours_is_not_searched() {
        let folder = tree(&[
            "node_modules/x/junit.xml",
            ".git/junit.xml",
            ".venv/lib/junit.xml",
            "lib/site-packages/x/tests/junit.xml",
            "vendor/junit.xml",
            "target/debug/junit.xml",
            "box/junit.xml",
            "pom.xml",
            "src/main/settings.xml",
            "target/failsafe-reports/failsafe-summary.xml",
            "target/surefire-reports/junitreports/TEST-c.T.xml",
            "debug/junit.xml",
        ]);
        assert_eq!(found(folder.path(), &["box"]), [("debug/junit.xml".to_owned(), "Jest and others")]);
    }

    #[cfg(unix)]
    #[test]
    fn bazel_s_link_is_followed_and_no_other() {
        let folder = tree(&["ws/a.txt", "out/testlogs/p/t/test.xml", "out/testlogs/p/t/test_attempts/attempt_1.xml"]);
        let (ws, out) = (folder.path().join("ws"), folder.path().join("out/testlogs"));
        for name in ["bazel-testlogs", "bazel-out", "results"] {
            std::os::unix::fs::symlink(&out, ws.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(&ws, ws.join("reports")).unwrap();
        assert_eq!(found(&ws, &[]), [("bazel-testlogs/p/t/test.xml".to_owned(), "Bazel")]);
    }

    #[test]
    fn the_guide_shows_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run.md");
        let guide = std::fs::read_to_string(path).unwrap();
        for place in PLACES {
            let patterns: Vec<String> = place.patterns.iter().map(|pattern| format!("`{pattern}`")).collect();
            let row = format!("| {} | {} |", place.runner, patterns.join(", "));
            assert!(guide.contains(&row), "docs/run.md lacks this row:\n{row}");
        }
        for name in NEVER {
            assert!(guide.contains(&format!("`{name}`")), "docs/run.md does not name {name}");
        }
    }
}
