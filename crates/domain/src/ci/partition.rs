//! What many platforms do alike: a run and a job out of variables, a shard out of index and total, and two warnings.
//! Must not know any platform.

use super::platform::{Found, Missing, Reading, joined, parsed};
use super::{Env, IdentityError, Overrides};
use crate::id::{Executor, IdError, JobName, Ordinal, RunId, ShardRef};
use crate::push::OrdinalScope;

/// Variables that tell the parts of a parallel job apart.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "it is the index beside its total")]
pub(super) struct Index {
    /// The variable with this part's number.
    pub(super) index: &'static str,
    /// The variable with the number of parts; none on a platform that gives none.
    pub(super) total: Option<&'static str>,
    /// The number of the first part: 0 or 1.
    pub(super) base: u32,
    /// Both variables, as they are named for people.
    pub(super) source: &'static str,
    /// Why the number is the same when the part is tried again, and another for other parts.
    pub(super) why: &'static str,
}

/// The shard that index and total give, numbered from 1, with a warning where one of the two is missing.
///
/// A total of 1 is no shard: some platforms say `0 of 1` in a job that isn't parallel, others say nothing, and both are
/// the same work. With `--shard` nothing is read, since the flag replaces it.
///
/// # Errors
/// Where a number is none, or the index does not lie within the total: two parts could share a key.
pub(super) fn shard(
    title: &'static str,
    env: &Env,
    overrides: &Overrides,
    reading: &mut Reading,
    names: Index,
) -> Result<(), IdentityError> {
    if overrides.shard.is_some() {
        return Ok(());
    }
    let total = match names.total.and_then(|variable| env.get(variable).map(|text| (variable, text))) {
        Some((variable, text)) => Some(number(title, variable, text)?),
        None => None,
    };
    let Some(text) = env.get(names.index) else {
        if let (Some(variable), Some(2..)) = (names.total, total) {
            reading.warnings.push(format!(
                "{variable} says that this job is parallel, but {} is not set: all its parts would share one key. Pass \
                 --shard I/N",
                names.index
            ));
        }
        return Ok(());
    };
    let index = number(title, names.index, text)?;
    if total == Some(1) && index == names.base {
        return Ok(());
    }
    if total.is_none() {
        reading.warnings.push(match names.total {
            Some(variable) => format!("{} is set without {variable}: the number of shards is unknown", names.index),
            None => format!(
                "{} comes without the number of shards: pass --shard I/N, so that a missing one is seen",
                names.index
            ),
        });
    }
    let shard = (index + 1)
        .checked_sub(names.base)
        .ok_or_else(|| IdError::BadShard { text: text.to_owned() })
        .and_then(|index| ShardRef::new(index, total))
        .map_err(|source| IdentityError::BadVariable { platform: title, variable: names.index, source })?;
    reading.shard = Some(Found::new(shard, names.source, names.why));
    Ok(())
}

/// Decimal digits as a number that can still be counted up.
fn number(title: &'static str, variable: &'static str, text: &str) -> Result<u32, IdentityError> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let value = if digits { text.parse::<u32>().ok().filter(|value| *value < u32::MAX) } else { None };
    value.ok_or_else(|| IdentityError::BadVariable {
        platform: title,
        variable,
        source: IdError::BadShard { text: text.to_owned() },
    })
}

/// The run out of one variable; missing, if it is not set.
pub(super) fn run(
    title: &'static str,
    env: &Env,
    reading: &mut Reading,
    variable: &'static str,
    why: &'static str,
) -> Result<(), IdentityError> {
    match env.get(variable) {
        Some(text) => {
            reading.run = Some(Found::new(parsed(title, variable, text, RunId::parse)?, variable, why));
        }
        None => reading.missing.push(Missing::Run(variable)),
    }
    Ok(())
}

/// The job out of all `variables`, joined so that other values give another text; missing, if one of them is not set.
pub(super) fn job(
    title: &'static str,
    env: &Env,
    reading: &mut Reading,
    variables: &[&'static str],
    source: &'static str,
    why: &'static str,
) -> Result<(), IdentityError> {
    let mut values = Vec::new();
    for &variable in variables {
        let Some(value) = env.get(variable) else {
            reading.missing.push(Missing::Job(variable));
            return Ok(());
        };
        values.push(value);
    }
    reading.job = Some(Found::new(parsed(title, source, &joined(&values), JobName::parse)?, source, why));
    Ok(())
}

/// The ordinal out of one variable; unknown, if it is no number. `scope` says between which deliveries it compares.
pub(super) fn ordinal(
    env: &Env,
    reading: &mut Reading,
    variable: &'static str,
    scope: OrdinalScope,
    why: &'static str,
) {
    if let Some(attempt) = env.get(variable).and_then(|text| text.parse().ok()) {
        reading.ordinal_scope = scope;
        reading.ordinal = Some(Found::new(Ordinal(attempt), variable, why));
    }
}

/// This execution of the job, out of those of `variables` that are set.
pub(super) fn executor(
    env: &Env,
    variables: &[&str],
    source: &'static str,
    why: &'static str,
) -> Option<Found<Executor>> {
    let parts: Vec<&str> = variables.iter().filter_map(|name| env.get(name)).collect();
    Executor::parse(&parts.join(" ")).ok().map(|executor| Found::new(executor, source, why))
}

/// Says that this looks like a re-run of something, where the platform gives a re-run a new run. No news with `--run`.
/// `earlier` names what it re-runs, with the variable that shows it; `how` says which value to pass.
pub(super) fn warn_of_rerun(overrides: &Overrides, reading: &mut Reading, earlier: &str, how: &str) {
    if overrides.run.is_none() {
        reading
            .warnings
            .push(format!("this looks like a re-run of {earlier}; it counts as a new run: pass --run {how}"));
    }
}
