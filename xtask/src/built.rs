//! The test executables of the workspace, as `cargo xtask test` builds them. Must not know what is run in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::{BUILD, root};

/// A line of cargo's messages, as far as it is of interest.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// An executable of tests, and the folder that its tests run in.
pub(super) struct Executable {
    pub(super) path: PathBuf,
    pub(super) folder: PathBuf,
}

impl Executable {
    /// It, as cargo would start it, perhaps by another program.
    pub(super) fn command(&self, by: &[&str]) -> Command {
        let mut command = match by {
            [] => Command::new(&self.path),
            [program, arguments @ ..] => {
                let mut command = Command::new(program);
                command.args(arguments).arg(&self.path);
                command
            }
        };
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// All of them: by the folder of the crate and the target within it, `lib` for a library's own tests.
pub(super) struct Built(BTreeMap<(String, String), Executable>);

impl Built {
    /// Builds them, or finds that they are built.
    pub(super) fn make() -> Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(BUILD);
        let output = cargo.current_dir(root()).stderr(Stdio::inherit()).output().context("could not start cargo")?;
        ensure!(output.status.success(), "the tests could not be built");
        let mut all = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Message>(line) else { continue };
            if let Some((name, executable)) = message.tests() {
                all.insert(name, executable);
            }
        }
        Ok(Self(all))
    }

    /// Each with its crate and its name there.
    pub(super) fn all(&self) -> impl Iterator<Item = (&(String, String), &Executable)> {
        self.0.iter()
    }

    /// One of them.
    pub(super) fn of(&self, package: &str, target: &str) -> Result<&Executable> {
        let found = self.0.get(&(package.to_owned(), target.to_owned()));
        found.with_context(|| format!("there are no tests {target} in crate {package}"))
    }
}

impl Message {
    fn tests(self) -> Option<((String, String), Executable)> {
        let target = self.target.filter(|_| self.profile.is_some_and(|profile| profile.test))?;
        let folder = self.manifest_path?.parent().map(Path::to_owned)?;
        let package = folder.file_name()?.to_string_lossy().into_owned();
        let name = if target.kind.iter().any(|kind| kind == "lib") { "lib".to_owned() } else { target.name };
        Some(((package, name), Executable { path: self.executable?, folder }))
    }
}
