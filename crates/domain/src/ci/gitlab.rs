//! GitLab CI: <https://docs.gitlab.com/ci/variables/predefined_variables/>.
//! Must not know other platforms.

use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, parsed, renewed, rerun, scope, server_of,
    shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, Executor, JobName, Ordinal, RunId, ShardRef, Variant, WorkflowName};
use crate::push::OrdinalScope;

const TITLE: &str = "GitLab CI";
const SLUG: &str = "gitlab";
const PUBLIC_SERVER: &str = "gitlab.com";
const DEFAULT_PIPELINE_FILE: &str = ".gitlab-ci.yml";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("GITLAB_CI", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: &[
        renewed("CI_JOB_ID", "new for every retry: it orders deliveries (ordinal) and names the execution (executor)"),
        renewed("CI_JOB_URL", "ends in the job id, which is new for every retry"),
        renewed("CI_JOB_STARTED_AT", "the time of one attempt"),
        renewed("CI_RUNNER_ID", "a retry may get another runner"),
        renewed("CI_CONCURRENT_ID", "the runner's slot, new for every retry"),
        renewed("CI_CONCURRENT_PROJECT_ID", "the runner's slot, new for every retry"),
        renewed("GITLAB_USER_LOGIN", "becomes the person who pressed retry"),
        renewed("GITLAB_USER_ID", "becomes the person who pressed retry"),
        shared("CI_PIPELINE_IID", "a counter of the project, not unique on the server"),
        shared("CI_JOB_STAGE", "many jobs share a stage"),
        shared("CI_COMMIT_SHA", "two pipelines of one commit would collapse into one"),
    ],
    reruns: &[
        rerun("Retry button on a job", Effect::SameKey, "a copy of the job with a new CI_JOB_ID"),
        rerun("Retry button on the pipeline", Effect::SameKey, "a copy of each failed job"),
        rerun("retry: keyword", Effect::SameKey, "a copy of the job, made automatically"),
        rerun("Running a manual job again", Effect::SameKey, "for a wanted second execution give --round"),
        rerun("Retry inside a child pipeline", Effect::SameKey, "the child's pipeline id stays"),
        rerun("Run new pipeline, schedule, push, API", Effect::NewKey, "a new CI_PIPELINE_ID"),
        rerun(
            "Branch and merge request pipeline of one commit",
            Effect::NewKey,
            "two pipelines from the start: they are two rounds",
        ),
        rerun(
            "Retry of a trigger job",
            Effect::YouDecide,
            "makes another child pipeline: forward the parent's CI_PIPELINE_ID as a variable and pass it as --run",
        ),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let host = env.first(&["CI_SERVER_HOST", "CI_SERVER_URL"]).and_then(|(_, host)| server_of(host));
    if host.is_none() {
        reading.missing.push(Missing::Scope("CI_SERVER_HOST"));
    }
    let path = env.get("CI_PROJECT_PATH");
    if path.is_none() {
        reading.missing.push(Missing::Scope("CI_PROJECT_PATH"));
    }
    let server = host.filter(|host| host != PUBLIC_SERVER);
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), path)?,
        "CI_SERVER_HOST, CI_PROJECT_PATH",
        "pipeline ids are unique within one server; the project makes the key readable",
    ));
    match env.get("CI_PIPELINE_ID") {
        Some(run) => {
            reading.run = Some(Found::new(
                parsed(TITLE, "CI_PIPELINE_ID", run, RunId::parse)?,
                "CI_PIPELINE_ID",
                "stays through every retry in the pipeline; new for every new pipeline",
            ));
        }
        None => reading.missing.push(Missing::Run("CI_PIPELINE_ID")),
    }
    match env.get("CI_JOB_NAME") {
        Some(name) => read_job(env, name, &mut reading)?,
        None => reading.missing.push(Missing::Job("CI_JOB_NAME")),
    }
    if let Some(job_id) = env.get("CI_JOB_ID") {
        // Ids of different jobs rise in the order in which the jobs were made, which says nothing about retries.
        reading.ordinal_scope = OrdinalScope::Key;
        reading.ordinal = job_id
            .parse()
            .ok()
            .map(|id| Found::new(Ordinal(id), "CI_JOB_ID", "a retry is a copy of the job with a higher id"));
        reading.executor =
            Executor::parse(job_id).ok().map(|id| Found::new(id, "CI_JOB_ID", "names this execution of the job"));
    }
    if env.get("CI_PIPELINE_SOURCE") == Some("parent_pipeline") && overrides.run.is_none() {
        reading.warnings.push(
            "this is a child pipeline: if its trigger job is retried, GitLab makes another one with another id, and its \
             outcomes count as a new run. Forward the parent's CI_PIPELINE_ID as a variable and pass it as --run"
                .to_owned(),
        );
    }
    Ok(reading)
}

/// The job's name without its partition, which becomes shard or variant: `rspec 1/3`, `rspec: [ruby32, pg16]`.
fn read_job(env: &Env, name: &str, reading: &mut Reading) -> Result<(), IdentityError> {
    const NODE: &str = "CI_NODE_INDEX, CI_NODE_TOTAL";
    const SHARD_WHY: &str = "the job's part of parallel: N, the same when it is retried";
    let node = node(env, reading)?;
    let (job, shard) = if let Some((job, cell)) = split_cell(name) {
        let variant = Variant::from_pairs([("matrix", cell)]).map_err(|source| IdentityError::BadVariable {
            platform: TITLE,
            variable: "CI_JOB_NAME",
            source,
        })?;
        let why = "the cell of parallel:matrix, the same when it is retried";
        reading.variant = Some(Found::new(variant, "CI_JOB_NAME", why));
        if node.is_some() {
            // Else each variant would wait for the shards that the other cells have.
            let why = "the place of the cell in its matrix; the variant names the cell already";
            reading.left_out.push(shared("CI_NODE_INDEX", why));
        }
        // GitLab counts the cells as it counts shards, so one that never pushed is missed.
        reading.expect = node.and_then(ShardRef::total);
        (job, None)
    } else {
        match (split_shard(name), node) {
            (Some((job, shard)), None) => (job, Some(Found::new(shard, "CI_JOB_NAME", SHARD_WHY))),
            (Some((job, shard)), Some(node)) if shard == node => (job, Some(Found::new(shard, NODE, SHARD_WHY))),
            (_, Some(node)) => (name, Some(Found::new(node, NODE, SHARD_WHY))),
            (None, None) => (name, None),
        }
    };
    reading.shard = shard;
    reading.job = Some(Found::new(
        parsed(TITLE, "CI_JOB_NAME", job, JobName::parse)?,
        "CI_JOB_NAME",
        "the job's name in the pipeline, without its partition",
    ));
    Ok(())
}

/// The shard that the variables give. `CI_NODE_TOTAL` is 1 for a job that isn't parallel.
fn node(env: &Env, reading: &mut Reading) -> Result<Option<ShardRef>, IdentityError> {
    let total = env.get("CI_NODE_TOTAL");
    let Some(index) = env.get("CI_NODE_INDEX") else {
        if total.is_some_and(|total| total != "1") {
            reading.warnings.push(
                "CI_NODE_TOTAL says that this job is parallel, but CI_NODE_INDEX is not set: pass --shard I/N"
                    .to_owned(),
            );
        }
        return Ok(None);
    };
    if total.is_none() {
        reading.warnings.push("CI_NODE_INDEX is set without CI_NODE_TOTAL: the number of shards is unknown".to_owned());
    }
    let text = total.map_or_else(|| index.to_owned(), |total| format!("{index}/{total}"));
    parsed(TITLE, "CI_NODE_INDEX", &text, ShardRef::parse).map(Some)
}

/// `rspec: [ruby32, pg16]` is `rspec` and `ruby32, pg16`.
fn split_cell(name: &str) -> Option<(&str, &str)> {
    let (job, cell) = name.strip_suffix(']')?.split_once(": [")?;
    (!job.trim().is_empty() && !cell.trim().is_empty()).then_some((job, cell))
}

/// `rspec 1/3` is `rspec` and shard 1/3. Other spellings of the numbers stay in the name, where they tell jobs apart.
fn split_shard(name: &str) -> Option<(&str, ShardRef)> {
    let (job, place) = name.rsplit_once(' ')?;
    let shard = ShardRef::parse(place).ok()?;
    let canonical = shard.total().is_some() && shard.to_string() == place;
    (canonical && !job.trim().is_empty()).then_some((job, shard))
}

fn context(env: &Env) -> Context {
    Context {
        workflow: workflow(env),
        run_counter: env.get("CI_PIPELINE_IID").and_then(|number| number.parse().ok()),
        commit: env.get("CI_COMMIT_SHA").and_then(|sha| Commit::parse(sha).ok()),
        branch: env
            .first(&["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME"])
            .map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("CI_MERGE_REQUEST_IID").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("CI_PIPELINE_URL").map(str::to_owned),
        repository: env.get("CI_PROJECT_PATH").map(str::to_owned),
    }
}

/// The pipeline's file. One file holds what other platforms keep in several: pipelines by schedule and those that
/// another pipeline starts usually run other jobs, so they are workflows of their own, or a nightly round would
/// displace that of a push. Those by push, hand and API run the same jobs and follow one another.
fn workflow(env: &Env) -> Option<WorkflowName> {
    let file = env.get("CI_CONFIG_PATH").unwrap_or(DEFAULT_PIPELINE_FILE);
    let apart = ["schedule", "parent_pipeline", "pipeline"];
    let text = match env.get("CI_PIPELINE_SOURCE").filter(|source| apart.contains(source)) {
        Some(source) => format!("{file}#{source}"),
        None => file.to_owned(),
    };
    WorkflowName::parse(&text).ok()
}
