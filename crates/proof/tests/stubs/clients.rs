//! Vendors' own clients, installed once into the target folder. Where that cannot be done, the tests that need them
//! say so and pass; with `TALLYONCE_RIGS_REQUIRED=1` they fail.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, bail};

/// The folder of programs of these Python packages (`NAME==VERSION`), each in an environment called `name`; `None`
/// if they cannot be had here.
pub(crate) fn python(name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    Ok(installed("python.sh", name, packages)?.map(|folder| folder.join("bin")))
}

/// The folder of these Node packages (`NAME@VERSION`), called `name`; `None` if they cannot be had here.
pub(crate) fn node(name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    installed("node.sh", name, packages)
}

/// What was tried in this process: what cannot be had is not asked for again by each test.
static TRIED: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());

fn installed(script: &str, name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    let rigs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rigs");
    let folder = rigs.join(name);
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    if !tried.contains_key(name) {
        fs::create_dir_all(&rigs)?;
        // Other test programs may be at it as well.
        let lock = File::create(rigs.join(format!("{name}.lock")))?;
        lock.lock()?;
        tried.insert(name.to_owned(), install(script, &folder, packages).err().map(|error| format!("{error:#}")));
    }
    match tried.get(name) {
        Some(None) => Ok(Some(folder)),
        failed if std::env::var_os("TALLYONCE_RIGS_REQUIRED").is_some_and(|set| set == "1") => {
            bail!("{name}: {failed:?}")
        }
        failed => {
            println!("skipped: the client {name} cannot be installed here: {failed:?}");
            Ok(None)
        }
    }
}

fn install(script: &str, folder: &Path, packages: &[&str]) -> anyhow::Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rigs/clients").join(script);
    let done = Command::new(script).arg(folder).args(packages).output().context("the script cannot be run")?;
    if done.status.success() { Ok(()) } else { bail!("{}", String::from_utf8_lossy(&done.stderr).trim()) }
}

/// What a program said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    /// Both streams, for messages of failing assertions.
    pub(crate) text: String,
}

/// Runs a client to its end. Nothing but loopback can be reached: clients look for newer versions of themselves.
pub(crate) fn run(program: &Path, arguments: &[&str], home: &Path) -> anyhow::Result<Said> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(home).env("HOME", home).env("NO_PROXY", "127.0.0.1");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, "http://127.0.0.1:9").env(name.to_lowercase(), "http://127.0.0.1:9");
    }
    command.env("no_proxy", "127.0.0.1");
    let done = command.output().with_context(|| format!("{}", program.display()))?;
    let text = [done.stdout, done.stderr].concat();
    Ok(Said { code: done.status.code(), text: String::from_utf8_lossy(&text).into_owned() })
}
