//! All test executables: one after the other, and beside them those that only calculate or mostly wait, with what the others
//! leave of the machine. Must not know what is tested.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::built::{Built, Executable};
use crate::{BUILD, cargo, found, say};

/// Only calculates, for minutes, where most other tests wait for processes and clocks.
const SIMULATION: &str = "pushes_under_faults_are_recorded_once";
/// Of the program against every product: waits for quiet times and rates, for minutes.
const TARGETS: (&str, &str) = ("tallyonce", "targets");
/// At once, since each of them waits.
const TARGETS_AT_ONCE: &str = "--test-threads=4";

/// Runs them all. Gives the simulation, which may go on beside whatever comes next.
pub(super) fn run(built: &Built) -> Result<Beside> {
    let simulation = Beside::start("the simulation", built.of("proof", "sim")?, &["--nocapture", SIMULATION], true)?;
    let targets = Beside::start("the tests of targets", built.of(TARGETS.0, TARGETS.1)?, &[TARGETS_AT_ONCE], false)?;
    for ((package, target), executable) in
        built.all().filter(|((package, target), _)| (&**package, &**target) != TARGETS)
    {
        say(&format!("xtask: the tests {target} of crate {package}"));
        crate::run(executable.command(&[]).args(["--skip", SIMULATION]))?;
    }
    cargo(&[&["test", "--doc"], &BUILD[..]].concat())?;
    targets.end()?;
    Ok(simulation)
}

/// Tests beside all others. What they say is kept until they end.
pub(super) struct Beside {
    what: &'static str,
    child: Child,
    said: PathBuf,
}

impl Beside {
    /// `yields`: gives way to all others.
    fn start(what: &'static str, executable: &Executable, arguments: &[&str], yields: bool) -> Result<Self> {
        let said =
            std::env::temp_dir().join(format!("tallyonce-{}-{}.log", what.replace(' ', "-"), std::process::id()));
        let file = File::create(&said).with_context(|| said.display().to_string())?;
        let by: &[&str] = if yields && found("nice") { &["nice", "-n", "15"] } else { &[] };
        let mut command = executable.command(by);
        command.args(arguments).stdin(Stdio::null());
        let child = command.stderr(file.try_clone()?).stdout(file).spawn().context(what)?;
        Ok(Self { what, child, said })
    }

    /// Waits for them, and says what they said.
    pub(super) fn end(mut self) -> Result<()> {
        let status = self.child.wait()?;
        say(&format!("xtask: {}\n{}", self.what, std::fs::read_to_string(&self.said).unwrap_or_default()));
        if status.success() { Ok(()) } else { bail!("{} failed: {status}", self.what) }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Another test failed: these are not waited for. If they have ended, there is nothing to kill or remove.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.said);
    }
}
