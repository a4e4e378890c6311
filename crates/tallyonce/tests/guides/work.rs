//! Runs the commands of a guide as a job of its platform would: in a folder with reports, in the example environment,
//! against a real server, and each push twice. Must not know where the commands stand in the guide.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proof::spawn::{Binary, Finished, Run, Server};
use serde_json::Value;

use crate::markdown::Page;
use crate::table::Setting;
use crate::{commands, root};

/// Longer than any step takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The address in the guides, in place of the reader's own.
const ADDRESS: &str = "https://tally.example.com";

/// What the guides call to run tests; all of them write the reports anew.
const RUNNERS: [&str; 8] = ["npm", "npx", "mvn", "gradle", "pytest", "make", "go", "docker"];

/// A machine on which the jobs of one guide run.
struct Machine<'a> {
    page: &'a Page,
    setting: &'a Setting,
    folder: tempfile::TempDir,
    binary: Binary,
    shell: Binary,
    env: Vec<(String, String)>,
    /// Of the commands that were run, and of the example environment.
    keys: BTreeSet<String>,
}

/// Runs all commands of a guide, and compares the keys that it promises. Gives one line for each command.
///
/// # Errors
/// What the guide promises and the program doesn't do.
pub(crate) fn through(page: &Page, setting: &Setting) -> Result<Vec<String>, String> {
    let mut machine = Machine::new(page, setting)?;
    let mut said = Vec::new();
    for block in &page.blocks {
        let found = commands::of(block);
        if found.is_empty() {
            continue;
        }
        let store = format!("sqlite:{}", machine.path(&format!("line-{}.db", block.line)).display());
        let server = Server::start(&machine.binary, &store, &[], &[] as &[&str]).map_err(|error| error.to_string())?;
        if found.iter().any(|command| command.starts_with("tallyonce show ")) {
            machine.seed(&server)?;
        }
        let mut seen = BTreeSet::new();
        for command in found.into_iter().filter(|command| seen.insert(command.clone())) {
            let at = format!("{}.md:{}", page.name, block.line);
            let how = machine.run(&command, &server, block.exit).map_err(|why| format!("{at}: `{command}`\n{why}"))?;
            said.push(format!("{at}: {how}: {command}"));
        }
    }
    if said.is_empty() {
        return Err(format!("{}.md: no command stands in it", page.name));
    }
    let promised = page.keys();
    if promised.is_empty() && setting.platform(&page.name).is_some() {
        return Err(format!("{}.md: it shows no key (a block of language text with a line `key: …`)", page.name));
    }
    match promised.iter().find(|key| !machine.keys.contains(**key)) {
        Some(key) => Err(format!("{}.md promises the key {key}; the program gives {:?}", page.name, machine.keys)),
        None => Ok(said),
    }
}

impl<'a> Machine<'a> {
    fn new(page: &'a Page, setting: &'a Setting) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let binary = Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap();
        let shell = ["/bin/bash", "/bin/sh"].iter().find_map(|path| Binary::at(path).ok()).unwrap();
        let mut machine = Self { page, setting, folder, binary, shell, env: Vec::new(), keys: BTreeSet::new() };
        std::fs::create_dir_all(machine.path("job")).unwrap();
        machine.write_reports();
        machine.write_runners();
        machine.read_environment()?;
        Ok(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn reports(&self) -> impl Iterator<Item = &str> {
        std::iter::once("reports/junit.xml").chain(self.setting.reports.iter().map(String::as_str))
    }

    /// Each report has tests of its own, one of which fails.
    fn write_reports(&self) {
        for (at, name) in self.reports().enumerate() {
            let text = format!(
                "<testsuite name=\"s\"><testcase classname=\"c{at}\" name=\"one\"/><testcase classname=\"c{at}\" \
                 name=\"two\"><failure message=\"boom\"/></testcase></testsuite>"
            );
            write(&self.path("job").join(name), &text);
            write(&self.path(&format!("kept/{name}")), &text);
        }
    }

    fn write_runners(&self) {
        use std::os::unix::fs::PermissionsExt as _;
        let script = format!("#!/bin/sh\ncp -R '{}/.' .\n", self.path("kept").display());
        let beside = self.path("job").join("gradlew");
        for path in RUNNERS.iter().map(|name| self.path(&format!("bin/{name}"))).chain([beside]) {
            write(&path, &script);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// The example environment of the platform, and the key that it gives.
    fn read_environment(&mut self) -> Result<(), String> {
        if let Some(platform) = self.setting.platform(&self.page.name) {
            self.env.extend(example_environment(platform)?);
            let asked = Run::new(&self.binary).args(["key", "--json", "--platform", platform, "--env-file"]);
            let asked = asked.arg(example_path(platform));
            let value = object(&asked.timeout(PATIENCE).output().map_err(|error| error.to_string())?)?;
            self.keys.extend(value["key"].as_str().map(str::to_owned));
        }
        let search = [self.path("bin"), self.binary.path().parent().unwrap().to_owned()];
        let system = std::env::var_os("PATH").unwrap_or_default();
        let search = std::env::join_paths(search.into_iter().chain(std::env::split_paths(&system))).unwrap();
        let home = self.path("home");
        std::fs::create_dir_all(&home).unwrap();
        let (search, home) = (search.to_str().unwrap(), home.to_str().unwrap());
        let fixed = [("PATH", search), ("HOME", home), ("TALLYONCE_TOKEN", "secret"), ("TALLYONCE_JSON", "true")];
        self.env.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
        self.env.extend(self.setting.env.clone());
        Ok(())
    }

    /// Records what the guides look at: a cycle `main` of the project `shop`.
    fn seed(&self, server: &Server) -> Result<(), String> {
        let push = ["push", "reports/junit.xml", "--run", "1", "--project", "shop", "--cycle", "main", "--to"];
        let run = Run::new(&self.binary).args(push).arg(server.url()).folder(self.path("job"));
        let finished = run.timeout(PATIENCE).output().map_err(|error| error.to_string())?;
        if finished.code == Some(0) { Ok(()) } else { Err(format!("nothing to look at: {finished}")) }
    }

    /// Runs a command; a push that is recorded is run again, and must be a replay. Gives what became of it.
    fn run(&mut self, command: &str, server: &Server, exit: i32) -> Result<String, String> {
        let command = self.setting.resolve(command)?.replace(ADDRESS, &server.url());
        let value = self.once(&command, exit)?;
        if exit != 0 {
            return Ok(format!("ends with {exit}, as it says"));
        }
        let state = value["state"].as_str().unwrap_or_default();
        if !is_push(&command) || state == "sealed" {
            return Ok(if state.is_empty() { "ends with 0".to_owned() } else { state.to_owned() });
        }
        if !["recorded", "replayed", "revised"].contains(&state) {
            return Err(format!("it is not recorded, although the exit code is 0: {value}"));
        }
        let again = self.once(&command, exit)?;
        if again["state"] != "replayed" || again["key"] != value["key"] {
            return Err(format!("run again it is not replayed:\n{again}"));
        }
        Ok(format!("{state}, then replayed"))
    }

    fn once(&mut self, command: &str, exit: i32) -> Result<Value, String> {
        let run = Run::new(&self.shell).args(["-euc", command]).folder(self.path("job")).envs(self.env.clone());
        let finished = run.timeout(PATIENCE).output().map_err(|error| error.to_string())?;
        if finished.code != Some(exit) {
            return Err(format!("expected exit code {exit}: {finished}"));
        }
        let value = object(&finished).unwrap_or_default();
        self.keys.extend(value["key"].as_str().map(str::to_owned));
        Ok(value)
    }
}

/// True for a command that pushes, however its words are quoted.
fn is_push(command: &str) -> bool {
    let mut words = command.split_whitespace().map(|word| word.trim_matches('\''));
    matches!((words.next(), words.next()), (Some("tallyonce"), Some("push" | "run")))
}

fn example_path(platform: &str) -> PathBuf {
    root().join(format!("crates/domain/tests/env/{platform}.env"))
}

/// The environment of an example job.
pub(crate) fn example_environment(platform: &str) -> Result<Vec<(String, String)>, String> {
    let path = example_path(platform);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    Ok(lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// The object in the last line of standard output.
fn object(finished: &Finished) -> Result<Value, String> {
    let last = finished.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| format!("{error}: {finished}"))
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
