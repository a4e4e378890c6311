//! Azure Pipelines: <https://learn.microsoft.com/en-us/azure/devops/pipelines/build/variables>.
//! Must not know other platforms.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::partition::{self, Index, executor};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, joined, parsed, renewed,
    rerun, scope, server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, JobName, Ordinal, Variant, WorkflowName};
use crate::push::OrdinalScope;

const TITLE: &str = "Azure Pipelines";
const SLUG: &str = "azure";
const PUBLIC_SERVER: &str = "dev.azure.com";
/// What stages and jobs are called that have no name in the file.
const DEFAULT_NAME: &str = "__default";
/// What stands for itself in a path of an address.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const RELEASE_HOW: &str = "In a classic release BUILD_BUILDID is the build of an artifact, which several deployments \
    share. Pass the release and its stage, --run \"release-$RELEASE_RELEASEID-$RELEASE_ENVIRONMENTNAME\": a redeployment \
    is then a retry.";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("TF_BUILD", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Strong,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    renewed("SYSTEM_JOBATTEMPT", "rises with every rerun: it orders deliveries (ordinal)"),
    renewed("SYSTEM_PHASEATTEMPT", "rises with every rerun: it orders deliveries (ordinal)"),
    renewed("SYSTEM_STAGEATTEMPT", "rises with every rerun: it orders deliveries (ordinal)"),
    renewed("SYSTEM_JOBID", "names a single attempt of a single job (executor)"),
    renewed("SYSTEM_TASKINSTANCEID", "names one execution of one task"),
    renewed("SYSTEM_TIMELINEID", "may change with an attempt"),
    renewed("AGENT_NAME", "a rerun may get another agent"),
    renewed("AGENT_ID", "a rerun may get another agent"),
    renewed("AGENT_MACHINENAME", "a rerun may get another agent"),
    shared("BUILD_BUILDNUMBER", "a name that a script may change while the run lasts"),
    shared("AGENT_JOBNAME", "a name for people"),
    shared("BUILD_SOURCEVERSION", "two runs of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun("Rerun failed jobs", Effect::SameKey, "the attempts rise; job id and agent are new"),
    rerun(
        "Rerun stage",
        Effect::SameKey,
        "the stage's attempt rises; jobs that had passed run again. For a wanted second execution give --round",
    ),
    rerun("retryCountOnTaskFailure", Effect::SameKey, "only the task's id is new, the attempts stay"),
    rerun("Agent lost", Effect::SameKey, "the job fails, as far as is known; a rerun keeps the build id"),
    rerun("Run new, queued by the API, schedule", Effect::NewKey, "a new build id"),
    rerun(
        "Redeploy in a classic release",
        Effect::YouDecide,
        "BUILD_BUILDID is an artifact's there: pass --run with the release id and the stage's name",
    ),
];

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    read_scope(env, &mut reading)?;
    if env.has("RELEASE_RELEASEID") {
        reading.missing.push(Missing::RunByDesign(RELEASE_HOW));
    } else {
        let why = "stays when jobs or stages are rerun; new for every new run";
        partition::run(TITLE, env, &mut reading, "BUILD_BUILDID", why)?;
    }
    match env.get("SYSTEM_PHASENAME") {
        Some(phase) => read_job(env, overrides, phase, &mut reading)?,
        None => reading.missing.push(Missing::Job("SYSTEM_PHASENAME")),
    }
    reading.ordinal_scope = OrdinalScope::Key;
    reading.ordinal = attempt(env).map(|attempt| {
        Found::new(
            attempt,
            "SYSTEM_STAGEATTEMPT, SYSTEM_PHASEATTEMPT, SYSTEM_JOBATTEMPT",
            "the attempts of stage, phase and job, three digits each: a rerun of a stage begins with job attempt 1",
        )
    });
    reading.executor = executor(env, &["SYSTEM_JOBID"], "SYSTEM_JOBID", "names this attempt of this job");
    Ok(reading)
}

/// Build ids count within one organisation, or within one collection of a server of one's own.
fn read_scope(env: &Env, reading: &mut Reading) -> Result<(), IdentityError> {
    let collection = env.get("SYSTEM_COLLECTIONURI").and_then(server_of);
    let project = env.get("SYSTEM_TEAMPROJECT");
    for (variable, known) in [("SYSTEM_COLLECTIONURI", collection.is_some()), ("SYSTEM_TEAMPROJECT", project.is_some())]
    {
        if !known {
            reading.missing.push(Missing::Scope(variable));
        }
    }
    let organisation = collection.as_deref().and_then(organisation);
    let server = collection.filter(|_| organisation.is_none());
    let path: Vec<&str> = organisation.as_deref().into_iter().chain(project).collect();
    let path = Some(joined(&path)).filter(|path| !path.is_empty());
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), path.as_deref())?,
        "SYSTEM_COLLECTIONURI, SYSTEM_TEAMPROJECT",
        "build ids count within one organisation; the project makes the key readable",
    ));
    Ok(())
}

/// The organisation on the public server, in lower case, by its new address or its old one; an agent that was set up
/// with the old one still tells that.
fn organisation(collection: &str) -> Option<String> {
    let (host, path) = collection.split_once('/').unwrap_or((collection, ""));
    if host == PUBLIC_SERVER {
        return Some(path.to_ascii_lowercase()).filter(|path| !path.is_empty());
    }
    host.strip_suffix(".visualstudio.com").map(str::to_owned)
}

/// The job in the file, and what tells its parts apart: their place in a `parallel`, or a cell's name in a `matrix`.
fn read_job(env: &Env, overrides: &Overrides, phase: &str, reading: &mut Reading) -> Result<(), IdentityError> {
    // Either all stages of a run have names, or there is one without. A phase's name holds no slash after `joined`
    // wrote it in second place, so that a phase alone is never a phase in a stage.
    let stage = env.get("SYSTEM_STAGENAME").filter(|stage| *stage != DEFAULT_NAME);
    let job = match stage {
        Some(stage) => joined(&[stage, phase]),
        None => phase.replace('%', "%25").replace('/', "%2F"),
    };
    reading.job = Some(Found::new(
        parsed(TITLE, "SYSTEM_PHASENAME", &job, JobName::parse)?,
        "SYSTEM_STAGENAME, SYSTEM_PHASENAME",
        "stage and job as they are called in the file, without what a strategy makes of the job",
    ));
    let place = Index {
        index: "SYSTEM_JOBPOSITIONINPHASE",
        total: Some("SYSTEM_TOTALJOBSINPHASE"),
        base: 1,
        source: "SYSTEM_JOBPOSITIONINPHASE, SYSTEM_TOTALJOBSINPHASE",
        why: "the place among the parts of the job, the same when it is rerun",
    };
    let Some(cell) = env.get("SYSTEM_JOBNAME").filter(|name| !is_place(env, phase, name)) else {
        return partition::shard(TITLE, env, overrides, reading, place);
    };
    let variant = Variant::from_pairs([("matrix", cell)]);
    let variant =
        variant.map_err(|source| IdentityError::BadVariable { platform: TITLE, variable: "SYSTEM_JOBNAME", source })?;
    let why = "the name of the cell in the matrix, the same when it is rerun";
    reading.variant = Some(Found::new(variant, "SYSTEM_JOBNAME", why));
    if env.has(place.index) {
        // Else each variant would wait for the shards that the other cells have.
        reading
            .left_out
            .push(shared(place.index, "the place of the cell in its matrix; the variant names the cell already"));
    }
    // Cells are counted as places are, so one that never pushed is missed.
    reading.expect = env.get("SYSTEM_TOTALJOBSINPHASE").and_then(|total| total.parse().ok()).filter(|total| *total > 0);
    Ok(())
}

/// True for a name that says no more than phase and place: the phase's own, none, or one that ends in the place.
fn is_place(env: &Env, phase: &str, name: &str) -> bool {
    let place = env.get("SYSTEM_JOBPOSITIONINPHASE").unwrap_or_default();
    let numbered = name.strip_suffix(place).filter(|_| !place.is_empty());
    let numbered = numbered.map(|stem| stem.trim_end_matches(['_', ' ']));
    name == phase || name == DEFAULT_NAME || numbered.is_some_and(|stem| stem == phase || stem == "Job")
}

/// One number that rises with every attempt. None where the server counts none, or one too high to be told.
fn attempt(env: &Env) -> Option<Ordinal> {
    let part = |variable: &str, default| match env.get(variable) {
        Some(text) => text.parse::<u64>().ok().filter(|attempt| *attempt < 1000),
        None => default,
    };
    let job = part("SYSTEM_JOBATTEMPT", None)?;
    let stage = part("SYSTEM_STAGEATTEMPT", Some(1))?;
    let phase = part("SYSTEM_PHASEATTEMPT", Some(1))?;
    Some(Ordinal((stage * 1000 + phase) * 1000 + job))
}

fn context(env: &Env) -> Context {
    let source_branch = env.first(&["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"]).map(|(_, name)| name);
    let merged = source_branch.and_then(|name| name.strip_prefix("refs/pull/")).and_then(|rest| rest.split('/').next());
    let numbers = ["SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", "SYSTEM_PULLREQUEST_PULLREQUESTID"];
    let pull_request = env.first(&numbers).map(|(_, number)| number).or(merged);
    let branch = source_branch.map(|name| {
        let short = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/"));
        short.unwrap_or(name).to_owned()
    });
    let commit = env.first(&["SYSTEM_PULLREQUEST_SOURCECOMMITID", "BUILD_SOURCEVERSION"]);
    let page = env.get("SYSTEM_COLLECTIONURI").zip(env.get("SYSTEM_TEAMPROJECT")).zip(env.get("BUILD_BUILDID"));
    Context {
        workflow: env.get("BUILD_DEFINITIONNAME").and_then(|name| WorkflowName::parse(name).ok()),
        run_counter: env.get("BUILD_BUILDID").and_then(|id| id.parse().ok()),
        commit: commit.and_then(|(_, sha)| Commit::parse(sha).ok()),
        branch,
        pull_request: pull_request.map(str::to_owned),
        unnumbered_change: false,
        run_url: page.map(|((collection, project), build)| {
            let collection = collection.trim_end_matches('/');
            format!("{collection}/{}/_build/results?buildId={build}", utf8_percent_encode(project, IN_PATH))
        }),
        repository: env.get("BUILD_REPOSITORY_NAME").map(str::to_owned),
    }
}
