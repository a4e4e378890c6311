//! `tallyonce run`: runs the tests, then pushes the reports that they wrote, as `push` does it. What can be known before the
//! tests is known before. Must not change what the command does, and must not hold rules of a push.

mod child;
mod discover;
mod fresh;
mod places;
mod signals;
mod watch;

use std::fmt::Write as _;

use crate::announce::Announcer;
use crate::cli::ExitWith;
use crate::commands::push::{self, Prepared, Pushed};
use crate::env::Surroundings;
use crate::exit::{Code, Exit};
use crate::failure::{Failure, State};
use crate::forward::Forwarding;
use crate::inputs::{self, Reports};
use crate::object::PushObject;
use crate::output::Output;
use crate::render;
use crate::settings::duration;
use crate::settings::run::RunSettings;
use child::Finished;
use signals::Signals;
use watch::Watch;

/// Runs the command and pushes, and prints what became of the push.
///
/// # Errors
/// The command was not started. What becomes of the push of one that was started is said here, and is in the code.
pub(crate) async fn run(settings: &RunSettings, around: &Surroundings, output: Output) -> Result<Code, Failure> {
    let mut object = PushObject::new();
    let announcer = Announcer::of_push(&settings.push, around, output);
    let started = start(settings, around, output, &mut object).await;
    announcer.fold();
    let (result, finished) = match started {
        Ok(Some(ran)) => {
            let finished = ran.finished;
            (ran.deliver(&mut object).await, Some(finished))
        }
        Ok(None) => (Ok(Pushed::unsent()), None),
        Err(failure) => (Err(failure), None),
    };
    let result = push::end(&settings.push, announcer, output, &mut object, result).await;
    match finished {
        Some(finished) => Ok(close(settings, &finished, &result, output)),
        None => result.map(Code::from),
    }
}

/// A command that has ended, and what is known of the push of its reports.
struct Ran<'a> {
    prepared: Prepared<'a>,
    watch: Watch<'a>,
    finished: Finished,
    signals: Signals,
    output: Output,
}

/// Prepares everything and runs the command; a dry run only says what it would do.
async fn start<'a>(
    settings: &'a RunSettings,
    around: &'a Surroundings,
    output: Output,
    object: &mut PushObject,
) -> Result<Option<Ran<'a>>, Failure> {
    let prepared = Prepared::resolve(&settings.push, around, output, object)?;
    if settings.push.dry_run {
        if let Some(doubt) = prepared.granted().await?.as_ref().and_then(Forwarding::doubt) {
            push::warn(output, object, &[doubt.to_owned()]);
        }
        object.ends(State::DryRun, Exit::Success);
        if !settings.push.json {
            output.text(&plan(settings, &prepared, object));
        }
        return Ok(None);
    }
    prepared.rehearse().await?;
    let watch = Watch::begin(&settings.push.paths, &prepared.wish(), &around.folder, output);
    output.detail(&format!("running {}", told(settings)));
    let (finished, signals) = child::run(&settings.command, output)?;
    Ok(Some(Ran { prepared, watch, finished, signals, output }))
}

impl Ran<'_> {
    /// Delivers what the command wrote, also if it failed: a failure is what people look for.
    async fn deliver(self, object: &mut PushObject) -> Result<Pushed, Failure> {
        let Self { prepared, watch, finished, signals, output } = self;
        let stop = signals.into_stop();
        let mut command = finished.object();
        // Without a report it is no report that shows the failure.
        command.silent_failure = finished.failed();
        object.command = Some(command.clone());
        let took = duration::show(std::time::Duration::from_millis(finished.elapsed_ms));
        output.note(&format!("the command ended with {} after {took}", finished.told()));
        let wish = prepared.wish();
        let searched = watch.end(&wish)?;
        // As long as they are not read, nobody knows.
        command.silent_failure = false;
        object.command = Some(command.clone());
        let reports = inputs::read(&wish, searched)?;
        prepared.take_in(&reports, object);
        command.silent_failure = finished.failed() && !reports.any_bad();
        object.command = Some(command);
        let incomplete = judge(&finished, &reports, output, object);
        prepared.hand_over(reports, incomplete, Some(stop), object).await
    }
}

/// Holds the command's end against its reports. True if they may lack tests that should have run: nothing in them is
/// wrong then, but who looks at the receipt must not take them for the whole.
fn judge(finished: &Finished, reports: &Reports, output: Output, object: &mut PushObject) -> bool {
    let (failed, bad) = (finished.failed(), reports.any_bad());
    if let Some(signal) = finished.cut_short() {
        let signal = child::named(signal);
        let warning = format!(
            "the command was ended by {signal}: its reports may not hold all tests, and the push is marked incomplete"
        );
        push::warn(output, object, &[warning]);
        return true;
    }
    if failed && !bad {
        let warning = format!(
            "the command failed ({}), and its reports hold no failed or errored test: look whether the runner crashed, or \
             another check failed (coverage, a threshold); the push is marked incomplete",
            finished.told()
        );
        push::warn(output, object, &[warning]);
        return true;
    }
    if !failed && bad {
        output.note(
            "note: the command ended with 0, though its reports hold failed or errored tests: the runner is told to ignore \
             them; recorded is what the reports say",
        );
    }
    false
}

/// Says how the push failed, if it did, and chooses the code.
fn close(settings: &RunSettings, finished: &Finished, result: &Result<Exit, Failure>, output: Output) -> Code {
    let pushed = result.as_ref().map_or_else(|failure| failure.exit, |exit| *exit);
    let by_command = match settings.exit_with.value {
        ExitWith::Worst => finished.failed(),
        ExitWith::Command => true,
        ExitWith::Push => false,
    };
    let code = if by_command { finished.number() } else { pushed.number() };
    if let Err(failure) = result {
        let own = format!("{} ({})", pushed.number(), pushed.word());
        let said = if by_command { format!("{code}, the command's; the push alone: {own}") } else { own };
        output.error(&render::failure_ending(failure, &said));
    }
    Code(code)
}

/// What would be done, and where each setting came from.
fn plan(settings: &RunSettings, prepared: &Prepared<'_>, object: &PushObject) -> String {
    let mut text = prepared.plan(object);
    let _ = writeln!(text, "{:<14} {}  (not run)", "command", told(settings));
    let paths = &settings.push.paths;
    let reports = if paths.is_empty() { "looked for in the usual places".to_owned() } else { paths.join(", ") };
    let _ = writeln!(text, "{:<14} {reports}", "reports");
    let exit_with = &settings.exit_with;
    let _ = writeln!(text, "{:<14} {}  ({})", "exit-with", word(exit_with.value), exit_with.source);
    text
}

fn word(exit_with: ExitWith) -> &'static str {
    match exit_with {
        ExitWith::Worst => "worst",
        ExitWith::Command => "command",
        ExitWith::Push => "push",
    }
}

/// The command, for people.
fn told(settings: &RunSettings) -> String {
    let words = settings.command.iter().map(|word| {
        let word = word.to_string_lossy();
        if word.is_empty() || word.contains(|c: char| c.is_whitespace() || "'\"$`\\;&|<>".contains(c)) {
            format!("'{}'", word.replace('\'', "'\\''"))
        } else {
            word.into_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
