//! The packages for CI platforms as their users meet them: their files are checked, and their steps are run by small
//! stand-ins for the platforms, with the real program against a real server.
//! Must not know how keys are derived or pushes delivered; the platforms themselves are not here.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod action;
mod action_faults;
mod archive;
mod composite;
mod expression;
mod flush;
mod flush_bounds;
mod install;
mod platforms;
mod push_script;
mod schema;
mod scripts;
mod stub;
mod yaml;

use std::path::{Path, PathBuf};
use std::time::Duration;

use proof::spawn::{Binary, Finished, Run, Server};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

const ONE_FAILS: &str = "<testsuite name=\"s\"><testcase classname=\"c\" name=\"one\" time=\"0.5\"/>\
    <testcase classname=\"c\" name=\"two\"><failure message=\"boom\"/></testcase></testsuite>";
const ALL_PASS: &str = "<testsuite name=\"s\"><testcase classname=\"c\" name=\"one\" time=\"0.5\"/>\
    <testcase classname=\"c\" name=\"two\"/></testsuite>";

/// The top of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn file_of(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Where the machine that the tests run on has its programs.
fn system_path() -> String {
    std::env::var_os("PATH").unwrap_or_default().into_string().unwrap()
}

/// A program of that machine.
fn program(name: &str) -> Option<Binary> {
    std::env::split_paths(&system_path()).find_map(|folder| Binary::at(folder.join(name)).ok())
}

/// A machine that jobs run on: a workspace, a folder for temporary files, the program on the PATH, and, if wanted, a server.
struct Machine {
    folder: tempfile::TempDir,
    binary: Binary,
}

impl Machine {
    /// With `r.xml`, in which one of two tests fails.
    fn new() -> Self {
        let machine =
            Self { folder: tempfile::tempdir().unwrap(), binary: Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap() };
        for name in ["workspace", "temp", "bin"] {
            std::fs::create_dir(machine.path(name)).unwrap();
        }
        machine.report(ONE_FAILS);
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn report(&self, text: &str) {
        self.file("workspace/r.xml", text);
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A program of this machine's own, found before all others.
    fn executable(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let name = format!("bin/{name}");
        self.file(&name, script);
        std::fs::set_permissions(self.path(&name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Programs are looked for here: the machine's own, the tested one, the system's.
    fn search_path(&self) -> String {
        let ours = [self.path("bin"), self.binary.path().parent().unwrap().to_owned()];
        let system = system_path();
        let all = ours.into_iter().chain(std::env::split_paths(&system));
        std::env::join_paths(all).unwrap().into_string().unwrap()
    }

    fn server(&self) -> Server {
        let store = format!("sqlite:{}", self.path("served.db").display());
        Server::start(&self.binary, &store, &[], &[] as &[&str]).unwrap()
    }

    /// A shell script as a step of a job, in the workspace.
    fn shell(&self, shell: &str, arguments: &[&str], env: &[(String, String)]) -> Run {
        Run::new(&program(shell).unwrap())
            .args(arguments)
            .folder(self.path("workspace"))
            .env("PATH", self.search_path())
            .envs(env.iter().cloned())
            .timeout(PATIENCE)
    }

    /// `tallyonce show` of a round by its run.
    fn show(&self, server: &Server, cycle: &str, run: &str) -> serde_json::Value {
        let shown = ["show", "--from", &server.url(), "--project", "shop", "--cycle", cycle, "--round", run];
        let finished =
            Run::new(&self.binary).args(shown).args(["--format", "json"]).timeout(PATIENCE).output().unwrap();
        assert_eq!(finished.code, Some(0), "{finished}");
        serde_json::from_str(&finished.stdout).unwrap()
    }
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// What a command said, on both outputs.
fn said(finished: &Finished) -> String {
    format!("{}{}", finished.stdout, finished.stderr)
}
