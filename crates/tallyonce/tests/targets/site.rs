//! A folder with a configuration and a report, and a product to push it to.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use proof::spawn::{Binary, Finished, Run};
use proof::stubs::testrail::Options;
use proof::stubs::{Door, Stub, TestRail};
use serde_json::Value;

/// How many cases a report has.
pub(crate) const CASES: usize = 7;
/// One request may take so long.
pub(crate) const TIMEOUT: &str = "700ms";

/// A folder of a job.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new(config: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("tallyonce.toml", config);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The program, with the variables of a job and of the target's credentials.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let run = Run::new(&Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap()).args(args).folder(self.0.path());
        run.env("TALLYONCE_TIMEOUT", TIMEOUT).env("TARGET_TOKEN", "key").timeout(Duration::from_secs(90))
    }

    /// The push of the report of one run, and what its object says.
    pub(crate) fn push(&self, more: &[&str]) -> (Finished, Value) {
        let finished = self.pushing(more).output().unwrap();
        let json = serde_json::from_str(finished.stdout.trim()).unwrap_or(Value::Null);
        (finished, json)
    }

    pub(crate) fn pushing(&self, more: &[&str]) -> Run {
        let args =
            ["push", "--json", "report.xml", "--to", "there", "--project", "shop", "--cycle", "main", "--run", "7"];
        self.run(&[&args[..], more].concat())
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
