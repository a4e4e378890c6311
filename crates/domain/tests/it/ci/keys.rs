//! Keys of the jobs in `tests/env` letter by letter, and what is peculiar to a platform.

use domain::ci::{Effect, IdentityError, Overrides};
use domain::{JobName, Ordinal, OrdinalScope, RunId};

use super::jobs::Job;

fn run(text: &str) -> Overrides {
    Overrides { run: RunId::parse(text).ok(), ..Overrides::default() }
}

fn refusal(slug: &str, changes: &[(&str, &str)], flags: &Overrides) -> IdentityError {
    match Job::of(slug).derived(changes, flags) {
        Err(error) => error,
        Ok(identity) => panic!("{slug} is not refused: {}", identity.key),
    }
}

fn warnings(slug: &str, changes: &[(&str, &str)], flags: &Overrides) -> Vec<String> {
    Job::of(slug).derived(changes, flags).unwrap().warnings
}

#[test]
fn keys_letter_by_letter() {
    for (slug, key) in [
        ("drone", "drone@drone.acme.example:acme/shop:run:318:job:checks/browser:shard:1-4"),
        ("codefresh", "codefresh:shop/checks:run:6712ab34cd56ef7890123456:job:browser:shard:1-4"),
        ("bamboo", "bamboo@bamboo.acme.example/ci:run:CART-CHECK4-93:job:UI"),
        ("gocd", "gocd@gocd.acme.example/go:run:shop/212:job:checks/browser:shard:2-4"),
        ("cirrus", "cirrus:acme/shop:run:5123400067890001:job:browser%20firefox:shard:1-4"),
        ("screwdriver", "screwdriver@cd.acme.example:1207:run:60414:job:browser:shard:1-4"),
        ("bitrise", "bitrise:7c2f11e09ab34d55:run:51f0a3c2-1111-4222-8333-444455556666:job:browser:shard:2-3"),
        ("taskcluster", "taskcluster@taskcluster.acme.example:run:Qk3vXz0tT8uB2n4c6P8r1w"),
        ("vela", "vela@vela.acme.example:acme/shop:run:41:job:browser:shard:1-4"),
        ("cloudbuild", "cloudbuild:acme-shop:run:9d8c7b6a-1111-4222-8333-000011112222:job:browser:shard:1-4"),
        ("sourcehut", "sourcehut:~acme:run:1622077:job:browser:shard:1-4"),
        ("concourse", "run:main/shop/browser/31:job:browser:shard:1-4"),
        ("argo", "run:ci/7d1f2a3b-1111-4222-8333-aaaabbbbcccc:job:browser:shard:1-4"),
        ("tekton", "run:3b6c9d2e-1111-4222-8333-ddddeeeeffff:job:browser:shard:1-4"),
        ("zuul", "run:9f8e7d6c5b4a49388271605f4e3d2c1b:job:shop-browser:shard:1-4"),
    ] {
        let job = Job::of(slug);
        assert_eq!(job.key(&[], &job.flags), key);
    }
}

#[test]
fn the_context_comes_along() {
    let commit = "c4d1f0a97be2635840917cfe21a0b3d5e6f78190";
    for (slug, cycle, project, commit, url) in [
        ("drone", "pr-57", "shop", commit, "https://drone.acme.example/acme/shop/318"),
        ("codefresh", "pr-57", "shop", commit, "https://g.codefresh.io/build/6712ab34cd56ef7890123456"),
        ("bamboo", "pr-57", "shop", commit, "https://bamboo.acme.example/ci/browse/CART-CHECK4-UI-93"),
        ("gocd", "", "", commit, "https://gocd.acme.example/go/pipelines/value_stream_map/shop/212"),
        ("cirrus", "pr-57", "shop", commit, "https://cirrus-ci.com/build/5123400067890001"),
        ("screwdriver", "pr-57", "shop", commit, "https://cd.acme.example/pipelines/1207/builds/701202"),
        ("bitrise", "pr-57", "shop", commit, "https://app.bitrise.io/build/0a9b8c7d-1111-4222-8333-777788889999"),
        ("taskcluster", "", "", "", "https://taskcluster.acme.example/tasks/Qk3vXz0tT8uB2n4c6P8r1w"),
        ("vela", "pr-57", "shop", commit, "https://vela.acme.example/acme/shop/41"),
        (
            "cloudbuild",
            "pr-57",
            "shop",
            commit,
            "https://console.cloud.google.com/cloud-build/builds;region=europe-west1/9d8c7b6a-1111-4222-8333-000011112222\
             ?project=acme-shop",
        ),
        ("sourcehut", "faster-cart", "", "", "https://builds.sr.ht/~acme/job/1622077"),
        ("concourse", "", "", "", ""),
    ] {
        let job = Job::of(slug);
        let identity = job.derived(&[], &job.flags).unwrap();
        let text = |value: Option<String>| value.unwrap_or_default();
        assert_eq!(text(identity.default_cycle().map(|cycle| cycle.to_string())), cycle, "{slug}");
        assert_eq!(text(identity.default_project().map(|project| project.as_str().to_owned())), project, "{slug}");
        assert_eq!(text(identity.commit.map(|commit| commit.to_string())), commit, "{slug}");
        assert_eq!(text(identity.run_url), url, "{slug}");
    }
}

#[test]
fn a_missing_part_refuses_and_names_its_variable() {
    for (slug, variable, flag) in [
        ("drone", "DRONE_BUILD_NUMBER", "--run"),
        ("drone", "DRONE_SYSTEM_HOST", "--run"),
        ("drone", "DRONE_REPO", "--run"),
        ("drone", "DRONE_STEP_NAME", "--job"),
        ("codefresh", "CF_PIPELINE_NAME", "--run"),
        ("codefresh", "CF_STEP_NAME", "--job"),
        ("bamboo", "bamboo_planKey", "--run"),
        ("bamboo", "bamboo_shortJobKey", "--job"),
        ("gocd", "GO_PIPELINE_COUNTER", "--run"),
        ("gocd", "GO_SERVER_URL", "--run"),
        ("gocd", "GO_STAGE_NAME", "--job"),
        ("gocd", "GO_JOB_NAME", "--job"),
        ("cirrus", "CIRRUS_BUILD_ID", "--run"),
        ("cirrus", "CIRRUS_TASK_NAME", "--job"),
        ("screwdriver", "SD_EVENT_ID", "--run"),
        ("screwdriver", "SD_PIPELINE_ID", "--run"),
        ("screwdriver", "SD_JOB_NAME", "--job"),
        ("bitrise", "BITRISE_APP_SLUG", "--run"),
        ("bitrise", "BITRISE_TRIGGERED_WORKFLOW_ID", "--job"),
        ("vela", "VELA_BUILD_NUMBER", "--run"),
        ("vela", "VELA_REPO_FULL_NAME", "--run"),
        ("vela", "VELA_STEP_NAME", "--job"),
        ("cloudbuild", "PROJECT_ID", "--run"),
    ] {
        match refusal(slug, &[(variable, "")], &Overrides::default()) {
            IdentityError::MissingVariable { variable: named, flag: way_out, .. } => {
                assert_eq!((named, way_out), (variable, flag), "{slug}");
            }
            other => panic!("{slug} without {variable}: {other}"),
        }
    }
    let neither = [("BITRISEIO_PIPELINE_ID", ""), ("BITRISE_BUILD_SLUG", "")];
    let error = refusal("bitrise", &neither, &Overrides::default());
    assert!(matches!(error, IdentityError::MissingVariable { variable: "BITRISE_BUILD_SLUG", flag: "--run", .. }));
}

#[test]
fn where_nothing_names_the_run_or_the_job_the_refusal_teaches() {
    for (slug, changes, flags, part, words) in [
        ("cloudbuild", &[("BUILD_ID", "")][..], run("").clone(), "--run", "'BUILD_ID=$BUILD_ID'"),
        ("cloudbuild", &[("TRIGGER_NAME", "")], run(""), "--job", "the step's name as --job NAME"),
        ("sourcehut", &[], run(""), "--job", "the task's name as --job NAME"),
        ("taskcluster", &[], run("a group"), "--job", "--on-difference revise"),
        ("concourse", &[], run(""), "--run", "${BUILD_NAME%%.*}"),
        ("argo", &[], run(""), "--run", "{{workflow.uid}}"),
        ("tekton", &[], run(""), "--run", "$(context.pipelineRun.uid)"),
        ("zuul", &[], run(""), "--run", "{{ zuul.buildset }}"),
    ] {
        let error = refusal(slug, changes, &flags);
        let fits = match part {
            "--run" => matches!(error, IdentityError::NoRun { .. }),
            _ => matches!(error, IdentityError::NoJob { .. }),
        };
        let text = error.to_string();
        assert!(fits && text.contains(part) && text.contains(words), "{slug}: {text}");
    }
}

#[test]
fn a_rerun_that_shows_itself_is_said() {
    for (slug, variable, old) in [("screwdriver", "SD_PARENT_EVENT_ID", "60001"), ("vela", "VELA_BUILD_PARENT", "40")] {
        let job = Job::of(slug);
        assert_eq!(warnings(slug, &[], &job.flags), Vec::<String>::new());
        let said = warnings(slug, &[(variable, old)], &job.flags);
        assert!(said[0].contains(old) && said[0].contains("--run") && said.len() == 1, "{said:?}");
        assert_eq!(warnings(slug, &[(variable, old)], &run("mine")), Vec::<String>::new());
        let restart = job.derived(&[], &job.flags).unwrap().reruns[0];
        assert_eq!(restart.effect, Effect::YouDecide);
    }
    // A build that nobody restarted says 0.
    assert_eq!(Job::of("vela").value("VELA_BUILD_PARENT"), "0");
}

#[test]
fn where_work_may_share_a_key_or_a_round_it_is_said() {
    let task = warnings("taskcluster", &[], &Overrides::default());
    assert!(task.len() == 1 && task[0].contains("--run") && task[0].contains("--job"), "{task:?}");
    assert_eq!(warnings("taskcluster", &[], &run("Qk3vXz0tT8uB2n4c6P8r1w")), Vec::<String>::new());
    let step = warnings("cloudbuild", &[], &Overrides::default());
    assert!(step.len() == 1 && step[0].contains("--job NAME in each"), "{step:?}");
    let lone = warnings("argo", &[], &run("uid"));
    assert!(lone.len() == 1 && lone[0].contains("--job NAME in each") && lone[0].contains("--shard"), "{lone:?}");
    let named = Overrides { job: JobName::parse("browser").ok(), ..run("main/shop/browser/31.1") };
    let rerun = warnings("concourse", &[], &named);
    assert!(rerun.len() == 1 && rerun[0].contains("${BUILD_NAME%%.*}"), "{rerun:?}");
    for fine in ["main/shop/browser/31", "main/shop/v1.2/31", "main/shop/browser#31"] {
        let flags = Overrides { run: RunId::parse(fine).ok(), ..named.clone() };
        assert_eq!(warnings("concourse", &[], &flags), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn servers_are_told_apart_and_spelled_alike() {
    for (slug, url) in [
        ("bamboo", "bamboo_resultsUrl"),
        ("screwdriver", "SD_UI_BUILD_URL"),
        ("vela", "VELA_BUILD_LINK"),
        ("gocd", "GO_SERVER_URL"),
        ("taskcluster", "TASKCLUSTER_ROOT_URL"),
    ] {
        let job = Job::of(slug);
        let first = job.key(&[], &job.flags);
        let loud = job.value(url).replacen(".acme.example", ".ACME.example:443", 1);
        assert_eq!(job.key(&[(url, &loud)], &job.flags), first, "{slug}");
        let other = job.value(url).replacen(".acme.", ".other.", 1);
        assert_ne!(job.key(&[(url, &other)], &job.flags), first, "{slug}");
    }
    for (slug, url) in [("screwdriver", "SD_UI_BUILD_URL"), ("vela", "VELA_BUILD_LINK")] {
        let said = warnings(slug, &[(url, "")], &Overrides::default());
        assert!(said.len() == 1 && said[0].contains(url), "{said:?}");
    }
    let neither = [("bamboo_resultsUrl", ""), ("bamboo_buildResultsUrl", "")];
    assert_eq!(warnings("bamboo", &neither, &Overrides::default()).len(), 1);
}

#[test]
fn bamboo_takes_the_number_out_of_the_result() {
    let job = Job::of("bamboo");
    assert_eq!(job.key(&[("bamboo_buildNumber", "")], &job.flags), job.key(&[], &job.flags));
    let neither = [("bamboo_buildNumber", ""), ("bamboo_buildResultKey", "")];
    let error = refusal("bamboo", &neither, &Overrides::default());
    assert!(matches!(error, IdentityError::MissingVariable { variable: "bamboo_buildNumber", .. }), "{error}");
}

#[test]
fn gocd_instances_are_taken_off_the_name() {
    let job = Job::of("gocd");
    let part = |name: &str, index: &str, count: &str| {
        let key = job.key(
            &[("GO_JOB_NAME", name), ("GO_JOB_RUN_INDEX", index), ("GO_JOB_RUN_COUNT", count)],
            &Overrides::default(),
        );
        key.split_once(":job:").unwrap().1.to_owned()
    };
    assert_eq!(part("browser-runInstance-3", "3", "4"), "checks/browser:shard:3-4");
    assert_eq!(part("browser-runInstance-1", "1", "1"), "checks/browser");
    assert_eq!(part("browser-runInstance-2", "3", "4"), "checks/browser-runInstance-2:shard:3-4");
    assert_eq!(part("browser-runOnAll-2", "", ""), "checks/browser-runOnAll-2");
    assert_eq!(part("a/b", "", ""), "checks/a%252Fb");
    let identity = job.derived(&[("GO_STAGE_COUNTER", "3")], &Overrides::default()).unwrap();
    assert_eq!((identity.ordinal, identity.ordinal_scope), (Some(Ordinal(3)), OrdinalScope::Key));
}

#[test]
fn a_bitrise_workflow_outside_a_pipeline_is_its_build() {
    let job = Job::of("bitrise");
    let lone = [("BITRISEIO_PIPELINE_ID", ""), ("BITRISE_IO_PARALLEL_INDEX", ""), ("BITRISE_IO_PARALLEL_TOTAL", "")];
    let identity = job.derived(&lone, &Overrides::default()).unwrap();
    assert_eq!(identity.key.as_str(), "bitrise:7c2f11e09ab34d55:run:0a9b8c7d-1111-4222-8333-777788889999:job:browser");
    assert!(!identity.left_out.iter().any(|left| left.variable == "BITRISE_BUILD_SLUG"));
    assert_eq!(identity.run_counter, Some(844));
    let pipeline = job.derived(&[], &Overrides::default()).unwrap();
    assert!(pipeline.left_out.iter().any(|left| left.variable == "BITRISE_BUILD_SLUG" && left.renewed));
    assert_eq!((pipeline.ordinal, pipeline.executor), (Some(Ordinal(1_790_000_000)), None));
}

#[test]
fn a_task_counts_its_attempts_from_its_own_variable() {
    let job = Job::of("taskcluster");
    let identity = job.derived(&[], &Overrides::default()).unwrap();
    assert_eq!((identity.ordinal, identity.ordinal_scope), (Some(Ordinal(1)), OrdinalScope::Key));
    let group = Overrides { job: JobName::parse("browser 1").ok(), ..run("group") };
    let shared = job.derived(&[], &group).unwrap();
    assert_eq!(shared.key.as_str(), "taskcluster@taskcluster.acme.example:run:group:job:browser%201");
    assert_eq!(shared.ordinal, None, "of another run than the task's");
}

#[test]
fn sourcehut_addresses_are_taken_apart() {
    let job = Job::of("sourcehut");
    for (url, start) in [
        ("https://builds.sr.ht/~acme/job/17", "sourcehut:~acme:run:17:"),
        ("https://Builds.acme.example/~acme/job/17/", "sourcehut@builds.acme.example:~acme:run:17:"),
        ("https://builds.acme.example/job/17", "sourcehut@builds.acme.example:run:17:"),
        ("https://builds.acme.example/17", "sourcehut:run:builds.acme.example/17:"),
    ] {
        let key = job.key(&[("JOB_URL", url)], &job.flags);
        assert!(key.starts_with(start), "{key}");
    }
    let patch = job.derived(&[("PATCHSET_ID", "8812"), ("GIT_REF", "")], &job.flags).unwrap();
    assert_eq!(patch.default_cycle().unwrap().as_str(), "pr-8812");
    let tag = job.derived(&[("GIT_REF", "refs/tags/v1")], &job.flags).unwrap();
    assert_eq!(tag.branch.as_deref(), Some("v1"));
}

#[test]
fn scheduled_builds_are_workflows_of_their_own() {
    for (slug, variable, event) in [("drone", "DRONE_BUILD_EVENT", "cron"), ("vela", "VELA_BUILD_EVENT", "schedule")] {
        let job = Job::of(slug);
        let workflow = |event: &str| job.derived(&[(variable, event)], &job.flags).unwrap().workflow;
        assert_eq!(workflow("push"), workflow("pull_request"));
        assert_eq!(workflow(event).unwrap().as_str(), event);
    }
}
