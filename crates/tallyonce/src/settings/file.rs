//! `tallyonce.toml`: which keys there are, and how the file is found. An unknown key is an error, so that a typing
//! error never turns into a default. Must not know flags.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use delivery::foreign::TargetName;
use domain::forwarding::CyclePattern;
use domain::{CycleName, JobName, OnDifference, ProjectId};
use serde::{Deserialize, Deserializer};

use super::duration;
use super::target::TargetSection;
use crate::failure::Failure;

/// The file that is looked for in the working folder.
pub(crate) const FILE_NAME: &str = "tallyonce.toml";

/// The store of `serve`, unless said otherwise.
pub(crate) const STORE: &str = "sqlite:tallyonce.db";

/// Every key, as the reference lists them.
#[cfg(test)]
#[rustfmt::skip]
pub(crate) const KEYS: [&str; 35] = [
    "project", "cycle", "to", "ca-file", "client-cert", "client-key", "timeout", "paths", "job", "expect", "format",
    "on-difference", "deadline", "outbox", "chunk-outcomes", "fail-on", "partial", "allow-empty",
    "announce", "summary", "outputs", "links", "listen", "store", "open", "log-json",
    "wait-forward", "target", "forward", "projects", "cycles", "body-bytes-max", "inflated-bytes-max", "requests-max", "connections-max",
];

/// A configuration file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ConfigFile {
    /// Where it is.
    #[serde(skip)]
    pub path: PathBuf,
    /// The project.
    pub project: Option<ProjectId>,
    /// The cycle.
    pub cycle: Option<CycleName>,
    /// The destination of push and flush, and what the reading commands read.
    pub to: Option<String>,
    /// Further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// The client's certificate.
    pub client_cert: Option<PathBuf>,
    /// Its key.
    pub client_key: Option<PathBuf>,
    /// How long one request may take.
    #[serde(default, deserialize_with = "length")]
    pub timeout: Option<Duration>,
    /// `[push]`.
    #[serde(default)]
    pub push: PushSection,
    /// `[serve]`.
    #[serde(default)]
    pub serve: ServeSection,
    /// `[target.NAME]`, by name; what they hold is read when one is used.
    #[serde(default)]
    pub target: BTreeMap<TargetName, toml::Table>,
    /// `[forward.NAME]`: targets to which `serve` hands on by itself what it records.
    #[serde(default)]
    pub forward: BTreeMap<TargetName, ForwardSection>,
}

/// What `serve` hands on to one target. What is not given does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ForwardSection {
    /// Pushes of these projects.
    pub projects: Option<Vec<ProjectId>>,
    /// Pushes into these cycles.
    #[serde(default, deserialize_with = "all_parsed")]
    pub cycles: Option<Vec<CyclePattern>>,
}

/// Settings of push, and those that flush shares with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PushSection {
    /// What is pushed if nothing is named.
    pub paths: Option<Vec<String>>,
    /// The job.
    pub job: Option<JobName>,
    /// Pushes of the job.
    pub expect: Option<u32>,
    /// The reports' format.
    #[serde(default, deserialize_with = "parsed")]
    pub format: Option<reports::Format>,
    /// The policy for other outcomes.
    pub on_difference: Option<OnDifference>,
    /// How long to try.
    #[serde(default, deserialize_with = "length")]
    pub deadline: Option<Duration>,
    /// The outbox.
    pub outbox: Option<PathBuf>,
    /// A push of more outcomes is staged, in chunks of about so many.
    pub chunk_outcomes: Option<u64>,
    /// `failed` or `never`.
    pub fail_on: Option<FailOnWord>,
    /// Damaged reports as far as readable.
    pub partial: Option<bool>,
    /// Empty pushes.
    pub allow_empty: Option<bool>,
    /// Wait until the server has handed it on.
    pub wait_forward: Option<bool>,
    /// `auto` or `never`.
    pub announce: Option<AnnounceWord>,
    /// A file for summaries.
    pub summary: Option<PathBuf>,
    /// A file of values for later steps.
    pub outputs: Option<PathBuf>,
    /// A report of links.
    pub links: Option<PathBuf>,
}

/// The words of `announce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AnnounceWord {
    /// Where the platform has a place.
    Auto,
    /// Nowhere.
    Never,
}

/// The words of `fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FailOnWord {
    /// On failed tests.
    Failed,
    /// Never.
    Never,
}

/// Settings of serve, and the store of check-store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ServeSection {
    /// The address.
    pub listen: Option<String>,
    /// The store.
    pub store: Option<String>,
    /// Open to everybody who reaches the address.
    pub open: Option<bool>,
    /// JSON logs.
    pub log_json: Option<bool>,
    /// A body as it arrives, in bytes.
    pub body_bytes_max: Option<u64>,
    /// A body after inflating, in bytes.
    pub inflated_bytes_max: Option<u64>,
    /// Requests at once.
    pub requests_max: Option<usize>,
    /// Connections at once.
    pub connections_max: Option<usize>,
}

impl ServeSection {
    /// The store that `serve` works over, unless a flag says otherwise.
    pub(crate) fn store(&self) -> &str {
        self.store.as_deref().unwrap_or(STORE)
    }
}

fn length<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    duration::parse(&text).map(Some).map_err(serde::de::Error::custom)
}

fn parsed<'de, D: Deserializer<'de>, T: std::str::FromStr<Err = String>>(from: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn all_parsed<'de, D: Deserializer<'de>, T: std::str::FromStr<Err = String>>(
    from: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect::<Result<_, _>>().map(Some)
}

impl ConfigFile {
    /// The table of a target.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn target(&self, name: &TargetName) -> Result<TargetSection, Failure> {
        match self.target.get(name) {
            Some(table) => self.alone(name, table),
            None => {
                Err(no_target(name, &format!("{} has no [target.{name}]", self.path.display()), self.target.keys()))
            }
        }
    }

    /// A target's table, unless its ledger is another target's too: what waits there would go to either.
    fn alone(&self, name: &TargetName, table: &toml::Table) -> Result<TargetSection, Failure> {
        let section = |name: &TargetName, table: &toml::Table| TargetSection {
            file: self.path.clone(),
            name: name.clone(),
            table: table.clone(),
            served: self.forward.contains_key(name).then(|| self.serve.store().to_owned()),
        };
        let own = section(name, table);
        let ledger = own.ledger()?;
        // A server keeps its targets apart in its one store; nobody pushes into that past the server.
        let both_served = |other: &TargetName| own.served.is_some() && self.forward.contains_key(other);
        let others = self.target.iter().filter(|(other, _)| *other != name && !both_served(other));
        for (other, table) in others {
            if section(other, table).ledger().is_ok_and(|other| other == ledger) {
                return Err(own.wrong("ledger", &format!("{ledger} is the ledger of target {other} too")));
            }
        }
        Ok(own)
    }

    /// The named file, else the one in `folder`, if there is one.
    ///
    /// # Errors
    /// The named file is not there, or a file cannot be used.
    pub(crate) fn find(named: Option<&Path>, folder: &Path) -> Result<Option<Self>, Failure> {
        let path = named.map_or_else(|| folder.join(FILE_NAME), Path::to_owned);
        let shown = named.unwrap_or(Path::new(FILE_NAME));
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(shown, &text).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => Ok(None),
            Err(error) => Err(Failure::usage(
                format!("{} can't be read: {error}", shown.display()),
                "Name a readable file with --config, or leave the flag out.",
            )),
        }
    }

    /// From the text of the file at `path`.
    ///
    /// # Errors
    /// It is no TOML, or holds an unknown key or an unusable value: each named.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let mut file: Self = toml::from_str(text).map_err(|error| {
            Failure::usage(
                format!("{}: {}", path.display(), error.to_string().trim_end()),
                "Mend the file; docs/reference/config.md lists every key.",
            )
        })?;
        path.clone_into(&mut file.path);
        file.rules_are_sound()?;
        Ok(file)
    }

    /// Every `[forward.NAME]` has its target, and takes something.
    fn rules_are_sound(&self) -> Result<(), Failure> {
        let path = self.path.display();
        for (name, section) in &self.forward {
            if !self.target.contains_key(name) {
                let what = format!("{path}: forward.{name}: there is no [target.{name}]");
                return Err(no_target(name, &what, self.target.keys()));
            }
            let nothing = [
                ("projects", section.projects.as_ref().is_some_and(Vec::is_empty)),
                ("cycles", section.cycles.as_ref().is_some_and(Vec::is_empty)),
            ];
            if let Some((key, _)) = nothing.iter().find(|(_, is_empty)| *is_empty) {
                return Err(Failure::usage(
                    format!("{path}: forward.{name}.{key} is empty, so no push would ever go to {name}"),
                    format!("Name {key}, or leave the key out: then pushes of all {key} go there."),
                ));
            }
        }
        Ok(())
    }
}

/// A target that nothing describes.
pub(crate) fn no_target<'a>(name: &TargetName, what: &str, known: impl Iterator<Item = &'a TargetName>) -> Failure {
    let known: Vec<&str> = known.map(TargetName::as_str).collect();
    let there = if known.is_empty() { "none is there".to_owned() } else { format!("there are {}", known.join(", ")) };
    Failure::usage(
        format!("{what} ({there})"),
        format!("Describe the target {name} in tallyonce.toml (docs/targets), or give https://… or sqlite:PATH."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, Failure> {
        ConfigFile::parse(Path::new("tallyonce.toml"), text)
    }

    #[test]
    fn every_key_is_read() {
        let file = parse(
            "project = \"Shop\"\ncycle = \"main\"\nto = \"https://t.example\"\nca-file = \"ca.pem\"\n\
             client-cert = \"c.pem\"\nclient-key = \"k.pem\"\ntimeout = \"30s\"\n[push]\npaths = [\"a/*.xml\"]\n\
             job = \"e2e\"\nexpect = 4\nformat = \"junit\"\non-difference = \"keep\"\ndeadline = \"90s\"\n\
             outbox = \"box\"\nchunk-outcomes = 500\nfail-on = \"failed\"\npartial = true\nallow-empty = true\n\
             wait-forward = true\nannounce = \"never\"\nsummary = \"s.md\"\noutputs = \"o.env\"\nlinks = \"l.json\"\n[serve]\n\
             listen = \"127.0.0.1:1\"\nstore = \"sqlite:x.db\"\nopen = true\nlog-json = true\n\
             [target.rail]\nkind = \"testrail\"\n[forward.rail]\nprojects = [\"Shop\"]\n\
             cycles = [\"main\", \"release-*\"]\n",
        )
        .unwrap();
        assert_eq!(file.project.unwrap().as_str(), "shop");
        assert_eq!(file.timeout, Some(Duration::from_secs(30)));
        assert_eq!(file.push.deadline, Some(Duration::from_secs(90)));
        assert_eq!(file.push.chunk_outcomes, Some(500));
        assert_eq!(file.push.on_difference, Some(OnDifference::Keep));
        assert_eq!(file.push.fail_on, Some(FailOnWord::Failed));
        assert_eq!(file.push.announce, Some(AnnounceWord::Never));
        assert_eq!(file.serve.open, Some(true));
        assert_eq!(file.push.wait_forward, Some(true));
        let rule = &file.forward[&TargetName::parse("rail").unwrap()];
        assert_eq!(rule.projects.as_ref().unwrap()[0].as_str(), "shop");
        assert_eq!(rule.cycles.as_ref().unwrap()[1].as_str(), "release-*");
    }

    #[test]
    fn a_rule_needs_its_target_and_takes_something() {
        const TARGET: &str = "[target.rail]\nkind = \"testrail\"\n";
        for (text, said) in [
            ("[forward.rail]", "tallyonce.toml: forward.rail: there is no [target.rail] (none is there)"),
            ("[target.a]\n[forward.rail]", "there is no [target.rail] (there are a)"),
            (&*format!("{TARGET}[forward.rail]\nproject = [\"a\"]"), "unknown field `project`"),
            (&*format!("{TARGET}[forward.rail]\nprojects = []"), "tallyonce.toml: forward.rail.projects is empty"),
            (&*format!("{TARGET}[forward.rail]\ncycles = []"), "forward.rail.cycles is empty"),
            (&*format!("{TARGET}[forward.rail]\ncycles = [\"\"]"), "stands for no cycle"),
        ] {
            let failure = parse(text).unwrap_err();
            assert!(failure.what.contains(said), "{said}: {}", failure.what);
            assert_eq!(failure.exit.number(), 2);
        }
        assert!(parse(&format!("{TARGET}[forward.rail]")).is_ok(), "all of it");
    }

    #[test]
    fn what_a_server_hands_on_is_kept_in_its_store() {
        let text = "[serve]\nstore = \"sqlite:s.db\"\n[target.a]\n[target.b]\n[target.c]\n[forward.a]\n[forward.b]";
        let file = parse(text).unwrap();
        let ledger = |name: &str| file.target(&TargetName::parse(name).unwrap()).unwrap().ledger().unwrap().to_string();
        assert_eq!((ledger("a"), ledger("b")), ("sqlite:s.db".to_owned(), "sqlite:s.db".to_owned()));
        assert_eq!(ledger("c"), "sqlite:.tallyonce/ledger-c.db");
        let other = parse(&format!("{text}\n[target.d]\nledger = \"sqlite:s.db\"")).unwrap();
        assert!(other.target(&TargetName::parse("d").unwrap()).is_err(), "another's ledger is not the server's store");
        let own = parse("[target.a]\nledger = \"sqlite:l.db\"\n[forward.a]").unwrap();
        let failure = own.target(&TargetName::parse("a").unwrap()).unwrap_err();
        assert!(failure.what.contains("target.a.ledger: "), "{}", failure.what);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_file() {
        for (text, key) in
            [("projct = \"a\"", "projct"), ("[push]\ndead = \"1s\"", "dead"), ("[serve]\ntoken = \"x\"", "token")]
        {
            let failure = parse(text).unwrap_err();
            assert!(failure.what.contains(key) && failure.what.contains("tallyonce.toml"), "{}", failure.what);
            assert_eq!(failure.exit.number(), 2);
        }
    }

    #[test]
    fn an_unusable_value_is_refused() {
        for text in ["timeout = \"5\"", "project = \"a b\"", "[push]\nformat = \"trx\"", "[push]\nfail-on = \"x\""] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
