//! House rules as a test: the arrows between crates, the one door into a store, sizes of files and functions, heads of
//! modules, words that must not be committed. Sizes are a ratchet: an exception may shrink, never grow.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

/// Files and functions beyond the line, with the size that they may have at most, and why.
const EXCEPTIONS: &[(&str, usize)] = &[
    // One table of names with one way in each; nobody reads it top to bottom.
    ("crates/domain/src/id.rs", 440),
    // One row of the table a test.
    ("crates/domain/tests/it/protocol.rs", 510),
];

/// The arrows of the architecture: a crate, and what it may use of the workspace outside its tests.
const ARROWS: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("reports", &["domain"]),
    ("store", &["domain"]),
    ("delivery", &["domain"]),
    ("server", &["domain", "reports", "store", "delivery"]),
    ("proof", &[]),
    ("tallyonce", &["domain", "reports", "store", "delivery", "server", "proof"]),
];

/// What a crate must never depend on, outside its tests.
const BANNED: &[(&str, &[&str])] = &[
    ("domain", &["tokio", "rusqlite", "reqwest", "axum", "http", "async-trait", "rand", "jiff", "tracing"]),
    ("reports", &["tokio", "rusqlite", "reqwest", "axum", "http", "rand"]),
    ("store", &["reqwest", "axum", "http", "quick-xml", "clap"]),
    ("delivery", &["rusqlite", "axum", "clap"]),
    ("server", &["rusqlite", "clap", "quick-xml"]),
    ("tallyonce", &["rusqlite", "quick-xml", "axum", "reqwest"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with("target-") && name != ".git" && name != "node_modules" {
                files_below(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

/// Every file of the repository below these folders with one of these endings, by its path from the root.
fn sources(endings: &[&str]) -> BTreeMap<String, String> {
    let root = root();
    let mut found = Vec::new();
    files_below(&root, &mut found);
    found
        .into_iter()
        .filter(|path| endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)))
        .filter_map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
            Some((name, fs::read_to_string(&path).ok()?))
        })
        .collect()
}

fn manifest_dependencies(package: &str, section: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(format!("crates/{package}/Cargo.toml"))).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    manifest.get(section).and_then(toml::Value::as_table).map(|t| t.keys().cloned().collect()).unwrap_or_default()
}

#[track_caller]
fn nothing(findings: &str, rule: &str) {
    assert!(findings.is_empty(), "{rule}:\n{findings}");
}

#[test]
fn the_arrows_go_one_way_only() {
    let crates: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let mut findings = String::new();
    for (package, allowed) in ARROWS {
        let used = manifest_dependencies(package, "dependencies");
        for other in used.iter().filter(|d| crates.contains(d.as_str()) && !allowed.contains(&d.as_str())) {
            writeln!(findings, "{package} -> {other}").unwrap();
        }
    }
    for (package, banned) in BANNED {
        let used = manifest_dependencies(package, "dependencies");
        for name in banned.iter().filter(|name| used.contains(**name)) {
            writeln!(findings, "{package} depends on {name}").unwrap();
        }
    }
    nothing(&findings, "arrows that ARCHITECTURE.md does not draw");
    let folders = fs::read_dir(root().join("crates")).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count();
    assert_eq!(folders, ARROWS.len(), "a crate that this test does not know");
}

#[test]
fn there_is_one_door_into_a_store() {
    let mut findings = String::new();
    for (name, text) in sources(&[".rs"]) {
        let outside_store = name.starts_with("crates/") && name.contains("/src/") && !name.starts_with("crates/store/");
        if !outside_store || name.starts_with("crates/server/src/record") {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let writes = [".record(", ".promote(", ".set_round("].iter().any(|call| line.contains(call));
            let stages = ["begin", "put", "commit", "cancel", "collect"];
            let stages = stages.iter().any(|call| line.contains(&format!("store.{call}(")));
            if (writes && line.contains("store") || stages) && !line.trim_start().starts_with("//") {
                writeln!(findings, "{name}:{}: {}", at + 1, line.trim()).unwrap();
            }
        }
    }
    nothing(&findings, "only server::record writes into a store");
    let door = fs::read_to_string(root().join("crates/server/src/record.rs")).unwrap();
    assert!(door.contains(".record("), "the door has moved: this test looks at the wrong place");
}

#[test]
fn decisions_are_made_in_domain_only() {
    let mut findings = String::new();
    for (name, text) in sources(&[".rs"]) {
        let elsewhere = name.contains("/src/") && !name.starts_with("crates/domain/");
        for word in ["DifferenceClass::Semantic", "contest: true"] {
            if elsewhere
                && name.starts_with("crates/store/src/")
                && text.contains(word)
                && !name.contains("conformance")
            {
                writeln!(findings, "{name} names {word}").unwrap();
            }
        }
    }
    nothing(&findings, "an engine carries decisions out, domain::protocol makes them");
}

#[test]
fn files_and_functions_keep_their_size() {
    let mut findings = String::new();
    for (name, text) in sources(&[".rs"]) {
        let lines = text.lines().count();
        let limit = EXCEPTIONS.iter().find(|(file, _)| *file == name).map_or(FILE_LINES_MAX, |(_, limit)| *limit);
        if lines > limit {
            writeln!(findings, "{name}: {lines} lines, at most {limit}").unwrap();
        }
        for (function, at, length) in functions(&text) {
            if length > FUNCTION_LINES_MAX {
                writeln!(findings, "{name}:{at}: fn {function} has {length} lines, at most {FUNCTION_LINES_MAX}")
                    .unwrap();
            }
        }
    }
    nothing(&findings, "more than one reads in a sitting");
    for (file, limit) in EXCEPTIONS {
        let lines = fs::read_to_string(root().join(file)).map_or(0, |text| text.lines().count());
        assert!(lines > FILE_LINES_MAX, "{file} has {lines} lines and needs no exception of {limit} any more");
    }
}

/// Functions of formatted source: from `fn` to the closing brace at the same depth of indentation.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let Some(after) = ["fn ", "pub fn ", "async fn ", "pub async fn ", "pub(crate) fn ", "pub(super) fn "]
            .iter()
            .find_map(|start| code.strip_prefix(start))
        else {
            continue;
        };
        let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // A trait's method without a body has no length.
        let Some(end_of_head) = lines[at..].iter().find(|l| l.ends_with('{') || l.ends_with(';') || l.ends_with('}'))
        else {
            continue;
        };
        if !end_of_head.ends_with('{') {
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent));
        if let Some(length) = lines[at..].iter().position(|l| *l == closing) {
            found.push((name, at + 1, length + 1));
        }
    }
    found
}

#[test]
fn every_module_says_what_it_is_for() {
    let mut findings = String::new();
    for (name, text) in sources(&[".rs"]) {
        if !text.trim_start().starts_with("//!") {
            writeln!(findings, "{name}").unwrap();
        }
    }
    nothing(&findings, "modules without a head");
}

#[test]
fn nothing_of_this_machine_is_committed() {
    // Put together here, so that this file does not find itself.
    let words =
        ["/wo".to_owned() + "rk/", "/ro".to_owned() + "ot/", "crates".to_owned() + ".io", "py".to_owned() + "pi.org"];
    let mut findings = String::new();
    for (name, text) in sources(&[".rs", ".md", ".toml", ".sh", ".yml", ".yaml", "/run", ".json", ".py"]) {
        for (at, line) in text.lines().enumerate() {
            for word in words.iter().filter(|word| line.contains(word.as_str())) {
                // A path inside a report's text (`/home/runner/work/…`) is an example, not this machine's.
                if !line.contains("/home/runner") {
                    writeln!(findings, "{name}:{}: {word}", at + 1).unwrap();
                }
            }
        }
    }
    nothing(&findings, "paths of a machine or hosts of a registry");
}

#[test]
fn the_readme_and_ci_name_the_same_test_command() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    for text in [&readme, &ci] {
        assert!(text.contains("cargo xtask test"));
    }
}
