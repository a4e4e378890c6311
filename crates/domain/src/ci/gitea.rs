//! Gitea Actions: <https://docs.gitea.com/usage/actions/comparison>. It sets GitHub's names.
//! Must not know other platforms; Forgejo, which sets its marker too, is told apart before.

use super::actions::{self, Dialect};
use super::partition::executor;
use super::platform::{Effect, LeftOut, Marker, Platform, Reading, Rerun, Strength, renewed, rerun, shared};
use super::{Env, IdentityError, Overrides};
use crate::push::OrdinalScope;

const DIALECT: Dialect = Dialect {
    title: "Gitea Actions",
    slug: "gitea",
    public_server: None,
    server: &["GITHUB_SERVER_URL"],
    repository: &["GITHUB_REPOSITORY"],
    run: &["GITHUB_RUN_ID"],
    job: &["GITHUB_JOB"],
    scope_why: "run ids count per server, and small servers share small ids; the repository makes the key readable",
    run_why: "a re-run takes the run up again under its id; new for every new run",
    ordinal_why: "rises with every re-run of the job; some versions count it per job, so it is compared under one key",
    ordinal_scope: OrdinalScope::Key,
    page: "GITHUB_RUN_NUMBER",
};

pub(super) const PLATFORM: Platform = Platform {
    slug: DIALECT.slug,
    title: DIALECT.title,
    markers: &[Marker::Is("GITEA_ACTIONS", "true")],
    fallback: &[],
    imitates: &["github"],
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
    rerun("Re-run all jobs", Effect::SameKey, "the attempt rises; for a wanted second execution give --round"),
    rerun(
        "Re-run one job, re-run failed jobs",
        Effect::SameKey,
        "the attempt rises, of the job or of the run by version",
    ),
    rerun("New push, dispatch, schedule", Effect::NewKey, "a new run id"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = actions::read(&DIALECT, env, overrides)?;
    reading.executor = executor(env, &["RUNNER_NAME"], "RUNNER_NAME", "the runner of this execution");
    Ok(reading)
}
