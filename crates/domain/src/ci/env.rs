//! The environment as a value: names and texts, handed in by whoever may read it.
//! Must not read the process's environment itself.

use std::collections::BTreeMap;
use std::fmt;

/// Environment variables. An empty variable counts as absent: several platforms set empty ones.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// The trimmed value of a variable; none if it is absent, empty or only white space.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// True if the variable is set to something.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// True if the variable says yes: `true` in any case, or `1`.
    pub fn says_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
    }

    /// The first variable of `names` that is set, with its name.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| self.get(name).map(|value| (*name, value)))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl From<BTreeMap<String, String>> for Env {
    fn from(map: BTreeMap<String, String>) -> Self {
        Self(map)
    }
}

impl fmt::Debug for Env {
    /// Only how many there are: an environment holds secrets, and this may reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Env({} variables)", self.0.len())
    }
}
