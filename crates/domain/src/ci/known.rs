//! All platforms in the order in which they are looked for, and the look.
//! A new platform is a file beside this one and a line here. Must not read anything but markers.

use super::Env;
use super::platform::Marker::{Is, Set};
use super::platform::Platform;
use super::{github, gitlab, jenkins, kubernetes};

/// The order matters: the ones above set names of the ones below.
/// Never recognised by `CI`, `BUILD_ID`, `BUILD_NUMBER`, `JOB_NAME` or `JOB_URL` alone: those are shared by many.
static ORDER: &[Platform] = &[
    Platform::recognised("prow", "Prow", &[Set("PROW_JOB_ID")]).imitating(&["jenkins"]),
    Platform::recognised("forgejo", "Forgejo Actions", &[Is("FORGEJO_ACTIONS", "true")])
        .imitating(&["gitea", "github"]),
    Platform::recognised("gitea", "Gitea Actions", &[Is("GITEA_ACTIONS", "true")]).imitating(&["github"]),
    github::PLATFORM,
    Platform::recognised("woodpecker", "Woodpecker CI", &[Is("CI", "woodpecker")]),
    gitlab::PLATFORM,
    Platform::recognised("circleci", "CircleCI", &[Is("CIRCLECI", "true")]),
    Platform::recognised("azure", "Azure Pipelines", &[Is("TF_BUILD", "true")]),
    Platform::recognised("buildkite", "Buildkite", &[Is("BUILDKITE", "true")]),
    Platform::recognised("bitbucket", "Bitbucket Pipelines", &[Set("BITBUCKET_BUILD_NUMBER")]),
    Platform::recognised("teamcity", "TeamCity", &[Set("TEAMCITY_VERSION")]),
    Platform::recognised("travis", "Travis CI", &[Is("TRAVIS", "true")]),
    Platform::recognised("appveyor", "AppVeyor", &[Set("APPVEYOR")]),
    Platform::recognised("codebuild", "AWS CodeBuild", &[Set("CODEBUILD_BUILD_ID")]),
    Platform::recognised("semaphore", "Semaphore", &[Is("SEMAPHORE", "true")]),
    Platform::recognised("harness", "Harness CI", &[Set("HARNESS_BUILD_ID")]).imitating(&["drone"]),
    Platform::recognised("drone", "Drone", &[Is("DRONE", "true")]),
    Platform::recognised("codefresh", "Codefresh", &[Set("CF_BUILD_ID")]),
    Platform::recognised("bamboo", "Bamboo", &[Set("bamboo_planKey")]),
    Platform::recognised("gocd", "GoCD", &[Set("GO_PIPELINE_NAME")]),
    Platform::recognised("cirrus", "Cirrus CI", &[Is("CIRRUS_CI", "true")]),
    Platform::recognised("screwdriver", "Screwdriver", &[Is("SCREWDRIVER", "true")]),
    Platform::recognised("bitrise", "Bitrise", &[Is("BITRISE_IO", "true")]),
    Platform::recognised("taskcluster", "Taskcluster", &[Set("TASK_ID"), Set("TASKCLUSTER_ROOT_URL")]),
    Platform::recognised("vela", "Vela", &[Is("VELA", "true")]),
    jenkins::PLATFORM,
    Platform::recognised("cloudbuild", "Google Cloud Build", &[Set("BUILDER_OUTPUT")]),
    Platform::recognised("sourcehut", "sourcehut builds", &[Set("JOB_URL"), Set("BUILD_SUBMITTER")]),
    kubernetes::PLATFORM,
];

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
    let Some(platform) = ORDER.iter().find(|platform| platform.is_detected(env)) else {
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
    Detected::Platform(platform, ORDER.iter().filter(news).collect())
}
