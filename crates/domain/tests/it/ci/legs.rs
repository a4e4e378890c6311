//! What must differ and what must not, on every platform: two runs of a commit, two jobs of a run, two shards of a job, two
//! legs of a matrix; and a job tried again. Where the environment tells two apart it must be enough; where it can't, the
//! words must name the flag that does.

use domain::ci::Overrides;
use domain::{JobName, RunId, ShardRef, Variant};

use super::jobs::{Changes, Job, words};

/// Two pieces of work as two environments.
type Two = (Changes, Changes);

/// What tells them apart.
#[derive(Clone, Copy)]
enum Told {
    /// These variables of the environment.
    Here(Two),
    /// The caller alone.
    Passed,
}

use Told::{Here, Passed};

/// A platform: runs, jobs, shards, legs; and what a retry renews.
struct Row {
    slug: &'static str,
    runs: Told,
    jobs: Told,
    shards: Told,
    legs: Told,
    retry: Changes,
}

const fn row(slug: &'static str, [runs, jobs, shards, legs]: [Told; 4], retry: Changes) -> Row {
    Row { slug, runs, jobs, shards, legs, retry }
}

/// Two values of one variable.
macro_rules! of {
    ($name:literal: $a:literal, $b:literal) => {
        Here((&[($name, $a)], &[($name, $b)]))
    };
    ($name:literal: $a:literal, $b:literal; $total:literal) => {
        Here((&[($name, $a), ($total, "2")], &[($name, $b), ($total, "2")]))
    };
}

const MATRIX: [Told; 2] = [
    Here((&[("TALLYONCE_MATRIX", r#"{"shard":"1/2"}"#)], &[("TALLYONCE_MATRIX", r#"{"shard":"2/2"}"#)])),
    Here((&[("TALLYONCE_MATRIX", r#"{"os":"linux"}"#)], &[("TALLYONCE_MATRIX", r#"{"os":"mac"}"#)])),
];

const ROWS: [Row; 33] = [
    row("prow", [of!("PROW_JOB_ID": "a", "b"), of!("JOB_NAME": "a", "b"), Passed, Passed], &[("BUILD_ID", "9")]),
    row(
        "forgejo",
        [
            Here((
                &[("GITHUB_RUN_ID", "7"), ("FORGEJO_RUN_ID", "7")],
                &[("GITHUB_RUN_ID", "8"), ("FORGEJO_RUN_ID", "8")],
            )),
            Here((&[("GITHUB_JOB", "a"), ("FORGEJO_JOB", "a")], &[("GITHUB_JOB", "b"), ("FORGEJO_JOB", "b")])),
            MATRIX[0],
            MATRIX[1],
        ],
        &[("GITHUB_RUN_ATTEMPT", "9"), ("RUNNER_NAME", "other")],
    ),
    row(
        "gitea",
        [of!("GITHUB_RUN_ID": "7", "8"), of!("GITHUB_JOB": "a", "b"), MATRIX[0], MATRIX[1]],
        &[("GITHUB_RUN_ATTEMPT", "9"), ("RUNNER_NAME", "other")],
    ),
    row(
        "github",
        [of!("GITHUB_RUN_ID": "7", "8"), of!("GITHUB_JOB": "a", "b"), MATRIX[0], MATRIX[1]],
        &[("GITHUB_RUN_ATTEMPT", "9"), ("RUNNER_NAME", "other"), ("RUNNER_TRACKING_ID", "other")],
    ),
    row(
        "woodpecker",
        [of!("CI_PIPELINE_NUMBER": "7", "8"), of!("CI_STEP_NAME": "a", "b"), Passed, Passed],
        &[("CI_STEP_STARTED", "1790009999"), ("CI_MACHINE", "other")],
    ),
    row(
        "gitlab",
        [
            of!("CI_PIPELINE_ID": "7", "8"),
            of!("CI_JOB_NAME": "a", "b"),
            of!("CI_NODE_INDEX": "1", "2"; "CI_NODE_TOTAL"),
            of!("CI_JOB_NAME": "a: [linux]", "a: [mac]"),
        ],
        &[("CI_JOB_ID", "999"), ("GITLAB_USER_LOGIN", "other")],
    ),
    row(
        "circleci",
        [
            of!("CIRCLE_WORKFLOW_WORKSPACE_ID": "a", "b"),
            of!("CIRCLE_JOB": "a", "b"),
            of!("CIRCLE_NODE_INDEX": "0", "1"; "CIRCLE_NODE_TOTAL"),
            of!("CIRCLE_JOB": "unit-linux", "unit-mac"),
        ],
        &[("CIRCLE_WORKFLOW_ID", "other"), ("CIRCLE_BUILD_NUM", "999")],
    ),
    row(
        "azure",
        [
            of!("BUILD_BUILDID": "7", "8"),
            of!("SYSTEM_PHASENAME": "a", "b"),
            of!("SYSTEM_JOBPOSITIONINPHASE": "1", "2"; "SYSTEM_TOTALJOBSINPHASE"),
            of!("SYSTEM_JOBNAME": "linux", "mac"),
        ],
        &[("SYSTEM_JOBID", "other"), ("SYSTEM_JOBATTEMPT", "2"), ("AGENT_NAME", "other")],
    ),
    row(
        "buildkite",
        [
            of!("BUILDKITE_BUILD_ID": "a", "b"),
            of!("BUILDKITE_STEP_KEY": "a", "b"),
            of!("BUILDKITE_PARALLEL_JOB": "0", "1"; "BUILDKITE_PARALLEL_JOB_COUNT"),
            Passed,
        ],
        &[("BUILDKITE_JOB_ID", "other"), ("BUILDKITE_RETRY_COUNT", "1"), ("BUILDKITE_AGENT_ID", "other")],
    ),
    row(
        "bitbucket",
        [
            of!("BITBUCKET_PIPELINE_UUID": "{a}", "{b}"),
            of!("BITBUCKET_STEP_UUID": "{a}", "{b}"),
            of!("BITBUCKET_PARALLEL_STEP": "0", "1"; "BITBUCKET_PARALLEL_STEP_COUNT"),
            Passed,
        ],
        &[("BITBUCKET_STEP_RUN_NUMBER", "9")],
    ),
    row(
        "teamcity",
        [
            of!("BUILD_URL": "https://tc.acme.example/buildConfiguration/S/7", "https://tc.acme.example/buildConfiguration/S/8"),
            of!("TEAMCITY_BUILDCONF_NAME": "a", "b"),
            Passed,
            Passed,
        ],
        &[],
    ),
    row(
        "travis",
        [
            of!("TRAVIS_BUILD_ID": "7", "8"),
            of!("TRAVIS_JOB_NUMBER": "41.1", "41.2"),
            of!("TRAVIS_JOB_NUMBER": "41.1", "41.2"),
            of!("TRAVIS_JOB_NUMBER": "41.1", "41.2"),
        ],
        &[],
    ),
    row(
        "appveyor",
        [
            of!("APPVEYOR_BUILD_ID": "7", "8"),
            of!("APPVEYOR_JOB_NAME": "a", "b"),
            Passed,
            of!("APPVEYOR_JOB_NAME": "Image: Ubuntu", "Image: macOS"),
        ],
        &[("APPVEYOR_JOB_ID", "other")],
    ),
    row(
        "codebuild",
        [
            of!("CODEBUILD_BUILD_ID": "shop:a", "shop:b"),
            of!("CODEBUILD_BATCH_BUILD_IDENTIFIER": "a", "b"),
            Passed,
            Passed,
        ],
        &[("CODEBUILD_START_TIME", "1790009999000"), ("CODEBUILD_LOG_PATH", "other")],
    ),
    row(
        "semaphore",
        [
            of!("SEMAPHORE_WORKFLOW_ID": "a", "b"),
            of!("SEMAPHORE_JOB_NAME": "a", "b"),
            of!("SEMAPHORE_JOB_INDEX": "1", "2"; "SEMAPHORE_JOB_COUNT"),
            of!("SEMAPHORE_JOB_NAME": "a - OS=linux", "a - OS=mac"),
        ],
        &[("SEMAPHORE_PIPELINE_ID", "other"), ("SEMAPHORE_JOB_ID", "other")],
    ),
    row(
        "harness",
        [
            of!("HARNESS_EXECUTION_ID": "a", "b"),
            of!("DRONE_STEP_NAME": "a", "b"),
            of!("HARNESS_NODE_INDEX": "0", "1"; "HARNESS_NODE_TOTAL"),
            Passed,
        ],
        &[],
    ),
    row(
        "drone",
        [
            of!("DRONE_BUILD_NUMBER": "7", "8"),
            of!("DRONE_STEP_NAME": "a", "b"),
            Passed,
            of!("DRONE_STAGE_NAME": "linux", "mac"),
        ],
        &[("DRONE_STAGE_STARTED", "1790009999"), ("DRONE_STAGE_MACHINE", "other")],
    ),
    row(
        "codefresh",
        [of!("CF_BUILD_ID": "a", "b"), of!("CF_STEP_NAME": "a", "b"), Passed, Passed],
        &[("CF_BUILD_TIMESTAMP", "1790009999000")],
    ),
    row(
        "bamboo",
        [
            of!("bamboo_buildNumber": "7", "8"),
            of!("bamboo_shortJobKey": "A", "B"),
            of!("bamboo_shortJobKey": "UI1", "UI2"),
            of!("bamboo_shortJobKey": "LINUX", "MAC"),
        ],
        &[("bamboo_buildTimeStamp", "2026-09-22T01:00:00.000Z"), ("bamboo_agentId", "other")],
    ),
    row(
        "gocd",
        [
            of!("GO_PIPELINE_COUNTER": "7", "8"),
            of!("GO_JOB_NAME": "a", "b"),
            of!("GO_JOB_RUN_INDEX": "1", "2"; "GO_JOB_RUN_COUNT"),
            of!("GO_JOB_NAME": "linux", "mac"),
        ],
        &[("GO_STAGE_COUNTER", "2"), ("GO_TRIGGER_USER", "other")],
    ),
    row(
        "cirrus",
        [
            of!("CIRRUS_BUILD_ID": "7", "8"),
            of!("CIRRUS_TASK_NAME": "a", "b"),
            Passed,
            of!("CIRRUS_TASK_NAME": "unit linux", "unit mac"),
        ],
        &[("CIRRUS_TASK_ID", "999")],
    ),
    row(
        "screwdriver",
        [of!("SD_EVENT_ID": "7", "8"), of!("SD_JOB_NAME": "a", "b"), Passed, Passed],
        &[("SD_BUILD_ID", "999")],
    ),
    row(
        "bitrise",
        [
            of!("BITRISEIO_PIPELINE_ID": "a", "b"),
            of!("BITRISE_TRIGGERED_WORKFLOW_ID": "a", "b"),
            of!("BITRISE_IO_PARALLEL_INDEX": "0", "1"; "BITRISE_IO_PARALLEL_TOTAL"),
            Passed,
        ],
        &[("BITRISE_BUILD_SLUG", "other"), ("BITRISE_BUILD_TRIGGER_TIMESTAMP", "1790009999")],
    ),
    row(
        "taskcluster",
        [of!("TASK_ID": "a", "b"), of!("TASK_ID": "a", "b"), of!("TASK_ID": "a", "b"), of!("TASK_ID": "a", "b")],
        &[("RUN_ID", "2")],
    ),
    row("vela", [of!("VELA_BUILD_NUMBER": "7", "8"), of!("VELA_STEP_NAME": "a", "b"), Passed, Passed], &[]),
    row(
        "jenkins",
        [of!("BUILD_NUMBER": "7", "8"), of!("STAGE_NAME": "a", "b"), Passed, Passed],
        &[("NODE_NAME", "other"), ("EXECUTOR_NUMBER", "9")],
    ),
    row("cloudbuild", [of!("BUILD_ID": "a", "b"), Passed, Passed, Passed], &[]),
    row(
        "sourcehut",
        [
            of!("JOB_URL": "https://builds.sr.ht/~acme/job/7", "https://builds.sr.ht/~acme/job/8"),
            Passed,
            Passed,
            Passed,
        ],
        &[],
    ),
    row("k8s", [Passed, Passed, of!("JOB_COMPLETION_INDEX": "0", "1"), Passed], &[("HOSTNAME", "other")]),
    row("concourse", [Passed; 4], &[("BUILD_ID", "999"), ("BUILD_NAME", "31.2")]),
    row("argo", [Passed; 4], &[("HOSTNAME", "other"), ("ARGO_POD_NAME", "other")]),
    row("tekton", [Passed; 4], &[("HOSTNAME", "other")]),
    row("zuul", [Passed; 4], &[]),
];

/// One kind of difference: its name for a message, how two are told apart, the flags without it, the flags with each.
struct Kind {
    name: &'static str,
    told: Told,
    without: Overrides,
    with: [Overrides; 2],
    /// One of these must be in the words where the caller has to pass it.
    flags: &'static [&'static str],
}

fn kinds(row: &Row, job: &Job) -> [Kind; 4] {
    let flags = &job.flags;
    let run = |text: &str| Overrides { run: RunId::parse(text).ok(), ..flags.clone() };
    let name = |text: &str| Overrides { job: JobName::parse(text).ok(), ..flags.clone() };
    let shard = |index| Overrides { shard: ShardRef::new(index, Some(2)).ok(), ..flags.clone() };
    let leg = |os| Overrides { variant: Variant::from_pairs([("os", os)]).ok(), ..flags.clone() };
    let plain = flags.clone();
    [
        Kind {
            name: "runs",
            told: row.runs,
            without: Overrides { run: None, ..plain.clone() },
            with: [run("r1"), run("r2")],
            flags: &["--run"],
        },
        Kind {
            name: "jobs",
            told: row.jobs,
            without: Overrides { job: None, ..plain.clone() },
            with: [name("a"), name("b")],
            flags: &["--job"],
        },
        Kind {
            name: "shards",
            told: row.shards,
            without: Overrides { shard: None, ..plain.clone() },
            with: [shard(1), shard(2)],
            flags: &["--shard"],
        },
        Kind {
            name: "legs",
            told: row.legs,
            without: Overrides { shard: None, variant: None, ..plain },
            with: [leg("linux"), leg("mac")],
            flags: &["--variant", "--shard"],
        },
    ]
}

#[test]
fn other_work_has_another_key() {
    for row in &ROWS {
        let job = Job::of(row.slug);
        for kind in kinds(row, &job) {
            let title = format!("{} of {}", kind.name, row.slug);
            match kind.told {
                Here((one, other)) => {
                    let keys = [job.key(one, &kind.without), job.key(other, &kind.without)];
                    assert_ne!(keys[0], keys[1], "two {title} share a key");
                }
                Passed => {
                    let keys = kind.with.each_ref().map(|flags| job.key(&[], flags));
                    assert_ne!(keys[0], keys[1], "two {title} share a key although they are named");
                    // What is said where it is missing, and what is said to whoever passes nothing at all.
                    let said = [&kind.without, &Overrides::default()].map(|flags| words(&job.derived(&[], flags)));
                    let names = |flag: &&str| said.iter().any(|words| words.contains(*flag));
                    assert!(kind.flags.iter().any(names), "{title}: no word of {:?}: {said:?}", kind.flags);
                }
            }
        }
    }
}

#[test]
fn a_job_tried_again_has_the_same_key() {
    for row in &ROWS {
        let job = Job::of(row.slug);
        let first = job.key(&[], &job.flags);
        assert_eq!(job.key(row.retry, &job.flags), first, "{}", row.slug);
        for (variable, _) in row.retry {
            assert_ne!(job.value(variable), "", "{}: {variable} is in no environment of ours", row.slug);
        }
    }
}

#[test]
fn every_platform_has_a_row() {
    let rows: Vec<&str> = ROWS.iter().map(|row| row.slug).collect();
    let all: Vec<&str> = Job::all().iter().map(Job::slug).collect();
    assert_eq!(rows.len(), all.len());
    assert!(all.iter().all(|slug| rows.contains(slug)), "{rows:?}");
}
