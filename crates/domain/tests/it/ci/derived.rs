//! The keys of our own environments, and what goes along with them: half of the platforms, and the four older ones.

use domain::OrdinalScope;
use domain::ci::Strength;

use super::jobs::Job;

/// The key, the attempt with its scope, and the execution.
const DERIVED: [(&str, &str, Option<u64>, OrdinalScope, &str); 18] = {
    use OrdinalScope::{Key, Round};
    const UUID: &str = "31f0a1b2-1111-4222-8333-444455556666";
    [
        (
            "prow",
            "prow:acme/shop:run:31f0a1b2-1111-4222-8333-444455556666:job:pull-shop-browser:shard:2-4",
            None,
            Round,
            "1940011223344556677",
        ),
        (
            "forgejo",
            "forgejo@forgejo.acme.example:acme/shop:run:4127:job:browser:shard:2-3:variant:browser=firefox",
            Some(1),
            Key,
            "runner-7",
        ),
        (
            "gitea",
            "gitea@gitea.acme.example:acme/shop:run:4127:job:browser:shard:2-3:variant:browser=firefox",
            Some(1),
            Key,
            "runner-7",
        ),
        (
            "github",
            "github:acme/shop:run:19400112233:job:browser:shard:3-4",
            Some(1),
            Round,
            "github_31f0a1b2-1111-4222-8333-444455556666 GitHub Actions 41",
        ),
        (
            "woodpecker",
            "woodpecker@woodpecker.acme.example:acme/shop:run:318:job:checks/browser:shard:2-4",
            None,
            Round,
            "agent-7 1 3",
        ),
        ("gitlab", "gitlab:acme/shop:run:1940011223:job:browser:shard:2-4", Some(9_340_000_102), Key, "9340000102"),
        (
            "circleci",
            "circleci:acme/shop:run:42a0b1c2-1111-4222-8333-777788889999:job:browser:shard:2-4",
            Some(9341),
            Key,
            "53b0c1d2-1111-4222-8333-aaaabbbbcccc 1",
        ),
        ("azure", "azure:acme/Web%20Shop:run:19400:job:Checks/browser:shard:2-4", Some(1_001_001), Key, UUID),
        (
            "buildkite",
            "buildkite:acme/shop:run:0199f0a1-1111-4222-8333-444455556666:job:browser:shard:2-4",
            Some(0),
            Key,
            "0199f0a2-1111-4222-8333-777788889999",
        ),
        (
            "bitbucket",
            "bitbucket:acme/shop:run:31f0a1b2-1111-4222-8333-444455556666:job:browser:shard:2-4",
            Some(1),
            Key,
            "42a0b1c2-1111-4222-8333-777788889999",
        ),
        (
            "teamcity",
            "teamcity@teamcity.acme.example:run:1940011:job:Shop/Browser%20tests:shard:2-4",
            None,
            Round,
            "https://teamcity.acme.example/buildConfiguration/Shop_Browser/1940011",
        ),
        ("travis", "travis:acme/shop:run:194001122:job:2", None, Round, "294001123"),
        (
            "appveyor",
            "appveyor:acme/shop:run:51400112:shard:2-4:variant:matrix=Image%3A%20Ubuntu%3B%20BROWSER%3A%20firefox",
            None,
            Round,
            "k3v9q0a7t2m5x1c8",
        ),
        (
            "codebuild",
            "codebuild:eu-central-1:run:shop%3A31f0a1b2-1111-4222-8333-444455556666:job:shop/browser_2",
            None,
            Round,
            "shop:31f0a1b2-1111-4222-8333-444455556666",
        ),
        (
            "semaphore",
            "semaphore:acme/shop:run:31f0a1b2-1111-4222-8333-444455556666:job:Checks/Tests/browser:shard:2-4",
            None,
            Round,
            "53b0c1d2-1111-4222-8333-aaaabbbbcccc",
        ),
        ("harness", "harness:acme/web/shop/checks:run:k3V9q0A7t2M5x1C8:job:tests/browser:shard:2-4", None, Round, ""),
        (
            "jenkins",
            "jenkins@jenkins.acme.example:run:acme/shop/PR-57/318:job:Browser:shard:2-4",
            None,
            Round,
            "agent-7 /home/jenkins/workspace/shop_PR-57",
        ),
        (
            "k8s",
            "k8s:run:5f0e1d2c-1111-4222-8333-444455556666:job:browser:shard:3",
            None,
            Round,
            "shop-browser-2-x7k2p",
        ),
    ]
};

#[test]
fn an_environment_gives_its_key_its_attempt_and_its_execution() {
    for (slug, key, ordinal, ordinal_scope, executor) in DERIVED {
        let job = Job::of(slug);
        let identity = job.derived(&[], &job.flags).unwrap_or_else(|error| panic!("{slug}: {error}"));
        assert_eq!(identity.key.as_str(), key);
        assert_eq!(identity.ordinal.map(|ordinal| ordinal.0), ordinal, "{slug}");
        assert_eq!(identity.ordinal_scope, ordinal_scope, "{slug}");
        assert_eq!(identity.executor.as_ref().map_or("", |executor| executor.as_str()), executor, "{slug}");
    }
}

/// Workflow, counter of runs, and the run's page.
const CONTEXT: [(&str, &str, Option<u64>, &str); 16] = [
    ("prow", "pull-shop-browser", None, ""),
    ("forgejo", "checks.yaml", Some(318), "https://forgejo.acme.example/acme/shop/actions/runs/318"),
    ("gitea", "checks.yaml", Some(318), "https://gitea.acme.example/acme/shop/actions/runs/318"),
    (
        "github",
        "acme/shop/.github/workflows/checks.yml",
        Some(318),
        "https://github.com/acme/shop/actions/runs/19400112233",
    ),
    ("woodpecker", "", Some(318), "https://woodpecker.acme.example/repos/3/pipeline/318"),
    ("gitlab", ".gitlab-ci.yml", Some(318), "https://gitlab.com/acme/shop/-/pipelines/1940011223"),
    ("circleci", "", None, "https://app.circleci.com/pipelines/workflows/42a0b1c2-1111-4222-8333-777788889999"),
    ("azure", "shop-checks", Some(19400), "https://dev.azure.com/acme/Web%20Shop/_build/results?buildId=19400"),
    ("buildkite", "shop", Some(318), "https://buildkite.com/acme/shop/builds/318"),
    ("bitbucket", "", Some(318), "https://bitbucket.org/acme/shop/pipelines/results/318"),
    ("travis", ".travis.yml", Some(318), "https://app.travis-ci.com/acme/shop/builds/194001122"),
    ("appveyor", "shop", Some(51_400_112), "https://ci.appveyor.com/project/acme/shop/builds/51400112"),
    (
        "codebuild",
        "shop",
        Some(318),
        "https://eu-central-1.console.aws.amazon.com/codebuild/home?region=eu-central-1#/builds/shop:31f0a1b2/view/new",
    ),
    ("semaphore", "shop", Some(318), "https://acme.semaphoreci.com/workflows/31f0a1b2-1111-4222-8333-444455556666"),
    (
        "harness",
        "checks",
        Some(318),
        "https://app.harness.io/ng/account/acme/ci/orgs/web/projects/shop/pipelines/checks/deployments/\
         k3V9q0A7t2M5x1C8/pipeline",
    ),
    ("jenkins", "acme/shop/PR-57", Some(318), "https://jenkins.acme.example/job/acme/job/shop/job/PR-57/318/"),
];

#[test]
fn the_context_of_a_pull_request_comes_along() {
    for (slug, workflow, counter, page) in CONTEXT {
        let job = Job::of(slug);
        let identity = job.derived(&[], &job.flags).unwrap();
        // Before its pull request is opened, a branch of CircleCI has no number, and a rerun keeps its key and its cycle.
        let cycle = if slug == "circleci" { "faster-cart" } else { "pr-57" };
        assert_eq!(identity.default_cycle().unwrap().as_str(), cycle, "{slug}");
        assert_eq!(identity.branch.as_deref(), Some("faster-cart"), "{slug}");
        assert_eq!(identity.commit.as_ref().unwrap().as_str(), "c4d1f0a97be2635840917cfe21a0b3d5e6f78190", "{slug}");
        assert_eq!(identity.repository.as_deref(), Some("acme/shop"), "{slug}");
        assert_eq!(identity.default_project().unwrap().as_str(), "shop", "{slug}");
        assert_eq!(identity.workflow.as_ref().map_or("", |workflow| workflow.as_str()), workflow, "{slug}");
        assert_eq!(identity.run_counter, counter, "{slug}");
        assert_eq!(identity.run_url.as_deref().unwrap_or_default(), page, "{slug}");
    }
    let job = Job::of("circleci");
    for fork in [[("CIRCLE_BRANCH", "pull/57")], [("CIRCLE_PR_NUMBER", "57")]] {
        assert_eq!(job.derived(&fork, &job.flags).unwrap().default_cycle().unwrap().as_str(), "pr-57");
    }
    // What TeamCity tells a process ends at the commit.
    let identity = Job::of("teamcity").derived(&[], &Job::of("teamcity").flags).unwrap();
    assert_eq!((identity.default_cycle(), identity.repository.as_deref()), (None, None));
    assert_eq!(identity.workflow.unwrap().as_str(), "Shop/Browser tests");
    assert_eq!(identity.run_counter, Some(1_940_011));
}

#[test]
fn outside_pull_requests_the_cycle_is_the_branch() {
    for (slug, changes) in [
        ("prow", &[("PULL_NUMBER", ""), ("PULL_HEAD_REF", ""), ("JOB_TYPE", "postsubmit")][..]),
        ("woodpecker", &[("CI_COMMIT_PULL_REQUEST", ""), ("CI_COMMIT_SOURCE_BRANCH", "")][..]),
        ("circleci", &[("CIRCLE_BRANCH", "main")][..]),
        (
            "azure",
            &[
                ("SYSTEM_PULLREQUEST_PULLREQUESTID", ""),
                ("SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", ""),
                ("SYSTEM_PULLREQUEST_SOURCEBRANCH", ""),
                ("BUILD_SOURCEBRANCH", "refs/heads/main"),
            ][..],
        ),
        ("buildkite", &[("BUILDKITE_PULL_REQUEST", "false"), ("BUILDKITE_BRANCH", "main")][..]),
        ("bitbucket", &[("BITBUCKET_PR_ID", ""), ("BITBUCKET_BRANCH", ""), ("BITBUCKET_TAG", "main")][..]),
        ("travis", &[("TRAVIS_PULL_REQUEST", "false"), ("TRAVIS_PULL_REQUEST_BRANCH", "")][..]),
        ("appveyor", &[("APPVEYOR_PULL_REQUEST_NUMBER", ""), ("APPVEYOR_PULL_REQUEST_HEAD_REPO_BRANCH", "")][..]),
        ("codebuild", &[("CODEBUILD_WEBHOOK_TRIGGER", "branch/main"), ("CODEBUILD_WEBHOOK_HEAD_REF", "")][..]),
        ("semaphore", &[("SEMAPHORE_GIT_PR_NUMBER", ""), ("SEMAPHORE_GIT_PR_BRANCH", "")][..]),
        ("harness", &[("DRONE_PULL_REQUEST", ""), ("DRONE_SOURCE_BRANCH", "")][..]),
    ] {
        let job = Job::of(slug);
        let identity = job.derived(changes, &job.flags).unwrap();
        assert_eq!(identity.default_cycle().map(|cycle| cycle.to_string()).as_deref(), Some("main"), "{slug}");
    }
    // A batch tests several pull requests at once; their outcomes are not those of the branch.
    let batch = [("JOB_TYPE", "batch"), ("PULL_NUMBER", ""), ("PULL_HEAD_REF", "")];
    let job = Job::of("prow");
    assert_eq!(job.derived(&batch, &job.flags).unwrap().default_cycle().unwrap().as_str(), "pr-main");
}

#[test]
fn whose_retries_look_like_new_runs_is_said() {
    let weak = ["woodpecker", "teamcity", "appveyor", "codebuild", "harness", "jenkins"];
    for (slug, ..) in DERIVED {
        let job = Job::of(slug);
        let identity = job.derived(&[], &job.flags).unwrap();
        let expected = match slug {
            "k8s" => Strength::None,
            _ if weak.contains(&slug) => Strength::Weak,
            _ => Strength::Strong,
        };
        assert_eq!(identity.strength, Some(expected), "{slug}");
        // Whoever needs a value of their own to make a retry one is told so.
        assert!(expected != Strength::Weak || identity.needs_a_decision(), "{slug}");
    }
}

#[test]
fn without_its_run_a_platform_refuses() {
    for (slug, variables) in [
        ("prow", &["PROW_JOB_ID"][..]),
        ("forgejo", &["GITHUB_RUN_ID", "FORGEJO_RUN_ID"]),
        ("gitea", &["GITHUB_RUN_ID"]),
        ("woodpecker", &["CI_PIPELINE_NUMBER"]),
        ("circleci", &["CIRCLE_WORKFLOW_WORKSPACE_ID", "CIRCLE_PIPELINE_ID"]),
        ("azure", &["BUILD_BUILDID"]),
        ("buildkite", &["BUILDKITE_BUILD_ID"]),
        ("bitbucket", &["BITBUCKET_PIPELINE_UUID", "BITBUCKET_BUILD_NUMBER"]),
        ("teamcity", &["BUILD_URL"]),
        ("travis", &["TRAVIS_BUILD_ID", "TRAVIS_BUILD_NUMBER"]),
        ("appveyor", &["APPVEYOR_BUILD_ID"]),
        ("codebuild", &["CODEBUILD_BUILD_ID"]),
        ("semaphore", &["SEMAPHORE_WORKFLOW_ID"]),
        ("harness", &["HARNESS_EXECUTION_ID", "HARNESS_BUILD_ID"]),
    ] {
        let job = Job::of(slug);
        let env = job.variables.iter().filter(|(name, _)| !variables.contains(&name.as_str()));
        let env = env.map(|(name, value)| (name.clone(), value.clone())).collect();
        let named = domain::ci::identify_as(Some(job.name), &env, &job.flags).unwrap_err();
        let text = named.to_string();
        assert!(text.contains(variables[0]) || text.contains(variables[variables.len() - 1]), "{slug}: {text}");
        assert!(text.contains("--run") && text.contains(job.name.title()), "{slug}: {text}");
    }
}

#[test]
fn without_its_scope_a_platform_refuses_and_with_a_run_it_says_so() {
    for (slug, variable) in [
        ("forgejo", "GITHUB_REPOSITORY"),
        ("gitea", "GITHUB_SERVER_URL"),
        ("woodpecker", "CI_SYSTEM_HOST"),
        ("woodpecker", "CI_REPO"),
        ("circleci", "CIRCLE_PROJECT_USERNAME"),
        ("azure", "SYSTEM_COLLECTIONURI"),
        ("azure", "SYSTEM_TEAMPROJECT"),
        ("buildkite", "BUILDKITE_ORGANIZATION_SLUG"),
        ("bitbucket", "BITBUCKET_REPO_FULL_NAME"),
        ("travis", "TRAVIS_REPO_SLUG"),
        ("appveyor", "APPVEYOR_URL"),
        ("codebuild", "AWS_REGION"),
        ("semaphore", "SEMAPHORE_ORGANIZATION_URL"),
        ("harness", "HARNESS_PROJECT_ID"),
    ] {
        let job = Job::of(slug);
        // These have a second variable for the same.
        let spare = [("CI_SYSTEM_URL", ""), ("FORGEJO_REPOSITORY", "")];
        let changes = [&[(variable, "")][..], &spare].concat();
        let text = job.derived(&changes, &job.flags).unwrap_err().to_string();
        assert!(text.contains(variable) && text.contains("--run"), "{slug}: {text}");
        let flags = domain::ci::Overrides { run: domain::RunId::parse("9").ok(), ..job.flags.clone() };
        let said = job.derived(&changes, &flags).unwrap().warnings;
        assert!(said.iter().any(|warning| warning.contains(variable)), "{slug}: {said:?}");
    }
}
