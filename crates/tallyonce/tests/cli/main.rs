//! The program's command line as users meet it: the real binary, in a folder of its own, on an embedded store and
//! against `serve`. Faults and kills are in `tests/reality`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod announce;
mod announce_agents;
mod drill;
mod flow;
mod help;
mod keys;
mod outbox;
mod reading;
mod run;
mod run_reports;
mod run_signals;
mod staged;
mod usage;
mod words;

use std::time::Duration;

use proof::spawn::{Binary, Finished, Run};
use serde_json::Value;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

const ONE_FAILS: &str = "<testsuite name=\"s\"><testcase classname=\"c\" name=\"one\" time=\"0.5\"/>\
    <testcase classname=\"c\" name=\"two\"><failure message=\"boom\"/></testcase></testsuite>";
const ALL_PASS: &str = "<testsuite name=\"s\"><testcase classname=\"c\" name=\"one\" time=\"0.5\"/>\
    <testcase classname=\"c\" name=\"two\"/></testsuite>";

/// A folder in which the program runs.
struct Desk {
    folder: tempfile::TempDir,
    binary: Binary,
}

impl Desk {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), binary: Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap() }
    }

    /// With `r.xml`, in which one of two tests fails.
    fn with_report() -> Self {
        let desk = Self::new();
        desk.file("r.xml", ONE_FAILS);
        desk
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn exists(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    fn command(&self, arguments: &[&str]) -> Run {
        Run::new(&self.binary).args(arguments).folder(self.folder.path()).timeout(PATIENCE)
    }

    /// Runs it, and checks the exit code.
    #[track_caller]
    fn run(&self, code: i32, arguments: &[&str]) -> Finished {
        self.run_in(code, arguments, &[])
    }

    #[track_caller]
    fn run_in(&self, code: i32, arguments: &[&str], env: &[(String, String)]) -> Finished {
        let finished = self.command(arguments).envs(env.iter().cloned()).output().unwrap();
        assert_eq!(finished.code, Some(code), "{arguments:?}: {finished}");
        finished
    }

    /// Runs it, and reads the one object on standard output.
    #[track_caller]
    fn json(&self, code: i32, arguments: &[&str]) -> Value {
        object(&self.run(code, arguments))
    }
}

/// The one object on standard output, and nothing else.
#[track_caller]
fn object(finished: &Finished) -> Value {
    assert_eq!(finished.stdout.lines().count(), 1, "{finished}");
    serde_json::from_str(&finished.stdout).unwrap()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
