//! Travis CI: <https://docs.travis-ci.com/user/environment-variables/>. A restart overwrites job and build in place.
//! Must not know other platforms.

use super::partition::{self, executor};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, parsed, rerun, scope,
    server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, JobName, WorkflowName};

const TITLE: &str = "Travis CI";
const SLUG: &str = "travis";
const PUBLIC_SERVERS: [&str; 3] = ["app.travis-ci.com", "travis-ci.com", "www.travis-ci.com"];

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("TRAVIS", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    shared("TRAVIS_JOB_NAME", "a free text, which jobs may share"),
    shared("TRAVIS_COMMIT", "two builds of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun("Restart job", Effect::SameKey, "nothing changes, so nothing says which execution is the later one"),
    rerun(
        "Restart build",
        Effect::SameKey,
        "nothing changes although everything runs again; for a wanted second execution give --round",
    ),
    rerun("Trigger build, push, cron", Effect::NewKey, "a new build id"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let repository = env.get("TRAVIS_REPO_SLUG");
    if repository.is_none() {
        reading.missing.push(Missing::Scope("TRAVIS_REPO_SLUG"));
    }
    let address = env.get("TRAVIS_BUILD_WEB_URL").and_then(server_of);
    let host = address.as_deref().and_then(|address| address.split('/').next());
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, host.filter(|host| !PUBLIC_SERVERS.contains(host)), repository)?,
        "TRAVIS_BUILD_WEB_URL, TRAVIS_REPO_SLUG",
        "build ids count within one server; the repository makes the key readable",
    ));
    if env.has("TRAVIS_BUILD_ID") || !env.has("TRAVIS_BUILD_NUMBER") {
        let why = "stays when a job or the build is restarted; new for every new build";
        partition::run(TITLE, env, &mut reading, "TRAVIS_BUILD_ID", why)?;
    } else {
        let why = "stays when a job or the build is restarted; counts up with every new build of the repository";
        partition::run(TITLE, env, &mut reading, "TRAVIS_BUILD_NUMBER", why)?;
        if overrides.run.is_none() {
            let warning = "TRAVIS_BUILD_ID is not set, so TRAVIS_BUILD_NUMBER names the run: a job of this build that \
                           has both would count as another run";
            reading.warnings.push(warning.to_owned());
        }
    }
    match env.get("TRAVIS_JOB_NUMBER") {
        Some(number) => {
            let job = parsed(TITLE, "TRAVIS_JOB_NUMBER", place(number), JobName::parse)?;
            let why = "the job's place in the build's matrix, which tells its parts apart already";
            reading.job = Some(Found::new(job, "TRAVIS_JOB_NUMBER", why));
        }
        None => reading.missing.push(Missing::Job("TRAVIS_JOB_NUMBER")),
    }
    reading.executor = executor(env, &["TRAVIS_JOB_ID"], "TRAVIS_JOB_ID", "names the job; a restart keeps it");
    Ok(reading)
}

/// `41.2` is job 2 of build 41: the same job is called alike in every build.
fn place(number: &str) -> &str {
    match number.split_once('.') {
        Some((build, job)) if !job.is_empty() && build.bytes().all(|b| b.is_ascii_digit()) => job,
        _ => number,
    }
}

fn context(env: &Env) -> Context {
    // One file holds all jobs; a build by cron usually runs other ones than a push.
    let workflow = if env.get("TRAVIS_EVENT_TYPE") == Some("cron") { ".travis.yml#cron" } else { ".travis.yml" };
    let commit = env.first(&["TRAVIS_PULL_REQUEST_SHA", "TRAVIS_COMMIT"]);
    let branch = env.first(&["TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_BRANCH"]);
    Context {
        workflow: WorkflowName::parse(workflow).ok(),
        run_counter: env.get("TRAVIS_BUILD_NUMBER").and_then(|number| number.parse().ok()),
        commit: commit.and_then(|(_, sha)| Commit::parse(sha).ok()),
        branch: branch.map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("TRAVIS_PULL_REQUEST").filter(|number| *number != "false").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("TRAVIS_BUILD_WEB_URL").map(str::to_owned),
        repository: env.get("TRAVIS_REPO_SLUG").map(str::to_owned),
    }
}
