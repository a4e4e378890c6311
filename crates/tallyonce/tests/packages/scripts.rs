//! The shell files of the packages: their syntax, the linter's opinion, and that the copies are copies.

use std::fs;
use std::path::PathBuf;

use proof::spawn::Run;

use crate::schema::say;
use crate::{file_of, program, root, yaml};

/// Files that hold `packages/push.sh` word for word, since their platforms take no file of ours.
const COPIES: [&str; 4] = [
    "packages/gitlab/templates/tallyonce.yml",
    "packages/azure/tallyonce.yml",
    "packages/circleci/src/scripts/push.sh",
    "packages/jenkins/resources/tallyonce/push.sh",
];

fn scripts() -> Vec<PathBuf> {
    let names = [
        "install.sh",
        "push.sh",
        "github/install.sh",
        "github/push.sh",
        "github/finish.sh",
        "github/flush.sh",
        "buildkite/hooks/post-command",
    ];
    let scripts: Vec<PathBuf> = names.iter().map(|name| root().join("packages").join(name)).collect();
    let others =
        all_below(&root().join("packages")).into_iter().filter(|path| path.extension().is_some_and(|e| e == "sh"));
    for other in others {
        let copy = COPIES.iter().any(|copy| other.ends_with(copy));
        assert!(copy || scripts.contains(&other), "{} is checked by nobody", other.display());
    }
    scripts
}

fn all_below(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { all_below(&path) } else { vec![path] }).collect()
}

#[test]
fn scripts_parse_and_the_linter_is_content() {
    let linter = program("shellcheck");
    if linter.is_none() {
        say("no shellcheck on this machine: scripts are checked for their syntax only");
    }
    for script in scripts() {
        use std::os::unix::fs::PermissionsExt as _;
        let text = fs::read_to_string(&script).unwrap();
        let shell = if text.starts_with("#!/bin/sh\n") { "sh" } else { "bash" };
        assert!(shell == "sh" || text.starts_with("#!/usr/bin/env bash\n"), "{}", script.display());
        assert_ne!(fs::metadata(&script).unwrap().permissions().mode() & 0o111, 0, "{} can't be run", script.display());
        let parsed = Run::new(&program(shell).unwrap()).arg("-n").arg(&script).output().unwrap();
        assert_eq!(parsed.code, Some(0), "{}: {parsed}", script.display());
        if let Some(linter) = &linter {
            let opinion = Run::new(linter).args(["--norc", "-S", "style"]).arg(&script).output().unwrap();
            assert_eq!(opinion.code, Some(0), "{}: {opinion}", script.display());
        }
    }
}

/// The digest of `install.sh` that the script carries.
fn carried(script: &str) -> &str {
    script.lines().find_map(|line| line.strip_prefix("install_sha256=")).unwrap()
}

fn digest_of(name: &str) -> String {
    let finished = Run::new(&program("sha256sum").unwrap()).arg(root().join(name)).output().unwrap();
    finished.stdout.split(' ').next().unwrap().to_owned()
}

/// `TALLYONCE_WRITE_PACKAGES=1` renews the digest of `install.sh` in the script, and the copies.
#[test]
fn copies_are_copies() {
    if std::env::var_os("TALLYONCE_WRITE_PACKAGES").is_some() {
        let script = file_of("packages/push.sh");
        let renewed = script.replacen(carried(&script), &digest_of("packages/install.sh"), 1);
        fs::write(root().join("packages/push.sh"), renewed).unwrap();
    }
    let script = file_of("packages/push.sh");
    let is = digest_of("packages/install.sh");
    assert_eq!(carried(&script), is, "packages/push.sh: renew the digest with TALLYONCE_WRITE_PACKAGES=1");
    let (first, last) = (script.lines().next().unwrap(), script.lines().last().unwrap());
    for copy in COPIES {
        let text = file_of(copy);
        let lines: Vec<&str> = text.lines().collect();
        let begin = lines.iter().position(|line| line.trim() == first).unwrap_or_else(|| panic!("{copy}: no script"));
        let end = lines.iter().rposition(|line| line.trim() == last).unwrap_or(begin);
        let indent = " ".repeat(lines[begin].len() - first.len());
        let own = |line: &str| if line.is_empty() { String::new() } else { format!("{indent}{line}") };
        let all = lines[..begin].iter().map(|line| (*line).to_owned());
        let all = all.chain(script.lines().map(own)).chain(lines[end + 1..].iter().map(|line| (*line).to_owned()));
        let renewed: String = all.map(|line| line + "\n").collect();
        if std::env::var_os("TALLYONCE_WRITE_PACKAGES").is_some() {
            fs::write(root().join(copy), &renewed).unwrap();
        }
        assert_eq!(file_of(copy), renewed, "{copy}: renew it with TALLYONCE_WRITE_PACKAGES=1");
    }
    assert!(
        !script.contains("${{") && !script.contains("$[[") && !script.contains("<<"),
        "a platform would take it for its own"
    );
}

#[test]
fn each_package_has_a_snippet_that_parses() {
    for package in ["", "/github", "/gitlab", "/circleci", "/azure", "/jenkins", "/buildkite"] {
        let name = format!("packages{package}/README.md");
        let text = file_of(&name);
        let snippets: Vec<&str> = text.split("\n```").skip(1).step_by(2).collect();
        assert!(!snippets.is_empty(), "{name} has no snippet");
        for snippet in snippets {
            if let Some(content) = snippet.strip_prefix("yaml\n") {
                assert!(!yaml::parse(&name, content).is_empty(), "{name}");
            }
        }
    }
}
