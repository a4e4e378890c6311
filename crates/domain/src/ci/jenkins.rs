//! Jenkins: <https://www.jenkins.io/doc/book/pipeline/jenkinsfile/#using-environment-variables>.
//! Must not know other platforms; Prow and Cloud Build, which borrow its
//! names, are told apart before.

use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, joined, parsed, renewed, repository_of,
    rerun, scope, server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, Executor, JobName, RunId, WorkflowName};

const TITLE: &str = "Jenkins";
const SLUG: &str = "jenkins";
const RUN_WHY: &str = "stays through retry steps and restarts of the controller; new for every new build";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("JENKINS_URL")],
    // An administrator who never set the address leaves these.
    fallback: &[Marker::Set("BUILD_TAG"), Marker::Set("BUILD_NUMBER"), Marker::Set("JOB_NAME")],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: &[
        renewed("EXECUTOR_NUMBER", "a retry may get another executor"),
        renewed("NODE_NAME", "a retry may get another agent (executor)"),
        renewed("WORKSPACE", "ends in @2 when two builds overlap (executor)"),
        renewed("WORKSPACE_TMP", "follows the workspace"),
        shared("BUILD_ID", "the build number alone: every job counts from 1"),
        shared("BUILD_DISPLAY_NAME", "the build number, or a free text"),
        shared("GIT_COMMIT", "two builds of one commit would collapse into one"),
    ],
    reruns: &[
        rerun("retry step, options { retry(n) }", Effect::SameKey, "nothing changes in the environment"),
        rerun("retry after a lost agent", Effect::SameKey, "node, executor and workspace change"),
        rerun("Controller restarted, pipeline resumed", Effect::SameKey, "nothing changes"),
        rerun("Replay", Effect::NewKey, "a new build number"),
        rerun("Restart from Stage", Effect::NewKey, "a new build number"),
        rerun("Rebuild plugin", Effect::NewKey, "a new build number"),
        rerun("Build Now, trigger, schedule", Effect::NewKey, "a new build number"),
        rerun("Naginator", Effect::YouDecide, "a new build number although it is a retry: pass a run of your own"),
        rerun(
            "build step of a parent tried again",
            Effect::YouDecide,
            "another build of this job: hand the parent's run down as a parameter and pass it as --run",
        ),
    ],
};

fn read(env: &Env, _overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let server = env.get("JENKINS_URL").and_then(server_of);
    if server.is_none() {
        reading.warnings.push(
            "JENKINS_URL is not set (Manage Jenkins, System, Jenkins URL): jobs of the same name and number on two \
             controllers would share keys"
                .to_owned(),
        );
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), None)?,
        "JENKINS_URL",
        "job names and build numbers are unique within one controller",
    ));
    reading.run = run(env)?;
    if reading.run.is_none() {
        let variable = if env.has("JOB_NAME") { "BUILD_NUMBER" } else { "JOB_NAME" };
        reading.missing.push(Missing::Run(variable));
    }
    // A freestyle job has no stages: then the job of the run is the whole of it.
    if let Some(stage) = env.get("STAGE_NAME") {
        reading.job = Some(Found::new(
            parsed(TITLE, "STAGE_NAME", stage, JobName::parse)?,
            "STAGE_NAME",
            "the stage's name; the inner stages of a matrix share it, so pass the axes as --variant, and a part of a split \
             as --shard",
        ));
    }
    let node = [env.get("NODE_NAME"), env.get("WORKSPACE")];
    let text = node.iter().flatten().copied().collect::<Vec<_>>().join(" ");
    reading.executor = Executor::parse(&text)
        .ok()
        .map(|executor| Found::new(executor, "NODE_NAME, WORKSPACE", "names where this execution runs"));
    Ok(reading)
}

/// Job and number, else the build's address, else its tag.
fn run(env: &Env) -> Result<Option<Found<RunId>>, IdentityError> {
    if let (Some(job), Some(number)) = (env.get("JOB_NAME"), env.get("BUILD_NUMBER")) {
        let run = parsed(TITLE, "JOB_NAME", &joined(&[job, number]), RunId::parse)?;
        return Ok(Some(Found::new(run, "JOB_NAME, BUILD_NUMBER", RUN_WHY)));
    }
    if let Some(url) = env.get("BUILD_URL").and_then(server_of) {
        let run = parsed(TITLE, "BUILD_URL", &url, RunId::parse)?;
        return Ok(Some(Found::new(run, "BUILD_URL", RUN_WHY)));
    }
    let Some(tag) = env.get("BUILD_TAG") else { return Ok(None) };
    let run = parsed(TITLE, "BUILD_TAG", tag, RunId::parse)?;
    Ok(Some(Found::new(run, "BUILD_TAG", RUN_WHY)))
}

fn context(env: &Env) -> Context {
    Context {
        workflow: env.get("JOB_NAME").and_then(|job| WorkflowName::parse(job).ok()),
        run_counter: env.get("BUILD_NUMBER").and_then(|number| number.parse().ok()),
        commit: env.get("GIT_COMMIT").and_then(|sha| Commit::parse(sha).ok()),
        branch: env
            .first(&["CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"])
            .map(|(_, branch)| branch.strip_prefix("origin/").unwrap_or(branch).to_owned()),
        pull_request: env.get("CHANGE_ID").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("BUILD_URL").map(str::to_owned),
        repository: env.get("GIT_URL").and_then(repository_of),
    }
}
