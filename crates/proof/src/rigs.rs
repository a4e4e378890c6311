//! Real servers of other vendors, for tests: `rigs/rig.py` installs, seeds and serves them, each start with a world of
//! its own. Must not know their APIs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::spawn::{Binary, Finished, Run, Running, inherited};

/// How long it may take to install packages and make a database, once on a machine.
const PREPARE: Duration = Duration::from_mins(20);
/// How long a start may take then. It takes a second.
const START: Duration = Duration::from_mins(2);
/// What `rig.py` says before the reason why it can't install.
const REASON: &str = "rig: can't be installed here: ";
/// The exit code of `rig.py` where the rig can't be installed.
const CANNOT_INSTALL: i32 = 75;
/// The exit code of `env` where there is no `python3`.
const NO_PYTHON: i32 = 127;
/// If it is `1`, a machine on which a rig can't be installed fails the tests instead of skipping them.
const REQUIRED: &str = "TALLYONCE_RIGS_REQUIRED";

/// Whose server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    /// Kiwi TCMS 12.4: JSON-RPC.
    Kiwi,
    /// Nitrate 4.13: XML-RPC.
    Nitrate,
}

impl Vendor {
    /// Its name for `rig.py`.
    fn name(self) -> &'static str {
        match self {
            Self::Kiwi => "kiwi",
            Self::Nitrate => "nitrate",
        }
    }

    /// Installs it and makes its database, unless that was done before. Tried once in a process, as a machine without
    /// a network takes its time to find that out.
    fn prepare(self) -> Result<(), NoRig> {
        static TRIED: [OnceLock<Result<(), NoRig>>; 2] = [const { OnceLock::new() }; 2];
        let prepare = || {
            let run = rig_py().map_err(|error| self.broken(&error))?.args(["database", self.name()]).timeout(PREPARE);
            let finished = run.output().map_err(|error| self.broken(&error))?;
            if finished.code == Some(0) { Ok(()) } else { Err(self.no_rig(&finished)) }
        };
        TRIED[self as usize].get_or_init(prepare).clone()
    }

    /// The command that serves its rig from a folder, until standard input ends.
    ///
    /// # Errors
    /// It can't be installed here, or is broken.
    pub fn serve(self, folder: &Path) -> Result<Run, NoRig> {
        self.prepare()?;
        Ok(rig_py().map_err(|error| self.broken(&error))?.args(["serve", self.name()]).arg(folder))
    }

    fn no_rig(self, finished: &Finished) -> NoRig {
        let why = match finished.code {
            Some(NO_PYTHON) => "there is no python3: apt-get install python3 python3-venv",
            Some(CANNOT_INSTALL) => finished.stderr.rsplit(REASON).next().unwrap_or_default().trim(),
            _ => return self.broken(finished),
        };
        NoRig::Absent { vendor: self, why: why.to_owned() }
    }

    fn broken(self, why: &impl fmt::Display) -> NoRig {
        // `#`: of an error, its causes too.
        NoRig::Broken { vendor: self, why: format!("{why:#}") }
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why there is no rig.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRig {
    /// It can't be installed on this machine; the text says what is missing.
    #[error("{vendor} can't be installed here: {why}")]
    Absent {
        /// Which one.
        vendor: Vendor,
        /// What is missing, and what to do.
        why: String,
    },
    /// It was installed, or should have been, and does not run: a fault, never a reason to skip.
    #[error("the rig of {vendor} is broken: {why}")]
    Broken {
        /// Which one.
        vendor: Vendor,
        /// How it ended and what it said.
        why: String,
    },
}

/// A running server of another vendor with an empty world: one user, product, version, build. Killed when dropped, and
/// its folder with it; it also ends by itself if this process dies.
#[derive(Debug)]
pub struct Rig {
    // Before the folder: it has ended before its files go.
    running: Running,
    vendor: Vendor,
    ready: Value,
    folder: TempDir,
}

impl Rig {
    /// Kiwi TCMS 12.4.
    ///
    /// # Errors
    /// As [`Rig::start`].
    pub fn kiwi() -> Result<Self, NoRig> {
        Self::start(Vendor::Kiwi)
    }

    /// Nitrate 4.13.
    ///
    /// # Errors
    /// As [`Rig::start`].
    pub fn nitrate() -> Result<Self, NoRig> {
        Self::start(Vendor::Nitrate)
    }

    /// Starts it on a free port and waits until it has answered a login.
    ///
    /// # Errors
    /// It can't be installed here, or is broken.
    pub fn start(vendor: Vendor) -> Result<Self, NoRig> {
        Self::start_with(vendor, &[])
    }

    /// A Kiwi TCMS that takes its time between its look whether a run has a case and the insertion of it: writers that
    /// come at once meet in that gap on every machine, not only on a quick one.
    ///
    /// # Errors
    /// As [`Rig::start`].
    pub fn kiwi_that_adds_slowly() -> Result<Self, NoRig> {
        Self::start_with(Vendor::Kiwi, &["--adding-ms", "300"])
    }

    fn start_with(vendor: Vendor, options: &[&str]) -> Result<Self, NoRig> {
        let folder = tempfile::tempdir().map_err(|error| vendor.broken(&error))?;
        let command = vendor.serve(folder.path())?.args(options.iter().copied()).open_input();
        let running = command.start().map_err(|error| vendor.broken(&error))?;
        match running.find_in_stdout(START, |text| serde_json::from_str(text.lines().next()?).ok()) {
            Some(ready) => Ok(Self { running, vendor, ready, folder }),
            None => Err(match running.wait(Duration::ZERO) {
                Ok(finished) => vendor.no_rig(&finished),
                Err(error) => vendor.broken(&error),
            }),
        }
    }

    /// Whose it is.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// `http://` and its address, without a slash at the end.
    pub fn url(&self) -> &str {
        self.word("url")
    }

    /// Where remote procedures are called: JSON-RPC on Kiwi TCMS, XML-RPC on Nitrate.
    pub fn rpc(&self) -> &str {
        self.word("rpc")
    }

    /// A user that may do everything.
    pub fn user(&self) -> &str {
        self.word("user")
    }

    /// Its password.
    pub fn password(&self) -> &str {
        self.word("password")
    }

    /// The name of the product.
    pub fn product(&self) -> &str {
        self.word("product")
    }

    /// The name of the product's version.
    pub fn version(&self) -> &str {
        self.word("version")
    }

    /// The name of the build: of that version on Kiwi TCMS, of the product on Nitrate.
    pub fn build(&self) -> &str {
        self.word("build")
    }

    /// Its database, a file of `SQLite`, for tests that trust no API. Read only.
    pub fn database(&self) -> PathBuf {
        self.folder.path().join("rig.sqlite3")
    }

    /// What it said so far: requests, and what went wrong inside.
    pub fn log(&self) -> String {
        self.running.stderr()
    }

    fn word(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_default()
    }
}

/// Whether a machine on which something can't be installed is a failure.
pub(crate) fn required() -> bool {
    inherited(|name| name == REQUIRED).iter().any(|(_, value)| value == "1")
}

/// What there is, if there is a rig; `None`, and a line on standard error that says why, where it can't be installed.
/// With `TALLYONCE_RIGS_REQUIRED=1` that is an error too.
///
/// # Errors
/// It is broken, or absent and required.
pub fn or_skip<T>(rig: Result<T, NoRig>) -> Result<Option<T>, NoRig> {
    match rig {
        Ok(rig) => Ok(Some(rig)),
        Err(absent @ NoRig::Absent { .. }) if !required() => {
            #[allow(clippy::print_stderr, reason = "a test that was skipped says so")]
            {
                eprintln!("skipped: {absent} ({REQUIRED}=1 makes this a failure)");
            }
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// `rig.py`, without arguments, with the variables that it and `pip` need.
fn rig_py() -> anyhow::Result<Run> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rigs/rig.py");
    let run = Run::new(&Binary::at("/usr/bin/env")?).arg("python3").arg(program);
    Ok(inherited(for_installing).into_iter().fold(run, |run, (name, value)| run.env(&name, value)))
}

/// The variables that say where packages come from and where they are kept.
fn for_installing(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    name == "TALLYONCE_RIGS"
        || upper.starts_with("PIP_")
        || upper.ends_with("_PROXY")
        || ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"].contains(&name)
}
