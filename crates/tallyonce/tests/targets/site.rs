//! A folder with a configuration and a report, and a product to push it to.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proof::spawn::{Binary, Finished, Run};
use proof::stubs::testrail::Options;
use proof::stubs::{Door, Stub, TestRail};
use serde_json::Value;

/// How many cases a report has.
pub(crate) const CASES: usize = 7;
/// One request may take so long.
pub(crate) const TIMEOUT: &str = "700ms";

/// A folder of a job, and what the job is told.
pub(crate) struct Folder {
    dir: tempfile::TempDir,
    /// The pipeline run that it belongs to.
    pub(crate) run: String,
    /// What the product lets it in with.
    pub(crate) token: String,
}

impl Folder {
    pub(crate) fn new(config: &str) -> Self {
        // In memory where that can be had: these tests kill processes, not machines, and sync tens of thousands of times.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let folder = Self { dir, run: "7".to_owned(), token: "key".to_owned() };
        folder.write("tallyonce.toml", config);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The program, with the variables of a job and of the target's credentials.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_by(Path::new(env!("CARGO_BIN_EXE_tallyonce")), args)
    }

    /// The same by another build of the program.
    pub(crate) fn run_by(&self, program: &Path, args: &[&str]) -> Run {
        let run = Run::new(&Binary::at(program).unwrap()).args(args).folder(self.dir.path());
        run.env("TALLYONCE_TIMEOUT", TIMEOUT).env("TARGET_TOKEN", &self.token).timeout(Duration::from_secs(90))
    }

    /// The push of the report of one run, and what its object says.
    pub(crate) fn push(&self, more: &[&str]) -> (Finished, Value) {
        let finished = self.pushing(more).output().unwrap();
        let json = serde_json::from_str(finished.stdout.trim()).unwrap_or(Value::Null);
        (finished, json)
    }

    pub(crate) fn pushing(&self, more: &[&str]) -> Run {
        let args = ["push", "--json", "report.xml", "--to", "there", "--project", "shop", "--cycle", "main"];
        self.run(&[&args[..], &["--run", &self.run], more].concat())
    }
}

/// A report of these tests.
pub(crate) fn report(names: &[String], failed: &[usize]) -> String {
    let mut text = format!("<testsuite name=\"s\" tests=\"{}\">", names.len());
    for (at, name) in names.iter().enumerate() {
        let failure = if failed.contains(&at) { "<failure message=\"no\"/>" } else { "" };
        write!(text, "<testcase classname=\"c\" name=\"{name}\" time=\"0.01\">{failure}</testcase>").unwrap();
    }
    text + "</testsuite>"
}

/// `TestRail` with cases, and a folder whose report names them.
pub(crate) fn rail() -> (Stub<TestRail>, Folder, Vec<String>) {
    let stub = Stub::start(TestRail::new(Options { rate: None, ..Options::default() })).unwrap();
    let cases: Vec<u64> = (0..CASES).map(|n| stub.vendor().add_case(&format!("case {n}"), None)).collect();
    let folder = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\n"));
    let names: Vec<String> = cases.iter().map(|case| format!("C{case} adds")).collect();
    folder.write("report.xml", &report(&names, &[2]));
    (stub, folder, names)
}

pub(crate) fn config(door: &Door, kind: &str, project: &str, more: &str) -> String {
    format!(
        "[target.there]\nkind = \"{kind}\"\nurl = \"{}\"\nproject = \"{project}\"\ntoken = \"${{TARGET_TOKEN}}\"\n\
         quiet = \"1s\"\n{more}",
        door.url()
    )
}
