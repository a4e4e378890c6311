//! Environments as CI platforms give them, made up, for one job of one run (`facts/ci-identity.md`).
//! Must not know how keys are derived from them.

/// A job on GitHub Actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GithubJob<'a> {
    /// `GITHUB_RUN_ID`: stays through re-runs.
    pub run_id: u64,
    /// `GITHUB_RUN_ATTEMPT`: from 1, rises with each re-run.
    pub attempt: u32,
    /// `GITHUB_JOB`: the same in every cell of a matrix.
    pub job: &'a str,
    /// `RUNNER_NAME`: another for each leg of a matrix, and usually for each attempt.
    pub runner: &'a str,
}

/// The variables of a job on GitHub Actions, in repository `acme/shop` on branch `main`.
pub fn github_env(run_id: u64, attempt: u32, job: &str, runner: &str) -> Vec<(String, String)> {
    GithubJob { run_id, attempt, job, runner }.env()
}

impl GithubJob<'_> {
    /// The variables. Equal jobs get equal ones, the runner's tracking id included.
    pub fn env(&self) -> Vec<(String, String)> {
        let Self { run_id, attempt, job, runner } = self;
        pairs([
            ("CI", "true".into()),
            ("GITHUB_ACTIONS", "true".into()),
            ("GITHUB_SERVER_URL", "https://github.com".into()),
            ("GITHUB_REPOSITORY", "acme/shop".into()),
            ("GITHUB_REPOSITORY_ID", "4201".into()),
            ("GITHUB_RUN_ID", run_id.to_string()),
            ("GITHUB_RUN_NUMBER", (run_id % 10_000).to_string()),
            ("GITHUB_RUN_ATTEMPT", attempt.to_string()),
            ("GITHUB_JOB", (*job).to_owned()),
            ("GITHUB_WORKFLOW", "tests".into()),
            ("GITHUB_WORKFLOW_REF", "acme/shop/.github/workflows/tests.yml@refs/heads/main".into()),
            ("GITHUB_EVENT_NAME", "push".into()),
            ("GITHUB_REF", "refs/heads/main".into()),
            ("GITHUB_REF_NAME", "main".into()),
            ("GITHUB_REF_TYPE", "branch".into()),
            ("GITHUB_SHA", commit(*run_id)),
            ("GITHUB_ACTOR", "alex".into()),
            ("RUNNER_NAME", (*runner).to_owned()),
            ("RUNNER_OS", "Linux".into()),
            ("RUNNER_TRACKING_ID", format!("github_{runner}-{run_id}-{attempt}-{job}")),
        ])
    }
}

/// A job on GitLab CI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitlabJob<'a> {
    /// `CI_PIPELINE_ID`: stays through retries.
    pub pipeline_id: u64,
    /// `CI_JOB_ID`: another, and higher, for each retry.
    pub job_id: u64,
    /// `CI_JOB_NAME`, as GitLab composes it: `rspec 1/3` for a job with `parallel`.
    pub name: &'a str,
    /// `CI_NODE_INDEX` (from 1) and `CI_NODE_TOTAL` of a job with `parallel`.
    pub node: Option<(u32, u32)>,
}

/// The variables of a job on GitLab CI, in project `acme/shop` on branch `main`.
pub fn gitlab_env(pipeline_id: u64, job_id: u64, name: &str, node: Option<(u32, u32)>) -> Vec<(String, String)> {
    GitlabJob { pipeline_id, job_id, name, node }.env()
}

impl GitlabJob<'_> {
    /// The variables.
    pub fn env(&self) -> Vec<(String, String)> {
        let mut all = pairs([
            ("CI", "true".into()),
            ("GITLAB_CI", "true".into()),
            ("CI_SERVER_HOST", "gitlab.com".into()),
            ("CI_SERVER_URL", "https://gitlab.com".into()),
            ("CI_PROJECT_ID", "77".into()),
            ("CI_PROJECT_PATH", "acme/shop".into()),
            ("CI_PROJECT_URL", "https://gitlab.com/acme/shop".into()),
            ("CI_PIPELINE_ID", self.pipeline_id.to_string()),
            ("CI_PIPELINE_IID", (self.pipeline_id % 1000).to_string()),
            ("CI_PIPELINE_SOURCE", "push".into()),
            ("CI_PIPELINE_URL", format!("https://gitlab.com/acme/shop/-/pipelines/{}", self.pipeline_id)),
            ("CI_JOB_ID", self.job_id.to_string()),
            ("CI_JOB_NAME", self.name.to_owned()),
            ("CI_JOB_STAGE", "test".into()),
            ("CI_JOB_URL", format!("https://gitlab.com/acme/shop/-/jobs/{}", self.job_id)),
            ("CI_RUNNER_ID", "12".into()),
            ("CI_CONCURRENT_ID", "0".into()),
            ("CI_COMMIT_SHA", commit(self.pipeline_id)),
            ("CI_COMMIT_REF_NAME", "main".into()),
            ("CI_COMMIT_BRANCH", "main".into()),
            ("CI_DEFAULT_BRANCH", "main".into()),
            ("GITLAB_USER_LOGIN", "alex".into()),
            ("CI_NODE_TOTAL", self.node.map_or(1, |(_, total)| total).to_string()),
        ]);
        all.extend(self.node.map(|(index, _)| ("CI_NODE_INDEX".to_owned(), index.to_string())));
        all
    }
}

fn pairs<const N: usize>(list: [(&str, String); N]) -> Vec<(String, String)> {
    list.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A commit that is the run's own and looks like one.
fn commit(run: u64) -> String {
    let mut rng = crate::rng::Rng::new(run);
    format!("{:016x}{:016x}{:08x}", rng.next_u64(), rng.next_u64(), rng.next_u64() as u32)
}
