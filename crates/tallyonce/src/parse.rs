//! From the command line to the clap tree: variables that are set to nothing count as absent, and whoever wants JSON
//! gets it for usage errors too. Must not resolve anything.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use crate::cli::Cli;
use crate::commands::key::KeyObject;
use crate::env::Surroundings;
use crate::exit::Exit;
use crate::object::PushObject;
use crate::output::Output;

/// What was typed; or the code to exit with, when all is said already: help, version, or a usage error.
pub(crate) fn parse(around: &Surroundings) -> Result<(Cli, ArgMatches), Exit> {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let parsed = without_blanks(Cli::command(), &around.blank)
        .try_get_matches_from(&typed)
        .and_then(|matches| Cli::from_arg_matches(&matches).map(|cli| (cli, matches)));
    parsed.map_err(|error| {
        let quiet = Output::new(true, 0, true);
        if error.use_stderr() && !io::stderr().is_terminal() {
            // It may hold a value of unknown origin, and a runner that reads the log for commands.
            quiet.error(&error.render().to_string());
        } else {
            // The library chooses the stream: help goes to standard output. A closed pipe is the reader's right.
            let _ = error.print();
        }
        if !error.use_stderr() {
            return Exit::Success;
        }
        if error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            quiet.error("  data: Nothing was sent, nothing was written.\n  exit: 2 (usage)");
            say_as_json(&typed, around, &error);
        }
        Exit::Usage
    })
}

/// Several platforms set variables to nothing for "absent".
fn without_blanks(command: clap::Command, blank: &[String]) -> clap::Command {
    if blank.is_empty() {
        return command;
    }
    let is_blank = |arg: &clap::Arg| {
        let name = arg.get_env().and_then(|name| name.to_str());
        name.is_some_and(|name| blank.iter().any(|blank| blank == name))
    };
    command
        .mut_args(|arg| if is_blank(&arg) { arg.env(None::<&str>) } else { arg })
        .mut_subcommands(|command| without_blanks(command, blank))
}

/// The object that the command would have printed, with the state `usage`.
fn say_as_json(typed: &[OsString], around: &Surroundings, error: &clap::Error) {
    let words: Vec<&str> = typed.iter().skip(1).filter_map(|word| word.to_str()).take_while(|w| *w != "--").collect();
    let by_variable = around.env.says_true("TALLYONCE_JSON");
    if !by_variable && !words.contains(&"--json") {
        return;
    }
    let output = Output::new(true, 0, true);
    match words.iter().find(|word| matches!(**word, "push" | "run" | "flush" | "key")) {
        Some(&"key") => {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            output.object(&KeyObject::nothing(vec![first]));
        }
        Some(_) => output.object(&PushObject::new()),
        None => {}
    }
}
