//! Tells what became of a push where the people of a CI platform look: job summaries, annotations, values for later steps,
//! folds of the log. Best effort: what fails is a warning. Must not decide what became of it, must not change how the command
//! ends, and shows nothing that the push object doesn't hold.

mod act;
mod content;
pub(crate) mod escape;
mod markdown;
mod media;
mod render;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use delivery::{Clock as _, SystemClock};
use domain::ci::{Env, PlatformName};

use crate::env::Surroundings;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::object::PushObject;
use crate::output::Output;
use crate::settings::announce::AnnounceSettings;
use crate::settings::push::{FlushSettings, PushSettings};
use act::carry_out;
pub(crate) use content::Announcement;
use media::{Folding, Medium};
use render::{Act, Surface};

/// How many notes one command shows by themselves: GitHub shows ten of a kind for each step.
const NOTES_MAX: usize = 10;

/// Announces the pushes of one command.
#[derive(Debug)]
pub(crate) struct Announcer<'a> {
    settings: &'a AnnounceSettings,
    env: &'a Env,
    outbox: Option<&'a Path>,
    json: bool,
    output: Output,
    /// The platform's short name, if it is to be told anything.
    slug: Option<&'static str>,
    /// Tells this command from others of the job.
    nonce: u128,
    /// How many pushes were announced.
    number: u32,
    notes_left: usize,
    /// The worst push until now: its values are handed on.
    worst: Option<(Exit, Vec<Act>)>,
}

impl<'a> Announcer<'a> {
    /// For the one push of a command.
    pub(crate) fn of_push(settings: &'a PushSettings, around: &'a Surroundings, output: Output) -> Self {
        Self::new(&settings.announce, &around.env, Some(&settings.outbox.value), settings.json, output)
    }

    /// For all pushes that a command flushes. Sealed files are kept by whoever named them, not in the outbox.
    pub(crate) fn of_flush(settings: &'a FlushSettings, around: &'a Surroundings, output: Output) -> Self {
        let outbox = settings.files.is_empty().then_some(settings.outbox.value.as_path());
        Self::new(&settings.announce, &around.env, outbox, settings.json, output)
    }

    /// `json`: standard output belongs to machines.
    fn new(settings: &'a AnnounceSettings, env: &'a Env, outbox: Option<&'a Path>, json: bool, output: Output) -> Self {
        let platform = if settings.auto { PlatformName::detected(env) } else { None };
        let slug = platform.map(PlatformName::slug);
        let nonce = rand::random();
        Self { settings, env, outbox, json, output, slug, nonce, number: 0, notes_left: NOTES_MAX, worst: None }
    }

    /// What is said from here on is folded, where the platform can, until [`Self::unfold`].
    pub(crate) fn fold(&self) {
        if let Some(folding) = self.folding() {
            self.output.fold(render::opening(folding, "Tallyonce: delivery", seconds(), &self.short_nonce()));
        }
    }

    /// Ends the fold, so that what follows is seen.
    pub(crate) fn unfold(&self) {
        if let Some(folding) = self.folding() {
            self.output.unfold(&render::closing(folding, "Tallyonce", seconds(), &self.short_nonce()));
        }
    }

    fn folding(&self) -> Option<Folding> {
        self.slug.and_then(media::folding)
    }

    /// Shows what became of a push, in every place for it.
    pub(crate) async fn announce(&mut self, object: &PushObject, failure: Option<&Failure>) {
        let kept = self.outbox.and_then(kept_in);
        let announcement = Announcement { object, failure, outbox: kept.as_deref() };
        self.number += 1;
        let nonce = format!("{:032x}", self.nonce.wrapping_add(u128::from(self.number)));
        let surface = Surface { env: self.env, nonce: &nonce, notes_max: self.notes_left };
        self.notes_left = self.notes_left.saturating_sub(announcement.notes().len());
        let media = self.slug.map_or(&[][..], media::media);
        let mut acts: Vec<Act> =
            media.iter().flat_map(|medium| render::shown(*medium, &announcement, surface)).collect();
        acts.extend(self.asked_summary(&announcement, &acts));
        acts.extend(self.settings.links.as_deref().and_then(|file| render::link(file, &announcement)));
        let handed = self.handed(media, &announcement, surface);
        let exit = failure.map_or(Exit::Success, |failure| failure.exit);
        if self.worst.as_ref().is_none_or(|(worst, _)| worst.worse(exit) == exit) {
            self.worst = Some((exit, handed));
        }
        self.carry_out(acts).await;
    }

    /// The same of a command's one push, with all that belongs to it.
    pub(crate) async fn announce_only(mut self, object: &PushObject, failure: Option<&Failure>) {
        self.announce(object, failure).await;
        self.finish().await;
    }

    /// Hands the values of the worst push to later steps.
    pub(crate) async fn finish(mut self) {
        if let Some((_, acts)) = self.worst.take() {
            self.carry_out(acts).await;
        }
    }

    /// The file of `--summary`, unless the platform's own is the same.
    fn asked_summary(&self, announcement: &Announcement<'_>, acts: &[Act]) -> Option<Act> {
        let asked = self.settings.summary.clone()?;
        let same = |act: &Act| matches!(act, Act::Append { file, .. } if *file == asked);
        let text = markdown::summary(announcement);
        (!acts.iter().any(same)).then_some(Act::Append { file: asked, text, bytes_max: None })
    }

    fn handed(&self, media: &[Medium], announcement: &Announcement<'_>, surface: Surface<'_>) -> Vec<Act> {
        let mut acts: Vec<Act> =
            media.iter().flat_map(|medium| render::handed(*medium, announcement, surface)).collect();
        let asked = self.settings.outputs.clone();
        acts.extend(asked.map(|file| Act::Merge { file, lines: render::lines(announcement) }));
        acts
    }

    /// Beside the runtime's thread, where signals are heard.
    async fn carry_out(&self, mut acts: Vec<Act>) {
        if self.json {
            acts =
                acts.into_iter().map(|act| if let Act::OutLine(line) = act { Act::Line(line) } else { act }).collect();
        }
        let output = self.output;
        let troubles = tokio::task::spawn_blocking(move || carry_out(acts, output)).await.unwrap_or_default();
        for trouble in troubles {
            self.output
                .warning(&format!("{trouble}; it is only not announced there, what became of the push stays as it is"));
        }
    }

    fn short_nonce(&self) -> String {
        format!("{:08x}", self.nonce as u32)
    }
}

fn seconds() -> u64 {
    SystemClock::new().unix_ms() / 1000
}

/// The folder, if a push is kept in it.
fn kept_in(outbox: &Path) -> Option<String> {
    let kept = |entry: std::fs::DirEntry| PathBuf::from(entry.file_name()).extension().is_some_and(|e| e == "push");
    let mut entries = std::fs::read_dir(outbox).ok()?;
    entries.any(|entry| entry.is_ok_and(kept)).then(|| outbox.display().to_string())
}
