//! Flags of the commands that deliver: push, flush, key. Must not know what they mean.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueEnum};
use domain::ci::PlatformName;
use domain::{CycleName, JobName, OnDifference, ProjectId, RoundLabel, RunId, ShardRef};
use reports::Format;

use super::AnnounceArgs;
use crate::settings::duration;

/// Groups the flags that name the push.
const IDENTITY: &str = "Identity";

/// When a recorded push makes the command fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// When this delivery's own report holds a failed or errored test
    Failed,
    /// Never
    Never,
}

/// What names the push: each flag replaces what the CI platform says.
#[derive(Debug, Args)]
pub(crate) struct IdentityArgs {
    /// The pipeline run: the same when this push is tried again, new for every real run
    #[arg(long, help_heading = IDENTITY, value_name = "ID", env = "TALLYONCE_RUN", value_parser = RunId::parse)]
    pub run: Option<RunId>,
    /// The attempt number, if the platform gives none: orders deliveries, never part of the key
    #[arg(long, help_heading = IDENTITY, value_name = "N", env = "TALLYONCE_ATTEMPT")]
    pub attempt: Option<u64>,
    /// The job, without its partition
    #[arg(long, help_heading = IDENTITY, value_name = "J", env = "TALLYONCE_JOB", value_parser = JobName::parse)]
    pub job: Option<JobName>,
    /// The shard of the job, from 1, and how many there are
    #[arg(long, help_heading = IDENTITY, value_name = "I[/N]", env = "TALLYONCE_SHARD", value_parser = ShardRef::parse)]
    pub shard: Option<ShardRef>,
    /// The configuration that the items ran under; may be repeated (in the variable, separated by commas)
    #[arg(long, help_heading = IDENTITY, value_name = "K=V", env = "TALLYONCE_VARIANT")]
    pub variant: Vec<String>,
    /// Label of a wanted second execution inside one pipeline run
    #[arg(long, help_heading = IDENTITY, value_name = "LABEL", env = "TALLYONCE_ROUND", value_parser = RoundLabel::parse)]
    pub round: Option<RoundLabel>,
}

/// `tallyonce push`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tallyonce push 'target/surefire-reports/*.xml' --run nightly-42
  tallyonce push reports/ --to https://tally.example.com --shard 3/8
  cat junit.xml | tallyonce push - --run 17

Push again after any failure: the key stays, and what is recorded already is answered, not written twice.")]
pub(crate) struct PushArgs {
    /// Report files, patterns (quoted or not), folders (searched for *.xml), or - for standard input
    #[arg(value_name = "PATH|GLOB|DIR|-")]
    pub paths: Vec<String>,
    /// Where it goes, and how.
    #[command(flatten)]
    pub send: SendArgs,
}

/// What every command understands that makes a push: `push` and `run`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Where to: the name of a target, sqlite:PATH, http://… or https://… [default outside CI: sqlite:tallyonce.db]
    #[arg(long, value_name = "DEST", env = "TALLYONCE_TO")]
    pub to: Option<String>,
    /// The project [default: last segment of the repository's path, in lower case]
    #[arg(long, value_name = "P", env = "TALLYONCE_PROJECT", value_parser = ProjectId::parse)]
    pub project: Option<ProjectId>,
    /// The cycle [default: pr-N on pull and merge requests, else the branch; outside CI local]
    #[arg(long, value_name = "C", env = "TALLYONCE_CYCLE", value_parser = CycleName::parse)]
    pub cycle: Option<CycleName>,
    /// What names the push.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// How many pushes this job makes over all shards and variants
    #[arg(long, value_name = "N", env = "TALLYONCE_EXPECT")]
    pub expect: Option<u32>,
    /// The reports' format, instead of recognising it: junit
    #[arg(long, value_name = "F", env = "TALLYONCE_FORMAT")]
    pub format: Option<Format>,
    /// What to do if other outcomes are recorded under the key: auto, revise, keep or fail [default: auto]
    #[arg(long, value_name = "POLICY", env = "TALLYONCE_ON_DIFFERENCE")]
    pub on_difference: Option<OnDifference>,
    /// Try this long (10m, 90s) before giving up with exit 75 [default: 10m]
    #[arg(long, value_name = "TIME", env = "TALLYONCE_DEADLINE", value_parser = duration::parse)]
    pub deadline: Option<Duration>,
    /// The folder that keeps a push until its receipt is there [default: .tallyonce/outbox]
    #[arg(long, value_name = "DIR", env = "TALLYONCE_OUTBOX")]
    pub outbox: Option<PathBuf>,
    /// A push of more outcomes is staged, in chunks of about so many at most: small ones lose less on a bad link [default:
    /// chunks of 16384, for more than 65536 outcomes or 4 MiB]
    #[arg(long, value_name = "N", env = "TALLYONCE_CHUNK_OUTCOMES")]
    pub chunk_outcomes: Option<u64>,
    /// Write the push to this file for another machine to flush, and send nothing
    #[arg(long, value_name = "FILE", env = "TALLYONCE_SEAL")]
    pub seal: Option<PathBuf>,
    /// Exit 1 if this delivery's own report holds failed or errored tests [default: never]
    #[arg(long, value_name = "WHAT", env = "TALLYONCE_FAIL_ON", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Push what is readable of damaged reports, marked incomplete
    #[arg(long, env = "TALLYONCE_PARTIAL", value_parser = FalseyValueParser::new())]
    pub partial: bool,
    /// Record an empty push where no report is found (a shard without tests)
    #[arg(long, env = "TALLYONCE_ALLOW_EMPTY", value_parser = FalseyValueParser::new())]
    pub allow_empty: bool,
    /// To a target: refuse the strategy replace unless a probe has confirmed it
    #[arg(long, env = "TALLYONCE_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
    /// To a server: wait, within --deadline, until it has handed the push on to its targets; exit 7 if that stays uncertain
    #[arg(long, env = "TALLYONCE_WAIT_FORWARD", value_parser = FalseyValueParser::new())]
    pub wait_forward: bool,
    /// Show key, counts and settings; write and send nothing
    #[arg(long, env = "TALLYONCE_DRY_RUN", value_parser = FalseyValueParser::new())]
    pub dry_run: bool,
    /// Print one JSON object on standard output
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
    /// Where what became of it is shown.
    #[command(flatten)]
    pub announce: AnnounceArgs,
}

/// `tallyonce flush`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Only entries for this --to are delivered; others are listed and left alone, since an entry must never choose where \
credentials go.\n\
A sealed file needs --project, --cycle and --run: it is delivered only if it claims exactly these.")]
pub(crate) struct FlushArgs {
    /// Sealed files, written by push --seal
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Where to: entries for another destination are refused [default outside CI: sqlite:tallyonce.db]
    #[arg(long, value_name = "DEST", env = "TALLYONCE_TO")]
    pub to: Option<String>,
    /// The outbox [default: .tallyonce/outbox]
    #[arg(long, value_name = "DIR", env = "TALLYONCE_OUTBOX")]
    pub outbox: Option<PathBuf>,
    /// Try this long (10m, 90s) before giving up with exit 75 [default: 10m]
    #[arg(long, value_name = "TIME", env = "TALLYONCE_DEADLINE", value_parser = duration::parse)]
    pub deadline: Option<Duration>,
    /// Believe the outbox no more than sealed files: deliver only what claims --project, --cycle and --run
    #[arg(long, env = "TALLYONCE_BOUND", value_parser = FalseyValueParser::new())]
    pub bound: bool,
    /// Wait, within --deadline, until the server has handed each push on to its targets; exit 7 if that stays uncertain
    #[arg(long, env = "TALLYONCE_WAIT_FORWARD", value_parser = FalseyValueParser::new())]
    pub wait_forward: bool,
    /// The project that sealed files may claim
    #[arg(long, value_name = "P", env = "TALLYONCE_PROJECT", value_parser = ProjectId::parse)]
    pub project: Option<ProjectId>,
    /// The cycle that sealed files may claim
    #[arg(long, value_name = "C", env = "TALLYONCE_CYCLE", value_parser = CycleName::parse)]
    pub cycle: Option<CycleName>,
    /// The run that sealed files may claim
    #[arg(long, value_name = "ID", env = "TALLYONCE_RUN", value_parser = RunId::parse)]
    pub run: Option<RunId>,
    /// Print one JSON object a line on standard output
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
    /// Where what became of it is shown.
    #[command(flatten)]
    pub announce: AnnounceArgs,
}

/// `tallyonce key`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Another job's environment is explained from a file that the job wrote:
  env -0 > job.env                          in the job; leave secrets out before it leaves the job
  tallyonce key --env-file job.env --explain

Only the file counts then: its TALLYONCE_ variables too, none of this process's.")]
pub(crate) struct KeyArgs {
    /// What names the push.
    #[command(flatten)]
    pub identity: IdentityArgs,
    /// Explain the environment as this platform's (github, gitlab, argo, …), whatever its markers say
    #[arg(long, value_name = "NAME", env = "TALLYONCE_PLATFORM", value_parser = PlatformName::parse)]
    pub platform: Option<PlatformName>,
    /// Explain the environment in this file (NAME=value lines, or what `env` or `env -0` prints; - reads standard input)
    /// instead of this process's
    #[arg(long, value_name = "FILE", env = "TALLYONCE_ENV_FILE")]
    pub env_file: Option<PathBuf>,
    /// Say where each part comes from, why, what is left out, and what each kind of re-run does
    #[arg(long, env = "TALLYONCE_EXPLAIN", value_parser = FalseyValueParser::new())]
    pub explain: bool,
    /// Judge the key: is it stable when the work is tried again, and new for new work?
    #[arg(long, env = "TALLYONCE_CHECK", value_parser = FalseyValueParser::new())]
    pub check: bool,
    /// Judge the key, and exit 2 if it is surely wrong
    #[arg(long, env = "TALLYONCE_STRICT", value_parser = FalseyValueParser::new())]
    pub strict: bool,
    /// Print one JSON object on standard output
    #[arg(long, env = "TALLYONCE_JSON", value_parser = FalseyValueParser::new())]
    pub json: bool,
}
