//! Tekton: <https://tekton.dev/docs/pipelines/variables/>. All that names the run are substitutions of its specs, so it
//! is only named, never recognised. Must not know other platforms.

use super::platform::{Effect, Platform, Reading, Strength, renewed, rerun};
use super::{Env, IdentityError, Overrides, unmarked};

const HOW: &str = "In the pipeline's spec give the task parameters with the values $(context.pipelineRun.uid) and the \
                   pipeline task's name, and pass them in the step: --run \"$(params.run)\" --job \"$(params.job)\", the \
                   matrix parameter as --shard or --variant, --attempt \"$(context.task.retry-count)\". The task alone \
                   knows $(context.taskRun.uid) only, which no other task of the run shares. Never the pod's name or \
                   HOSTNAME: a retry has another.";

pub(super) const PLATFORM: Platform = Platform {
    slug: "tekton",
    title: "Tekton",
    markers: &[],
    fallback: &[],
    imitates: &[],
    strength: Strength::None,
    read,
    left_out: &[renewed("HOSTNAME", "the pod's name: a retry has another")],
    reruns: &[
        rerun("retries: of a pipeline task", Effect::SameKey, "a new pod, the retry count rises"),
        rerun(
            "New PipelineRun (tkn with --use-pipelinerun, rerun in a dashboard)",
            Effect::NewKey,
            "a new uid of the pipeline run",
        ),
        rerun(
            "Pod evicted",
            Effect::YouDecide,
            "the task's run fails and falls under its retries, as far as is known; without retries somebody starts a new \
             PipelineRun: for a retry pass a run of your own as --run",
        ),
    ],
};

fn read(_env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    Ok(unmarked::reading(overrides, HOW))
}
