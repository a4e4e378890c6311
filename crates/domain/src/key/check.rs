//! Judges a key or run value that somebody composed: is it stable when the work is tried again, and new for new work?
//! Must not know any CI platform; what it needs of the environment comes in as `Known`.

use serde::Serialize;

use super::shape::{self, Shape};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Often wrong, but a right value can look the same.
    Warn,
    /// Wrong.
    Fail,
}

impl Severity {
    /// True if `--strict` refuses the key for it.
    pub fn strict_fails(self) -> bool {
        self == Self::Fail
    }
}

/// One thing that is wrong with a key, in words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What was recognised, with the text that it was recognised in.
    pub what: String,
    /// What will go wrong in the recorded data.
    pub why: &'static str,
    /// What to use instead.
    pub instead: &'static str,
}

/// What is known about the run that the key is for. Everything may be absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The platform's own value of the run: a value equal to it is right, whatever it looks like.
    pub own_run: Option<String>,
    /// The commit under test.
    pub commit: Option<String>,
    /// The branch or tag under test.
    pub branch: Option<String>,
    /// Variables that a retry renews (attempt, job id, …), with their values.
    pub renewed: Vec<(&'static str, String)>,
}

const INSTEAD: &str = "Use the id of the pipeline run: your CI platform has one that stays when a job is tried again and \
                       is new for every new run. Add job and shard with --job and --shard.";

/// Judges `text`: a value for `--run`, or a whole key. No finding does not mean that the value is right.
///
/// Of a key in our own form only run and round label are judged; of any other text every piece.
pub fn check(text: &str, known: &Known) -> Vec<Finding> {
    let text = text.trim();
    match shape::own_form(text) {
        Some((run, round)) => {
            let mut findings = check_value(&run, known);
            if let Some(round) = round {
                // A label equal to the attempt is a policy that somebody may want: one round per attempt.
                findings.extend(renewing_shapes(&round, known));
            }
            findings
        }
        None => check_value(text, known),
    }
}

fn check_value(value: &str, known: &Known) -> Vec<Finding> {
    if known.own_run.as_deref() == Some(value) {
        return Vec::new();
    }
    let mut findings = renewing(value, known);
    // A time already names one call; that it says nothing else about the run doesn't matter then.
    if findings.is_empty() {
        findings.extend(collapsing(value, known));
    }
    findings
}

/// Values that a retry changes: every retry would be a new write.
fn renewing(value: &str, known: &Known) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some((variable, _)) = known.renewed.iter().find(|(_, renewed)| renewed == value) {
        findings.push(attempt(variable, value, Severity::Fail));
        return findings;
    }
    findings.extend(renewed_pieces(value, known));
    findings.extend(renewing_shapes(value, known));
    findings
}

/// Pieces that look like something that a retry changes.
fn renewing_shapes(value: &str, known: &Known) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Shape { kind, text } in shape::shapes(value) {
        if known.own_run.as_deref() == Some(text.as_str()) {
            continue;
        }
        findings.extend(match kind {
            shape::Kind::PayloadHash => Some(Finding {
                severity: Severity::Fail,
                what: format!("{text} looks like a hash of the report ({} hexadecimal digits)", text.len()),
                why: "A retry that runs the tests again writes other durations and messages, so its hash differs and it is \
                      recorded as a second write. A report that happens to be equal byte for byte in two real runs is \
                      recorded once.",
                instead: INSTEAD,
            }),
            shape::Kind::Uuid => Some(Finding {
                severity: Severity::Warn,
                what: format!("{text} is a UUID"),
                why: "If it is made anew for every call, every retry is a new write and its outcomes are counted twice. It \
                      is right only if your platform gives it to the whole run and keeps it when a job is tried again.",
                instead: INSTEAD,
            }),
            shape::Kind::Time => Some(Finding {
                severity: Severity::Warn,
                what: format!("{text} looks like a date or time"),
                why: "The time of the call differs on every retry, so every retry is a new write and its outcomes are \
                      counted twice. A date alone also makes one of two runs on the same day.",
                instead: INSTEAD,
            }),
            shape::Kind::Commit => None,
        });
    }
    findings
}

/// Pieces of a composed text that equal a variable that a retry renews.
fn renewed_pieces(value: &str, known: &Known) -> Vec<Finding> {
    let mut findings = Vec::new();
    let pieces = shape::pieces(value);
    let mut before = "";
    for piece in &pieces {
        let names_attempt = shape::is_attempt_word(before);
        let renewed = known.renewed.iter().find(|(_, renewed)| renewed == piece);
        // A short number is more often a shard than an attempt, unless the word before it or its place says so.
        let telling = piece.len() >= 5 || names_attempt;
        let after_run = known.own_run.as_deref() == Some(before);
        if let (Some((variable, _)), true) = (renewed, telling || after_run) {
            let severity = if telling { Severity::Fail } else { Severity::Warn };
            findings.push(attempt(variable, piece, severity));
        } else if names_attempt && piece.bytes().all(|b| b.is_ascii_digit()) {
            findings.push(attempt("an attempt number", piece, Severity::Fail));
        }
        before = piece;
    }
    findings
}

fn attempt(variable: &str, value: &str, severity: Severity) -> Finding {
    let what = match severity {
        Severity::Fail => format!("{value} is {variable}, which a retry changes"),
        Severity::Warn => format!("{value} may be {variable}, which a retry changes"),
    };
    Finding {
        severity,
        what,
        why: "A key names the work, not the attempt at it. With this in the key a retry looks like new work, and if the \
              first attempt was written after all, its outcomes are counted twice.",
        instead: "Leave it out of the key; give the attempt number with --attempt, where it only orders deliveries.",
    }
}

/// Values that two real runs share: the second run would be taken for a retry of the first.
fn collapsing(value: &str, known: &Known) -> Option<Finding> {
    let commit = |piece: &str| {
        let sha = known.commit.as_deref();
        shape::is_commit(piece) || sha.is_some_and(|sha| piece.len() >= 7 && sha.starts_with(piece))
    };
    if shape::is_branch(value) || known.branch.as_deref() == Some(value) {
        return Some(branch_finding(value));
    }
    // A branch's name may hold what cuts the pieces: look for the known one as a whole.
    let known_branch = known.branch.as_deref().filter(|name| name.len() >= 3 && value.contains(name));
    let rest = known_branch.map_or_else(|| value.to_owned(), |name| value.replace(name, " "));
    let pieces = shape::without_partition(shape::pieces(&rest));
    if pieces.iter().any(|piece| known.own_run.as_deref() == Some(piece)) {
        return None;
    }
    if let Some(sha) = shape::described_commit(&pieces) {
        return Some(commit_finding(sha, Severity::Fail));
    }
    let telling: Vec<&str> = pieces.iter().copied().filter(|piece| !commit(piece) && !shape::is_word(piece)).collect();
    if let Some(sha) = pieces.iter().find(|piece| commit(piece)) {
        // One small number beside a commit is its shard, or the run's number: only its writer knows.
        return match telling.as_slice() {
            [] => Some(commit_finding(sha, Severity::Fail)),
            [number] if shape::is_small_number(number) => Some(commit_finding(sha, Severity::Warn)),
            _ => None,
        };
    }
    if !telling.is_empty() {
        return None;
    }
    let branch = known_branch.or_else(|| pieces.iter().copied().find(|piece| shape::is_branch(piece)));
    if let Some(name) = branch {
        return Some(branch_finding(name));
    }
    pieces.iter().all(|piece| shape::is_constant(piece)).then(|| Finding {
        severity: Severity::Fail,
        what: format!("{value} is the same in every run"),
        why: "Every run gets the same key: the first is recorded, and each later one is taken for a retry of it.",
        instead: INSTEAD,
    })
}

fn commit_finding(sha: &str, severity: Severity) -> Finding {
    Finding {
        severity,
        what: format!("{sha} looks like a commit, and nothing else here surely tells two runs apart"),
        why: "Two real runs of one commit (a nightly run, a run started by hand, branch and pull request) collapse into \
              one: the second is taken for a retry of the first, and its outcomes are not recorded as a run of their own.",
        instead: INSTEAD,
    }
}

fn branch_finding(name: &str) -> Finding {
    Finding {
        severity: Severity::Fail,
        what: format!("{name} is a branch's name, and nothing else here tells two runs apart"),
        why: "All runs of the branch collapse into one: every later run is taken for a retry of the first, and its outcomes \
              are not recorded as a run of their own.",
        instead: "Name the branch with --cycle, and use the id of the pipeline run as the run.",
    }
}
