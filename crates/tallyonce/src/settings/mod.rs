//! What was typed, made into what it means, per command: flag over variable over `tallyonce.toml` over default.
//! Each value knows where it came from. Must not do anything with them.

pub(crate) mod announce;
pub(crate) mod connection;
pub(crate) mod duration;
pub(crate) mod file;
pub(crate) mod key;
pub(crate) mod place;
pub(crate) mod push;
pub(crate) mod run;
pub(crate) mod target;

use std::fmt;
use std::path::PathBuf;

use clap::ArgMatches;
use clap::parser::ValueSource;

pub(crate) use announce::AnnounceSettings;
pub(crate) use connection::ConnectionSettings;
pub(crate) use file::ConfigFile;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A flag.
    Flag(String),
    /// An environment variable.
    Variable(String),
    /// A key of a configuration file.
    File(PathBuf, String),
    /// The CI platform.
    Platform(&'static str),
    /// Nobody said anything; why it is this.
    Default(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::File(path, key) => write!(f, "{}: {key}", path.display()),
            Self::Platform(title) => f.write_str(title),
            Self::Default(why) => write!(f, "default: {why}"),
        }
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub source: Source,
}

impl<T> Setting<T> {
    /// A value from there.
    pub(crate) fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }

    /// What holds if nobody said anything.
    pub(crate) fn default(value: T, why: &'static str) -> Self {
        Self::new(value, Source::Default(why))
    }
}

/// What was typed and what the file says, for one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers<'a> {
    matches: &'a ArgMatches,
    file: Option<&'a ConfigFile>,
}

impl<'a> Layers<'a> {
    /// Of this command's matches.
    pub(crate) fn new(matches: &'a ArgMatches, file: Option<&'a ConfigFile>) -> Self {
        Self { matches, file }
    }

    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&'a ConfigFile> {
        self.file
    }

    /// The typed value of argument `id`, else what `from` finds in the file under `key`.
    pub(crate) fn pick<T>(
        &self,
        id: &'static str,
        typed: Option<T>,
        key: &'static str,
        from: impl FnOnce(&ConfigFile) -> Option<T>,
    ) -> Option<Setting<T>> {
        if let Some(value) = typed {
            return Some(Setting::new(value, self.typed_source(id)));
        }
        let file = self.file?;
        let value = from(file)?;
        Some(Setting::new(value, Source::File(file.path.clone(), key.to_owned())))
    }

    /// True if a switch is typed, or the file turns it on.
    pub(crate) fn switch(&self, typed: bool, from: impl FnOnce(&ConfigFile) -> Option<bool>) -> bool {
        typed || self.file.and_then(from).unwrap_or(false)
    }

    /// Whether argument `id` came by its flag or by its variable.
    pub(crate) fn typed_source(&self, id: &'static str) -> Source {
        let name = id.replace('_', "-");
        match self.matches.value_source(id) {
            Some(ValueSource::EnvVariable) => Source::Variable(variable(id)),
            _ => Source::Flag(format!("--{name}")),
        }
    }
}

/// The variable that stands for argument `id`.
pub(crate) fn variable(id: &str) -> String {
    format!("TALLYONCE_{}", id.to_uppercase())
}
