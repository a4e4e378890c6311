//! Single platforms: how their names are taken apart, what stands in for what, and what is said where it is doubtful.

use domain::ci::{IdentityError, Overrides};
use domain::{JobName, RunId, ShardRef};

use super::jobs::Job;

fn key(slug: &str, changes: &[(&str, &str)]) -> String {
    let job = Job::of(slug);
    job.key(changes, &job.flags)
}

/// The key behind the run.
fn part(slug: &str, changes: &[(&str, &str)]) -> String {
    let key = key(slug, changes);
    let (_, rest) = key.split_once(":run:").unwrap();
    rest.split_once(':').map_or("", |(_, part)| part).to_owned()
}

fn warnings(slug: &str, changes: &[(&str, &str)]) -> Vec<String> {
    let job = Job::of(slug);
    job.derived(changes, &job.flags).unwrap().warnings
}

#[test]
fn a_job_that_is_not_parallel_has_no_shard() {
    for (slug, index, total, base) in [
        ("circleci", "CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
        ("azure", "SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE", 1),
        ("buildkite", "BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
        ("bitbucket", "BITBUCKET_PARALLEL_STEP", "BITBUCKET_PARALLEL_STEP_COUNT", 0),
        ("semaphore", "SEMAPHORE_JOB_INDEX", "SEMAPHORE_JOB_COUNT", 1),
        ("harness", "HARNESS_NODE_INDEX", "HARNESS_NODE_TOTAL", 0),
    ] {
        let first = base.to_string();
        let nothing = key(slug, &[(index, ""), (total, "")]);
        assert!(!nothing.contains(":shard:"), "{nothing}");
        assert_eq!(key(slug, &[(index, &first), (total, "1")]), nothing);
        assert_eq!(key(slug, &[(index, ""), (total, "1")]), nothing);
        // One without the other is said.
        let said = |changes: &[(&str, &str)]| warnings(slug, changes).iter().any(|warning| warning.contains(index));
        assert!(said(&[(index, "")]), "{slug}");
        assert!(said(&[(total, "")]), "{slug}");
        assert!(!said(&[]) && !said(&[(index, ""), (total, "1")]), "{slug}");
        // The first and the last lie within, one further doesn't; nor does what is no number.
        let last = (base + 2).to_string();
        assert!(key(slug, &[(index, &first), (total, "3")]).contains(":shard:1-3"));
        assert!(key(slug, &[(index, &last), (total, "3")]).contains(":shard:3-3"));
        let job = Job::of(slug);
        for (index_value, total_value) in [((base + 3).to_string(), "3"), ("+1".to_owned(), "3"), (first, "x")] {
            let error = job.derived(&[(index, &index_value), (total, total_value)], &job.flags).unwrap_err();
            assert!(matches!(error, IdentityError::BadVariable { .. }), "{slug}: {error}");
            // The flag replaces it, and then nobody reads it.
            let flags = Overrides { shard: ShardRef::new(1, None).ok(), ..job.flags.clone() };
            assert!(job.key(&[(index, &index_value), (total, total_value)], &flags).contains(":shard:1"));
        }
    }
}

#[test]
fn azure_tells_stages_jobs_places_and_cells_apart() {
    let azure = |stage: &str, phase: &str, job: &str, place: &str| {
        let changes = [
            ("SYSTEM_STAGENAME", stage),
            ("SYSTEM_PHASENAME", phase),
            ("SYSTEM_JOBNAME", job),
            ("SYSTEM_JOBPOSITIONINPHASE", place),
            ("SYSTEM_TOTALJOBSINPHASE", "3"),
        ];
        part("azure", &changes)
    };
    for (stage, phase, job, place, expected) in [
        ("__default", "browser", "browser", "1", "job:browser:shard:1-3"),
        ("", "browser", "__default", "2", "job:browser:shard:2-3"),
        ("__default", "Job", "Job2", "2", "job:Job:shard:2-3"),
        ("Checks", "browser", "browser_3", "3", "job:Checks/browser:shard:3-3"),
        ("Checks", "browser", "firefox", "3", "job:Checks/browser:variant:matrix=firefox"),
        // Ends in a number, but not in its place.
        ("Checks", "browser", "browser_2", "3", "job:Checks/browser:variant:matrix=browser_2"),
        ("__default", "Checks/browser", "", "1", "job:Checks%252Fbrowser:shard:1-3"),
        ("__default", "__default", "__default", "1", "job:__default:shard:1-3"),
    ] {
        assert_eq!(azure(stage, phase, job, place), expected, "{stage} {phase} {job} {place}");
    }
    let job = Job::of("azure");
    let cell = job.derived(&[("SYSTEM_JOBNAME", "firefox")], &job.flags).unwrap();
    assert!(cell.left_out.iter().any(|left| left.variable == "SYSTEM_JOBPOSITIONINPHASE"));
    let cells = [("SYSTEM_JOBNAME", "firefox"), ("SYSTEM_TOTALJOBSINPHASE", "3")];
    assert_eq!(job.derived(&cells, &job.flags).unwrap().expect, Some(3), "as many pushes as cells");
}

#[test]
fn azure_counts_stage_phase_and_job_in_that_order() {
    let job = Job::of("azure");
    let attempt = |stage: &str, phase: &str, of_job: &str| {
        let changes = [("SYSTEM_STAGEATTEMPT", stage), ("SYSTEM_PHASEATTEMPT", phase), ("SYSTEM_JOBATTEMPT", of_job)];
        job.derived(&changes, &job.flags).unwrap().ordinal.map(|ordinal| ordinal.0)
    };
    let rising = [("1", "1", "1"), ("1", "1", "2"), ("1", "2", "1"), ("2", "1", "1"), ("2", "1", "999")];
    let numbers: Vec<_> = rising.iter().map(|(stage, phase, of_job)| attempt(stage, phase, of_job).unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(attempt("", "", "2"), Some(1_001_002));
    // Too high to keep its place among the others, and not counted at all.
    assert_eq!([attempt("1", "1", "1000"), attempt("1", "1", ""), attempt("x", "1", "1")], [None; 3]);
}

#[test]
fn azure_scopes_are_one_per_organisation_whatever_its_address() {
    let at = |uri: &str| key("azure", &[("SYSTEM_COLLECTIONURI", uri)]);
    let first = at("https://dev.azure.com/acme/");
    for same in ["https://dev.azure.com/Acme", "https://acme.visualstudio.com/", "https://ACME.visualstudio.com"] {
        assert_eq!(at(same), first);
    }
    assert_ne!(at("https://dev.azure.com/other/"), first);
    assert!(at("https://TFS.acme.example/tfs/Shop/").starts_with("azure@tfs.acme.example/tfs/Shop:Web%20Shop:run:"));
    let release = [("RELEASE_RELEASEID", "12")];
    let job = Job::of("azure");
    let error = job.derived(&release, &job.flags).unwrap_err().to_string();
    assert!(error.contains("RELEASE_RELEASEID") && error.contains("--run"), "{error}");
    let flags = Overrides { run: RunId::parse("release-12-prod").ok(), ..job.flags.clone() };
    let identity = job.derived(&release, &flags).unwrap();
    assert!(identity.key.as_str().contains(":run:release-12-prod:") && identity.ordinal.is_none());
}

#[test]
fn bitbucket_steps_are_named_by_the_caller_or_by_their_uuid() {
    let job = Job::of("bitbucket");
    let unnamed = job.derived(&[], &Overrides::default()).unwrap();
    // Each of four steps would wait for three parts that the others have.
    assert!(unnamed.key.as_str().ends_with(":job:42a0b1c2-1111-4222-8333-777788889999"), "{}", unnamed.key);
    assert!(unnamed.left_out.iter().any(|left| left.variable == "BITBUCKET_PARALLEL_STEP"));
    assert!(unnamed.warnings.iter().any(|warning| warning.contains("--job")), "{:?}", unnamed.warnings);
    let named = job.derived(&[], &job.flags).unwrap();
    assert_eq!(named.warnings, Vec::<String>::new());
    // A rerun that gave the step another UUID after all.
    let rerun = [("BITBUCKET_STEP_UUID", "{9}"), ("BITBUCKET_STEP_RUN_NUMBER", "2")];
    assert_eq!(job.key(&rerun, &job.flags), named.key.as_str());
    let braces = [("BITBUCKET_PIPELINE_UUID", "31f0a1b2-1111-4222-8333-444455556666")];
    assert_eq!(job.key(&braces, &job.flags), named.key.as_str());
    let number = job.key(&[("BITBUCKET_PIPELINE_UUID", "")], &job.flags);
    assert_eq!(number, "bitbucket:acme/shop:run:318:job:browser:shard:2-4");
}

#[test]
fn buildkite_steps_without_a_key_have_an_id() {
    let unnamed = key("buildkite", &[("BUILDKITE_STEP_KEY", "")]);
    assert!(unnamed.contains(":job:0199f0a3-1111-4222-8333-aaaabbbbcccc:shard:2-4"), "{unnamed}");
    let rebuilt = warnings("buildkite", &[("BUILDKITE_REBUILT_FROM_BUILD_ID", "0199aaaa")]);
    assert!(rebuilt[0].starts_with("this looks like a re-run of build 0199aaaa") && rebuilt.len() == 1, "{rebuilt:?}");
    let triggered = warnings("buildkite", &[("BUILDKITE_TRIGGERED_FROM_BUILD_ID", "0199bbbb")]);
    assert!(triggered[0].contains("--run \"$BUILDKITE_TRIGGERED_FROM_BUILD_ID\""), "{triggered:?}");
    let head = Job::of("buildkite").derived(&[("BUILDKITE_COMMIT", "HEAD")], &Overrides::default()).unwrap();
    assert_eq!(head.commit, None);
}

#[test]
fn circleci_falls_back_on_its_pipeline_and_says_so() {
    let fallback = [("CIRCLE_WORKFLOW_WORKSPACE_ID", "")];
    assert!(key("circleci", &fallback).contains(":run:31f0a1b2-1111-4222-8333-444455556666:job:browser:shard:2-4"));
    assert!(warnings("circleci", &fallback)[0].contains("CIRCLE_WORKFLOW_WORKSPACE_ID"));
    let job = Job::of("circleci");
    let left_out = |changes: &[(&str, &str)]| {
        let identity = job.derived(changes, &job.flags).unwrap();
        identity.left_out.iter().any(|left| left.variable == "CIRCLE_PIPELINE_ID")
    };
    assert_eq!((left_out(&[]), left_out(&fallback)), (true, false));
    let server = [("CIRCLE_BUILD_URL", "https://circle.acme.example/gh/acme/shop/9341")];
    let page = job.derived(&server, &job.flags).unwrap().run_url;
    assert_eq!(page.as_deref(), Some("https://circle.acme.example/gh/acme/shop/9341"));
}

#[test]
fn teamcity_builds_are_known_by_their_address() {
    let at = |url: &str| key("teamcity", &[("BUILD_URL", url)]);
    let first = at("https://tc.acme.example/buildConfiguration/Shop_Browser/7001");
    assert!(first.starts_with("teamcity@tc.acme.example:run:7001:job:Shop/"), "{first}");
    for same in [
        "https://TC.acme.example:443/buildConfiguration/Shop_Browser/7001?mode=builds",
        "https://tc.acme.example/viewLog.html?buildId=7001&buildTypeId=Shop_Browser",
        "https://tc.acme.example/viewLog.html?buildTypeId=Shop_Browser&buildId=7001",
    ] {
        assert_eq!(at(same), first);
    }
    let below = at("https://acme.example/teamcity/buildConfiguration/Shop_Browser/7001");
    assert!(below.starts_with("teamcity@acme.example/teamcity:run:7001:"), "{below}");
    assert!(at("https://tc.acme.example/odd/7001").contains(":run:odd/7001:"));
    // Without a project the configuration alone; never the build's number, which two builds may share.
    assert!(key("teamcity", &[("TEAMCITY_PROJECT_NAME", "")]).contains(":job:Browser%20tests:"));
}

#[test]
fn travis_jobs_are_called_alike_in_every_build() {
    assert_eq!(part("travis", &[("TRAVIS_JOB_NUMBER", "319.2")]), part("travis", &[]));
    assert_eq!(part("travis", &[("TRAVIS_JOB_NUMBER", "318")]), "job:318");
    let own = key("travis", &[("TRAVIS_BUILD_WEB_URL", "https://travis.acme.example/acme/shop/builds/1")]);
    assert!(own.starts_with("travis@travis.acme.example:acme/shop:run:"), "{own}");
    let fallback = [("TRAVIS_BUILD_ID", "")];
    assert_eq!(key("travis", &fallback), "travis:acme/shop:run:318:job:2");
    assert_eq!(warnings("travis", &fallback).len(), 1);
    let job = Job::of("travis");
    let cron = job.derived(&[("TRAVIS_EVENT_TYPE", "cron")], &job.flags).unwrap();
    assert_eq!(cron.workflow.unwrap().as_str(), ".travis.yml#cron");
}

#[test]
fn appveyor_names_are_cells_or_jobs() {
    let named =
        |name: &str, number: &str| part("appveyor", &[("APPVEYOR_JOB_NAME", name), ("APPVEYOR_JOB_NUMBER", number)]);
    assert_eq!(named("Image: Ubuntu", "1"), "shard:2-4:variant:matrix=Image%3A%20Ubuntu");
    assert_eq!(named("browser", "1"), "job:browser:shard:2-4");
    assert_eq!(named("", "2"), "job:2:shard:2-4");
    assert_eq!(named("2", "1"), "job:2/1:shard:2-4");
    let rebuilt = warnings("appveyor", &[("APPVEYOR_RE_BUILD", "True")]);
    assert!(rebuilt[0].starts_with("this looks like a re-run of an earlier build"), "{rebuilt:?}");
    let server = key("appveyor", &[("APPVEYOR_URL", "https://AppVeyor.acme.example/")]);
    assert!(server.starts_with("appveyor@appveyor.acme.example:acme/shop:run:"), "{server}");
}

#[test]
fn codebuild_needs_a_run_to_join_its_builds_and_says_so() {
    assert!(warnings("codebuild", &[])[0].contains("#{codepipeline.PipelineExecutionId}"));
    let job = Job::of("codebuild");
    let flags = Overrides { run: RunId::parse("execution-1").ok(), ..Overrides::default() };
    let first = job.derived(&[], &flags).unwrap();
    assert_eq!(first.key.as_str(), "codebuild:eu-central-1:run:execution-1:job:shop/browser_2");
    assert_eq!(first.warnings, Vec::<String>::new());
    assert!(first.left_out.iter().any(|left| left.variable == "CODEBUILD_BUILD_ID" && left.renewed));
    let retried = [("CODEBUILD_BUILD_ID", "shop:99"), ("CODEBUILD_BUILD_NUMBER", "319")];
    assert_eq!(job.key(&retried, &flags), first.key.as_str());
    // Two projects of one execution, each with a build of that name.
    assert_ne!(job.key(&[("CODEBUILD_BUILD_ID", "billing:99")], &flags), first.key.as_str());
    let lone = job.key(&[("CODEBUILD_BATCH_BUILD_IDENTIFIER", "")], &flags);
    assert_eq!(lone, "codebuild:eu-central-1:run:execution-1:job:shop");
}

#[test]
fn semaphore_jobs_lose_their_part_and_nothing_else() {
    let semaphore = |name: &str, index: &str, total: &str| {
        part(
            "semaphore",
            &[("SEMAPHORE_JOB_NAME", name), ("SEMAPHORE_JOB_INDEX", index), ("SEMAPHORE_JOB_COUNT", total)],
        )
    };
    for (name, index, total, expected) in [
        ("browser - 2/4", "2", "4", "job:Checks/Tests/browser:shard:2-4"),
        ("browser - 2/4", "3", "4", "job:Checks/Tests/browser%20-%202%252F4:shard:3-4"),
        ("browser - 2/4", "", "", "job:Checks/Tests/browser%20-%202%252F4"),
        ("browser - 1/1", "1", "1", "job:Checks/Tests/browser%20-%201%252F1"),
        (" - 2/4", "2", "4", "job:Checks/Tests/-%202%252F4:shard:2-4"),
    ] {
        assert_eq!(semaphore(name, index, total), expected, "{name} {index}/{total}");
    }
    let rerun = warnings("semaphore", &[("SEMAPHORE_WORKFLOW_RERUN", "true")]);
    assert!(rerun[0].starts_with("this looks like a re-run of an earlier workflow") && rerun.len() == 1, "{rerun:?}");
    let own = key("semaphore", &[("SEMAPHORE_ORGANIZATION_URL", "https://ci.acme.example")]);
    assert!(own.starts_with("semaphore@ci.acme.example:shop:run:"), "{own}");
}

#[test]
fn harness_counts_two_loops_as_one() {
    let harness = |stage: (&str, &str), step: (&str, &str)| {
        let changes = [
            ("HARNESS_STAGE_INDEX", stage.0),
            ("HARNESS_STAGE_TOTAL", stage.1),
            ("HARNESS_STEP_INDEX", step.0),
            ("HARNESS_STEP_TOTAL", step.1),
        ];
        part("harness", &changes)
    };
    let mut places: Vec<String> = (0..2)
        .flat_map(|stage| (0..3).map(move |step| (stage.to_string(), step.to_string())))
        .map(|(stage, step)| harness((&stage, "2"), (&step, "3")))
        .collect();
    assert_eq!(places[5], "job:tests/browser:shard:6-6");
    places.dedup();
    assert_eq!(places.len(), 6);
    assert_eq!(harness(("1", "2"), ("0", "1")), "job:tests/browser:shard:2-2");
    assert_eq!(harness(("0", "1"), ("1", "3")), "job:tests/browser:shard:2-3");
    // One loop: the node's own place.
    assert_eq!(harness(("1", "2"), ("", "")), "job:tests/browser:shard:2-4");
    let job = Job::of("harness");
    let identity = job.derived(&[("HARNESS_BUILD_ID", "")], &job.flags);
    assert_eq!(identity.unwrap().key, job.derived(&[], &job.flags).unwrap().key);
}

#[test]
fn a_restart_on_woodpecker_is_seen_and_a_run_of_ones_own_settles_it() {
    let restarted = [("CI_PIPELINE_NUMBER", "319"), ("CI_PIPELINE_PARENT", "2210")];
    let said = warnings("woodpecker", &restarted);
    assert!(said[0].starts_with("this looks like a re-run of an earlier pipeline") && said.len() == 1, "{said:?}");
    let job = Job::of("woodpecker");
    let flags = Overrides { run: RunId::parse("nightly-1").ok(), ..job.flags.clone() };
    let again = job.derived(&restarted, &flags).unwrap();
    assert_eq!(again.key, job.derived(&[], &flags).unwrap().key);
    assert_eq!(again.warnings, Vec::<String>::new());
    let spelled = [("CI_SYSTEM_HOST", ""), ("CI_SYSTEM_URL", "https://Woodpecker.acme.example/")];
    assert_eq!(key("woodpecker", &spelled), key("woodpecker", &[]));
}

#[test]
fn forgejo_reads_its_own_names_where_the_others_are_missing() {
    let own = [("GITHUB_RUN_ID", ""), ("GITHUB_SERVER_URL", ""), ("GITHUB_REPOSITORY", ""), ("GITHUB_JOB", "")];
    assert_eq!(key("forgejo", &own), key("forgejo", &[]));
    let periodic = [("REPO_OWNER", ""), ("REPO_NAME", "")];
    assert!(key("prow", &periodic).starts_with("prow:run:31f0a1b2"));
    let job = Job::of("prow");
    let flags = Overrides { job: JobName::parse("browser").ok(), ..job.flags.clone() };
    assert!(job.key(&[("JOB_NAME", "")], &flags).contains(":job:browser:"));
}

#[test]
fn a_step_of_vela_is_called_after_its_stage_and_a_job_of_appveyor_is_no_number() {
    let vela = |stage: &str, step: &str| key("vela", &[("VELA_STEP_STAGE", stage), ("VELA_STEP_NAME", step)]);
    assert!(vela("", "test").contains(":job:test:"), "{}", vela("", "test"));
    assert!(vela("linux", "test").contains(":job:linux/test:"), "{}", vela("linux", "test"));
    assert_ne!(vela("linux", "test"), vela("arm", "test"));
    let appveyor =
        |name: &str, number: &str| key("appveyor", &[("APPVEYOR_JOB_NAME", name), ("APPVEYOR_JOB_NUMBER", number)]);
    assert_ne!(appveyor("12", "3"), appveyor("12/3", "4"));
}
