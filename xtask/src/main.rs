//! The workspace's own commands. `cargo xtask test` passes all tests on a fresh machine with a Rust toolchain, and
//! installs what they need itself, and shows that they notice faults; `cargo xtask mutants` shows that alone;
//! `cargo xtask lint` checks format, lints and documentation.
//! Must not hold a test: those live beside the code.

mod built;
mod mutants;
mod tests;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use built::Built;

/// What is built for tests: everything, with the points and switches of proof in it. Unless chosen they do nothing.
const BUILD: [&str; 3] = ["--workspace", "--features", "tallyonce/failpoints"];

/// What the tests need besides the toolchain: a program, and the Debian package that brings it.
const NEEDS: [(&str, &str); 8] = [
    ("cc", "gcc libc6-dev"),
    ("curl", "curl"),
    ("wget", "wget"),
    ("jq", "jq"),
    ("unzip", "unzip"),
    ("bash", "bash"),
    ("shellcheck", "shellcheck"),
    ("python3", "python3 python3-venv"),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("test") => test(&arguments[1..]),
        Some("mutants") => mutants::run(&arguments[1..]),
        Some("lint") => lint(),
        _ => Err(anyhow::anyhow!(
            "usage: cargo xtask test [-- ARGUMENTS OF cargo test]   all tests, and that they notice faults\n       \
             cargo xtask mutants [mN ...]   which test notices which fault\n       \
             cargo xtask lint   format, lints, documentation"
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// All tests of all crates, and then, unless some are chosen, that they notice each fault on purpose.
fn test(more: &[String]) -> Result<()> {
    provide()?;
    if !root().join("../shared/corpus/MANIFEST.tsv").exists() {
        say("xtask: no ../shared beside this folder: tests that compare with its corpus and scenarios skip themselves");
    }
    if !more.is_empty() {
        return cargo(&[&["test"], &BUILD[..], &strs(more)[..]].concat());
    }
    let simulation = tests::run(&Built::make()?)?;
    mutants::run(&[])?;
    simulation.end()
}

fn lint() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--features", "tallyonce/failpoints", "--", "-D", "warnings"])?;
    let doc = ["doc", "--workspace", "--no-deps", "--quiet"];
    run(Command::new("cargo").args(doc).current_dir(root()).env("RUSTDOCFLAGS", "-D warnings"))?;
    if found("cargo-deny") {
        cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"])
    } else {
        say("xtask: cargo-deny is not installed: licences and bans are not checked here");
        Ok(())
    }
}

/// Installs what is missing, where that can be done; else says what to install.
fn provide() -> Result<()> {
    for (program, package) in NEEDS {
        if found(program) {
            continue;
        }
        if !found("apt-get") {
            bail!("the tests need `{program}`: install it (Debian package: {package}), then run this again");
        }
        say(&format!("xtask: installing {package} for `{program}`"));
        let packages: Vec<&str> = package.split(' ').collect();
        let install =
            || run(Command::new("apt-get").args(["install", "-y", "--no-install-recommends"]).args(&packages));
        if install().is_err() {
            run(Command::new("apt-get").arg("update")).context("apt-get update")?;
            install().with_context(|| format!("could not install {package}: do it by hand, then run this again"))?;
        }
    }
    Ok(())
}

fn found(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    run(Command::new("cargo").args(arguments).current_dir(root()))
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("could not start {command:?}"))?;
    if status.success() { Ok(()) } else { bail!("{command:?} ended with {status}") }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).filter(|text| *text != "--").collect()
}

#[expect(clippy::print_stderr, reason = "this is the program's one place that prints")]
fn say(text: &str) {
    eprintln!("{text}");
}
