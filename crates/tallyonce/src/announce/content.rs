//! What is announced of one push: its headline, single notes, and the values for later steps. The same for every place.
//! Must not know where it is shown.

use domain::Counts;

use super::escape;
use crate::exit::Exit;
use crate::failure::{Failure, State};
use crate::object::PushObject;

/// How many doubts become notes of their own; the summary lists more.
const DOUBTS_MAX: usize = 5;
/// How many characters of a single note are shown.
const TEXT_MAX: usize = 2_000;

/// Names of the values for later steps. They are an interface; `docs/announce.md` says what each means.
pub(super) const OUTPUTS: [&str; 13] = [
    "state", "key", "round", "revision", "url", "total", "passed", "failed", "errored", "skipped", "flaky", "exit",
    "outbox",
];

/// One push that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Announcement<'a> {
    /// What became of it.
    pub object: &'a PushObject,
    /// Why it is not recorded, if it isn't.
    pub failure: Option<&'a Failure>,
    /// The outbox, if something is kept in it.
    pub outbox: Option<&'a str>,
}

/// How it ended, for whoever only sees a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    /// Recorded now.
    Good,
    /// As it should be, and nothing new.
    Calm,
    /// Worth a look.
    Doubt,
    /// Not recorded, or told to fail.
    Bad,
}

/// How loud a note is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Worth knowing.
    Notice,
    /// Probably not as wanted.
    Warning,
    /// Not recorded.
    Error,
}

/// One thing to be seen by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// How loud.
    pub level: Level,
    /// A few words.
    pub title: String,
    /// What happened, what it means, what to do.
    pub text: String,
}

impl Announcement<'_> {
    /// What became of it, in plain words.
    pub(super) fn headline(&self) -> &'static str {
        let kept = self.outbox.is_some();
        match self.object.state {
            State::Recorded => "recorded",
            State::Replayed => "recorded already by an earlier delivery; nothing is counted twice",
            State::Revised => "revised: other outcomes than before came under this key",
            State::Differs => "refused: other outcomes are recorded under this key",
            State::Collision => "refused: other work has this key",
            State::Rejected => "refused",
            State::PossiblyWritten if kept => "not confirmed: it may be recorded, and is kept in the outbox",
            State::PossiblyWritten => "not confirmed: it may be recorded",
            State::NotSent if kept => "not delivered yet: it is kept in the outbox",
            State::NotSent => "not delivered",
            State::Sealed => "sealed into a file; nothing is sent yet",
            State::Unreadable => "not pushed: what was to be read can't be used",
            State::Usage => "not pushed: the command or its surroundings need mending",
            State::DryRun => "dry run: nothing is sent",
        }
    }

    /// How it ended.
    pub(super) fn mood(&self) -> Mood {
        match self.object.state {
            _ if self.failure.is_some() || self.told_to_fail() => Mood::Bad,
            _ if !self.object.warnings.is_empty() => Mood::Doubt,
            State::Recorded => Mood::Good,
            State::Revised => Mood::Doubt,
            _ => Mood::Calm,
        }
    }

    /// True if `--fail-on` makes the command fail although the push is recorded.
    pub(super) fn told_to_fail(&self) -> bool {
        self.failure.is_none() && self.object.exit == Exit::Found.number()
    }

    /// What is to be seen by itself, the worst first.
    pub(super) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        let mut note = |level, text: &str| {
            let text = escape::shortened(&format!("{text}{}", self.about()), TEXT_MAX);
            notes.push(Note { level, title: format!("Tallyonce: {}", self.headline()), text });
        };
        if let Some(Failure { what, means, next, .. }) = self.failure {
            note(Level::Error, &format!("{what}\nData: {means}\nNext: {next}"));
        }
        if self.told_to_fail() {
            note(Level::Error, "This delivery's own report holds failed or errored tests (--fail-on failed).");
        }
        for doubt in self.object.warnings.iter().take(DOUBTS_MAX) {
            note(Level::Warning, doubt);
        }
        let rest = self.object.warnings.len().saturating_sub(DOUBTS_MAX);
        if rest > 0 {
            note(Level::Warning, &format!("And {rest} more warnings; the log lists them."));
        }
        match (self.object.state, &self.object.difference) {
            (State::Replayed, _) => {
                note(
                    Level::Notice,
                    "An earlier delivery of this push was recorded, and this one was answered from its receipt.",
                );
            }
            (State::Revised, Some(difference)) => note(
                Level::Notice,
                &format!(
                    "The difference is {}: {} changed, {} added, {} not offered.",
                    difference.class.word(),
                    difference.changed,
                    difference.added,
                    difference.not_offered
                ),
            ),
            _ => {}
        }
        notes
    }

    /// Which push a note is about.
    fn about(&self) -> String {
        self.object.key.as_ref().map(|key| format!("\nKey: {key}")).unwrap_or_default()
    }

    /// The values for later steps, by the names of [`OUTPUTS`]; empty where nothing is known. Each is one line.
    pub(super) fn outputs(&self) -> Vec<(&'static str, String)> {
        let object = self.object;
        let count = |of: fn(&Counts) -> u64| object.counts.as_ref().map(|counts| of(counts).to_string());
        let values = [
            Some(object.state.name()),
            object.key.as_ref().map(ToString::to_string),
            object.round.as_ref().map(ToString::to_string),
            object.revision.map(|revision| revision.to_string()),
            object.url.clone(),
            count(|counts| counts.total),
            count(|counts| counts.passed),
            count(|counts| counts.failed),
            count(|counts| counts.errored),
            count(|counts| counts.skipped),
            count(|counts| counts.flaky),
            Some(object.exit.to_string()),
            self.outbox.map(ToOwned::to_owned),
        ];
        let values = values.map(|value| escape::line(&value.unwrap_or_default()));
        OUTPUTS.into_iter().zip(values).collect()
    }
}
