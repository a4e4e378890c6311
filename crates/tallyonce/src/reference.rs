//! The reference pages that are written from the code, compared with the files in `docs/reference/`. Only in tests.
//! Set `TALLYONCE_WRITE_REFERENCE` to write them anew.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;
use crate::exit::Exit;

const INTRODUCTION: &str = "# Commands and flags\n\nWritten from `crates/tallyonce/src/cli.rs`; do not edit here. \
    A flag wins over its variable, a variable over `tallyonce.toml` ([config](config.md)), that over the default. A variable \
    that is set to nothing counts as absent. Results go to standard output, all else to standard error. \
    [Exit codes](exit-codes.md).\n\n\
    Three more variables have no flag: `TALLYONCE_TOKEN` holds the token, `TALLYONCE_LOG` says what `serve` logs, and \
    `https_proxy`, `http_proxy`, `all_proxy`, `no_proxy` (in either case) name proxies.\n";

fn tree() -> Command {
    let mut tree = Cli::command().disable_help_subcommand(true);
    tree.build();
    tree
}

fn reference() -> String {
    let tree = tree();
    let mut text = INTRODUCTION.to_owned();
    for command in tree.get_subcommands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let mut usage = command.clone();
        let usage = usage.render_usage().to_string().replace("Usage: ", "");
        let _ = write!(text, "\n## tallyonce {}\n\n{about}.\n\n```\n{}\n```\n\n", command.get_name(), usage.trim());
        table(&mut text, command.get_arguments().filter(|arg| !is_common(arg)));
    }
    text.push_str("\n## Options of every command\n\n");
    table(&mut text, tree.get_arguments().filter(|arg| arg.get_id() != "help" && arg.get_id() != "version"));
    text
}

fn is_common(arg: &Arg) -> bool {
    arg.is_global_set() || arg.get_id() == "help" || arg.get_id() == "version"
}

fn table<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    text.push_str("| argument | variable | meaning |\n|---|---|---|\n");
    for arg in arguments {
        let names =
            arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let takes = arg.get_action().takes_values();
        let value = if takes && !names.is_empty() { format!(" {names}") } else { String::new() };
        let long = arg.get_long().map_or_else(|| names.clone(), |long| format!("--{long}{value}"));
        let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
        let variable = arg.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "| `{short}{}` | {variable} | {} |", long.replace('|', "\\|"), help.replace('|', "\\|"));
    }
}

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(name);
    if std::env::var_os("TALLYONCE_WRITE_REFERENCE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/{name} is not what the code says; run the tests with TALLYONCE_WRITE_REFERENCE=1"
    );
}

#[test]
fn the_command_reference_is_what_the_tree_says() {
    compare("cli.md", &reference());
}

#[test]
fn the_exit_code_reference_is_what_the_list_says() {
    compare("exit-codes.md", &Exit::reference());
}

#[test]
fn the_tree_is_sound_and_every_flag_has_a_variable() {
    Cli::command().debug_assert();
    let tree = tree();
    for command in std::iter::once(&tree).chain(tree.get_subcommands()) {
        for arg in command.get_arguments().filter(|arg| arg.get_id() != "help" && arg.get_id() != "version") {
            let Some(long) = arg.get_long() else { continue };
            let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let expected = crate::settings::variable(arg.get_id().as_str());
            let other = ["verbose", "dir"].contains(&long);
            assert!(variable == expected || other, "{} --{long}: {variable:?}", command.get_name());
            assert!(variable.starts_with("TALLYONCE_"), "{} --{long}", command.get_name());
        }
    }
}

#[test]
fn the_config_reference_names_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md");
    let text = std::fs::read_to_string(path).unwrap();
    for key in crate::settings::file::KEYS {
        assert!(text.contains(&format!("`{key}`")), "docs/reference/config.md does not name {key}");
    }
}
