//! Which push is this? A pure function from environment variables and flags to key, round and attempt.
//! Must not read the process's environment, and must not invent a run where none is known.

mod actions;
mod appveyor;
mod argo;
mod azure;
mod bamboo;
mod bitbucket;
mod bitrise;
mod buildkite;
mod circleci;
mod cirrus;
mod cloudbuild;
mod codebuild;
mod codefresh;
mod concourse;
mod drone;
mod env;
mod error;
mod forgejo;
mod gitea;
mod github;
mod gitlab;
mod gocd;
mod harness;
mod identity;
mod jenkins;
mod known;
mod kubernetes;
mod matrix;
mod names;
mod partition;
mod plain;
mod platform;
mod prow;
mod screwdriver;
mod semaphore;
mod sourcehut;
mod taskcluster;
mod teamcity;
mod tekton;
mod travis;
mod unmarked;
mod vela;
mod woodpecker;
mod zuul;

use serde::Serialize;

use crate::id::{JobName, Ordinal, RoundLabel, RunId, ShardRef, Variant};
use crate::key::{Finding, KeyParts, Known, Scope, check};
use crate::mutant;
use known::{Detected, detect};
use platform::{Found, Missing, Platform, Reading, shared};

pub use env::Env;
pub use error::IdentityError;
pub use identity::{Identity, Part};
pub use names::{PlatformName, UnknownPlatform, platforms};
pub use platform::{Effect, LeftOut, Rerun, Strength};

/// What the flags say; each wins over the environment, each for itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Overrides {
    /// `--run`: replaces the run; the scope stays.
    pub run: Option<RunId>,
    /// `--attempt`: the ordinal.
    pub attempt: Option<Ordinal>,
    /// `--job`.
    pub job: Option<JobName>,
    /// `--shard`.
    pub shard: Option<ShardRef>,
    /// `--variant`: replaces the whole variant.
    pub variant: Option<Variant>,
    /// `--round`.
    pub round: Option<RoundLabel>,
}

const UNDER_ANOTHER_RUN: &str = "counts within the platform's run, and --run names another: the attempt is unknown, so other \
    outcomes of a retry are kept and do not count; --attempt says which is later, or --on-difference revise lets the last count";
const BY_FLAG: &str = "given by you: it must stay when this work is tried again, and differ for other work";

/// Derives the identity of a push.
///
/// # Errors
/// Where a part of the key is unknown and no flag gives it: a default would make one key of different pushes.
pub fn identify(env: &Env, overrides: &Overrides) -> Result<Identity, IdentityError> {
    identify_as(None, env, overrides)
}

/// The same of an environment that is said to be that of this platform, whatever its markers say; with `None` they do.
///
/// # Errors
/// As [`identify`].
pub fn identify_as(named: Option<PlatformName>, env: &Env, overrides: &Overrides) -> Result<Identity, IdentityError> {
    let (platform, mut reading) = read(named, env, overrides)?;
    let run = match (&overrides.run, &reading.run) {
        (Some(run), _) => Found::new(run.clone(), "--run", BY_FLAG),
        (None, Some(run)) => run.clone(),
        (None, None) => return Err(no_run(env, platform, &reading)),
    };
    refuse_missing(platform, overrides, &mut reading)?;
    warn_of_lost_partition(overrides, &mut reading);
    let overruled = overrides.run.is_some() && reading.run.as_ref().map(|run| &run.value) != overrides.run.as_ref();
    if overruled {
        forget_attempt(overrides, &mut reading);
        reading.context.run_counter = None;
    }
    let chosen = choose(run, overrides, &mut reading);
    let in_ci = platform.is_some() || (says_ci(env) && !matches!(detect(env), Detected::Imitation));
    Ok(assemble(platform, chosen, reading, in_ci))
}

/// Each part after flags and environment are weighed.
struct Chosen {
    run: Found<RunId>,
    round: Option<Found<RoundLabel>>,
    job: Option<Found<JobName>>,
    shard: Option<Found<ShardRef>>,
    variant: Option<Found<Variant>>,
    ordinal: Option<Found<Ordinal>>,
}

fn choose(run: Found<RunId>, overrides: &Overrides, reading: &mut Reading) -> Chosen {
    Chosen {
        run,
        round: flag(overrides.round.clone(), "--round", "given by you: a wanted second execution inside one run"),
        job: flag(overrides.job.clone(), "--job", BY_FLAG).or(reading.job.take()),
        shard: flag(overrides.shard, "--shard", BY_FLAG).or(reading.shard.take()),
        variant: flag(overrides.variant.clone(), "--variant", BY_FLAG)
            .or(reading.variant.take())
            .filter(|variant| !variant.value.is_empty()),
        ordinal: flag(overrides.attempt, "--attempt", "given by you: it only orders deliveries")
            .or(reading.ordinal.take()),
    }
}

fn assemble(platform: Option<&'static Platform>, chosen: Chosen, reading: Reading, in_ci: bool) -> Identity {
    let explained = [
        part("scope", true, reading.scope.as_ref(), Scope::canonical),
        part("run", true, Some(&chosen.run), ToString::to_string),
        part("round", true, chosen.round.as_ref(), ToString::to_string),
        part("job", true, chosen.job.as_ref(), ToString::to_string),
        part("shard", true, chosen.shard.as_ref(), ToString::to_string),
        part("variant", true, chosen.variant.as_ref(), ToString::to_string),
        part("ordinal", false, chosen.ordinal.as_ref(), ToString::to_string),
        part("executor", false, reading.executor.as_ref(), ToString::to_string),
    ];
    let parts = KeyParts {
        scope: reading.scope.map(|scope| scope.value),
        run: chosen.run.value,
        round: chosen.round.map(|round| round.value),
        job: chosen.job.map(|job| job.value),
        shard: chosen.shard.map(|shard| shard.value),
        variant: chosen.variant.map(|variant| variant.value).unwrap_or_default(),
    };
    let context = reading.context;
    let parts = if mutant!(M35) { numbered(parts, chosen.ordinal.as_ref()) } else { parts };
    Identity {
        platform: platform.map(|platform| platform.slug),
        platform_title: platform.map(|platform| platform.title),
        strength: platform.map(|platform| platform.strength),
        key: parts.key(),
        round: parts.round_id(),
        parts,
        ordinal: chosen.ordinal.map(|ordinal| ordinal.value),
        ordinal_scope: reading.ordinal_scope,
        executor: reading.executor.map(|executor| executor.value),
        expect: reading.expect,
        workflow: context.workflow,
        run_counter: context.run_counter,
        commit: context.commit,
        branch: context.branch,
        pull_request: context.pull_request,
        run_url: context.run_url,
        repository: context.repository,
        explained: explained.into_iter().flatten().collect(),
        left_out: reading.left_out,
        warnings: reading.warnings,
        reruns: platform.map(|platform| platform.reruns.to_vec()).unwrap_or_default(),
        in_ci,
        unnumbered_change: context.unnumbered_change,
    }
}

/// The fault of a key that names the attempt.
fn numbered(parts: KeyParts, ordinal: Option<&Found<Ordinal>>) -> KeyParts {
    let round = ordinal.and_then(|ordinal| RoundLabel::parse(&ordinal.value.to_string()).ok());
    KeyParts { round, ..parts }
}

/// The platform that this environment is recognised as; none outside CI, and for `act`.
pub fn recognised(env: &Env) -> Option<PlatformName> {
    match detect(env) {
        Detected::Platform(platform, _) => Some(PlatformName::of(platform)),
        Detected::Imitation | Detected::Nothing => None,
    }
}

/// Judges a run value or a whole key against what this environment says (`tallyonce key --check`).
pub fn judge(text: &str, env: &Env) -> Vec<Finding> {
    judge_as(None, text, env)
}

/// The same of an environment that is said to be that of this platform.
pub fn judge_as(named: Option<PlatformName>, text: &str, env: &Env) -> Vec<Finding> {
    check::check(text, &known(named, env))
}

/// What the environment says about the run, for [`check::check`]. Unknown where it says nothing usable.
fn known(named: Option<PlatformName>, env: &Env) -> Known {
    let Ok((_, reading)) = read(named, env, &Overrides::default()) else {
        return Known::default();
    };
    let renewed = reading.left_out.iter().filter(|left| left.renewed);
    Known {
        own_run: reading.run.map(|run| run.value.to_string()),
        commit: reading.context.commit.map(|commit| commit.to_string()),
        branch: reading.context.branch,
        renewed: renewed.filter_map(|l| env.get(l.variable).map(|value| (l.variable, value.to_owned()))).collect(),
    }
}

/// The platform, if there is one, and what it says.
fn read(
    named: Option<PlatformName>,
    env: &Env,
    overrides: &Overrides,
) -> Result<(Option<&'static Platform>, Reading), IdentityError> {
    let (platform, others) = match (named, detect(env)) {
        (Some(name), _) => (name.platform(), Vec::new()),
        (None, Detected::Nothing) => return Ok((None, plain::read(env, false))),
        (None, Detected::Imitation) => return Ok((None, plain::read(env, true))),
        (None, Detected::Platform(platform, others)) => (platform, others),
    };
    let mut reading = (platform.read)(env, overrides)?;
    reading.left_out.extend(platform.left_out.iter().filter(|left| env.has(left.variable)));
    for other in others {
        let warning = format!("this looks like {} too; {} is taken, since it comes first", other.title, platform.title);
        reading.warnings.push(warning);
    }
    Ok((Some(platform), reading))
}

fn no_run(env: &Env, platform: Option<&'static Platform>, reading: &Reading) -> IdentityError {
    let Some(platform) = platform else {
        let imitation = matches!(detect(env), Detected::Imitation);
        return if imitation { IdentityError::ImitationNeedsRun } else { IdentityError::RunRequired };
    };
    let title = platform.title;
    let error = reading.missing.iter().find_map(|missing| match *missing {
        Missing::Run(variable) => {
            Some(IdentityError::MissingVariable { platform: title, variable, part: "run", flag: "--run" })
        }
        Missing::RunByDesign(how) => Some(IdentityError::NoRun { platform: title, how }),
        Missing::Scope(_) | Missing::Job(_) | Missing::JobByDesign(_) => None,
    });
    error.unwrap_or(IdentityError::RunRequired)
}

/// Refuses where a scope or job is missing that the platform always gives. With `--run` the run is the caller's, and so
/// is its uniqueness: a missing scope is then only said.
fn refuse_missing(
    platform: Option<&'static Platform>,
    overrides: &Overrides,
    reading: &mut Reading,
) -> Result<(), IdentityError> {
    let title = platform.map_or("", |platform| platform.title);
    for missing in &reading.missing {
        match *missing {
            Missing::Scope(variable) if overrides.run.is_none() => {
                return Err(IdentityError::MissingVariable { platform: title, variable, part: "scope", flag: "--run" });
            }
            Missing::Scope(variable) => {
                reading
                    .warnings
                    .push(format!("{variable} is not set: the key holds your --run without its repository"));
            }
            Missing::Job(variable) if overrides.job.is_none() => {
                return Err(IdentityError::MissingVariable { platform: title, variable, part: "job", flag: "--job" });
            }
            Missing::JobByDesign(how) if overrides.job.is_none() => {
                return Err(IdentityError::NoJob { platform: title, how });
            }
            Missing::Job(_) | Missing::JobByDesign(_) | Missing::Run(_) | Missing::RunByDesign(_) => {}
        }
    }
    Ok(())
}

/// The platform counts attempts within its own run, so under another run they order nothing.
fn forget_attempt(overrides: &Overrides, reading: &mut Reading) {
    let Some(ordinal) = reading.ordinal.take().filter(|_| overrides.attempt.is_none()) else { return };
    reading.left_out.retain(|left| !ordinal.source.split(", ").any(|variable| variable == left.variable));
    reading.left_out.extend(ordinal.source.split(", ").map(|variable| shared(variable, UNDER_ANOTHER_RUN)));
}

/// A flag that replaces what the platform tells jobs apart by may make their keys equal.
fn warn_of_lost_partition(overrides: &Overrides, reading: &mut Reading) {
    if let (Some(variant), Some(found)) = (&overrides.variant, &reading.variant)
        && *variant != found.value
    {
        reading.warnings.push(format!(
            "--variant replaces the variant {} of {}: jobs that differ only in that share a key",
            found.value, found.source
        ));
    }
}

fn flag<T>(value: Option<T>, name: &'static str, why: &'static str) -> Option<Found<T>> {
    value.map(|value| Found::new(value, name, why))
}

fn part<T>(part: &'static str, in_key: bool, found: Option<&Found<T>>, text: fn(&T) -> String) -> Option<Part> {
    found.map(|found| Part { part, value: text(&found.value), source: found.source, why: found.why, in_key })
}

/// True if `CI` is set to anything but a no.
fn says_ci(env: &Env) -> bool {
    env.get("CI").is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0" | "no"))
}
