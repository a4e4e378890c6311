//! Runs named tests of one executable, with a fault or without, and reads which of them failed. A test that is missing,
//! or that doesn't come to an end, is no verdict but an error. Must not know which test notices what.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use domain::mutants::{Mutant, VARIABLE};

use super::table::{Check, Suite};
use crate::built::Built;

/// Longer than any of these tests takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Tests at a time in one executable; several executables run beside each other.
const THREADS: &str = "--test-threads=2";

/// Long runs are cut to what shows a fault, and what was generated to show it is not kept.
const SHORT: [(&str, &str); 4] = [
    ("TALLYONCE_KILLS", "2"),
    ("TALLYONCE_FAULT_PUSHES", "4"),
    ("TALLYONCE_POINTS", "store:txn:"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"),
];

/// What a test said.
pub(super) struct Verdict {
    pub(super) check: Check,
    pub(super) killed: bool,
}

/// Runs these tests of a suite.
pub(super) fn examine(built: &Built, suite: Suite, checks: &[Check], mutant: Option<Mutant>) -> Result<Vec<Verdict>> {
    let (package, target) = suite.names();
    let executable = built.of(package, target)?;
    let mut command = Command::new(&executable.path);
    command.args(["--exact", THREADS]).args(checks.iter().map(|check| check.test)).current_dir(&executable.folder);
    command.envs(SHORT).env_remove(VARIABLE).envs(mutant.map(|mutant| (VARIABLE, mutant.name())));
    let said = ended(&mut command).with_context(|| format!("{suite} under {mutant:?}"))?;
    let verdicts = verdicts(&said);
    let of = |check: &Check| {
        let failed = verdicts.get(check.test).copied();
        let killed = failed.with_context(|| format!("{check} has not come to an end under {mutant:?}:\n{said}"))?;
        Ok(Verdict { check: *check, killed })
    };
    checks.iter().map(of).collect()
}

/// What a command printed, once it has ended.
#[expect(clippy::disallowed_methods, reason = "a test that waits for ever is to be killed")]
fn ended(command: &mut Command) -> Result<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut out = child.stdout.take().context("no output")?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = out.read_to_end(&mut text);
        read.map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("it has not ended in {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    reader.join().map_err(|_| anyhow::anyhow!("its output could not be read"))?.context("its output")
}

/// By test, whether it failed.
fn verdicts(said: &str) -> BTreeMap<&str, bool> {
    said.lines().filter_map(verdict).collect()
}

fn verdict(line: &str) -> Option<(&str, bool)> {
    let (test, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
    match end.trim() {
        "ok" => Some((test, false)),
        "FAILED" => Some((test, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_has_a_verdict() {
        let said = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest a::d ... ignored\ntest a::e ...";
        assert_eq!(verdicts(said), BTreeMap::from([("a::b", false), ("a::c", true)]));
    }
}
