//! Where a push belongs and where it goes, resolved before anything is read. Must not connect or open anything.

use std::path::{Path, PathBuf};

use delivery::Destination;
use domain::Place;
use domain::ci::Identity;

use crate::env::Surroundings;
use crate::failure::Failure;
use crate::settings::Setting;
use crate::settings::place::Hints;
use crate::settings::push::PushSettings;

/// Where the push belongs, and where it goes.
#[derive(Debug)]
pub(super) struct Target {
    /// Where it belongs.
    pub(super) place: Place,
    /// None if it is sealed: whoever flushes it says where to.
    pub(super) destination: Option<Destination>,
    /// The settings for `--dry-run`, with their sources.
    pub(super) settings: Vec<(&'static str, String)>,
    /// Where a large push lies until its file is written: on the disk that will keep it.
    pub(super) scratch: PathBuf,
}

impl Target {
    /// From the settings over what the platform says.
    ///
    /// # Errors
    /// One of them is unknown.
    pub(super) fn resolve(
        settings: &PushSettings,
        identity: &Identity,
        around: &Surroundings,
    ) -> Result<Self, Failure> {
        let hints = Hints::of(identity);
        let destination = match settings.seal {
            Some(_) => None,
            None => Some(settings.place.destination(&hints)?),
        };
        let project = settings.place.project(&hints, &around.folder)?;
        let cycle = settings.place.cycle(&hints)?;
        let mut shown = vec![line("project", &project), line("cycle", &cycle)];
        shown.extend(destination.iter().map(|destination| line("to", destination)));
        shown.push(line("on-difference", &settings.on_difference));
        Ok(Self {
            place: Place {
                project: project.value,
                cycle: cycle.value,
                round: identity.round.clone(),
                run: identity.parts.run.clone(),
                label: identity.parts.round.clone(),
                job: identity.parts.job.clone(),
                shard: identity.parts.shard,
                variant: identity.parts.variant.clone(),
            },
            destination: destination.map(|setting| setting.value),
            settings: shown,
            scratch: existing(settings.seal.as_ref().unwrap_or(&settings.outbox.value)),
        })
    }
}

/// The nearest folder that is there already. What is written there has no name, so that reading leaves nothing behind.
fn existing(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|folder| folder.is_dir());
    there.unwrap_or(Path::new(".")).to_owned()
}

fn line<T: std::fmt::Display>(name: &'static str, setting: &Setting<T>) -> (&'static str, String) {
    (name, format!("{}  ({})", setting.value, setting.source))
}
