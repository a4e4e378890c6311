//! CI identity: what a platform's environment and the flags become. The vectors here are our own; the larger
//! collection in ../shared is read where it is present.

use std::fmt::Write as _;

use domain::ci::{Effect, Env, Identity, IdentityError, Overrides, identify, judge};
use domain::{JobName, Ordinal, OrdinalScope, RoundLabel, RunId, ShardRef, Variant};

mod collected;
mod derived;
mod detected;
mod jobs;
mod keys;
mod legs;
mod matrix;
mod mutated;
mod parts;
mod vectors;

use vectors::{EXPLAINED_GITHUB, EXPLAINED_GITLAB, GITHUB, GITLAB, JENKINS, KUBERNETES, Pairs};

fn env(base: Pairs, changes: &[(&str, &str)]) -> Env {
    base.iter().chain(changes).map(|(name, value)| (*name, *value)).collect()
}

fn derived(base: Pairs, changes: &[(&str, &str)]) -> Identity {
    identify(&env(base, changes), &Overrides::default()).unwrap()
}

fn key(base: Pairs, changes: &[(&str, &str)]) -> String {
    derived(base, changes).key.to_string()
}

fn run(text: &str) -> Overrides {
    Overrides { run: Some(RunId::parse(text).unwrap()), ..Overrides::default() }
}

/// Parts and reasons as lines, for comparison by eye.
fn explained(identity: &Identity) -> String {
    let mut text = String::new();
    for part in &identity.explained {
        let mark = if part.in_key { "key" } else { "not" };
        writeln!(text, "{mark} {} = {} <- {}: {}", part.part, part.value, part.source, part.why).unwrap();
    }
    for left in &identity.left_out {
        writeln!(text, "out {}: {}", left.variable, left.why).unwrap();
    }
    text
}

#[test]
fn keys_of_the_four_platforms() {
    assert_eq!(key(GITHUB, &[]), "github:acme/Shop:run:16873243901:job:e2e");
    assert_eq!(key(GITLAB, &[]), "gitlab:acme/tools/Shop:run:88112233:job:rspec:shard:1-3");
    assert_eq!(key(JENKINS, &[]), "jenkins@jenkins.example.com/ci:run:acme/shop/main/218:job:Browser%20tests");
    let uid = run("a8f3d8e4-0000-4000-8000-000000000001");
    let pod = identify(&env(KUBERNETES, &[]), &uid).unwrap();
    assert_eq!(pod.key.as_str(), "k8s:run:a8f3d8e4-0000-4000-8000-000000000001:shard:1");
    assert_eq!(pod.executor.unwrap().as_str(), "shop-0-x7k2p");
    assert_eq!(
        key(GITHUB, &[("GITHUB_SERVER_URL", "https://GHE.example.com/")]),
        "github@ghe.example.com:acme/Shop:run:16873243901:job:e2e"
    );
    assert_eq!(derived(GITHUB, &[]).round.as_str(), "github:acme/Shop:run:16873243901");
}

/// Platform, variables that a retry renews, variables that tell work apart.
const RETRIES: [(Pairs, Pairs, Pairs); 3] = [
    (
        GITHUB,
        &[
            ("GITHUB_RUN_ATTEMPT", "2"),
            ("GITHUB_TRIGGERING_ACTOR", "bob"),
            ("RUNNER_NAME", "GitHub Actions 9"),
            ("RUNNER_TRACKING_ID", "github_ffff"),
            ("ACTIONS_ORCHESTRATION_ID", "abc.e2e.__default"),
            ("GITHUB_SHA", "ffffffffffffffffffffffffffffffffffffffff"),
            ("GITHUB_RUN_NUMBER", "78"),
            ("GITHUB_WORKFLOW", "renamed"),
        ],
        &[
            ("GITHUB_RUN_ID", "16873243902"),
            ("GITHUB_JOB", "unit"),
            ("GITHUB_REPOSITORY", "acme/billing"),
            ("GITHUB_SERVER_URL", "https://ghe.example.com"),
        ],
    ),
    (
        GITLAB,
        &[
            ("CI_JOB_ID", "7002"),
            ("CI_JOB_URL", "https://gitlab.com/x/-/jobs/7002"),
            ("CI_JOB_TOKEN", "t"),
            ("CI_JOB_STARTED_AT", "2026-03-02T09:14:07Z"),
            ("CI_RUNNER_ID", "13"),
            ("CI_CONCURRENT_ID", "4"),
            ("CI_CONCURRENT_PROJECT_ID", "4"),
            ("GITLAB_USER_LOGIN", "bob"),
            ("GITLAB_USER_ID", "5"),
            ("CI_PIPELINE_IID", "413"),
        ],
        &[
            ("CI_PIPELINE_ID", "88112234"),
            ("CI_JOB_NAME", "jest 1/3"),
            ("CI_NODE_INDEX", "2"),
            ("CI_NODE_TOTAL", "4"),
            ("CI_PROJECT_PATH", "acme/billing"),
            ("CI_SERVER_HOST", "git.example.com"),
        ],
    ),
    (
        JENKINS,
        &[
            ("EXECUTOR_NUMBER", "4"),
            ("NODE_NAME", "agent-9"),
            ("WORKSPACE", "/home/jenkins/shop@2"),
            ("WORKSPACE_TMP", "/home/jenkins/shop@2tmp"),
            ("BUILD_TAG", "other"),
            ("BUILD_URL", "https://elsewhere.example.com/"),
        ],
        &[
            ("BUILD_NUMBER", "219"),
            ("JOB_NAME", "acme/shop/next"),
            ("STAGE_NAME", "Unit tests"),
            ("JENKINS_URL", "https://jenkins2.example.com/ci/"),
        ],
    ),
];

#[test]
fn a_retry_keeps_the_key_and_other_work_changes_it() {
    for (base, renewed, telling) in RETRIES {
        let first = key(base, &[]);
        for change in renewed {
            assert_eq!(key(base, &[*change]), first, "{change:?}");
        }
        for change in telling {
            assert_ne!(key(base, &[*change]), first, "{change:?}");
        }
    }
}

#[test]
fn each_flag_wins_for_itself() {
    let flags = Overrides {
        run: Some(RunId::parse("42").unwrap()),
        attempt: Some(Ordinal(3)),
        job: Some(JobName::parse("ui").unwrap()),
        shard: Some(ShardRef::new(2, None).unwrap()),
        variant: Some(Variant::from_pairs([("os", "linux")]).unwrap()),
        round: Some(RoundLabel::parse("again").unwrap()),
    };
    let all = identify(&env(GITLAB, &[]), &flags).unwrap();
    assert_eq!(all.key.as_str(), "gitlab:acme/tools/Shop:run:42:round:again:job:ui:shard:2:variant:os=linux");
    assert_eq!(all.round.as_str(), "gitlab:acme/tools/Shop:run:42:round:again");
    assert_eq!(all.ordinal, Some(Ordinal(3)));
    let only_shard = Overrides { shard: flags.shard, ..Overrides::default() };
    let identity = identify(&env(GITLAB, &[]), &only_shard).unwrap();
    assert_eq!(identity.key.as_str(), "gitlab:acme/tools/Shop:run:88112233:job:rspec:shard:2");
    assert_eq!(identity.ordinal, Some(Ordinal(7001)));
}

#[test]
fn the_ordinal_is_unknown_under_another_run() {
    let other = identify(&env(GITHUB, &[]), &run("99")).unwrap();
    assert_eq!((other.ordinal, other.run_counter), (None, None));
    assert!(other.executor.is_some());
    // It is said what became of it, and no longer that it orders deliveries.
    let said = |identity: &Identity| {
        let attempt = identity.left_out.iter().filter(|left| left.variable == "GITHUB_RUN_ATTEMPT");
        attempt.map(|left| left.why.contains("--on-difference revise")).collect::<Vec<_>>()
    };
    assert_eq!(said(&other), [true]);
    let numbered = Overrides { attempt: Some(Ordinal(3)), ..run("99") };
    assert_eq!(said(&identify(&env(GITHUB, &[]), &numbered).unwrap()), [false]);
    // The platform's own run, passed by hand, is no other run.
    let own = identify(&env(GITHUB, &[]), &run("16873243901")).unwrap();
    assert_eq!((own.ordinal, own.run_counter), (Some(Ordinal(1)), Some(77)));
    assert_eq!(own.key, derived(GITHUB, &[]).key);
    assert_eq!(derived(JENKINS, &[]).ordinal, None);
    assert_eq!(derived(GITHUB, &[]).ordinal_scope, OrdinalScope::Round);
    assert_eq!(derived(GITLAB, &[]).ordinal_scope, OrdinalScope::Key);
}

#[test]
fn gitlab_names_are_taken_apart() {
    let job = |name: &str, index: &str, total: &str| {
        let changes = [("CI_JOB_NAME", name), ("CI_NODE_INDEX", index), ("CI_NODE_TOTAL", total)];
        let text = key(GITLAB, &changes);
        text.strip_prefix("gitlab:acme/tools/Shop:run:88112233:job:").unwrap().to_owned()
    };
    for (name, index, total, expected) in [
        ("rspec 1/3", "1", "3", "rspec:shard:1-3"),
        ("rspec 1/3", "", "1", "rspec:shard:1-3"),
        ("rspec 2/3", "1", "3", "rspec%202/3:shard:1-3"),
        ("rspec", "", "1", "rspec"),
        ("rspec", "2", "3", "rspec:shard:2-3"),
        ("rspec: [ruby32, pg16]", "1", "2", "rspec:variant:matrix=ruby32%2C%20pg16"),
        ("rspec: [ruby32, pg16]", "", "1", "rspec:variant:matrix=ruby32%2C%20pg16"),
        ("v 01/03", "", "1", "v%2001/03"),
        ("1/3", "", "1", "1/3"),
        (": [a]", "", "1", "%3A%20%5Ba%5D"),
        ("deploy 4/3", "", "1", "deploy%204/3"),
    ] {
        assert_eq!(job(name, index, total), expected, "{name} {index}/{total}");
    }
    // The cell replaces the node, whose total is that of all cells: no variant would ever have all its shards.
    let cell = derived(GITLAB, &[("CI_JOB_NAME", "rspec: [a]")]);
    assert!(cell.left_out.iter().any(|left| left.variable == "CI_NODE_INDEX"));
    assert_eq!((cell.expect, derived(GITLAB, &[]).expect), (Some(3), None), "as many pushes as cells");
    let variant = Overrides { variant: Some(Variant::from_pairs([("os", "mac")]).unwrap()), ..Overrides::default() };
    let replaced = identify(&env(GITLAB, &[("CI_JOB_NAME", "rspec: [a]")]), &variant).unwrap();
    assert_eq!(replaced.warnings.len(), 1, "{:?}", replaced.warnings);
}

#[test]
fn the_context_comes_along() {
    let github = derived(GITHUB, &[]);
    assert_eq!(github.workflow.as_ref().unwrap().as_str(), "acme/Shop/.github/workflows/checks.yml");
    assert_eq!(github.run_url.as_deref(), Some("https://github.com/acme/Shop/actions/runs/16873243901"));
    assert_eq!(github.executor.as_ref().unwrap().as_str(), "github_5d1c GitHub Actions 3");
    assert_eq!(github.default_project().unwrap().as_str(), "shop");
    assert_eq!(github.default_cycle().unwrap().as_str(), "main");
    let file = |source: &str| derived(GITLAB, &[("CI_PIPELINE_SOURCE", source)]).workflow.unwrap().to_string();
    assert_eq!([file("push"), file("web")], [".gitlab-ci.yml", ".gitlab-ci.yml"]);
    assert_eq!(file("schedule"), ".gitlab-ci.yml#schedule");
    let jenkins = derived(JENKINS, &[("CHANGE_ID", "12"), ("CHANGE_BRANCH", "fix")]);
    assert_eq!(jenkins.repository.as_deref(), Some("acme/Shop"));
    assert_eq!(jenkins.executor.as_ref().unwrap().as_str(), "agent-3 /home/jenkins/shop");
    assert_eq!((jenkins.default_cycle().unwrap().as_str(), jenkins.run_counter), ("pr-12", Some(218)));
    assert!(jenkins.reruns.iter().any(|rerun| rerun.flavour == "Naginator" && rerun.effect == Effect::YouDecide));
    assert!(!serde_json::to_string(&jenkins).unwrap().contains("secret"));
}

#[test]
fn the_cycle_of_a_pull_request_is_its_number() {
    let pull = [("GITHUB_REF", "refs/pull/57/merge"), ("GITHUB_REF_NAME", "57/merge"), ("GITHUB_HEAD_REF", "main")];
    let identity = derived(GITHUB, &pull);
    assert_eq!(identity.default_cycle().unwrap().as_str(), "pr-57");
    assert_eq!(identity.branch.as_deref(), Some("main"));
    // A fork's branch may be called `main`; without a number its outcomes still stay out of the cycle `main`.
    let target = derived(GITHUB, &[("GITHUB_HEAD_REF", "main")]);
    assert_eq!(target.default_cycle().unwrap().as_str(), "pr-main");
    assert_eq!(target.warnings.len(), 1);
    let merge = derived(GITLAB, &[("CI_MERGE_REQUEST_IID", "8"), ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "fix")]);
    assert_eq!(merge.default_cycle().unwrap().as_str(), "pr-8");
    let odd = derived(GITHUB, &[("GITHUB_REPOSITORY", "acme/.github")]);
    assert_eq!(odd.default_project(), None);
}

#[test]
fn outside_ci_a_run_is_required_and_taught() {
    let nothing = env(&[], &[]);
    let error = identify(&nothing, &Overrides::default()).unwrap_err();
    assert_eq!(error, IdentityError::RunRequired);
    let text = error.to_string();
    for word in ["--run", "same whenever this push is tried again", "commit SHA", "date or time", "--check"] {
        assert!(text.contains(word), "{word} is missing in: {text}");
    }
    let identity = identify(&nothing, &run("nightly 417")).unwrap();
    assert_eq!(identity.key.as_str(), "run:nightly%20417");
    assert_eq!(identity.default_cycle().unwrap().as_str(), "local");
    assert_eq!((identity.platform, identity.in_ci(), identity.ordinal), (None, false, None));
    let attempt = Overrides { attempt: Some(Ordinal(2)), ..run("1") };
    assert_eq!(identify(&nothing, &attempt).unwrap().ordinal, Some(Ordinal(2)));
}

#[test]
fn a_ci_that_is_not_recognised_is_still_ci() {
    let ci = identify(&env(&[("CI", "true")], &[]), &run("1")).unwrap();
    assert!(ci.in_ci() && ci.platform.is_none() && ci.warnings.len() == 1);
    assert!(!identify(&env(&[("CI", "false")], &[]), &run("1")).unwrap().in_ci());
}

#[test]
fn act_counts_as_outside_ci() {
    let act = env(GITHUB, &[("ACT", "true")]);
    assert_eq!(identify(&act, &Overrides::default()).unwrap_err(), IdentityError::ImitationNeedsRun);
    let identity = identify(&act, &run("1")).unwrap();
    assert_eq!((identity.key.as_str(), identity.in_ci()), ("run:1", false));
    assert_eq!(identity.default_cycle().unwrap().as_str(), "local");
    assert!(identity.warnings[0].contains("ACT=true"));
    // The name alone, on another platform, means nothing.
    assert_eq!(key(GITLAB, &[("ACT", "true")]), key(GITLAB, &[]));
}

#[test]
fn a_missing_part_refuses_and_names_its_variable() {
    for (base, variable, flag) in [
        (GITHUB, "GITHUB_RUN_ID", "--run"),
        (GITHUB, "GITHUB_JOB", "--job"),
        (GITHUB, "GITHUB_REPOSITORY", "--run"),
        (GITLAB, "CI_PIPELINE_ID", "--run"),
        (GITLAB, "CI_JOB_NAME", "--job"),
        (GITLAB, "CI_SERVER_HOST", "--run"),
    ] {
        // Empty is absent.
        match identify(&env(base, &[(variable, "")]), &Overrides::default()) {
            Err(IdentityError::MissingVariable { variable: named, flag: way_out, .. }) => {
                assert_eq!((named, way_out), (variable, flag));
            }
            other => panic!("{variable}: {other:?}"),
        }
    }
    let pod = identify(&env(KUBERNETES, &[]), &Overrides::default()).unwrap_err().to_string();
    assert!(pod.contains("batch.kubernetes.io/controller-uid") && pod.contains("--run"), "{pod}");
    let unscoped = identify(&env(GITHUB, &[("GITHUB_REPOSITORY", "")]), &run("9")).unwrap();
    assert_eq!((unscoped.key.as_str(), unscoped.warnings.len()), ("github:run:9:job:e2e", 1));
    let control = identify(&env(GITHUB, &[("GITHUB_JOB", "a\u{7}b")]), &Overrides::default()).unwrap_err();
    assert!(matches!(control, IdentityError::BadVariable { variable: "GITHUB_JOB", .. }), "{control:?}");
}

#[test]
fn jenkins_without_an_address_and_joined_without_ambiguity() {
    let fallback = derived(JENKINS, &[("JENKINS_URL", "")]);
    assert_eq!(fallback.key.as_str(), "jenkins:run:acme/shop/main/218:job:Browser%20tests");
    assert_eq!(fallback.warnings.len(), 1);
    let one = key(JENKINS, &[("JOB_NAME", "a/b"), ("BUILD_NUMBER", "1")]);
    let other = key(JENKINS, &[("JOB_NAME", "a"), ("BUILD_NUMBER", "b/1")]);
    assert_ne!(one, other);
    let by_url = key(JENKINS, &[("JOB_NAME", "")]);
    assert!(by_url.contains(":run:jenkins.example.com/ci/job/acme/job/shop/job/main/218:"), "{by_url}");
    let freestyle = key(JENKINS, &[("STAGE_NAME", "")]);
    assert_eq!(freestyle, "jenkins@jenkins.example.com/ci:run:acme/shop/main/218");
    assert_eq!(derived(JENKINS, &[("PROW_JOB_ID", "p1")]).platform, Some("prow"));
}

#[test]
fn what_is_doubtful_is_said() {
    let warnings = |base, changes: &[(&str, &str)]| derived(base, changes).warnings;
    assert_eq!(warnings(GITHUB, &[]), Vec::<String>::new());
    let matrix = [("ACTIONS_ORCHESTRATION_ID", "abc.e2e.ubuntu.20")];
    assert!(warnings(GITHUB, &matrix)[0].contains("--variant os=${{ matrix.os }}"), "{:?}", warnings(GITHUB, &matrix));
    assert_eq!(warnings(GITHUB, &[("ACTIONS_ORCHESTRATION_ID", "abc.call.e2e.__default")]), Vec::<String>::new());
    let shard = Overrides { shard: Some(ShardRef::new(1, Some(2)).unwrap()), ..Overrides::default() };
    assert_eq!(identify(&env(GITHUB, &matrix), &shard).unwrap().warnings, Vec::<String>::new());
    assert_eq!(warnings(GITLAB, &[("CI_PIPELINE_SOURCE", "parent_pipeline")]).len(), 1);
    assert_eq!(warnings(GITLAB, &[("CI_JOB_NAME", "x"), ("CI_NODE_INDEX", "")]).len(), 1);
    assert_eq!(warnings(GITLAB, &[("CI_NODE_TOTAL", "")]).len(), 1);
    let nested = warnings(GITHUB, &[("CODEBUILD_BUILD_ID", "shop:1")]);
    assert!(nested[0].contains("AWS CodeBuild") && nested.len() == 1, "{nested:?}");
    assert_eq!(warnings(GITHUB, &[("JOB_COMPLETION_INDEX", "0")]), Vec::<String>::new());
}

#[test]
fn platforms_that_share_names_are_told_apart() {
    for (changes, platform) in [
        (&[("GITEA_ACTIONS", "true")][..], "gitea"),
        (&[("GITEA_ACTIONS", "true"), ("FORGEJO_ACTIONS", "true")][..], "forgejo"),
        (&[("GITEA_ACTIONS", "true"), ("ACT", "true")][..], "gitea"),
    ] {
        let identity = derived(GITHUB, changes);
        assert_eq!(identity.key.as_str(), format!("{platform}@github.com:acme/Shop:run:16873243901:job:e2e"));
        assert_eq!(identity.warnings, Vec::<String>::new());
    }
    for lone in ["BUILD_ID", "BUILD_NUMBER", "JOB_NAME", "JOB_URL"] {
        assert_eq!(identify(&env(&[], &[(lone, "1")]), &Overrides::default()), Err(IdentityError::RunRequired));
    }
}

#[test]
fn values_are_judged_by_the_environment() {
    let github = env(GITHUB, &[]);
    assert_eq!(judge("16873243901", &github), []);
    assert_eq!(judge(derived(GITHUB, &[]).key.as_str(), &github), []);
    assert_eq!(judge(derived(GITLAB, &[]).key.as_str(), &env(GITLAB, &[])), []);
    assert_eq!(judge(derived(JENKINS, &[]).key.as_str(), &env(JENKINS, &[])), []);
    assert_eq!(judge("shop-16873243901-e2e", &github), []);
    assert!(judge("0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", &github)[0].why.contains("collapse"));
    assert!(judge("7001", &env(GITLAB, &[]))[0].what.contains("CI_JOB_ID"));
    assert!(judge("1", &github)[0].what.contains("GITHUB_RUN_ATTEMPT"));
    assert!(judge("main", &env(&[], &[]))[0].severity.strict_fails());
}

#[test]
fn an_environment_never_prints_its_values() {
    assert_eq!(format!("{:?}", env(&[("TOKEN", "s3cret")], &[])), "Env(1 variables)");
}

#[test]
fn every_part_is_explained() {
    assert_eq!(explained(&derived(GITHUB, &[])), EXPLAINED_GITHUB);
    assert_eq!(explained(&derived(GITLAB, &[])), EXPLAINED_GITLAB);
}
