//! All platforms in the order in which they are looked for, and the look.
//! A new platform is a file beside this one and a line here. Must not read anything but markers.

use super::Env;
use super::platform::Platform;
use super::{
    appveyor, argo, azure, bamboo, bitbucket, bitrise, buildkite, circleci, cirrus, cloudbuild, codebuild, codefresh,
    concourse, drone, forgejo, gitea, github, gitlab, gocd, harness, jenkins, kubernetes, prow, screwdriver, semaphore,
    sourcehut, taskcluster, teamcity, tekton, travis, vela, woodpecker, zuul,
};

/// The order matters: the ones above set names of the ones below.
/// Never recognised by `CI`, `BUILD_ID`, `BUILD_NUMBER`, `JOB_NAME` or `JOB_URL` alone: those are shared by many.
pub(super) static MARKED: &[Platform] = &[
    prow::PLATFORM,
    forgejo::PLATFORM,
    gitea::PLATFORM,
    github::PLATFORM,
    woodpecker::PLATFORM,
    gitlab::PLATFORM,
    circleci::PLATFORM,
    azure::PLATFORM,
    buildkite::PLATFORM,
    bitbucket::PLATFORM,
    teamcity::PLATFORM,
    travis::PLATFORM,
    appveyor::PLATFORM,
    codebuild::PLATFORM,
    semaphore::PLATFORM,
    harness::PLATFORM,
    drone::PLATFORM,
    codefresh::PLATFORM,
    bamboo::PLATFORM,
    gocd::PLATFORM,
    cirrus::PLATFORM,
    screwdriver::PLATFORM,
    bitrise::PLATFORM,
    taskcluster::PLATFORM,
    vela::PLATFORM,
    jenkins::PLATFORM,
    cloudbuild::PLATFORM,
    sourcehut::PLATFORM,
    kubernetes::PLATFORM,
];

/// Without a marker: only named, never recognised.
pub(super) static UNMARKED: &[Platform] = &[concourse::PLATFORM, argo::PLATFORM, tekton::PLATFORM, zuul::PLATFORM];

/// What was found.
pub(super) enum Detected {
    /// A platform, and others whose markers are there too without being explained by it.
    Platform(&'static Platform, Vec<&'static Platform>),
    /// `act`, a local imitation of GitHub Actions.
    Imitation,
    /// None of them.
    Nothing,
}

/// Looks for the platform.
pub(super) fn detect(env: &Env) -> Detected {
    let Some(platform) = MARKED.iter().find(|platform| platform.is_detected(env)) else {
        return Detected::Nothing;
    };
    if platform.slug == github::PLATFORM.slug && env.says_true("ACT") {
        return Detected::Imitation;
    }
    // Most runners are pods, and the index may be left over from one: no news beside a real platform.
    let news = |other: &&Platform| {
        other.slug != platform.slug
            && other.slug != kubernetes::PLATFORM.slug
            && !platform.imitates.contains(&other.slug)
            && other.is_marked(env)
    };
    Detected::Platform(platform, MARKED.iter().filter(news).collect())
}
