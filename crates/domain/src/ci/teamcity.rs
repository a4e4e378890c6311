//! `TeamCity`: <https://www.jetbrains.com/help/teamcity/predefined-build-parameters.html>. Most of what it knows is a
//! parameter, which reaches a process only if somebody maps it to a variable. Must not know other platforms.

use super::partition::{self, executor};
use super::platform::{
    Context, Effect, Found, LeftOut, Marker, Missing, Platform, Reading, Rerun, Strength, joined, parsed, rerun, scope,
    server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, RunId, WorkflowName};

const TITLE: &str = "TeamCity";
const SLUG: &str = "teamcity";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("TEAMCITY_VERSION")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: LEFT_OUT,
    reruns: RERUNS,
};

const LEFT_OUT: &[LeftOut] = &[
    shared("BUILD_NUMBER", "a format of your choice, which two builds may share"),
    shared("BUILD_VCS_NUMBER", "two builds of one commit would collapse into one"),
];

const RERUNS: &[Rerun] = &[
    rerun("Re-run build", Effect::NewKey, "a new build id"),
    rerun(
        "Retry trigger",
        Effect::YouDecide,
        "queues another build with another id: pass --run with a parameter that both share",
    ),
    rerun(
        "Re-run of the failed builds of a chain",
        Effect::YouDecide,
        "those get new ids, the finished ones are used again: pass --run with an id of the chain",
    ),
    rerun(
        "Parallel tests",
        Effect::YouDecide,
        "each batch is a build of its own: pass --run with the id of the build that split them, and --shard \
         %teamcity.build.parallelTests.currentBatch%/%teamcity.build.parallelTests.totalBatches%",
    ),
    rerun(
        "Agent disconnected, build queued again",
        Effect::YouDecide,
        "whether the id stays is not established: pass --run if it is to be a retry in any case",
    ),
];

fn read(env: &Env, _overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let build = env.get("BUILD_URL").and_then(Build::parse);
    let server = build.as_ref().map(|build| build.server.as_str());
    reading.scope =
        Some(Found::new(scope(TITLE, SLUG, server, None)?, "BUILD_URL", "build ids count within one server"));
    match &build {
        Some(build) => {
            reading.run = Some(Found::new(
                parsed(TITLE, "BUILD_URL", &build.id, RunId::parse)?,
                "BUILD_URL",
                "the build's id; new for every build, and so for every kind of re-run and for every batch of a split",
            ));
        }
        // The build's number, which older servers tell as well, may be that of another build.
        None => reading.missing.extend([Missing::Run("BUILD_URL"), Missing::Scope("BUILD_URL")]),
    }
    let why = "the build configuration with its project, whose name alone other projects may use too";
    let source = "TEAMCITY_PROJECT_NAME, TEAMCITY_BUILDCONF_NAME";
    if env.has("TEAMCITY_PROJECT_NAME") {
        partition::job(TITLE, env, &mut reading, &["TEAMCITY_PROJECT_NAME", "TEAMCITY_BUILDCONF_NAME"], source, why)?;
    } else {
        let source = "TEAMCITY_BUILDCONF_NAME";
        partition::job(TITLE, env, &mut reading, &["TEAMCITY_BUILDCONF_NAME"], source, "the build configuration")?;
    }
    reading.executor = executor(env, &["BUILD_URL"], "BUILD_URL", "names this build");
    Ok(reading)
}

/// A build's address: `https://ci.example.com/buildConfiguration/Shop_Unit/7001`, or
/// `https://ci.example.com/viewLog.html?buildId=7001&buildTypeId=Shop_Unit` on older servers.
struct Build {
    /// With the path below which the server answers.
    server: String,
    /// The number, or an address that is written otherwise as a whole.
    id: String,
}

impl Build {
    fn parse(url: &str) -> Option<Self> {
        let address = server_of(url)?;
        let known = address.find("/buildConfiguration/").or_else(|| address.find("/viewLog.html?"));
        let (server, rest) = match known {
            Some(at) => address.split_at(at),
            None => address.split_once('/').unwrap_or((&address, "")),
        };
        let queried = rest.split(['?', '&']).find_map(|part| part.strip_prefix("buildId="));
        let path = rest.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        let last = path.rsplit('/').next().filter(|_| known.is_some());
        let number = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let id = queried.or(last).filter(number).map_or_else(|| rest.to_owned(), str::to_owned);
        (!id.is_empty()).then(|| Self { server: server.to_owned(), id })
    }
}

fn context(env: &Env) -> Context {
    let build = env.get("BUILD_URL").and_then(Build::parse);
    let names: Vec<&str> =
        ["TEAMCITY_PROJECT_NAME", "TEAMCITY_BUILDCONF_NAME"].iter().filter_map(|name| env.get(name)).collect();
    Context {
        workflow: WorkflowName::parse(&joined(&names)).ok(),
        run_counter: build.and_then(|build| build.id.parse().ok()),
        commit: env.get("BUILD_VCS_NUMBER").and_then(|sha| Commit::parse(sha).ok()),
        branch: None,
        pull_request: None,
        unnumbered_change: false,
        run_url: env.get("BUILD_URL").map(str::to_owned),
        repository: None,
    }
}
