//! GitHub Actions: <https://docs.github.com/en/actions/reference/workflows-and-actions/variables>.
//! Must not know other platforms; Gitea and Forgejo, which imitate it, are told apart before.

use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, parsed, renewed, rerun, scope, server_of,
    shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, Executor, JobName, Ordinal, RunId, WorkflowName};

const TITLE: &str = "GitHub Actions";
const SLUG: &str = "github";
const PUBLIC_SERVER: &str = "github.com";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("GITHUB_ACTIONS", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read: Some(read),
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
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let server = env.get("GITHUB_SERVER_URL").and_then(server_of).filter(|server| server != PUBLIC_SERVER);
    let repository = env.get("GITHUB_REPOSITORY");
    if repository.is_none() {
        reading.missing.push(Missing::Scope("GITHUB_REPOSITORY"));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), repository)?,
        "GITHUB_SERVER_URL, GITHUB_REPOSITORY",
        "run ids are unique within one repository of one server",
    ));
    match env.get("GITHUB_RUN_ID") {
        Some(run) => {
            reading.run = Some(Found::new(
                parsed(TITLE, "GITHUB_RUN_ID", run, RunId::parse)?,
                "GITHUB_RUN_ID",
                "stays when the run or its jobs are re-run; new for every new run",
            ));
        }
        None => reading.missing.push(Missing::Run("GITHUB_RUN_ID")),
    }
    match env.get("GITHUB_JOB") {
        Some(job) => {
            reading.job = Some(Found::new(
                parsed(TITLE, "GITHUB_JOB", job, JobName::parse)?,
                "GITHUB_JOB",
                "the job's key in the workflow file; the same in every cell of a matrix",
            ));
        }
        None => reading.missing.push(Missing::Job("GITHUB_JOB")),
    }
    reading.ordinal = env
        .get("GITHUB_RUN_ATTEMPT")
        .and_then(|attempt| attempt.parse().ok())
        .map(|attempt| Found::new(Ordinal(attempt), "GITHUB_RUN_ATTEMPT", "rises with every re-run"));
    reading.executor = executor(env);
    reading.warnings.extend(matrix_warning(env, overrides));
    if reading.context.unnumbered_change {
        reading.warnings.push(
            "a pull request without a number in GITHUB_REF (pull_request_target?): the cycle is named after its branch; \
             pass --cycle pr-N with the number from github.event.pull_request.number"
                .to_owned(),
        );
    }
    Ok(reading)
}

fn executor(env: &Env) -> Option<Found<Executor>> {
    let parts = [env.get("RUNNER_TRACKING_ID"), env.get("RUNNER_NAME")];
    let text = parts.iter().flatten().copied().collect::<Vec<_>>().join(" ");
    let executor = Executor::parse(&text).ok()?;
    Some(Found::new(executor, "RUNNER_TRACKING_ID, RUNNER_NAME", "names this execution of the job"))
}

/// The environment does not tell the cells of a matrix apart; the tail of this id at least shows that there are some.
fn matrix_warning(env: &Env, overrides: &Overrides) -> Option<String> {
    let (_, cell) = env.get("ACTIONS_ORCHESTRATION_ID")?.split_once('.')?.1.split_once('.')?;
    let told_apart = overrides.shard.is_some() || overrides.variant.is_some();
    if told_apart || cell == "__default" || cell.ends_with(".__default") {
        return None;
    }
    Some(format!(
        "this job looks like one cell of a matrix ({cell}), and neither --shard nor --variant is given: all cells would \
         share one key, and the second would be refused as a collision. Pass the matrix values, for example \
         --shard ${{{{ matrix.shard }}}} or --variant os=${{{{ matrix.os }}}}"
    ))
}

fn context(env: &Env) -> Context {
    let repository = env.get("GITHUB_REPOSITORY");
    let number = env
        .get("GITHUB_REF")
        .and_then(|git_ref| git_ref.strip_prefix("refs/pull/"))
        .and_then(|rest| rest.split('/').next())
        .filter(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    let run_url = match (env.get("GITHUB_SERVER_URL"), repository, env.get("GITHUB_RUN_ID")) {
        (Some(server), Some(repository), Some(run)) => {
            Some(format!("{}/{repository}/actions/runs/{run}", server.trim_end_matches('/')))
        }
        _ => None,
    };
    // The path of the file; the part after `@` is the branch, which would make every branch another workflow.
    let workflow = env
        .get("GITHUB_WORKFLOW_REF")
        .map(|file| file.split_once("@refs/").or_else(|| file.rsplit_once('@')).map_or(file, |(path, _)| path))
        .or_else(|| env.get("GITHUB_WORKFLOW"));
    Context {
        workflow: workflow.and_then(|text| WorkflowName::parse(text).ok()),
        run_counter: env.get("GITHUB_RUN_NUMBER").and_then(|number| number.parse().ok()),
        commit: env.get("GITHUB_SHA").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.first(&["GITHUB_HEAD_REF", "GITHUB_REF_NAME"]).map(|(_, branch)| branch.to_owned()),
        pull_request: number.map(str::to_owned),
        unnumbered_change: number.is_none() && env.has("GITHUB_HEAD_REF"),
        run_url,
        repository: repository.map(str::to_owned),
    }
}
