//! Every statement that writes goes through the one door that has a point before it.

use std::path::{Path, PathBuf};

/// Files that run statements otherwise, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("points.rs", "the door itself"),
    ("mutants.rs", "faults on purpose, in builds for proving only"),
    ("migrations.rs", "runs once for each schema, under the write lock, before any push"),
    ("connect.rs", "BEGIN IMMEDIATE, which has its own point in the writer"),
    ("writer.rs", "savepoints, COMMIT and ROLLBACK, which have their own points"),
    ("readers.rs", "BEGIN and ROLLBACK of snapshots, which write nothing"),
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ext| ext == "rs") && !path.ends_with("tests.rs") {
            into.push(path);
        }
    }
}

/// What a line does that it shouldn't.
fn offence(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or(line);
    if code.contains(".execute(") || code.contains("execute_batch(") || code.contains(".insert(params!") {
        return Some("runs a statement without a point");
    }
    let reads = ["prepare(", "prepare_cached(", "query_row(", "query("];
    let writes = ["\"INSERT", "\"UPDATE", "\"DELETE", "\"REPLACE", "RETURNING"];
    (reads.iter().any(|read| code.contains(read)) && writes.iter().any(|write| code.contains(write)))
        .then_some("prepares a writing statement past the door")
}

#[test]
fn every_writing_statement_has_a_point() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite");
    let mut files = Vec::new();
    sources(&folder, &mut files);
    assert!(files.len() > 40, "{} sources", files.len());
    let (mut steps, mut found) = (0, Vec::new());
    for file in files {
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        steps += code.matches(".step(").count();
        let allowed = ALLOWED.iter().any(|(allowed, _)| *allowed == name);
        for (at, line) in code.lines().enumerate().filter(|_| !allowed) {
            found.extend(offence(line).map(|what| format!("{name}:{}: {what}: {}", at + 1, line.trim())));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    assert!(steps > 50, "{steps} statements go through the door");
}

#[test]
fn the_scan_sees_what_it_looks_for() {
    assert!(offence("    connection.execute(sql, [])?;").is_some());
    assert!(offence("    snap.prepare_cached(\"UPDATE push SET x = 1\")?").is_some());
    assert!(offence("    // connection.execute(sql, [])").is_none());
    assert!(offence("    tx.step(\"x\", \"UPDATE push SET x = 1\")?.run([])?;").is_none());
}
