//! Flags of the commands about targets: repositories without push keys. Must not know what they mean.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};
use delivery::foreign::TargetName;
use domain::intent::{IntentId, IntentState};
use domain::{CycleName, ProjectId};

use crate::settings::duration;

/// How findings are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object
    Json,
    /// One line for each row of evidence
    Csv,
}

/// `tallyonce probe`.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// The target: NAME of [target.NAME] in tallyonce.toml
    #[arg(value_parser = TargetName::parse)]
    pub target: TargetName,
    /// Write to this case of the product; give it twice, for two cases [default: two of its own, where the product has none]
    #[arg(id = "case", long = "case", value_name = "ID", env = "TALLYONCE_CASE", value_delimiter = ',')]
    pub cases: Vec<String>,
    /// Also write batches of one, two and four times the stated size: up to thousands of outcomes in the scratch cycle
    #[arg(long, env = "TALLYONCE_LARGER", value_parser = FalseyValueParser::new())]
    pub larger: bool,
    /// Measure only, and do not keep the result for the strategy
    #[arg(long, env = "TALLYONCE_NO_KEEP", value_parser = FalseyValueParser::new())]
    pub no_keep: bool,
    /// How long to try [default: 10m, and five times the target's quiet time]
    #[arg(long, value_name = "TIME", env = "TALLYONCE_DEADLINE", value_parser = duration::parse)]
    pub deadline: Option<Duration>,
    /// Print one JSON object
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
}

/// Which cycle of a target.
#[derive(Debug, Args)]
pub(crate) struct ThereArgs {
    /// The target: NAME of [target.NAME] in tallyonce.toml
    #[arg(value_parser = TargetName::parse)]
    pub target: TargetName,
    /// The cycle: one that was pushed to from here, or the product's own id of one
    #[arg(long, value_name = "C", env = "TALLYONCE_CYCLE")]
    pub cycle: String,
    /// Equal rows without a marker are taken for a repeat within this time [default: 10m]
    #[arg(long, value_name = "TIME", env = "TALLYONCE_WINDOW", value_parser = duration::parse)]
    pub window: Option<Duration>,
    /// How long to try [default: 10m]
    #[arg(long, value_name = "TIME", env = "TALLYONCE_DEADLINE", value_parser = duration::parse)]
    pub deadline: Option<Duration>,
}

/// `tallyonce audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Which cycle.
    #[command(flatten)]
    pub there: ThereArgs,
    /// How to print
    #[arg(id = "audit_format", long = "format", value_name = "F", env = "TALLYONCE_AUDIT_FORMAT", value_enum)]
    #[arg(default_value = "text")]
    pub format: AuditFormat,
    /// The same as --format json
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
}

/// `tallyonce repair`.
#[derive(Debug, Args)]
pub(crate) struct RepairArgs {
    /// Which cycle.
    #[command(flatten)]
    pub there: ThereArgs,
    /// Carry the plan out; without it the plan is only shown
    #[arg(long, env = "TALLYONCE_APPLY", value_parser = FalseyValueParser::new())]
    pub apply: bool,
    /// Also rows that are only likely to be repeats: equal, close in time, and without a marker
    #[arg(long, env = "TALLYONCE_LIKELY", value_parser = FalseyValueParser::new())]
    pub likely: bool,
    /// Append every removed row to this file first [default: .tallyonce/repaired-NAME.jsonl]
    #[arg(long, value_name = "FILE", env = "TALLYONCE_RECORD")]
    pub record: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
}

/// `tallyonce forwards`.
#[derive(Debug, Args)]
pub(crate) struct ForwardsArgs {
    /// Only this target
    #[arg(long, value_name = "NAME", env = "TALLYONCE_TARGET", value_parser = TargetName::parse)]
    pub target: Option<TargetName>,
    /// Only in this state: planned, sending, acked, rejected, unknown, reconciling, found, absent or parked
    #[arg(long, value_name = "S", env = "TALLYONCE_STATE")]
    pub state: Option<IntentState>,
    /// What a server hands on: its address, http://… or https://… [default: the targets of tallyonce.toml]
    #[arg(long, value_name = "DEST", env = "TALLYONCE_TO")]
    pub to: Option<String>,
    /// Only pushes of this project; of a server one project is shown [default there: as for push]
    #[arg(long, value_name = "P", env = "TALLYONCE_PROJECT", value_parser = ProjectId::parse)]
    pub project: Option<ProjectId>,
    /// Only pushes into this cycle
    #[arg(long, value_name = "C", env = "TALLYONCE_CYCLE", value_parser = CycleName::parse)]
    pub cycle: Option<CycleName>,
    /// Read settled ones back first: what stands there twice, or is gone, is flagged
    #[arg(long, env = "TALLYONCE_SWEEP", value_parser = FalseyValueParser::new())]
    pub sweep: bool,
    /// Take up a parked one again, by its id (`--json` shows it): what is there is read back, what is missing is sent
    #[arg(long, value_name = "ID", env = "TALLYONCE_RESUME", conflicts_with = "give_up", value_parser = intent_id)]
    pub resume: Option<IntentId>,
    /// Leave one as it is, by its id, open or not: nothing is sent for it, and nothing asks for a look any more
    #[arg(long, value_name = "ID", env = "TALLYONCE_GIVE_UP", requires = "because", value_parser = intent_id)]
    pub give_up: Option<IntentId>,
    /// Why it is left as it is; kept with it
    #[arg(long, value_name = "TEXT", env = "TALLYONCE_BECAUSE", requires = "give_up")]
    pub because: Option<String>,
    /// The target of --target only moved: what its ledger knows is meant for the address and project that it has now
    #[arg(long, env = "TALLYONCE_MOVED", value_parser = FalseyValueParser::new())]
    pub moved: bool,
    /// How long to try a sweep, or what is taken up again [default: 10m]
    #[arg(long, value_name = "TIME", env = "TALLYONCE_DEADLINE", value_parser = duration::parse)]
    pub deadline: Option<Duration>,
    /// Print one JSON object
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
}

fn intent_id(text: &str) -> Result<IntentId, String> {
    IntentId::try_from(text.to_owned())
}
