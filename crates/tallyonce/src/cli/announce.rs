//! Flags that say where what became of a push is shown: for push, run and flush. Must not know what they mean.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Groups them.
const SHOWN: &str = "Where what became of it is shown";

/// Whether the CI platform's own places are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Announce {
    /// In the places that the detected platform has; outside CI nowhere
    Auto,
    /// Nowhere
    Never,
}

/// Where what became of a push is shown, beside the log.
#[derive(Debug, Args)]
pub(crate) struct AnnounceArgs {
    /// In the job summary, annotations, outputs and folds of the CI platform, as far as it has them [default: auto]
    #[arg(long, help_heading = SHOWN, value_name = "WHEN", env = "TALLYONCE_ANNOUNCE", value_enum)]
    pub announce: Option<Announce>,
    /// Append a summary in Markdown to this file too
    #[arg(long, help_heading = SHOWN, value_name = "FILE", env = "TALLYONCE_SUMMARY")]
    pub summary: Option<PathBuf>,
    /// Write TALLYONCE_PUSH_…=value lines for later steps into this file too
    #[arg(long, help_heading = SHOWN, value_name = "FILE", env = "TALLYONCE_OUTPUTS")]
    pub outputs: Option<PathBuf>,
    /// Add a link to what is recorded to this JSON report of links (GitLab: artifacts:reports:annotations)
    #[arg(long, help_heading = SHOWN, value_name = "FILE", env = "TALLYONCE_LINKS")]
    pub links: Option<PathBuf>,
}
