//! `[target.NAME]`: one repository without push keys, made from its table in `tallyonce.toml` and the variables that it
//! names. Credentials stand there as `${VARIABLE}` only. Must not connect.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use delivery::foreign::{CaseId, CycleId, CyclePer, Kind, Options, Strategy, TargetName, TargetSettings};
use delivery::{Destination, HttpUrl, Secret};
use domain::Status;
use domain::ci::Env;
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
}

impl TargetSection {
    /// Where its intents are kept.
    ///
    /// # Errors
    /// The key holds no store.
    pub(crate) fn ledger(&self) -> Result<Destination, Failure> {
        let text = match self.table.get("ledger") {
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

    /// All of it, with the variables of this environment.
    ///
    /// # Errors
    /// A key is missing or can't be used, a variable is not set, or a credential stands in the file itself.
    pub(crate) fn resolve(&self, env: &Env) -> Result<Target, Failure> {
        let ledger = self.ledger()?;
        let mut keys = Keys { section: self, options: self.options(env)? };
        keys.options.value("ledger");
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
        Ok(Target { settings, ledger, probe })
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
            return match key {
                "token" => Err(Failure::usage(
                    format!("{}: {}: a credential stands in the file itself", self.file.display(), self.path(key)),
                    "Put it into a secret variable, and write token = \"${NAME_OF_THE_VARIABLE}\".",
                )),
                _ => Ok(text.to_owned()),
            };
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
mod tests {
    use super::*;

    fn section(text: &str) -> TargetSection {
        TargetSection {
            file: PathBuf::from("tallyonce.toml"),
            name: TargetName::parse("rail").unwrap(),
            table: text.parse().unwrap(),
        }
    }

    fn env(pairs: &[(&str, &str)]) -> Env {
        let map: BTreeMap<String, String> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Env::from(map)
    }

    const GOOD: &str = "kind = 'testrail'\nurl = 'https://rail.example'\nproject = 3\nuser = 'ci@example'\n\
                        token = '${RAIL_KEY}'\nstrategy = 'reconcile'\nquiet = '90s'\nsuite = 4\n\
                        [statuses]\nskipped = 4\n";

    #[test]
    fn every_key_is_read_and_the_rest_is_the_adapters() {
        let mut target = section(GOOD).resolve(&env(&[("RAIL_KEY", "s3cret")])).unwrap();
        assert_eq!(target.settings.kind, Kind::Testrail);
        assert_eq!(target.settings.project, "3");
        assert_eq!(target.settings.token.as_ref().map(Secret::expose), Some("s3cret"));
        assert_eq!(target.settings.quiet_ms, Some(90_000));
        assert_eq!(target.settings.status(Status::Skipped), Some("4"));
        assert_eq!(target.settings.options.text("suite").unwrap().as_deref(), Some("4"));
        assert!(target.settings.options.finish().is_ok(), "nothing that all share is left");
        assert_eq!(target.probe, PathBuf::from(".tallyonce/probe-rail.json"));
        assert!(!format!("{target:?}", target = section(GOOD)).contains("s3cret"));
    }

    #[test]
    fn credentials_come_by_variables_that_are_set() {
        let failure = section(GOOD).resolve(&env(&[])).unwrap_err();
        assert!(failure.what.contains("target.rail.token names the variable RAIL_KEY"), "{}", failure.what);
        let text = GOOD.replace("${RAIL_KEY}", "plain-text-key");
        let failure = section(&text).resolve(&env(&[])).unwrap_err();
        assert!(failure.what.contains("a credential stands in the file itself"), "{}", failure.what);
        assert!(!format!("{failure:?}").contains("plain-text-key"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let env = env(&[("RAIL_KEY", "k")]);
        for (from, to, said) in [
            ("kind = 'testrail'\n", "", "kind is missing: which product it is"),
            ("'testrail'", "'testrial'", "target.rail.kind: unknown kind \"testrial\"; one of testrail"),
            ("https://rail.example", "rail", "target.rail.url: "),
            ("'reconcile'", "'twice'", "target.rail.strategy: unknown strategy"),
            ("'90s'", "'soon'", "target.rail.quiet: "),
            ("skipped = 4", "skiped = 4", "target.rail.statuses: unknown status \"skiped\""),
        ] {
            let failure = section(&GOOD.replace(from, to)).resolve(&env).unwrap_err();
            assert!(failure.what.contains(said), "{said}: {}", failure.what);
            assert_eq!(failure.exit.number(), 2);
        }
    }

    #[test]
    fn a_mapping_file_names_its_bad_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cases.tsv");
        std::fs::write(&path, "# items\nsuite > adds\tC12\na, b,C13\n").unwrap();
        let cases = mapping(&path).unwrap();
        assert_eq!(cases["suite > adds"], CaseId::new("C12"));
        assert_eq!(cases["a, b"], CaseId::new("C13"));
        std::fs::write(&path, "adds\tC12\nadds\tC13\n").unwrap();
        assert!(mapping(&path).unwrap_err().what.contains("cases.tsv:2: \"adds\" has a case already"));
        std::fs::write(&path, "adds\n").unwrap();
        assert!(mapping(&path).unwrap_err().what.contains("cases.tsv:1: no item and case"));
    }
}
