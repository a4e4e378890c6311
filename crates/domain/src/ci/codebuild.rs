//! AWS `CodeBuild`: <https://docs.aws.amazon.com/codebuild/latest/userguide/build-env-ref-env-vars.html>.
//! Must not know other platforms; a GitHub runner inside it is told apart before.

use super::partition::{self, executor};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, joined, parsed, renewed,
    repository_of, rerun, scope, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, JobName, WorkflowName};

const TITLE: &str = "AWS CodeBuild";
const SLUG: &str = "codebuild";
const BUILD: &str = "CODEBUILD_BUILD_ID";
const BATCH: &str = "CODEBUILD_BATCH_BUILD_IDENTIFIER";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set(BUILD)],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("CODEBUILD_BUILD_ARN", "ends in the build's id, which every retry renews"),
    renewed("CODEBUILD_BUILD_NUMBER", "every retry is another build of the project"),
    renewed("CODEBUILD_START_TIME", "a time"),
    renewed("CODEBUILD_LOG_PATH", "the log of one build"),
    renewed("CODEBUILD_BUILD_URL", "the page of one build"),
    shared("CODEBUILD_INITIATOR", "whoever started the build"),
    shared("CODEBUILD_RESOLVED_SOURCE_VERSION", "two builds of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun(
        "Retry build",
        Effect::YouDecide,
        "a new build id: start builds with a variable that the retry keeps, and pass it as --run",
    ),
    rerun("Automatic retry (autoRetryLimit)", Effect::YouDecide, "a new build id: as for Retry build"),
    rerun(
        "Retry batch, all or failed builds",
        Effect::YouDecide,
        "its builds get new ids, and no variable tells the batch's own: as for Retry build",
    ),
    rerun(
        "Retry of a CodePipeline stage",
        Effect::YouDecide,
        "a new build id, but the execution id stays: pass it as --run, from #{codepipeline.PipelineExecutionId} in a \
         variable of the action, and the key stays",
    ),
    rerun("Start build", Effect::NewKey, "a new build id"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let region = env.get("AWS_REGION");
    if region.is_none() {
        reading.missing.push(Missing::Scope("AWS_REGION"));
    }
    let why = "builds of one region may share a run that you pass; a build's id is unique by itself";
    reading.scope = Some(Found::new(scope(TITLE, SLUG, None, region)?, "AWS_REGION", why));
    let why = "one build; every retry and every build of a batch has another, so that only --run can join them";
    partition::run(TITLE, env, &mut reading, BUILD, why)?;
    if overrides.run.is_none() {
        reading.warnings.push(
            "CodeBuild gives every retry and every build of a batch another id, so each counts as a run of its own: pass \
             --run, under CodePipeline #{codepipeline.PipelineExecutionId} as a variable of the action, else a value \
             that you start the builds with"
                .to_owned(),
        );
    } else {
        let why = "every retry and every build of a batch has another (executor)";
        reading.left_out.push(renewed(BUILD, why));
    }
    read_job(env, &mut reading)?;
    reading.executor = executor(env, &[BUILD], BUILD, "names this build");
    Ok(reading)
}

/// The project, and in a batch the build's name in the file: the same in every batch.
fn read_job(env: &Env, reading: &mut Reading) -> Result<(), IdentityError> {
    let Some(project) = project(env) else {
        reading.missing.push(Missing::Job(BUILD));
        return Ok(());
    };
    let (job, source, why) = match env.get(BATCH) {
        Some(build) => (
            joined(&[project, build]),
            "CODEBUILD_BUILD_ID, CODEBUILD_BATCH_BUILD_IDENTIFIER",
            "the project, and the build's name in the batch's file; parts of a split job need --shard",
        ),
        None => (project.to_owned(), BUILD, "the project, which is the part of the build's id that a retry keeps"),
    };
    reading.job = Some(Found::new(parsed(TITLE, BUILD, &job, JobName::parse)?, source, why));
    Ok(())
}

/// `shop:5a1c…` is a build of the project `shop`.
fn project(env: &Env) -> Option<&str> {
    let build = env.get(BUILD)?;
    Some(build.split_once(':').map_or(build, |(project, _)| project)).filter(|project| !project.is_empty())
}

fn context(env: &Env) -> Context {
    let trigger = env.get("CODEBUILD_WEBHOOK_TRIGGER").and_then(|trigger| trigger.split_once('/'));
    let head = env.get("CODEBUILD_WEBHOOK_HEAD_REF");
    let head = head.map(|name| name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/tags/")).unwrap_or(name));
    let triggered = trigger.and_then(|(kind, name)| matches!(kind, "branch" | "tag").then_some(name));
    let pull_request = trigger.and_then(|(kind, number)| (kind == "pr").then_some(number));
    Context {
        workflow: project(env).and_then(|project| WorkflowName::parse(project).ok()),
        run_counter: env.get("CODEBUILD_BUILD_NUMBER").and_then(|number| number.parse().ok()),
        commit: env.get("CODEBUILD_RESOLVED_SOURCE_VERSION").and_then(|sha| Commit::parse(sha).ok()),
        branch: head.or(triggered).map(str::to_owned),
        pull_request: pull_request.map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("CODEBUILD_BUILD_URL").map(str::to_owned),
        repository: env.get("CODEBUILD_SOURCE_REPO_URL").and_then(repository_of),
    }
}
