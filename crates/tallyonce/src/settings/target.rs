//! `[target.NAME]`: one repository without push keys, made from its table in `tallyonce.toml` and the variables that it
//! names. Credentials stand there as `${VARIABLE}` only. Must not connect.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delivery::foreign::{CaseId, CycleId, CyclePer, Kind, Options, Strategy, TargetName, TargetSettings};
use delivery::{Destination, HttpUrl, Secret};
use domain::ci::Env;
use domain::{Status, limits};
use serde_json::Value;

use super::duration;
use crate::failure::Failure;

/// A table as the file holds it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetSection {
    /// The file.
    pub file: PathBuf,
    /// Its name.
    pub name: TargetName,
    /// Its keys.
    pub table: toml::Table,
    /// The store of the server that forwards to it by itself, if one does.
    pub served: Option<String>,
}

/// When the cycle of a round is ended there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseWhen {
    /// By `tallyonce close` alone.
    Never,
    /// After every push, where what comes later is taken all the same.
    Push,
}

/// A target, ready to be opened.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// What its adapter needs.
    pub settings: TargetSettings,
    /// Where its intents are kept.
    pub ledger: Destination,
    /// Where the result of `probe` is kept.
    pub probe: PathBuf,
    /// True if a server forwards to it, whose store the ledger is.
    pub served: bool,
    /// When its cycles are ended; as is usual for the product if nothing is said.
    pub close: Option<CloseWhen>,
}

/// Which of the files that reports name go along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AttachmentsWord {
    /// None, so that nobody hands on by surprise what tests leave behind.
    #[default]
    Never,
    /// Those of items that failed or errored in the end.
    Failed,
    /// Those of all items.
    All,
}

/// Which files go along, and up to which size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttachmentSettings {
    /// Which.
    pub which: AttachmentsWord,
    /// Bytes of one.
    pub bytes_max: u64,
}

impl AttachmentSettings {
    /// None.
    pub(crate) const NEVER: Self = Self { which: AttachmentsWord::Never, bytes_max: limits::ATTACHMENT_BYTES_MAX };
}

impl TargetSection {
    /// Which files go along.
    ///
    /// # Errors
    /// A key holds something else.
    pub(crate) fn attachments(&self) -> Result<AttachmentSettings, Failure> {
        let which = match self.table.get("attachments").map(toml::Value::as_str) {
            None | Some(Some("never")) => AttachmentsWord::Never,
            Some(Some("failed")) => AttachmentsWord::Failed,
            Some(Some("all")) => AttachmentsWord::All,
            Some(_) => return Err(self.wrong("attachments", "never, failed or all is expected")),
        };
        let bytes_max = match self.table.get("attachment-bytes-max").map(toml::Value::as_integer) {
            None => limits::ATTACHMENT_BYTES_MAX,
            Some(bytes) => bytes
                .and_then(|bytes| u64::try_from(bytes).ok())
                .ok_or_else(|| self.wrong("attachment-bytes-max", "a number of bytes is expected"))?,
        };
        Ok(AttachmentSettings { which, bytes_max })
    }

    /// Where its intents are kept.
    ///
    /// # Errors
    /// The key holds no store.
    pub(crate) fn ledger(&self) -> Result<Destination, Failure> {
        let text = match self.table.get("ledger") {
            Some(_) if self.served.is_some() => {
                let why =
                    format!("[forward.{}] is there, so the server's store is its ledger: leave the key out", self.name);
                return Err(self.wrong("ledger", &why));
            }
            None if let Some(store) = &self.served => store.clone(),
            None => format!("sqlite:.tallyonce/ledger-{}.db", self.name),
            Some(toml::Value::String(text)) => text.clone(),
            Some(_) => return Err(self.wrong("ledger", "sqlite:PATH is expected")),
        };
        match Destination::parse(&text) {
            Ok(ledger @ Destination::Sqlite(_)) => Ok(ledger),
            Ok(Destination::Http(_)) => Err(self.wrong("ledger", "sqlite:PATH is expected: intents are kept here")),
            Err(error) => Err(self.wrong("ledger", &error.to_string())),
        }
    }

    /// Refuses it where somebody wants to push to it: two that forward to one target would not see each other.
    ///
    /// # Errors
    /// A server forwards to it.
    pub(crate) fn not_served(&self) -> Result<(), Failure> {
        match self.served {
            None => Ok(()),
            Some(_) => Err(Failure::usage(
                format!("{}: forward.{} says that a server hands on to {}", self.file.display(), self.name, self.name),
                "Push to the server (--to http://…, with --wait-forward to wait until it is there); or take the table \
                 [forward.NAME] out.",
            )),
        }
    }

    /// All of it, with the variables of this environment.
    ///
    /// # Errors
    /// A key is missing or can't be used, a variable is not set, or a credential stands in the file itself.
    pub(crate) fn resolve(&self, env: &Env) -> Result<Target, Failure> {
        let ledger = self.ledger()?;
        let mut keys = Keys { section: self, options: self.options(env)? };
        self.attachments()?;
        for read in ["ledger", "attachments", "attachment-bytes-max"] {
            keys.options.value(read);
        }
        let kind: Kind = keys.parsed("kind", "which product it is")?;
        let url = keys.need("url", "where the product answers")?;
        let url = HttpUrl::parse(&url).map_err(|error| self.wrong("url", &error.to_string()))?;
        let project = keys.need("project", "the product's own project")?;
        let user = keys.text("user")?;
        let token = keys.text("token")?.map(|token| Secret::new(&token));
        let strategy = keys.maybe::<Strategy>("strategy")?;
        let cycle_per = match keys.text("cycle-per")?.as_deref() {
            None | Some("round") => CyclePer::Round,
            Some("cycle") => CyclePer::Cycle,
            Some(_) => return Err(self.wrong("cycle-per", "round or cycle is expected")),
        };
        let cycle = keys.text("cycle")?.map(CycleId::new);
        let close = match keys.text("close")?.as_deref() {
            None => None,
            Some("never") => Some(CloseWhen::Never),
            Some("push") => Some(CloseWhen::Push),
            Some(_) => return Err(self.wrong("close", "never or push is expected")),
        };
        let create_cases = keys.flag("create-cases")?.unwrap_or(false);
        let cases = match keys.text("mapping")? {
            Some(path) => mapping(Path::new(&path))?,
            None => BTreeMap::new(),
        };
        let statuses = keys.statuses()?;
        let quiet_ms = keys.milliseconds("quiet")?;
        let probe = keys.text("probe")?.map_or_else(|| default_probe(&self.name), PathBuf::from);
        let settings = TargetSettings {
            name: self.name.clone(),
            kind,
            url,
            project,
            user,
            token,
            strategy,
            cycle_per,
            cycle,
            create_cases,
            cases,
            statuses,
            quiet_ms,
            options: keys.options,
        };
        Ok(Target { settings, ledger, probe, served: self.served.is_some(), close })
    }

    /// The keys as JSON values, variables put in.
    fn options(&self, env: &Env) -> Result<Options, Failure> {
        let mut values = BTreeMap::new();
        for (key, value) in &self.table {
            values.insert(key.clone(), self.value(key, value, env)?);
        }
        Ok(Options::new(values))
    }

    fn value(&self, key: &str, value: &toml::Value, env: &Env) -> Result<Value, Failure> {
        Ok(match value {
            toml::Value::String(text) => Value::String(self.expanded(key, text, env)?),
            toml::Value::Integer(number) => Value::from(*number),
            toml::Value::Float(number) => Value::from(*number),
            toml::Value::Boolean(flag) => Value::Bool(*flag),
            toml::Value::Datetime(time) => Value::String(time.to_string()),
            toml::Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(key, item, env)).collect::<Result<_, _>>()?)
            }
            toml::Value::Table(table) => {
                let members = table.iter().map(|(name, item)| {
                    let value = self.value(&format!("{key}.{name}"), item, env)?;
                    Ok((name.clone(), value))
                });
                Value::Object(members.collect::<Result<_, Failure>>()?)
            }
        })
    }

    /// `${VARIABLE}` as a whole value. A credential has to be one.
    fn expanded(&self, key: &str, text: &str, env: &Env) -> Result<String, Failure> {
        let name = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        let Some(name) = name else {
            if is_credential(key, text) {
                return Err(Failure::usage(
                    format!("{}: {}: a credential stands in the file itself", self.file.display(), self.path(key)),
                    "Put all of it into a secret variable, and write \"${NAME_OF_THE_VARIABLE}\" in its place.",
                ));
            }
            return Ok(text.to_owned());
        };
        match env.get(name).map(str::trim).filter(|value| !value.is_empty()) {
            Some(value) => Ok(value.to_owned()),
            None => Err(Failure::usage(
                format!("{}: {} names the variable {name}, which is not set", self.file.display(), self.path(key)),
                format!("Set {name} for this job (a secret of the CI platform)."),
            )),
        }
    }

    fn path(&self, key: &str) -> String {
        format!("target.{}.{key}", self.name)
    }

    /// A key that can't be used.
    pub(crate) fn wrong(&self, key: &str, why: &str) -> Failure {
        self.unusable(&format!("{}: {why}", self.path(key)))
    }

    /// The table can't be used.
    pub(crate) fn unusable(&self, why: &str) -> Failure {
        Failure::usage(
            format!("{}: {why}", self.file.display()),
            "Mend the file; docs/targets has a guide for every kind of target.",
        )
    }
}

/// The keys that all kinds share, read one by one.
struct Keys<'a> {
    section: &'a TargetSection,
    options: Options,
}

impl Keys<'_> {
    fn text(&mut self, key: &str) -> Result<Option<String>, Failure> {
        self.options.text(key).map_err(|error| self.failure(&error))
    }

    fn need(&mut self, key: &str, why: &'static str) -> Result<String, Failure> {
        self.options.need(key, why).map_err(|error| self.failure(&error))
    }

    fn flag(&mut self, key: &str) -> Result<Option<bool>, Failure> {
        self.options.flag(key).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &dyn std::fmt::Display) -> Failure {
        self.section.unusable(&format!("target.{}: {error}", self.section.name))
    }

    fn maybe<T: std::str::FromStr<Err = String>>(&mut self, key: &str) -> Result<Option<T>, Failure> {
        let text = self.text(key)?;
        text.map(|text| text.parse().map_err(|error: String| self.section.wrong(key, &error))).transpose()
    }

    fn parsed<T: std::str::FromStr<Err = String>>(&mut self, key: &str, why: &'static str) -> Result<T, Failure> {
        let text = self.need(key, why)?;
        text.parse().map_err(|error: String| self.section.wrong(key, &error))
    }

    fn milliseconds(&mut self, key: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let length = duration::parse(&text).map_err(|error| self.section.wrong(key, &error.to_string()))?;
        Ok(Some(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
    }

    fn statuses(&mut self) -> Result<BTreeMap<Status, String>, Failure> {
        let table = self.options.table("statuses").map_err(|error| self.failure(&error))?;
        let by_status = table.into_iter().map(|(word, value)| {
            let status: Status = word.parse().map_err(|error: String| self.section.wrong("statuses", &error))?;
            Ok((status, value))
        });
        by_status.collect()
    }
}

/// True for the token, and for a header that tells who asks. A value with a place is filled in later (`{id}`, `{token}`).
fn is_credential(key: &str, text: &str) -> bool {
    if key == "token" {
        return true;
    }
    let name = key.rsplit_once(".headers.").map(|(_, name)| name.to_ascii_lowercase());
    let tells_who = |name: String| {
        ["authorization", "proxy-authorization", "cookie", "key", "token", "secret", "password"]
            .iter()
            .any(|word| name == *word || name.strip_suffix(word).is_some_and(|rest| rest.ends_with(['-', '_'])))
    };
    name.is_some_and(tells_who) && !text.contains('{')
}

fn default_probe(name: &TargetName) -> PathBuf {
    PathBuf::from(format!(".tallyonce/probe-{name}.json"))
}

/// A mapping file: one item and its case a line, a tab or a comma between them; `#` begins a comment.
fn mapping(path: &Path) -> Result<BTreeMap<String, CaseId>, Failure> {
    let bad = |what: String| Failure::usage(what, "Write one `ITEM<tab>CASE` a line; `#` begins a comment.");
    let text = std::fs::read_to_string(path)
        .map_err(|error| bad(format!("the mapping file {} can't be read: {error}", path.display())))?;
    let mut cases = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let pair = line.rsplit_once('\t').or_else(|| line.rsplit_once(','));
        let (item, case) = pair
            .map(|(item, case)| (item.trim(), case.trim()))
            .filter(|(item, case)| !item.is_empty() && !case.is_empty())
            .ok_or_else(|| bad(format!("{}:{}: no item and case", path.display(), at + 1)))?;
        if cases.insert(item.to_owned(), CaseId::new(case)).is_some() {
            return Err(bad(format!("{}:{}: {item:?} has a case already", path.display(), at + 1)));
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests;
