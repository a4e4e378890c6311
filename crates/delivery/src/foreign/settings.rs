//! One `[target.NAME]` of the configuration, read and checked, credentials in hand. Must not know files, variables or flags.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use domain::Status;
use domain::forwarding::TargetPlace;
use serde::{Deserialize, Serialize};

use super::entry::{CaseId, CycleId};
use super::facts::{Kind, Strategy};
use super::kinds;
use super::options::Options;
use super::probe::Subject;
use crate::destination::HttpUrl;
use crate::secret::Secret;

/// Most characters of a target's name.
const NAME_CHARS_MAX: usize = 64;

/// The name of a target: `push --to NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TargetName(String);

impl TargetName {
    /// The one way in: letters, digits, `-`, `_` and `.`, beginning with a letter, so that it is never taken for an
    /// address or a path of a store.
    ///
    /// # Errors
    /// In words for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fits = text.len() <= NAME_CHARS_MAX
            && text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "{text:?} is no name of a target: up to {NAME_CHARS_MAX} letters, digits, '-', '_' and '.', a letter first"
            ))
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for TargetName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl TryFrom<String> for TargetName {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<TargetName> for String {
    fn from(name: TargetName) -> String {
        name.0
    }
}

/// What one cycle of the product stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CyclePer {
    /// A round: one pipeline run.
    #[default]
    Round,
    /// A cycle of ours, with all its rounds.
    Cycle,
}

/// One target.
#[derive(Debug, Clone)]
pub struct TargetSettings {
    /// Its name.
    pub name: TargetName,
    /// The product.
    pub kind: Kind,
    /// Where it is.
    pub url: HttpUrl,
    /// The product's own project, as its calls name it.
    pub project: String,
    /// Who calls, where the product wants a name.
    pub user: Option<String>,
    /// Token, key or password.
    pub token: Option<Secret>,
    /// The strategy; the product's default if none is chosen.
    pub strategy: Option<Strategy>,
    /// What one cycle of the product stands for.
    pub cycle_per: CyclePer,
    /// A cycle of the product that is used as it is.
    pub cycle: Option<CycleId>,
    /// Whether cases are made that are not there.
    pub create_cases: bool,
    /// Cases by the item's text as people read it, from the mapping file.
    pub cases: BTreeMap<String, CaseId>,
    /// The product's word or number for a status of ours, where it is not the usual one.
    pub statuses: BTreeMap<Status, String>,
    /// Another quiet time than the product's usual one, in milliseconds.
    pub quiet_ms: Option<u64>,
    /// Keys of this kind of product alone.
    pub options: Options,
}

impl TargetSettings {
    /// Which place it is: what its ledger's ids mean something in. Who calls, and how, is no part of it.
    pub fn place(&self) -> TargetPlace {
        TargetPlace::new(format!("{} at {}, project {}", self.kind, self.url, self.project))
    }

    /// What a probe of it says something of. To be asked for before the target is opened, which uses up its keys.
    pub fn subject(&self) -> Subject {
        let calls = (self.kind == Kind::Generic).then(|| kinds::calls_digest(&self.options));
        Subject { place: self.place(), calls }
    }

    /// The product's word for a status, where the settings say one.
    pub fn status(&self, status: Status) -> Option<&str> {
        self.statuses.get(&status).map(String::as_str)
    }
}
