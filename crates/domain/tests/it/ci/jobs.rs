//! One job of each platform: the environments in `tests/env`, with what they pass as flags (`TALLYONCE_…`).

use std::collections::BTreeMap;
use std::path::Path;

use domain::ci::{Env, Identity, IdentityError, Overrides, PlatformName, identify, identify_as, platforms};
use domain::{JobName, Ordinal, RunId, ShardRef, Variant};

/// Changes of variables; an empty value removes one.
pub(crate) type Changes = &'static [(&'static str, &'static str)];

/// A job of a sharded run.
pub(crate) struct Job {
    pub(crate) name: PlatformName,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) flags: Overrides,
}

impl Job {
    pub(crate) fn of(slug: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/env/{slug}.env"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let variables: BTreeMap<String, String> = lines
            .map(|line| line.split_once('=').unwrap_or_else(|| panic!("{slug}.env: {line}")))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let flag = |name: &str| variables.get(name).map(String::as_str);
        let flags = Overrides {
            run: flag("TALLYONCE_RUN").map(|text| RunId::parse(text).unwrap()),
            attempt: flag("TALLYONCE_ATTEMPT").map(|text| Ordinal(text.parse().unwrap())),
            job: flag("TALLYONCE_JOB").map(|text| JobName::parse(text).unwrap()),
            shard: flag("TALLYONCE_SHARD").map(|text| ShardRef::parse(text).unwrap()),
            variant: flag("TALLYONCE_VARIANT").map(|text| Variant::parse_pairs(text.split(',')).unwrap()),
            round: None,
        };
        Self { name: PlatformName::parse(slug).unwrap(), variables, flags }
    }

    pub(crate) fn all() -> Vec<Self> {
        platforms().into_iter().map(|(slug, _, _)| Self::of(slug)).collect()
    }

    pub(crate) fn slug(&self) -> &'static str {
        self.name.slug()
    }

    /// Without a marker: it must be named.
    pub(crate) fn is_unmarked(&self) -> bool {
        ["concourse", "argo", "tekton", "zuul"].contains(&self.slug())
    }

    pub(crate) fn value(&self, variable: &str) -> &str {
        self.variables.get(variable).map_or("", String::as_str)
    }

    /// What is derived of it, as its own platform, with these changes and flags.
    pub(crate) fn derived(&self, changes: &[(&str, &str)], flags: &Overrides) -> Result<Identity, IdentityError> {
        let changed = changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env: Env = self.variables.clone().into_iter().chain(changed).collect();
        if self.is_unmarked() {
            return identify_as(Some(self.name), &env, flags);
        }
        let identity = identify(&env, flags)?;
        assert_eq!(identity.platform, Some(self.slug()), "recognised as another platform");
        assert_eq!(identify_as(Some(self.name), &env, flags).as_ref().map(|i| &i.key), Ok(&identity.key));
        Ok(identity)
    }

    pub(crate) fn key(&self, changes: &[(&str, &str)], flags: &Overrides) -> String {
        let derived = self.derived(changes, flags);
        derived.unwrap_or_else(|error| panic!("{} with {changes:?}: {error}", self.slug())).key.to_string()
    }
}

/// All that a person is told: the refusal, or warnings, reasons and kinds of re-run.
pub(crate) fn words(derived: &Result<Identity, IdentityError>) -> String {
    match derived {
        Err(error) => error.to_string(),
        Ok(identity) => {
            let whys = identity.explained.iter().map(|part| part.why);
            let notes = identity.reruns.iter().map(|rerun| rerun.note);
            let warnings = identity.warnings.iter().map(String::as_str);
            whys.chain(notes).chain(warnings).collect::<Vec<_>>().join("\n")
        }
    }
}
