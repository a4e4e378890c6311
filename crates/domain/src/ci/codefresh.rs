//! Codefresh: <https://codefresh.io/docs/docs/pipelines/variables/>.
//! Must not know other platforms.

use super::partition;
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, renewed, rerun, scope, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, WorkflowName};

const TITLE: &str = "Codefresh";
const SLUG: &str = "codefresh";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("CF_BUILD_ID")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: &[
        renewed("CF_BUILD_TIMESTAMP", "the time of one build"),
        shared("CF_REVISION", "two builds of one commit would collapse into one"),
        shared("CF_SHORT_REVISION", "two builds of one commit would collapse into one"),
    ],
    reruns: &[
        rerun(
            "Restart, restart from the failed step",
            Effect::YouDecide,
            "not established; taken for a new build with a new CF_BUILD_ID, so nothing is swallowed: for a retry pass a \
             run of your own as --run",
        ),
        rerun("retry: of a step", Effect::SameKey, "nothing is known to change"),
        rerun("Run, trigger", Effect::NewKey, "a new CF_BUILD_ID"),
    ],
};

fn read(env: &Env, _overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let pipeline = env.get("CF_PIPELINE_NAME");
    if pipeline.is_none() {
        reading.missing.push(Missing::Scope("CF_PIPELINE_NAME"));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, pipeline)?,
        "CF_PIPELINE_NAME",
        "a build belongs to one pipeline; its id is unique by itself",
    ));
    let why = "the same in every step of the build; new for every new build, and probably for a restart";
    partition::run(TITLE, env, &mut reading, "CF_BUILD_ID", why)?;
    let why = "the step's name; parallel and scaled steps have names of their own, else pass the value as --variant, and a \
               part of a split as --shard";
    partition::job(TITLE, env, &mut reading, &["CF_STEP_NAME"], "CF_STEP_NAME", why)?;
    Ok(reading)
}

fn context(env: &Env) -> Context {
    let repository = match (env.get("CF_REPO_OWNER"), env.get("CF_REPO_NAME")) {
        (Some(owner), Some(name)) => Some(format!("{owner}/{name}")),
        _ => None,
    };
    Context {
        workflow: env.get("CF_PIPELINE_NAME").and_then(|name| WorkflowName::parse(name).ok()),
        run_counter: None,
        commit: env.get("CF_REVISION").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.get("CF_BRANCH").map(str::to_owned),
        pull_request: env.get("CF_PULL_REQUEST_NUMBER").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("CF_BUILD_URL").map(str::to_owned),
        repository,
    }
}
