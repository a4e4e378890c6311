//! What GitHub Actions and the servers that imitate it read alike. Must not know how they are told apart.

use super::platform::{Context, Found, Missing, Reading, parsed, scope, server_of};
use super::{Env, IdentityError, Overrides, matrix};
use crate::id::{Commit, JobName, Ordinal, RunId, WorkflowName};
use crate::push::OrdinalScope;

/// Where one of them differs from the others.
#[derive(Debug)]
pub(super) struct Dialect {
    pub(super) title: &'static str,
    pub(super) slug: &'static str,
    /// The server that is left out of the key; none if every server is one of many, with ids that start at 1.
    pub(super) public_server: Option<&'static str>,
    /// The variables of each part; the first that is set counts.
    pub(super) server: &'static [&'static str],
    pub(super) repository: &'static [&'static str],
    pub(super) run: &'static [&'static str],
    pub(super) job: &'static [&'static str],
    pub(super) scope_why: &'static str,
    pub(super) run_why: &'static str,
    pub(super) ordinal_why: &'static str,
    pub(super) ordinal_scope: OrdinalScope,
    /// The variable that ends the address of the run's page.
    pub(super) page: &'static str,
}

const JOB_WHY: &str = "the job's key in the workflow file; the same in every cell of a matrix, which --shard and --variant \
                       tell apart, and in every call of a reusable workflow, which --job tells apart";

/// Everything but the executor.
pub(super) fn read(dialect: &Dialect, env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let title = dialect.title;
    let mut reading = Reading { context: context(dialect, env), ..Reading::default() };
    let server = env.first(dialect.server).and_then(|(_, url)| server_of(url));
    if server.is_none() && dialect.public_server.is_none() {
        reading.missing.push(Missing::Scope("GITHUB_SERVER_URL"));
    }
    let repository = env.first(dialect.repository).map(|(_, path)| path);
    if repository.is_none() {
        reading.missing.push(Missing::Scope("GITHUB_REPOSITORY"));
    }
    let server = server.filter(|server| Some(server.as_str()) != dialect.public_server);
    reading.scope = Some(Found::new(
        scope(title, dialect.slug, server.as_deref(), repository)?,
        "GITHUB_SERVER_URL, GITHUB_REPOSITORY",
        dialect.scope_why,
    ));
    match env.first(dialect.run) {
        Some((variable, run)) => {
            let run = parsed(title, variable, run, RunId::parse)?;
            reading.run = Some(Found::new(run, variable, dialect.run_why));
        }
        None => reading.missing.push(Missing::Run("GITHUB_RUN_ID")),
    }
    match env.first(dialect.job) {
        Some((variable, job)) => {
            let job = parsed(title, variable, job, JobName::parse)?;
            reading.job = Some(Found::new(job, variable, JOB_WHY));
        }
        None => reading.missing.push(Missing::Job("GITHUB_JOB")),
    }
    reading.ordinal_scope = dialect.ordinal_scope;
    reading.ordinal = env
        .get("GITHUB_RUN_ATTEMPT")
        .and_then(|attempt| attempt.parse().ok())
        .map(|attempt| Found::new(Ordinal(attempt), "GITHUB_RUN_ATTEMPT", dialect.ordinal_why));
    matrix::read(title, env, overrides, &mut reading)?;
    if reading.context.unnumbered_change {
        reading.warnings.push(
            "a pull request without a number in GITHUB_REF (pull_request_target?): the cycle is named after its branch; \
             pass --cycle pr-N with the number from github.event.pull_request.number"
                .to_owned(),
        );
    }
    Ok(reading)
}

fn context(dialect: &Dialect, env: &Env) -> Context {
    let repository = env.first(dialect.repository).map(|(_, path)| path);
    let number = env
        .get("GITHUB_REF")
        .and_then(|git_ref| git_ref.strip_prefix("refs/pull/"))
        .and_then(|rest| rest.split('/').next())
        .filter(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
    let run_url = match (env.first(dialect.server), repository, env.get(dialect.page)) {
        (Some((_, server)), Some(repository), Some(run)) => {
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
