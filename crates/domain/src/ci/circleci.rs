//! `CircleCI`: <https://circleci.com/docs/reference/variables/>. Must not know other platforms.

use super::partition::{self, Index, executor};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, renewed, rerun, scope,
    server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, Ordinal};
use crate::push::OrdinalScope;

const TITLE: &str = "CircleCI";
const SLUG: &str = "circleci";
const WORKSPACE: &str = "CIRCLE_WORKFLOW_WORKSPACE_ID";
const PIPELINE: &str = "CIRCLE_PIPELINE_ID";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("CIRCLECI", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("CIRCLE_WORKFLOW_ID", "one instance of the workflow: every rerun gets another"),
    renewed("CIRCLE_WORKFLOW_JOB_ID", "new for every rerun (executor)"),
    renewed("CIRCLE_BUILD_NUM", "the number of one execution of the job: it orders deliveries (ordinal)"),
    renewed("CIRCLE_BUILD_URL", "ends in the number of one execution"),
    renewed("CIRCLE_PREVIOUS_BUILD_NUM", "whatever ran before on the branch"),
    shared("CIRCLE_SHA1", "two pipelines of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun("Rerun workflow from failed", Effect::SameKey, "the workspace stays; workflow and job ids are new"),
    rerun("Automatic rerun (max_auto_reruns)", Effect::SameKey, "works like rerun from failed"),
    rerun(
        "Rerun failed tests",
        Effect::SameKey,
        "the workspace stays; tests are split anew, so that a node may run others, or none",
    ),
    rerun(
        "Rerun workflow from start",
        Effect::SameKey,
        "the workspace is documented to be inherited, though nobody has shown it for this button: should it be new, it \
         is a round of its own. For a wanted second execution give --round",
    ),
    rerun("Rerun job with SSH", Effect::SameKey, "another workflow in the same pipeline, with the same workspace"),
    rerun("Re-run from GitHub's checks tab", Effect::SameKey, "like rerun from start"),
    rerun("Automatic rerun of a step", Effect::SameKey, "nothing changes"),
    rerun("Trigger pipeline, new push, schedule", Effect::NewKey, "another pipeline and another workspace"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    for variable in ["CIRCLE_PROJECT_USERNAME", "CIRCLE_PROJECT_REPONAME"] {
        if !env.has(variable) {
            reading.missing.push(Missing::Scope(variable));
        }
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, repository(env).as_deref())?,
        "CIRCLE_PROJECT_USERNAME, CIRCLE_PROJECT_REPONAME",
        "the ids are unique by themselves; the project makes the key readable",
    ));
    if env.has(WORKSPACE) || !env.has(PIPELINE) {
        let why = "the same in all jobs of a workflow, and handed on to its reruns; new for every new workflow";
        partition::run(TITLE, env, &mut reading, WORKSPACE, why)?;
        if env.has(PIPELINE) {
            let why = "stays in a rerun too, but two workflows of one pipeline may have jobs of one name";
            reading.left_out.push(shared(PIPELINE, why));
        }
    } else {
        let why = "stays in every rerun, which happens within its pipeline; new for every new pipeline";
        partition::run(TITLE, env, &mut reading, PIPELINE, why)?;
        if overrides.run.is_none() {
            reading.warnings.push(format!(
                "{WORKSPACE} is not set, so {PIPELINE} names the run: two workflows of this pipeline with a job of one \
                 name would share a key. Forward {WORKSPACE} into the container, or pass --job"
            ));
        }
    }
    let why = "the job's name in the workflow, which holds the parameters of a matrix unless you gave it a name";
    partition::job(TITLE, env, &mut reading, &["CIRCLE_JOB"], "CIRCLE_JOB", why)?;
    let nodes = Index {
        index: "CIRCLE_NODE_INDEX",
        total: Some("CIRCLE_NODE_TOTAL"),
        base: 0,
        source: "CIRCLE_NODE_INDEX, CIRCLE_NODE_TOTAL",
        why: "the node plus 1 of the job's parallelism, the same when it is rerun",
    };
    partition::shard(TITLE, env, overrides, &mut reading, nodes)?;
    // Numbers of different jobs rise in the order in which the jobs began, which says nothing about retries.
    reading.ordinal_scope = OrdinalScope::Key;
    let number = env.get("CIRCLE_BUILD_NUM").and_then(|number| number.parse().ok());
    let why = "the project's counter of executions: a rerun of the job has a higher number";
    reading.ordinal = number.map(|number| Found::new(Ordinal(number), "CIRCLE_BUILD_NUM", why));
    reading.executor = executor(
        env,
        &["CIRCLE_WORKFLOW_JOB_ID", "CIRCLE_NODE_INDEX"],
        "CIRCLE_WORKFLOW_JOB_ID, CIRCLE_NODE_INDEX",
        "names this execution of the job on its node",
    );
    Ok(reading)
}

fn repository(env: &Env) -> Option<String> {
    let owner = env.get("CIRCLE_PROJECT_USERNAME");
    owner.zip(env.get("CIRCLE_PROJECT_REPONAME")).map(|(owner, name)| format!("{owner}/{name}"))
}

fn context(env: &Env) -> Context {
    let build_url = env.get("CIRCLE_BUILD_URL");
    let server = build_url.and_then(server_of);
    let is_public =
        server.as_ref().is_none_or(|url| matches!(url.split('/').next(), Some("circleci.com" | "app.circleci.com")));
    // The address of the workflow; a server of one's own has another, and only tells that of the job.
    let run_url = match env.get("CIRCLE_WORKFLOW_ID") {
        Some(id) if is_public => Some(format!("https://app.circleci.com/pipelines/workflows/{id}")),
        _ => build_url.map(str::to_owned),
    };
    // CIRCLE_PULL_REQUEST is one of several, and not there before the first is opened: a rerun would find its key in
    // another cycle. Of a fork's pull request the branch is `pull/N` from its first build on.
    let branch = env.get("CIRCLE_BRANCH");
    let fork = branch.and_then(|branch| branch.strip_prefix("pull/")).and_then(|rest| rest.split('/').next());
    Context {
        // No variable names the workflow.
        workflow: None,
        run_counter: None,
        commit: env.get("CIRCLE_SHA1").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.first(&["CIRCLE_BRANCH", "CIRCLE_TAG"]).map(|(_, branch)| branch.to_owned()),
        pull_request: fork
            .filter(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
            .or_else(|| env.get("CIRCLE_PR_NUMBER"))
            .map(str::to_owned),
        unnumbered_change: false,
        run_url,
        repository: repository(env),
    }
}
