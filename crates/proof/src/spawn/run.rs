//! One command from start to end: clean environment, captured output, a time-out that kills.
//! Must not know which program it is.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::spawn::capture::{Capture, Stream};
use crate::spawn::{Binary, clean_environment, stopped};

/// How long a command may take, unless said otherwise.
const PATIENCE: Duration = Duration::from_mins(1);

/// A command to be run. The child inherits `PATH`, `HOME` and `TMPDIR` and nothing else.
#[derive(Debug, Clone)]
pub struct Run {
    binary: Binary,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    folder: Option<PathBuf>,
    input: Input,
    timeout: Duration,
}

/// What the child reads from standard input.
#[derive(Debug, Clone)]
enum Input {
    Empty,
    Given(Vec<u8>),
    /// Nothing, and no end either for as long as it is held.
    Open,
}

impl Run {
    /// This binary, without arguments, in the current folder, with empty input, for at most a minute.
    pub fn new(binary: &Binary) -> Self {
        Self {
            binary: binary.clone(),
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
            input: Input::Empty,
            timeout: PATIENCE,
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets one variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets variables; later ones win.
    pub fn envs(mut self, pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env.extend(pairs.into_iter().map(|(name, value)| (name, value.into())));
        self
    }

    /// Runs in this folder.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Standard input.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Given(input.into());
        self
    }

    /// Standard input that has no end before [`Running`] is waited for or dropped, or this process dies: for a child
    /// that is to end with it, however that comes.
    pub fn open_input(mut self) -> Self {
        self.input = Input::Open;
        self
    }

    /// How long it may take before it is killed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Starts it, in a process group of its own.
    ///
    /// # Errors
    /// It could not be started.
    pub fn start(&self) -> anyhow::Result<Running> {
        let mut command = Command::new(self.binary.path());
        command.args(&self.args).env_clear().envs(clean_environment());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let input = if matches!(self.input, Input::Empty) { Stdio::null() } else { Stdio::piped() };
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().with_context(|| format!("start {}", self.binary.path().display()))?;
        let capture = Capture::default();
        if let Some(out) = child.stdout.take() {
            capture.follow(Stream::Out, out);
        }
        if let Some(err) = child.stderr.take() {
            capture.follow(Stream::Err, err);
        }
        let mut held = child.stdin.take();
        if let Input::Given(input) = self.input.clone()
            && let Some(mut pipe) = held.take()
        {
            // On a thread: the child may write before it has read. It may also end early, which is its right.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        Ok(Running { child, capture, reaped: false, input: held })
    }

    /// Runs it to its end, or to the time-out.
    ///
    /// # Errors
    /// It could not be started.
    pub fn output(&self) -> anyhow::Result<Finished> {
        self.start()?.wait(self.timeout)
    }
}

/// A command that has been started; killed when dropped, with all processes that it started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    capture: Capture,
    reaped: bool,
    /// The child's standard input, held open.
    input: Option<ChildStdin>,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it alone, at once (`SIGKILL`); its own children live on.
    pub fn kill9(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Kills it and all processes of its group: an evicted runner.
    pub fn kill9_all(&self) {
        if !self.reaped {
            // It may have ended already; its id cannot have gone to another before it is reaped.
            let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        }
    }

    /// Ctrl-C.
    pub fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Stops it in its tracks, and blocks until it stands; [`Running::resume`] lets it go on.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        stopped::wait(self.pid());
    }

    /// Goes on after [`Running::pause`].
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        if !self.reaped {
            let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
        }
    }

    /// What it wrote to standard error so far.
    pub fn stderr(&self) -> String {
        self.capture.text(Stream::Err)
    }

    /// Blocks until `find` finds something in the whole lines of standard error; `None` when that ends, or after
    /// `patience`.
    pub fn find_in_stderr<T>(&self, patience: Duration, find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        self.capture.find(Stream::Err, patience, find)
    }

    /// As [`Running::find_in_stderr`], in standard output.
    pub fn find_in_stdout<T>(&self, patience: Duration, find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        self.capture.find(Stream::Out, patience, find)
    }

    /// Blocks until it and whatever it started have closed their output; `false` if they have not within `patience`.
    pub fn ended(&self, patience: Duration) -> bool {
        self.capture.ended(patience)
    }

    /// Waits for its end, that is, until it and whatever it started have closed their output; kills them all when
    /// `timeout` is over.
    ///
    /// # Errors
    /// The system lost it.
    pub fn wait(mut self, timeout: Duration) -> anyhow::Result<Finished> {
        drop(self.input.take());
        let timed_out = !self.capture.ended(timeout);
        if timed_out {
            self.kill9_all();
            self.capture.ended(PATIENCE);
        }
        let status = self.child.wait().context("wait for the child")?;
        self.reaped = true;
        Ok(Finished {
            code: status.code(),
            signal: status.signal(),
            timed_out,
            stdout: self.capture.text(Stream::Out),
            stderr: self.capture.text(Stream::Err),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill9_all();
            let _ = self.child.wait();
        }
    }
}

/// How a command ended, and what it said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether we killed it because its time was over.
    pub timed_out: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Itself, if it exited with this code.
    ///
    /// # Errors
    /// It did not; the error shows what it said.
    pub fn expect_code(self, code: i32) -> anyhow::Result<Self> {
        if self.code != Some(code) {
            bail!("expected exit {code}, got {self}");
        }
        Ok(self)
    }

    /// Whether `SIGKILL` ended it, and not because its time was over.
    pub fn was_killed(&self) -> bool {
        self.signal == Some(Signal::SIGKILL as i32) && !self.timed_out
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.timed_out, self.code, self.signal) {
            (true, ..) => f.write_str("time-out")?,
            (_, Some(code), _) => write!(f, "exit {code}")?,
            (_, None, signal) => write!(f, "signal {}", signal.unwrap_or(0))?,
        }
        write!(f, "\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr)
    }
}
