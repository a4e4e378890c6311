//! `tallyonce completions` and `tallyonce man`: texts made from the clap tree. Must not hold text of their own.

use std::path::Path;

use clap::{Command, CommandFactory as _};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Prints the completion script.
pub(crate) fn completions(shell: clap_complete::Shell, output: Output) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tallyonce", &mut text);
    output.result(&String::from_utf8_lossy(&text));
    Exit::Success
}

/// Prints one page, or writes all of them into a folder.
///
/// # Errors
/// There is no such command, or the folder cannot be written.
pub(crate) fn man(command: Option<&str>, folder: Option<&Path>, output: Output) -> Result<Exit, Failure> {
    let mut tree = Cli::command().disable_help_subcommand(true);
    tree.build();
    if let Some(folder) = folder {
        let unwritable = |error: std::io::Error| {
            Failure::machine(format!("{}: {error}", folder.display()), "Name a folder that can be written.")
        };
        std::fs::create_dir_all(folder).map_err(unwritable)?;
        clap_mangen::generate_to(tree, folder).map_err(unwritable)?;
        return Ok(Exit::Success);
    }
    let page: &Command = match command {
        None => &tree,
        Some(name) => tree.find_subcommand(name).ok_or_else(|| {
            Failure::usage(format!("there is no command {name:?}"), "`tallyonce --help` lists the commands.")
        })?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page.clone())
        .render(&mut text)
        .map_err(|error| Failure::machine(error.to_string(), "Report this."))?;
    output.result(&String::from_utf8_lossy(&text));
    Ok(Exit::Success)
}
