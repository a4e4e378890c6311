//! Vendors' own clients, installed once into the target folder (`proof::clients`).

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use proof::clients;

fn rigs() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("rigs")
}

/// [`clients::python`] in the target folder.
pub(crate) fn python(name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    clients::python(&rigs(), name, packages)
}

/// [`clients::node`] in the target folder.
pub(crate) fn node(name: &str, packages: &[&str]) -> anyhow::Result<Option<PathBuf>> {
    clients::node(&rigs(), name, packages)
}

/// What a program said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    /// Both streams, for messages of failing assertions.
    pub(crate) text: String,
}

/// Runs a client to its end.
pub(crate) fn run(program: &Path, arguments: &[&str], home: &Path) -> anyhow::Result<Said> {
    let mut command = clients::command(program, arguments, home);
    let done = command.output().with_context(|| format!("{}", program.display()))?;
    let text = [done.stdout, done.stderr].concat();
    Ok(Said { code: done.status.code(), text: String::from_utf8_lossy(&text).into_owned() })
}
