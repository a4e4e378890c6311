//! Bamboo: <https://confluence.atlassian.com/bamboo/bamboo-variables-289277087.html>.
//! Must not know other platforms.

use super::partition::{self, executor};
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, parsed, renewed, repository_of, rerun, scope,
    server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, RunId, WorkflowName};

const TITLE: &str = "Bamboo";
const SLUG: &str = "bamboo";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("bamboo_planKey")],
    // Without the plan's key it refuses, instead of looking like no CI at all.
    fallback: &[Marker::Set("bamboo_buildNumber"), Marker::Set("bamboo_agentId")],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: &[
        renewed("bamboo_buildTimeStamp", "the time at which this execution began (executor)"),
        renewed("bamboo_agentId", "a rerun may get another agent (executor)"),
        renewed("bamboo_agentWorkingDirectory", "follows the agent"),
        shared("bamboo_planRepository_revision", "two builds of one commit would collapse into one"),
    ],
    reruns: &[
        rerun(
            "Rerun failed or incomplete jobs",
            Effect::SameKey,
            "the build keeps its number, and nothing counts the attempts: for a pass to count over the failure give \
             --on-difference revise",
        ),
        rerun("Agent lost, job queued again", Effect::SameKey, "only the agent changes"),
        rerun("Run plan, trigger, customised run", Effect::NewKey, "a new bamboo_buildNumber"),
    ],
};

fn read(env: &Env, _overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let url = env.first(&["bamboo_resultsUrl", "bamboo_buildResultsUrl"]).map(|(_, url)| url);
    // What comes after is the result's own path.
    let server = url.and_then(|url| url.split("/browse/").next()).and_then(server_of);
    if server.is_none() {
        reading.warnings.push(
            "bamboo_resultsUrl is not set: builds of plans with the same key on two servers would share keys"
                .to_owned(),
        );
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), None)?,
        "bamboo_resultsUrl, bamboo_buildResultsUrl",
        "the server in the address: plan keys are unique on one server",
    ));
    read_run(env, &mut reading)?;
    let why = "the job's key in the plan; a split is made of jobs of their own";
    partition::job(TITLE, env, &mut reading, &["bamboo_shortJobKey"], "bamboo_shortJobKey", why)?;
    let source = "bamboo_agentId, bamboo_buildTimeStamp";
    let names = ["bamboo_agentId", "bamboo_buildTimeStamp"];
    reading.executor = executor(env, &names, source, "names this execution of the job");
    Ok(reading)
}

/// Plan and number, in Bamboo's own spelling: `SHOP-MAIN-77`. The number has no dash, so the text has one meaning.
fn read_run(env: &Env, reading: &mut Reading) -> Result<(), IdentityError> {
    let Some(plan) = env.get("bamboo_planKey") else {
        reading.missing.push(Missing::Run("bamboo_planKey"));
        return Ok(());
    };
    // The result's key is that of the job, and ends in the same number.
    let tail = || env.get("bamboo_buildResultKey").and_then(|key| key.rsplit_once('-')).map(|(_, number)| number);
    let found = match env.get("bamboo_buildNumber") {
        Some(number) => Some((number, "bamboo_planKey, bamboo_buildNumber")),
        None => tail().map(|number| (number, "bamboo_planKey, bamboo_buildResultKey")),
    };
    let Some((number, source)) = found else {
        reading.missing.push(Missing::Run("bamboo_buildNumber"));
        return Ok(());
    };
    let run = parsed(TITLE, source, &format!("{plan}-{number}"), RunId::parse)?;
    reading.run =
        Some(Found::new(run, source, "stays when failed jobs are rerun; new for every new build of the plan"));
    Ok(())
}

fn context(env: &Env) -> Context {
    Context {
        workflow: env.get("bamboo_planKey").and_then(|key| WorkflowName::parse(key).ok()),
        run_counter: env.get("bamboo_buildNumber").and_then(|number| number.parse().ok()),
        commit: env.get("bamboo_planRepository_revision").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.get("bamboo_planRepository_branchName").map(str::to_owned),
        pull_request: env.get("bamboo_repository_pr_key").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.first(&["bamboo_resultsUrl", "bamboo_buildResultsUrl"]).map(|(_, url)| url.to_owned()),
        repository: env.get("bamboo_planRepository_repositoryUrl").and_then(repository_of),
    }
}
