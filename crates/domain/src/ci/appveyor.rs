//! `AppVeyor`: <https://www.appveyor.com/docs/environment-variables/>. Must not know other platforms.

use super::partition::{self, executor, warn_of_rerun};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, joined, parsed, renewed,
    rerun, scope, server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, JobName, Variant, WorkflowName};

const TITLE: &str = "AppVeyor";
const SLUG: &str = "appveyor";
const PUBLIC_SERVER: &str = "ci.appveyor.com";
const NAME: &str = "APPVEYOR_JOB_NAME";
const NUMBER: &str = "APPVEYOR_JOB_NUMBER";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("APPVEYOR")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("APPVEYOR_JOB_ID", "names one execution of the job (executor)"),
    renewed("APPVEYOR_RE_BUILD", "says that the build was started again"),
    renewed("APPVEYOR_FORCED_BUILD", "says how the build was started"),
    shared("APPVEYOR_BUILD_NUMBER", "can be set back"),
    shared("APPVEYOR_BUILD_VERSION", "a free text"),
    shared("APPVEYOR_REPO_COMMIT", "two builds of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun(
        "Re-build commit",
        Effect::YouDecide,
        "a new build id and APPVEYOR_RE_BUILD: pass --run with a value that both builds share, if it is a retry",
    ),
    rerun(
        "Re-run incomplete jobs",
        Effect::YouDecide,
        "not documented: if the build id stays, the key does; pass --run if it is to be a retry in any case",
    ),
    rerun("New build, push, schedule", Effect::NewKey, "a new build id"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let server = env.get("APPVEYOR_URL").and_then(server_of);
    if server.is_none() {
        reading.missing.push(Missing::Scope("APPVEYOR_URL"));
    }
    for variable in ["APPVEYOR_ACCOUNT_NAME", "APPVEYOR_PROJECT_SLUG"] {
        if !env.has(variable) {
            reading.missing.push(Missing::Scope(variable));
        }
    }
    let path = env.get("APPVEYOR_ACCOUNT_NAME").zip(env.get("APPVEYOR_PROJECT_SLUG"));
    let path = path.map(|(account, project)| format!("{account}/{project}"));
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref().filter(|server| *server != PUBLIC_SERVER), path.as_deref())?,
        "APPVEYOR_URL, APPVEYOR_ACCOUNT_NAME, APPVEYOR_PROJECT_SLUG",
        "build ids count within one server; the project makes the key readable",
    ));
    let why = "the same in all jobs of the build; new for every new build, and for a re-build";
    partition::run(TITLE, env, &mut reading, "APPVEYOR_BUILD_ID", why)?;
    read_job(env, &mut reading)?;
    reading.executor = executor(env, &["APPVEYOR_JOB_ID"], "APPVEYOR_JOB_ID", "names this execution of the job");
    if env.says_true("APPVEYOR_RE_BUILD") {
        let earlier = "an earlier build (APPVEYOR_RE_BUILD)";
        warn_of_rerun(overrides, &mut reading, earlier, "with the same value in both if it is a retry");
    }
    Ok(reading)
}

/// A cell of the matrix is called after its values, `Image: Ubuntu; Platform: x64`: that is a variant, and the job is
/// the whole of the build. Any other name is that of a job. Without one the job's number says which it is.
fn read_job(env: &Env, reading: &mut Reading) -> Result<(), IdentityError> {
    let job = match (env.get(NAME), env.get(NUMBER)) {
        (Some(cell), _) if cell.contains(": ") => {
            let variant = Variant::from_pairs([("matrix", cell)]);
            let variant =
                variant.map_err(|source| IdentityError::BadVariable { platform: TITLE, variable: NAME, source })?;
            reading.variant = Some(Found::new(
                variant,
                NAME,
                "the cell of the matrix, the same in every build; parts of a split job need --shard",
            ));
            return Ok(());
        }
        // A name of digits alone could be the number of a job without a name.
        (Some(name), Some(number)) if name.bytes().all(|b| b.is_ascii_digit()) => (joined(&[name, number]), NAME),
        (Some(name), _) => (name.replace('%', "%25").replace('/', "%2F"), NAME),
        (None, Some(number)) => (number.to_owned(), NUMBER),
        (None, None) => {
            reading.missing.push(Missing::Job(NUMBER));
            return Ok(());
        }
    };
    let (job, variable) = job;
    let why = "the job's name, else its place in the build; parts of a split job need --shard";
    reading.job = Some(Found::new(parsed(TITLE, variable, &job, JobName::parse)?, variable, why));
    Ok(())
}

fn context(env: &Env) -> Context {
    let commit = env.first(&["APPVEYOR_PULL_REQUEST_HEAD_COMMIT", "APPVEYOR_REPO_COMMIT"]);
    let branch = env.first(&["APPVEYOR_PULL_REQUEST_HEAD_REPO_BRANCH", "APPVEYOR_REPO_BRANCH"]);
    let (url, id) = (env.get("APPVEYOR_URL"), env.get("APPVEYOR_BUILD_ID"));
    let path = env.get("APPVEYOR_ACCOUNT_NAME").zip(env.get("APPVEYOR_PROJECT_SLUG"));
    let page = url.zip(path).zip(id).map(|((url, (account, project)), id)| {
        format!("{}/project/{account}/{project}/builds/{id}", url.trim_end_matches('/'))
    });
    Context {
        workflow: env.get("APPVEYOR_PROJECT_SLUG").and_then(|slug| WorkflowName::parse(slug).ok()),
        // The number can be set back; the id only rises.
        run_counter: id.and_then(|id| id.parse().ok()),
        commit: commit.and_then(|(_, sha)| Commit::parse(sha).ok()),
        branch: branch.map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("APPVEYOR_PULL_REQUEST_NUMBER").map(str::to_owned),
        unnumbered_change: false,
        run_url: page,
        repository: env.get("APPVEYOR_REPO_NAME").map(str::to_owned),
    }
}
