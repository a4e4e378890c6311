//! Google Cloud Build: <https://cloud.google.com/build/docs/configuring-builds/substitute-variable-values>.
//! A step sees only what the build's file maps into its environment. Must not know other platforms.

use super::partition;
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, parsed, rerun, scope, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, JobName, WorkflowName};

const TITLE: &str = "Google Cloud Build";
const SLUG: &str = "cloudbuild";
const NO_RUN: &str = "The build's id reaches a step only if the build's file maps it: give the step \
                      env: ['BUILD_ID=$BUILD_ID', 'PROJECT_ID=$PROJECT_ID', 'TRIGGER_NAME=$TRIGGER_NAME', \
                      'COMMIT_SHA=$COMMIT_SHA', 'BRANCH_NAME=$BRANCH_NAME'], or set options.automapSubstitutions: true; \
                      or pass --run \"$BUILD_ID\" in the step's args.";
const NO_JOB: &str = "A step doesn't know its own id, and TRIGGER_NAME is not mapped into its environment: pass the step's \
                      name as --job NAME, another one in every step that pushes, and a part of a split as --shard I/N or \
                      --variant.";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("BUILDER_OUTPUT")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: &[shared("COMMIT_SHA", "two builds of one commit would collapse into one")],
    reruns: &[
        rerun(
            "Retry, rebuild",
            Effect::YouDecide,
            "a new BUILD_ID: for a retry pass a run of your own as --run, the same in both (a substitution, for example)",
        ),
        rerun("Trigger run, push", Effect::NewKey, "a new BUILD_ID"),
        rerun(
            "Worker lost",
            Effect::YouDecide,
            "not established whether the build's id stays; a build that is started again has a new one",
        ),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let project = env.get("PROJECT_ID");
    if project.is_none() {
        reading.missing.push(Missing::Scope("PROJECT_ID"));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, project)?,
        "PROJECT_ID",
        "a build belongs to one project; its id is unique by itself",
    ));
    if env.has("BUILD_ID") {
        let why = "the same in every step of the build; new for every new build, and for a retry by the platform too";
        partition::run(TITLE, env, &mut reading, "BUILD_ID", why)?;
    } else {
        reading.missing.push(Missing::RunByDesign(NO_RUN));
    }
    let Some(trigger) = env.get("TRIGGER_NAME") else {
        reading.missing.push(Missing::JobByDesign(NO_JOB));
        return Ok(reading);
    };
    let why = "the trigger's name, the same in every step of the build: pass the step's name as --job if several \
               push, and a part of a split as --shard or --variant";
    reading.job = Some(Found::new(parsed(TITLE, "TRIGGER_NAME", trigger, JobName::parse)?, "TRIGGER_NAME", why));
    if overrides.job.is_none() && overrides.shard.is_none() && overrides.variant.is_none() {
        reading.warnings.push(
            "a step doesn't know its own id: the job is TRIGGER_NAME, which all steps of the build share. If more than one \
             step pushes, pass the step's name as --job NAME in each, and the part of a split as --shard I/N or --variant"
                .to_owned(),
        );
    }
    Ok(reading)
}

fn context(env: &Env) -> Context {
    Context {
        workflow: env.get("TRIGGER_NAME").and_then(|name| WorkflowName::parse(name).ok()),
        run_counter: None,
        commit: env.get("COMMIT_SHA").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.first(&["_HEAD_BRANCH", "BRANCH_NAME", "TAG_NAME"]).map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("_PR_NUMBER").map(str::to_owned),
        unnumbered_change: false,
        run_url: run_url(env),
        repository: env.get("REPO_FULL_NAME").map(str::to_owned),
    }
}

fn run_url(env: &Env) -> Option<String> {
    let (project, build) = (env.get("PROJECT_ID")?, env.get("BUILD_ID")?);
    let region = env.get("LOCATION").map(|location| format!(";region={location}")).unwrap_or_default();
    Some(format!("https://console.cloud.google.com/cloud-build/builds{region}/{build}?project={project}"))
}
