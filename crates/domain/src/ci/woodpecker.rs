//! Woodpecker CI: <https://woodpecker-ci.org/docs/usage/environment>. Its `CI_` names are GitLab's with other meanings.
//! Must not know other platforms.

use super::partition::{self, executor, warn_of_rerun};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, renewed, rerun, scope,
    server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, WorkflowName};

const TITLE: &str = "Woodpecker CI";
const SLUG: &str = "woodpecker";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("CI", "woodpecker")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("CI_PIPELINE_STARTED", "a time"),
    renewed("CI_PIPELINE_CREATED", "a time"),
    renewed("CI_STEP_STARTED", "a time"),
    renewed("CI_PIPELINE_PARENT", "an internal id of what was restarted last, not of the first pipeline"),
    renewed("CI_MACHINE", "another agent may take the step (executor)"),
    shared("CI_STEP_NUMBER", "counts within one workflow, so two workflows share numbers"),
    shared("CI_COMMIT_SHA", "two pipelines of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun(
        "Restart",
        Effect::YouDecide,
        "a new pipeline number, and nothing that names the first: for a retry restart with a variable that you pass as \
         --run, the same in both",
    ),
    rerun("Push, cron, manual, deployment", Effect::NewKey, "a new pipeline number"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let server = env.first(&["CI_SYSTEM_HOST", "CI_SYSTEM_URL"]).and_then(|(_, host)| server_of(host));
    let repository = env.get("CI_REPO");
    for (variable, known) in [("CI_SYSTEM_HOST", server.is_some()), ("CI_REPO", repository.is_some())] {
        if !known {
            reading.missing.push(Missing::Scope(variable));
        }
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), repository)?,
        "CI_SYSTEM_HOST, CI_REPO",
        "pipeline numbers count within one repository of one server",
    ));
    let why = "the same in every step of the pipeline; new for every new pipeline, and for a restart too";
    partition::run(TITLE, env, &mut reading, "CI_PIPELINE_NUMBER", why)?;
    partition::job(
        TITLE,
        env,
        &mut reading,
        &["CI_WORKFLOW_NAME", "CI_STEP_NAME"],
        "CI_WORKFLOW_NAME, CI_STEP_NAME",
        "the workflow's file and the step's name; the cells of a matrix share both, so pass their values as \
         --variant, and a part of a split as --shard",
    )?;
    reading.executor = executor(
        env,
        &["CI_MACHINE", "CI_WORKFLOW_NUMBER", "CI_STEP_NUMBER"],
        "CI_MACHINE, CI_WORKFLOW_NUMBER, CI_STEP_NUMBER",
        "names this execution of the step within its pipeline",
    );
    if env.get("CI_PIPELINE_PARENT").is_some_and(|parent| parent != "0") {
        let earlier = "an earlier pipeline (CI_PIPELINE_PARENT)";
        warn_of_rerun(overrides, &mut reading, earlier, "with the same value in both if it is a retry");
    }
    Ok(reading)
}

fn context(env: &Env) -> Context {
    // One pipeline runs all workflow files that fit its event: those of these events usually differ from a push's.
    let workflow = env.get("CI_PIPELINE_EVENT").filter(|event| ["cron", "deployment"].contains(event));
    let branch = env.first(&["CI_COMMIT_SOURCE_BRANCH", "CI_COMMIT_BRANCH", "CI_COMMIT_TAG"]);
    Context {
        workflow: workflow.and_then(|event| WorkflowName::parse(event).ok()),
        run_counter: env.get("CI_PIPELINE_NUMBER").and_then(|number| number.parse().ok()),
        commit: env.get("CI_COMMIT_SHA").and_then(|sha| Commit::parse(sha).ok()),
        branch: branch.map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("CI_COMMIT_PULL_REQUEST").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("CI_PIPELINE_URL").map(str::to_owned),
        repository: env.get("CI_REPO").map(str::to_owned),
    }
}
