//! Forgejo Actions: <https://forgejo.org/docs/latest/user/actions/reference/>. It sets GitHub's names, and its own beside
//! them on newer runners. Must not know other platforms.

use super::actions::{self, Dialect};
use super::partition::executor;
use super::platform::{Effect, LeftOut, Marker, Platform, Reading, Rerun, Strength, renewed, rerun, shared};
use super::{Env, IdentityError, Overrides};
use crate::push::OrdinalScope;

const DIALECT: Dialect = Dialect {
    title: "Forgejo Actions",
    slug: "forgejo",
    public_server: None,
    server: &["GITHUB_SERVER_URL", "FORGEJO_SERVER_URL"],
    repository: &["GITHUB_REPOSITORY", "FORGEJO_REPOSITORY"],
    run: &["GITHUB_RUN_ID", "FORGEJO_RUN_ID"],
    job: &["GITHUB_JOB", "FORGEJO_JOB"],
    scope_why: "run ids count per server, and small servers share small ids; the repository makes the key readable",
    run_why: "a re-run takes the run up again under its id; new for every new run",
    ordinal_why: "counts the attempts of the job, not of the run, so it is compared under one key",
    ordinal_scope: OrdinalScope::Key,
    page: "GITHUB_RUN_NUMBER",
};

pub(super) const PLATFORM: Platform = Platform {
    slug: DIALECT.slug,
    title: DIALECT.title,
    markers: &[Marker::Is("FORGEJO_ACTIONS", "true")],
    fallback: &[],
    imitates: &["gitea", "github"],
    strength: Strength::Strong,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("GITHUB_RUN_ATTEMPT", "rises with every re-run: it orders deliveries (ordinal), a retry stays one write"),
    renewed("RUNNER_NAME", "a re-run may get another runner (executor)"),
    shared("GITHUB_RUN_NUMBER", "counts per repository; it only names the run's page"),
    shared("GITHUB_ACTION", "the same in every job"),
    shared("GITHUB_SHA", "two runs of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun(
        "Re-run all jobs, re-run one job",
        Effect::SameKey,
        "the job's attempt rises; for a wanted second execution give --round",
    ),
    rerun("New push, dispatch, schedule", Effect::NewKey, "a new run id"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = actions::read(&DIALECT, env, overrides)?;
    reading.executor = executor(env, &["RUNNER_NAME"], "RUNNER_NAME", "the runner of this execution");
    Ok(reading)
}
