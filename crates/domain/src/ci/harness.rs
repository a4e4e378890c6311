//! Harness CI: <https://developer.harness.io/docs/continuous-integration/troubleshoot-ci/ci-env-var/>.
//! It sets Drone's names too. Must not know other platforms.

use super::partition::{self, Index};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, joined, rerun, scope, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, IdError, ShardRef, WorkflowName};

const TITLE: &str = "Harness CI";
const SLUG: &str = "harness";
const SCOPE: [&str; 4] = ["HARNESS_ACCOUNT_ID", "HARNESS_ORG_ID", "HARNESS_PROJECT_ID", "HARNESS_PIPELINE_ID"];
const EXECUTION: &str = "HARNESS_EXECUTION_ID";
const BUILD: &str = "HARNESS_BUILD_ID";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set(BUILD)],
    fallback: &[Marker::Set(EXECUTION)],
    imitates: &["drone"],
    strength: Strength::Weak,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] =
    &[shared("DRONE_BUILD_NUMBER", "counts per pipeline; the execution's id names it everywhere")];

const RERUNS: &[Rerun] = &[
    rerun(
        "Retry of a failed execution from a stage",
        Effect::YouDecide,
        "another execution id, as far as is known: give the pipeline a runtime input that the retry keeps, and pass it as \
         --run",
    ),
    rerun("Rerun pipeline", Effect::NewKey, "a new execution id"),
    rerun("Failure strategy: step or stage tried again", Effect::SameKey, "nothing is known to change"),
    rerun("Run, trigger", Effect::NewKey, "a new execution id"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    reading.missing.extend(SCOPE.into_iter().filter(|variable| !env.has(variable)).map(Missing::Scope));
    let path: Vec<&str> = SCOPE.iter().filter_map(|variable| env.get(variable)).collect();
    let path = Some(joined(&path)).filter(|path| !path.is_empty());
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, path.as_deref())?,
        "HARNESS_ACCOUNT_ID, HARNESS_ORG_ID, HARNESS_PROJECT_ID, HARNESS_PIPELINE_ID",
        "executions are told apart within their pipeline",
    ));
    if env.has(EXECUTION) || !env.has(BUILD) {
        let why =
            "the same in all stages; new for every new execution, and as far as is known for a retry from a stage";
        partition::run(TITLE, env, &mut reading, EXECUTION, why)?;
        reading
            .left_out
            .extend(env.has(BUILD).then(|| shared(BUILD, "counts per pipeline; the execution is named already")));
    } else {
        let why = "the same in all stages; counts up with every execution of the pipeline";
        partition::run(TITLE, env, &mut reading, BUILD, why)?;
        if overrides.run.is_none() {
            reading.warnings.push(format!(
                "{EXECUTION} is not set, so {BUILD} names the run: a step of this execution that has both would count as \
                 another run"
            ));
        }
    }
    partition::job(
        TITLE,
        env,
        &mut reading,
        &["HARNESS_STAGE_ID", "DRONE_STEP_NAME"],
        "HARNESS_STAGE_ID, DRONE_STEP_NAME",
        "the stage's id and the step's name in the pipeline; values of a matrix need --variant",
    )?;
    read_shard(env, overrides, &mut reading)?;
    Ok(reading)
}

/// The place in the loop around the step; in two loops around each other the place among all their rounds.
fn read_shard(env: &Env, overrides: &Overrides, reading: &mut Reading) -> Result<(), IdentityError> {
    let index = |index, total, source| Index {
        index,
        total: Some(total),
        base: 0,
        source,
        why: "the place plus 1 in the strategy's loop, the same when the step is tried again",
    };
    let both = "HARNESS_STAGE_INDEX, HARNESS_STAGE_TOTAL, HARNESS_STEP_INDEX, HARNESS_STEP_TOTAL";
    let stages = index("HARNESS_STAGE_INDEX", "HARNESS_STAGE_TOTAL", both);
    let steps = index("HARNESS_STEP_INDEX", "HARNESS_STEP_TOTAL", both);
    let nodes = index("HARNESS_NODE_INDEX", "HARNESS_NODE_TOTAL", "HARNESS_NODE_INDEX, HARNESS_NODE_TOTAL");
    if !env.has(stages.index) || !env.has(steps.index) {
        return partition::shard(TITLE, env, overrides, reading, nodes);
    }
    partition::shard(TITLE, env, overrides, reading, stages)?;
    let stage = reading.shard.take();
    partition::shard(TITLE, env, overrides, reading, steps)?;
    let (Some(outer), Some(inner)) = (&stage, &reading.shard) else {
        reading.shard = stage.or(reading.shard.take());
        return Ok(());
    };
    let (outer, inner) = (outer.value, inner.value);
    let place = |steps: u32| (outer.index() - 1).checked_mul(steps)?.checked_add(inner.index());
    let shard = inner.total().and_then(|steps| {
        let total = outer.total().and_then(|stages| stages.checked_mul(steps));
        ShardRef::new(place(steps)?, total).ok()
    });
    let bad = || IdError::BadShard { text: format!("{outer} of stages, {inner} of steps") };
    let shard = shard.ok_or_else(|| IdentityError::BadVariable { platform: TITLE, variable: both, source: bad() })?;
    reading.shard = Some(Found::new(shard, both, stages.why));
    Ok(())
}

fn context(env: &Env) -> Context {
    Context {
        workflow: env.get("HARNESS_PIPELINE_ID").and_then(|id| WorkflowName::parse(id).ok()),
        run_counter: env.first(&[BUILD, "DRONE_BUILD_NUMBER"]).and_then(|(_, number)| number.parse().ok()),
        commit: env.get("DRONE_COMMIT_SHA").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.first(&["DRONE_SOURCE_BRANCH", "DRONE_BRANCH"]).map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("DRONE_PULL_REQUEST").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("CI_BUILD_LINK").map(str::to_owned),
        repository: env.get("DRONE_REPO").map(str::to_owned),
    }
}
