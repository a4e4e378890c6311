//! `expressions.toml`: what a guide leaves to its platform or its reader. Must not know how commands are run.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What stands in for the platform while a guide's commands are run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Setting {
    /// Whose environment counts; else the guide's own.
    platform: Option<String>,
    pub(crate) reports: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    expressions: BTreeMap<String, String>,
}

/// Marks of expressions that a platform must have replaced before a shell sees them.
const UNREPLACED: [&str; 7] = ["${{", "{{", "<<", "$[[", "#{", "<+", "$("];

/// The settings of all guides.
pub(crate) fn settings() -> BTreeMap<String, Setting> {
    toml::from_str(include_str!("expressions.toml")).unwrap_or_else(|error| panic!("expressions.toml: {error}"))
}

impl Setting {
    /// The platform whose job it is; none outside CI.
    pub(crate) fn platform<'a>(&'a self, guide: &'a str) -> Option<&'a str> {
        Some(self.platform.as_deref().unwrap_or(guide)).filter(|name| !name.is_empty())
    }

    /// The command as the platform hands it to a shell; or what is left for which the table has no value.
    pub(crate) fn resolve(&self, command: &str) -> Result<String, String> {
        // Longer ones first: one may begin with another.
        let mut expressions: Vec<(&String, &String)> = self.expressions.iter().collect();
        expressions.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let mut command = command.to_owned();
        for (text, value) in expressions {
            command = command.replace(text.as_str(), value);
        }
        // The shell's own arithmetic.
        let others = command.replace("$((", "");
        match UNREPLACED.iter().find(|mark| others.contains(**mark)) {
            Some(mark) => Err(format!("expressions.toml has no value for the {mark} in it")),
            None => Ok(command),
        }
    }

    /// Expressions that stand nowhere in the guide.
    pub(crate) fn unused(&self, text: &str) -> Vec<&str> {
        self.expressions.keys().map(String::as_str).filter(|expression| !text.contains(expression)).collect()
    }
}
