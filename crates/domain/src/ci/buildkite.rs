//! Buildkite: <https://buildkite.com/docs/pipelines/configure/environment-variables>. Must not know other platforms.

use super::partition::{self, Index, executor, warn_of_rerun};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, renewed, repository_of,
    rerun, scope, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, WorkflowName};
use crate::push::OrdinalScope;

const TITLE: &str = "Buildkite";
const SLUG: &str = "buildkite";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("BUILDKITE", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("BUILDKITE_RETRY_COUNT", "rises with every retry: it orders deliveries (ordinal)"),
    renewed("BUILDKITE_JOB_ID", "a retry is a new job (executor)"),
    renewed("BUILDKITE_AGENT_ID", "a retry may get another agent"),
    renewed("BUILDKITE_AGENT_NAME", "a retry may get another agent"),
    shared("BUILDKITE_BUILD_NUMBER", "counts per pipeline; the build's id names it everywhere"),
    shared("BUILDKITE_LABEL", "a text for people, which steps may share"),
    shared("BUILDKITE_COMMIT", "two builds of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun("Retry of a job", Effect::SameKey, "a new job id; the retry count rises"),
    rerun("Retry of all failed jobs", Effect::SameKey, "new job ids; the retry counts rise"),
    rerun(
        "Automatic retry: exit status, lost or stopped agent",
        Effect::SameKey,
        "a new job id; the retry count rises",
    ),
    rerun("Rebuild", Effect::NewKey, "a new build id; BUILDKITE_REBUILT_FROM_BUILD_ID names the old one"),
    rerun("New build, schedule, API", Effect::NewKey, "a new build id"),
    rerun(
        "Retry of a trigger step",
        Effect::YouDecide,
        "makes another build of this pipeline, as far as is known: pass --run \"$BUILDKITE_TRIGGERED_FROM_BUILD_ID\"",
    ),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let (organisation, pipeline) = (env.get("BUILDKITE_ORGANIZATION_SLUG"), env.get("BUILDKITE_PIPELINE_SLUG"));
    if organisation.is_none() {
        reading.missing.push(Missing::Scope("BUILDKITE_ORGANIZATION_SLUG"));
    }
    if pipeline.is_none() {
        reading.missing.push(Missing::Scope("BUILDKITE_PIPELINE_SLUG"));
    }
    let path = organisation.zip(pipeline).map(|(organisation, pipeline)| format!("{organisation}/{pipeline}"));
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, path.as_deref())?,
        "BUILDKITE_ORGANIZATION_SLUG, BUILDKITE_PIPELINE_SLUG",
        "the build's id is unique by itself; the pipeline makes the key readable",
    ));
    let why = "stays when jobs are retried; new for every new build, and for a rebuild";
    partition::run(TITLE, env, &mut reading, "BUILDKITE_BUILD_ID", why)?;
    let (step, why) = if env.has("BUILDKITE_STEP_KEY") || !env.has("BUILDKITE_STEP_ID") {
        ("BUILDKITE_STEP_KEY", "the step's key; all jobs of a matrix share it, so pass its values as --variant")
    } else {
        (
            "BUILDKITE_STEP_ID",
            "names the step within its build; with a key: the job would be called alike in every build",
        )
    };
    partition::job(TITLE, env, &mut reading, &[step], step, why)?;
    let parts = Index {
        index: "BUILDKITE_PARALLEL_JOB",
        total: Some("BUILDKITE_PARALLEL_JOB_COUNT"),
        base: 0,
        source: "BUILDKITE_PARALLEL_JOB, BUILDKITE_PARALLEL_JOB_COUNT",
        why: "the place plus 1 in the step's parallelism, the same when it is retried",
    };
    partition::shard(TITLE, env, overrides, &mut reading, parts)?;
    let why = "counts the retries of this job, from 0";
    partition::ordinal(env, &mut reading, "BUILDKITE_RETRY_COUNT", OrdinalScope::Key, why);
    reading.executor = executor(env, &["BUILDKITE_JOB_ID"], "BUILDKITE_JOB_ID", "names this execution of the job");
    warn(env, overrides, &mut reading);
    Ok(reading)
}

fn warn(env: &Env, overrides: &Overrides, reading: &mut Reading) {
    if let Some(build) = env.get("BUILDKITE_REBUILT_FROM_BUILD_ID") {
        let earlier = format!("build {build} (BUILDKITE_REBUILT_FROM_BUILD_ID)");
        warn_of_rerun(overrides, reading, &earlier, "with the same value in both if it is a retry");
    }
    if env.has("BUILDKITE_TRIGGERED_FROM_BUILD_ID") && overrides.run.is_none() {
        reading.warnings.push(
            "this build was triggered by another one: if its trigger step is retried, Buildkite makes another build, and \
             its outcomes count as a new run. Pass --run \"$BUILDKITE_TRIGGERED_FROM_BUILD_ID\" (and --round with the \
             step's key, if the other build triggers this pipeline more than once)"
                .to_owned(),
        );
    }
}

fn context(env: &Env) -> Context {
    Context {
        workflow: env.get("BUILDKITE_PIPELINE_SLUG").and_then(|slug| WorkflowName::parse(slug).ok()),
        run_counter: env.get("BUILDKITE_BUILD_NUMBER").and_then(|number| number.parse().ok()),
        // HEAD until an agent has looked it up.
        commit: env.get("BUILDKITE_COMMIT").filter(|sha| *sha != "HEAD").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.first(&["BUILDKITE_BRANCH", "BUILDKITE_TAG"]).map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("BUILDKITE_PULL_REQUEST").filter(|number| *number != "false").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("BUILDKITE_BUILD_URL").map(str::to_owned),
        repository: env.get("BUILDKITE_REPO").and_then(repository_of),
    }
}
