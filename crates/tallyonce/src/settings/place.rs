//! Where a command looks or writes: destination, project and cycle, with their defaults (design, section 8).
//! Must not connect or open anything.

use std::path::{Path, PathBuf};

use delivery::Destination;
use delivery::foreign::TargetName;
use domain::ci::{Env, Identity, Overrides, identify};
use domain::{CycleName, ProjectId, RunId};

use super::file::no_target;
use super::target::TargetSection;
use super::{Layers, Setting, Source};
use crate::failure::Failure;

/// The store of a push outside CI.
const STORE: &str = "sqlite:tallyonce.db";

/// As far as flags, variables and the file say it.
#[derive(Debug)]
pub(crate) struct PlaceSettings {
    to: Option<Setting<Destination>>,
    /// The target that is named in its place: then `to` is its ledger.
    target: Option<TargetSection>,
    /// The flag that gives it.
    flag: &'static str,
    project: Option<Setting<ProjectId>>,
    cycle: Option<Setting<CycleName>>,
}

/// What the surroundings say, for what nobody said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hints {
    in_ci: bool,
    platform: Option<&'static str>,
    project: Option<ProjectId>,
    cycle: Option<CycleName>,
}

impl Hints {
    /// Of a derived identity.
    pub(crate) fn of(identity: &Identity) -> Self {
        Self {
            in_ci: identity.in_ci(),
            platform: identity.platform_title,
            project: identity.default_project(),
            cycle: identity.default_cycle(),
        }
    }

    /// Of an environment that may name no run: commands that only read need none.
    pub(crate) fn guess(env: &Env) -> Self {
        let made_up = Overrides { run: RunId::parse("any").ok(), ..Overrides::default() };
        match identify(env, &Overrides::default()).or_else(|_| identify(env, &made_up)) {
            Ok(identity) => Self::of(&identity),
            Err(_) => Self { in_ci: true, platform: None, project: None, cycle: None },
        }
    }
}

impl PlaceSettings {
    /// From the flags over the file. `id` is the name of the flag that gives the destination.
    ///
    /// # Errors
    /// The destination is none.
    pub(crate) fn resolve(
        id: &'static str,
        to: Option<String>,
        project: Option<ProjectId>,
        cycle: Option<CycleName>,
        layers: &Layers<'_>,
    ) -> Result<Self, Failure> {
        let to = layers.pick(id, to, "to", |f| f.to.clone());
        let (to, target) = match to {
            None => (None, None),
            Some(Setting { value, source }) => match named(&value, layers)? {
                Some(section) => (Some(Setting::new(section.ledger()?, source)), Some(section)),
                None => (Some(destination(&value, source)?), None),
            },
        };
        Ok(Self {
            to,
            target,
            flag: if id == "from" { "--from" } else { "--to" },
            project: layers.pick("project", project, "project", |f| f.project.clone()),
            cycle: layers.pick("cycle", cycle, "cycle", |f| f.cycle.clone()),
        })
    }

    /// The same for a command that reads: what the variable of `--to` names, where `--from` is not given.
    ///
    /// # Errors
    /// The variable holds no destination.
    pub(crate) fn or_where_pushes_go(
        mut self,
        from_given: bool,
        env: &Env,
        layers: &Layers<'_>,
    ) -> Result<Self, Failure> {
        let name = super::variable("to");
        if !from_given && let Some(text) = env.get(&name) {
            let source = Source::Variable(name.clone());
            self.to = Some(match named(text, layers)? {
                Some(section) => Setting::new(section.ledger()?, source),
                None => destination(text, source)?,
            });
        }
        Ok(self)
    }

    /// The target that stands in the destination's place.
    pub(crate) fn target(&self) -> Option<&TargetSection> {
        self.target.as_ref()
    }

    /// For commands that push.
    ///
    /// # Errors
    /// A server forwards to the target by itself.
    pub(crate) fn is_pushed_to(&self) -> Result<(), Failure> {
        self.target.as_ref().map_or(Ok(()), TargetSection::not_served)
    }

    /// The destination.
    ///
    /// # Errors
    /// In CI, if nobody names one.
    pub(crate) fn destination(&self, hints: &Hints) -> Result<Setting<Destination>, Failure> {
        if let Some(to) = &self.to {
            return Ok(to.clone());
        }
        if hints.in_ci {
            let ci = hints.platform.unwrap_or("CI");
            if self.flag == "--from" {
                return Err(Failure::usage(
                    format!("this is {ci}, and nothing says what to read: there is no default here"),
                    "Name what the pushes went to: --from https://… or --from sqlite:PATH (or TALLYONCE_FROM, TALLYONCE_TO, \
                     or `to` in tallyonce.toml).",
                ));
            }
            return Err(Failure::usage(
                format!(
                    "this is {ci}, and no destination is given: a file in the working folder dies with the runner, so \
                     nothing would be recorded"
                ),
                "Name the server: --to https://… (or the variable TALLYONCE_TO, or `to` in tallyonce.toml). If a file \
                 is meant on purpose, say so: --to sqlite:PATH on a disk that outlives the job.",
            ));
        }
        destination(STORE, Source::Default("a file in the working folder, outside CI"))
    }

    /// The project.
    ///
    /// # Errors
    /// Nobody names one, and none can be derived.
    pub(crate) fn project(&self, hints: &Hints, folder: &Path) -> Result<Setting<ProjectId>, Failure> {
        if let Some(project) = &self.project {
            return Ok(project.clone());
        }
        let derived = hints.project.clone().map(|p| Setting::new(p, Source::Platform(hints.platform.unwrap_or("CI"))));
        let found = derived.or_else(|| {
            // In CI the folder is the runner's, another one for every retry.
            let name = if hints.in_ci { None } else { project_of(folder) };
            name.map(|name| Setting::default(name, "the repository's or working folder's name"))
        });
        found.ok_or_else(|| {
            Failure::usage(
                "the project is unknown: nothing here names a repository",
                "Name it: --project NAME, the variable TALLYONCE_PROJECT, or `project` in tallyonce.toml.",
            )
        })
    }

    /// The cycle.
    ///
    /// # Errors
    /// Nobody names one, and the platform gives no branch.
    pub(crate) fn cycle(&self, hints: &Hints) -> Result<Setting<CycleName>, Failure> {
        if let Some(cycle) = &self.cycle {
            return Ok(cycle.clone());
        }
        let source = match hints.platform {
            Some(title) => Source::Platform(title),
            None => Source::Default("always local outside CI"),
        };
        hints.cycle.clone().map(|cycle| Setting::new(cycle, source)).ok_or_else(|| {
            Failure::usage(
                "the cycle is unknown: the platform names neither a branch nor a pull request",
                "Name it: --cycle NAME, such as the branch, or pr-N.",
            )
        })
    }

    /// True if somebody typed the destination, rather than set it for every command.
    pub(crate) fn typed_destination(&self) -> bool {
        self.to.as_ref().is_some_and(|setting| matches!(setting.source, Source::Flag(_)))
    }

    /// The project, if it is said.
    pub(crate) fn said_project(&self) -> Option<&ProjectId> {
        self.project.as_ref().map(|setting| &setting.value)
    }

    /// The cycle, if it is said.
    pub(crate) fn said_cycle(&self) -> Option<&CycleName> {
        self.cycle.as_ref().map(|setting| &setting.value)
    }
}

/// A destination, or the error that says where the text came from.
///
/// # Errors
/// The text is no destination.
pub(crate) fn destination(text: &str, source: Source) -> Result<Setting<Destination>, Failure> {
    match Destination::parse(text) {
        Ok(value) => Ok(Setting::new(value, source)),
        Err(error) => {
            Err(Failure::usage(format!("{source}: {error}"), "Give sqlite:PATH, http://HOST[:PORT] or https://HOST."))
        }
    }
}

/// The target of a text that is a name, and neither an address nor a store.
fn named(text: &str, layers: &Layers<'_>) -> Result<Option<TargetSection>, Failure> {
    if text.contains([':', '/', '\\']) {
        return Ok(None);
    }
    let Ok(name) = TargetName::parse(text.trim()) else { return Ok(None) };
    match layers.file() {
        Some(file) => file.target(&name).map(Some),
        None => Err(no_target(&name, &format!("no file describes a target {name}"), [].into_iter())),
    }
}

/// The name of the repository's top folder, else of the folder itself, as a project's name.
fn project_of(folder: &Path) -> Option<ProjectId> {
    let top: PathBuf =
        folder.ancestors().find(|up| up.join(".git").exists()).map_or_else(|| folder.to_owned(), Path::to_owned);
    let name = top.file_name()?.to_string_lossy().to_lowercase();
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    let name: String = name.chars().map(|c| if allowed(c) { c } else { '-' }).collect();
    let name = name.trim_start_matches(['.', '_', '-']);
    let name = name.get(..domain::limits::PROJECT_BYTES_MAX).unwrap_or(name);
    ProjectId::parse(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_repositorys_folder() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("My Shop (2)");
        std::fs::create_dir_all(top.join(".git")).unwrap();
        std::fs::create_dir_all(top.join("web/tests")).unwrap();
        assert_eq!(project_of(&top.join("web/tests")).unwrap().as_str(), "my-shop--2-");
        let plain = folder.path().join(".Ünit");
        std::fs::create_dir_all(&plain).unwrap();
        assert_eq!(project_of(&plain).unwrap().as_str(), "nit");
        assert_eq!(project_of(Path::new("/")), None);
    }

    fn settings(to: Option<&str>) -> PlaceSettings {
        let to = to.map(|text| destination(text, Source::Flag("--to".into())).unwrap());
        PlaceSettings { to, target: None, flag: "--to", project: None, cycle: None }
    }

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().copied().collect()
    }

    #[test]
    fn outside_ci_a_file_and_local() {
        let hints = Hints::guess(&env(&[]));
        let place = settings(None);
        assert_eq!(place.destination(&hints).unwrap().value.to_string(), "sqlite:tallyonce.db");
        assert_eq!(place.cycle(&hints).unwrap().value.as_str(), "local");
    }

    #[test]
    fn in_ci_a_destination_has_to_be_named() {
        let github = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REPOSITORY", "acme/Shop"),
            ("GITHUB_RUN_ID", "1"),
            ("GITHUB_JOB", "j"),
            ("GITHUB_REF", "refs/pull/17/merge"),
        ];
        let hints = Hints::guess(&env(&github));
        let failure = settings(None).destination(&hints).unwrap_err();
        assert_eq!(failure.exit.number(), 2);
        assert!(failure.what.contains("GitHub Actions"));
        assert!(settings(Some("sqlite:/x/y.db")).destination(&hints).is_ok());
        assert_eq!(settings(None).project(&hints, Path::new("/tmp/elsewhere")).unwrap().value.as_str(), "shop");
        assert_eq!(settings(None).cycle(&hints).unwrap().value.as_str(), "pr-17");
        // CI that nobody recognises is CI all the same, and its folder names nothing.
        let unknown = Hints::guess(&env(&[("CI", "true")]));
        assert!(settings(None).destination(&unknown).is_err());
        assert!(settings(None).project(&unknown, Path::new("/tmp/elsewhere")).is_err());
    }
}
