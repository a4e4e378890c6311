//! Which platform has which places for what a step says: one table, short name to media. A platform that is not in it has
//! no place of its own; `--summary` and `--outputs` write files anywhere. Must not know what is announced.

/// A file that a platform reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The file that this variable names.
    Named(&'static str),
    /// A file in the folder that this variable names.
    In(&'static str, &'static str),
}

/// A place where what became of a push is shown, or handed to later steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    /// Markdown, appended to a file that may hold so many bytes.
    SummaryFile(Place, u64),
    /// Markdown in a file of its own in the folder that this variable names, for Azure Pipelines to upload.
    UploadedSummary(&'static str),
    /// Markdown as an annotation of the build, by Buildkite's agent.
    Annotation,
    /// Notes as workflow commands: `::warning title=…::…`.
    WorkflowCommands,
    /// Notes as logging commands: `##vso[task.logissue …]`.
    LogIssues,
    /// Notes as service messages: `##teamcity[message …]`.
    ServiceMessages,
    /// Notes as messages of the build, by `AppVeyor`'s agent.
    BuildMessages,
    /// Values in a file, in the form of GitHub: each with a delimiter that no value holds.
    DelimitedOutputs(Place),
    /// Values in a file: `NAME=value` lines.
    OutputLines(Place),
    /// Values as output variables of the step: `##vso[task.setvariable …]`.
    OutputVariables,
    /// Values as parameters of the build: `##teamcity[setParameter …]`.
    Parameters,
    /// Values as one entry of the build's metadata, by Buildkite's agent.
    MetaData,
    /// Values as variables of the build, by `AppVeyor`'s agent.
    BuildVariables,
    /// Values by Bitrise's envman.
    Envman,
    /// Values by Screwdriver's meta.
    Meta,
}

/// How a platform folds lines of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folding {
    /// `::group::` and `::endgroup::`.
    Workflow,
    /// `##[group]` and `##[endgroup]`.
    Azure,
    /// Headlines: `---` begins a folded group, `+++` an open one.
    Buildkite,
    /// `section_start` and `section_end`.
    Gitlab,
    /// `travis_fold`.
    Travis,
}

/// What GitHub keeps of the summary of one step.
const GITHUB_SUMMARY_MAX: u64 = 1024 * 1024;

const GITHUB_LIKE: &[Medium] = &[
    Medium::SummaryFile(Place::Named("GITHUB_STEP_SUMMARY"), GITHUB_SUMMARY_MAX),
    Medium::WorkflowCommands,
    Medium::DelimitedOutputs(Place::Named("GITHUB_OUTPUT")),
];

/// The media of each platform that has any, by its short name.
const TABLE: &[(&str, &[Medium])] = &[
    ("github", GITHUB_LIKE),
    // Their runners take the same commands; a summary is shown by servers that know it, and lost without harm by others.
    ("gitea", GITHUB_LIKE),
    ("forgejo", GITHUB_LIKE),
    ("azure", &[Medium::UploadedSummary("AGENT_TEMPDIRECTORY"), Medium::LogIssues, Medium::OutputVariables]),
    ("buildkite", &[Medium::Annotation, Medium::MetaData]),
    ("teamcity", &[Medium::ServiceMessages, Medium::Parameters]),
    ("appveyor", &[Medium::BuildMessages, Medium::BuildVariables]),
    ("bitrise", &[Medium::Envman]),
    ("screwdriver", &[Medium::Meta]),
    ("bitbucket", &[Medium::OutputLines(Place::Named("BITBUCKET_PIPELINES_VARIABLES_PATH"))]),
    ("cirrus", &[Medium::OutputLines(Place::Named("CIRRUS_ENV"))]),
    ("codefresh", &[Medium::OutputLines(Place::In("CF_VOLUME_PATH", "env_vars_to_export"))]),
    ("harness", &[Medium::OutputLines(Place::Named("DRONE_OUTPUT"))]),
    ("drone", &[Medium::OutputLines(Place::Named("DRONE_OUTPUT"))]),
    ("vela", &[Medium::OutputLines(Place::Named("VELA_OUTPUTS"))]),
    ("prow", &[Medium::SummaryFile(Place::In("ARTIFACTS", "tallyonce.md"), GITHUB_SUMMARY_MAX)]),
];

/// The media of a platform.
pub(super) fn media(slug: &str) -> &'static [Medium] {
    TABLE.iter().find(|(name, _)| *name == slug).map_or(&[], |(_, media)| media)
}

/// How a platform folds, if it does. `TeamCity`'s blocks are left out: they are messages on standard output, and what
/// would be folded is on standard error.
pub(super) fn folding(slug: &str) -> Option<Folding> {
    match slug {
        "github" | "gitea" | "forgejo" => Some(Folding::Workflow),
        "azure" => Some(Folding::Azure),
        "buildkite" => Some(Folding::Buildkite),
        "gitlab" => Some(Folding::Gitlab),
        "travis" => Some(Folding::Travis),
        _ => None,
    }
}

/// Every platform that has a medium or folds.
#[cfg(test)]
pub(super) fn slugs() -> Vec<&'static str> {
    TABLE.iter().map(|(slug, _)| *slug).chain(["gitlab", "travis"]).collect()
}
