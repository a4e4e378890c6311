//! Cirrus CI: <https://cirrus-ci.org/guide/writing-tasks/#environment-variables>.
//! Must not know other platforms.

use super::partition::{self, executor};
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, renewed, rerun, scope, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::Commit;

const TITLE: &str = "Cirrus CI";
const SLUG: &str = "cirrus";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("CIRRUS_CI", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: &[
        renewed("CIRRUS_TASK_ID", "new when a task is re-run (executor)"),
        shared("CI_NODE_INDEX", "the task's place among all tasks of the build, no part of a split"),
        shared("CI_NODE_TOTAL", "the number of all tasks of the build"),
        shared("CIRRUS_CHANGE_IN_REPO", "two builds of one commit would collapse into one"),
    ],
    reruns: &[
        rerun(
            "Re-run task, re-run failed tasks",
            Effect::SameKey,
            "a new task id, and nothing counts the attempts: for a pass to count over the failure give \
             --on-difference revise",
        ),
        rerun("Preempted instance, re-run automatically", Effect::SameKey, "a new task id"),
        rerun("New build", Effect::NewKey, "a new CIRRUS_BUILD_ID"),
    ],
};

fn read(env: &Env, _overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let repository = env.get("CIRRUS_REPO_FULL_NAME");
    if repository.is_none() {
        reading.missing.push(Missing::Scope("CIRRUS_REPO_FULL_NAME"));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, repository)?,
        "CIRRUS_REPO_FULL_NAME",
        "a build belongs to one repository; its id is unique by itself",
    ));
    let why = "stays when tasks are re-run; new for every new build";
    partition::run(TITLE, env, &mut reading, "CIRRUS_BUILD_ID", why)?;
    let why = "the task's name; tasks of a matrix share it unless it holds the matrix' value, so put the value into the \
               name or pass it as --variant, and a part of a split as --shard";
    partition::job(TITLE, env, &mut reading, &["CIRRUS_TASK_NAME"], "CIRRUS_TASK_NAME", why)?;
    reading.executor = executor(env, &["CIRRUS_TASK_ID"], "CIRRUS_TASK_ID", "names this execution of the task");
    Ok(reading)
}

fn context(env: &Env) -> Context {
    Context {
        workflow: None,
        run_counter: None,
        commit: env.get("CIRRUS_CHANGE_IN_REPO").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.get("CIRRUS_BRANCH").map(str::to_owned),
        pull_request: env.get("CIRRUS_PR").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("CIRRUS_BUILD_ID").map(|build| format!("https://cirrus-ci.com/build/{build}")),
        repository: env.get("CIRRUS_REPO_FULL_NAME").map(str::to_owned),
    }
}
