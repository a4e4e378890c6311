//! Screwdriver: <https://docs.screwdriver.cd/user-guide/environment-variables>.
//! Must not know other platforms.

use super::partition::{self, executor, warn_of_rerun};
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, renewed, repository_of, rerun, scope,
    server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, WorkflowName};

const TITLE: &str = "Screwdriver";
const SLUG: &str = "screwdriver";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("SCREWDRIVER", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: &[
        renewed("SD_BUILD_ID", "names one execution of the job (executor)"),
        renewed("SD_PARENT_EVENT_ID", "the event that was restarted: it only shows that this is a restart"),
        shared("SD_JOB_ID", "the same in every event"),
        shared("SD_BUILD_SHA", "two events of one commit would collapse into one"),
    ],
    reruns: &[
        rerun(
            "Restart of a job",
            Effect::YouDecide,
            "a new event and a new build, SD_PARENT_EVENT_ID names the old event: for a retry pass a run of your own as \
             --run, the same in both",
        ),
        rerun("Start, push", Effect::NewKey, "a new SD_EVENT_ID"),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let pipeline = env.get("SD_PIPELINE_ID");
    if pipeline.is_none() {
        reading.missing.push(Missing::Scope("SD_PIPELINE_ID"));
    }
    // What comes after is the build's own path.
    let url = env.get("SD_UI_BUILD_URL").and_then(|url| url.split("/pipelines/").next());
    let server = url.and_then(server_of);
    if server.is_none() {
        reading.warnings.push(
            "SD_UI_BUILD_URL is not set: pipelines and events with the same numbers on two servers would share keys"
                .to_owned(),
        );
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), pipeline)?,
        "SD_UI_BUILD_URL, SD_PIPELINE_ID",
        "the server in the address, and the pipeline: event ids are unique on one server",
    ));
    let why = "the same in every job of the event; new for every new event, and for a restart too";
    partition::run(TITLE, env, &mut reading, "SD_EVENT_ID", why)?;
    let why = "the job's name in the file; pass what tells parts of a job apart as --shard or --variant";
    partition::job(TITLE, env, &mut reading, &["SD_JOB_NAME"], "SD_JOB_NAME", why)?;
    reading.executor = executor(env, &["SD_BUILD_ID"], "SD_BUILD_ID", "names this execution of the job");
    if let Some(parent) = env.get("SD_PARENT_EVENT_ID") {
        let earlier = format!("event {parent} (SD_PARENT_EVENT_ID)");
        warn_of_rerun(overrides, &mut reading, &earlier, "with a value that both events know if it is to be a retry");
    }
    Ok(reading)
}

fn context(env: &Env) -> Context {
    // Pull requests have jobs of the pipeline too: what tells workflows apart is the pipeline alone.
    Context {
        workflow: env.get("SD_PIPELINE_ID").and_then(|id| WorkflowName::parse(&format!("pipeline {id}")).ok()),
        run_counter: env.get("SD_EVENT_ID").and_then(|id| id.parse().ok()),
        commit: env.get("SD_BUILD_SHA").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.get("GIT_BRANCH").map(|branch| branch.strip_prefix("origin/").unwrap_or(branch).to_owned()),
        pull_request: env.get("SD_PULL_REQUEST").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("SD_UI_BUILD_URL").map(str::to_owned),
        repository: env.get("SCM_URL").map(|url| url.split('#').next().unwrap_or(url)).and_then(repository_of),
    }
}
