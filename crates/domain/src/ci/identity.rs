//! What was derived, with the reasons, and the defaults that follow from it. Must not read the environment.

use serde::Serialize;

use super::platform::{Effect, LeftOut, Rerun, Strength};
use crate::id::{Commit, CycleName, Executor, Ordinal, ProjectId, RoundId, WorkflowName};
use crate::key::{KeyParts, PushKey};
use crate::push::OrdinalScope;

/// One derived part, where it came from, and why it is right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Which part: `scope`, `run`, `round`, `job`, `shard`, `variant`, `ordinal`, `executor`.
    pub part: &'static str,
    /// Its value, for people.
    pub value: String,
    /// The variables or the flag that it came from.
    pub source: &'static str,
    /// Why it is stable when the work is tried again, and distinct for other work.
    pub why: &'static str,
    /// False for what only goes along with a delivery.
    pub in_key: bool,
}

/// The identity of a push: its key, its round, and what else the platform says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The platform's short name; none outside CI.
    pub platform: Option<&'static str>,
    /// The platform's name for people; none outside CI.
    pub platform_title: Option<&'static str>,
    /// Whether the platform's own retries keep the run; none outside CI.
    pub strength: Option<Strength>,
    /// What the key is derived from.
    pub parts: KeyParts,
    /// The push key.
    pub key: PushKey,
    /// The round that the push belongs to.
    pub round: RoundId,
    /// The attempt number; unknown if the platform gives none, or if `--run` names another run than the platform's.
    pub ordinal: Option<Ordinal>,
    /// Between which deliveries the ordinal may be compared: the platform's counting decides, also under `--attempt`.
    pub ordinal_scope: OrdinalScope,
    /// This execution of the job.
    pub executor: Option<Executor>,
    /// How often the job pushes in this run, where the pipeline says so: once for each leg of its matrix.
    pub expect: Option<u32>,
    /// The pipeline definition.
    pub workflow: Option<WorkflowName>,
    /// The platform's counter of runs, which orders rounds; unknown if `--run` names another run.
    pub run_counter: Option<u64>,
    /// The commit under test.
    pub commit: Option<Commit>,
    /// The branch or tag under test.
    pub branch: Option<String>,
    /// The number of the pull or merge request.
    pub pull_request: Option<String>,
    /// The run's page.
    pub run_url: Option<String>,
    /// The repository's path on its server, without credentials.
    pub repository: Option<String>,
    /// Each part with its source and reason, in the key's order, then what only goes along.
    pub explained: Vec<Part>,
    /// Variables that are set and kept out of the key on purpose.
    pub left_out: Vec<LeftOut>,
    /// What is doubtful about this environment.
    pub warnings: Vec<String>,
    /// What each kind of re-run of this platform does to the key.
    pub reruns: Vec<Rerun>,
    pub(super) in_ci: bool,
    pub(super) unnumbered_change: bool,
}

impl Identity {
    /// True on a recognised platform, and where `CI` says so: a file that is written there dies with the runner.
    /// False for `act`.
    pub fn in_ci(&self) -> bool {
        self.in_ci
    }

    /// The last segment of the repository's path in lower case; none if it is unknown or cannot be a project's name.
    pub fn default_project(&self) -> Option<ProjectId> {
        let name = self.repository.as_deref()?.rsplit('/').next()?;
        ProjectId::parse(name).ok()
    }

    /// `pr-N` on pull and merge requests, else branch or tag, outside CI `local`; none if a platform gives no branch.
    ///
    /// A pull request without a known number is `pr-BRANCH`: its branch may be called like one of the target's.
    pub fn default_cycle(&self) -> Option<CycleName> {
        let name = match (&self.pull_request, &self.branch) {
            _ if self.platform.is_none() => "local".to_owned(),
            (Some(number), _) => format!("pr-{number}"),
            (None, Some(branch)) if self.unnumbered_change => format!("pr-{branch}"),
            (None, branch) => branch.clone()?,
        };
        CycleName::parse(&name).ok()
    }

    /// True if the platform has kinds of re-run whose meaning only `--run` can tell.
    pub fn needs_a_decision(&self) -> bool {
        self.reruns.iter().any(|rerun| rerun.effect == Effect::YouDecide)
    }
}
