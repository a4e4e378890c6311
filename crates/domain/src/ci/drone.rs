//! Drone: <https://docs.drone.io/pipeline/environment/reference/>.
//! Must not know other platforms; Harness CI, which sets its marker too, is told apart before.

use super::partition::{self, executor};
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, renewed, rerun, scope, server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, WorkflowName};

const TITLE: &str = "Drone";
const SLUG: &str = "drone";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("DRONE", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: &[
        renewed("DRONE_BUILD_STARTED", "a time"),
        renewed("DRONE_BUILD_CREATED", "a time"),
        renewed("DRONE_STAGE_STARTED", "the time at which this execution began (executor)"),
        renewed("DRONE_STAGE_MACHINE", "the machine of this execution (executor)"),
        shared("DRONE_BUILD_PARENT", "set by a promotion only: a restart doesn't name the build that it repeats"),
        shared("DRONE_COMMIT_SHA", "two builds of one commit would collapse into one"),
    ],
    reruns: &[
        rerun(
            "Restart",
            Effect::YouDecide,
            "a new build number, and nothing that names the old build: for a retry restart with a build parameter that \
             you pass as --run, the same in both",
        ),
        rerun("Promote, rollback", Effect::NewKey, "a new build number; DRONE_BUILD_PARENT names the promoted build"),
        rerun("Push, cron, API", Effect::NewKey, "a new build number"),
        rerun(
            "Runner lost",
            Effect::YouDecide,
            "the build fails or hangs (not established which); whoever restarts it makes a new build: see Restart",
        ),
    ],
};

fn read(env: &Env, _overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let server = env.get("DRONE_SYSTEM_HOST").and_then(server_of);
    let repository = env.get("DRONE_REPO");
    for (variable, known) in [("DRONE_SYSTEM_HOST", server.is_some()), ("DRONE_REPO", repository.is_some())] {
        if !known {
            reading.missing.push(Missing::Scope(variable));
        }
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), repository)?,
        "DRONE_SYSTEM_HOST, DRONE_REPO",
        "build numbers count within one repository of one server",
    ));
    let why = "the same in every step of the build; new for every new build, and for a restart too";
    partition::run(TITLE, env, &mut reading, "DRONE_BUILD_NUMBER", why)?;
    partition::job(
        TITLE,
        env,
        &mut reading,
        &["DRONE_STAGE_NAME", "DRONE_STEP_NAME"],
        "DRONE_STAGE_NAME, DRONE_STEP_NAME",
        "the pipeline's and the step's name in the file; pipelines of a matrix need names of their own, else pass its \
         value as --variant, and a part of a split as --shard",
    )?;
    let source = "DRONE_STAGE_MACHINE, DRONE_STAGE_STARTED";
    let names = ["DRONE_STAGE_MACHINE", "DRONE_STAGE_STARTED"];
    reading.executor = executor(env, &names, source, "names this execution of the pipeline's stage");
    Ok(reading)
}

fn context(env: &Env) -> Context {
    Context {
        workflow: workflow(env),
        run_counter: env.get("DRONE_BUILD_NUMBER").and_then(|number| number.parse().ok()),
        commit: env.get("DRONE_COMMIT_SHA").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.first(&["DRONE_SOURCE_BRANCH", "DRONE_BRANCH"]).map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("DRONE_PULL_REQUEST").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("DRONE_BUILD_LINK").map(str::to_owned),
        repository: env.get("DRONE_REPO").map(str::to_owned),
    }
}

/// One file holds all pipelines, and these events usually start others than a push does: they are workflows of their
/// own, or a nightly round would displace that of a push.
fn workflow(env: &Env) -> Option<WorkflowName> {
    let event = env.get("DRONE_BUILD_EVENT").filter(|event| ["cron", "promote", "rollback"].contains(event))?;
    WorkflowName::parse(event).ok()
}
