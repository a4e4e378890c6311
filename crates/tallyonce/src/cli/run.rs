//! Flags of the command that runs the tests itself. Must not know what they mean.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::SendArgs;

/// Whose exit code `run` ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExitWith {
    /// The command's code if it is not 0, else the push's
    Worst,
    /// The command's code, whatever becomes of the push
    Command,
    /// The push's code, whatever the command ends with
    Push,
}

/// `tallyonce run`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tallyonce run --run nightly-42 -- mvn verify
  tallyonce run --report 'reports/*.xml' --to https://tally.example.com -- npx playwright test

Without --report, the reports are looked for where runners usually write them (docs/run.md lists the places). Only what the \
command wrote is pushed: a report that was there before is named and left out.
A command that can't be started ends with 127 (not found) or 126, one that signal N ended with 128 + N.")]
pub(crate) struct RunArgs {
    /// The command and its arguments
    #[arg(value_name = "CMD", last = true, required = true)]
    pub command: Vec<OsString>,
    /// Report files, patterns or folders that the command writes; may be repeated (in the variable, one a line) [default:
    /// the usual places]
    #[arg(long, value_name = "PATH|GLOB|DIR", env = "TALLYONCE_REPORT")]
    pub report: Vec<String>,
    /// Whose exit code to end with [default: worst]
    #[arg(long, value_name = "WHOSE", env = "TALLYONCE_EXIT_WITH", value_enum)]
    pub exit_with: Option<ExitWith>,
    /// Where the push goes, and how.
    #[command(flatten)]
    pub send: SendArgs,
}
