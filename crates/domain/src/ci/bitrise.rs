//! Bitrise: <https://docs.bitrise.io/en/bitrise-ci/references/available-environment-variables.html>.
//! Must not know other platforms.

use super::partition::{self, Index};
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, parsed, renewed, repository_of, rerun, scope,
    shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, RunId, WorkflowName};
use crate::push::OrdinalScope;

const TITLE: &str = "Bitrise";
const SLUG: &str = "bitrise";
const INDEX: Index = Index {
    index: "BITRISE_IO_PARALLEL_INDEX",
    total: Some("BITRISE_IO_PARALLEL_TOTAL"),
    base: 0,
    source: "BITRISE_IO_PARALLEL_INDEX, BITRISE_IO_PARALLEL_TOTAL",
    why: "the copy of a parallel workflow, counted from 1 here; the same when it is rerun",
};

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("BITRISE_IO", "true")],
    fallback: &[],
    imitates: &[],
    // A pipeline's reruns keep the run; those of a workflow outside a pipeline don't.
    strength: Strength::Weak,
    read,
    left_out: &[
        renewed("BITRISE_BUILD_URL", "ends in the build's id, which is new for every rerun"),
        renewed("BITRISE_BUILD_TRIGGER_TIMESTAMP", "the time of one build: it orders deliveries (ordinal)"),
        shared("BITRISE_BUILD_NUMBER", "builds that a step starts share it"),
        shared("BITRISE_GIT_COMMIT", "two builds of one commit would collapse into one"),
    ],
    reruns: &[
        rerun(
            "Rerun of a pipeline's unsuccessful workflows",
            Effect::SameKey,
            "BITRISEIO_PIPELINE_ID stays, as far as is known; every build of it has a new id",
        ),
        rerun(
            "Rebuild of a build outside a pipeline",
            Effect::YouDecide,
            "a new BITRISE_BUILD_SLUG: for a retry pass a run of your own as --run, the same in both",
        ),
        rerun(
            "Rebuild of the whole pipeline",
            Effect::NewKey,
            "not established; taken for a new pipeline id, so for a new run",
        ),
        rerun("Start build, trigger", Effect::NewKey, "new ids"),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let app = env.get("BITRISE_APP_SLUG");
    if app.is_none() {
        reading.missing.push(Missing::Scope("BITRISE_APP_SLUG"));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, app)?,
        "BITRISE_APP_SLUG",
        "a build belongs to one app; its id is unique by itself",
    ));
    read_run(env, &mut reading)?;
    let why = "the workflow's name; pass what else tells its builds apart as --variant";
    let names = ["BITRISE_TRIGGERED_WORKFLOW_ID"];
    partition::job(TITLE, env, &mut reading, &names, "BITRISE_TRIGGERED_WORKFLOW_ID", why)?;
    partition::shard(TITLE, env, overrides, &mut reading, INDEX)?;
    // No executor beside it: should a rerun keep the time, another build id at an equal attempt would be refused.
    let why = "the time of the trigger, which is later for a rerun";
    partition::ordinal(env, &mut reading, "BITRISE_BUILD_TRIGGER_TIMESTAMP", OrdinalScope::Key, why);
    Ok(reading)
}

/// The pipeline, else the build of a workflow that is in none.
fn read_run(env: &Env, reading: &mut Reading) -> Result<(), IdentityError> {
    const PIPELINE: &str = "BITRISEIO_PIPELINE_ID";
    const BUILD: &str = "BITRISE_BUILD_SLUG";
    match (env.get(PIPELINE), env.get(BUILD)) {
        (Some(pipeline), build) => {
            if build.is_some() {
                reading.left_out.push(renewed(BUILD, "names one build of the pipeline, new for every rerun"));
            }
            reading.run = Some(Found::new(
                parsed(TITLE, PIPELINE, pipeline, RunId::parse)?,
                PIPELINE,
                "stays when the pipeline's unsuccessful workflows are rerun, as far as is known; new for a new pipeline",
            ));
        }
        (None, Some(build)) => {
            reading.run = Some(Found::new(
                parsed(TITLE, BUILD, build, RunId::parse)?,
                BUILD,
                "the build of a workflow outside a pipeline; new for every new build, and for a rebuild too",
            ));
        }
        (None, None) => reading.missing.push(Missing::Run(BUILD)),
    }
    Ok(())
}

fn context(env: &Env) -> Context {
    // A pipeline's name is not in the environment; outside one the workflow is all there is.
    let lone = !env.has("BITRISEIO_PIPELINE_ID");
    let workflow = env.get("BITRISE_TRIGGERED_WORKFLOW_ID").filter(|_| lone);
    Context {
        workflow: workflow.and_then(|name| WorkflowName::parse(name).ok()),
        run_counter: env.get("BITRISE_BUILD_NUMBER").filter(|_| lone).and_then(|number| number.parse().ok()),
        commit: env.get("BITRISE_GIT_COMMIT").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.get("BITRISE_GIT_BRANCH").map(str::to_owned),
        pull_request: env.get("BITRISE_PULL_REQUEST").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("BITRISE_BUILD_URL").map(str::to_owned),
        repository: env.get("GIT_REPOSITORY_URL").and_then(repository_of),
    }
}
