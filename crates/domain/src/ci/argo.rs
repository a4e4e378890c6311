//! Argo Workflows: <https://argo-workflows.readthedocs.io/en/latest/variables/>. All that names the run are expressions
//! of its templates, so it is only named, never recognised. Must not know other platforms.

use super::platform::{Effect, Platform, Reading, Strength, renewed, rerun};
use super::{Env, IdentityError, Overrides, unmarked};

const HOW: &str = "Write the expressions into the template's args: --run \"{{workflow.namespace}}/{{workflow.uid}}\" --job \
                   NAME (the task's name, by hand) --shard \"N/TOTAL\" with N from {{item}}, counted from 1. No \
                   --attempt: {{retries}} starts again from 0 when the workflow is retried, as far as is known, and a lower \
                   attempt never counts; --on-difference revise lets a retry count. Never {{pod.name}}, \
                   {{node.name}} or HOSTNAME: a retried pod has others, so its outcomes would be counted twice. \
                   {{workflow.name}} can be used again once it is deleted.";

pub(super) const PLATFORM: Platform = Platform {
    slug: "argo",
    title: "Argo Workflows",
    markers: &[],
    fallback: &[],
    imitates: &[],
    strength: Strength::None,
    read,
    left_out: &[
        renewed("HOSTNAME", "the pod's name: a retry has another"),
        renewed("ARGO_NODE_ID", "a retry has another"),
        renewed("ARGO_POD_NAME", "a retry has another"),
    ],
    reruns: &[
        rerun("retryStrategy of a template", Effect::SameKey, "pod and node change, {{retries}} rises"),
        rerun("argo retry", Effect::SameKey, "the workflow stays, its failed nodes run again"),
        rerun(
            "argo resubmit",
            Effect::NewKey,
            "a new workflow with a new uid; with --memoized it is rather a retry: then pass a run of your own",
        ),
        rerun("Node or pod lost", Effect::SameKey, "the template's retryStrategy decides"),
    ],
};

fn read(_env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    Ok(unmarked::reading(overrides, HOW))
}
