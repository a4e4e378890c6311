//! Prow: <https://docs.prow.k8s.io/docs/jobs/>. It borrows Jenkins' names, and every job is a run of its own.
//! Must not know other platforms.

use super::partition::{self, executor};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, renewed, rerun, scope, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, WorkflowName};

const TITLE: &str = "Prow";
const SLUG: &str = "prow";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("PROW_JOB_ID")],
    fallback: &[],
    imitates: &["jenkins"],
    strength: Strength::Strong,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("BUILD_ID", "may be given anew when a lost pod is replaced (executor)"),
    shared("PULL_PULL_SHA", "two runs of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun("Pod evicted or lost, replaced", Effect::SameKey, "PROW_JOB_ID stays, BUILD_ID may change"),
    rerun("/retest, /test", Effect::NewKey, "a new PROW_JOB_ID"),
    rerun("Rerun button", Effect::NewKey, "a new PROW_JOB_ID"),
    rerun(
        "Several jobs of one event",
        Effect::YouDecide,
        "each has a PROW_JOB_ID and a round of its own: for one round pass one --run to all of them",
    ),
];

fn read(env: &Env, _overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    // A periodic job may have no repository; its id is unique all the same.
    let repository = repository(env);
    if env.has("REPO_OWNER") != env.has("REPO_NAME") {
        reading.missing.push(Missing::Scope(if env.has("REPO_OWNER") { "REPO_NAME" } else { "REPO_OWNER" }));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, repository.as_deref())?,
        "REPO_OWNER, REPO_NAME",
        "the job's id is unique by itself; the repository makes the key readable",
    ));
    let why = "stays when a lost pod is replaced; new for every /test, /retest and rerun, and for every other job";
    partition::run(TITLE, env, &mut reading, "PROW_JOB_ID", why)?;
    let why = "the job's name in the configuration; parts of a split job need --shard";
    partition::job(TITLE, env, &mut reading, &["JOB_NAME"], "JOB_NAME", why)?;
    reading.executor = executor(env, &["BUILD_ID"], "BUILD_ID", "names this execution, as far as it is given anew");
    Ok(reading)
}

fn repository(env: &Env) -> Option<String> {
    env.get("REPO_OWNER").zip(env.get("REPO_NAME")).map(|(owner, name)| format!("{owner}/{name}"))
}

fn context(env: &Env) -> Context {
    Context {
        workflow: env.get("JOB_NAME").and_then(|job| WorkflowName::parse(job).ok()),
        run_counter: None,
        commit: env.first(&["PULL_PULL_SHA", "PULL_BASE_SHA"]).and_then(|(_, sha)| Commit::parse(sha).ok()),
        branch: env.first(&["PULL_HEAD_REF", "PULL_BASE_REF"]).map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("PULL_NUMBER").map(str::to_owned),
        // A batch tests several pull requests at once: its outcomes are not those of the branch.
        unnumbered_change: env.get("JOB_TYPE") == Some("batch") && !env.has("PULL_NUMBER"),
        run_url: None,
        repository: repository(env),
    }
}
