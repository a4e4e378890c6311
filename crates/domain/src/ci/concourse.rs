//! Concourse: <https://concourse-ci.org/docs/resource-types/implementing/>. It keeps a build's metadata from tasks on
//! purpose, so it is only named, never recognised. Must not know other platforms.

use super::platform::{Effect, Platform, Reading, Strength, renewed, rerun};
use super::{Env, IdentityError, Overrides, unmarked};

const HOW: &str = "Concourse shows a build's metadata to get and put steps only: let a put (a get is cached, and \
                   would show another build's) write BUILD_TEAM_NAME, BUILD_PIPELINE_NAME, BUILD_JOB_NAME and \
                   BUILD_NAME into files, read them in the task, and pass --run \
                   \"$BUILD_TEAM_NAME/$BUILD_PIPELINE_NAME/$BUILD_JOB_NAME/${BUILD_NAME%%.*}\" and --job \
                   \"$BUILD_JOB_NAME\". The build's name is cut at the dot, since a rerun of build 3 is called 3.1: both are \
                   run 3. The part after the dot is the attempt (--attempt); pass the value of an \
                   across step as --shard I/N or --variant. Never BUILD_ID: a rerun has another.";

pub(super) const PLATFORM: Platform = Platform {
    slug: "concourse",
    title: "Concourse",
    markers: &[],
    fallback: &[],
    imitates: &[],
    strength: Strength::None,
    read,
    left_out: &[
        renewed("BUILD_ID", "another for every rerun"),
        renewed("BUILD_NAME", "ends in .1, .2, … for reruns: only what is before the dot names the run"),
    ],
    reruns: &[
        rerun(
            "Rerun of a build (3 becomes 3.1)",
            Effect::YouDecide,
            "a new id and a name with a suffix: a retry if --run holds the build's name without the suffix \
             (${BUILD_NAME%%.*}), a new run if it holds the whole",
        ),
        rerun("attempts: of a step", Effect::SameKey, "nothing changes"),
        rerun("New build triggered", Effect::NewKey, "the next number"),
        rerun(
            "Worker lost",
            Effect::SameKey,
            "the step is run again, or the build fails (not established which); a build that is rerun is as above",
        ),
    ],
};

fn read(_env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = unmarked::reading(overrides, HOW);
    if let Some(run) = overrides.run.as_ref().filter(|run| ends_as_rerun(run.as_str())) {
        reading.warnings.push(format!(
            "--run {run} ends like the name of a rerun: with the suffix a rerun is a new run, and its outcomes are counted \
             twice. Cut it: ${{BUILD_NAME%%.*}}"
        ));
    }
    Ok(reading)
}

/// `…/3.1`, `…#3.1`: a build's number and that of its rerun.
fn ends_as_rerun(run: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let name = run.rsplit(['/', '#']).next().unwrap_or(run);
    name.split_once('.').is_some_and(|(build, rerun)| number(build) && number(rerun))
}
