//! What stands there against what the program said of it: the rule of the fault matrix, and its table. Must not run anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use proof::spawn::Finished;
use proof::stubs::{Ledger, RecordedRow};
use serde_json::Value;

use crate::matrix::Mode;
use crate::products::{ALL, OUTCOMES};

/// What says that something stands there more than once.
const DOUBLED: [&str; 4] = ["duplicate-detected", "cycle-doubled", "doubled", "duplicate-cycles"];
/// What says that something is not there, or may not be.
const LOST: [&str; 7] =
    ["vanished", "vendor-lost", "missing", "accepted-not-confirmed", "marker-mangled", "parked", "refused"];

/// What the program said of one push, in all runs.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Flags, findings and states that name something.
    names: BTreeSet<String>,
    /// The cycles that it settled on.
    cycles: BTreeSet<String>,
    /// How each command ended, and what it wrote for people.
    ends: Vec<String>,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it said {:?}; {}", self.names, self.ends.join("; "))
    }
}

fn object(finished: &Finished) -> Value {
    serde_json::from_str(finished.stdout.trim()).unwrap_or(Value::Null)
}

/// Whether a push that ended so is over: recorded, with exceptions that it names, or flagged.
pub(crate) fn is_an_end(code: Option<i32>) -> bool {
    matches!(code, Some(0 | 6 | 7))
}

impl Said {
    fn end(&mut self, what: &str, finished: &Finished) {
        self.ends.push(format!("{what} {:?}: {}", finished.code, finished.stderr.trim().replace('\n', " / ")));
    }

    fn name(&mut self, words: impl IntoIterator<Item = impl AsRef<str>>) {
        self.names.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
    }

    /// Takes down what a push said, and gives its exit code.
    pub(crate) fn hear_push(&mut self, pushed: &Finished) -> Option<i32> {
        self.end("push", pushed);
        let forward = &object(pushed)["forward"];
        self.name(forward["flags"].as_array().into_iter().flatten().filter_map(Value::as_str));
        let is_parked = forward["states"]["parked"].as_u64().is_some_and(|count| count > 0);
        let is_refused = forward["refused"].as_array().is_some_and(|refused| !refused.is_empty());
        self.name(is_parked.then_some("parked"));
        self.name(is_refused.then_some("refused"));
        if is_an_end(pushed.code) {
            self.cycles.extend(forward["cycle"].as_str().map(str::to_owned));
        }
        pushed.code
    }

    /// Takes down what `forwards --sweep` said.
    pub(crate) fn hear_forwards(&mut self, swept: &Finished) {
        self.end("sweep", swept);
        self.name(object(swept)["flags"].as_object().into_iter().flatten().map(|(flag, _)| flag));
    }

    /// Takes down what `audit` said. What is no evidence of anything wrong names nothing.
    pub(crate) fn hear_audit(&mut self, audited: &Finished) {
        self.end("audit", audited);
        let object = object(audited);
        let audits = object["audits"].as_array().into_iter().flatten();
        let findings = audits.flat_map(|audit| audit["findings"].as_array().into_iter().flatten());
        let words = findings.filter_map(|finding| finding["finding"].as_str()).filter(|word| *word != "re-executed");
        self.name(words.collect::<Vec<_>>());
    }

    fn says_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.names.contains(*word))
    }
}

/// What stands there at the end, and what was said.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) ledger: Ledger,
    pub(crate) said: Said,
}

impl Seen {
    /// The rows that count: with containers those of the one that the program settled on, else all.
    pub(crate) fn rows(&self, strategy: &str) -> BTreeMap<&str, Vec<&RecordedRow>> {
        let contained = strategy == "container";
        let counts = |row: &&RecordedRow| !contained || self.said.cycles.contains(&row.cycle);
        let items = self.ledger.items().iter();
        let items = items.map(|(item, rows)| (item.as_str(), rows.iter().filter(counts).collect::<Vec<_>>()));
        items.filter(|(_, rows)| !rows.is_empty()).collect()
    }
}

/// What came of pushes under one fault.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pushes: usize,
    recorded: usize,
    doubled: usize,
    lost: usize,
    named: BTreeSet<String>,
}

impl Tally {
    /// Those of one more push.
    pub(crate) fn add(&mut self, other: Tally) {
        self.add_counts(&other);
        self.named.extend(other.named);
    }

    /// The figures alone.
    pub(crate) fn add_counts(&mut self, other: &Tally) {
        self.pushes += other.pushes;
        self.recorded += other.recorded;
        self.doubled += other.doubled;
        self.lost += other.lost;
    }
}

/// Three cells of a table.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pushes, recorded, doubled, lost, .. } = self;
        write!(f, "{recorded} of {} | {doubled} | {lost}", pushes * OUTCOMES)
    }
}

/// Nothing twice, nothing lost and nothing changed, or a name for it.
///
/// # Errors
/// The rule is broken, in words.
pub(crate) fn judge(strategy: &str, seen: &Seen, clean: &Seen) -> Result<Tally, String> {
    let (rows, expected) = (seen.rows(strategy), clean.rows(strategy));
    let says = |rows: &[&RecordedRow]| rows.iter().map(|row| row.status.clone()).collect::<BTreeSet<_>>();
    let recorded: usize = rows.values().map(Vec::len).sum();
    let tally = Tally {
        pushes: 1,
        recorded,
        doubled: recorded - rows.len(),
        lost: expected.keys().filter(|item| !rows.contains_key(*item)).count(),
        named: seen.said.names.clone(),
    };
    let changed = rows.iter().any(|(item, rows)| expected.get(item).is_none_or(|known| says(known) != says(rows)));
    let broken = if expected.len() != OUTCOMES {
        "a push without any fault does not leave all of it there"
    } else if changed {
        "an item says another verdict than it did"
    } else if tally.doubled > 0 && !seen.said.says_one_of(&DOUBLED) {
        "it stands there twice, and nothing says so"
    } else if tally.lost > 0 && !seen.said.says_one_of(&LOST) {
        "it is lost, and nothing says so"
    } else {
        return Ok(tally);
    };
    Err(format!("{broken}: {} recorded, {} doubled, {} lost; {}", recorded, tally.doubled, tally.lost, seen.said))
}

/// The table, in Markdown.
pub(crate) fn table(tallies: &BTreeMap<(usize, usize, Mode), Tally>) -> String {
    let mut text = String::from(
        "| target | how tested | strategy | what went wrong | recorded | doubled | lost | named |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for ((place, strategy, mode), tally) in tallies {
        let product = &ALL[*place];
        let named: Vec<String> = tally.named.iter().map(|name| format!("`{name}`")).collect();
        let named = if named.is_empty() { "–".to_owned() } else { named.join(", ") };
        let _ = writeln!(
            text,
            "| {} | {} | `{}` | {} | {tally} | {named} |",
            product.name,
            product.tested,
            product.strategies[*strategy],
            mode.words(),
        );
    }
    text
}

/// The table between the marks of this name in its page.
pub(crate) fn read(page: &str, mark: &str) -> String {
    parts(page, mark)[1].clone()
}

/// Puts a table between the marks of this name in its page.
pub(crate) fn write(page: &str, mark: &str, table: &str) {
    let [head, _, tail] = parts(page, mark);
    std::fs::write(path(page), format!("{head}{table}{tail}")).unwrap();
}

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/targets").join(page)
}

/// Up to the mark at which the table begins, the table, and all from the mark at which it ends.
fn parts(page: &str, mark: &str) -> [String; 3] {
    let text = std::fs::read_to_string(path(page)).unwrap();
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let (head, rest) = text.split_once(&begin).expect("the mark at which the table begins");
    let (table, tail) = rest.split_once(&end).expect("the mark at which the table ends");
    [format!("{head}{begin}"), table.to_owned(), format!("{end}{tail}")]
}
