//! An indexed Kubernetes Job: it tells a pod its index and nothing about the run
//! (<https://kubernetes.io/docs/concepts/workloads/controllers/job/>).
//! Looked for last, since most CI runners are pods. Must not know other platforms.

use super::platform::{Effect, Found, Marker, Missing, Platform, Reading, Strength, renewed, rerun, scope};
use super::{Env, IdentityError, Overrides};
use crate::id::{Executor, IdError, ShardRef};

const TITLE: &str = "Kubernetes Job";
const SLUG: &str = "k8s";
const HOW: &str = "Give the container the Job's uid by the downward API (env RUN, valueFrom.fieldRef.fieldPath: \
                   metadata.labels['batch.kubernetes.io/controller-uid']) and pass --run \"$RUN\"; or pass the id of the \
                   pipeline run that launched the Job. Never the pod's name or uid: a replaced pod has others, so its \
                   outcomes would be counted twice. The job's name is in the label batch.kubernetes.io/job-name (--job), \
                   the number of shards in spec.completions (--shard I/N).";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("JOB_COMPLETION_INDEX")],
    fallback: &[],
    imitates: &[],
    strength: Strength::None,
    read,
    left_out: &[renewed("HOSTNAME", "the pod's name: a replaced pod has another (executor)")],
    reruns: &[
        rerun(
            "Pod failed, evicted, node drained: replaced",
            Effect::SameKey,
            "pod name and uid change, the Job's stays",
        ),
        rerun("backoffLimitPerIndex", Effect::SameKey, "pod name and uid change"),
        rerun("CronJob tick, Job created again", Effect::NewKey, "a new Job uid"),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { missing: vec![Missing::RunByDesign(HOW)], ..Reading::default() };
    reading.scope =
        Some(Found::new(scope(TITLE, SLUG, None, None)?, "JOB_COMPLETION_INDEX", "a Job's uid is unique by itself"));
    if let Some(index) = env.get("JOB_COMPLETION_INDEX") {
        reading.shard = Some(Found::new(
            shard(index)?,
            "JOB_COMPLETION_INDEX",
            "the index plus 1; a replaced pod gets the same, and another index is other work",
        ));
        if overrides.shard.is_none() {
            let warning =
                "the number of shards is not in the environment: pass --shard I/N, so that a missing one is seen";
            reading.warnings.push(warning.to_owned());
        }
    }
    reading.executor = env
        .get("HOSTNAME")
        .and_then(|name| Executor::parse(name).ok())
        .map(|pod| Found::new(pod, "HOSTNAME", "the pod of this execution"));
    Ok(reading)
}

fn shard(index: &str) -> Result<ShardRef, IdentityError> {
    let next = index.parse::<u32>().ok().and_then(|index| index.checked_add(1));
    next.ok_or_else(|| IdError::BadShard { text: index.to_owned() })
        .and_then(|next| ShardRef::new(next, None))
        .map_err(|source| IdentityError::BadVariable { platform: TITLE, variable: "JOB_COMPLETION_INDEX", source })
}
