//! Names and numbers of things: project, cycle, run, round, job, shard, variant, workflow, executor.
//! Every one has a single way in, which serde uses too. Must not know keys' text form or any store.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits;

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// The text is empty or only white space.
    #[error("{what} is empty")]
    Empty {
        /// Which name was read.
        what: &'static str,
    },
    /// The text is longer than its bound.
    #[error("{what} is {octets} octets long; at most {limit} are allowed")]
    TooLong {
        /// Which name was read.
        what: &'static str,
        /// Its length in octets.
        octets: usize,
        /// The bound in octets.
        limit: usize,
    },
    /// A control character or another octet that this name cannot hold.
    #[error("{what} {text:?} holds {found:?}; allowed: {allowed}")]
    BadCharacter {
        /// Which name was read.
        what: &'static str,
        /// The text as given.
        text: String,
        /// The first character that is not allowed.
        found: char,
        /// What may stand there.
        allowed: &'static str,
    },
    /// A shard that is not `I` or `I/N` with 1 <= I <= N.
    #[error("shard {text:?} is not I or I/N with 1 <= I <= N, such as 3/8 (the first shard is 1)")]
    BadShard {
        /// The text as given.
        text: String,
    },
    /// A variant part that is not `name=value`.
    #[error("variant {text:?} is not NAME=VALUE, such as os=linux")]
    BadVariant {
        /// The text as given.
        text: String,
    },
    /// The same variant name twice.
    #[error("variant name {name:?} is given twice; a variant has one value per name")]
    DoubledVariant {
        /// The doubled name.
        name: String,
    },
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident, $what:literal, $limit:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(String);

        impl $type {
            /// The one way in: trimmed, not empty, bounded, without control characters.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                plain_name($what, text, $limit).map(Self)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }

        impl FromStr for $type {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    };
}

fn plain_name(what: &'static str, text: &str, limit: usize) -> Result<String, IdError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(IdError::Empty { what });
    }
    if trimmed.len() > limit {
        return Err(IdError::TooLong { what, octets: trimmed.len(), limit });
    }
    if let Some(found) = trimmed.chars().find(|c| c.is_control()) {
        return Err(IdError::BadCharacter {
            what,
            text: trimmed.to_owned(),
            found,
            allowed: "anything but control characters",
        });
    }
    Ok(trimmed.to_owned())
}

name_type!(
    /// A named container for executions of items: `main`, `release 2.4`, `pr-17`.
    CycleName, "cycle", limits::NAME_BYTES_MAX
);
name_type!(
    /// The platform's identity of one pipeline run, without its scope: `16873243901`.
    RunId, "run", limits::NAME_BYTES_MAX
);
name_type!(
    /// One execution of the suite within a cycle: the push key before `:job:`. Unique in its cycle.
    RoundId, "round", limits::KEY_BYTES_MAX
);
name_type!(
    /// The label of a deliberate re-execution inside one pipeline run (`--round`).
    RoundLabel, "round label", limits::NAME_BYTES_MAX
);
name_type!(
    /// A job's name without its partition: `rspec`, not `rspec 1/3`.
    JobName, "job", limits::NAME_BYTES_MAX
);
name_type!(
    /// The pipeline definition that a round came from.
    WorkflowName, "workflow", limits::NAME_BYTES_MAX
);
name_type!(
    /// The platform's identity of one execution of one job. Never part of the key.
    Executor, "executor", limits::NAME_BYTES_MAX
);
name_type!(
    /// A commit as the platform gives it.
    Commit, "commit", limits::NAME_BYTES_MAX
);

impl RoundId {
    /// From text that `domain::key` made: allowed characters only, within the bound.
    pub(crate) fn from_canonical(text: String) -> Self {
        Self(text)
    }
}

/// The tenant: it owns items, cycles, keys and tokens. A key never reaches across projects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProjectId(String);

impl ProjectId {
    /// The one way in: 1 to 100 octets of `a-z 0-9 . _ -`, first one a letter or digit, folded to lower case.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        const WHAT: &str = "project";
        const ALLOWED: &str = "a-z 0-9 . _ - (upper case is folded), starting with a letter or digit";
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return Err(IdError::Empty { what: WHAT });
        }
        if text.len() > limits::PROJECT_BYTES_MAX {
            return Err(IdError::TooLong { what: WHAT, octets: text.len(), limit: limits::PROJECT_BYTES_MAX });
        }
        let bad = text.chars().enumerate().find(|(at, c)| {
            !(c.is_ascii_lowercase() || c.is_ascii_digit() || (*at > 0 && matches!(c, '.' | '_' | '-')))
        });
        if let Some((_, found)) = bad {
            return Err(IdError::BadCharacter { what: WHAT, text, found, allowed: ALLOWED });
        }
        Ok(Self(text))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ProjectId {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl FromStr for ProjectId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

impl From<ProjectId> for String {
    fn from(id: ProjectId) -> String {
        id.0
    }
}

impl fmt::Display for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// One shard of a job: index from 1, and the total where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ShardRef {
    index: u32,
    total: Option<u32>,
}

impl ShardRef {
    /// Shard `index` (from 1) of `total`.
    pub fn new(index: u32, total: Option<u32>) -> Result<Self, IdError> {
        let fits =
            (1..=limits::SHARDS_MAX).contains(&index) && total.is_none_or(|n| index <= n && n <= limits::SHARDS_MAX);
        if fits {
            Ok(Self { index, total })
        } else {
            let text = total.map_or_else(|| index.to_string(), |n| format!("{index}/{n}"));
            Err(IdError::BadShard { text })
        }
    }

    /// The one way in from text: `I` or `I/N`.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bad = || IdError::BadShard { text: text.to_owned() };
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if digits { part.parse::<u32>().map_err(|_| bad()) } else { Err(bad()) }
        };
        match text.trim().split_once('/') {
            None => Self::new(number(text.trim())?, None),
            Some((index, total)) => Self::new(number(index)?, Some(number(total)?)),
        }
        .map_err(|_| bad())
    }

    /// The shard's number, from 1.
    pub fn index(self) -> u32 {
        self.index
    }

    /// How many shards the job has, where that is known.
    pub fn total(self) -> Option<u32> {
        self.total
    }
}

impl fmt::Display for ShardRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total {
            Some(total) => write!(f, "{}/{total}", self.index),
            None => write!(f, "{}", self.index),
        }
    }
}

impl TryFrom<String> for ShardRef {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl FromStr for ShardRef {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

impl From<ShardRef> for String {
    fn from(shard: ShardRef) -> String {
        shard.to_string()
    }
}

/// The configuration an item ran under: names with one value each, sorted by name. Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Variant(BTreeMap<String, String>);

impl Variant {
    /// The one way in: every name once; names and values trimmed, not empty, bounded, without control characters.
    pub fn from_pairs<N: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self, IdError> {
        let mut map = BTreeMap::new();
        for (name, value) in pairs {
            let name = plain_name("variant name", name.as_ref(), limits::NAME_BYTES_MAX)?;
            let value = plain_name("variant value", value.as_ref(), limits::NAME_BYTES_MAX)?;
            if map.insert(name.clone(), value).is_some() {
                return Err(IdError::DoubledVariant { name });
            }
        }
        Ok(Self(map))
    }

    /// From texts of the form `name=value`, as given on a command line.
    pub fn parse_pairs<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Result<Self, IdError> {
        let mut pairs = Vec::new();
        for text in texts {
            let text = text.as_ref();
            let Some((name, value)) = text.split_once('=') else {
                return Err(IdError::BadVariant { text: text.to_owned() });
            };
            pairs.push((name.to_owned(), value.to_owned()));
        }
        Self::from_pairs(pairs)
    }

    /// True if nothing is said about the configuration.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }
}

impl fmt::Display for Variant {
    /// For people (`browser=firefox,os=linux`); the key's form escapes, this one doesn't.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{name}={value}")?;
        }
        Ok(())
    }
}

impl TryFrom<BTreeMap<String, String>> for Variant {
    type Error = IdError;
    fn try_from(map: BTreeMap<String, String>) -> Result<Self, IdError> {
        Self::from_pairs(map)
    }
}

impl From<Variant> for BTreeMap<String, String> {
    fn from(variant: Variant) -> Self {
        variant.0
    }
}

/// The attempt number that the platform gives, as a number that rises. Orders competing deliveries; never part of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ordinal(pub u64);

impl fmt::Display for Ordinal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A random number per client process: a new one is a new wish, an old one a delayed message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Incarnation(pub u128);

impl Incarnation {
    /// From 32 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let value = if hex { u128::from_str_radix(text, 16).ok() } else { None };
        value.map(Self).ok_or_else(|| IdError::BadCharacter {
            what: "incarnation",
            text: text.chars().take(64).collect(),
            found: text.chars().find(|c| !c.is_ascii_hexdigit()).unwrap_or(' '),
            allowed: "32 hexadecimal digits",
        })
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Incarnation {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}

impl From<Incarnation> for String {
    fn from(value: Incarnation) -> String {
        value.to_string()
    }
}
