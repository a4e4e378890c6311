//! Taskcluster: <https://docs.taskcluster.net/docs/manual/tasks/runs>. Its word `run` is our attempt.
//! Must not know other platforms.

use super::partition::{self, executor};
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, renewed, rerun, scope, server_of,
};
use super::{Env, IdentityError, Overrides};
use crate::push::OrdinalScope;

const TITLE: &str = "Taskcluster";
const SLUG: &str = "taskcluster";
/// With a run that several tasks share, nothing in the environment tells the tasks apart.
const NO_JOB: &str = "With --run all tasks of the group share the run, and the environment doesn't name the task: let the \
                      decision task put the task's label into its env and pass --job \"$LABEL\", and the chunk's number as \
                      --shard I/N. The attempt is then unknown too, and RUN_ID is none: it starts from 0 in a \
                      retriggered task. --on-difference revise lets a retry count.";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("TASK_ID"), Marker::Set("TASKCLUSTER_ROOT_URL")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: &[renewed("RUN_ID", "the attempt, in spite of its name: it orders deliveries (ordinal)")],
    reruns: &[
        rerun("Rerun task", Effect::SameKey, "RUN_ID rises"),
        rerun("Claim expired, worker shut down", Effect::SameKey, "RUN_ID rises"),
        rerun("Retrigger", Effect::NewKey, "a new TASK_ID"),
        rerun(
            "Several tasks of one group",
            Effect::YouDecide,
            "each task is a run, so a round, of its own; for one round pass the group's id as --run, and --job and --shard",
        ),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let server = env.get("TASKCLUSTER_ROOT_URL").and_then(server_of);
    if server.is_none() {
        reading.missing.push(Missing::Scope("TASKCLUSTER_ROOT_URL"));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), None)?,
        "TASKCLUSTER_ROOT_URL",
        "task ids are unique within one deployment",
    ));
    let why = "stays when the task is rerun or its worker is lost; new for every new task, so each task is a round of its \
               own unless --run names the group";
    partition::run(TITLE, env, &mut reading, "TASK_ID", why)?;
    let shared_run = overrides.run.as_ref().is_some_and(|run| Some(run.as_str()) != env.get("TASK_ID"));
    if shared_run {
        reading.missing.push(Missing::JobByDesign(NO_JOB));
    } else if overrides.run.is_none() {
        reading.warnings.push(
            "this task is a run of its own: if other tasks of its group push too, each is another round. Pass the group's \
             id as --run and the task's label as --job to make them one; if this task is all, --run \"$TASK_ID\" says so"
                .to_owned(),
        );
    }
    partition::ordinal(env, &mut reading, "RUN_ID", OrdinalScope::Key, "rises with every rerun of the task, from 0");
    reading.executor = executor(env, &["TASK_ID", "RUN_ID"], "TASK_ID, RUN_ID", "names this execution of the task");
    Ok(reading)
}

/// Commit, branch and repository are whatever the decision task passes on, under names of its own.
fn context(env: &Env) -> Context {
    let run_url = match (env.get("TASKCLUSTER_ROOT_URL"), env.get("TASK_ID")) {
        (Some(root), Some(task)) => Some(format!("{}/tasks/{task}", root.trim_end_matches('/'))),
        _ => None,
    };
    Context { run_url, ..Context::default() }
}
