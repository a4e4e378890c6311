//! Every place of the delivery path at which a process can die between two states of the world has a point beside it, at
//! which proof does kill it. This reads the sources, so that a new place without a point fails here.

use std::path::{Path, PathBuf};

/// What may separate two states: a wait for somebody else, or a change of the disk.
const SITES: [&str; 5] = [".await", "sync_all(", "sync_folder_of(&", "fs::rename(", "fs::remove_file("];
/// A point this many lines before or after a site is beside it.
const BESIDE: usize = 5;

/// Sites without a point: file, a piece of the line, and why.
const EXCEPTIONS: [(&str, &str, &str); 12] = [
    ("deliver.rs", "course.step(target", "a step of ours, with points at its begin and end"),
    ("deliver.rs", "self.one_try(target", "a step of ours, with points at its begin and end"),
    ("deliver.rs", "self.wait(cause", "a step of ours, with points at its begin and end"),
    ("http.rs", "self.transport.send(request)", "passes on; whoever asks has a point behind it"),
    ("parcel/files.rs", "File::open(folder)?.sync_all()", "the step of every caller, who has a point behind it"),
    ("staged/run.rs", "match try_once(stage", "a step of ours, with points at its requests"),
    ("staged/run.rs", "=> verdict(stage", "a step of ours, which only waits for others"),
    ("staged/run.rs", "match begin(stage", "a step of ours, with points at its requests"),
    ("staged/run.rs", "wait_for_other(stage", "a step of ours, with a point behind its request"),
    ("tallyonce.rs", "self.one_shot(parcel", "a step of ours, with a point behind its request"),
    ("tallyonce.rs", "deliver_staged(self", "a step of ours, with points at its requests"),
    ("tallyonce.rs", "wait_for_other(self", "a step of ours, with a point behind its request"),
];

fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = [
        "deliver.rs",
        "http.rs",
        "keep.rs",
        "outbox/entry.rs",
        "outbox/mod.rs",
        "parcel/bodies.rs",
        "parcel/files.rs",
        "parcel/mod.rs",
        "parcel/pack.rs",
        "parcel/sealed.rs",
        "staged/http.rs",
        "staged/mod.rs",
        "staged/run.rs",
        "tallyonce.rs",
    ];
    files.iter().map(|file| root.join(file)).collect()
}

fn is_point(line: &str) -> bool {
    ["\"client:", "fail_point!(\"k8", "fail_point!(\"k9", "fail_point!(\"k10"].iter().any(|point| line.contains(point))
}

#[test]
fn every_step_has_a_point_beside_it() {
    let mut without = Vec::new();
    let mut sites = 0;
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if line.trim_start().starts_with("//") || !SITES.iter().any(|site| line.contains(site)) {
                continue;
            }
            sites += 1;
            let beside = &lines[at.saturating_sub(BESIDE)..lines.len().min(at + BESIDE + 1)];
            let excused = EXCEPTIONS.iter().any(|(file, part, _)| path.ends_with(file) && line.contains(part));
            if !excused && !beside.iter().any(|line| is_point(line)) {
                without.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(sites > 20, "the scan finds {sites} sites: it no longer sees the path");
    assert!(without.is_empty(), "without a point:\n{}", without.join("\n"));
}

#[test]
fn every_exception_is_needed() {
    for (file, part, why) in EXCEPTIONS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(part), "{file}: {part} is no longer there ({why})");
    }
}
