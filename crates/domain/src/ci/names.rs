//! Platforms by name: for whoever asks about another job's environment, and for those that have no marker.
//! Must not read more of an environment than markers.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Env;
use super::known::{Detected, MARKED, UNMARKED, detect};
use super::platform::{Platform, Rerun, Strength};

/// The short name of a platform that is known here.
#[derive(Clone, Copy)]
pub struct PlatformName(&'static Platform);

/// A text that names no known platform.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is no platform that is known here; known: {known}")]
pub struct UnknownPlatform {
    /// The text as given.
    pub text: String,
    /// All short names.
    pub known: String,
}

/// All platforms in the order in which they are looked for, then those without a marker: short name, name for people,
/// and whether their own retries keep the run.
pub fn platforms() -> Vec<(&'static str, &'static str, Strength)> {
    all().map(|platform| (platform.slug, platform.title, platform.strength)).collect()
}

fn all() -> impl Iterator<Item = &'static Platform> {
    MARKED.iter().chain(UNMARKED)
}

impl PlatformName {
    /// The short name (`github`), or the name for people in any case, with `-` for spaces (`github-actions`).
    ///
    /// # Errors
    /// No platform is called so; the error lists those that there are.
    pub fn parse(text: &str) -> Result<Self, UnknownPlatform> {
        let wanted = spelled(text);
        let found = all().find(|platform| platform.slug == wanted || spelled(platform.title) == wanted);
        found.map(Self).ok_or_else(|| UnknownPlatform {
            text: text.trim().to_owned(),
            known: all().map(|platform| platform.slug).collect::<Vec<_>>().join(", "),
        })
    }

    /// The platform whose markers this environment holds; none outside CI, and none for a local imitation.
    pub fn detected(env: &Env) -> Option<Self> {
        match detect(env) {
            Detected::Platform(platform, _) => Some(Self(platform)),
            Detected::Imitation | Detected::Nothing => None,
        }
    }

    /// The short name, as it opens the key.
    pub fn slug(self) -> &'static str {
        self.0.slug
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        self.0.title
    }

    /// Whether the platform's own retries keep the run.
    pub fn strength(self) -> Strength {
        self.0.strength
    }

    /// What each kind of re-run does to the key.
    pub fn reruns(self) -> &'static [Rerun] {
        self.0.reruns
    }

    pub(super) fn of(platform: &'static Platform) -> Self {
        Self(platform)
    }

    pub(super) fn platform(self) -> &'static Platform {
        self.0
    }
}

fn spelled(text: &str) -> String {
    text.trim().to_lowercase().replace(' ', "-")
}

impl FromStr for PlatformName {
    type Err = UnknownPlatform;
    fn from_str(text: &str) -> Result<Self, UnknownPlatform> {
        Self::parse(text)
    }
}

impl PartialEq for PlatformName {
    fn eq(&self, other: &Self) -> bool {
        self.slug() == other.slug()
    }
}

impl Eq for PlatformName {}

impl fmt::Display for PlatformName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.slug())
    }
}

impl fmt::Debug for PlatformName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.slug())
    }
}
