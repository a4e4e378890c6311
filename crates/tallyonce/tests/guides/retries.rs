//! What the guides say of tests that are executed again: which platforms number the attempts, and what counts where they don't.
//! Must not know how that is decided.

use proof::spawn::{Binary, Run};
use serde_json::Value;

use crate::work;

const FAILS: &str = "<testsuite name=\"s\"><testcase name=\"one\"><failure message=\"boom\"/></testcase></testsuite>";
const PASSES: &str = "<testsuite name=\"s\"><testcase name=\"one\"/></testsuite>";

/// A job in which a test fails, and then the same job again, in which it passes: `again` is what changes, `flags` is passed each
/// time. Gives what became of the second push, and how many items failed and are flaky then.
fn twice(platform: &str, again: &[(&str, &str)], flags: &[&str]) -> (String, u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let binary = Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap();
    let mut env = work::example_environment(platform).unwrap();
    let mut last = Value::Null;
    for report in [FAILS, PASSES] {
        std::fs::write(folder.path().join("r.xml"), report).unwrap();
        // By the shell, as in the guides: flags may name variables.
        let command =
            format!("tallyonce push r.xml --to sqlite:t.db --project shop --cycle main --json {}", flags.join(" "));
        let search = format!("{}:/usr/bin:/bin", binary.path().parent().unwrap().display());
        let shell = Binary::at("/bin/sh").unwrap();
        let run = Run::new(&shell).args(["-euc", &command]).folder(folder.path()).envs(env.clone()).env("PATH", search);
        let finished = run.timeout(work::PATIENCE).output().unwrap();
        assert_eq!(finished.code, Some(0), "{platform} {flags:?}: {finished}");
        last = serde_json::from_str(finished.stdout.trim()).unwrap();
        env.extend(again.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }
    let count = |name: &str| last["counts"][name].as_u64().unwrap();
    (last["state"].as_str().unwrap().to_owned(), count("failed"), count("flaky"))
}

#[test]
fn a_pass_in_a_retry_is_flaky_where_attempts_are_numbered() {
    for (platform, again) in [
        ("github", &[("GITHUB_RUN_ATTEMPT", "2"), ("RUNNER_TRACKING_ID", "other")][..]),
        ("gitea", &[("GITHUB_RUN_ATTEMPT", "2"), ("RUNNER_NAME", "other")]),
        ("forgejo", &[("GITHUB_RUN_ATTEMPT", "2"), ("RUNNER_NAME", "other")]),
        ("gitlab", &[("CI_JOB_ID", "9340000999")]),
        ("azure", &[("SYSTEM_JOBATTEMPT", "2"), ("SYSTEM_JOBID", "53b0c1d2-1111-4222-8333-aaaabbbb0000")]),
        ("buildkite", &[("BUILDKITE_RETRY_COUNT", "1"), ("BUILDKITE_JOB_ID", "0199f0a2-1111-4222-8333-777788880000")]),
        ("bitbucket", &[("BITBUCKET_STEP_RUN_NUMBER", "2")]),
        (
            "circleci",
            &[("CIRCLE_WORKFLOW_JOB_ID", "53b0c1d2-1111-4222-8333-aaaabbbb0000"), ("CIRCLE_BUILD_NUM", "9350")],
        ),
    ] {
        assert_eq!(twice(platform, again, &[]), ("revised".to_owned(), 0, 1), "{platform}");
    }
}

#[test]
fn without_numbers_the_first_counts_unless_the_guides_advice_is_taken() {
    // Jobs of another build, under the run of the one that started it.
    let child = [
        ("BUILDKITE_BUILD_ID", "0199f0a9-1111-4222-8333-444455556666"),
        ("BUILDKITE_JOB_ID", "0199f0a2-1111-4222-8333-777788880000"),
    ];
    let counted = [("BUILDKITE_RETRY_COUNT", "1"), ("BUILDKITE_JOB_ID", "0199f0a2-1111-4222-8333-777788880000")];
    let pipeline = [("CI_PIPELINE_ID", "1940011999"), ("CI_JOB_ID", "9340000999")];
    let codebuild =
        [("CODEBUILD_BUILD_ID", "shop:51f0a1b2-1111-4222-8333-444455556666"), ("CODEBUILD_BUILD_NUMBER", "319")];
    let jenkins = [("NODE_NAME", "agent-8")];
    let pod = [("HOSTNAME", "shop-browser-2-zzzzz")];
    let build = [("BUILD_URL", "https://teamcity.acme.example/buildConfiguration/Shop_Browser/1940012")];
    for (platform, again, flags, advice) in [
        ("buildkite", &child[..], "--run 7", "--on-difference revise"),
        ("buildkite", &counted, "--run 7", "--attempt \"$BUILDKITE_RETRY_COUNT\""),
        ("gitlab", &pipeline, "--run 7", "--on-difference revise"),
        ("codebuild", &codebuild, "--run 7", "--attempt \"$CODEBUILD_BUILD_NUMBER\""),
        ("jenkins", &jenkins, "", "--on-difference revise"),
        ("k8s", &pod, "", "--on-difference revise"),
        ("teamcity", &build, "--run 7", "--on-difference revise"),
    ] {
        assert_eq!(twice(platform, again, &[flags]), ("replayed".to_owned(), 1, 0), "{platform}");
        assert_eq!(twice(platform, again, &[flags, advice]), ("revised".to_owned(), 0, 1), "{platform} {advice}");
    }
}
