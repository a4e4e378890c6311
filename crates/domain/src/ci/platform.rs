//! What a CI platform is to this crate: how it is recognised, what it reads, what its re-runs do.
//! One constant per platform, in a file of its own; the table in `known` puts them in order. Must not build keys.

use serde::Serialize;

use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, Executor, IdError, JobName, Ordinal, RunId, ShardRef, Variant, WorkflowName};
use crate::key::{Scope, ScopeError};
use crate::push::OrdinalScope;

/// What recognises a platform in the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// The variable is set to something.
    Set(&'static str),
    /// The variable has this value, in any case.
    Is(&'static str, &'static str),
}

impl Marker {
    pub(super) fn matches(self, env: &Env) -> bool {
        match self {
            Self::Set(name) => env.has(name),
            Self::Is(name, value) => env.get(name).is_some_and(|found| found.eq_ignore_ascii_case(value)),
        }
    }
}

/// Whether a platform's own retry keeps the run's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// Retries by the platform keep the run: they need nothing from the user.
    Strong,
    /// Some retries by the platform look like a new run: those need `--run`.
    Weak,
    /// The platform tells the process no run: `--run` is always needed.
    None,
}

/// What a kind of re-run does to the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The key stays: it counts as a retry.
    SameKey,
    /// The key changes: it counts as a new run.
    NewKey,
    /// The key changes although it may be meant as a retry: `--run` decides.
    YouDecide,
}

/// One kind of re-run that the platform offers, and what it does to the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Rerun {
    /// The platform's name of it.
    pub flavour: &'static str,
    /// What becomes of the key.
    pub effect: Effect,
    /// What changes in the environment, or what to do.
    pub note: &'static str,
}

/// A variable that is kept out of the key on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub variable: &'static str,
    /// Why it may not be part of a key.
    pub why: &'static str,
    /// True if a retry gives it another value; false if different work can share its value.
    pub renewed: bool,
}

/// A variable that a retry gives another value.
pub(super) const fn renewed(variable: &'static str, why: &'static str) -> LeftOut {
    LeftOut { variable, why, renewed: true }
}

/// A variable whose value different work can share.
pub(super) const fn shared(variable: &'static str, why: &'static str) -> LeftOut {
    LeftOut { variable, why, renewed: false }
}

/// A kind of re-run.
pub(super) const fn rerun(flavour: &'static str, effect: Effect, note: &'static str) -> Rerun {
    Rerun { flavour, effect, note }
}

/// Reads what the environment says; the flags only decide which warnings are news.
pub(super) type Read = fn(&Env, &Overrides) -> Result<Reading, IdentityError>;

/// A platform.
#[derive(Debug)]
pub(super) struct Platform {
    /// Short name, as it opens the key.
    pub(super) slug: &'static str,
    /// Name for people.
    pub(super) title: &'static str,
    /// All of them recognise it.
    pub(super) markers: &'static [Marker],
    /// Else all of these, if there are any.
    pub(super) fallback: &'static [Marker],
    /// Short names of the platforms whose markers this one sets too.
    pub(super) imitates: &'static [&'static str],
    pub(super) strength: Strength,
    /// Reads what the environment says.
    pub(super) read: Read,
    pub(super) left_out: &'static [LeftOut],
    pub(super) reruns: &'static [Rerun],
}

impl Platform {
    pub(super) fn is_marked(&self, env: &Env) -> bool {
        !self.markers.is_empty() && self.markers.iter().all(|marker| marker.matches(env))
    }

    pub(super) fn is_detected(&self, env: &Env) -> bool {
        let fallback = !self.fallback.is_empty() && self.fallback.iter().all(|marker| marker.matches(env));
        self.is_marked(env) || fallback
    }
}

/// A value with the variables it came from, and why it is stable and distinct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found<T> {
    pub(super) value: T,
    pub(super) source: &'static str,
    pub(super) why: &'static str,
}

impl<T> Found<T> {
    pub(super) fn new(value: T, source: &'static str, why: &'static str) -> Self {
        Self { value, source, why }
    }
}

/// A part of the key that the environment does not give although the platform should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The place in which the run is unique.
    Scope(&'static str),
    /// The run: the variable's name.
    Run(&'static str),
    /// The run, on a platform that gives none: how to pass one.
    RunByDesign(&'static str),
    /// The job.
    Job(&'static str),
    /// The job, where the environment gives none: how to pass one.
    JobByDesign(&'static str),
}

/// What a platform's environment says.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) scope: Option<Found<Scope>>,
    pub(super) run: Option<Found<RunId>>,
    pub(super) job: Option<Found<JobName>>,
    pub(super) shard: Option<Found<ShardRef>>,
    pub(super) variant: Option<Found<Variant>>,
    pub(super) ordinal: Option<Found<Ordinal>>,
    pub(super) ordinal_scope: OrdinalScope,
    pub(super) executor: Option<Found<Executor>>,
    /// How often the job pushes in this run, where the pipeline says so.
    pub(super) expect: Option<u32>,
    pub(super) missing: Vec<Missing>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) warnings: Vec<String>,
    pub(super) context: Context,
}

/// What a push says about its run besides the key.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    pub(super) workflow: Option<WorkflowName>,
    pub(super) run_counter: Option<u64>,
    pub(super) commit: Option<Commit>,
    pub(super) branch: Option<String>,
    pub(super) pull_request: Option<String>,
    /// A pull request whose number the environment does not give.
    pub(super) unnumbered_change: bool,
    pub(super) run_url: Option<String>,
    pub(super) repository: Option<String>,
}

/// `value` as a name, or the error that names the variable.
pub(super) fn parsed<T>(
    platform: &'static str,
    variable: &'static str,
    value: &str,
    parse: fn(&str) -> Result<T, IdError>,
) -> Result<T, IdentityError> {
    parse(value).map_err(|source| IdentityError::BadVariable { platform, variable, source })
}

/// The scope, or the error that names the variable.
pub(super) fn scope(
    platform: &'static str,
    slug: &str,
    server: Option<&str>,
    path: Option<&str>,
) -> Result<Scope, IdentityError> {
    Scope::new(slug, server, path).map_err(|source: ScopeError| IdentityError::BadScope { platform, source })
}

/// Joins the values of several variables into one, so that different values give different texts although the first
/// may hold slashes: read from the right, every slash that is not escaped ends a part.
pub(super) fn joined(values: &[&str]) -> String {
    let mut text = String::new();
    for (at, value) in values.iter().enumerate() {
        if at == 0 {
            text.push_str(value);
        } else {
            text.push('/');
            text.push_str(&value.replace('%', "%25").replace('/', "%2F"));
        }
    }
    text
}

/// A server's address in one spelling: without scheme, credentials, default port and closing slash, host in lower case.
pub(super) fn server_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_ascii_lowercase();
    let default_port = if scheme.eq_ignore_ascii_case("http") { ":80" } else { ":443" };
    let host = host.strip_suffix(default_port).unwrap_or(&host);
    let path = path.trim_end_matches('/');
    let slash = if path.is_empty() { "" } else { "/" };
    (!host.is_empty()).then(|| format!("{host}{slash}{path}"))
}

/// The path of a repository's address, without host, credentials and `.git`: `https://git.example.com/team/shop.git`
/// and `git@git.example.com:team/shop.git` are `team/shop`.
pub(super) fn repository_of(url: &str) -> Option<String> {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map(|(_, path)| path),
        None => Some(url.split_once(':').map_or(url, |(_, path)| path)),
    }?;
    let path = path.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    (!path.is_empty()).then(|| path.to_owned())
}
