//! Vendors' own clients, installed once into a folder and run against stubs, or against their real servers. Where that can't
//! be done, whoever needs them says so and skips; with `TALLYONCE_RIGS_REQUIRED=1` it is an error. Must not know any of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, bail};

use crate::rigs;

/// What was tried in this process: what cannot be had is not asked for again by each test.
static TRIED: Mutex<BTreeMap<PathBuf, Option<String>>> = Mutex::new(BTreeMap::new());

/// The folder of programs of these Python packages (`NAME==VERSION`), in an environment in the folder `below`; `None`, and a line
/// that says so, if they can't be had here.
///
/// # Errors
/// They can't be had, and are required; or the folder can't be made.
pub fn python(below: &Path, name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    Ok(installed("python.sh", below, name, packages)?.map(|folder| folder.join("bin")))
}

/// The folder of these Node packages (`NAME@VERSION`), in the folder `below`; `None`, and a line that says so, if they can't be
/// had here.
///
/// # Errors
/// As [`python`].
pub fn node(below: &Path, name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    installed("node.sh", below, name, packages)
}

fn installed(script: &str, below: &Path, name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    let folder = below.join(name);
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    if !tried.contains_key(&folder) {
        fs::create_dir_all(below)?;
        // Other test programs may be at it as well.
        let lock = File::create(below.join(format!("{name}.lock")))?;
        lock.lock()?;
        let failed = install(script, &folder, packages).err().map(|error| format!("{error:#}"));
        tried.insert(folder.clone(), failed);
    }
    match tried.get(&folder) {
        Some(None) => Ok(Some(folder)),
        failed if rigs::required() => {
            bail!("{name}: {failed:?}")
        }
        failed => {
            #[allow(clippy::print_stderr, reason = "a test that was skipped says so")]
            {
                eprintln!("skipped: the client {name} cannot be installed here: {failed:?}");
            }
            Ok(None)
        }
    }
}

fn install(script: &str, folder: &Path, packages: &[&str]) -> anyhow::Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rigs/clients").join(script);
    let done = Command::new(script).arg(folder).args(packages).output().context("the script cannot be run")?;
    if done.status.success() { Ok(()) } else { bail!("{}", String::from_utf8_lossy(&done.stderr).trim()) }
}

/// A client's command. Nothing but loopback can be reached: clients look for newer versions of themselves.
pub fn command(program: &Path, arguments: &[&str], home: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(home).env("HOME", home);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9").env(name.to_lowercase(), "http://127.0.0.1:9");
    }
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    command
}
