//! What a text looks like: a commit, a hash, a UUID, a time, a branch, a word that is always the same.
//! Must not judge what that means for a key; `check` does.

use percent_encoding::percent_decode_str;

/// What a piece of a text looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// 40 hexadecimal digits.
    Commit,
    /// 32 or 64 hexadecimal digits.
    PayloadHash,
    /// 8-4-4-4-12 hexadecimal digits.
    Uuid,
    /// A date, a date and time, or a number of seconds or parts of them since 1970.
    Time,
}

/// A recognised piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    pub(super) text: String,
}

const CONSTANT_WORDS: &[&str] = &[
    "test",
    "tests",
    "testing",
    "unit",
    "e2e",
    "integration",
    "smoke",
    "regression",
    "ci",
    "cd",
    "build",
    "builds",
    "run",
    "runs",
    "job",
    "jobs",
    "latest",
    "nightly",
    "daily",
    "weekly",
    "current",
    "default",
    "local",
    "stable",
    "prod",
    "production",
    "staging",
    "qa",
    "dev",
    "results",
    "report",
    "reports",
    "junit",
    "push",
    "pipeline",
    "workflow",
    "true",
    "false",
    "null",
    "none",
    "undefined",
    "key",
    "id",
    "sha",
    "commit",
    "branch",
    "gh",
    "github",
    "gitlab",
    "jenkins",
    "k8s",
];
const BRANCHES: &[&str] = &["main", "master", "develop", "development", "trunk"];
const BRANCH_FOLDERS: &[&str] = &[
    "feature/",
    "feat/",
    "fix/",
    "bugfix/",
    "hotfix/",
    "release/",
    "chore/",
    "dependabot/",
    "renovate/",
    "refs/heads/",
    "refs/tags/",
    "refs/pull/",
    "origin/",
];
const PARTITION_WORDS: &[&str] = &["shard", "node", "chunk", "part", "partition", "index", "split", "group", "worker"];

/// The run and the round label, decoded, of a key in our own form; none if the text isn't one.
pub(super) fn own_form(text: &str) -> Option<(String, Option<String>)> {
    let pieces: Vec<&str> = text.split(':').collect();
    // `run:X…` outside CI, `platform:run:X…`, or `platform:path:run:X…`.
    let at = match pieces.as_slice() {
        ["run", _, ..] => 0,
        [_, "run", _] => 1,
        [_, "run", _, label, ..] if LABELS.contains(label) => 1,
        [_, _, "run", _, ..] => 2,
        _ => return None,
    };
    let round = (pieces.get(at + 2) == Some(&"round")).then(|| pieces.get(at + 3)).flatten();
    Some((decoded(pieces.get(at + 1)?), round.map(|r| decoded(r))))
}

const LABELS: &[&str] = &["round", "job", "shard", "variant", "b3", "chunk"];

fn decoded(value: &str) -> String {
    percent_decode_str(value).decode_utf8_lossy().into_owned()
}

/// The text cut at everything that people put between the parts of a key.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|piece| !piece.is_empty()).collect()
}

/// The pieces without those that tell partitions of one run apart: `shard-3-of-8`, `node1`, `3/8`.
pub(super) fn without_partition(pieces: Vec<&str>) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut in_partition = false;
    for piece in pieces {
        let lower = piece.to_ascii_lowercase();
        let word = lower.trim_end_matches(|c: char| c.is_ascii_digit());
        if PARTITION_WORDS.contains(&word) {
            in_partition = true;
        } else if in_partition && (lower == "of" || (piece.len() <= 4 && is_digits(piece))) {
            // The partition's own number goes with it.
        } else {
            in_partition = false;
            kept.push(piece);
        }
    }
    kept
}

/// Everything in `text` that looks like a hash, a UUID or a time.
pub(super) fn shapes(text: &str) -> Vec<Shape> {
    let mut found = Vec::new();
    let shape = |kind, text: &str| Shape { kind, text: text.to_owned() };
    // UUIDs and dates hold dashes, so they are looked for before the dashes cut them.
    let (rest, uuids) = take_windows(text, 36, is_uuid);
    found.extend(uuids.iter().map(|uuid| shape(Kind::Uuid, uuid)));
    let (rest, dates) = take_windows(&rest, 10, is_date);
    found.extend(dates.iter().map(|date| shape(Kind::Time, date)));
    for piece in pieces(&rest) {
        let kind = match piece.len() {
            40 if is_hex(piece) => Some(Kind::Commit),
            32 | 64 if is_hex(piece) => Some(Kind::PayloadHash),
            _ if is_time(piece) => Some(Kind::Time),
            _ => None,
        };
        found.extend(kind.map(|kind| shape(kind, piece)));
    }
    found
}

/// Cuts every window of `size` octets that `is` accepts and that no letter or digit touches out of the text.
fn take_windows(text: &str, size: usize, is: fn(&str) -> bool) -> (String, Vec<String>) {
    let octets = text.as_bytes();
    let touches = |at: Option<&u8>| at.is_some_and(u8::is_ascii_hexdigit);
    let (mut rest, mut taken, mut from) = (String::new(), Vec::new(), 0);
    for at in 0..octets.len() {
        let free = at >= from && (at == 0 || !touches(octets.get(at - 1))) && !touches(octets.get(at + size));
        let window = if free { text.get(at..at + size) } else { None };
        if let Some(window) = window.filter(|w| is(w)) {
            rest.push_str(text.get(from..at).unwrap_or_default());
            rest.push(' ');
            taken.push(window.to_owned());
            from = at + size;
        }
    }
    rest.push_str(text.get(from..).unwrap_or_default());
    (rest, taken)
}

/// True for 40 hexadecimal digits, and for 7 to 12 with both a letter and a digit (after a `g` as `git describe` has it).
pub(super) fn is_commit(piece: &str) -> bool {
    let short = |text: &str| {
        (7..=12).contains(&text.len())
            && is_hex(text)
            && text.bytes().any(|b| b.is_ascii_digit())
            && text.bytes().any(|b| b.is_ascii_alphabetic())
    };
    (piece.len() == 40 && is_hex(piece)) || short(piece) || piece.strip_prefix('g').is_some_and(short)
}

/// The commit in what `git describe` prints: `v1.2.3-14-g3f2a9c1`.
pub(super) fn described_commit<'a>(pieces: &[&'a str]) -> Option<&'a str> {
    match pieces {
        [.., count, last] if is_digits(count) && last.starts_with('g') && is_commit(last) => Some(last),
        _ => None,
    }
}

/// True for names and words, which are the same in every run.
pub(super) fn is_word(piece: &str) -> bool {
    piece.bytes().all(|b| b.is_ascii_alphabetic()) || is_constant(piece)
}

/// True for a number that may be a shard's as well as a run's.
pub(super) fn is_small_number(piece: &str) -> bool {
    piece.len() <= 3 && is_digits(piece)
}

/// True for names that only branches have.
pub(super) fn is_branch(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    BRANCHES.contains(&lower.as_str()) || BRANCH_FOLDERS.iter().any(|folder| lower.starts_with(folder))
}

/// True for words that say nothing about the run.
pub(super) fn is_constant(piece: &str) -> bool {
    CONSTANT_WORDS.contains(&piece.to_ascii_lowercase().as_str())
}

/// True for words that announce an attempt number.
pub(super) fn is_attempt_word(piece: &str) -> bool {
    matches!(piece.to_ascii_lowercase().as_str(), "attempt" | "try" | "retry" | "rerun")
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|p| p.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(|p| is_hex(p))
}

/// `YYYY-MM-DD`, also with other signs between.
fn is_date(text: &str) -> bool {
    let octets = text.as_bytes();
    let between = |at: usize| octets.get(at).is_some_and(|b| matches!(b, b'-' | b'.' | b'_' | b'/'));
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    between(4) && between(7) && digits.len() == 8 && is_calendar(&digits)
}

/// Digits that are plausible as a time of these decades.
fn is_time(piece: &str) -> bool {
    // `20260302T091407Z`
    let plain: String = piece.chars().filter(|c| !matches!(c, 'T' | 't' | 'Z' | 'z')).collect();
    if plain.is_empty() || !is_digits(&plain) {
        return false;
    }
    let head = |n: usize| plain.get(..n).and_then(|text| text.parse::<u64>().ok());
    // 2017 to 2036 in seconds; milli-, micro- and nanoseconds are the same with three digits more each.
    let since_1970 = matches!(plain.len(), 10 | 13 | 16 | 19)
        && plain == piece
        && head(10).is_some_and(|seconds| (1_500_000_000..2_100_000_000).contains(&seconds));
    since_1970 || (matches!(plain.len(), 8 | 10 | 12 | 14 | 17) && is_calendar(&plain))
}

/// `YYYYMMDD`, then perhaps `hh`, `mm`, `ss`, `mmm`.
fn is_calendar(digits: &str) -> bool {
    let within = |from: usize, to: usize, low: u32, high: u32| match digits.get(from..to) {
        Some(text) => text.parse::<u32>().is_ok_and(|n| (low..=high).contains(&n)),
        None => digits.len() <= from,
    };
    within(0, 4, 2015, 2040)
        && within(4, 6, 1, 12)
        && within(6, 8, 1, 31)
        && within(8, 10, 0, 23)
        && within(10, 12, 0, 59)
        && within(12, 14, 0, 59)
}
