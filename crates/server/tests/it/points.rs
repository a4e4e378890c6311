//! The request path of what writes has a named point at every place where it waits, so that proof can kill a process
//! there. Sources are read, since a point that is missing shows in no other way.

use std::path::Path;

/// Sources through which begin, put, commit, cancel and a push in one request go.
const PATH: &[&str] = &[
    "api/pushes.rs",
    "api/staged.rs",
    "auth.rs",
    "ingest/body.rs",
    "ingest/content.rs",
    "ingest/decode.rs",
    "ingest/head.rs",
    "ingest/inflate.rs",
    "ingest/json.rs",
    "ingest/manifest.rs",
    "ingest/mod.rs",
    "ingest/multipart.rs",
    "layers.rs",
    "record.rs",
    "record/guard.rs",
    "record/staged.rs",
    "serve.rs",
    "state.rs",
];

/// Places that wait and need no point: source, a piece of the line, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("api/pushes.rs", "app.store.push(", "a reading"),
    ("api/pushes.rs", "forwards::beside(", "a reading"),
    ("api/pushes.rs", "app.store.difference(", "a reading"),
    ("api/pushes.rs", "app.store.receipt(", "a reading"),
    ("api/pushes.rs", "app.door.promote(", "a person's decision: no step of a delivery"),
    ("api/pushes.rs", "fenced(&app", "hints for a refusal: reads"),
    ("api/pushes.rs", "ingest::push(", "ends in the decoder's held, or in a refusal"),
    ("api/pushes.rs", "door.door.admit(", "ends in the door's stored"),
    ("api/staged.rs", "ingest::manifest(", "ends in the decoder's held, or in a refusal"),
    ("api/staged.rs", "ingest::chunk(", "ends in the decoder's held, or in a refusal"),
    ("api/staged.rs", "door.door.begin(", "ends in the door's stored"),
    ("api/staged.rs", "app.door.put(", "ends in the door's stored"),
    ("api/staged.rs", "fenced(&app", "hints for a refusal: reads"),
    ("api/staged.rs", "app.door.staging(", "a reading"),
    ("auth.rs", "next.run(", "the handler's own points"),
    ("layers.rs", "next.run(", "the handler's own points"),
    ("ingest/body.rs", "self.next().await?", "k1 follows in the same turn"),
    ("ingest/body.rs", "timeout(idle", "its end is the caller's"),
    ("ingest/body.rs", "self.drain().await", "a refusal on its way out"),
    ("ingest/body.rs", "timeout(DRAIN_TIME", "a refusal on its way out"),
    ("ingest/body.rs", "self.received < most", "a refusal on its way out"),
    ("ingest/decode.rs", "spawn_blocking(work)", "decoded follows, with and without a thread"),
    ("ingest/mod.rs", "read_push(", "ends in the decoder's held, or in a refusal"),
    ("ingest/mod.rs", "read_manifest(", "ends in the decoder's held, or in a refusal"),
    ("ingest/mod.rs", "read_chunk(", "ends in the decoder's held, or in a refusal"),
    ("ingest/mod.rs", "body.done(", "only a refusal waits there"),
    ("ingest/mod.rs", "body.receive(", "ends in received"),
    ("ingest/mod.rs", ".await", "ends in the decoder's held"),
    ("record.rs", "run().await", "the door's stored follows"),
    ("record.rs", "promotion", "a person's decision: no step of a delivery"),
    ("record.rs", "round", "a person's decision: no step of a delivery"),
    ("record/staged.rs", "self.store.staging(", "a reading"),
    ("record/staged.rs", "self.store.collect(", "no request waits for it; the store has points of its own"),
    ("serve.rs", "", "connections: k0 is their first step, and their end is no step of an operation"),
    ("state.rs", "acquire_many_owned(", "ends in the decoder's held"),
    ("state.rs", "draining.wait_for(", "stopping"),
    ("state.rs", "tokio::spawn(work)", "the handler's answered follows"),
    ("state.rs", "pending()", "the runtime is ending"),
];

/// Lines after a wait within which its point stands.
const BESIDE: usize = 4;

/// Every wait of a source: its line from 1, its statement up to there, and the lines that follow.
fn waits(text: &str) -> Vec<(usize, String, String)> {
    let lines: Vec<&str> = text.lines().take_while(|line| !line.contains("#[cfg(test)]")).collect();
    let is_code = |line: &str| !line.trim_start().starts_with("//");
    let ends = |line: &&str| line.ends_with([';', '{', '}']) || line.trim().is_empty() || !is_code(line);
    let wait = |(at, _): (usize, &&str)| {
        let begin = lines[..at].iter().rposition(ends).map_or(0, |before| before + 1);
        let after = &lines[at..lines.len().min(at + 1 + BESIDE)];
        (at + 1, lines[begin..=at].join("\n"), after.join("\n"))
    };
    lines.iter().enumerate().filter(|(_, line)| is_code(line) && line.contains(".await")).map(wait).collect()
}

#[test]
fn every_wait_of_the_request_path_has_a_point_beside_it() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut used = vec![false; EXCEPTIONS.len()];
    let (mut bare, mut points) = (Vec::new(), 0);
    for name in PATH {
        let text = std::fs::read_to_string(sources.join(name)).unwrap();
        for (line, statement, after) in waits(&text) {
            if ["point(", "fail_point!("].iter().any(|point| after.contains(point)) {
                points += 1;
                continue;
            }
            let mut excused =
                EXCEPTIONS.iter().enumerate().filter(|(_, (file, piece, _))| file == name && statement.contains(piece));
            match excused.next() {
                Some((at, _)) => used[at] = true,
                None => bare.push(format!("{name}:{line}: {}", statement.trim())),
            }
        }
    }
    assert!(bare.is_empty(), "waits without a point beside them, nor a reason:\n{}", bare.join("\n"));
    let unused: Vec<_> =
        EXCEPTIONS.iter().zip(used).filter(|(_, used)| !used).map(|(exception, _)| exception).collect();
    assert!(unused.is_empty(), "exceptions that nothing needs any more: {unused:#?}");
    assert!(points >= 10, "only {points} points were found: this test looks at the wrong place");
}

#[test]
fn no_source_that_waits_is_left_out() {
    // Readings and what is not part of a request.
    const OTHERS: &[&str] = &[
        "api/attach.rs",
        "api/forwards.rs",
        "api/health.rs",
        "api/items.rs",
        "api/metrics.rs",
        "api/projects.rs",
        "api/rounds.rs",
        "collect.rs",
        // No request: a worker's steps are the store's, and points of its own stand between them.
        "forward/closing.rs",
        "forward/elsewhere.rs",
        "forward/lease.rs",
        "forward/loads.rs",
        "forward/mod.rs",
        "forward/report.rs",
        "forward/sweeps.rs",
        "forward/worker.rs",
        // No request: each call is one step of the store, which has a point at each of its statements.
        "ledger.rs",
        "local.rs",
        "params.rs",
        // Within the turn of a worker, or of a command.
        "place.rs",
        // Only in builds for proving.
        "record/mutants.rs",
        "segments.rs",
    ];
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let name = entry.strip_prefix(&sources).unwrap().to_string_lossy().replace('\\', "/");
            let known = PATH.contains(&name.as_str()) || OTHERS.contains(&name.as_str());
            let text = std::fs::read_to_string(&entry).unwrap();
            assert!(known || waits(&text).is_empty(), "{name} waits, and no list of this test names it");
        }
    }
}
