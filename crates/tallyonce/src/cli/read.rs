//! Flags of the commands that read, decide and serve. Must not know what they mean.

use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{ArgGroup, Args, ValueEnum};
use domain::{CycleName, ProjectId, PushKey, Status};

use crate::settings::duration;

/// How `show` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// For people
    #[default]
    Table,
    /// One JSON object
    Json,
    /// Rounds, or with --items items, one a line
    Csv,
    /// JUnit XML of the items
    Junit,
    /// Markdown, for job summaries
    Md,
}

/// `tallyonce serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on [default: 127.0.0.1:8321]
    #[arg(long, value_name = "ADDR", env = "TALLYONCE_LISTEN")]
    pub listen: Option<String>,
    /// The store: sqlite:PATH [default: sqlite:tallyonce.db]
    #[arg(long, value_name = "URL", env = "TALLYONCE_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// Listen on an address that others reach although nobody has to show a token: anybody there can push and read
    #[arg(long, env = "TALLYONCE_OPEN", value_parser = FalseyValueParser::new())]
    pub open: bool,
    /// Write logs as JSON, one object a line (what is logged: variable TALLYONCE_LOG, such as debug)
    #[arg(long, env = "TALLYONCE_LOG_JSON", value_parser = FalseyValueParser::new())]
    pub log_json: bool,
}

/// `tallyonce show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// What is read: sqlite:PATH, http://… or https://… [default: what push would write to]
    #[arg(long, value_name = "DEST", env = "TALLYONCE_FROM")]
    pub from: Option<String>,
    /// The project [default: as for push]
    #[arg(long, value_name = "P", env = "TALLYONCE_PROJECT", value_parser = ProjectId::parse)]
    pub project: Option<ProjectId>,
    /// The cycle [default: as for push]
    #[arg(long, value_name = "C", env = "TALLYONCE_CYCLE", value_parser = CycleName::parse)]
    pub cycle: Option<CycleName>,
    /// authoritative, latest, all, or a round by its id, its run, or a unique beginning of either
    #[arg(id = "show_round", long = "round", value_name = "ROUND", env = "TALLYONCE_SHOW_ROUND")]
    #[arg(default_value = "authoritative")]
    pub round: String,
    /// Show the items too
    #[arg(long, env = "TALLYONCE_ITEMS", value_parser = FalseyValueParser::new())]
    pub items: bool,
    /// Show the revisions and deliveries of one push
    #[arg(long, value_name = "KEY", env = "TALLYONCE_REVISIONS", value_parser = PushKey::parse)]
    pub revisions: Option<PushKey>,
    /// Only items with this status: passed, failed, errored or skipped
    #[arg(long, value_name = "S", env = "TALLYONCE_STATUS")]
    pub status: Option<Status>,
    /// How to print
    #[arg(id = "show_format", long = "format", value_name = "F", env = "TALLYONCE_SHOW_FORMAT", value_enum)]
    #[arg(default_value = "table")]
    pub format: ShowFormat,
}

/// `tallyonce promote`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["key", "round_id"]))]
pub(crate) struct PromoteArgs {
    /// The key of the push
    #[arg(value_parser = PushKey::parse)]
    pub key: Option<PushKey>,
    /// Every push of this round that keeps an offered content: a round by its id, its run, or a unique beginning
    #[arg(id = "round_id", long = "round", value_name = "ID", env = "TALLYONCE_ROUND_ID")]
    pub round: Option<String>,
    /// The revision [default: the latest that is kept, else the latest]
    #[arg(long, value_name = "N", env = "TALLYONCE_REVISION", conflicts_with = "round_id")]
    pub revision: Option<u32>,
    /// That content alone counts; items that it does not hold no longer do
    #[arg(long, env = "TALLYONCE_EXACT", value_parser = FalseyValueParser::new())]
    pub exact: bool,
    /// Where the push is recorded [default: as for push]
    #[arg(long, value_name = "DEST", env = "TALLYONCE_TO")]
    pub to: Option<String>,
    /// The project [default: as for push]
    #[arg(long, value_name = "P", env = "TALLYONCE_PROJECT", value_parser = ProjectId::parse)]
    pub project: Option<ProjectId>,
    /// The cycle of --round [default: as for push]
    #[arg(long, value_name = "C", env = "TALLYONCE_CYCLE", value_parser = CycleName::parse)]
    pub cycle: Option<CycleName>,
}

/// `tallyonce close`.
#[derive(Debug, Args)]
pub(crate) struct CloseArgs {
    /// The round: its id, its run, or a unique beginning of either
    #[arg(id = "round_id", long = "round", value_name = "ID", env = "TALLYONCE_ROUND_ID")]
    pub round: String,
    /// Where the round is recorded; a target's NAME: close ends its cycle there [default: as for push]
    #[arg(long, value_name = "DEST", env = "TALLYONCE_TO")]
    pub to: Option<String>,
    /// The project [default: as for push]
    #[arg(long, value_name = "P", env = "TALLYONCE_PROJECT", value_parser = ProjectId::parse)]
    pub project: Option<ProjectId>,
    /// The cycle [default: as for push]
    #[arg(long, value_name = "C", env = "TALLYONCE_CYCLE", value_parser = CycleName::parse)]
    pub cycle: Option<CycleName>,
}

/// `tallyonce wait`.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The round.
    #[command(flatten)]
    pub round: CloseArgs,
    /// Wait this long (10m, 90s) before giving up with exit 75 [default: 10m]
    #[arg(long, value_name = "TIME", env = "TALLYONCE_DEADLINE", value_parser = duration::parse)]
    pub deadline: Option<Duration>,
}

/// `tallyonce check-store`.
#[derive(Debug, Args)]
pub(crate) struct CheckStoreArgs {
    /// The store: sqlite:PATH [default: sqlite:tallyonce.db]
    #[arg(long, value_name = "URL", env = "TALLYONCE_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// Make wrong counts anew, and nothing else
    #[arg(long, env = "TALLYONCE_REPAIR", value_parser = FalseyValueParser::new())]
    pub repair: bool,
    /// Print one JSON object on standard output
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
}
