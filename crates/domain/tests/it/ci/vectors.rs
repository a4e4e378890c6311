//! Our own environments, and what is said about two of them. Values are invented.

pub(crate) type Pairs = &'static [(&'static str, &'static str)];

pub(crate) const GITHUB: Pairs = &[
    ("CI", "true"),
    ("GITHUB_ACTIONS", "true"),
    ("GITHUB_SERVER_URL", "https://github.com"),
    ("GITHUB_REPOSITORY", "acme/Shop"),
    ("GITHUB_WORKFLOW", "checks"),
    ("GITHUB_WORKFLOW_REF", "acme/Shop/.github/workflows/checks.yml@refs/heads/main"),
    ("GITHUB_RUN_ID", "16873243901"),
    ("GITHUB_RUN_NUMBER", "77"),
    ("GITHUB_RUN_ATTEMPT", "1"),
    ("GITHUB_JOB", "e2e"),
    ("GITHUB_REF", "refs/heads/main"),
    ("GITHUB_REF_NAME", "main"),
    ("GITHUB_SHA", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"),
    ("GITHUB_TRIGGERING_ACTOR", "ann"),
    ("RUNNER_NAME", "GitHub Actions 3"),
    ("RUNNER_TRACKING_ID", "github_5d1c"),
];

pub(crate) const GITLAB: Pairs = &[
    ("CI", "true"),
    ("GITLAB_CI", "true"),
    ("CI_SERVER_HOST", "gitlab.com"),
    ("CI_PROJECT_PATH", "acme/tools/Shop"),
    ("CI_PIPELINE_ID", "88112233"),
    ("CI_PIPELINE_IID", "412"),
    ("CI_PIPELINE_SOURCE", "push"),
    ("CI_PIPELINE_URL", "https://gitlab.com/acme/tools/Shop/-/pipelines/88112233"),
    ("CI_JOB_ID", "7001"),
    ("CI_JOB_NAME", "rspec 1/3"),
    ("CI_NODE_INDEX", "1"),
    ("CI_NODE_TOTAL", "3"),
    ("CI_COMMIT_SHA", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"),
    ("CI_COMMIT_REF_NAME", "main"),
    ("CI_RUNNER_ID", "12"),
    ("GITLAB_USER_LOGIN", "ann"),
];

pub(crate) const JENKINS: Pairs = &[
    ("JENKINS_URL", "https://Jenkins.example.com:443/ci/"),
    ("JOB_NAME", "acme/shop/main"),
    ("BUILD_NUMBER", "218"),
    ("BUILD_URL", "https://jenkins.example.com/ci/job/acme/job/shop/job/main/218/"),
    ("BUILD_TAG", "jenkins-acme-shop-main-218"),
    ("STAGE_NAME", "Browser tests"),
    ("NODE_NAME", "agent-3"),
    ("WORKSPACE", "/home/jenkins/shop"),
    ("EXECUTOR_NUMBER", "0"),
    ("BRANCH_NAME", "main"),
    ("GIT_URL", "https://bot:secret@git.example.com/acme/Shop.git"),
    ("GIT_COMMIT", "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"),
];

pub(crate) const KUBERNETES: Pairs =
    &[("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("JOB_COMPLETION_INDEX", "0"), ("HOSTNAME", "shop-0-x7k2p")];

pub(crate) const EXPLAINED_GITHUB: &str = "\
key scope = github:acme/Shop <- GITHUB_SERVER_URL, GITHUB_REPOSITORY: run ids are unique within one repository of one server
key run = 16873243901 <- GITHUB_RUN_ID: stays when the run or its jobs are re-run; new for every new run
key job = e2e <- GITHUB_JOB: the job's key in the workflow file; the same in every cell of a matrix, which --shard and --variant tell apart, and in every call of a reusable workflow, which --job tells apart
not ordinal = 1 <- GITHUB_RUN_ATTEMPT: rises with every re-run
not executor = github_5d1c GitHub Actions 3 <- RUNNER_TRACKING_ID, RUNNER_NAME: names this execution of the job
out GITHUB_RUN_ATTEMPT: rises with every re-run: it orders deliveries (ordinal), a retry stays one write
out RUNNER_TRACKING_ID: names one execution of the job (executor)
out RUNNER_NAME: a re-run may get another runner (executor)
out GITHUB_TRIGGERING_ACTOR: whoever pressed re-run
out GITHUB_RUN_NUMBER: counts per workflow, so two workflows share numbers
out GITHUB_WORKFLOW: a free name, and the caller's in a reusable workflow
out GITHUB_SHA: two runs of one commit would collapse into one
";

pub(crate) const EXPLAINED_GITLAB: &str = "\
key scope = gitlab:acme/tools/Shop <- CI_SERVER_HOST, CI_PROJECT_PATH: pipeline ids are unique within one server; the project makes the key readable
key run = 88112233 <- CI_PIPELINE_ID: stays through every retry in the pipeline; new for every new pipeline
key job = rspec <- CI_JOB_NAME: the job's name in the pipeline, without its partition
key shard = 1/3 <- CI_NODE_INDEX, CI_NODE_TOTAL: the job's part of parallel: N, the same when it is retried
not ordinal = 7001 <- CI_JOB_ID: a retry is a copy of the job with a higher id
not executor = 7001 <- CI_JOB_ID: names this execution of the job
out CI_JOB_ID: new for every retry: it orders deliveries (ordinal) and names the execution (executor)
out CI_RUNNER_ID: a retry may get another runner
out GITLAB_USER_LOGIN: becomes the person who pressed retry
out CI_PIPELINE_IID: a counter of the project, not unique on the server
out CI_COMMIT_SHA: two pipelines of one commit would collapse into one
";
