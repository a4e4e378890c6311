//! A folder of its own with reports, a store and perhaps a server, and the program run in it. Must not know the
//! program's code: it is driven by its command line alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proof::spawn::{Binary, Finished, Run, Server};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than any step takes on a busy machine; a test that waits so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) binary: Binary,
}

/// What a command came to.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn state(&self) -> &str {
        self.json["state"].as_str().unwrap_or("(none)")
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32, state: &str) -> Self {
        assert_eq!((self.code, self.state()), (code, state), "{:#}\n{}", self.json, self.stderr);
        self
    }

    pub(crate) fn total(&self) -> u64 {
        self.json["counts"]["total"].as_u64().unwrap()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), binary: Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store_url(&self) -> String {
        format!("sqlite:{}", self.path("tallyonce.db").display())
    }

    pub(crate) fn report(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        name.to_owned()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::new(&self.binary).args(arguments).folder(self.folder.path()).timeout(PATIENCE)
    }

    pub(crate) fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, env: &[(String, String)]) -> Server {
        Server::start(&self.binary, &self.store_url(), env, &[] as &[&str]).unwrap()
    }

    /// `push --json` with these arguments and this environment.
    pub(crate) fn push(&self, arguments: &[&str], env: &[(String, String)]) -> Outcome {
        let run = self.run(&["push", "--json"]).args(arguments).envs(env.iter().cloned());
        outcome(run.output().unwrap())
    }

    /// A push outside CI into the embedded store.
    pub(crate) fn push_local(&self, run: &str, arguments: &[&str]) -> Outcome {
        let all = [&["--project", "shop", "--run", run], arguments].concat();
        self.push(&all, &[])
    }

    pub(crate) fn show(&self, arguments: &[&str]) -> Value {
        let all = [&["show", "--project", "shop", "--format", "json"], arguments].concat();
        let finished = self.run(&all).output().unwrap().expect_code(0).unwrap();
        serde_json::from_str(&finished.stdout).unwrap()
    }

    /// Item texts with their status, as `show --items` gives them.
    pub(crate) fn items(&self, arguments: &[&str]) -> BTreeMap<String, String> {
        let shown = self.show(&[&["--items"], arguments].concat());
        let items = shown["items"].as_array().unwrap();
        let map: BTreeMap<String, String> =
            items.iter().map(|item| (item_text(item), item["status"].as_str().unwrap().to_owned())).collect();
        assert_eq!(map.len(), items.len(), "an item is listed twice");
        map
    }

    pub(crate) fn check_store(&self) {
        let finished = self.run(&["check-store", "--store", &self.store_url(), "--json"]).output().unwrap();
        assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    }

    pub(crate) fn outbox_entries(&self) -> usize {
        std::fs::read_dir(self.path(".tallyonce/outbox")).map_or(0, |entries| {
            entries
                .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x != "lock" && x != "tmp"))
                .count()
        })
    }
}

pub(crate) fn outcome(finished: Finished) -> Outcome {
    let json = serde_json::from_str(&finished.stdout).unwrap_or(Value::Null);
    Outcome { code: finished.code.unwrap_or(-1), json, stderr: finished.stderr }
}

/// The item as `class > name`, with suites that a generated report doesn't have left out.
pub(crate) fn item_text(item: &Value) -> String {
    let parts = &item["item"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut all: Vec<String> = parts["suite"].as_array().into_iter().flatten().filter_map(text).collect();
    all.extend(text(&parts["class"]));
    all.extend(text(&parts["name"]));
    all.join(" > ")
}

/// A report of tests `test 0`, `test 1`, … with these letters as verdicts: p, f, e, s.
pub(crate) fn junit(verdicts: &str) -> String {
    junit_named("suite", "test", verdicts)
}

pub(crate) fn junit_named(suite: &str, name: &str, verdicts: &str) -> String {
    junit_of(suite, verdicts.chars().enumerate().map(|(n, verdict)| (format!("{name} {n}"), verdict)))
}

pub(crate) fn junit_of(suite: &str, cases: impl IntoIterator<Item = (String, char)>) -> String {
    let mut xml = format!("<testsuites><testsuite name=\"{suite}\">\n");
    for (name, verdict) in cases {
        let body = match verdict {
            'f' => "<failure message=\"broken\"/>",
            'e' => "<error message=\"crashed\"/>",
            's' => "<skipped/>",
            _ => "",
        };
        writeln!(xml, "<testcase classname=\"{suite}.Class\" name=\"{name}\" time=\"0.25\">{body}</testcase>").unwrap();
    }
    xml.push_str("</testsuite></testsuites>\n");
    xml
}

pub(crate) fn count(report: &Path) -> BTreeMap<String, String> {
    proof::oracle::expected_from_junit(&[report]).unwrap()
}

/// The independent reader of the tables finds `pushes` pushes and no item twice.
pub(crate) fn oracle_agrees(world: &World, pushes: usize) {
    let oracle = proof::oracle::Oracle::open(&world.path("tallyonce.db")).unwrap();
    assert_eq!(oracle.doubles().unwrap(), Vec::<String>::new());
    assert_eq!(oracle.pushes().unwrap().len(), pushes);
}
