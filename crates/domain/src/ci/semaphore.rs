//! Semaphore: <https://docs.semaphoreci.com/reference/env-vars>. Must not know other platforms.

use super::partition::{self, Index, executor, warn_of_rerun};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, joined, parsed, renewed,
    rerun, scope, server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, JobName, WorkflowName};

const TITLE: &str = "Semaphore";
const SLUG: &str = "semaphore";
const PUBLIC_DOMAIN: &str = ".semaphoreci.com";
const JOB: [&str; 3] = ["SEMAPHORE_PIPELINE_NAME", "SEMAPHORE_BLOCK_NAME", "SEMAPHORE_JOB_NAME"];
const PARTS: Index = Index {
    index: "SEMAPHORE_JOB_INDEX",
    total: Some("SEMAPHORE_JOB_COUNT"),
    base: 1,
    source: "SEMAPHORE_JOB_INDEX, SEMAPHORE_JOB_COUNT",
    why: "the place in the job's parallelism, the same when failed jobs are rerun",
};

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("SEMAPHORE", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("SEMAPHORE_PIPELINE_ID", "new when failed jobs are rerun"),
    renewed("SEMAPHORE_JOB_ID", "new when failed jobs are rerun (executor)"),
    renewed("SEMAPHORE_PIPELINE_RERUN", "says that failed jobs are rerun"),
    renewed("SEMAPHORE_JOB_RERUN", "says that this job is rerun"),
    renewed("SEMAPHORE_JOB_CREATION_TIME", "a time"),
    shared("SEMAPHORE_WORKFLOW_NUMBER", "counts per project and branch or not, by version; the workflow's id is clear"),
    shared("SEMAPHORE_GIT_SHA", "two workflows of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun("Rerun failed jobs", Effect::SameKey, "the workflow's id stays; pipeline and job ids are new"),
    rerun(
        "Rerun workflow",
        Effect::NewKey,
        "a new workflow id and SEMAPHORE_WORKFLOW_RERUN; if it is a retry, pass --run with a value that both share",
    ),
    rerun("Push, schedule, API", Effect::NewKey, "a new workflow id"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let server = env.get("SEMAPHORE_ORGANIZATION_URL").and_then(server_of);
    let project = env.get("SEMAPHORE_PROJECT_NAME");
    for (variable, known) in
        [("SEMAPHORE_ORGANIZATION_URL", server.is_some()), ("SEMAPHORE_PROJECT_NAME", project.is_some())]
    {
        if !known {
            reading.missing.push(Missing::Scope(variable));
        }
    }
    let organisation = server.as_deref().and_then(|host| host.strip_suffix(PUBLIC_DOMAIN)).map(str::to_owned);
    let server = server.filter(|_| organisation.is_none());
    let path: Vec<&str> = organisation.as_deref().into_iter().chain(project).collect();
    let path = Some(joined(&path)).filter(|path| !path.is_empty());
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), path.as_deref())?,
        "SEMAPHORE_ORGANIZATION_URL, SEMAPHORE_PROJECT_NAME",
        "the workflow's id is unique by itself; organisation and project make the key readable",
    ));
    let why = "stays when failed jobs are rerun; new for every new workflow, and when the workflow is rerun";
    partition::run(TITLE, env, &mut reading, "SEMAPHORE_WORKFLOW_ID", why)?;
    read_job(env, &mut reading)?;
    partition::shard(TITLE, env, overrides, &mut reading, PARTS)?;
    reading.executor = executor(env, &["SEMAPHORE_JOB_ID"], "SEMAPHORE_JOB_ID", "names this execution of the job");
    if env.says_true("SEMAPHORE_WORKFLOW_RERUN") {
        let earlier = "an earlier workflow (SEMAPHORE_WORKFLOW_RERUN)";
        warn_of_rerun(overrides, &mut reading, earlier, "with the same value in both if it is a retry");
    }
    Ok(reading)
}

/// Pipeline, block and job, the job without its part: `rspec - 1/4` in part 1 of 4 is `rspec`. Otherwise the ending
/// stays, where it tells jobs apart.
fn read_job(env: &Env, reading: &mut Reading) -> Result<(), IdentityError> {
    let [Some(pipeline), Some(block), Some(name)] = JOB.map(|variable| env.get(variable)) else {
        reading.missing.extend(JOB.into_iter().find(|variable| !env.has(variable)).map(Missing::Job));
        return Ok(());
    };
    let part = env.get(PARTS.index).zip(PARTS.total.and_then(|total| env.get(total)));
    let ending = part.filter(|(_, total)| *total != "1").map(|(index, total)| format!(" - {index}/{total}"));
    let stem = ending.and_then(|ending| name.strip_suffix(&ending)).map(str::trim_end);
    let job = joined(&[pipeline, block, stem.filter(|stem| !stem.is_empty()).unwrap_or(name)]);
    reading.job = Some(Found::new(
        parsed(TITLE, "SEMAPHORE_JOB_NAME", &job, JobName::parse)?,
        "SEMAPHORE_PIPELINE_NAME, SEMAPHORE_BLOCK_NAME, SEMAPHORE_JOB_NAME",
        "pipeline, block and job as they are called in the file; a matrix has its values in the job's name",
    ));
    Ok(())
}

fn context(env: &Env) -> Context {
    let project = env.get("SEMAPHORE_PROJECT_NAME");
    // A workflow is all pipelines that follow from one start; those by schedule usually run other jobs.
    let workflow = project.map(|project| {
        let scheduled = env.says_true("SEMAPHORE_WORKFLOW_TRIGGERED_BY_SCHEDULE");
        if scheduled { format!("{project}#schedule") } else { project.to_owned() }
    });
    let page = env.get("SEMAPHORE_ORGANIZATION_URL").zip(env.get("SEMAPHORE_WORKFLOW_ID"));
    let commit = env.first(&["SEMAPHORE_GIT_PR_SHA", "SEMAPHORE_GIT_SHA"]);
    let branch = env.first(&["SEMAPHORE_GIT_PR_BRANCH", "SEMAPHORE_GIT_BRANCH"]);
    Context {
        workflow: workflow.and_then(|name| WorkflowName::parse(&name).ok()),
        run_counter: env.get("SEMAPHORE_WORKFLOW_NUMBER").and_then(|number| number.parse().ok()),
        commit: commit.and_then(|(_, sha)| Commit::parse(sha).ok()),
        branch: branch.map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("SEMAPHORE_GIT_PR_NUMBER").map(str::to_owned),
        unnumbered_change: false,
        run_url: page.map(|(url, id)| format!("{}/workflows/{id}", url.trim_end_matches('/'))),
        repository: env.get("SEMAPHORE_GIT_REPO_SLUG").map(str::to_owned),
    }
}
