//! The clap tree, nothing else: what can be typed, with the variable that stands for it.
//! Must not know what a value means; `settings` resolves it, layer by layer.
#![expect(clippy::doc_markdown, reason = "these comments are the help text, where backticks would be noise")]

mod announce;
mod drill;
mod push;
mod read;
mod run;
mod target;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, Parser, Subcommand};

pub(crate) use announce::{Announce, AnnounceArgs};
pub(crate) use drill::DrillArgs;
pub(crate) use push::{FailOn, FlushArgs, IdentityArgs, KeyArgs, PushArgs, SendArgs};
pub(crate) use read::{CheckStoreArgs, CloseArgs, PromoteArgs, ServeArgs, ShowArgs, ShowFormat, WaitArgs};
pub(crate) use run::{ExitWith, RunArgs};
pub(crate) use target::{AuditArgs, AuditFormat, ForwardsArgs, ProbeArgs, RepairArgs, ThereArgs};

use crate::settings::duration;

/// Retry every push, count every outcome once.
#[derive(Debug, Parser)]
#[command(name = "tallyonce", version, about, long_about = None, propagate_version = true)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 recorded, 1 --fail-on, 2 usage, 3 unreadable, 4 rejected, 5 collision or \
    difference, 6 recorded but for items that a target refused or files that could not be added, 7 recorded but not known to \
    be whole at a target, 75 not confirmed (deliver again with the same key).")]
pub(crate) struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub globals: Globals,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Push the outcomes of report files under the key of this job
    Push(Box<PushArgs>),
    /// Run the tests, then push the reports that they wrote, also when they failed
    Run(Box<RunArgs>),
    /// Deliver what an earlier push left in the outbox, or sealed files
    Flush(FlushArgs),
    /// Print the push key of this job; explain or judge it
    Key(KeyArgs),
    /// Serve the API over a store
    Serve(ServeArgs),
    /// Show what counts in a cycle
    Show(ShowArgs),
    /// Let a revision's verdicts count
    Promote(PromoteArgs),
    /// Declare a round complete as it is
    Close(CloseArgs),
    /// Wait until a round is complete
    Wait(WaitArgs),
    /// Look for contradictions in a store
    CheckStore(CheckStoreArgs),
    /// Measure what a target really does with a repeat
    Probe(ProbeArgs),
    /// Find what a target holds twice, or lacks
    Audit(AuditArgs),
    /// Show how doubles of a target would be mended, and mend them
    Repair(RepairArgs),
    /// List what is on its way to targets, and what a person has to look at
    Forwards(ForwardsArgs),
    /// Break a link and kill processes on purpose, and show that every outcome is counted once
    Drill(DrillArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands into a folder
    Man {
        /// The command whose page is printed
        command: Option<String>,
        /// Write all pages into this folder
        #[arg(long, value_name = "DIR", env = "TALLYONCE_MAN_DIR")]
        dir: Option<PathBuf>,
    },
}

/// What holds for every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Globals {
    /// Read settings from this file instead of tallyonce.toml in the working folder
    #[arg(long, global = true, value_name = "FILE", env = "TALLYONCE_CONFIG", display_order = 900)]
    pub config: Option<PathBuf>,
    /// Print only results and errors
    #[arg(short, long, global = true, env = "TALLYONCE_QUIET", value_parser = FalseyValueParser::new())]
    #[arg(display_order = 901)]
    pub quiet: bool,
    /// Say more; twice for still more
    #[arg(short, long, global = true, action = ArgAction::Count, env = "TALLYONCE_VERBOSE", display_order = 902)]
    pub verbose: u8,
    /// No progress bar, also on a terminal
    #[arg(long, global = true, env = "TALLYONCE_NO_PROGRESS", value_parser = FalseyValueParser::new())]
    #[arg(display_order = 903)]
    pub no_progress: bool,
    /// Read the token from this file; else it is taken from the variable TALLYONCE_TOKEN, never from an argument
    #[arg(long, global = true, value_name = "FILE", env = "TALLYONCE_TOKEN_FILE", hide_env_values = true)]
    #[arg(display_order = 904)]
    pub token_file: Option<PathBuf>,
    /// Trust the certificate authorities in this PEM file too
    #[arg(long, global = true, value_name = "FILE", env = "TALLYONCE_CA_FILE", display_order = 905)]
    pub ca_file: Option<PathBuf>,
    /// Show this certificate (PEM) to the server
    #[arg(long, global = true, value_name = "FILE", env = "TALLYONCE_CLIENT_CERT", display_order = 906)]
    pub client_cert: Option<PathBuf>,
    /// The key (PEM) of --client-cert
    #[arg(long, global = true, value_name = "FILE", env = "TALLYONCE_CLIENT_KEY", hide_env_values = true)]
    #[arg(display_order = 907)]
    pub client_key: Option<PathBuf>,
    /// Give one request this long (90s, 500ms) before it counts as unanswered; a large body gets more
    #[arg(long, global = true, value_name = "TIME", env = "TALLYONCE_TIMEOUT", value_parser = duration::parse)]
    #[arg(display_order = 908)]
    pub timeout: Option<Duration>,
}
