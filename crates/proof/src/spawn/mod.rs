//! Real processes for tests: a binary found, run in a clean environment, served, killed, started again.
//! Must not know what the program does beyond its flags `serve`, `--listen` and `--store`.

mod capture;
mod ci;
mod run;
mod server;
mod stopped;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

pub use ci::{GithubJob, GitlabJob, github_env, gitlab_env};
pub use run::{Finished, Run, Running};
pub use server::Server;

/// An executable that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary(PathBuf);

impl Binary {
    /// The executable at this path: in a binary's own tests, `env!("CARGO_BIN_EXE_tallyonce")`.
    ///
    /// # Errors
    /// There is no file.
    pub fn at(path: impl AsRef<Path>) -> anyhow::Result<Self> {
        let path = path.as_ref();
        if !path.is_file() {
            bail!("no executable at {}", path.display());
        }
        Ok(Self(path.to_owned()))
    }

    /// A path, or the name of a binary of this workspace, looked for beside the running test.
    ///
    /// # Errors
    /// There is none: it has not been built for this profile.
    pub fn locate(name: &str) -> anyhow::Result<Self> {
        if name.contains(std::path::MAIN_SEPARATOR) {
            return Self::at(name);
        }
        let test = std::env::current_exe().context("the path of the running test")?;
        let found = test.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|path| path.is_file());
        let Some(path) = found else { bail!("{name} is not beside {}: build it first", test.display()) };
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// All that a child inherits: where programs, home and temporary files are. Not the variables of the CI that
/// happens to run the tests, which would change keys. And the mutant, in builds for proving.
fn clean_environment() -> Vec<(String, OsString)> {
    inherited(|name| ["PATH", "HOME", "TMPDIR", "TALLYONCE_MUTANT"].contains(&name))
}

/// The wanted variables, of those that this process was given. (The one place here that reads the environment.)
pub(crate) fn inherited(wanted: impl Fn(&str) -> bool) -> Vec<(String, OsString)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| wanted(name))
        .collect()
}
