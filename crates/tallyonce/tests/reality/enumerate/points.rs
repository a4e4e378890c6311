//! Every fail point that the sources name, read from the sources, and which of them a delivery passes, in order.
//! Must not list a point by hand: a new one is found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A point and which of its passes, from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) point: String,
    pub(crate) nth: u32,
}

impl Hit {
    pub(crate) fn new(point: &str, nth: u32) -> Self {
        Self { point: point.to_owned(), nth }
    }

    pub(crate) fn text(&self) -> String {
        format!("{}@{}", self.point, self.nth)
    }
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Quoted texts that begin so.
fn quoted(text: &str, start: &str) -> BTreeSet<String> {
    let opening = format!("\"{start}");
    let pieces = text.split(&opening).skip(1);
    pieces.filter_map(|piece| piece.split('"').next()).map(|rest| format!("{start}{rest}")).collect()
}

fn of_folder(folder: &Path, start: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(of_folder(&path, start));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            all.extend(quoted(&read(&path), start));
        }
    }
    all
}

/// Words that `fn word` gives, of the first or the second type in the file.
fn words(text: &str) -> Vec<Vec<String>> {
    let bodies = text.split("fn word(self)").skip(1);
    let word = |line: &str| line.split_once("=> \"")?.1.split('"').next().map(str::to_owned);
    bodies.map(|body| body.split("\n    }\n").next().unwrap().lines().filter_map(word).collect()).collect()
}

/// All points of the sources by name.
pub(crate) fn in_the_sources() -> BTreeSet<String> {
    let mut all = of_folder(&source("store/src"), "store:");
    all.retain(|point| point.matches(':').count() == 2 && !point.contains('{'));
    all.extend(of_folder(&source("delivery/src"), "client:").into_iter().filter(|point| !point.contains('{')));
    let words = words(&read(&source("server/src/points.rs")));
    let [operations, steps] = words.as_slice() else { panic!("{words:?}") };
    for operation in operations {
        all.extend(steps.iter().map(|step| format!("server:{operation}:{step}")));
    }
    assert!(all.len() > 150, "the scan finds {} points: it no longer sees the sources", all.len());
    all
}

/// Points that no push of ours passes, by how they begin, and where they are proved.
pub(crate) const ELSEWHERE: [(&str, &str); 30] = [
    (
        "store:cancel:",
        "a client cancels only before it cuts smaller; store/tests/points fails each, rows n1 and n2 cancel",
    ),
    ("client:cancel:", "the same; rows/others kills it there"),
    ("server:cancel:", "the same"),
    ("store:collect:", "row g2 kills a collection; store/tests/points fails each"),
    ("store:drop-round:", "deletion; store/tests/points fails each"),
    ("store:promote:", "a person's command; store/tests/points fails each"),
    ("store:set-round:", "a person's command; store/tests/points fails each"),
    ("store:repair:", "a person's command; store/tests/points fails each"),
    ("store:ledger:", "forwarding; store/tests/points fails each and kills at each"),
    ("store:forwards:", "the same; tests/forwarding kills at each"),
    ("store:record:insert-waiting", "the same: this server has no target"),
    ("store:commit:insert-waiting", "the same"),
    ("store:begin:contest-", "refusals; store/tests/points fails each"),
    ("store:begin:raise-attempt", "resumes and repeats by other attempts; store/tests/points"),
    ("store:begin:insert-executor", "repeats by other executors; store/tests/points"),
    ("store:begin:end-stage", "supersedes; store/tests/points"),
    ("store:commit:contest-push", "refusals; store/tests/points"),
    ("store:commit:keep-refusal", "refusals; store/tests/points"),
    ("store:commit:raise-attempt", "repeats by other attempts; store/tests/points"),
    ("store:commit:replay-push", "recorded by another while it was staged: row o1; store/tests/points"),
    ("store:record:contest-", "refusals; store/tests/points"),
    ("store:record:raise-attempt", "repeats by other attempts; store/tests/points"),
    ("store:record:end-stage", "one request over an open epoch: row o1; store/tests/points"),
    ("client:attach:", "waits for others; delivery/tests/it/failpoints, rows x1 and x6"),
    ("client:wait:", "waits before another try: every case of a dead server passes them"),
    ("client:recut:", "smaller cuts; delivery/tests/it/failpoints"),
    ("client:seal:", "sealed files; delivery/tests/it/failpoints"),
    ("client:begin:done-without-items", "manifests too large with items; delivery/tests/it/staged"),
    ("client:outbox:cleared", "an outbox with leftovers; delivery/tests/it/failpoints"),
    ("client:attachments:kept", "a push with attachments; delivery/tests/it/failpoints"),
];

/// The points that one undisturbed delivery passed, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Passed(pub(crate) Vec<String>);

impl Passed {
    pub(crate) fn read(path: &Path) -> Self {
        Self(read(path).lines().map(str::to_owned).collect())
    }

    pub(crate) fn counts(&self) -> BTreeMap<&str, u32> {
        let mut counts = BTreeMap::new();
        for point in &self.0 {
            *counts.entry(point.as_str()).or_default() += 1;
        }
        counts
    }

    /// Every pass of every point.
    pub(crate) fn hits(&self) -> Vec<Hit> {
        let counts = self.counts().into_iter();
        counts.flat_map(|(point, count)| (1..=count).map(move |nth| Hit::new(point, nth))).collect()
    }

    /// How often `point` was passed before `before` was for the first time.
    pub(crate) fn before(&self, point: &str, before: &str) -> u32 {
        self.0.iter().take_while(|passed| *passed != before).filter(|passed| *passed == point).count() as u32
    }

    /// The first point that begins so.
    pub(crate) fn first(&self, start: &str) -> &str {
        self.0.iter().find(|point| point.starts_with(start)).unwrap_or_else(|| panic!("nothing passed {start}"))
    }
}
