//! What `key` means by its flags: whose environment is explained, and as which platform's. Must not derive a key.

use std::fmt::Display;

use domain::ci::{Env, Overrides, PlatformName};
use domain::{JobName, RoundLabel, RunId, ShardRef};

use super::push::{PartSources, overrides, with_job};
use super::{Layers, Source, variable};
use crate::cli::{IdentityArgs, KeyArgs};
use crate::env_file::EnvFile;
use crate::failure::Failure;

/// A flag, and where its value came from.
type Origin = (&'static str, Source);

/// `tallyonce key`, resolved.
#[derive(Debug)]
pub(crate) struct KeySettings {
    /// The environment of the job: this process's, or a file's alone.
    pub env: Env,
    /// The platform that it is said to be of.
    pub platform: Option<PlatformName>,
    /// What replaces the platform's identity.
    pub overrides: Overrides,
    /// Say why.
    pub explain: bool,
    /// Judge.
    pub check: bool,
    /// Judge, and fail on what is surely wrong.
    pub strict: bool,
    /// One JSON object.
    pub json: bool,
    /// Where the flags' values came from.
    sources: PartSources,
    /// Those that came from the file.
    from_file: Vec<Origin>,
}

impl KeySettings {
    /// From the flags over the file.
    ///
    /// # Errors
    /// A value cannot be used, or the environment's file cannot be read.
    pub(crate) fn resolve(args: KeyArgs, layers: &Layers<'_>, env: &Env) -> Result<Self, Failure> {
        let KeyArgs { identity, platform, env_file, explain, check, strict, json } = args;
        let (env, identity, from_file) = match env_file {
            None => (env.clone(), identity, Vec::new()),
            Some(path) => {
                let file = EnvFile::read(&path)?;
                let (identity, from_file) = of_file(identity, layers, &file)?;
                (file.env, identity, from_file)
            }
        };
        Ok(Self {
            env,
            platform,
            overrides: with_job(overrides(&identity, layers)?, layers),
            explain,
            check,
            strict,
            json,
            sources: PartSources::of_flags(&identity, layers),
            from_file,
        })
    }

    /// What is said of a part whose derivation names this source.
    pub(crate) fn source_of(&self, source: &'static str) -> String {
        let found = self.from_file.iter().find(|(flag, _)| *flag == source);
        found.map_or_else(|| self.sources.of(source), |(_, source)| source.to_string())
    }
}

/// The flags as the other job has them: what is typed here, else the variables of the file. Those of this process are of
/// another job, and count for nothing.
fn of_file(typed: IdentityArgs, layers: &Layers<'_>, file: &EnvFile) -> Result<(IdentityArgs, Vec<Origin>), Failure> {
    let mut look = Look { layers, file, found: Vec::new() };
    let number = |text: &str| text.parse::<u64>();
    let identity = IdentityArgs {
        run: look.either(typed.run, "run", "--run", RunId::parse)?,
        attempt: look.either(typed.attempt, "attempt", "--attempt", number)?,
        job: look.either(typed.job, "job", "--job", JobName::parse)?,
        shard: look.either(typed.shard, "shard", "--shard", ShardRef::parse)?,
        round: look.either(typed.round, "round", "--round", RoundLabel::parse)?,
        variant: {
            let typed = (!typed.variant.is_empty()).then_some(typed.variant);
            let split = |text: &str| Ok::<_, String>(text.split(',').map(str::to_owned).collect());
            look.either(typed, "variant", "--variant", split)?.unwrap_or_default()
        },
    };
    Ok((identity, look.found))
}

/// Looks in the file for what is not typed.
struct Look<'a> {
    layers: &'a Layers<'a>,
    file: &'a EnvFile,
    found: Vec<Origin>,
}

impl Look<'_> {
    fn either<T, E: Display>(
        &mut self,
        typed: Option<T>,
        id: &'static str,
        flag: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Failure> {
        let by_flag = !matches!(self.layers.typed_source(id), Source::Variable(_));
        if let Some(value) = typed.filter(|_| by_flag) {
            return Ok(Some(value));
        }
        let name = variable(id);
        let Some(text) = self.file.env.get(&name) else { return Ok(None) };
        let source = Source::File(self.file.path.clone(), name);
        let value = parse(text).map_err(|error| {
            Failure::usage(format!("{source}: {error}"), "Mend the line; the job that it is from would be refused too.")
        })?;
        self.found.push((flag, source));
        Ok(Some(value))
    }
}
