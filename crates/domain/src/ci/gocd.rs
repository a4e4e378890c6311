//! `GoCD`: <https://docs.gocd.org/current/faq/dev_use_current_revision_in_build.html>.
//! Must not know other platforms.

use super::partition::{self, Index};
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, joined, parsed, renewed, rerun, scope,
    server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, JobName, RunId, WorkflowName};
use crate::push::OrdinalScope;

const TITLE: &str = "GoCD";
const SLUG: &str = "gocd";
const INDEX: Index = Index {
    index: "GO_JOB_RUN_INDEX",
    total: Some("GO_JOB_RUN_COUNT"),
    base: 1,
    source: "GO_JOB_RUN_INDEX, GO_JOB_RUN_COUNT",
    why: "the instance of a job that runs several, the same when it is rerun",
};

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("GO_PIPELINE_NAME")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: &[
        renewed(
            "GO_STAGE_COUNTER",
            "rises with every rerun of the stage or of its jobs: it orders deliveries (ordinal)",
        ),
        renewed("GO_TRIGGER_USER", "becomes the person who started the rerun"),
        shared("GO_PIPELINE_LABEL", "follows a template of the user, and may repeat"),
        shared("GO_REVISION", "two runs of one revision would collapse into one"),
    ],
    reruns: &[
        rerun("Rerun stage", Effect::SameKey, "the stage counter rises; for a wanted second execution give --round"),
        rerun("Rerun failed or selected jobs", Effect::SameKey, "the stage counter rises"),
        rerun(
            "Agent lost, job scheduled again",
            Effect::SameKey,
            "only the agent changes; all agents need one spelling of the server's address",
        ),
        rerun("Trigger pipeline, new material", Effect::NewKey, "the pipeline counter rises"),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let server = env.get("GO_SERVER_URL").and_then(server_of);
    if server.is_none() {
        reading.missing.push(Missing::Scope("GO_SERVER_URL"));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), None)?,
        "GO_SERVER_URL",
        "pipeline names and counters are unique on one server",
    ));
    match (env.get("GO_PIPELINE_NAME"), env.get("GO_PIPELINE_COUNTER")) {
        (Some(pipeline), Some(counter)) => {
            let source = "GO_PIPELINE_NAME, GO_PIPELINE_COUNTER";
            reading.run = Some(Found::new(
                parsed(TITLE, source, &joined(&[pipeline, counter]), RunId::parse)?,
                source,
                "stays when stages or jobs are rerun; new for every new run of the pipeline",
            ));
        }
        (None, _) => reading.missing.push(Missing::Run("GO_PIPELINE_NAME")),
        (Some(_), None) => reading.missing.push(Missing::Run("GO_PIPELINE_COUNTER")),
    }
    partition::shard(TITLE, env, overrides, &mut reading, INDEX)?;
    read_job(env, &mut reading)?;
    let why = "rises with every rerun of the stage or of some of its jobs";
    partition::ordinal(env, &mut reading, "GO_STAGE_COUNTER", OrdinalScope::Key, why);
    Ok(reading)
}

/// Stage and job, the latter without its instance: `unit-runInstance-2` is `unit`.
fn read_job(env: &Env, reading: &mut Reading) -> Result<(), IdentityError> {
    let (stage, job) = match (env.get("GO_STAGE_NAME"), env.get("GO_JOB_NAME")) {
        (Some(stage), Some(job)) => (stage, job),
        (None, _) => {
            reading.missing.push(Missing::Job("GO_STAGE_NAME"));
            return Ok(());
        }
        (Some(_), None) => {
            reading.missing.push(Missing::Job("GO_JOB_NAME"));
            return Ok(());
        }
    };
    let instance = env.get("GO_JOB_RUN_INDEX").map(|index| format!("-runInstance-{index}"));
    // A name that ends in another number keeps it: there it tells jobs apart.
    let bare = instance.and_then(|ending| job.strip_suffix(ending.as_str())).filter(|bare| !bare.is_empty());
    let source = "GO_STAGE_NAME, GO_JOB_NAME";
    reading.job = Some(Found::new(
        parsed(TITLE, source, &joined(&[stage, bare.unwrap_or(job)]), JobName::parse)?,
        source,
        "the stage's and the job's name, without the instance; pass what else tells executions of a job apart as --variant",
    ));
    Ok(())
}

fn context(env: &Env) -> Context {
    let run_url = match (env.get("GO_SERVER_URL"), env.get("GO_PIPELINE_NAME"), env.get("GO_PIPELINE_COUNTER")) {
        (Some(server), Some(pipeline), Some(counter)) => {
            Some(format!("{}/pipelines/value_stream_map/{pipeline}/{counter}", server.trim_end_matches('/')))
        }
        _ => None,
    };
    Context {
        workflow: env.get("GO_PIPELINE_NAME").and_then(|name| WorkflowName::parse(name).ok()),
        run_counter: env.get("GO_PIPELINE_COUNTER").and_then(|counter| counter.parse().ok()),
        commit: env.get("GO_REVISION").and_then(|sha| Commit::parse(sha).ok()),
        branch: None,
        pull_request: None,
        unnumbered_change: false,
        run_url,
        repository: None,
    }
}
