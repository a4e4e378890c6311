//! sourcehut builds: <https://man.sr.ht/builds.sr.ht/>. Its word `job` is our run.
//! Must not know other platforms.

use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, parsed, rerun, scope, server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::RunId;

const TITLE: &str = "sourcehut builds";
const SLUG: &str = "sourcehut";
const PUBLIC_SERVER: &str = "builds.sr.ht";
const RUN_WHY: &str = "the same in every task of the job; new for every new job, so for a resubmitted one too";
const NO_JOB: &str = "The environment names neither the task nor the manifest, so two tasks that push would share a key: \
                      pass the task's name as --job NAME, and a part of a split as --shard I/N or --variant.";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Set("JOB_URL"), Marker::Set("BUILD_SUBMITTER")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: &[shared("JOB_ID", "the number that JOB_URL ends in: alone it doesn't name the server")],
    reruns: &[
        rerun(
            "Resubmit",
            Effect::YouDecide,
            "not established; taken for a new job with a new JOB_URL, so nothing is swallowed: for a retry pass a run of \
             your own as --run",
        ),
        rerun("Push", Effect::NewKey, "new jobs with new addresses"),
        rerun(
            "Several manifests of one push",
            Effect::YouDecide,
            "jobs that share no id, so each is a round of its own: for one round pass one run to all of them as --run",
        ),
    ],
};

fn read(env: &Env, _overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading =
        Reading { context: context(env), missing: vec![Missing::JobByDesign(NO_JOB)], ..Reading::default() };
    let Some(url) = env.get("JOB_URL").and_then(server_of) else {
        reading.missing.push(Missing::Scope("JOB_URL"));
        reading.missing.push(Missing::Run("JOB_URL"));
        reading.scope = Some(Found::new(scope(TITLE, SLUG, None, None)?, "JOB_URL", "a job belongs to one server"));
        return Ok(reading);
    };
    // `builds.sr.ht/~team/job/17`: server, owner and number.
    let (place, number) = url.rsplit_once("/job/").unwrap_or(("", &url));
    let (server, owner) = place.split_once('/').map_or((place, None), |(server, owner)| (server, Some(owner)));
    let server = Some(server).filter(|server| !server.is_empty() && *server != PUBLIC_SERVER);
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server, owner.filter(|owner| !owner.is_empty()))?,
        "JOB_URL",
        "job numbers are unique on one server; the owner makes the key readable",
    ));
    reading.run = Some(Found::new(parsed(TITLE, "JOB_URL", number, RunId::parse)?, "JOB_URL", RUN_WHY));
    Ok(reading)
}

fn context(env: &Env) -> Context {
    let branch = env.get("GIT_REF").map(|name| {
        name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")).unwrap_or(name).to_owned()
    });
    Context {
        run_counter: env.get("JOB_ID").and_then(|id| id.parse().ok()),
        branch,
        // A patch under review, by its number.
        pull_request: env.get("PATCHSET_ID").map(str::to_owned),
        run_url: env.get("JOB_URL").map(str::to_owned),
        ..Context::default()
    }
}
