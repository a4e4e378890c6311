//! Flags of `drill`. Must not know what they mean.

use clap::Args;
use clap::builder::FalseyValueParser;

/// `tallyonce drill`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tallyonce drill
  tallyonce drill --to http://tally.example.com:8321 --pushes 50
  tallyonce drill --seed 4711 --json

Exit codes: 0 every outcome is counted exactly once, 1 it is not, 2 usage, 75 no server could be reached or it was \
interrupted.")]
pub(crate) struct DrillArgs {
    /// How many pushes
    #[arg(long, value_name = "N", env = "TALLYONCE_PUSHES", default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pushes: u32,
    /// Decides about reports, faults and kills: the same number makes the same ones [default: a random one]
    #[arg(long, value_name = "N", env = "TALLYONCE_SEED")]
    pub seed: Option<u64>,
    /// Drill this server (http://…) instead of one of its own. What is pushed stays there, in a project of its own
    #[arg(id = "drill_to", long = "to", value_name = "URL", env = "TALLYONCE_DRILL_TO")]
    pub to: Option<String>,
    /// Keep the folder with reports, outboxes and store
    #[arg(long, env = "TALLYONCE_KEEP", value_parser = FalseyValueParser::new())]
    pub keep: bool,
    /// Print one JSON object on standard output
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
}
