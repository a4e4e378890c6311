//! What platforms without any marker have in common: they tell a process nothing, so everything is asked for, and the key
//! is the one that a push outside CI would have. Only named (`--platform`), never recognised. Must not invent a run.

use super::Overrides;
use super::platform::{Missing, Reading};

/// Nothing but how to pass the run, and a warning where nothing tells two jobs of it apart.
pub(super) fn reading(overrides: &Overrides, how: &'static str) -> Reading {
    let mut reading = Reading { missing: vec![Missing::RunByDesign(how)], ..Reading::default() };
    if overrides.job.is_none() && overrides.shard.is_none() && overrides.variant.is_none() {
        reading.warnings.push(
            "nothing tells the jobs of this run apart: if more than one pushes, pass --job NAME in each, and --shard I/N or \
             --variant NAME=VALUE for the parts of one job"
                .to_owned(),
        );
    }
    reading
}
