//! Retry every push, count every outcome once: the program. Parse, resolve, run, render, exit; nothing else here.

mod announce;
mod attachments;
mod cli;
mod commands;
mod courier;
mod env;
mod env_file;
mod exit;
mod failure;
mod flags;
mod forward;
mod handed_on;
mod inputs;
mod interrupt;
mod object;
mod output;
mod parse;
#[cfg(feature = "failpoints")]
mod points;
mod progress;
#[cfg(test)]
mod reference;
mod render;
mod repository;
mod settings;
mod spilled;
mod telemetry;

use std::process::ExitCode;

use env::Surroundings;
use exit::Code;
use failure::Failure;
use output::Output;

/// A report becomes a million small pieces of memory, and they all go at once (docs/performance.md has the figure).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(run().0)
}

fn run() -> Code {
    let around = match Surroundings::read() {
        Ok(around) => around,
        Err(error) => {
            let what = format!("the working folder is gone: {error}");
            return ended(
                Output::new(false, 0, true),
                Err(Failure::machine(what, "Change into a folder that is there.")),
            );
        }
    };
    let (cli, matches) = match parse::parse(&around) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.into(),
    };
    let output = Output::new(cli.globals.quiet, cli.globals.verbose, cli.globals.no_progress);
    #[cfg(feature = "failpoints")]
    if let Err(failure) = points::arm(&around.env) {
        return ended(output, Err(failure));
    }
    ended(output, commands::run(cli, &matches, &around, output))
}

fn ended(output: Output, result: Result<Code, Failure>) -> Code {
    result.unwrap_or_else(|failure| {
        output.error(&render::failure(&failure));
        failure.exit.into()
    })
}
