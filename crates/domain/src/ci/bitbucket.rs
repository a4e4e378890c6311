//! Bitbucket Pipelines: <https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets/>.
//! Must not know other platforms.

use super::partition::{self, Index};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, parsed, renewed, rerun,
    scope, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, Executor, JobName, RunId};
use crate::push::OrdinalScope;

const TITLE: &str = "Bitbucket Pipelines";
const SLUG: &str = "bitbucket";
const STEP: &str = "BITBUCKET_STEP_UUID";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("BITBUCKET_BUILD_NUMBER")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("BITBUCKET_STEP_RUN_NUMBER", "rises when the step is rerun: it orders deliveries (ordinal)"),
    renewed("BITBUCKET_STEP_TRIGGERER_UUID", "becomes the person who pressed rerun"),
    shared("BITBUCKET_COMMIT", "two pipelines of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun("Rerun failed steps", Effect::SameKey, "the step's run number rises; pipeline and build number stay"),
    rerun("Rerun of the whole pipeline", Effect::NewKey, "a new pipeline and build number"),
    rerun(
        "Automatic retry of a step",
        Effect::SameKey,
        "the step's run number should rise, though it is not documented; with --job the key stays in any case",
    ),
    rerun("Run pipeline, schedule, push", Effect::NewKey, "a new pipeline"),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let repository = env.get("BITBUCKET_REPO_FULL_NAME");
    if repository.is_none() {
        reading.missing.push(Missing::Scope("BITBUCKET_REPO_FULL_NAME"));
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, None, repository)?,
        "BITBUCKET_REPO_FULL_NAME",
        "build numbers count per repository",
    ));
    if let Some(pipeline) = env.get("BITBUCKET_PIPELINE_UUID") {
        reading.run = Some(Found::new(
            parsed(TITLE, "BITBUCKET_PIPELINE_UUID", bare(pipeline), RunId::parse)?,
            "BITBUCKET_PIPELINE_UUID",
            "stays when failed steps are rerun; new for every new pipeline",
        ));
        reading.left_out.push(shared("BITBUCKET_BUILD_NUMBER", "counts per repository; the pipeline is named already"));
    } else {
        let why = "stays when failed steps are rerun; counts up with every new pipeline of the repository";
        partition::run(TITLE, env, &mut reading, "BITBUCKET_BUILD_NUMBER", why)?;
    }
    read_step(env, overrides, &mut reading)?;
    let why = "counts the runs of this step";
    partition::ordinal(env, &mut reading, "BITBUCKET_STEP_RUN_NUMBER", OrdinalScope::Key, why);
    Ok(reading)
}

/// The step by its UUID, which also tells parallel steps apart; or, named by `--job`, with its place among them.
fn read_step(env: &Env, overrides: &Overrides, reading: &mut Reading) -> Result<(), IdentityError> {
    let Some(step) = env.get(STEP).map(bare) else {
        reading.missing.push(Missing::Job(STEP));
        return Ok(());
    };
    let why = "names the step; with the attempt beside it, this execution";
    reading.executor = Executor::parse(step).ok().map(|step| Found::new(step, STEP, why));
    reading.job = Some(Found::new(
        parsed(TITLE, STEP, step, JobName::parse)?,
        STEP,
        "names the step and its place in a parallel group; that a rerun keeps it is observed, not documented",
    ));
    let group = Index {
        index: "BITBUCKET_PARALLEL_STEP",
        total: Some("BITBUCKET_PARALLEL_STEP_COUNT"),
        base: 0,
        source: "BITBUCKET_PARALLEL_STEP, BITBUCKET_PARALLEL_STEP_COUNT",
        why: "the place plus 1 in the parallel group, the same when the step is rerun",
    };
    if overrides.job.is_some() {
        return partition::shard(TITLE, env, overrides, reading, group);
    }
    if env.has(group.index) {
        // Else each step of the group would wait for shards that only the others have.
        let why = "the place in a parallel group, which every group counts anew; the step's UUID names it already";
        reading.left_out.push(shared(group.index, why));
    }
    reading.warnings.push(
        "Bitbucket tells a step no name, so the job is called after the step's UUID, which is new in every pipeline, and \
         of which it is not documented that a rerun keeps it: pass --job NAME, the same for all steps of a parallel \
         group that split one suite, and --variant where they run it under different configurations"
            .to_owned(),
    );
    Ok(())
}

/// A UUID without its braces: some variables and versions have them, others don't.
fn bare(uuid: &str) -> &str {
    uuid.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(uuid)
}

fn context(env: &Env) -> Context {
    let page = env.get("BITBUCKET_REPO_FULL_NAME").zip(env.get("BITBUCKET_BUILD_NUMBER"));
    Context {
        // One file holds all pipelines, and no variable says which of them this is.
        workflow: None,
        run_counter: env.get("BITBUCKET_BUILD_NUMBER").and_then(|number| number.parse().ok()),
        commit: env.get("BITBUCKET_COMMIT").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.first(&["BITBUCKET_BRANCH", "BITBUCKET_TAG"]).map(|(_, branch)| branch.to_owned()),
        pull_request: env.get("BITBUCKET_PR_ID").map(str::to_owned),
        unnumbered_change: false,
        run_url: page.map(|(path, number)| format!("https://bitbucket.org/{path}/pipelines/results/{number}")),
        repository: env.get("BITBUCKET_REPO_FULL_NAME").map(str::to_owned),
    }
}
