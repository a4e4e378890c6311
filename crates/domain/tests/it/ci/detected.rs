//! Who is recognised: the order, and pairs of markers in one environment.

use domain::ci::{Env, Overrides, PlatformName, Strength, identify, platforms};
use domain::{JobName, RunId};

use super::jobs::Job;

/// Each platform after those whose markers could be mistaken for its own, with its markers.
const ORDER: [(&str, &[(&str, &str)]); 29] = [
    ("prow", &[("PROW_JOB_ID", "p")]),
    ("forgejo", &[("FORGEJO_ACTIONS", "true")]),
    ("gitea", &[("GITEA_ACTIONS", "true")]),
    ("github", &[("GITHUB_ACTIONS", "true")]),
    ("woodpecker", &[("CI", "woodpecker")]),
    ("gitlab", &[("GITLAB_CI", "true")]),
    ("circleci", &[("CIRCLECI", "true")]),
    ("azure", &[("TF_BUILD", "True")]),
    ("buildkite", &[("BUILDKITE", "true")]),
    ("bitbucket", &[("BITBUCKET_BUILD_NUMBER", "1")]),
    ("teamcity", &[("TEAMCITY_VERSION", "1")]),
    ("travis", &[("TRAVIS", "true")]),
    ("appveyor", &[("APPVEYOR", "True")]),
    ("codebuild", &[("CODEBUILD_BUILD_ID", "shop:1")]),
    ("semaphore", &[("SEMAPHORE", "true")]),
    ("harness", &[("HARNESS_BUILD_ID", "1")]),
    ("drone", &[("DRONE", "true")]),
    ("codefresh", &[("CF_BUILD_ID", "1")]),
    ("bamboo", &[("bamboo_planKey", "A-B")]),
    ("gocd", &[("GO_PIPELINE_NAME", "shop")]),
    ("cirrus", &[("CIRRUS_CI", "true")]),
    ("screwdriver", &[("SCREWDRIVER", "true")]),
    ("bitrise", &[("BITRISE_IO", "true")]),
    ("taskcluster", &[("TASK_ID", "t"), ("TASKCLUSTER_ROOT_URL", "https://tc.acme.example")]),
    ("vela", &[("VELA", "true")]),
    ("jenkins", &[("JENKINS_URL", "https://jenkins.acme.example")]),
    ("cloudbuild", &[("BUILDER_OUTPUT", "/builder")]),
    ("sourcehut", &[("JOB_URL", "https://builds.acme.example/~a/job/1"), ("BUILD_SUBMITTER", "git")]),
    ("k8s", &[("JOB_COMPLETION_INDEX", "0")]),
];

/// Platforms that set the marker of another: no news.
const IMITATED: [(&str, &str); 5] =
    [("prow", "jenkins"), ("forgejo", "gitea"), ("forgejo", "github"), ("gitea", "github"), ("harness", "drone")];

/// Nothing that the two platforms leave out may refuse.
fn flags() -> Overrides {
    Overrides { run: RunId::parse("1").ok(), job: JobName::parse("j").ok(), ..Overrides::default() }
}

#[test]
fn the_first_in_the_order_is_taken_and_the_other_is_named() {
    for (at, (first, first_markers)) in ORDER.iter().enumerate() {
        let lone: Env = first_markers.iter().copied().collect();
        assert_eq!(identify(&lone, &flags()).unwrap().platform, Some(*first));
        for (second, second_markers) in &ORDER[at + 1..] {
            let env: Env = second_markers.iter().chain(*first_markers).copied().collect();
            let identity = identify(&env, &flags()).unwrap();
            assert_eq!(identity.platform, Some(*first), "beside {second}");
            let title = PlatformName::parse(second).unwrap().title();
            let news = format!("this looks like {title} too");
            let said = identity.warnings.iter().any(|warning| warning.starts_with(&news));
            let is_news = *second != "k8s" && !IMITATED.contains(&(first, second));
            assert_eq!(said, is_news, "{first} beside {second}: {:?}", identity.warnings);
        }
    }
}

#[test]
fn the_list_names_every_platform_once_and_in_this_order() {
    let listed: Vec<&str> = platforms().iter().map(|(slug, _, _)| *slug).collect();
    let mut wanted: Vec<&str> = ORDER.iter().map(|(slug, _)| *slug).collect();
    wanted.extend(["concourse", "argo", "tekton", "zuul"]);
    assert_eq!(listed, wanted);
}

#[test]
fn a_platform_has_a_short_name_and_one_for_people() {
    for (slug, title, strength) in platforms() {
        let name = PlatformName::parse(slug).unwrap();
        assert_eq!((name.slug(), name.title(), name.strength()), (slug, title, strength));
        assert_eq!(PlatformName::parse(&title.to_uppercase().replace(' ', "-")).unwrap(), name);
        assert_eq!(PlatformName::parse(title).unwrap(), name);
        assert_eq!(name.to_string(), slug);
        assert!(!name.reruns().is_empty(), "{slug} says nothing of its re-runs");
    }
    let error = PlatformName::parse(" hudson ").unwrap_err();
    assert!(error.to_string().starts_with("\"hudson\" is no platform that is known here; known: prow, forgejo, "));
    assert!(error.to_string().ends_with("concourse, argo, tekton, zuul"), "{error}");
}

#[test]
fn a_named_platform_is_taken_whatever_the_markers_say() {
    let env: Env = [("GITLAB_CI", "true"), ("ACT", "true"), ("GITHUB_ACTIONS", "true")].into_iter().collect();
    for (slug, _, strength) in platforms() {
        let name = PlatformName::parse(slug).unwrap();
        let identity = domain::ci::identify_as(Some(name), &env, &flags()).unwrap();
        assert_eq!((identity.platform, identity.strength), (Some(slug), Some(strength)));
        assert!(identity.in_ci() && !identity.warnings.iter().any(|warning| warning.contains("this looks like")));
    }
}

#[test]
fn without_a_marker_nothing_is_recognised_and_the_key_is_that_of_a_push() {
    for slug in ["concourse", "argo", "tekton", "zuul"] {
        let job = Job::of(slug);
        let env: Env = job.variables.clone().into();
        let pushed = identify(&env, &job.flags).unwrap();
        assert_eq!(pushed.platform, None, "{slug}");
        let named = job.derived(&[], &job.flags).unwrap();
        assert_eq!((named.key, named.round), (pushed.key, pushed.round), "{slug}");
        assert_eq!(named.strength, Some(Strength::None));
        let refusal = job.derived(&[], &Overrides::default()).unwrap_err().to_string();
        assert!(refusal.contains("--run") && refusal.contains(job.name.title()), "{refusal}");
    }
}
