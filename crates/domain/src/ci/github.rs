//! GitHub Actions: <https://docs.github.com/en/actions/reference/workflows-and-actions/variables>.
//! Must not know other platforms; Gitea and Forgejo, which imitate it, are told apart before.

use super::actions::{self, Dialect};
use super::partition::executor;
use super::platform::{Effect, Marker, Platform, Reading, Strength, renewed, rerun, shared};
use super::{Env, IdentityError, Overrides};
use crate::push::OrdinalScope;

const DIALECT: Dialect = Dialect {
    title: "GitHub Actions",
    slug: "github",
    public_server: Some("github.com"),
    server: &["GITHUB_SERVER_URL"],
    repository: &["GITHUB_REPOSITORY"],
    run: &["GITHUB_RUN_ID"],
    job: &["GITHUB_JOB"],
    scope_why: "run ids are unique within one repository of one server",
    run_why: "stays when the run or its jobs are re-run; new for every new run",
    ordinal_why: "rises with every re-run",
    ordinal_scope: OrdinalScope::Round,
    page: "GITHUB_RUN_ID",
};

pub(super) const PLATFORM: Platform = Platform {
    slug: DIALECT.slug,
    title: DIALECT.title,
    markers: &[Marker::Is("GITHUB_ACTIONS", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: &[
        renewed(
            "GITHUB_RUN_ATTEMPT",
            "rises with every re-run: it orders deliveries (ordinal), a retry stays one write",
        ),
        renewed("RUNNER_TRACKING_ID", "names one execution of the job (executor)"),
        renewed("RUNNER_NAME", "a re-run may get another runner (executor)"),
        renewed("GITHUB_TRIGGERING_ACTOR", "whoever pressed re-run"),
        renewed("ACTIONS_ORCHESTRATION_ID", "may change with every attempt; its tail only hints at a matrix"),
        shared("GITHUB_RUN_NUMBER", "counts per workflow, so two workflows share numbers"),
        shared("GITHUB_WORKFLOW", "a free name, and the caller's in a reusable workflow"),
        shared("GITHUB_ACTION", "the same in every job"),
        shared("GITHUB_SHA", "two runs of one commit would collapse into one"),
    ],
    reruns: &[
        rerun("Re-run all jobs", Effect::SameKey, "the attempt rises; for a wanted second execution give --round"),
        rerun("Re-run failed jobs", Effect::SameKey, "the attempt rises; only failed jobs and their dependants run"),
        rerun("Re-run one job", Effect::SameKey, "the attempt rises"),
        rerun("Re-run by a bot through the API", Effect::SameKey, "the attempt rises"),
        rerun("Retry inside a step", Effect::SameKey, "nothing changes, the attempt neither"),
        rerun("New push, schedule, workflow_dispatch", Effect::NewKey, "a new run id"),
        rerun("push and pull_request for one commit", Effect::NewKey, "two runs with two ids: they are two rounds"),
        rerun(
            "Reporter in a workflow_run workflow",
            Effect::YouDecide,
            "has a run id of its own: pass --run ${{ github.event.workflow_run.id }}",
        ),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = actions::read(&DIALECT, env, overrides)?;
    let names = ["RUNNER_TRACKING_ID", "RUNNER_NAME"];
    reading.executor = executor(env, &names, "RUNNER_TRACKING_ID, RUNNER_NAME", "names this execution of the job");
    reading.warnings.extend(matrix_warning(env, overrides, &reading));
    Ok(reading)
}

/// The environment does not tell the cells of a matrix apart; the tail of this id at least shows that there are some.
fn matrix_warning(env: &Env, overrides: &Overrides, reading: &Reading) -> Option<String> {
    let (_, cell) = env.get("ACTIONS_ORCHESTRATION_ID")?.split_once('.')?.1.split_once('.')?;
    let by_flag = overrides.shard.is_some() || overrides.variant.is_some();
    let told_apart = by_flag || reading.shard.is_some() || reading.variant.is_some();
    if told_apart || cell == "__default" || cell.ends_with(".__default") {
        return None;
    }
    Some(format!(
        "this job looks like one cell of a matrix ({cell}), and neither --shard nor --variant is given: all cells would \
         share one key, and the second would be refused as a collision. Pass the matrix values, for example \
         --shard ${{{{ matrix.shard }}}} or --variant os=${{{{ matrix.os }}}}"
    ))
}
