//! The command as a child process: in this terminal, this folder and this process group, with signals passed on. Must not
//! know that it runs tests.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};

use delivery::{Clock as _, SystemClock};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::signals::Signals;
use crate::env::TOKEN;
use crate::failure::Failure;
use crate::object::CommandObject;
use crate::output::Output;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finished {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last signal that asked us, and so the command, to end.
    pub asked: Option<i32>,
    /// From its start to its end.
    pub elapsed_ms: u64,
}

impl Finished {
    /// What a shell would make of it.
    pub(super) fn number(&self) -> u8 {
        let number = self.code.or(self.signal.map(|signal| 128 + signal)).unwrap_or(1);
        u8::try_from(number).unwrap_or(u8::MAX)
    }

    /// True unless it ended with 0.
    pub(super) fn failed(&self) -> bool {
        self.number() != 0
    }

    /// The signal that kept it from running to its end.
    pub(super) fn cut_short(&self) -> Option<i32> {
        self.signal.or(self.asked.filter(|_| self.failed()))
    }

    /// For people.
    pub(super) fn told(&self) -> String {
        match self.signal {
            Some(signal) => named(signal),
            None => format!("exit {}", self.number()),
        }
    }

    /// For machines, as far as the reports have no say in it.
    pub(super) fn object(&self) -> CommandObject {
        let Self { code, signal, elapsed_ms, .. } = *self;
        CommandObject { code, signal, silent_failure: false, elapsed_ms }
    }
}

/// "SIGTERM".
pub(super) fn named(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.as_str().to_owned())
}

/// Runs it to its end. Gives the signals back, which go on arriving.
///
/// # Errors
/// It can't be started.
pub(super) fn run(command: &[OsString], output: Output) -> Result<(Finished, Signals), Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("no command is named", "Name it behind `--`: `tallyonce run -- CMD ARGS`."));
    };
    // Before the start: the end of a quick command must not be missed.
    let mut signals = Signals::new()?;
    let clock = SystemClock::new();
    let before = clock.now_ms();
    // Tests are anybody's code, and have no use for the token.
    let started = Command::new(program).args(arguments).env_remove(TOKEN).spawn();
    let mut child = started.map_err(|error| cannot_start(program, &error))?;
    let (status, asked) = wait(&mut child, &mut signals, output)?;
    let elapsed_ms = clock.now_ms().saturating_sub(before);
    Ok((Finished { code: status.code(), signal: status.signal(), asked, elapsed_ms }, signals))
}

fn wait(child: &mut Child, signals: &mut Signals, output: Output) -> Result<(ExitStatus, Option<i32>), Failure> {
    let mut last = None;
    loop {
        let ended = child.try_wait().map_err(|error| {
            Failure::machine(
                format!("the command's end can't be learnt: {error}"),
                "Push its reports with `tallyonce push`.",
            )
        })?;
        if let Some(status) = ended {
            return Ok((status, last));
        }
        for asked in signals.wait() {
            last = Some(asked.number);
            let signal = named(asked.number);
            if asked.to_all {
                output.detail(&format!("{signal} came from the terminal: the command has it too"));
            } else {
                pass_on(child, asked.number);
                output.note(&format!("{signal} is passed on to the command; its reports are pushed once it has ended"));
            }
        }
    }
}

/// Only we reap it, so its number is nobody else's; it may have ended already, which is fine.
fn pass_on(child: &Child, number: i32) {
    if let (Ok(pid), Ok(signal)) = (i32::try_from(child.id()), Signal::try_from(number)) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

fn cannot_start(program: &OsString, error: &std::io::Error) -> Failure {
    let program = program.to_string_lossy();
    match error.kind() {
        ErrorKind::NotFound => Failure::command_not_found(format!("{program}: there is no such command: {error}")),
        _ => Failure::command_not_executable(format!("{program}: can't be executed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(code: Option<i32>, signal: Option<i32>, asked: Option<i32>) -> Finished {
        Finished { code, signal, asked, elapsed_ms: 0 }
    }

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(finished(Some(0), None, None).number(), 0);
        assert_eq!(finished(Some(3), None, None).number(), 3);
        assert_eq!(finished(None, Some(9), None).number(), 137);
        assert_eq!(finished(None, Some(15), None).told(), "SIGTERM");
    }

    #[test]
    fn only_a_command_that_failed_was_cut_short() {
        assert_eq!(finished(Some(0), None, Some(1)).cut_short(), None);
        assert_eq!(finished(Some(130), None, Some(2)).cut_short(), Some(2));
        assert_eq!(finished(None, Some(9), None).cut_short(), Some(9));
        assert_eq!(finished(Some(1), None, None).cut_short(), None);
    }
}
